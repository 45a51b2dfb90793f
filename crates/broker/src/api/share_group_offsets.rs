//! DescribeShareGroupOffsets 0-1, AlterShareGroupOffsets 0, DeleteShareGroupOffsets 0 (KIP-932,
//! KIP-1226 lag): where share groups are.
//!
//! An alteration makes the group if there is none of its name.
//!
//! Differs from Kafka: only partitions that a group has read are listed.

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_coordinator::GroupState;
use moldau_coordinator::share_partitions::{ShareKey, SharePartition};
use moldau_protocol::messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponsePartition, AlterShareGroupOffsetsResponseTopic,
};
use moldau_protocol::messages::delete_share_group_offsets_response as delete_response;
use moldau_protocol::messages::describe_share_group_offsets_request as describe_request;
use moldau_protocol::messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use moldau_protocol::messages::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse, DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse, DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, Turns, once_durable};
use crate::catalog::{self, Topic};
use crate::config::{DURABLE_WITHIN, LEADER_EPOCH};
use crate::error::{Refusal, denied, read_code};
use crate::fetch_session::TopicRef;
use crate::logs::Lsn;
use crate::partition::{self, Partition};
use crate::state::State;

/// An offset, or a lag, that is not known.
const UNKNOWN: i64 = -1;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeShareGroupOffsetsRequest,
) -> Outcome<DescribeShareGroupOffsetsResponse> {
    let groups = request.groups.into_iter().map(|group| describe_group(call, group));
    let mut groups: Vec<_> = groups.collect();
    let state = Arc::clone(call.state);
    Outcome::Later(Box::pin(async move {
        let mut turns = Turns::default();
        for group in &mut groups {
            for topic in &mut group.topics {
                for partition in &mut topic.partitions {
                    let id = (group.group_id.as_str(), topic.topic_id);
                    if partition.start_offset != UNKNOWN {
                        place(&state, id, partition).await;
                    }
                    turns.step(1).await;
                }
            }
        }
        DescribeShareGroupOffsetsResponse { groups, ..DescribeShareGroupOffsetsResponse::default() }
    }))
}

/// Says where a group is in a partition, and how far behind the end.
async fn place(
    state: &State,
    (group_id, topic_id): (&str, Uuid),
    described: &mut DescribeShareGroupOffsetsResponsePartition,
) {
    let index = described.partition_index;
    let end = match partition::by_ref(state, &TopicRef::Id(topic_id), index, -1) {
        Ok(Partition::Written(log)) => {
            let refreshed = log.refresh().await.map_err(|error| read_code(&error));
            refreshed.map(|()| log.high_watermark())
        }
        Ok(Partition::Unwritten { .. }) => Ok(0),
        Err(code) => Err(code),
    };
    let key = ShareKey { group_id: group_id.into(), topic_id, partition: index };
    let known = state
        .shares
        .view(|shares| shares.get(&key).map(|partition| (partition.start(), partition.done())));
    match (end, known) {
        (Ok(end), Some((start, done))) => {
            described.start_offset = start;
            described.lag = (end - start - done).max(0);
        }
        (Ok(_), None) => described.start_offset = UNKNOWN,
        (Err(code), _) => {
            described.start_offset = UNKNOWN;
            described.error_code = code.into();
        }
    }
}

