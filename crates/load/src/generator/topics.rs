//! The topics of a run: their names, the lanes that their partitions are in its ledgers, and what
//! reads all of them.

use std::collections::HashMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use moldau_client::{Cluster, ClusterOptions, Fetched, Fetcher, FetcherOptions, Isolation, Start};

use super::{Layout, Setup, Share, target};
use crate::workload::{Pace, Tuning};
use moldau_measure::Error;

/// Bytes of a partition in one answer: ten partitions then fill the 10 MB of an answer.
const PARTITION_BYTES_MAX: i32 = 1 << 20;

impl Setup {
    /// The names of its topics: [`Setup::topic`] where it is one, and otherwise that with a number.
    #[must_use]
    pub fn topics(&self) -> Vec<String> {
        match self.workload.tuning.topics {
            1 => vec![self.topic.clone()],
            topics => (0..topics).map(|index| format!("{}-{index}", self.topic)).collect(),
        }
    }

    /// The topic of a producer, which are dealt to topics in turn: its place among them.
    pub(super) fn topic_of(&self, producer: u16) -> u16 {
        producer.saturating_sub(self.first_producer) % self.workload.tuning.topics.max(1)
    }

    /// The lane of the first partition of a topic.
    pub(super) fn first_lane(&self, topic: u16) -> u16 {
        topic.saturating_mul(self.workload.partitions)
    }
}

/// Which lane of the ledgers a partition is.
pub(super) struct Lanes {
    layout: Layout,
    /// Partitions of each topic that take part.
    partitions: u16,
    /// The lane of the first partition, by topic.
    first: HashMap<String, u16>,
}

impl Lanes {
    pub(super) fn of(setup: &Setup) -> Self {
        let topics = (0..).zip(setup.topics());
        Self {
            layout: setup.layout,
            partitions: setup.workload.partitions,
            first: topics.map(|(index, name)| (name, setup.first_lane(index))).collect(),
        }
    }

    /// Those of one topic all of whose partitions take part.
    pub(super) fn of_topic(topic: &str, partitions: u16) -> Self {
        Self { layout: Layout::Dense, partitions, first: HashMap::from([(topic.into(), 0)]) }
    }

    pub(super) fn count(&self) -> usize {
        self.first.len() * usize::from(self.partitions)
    }

    /// The lane, or `None` for a partition that is none of the run's.
    pub(super) fn lane(&self, topic: &str, partition: i32) -> Option<u16> {
        let lane = self.layout.lane(partition).filter(|lane| *lane < self.partitions)?;
        self.first.get(topic)?.checked_add(lane)
    }
}

/// What reads topics over one connection or several.
pub(super) struct Readers {
    readers: Vec<Reader>,
    /// The one that was asked last, so that each has its turn.
    turn: usize,
}

struct Reader {
    fetcher: Fetcher,
    topics: Vec<String>,
}

impl Readers {
    /// Connects what reads the topics of a run: over a connection each while they are produced to,
    /// since a fetch waits for its bytes in all that it asks for; over one for reading them back,
    /// when nothing waits.
    pub(super) async fn of(setup: &Setup) -> Result<Self, Error> {
        let Tuning { fetch_min_bytes, fetch_max_wait_ms, .. } = setup.workload.tuning;
        match setup.workload.pace {
            Pace::ReadBack => Self::unwaiting(setup).await,
            Pace::Scheduled { .. } | Pace::Closed { .. } | Pace::Unpaced => {
                let options = FetcherOptions {
                    min_bytes: i32::try_from(fetch_min_bytes).unwrap_or(i32::MAX),
                    max_wait: Duration::from_millis(fetch_max_wait_ms.into()),
                    ..options_of(setup)
                };
                let groups = setup.topics().into_iter().map(|topic| vec![topic]);
                Self::connect(setup, groups, &options).await
            }
        }
    }

    /// Connects what reads all topics over one connection and waits for no more than there is.
    async fn unwaiting(setup: &Setup) -> Result<Self, Error> {
        Self::connect(setup, std::iter::once(setup.topics()), &options_of(setup)).await
    }

    /// What reads the rest of a share, from these offsets on by lane, without waiting for more.
    pub(super) async fn of_rest(setup: &Setup, share: Share, next: &[u64]) -> Result<Self, Error> {
        let readers = Self::unwaiting(setup).await?;
        let offset = |lane: u16| {
            let next = next.get(usize::from(lane)).copied().unwrap_or(0);
            Start::Offset(i64::try_from(next).unwrap_or(i64::MAX))
        };
        readers.assign_share(setup, share, offset).await?;
        Ok(readers)
    }

    async fn connect(
        setup: &Setup,
        groups: impl Iterator<Item = Vec<String>>,
        options: &FetcherOptions,
    ) -> Result<Self, Error> {
        let mut readers = Vec::new();
        for topics in groups {
            let (cluster, options) = (setup.cluster_options(), options.clone());
            readers.push(Reader::connect(&setup.bootstrap, cluster, options, topics).await?);
        }
        Ok(Self { readers, turn: 0 })
    }

