//! Reads what a member of a share group may get next, and gives it to the member.

use std::sync::Arc;
use std::time::Duration;

use moldau_coordinator::share_partitions::{
    AcquireLimits, AcquireMode, Acquired, DeliverySettings, Fetched, FetchedBatch,
};
use moldau_coordinator::{AutoOffsetReset, IsolationLevel, ShareSettings};
use moldau_net::{MemoryAccount, MemoryUse, Permit};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::ShareFetchRequest;
use moldau_protocol::messages::share_fetch_response::{AcquiredRecords, PartitionData};
use moldau_protocol::share_fetch::ShareFetchedPartition;
use tokio::time::{Instant, timeout_at};

use super::batches::{cut, walk};
use crate::api::fetch::gathering::{Gathered, Gathering, Served};
use crate::authorizer::{Operation, ResourceType};
use crate::call::{DURABLE_WITHIN, durable_within};
use crate::clock::wall_clock_ms;
use crate::error::read_code;
use crate::fetch_session::{FetchPartition, TopicRef};
use crate::logs::{Isolation, Log, TimeLookup, Waiter};
use crate::partition::{self, Partition, Watch};
use crate::rights::Rights;
use crate::share_service::{NotPlaced, delivery_settings};
use crate::share_session::{ShareMember, TopicPartition};
use crate::state::State;

/// Longest wait that a client can ask for, so that a lost one does not hold its place for ever.
const WAIT_MAX: Duration = Duration::from_mins(5);

/// Most bytes in one answer: Kafka's `fetch.max.bytes` of the broker.
const ANSWER_BYTES_MAX: usize = 55 << 20;

/// Memory that a fetch waits for at least, before it is known how much its first batch needs.
const MEMORY_LEAST: usize = 64 << 10;

/// What reads from disk take beside their bytes while they are under way: 8 at a time, each with
/// the blocks of 1 MiB in which its first and its last batch lie.
const READ_MEMORY: usize = 16 << 20;

/// Reads of one request that find nothing for delivery, or what another member got meanwhile,
/// before it waits like one that finds nothing at all.
const FRUITLESS_READS_MAX: usize = 64;

/// How much to deliver and how long to wait for it.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    bytes_min: usize,
    bytes_max: usize,
    records_max: i64,
    batch_size: i64,
    mode: AcquireMode,
    pub(super) wait: Duration,
}

impl Limits {
    pub(super) fn new(request: &ShareFetchRequest, mode: AcquireMode) -> Self {
        let size = |bytes: i32| usize::try_from(bytes).unwrap_or(0);
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
        let bytes_max = size(request.max_bytes).min(ANSWER_BYTES_MAX);
        Self {
            // A full answer would wait for what it has no room for.
            bytes_min: size(request.min_bytes).min(bytes_max),
            bytes_max,
            records_max: i64::from(request.max_records),
            batch_size: i64::from(request.batch_size),
            mode,
            wait: wait.min(WAIT_MAX),
        }
    }
}

/// A member and the partitions that it reads.
pub(super) struct Delivery {
    pub(super) state: Arc<State>,
    pub(super) rights: Rights,
    pub(super) memory: MemoryAccount,
    pub(super) member: ShareMember,
    pub(super) partitions: Vec<TopicPartition>,
    pub(super) settings: ShareSettings,
    pub(super) limits: Limits,
}

/// What a member got, and the memory that it takes.
#[derive(Default)]
pub(super) struct Delivered {
    pub(super) partitions: Vec<(TopicPartition, ShareFetchedPartition)>,
    memory: usize,
    pub(super) permit: Option<Permit>,
}

impl Delivered {
    pub(super) fn bytes(&self) -> usize {
        let records = self.partitions.iter().flat_map(|(_, partition)| &partition.records);
        records.map(bytes::Bytes::len).sum()
    }

    fn fail(&mut self, place: TopicPartition, code: ErrorCode) {
        let data = PartitionData {
            partition_index: place.1,
            error_code: code.into(),
            ..PartitionData::default()
        };
        self.partitions.push((place, ShareFetchedPartition { data, records: Vec::new() }));
    }
}

/// What to read of partitions, and what cannot be read.
#[derive(Default)]
struct Plan {
    reads: Vec<(FetchPartition, Log)>,
    failed: Vec<(TopicPartition, ErrorCode)>,
}

