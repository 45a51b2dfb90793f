//! State of a request until its answer comes.

use crate::frame::ResponseFrame;

/// Most filters of a virtual cluster, since [`Readers`] have a bit for each.
pub(crate) const FILTERS_MAX: usize = 64;

/// State of a request until its answer comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Expected {
    pub(crate) correlation_id: i32,
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
    pub(crate) readers: Readers,
}

/// The filters that an answer goes through if they claim it: a bit for the index of each.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Readers(u64);

impl Readers {
    /// Every filter.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Those of them that stand before the filter of this index.
    pub(crate) fn before(self, index: usize) -> Self {
        Self(self.0 & (bit(index).wrapping_sub(1)))
    }

    /// Those of them but the filter of this index.
    pub(crate) fn without(self, index: usize) -> Self {
        Self(self.0 & !bit(index))
    }

    /// Whether the filter of this index is one of them.
    pub(crate) fn contain(self, index: usize) -> bool {
        self.0 & bit(index) != 0
    }
}

fn bit(index: usize) -> u64 {
    u32::try_from(index).ok().and_then(|index| 1_u64.checked_shl(index)).unwrap_or_default()
}

/// An answer that a filter gave.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) response: ResponseFrame,
    pub(crate) readers: Readers,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_are_those_before_the_one_that_answered_but_for_who_wanted_no_answer() {
        let readers = Readers::ALL.without(1).before(3);
        let of = |readers: Readers| (0..FILTERS_MAX).filter(move |index| readers.contain(*index));
        assert_eq!(of(readers).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(of(Readers::ALL).count(), FILTERS_MAX);
        assert_eq!(of(Readers::ALL.before(0)).count(), 0);
        assert!(!Readers::ALL.contain(FILTERS_MAX));
    }
}
