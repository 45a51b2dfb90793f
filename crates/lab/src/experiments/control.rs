//! Making and deleting the topics of runs. A cluster that the laboratory did not start keeps no
//! topic of it, however the laboratory ends.

mod owed;

use std::time::{Duration, Instant};

use moldau_client::{
    Admin, Cluster, ClusterOptions, ConnectionOptions, OffsetSpec, Security, TopicPartition,
    TopicSpec,
};
use moldau_protocol::ErrorCode;

use moldau_load::generator::target;
use moldau_measure::Error;

/// How long the brokers of a cluster may take to find each other.
const BROKERS_TIMEOUT: Duration = Duration::from_secs(60);

const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a cluster may take at the end to delete what was left there.
const DELETED_WITHIN: Duration = Duration::from_secs(10);

/// A connection for administration.
pub(super) struct Control {
    runtime: tokio::runtime::Runtime,
    bootstrap: String,
    security: Security,
    /// Whether the cluster outlasts the laboratory.
    is_lasting: bool,
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
        Ok(Self { runtime, bootstrap: bootstrap.to_string(), security, is_lasting: false })
    }

    /// The same for a cluster that outlasts the laboratory, if so: what is made there is deleted at
    /// the end in any case.
    pub(super) fn lasting(self, is_lasting: bool) -> Self {
        Self { is_lasting, ..self }
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
        let _making = self.making(names)?;
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            let specs: Vec<TopicSpec> =
                names.iter().map(|name| TopicSpec::new(name, partitions.into())).collect();
            let answers =
                Admin::new(&cluster).create_topics(&specs, false).await.map_err(target(&action))?;
            self.doubt_those_there(names, &answers);
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

    /// Deletes the older half of the records of each partition, at least one where there is one.
    pub(super) fn delete_older_half(&self, name: &str, partitions: u16) -> Result<(), Error> {
        let action = format!("deleting records of topic {name}");
        let half = |(index, end): (i32, u64)| {
            let offset = i64::try_from(end.div_ceil(2)).unwrap_or(i64::MAX);
            (TopicPartition::of(name, index), offset)
        };
        let before: Vec<_> = (0..).zip(self.ends(name, partitions)?).map(half).collect();
        self.runtime.block_on(async {
            let cluster = self.connect().await?;
            for (_, answer) in Admin::new(&cluster).delete_records(&before).await {
                answer.map_err(target(&action))?;
            }
            Ok(())
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
        })?;
        self.forget(names);
        Ok(())
    }

    /// Deletes those of the topics that are there.
    fn delete_those_there(&self, names: &[String], within: Duration) -> Result<(), Error> {
        let action = format!("deleting {}", words(names));
        let work = async {
            let cluster = self.connect().await?;
            let answers = Admin::new(&cluster).delete_topics(names).await;
            for answer in answers.map_err(target(&action))? {
                match answer {
                    Err(moldau_client::Error::Broker {
                        code: ErrorCode::UnknownTopicOrPartition,
                        ..
                    }) => {}
                    answer => answer.map_err(target(&action))?,
                }
            }
            Ok(())
        };
        let within = async { tokio::time::timeout(within, work).await };
        self.runtime.block_on(within).unwrap_or_else(|_| {
            let reason = "it takes too long".to_owned();
            Err(Error::Target { action: action.clone(), reason })
        })
    }

    /// Remembers topics that are about to be made, until what this gives is dropped.
    ///
    /// # Errors
    /// [`Error::Target`] where the laboratory is asked to end.
    pub(super) fn making(&self, names: &[String]) -> Result<Option<owed::Making>, Error> {
        if !self.is_lasting {
            return Ok(None);
        }
        let making = owed::make(&self.bootstrap, &self.security, names);
        let refused = || Error::Target {
            action: format!("creating {}", words(names)),
            reason: "the laboratory is asked to end".into(),
        };
        making.map(Some).ok_or_else(refused)
    }

    /// Topics that were there already may belong to another user.
    pub(super) fn doubt_those_there(
        &self,
        names: &[String],
        answers: &[Result<(), moldau_client::Error>],
    ) {
        for (name, answer) in names.iter().zip(answers) {
            let code = answer.as_ref().err().and_then(moldau_client::Error::code);
            if code == Some(ErrorCode::TopicAlreadyExists) {
                owed::doubt(&self.bootstrap, name);
            }
        }
    }

    /// Forgets topics that are deleted.
    pub(super) fn forget(&self, names: &[String]) {
        owed::forget(&self.bootstrap, names);
    }

    async fn connect(&self) -> Result<Cluster, Error> {
        let bootstrap: Vec<&str> = self.bootstrap.split(',').collect();
        let security = self.security.clone();
        let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
        let options = ClusterOptions { connection, ..ClusterOptions::default() };
        let connected = Cluster::connect(&bootstrap, options).await;
        connected.map_err(target("connecting for administration"))
    }
}

/// From now on no topic is made on a cluster that outlasts the laboratory; waits a while for topics
/// that are being made.
pub fn refuse_topics() {
    owed::refuse(DELETED_WITHIN);
}

/// Deletes the topics that unfinished runs have left on clusters that outlast the laboratory, and
/// says of each cluster which may stay there. Not to be called from within a runtime.
#[must_use]
pub fn delete_left_topics() -> Vec<String> {
    let of_cluster = |owed::OnCluster { bootstrap, security, topics, doubtful }| {
        let topics: Vec<String> = topics.into_iter().collect();
        let delete = || {
            let control = Control::secured(&bootstrap, security)?;
            control.delete_those_there(&topics, DELETED_WITHIN)
        };
        let deleted = if topics.is_empty() { Ok(()) } else { delete() };
        let left = deleted
            .err()
            .map(|error| format!("{} may stay on {bootstrap}: {error}", topics.join(", ")));
        let doubtful = (!doubtful.is_empty()).then(|| {
            format!(
                "{} stays on {bootstrap}: it was there when it was to be made",
                doubtful.join(", ")
            )
        });
        [left, doubtful]
    };
    owed::take().into_iter().flat_map(of_cluster).flatten().collect()
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

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// One test, since what is owed is the process's.
    #[test]
    fn only_existing_topics_made_here_are_deleted_at_the_end() {
        let control = Control::new("nowhere:1").unwrap().lasting(true);
        let names = ["made", "deleted", "of others"].map(str::to_owned);
        let making = control.making(&names).unwrap();
        let exists = moldau_client::Error::Broker {
            what: "of others".into(),
            code: ErrorCode::TopicAlreadyExists,
            message: None,
        };
        control.doubt_those_there(&names, &[Ok(()), Ok(()), Err(exists)]);
        control.forget(&names[1..2]);
        // The end waits for topics that are being made. No more are made after that.
        let ending = thread::spawn(|| {
            owed::refuse(Duration::from_secs(60));
            owed::take()
        });
        while control.making(&[]).is_ok() {
            thread::yield_now();
        }
        assert!(!ending.is_finished());
        drop(making);
        let left = ending.join().unwrap();
        let [owed::OnCluster { bootstrap, topics, doubtful, .. }] = left.as_slice() else {
            panic!("{} clusters", left.len());
        };
        assert_eq!(bootstrap, "nowhere:1");
        assert!(topics.iter().eq(["made"]) && doubtful.iter().eq(["of others"]));
    }
}
