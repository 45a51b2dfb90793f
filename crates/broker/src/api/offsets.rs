//! OffsetCommit 2-10, OffsetFetch 1-10, OffsetDelete 0.
//!
//! KIP-320 leader epochs, KIP-447 stable offsets (what an open transaction is to commit is refused
//! to those who ask for them), KIP-848 member epochs, KIP-709 several
//! groups at once, KIP-516 topic ids in version 10.

use std::collections::HashSet;

use moldau_coordinator::transactions::Transactions;
use moldau_coordinator::{
    self as coordinator, FetchedOffset, PartitionCommit, Reply, TopicCommit, TopicResult,
};
use moldau_protocol::messages::offset_commit_request::OffsetCommitRequestTopic;
use moldau_protocol::messages::offset_commit_response::{
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use moldau_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use moldau_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetDeleteResponse,
    OffsetFetchRequest, OffsetFetchResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::api::membership::failure;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, durable_within};
use crate::storage::Storage;

/// From this version on topics are named by id.
const TOPIC_IDS_SINCE: i16 = 10;

/// From this version on members of the consumer protocol are known by their epoch (KIP-848).
const MEMBER_EPOCHS_SINCE: i16 = 9;

/// From this version on OffsetFetch answers with an error for the whole group.
const GROUP_ERRORS_SINCE: i16 = 2;

/// Kafka's offset where there is none.
const NO_OFFSET: i64 = -1;

/// From this version on OffsetFetch asks for several groups.
const FETCH_BATCHED_SINCE: i16 = 8;

pub(crate) fn commit(
    call: &Call<'_>,
    request: OffsetCommitRequest,
) -> Outcome<OffsetCommitResponse> {
    if !call.rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        let code = ErrorCode::GroupAuthorizationFailed;
        let topics = request.topics.iter().map(|topic| commit_answer(topic, code)).collect();
        return Outcome::Now(OffsetCommitResponse { topics, ..OffsetCommitResponse::default() });
    }
    let mut known = Vec::new();
    let mut answers = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        match commit_name(call, &topic) {
            Ok(name) => {
                answers.push(commit_answer(&topic, ErrorCode::None));
                known.push((answers.len() - 1, name, topic));
            }
            Err(code) => answers.push(commit_answer(&topic, code)),
        }
    }
    let places: Vec<usize> = known.iter().map(|(place, ..)| *place).collect();
    let commit = coordinator::OffsetCommitRequest {
        group_id: request.group_id,
        generation: request.generation_id_or_member_epoch,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        retention_ms: Some(request.retention_time_ms).filter(|ms| *ms >= 0),
        knows_member_epochs: call.version >= MEMBER_EPOCHS_SINCE,
        topics: known.into_iter().map(|(_, name, topic)| wanted(call, name, topic)).collect(),
    };
    let state = call.state;
    let reply = state
        .groups
        .submit(&state.storage, |groups, now, token| groups.offset_commit(now, &commit, token));
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::OffsetCommit(results)) => {
                for (place, result) in places.into_iter().zip(results) {
                    if let Some(answer) = answers.get_mut(place) {
                        tell(answer, &result);
                    }
                }
            }
            other => {
                let code = i16::from(failure(other));
                let partitions = answers.iter_mut().flat_map(|topic| &mut topic.partitions);
                partitions.for_each(|partition| partition.error_code = code);
            }
        }
        OffsetCommitResponse { topics: answers, ..OffsetCommitResponse::default() }
    }))
}

fn commit_name(call: &Call<'_>, topic: &OffsetCommitRequestTopic) -> Result<String, ErrorCode> {
    let name = if call.version >= TOPIC_IDS_SINCE {
        let found = call.state.catalog.by_id(topic.topic_id);
        found.map(|it| it.name.to_string()).ok_or(ErrorCode::UnknownTopicId)?
    } else {
        topic.name.clone()
    };
    if !call.rights.allow(ResourceType::Topic, Operation::Read, &name) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    match call.state.catalog.by_name(&name) {
        Some(_) => Ok(name),
        None => Err(ErrorCode::UnknownTopicOrPartition),
    }
}

