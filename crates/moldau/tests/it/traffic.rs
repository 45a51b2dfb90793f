//! A producer of numbered records and a reader that checks them, through whatever stands between
//! them and the broker.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use moldau_client::{
    Admin, Cluster, ClusterOptions, Connection, Delivery, Error, Fetcher, FetcherOptions,
    OffsetSpec, PartitionHandle, Producer, ProducerOptions, Record, Start, TopicPartition,
    TopicSpec,
};
use moldau_protocol::messages::ProduceRequest;
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::{ErrorCode, VersionRange};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, Decompressor};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use crate::ledger::{Ledger, Repeats, write_value};

/// Partitions of a topic under test.
const PARTITION_COUNT: usize = 3;

/// How long anything may take that should come about. Generous, since machines are shared.
pub(crate) const PATIENCE: Duration = Duration::from_mins(3);

/// Length of a value: small, so that records are many.
const VALUE_BYTES: usize = 120;

/// Records sent before other tasks get their turn.
const RECORDS_PER_TURN: u64 = 64;

/// Time between the ticks of moderate traffic.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Versions of Produce that name topics.
const PRODUCE_VERSIONS: VersionRange = VersionRange::new(3, 12);

/// What became of the records of some moderate traffic.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) acknowledged: u64,
    pub(crate) consumed: u64,
    pub(crate) problems: Vec<String>,
}

impl Traffic {
    /// Produces and consumes until the deadline, then until everything sent is acknowledged and
    /// read.
    pub(crate) fn run_until(bootstrap: SocketAddr, deadline: Instant) -> Self {
        block_on(async {
            let cluster = connect(bootstrap).await;
            let mut numbered =
                Numbered::start(&cluster, "traffic", ProducerOptions::default()).await;
            let mut reader = Reader::start(&numbered).await;
            let mut ticks = tokio::time::interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            while Instant::now() < deadline {
                tokio::select! {
                    _ = ticks.tick() => {
                        for _ in 0..RECORDS_PER_TURN {
                            numbered.send_one().await;
                        }
                    }
                    () = reader.read_some() => {}
                }
            }
            numbered.flush().await;
            reader.read_to_end().await;
            let ledger = numbered.into_ledger();
            let (acknowledged, consumed) = (ledger.acknowledged(), ledger.found());
            Self { acknowledged, consumed, problems: ledger.into_problems(Repeats::Never) }
        })
    }
}

/// Runs a test's work on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Waits for something that should come about, or fails the test.
pub(crate) async fn soon<T>(what: &str, work: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(PATIENCE, work).await;
    done.unwrap_or_else(|_| panic!("{what}: nothing for {PATIENCE:?}"))
}

/// A client that comes back soon after a failure.
pub(crate) async fn connect(bootstrap: SocketAddr) -> Cluster {
    let options = ClusterOptions {
        retry_backoff: Duration::from_millis(5),
        retry_backoff_max: Duration::from_millis(50),
        operation_timeout: PATIENCE,
        ..ClusterOptions::default()
    };
    Cluster::connect(&[bootstrap.to_string()], options).await.unwrap()
}

/// Creates a topic of one partition.
pub(crate) async fn create(cluster: &Cluster, topic: &str) {
    let spec = TopicSpec::new(topic, 1);
    let created = Admin::new(cluster).create_topics(&[spec], false).await.unwrap();
    created.into_iter().for_each(|created| created.unwrap());
}

/// Sends one record in a batch of its own, once. Returns the error code and the offset.
pub(crate) async fn produce_once(
    connection: &Connection,
    topic: &str,
    value_bytes: usize,
) -> Result<(ErrorCode, i64), Error> {
    produce_within(connection, topic, value_bytes, PATIENCE).await
}

/// The same with a time after which the broker is to answer in any case.
pub(crate) async fn produce_within(
    connection: &Connection,
    topic: &str,
    value_bytes: usize,
    time: Duration,
) -> Result<(ErrorCode, i64), Error> {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(1, Some(b"key"), Some(&vec![7; value_bytes]), []).unwrap();
    let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
    let partition_data = vec![PartitionProduceData {
        index: 0,
        records: Some(Bytes::copy_from_slice(batch)),
        ..Default::default()
    }];
    let topic = TopicProduceData { name: topic.to_owned(), partition_data, ..Default::default() };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: i32::try_from(time.as_millis()).unwrap(),
        topic_data: vec![topic],
        ..Default::default()
    };
    let answer = soon("an answer", connection.send_in(&request, PRODUCE_VERSIONS)).await?;
    let partition = &answer.responses[0].partition_responses[0];
    Ok((ErrorCode::try_from(partition.error_code).unwrap(), partition.base_offset))
}

/// A producer of numbered records to a topic of its own.
pub(crate) struct Numbered {
    cluster: Cluster,
    topic: String,
    producer: Producer,
    partitions: Vec<PartitionHandle>,
    turn: usize,
    value: Vec<u8>,
    /// Guards what producer and reader know.
    ledger: Arc<Mutex<Ledger>>,
    acknowledged: watch::Receiver<u64>,
}

