//! Metadata, versions 0-13 (KIP-204 auto-creation, KIP-516 topic ids, KIP-1102 rebootstrap).
//!
//! A broker on its journal leads and holds every partition. The brokers of a cluster share them:
//! each serves all, and leads some. A request that creates a topic is left to the controller. An
//! answer is made in turns, between which other connections are served, and the partitions of a
//! broker that leads all are the same bytes for all who ask.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_net::{KEPT_REQUEST_BYTES_MAX, Reply, Response};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::MetadataRequest;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition,
};
use moldau_protocol::metadata::{DescribedTopic, MetadataResponseEncoder, encode_partitions};
use moldau_protocol::{EncodeError, ErrorCode, Message, Reader, Uuid};

use crate::api::describe_cluster::cluster_operations;
use crate::authorizer::ResourceType::{Cluster, Topic};
use crate::authorizer::{CLUSTER_NAME, Operation};
use crate::call::{Call, DURABLE_WITHIN, NOT_ENCODED, Served, Turns, durable_within};
use crate::catalog;
use crate::logs::Lsn;
use crate::nodes::{Members, Node};
use crate::rights::Rights;
use crate::state::State;
use crate::topic_config::TopicOverrides;
use crate::topic_names;

/// Versions that have ids of topics and do not take them.
const IDS_REFUSED_IN: RangeInclusive<i16> = 10..=11;

/// Versions with a place for what the client may do to the cluster.
const CLUSTER_OPERATIONS_IN: RangeInclusive<i16> = 8..=10;

/// Kafka's number for no broker.
const NO_NODE: i32 = -1;

/// From this version on the name of a topic can be null.
const NULL_NAME_SINCE: i16 = 12;

pub(crate) fn serve(call: &Call<'_>, header: &RequestHeader<'_>, body: &[u8]) -> Served {
    let Ok(request) = MetadataRequest::decode(&mut Reader::new(body), call.version) else {
        return Reply::Close("malformed request");
    };
    let mut created = None;
    let mut answer = Answer {
        topics: match is_refused(call, &request) {
            true => refused(&request),
            false => topics(call, &request, &mut created),
        },
        is_refused: is_refused(call, &request),
        rights: call.rights.clone(),
        is_list: is_list(call, &request),
        tells_operations: request.include_topic_authorized_operations,
        cluster_operations: (request.include_cluster_authorized_operations
            && CLUSTER_OPERATIONS_IN.contains(&call.version))
        .then(|| cluster_operations(&call.rights)),
        members: call.members(),
        version: call.version,
        correlation_id: header.correlation_id,
        state: Arc::clone(call.state),
    };
    let answered = async move {
        if let Some(lsn) = created
            && let Err(refusal) = durable_within(DURABLE_WITHIN, &answer.state.storage, lsn).await
        {
            answer.topics.iter_mut().for_each(|found| found.fail(refusal.code));
        }
        // A connection without this answer would wait for ever; the line names the defect.
        answer.encode().await.unwrap_or_else(|error| {
            tracing::error!(version = answer.version, %error, "failed to answer Metadata");
            Response::closing(NOT_ENCODED)
        })
    };
    // One at a time, since an answer may be long.
    Reply::Later(Box::pin(answered), body.len().max(KEPT_REQUEST_BYTES_MAX))
}

/// Whether the request, as far as is known here, creates a topic.
pub(crate) fn creates(call: &Call<'_>, body: &[u8]) -> bool {
    let catalog = &call.state.catalog;
    let may_create = |name: &str| {
        call.rights.show(Topic, Operation::Describe, name)
            && (call.rights.show(Cluster, Operation::Create, CLUSTER_NAME)
                || call.rights.show(Topic, Operation::Create, name))
    };
    let is_created = |topic: &MetadataRequestTopic| {
        topic.topic_id.is_zero()
            && topic.name.as_deref().is_some_and(|name| {
                catalog.by_name(name).is_none()
                    && topic_names::check_name(name).is_ok()
                    && may_create(name)
            })
    };
    call.state.config.auto_create_topics
        && MetadataRequest::decode(&mut Reader::new(body), call.version).is_ok_and(|request| {
            request.allow_auto_topic_creation && request.topics.iter().flatten().any(is_created)
        })
}

/// Whether the client asks for a topic that is not known here and may be at another broker.
pub(crate) fn names_unknown(call: &Call<'_>, body: &[u8]) -> bool {
    let catalog = &call.state.catalog;
    let is_unknown = |topic: &MetadataRequestTopic| match &topic.name {
        Some(name) if topic.topic_id.is_zero() => {
            call.rights.show(Topic, Operation::Describe, name) && catalog.is_unknown(name)
        }
        _ => catalog.by_id(topic.topic_id).is_none(),
    };
    MetadataRequest::decode(&mut Reader::new(body), call.version)
        .is_ok_and(|request| request.topics.iter().flatten().any(is_unknown))
}

