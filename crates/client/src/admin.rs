//! Administration: topics, groups, offsets, configs.
//!
//! Calls about several things give each thing its own result, in the order asked for.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::messages::alter_partition_reassignments_request::{
    ReassignablePartition, ReassignableTopic,
};
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use moldau_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsTopic,
};
use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_groups_response::DescribedGroup;
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::list_groups_response::ListedGroup;
use moldau_protocol::messages::list_partition_reassignments_request as reassignments_request;
use moldau_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse,
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse,
    DeleteGroupsRequest, DeleteRecordsRequest, DeleteTopicsRequest, DeleteTopicsResponse,
    DescribeClusterRequest, DescribeClusterResponse, DescribeConfigsRequest, DescribeGroupsRequest,
    IncrementalAlterConfigsRequest, ListGroupsRequest, ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
};
use moldau_protocol::{ErrorCode, Request, VersionRange};

use crate::cluster::{Cluster, CoordinatorOf, Purpose};
use crate::offsets::{ListedOffset, OffsetSpec, TopicPartition};
use crate::{Error, Result};

/// DeleteTopics names topics in structs from this version on (KIP-516).
const DELETE_TOPICS_VERSIONS: VersionRange = VersionRange::new(6, i16::MAX);

/// All that both sides know.
const ANY_VERSION: VersionRange = VersionRange::new(0, i16::MAX);

/// A topic to be created.
#[derive(Clone, Debug)]
pub struct TopicSpec {
    /// Its name.
    pub name: String,
    /// Number of partitions, -1 for the broker's default.
    pub partitions: i32,
    /// Replicas of each partition, -1 for the broker's default.
    pub replication_factor: i16,
    /// Configs that differ from the defaults.
    pub configs: Vec<(String, String)>,
}

impl TopicSpec {
    /// A topic with `partitions` partitions and the broker's defaults.
    #[must_use]
    pub fn new(name: &str, partitions: i32) -> Self {
        Self { name: name.to_owned(), partitions, replication_factor: -1, configs: Vec::new() }
    }
}

/// Something that has configs.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ConfigResource {
    /// A topic, by name.
    Topic(String),
    /// A broker, by node id.
    Broker(i32),
    /// A group, by id; those of share groups and of the consumer protocol have configs.
    Group(String),
}

impl ConfigResource {
    fn wire(&self) -> (i8, String) {
        match self {
            Self::Topic(name) => (2, name.clone()),
            Self::Broker(node) => (4, node.to_string()),
            Self::Group(group) => (32, group.clone()),
        }
    }
}

/// One config of a resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigEntry {
    /// Its name.
    pub name: String,
    /// Its value; `None` if it is null or secret.
    pub value: Option<String>,
    /// Where the value is set.
    pub source: ConfigSource,
    /// Whether it cannot be changed.
    pub read_only: bool,
}

/// Where the value of a config is set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConfigSource {
    /// On the resource itself.
    Own,
    /// In the configuration of brokers, which gives resources a default.
    Broker,
    /// Nowhere: it is the default of the software.
    Default,
}

impl ConfigSource {
    /// The source of Kafka's number: topic and dynamic broker configs are set on the resource, 3 is
    /// the cluster's default and 4 a broker's file.
    fn from_number(number: i8) -> Self {
        match number {
            1 | 2 => Self::Own,
            3 | 4 => Self::Broker,
            _ => Self::Default,
        }
    }
}

/// Administers a cluster.
#[derive(Clone, Debug)]
pub struct Admin {
    cluster: Cluster,
}

