//! What all connections of a broker share.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use moldau_coordinator::producer_ids::{ProducerIdBlock, ProducerIdentity, ProducerIds};
use moldau_coordinator::share_partitions::{ShareRecord, Shares};
use moldau_coordinator::transactions::{TransactionRecord, Transactions};
use moldau_coordinator::{GroupRecord, Groups};
use moldau_net::MemoryBudget;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{Marker, MarkerBatch};
use moldau_storage::{LogMarker, Lsn};
use tokio::sync::{Notify, Semaphore};

use crate::catalog::Catalog;
use crate::cluster_health::ClusterHealth;
use crate::config::{Config, LEADER_EPOCH, TransactionSettings};
use crate::counters::Counters;
use crate::error::{Refusal, append_refusal};
use crate::fetch_session::{FetchSessions, lock};
use crate::group_service::{GroupService, Tick};
use crate::logs::Logs;
use crate::metadata_record::{GROUP_HEADER_BYTES, MetadataRecord};
use crate::nodes::Nodes;
use crate::partition_runs::PartitionRuns;
use crate::quotas::ClientQuotas;
use crate::security::Security;
use crate::share_service::{self, ShareService};
use crate::share_session::{ConnectionId, ShareMember, ShareSessions, TopicPartition};
use crate::storage::Storage;
use crate::telemetry::Telemetry;
use crate::transaction_service::{Stores, TransactionService};

/// Topics, groups, sessions and the journal of one broker.
pub(crate) struct State {
    pub(crate) config: Config,
    /// As clients see it: the id of the data directory, or of the cluster, in base64url.
    pub(crate) cluster_id: String,
    /// The brokers that clients are told of.
    pub(crate) nodes: Nodes,
    pub(crate) storage: Storage,
    /// The records of partitions.
    pub(crate) logs: Logs,
    /// Of a broker of a cluster.
    pub(crate) cluster: Option<Arc<ClusterHealth>>,
    /// What requests, answers and work on them may take.
    pub(crate) memory: MemoryBudget,
    pub(crate) catalog: Catalog,
    pub(crate) sessions: FetchSessions,
    pub(crate) groups: GroupService,
    pub(crate) transactions: TransactionService,
    pub(crate) shares: Arc<ShareService>,
    pub(crate) share_sessions: ShareSessions,
    pub(crate) security: Arc<Security>,
    pub(crate) quotas: Arc<ClientQuotas>,
    pub(crate) telemetry: Telemetry,
    pub(crate) partition_runs: PartitionRuns,
    pub(crate) counters: Counters,
    /// Those who check and pack batches that a network thread has no time for, one per core.
    pub(crate) workers: Arc<Semaphore>,
    /// Told when a client deleted a topic or records.
    pub(crate) deleted: Notify,
    /// Guards the block of producer ids in use and the order of its records in the journal.
    producer_ids: Mutex<ReservedIds>,
}

/// What a broker is part of.
pub(crate) struct Site {
    pub(crate) cluster_id: Uuid,
    pub(crate) nodes: Nodes,
    pub(crate) storage: Storage,
    pub(crate) logs: Logs,
    /// Of a broker of a cluster.
    pub(crate) cluster: Option<Arc<ClusterHealth>>,
}

struct ReservedIds {
    ids: ProducerIds,
    /// Position of the block in use: an id goes out only once this is durable.
    reserved: Option<Lsn>,
    /// The block in use, if the journal did not take its record. It must before an id goes out.
    unrecorded: Option<ProducerIdBlock>,
}

/// What the journal tells a starting broker.
pub(crate) struct Restored {
    pub(crate) catalog: Catalog,
    pub(crate) groups: Groups,
    pub(crate) transactions: Transactions,
    pub(crate) shares: Shares,
    pub(crate) security: Security,
    pub(crate) quotas: ClientQuotas,
    pub(crate) telemetry: Telemetry,
    pub(crate) producer_ids: ProducerIds,
    /// Of a cluster that has begun.
    pub(crate) cluster_id: Option<Uuid>,
}