fn describe_group(
    call: &Call<'_>,
    asked: describe_request::DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup {
    let group_id = asked.group_id;
    let refused = if !call.rights.allow(ResourceType::Group, Operation::Describe, &group_id) {
        Some(denied(ResourceType::Group))
    } else if group_id.is_empty() {
        Some(no_group())
    } else {
        call.state.storage.coordinate().err()
    };
    if let Some(refusal) = refused {
        return DescribeShareGroupOffsetsResponseGroup {
            group_id,
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..DescribeShareGroupOffsetsResponseGroup::default()
        };
    }
    let topics = match asked.topics {
        Some(topics) => {
            let described = topics
                .into_iter()
                .map(|topic| describe_topic(call, &group_id, topic.topic_name, topic.partitions));
            described.collect()
        }
        None => describe_all(call, &group_id),
    };
    DescribeShareGroupOffsetsResponseGroup {
        group_id,
        topics,
        ..DescribeShareGroupOffsetsResponseGroup::default()
    }
}

fn describe_all(call: &Call<'_>, group_id: &str) -> Vec<DescribeShareGroupOffsetsResponseTopic> {
    let mut known: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
    call.state.shares.view(|shares| {
        for (key, _) in shares.of_group(group_id) {
            known.entry(key.topic_id).or_default().push(key.partition);
        }
    });
    let shown = known.into_iter().filter_map(|(topic_id, partitions)| {
        let name = call.state.catalog.by_id(topic_id)?.name.to_string();
        let may = call.rights.show(ResourceType::Topic, Operation::Describe, &name);
        may.then(|| describe_topic(call, group_id, name, partitions))
    });
    shown.collect()
}

fn describe_topic(
    call: &Call<'_>,
    group_id: &str,
    topic_name: String,
    partitions: Vec<i32>,
) -> DescribeShareGroupOffsetsResponseTopic {
    let topic = visible(call, &topic_name, Operation::Describe);
    let described = partitions.into_iter().map(|partition_index| {
        let partition = DescribeShareGroupOffsetsResponsePartition {
            partition_index,
            start_offset: UNKNOWN,
            lag: UNKNOWN,
            ..DescribeShareGroupOffsetsResponsePartition::default()
        };
        match &topic {
            Ok(Some(topic)) => describe_partition(call, group_id, topic, partition),
            Ok(None) => partition,
            Err(refusal) => DescribeShareGroupOffsetsResponsePartition {
                error_code: refusal.code.into(),
                error_message: Some(refusal.message.clone()),
                ..partition
            },
        }
    });
    let partitions = described.collect();
    let topic_id = topic.ok().flatten().map_or(Uuid::ZERO, |topic| topic.id);
    DescribeShareGroupOffsetsResponseTopic {
        topic_name,
        topic_id,
        partitions,
        ..DescribeShareGroupOffsetsResponseTopic::default()
    }
}

fn describe_partition(
    call: &Call<'_>,
    group_id: &str,
    topic: &Topic,
    partition: DescribeShareGroupOffsetsResponsePartition,
) -> DescribeShareGroupOffsetsResponsePartition {
    let index = partition.partition_index;
    let key = ShareKey { group_id: group_id.into(), topic_id: topic.id, partition: index };
    let position = |known: &SharePartition| (known.start(), known.is_initial());
    let known = call.state.shares.view(|shares| shares.get(&key).map(position));
    // Until something is said of its records, a group has no offset to show.
    let Some((start_offset, false)) = known else { return partition };
    DescribeShareGroupOffsetsResponsePartition {
        start_offset,
        leader_epoch: LEADER_EPOCH,
        ..partition
    }
}

/// The topic of a name that the client may use so; `None` if there is none.
fn visible(
    call: &Call<'_>,
    name: &str,
    operation: Operation,
) -> Result<Option<Arc<Topic>>, Refusal> {
    match call.rights.allow(ResourceType::Topic, operation, name) {
        true => Ok(call.state.catalog.by_name(name)),
        false => Err(denied(ResourceType::Topic)),
    }
}

/// `INVALID_GROUP_ID` for a group without a name.
fn no_group() -> Refusal {
    Refusal::new(ErrorCode::InvalidGroupId, "the group has no id")
}

/// Whether the offsets of a group may be changed.
fn changeable(call: &Call<'_>, group_id: &str, operation: Operation) -> Result<(), Refusal> {
    if !call.rights.allow(ResourceType::Group, operation, group_id) {
        return Err(denied(ResourceType::Group));
    }
    if group_id.is_empty() {
        return Err(no_group());
    }
    call.state.storage.coordinate()?;
    let state = call.state.groups.view(|groups| groups.share_state(group_id));
    match state.map_err(|(code, message)| Refusal { code, message })? {
        Some(GroupState::Empty) => Ok(()),
        Some(_) => Err(Refusal::new(ErrorCode::NonEmptyGroup, "the group has members")),
        // An alteration makes the group.
        None if operation == Operation::Read => Ok(()),
        None => Err(Refusal::new(ErrorCode::GroupIdNotFound, "there is no such share group")),
    }
}

pub(crate) fn alter(
    call: &Call<'_>,
    request: AlterShareGroupOffsetsRequest,
) -> Outcome<AlterShareGroupOffsetsResponse> {
    if let Err(refusal) = changeable(call, &request.group_id, Operation::Read) {
        return Outcome::Now(AlterShareGroupOffsetsResponse {
            error_code: refusal.code_of_coordinator().into(),
            error_message: Some(refusal.message),
            ..AlterShareGroupOffsetsResponse::default()
        });
    }
    let mut last = None;
    let mut responses = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = visible(call, &asked.topic_name, Operation::Read);
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for partition in asked.partitions {
            let place = (partition.partition_index, partition.start_offset);
            let altered = topic.as_ref().map_err(Refusal::clone).and_then(|topic| {
                let unknown = || catalog::unknown_name(&asked.topic_name);
                let topic = topic.as_ref().filter(|topic| topic.has(place.0));
                alter_one(call, &request.group_id, topic.ok_or_else(unknown)?, place)
            });
            let (code, message) = match altered {
                Ok(lsn) => {
                    last = last.max(Some(lsn));
                    (ErrorCode::None, None)
                }
                Err(refusal) => (refusal.code, Some(refusal.message)),
            };
            partitions.push(AlterShareGroupOffsetsResponsePartition {
                partition_index: place.0,
                error_code: code.into(),
                error_message: message,
                ..AlterShareGroupOffsetsResponsePartition::default()
            });
        }
        responses.push(AlterShareGroupOffsetsResponseTopic {
            topic_id: topic.ok().flatten().map_or(Uuid::ZERO, |topic| topic.id),
            topic_name: asked.topic_name,
            partitions,
            ..AlterShareGroupOffsetsResponseTopic::default()
        });
    }
    let response =
        AlterShareGroupOffsetsResponse { responses, ..AlterShareGroupOffsetsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => AlterShareGroupOffsetsResponse {
            error_code: refusal.code_of_coordinator().into(),
            error_message: Some(refusal.message),
            ..AlterShareGroupOffsetsResponse::default()
        },
    })
}

