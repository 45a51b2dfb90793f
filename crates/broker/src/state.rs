//! What all connections of a broker share.

use std::sync::Mutex;

use moldau_coordinator::producer_ids::{ProducerIdBlock, ProducerIdentity, ProducerIds};
use moldau_coordinator::{GroupRecord, Groups};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_storage::{Lsn, Storage};

use crate::catalog::Catalog;
use crate::config::Config;
use crate::counters::Counters;
use crate::error::{Refusal, append_refusal};
use crate::fetch_session::{FetchSessions, lock};
use crate::group_service::GroupService;
use crate::metadata_record::MetadataRecord;

/// Topics, groups, sessions and the journal of one broker.
pub(crate) struct State {
    pub(crate) config: Config,
    /// As clients see it: the data directory's own id in base64url.
    pub(crate) cluster_id: String,
    pub(crate) storage: Storage,
    pub(crate) catalog: Catalog,
    pub(crate) sessions: FetchSessions,
    pub(crate) groups: GroupService,
    pub(crate) counters: Counters,
    /// Guards the block of producer ids in use and the order of its records in the journal.
    producer_ids: Mutex<ReservedIds>,
}

struct ReservedIds {
    ids: ProducerIds,
    /// Position of the block in use: an id goes out only once this is durable.
    reserved: Option<Lsn>,
}

/// What the journal tells a starting broker.
pub(crate) struct Restored {
    pub(crate) catalog: Catalog,
    pub(crate) groups: Groups,
    pub(crate) producer_ids: ProducerIds,
}

impl Restored {
    /// A broker that has seen nothing.
    pub(crate) fn new(config: &Config, now_ms: i64) -> Self {
        let delay_ms = config.group_initial_rebalance_delay.as_millis();
        let groups = moldau_coordinator::Config {
            initial_rebalance_delay_ms: i32::try_from(delay_ms).unwrap_or(i32::MAX),
            ..moldau_coordinator::Config::default()
        };
        Self {
            catalog: Catalog::default(),
            groups: Groups::new(groups, fastrand::u64(..), now_ms),
            producer_ids: ProducerIds::default(),
        }
    }

    /// Applies one metadata record of the journal.
    ///
    /// # Errors
    /// Says why the record is not understood.
    pub(crate) fn replay(&mut self, bytes: &[u8]) -> Result<(), String> {
        match MetadataRecord::decode(bytes)? {
            MetadataRecord::Group(record) => {
                let record = GroupRecord::decode(&record).map_err(|error| error.to_string())?;
                self.groups.replay(record);
                Ok(())
            }
            MetadataRecord::ProducerIds(record) => {
                let block = ProducerIdBlock::decode(&record).map_err(|error| error.to_string())?;
                self.producer_ids.replay(block);
                Ok(())
            }
            record => self.catalog.replay(record),
        }
    }
}

impl State {
    /// Takes over what was restored.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn new(
        config: Config,
        storage: Storage,
        restored: Restored,
        now_ms: i64,
    ) -> Result<Self, Refusal> {
        let groups = GroupService::start(restored.groups, &storage, now_ms)?;
        Ok(Self {
            config,
            cluster_id: Uuid::from_bytes(storage.info().cluster_id).to_string(),
            storage,
            catalog: restored.catalog,
            sessions: FetchSessions::default(),
            groups,
            counters: Counters::default(),
            producer_ids: Mutex::new(ReservedIds { ids: restored.producer_ids, reserved: None }),
        })
    }

    /// Deletes the logs of topics that are not in the catalog: the process ended between the two
    /// records of a deletion.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn delete_orphaned_logs(&self) -> Result<(), Refusal> {
        for topic in self.storage.topics() {
            if self.catalog.by_id(Uuid::from_bytes(topic.0)).is_none() {
                self.storage.delete_topic(topic).map_err(|error| append_refusal(&error))?;
            }
        }
        Ok(())
    }

    /// An identity for a producer, and the position that must be durable before it is told.
    ///
    /// # Errors
    /// A journal that takes nothing, or no ids left.
    pub(crate) fn producer_identity(
        &self,
        current: Option<ProducerIdentity>,
    ) -> Result<(ProducerIdentity, Option<Lsn>), Refusal> {
        let mut guard = lock(&self.producer_ids);
        let allocated = guard.ids.init(current).ok_or_else(|| {
            Refusal::new(ErrorCode::UnknownServerError, "all producer ids are used up")
        })?;
        if let Some(block) = allocated.record {
            guard.reserved = Some(append_block(&self.storage, block)?);
        }
        Ok((allocated.identity, guard.reserved))
    }

    /// The metadata records that rebuild everything but the logs.
    pub(crate) fn snapshot(&self) -> Vec<MetadataRecord> {
        let mut records = self.catalog.snapshot();
        records.extend(self.groups.snapshot());
        let block = lock(&self.producer_ids).ids.snapshot();
        records.extend(block.map(block_record));
        records
    }
}

fn append_block(storage: &Storage, block: ProducerIdBlock) -> Result<Lsn, Refusal> {
    storage.append_metadata(&block_record(block).encode()).map_err(|error| append_refusal(&error))
}

fn block_record(block: ProducerIdBlock) -> MetadataRecord {
    let mut bytes = Vec::new();
    block.encode(&mut bytes);
    MetadataRecord::ProducerIds(bytes)
}