fn commit_answer(topic: &OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic {
    let partitions = topic.partitions.iter().map(|partition| OffsetCommitResponsePartition {
        partition_index: partition.partition_index,
        error_code: code.into(),
        ..OffsetCommitResponsePartition::default()
    });
    OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        partitions: partitions.collect(),
        ..OffsetCommitResponseTopic::default()
    }
}

fn wanted(call: &Call<'_>, name: String, topic: OffsetCommitRequestTopic) -> TopicCommit {
    let found = call.state.catalog.by_name(&name);
    let exists = |index: i32| found.as_ref().is_some_and(|topic| topic.has(index));
    let partitions = topic.partitions.into_iter().filter(|it| exists(it.partition_index));
    let partitions = partitions.map(|partition| PartitionCommit {
        partition: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.unwrap_or_default(),
    });
    let topic_id = found.as_ref().map_or(Uuid::ZERO, |topic| topic.id);
    TopicCommit { topic: name, topic_id, partitions: partitions.collect() }
}

/// Copies the outcome of each partition; one that was not handed on does not exist.
fn tell(answer: &mut OffsetCommitResponseTopic, result: &TopicResult) {
    let mut outcomes = result.partitions.iter().peekable();
    for partition in &mut answer.partitions {
        // The outcomes come in the order of the request.
        let outcome = outcomes.next_if(|(index, _)| *index == partition.partition_index);
        let code = outcome.map_or(ErrorCode::UnknownTopicOrPartition, |(_, code)| *code);
        partition.error_code = code.into();
    }
}

pub(crate) fn fetch(call: &Call<'_>, request: OffsetFetchRequest) -> Outcome<OffsetFetchResponse> {
    let response = if request.require_stable {
        // No transaction ends between the two looks, at what it holds and at what the group has.
        call.state.transactions.view(|transactions| {
            fetched(&Asked { call, transactions: Some(transactions) }, request)
        })
    } else {
        fetched(&Asked { call, transactions: None }, request)
    };
    let (storage, version) = (call.state.storage.clone(), call.version);
    // What was just read may be part of a commit that is on its way to the disk.
    let Ok(written) = call.state.groups.written(&storage) else {
        return Outcome::Now(refuse(response, version, &storage));
    };
    // A coordinator that was paused may have read what is out of date.
    let confirmed = storage.confirm();
    if written.is_none() && confirmed.is_none() {
        return Outcome::Now(response);
    }
    Outcome::Later(Box::pin(async move {
        if let Some(lsn) = written
            && durable_within(DURABLE_WITHIN, &storage, lsn).await.is_err()
        {
            return refuse(response, version, &storage);
        }
        let is_certain = match confirmed {
            Some(confirmed) => confirmed.await,
            None => true,
        };
        if is_certain { response } else { refuse(response, version, &storage) }
    }))
}

/// A call that asks for offsets.
struct Asked<'a> {
    call: &'a Call<'a>,
    /// Those whose pending offsets are not to be passed over.
    transactions: Option<&'a Transactions>,
}

fn fetched(call: &Asked<'_>, request: OffsetFetchRequest) -> OffsetFetchResponse {
    if call.call.version >= FETCH_BATCHED_SINCE {
        let mut seen = HashSet::new();
        let groups =
            request.groups.into_iter().map(|group| match seen.insert(group.group_id.clone()) {
                true => fetch_group(call, group),
                false => group_refused(group.group_id, ErrorCode::InvalidRequest),
            });
        OffsetFetchResponse { groups: groups.collect(), ..OffsetFetchResponse::default() }
    } else {
        fetch_older(call, request)
    }
}