fn alter_one(
    call: &Call<'_>,
    group_id: &str,
    topic: &Topic,
    (partition, start_offset): (i32, i64),
) -> Result<Lsn, Refusal> {
    let key = ShareKey { group_id: group_id.into(), topic_id: topic.id, partition };
    call.state.groups.create_share(&call.state.storage, group_id)?;
    call.state.shares.alter(&call.state.storage, key, start_offset)
}

pub(crate) fn delete(
    call: &Call<'_>,
    request: DeleteShareGroupOffsetsRequest,
) -> Outcome<DeleteShareGroupOffsetsResponse> {
    if let Err(refusal) = changeable(call, &request.group_id, Operation::Delete) {
        return Outcome::Now(DeleteShareGroupOffsetsResponse {
            error_code: refusal.code_of_coordinator().into(),
            error_message: Some(refusal.message),
            ..DeleteShareGroupOffsetsResponse::default()
        });
    }
    let mut last = None;
    let mut responses = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = visible(call, &asked.topic_name, Operation::Read);
        let (state, group_id) = (call.state, &request.group_id);
        let deleted = topic.clone().and_then(|topic| {
            let unknown = || catalog::unknown_name(&asked.topic_name);
            let topic_id = topic.ok_or_else(unknown)?.id;
            let removed = state.shares.remove(&state.storage, group_id, topic_id)?;
            removed.ok_or_else(|| {
                let message = "the group has no offsets of the topic";
                Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
            })
        });
        let (code, message) = match deleted {
            Ok(lsn) => {
                last = last.max(Some(lsn));
                (ErrorCode::None, None)
            }
            Err(refusal) => (refusal.code, Some(refusal.message)),
        };
        responses.push(delete_response::DeleteShareGroupOffsetsResponseTopic {
            topic_id: match (code, topic) {
                (ErrorCode::None, Ok(Some(topic))) => topic.id,
                _ => Uuid::ZERO,
            },
            topic_name: asked.topic_name,
            error_code: code.into(),
            error_message: message,
            ..delete_response::DeleteShareGroupOffsetsResponseTopic::default()
        });
    }
    let response =
        DeleteShareGroupOffsetsResponse { responses, ..DeleteShareGroupOffsetsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => DeleteShareGroupOffsetsResponse {
            error_code: refusal.code_of_coordinator().into(),
            error_message: Some(refusal.message),
            ..DeleteShareGroupOffsetsResponse::default()
        },
    })
}
