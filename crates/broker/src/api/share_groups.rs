//! ShareGroupHeartbeat 1, ShareGroupDescribe 1: members of share groups (KIP-932).
//!
//! Differs from Kafka in that a member gets partitions with its first heartbeat: they need no state
//! of a share coordinator before. The rules are in `moldau-coordinator`.

use std::collections::HashSet;

use moldau_coordinator::{
    Partitions, Reply, ShareGroupDescription, ShareHeartbeat, ShareHeartbeatReply, ShareMember,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::share_group_describe_response::{
    Assignment as DescribedAssignment, DescribedGroup, Member,
    TopicPartitions as DescribedPartitions,
};
use moldau_protocol::messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use moldau_protocol::messages::{
    ShareGroupDescribeRequest, ShareGroupDescribeResponse, ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
};

use crate::api::consumer_groups::topic_name;
use crate::api::membership::failure;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::visible_topics::VisibleTopics;

pub(crate) fn heartbeat(
    call: &Call<'_>,
    request: ShareGroupHeartbeatRequest,
) -> Outcome<ShareGroupHeartbeatResponse> {
    let rights = &call.rights;
    let refused = |code: ErrorCode| {
        let error_code = code.into();
        Outcome::Now(ShareGroupHeartbeatResponse { error_code, ..Default::default() })
    };
    if !rights.allow(ResourceType::Group, Operation::Read, &request.group_id) {
        return refused(ErrorCode::GroupAuthorizationFailed);
    }
    let may_describe = |name: &String| rights.allow(ResourceType::Topic, Operation::Describe, name);
    if !request.subscribed_topic_names.iter().flatten().all(may_describe) {
        return refused(ErrorCode::TopicAuthorizationFailed);
    }
    let heartbeat = ShareHeartbeat {
        group_id: request.group_id,
        member_id: request.member_id,
        member_epoch: request.member_epoch,
        rack_id: request.rack_id,
        topics: request.subscribed_topic_names,
        client_id: call.client_id.to_owned(),
        client_host: format!("/{}", call.peer.ip().to_canonical()),
    };
    let state = call.state;
    // The topics first, as everyone who holds both does it.
    let reply = state.catalog.view(|topics| {
        let topics = VisibleTopics { topics, rights };
        state.groups.submit(&state.storage, |groups, now, token| {
            groups.share_heartbeat(now, &heartbeat, &topics, token)
        })
    });
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::ShareHeartbeat(reply)) => answered(reply),
            other => ShareGroupHeartbeatResponse {
                error_code: failure(other).into(),
                ..ShareGroupHeartbeatResponse::default()
            },
        }
    }))
}

fn answered(reply: ShareHeartbeatReply) -> ShareGroupHeartbeatResponse {
    let assignment = reply.assignment.map(|assigned| {
        let topic_partitions = assigned.into_iter().map(|(topic_id, partitions)| TopicPartitions {
            topic_id,
            partitions: partitions.into_iter().collect(),
            ..TopicPartitions::default()
        });
        Assignment { topic_partitions: topic_partitions.collect(), ..Assignment::default() }
    });
    ShareGroupHeartbeatResponse {
        error_code: reply.error.into(),
        error_message: reply.message,
        member_id: Some(reply.member_id).filter(|id| !id.is_empty()),
        member_epoch: reply.member_epoch,
        heartbeat_interval_ms: reply.heartbeat_interval_ms,
        assignment,
        ..ShareGroupHeartbeatResponse::default()
    }
}

pub(crate) fn describe(
    call: &Call<'_>,
    request: ShareGroupDescribeRequest,
) -> Outcome<ShareGroupDescribeResponse> {
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
    Outcome::Now(ShareGroupDescribeResponse {
        groups: groups.collect(),
        ..ShareGroupDescribeResponse::default()
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
    match call.state.groups.view(|groups| groups.describe_share(&group_id)) {
        Err(message) => refused(group_id, ErrorCode::GroupIdNotFound, Some(message)),
        Ok(group) => described(call, group).unwrap_or_else(|| {
            let message = "a member has a topic that the client may not describe".to_owned();
            refused(group_id, ErrorCode::TopicAuthorizationFailed, Some(message))
        }),
    }
}

/// `None` where a topic is not for the client to see.
fn described(call: &Call<'_>, group: ShareGroupDescription) -> Option<DescribedGroup> {
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

fn described_member(call: &Call<'_>, member: ShareMember) -> Option<Member> {
    Some(Member {
        assignment: assignment(call, &member.assigned)?,
        member_id: member.member_id,
        rack_id: member.rack_id,
        member_epoch: member.epoch,
        client_id: member.client_id,
        client_host: member.client_host,
        subscribed_topic_names: member.topics.into_iter().collect(),
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
