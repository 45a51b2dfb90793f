//! Making, growing, moving and probing topics of up to a million partitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use moldau_client::{
    Admin, Cluster, ClusterOptions, ConnectionOptions, Delivery, OffsetSpec, Producer,
    ProducerOptions, Record, TopicPartition, TopicSpec,
};

use crate::partitions::Creation;
use crate::wall_clock::timestamp_ms;
use moldau_measure::Error;

/// Partitions that are asked for their end to learn whether a topic is usable: the first, the
/// last and others between them.
const PROBES: u32 = 100;

/// Pause between two questions whether something has happened.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Longest pause between two attempts of one call.
const BACKOFF_MAX: Duration = Duration::from_millis(50);

/// How long one question may take while something is awaited; the wait itself has its own limit.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Why something did not come about.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The client was refused, or got no answer.
    Client(moldau_client::Error),
    /// The system answered, and did not do it in time.
    Slow { seconds: u64, last: String },
    /// The system ended, or the laboratory could not go on with it.
    Lab(Error),
}

impl From<moldau_client::Error> for Trouble {
    fn from(error: moldau_client::Error) -> Self {
        Self::Client(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Lab(error)
    }
}

/// Finds out whether the system still runs.
pub(super) type Alive<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// Administers one cluster.
pub(super) struct Operator {
    runtime: tokio::runtime::Runtime,
    bootstrap: String,
    /// How long one call may take, and the wait for what it began.
    limit: Duration,
}

impl Operator {
    pub(super) fn new(bootstrap: &str, limit: Duration) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::machine("starting a runtime"))?;
        Ok(Self { runtime, bootstrap: bootstrap.to_string(), limit })
    }

    /// Creates a topic with all its partitions at once and waits until it is usable.
    pub(super) fn create(
        &self,
        topic: &str,
        partitions: u32,
        alive: Alive<'_>,
    ) -> Result<Creation, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let start = Instant::now();
            let specs = [TopicSpec::new(topic, signed(partitions))];
            for answer in Admin::new(&cluster).create_topics(&specs, false).await? {
                answer?;
            }
            let answered_ns = nanos(start.elapsed());
            self.usable(topic, partitions, alive).await?;
            Ok(Creation { answered_ns, usable_ns: nanos(start.elapsed()), requests: 1 })
        })
    }

    /// Raises a topic to `partitions` and waits until those are usable.
    pub(super) fn grow(
        &self,
        topic: &str,
        partitions: u32,
        alive: Alive<'_>,
    ) -> Result<Creation, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let start = Instant::now();
            Admin::new(&cluster).create_partitions(topic, signed(partitions)).await?;
            let answered_ns = nanos(start.elapsed());
            self.usable(topic, partitions, alive).await?;
            Ok(Creation { answered_ns, usable_ns: nanos(start.elapsed()), requests: 1 })
        })
    }

    /// Creates topics of one partition with one request and waits until the last is usable.
    pub(super) fn create_many(
        &self,
        names: &[String],
        alive: Alive<'_>,
    ) -> Result<Creation, Trouble> {
        let Some(last) = names.last() else { return Ok(Creation::default()) };
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let specs: Vec<TopicSpec> = names.iter().map(|name| TopicSpec::new(name, 1)).collect();
            let start = Instant::now();
            for answer in Admin::new(&cluster).create_topics(&specs, false).await? {
                answer?;
            }
            let answered_ns = nanos(start.elapsed());
            self.usable(last, 1, alive).await?;
            Ok(Creation { answered_ns, usable_ns: nanos(start.elapsed()), requests: 1 })
        })
    }

    /// Deletes topics; one that is not there is as good as deleted.
    pub(super) fn delete(&self, topics: &[String]) -> Result<(), Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            for answer in Admin::new(&cluster).delete_topics(topics).await? {
                match answer {
                    Err(error) if is_absent(&error) => {}
                    answer => answer?,
                }
            }
            Ok(())
        })
    }

    /// The sum of the end offsets of these partitions.
    pub(super) fn records_held(
        &self,
        topic: &str,
        partitions: impl Iterator<Item = i32>,
    ) -> Result<u64, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let wanted: Vec<(TopicPartition, OffsetSpec)> = partitions
                .map(|partition| (TopicPartition::of(topic, partition), OffsetSpec::Latest))
                .collect();
            let mut sum = 0;
            for answer in cluster.list_offsets(&wanted).await.into_values() {
                sum += u64::try_from(answer?.offset).unwrap_or(0);
            }
            Ok(sum)
        })
    }

    /// Time from `start` until a record for the first partition of `topic` is acknowledged to a
    /// client that has to find everything out.
    pub(super) fn first_produce(
        &self,
        topic: &str,
        start: Instant,
        alive: Alive<'_>,
    ) -> Result<Duration, Trouble> {
        self.runtime.block_on(async {
            loop {
                let attempt = tokio::time::timeout(self.limit, self.produce_once(topic));
                let last = match attempt.await {
                    Ok(Ok(true)) => return Ok(start.elapsed()),
                    Ok(Ok(false)) => "a record was refused".to_string(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "no answer".to_string(),
                };
                self.pause(start, last, &mut *alive).await?;
            }
        })
    }

    async fn produce_once(&self, topic: &str) -> Result<bool, moldau_client::Error> {
        let cluster = self.connect(QUESTION_TIMEOUT).await?;
        let acknowledged = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&acknowledged);
        let options = ProducerOptions { linger: Duration::ZERO, ..ProducerOptions::default() };
        let producer = Producer::start(&cluster, options, move |delivery: &Delivery<'_>| {
            seen.store(delivery.error.is_none(), Ordering::SeqCst);
        });
        let producer = producer.await?;
        let partition = producer.partition(topic, 0).await?;
        let (value, timestamp) = (Some(&b"probe"[..]), timestamp_ms());
        let record = Record { token: 0, timestamp, key: None, value, headers: &[] };
        producer.send(partition, &record)?;
        producer.flush().await;
        Ok(acknowledged.load(Ordering::SeqCst))
    }

    /// The node ids of the cluster's brokers, in order.
    pub(super) fn brokers(&self) -> Result<Vec<i32>, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let mut brokers: Vec<i32> = cluster.metadata().brokers.keys().copied().collect();
            brokers.sort_unstable();
            Ok(brokers)
        })
    }

    /// The first replica of each partition of a topic.
    pub(super) fn placement(&self, topic: &str) -> Result<Vec<i32>, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            let known = cluster.topic(topic).await?;
            let first = |partition: &moldau_client::Partition| {
                partition.replicas.first().copied().unwrap_or(-1)
            };
            Ok(known.partitions.iter().map(first).collect())
        })
    }

    pub(super) fn reassign(&self, topic: &str, to: &[(i32, Vec<i32>)]) -> Result<(), Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            Ok(Admin::new(&cluster).reassign_partitions(topic, to).await?)
        })
    }

    pub(super) fn reassignments_left(
        &self,
        topic: &str,
        partitions: u32,
    ) -> Result<usize, Trouble> {
        self.runtime.block_on(async {
            let cluster = self.connect(self.limit).await?;
            Ok(Admin::new(&cluster).reassignments_left(topic, signed(partitions)).await?)
        })
    }

    /// Waits until partitions all over a topic answer ListOffsets: a broker may say that it leads
    /// a partition before it has made its log.
    async fn usable(&self, topic: &str, partitions: u32, alive: Alive<'_>) -> Result<(), Trouble> {
        let start = Instant::now();
        loop {
            let last = match self.probe(topic, partitions).await {
                Ok(()) => return Ok(()),
                Err(error) => error.to_string(),
            };
            self.pause(start, last, &mut *alive).await?;
        }
    }

    async fn probe(&self, topic: &str, partitions: u32) -> Result<(), moldau_client::Error> {
        let cluster = self.connect(QUESTION_TIMEOUT).await?;
        let wanted: Vec<(TopicPartition, OffsetSpec)> = probed(partitions)
            .map(|partition| (TopicPartition::of(topic, partition), OffsetSpec::Latest))
            .collect();
        for answer in cluster.list_offsets(&wanted).await.into_values() {
            answer?;
        }
        Ok(())
    }

    async fn pause(
        &self,
        start: Instant,
        last: String,
        alive: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<(), Trouble> {
        alive()?;
        if start.elapsed() > self.limit {
            return Err(Trouble::Slow { seconds: self.limit.as_secs(), last });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        Ok(())
    }

    async fn connect(&self, timeout: Duration) -> Result<Cluster, moldau_client::Error> {
        let connection =
            ConnectionOptions { request_timeout: timeout, ..ConnectionOptions::default() };
        let options = ClusterOptions {
            connection,
            retry_backoff: POLL_INTERVAL,
            retry_backoff_max: BACKOFF_MAX,
            operation_timeout: timeout,
            ..ClusterOptions::default()
        };
        Cluster::connect(&[self.bootstrap.as_str()], options).await
    }
}

fn is_absent(error: &moldau_client::Error) -> bool {
    error.code().is_some_and(|code| code.name() == "UNKNOWN_TOPIC_OR_PARTITION")
}

/// Evenly spread partitions of a topic, with the first and the last.
fn probed(partitions: u32) -> impl Iterator<Item = i32> {
    let (count, last) = (partitions.min(PROBES), u64::from(partitions.saturating_sub(1)));
    let steps = u64::from(count.saturating_sub(1)).max(1);
    (0..u64::from(count)).map(move |index| i32::try_from(index * last / steps).unwrap_or(i32::MAX))
}

fn signed(partitions: u32) -> i32 {
    i32::try_from(partitions).unwrap_or(i32::MAX)
}

pub(super) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_spread_from_the_first_to_the_last() {
        assert_eq!(probed(1).collect::<Vec<_>>(), [0]);
        assert_eq!(probed(3).collect::<Vec<_>>(), [0, 1, 2]);
        let probes: Vec<i32> = probed(1_000_000).collect();
        assert_eq!((probes.len(), probes[0], probes[99]), (100, 0, 999_999));
        assert!(probes.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
