//! StreamsGroupHeartbeat 0-1, StreamsGroupDescribe 0-1: groups of Streams applications (KIP-1071).
//!
//! As in Kafka 4.4 regular expressions for source topics are refused, and there are no warm-up
//! tasks. Differs from Kafka in that no plugin stores descriptions of topologies (KIP-1331): none
//! is asked for, and none is shown. Internal topics are created in one frame. The rules are in
//! `moldau-coordinator`.

use std::collections::BTreeMap;
use std::sync::Arc;

use moldau_coordinator::{
    EndpointPartitions, Reply, StreamsHeartbeat, StreamsHeartbeatReply, StreamsStatus,
    StreamsStatusCode, TaskIds, TaskOffset, UserEndpoint,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::streams_group_heartbeat_request as asked;
use moldau_protocol::messages::streams_group_heartbeat_response::{
    Endpoint, EndpointToPartitions, Status, TaskIds as AssignedTasks, TopicPartition,
};
use moldau_protocol::messages::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};

use crate::api::create_topics;
use crate::api::membership::failure;
use crate::api::streams_topologies;
use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, durable_within};
use crate::error::Refusal;
use crate::rights::Rights;
use crate::state::State;
use crate::visible_topics::VisibleTopics;

/// From this version on clients understand that tags are missing.
const MISSING_TAGS_SINCE: i16 = 1;

pub(crate) fn heartbeat(
    call: &Call<'_>,
    request: StreamsGroupHeartbeatRequest,
) -> Outcome<StreamsGroupHeartbeatResponse> {
    let refused = |code: ErrorCode, message: Option<String>| {
        Outcome::Now(StreamsGroupHeartbeatResponse {
            error_code: code.into(),
            error_message: message,
            ..StreamsGroupHeartbeatResponse::default()
        })
    };
    let rights = &call.rights;
    if !rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        return refused(ErrorCode::GroupAuthorizationFailed, None);
    }
    if let Err((code, message)) = streams_topologies::check_names(rights, &request) {
        return refused(code, message);
    }
    let heartbeat = match taken(call, request) {
        Ok(heartbeat) => heartbeat,
        Err(refusal) => return refused(refusal.code, Some(refusal.message)),
    };
    let state = call.state;
    // The topics first, as everyone who holds both does it.
    let reply = state.catalog.view(|topics| {
        let topics = VisibleTopics { topics, rights };
        state.groups.submit(&state.storage, |groups, now, token| {
            groups.streams_heartbeat(now, &heartbeat, &topics, token)
        })
    });
    let (state, rights) = (Arc::clone(state), rights.clone());
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::StreamsHeartbeat(mut reply)) => {
                create_missing(&state, &rights, &mut reply).await;
                answered(*reply)
            }
            other => StreamsGroupHeartbeatResponse {
                error_code: failure(other).into(),
                ..StreamsGroupHeartbeatResponse::default()
            },
        }
    }))
}

fn taken(
    call: &Call<'_>,
    request: StreamsGroupHeartbeatRequest,
) -> Result<StreamsHeartbeat, Refusal> {
    let endpoint = request.user_endpoint;
    Ok(StreamsHeartbeat {
        topology: request.topology.map(streams_topologies::taken).transpose()?,
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        endpoint_epoch: request.endpoint_information_epoch,
        instance_id: request.instance_id,
        rack_id: request.rack_id,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        active: request.active_tasks.map(tasks),
        standby: request.standby_tasks.map(tasks),
        warmup: request.warmup_tasks.map(tasks),
        process_id: request.process_id,
        endpoint: endpoint.map(|it| UserEndpoint { host: it.host, port: it.port }),
        tags: request.client_tags.map(|tags| {
            let tags = tags.into_iter().map(|tag| (tag.key, tag.value));
            tags.collect::<BTreeMap<_, _>>()
        }),
        task_offsets: request.task_offsets.map(offsets),
        task_end_offsets: request.task_end_offsets.map(offsets),
        shuts_down: request.shutdown_application,
        knows_missing_tags: call.version >= MISSING_TAGS_SINCE,
        client_id: call.client_id.to_owned(),
        client_host: format!("/{}", call.peer.ip().to_canonical()),
    })
}

