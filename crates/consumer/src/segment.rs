//! Parallel segments: one partition that several apps read, each its share of the keys.

use moldau_records::crc32c;

use crate::{Error, Result};

/// A share of all keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Segment {
    index: u32,
    count: u32,
}

impl Segment {
    /// # Errors
    /// [`Error::NoSegment`].
    pub(crate) fn new(index: u32, count: u32) -> Result<Self> {
        if index < count {
            Ok(Self { index, count })
        } else {
            Err(Error::NoSegment { index, count })
        }
    }

    /// The group of this segment of an app.
    pub(crate) fn group(self, name: &str) -> String {
        format!("{name}-{}", self.index)
    }

    /// Whether a record is one of its own. The hash is the same in every process, and another one
    /// than that by which producers choose partitions: the keys of a partition are spread evenly.
    pub(crate) fn holds(self, offset: i64, key: Option<&[u8]>) -> bool {
        let place = match key {
            Some(key) => i64::from(crc32c(key)),
            None => offset,
        };
        place.rem_euclid(i64::from(self.count)) == i64::from(self.index)
    }
}
