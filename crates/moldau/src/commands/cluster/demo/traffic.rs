//! Records with numbers: who writes them, what was acknowledged and when, and what is read back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use moldau_client::{
    Admin, Cluster, ClusterOptions, Delivery, Error, Fetcher, FetcherOptions, OffsetSpec,
    PartitionHandle, Producer, ProducerOptions, Record, Start, TopicPartition, TopicSpec,
};
use moldau_records::Decompressor;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::PATIENCE;

/// A producer, and what became of its records.
pub(super) struct Traffic {
    cluster: Cluster,
    producer: Producer,
    partitions: Vec<PartitionHandle>,
    /// Guards what is known of the records.
    ledger: Arc<Mutex<Ledger>>,
}

/// What became of the records.
pub(super) struct Outcome {
    pub(super) acknowledged: u64,
    pub(super) read: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    /// The longest time between two acknowledgements of a partition.
    pub(super) gap_of_partition: Duration,
    /// The longest time between two acknowledgements of any partition.
    pub(super) gap_of_all: Duration,
}

struct Ledger {
    /// By the number of the record.
    acknowledged: Vec<bool>,
    partitions: Vec<Acknowledged>,
    all: Acknowledged,
    problem: Option<String>,
}

/// When something was acknowledged.
#[derive(Clone, Copy, Default)]
struct Acknowledged {
    last: Option<Instant>,
    gap: Duration,
}

impl Acknowledged {
    fn note(&mut self, now: Instant) {
        let last = self.last.replace(now).unwrap_or(now);
        self.gap = self.gap.max(now - last);
    }
}

impl Traffic {
    pub(super) async fn start(addresses: &[String]) -> anyhow::Result<Self> {
        let cluster = Cluster::connect(addresses, ClusterOptions::default()).await?;
        let spec = TopicSpec::new(TOPIC, PARTITIONS);
        for created in Admin::new(&cluster).create_topics(&[spec], false).await? {
            created?;
        }
        let ledger = Ledger {
            acknowledged: Vec::new(),
            partitions: Vec::new(),
            all: Acknowledged::default(),
            problem: None,
        };
        let ledger = Arc::new(Mutex::new(ledger));
        let sink = {
            let ledger = Arc::clone(&ledger);
            move |delivery: &Delivery<'_>| lock(&ledger).note(delivery)
        };
        let producer = Producer::start(&cluster, ProducerOptions::default(), sink).await?;
        let mut partitions = Vec::new();
        for index in 0..PARTITIONS {
            partitions.push(producer.partition(TOPIC, index).await?);
        }
        lock(&ledger).partitions = vec![Acknowledged::default(); partitions.len()];
        Ok(Self { cluster, producer, partitions, ledger })
    }

    pub(super) fn describe(&self) -> String {
        let rate = self.partitions.len() * usize::try_from(1_000 / TICK.as_millis()).unwrap_or(1);
        let partitions = self.partitions.len();
        format!(
            "A producer writes {rate} records/s to {partitions} partitions of the topic {TOPIC}."
        )
    }

    pub(super) async fn send_for(&self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        self.send_while(|_| Instant::now() < end).await
    }

    /// Sends until each partition has acknowledged a record that is sent from here on.
    pub(super) async fn send_until_all_are_acknowledged(&self) -> anyhow::Result<()> {
        let first = lock(&self.ledger).acknowledged.len();
        let partitions = self.partitions.len();
        let served = |ledger: &Ledger| {
            let numbers = || ledger.acknowledged.iter().enumerate().skip(first);
            (0..partitions).all(|partition| {
                numbers().any(|(number, acked)| *acked && number % partitions == partition)
            })
        };
        let sent = timeout(PATIENCE, self.send_while(|ledger| !served(ledger))).await;
        sent.context("a partition acknowledges nothing any more")?
    }

    async fn send_while(&self, more: impl Fn(&Ledger) -> bool) -> anyhow::Result<()> {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while more(&lock(&self.ledger)) {
            ticks.tick().await;
            for partition in &self.partitions {
                let number = lock(&self.ledger).next();
                self.send(*partition, number).await?;
            }
        }
        Ok(())
    }