fn tasks(parts: Vec<asked::TaskIds>) -> TaskIds {
    let mut tasks = TaskIds::new();
    for part in parts {
        tasks.entry(part.subtopology_id).or_default().extend(part.partitions);
    }
    tasks
}

fn offsets(offsets: Vec<asked::TaskOffset>) -> Vec<TaskOffset> {
    let offsets = offsets.into_iter().map(|it| TaskOffset {
        subtopology: it.subtopology_id,
        partition: it.partition,
        offset: it.offset,
    });
    offsets.collect()
}

/// Creates the internal topics that are missing; members see them with a later heartbeat. Says in
/// the answer why it could not.
async fn create_missing(state: &State, rights: &Rights, reply: &mut StreamsHeartbeatReply) {
    let missing = std::mem::take(&mut reply.missing_topics);
    if missing.is_empty() {
        return;
    }
    let on_cluster = rights.show(ResourceType::Cluster, Operation::Create, CLUSTER_NAME);
    let may_create =
        |name: &str| on_cluster || rights.allow(ResourceType::Topic, Operation::Create, name);
    let names = missing.iter().map(|topic| topic.name.as_str());
    let denied: Vec<&str> = names.filter(|name| !may_create(name)).collect();
    let problem = if denied.is_empty() {
        let created = match create_topics::create_internal(state, &missing) {
            Ok(Some(lsn)) => durable_within(DURABLE_WITHIN, &state.storage, lsn).await,
            Ok(None) => Ok(()),
            Err(refusal) => Err(refusal),
        };
        created.err().map(|refusal| format!("they cannot be created: {}", refusal.message))
    } else {
        Some(format!("the client may not create {}", denied.join(", ")))
    };
    let Some(problem) = problem else { return };
    let is_missing =
        |status: &&mut StreamsStatus| status.code == StreamsStatusCode::MissingInternalTopics;
    if let Some(status) = reply.statuses.iter_mut().find(is_missing) {
        status.detail = format!("{}; {problem}", status.detail);
    }
}

fn answered(reply: StreamsHeartbeatReply) -> StreamsGroupHeartbeatResponse {
    let statuses = reply.statuses.into_iter().map(|status| Status {
        status_code: status.code.number(),
        status_detail: status.detail,
        ..Status::default()
    });
    let (active, standby, warmup) = match reply.assignment {
        Some(tasks) => {
            (Some(assigned(tasks.active)), Some(assigned(tasks.standby)), Some(Vec::new()))
        }
        None => (None, None, None),
    };
    let endpoints = reply.endpoints.map(|endpoints| endpoints.into_iter().map(endpoint).collect());
    StreamsGroupHeartbeatResponse {
        error_code: reply.error.into(),
        error_message: reply.message,
        member_id: reply.member_id,
        member_epoch: reply.member_epoch,
        heartbeat_interval_ms: reply.heartbeat_interval_ms,
        task_offset_interval_ms: reply.task_offset_interval_ms,
        acceptable_recovery_lag: reply.acceptable_recovery_lag,
        status: Some(statuses.collect()),
        active_tasks: active,
        standby_tasks: standby,
        warmup_tasks: warmup,
        endpoint_information_epoch: reply.endpoint_epoch,
        partitions_by_user_endpoint: endpoints,
        ..StreamsGroupHeartbeatResponse::default()
    }
}

fn assigned(tasks: TaskIds) -> Vec<AssignedTasks> {
    let tasks = tasks.into_iter().map(|(subtopology_id, partitions)| AssignedTasks {
        subtopology_id,
        partitions: partitions.into_iter().collect(),
        ..AssignedTasks::default()
    });
    tasks.collect()
}

fn endpoint(of: EndpointPartitions) -> EndpointToPartitions {
    let partitions = |topics: Vec<(String, Vec<i32>)>| {
        let topics = topics.into_iter().map(|(topic, partitions)| TopicPartition {
            topic,
            partitions,
            ..TopicPartition::default()
        });
        topics.collect()
    };
    let UserEndpoint { host, port } = of.endpoint;
    EndpointToPartitions {
        user_endpoint: Endpoint { host, port, ..Endpoint::default() },
        active_partitions: partitions(of.active),
        standby_partitions: partitions(of.standby),
        ..EndpointToPartitions::default()
    }
}