/// Takes back what was read, since it is not certain.
fn refuse(
    mut response: OffsetFetchResponse,
    version: i16,
    storage: &Storage,
) -> OffsetFetchResponse {
    let code = match storage.coordinate() {
        Ok(()) => ErrorCode::CoordinatorNotAvailable,
        Err(refusal) => refusal.code,
    };
    let code = i16::from(code);
    for group in response.groups.iter_mut().filter(|group| group.error_code == 0) {
        group.error_code = code;
        group.topics.clear();
    }
    if version < GROUP_ERRORS_SINCE {
        let partitions = response.topics.iter_mut().flat_map(|topic| &mut topic.partitions);
        for partition in partitions.filter(|partition| partition.error_code == 0) {
            partition.error_code = code;
            partition.committed_offset = NO_OFFSET;
            partition.metadata = Some(String::new());
        }
    } else if version < FETCH_BATCHED_SINCE && response.error_code == 0 {
        response.error_code = code;
        response.topics.clear();
    }
    response
}

/// The older form is the newer one with a single group.
fn fetch_older(call: &Asked<'_>, request: OffsetFetchRequest) -> OffsetFetchResponse {
    let topics = request.topics.map(|topics| {
        let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            partition_indexes: topic.partition_indexes,
            ..OffsetFetchRequestTopics::default()
        });
        topics.collect()
    });
    let asked = OffsetFetchRequestGroup {
        group_id: request.group_id,
        topics,
        member_epoch: -1,
        ..OffsetFetchRequestGroup::default()
    };
    // The first version has no place for an error of the whole.
    let topics_by_name = asked.topics.clone().filter(|_| call.call.version < GROUP_ERRORS_SINCE);
    let mut found = fetch_group(call, asked);
    if found.error_code != 0
        && let Some(topics) = topics_by_name
    {
        let code = std::mem::take(&mut found.error_code);
        found.topics = topics.into_iter().map(|topic| fetch_refused(topic, code)).collect();
    }
    OffsetFetchResponse {
        topics: found.topics.into_iter().map(older_topic).collect(),
        error_code: found.error_code,
        ..OffsetFetchResponse::default()
    }
}

fn fetch_group(call: &Asked<'_>, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    if !call.call.rights.allow(ResourceType::Group, Operation::Describe, &asked.group_id) {
        return group_refused(asked.group_id, ErrorCode::GroupAuthorizationFailed);
    }
    let member_id = asked.member_id.as_deref();
    let checked = call
        .call
        .state
        .groups
        .view(|groups| groups.check_fetch(&asked.group_id, member_id, asked.member_epoch));
    if let Err(code) = checked {
        return group_refused(asked.group_id, code);
    }
    let topics = match asked.topics {
        Some(topics) => fetch_topics(call, &asked.group_id, topics),
        None => {
            let groups = &call.call.state.groups;
            let all = groups.view(|groups| groups.offset_fetch(&asked.group_id, None));
            let rights = &call.call.rights;
            let all = all
                .into_iter()
                .filter(|(name, _)| rights.show(ResourceType::Topic, Operation::Describe, name));
            all.map(|(name, offsets)| fetched_topic(call, &asked.group_id, name, offsets)).collect()
        }
    };
    OffsetFetchResponseGroup {
        group_id: asked.group_id,
        topics,
        ..OffsetFetchResponseGroup::default()
    }
}

fn group_refused(group_id: String, code: ErrorCode) -> OffsetFetchResponseGroup {
    let error_code = code.into();
    OffsetFetchResponseGroup { group_id, error_code, ..OffsetFetchResponseGroup::default() }
}

