//! Metadata, versions 0-13 (KIP-204 auto-creation, KIP-516 topic ids, KIP-1102 rebootstrap).
//!
//! There is one broker, so it leads and holds every partition. Authorised operations are reported
//! as not asked for, since there is no authoriser.

use std::collections::HashSet;

use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::{MetadataRequest, MetadataResponse};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_storage::Lsn;

use crate::call::{Call, Outcome, once_durable};
use crate::catalog::{self, Topic};
use crate::config::NODE_ID;
use crate::metadata_record::TopicOverrides;
use crate::partition::LEADER_EPOCH;

/// From this version on the name of a topic can be null.
const NULL_NAME_SINCE: i16 = 12;

pub(crate) fn handle(call: &Call<'_>, request: MetadataRequest) -> Outcome<MetadataResponse> {
    let mut created = None;
    let topics = match &request.topics {
        // Version 0 had no null: an empty list asks for all topics there, for none later.
        None => all_topics(call),
        Some(asked) if asked.is_empty() && call.version == 0 => all_topics(call),
        Some(asked) => {
            // Each is described once, so that an answer is bounded by the topics that exist.
            let mut seen = HashSet::new();
            let asked = asked.iter().filter(|topic| seen.insert((&topic.name, topic.topic_id)));
            let may_create = request.allow_auto_topic_creation;
            asked.map(|topic| find_or_create(call, topic, may_create, &mut created)).collect()
        }
    };
    let endpoint = call.endpoint();
    let response = MetadataResponse {
        brokers: vec![MetadataResponseBroker {
            node_id: NODE_ID,
            host: endpoint.host,
            port: endpoint.port,
            ..MetadataResponseBroker::default()
        }],
        cluster_id: Some(call.state.cluster_id.clone()),
        controller_id: NODE_ID,
        topics,
        ..MetadataResponse::default()
    };
    match created {
        None => Outcome::Now(response),
        Some(lsn) => once_durable(call, lsn, move |durable| match durable {
            true => response,
            false => storage_failed(response),
        }),
    }
}

fn all_topics(call: &Call<'_>) -> Vec<MetadataResponseTopic> {
    call.state.catalog.all().iter().map(|topic| describe(topic)).collect()
}

fn find_or_create(
    call: &Call<'_>,
    asked: &MetadataRequestTopic,
    may_create: bool,
    created: &mut Option<Lsn>,
) -> MetadataResponseTopic {
    let catalog = &call.state.catalog;
    let Some(name) = &asked.name else {
        return match catalog.by_id(asked.topic_id) {
            Some(topic) => describe(&topic),
            None => unknown_id(call, asked.topic_id),
        };
    };
    if let Some(topic) = catalog.by_name(name) {
        return describe(&topic);
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
            describe(&topic)
        }
        // Another connection created it in between.
        Err(refusal) if refusal.code == ErrorCode::TopicAlreadyExists => {
            match catalog.by_name(name) {
                Some(topic) => describe(&topic),
                None => unknown(name, ErrorCode::UnknownTopicOrPartition),
            }
        }
        Err(refusal) => unknown(name, refusal.code),
    }
}

fn describe(topic: &Topic) -> MetadataResponseTopic {
    let partitions = call_partitions(topic.partitions).map(|index| MetadataResponsePartition {
        partition_index: index,
        leader_id: NODE_ID,
        leader_epoch: LEADER_EPOCH,
        replica_nodes: vec![NODE_ID],
        isr_nodes: vec![NODE_ID],
        ..MetadataResponsePartition::default()
    });
    MetadataResponseTopic {
        name: Some(topic.name.to_string()),
        topic_id: topic.id,
        partitions: partitions.collect(),
        ..MetadataResponseTopic::default()
    }
}

fn call_partitions(count: u32) -> impl Iterator<Item = i32> {
    0..i32::try_from(count).expect("bounded by TOPIC_PARTITIONS_MAX")
}

fn unknown(name: &str, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: code.into(),
        name: Some(name.to_owned()),
        ..MetadataResponseTopic::default()
    }
}

fn unknown_id(call: &Call<'_>, topic_id: Uuid) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::UnknownTopicId.into(),
        name: if call.version >= NULL_NAME_SINCE { None } else { Some(String::new()) },
        topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn storage_failed(mut response: MetadataResponse) -> MetadataResponse {
    for topic in &mut response.topics {
        topic.error_code = ErrorCode::KafkaStorageError.into();
        topic.partitions.clear();
    }
    response
}