impl Restored {
    /// A broker that has seen nothing.
    pub(crate) fn new(config: &Config, now_ms: i64) -> Self {
        let groups = moldau_coordinator::Config {
            record_bytes_max: config.storage().entry_limit().saturating_sub(GROUP_HEADER_BYTES),
            ..config.groups.clone()
        };
        // The end of a transaction is one frame, with a record of its own and those of offsets.
        let ending_bytes_max = config.storage().entry_limit() / 2;
        let transactions = TransactionSettings {
            ending_bytes_max: ending_bytes_max.min(config.transactions.ending_bytes_max),
            ..config.transactions.clone()
        };
        Self {
            transactions: Transactions::new(transactions),
            shares: Shares::default(),
            catalog: Catalog::new(config.topic_defaults.clone()),
            groups: Groups::new(groups, fastrand::u64(..), now_ms),
            security: Security::new(config),
            quotas: ClientQuotas::new(config.quota_window),
            telemetry: Telemetry::new(&config.telemetry),
            producer_ids: ProducerIds::default(),
            cluster_id: None,
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
                if let GroupRecord::GroupDeleted { group_id } = &record {
                    let (group_id, topic_id) = (group_id.as_str().into(), None);
                    self.shares.apply(ShareRecord::Removed { group_id, topic_id });
                }
                self.groups.replay(record);
                Ok(())
            }
            MetadataRecord::ProducerIds(record) => {
                let block = ProducerIdBlock::decode(&record).map_err(|error| error.to_string())?;
                self.producer_ids.replay(block);
                Ok(())
            }
            MetadataRecord::Transaction(record) => {
                let record =
                    TransactionRecord::decode(&record).map_err(|error| error.to_string())?;
                self.transactions.apply(record);
                Ok(())
            }
            MetadataRecord::Share(record) => {
                let record = ShareRecord::decode(&record).map_err(|error| error.to_string())?;
                self.shares.apply(record);
                Ok(())
            }
            MetadataRecord::ClusterBegun { id } => {
                self.cluster_id = Some(Uuid::from_bytes(id));
                Ok(())
            }
            MetadataRecord::ClientQuotasChanged(changes) => {
                self.quotas.replay(changes);
                Ok(())
            }
            MetadataRecord::ClientMetricsConfigured { name, configs } => {
                self.telemetry.replay(name, configs)
            }
            record @ (MetadataRecord::AclsChanged { .. }
            | MetadataRecord::ScramCredentialsChanged(_)) => {
                self.security.replay(record);
                Ok(())
            }
            record => {
                if let MetadataRecord::TopicDeleted { id } = &record
                    && let Some(topic) = self.catalog.by_id(Uuid::from_bytes(*id))
                {
                    self.groups.topic_deleted(&topic.name);
                }
                self.catalog.replay(record)
            }
        }
    }
}

impl Restored {
    /// What was written behind the deletion of a topic has no meaning.
    pub(crate) fn forget_shares_of_deleted_topics(&mut self) {
        self.shares.retain_topics(|id| self.catalog.by_id(id).is_some());
    }
}

impl State {
    /// Lets time pass for the groups, for as long as the returned future is polled.
    pub(crate) async fn run_group_timer(&self) {
        let with_topics = |tick: Tick<'_>| self.catalog.view(|topics| tick(topics));
        self.groups.run_timer(&self.storage, with_topics).await;
    }

    /// Takes over what was restored from a journal.
    pub(crate) fn new(
        config: Config,
        journal: moldau_storage::Storage,
        restored: Restored,
        now_ms: i64,
    ) -> Self {
        for log in journal.logs() {
            if let Some(topic) = restored.catalog.by_id(Uuid::from_bytes(log.id().topic.0)) {
                topic.logs.restore(log);
            }
        }
        let site = Site {
            cluster_id: Uuid::from_bytes(journal.info().cluster_id),
            nodes: Nodes::Alone,
            logs: Logs::Journal(journal.clone()),
            storage: Storage::Journal(journal),
            cluster: None,
        };
        Self::of(config, site, restored, now_ms)
    }