impl Admin {
    /// Administers `cluster`.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self { cluster: cluster.clone() }
    }

    /// Creates topics, or only checks whether it could.
    ///
    /// # Errors
    /// No broker answers. Refusals are in the results.
    pub async fn create_topics(
        &self,
        topics: &[TopicSpec],
        validate_only: bool,
    ) -> Result<Vec<Result<()>>> {
        let request = CreateTopicsRequest {
            topics: topics.iter().map(creatable).collect(),
            timeout_ms: self.timeout_ms(),
            validate_only,
            ..Default::default()
        };
        let codes =
            |answer: &CreateTopicsResponse| answer.topics.first().map_or(0, |it| it.error_code);
        let answer = self.ask_controller(&request, ANY_VERSION, codes).await?;
        let results = answer.topics.into_iter().map(|topic| {
            let what = format!("create topic {}", topic.name);
            let result = Error::check(topic.error_code, &what, topic.error_message.as_deref());
            (topic.name, result)
        });
        Ok(in_order(topics.iter().map(|topic| &topic.name), results.collect()))
    }

    /// Deletes topics by name.
    ///
    /// # Errors
    /// No broker answers. Refusals are in the results.
    pub async fn delete_topics(&self, names: &[String]) -> Result<Vec<Result<()>>> {
        let request = DeleteTopicsRequest {
            topics: names
                .iter()
                .map(|name| DeleteTopicState { name: Some(name.clone()), ..Default::default() })
                .collect(),
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        let codes =
            |answer: &DeleteTopicsResponse| answer.responses.first().map_or(0, |it| it.error_code);
        let answer = self.ask_controller(&request, DELETE_TOPICS_VERSIONS, codes).await?;
        let results = answer.responses.into_iter().map(|topic| {
            let name = topic.name.unwrap_or_default();
            let what = format!("delete topic {name}");
            let result = Error::check(topic.error_code, &what, topic.error_message.as_deref());
            (name, result)
        });
        Ok(in_order(names.iter(), results.collect()))
    }

    /// Raises the number of partitions of a topic to `count`.
    ///
    /// # Errors
    /// The broker refuses, or none answers.
    pub async fn create_partitions(&self, topic: &str, count: i32) -> Result<()> {
        let request = CreatePartitionsRequest {
            topics: vec![CreatePartitionsTopic {
                name: topic.to_owned(),
                count,
                assignments: None,
                ..Default::default()
            }],
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        let codes = |answer: &CreatePartitionsResponse| {
            answer.results.first().map_or(0, |it| it.error_code)
        };
        let answer = self.ask_controller(&request, ANY_VERSION, codes).await?;
        let what = format!("create partitions of {topic}");
        for result in answer.results {
            Error::check(result.error_code, &what, result.error_message.as_deref())?;
        }
        Ok(())
    }

    /// Begins to move partitions of a topic, given as partition and replicas, to other brokers.
    ///
    /// # Errors
    /// The cluster refuses the request or any of the partitions, or does not answer.
    pub async fn reassign_partitions(&self, topic: &str, to: &[(i32, Vec<i32>)]) -> Result<()> {
        let partition = |(index, replicas): &(i32, Vec<i32>)| ReassignablePartition {
            partition_index: *index,
            replicas: Some(replicas.clone()),
            ..Default::default()
        };
        let request = AlterPartitionReassignmentsRequest {
            timeout_ms: self.timeout_ms(),
            topics: vec![ReassignableTopic {
                name: topic.to_owned(),
                partitions: to.iter().map(partition).collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let code = |answer: &AlterPartitionReassignmentsResponse| answer.error_code;
        let answer = self.ask_controller(&request, ANY_VERSION, code).await?;
        let what = format!("reassign partitions of {topic}");
        Error::check(answer.error_code, &what, answer.error_message.as_deref())?;
        for part in answer.responses.into_iter().flat_map(|topic| topic.partitions) {
            Error::check(part.error_code, &what, part.error_message.as_deref())?;
        }
        Ok(())
    }

    /// How many of the partitions `0..partitions` of a topic are still being moved.
    ///
    /// # Errors
    /// The cluster refuses, or does not answer.
    pub async fn reassignments_left(&self, topic: &str, partitions: i32) -> Result<usize> {
        let request = ListPartitionReassignmentsRequest {
            timeout_ms: self.timeout_ms(),
            topics: Some(vec![reassignments_request::ListPartitionReassignmentsTopics {
                name: topic.to_owned(),
                partition_indexes: (0..partitions).collect(),
                ..Default::default()
            }]),
            ..Default::default()
        };
        let code = |answer: &ListPartitionReassignmentsResponse| answer.error_code;
        let answer = self.ask_controller(&request, ANY_VERSION, code).await?;
        let message = answer.error_message.as_deref();
        Error::check(answer.error_code, "list reassignments", message)?;
        Ok(answer.topics.iter().map(|topic| topic.partitions.len()).sum())
    }

    /// Asks any broker, which with KRaft passes the request on. Once `code` of an answer says that
    /// it is not the controller, which alone changes topics where ZooKeeper is, asks that, and then
    /// its successor.
    async fn ask_controller<R: Request>(
        &self,
        request: &R,
        versions: VersionRange,
        code: impl Fn(&R::Response) -> i16,
    ) -> Result<R::Response> {
        let mut retry = self.cluster.retry();
        let mut needs_controller = false;
        loop {
            let connection = if needs_controller {
                self.cluster.controller_connection().await
            } else {
                self.cluster.any_connection().await
            };
            let answer = match connection {
                Ok(connection) => connection.send_in(request, versions).await,
                Err(error) => Err(error),
            };
            let error = match answer {
                Ok(answer) if code(&answer) == ErrorCode::NotController.code() => {
                    needs_controller = true;
                    Error::broker(ErrorCode::NotController, "the controller", None)
                }
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            retry.pause(error).await?;
            self.cluster.refresh().await?;
        }
    }

    /// Deletes the records before the given offsets; the oldest offsets that are left.
    pub async fn delete_records(
        &self,
        before: &[(TopicPartition, i64)],
    ) -> Vec<(TopicPartition, Result<i64>)> {
        let mut results = Vec::with_capacity(before.len());
        for (partition, offset) in before {
            let result = self.delete_records_of(partition, *offset).await;
            results.push((partition.clone(), result));
        }
        results
    }

    async fn delete_records_of(&self, partition: &TopicPartition, offset: i64) -> Result<i64> {
        let TopicPartition { topic, partition: index } = partition;
        let leader = self.cluster.leader(topic, *index).await?;
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsTopic {
                name: topic.to_string(),
                partitions: vec![DeleteRecordsPartition {
                    partition_index: *index,
                    offset,
                    ..Default::default()
                }],
                ..Default::default()
            }],
            timeout_ms: self.timeout_ms(),
            ..Default::default()
        };
        let connection = self.cluster.connection(leader.node, Purpose::Data).await?;
        let answer = connection.send(&request).await?;
        let what = format!("delete records of {topic}-{index}");
        let mut parts = answer.topics.into_iter().flat_map(|topic| topic.partitions);
        let part = parts
            .next()
            .ok_or_else(|| Error::broker(ErrorCode::UnknownServerError, &what, None))?;
        Error::check(part.error_code, &what, None)?;
        Ok(part.low_watermark)
    }

    /// Offsets of partitions by time; see [`Cluster::list_offsets`].
    pub async fn list_offsets(
        &self,
        wanted: &[(TopicPartition, OffsetSpec)],
    ) -> HashMap<TopicPartition, Result<ListedOffset>> {
        self.cluster.list_offsets(wanted).await
    }

    /// The consumer groups of all brokers.
    ///
    /// # Errors
    /// A broker does not answer.
    pub async fn list_groups(&self) -> Result<Vec<ListedGroup>> {
        let metadata = self.cluster.refresh().await?;
        let mut groups = Vec::new();
        for node in metadata.brokers.keys() {
            let connection = self.cluster.connection(*node, Purpose::Coordination).await?;
            let answer = connection.send(&ListGroupsRequest::default()).await?;
            Error::check(answer.error_code, "list groups", None)?;
            groups.extend(answer.groups);
        }
        groups.sort_by(|a, b| a.group_id.cmp(&b.group_id));
        Ok(groups)
    }

    /// State and members of a group.
    ///
    /// # Errors
    /// The group does not exist, or its coordinator does not answer.
    pub async fn describe_group(&self, group: &str) -> Result<DescribedGroup> {
        let request =
            DescribeGroupsRequest { groups: vec![group.to_owned()], ..Default::default() };
        let code = |answer: &<DescribeGroupsRequest as Request>::Response| {
            answer.groups.first().map_or(0, |group| group.error_code)
        };
        let answer = self
            .cluster
            .ask_coordinator(CoordinatorOf::Group(group), &request, ALL_VERSIONS, code)
            .await?;
        let what = format!("describe group {group}");
        let described = answer.groups.into_iter().next();
        let described =
            described.ok_or_else(|| Error::broker(ErrorCode::GroupIdNotFound, &what, None))?;
        Error::check(described.error_code, &what, described.error_message.as_deref())?;
        Ok(described)
    }

    /// Deletes a group that has no members.
    ///
    /// # Errors
    /// The group does not exist or is in use, or its coordinator does not answer.
    pub async fn delete_group(&self, group: &str) -> Result<()> {
        let request =
            DeleteGroupsRequest { groups_names: vec![group.to_owned()], ..Default::default() };
        let code = |answer: &<DeleteGroupsRequest as Request>::Response| {
            answer.results.first().map_or(0, |result| result.error_code)
        };
        let answer = self
            .cluster
            .ask_coordinator(CoordinatorOf::Group(group), &request, ALL_VERSIONS, code)
            .await?;
        Error::check(code(&answer), &format!("delete group {group}"), None)
    }

    /// All configs of a resource.
    ///
    /// # Errors
    /// The resource does not exist, or its broker does not answer.
    pub async fn describe_configs(&self, resource: &ConfigResource) -> Result<Vec<ConfigEntry>> {
        let (resource_type, resource_name) = resource.wire();
        let what = format!("configs of {resource_name}");
        let request = DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type,
                resource_name,
                configuration_keys: None,
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask_resource(resource, &request).await?;
        let mut entries = Vec::new();
        for result in answer.results {
            Error::check(result.error_code, &what, result.error_message.as_deref())?;
            entries.extend(result.configs.into_iter().map(|config| ConfigEntry {
                name: config.name,
                value: config.value,
                source: ConfigSource::from_number(config.config_source),
                read_only: config.read_only,
            }));
        }
        Ok(entries)
    }

    /// Sets configs of a resource, or unsets those without a value.
    ///
    /// # Errors
    /// The broker refuses a config, or does not answer.
    pub async fn alter_configs(
        &self,
        resource: &ConfigResource,
        changes: &[(String, Option<String>)],
    ) -> Result<()> {
        let (resource_type, resource_name) = resource.wire();
        let what = format!("alter configs of {resource_name}");
        let configs = changes.iter().map(|(name, value)| AlterableConfig {
            name: name.clone(),
            // 0 sets, 1 deletes (KIP-339).
            config_operation: i8::from(value.is_none()),
            value: value.clone(),
            ..Default::default()
        });
        let request = IncrementalAlterConfigsRequest {
            resources: vec![AlterConfigsResource {
                resource_type,
                resource_name,
                configs: configs.collect(),
                ..Default::default()
            }],
            ..Default::default()
        };
        let answer = self.ask_resource(resource, &request).await?;
        for result in answer.responses {
            Error::check(result.error_code, &what, result.error_message.as_deref())?;
        }
        Ok(())
    }

    /// The cluster's id, controller and brokers.
    ///
    /// # Errors
    /// The broker refuses, or none answers.
    pub async fn describe_cluster(&self) -> Result<DescribeClusterResponse> {
        let answer = self.cluster.send_any(&DescribeClusterRequest::default()).await?;
        let message = answer.error_message.as_deref();
        Error::check(answer.error_code, "describe cluster", message)?;
        Ok(answer)
    }

    /// A broker's configs are asked of that broker, all others of any.
    async fn ask_resource<R: Request>(
        &self,
        resource: &ConfigResource,
        request: &R,
    ) -> Result<R::Response> {
        match resource {
            ConfigResource::Topic(_) | ConfigResource::Group(_) => {
                self.cluster.send_any(request).await
            }
            ConfigResource::Broker(node) => {
                self.cluster.connection(*node, Purpose::Data).await?.send(request).await
            }
        }
    }

    fn timeout_ms(&self) -> i32 {
        let timeout = self.cluster.options().connection.request_timeout;
        i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX)
    }
}

const ALL_VERSIONS: VersionRange = VersionRange::new(0, i16::MAX);

fn creatable(topic: &TopicSpec) -> CreatableTopic {
    let config = |(name, value): &(String, String)| CreatableTopicConfig {
        name: name.clone(),
        value: Some(value.clone()),
        ..Default::default()
    };
    CreatableTopic {
        name: topic.name.clone(),
        num_partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        configs: topic.configs.iter().map(config).collect(),
        ..Default::default()
    }
}

/// The results in the order of `names`; a broker may answer in another.
fn in_order<'a>(
    names: impl Iterator<Item = &'a String>,
    mut results: HashMap<String, Result<()>>,
) -> Vec<Result<()>> {
    let unanswered = |name: &str| {
        Err(Error::Malformed {
            address: Arc::from("broker"),
            reason: format!("no answer for {name}").into(),
        })
    };
    names.map(|name| results.remove(name).unwrap_or_else(|| unanswered(name))).collect()
}

#[cfg(test)]
mod tests;