    /// Connects what reads one topic of a cluster.
    pub(super) async fn of_topic(bootstrap: &str, topic: &str) -> Result<Self, Error> {
        let (cluster, fetcher) = (ClusterOptions::default(), fetcher_options());
        let reader = Reader::connect(bootstrap, cluster, fetcher, vec![topic.into()]).await?;
        Ok(Self { readers: vec![reader], turn: 0 })
    }

    /// Begins to read the partitions of a share, each lane where `start` says.
    pub(super) async fn assign_share(
        &self,
        setup: &Setup,
        share: Share,
        start: impl Fn(u16) -> Start,
    ) -> Result<(), Error> {
        let lanes = Lanes::of(setup);
        let partitions = (0..setup.workload.partitions).map(|lane| setup.layout.partition(lane));
        self.assign_if(partitions, |topic, partition| {
            lanes.lane(topic, partition).filter(|lane| share.reads(*lane)).map(&start)
        })
        .await
    }

    /// Begins to read these partitions of every topic at their starts.
    pub(super) async fn assign(
        &self,
        partitions: impl Iterator<Item = i32> + Clone,
    ) -> Result<(), Error> {
        self.assign_if(partitions, |_, _| Some(Start::Earliest)).await
    }

    /// Begins to read those of these partitions of every topic that have a start.
    async fn assign_if(
        &self,
        partitions: impl Iterator<Item = i32> + Clone,
        start: impl Fn(&str, i32) -> Option<Start>,
    ) -> Result<(), Error> {
        for Reader { fetcher, topics } in &self.readers {
            for topic in topics {
                for partition in partitions.clone() {
                    let Some(start) = start(topic, partition) else { continue };
                    let assigned = fetcher.assign(topic, partition, start).await;
                    assigned.map_err(target("assigning a partition"))?;
                }
            }
        }
        Ok(())
    }

    /// What comes next of any topic. Cancelling the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<Fetched, Error> {
        let fetched = poll_fn(|context| {
            for _ in 0..self.readers.len() {
                self.turn = (self.turn + 1) % self.readers.len();
                let Some(reader) = self.readers.get_mut(self.turn) else { continue };
                if let Poll::Ready(fetched) = reader.fetcher.poll_next(context) {
                    return Poll::Ready(fetched);
                }
            }
            Poll::Pending
        });
        fetched.await.map_err(target("fetching"))
    }
}

impl Reader {
    /// Connects, and learns of the topics, so that no later step waits for that.
    async fn connect(
        bootstrap: &str,
        cluster: ClusterOptions,
        options: FetcherOptions,
        topics: Vec<String>,
    ) -> Result<Self, Error> {
        let connected = Cluster::connect(&[bootstrap], cluster).await;
        let cluster = connected.map_err(target("connecting a consumer"))?;
        for topic in &topics {
            cluster.topic(topic).await.map_err(target("finding the topic"))?;
        }
        let fetcher = Fetcher::start(&cluster, options);
        Ok(Self { fetcher, topics })
    }
}

/// How the records of a run are read where nothing waits.
fn options_of(setup: &Setup) -> FetcherOptions {
    let isolation = match setup.workload.tuning.transaction_records {
        None => Isolation::ReadUncommitted,
        Some(_) => Isolation::ReadCommitted,
    };
    FetcherOptions { isolation, ..fetcher_options() }
}

fn fetcher_options() -> FetcherOptions {
    FetcherOptions { partition_bytes_max: PARTITION_BYTES_MAX, ..FetcherOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Workload;

    fn setup(topics: u16) -> Setup {
        let workload = Workload {
            partitions: 3,
            producers: 2,
            tuning: Tuning { topics, ..Tuning::default() },
            ..Workload::of_tests()
        };
        Setup { first_producer: 4, ..Setup::of_tests(String::new(), workload) }
    }

    #[test]
    fn every_partition_of_every_topic_has_a_lane_of_its_own() {
        let setup = setup(10);
        let lanes = Lanes::of(&setup);
        let topics = setup.topics();
        assert_eq!(topics.first().map(String::as_str), Some("lab-7-0"));
        let mut all: Vec<u16> = topics
            .iter()
            .flat_map(|topic| (0..3).map(|partition| lanes.lane(topic, partition).unwrap()))
            .collect();
        assert_eq!(all.len(), usize::from(setup.workload.lanes()));
        all.dedup();
        assert_eq!(all, (0..30).collect::<Vec<u16>>());
        assert_eq!(lanes.lane("lab-7-0", 3), None);
        assert_eq!(lanes.lane("lab-7", 0), None);
    }

    #[test]
    fn producers_are_dealt_to_topics_in_turn() {
        let setup = setup(10);
        let dealt: Vec<u16> = (4..24).map(|producer| setup.topic_of(producer)).collect();
        let twice: Vec<u16> = (0..10).chain(0..10).collect();
        assert_eq!(dealt, twice);
        assert_eq!(setup.first_lane(9), 27);
    }

    #[test]
    fn a_single_topic_has_the_name_of_the_run() {
        assert_eq!(setup(1).topics(), ["lab-7"]);
    }
}