    /// Takes over what was restored, in its surroundings.
    pub(crate) fn of(config: Config, site: Site, mut restored: Restored, now_ms: i64) -> Self {
        restored.forget_shares_of_deleted_topics();
        let shares = Arc::new(ShareService::start(restored.shares, now_ms));
        let of_groups = Arc::clone(&shares);
        let on_deleted = Box::new(move |group_id: &str| of_groups.group_deleted(group_id));
        let groups = GroupService::start(restored.groups, now_ms, on_deleted);
        let transactions = TransactionService::start(restored.transactions, now_ms);
        let memory = MemoryBudget::new(config.memory_plan().budget);
        Self {
            config,
            cluster_id: site.cluster_id.to_string(),
            nodes: site.nodes,
            logs: site.logs,
            storage: site.storage,
            cluster: site.cluster,
            memory,
            catalog: restored.catalog,
            sessions: FetchSessions::default(),
            groups,
            transactions,
            shares,
            share_sessions: ShareSessions::default(),
            security: Arc::new(restored.security),
            quotas: Arc::new(restored.quotas),
            telemetry: restored.telemetry,
            partition_runs: PartitionRuns::default(),
            counters: Counters::default(),
            workers: Arc::new(Semaphore::new(cores())),
            deleted: Notify::new(),
            producer_ids: Mutex::new(ReservedIds {
                ids: restored.producer_ids,
                reserved: None,
                unrecorded: None,
            }),
        }
    }