impl Delivery {
    /// Delivers records, once there are some or the time is over.
    pub(super) async fn run(&self) -> Delivered {
        let Limits { bytes_max, records_max, wait, .. } = self.limits;
        if self.partitions.is_empty() || bytes_max == 0 || records_max <= 0 {
            return Delivered::default();
        }
        let deadline = Instant::now() + wait;
        let waiter = Waiter::new();
        let keys = self.partitions.iter().map(|place| self.member.key(*place)).collect();
        let _shares = self.state.shares.watch(keys, &waiter);
        let mut logs = self.watch(&waiter);
        let mut fruitless = 0;
        loop {
            let is_over = Instant::now() >= deadline;
            let plan = self.plan().await;
            let (gathered, permit) = self.gather(&plan.reads).await;
            let has_read = gathered.bytes > 0;
            let is_enough = has_read && gathered.available >= self.limits.bytes_min;
            if is_enough || is_over || gathered.has_error || !plan.failed.is_empty() {
                let mut delivered = self.deliver(gathered, &plan);
                if is_over || !delivered.partitions.is_empty() {
                    delivered.permit = permit;
                    let memory = delivered.memory;
                    delivered.permit.iter_mut().for_each(|permit| permit.shrink_to(memory));
                    return delivered;
                }
                fruitless += 1;
                if has_read && fruitless < FRUITLESS_READS_MAX {
                    continue;
                }
            }
            drop(permit);
            // Who comes late looks once more before the answer.
            let _is_over = timeout_at(deadline, waiter.moved()).await;
            logs.iter_mut().for_each(|watch| watch.follow(&waiter));
        }
    }

    fn watch(&self, waiter: &Arc<Waiter>) -> Vec<Watch> {
        let found = self.partitions.iter().filter_map(|place| self.find(*place).ok());
        found.map(|partition| partition.watch(waiter)).collect()
    }

    fn find(&self, (topic_id, partition): TopicPartition) -> Result<Partition, ErrorCode> {
        if self.rights.are_restricted()
            && let Some(topic) = self.state.catalog.by_id(topic_id)
            && !self.rights.allow(ResourceType::Topic, Operation::Read, &topic.name)
        {
            return Err(ErrorCode::TopicAuthorizationFailed);
        }
        partition::by_ref(&self.state, &TopicRef::Id(topic_id), partition, -1)
    }