    async fn send(&self, partition: PartitionHandle, number: u64) -> anyhow::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let value = number.to_string();
        let record = Record {
            token: number,
            timestamp: i64::try_from(now)?,
            key: None,
            value: Some(value.as_bytes()),
            headers: &[],
        };
        loop {
            match self.producer.send(partition, &record) {
                Err(Error::BufferFull) => self.producer.room_for(&record).await,
                sent => return Ok(sent?),
            }
        }
    }

    /// Waits for all acknowledgements, and reads the topic back.
    pub(super) async fn finish(self) -> anyhow::Result<Outcome> {
        let Self { cluster, producer, ledger, .. } = self;
        producer.close().await;
        let times = timeout(PATIENCE, read_back(&cluster)).await;
        let times = times.context("the topic cannot be read back")??;
        let ledger = lock(&ledger);
        if let Some(problem) = &ledger.problem {
            anyhow::bail!("a record was not delivered: {problem}");
        }
        let acknowledged = ledger.acknowledged.iter().filter(|acked| **acked);
        let numbers = (0_u64..).zip(&ledger.acknowledged);
        let lost = numbers.filter(|(number, acked)| **acked && !times.contains_key(number));
        let gaps = ledger.partitions.iter().map(|partition| partition.gap);
        Ok(Outcome {
            acknowledged: acknowledged.count() as u64,
            read: times.values().sum(),
            lost: lost.count() as u64,
            duplicated: times.values().filter(|times| **times > 1).count() as u64,
            gap_of_partition: gaps.max().unwrap_or_default(),
            gap_of_all: ledger.all.gap,
        })
    }
}

impl Ledger {
    fn next(&mut self) -> u64 {
        self.acknowledged.push(false);
        self.acknowledged.len() as u64 - 1
    }

    fn note(&mut self, delivery: &Delivery<'_>) {
        if let Some(error) = delivery.error {
            self.problem.get_or_insert_with(|| error.to_string());
            return;
        }
        let now = Instant::now();
        self.all.note(now);
        let partition = usize::try_from(delivery.partition).ok();
        if let Some(partition) = partition.and_then(|index| self.partitions.get_mut(index)) {
            partition.note(now);
        }
        for token in delivery.tokens {
            let slot = usize::try_from(*token).ok();
            if let Some(slot) = slot.and_then(|index| self.acknowledged.get_mut(index)) {
                *slot = true;
            }
        }
    }
}

/// How often each number is in the topic.
async fn read_back(cluster: &Cluster) -> anyhow::Result<HashMap<u64, u64>> {
    let partition = |index| TopicPartition::of(TOPIC, index);
    let wanted: Vec<_> = (0..PARTITIONS).map(|it| (partition(it), OffsetSpec::Latest)).collect();
    let mut ends = HashMap::new();
    for (partition, listed) in Admin::new(cluster).list_offsets(&wanted).await {
        ends.insert(partition, listed?.offset);
    }
    ends.retain(|_, end| *end > 0);
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    for index in 0..PARTITIONS {
        fetcher.assign(TOPIC, index, Start::Earliest).await?;
    }
    let (mut decompressor, mut times) = (Decompressor::default(), HashMap::new());
    while !ends.is_empty() {
        let fetched = fetcher.next().await?;
        let mut is_ours = true;
        fetched.for_each_record(&mut decompressor, BATCH_BYTES_MAX, |record| {
            let text = record.value().and_then(|value| std::str::from_utf8(value).ok());
            match text.and_then(|text| text.parse::<u64>().ok()) {
                Some(number) => *times.entry(number).or_insert(0) += 1,
                None => is_ours = false,
            }
        })?;
        ensure!(is_ours, "partition {} has a record that nobody wrote", fetched.partition);
        ends.retain(|partition, end| {
            *partition != fetched.topic_partition() || fetched.next_position < *end
        });
    }
    Ok(times)
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

const TOPIC: &str = "demo";
/// Each broker leads some.
const PARTITIONS: i32 = 12;
/// Between two records of a partition.
const TICK: Duration = Duration::from_millis(20);
/// A batch of the producer has 16 KiB.
const BATCH_BYTES_MAX: usize = 1 << 20;