    /// Deletes the logs of topics that are not in the catalog: the process ended between the two
    /// records of a deletion, or a produce found its topic just before another connection deleted
    /// it.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn delete_orphaned_logs(&self) -> Result<(), Refusal> {
        let Some(journal) = self.storage.journal() else { return Ok(()) };
        for topic in journal.topics() {
            if self.catalog.by_id(Uuid::from_bytes(topic.0)).is_none() {
                journal.delete_topic(topic).map_err(|error| append_refusal(&error))?;
            }
        }
        Ok(())
    }

    /// What transactions are written to.
    pub(crate) fn stores(&self) -> Stores<'_> {
        Stores {
            storage: &self.storage,
            logs: &self.logs,
            catalog: &self.catalog,
            groups: &self.groups,
        }
    }

    /// Aborts what logs hold of transactions that the coordinator does not know, as it may be after
    /// a repair: consumers of committed records would wait for their end for ever.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn end_orphaned_transactions(&self, now_ms: i64) -> Result<(), Refusal> {
        let known: HashSet<i64> = self.transactions.view(|transactions| {
            let ongoing = transactions.list().filter(|(_, shown)| shown.is_open());
            ongoing.map(|(_, shown)| shown.producer.id).collect()
        });
        for log in self.storage.logs() {
            for (producer_id, epoch) in log.open_transactions() {
                if !known.contains(&producer_id) {
                    let batch = MarkerBatch::new(producer_id, epoch, Marker::Abort, now_ms);
                    self.append_marker(&log, batch)?;
                }
            }
        }
        Ok(())
    }

    /// Ends what a log holds of a transaction that the coordinator does not know.
    ///
    /// # Errors
    /// A journal that takes nothing.
    pub(crate) fn append_marker(
        &self,
        log: &Arc<moldau_storage::Log>,
        batch: MarkerBatch,
    ) -> Result<Lsn, Refusal> {
        let marker = LogMarker { log: Arc::clone(log), batch };
        let appended = self.storage.append_together(&[], &[marker], LEADER_EPOCH);
        appended.map_err(|error| append_refusal(&error))
    }

    /// An identity for a producer, and the position that must be durable before the answer.
    ///
    /// # Errors
    /// A journal that takes nothing, or no ids left.
    pub(crate) fn producer_identity(
        &self,
        current: Option<ProducerIdentity>,
    ) -> Result<(ProducerIdentity, Option<Lsn>), Refusal> {
        if self.nodes.is_shared() {
            // Drawn from so many that none is ever drawn twice, so no broker has to be asked.
            let id = fastrand::i64(0..i64::MAX);
            return Ok((ProducerIdentity { id, epoch: 0 }, None));
        }
        let mut guard = lock(&self.producer_ids);
        let allocated = guard.ids.init(current).ok_or_else(|| {
            Refusal::new(ErrorCode::UnknownServerError, "all producer ids are used up")
        })?;
        guard.unrecorded = allocated.record.or(guard.unrecorded);
        if let Some(block) = guard.unrecorded {
            guard.reserved = Some(append_block(&self.storage, block)?);
            guard.unrecorded = None;
        }
        Ok((allocated.identity, guard.reserved))
    }

    /// A producer id that was never given out. It is durable when what is appended next is.
    ///
    /// # Errors
    /// The code of a journal that takes nothing, or of ids that are used up.
    pub(crate) fn fresh_producer_id(&self) -> Result<i64, ErrorCode> {
        let fresh = self.producer_identity(None);
        fresh.map(|(identity, _)| identity.id).map_err(|refusal| match refusal.code {
            ErrorCode::KafkaStorageError => ErrorCode::CoordinatorNotAvailable,
            code => code,
        })
    }

    /// Writes a checkpoint, gives back the journal files that it makes superfluous and returns how
    /// many. Waits for the disk.
    ///
    /// # Errors
    /// A journal or a disk that takes nothing.
    pub(crate) fn checkpoint(&self) -> Result<usize, moldau_storage::Error> {
        let Some(journal) = self.storage.journal() else { return Ok(0) };
        journal.checkpoint(|writer| {
            self.with_records(|records| {
                writer.begin();
                records.for_each(|record| writer.metadata(&record.encode()));
            });
            Ok(())
        })
    }

    /// Hands over the records that rebuild everything but the logs.
    ///
    /// All of it is locked from the beginning to the last record: what entered the journal in
    /// between would be replayed on top of a state that has it already, or be missing from both.
    pub(crate) fn with_records(&self, take: impl FnOnce(&mut dyn Iterator<Item = MetadataRecord>)) {
        self.transactions.with_snapshot(|transactions| {
            self.catalog.with_snapshot(|topics| {
                self.groups.with_snapshot(|groups| {
                    self.shares.with_snapshot(|shares| {
                        self.security.with_snapshot(|security| {
                            self.quotas.with_snapshot(|quotas| {
                                self.telemetry.with_snapshot(|telemetry| {
                                    let producer_ids = lock(&self.producer_ids);
                                    let block = producer_ids.ids.snapshot().map(block_record);
                                    let records = topics.into_iter().chain(groups).chain(shares);
                                    let records = records.chain(security).chain(quotas);
                                    let records = records.chain(telemetry).chain(block);
                                    take(&mut records.chain(transactions));
                                });
                            });
                        });
                    });
                });
            });
        });
    }

    /// Ends the share sessions of a connection. Records that their members hold are available
    /// again.
    pub(crate) fn disconnected(&self, connection: ConnectionId) {
        self.telemetry.disconnected(connection);
        for (member, partitions) in self.share_sessions.disconnected(connection) {
            if let Err(refusal) = self.release(&member, partitions) {
                let problem = refusal.message;
                tracing::warn!(problem, "records of a share group stay locked for a while");
            }
        }
    }

    /// Takes back the records that a member of a share group holds. It holds once the returned
    /// position is durable.
    ///
    /// # Errors
    /// A journal that takes nothing; locks of what is not taken back end by themselves.
    pub(crate) fn release(
        &self,
        member: &ShareMember,
        partitions: impl IntoIterator<Item = TopicPartition>,
    ) -> Result<Option<Lsn>, Refusal> {
        let settings = self.groups.view(|groups| groups.share_settings(&member.group_id));
        let settings = share_service::delivery_settings(&settings);
        let mut written = None;
        for partition in partitions {
            let key = member.key(partition);
            let released =
                self.shares.release(&self.storage, &key, &member.member_id, &settings)?;
            written = written.max(released);
        }
        Ok(written)
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn append_block(storage: &Storage, block: ProducerIdBlock) -> Result<Lsn, Refusal> {
    storage.append_metadata(&block_record(block).encode()).map_err(|error| append_refusal(&error))
}

/// The record of a block of producer ids.
pub(crate) fn block_record(block: ProducerIdBlock) -> MetadataRecord {
    let mut bytes = Vec::new();
    block.encode(&mut bytes);
    MetadataRecord::ProducerIds(bytes)
}