/// Each partition is in the answer once. This bounds the answer by the committed offsets: the
/// metadata of a commit is a thousand times as long as the index of its partition.
fn fetch_topics(
    call: &Asked<'_>,
    group_id: &str,
    topics: Vec<OffsetFetchRequestTopics>,
) -> Vec<OffsetFetchResponseTopics> {
    let mut seen = HashSet::new();
    let topics = topics.into_iter().map(|mut topic| {
        if !seen.insert((topic.name.clone(), topic.topic_id)) {
            return fetch_refused(topic, ErrorCode::InvalidRequest.into());
        }
        let mut partitions = HashSet::new();
        topic.partition_indexes.retain(|index| partitions.insert(*index));
        fetch_topic(call, group_id, topic)
    });
    topics.collect()
}

fn fetch_topic(
    call: &Asked<'_>,
    group_id: &str,
    asked: OffsetFetchRequestTopics,
) -> OffsetFetchResponseTopics {
    let name = match call.call.version {
        TOPIC_IDS_SINCE.. => {
            let found = call.call.state.catalog.by_id(asked.topic_id);
            let Some(topic) = found else {
                return fetch_refused(asked, ErrorCode::UnknownTopicId.into());
            };
            topic.name.to_string()
        }
        _ => asked.name.clone(),
    };
    if !call.call.rights.allow(ResourceType::Topic, Operation::Describe, &name) {
        return fetch_refused(asked, ErrorCode::TopicAuthorizationFailed.into());
    }
    let wanted = [(name, asked.partition_indexes)];
    let found = call.call.state.groups.view(|groups| groups.offset_fetch(group_id, Some(&wanted)));
    let [(name, _)] = wanted;
    let offsets = found.into_iter().flat_map(|(_, offsets)| offsets).collect();
    fetched_topic(call, group_id, name, offsets)
}

fn fetched_topic(
    call: &Asked<'_>,
    group_id: &str,
    name: String,
    offsets: Vec<FetchedOffset>,
) -> OffsetFetchResponseTopics {
    let topic_id = call.call.state.catalog.by_name(&name).map_or(Uuid::ZERO, |topic| topic.id);
    let is_pending = |partition: i32| {
        let pending = |known: &Transactions| known.has_pending_offset(group_id, &name, partition);
        call.transactions.is_some_and(pending)
    };
    let offsets = offsets.into_iter().map(|offset| match is_pending(offset.partition) {
        true => (not_committed(offset.partition), ErrorCode::UnstableOffsetCommit),
        false => (offset, ErrorCode::None),
    });
    let partitions = offsets.map(|(offset, code)| OffsetFetchResponsePartitions {
        error_code: code.into(),
        partition_index: offset.partition,
        committed_offset: offset.offset,
        committed_leader_epoch: offset.leader_epoch,
        metadata: Some(offset.metadata),
        ..OffsetFetchResponsePartitions::default()
    });
    let partitions = partitions.collect();
    OffsetFetchResponseTopics {
        partitions,
        name: if call.call.version >= TOPIC_IDS_SINCE { String::new() } else { name },
        topic_id: if call.call.version >= TOPIC_IDS_SINCE { topic_id } else { Uuid::ZERO },
        ..OffsetFetchResponseTopics::default()
    }
}

fn not_committed(partition: i32) -> FetchedOffset {
    FetchedOffset { partition, offset: NO_OFFSET, leader_epoch: -1, metadata: String::new() }
}

fn fetch_refused(asked: OffsetFetchRequestTopics, error_code: i16) -> OffsetFetchResponseTopics {
    let partitions =
        asked.partition_indexes.into_iter().map(|index| OffsetFetchResponsePartitions {
            partition_index: index,
            committed_offset: NO_OFFSET,
            metadata: Some(String::new()),
            error_code,
            ..OffsetFetchResponsePartitions::default()
        });
    OffsetFetchResponseTopics {
        name: asked.name,
        topic_id: asked.topic_id,
        partitions: partitions.collect(),
        ..OffsetFetchResponseTopics::default()
    }
}

