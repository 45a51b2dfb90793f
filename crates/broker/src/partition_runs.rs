//! The encoded partitions of Metadata answers, shared by all answers that are under way.
//!
//! One broker leads and holds every partition, so nothing but its index tells one partition from
//! another: the same bytes serve every topic, and no change of a topic makes them stale. They are
//! made in runs, between which a network thread can do other work, and live as long as an answer
//! that holds them: however many clients read the answer for a million partitions, and however
//! slowly, its 26 MB exist once, and not at all without requests.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use moldau_protocol::EncodeError;
use moldau_protocol::messages::metadata_response::MetadataResponsePartition;
use moldau_protocol::metadata::encode_partitions;

use crate::fetch_session::lock;

/// Partitions of a run. They are encoded within some tens of microseconds, and their 100 KiB are
/// much for a segment of an answer and little for an allocation.
const RUN_PARTITIONS: i32 = 4096;

/// All runs that are in use.
///
/// Versions differ in four forms of a partition, so there are never more than four times
/// `TOPIC_PARTITIONS_MAX` partitions in it.
#[derive(Debug, Default)]
pub(crate) struct PartitionRuns {
    runs: Arc<Runs>,
}

/// Guards the runs, by the bytes of partition 0 and their first partition. Nothing of a run stays
/// behind: a remnant between its neighbours' memory would keep that from the system.
type Runs = Mutex<HashMap<(Bytes, i32), Run>>;

#[derive(Debug)]
struct Run {
    bytes: Bytes,
    /// Pieces of answers that hold the bytes.
    holders: usize,
}

/// Owns a run as the memory of a piece of an answer.
struct Held {
    bytes: Bytes,
    key: (Bytes, i32),
    runs: Arc<Runs>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut runs = lock(&self.runs);
        let Some(run) = runs.get_mut(&self.key) else { return };
        run.holders -= 1;
        if run.holders == 0 {
            runs.remove(&self.key);
        }
        if runs.is_empty() {
            *runs = HashMap::new();
        }
    }
}

impl PartitionRuns {
    /// The next partitions of a topic of `count`, from `first` on, where a run begins: how many
    /// and their bytes in an answer of `version`. Each is as `template` but for its index.
    ///
    /// # Errors
    /// The version does not exist.
    pub(crate) fn next(
        &self,
        template: &MetadataResponsePartition,
        first: i32,
        count: i32,
        version: i16,
    ) -> Result<(i32, Bytes), EncodeError> {
        let encode = |indexes: Range<i32>| encode_partitions(indexes, template, version);
        let left = count - first;
        if count < RUN_PARTITIONS {
            // Cheaper to make than to find, and most topics are that small.
            return Ok((left, encode(first..count)?));
        }
        let form = encode(0..1)?;
        let one = form.len();
        let held = self.hold((form, first), || encode(first..first + RUN_PARTITIONS))?;
        let taken = left.min(RUN_PARTITIONS);
        let bytes = one * usize::try_from(taken).unwrap_or_default();
        Ok((taken, Bytes::from_owner(held).slice(..bytes)))
    }

    /// The run of a key, which `encode` makes if it is in no answer.
    fn hold(
        &self,
        key: (Bytes, i32),
        encode: impl FnOnce() -> Result<Bytes, EncodeError>,
    ) -> Result<Held, EncodeError> {
        let mut runs = lock(&self.runs);
        let bytes = match runs.get_mut(&key) {
            Some(run) => {
                run.holders += 1;
                run.bytes.clone()
            }
            None => {
                let bytes = encode()?;
                runs.insert(key.clone(), Run { bytes: bytes.clone(), holders: 1 });
                bytes
            }
        };
        Ok(Held { bytes, key, runs: Arc::clone(&self.runs) })
    }

    /// Bytes of all runs that are in use.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.runs).values().map(|run| run.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a topic.
    fn pieces(runs: &PartitionRuns, count: i32, version: i16) -> Vec<Bytes> {
        let (mut first, mut pieces) = (0, Vec::new());
        let template = MetadataResponsePartition {
            replica_nodes: vec![0],
            isr_nodes: vec![0],
            ..MetadataResponsePartition::default()
        };
        while first < count {
            let (taken, bytes) = runs.next(&template, first, count, version).unwrap();
            first += taken;
            pieces.push(bytes);
        }
        assert_eq!(first, count);
        pieces
    }

    #[test]
    fn equal_topics_share_encoded_bytes() {
        let runs = PartitionRuns::default();
        let one = pieces(&runs, 10_000, 12);
        let held = runs.bytes();
        let other = pieces(&runs, 20_000, 13);
        assert_eq!(other[0].as_ptr(), one[0].as_ptr());
        assert_eq!(one[2].len(), 26 * (10_000 - 2 * 4096));
        assert_eq!(one.concat(), other.concat()[..26 * 10_000]);
        assert_eq!(held, 26 * 3 * 4096);
        assert_eq!(runs.bytes(), 26 * 5 * 4096);
    }

    #[test]
    fn run_is_freed_with_its_last_response() {
        let runs = PartitionRuns::default();
        let (one, other) = (pieces(&runs, 8192, 12), pieces(&runs, 4096, 12));
        drop(one);
        assert_eq!(runs.bytes(), 26 * 4096);
        drop(other);
        assert_eq!(runs.bytes(), 0);
        let again = pieces(&runs, 8192, 12);
        assert_eq!(runs.bytes(), again.concat().len());
    }

    #[test]
    fn small_topic_uses_no_run() {
        let runs = PartitionRuns::default();
        assert_eq!(pieces(&runs, 3, 12).concat().len(), 26 * 3);
        assert_eq!(runs.bytes(), 0);
    }
}
