//! Declarative topics: what an app's topics should be, what would have to change, and changing it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use moldau_client::{
    Admin, Cluster, ClusterOptions, ConfigEntry, ConfigResource, Topic, TopicSpec,
};

use crate::{Error, Result};

/// What a topic should be. Configs that it does not name stay as they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopicDeclaration {
    partitions: i32,
    replication_factor: Option<i16>,
    configs: BTreeMap<String, String>,
}

impl TopicDeclaration {
    /// A topic with this many partitions. A topic that exists may get more, but never fewer.
    #[must_use]
    pub fn partitions(partitions: i32) -> Self {
        Self { partitions, replication_factor: None, configs: BTreeMap::new() }
    }

    /// Replicas of each partition; the cluster's default unless declared.
    #[must_use]
    pub fn replication_factor(mut self, replicas: i16) -> Self {
        self.replication_factor = Some(replicas);
        self
    }

    /// A config, as `retention.ms`.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        self.configs.insert(name.into(), value.to_string());
        self
    }

    fn spec(&self, name: &str) -> TopicSpec {
        let configs = self.configs.iter().map(|(name, value)| (name.clone(), value.clone()));
        TopicSpec {
            name: name.to_owned(),
            partitions: self.partitions,
            replication_factor: self.replication_factor.unwrap_or(-1),
            configs: configs.collect(),
        }
    }
}

/// The declared topics of an app; from [`App::topics`](crate::App::topics).
#[derive(Clone, Debug)]
pub struct Topics {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) cluster: ClusterOptions,
    pub(crate) declared: BTreeMap<Arc<str>, TopicDeclaration>,
}

/// What differs between the declared topics and those of the cluster, by topic.
#[derive(Clone, Debug)]
pub struct TopicPlan {
    changes: Vec<TopicChange>,
    cluster: Cluster,
}

/// One difference. It is displayed as a line of text.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TopicChange {
    /// The topic does not exist.
    Create {
        /// The topic.
        topic: Arc<str>,
        /// What it will be.
        declaration: TopicDeclaration,
    },
    /// The topic gets more partitions. Records of a key that come later may be in another
    /// partition than the earlier ones.
    AddPartitions {
        /// The topic.
        topic: Arc<str>,
        /// Partitions that it has.
        from: i32,
        /// Partitions that are declared.
        to: i32,
    },
    /// A config gets another value.
    SetConfig {
        /// The topic.
        topic: Arc<str>,
        /// Name of the config.
        name: String,
        /// Its value, if it is known.
        from: Option<String>,
        /// The declared value.
        to: String,
    },
    /// What cannot be changed. A plan with it is not applied.
    Impossible {
        /// The topic.
        topic: Arc<str>,
        /// Why, and what can be done.
        reason: String,
    },
}

impl Topics {
    /// Compares the declared topics with those of the cluster; changes nothing.
    ///
    /// # Errors
    /// [`Error::Client`]: the cluster cannot be reached, or does not show its topics.
    pub async fn plan(&self) -> Result<TopicPlan> {
        let connect = Cluster::connect(&self.bootstrap, self.cluster.clone());
        let cluster = Box::pin(connect).await?;
        let (admin, existing) = (Admin::new(&cluster), cluster.all_topics().await?);
        let mut changes = Vec::new();
        for (name, declaration) in &self.declared {
            if declaration.partitions < 1 || declaration.replication_factor.is_some_and(|it| it < 1)
            {
                let reason = "a topic has at least one partition and one replica".to_owned();
                changes.push(TopicChange::Impossible { topic: Arc::clone(name), reason });
                continue;
            }
            let Some(topic) = existing.topics.get(name) else {
                let (topic, declaration) = (Arc::clone(name), declaration.clone());
                changes.push(TopicChange::Create { topic, declaration });
                continue;
            };
            let configs = match declaration.configs.is_empty() {
                true => Vec::new(),
                false => admin.describe_configs(&ConfigResource::Topic(name.to_string())).await?,
            };
            changes.extend(differences(name, declaration, topic, &configs));
        }
        Ok(TopicPlan { changes, cluster })
    }
}