/// Whether all topics are asked for. Version 0 had no null: an empty list asks for all topics
/// there, for none later.
fn is_list(call: &Call<'_>, request: &MetadataRequest) -> bool {
    match &request.topics {
        None => true,
        Some(asked) => asked.is_empty() && call.version == 0,
    }
}

/// Whether the request names topics as its version does not allow; then nothing is answered.
fn is_refused(call: &Call<'_>, request: &MetadataRequest) -> bool {
    let mut asked = request.topics.iter().flatten();
    IDS_REFUSED_IN.contains(&call.version)
        && asked.any(|topic| topic.name.is_none() || !topic.topic_id.is_zero())
}

fn refused(request: &MetadataRequest) -> Vec<Found> {
    let asked = request.topics.iter().flatten();
    let refused = asked.map(|topic| Found::Failed {
        code: ErrorCode::InvalidRequest,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
    });
    refused.collect()
}

/// What is known of a topic that the answer names.
enum Found {
    Topic(Arc<catalog::Topic>),
    Failed { code: ErrorCode, name: Option<String>, topic_id: Uuid },
}

fn topics(call: &Call<'_>, request: &MetadataRequest, created: &mut Option<Lsn>) -> Vec<Found> {
    if is_list(call, request) {
        return call.state.catalog.all().into_iter().map(Found::Topic).collect();
    }
    // Each is described once, so that an answer is bounded by the topics that exist.
    let mut seen = HashSet::new();
    let asked = request.topics.iter().flatten();
    let asked = asked.filter(|topic| seen.insert((&topic.name, topic.topic_id)));
    let may_create = request.allow_auto_topic_creation && call.state.config.auto_create_topics;
    asked.map(|topic| find_or_create(call, topic, may_create, created)).collect()
}

fn find_or_create(
    call: &Call<'_>,
    asked: &MetadataRequestTopic,
    may_create: bool,
    created: &mut Option<Lsn>,
) -> Found {
    let catalog = &call.state.catalog;
    let may_describe = |name: &str| call.rights.allow(Topic, Operation::Describe, name);
    // As in Kafka, an id counts before a name. Kafka's own client leaves the name empty.
    let Some(name) = asked.name.as_ref().filter(|_| asked.topic_id.is_zero()) else {
        return match catalog.by_id(asked.topic_id) {
            Some(topic) if may_describe(&topic.name) => Found::Topic(topic),
            Some(_) => nameless(call, asked.topic_id, ErrorCode::TopicAuthorizationFailed),
            None => nameless(call, asked.topic_id, ErrorCode::UnknownTopicId),
        };
    };
    if !may_describe(name) {
        return unknown(name, ErrorCode::TopicAuthorizationFailed);
    }
    if let Some(topic) = catalog.by_name(name) {
        return Found::Topic(topic);
    }
    if may_create && !may_create_named(call, name) {
        return unknown(name, ErrorCode::TopicAuthorizationFailed);
    }
    if let Err(refusal) = topic_names::check_name(name) {
        return unknown(name, refusal.code);
    }
    if !may_create {
        return unknown(name, ErrorCode::UnknownTopicOrPartition);
    }
    let partitions = call.state.config.partitions_default;
    match catalog.create(&call.state.storage, name, partitions, TopicOverrides::new()) {
        Ok((topic, lsn)) => {
            *created = Some(lsn);
            Found::Topic(topic)
        }
        // Another broker is the controller, and could not be asked: clients ask again.
        Err(refusal) if refusal.code == ErrorCode::NotController => {
            unknown(name, ErrorCode::UnknownTopicOrPartition)
        }
        // Another connection created it in between.
        Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {
            match catalog.by_name(name) {
                Some(topic) => Found::Topic(topic),
                None => unknown(name, ErrorCode::UnknownTopicOrPartition),
            }
        }
        Err(refusal) => unknown(name, refusal.code),
    }
}

fn may_create_named(call: &Call<'_>, name: &str) -> bool {
    call.rights.show(Cluster, Operation::Create, CLUSTER_NAME)
        || call.rights.allow(Topic, Operation::Create, name)
}

fn unknown(name: &str, code: ErrorCode) -> Found {
    Found::Failed { code, name: Some(name.to_owned()), topic_id: Uuid::ZERO }
}

fn nameless(call: &Call<'_>, topic_id: Uuid, code: ErrorCode) -> Found {
    let name = if call.version >= NULL_NAME_SINCE { None } else { Some(String::new()) };
    Found::Failed { code, name, topic_id }
}

impl Found {
    /// What was created is not there, nor can the rest be relied upon.
    fn fail(&mut self, code: ErrorCode) {
        if let Self::Topic(topic) = self {
            let (name, topic_id) = (Some(topic.name.to_string()), topic.id);
            let code = match code {
                // Metadata has another code after which clients ask again.
                ErrorCode::NotController | ErrorCode::RequestTimedOut => {
                    ErrorCode::LeaderNotAvailable
                }
                code => code,
            };
            *self = Self::Failed { code, name, topic_id };
        }
    }
}

