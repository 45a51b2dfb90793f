//! Repairing the data directory of a broker that is stopped.
//!
//! Storage salvages what is left; here is what that means for topics, groups and producer ids.
//! Where metadata may be lost, logs without a topic are kept under a name, and producer ids begin
//! behind all that can have been given out: of two producers with one id, the batches of one would
//! pass for repetitions of the other's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use moldau_coordinator::producer_ids::{PRODUCER_ID_BLOCK_SIZE, ProducerIdBlock};
use moldau_protocol::Uuid;
use moldau_storage::{Left, Replay, Report, Salvage, TopicId};

use crate::clock::wall_clock_ms;
use crate::config::Config;
use crate::error::Error;
use crate::metadata_record::MetadataRecord;
use crate::state::{Restored, block_record};
use crate::topic_config::TopicOverrides;
use crate::topic_names::check_name;

/// A data directory that was examined, and is locked.
pub struct Repair(moldau_storage::Repair);

impl Repair {
    /// Reads everything in the data directory and changes nothing. `names` are those that topics
    /// get whose metadata is lost, by their ids; without one they are named after the id.
    ///
    /// # Errors
    /// See [`moldau_storage::Repair::examine`]; [`Error::TopicName`].
    pub fn examine(config: &Config, names: BTreeMap<Uuid, String>) -> Result<Repair, Error> {
        for (id, name) in &names {
            check_name(name).map_err(|refusal| unfit(*id, name, &refusal.message))?;
        }
        let restored = Restored::new(config, wall_clock_ms());
        let (deleted, problem) = (BTreeSet::new(), None);
        let mut owner = Owner { restored, deleted, names, problem };
        let repair = moldau_storage::Repair::examine(&config.data_dir, &mut owner)?;
        // An interrupted repair has chosen its names.
        let is_over = !repair.report().is_unfinished;
        let unused = owner.names.into_iter().next().filter(|_| is_over);
        let unused =
            unused.map(|(id, name)| unfit(id, &name, "the metadata of this topic is not lost"));
        match owner.problem.or(unused) {
            Some(problem) => Err(problem),
            None => Ok(Repair(repair)),
        }
    }

    /// What was found.
    pub fn report(&self) -> &Report {
        self.0.report()
    }

    /// Makes a directory that a broker can be started on of what is left. Returns where the files
    /// are as they were, or `None` if there was nothing to repair.
    ///
    /// # Errors
    /// See [`moldau_storage::Repair::apply`].
    pub fn apply(self) -> Result<Option<PathBuf>, Error> {
        let aside = format!("damaged-{}", wall_clock_ms());
        Ok(self.0.apply(&aside)?)
    }
}

/// What the metadata that is left says.
struct Owner {
    restored: Restored,
    deleted: BTreeSet<[u8; 16]>,
    /// Names that were not used yet.
    names: BTreeMap<Uuid, String>,
    problem: Option<Error>,
}

impl Replay for Owner {
    fn metadata(&mut self, bytes: &[u8]) -> Result<(), String> {
        if let Ok(MetadataRecord::TopicDeleted { id }) = MetadataRecord::decode(bytes) {
            self.deleted.insert(id);
        }
        self.restored.replay(bytes)
    }
}

impl Salvage for Owner {
    fn topic_name(&self, topic: TopicId) -> Option<String> {
        let topic = self.restored.catalog.by_id(Uuid::from_bytes(topic.0));
        topic.map(|topic| topic.name.to_string())
    }

    fn make_up(&mut self, left: &Left) -> Vec<Vec<u8>> {
        let ids = self.restored.producer_ids.snapshot().map_or(0, |block| block.end);
        let seen = left.producer_id_max.filter(|id| *id < CLAIMED_ID_MAX);
        let end = ids.max(seen.map_or(0, |id| id + 1)).saturating_add(IDS_SKIPPED);
        let mut records = vec![block_record(ProducerIdBlock { end })];
        for (topic, partitions) in &left.topics {
            let partitions = u32::try_from(*partitions).unwrap_or(0);
            records.extend(self.topic(topic.0, partitions));
        }
        records.iter().map(MetadataRecord::encode).collect()
    }
}

impl Owner {
    /// The record that makes known a topic of at least so many partitions, if one is needed.
    fn topic(&mut self, topic: [u8; 16], partitions: u32) -> Option<MetadataRecord> {
        let id = Uuid::from_bytes(topic);
        let record = match self.restored.catalog.by_id(id) {
            Some(known) if known.partitions >= partitions => return None,
            Some(_) => MetadataRecord::PartitionsGrown { id: topic, partitions },
            None if self.deleted.contains(&topic) => return None,
            None => {
                let name = self.names.remove(&id).unwrap_or_else(|| format!("recovered-{id}"));
                if self.restored.catalog.by_name(&name).is_some() {
                    self.problem = Some(unfit(id, &name, "a topic with this name exists"));
                    return None;
                }
                // Nothing of it goes before the operator has seen it.
                let keeps = [("retention.ms".to_owned(), "-1".to_owned())];
                let overrides = TopicOverrides::from(keeps);
                MetadataRecord::TopicCreated { id: topic, name, partitions, overrides }
            }
        };
        // A number of partitions that no topic can have is not one.
        self.restored.catalog.replay(record.clone()).is_ok().then_some(record)
    }
}

fn unfit(id: Uuid, name: &str, problem: &str) -> Error {
    Error::TopicName { id: id.to_string(), name: name.to_owned(), problem: problem.to_owned() }
}

/// More producer ids than are given out while one frame is written.
const IDS_SKIPPED: i64 = 1_000 * PRODUCER_ID_BLOCK_SIZE;
/// A client may have sent any id; from here on it is none of those that were given out.
const CLAIMED_ID_MAX: i64 = 1 << 60;