/// What differs between a topic and its declaration.
fn differences(
    name: &Arc<str>,
    declaration: &TopicDeclaration,
    topic: &Topic,
    configs: &[ConfigEntry],
) -> Vec<TopicChange> {
    let mut changes = Vec::new();
    let impossible = |reason| TopicChange::Impossible { topic: Arc::clone(name), reason };
    let (from, to) =
        (i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX), declaration.partitions);
    if from < to {
        changes.push(TopicChange::AddPartitions { topic: Arc::clone(name), from, to });
    } else if from > to {
        changes.push(impossible(format!(
            "it has {from} partitions, and {to} are declared: Kafka cannot remove partitions. \
             Declare {from}, or move the records to another topic"
        )));
    }
    if let Some(wanted) = declaration.replication_factor.and_then(|it| usize::try_from(it).ok()) {
        let other = topic.partitions.iter().find(|partition| partition.replicas.len() != wanted);
        if let Some(partition) = other {
            let (number, has) = (partition.index, partition.replicas.len());
            changes.push(impossible(format!(
                "partition {number} has {has} replicas, and {wanted} are declared: \
                 reassign the partitions first (kafka-reassign-partitions)"
            )));
        }
    }
    for (config, to) in &declaration.configs {
        let entry = configs.iter().find(|entry| entry.name == *config);
        match entry {
            Some(entry) if entry.value.as_ref() == Some(to) => {}
            Some(entry) if entry.read_only => {
                changes.push(impossible(format!("config {config} is read-only")));
            }
            None => changes.push(impossible(format!("config {config} is not known"))),
            Some(entry) => changes.push(TopicChange::SetConfig {
                topic: Arc::clone(name),
                name: config.clone(),
                from: entry.value.clone(),
                to: to.clone(),
            }),
        }
    }
    changes
}

impl TopicPlan {
    /// Whether the topics are as declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The differences, by topic.
    #[must_use]
    pub fn changes(&self) -> &[TopicChange] {
        &self.changes
    }

    /// Makes the topics as declared. A topic that another process has created meanwhile is no
    /// error.
    ///
    /// # Errors
    /// [`Error::Topics`]: something cannot be changed; then nothing is. [`Error::Client`]: the
    /// cluster refuses a change, or cannot be reached; a further plan shows what is left.
    pub async fn apply(&self) -> Result<()> {
        let is_impossible = |it: &&TopicChange| matches!(it, TopicChange::Impossible { .. });
        let impossible = self.changes.iter().filter(is_impossible);
        let impossible: Vec<_> = impossible.map(ToString::to_string).collect();
        if !impossible.is_empty() {
            return Err(Error::Topics { reasons: impossible.join("; ") });
        }
        let admin = Admin::new(&self.cluster);
        for change in &self.changes {
            self.apply_change(&admin, change).await?;
        }
        Ok(())
    }

    async fn apply_change(&self, admin: &Admin, change: &TopicChange) -> Result<()> {
        match change {
            TopicChange::Create { topic, declaration } => {
                for created in admin.create_topics(&[declaration.spec(topic)], false).await? {
                    if created.is_err() && self.exists(topic).await? {
                        continue;
                    }
                    created?;
                }
            }
            TopicChange::AddPartitions { topic, to, .. } => {
                admin.create_partitions(topic, *to).await?;
            }
            TopicChange::SetConfig { topic, name, to, .. } => {
                let resource = ConfigResource::Topic(topic.to_string());
                admin.alter_configs(&resource, &[(name.clone(), Some(to.clone()))]).await?;
            }
            TopicChange::Impossible { .. } => {}
        }
        Ok(())
    }

    async fn exists(&self, topic: &str) -> Result<bool> {
        Ok(self.cluster.all_topics().await?.topics.contains_key(topic))
    }
}

impl fmt::Display for TopicPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return writeln!(f, "all topics are as declared");
        }
        self.changes.iter().try_for_each(|change| writeln!(f, "{change}"))
    }
}

impl fmt::Display for TopicChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { topic, declaration } => {
                write!(f, "{topic}: create, partitions={}", declaration.partitions)?;
                if let Some(replicas) = declaration.replication_factor {
                    write!(f, " replication.factor={replicas}")?;
                }
                let mut configs = declaration.configs.iter();
                configs.try_for_each(|(name, value)| write!(f, " {name}={value}"))
            }
            Self::AddPartitions { topic, from, to } => {
                write!(f, "{topic}: partitions {from} -> {to}; keys may move to other partitions")
            }
            Self::SetConfig { topic, name, from, to } => {
                let from = from.as_deref().unwrap_or("(unknown)");
                write!(f, "{topic}: {name} {from} -> {to}")
            }
            Self::Impossible { topic, reason } => write!(f, "{topic}: impossible: {reason}"),
        }
    }
}