/// An answer on its way.
struct Answer {
    topics: Vec<Found>,
    /// Whether nothing is said but that of the topics.
    is_refused: bool,
    rights: Rights,
    /// Whether topics that the client may not describe are left out.
    is_list: bool,
    /// Whether the client wants to know what it may do to each topic.
    tells_operations: bool,
    /// What it may do to the cluster, if it wants to know.
    cluster_operations: Option<i32>,
    members: Arc<Members>,
    version: i16,
    correlation_id: i32,
    state: Arc<State>,
}

impl Answer {
    async fn encode(&self) -> Result<Response, EncodeError> {
        let mut turns = Turns::default();
        let mut topics = Vec::with_capacity(self.topics.len());
        for found in &self.topics {
            turns.step(1).await;
            topics.push(match found {
                Found::Topic(topic) if self.is_left_out(&topic.name) => continue,
                Found::Topic(topic) => self.describe(topic, &mut turns).await?,
                Found::Failed { code, name, topic_id } => DescribedTopic {
                    error_code: i16::from(*code),
                    name: name.clone(),
                    topic_id: *topic_id,
                    authorized_operations: match code {
                        _ if self.is_refused => None,
                        ErrorCode::TopicAuthorizationFailed | ErrorCode::UnknownTopicId => None,
                        _ => name.as_deref().and_then(|name| self.operations(name)),
                    },
                    ..DescribedTopic::default()
                },
            });
        }
        let broker = |node: &Node| MetadataResponseBroker {
            node_id: node.id,
            host: node.host.clone(),
            port: node.port,
            rack: node.rack.clone(),
            ..MetadataResponseBroker::default()
        };
        let response = match self.is_refused {
            true => MetadataResponseEncoder {
                brokers: Vec::new(),
                cluster_id: None,
                controller_id: NO_NODE,
                topics,
                authorized_operations: None,
            },
            false => MetadataResponseEncoder {
                brokers: self.members.brokers.iter().map(broker).collect(),
                cluster_id: Some(self.state.cluster_id.clone()),
                controller_id: self.members.controller_id(),
                topics,
                authorized_operations: self.cluster_operations,
            },
        };
        Ok(Response::segments(response.encode(self.version, self.correlation_id)?))
    }

    fn is_left_out(&self, topic: &str) -> bool {
        self.is_list && !self.rights.show(Topic, Operation::Describe, topic)
    }

    fn operations(&self, topic: &str) -> Option<i32> {
        self.tells_operations.then(|| self.rights.operations(Topic, topic))
    }

    async fn describe(
        &self,
        topic: &catalog::Topic,
        turns: &mut Turns,
    ) -> Result<DescribedTopic, EncodeError> {
        let count = topic.partitions_end();
        let mut partitions: Vec<Bytes> = Vec::new();
        let mut first = 0;
        while first < count {
            let (taken, bytes) = self.partitions(topic, first, count)?;
            first += taken;
            partitions.push(bytes);
            turns.step(usize::try_from(taken).unwrap_or(usize::MAX)).await;
        }
        Ok(DescribedTopic {
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            partitions_count: usize::try_from(count).unwrap_or_default(),
            partitions,
            authorized_operations: self.operations(&topic.name),
            ..DescribedTopic::default()
        })
    }

    /// The next partitions of a topic of `count`, from `first` on: how many, and their bytes.
    fn partitions(
        &self,
        topic: &catalog::Topic,
        first: i32,
        count: i32,
    ) -> Result<(i32, Bytes), EncodeError> {
        if let Some(only) = self.members.only_leader(topic.id) {
            return self.state.partition_runs.next(&led_by(only), first, count, self.version);
        }
        let end = count.min(first.saturating_add(PARTITIONS_PER_TURN));
        let mut encoded = BytesMut::new();
        let leaders = self.members.leaders(topic.id, first..end, count);
        for (index, leader) in (first..end).zip(leaders) {
            let template = led_by(leader);
            encoded.extend_from_slice(&encode_partitions(
                index..index.saturating_add(1),
                &template,
                self.version,
            )?);
        }
        Ok((end - first, encoded.freeze()))
    }
}

/// A partition with this leader, which is also all that holds it.
fn led_by((node, leader_epoch): (i32, i32)) -> MetadataResponsePartition {
    MetadataResponsePartition {
        leader_id: node,
        leader_epoch,
        replica_nodes: vec![node],
        isr_nodes: vec![node],
        ..MetadataResponsePartition::default()
    }
}

/// Partitions that are encoded before others get their turn.
const PARTITIONS_PER_TURN: i32 = 1024;
