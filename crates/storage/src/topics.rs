//! All logs of a storage, by topic and partition.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_threads::Mutex;

use crate::{Log, LogId, TopicId};

/// The logs, spread over several locks.
#[derive(Default)]
pub(crate) struct Topics([Mutex<Shard>; SHARDS]);

type Shard = HashMap<TopicId, HashMap<i32, Arc<Log>>>;

impl Topics {
    fn shard(&self, topic: TopicId) -> &Mutex<Shard> {
        let TopicId([.., last]) = topic;
        let [first, ..] = &self.0;
        self.0.get(usize::from(last) % SHARDS).unwrap_or(first)
    }

    /// The log of a partition, made by `make` if there is none.
    pub(crate) fn log(&self, id: LogId, make: impl FnOnce() -> Arc<Log>) -> Arc<Log> {
        let mut topics = self.shard(id.topic).lock();
        let log = topics.entry(id.topic).or_default().entry(id.partition).or_insert_with(make);
        Arc::clone(log)
    }

    pub(crate) fn find(&self, id: LogId) -> Option<Arc<Log>> {
        self.shard(id.topic).lock().get(&id.topic)?.get(&id.partition).cloned()
    }

    /// Takes a topic away, with its logs.
    pub(crate) fn remove(&self, topic: TopicId) -> HashMap<i32, Arc<Log>> {
        self.shard(topic).lock().remove(&topic).unwrap_or_default()
    }

    pub(crate) fn ids(&self) -> Vec<TopicId> {
        let of_shard = |shard: &Mutex<Shard>| -> Vec<_> { shard.lock().keys().copied().collect() };
        self.0.iter().flat_map(of_shard).collect()
    }

    pub(crate) fn of(&self, topic: TopicId) -> Vec<Arc<Log>> {
        let topics = self.shard(topic).lock();
        topics.get(&topic).into_iter().flat_map(HashMap::values).cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Log>> {
        let of_shard = |shard: &Mutex<Shard>| -> Vec<_> {
            shard.lock().values().flat_map(HashMap::values).cloned().collect()
        };
        self.0.iter().flat_map(of_shard).collect()
    }
}

/// Logs are found by many threads; topic ids are random, so any of their bytes spreads them.
const SHARDS: usize = 16;
