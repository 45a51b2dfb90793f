//! ConsumerGroupHeartbeat 0-1, ConsumerGroupDescribe 0-1: groups of the consumer protocol.
//!
//! KIP-848 with its migration of classic groups, KIP-1082 member ids that clients make, KIP-1043
//! error messages. The rules are in `moldau-coordinator`.

use std::collections::HashSet;

use moldau_coordinator::{
    ConsumerGroupDescription, ConsumerHeartbeat, ConsumerHeartbeatReply, ConsumerMemberDescription,
    Partitions, Reply,
};
use moldau_protocol::messages::consumer_group_describe_response::{
    Assignment as DescribedAssignment, DescribedGroup, Member,
    TopicPartitions as DescribedPartitions,
};
use moldau_protocol::messages::consumer_group_heartbeat_request::TopicPartitions as Owned;
use moldau_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use moldau_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::api::membership::failure;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::visible_topics::VisibleTopics;

/// From this version on clients make the id of their member themselves (KIP-1082).
const OWN_IDS_SINCE: i16 = 1;

/// From this version on the answer says which protocol a member follows.
const MEMBER_TYPE_SINCE: i16 = 1;

/// Kafka's numbers for the protocols that members follow.
const MEMBER_OF_CLASSIC_PROTOCOL: i8 = 0;
const MEMBER_OF_CONSUMER_PROTOCOL: i8 = 1;

pub(crate) fn heartbeat(
    call: &Call<'_>,
    request: ConsumerGroupHeartbeatRequest,
) -> Outcome<ConsumerGroupHeartbeatResponse> {
    let rights = &call.rights;
    let refused = |code: ErrorCode| {
        let error_code = code.into();
        Outcome::Now(ConsumerGroupHeartbeatResponse { error_code, ..Default::default() })
    };
    if !rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        return refused(ErrorCode::GroupAuthorizationFailed);
    }
    let may_describe = |name: &String| rights.allow(ResourceType::Topic, Operation::Describe, name);
    if !request.subscribed_topic_names.iter().flatten().all(may_describe) {
        return refused(ErrorCode::TopicAuthorizationFailed);
    }
    let heartbeat = ConsumerHeartbeat {
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        instance_id: request.instance_id,
        rack_id: request.rack_id,
        rebalance_timeout_ms: request.rebalance_timeout_ms,
        topics: request.subscribed_topic_names,
        regex: request.subscribed_topic_regex,
        assignor: request.server_assignor,
        owned: request.topic_partitions.map(owned),
        client_id: call.client_id.to_owned(),
        client_host: format!("/{}", call.peer.ip().to_canonical()),
    };
    let makes_own_id = call.version >= OWN_IDS_SINCE;
    let state = call.state;
    // The topics first, as everyone who holds both does it.
    let reply = state.catalog.view(|topics| {
        let topics = VisibleTopics { topics, rights };
        state.groups.submit(&state.storage, |groups, now, token| {
            groups.consumer_heartbeat(now, heartbeat, makes_own_id, &topics, token)
        })
    });
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::ConsumerHeartbeat(reply)) => answered(reply),
            other => ConsumerGroupHeartbeatResponse {
                error_code: failure(other).into(),
                ..ConsumerGroupHeartbeatResponse::default()
            },
        }
    }))
}

fn owned(topics: Vec<Owned>) -> Partitions {
    let mut owned = Partitions::new();
    for topic in topics {
        owned.entry(topic.topic_id).or_default().extend(topic.partitions);
    }
    owned
}

fn answered(reply: ConsumerHeartbeatReply) -> ConsumerGroupHeartbeatResponse {
    let assignment = reply.assignment.map(|assigned| {
        let topic_partitions = assigned.into_iter().map(|(topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions: partitions.into_iter().collect(),
            ..TopicPartitions::default()
        });
        Assignment { topic_partitions: topic_partitions.collect(), ..Assignment::default() }
    });
    ConsumerGroupHeartbeatResponse {
        error_code: reply.error.into(),
        error_message: reply.message,
        member_id: Some(reply.member_id).filter(|id| !id.is_empty()),
        member_epoch: reply.member_epoch,
        heartbeat_interval_ms: reply.heartbeat_interval_ms,
        assignment,
        ..ConsumerGroupHeartbeatResponse::default()
    }
}