fn older_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.into_iter().map(|partition| OffsetFetchResponsePartition {
        partition_index: partition.partition_index,
        committed_offset: partition.committed_offset,
        committed_leader_epoch: partition.committed_leader_epoch,
        metadata: partition.metadata,
        error_code: partition.error_code,
        ..OffsetFetchResponsePartition::default()
    });
    OffsetFetchResponseTopic {
        name: topic.name,
        partitions: partitions.collect(),
        ..OffsetFetchResponseTopic::default()
    }
}

pub(crate) fn delete(
    call: &Call<'_>,
    request: OffsetDeleteRequest,
) -> Outcome<OffsetDeleteResponse> {
    if !call.rights.allow(ResourceType::Group, Operation::Delete, &request.group_id) {
        return Outcome::Now(OffsetDeleteResponse {
            error_code: ErrorCode::GroupAuthorizationFailed.into(),
            ..OffsetDeleteResponse::default()
        });
    }
    if request.group_id.is_empty() {
        return Outcome::Now(OffsetDeleteResponse {
            error_code: ErrorCode::InvalidGroupId.into(),
            ..OffsetDeleteResponse::default()
        });
    }
    let (mut topics, mut refused) = (Vec::new(), Vec::new());
    for topic in request.topics {
        let indexes = topic.partitions.iter().map(|it| it.partition_index);
        let (known, absent) = deletable(call, &topic.name, indexes);
        refused.extend(absent.map(|(partitions, code)| TopicResult {
            topic: topic.name.clone(),
            partitions: partitions.into_iter().map(|index| (index, code)).collect(),
        }));
        if !known.is_empty() {
            topics.push((topic.name, known));
        }
    }
    let delete = coordinator::OffsetDeleteRequest { group_id: request.group_id, topics };
    let state = call.state;
    let reply = state
        .groups
        .submit(&state.storage, |groups, now, token| groups.offset_delete(now, &delete, token));
    Outcome::Later(Box::pin(async move {
        let results = match reply.await {
            Ok(Reply::OffsetDelete(results)) => results,
            other => Err(failure(other)),
        };
        match results {
            Ok(topics) => OffsetDeleteResponse {
                topics: merged(topics, refused).into_iter().map(deleted).collect(),
                ..OffsetDeleteResponse::default()
            },
            Err(code) => {
                OffsetDeleteResponse { error_code: code.into(), ..OffsetDeleteResponse::default() }
            }
        }
    }))
}

/// The partitions of a deletion that exist and may be read, and the others with the reason.
fn deletable(
    call: &Call<'_>,
    topic: &str,
    partitions: impl Iterator<Item = i32>,
) -> (Vec<i32>, Option<(Vec<i32>, ErrorCode)>) {
    if !call.rights.allow(ResourceType::Topic, Operation::Read, topic) {
        return (Vec::new(), Some((partitions.collect(), ErrorCode::TopicAuthorizationFailed)));
    }
    let found = call.state.catalog.by_name(topic);
    let exists = |index: &i32| found.as_ref().is_some_and(|topic| topic.has(*index));
    let (known, absent): (Vec<_>, Vec<_>) = partitions.partition(exists);
    let absent = Some((absent, ErrorCode::UnknownTopicOrPartition));
    (known, absent.filter(|(partitions, _)| !partitions.is_empty()))
}

/// What was decided about partitions before and by the coordinator, each topic once.
fn merged(mut topics: Vec<TopicResult>, refused: Vec<TopicResult>) -> Vec<TopicResult> {
    for TopicResult { topic, partitions } in refused {
        match topics.iter_mut().find(|known| known.topic == topic) {
            Some(known) => known.partitions.extend(partitions),
            None => topics.push(TopicResult { topic, partitions }),
        }
    }
    topics
}

fn deleted(result: TopicResult) -> OffsetDeleteResponseTopic {
    let partitions = result.partitions.into_iter().map(|(index, code)| {
        OffsetDeleteResponsePartition { partition_index: index, error_code: code.into() }
    });
    OffsetDeleteResponseTopic { name: result.topic, partitions: partitions.collect() }
}
