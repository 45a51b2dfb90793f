//! Compares what a broker serves with what is known of its topics.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{Cluster, Fetched, Fetcher, FetcherOptions, OffsetSpec, Start, TopicPartition};
use moldau_records::Decompressor;
use tokio::sync::watch;

use super::account::{Account, key_number};
use crate::traffic::soon;

/// Most bytes that a batch may unpack to; the tests send far smaller ones.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// How long nothing may come until it is looked whether anything is left to come.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// Reads topics from their starts and judges each record.
pub(super) struct Reader {
    cluster: Cluster,
    fetcher: Fetcher,
    decompressor: Decompressor,
    found: HashMap<TopicPartition, Found>,
}

/// What a reader knows of a partition.
struct Found {
    account: Arc<Account>,
    /// Everything below was deleted before the reader began.
    deleted_to: i64,
    /// Offset after the last that was read.
    next: i64,
    records: i64,
    last_of_key: HashMap<u64, i64>,
}

impl Reader {
    pub(super) async fn start(cluster: &Cluster, accounts: &[Arc<Account>]) -> Self {
        let fetcher = Fetcher::start(cluster, FetcherOptions::default());
        let mut found = HashMap::new();
        for account in accounts {
            for (partition, known) in account.topic_partitions().zip(account.known()) {
                let reading = Found {
                    account: Arc::clone(account),
                    deleted_to: known.start,
                    next: 0,
                    records: 0,
                    last_of_key: HashMap::new(),
                };
                let index = partition.partition;
                found.insert(partition, reading);
                let assigned = fetcher.assign(&account.plan.topic, index, Start::Earliest);
                soon("a topic", assigned).await.unwrap();
            }
        }
        let decompressor = Decompressor::default();
        Self { cluster: cluster.clone(), fetcher, decompressor, found }
    }

    /// Reads what comes next. Cancelling the future loses nothing.
    async fn read_some(&mut self) {
        let fetched = match soon("a fetch", self.fetcher.next()).await {
            Ok(fetched) => fetched,
            Err(error) => panic!("a topic can no longer be read: {error}"),
        };
        let found = self.found.get_mut(&fetched.topic_partition()).expect("assigned above");
        found.take(&fetched, &mut self.decompressor);
    }

    /// Reads until told to stop.
    pub(super) async fn read_until(mut self, mut stop: watch::Receiver<bool>) {
        let stopped = async { stop.wait_for(|stop| *stop).await.is_ok() };
        tokio::pin!(stopped);
        loop {
            tokio::select! {
                _ = &mut stopped => return,
                () = self.read_some() => {}
            }
        }
    }

    /// Reads topics to their ends, which nobody writes to any more, and says what is missing.
    /// Returns how many records there are.
    pub(super) async fn read_all(mut self) -> i64 {
        let ends = offsets(&self.cluster, self.found.keys(), OffsetSpec::Latest).await;
        soon("all that there is", self.read_to(&ends)).await;
        let starts = offsets(&self.cluster, self.found.keys(), OffsetSpec::Earliest).await;
        for (partition, found) in &self.found {
            found.check(partition.partition, starts[partition], ends[partition]);
        }
        self.found.values().map(|found| found.records).sum()
    }

    async fn read_to(&mut self, ends: &HashMap<TopicPartition, i64>) {
        loop {
            // The oldest records may leave before they are read, all there are among them, so that
            // nothing comes although something was there a moment ago.
            let starts = offsets(&self.cluster, self.found.keys(), OffsetSpec::Earliest).await;
            let is_behind = |(partition, found): (&TopicPartition, &Found)| {
                found.next.max(starts[partition]) < ends[partition]
            };
            if !self.found.iter().any(is_behind) {
                return;
            }
            if tokio::time::timeout(LOOK_AGAIN, self.read_some()).await.is_err() {
                continue;
            }
            while let Ok(Some(fetched)) = self.fetcher.try_next() {
                let found = self.found.get_mut(&fetched.topic_partition()).expect("assigned above");
                found.take(&fetched, &mut self.decompressor);
            }
        }
    }
}