pub(crate) fn describe(
    call: &Call<'_>,
    request: ConsumerGroupDescribeRequest,
) -> Outcome<ConsumerGroupDescribeResponse> {
    // Each is described once, so that an answer is bounded by the groups that exist.
    let mut seen = HashSet::new();
    let groups = request.group_ids.into_iter().filter(|group_id| seen.insert(group_id.clone()));
    let groups = groups.map(|group_id| {
        let mut group = describe_one(call, group_id);
        if request.include_authorized_operations && group.error_code == 0 {
            group.authorized_operations =
                call.rights.operations(ResourceType::Group, &group.group_id);
        }
        group
    });
    Outcome::Now(ConsumerGroupDescribeResponse {
        groups: groups.collect(),
        ..ConsumerGroupDescribeResponse::default()
    })
}

fn describe_one(call: &Call<'_>, group_id: String) -> DescribedGroup {
    let refused = |group_id, code: ErrorCode, message: Option<String>| DescribedGroup {
        error_code: code.into(),
        error_message: message,
        group_id,
        ..DescribedGroup::default()
    };
    if !call.rights.allow(ResourceType::Group, Operation::Describe, &group_id) {
        return refused(group_id, ErrorCode::GroupAuthorizationFailed, None);
    }
    if group_id.is_empty() {
        return refused(group_id, ErrorCode::InvalidGroupId, None);
    }
    match call.state.groups.view(|groups| groups.describe_consumer(&group_id)) {
        Err(message) => refused(group_id, ErrorCode::GroupIdNotFound, Some(message)),
        Ok(group) => described(call, group).unwrap_or_else(|| {
            let message = "a member has a topic that the client may not describe".to_owned();
            refused(group_id, ErrorCode::TopicAuthorizationFailed, Some(message))
        }),
    }
}

/// `None` where a topic is not for the client to see.
fn described(call: &Call<'_>, group: ConsumerGroupDescription) -> Option<DescribedGroup> {
    let members = group.members.into_iter().map(|member| described_member(call, member));
    Some(DescribedGroup {
        group_id: group.group_id,
        group_state: group.state.name().to_owned(),
        group_epoch: group.epoch,
        assignment_epoch: group.target_epoch,
        assignor_name: group.assignor.to_owned(),
        members: members.collect::<Option<_>>()?,
        ..DescribedGroup::default()
    })
}

fn described_member(call: &Call<'_>, described: ConsumerMemberDescription) -> Option<Member> {
    let member = described.member;
    let subscribed = member.topics;
    Some(Member {
        assignment: assignment(call, &described.assigned)?,
        target_assignment: assignment(call, &described.target)?,
        member_id: member.member_id,
        instance_id: member.instance_id,
        rack_id: member.rack_id,
        member_epoch: member.epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: subscribed.into_iter().collect(),
        subscribed_topic_regex: member.regex,
        member_type: match call.version {
            MEMBER_TYPE_SINCE.. if member.classic.is_some() => MEMBER_OF_CLASSIC_PROTOCOL,
            MEMBER_TYPE_SINCE.. => MEMBER_OF_CONSUMER_PROTOCOL,
            _ => -1,
        },
        ..Member::default()
    })
}

/// The partitions of topics that exist.
fn assignment(call: &Call<'_>, partitions: &Partitions) -> Option<DescribedAssignment> {
    let mut topics = Vec::with_capacity(partitions.len());
    for (topic_id, indexes) in partitions {
        let Some(topic_name) = topic_name(call, *topic_id) else { continue };
        if !call.rights.allow(ResourceType::Topic, Operation::Describe, &topic_name) {
            return None;
        }
        topics.push(DescribedPartitions {
            topic_id: *topic_id,
            topic_name,
            partitions: indexes.iter().copied().collect(),
            ..DescribedPartitions::default()
        });
    }
    Some(DescribedAssignment { topic_partitions: topics, ..DescribedAssignment::default() })
}

pub(crate) fn topic_name(call: &Call<'_>, topic_id: Uuid) -> Option<String> {
    call.state.catalog.by_id(topic_id).map(|topic| topic.name.to_string())
}
