//! Outputs of an exactly-once app that a transaction could not send, since their topic refuses
//! them. The transaction is aborted, and its records are handled again: the one that is to blame
//! then fails with the refusal, so that its layers settle it and all others go on.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_client::{Error, TopicPartition};

/// The record whose handler returned something; the first of a batch.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Source {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

/// Refusals that handlers are yet to be told of.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    /// Guards them: by the partition and offset of their source, and by the topic that refuses.
    noted: Mutex<HashMap<TopicPartition, BySource>>,
}

type BySource = BTreeMap<i64, HashMap<Arc<str>, Error>>;

impl Refusals {
    /// `topic` refuses what came of `source`.
    pub(crate) fn note(&self, source: &Source, topic: &Arc<str>, error: Error) {
        let mut noted = self.lock();
        let partition = TopicPartition::of(&source.topic, source.partition);
        let by_source = noted.entry(partition).or_default();
        by_source.entry(source.offset).or_default().insert(Arc::clone(topic), error);
        if by_source.len() > SOURCES_MAX {
            // Most likely to be done.
            by_source.pop_first();
        }
    }

    /// Why `topic` refused what came of a record or batch from `source` to offset `last`.
    pub(crate) fn find(&self, source: &Source, last: i64, topic: &str) -> Option<Error> {
        let noted = self.lock();
        if noted.is_empty() {
            return None;
        }
        let by_source = noted.get(&TopicPartition::of(&source.topic, source.partition))?;
        let mut sources = by_source.range(source.offset..=last.max(source.offset));
        sources.find_map(|(_, by_topic)| by_topic.get(topic).cloned())
    }

    /// What comes of these records next is sent again, to see whether the topic takes it by now.
    pub(crate) fn forget(&self, topic: &str, partition: i32, offsets: RangeInclusive<i64>) {
        if let Some(by_source) = self.lock().get_mut(&TopicPartition::of(topic, partition)) {
            by_source.retain(|offset, _| !offsets.contains(offset));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TopicPartition, BySource>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Most records of a partition whose refusals are kept.
const SOURCES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_known_to_its_source_and_topic_until_it_is_forgotten() {
        let refusals = Refusals::default();
        let source = |offset| Source { topic: "orders".into(), partition: 3, offset };
        let error = Error::RecordTooLarge { record_bytes: 2, bytes_max: 1 };
        refusals.note(&source(7), &"out".into(), error);
        assert!(refusals.find(&source(7), 7, "out").is_some());
        assert!(refusals.find(&source(5), 9, "out").is_some(), "a batch that holds it");
        assert!(refusals.find(&source(7), 7, "dead").is_none());
        assert!(refusals.find(&source(8), 9, "out").is_none());
        refusals.forget("orders", 3, 5..=9);
        assert!(refusals.find(&source(7), 7, "out").is_none());
    }

    #[test]
    fn the_sources_of_a_partition_are_bounded() {
        let refusals = Refusals::default();
        let count = i64::try_from(SOURCES_MAX).unwrap() + 1;
        for offset in 0..count {
            let source = Source { topic: "orders".into(), partition: 0, offset };
            refusals.note(&source, &"out".into(), Error::Closed);
        }
        let source = |offset| Source { topic: "orders".into(), partition: 0, offset };
        assert!(refusals.find(&source(0), 0, "out").is_none());
        assert!(refusals.find(&source(count - 1), count - 1, "out").is_some());
    }
}