    async fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        for place in &self.partitions {
            match self.next(*place).await {
                Ok(Some(read)) => plan.reads.push(read),
                Ok(None) => {}
                Err(code) => plan.failed.push((*place, code)),
            }
        }
        plan
    }

    /// Where to read a partition; nowhere if there is nothing to deliver.
    async fn next(
        &self,
        place: TopicPartition,
    ) -> Result<Option<(FetchPartition, Log)>, ErrorCode> {
        let (shares, settings) = (&self.state.shares, delivery_settings(&self.settings));
        self.state.storage.deliver()?;
        let found = self.find(place)?;
        let log = match &found {
            Partition::Written(log) => Some(log),
            Partition::Unwritten { .. } => None,
        };
        let key = self.member.key(place);
        let log_start = log.map_or(0, |log| log.start_offset());
        let next = match shares.next_offset(&key, log_start, &settings) {
            Ok(next) => next,
            Err(NotPlaced) => {
                let start = self.initial_offset(log).await?;
                let (storage, groups) = (&self.state.storage, &self.state.groups);
                if let Some(lsn) = shares.begin(storage, groups, &key, start)? {
                    // Else a crash would let the group begin elsewhere, behind records.
                    let durable = durable_within(DURABLE_WITHIN, storage, lsn).await;
                    durable.map_err(|refusal| refusal.code_of_shares())?;
                }
                let next = shares.next_offset(&key, log_start, &settings);
                next.map_err(|NotPlaced| ErrorCode::GroupIdNotFound)?
            }
        };
        let (Some(offset), Some(log)) = (next, log) else { return Ok(None) };
        if offset >= log.end_for(self.isolation()) {
            return Ok(None);
        }
        let (topic_id, partition) = place;
        let asked = FetchPartition {
            topic: TopicRef::Id(topic_id),
            partition,
            current_leader_epoch: -1,
            fetch_offset: offset,
            last_fetched_epoch: -1,
            bytes_max: i32::try_from(self.limits.bytes_max).unwrap_or(i32::MAX),
        };
        Ok(Some((asked, log.clone())))
    }

    /// Where a group begins in a partition.
    async fn initial_offset(&self, log: Option<&Log>) -> Result<i64, ErrorCode> {
        let Some(log) = log else { return Ok(0) };
        log.refresh().await.map_err(|error| read_code(&error))?;
        match self.settings.auto_offset_reset {
            AutoOffsetReset::Earliest => Ok(log.start_offset()),
            AutoOffsetReset::Latest => Ok(log.high_watermark()),
            AutoOffsetReset::ByDuration(ms) => {
                let since = wall_clock_ms().saturating_sub(ms);
                let lookup = TimeLookup::NotBefore(since, Isolation::ReadUncommitted);
                let found = log.look_up(lookup).await;
                let found = found.map_err(|error| read_code(&error))?;
                Ok(found.map_or_else(|| log.high_watermark(), |found| found.offset))
            }
        }
    }

    fn isolation(&self) -> Isolation {
        match self.settings.isolation_level {
            IsolationLevel::ReadCommitted => Isolation::ReadCommitted,
            IsolationLevel::ReadUncommitted => Isolation::ReadUncommitted,
        }
    }

    /// Reads as far as there is room, with memory for at least the first batch.
    async fn gather(&self, reads: &[(FetchPartition, Log)]) -> (Gathered, Option<Permit>) {
        let most = self.state.memory.most(MemoryUse::Answer);
        let wanted = self.limits.bytes_max.saturating_add(READ_MEMORY);
        let mut least = MEMORY_LEAST.min(most);
        if reads.is_empty() {
            let nothing = Gathering::new((0, 0), self.isolation(), 0).finish().await;
            return (nothing.expect("nothing needs no memory"), None);
        }
        loop {
            let acquire = self.memory.acquire(MemoryUse::Answer, least..=wanted);
            let permit = acquire.expect("no more than the most").await;
            // What needs more than is ever given was stored while there was more.
            let memory_max = if permit.bytes() < most { permit.bytes() } else { usize::MAX };
            let limits = (self.limits.bytes_max, memory_max);
            let mut gathering = Gathering::new(limits, self.isolation(), reads.len());
            for (asked, log) in reads {
                gathering.read(asked, log.clone()).await;
                if gathering.is_stuck() {
                    break;
                }
            }
            match gathering.finish().await {
                Ok(gathered) => return (gathered, Some(permit)),
                Err(needed) => least = needed.min(most),
            }
        }
    }

    /// Gives the member what was read, as far as it wants more.
    fn deliver(&self, gathered: Gathered, plan: &Plan) -> Delivered {
        let mut delivered = Delivered::default();
        plan.failed.iter().for_each(|(place, code)| delivered.fail(*place, *code));
        let settings = delivery_settings(&self.settings);
        let mut left = self.limits.records_max;
        // What was read is in the order in which it was asked for, and may end earlier.
        for ((asked, _), served) in plan.reads.iter().zip(gathered.partitions) {
            let TopicRef::Id(topic_id) = asked.topic else { continue };
            let place = (topic_id, asked.partition);
            let code = ErrorCode::try_from(served.fetched.data.error_code);
            match code.unwrap_or(ErrorCode::UnknownServerError) {
                ErrorCode::None => {}
                // The log's start has moved meanwhile, and the next read begins there.
                ErrorCode::OffsetOutOfRange => continue,
                code => {
                    delivered.fail(place, code);
                    continue;
                }
            }
            if left <= 0 {
                continue;
            }
            let memory = served.memory;
            let (partition, records) = self.acquire(asked, served, left, &settings);
            left -= records;
            if records > 0 {
                delivered.memory += memory;
                delivered.partitions.push((place, partition));
            }
        }
        delivered
    }

    /// Gives the member records of one partition, and returns how many.
    fn acquire(
        &self,
        asked: &FetchPartition,
        served: Served,
        records_max: i64,
        settings: &DeliverySettings,
    ) -> (ShareFetchedPartition, i64) {
        let aborted = served.fetched.data.aborted_transactions.unwrap_or_default();
        let placed = walk(&served.fetched.records, &aborted);
        let batches: Vec<FetchedBatch> = placed.iter().map(|placed| placed.batch).collect();
        let fetched = Fetched { offset: asked.fetch_offset, batches: &batches };
        let Limits { mode, batch_size, .. } = self.limits;
        let limits = AcquireLimits { mode, records_max, batch_size };
        let TopicRef::Id(topic_id) = asked.topic else { return Default::default() };
        let key = self.member.key((topic_id, asked.partition));
        let member = &self.member.member_id;
        let (shares, storage) = (&self.state.shares, &self.state.storage);
        let acquired = shares.acquire(storage, &key, member, &fetched, limits, settings);
        let (first, last) = match (acquired.first(), acquired.last()) {
            (Some(first), Some(last)) => (first.first, last.last),
            _ => return Default::default(),
        };
        let records = acquired.iter().map(|range| range.last - range.first + 1).sum();
        let data = PartitionData {
            partition_index: asked.partition,
            acquired_records: acquired.into_iter().map(acquired_records).collect(),
            ..PartitionData::default()
        };
        let bytes = cut(&served.fetched.records, &placed, first, last);
        (ShareFetchedPartition { data, records: bytes }, records)
    }
}

fn acquired_records(range: Acquired) -> AcquiredRecords {
    AcquiredRecords {
        first_offset: range.first,
        last_offset: range.last,
        delivery_count: range.deliveries,
        ..AcquiredRecords::default()
    }
}
