//! Making and deleting the topics of runs.

use std::time::{Duration, Instant};

use moldau_client::{
    Admin, Cluster, ClusterOptions, ConnectionOptions, OffsetSpec, Security, TopicPartition,
    TopicSpec,
};

use crate::error::Error;
use crate::generator::target;

/// How long the brokers of a cluster may take to find each other.
const BROKERS_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A connection for administration.
pub(super) struct Control {
    runtime: tokio::runtime::Runtime,
    bootstrap: String,
    security: Security,
}

impl Control {
    pub(super) fn new(bootstrap: &str) -> Result<Self, Error> {
        Self::secured(bootstrap, Security::default())
    }

    /// As [`Control::new`], over connections that are secured.
    pub(super) fn secured(bootstrap: &str, security: Security) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::machine("starting a runtime"))?;
        Ok(Self { runtime, bootstrap: bootstrap.to_string(), security })
    }

    /// Waits until the cluster has so many brokers: one may accept connections before the others
    /// know it.
    pub(super) fn wait_for_brokers(&self, brokers: u16) -> Result<(), Error> {
        let action = format!("waiting for {brokers} brokers");
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let end = Instant::now() + BROKERS_TIMEOUT;
            while cluster.metadata().brokers.len() < usize::from(brokers) {
                if Instant::now() > end {
                    let reason = format!("there are {}", cluster.metadata().brokers.len());
                    return Err(Error::Target { action, reason });
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                cluster.refresh().await.map_err(target(&action))?;
            }
            Ok(())
        })
    }

    /// Creates a topic and waits until every partition is served.
    pub(super) fn create_topic(&self, name: &str, partitions: u16) -> Result<(), Error> {
        self.create_topics(&[name.to_string()], partitions)
    }

    /// Creates topics and waits until every partition is served: a leader that is named may have
    /// yet to make its log.
    pub(super) fn create_topics(&self, names: &[String], partitions: u16) -> Result<(), Error> {
        let action = format!("creating {}", words(names));
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let specs: Vec<TopicSpec> =
                names.iter().map(|name| TopicSpec::new(name, partitions.into())).collect();
            let answers =
                Admin::new(&cluster).create_topics(&specs, false).await.map_err(target(&action))?;
            for answer in answers {
                answer.map_err(target(&action))?;
            }
            let wanted = offsets_of(names, partitions, OffsetSpec::Earliest);
            for answer in cluster.list_offsets(&wanted).await.into_values() {
                answer.map_err(target(&action))?;
            }
            Ok(())
        })
    }

    /// How many records the cluster itself says that a topic was given: the sum of its end
    /// offsets.
    pub(super) fn records_held(&self, name: &str, partitions: u16) -> Result<u64, Error> {
        self.records_held_by_all(&[name.to_string()], partitions)
    }

    /// The same of several topics.
    pub(super) fn records_held_by_all(
        &self,
        names: &[String],
        partitions: u16,
    ) -> Result<u64, Error> {
        let action = format!("asking for the end of {}", words(names));
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let wanted = offsets_of(names, partitions, OffsetSpec::Latest);
            let mut sum = 0;
            for answer in cluster.list_offsets(&wanted).await.into_values() {
                let offset = answer.map_err(target(&action))?.offset;
                sum += u64::try_from(offset).unwrap_or(0);
            }
            Ok(sum)
        })
    }

    /// The end offset of each partition of a topic.
    pub(super) fn ends(&self, name: &str, partitions: u16) -> Result<Vec<u64>, Error> {
        let action = format!("asking for the ends of topic {name}");
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let wanted = offsets_of(&[name.into()], partitions, OffsetSpec::Latest);
            let mut answers = cluster.list_offsets(&wanted).await;
            let end = |(partition, _)| {
                let unanswered = || Error::Target {
                    action: action.clone(),
                    reason: "a partition has no answer".into(),
                };
                let answer = answers.remove(&partition).ok_or_else(unanswered)?;
                let offset = answer.map_err(target(&action))?.offset;
                Ok(u64::try_from(offset).unwrap_or(0))
            };
            wanted.into_iter().map(end).collect()
        })
    }

    /// Deletes a topic, so that the disk holds the data of one run at a time.
    pub(super) fn delete_topic(&self, name: &str) -> Result<(), Error> {
        self.delete_topics(&[name.to_string()])
    }

    /// The same of several topics.
    pub(super) fn delete_topics(&self, names: &[String]) -> Result<(), Error> {
        let action = format!("deleting {}", words(names));
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let answers =
                Admin::new(&cluster).delete_topics(names).await.map_err(target(&action))?;
            for answer in answers {
                answer.map_err(target(&action))?;
            }
            Ok(())
        })
    }

    async fn connect(&self) -> Result<Cluster, Error> {
        let bootstrap = [self.bootstrap.as_str()];
        let security = self.security.clone();
        let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
        let options = ClusterOptions { connection, ..ClusterOptions::default() };
        let connected = Cluster::connect(&bootstrap, options).await;
        connected.map_err(target("connecting for administration"))
    }
}

/// An offset of every partition of every topic.
fn offsets_of(
    names: &[String],
    partitions: u16,
    offset: OffsetSpec,
) -> Vec<(TopicPartition, OffsetSpec)> {
    let of_topic = |name: &String| {
        let name = name.clone();
        (0..partitions).map(move |index| (TopicPartition::of(&name, index.into()), offset))
    };
    names.iter().flat_map(of_topic).collect()
}

/// The topics, the first of them by its name.
fn words(names: &[String]) -> String {
    match names {
        [] => "no topic".into(),
        [name] => format!("topic {name}"),
        [first, others @ ..] => format!("topic {first} and {} others", others.len()),
    }
}
