//! Enables, disables, triggers and lists recurring tasks, from any process.

use std::collections::BTreeMap;
use std::time::Duration;

use moldau_client::{Cluster, ProducerOptions, Record, TopicPartition, partition_for_key};

use super::owner::{kind, statuses};
use super::status::{Command, TaskStatus, millis};
use crate::Result;
use crate::clock::Clock;
use crate::outbox::{Outbox, To};
use crate::topic_reader::TopicReader;

/// The recurring tasks whose state is in a topic. Its calls return when the command is in the
/// topic; the member that has the task obeys it then, or as soon as there is such a member.
pub struct RecurringTasks {
    topic: String,
    cluster: Cluster,
    outbox: Outbox,
    clock: Clock,
}

impl RecurringTasks {
    /// The tasks of `topic`.
    #[must_use]
    pub fn new(cluster: &Cluster, topic: &str) -> Self {
        let outbox = Outbox::new(cluster.clone(), ProducerOptions::default());
        Self { topic: topic.to_owned(), cluster: cluster.clone(), outbox, clock: Clock::system() }
    }

    /// Lets a task run at its times.
    ///
    /// # Errors
    /// The topic does not exist, or the cluster does not answer.
    pub async fn enable(&self, task: &str) -> Result<()> {
        self.send(task, Command::Enable).await
    }

    /// Lets a task no longer run at its times; a run under way goes on.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub async fn disable(&self, task: &str) -> Result<()> {
        self.send(task, Command::Disable).await
    }

    /// Lets a task run at once, or, if it runs, when that run has ended.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub async fn trigger(&self, task: &str) -> Result<()> {
        self.send(task, Command::Trigger).await
    }

    /// What is stored of all tasks, by name.
    ///
    /// # Errors
    /// As [`enable`](Self::enable).
    pub async fn list(&self) -> Result<Vec<TaskStatus>> {
        let partitions = self.cluster.topic(&self.topic).await?.partitions.len();
        let mut tasks = BTreeMap::new();
        for number in (0..).take(partitions) {
            let partition = TopicPartition::of(&self.topic, number);
            let mut reader = TopicReader::open(&self.cluster, &self.clock, &partition).await?;
            while !reader.is_caught_up() {
                let chunk = reader.next().await?;
                tasks.extend(statuses(&chunk).map(|status| (status.task.clone(), status)));
            }
        }
        Ok(tasks.into_values().collect())
    }

    async fn send(&self, task: &str, command: Command) -> Result<()> {
        let partitions = self.cluster.topic(&self.topic).await?.partitions.len();
        let partition = partition_for_key(task.as_bytes(), partitions);
        let key = format!("command:{task}:{}", kind(command));
        let value = match command {
            Command::Enable => r#"{"command":"enable"}"#,
            Command::Disable => r#"{"command":"disable"}"#,
            Command::Trigger => r#"{"command":"trigger"}"#,
        };
        let now: Duration = self.clock.now();
        let record = Record {
            token: 0,
            timestamp: i64::try_from(millis(now)).unwrap_or(i64::MAX),
            key: Some(key.as_bytes()),
            value: Some(value.as_bytes()),
            headers: &[],
        };
        Ok(self.outbox.send_to(To::partition(&self.topic, partition), record).await?)
    }
}