impl Numbered {
    /// Creates the topic and starts the producer.
    pub(crate) async fn start(cluster: &Cluster, topic: &str, options: ProducerOptions) -> Self {
        let spec = TopicSpec::new(topic, i32::try_from(PARTITION_COUNT).unwrap());
        let created = Admin::new(cluster).create_topics(&[spec], false).await.unwrap();
        created.into_iter().for_each(|created| created.unwrap());
        let ledger = Arc::new(Mutex::new(Ledger::new(PARTITION_COUNT)));
        let (count, acknowledged) = watch::channel(0);
        let sink = {
            let ledger = Arc::clone(&ledger);
            move |delivery: &Delivery<'_>| {
                lock(&ledger).note_delivery(delivery);
                count.send_modify(|count| *count += delivery.tokens.len() as u64);
            }
        };
        let options = ProducerOptions { delivery_timeout: PATIENCE, ..options };
        let producer = Producer::start(cluster, options, sink).await.unwrap();
        let mut partitions = Vec::new();
        for index in 0..i32::try_from(PARTITION_COUNT).unwrap() {
            partitions.push(producer.partition(topic, index).await.unwrap());
        }
        Self {
            cluster: cluster.clone(),
            topic: topic.to_owned(),
            producer,
            partitions,
            turn: 0,
            value: Vec::new(),
            ledger,
            acknowledged,
        }
    }

    /// Counts records whose outcome is known.
    pub(crate) fn acknowledged(&self) -> watch::Receiver<u64> {
        self.acknowledged.clone()
    }

    /// Sends the next record to the partition whose turn it is.
    pub(crate) async fn send_one(&mut self) {
        let partition = self.turn % self.partitions.len();
        self.turn += 1;
        let number = lock(&self.ledger).next(partition);
        let index = u32::try_from(partition).unwrap();
        write_value(&mut self.value, index, number, VALUE_BYTES);
        let record = Record {
            token: number,
            timestamp: now_ms(),
            key: None,
            value: Some(&self.value),
            headers: &[],
        };
        while let Err(error) = self.producer.send(self.partitions[partition], &record) {
            assert!(matches!(error, Error::BufferFull), "{error}");
            // Room for the record and its framing.
            soon("room in the buffer", self.producer.room(2 * VALUE_BYTES)).await;
        }
    }

    /// Sends as fast as the buffer allows until told to stop.
    pub(crate) async fn send_until(mut self, stop: watch::Receiver<bool>) -> Self {
        while !*stop.borrow() {
            for _ in 0..RECORDS_PER_TURN {
                self.send_one().await;
            }
            tokio::task::yield_now().await;
        }
        self
    }

    /// Waits until everything has an outcome.
    pub(crate) async fn flush(&self) {
        soon("a flush", self.producer.flush()).await;
    }

    /// What is known; the reader must have read what is to be compared.
    pub(crate) fn into_ledger(self) -> Ledger {
        std::mem::take(&mut *lock(&self.ledger))
    }

    /// Flushes, reads all back and returns how many were acknowledged, and what is wrong.
    pub(crate) async fn verify(self, repeats: Repeats) -> (u64, Vec<String>) {
        self.flush().await;
        Reader::start(&self).await.read_to_end().await;
        let ledger = self.into_ledger();
        (ledger.acknowledged(), ledger.into_problems(repeats))
    }
}

/// Reads the topic of a numbered producer from its start.
pub(crate) struct Reader {
    cluster: Cluster,
    topic: String,
    fetcher: Fetcher,
    positions: HashMap<TopicPartition, i64>,
    decompressor: Decompressor,
    ledger: Arc<Mutex<Ledger>>,
}

impl Reader {
    pub(crate) async fn start(numbered: &Numbered) -> Self {
        lock(&numbered.ledger).begin_reading();
        let mut positions = HashMap::new();
        let fetcher = Fetcher::start(&numbered.cluster, FetcherOptions::default());
        for index in 0..i32::try_from(PARTITION_COUNT).unwrap() {
            fetcher.assign(&numbered.topic, index, Start::Earliest).await.unwrap();
            positions.insert(TopicPartition::of(&numbered.topic, index), 0);
        }
        Self {
            cluster: numbered.cluster.clone(),
            topic: numbered.topic.clone(),
            fetcher,
            positions,
            decompressor: Decompressor::default(),
            ledger: Arc::clone(&numbered.ledger),
        }
    }

    /// Reads what comes next. Cancelling the future loses nothing.
    pub(crate) async fn read_some(&mut self) {
        match soon("a fetch", self.fetcher.next()).await {
            Ok(fetched) => {
                self.positions.insert(fetched.topic_partition(), fetched.next_position);
                lock(&self.ledger).note_fetched(&fetched, &mut self.decompressor);
            }
            Err(error) => panic!("topic {} can no longer be read: {error}", self.topic),
        }
    }

    /// Reads until told to stop.
    pub(crate) async fn read_until(mut self, mut stop: watch::Receiver<bool>) {
        let stopped = async { stop.wait_for(|stop| *stop).await.is_ok() };
        tokio::pin!(stopped);
        loop {
            tokio::select! {
                _ = &mut stopped => return,
                () = self.read_some() => {}
            }
        }
    }

    /// Reads up to where the partitions end at the time of the call.
    pub(crate) async fn read_to_end(&mut self) {
        let wanted: Vec<_> =
            self.positions.keys().map(|it| (it.clone(), OffsetSpec::Latest)).collect();
        let listed = self.cluster.list_offsets(&wanted).await;
        let ends: HashMap<_, _> =
            listed.into_iter().map(|(partition, end)| (partition, end.unwrap().offset)).collect();
        while self.positions.iter().any(|(partition, position)| *position < ends[partition]) {
            self.read_some().await;
        }
    }
}

fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().expect("no panic under the lock")
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}