impl Found {
    fn take(&mut self, fetched: &Fetched, decompressor: &mut Decompressor) {
        let (account, partition) = (&self.account, fetched.partition);
        let (deletes, compacts) = (account.plan.deletes, account.plan.compacts);
        let sent = account.known_of(partition).sent;
        let mut expected = fetched.position;
        let has_left = deletes && (self.next..=fetched.log_start_offset).contains(&expected);
        if expected != self.next && !has_left {
            account.problem(partition, &format!("read on at {expected}, not at {}", self.next));
        }
        let walked = fetched.for_each_record(decompressor, BATCH_BYTES_MAX, |record| {
            let offset = record.offset();
            if offset != expected && !(compacts && offset > expected) {
                account.problem(partition, &format!("{offset} follows, not {expected}"));
            }
            if offset >= sent || !account.is_record(partition, offset, record.key(), record.value())
            {
                account.problem(partition, &format!("{offset} is not what was sent"));
            }
            if offset < self.deleted_to {
                account.problem(partition, &format!("{offset} is back, deleted as it was"));
            }
            expected = offset + 1;
            self.records += 1;
            if compacts {
                self.last_of_key.insert(key_number(offset), offset);
            }
        });
        if let Err(error) = walked {
            account.problem(partition, &format!("from {}: {error}", fetched.position));
        }
        let next = fetched.next_position;
        if expected != next && !(compacts && next > expected) {
            account.problem(partition, &format!("read to {next}, with records to {expected}"));
        }
        self.next = next;
        account.note(partition, |known| known.read_to = known.read_to.max(next));
    }

    /// Says what is wrong after everything was read.
    fn check(&self, partition: i32, start: i64, end: i64) {
        let account = &self.account;
        let known = account.known_of(partition);
        if end != known.sent || known.acknowledged != known.sent {
            let (sent, acknowledged) = (known.sent, known.acknowledged);
            let problem = format!("ends at {end}; {sent} sent, {acknowledged} acknowledged");
            account.problem(partition, &problem);
        }
        if !account.plan.deletes && start != 0 {
            account.problem(partition, &format!("begins at {start}"));
        }
        if account.plan.compacts {
            account.check_keys(partition, start..end, &self.last_of_key);
        } else if !account.plan.deletes && self.records != end {
            account.problem(partition, &format!("{} records of {end}", self.records));
        }
    }
}

/// What holds as soon as a broker is back: all logs reach as far as they were acknowledged or read
/// before, and begin where they did.
pub(super) async fn check_logs(cluster: &Cluster, accounts: &[Arc<Account>]) {
    let known: Vec<_> = accounts.iter().map(|account| account.known()).collect();
    let partitions: Vec<_> =
        accounts.iter().flat_map(|account| account.topic_partitions()).collect();
    let ends = offsets(cluster, &partitions, OffsetSpec::Latest).await;
    let starts = offsets(cluster, &partitions, OffsetSpec::Earliest).await;
    for (account, known) in accounts.iter().zip(known) {
        for (partition, known) in account.topic_partitions().zip(known) {
            let (start, end) = (starts[&partition], ends[&partition]);
            let index = partition.partition;
            if end < known.acknowledged_end.max(known.read_to) {
                account.problem(index, &format!("ends at {end}, known was {known:?}"));
            }
            let begins = if account.plan.deletes { known.start <= start } else { start == 0 };
            if !begins {
                account.problem(index, &format!("begins at {start}, known was {known:?}"));
            }
        }
    }
}

/// Offsets of partitions that exist.
pub(super) async fn offsets(
    cluster: &Cluster,
    partitions: impl IntoIterator<Item = &TopicPartition>,
    spec: OffsetSpec,
) -> HashMap<TopicPartition, i64> {
    let wanted: Vec<_> = partitions.into_iter().map(|it| (it.clone(), spec)).collect();
    let listed = soon("offsets", cluster.list_offsets(&wanted)).await;
    listed.into_iter().map(|(partition, listed)| (partition, listed.unwrap().offset)).collect()
}
