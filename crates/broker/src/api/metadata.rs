//! Metadata, versions 0-13 (KIP-204 auto-creation, KIP-516 topic ids, KIP-1102 rebootstrap).
//!
//! There is one broker, so it leads and holds every partition. Authorised operations are reported
//! as not asked for, since there is no authoriser. An answer is made in turns, between which other
//! connections are served, and its partitions are the same bytes for all who ask.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use moldau_net::{Reply, Response};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::MetadataRequest;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition,
};
use moldau_protocol::metadata::{DescribedTopic, MetadataResponseEncoder};
use moldau_protocol::{EncodeError, ErrorCode, Message, Reader, Uuid};
use moldau_storage::Lsn;

use crate::call::{Call, Endpoint, Served, Turns};
use crate::catalog::{self, Topic};
use crate::config::NODE_ID;
use crate::metadata_record::TopicOverrides;
use crate::partition::LEADER_EPOCH;
use crate::state::State;

/// From this version on the name of a topic can be null.
const NULL_NAME_SINCE: i16 = 12;

pub(crate) fn serve(call: &Call<'_>, header: &RequestHeader<'_>, body: &[u8]) -> Served {
    let Ok(request) = MetadataRequest::decode(&mut Reader::new(body), call.version) else {
        return Reply::Close("malformed request");
    };
    let mut created = None;
    let mut answer = Answer {
        topics: topics(call, &request, &mut created),
        endpoint: call.endpoint(),
        version: call.version,
        correlation_id: header.correlation_id,
        state: Arc::clone(call.state),
    };
    Reply::Later(Box::pin(async move {
        if let Some(lsn) = created
            && answer.state.storage.wait_durable(lsn).await.is_err()
        {
            answer.topics.iter_mut().for_each(Found::fail);
        }
        // A connection without this answer would wait for ever; the line names the defect.
        answer.encode().await.unwrap_or_else(|error| {
            tracing::error!(version = answer.version, %error, "metadata cannot be answered");
            Response::none()
        })
    }))
}

/// What is known of a topic that the answer names.
enum Found {
    Topic(Arc<Topic>),
    Failed { code: ErrorCode, name: Option<String>, topic_id: Uuid },
}

fn topics(call: &Call<'_>, request: &MetadataRequest, created: &mut Option<Lsn>) -> Vec<Found> {
    let all = || call.state.catalog.all().into_iter().map(Found::Topic).collect();
    match &request.topics {
        // Version 0 had no null: an empty list asks for all topics there, for none later.
        None => all(),
        Some(asked) if asked.is_empty() && call.version == 0 => all(),
        Some(asked) => {
            // Each is described once, so that an answer is bounded by the topics that exist.
            let mut seen = HashSet::new();
            let asked = asked.iter().filter(|topic| seen.insert((&topic.name, topic.topic_id)));
            let may_create = request.allow_auto_topic_creation;
            asked.map(|topic| find_or_create(call, topic, may_create, created)).collect()
        }
    }
}

fn find_or_create(
    call: &Call<'_>,
    asked: &MetadataRequestTopic,
    may_create: bool,
    created: &mut Option<Lsn>,
) -> Found {
    let catalog = &call.state.catalog;
    let Some(name) = &asked.name else {
        return match catalog.by_id(asked.topic_id) {
            Some(topic) => Found::Topic(topic),
            None => unknown_id(call, asked.topic_id),
        };
    };
    if let Some(topic) = catalog.by_name(name) {
        return Found::Topic(topic);
    }
    if let Err(refusal) = catalog::check_name(name) {
        return unknown(name, refusal.code);
    }
    if !(may_create && call.state.config.auto_create_topics) {
        return unknown(name, ErrorCode::UnknownTopicOrPartition);
    }
    let partitions = call.state.config.partitions_default;
    match catalog.create(&call.state.storage, name, partitions, TopicOverrides::new()) {
        Ok((topic, lsn)) => {
            *created = Some(lsn);
            Found::Topic(topic)
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

fn unknown(name: &str, code: ErrorCode) -> Found {
    Found::Failed { code, name: Some(name.to_owned()), topic_id: Uuid::ZERO }
}

fn unknown_id(call: &Call<'_>, topic_id: Uuid) -> Found {
    let name = if call.version >= NULL_NAME_SINCE { None } else { Some(String::new()) };
    Found::Failed { code: ErrorCode::UnknownTopicId, name, topic_id }
}

impl Found {
    /// The journal failed: what was created is not there, nor can the rest be relied upon.
    fn fail(&mut self) {
        if let Self::Topic(topic) = self {
            let (name, topic_id) = (Some(topic.name.to_string()), topic.id);
            *self = Self::Failed { code: ErrorCode::KafkaStorageError, name, topic_id };
        }
    }
}

/// An answer on its way.
struct Answer {
    topics: Vec<Found>,
    endpoint: Endpoint,
    version: i16,
    correlation_id: i32,
    state: Arc<State>,
}

impl Answer {
    async fn encode(&self) -> Result<Response, EncodeError> {
        let template = MetadataResponsePartition {
            leader_id: NODE_ID,
            leader_epoch: LEADER_EPOCH,
            replica_nodes: vec![NODE_ID],
            isr_nodes: vec![NODE_ID],
            ..MetadataResponsePartition::default()
        };
        let mut turns = Turns::default();
        let mut topics = Vec::with_capacity(self.topics.len());
        for found in &self.topics {
            topics.push(match found {
                Found::Topic(topic) => self.describe(topic, &template, &mut turns).await?,
                Found::Failed { code, name, topic_id } => DescribedTopic {
                    error_code: i16::from(*code),
                    name: name.clone(),
                    topic_id: *topic_id,
                    ..DescribedTopic::default()
                },
            });
            turns.step(1).await;
        }
        let response = MetadataResponseEncoder {
            brokers: vec![MetadataResponseBroker {
                node_id: NODE_ID,
                host: self.endpoint.host.clone(),
                port: self.endpoint.port,
                ..MetadataResponseBroker::default()
            }],
            cluster_id: Some(self.state.cluster_id.clone()),
            controller_id: NODE_ID,
            topics,
        };
        let mut segments = response.encode(self.version, self.correlation_id)?.into_iter();
        Ok(Response { head: segments.next().unwrap_or_default(), rest: segments.collect() })
    }

    async fn describe(
        &self,
        topic: &Topic,
        template: &MetadataResponsePartition,
        turns: &mut Turns,
    ) -> Result<DescribedTopic, EncodeError> {
        let runs = &self.state.partition_runs;
        let count = topic.partitions_end();
        let mut partitions: Vec<Bytes> = Vec::new();
        let mut first = 0;
        while first < count {
            let (taken, bytes) = runs.next(template, first, count, self.version)?;
            first += taken;
            partitions.push(bytes);
            turns.step(usize::try_from(taken).unwrap_or(usize::MAX)).await;
        }
        Ok(DescribedTopic {
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            partitions_count: usize::try_from(count).unwrap_or_default(),
            partitions,
            ..DescribedTopic::default()
        })
    }
}
