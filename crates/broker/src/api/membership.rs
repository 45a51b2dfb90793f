//! JoinGroup 0-9, SyncGroup 0-5, Heartbeat 0-4, LeaveGroup 0-5: classic groups.
//!
//! KIP-62 rebalance timeout, KIP-345 static members, KIP-394 known member ids, KIP-559 protocol
//! names, KIP-800 reasons, KIP-814 skipped assignments. The rules are in `moldau-coordinator`.

use moldau_coordinator::{
    self as coordinator, Groups, JoinReply, LeaveReply, LeavingMember, Protocol, Reply, SyncReply,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::join_group_response::JoinGroupResponseMember;
use moldau_protocol::messages::leave_group_response::MemberResponse;
use moldau_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, SyncGroupRequest, SyncGroupResponse,
};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::visible_topics::VisibleTopics;

/// From this version on a member without an id gets one before it joins (KIP-394).
const MEMBER_ID_REQUIRED_SINCE: i16 = 4;

/// From this version on the name of the protocol can be null.
const NULL_PROTOCOL_NAME_SINCE: i16 = 7;

/// From this version on the answer may make a static leader skip the assignment (KIP-814).
const SKIP_ASSIGNMENT_SINCE: i16 = 9;

/// Whether the client may be a member of the group.
fn may_join(call: &Call<'_>, group_id: &str) -> bool {
    call.rights.allow(ResourceType::Group, Operation::Read, group_id)
}

pub(crate) fn join(call: &Call<'_>, request: JoinGroupRequest) -> Outcome<JoinGroupResponse> {
    let version = call.version;
    if !may_join(call, &request.group_id) {
        return Outcome::Now(JoinGroupResponse {
            error_code: ErrorCode::GroupAuthorizationFailed.into(),
            protocol_name: Some(String::new()).filter(|_| version < NULL_PROTOCOL_NAME_SINCE),
            ..JoinGroupResponse::default()
        });
    }
    let member_id = request.member_id.clone();
    let protocols = request.protocols.into_iter();
    let join = coordinator::JoinRequest {
        group_id: request.group_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        client_id: call.client_id.to_owned(),
        client_host: format!("/{}", call.peer.ip().to_canonical()),
        session_timeout_ms: request.session_timeout_ms,
        // Version 0 has no rebalance timeout: the session timeout stood for both.
        rebalance_timeout_ms: match version {
            0 => request.session_timeout_ms,
            _ => request.rebalance_timeout_ms,
        },
        protocol_type: request.protocol_type,
        protocols: protocols.map(|it| Protocol { name: it.name, metadata: it.metadata }).collect(),
        require_known_member_id: version >= MEMBER_ID_REQUIRED_SINCE,
        supports_skipping_assignment: version >= SKIP_ASSIGNMENT_SINCE,
    };
    let state = call.state;
    // The topics first, as everyone who holds both does it.
    let reply = state.catalog.view(|topics| {
        let topics = VisibleTopics { topics, rights: &call.rights };
        let act = |groups: &mut Groups, now, token| groups.join(now, join, &topics, token);
        state.groups.submit(&state.storage, act)
    });
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::Join(reply)) => joined(reply, version),
            other => JoinGroupResponse {
                error_code: failure(other).into(),
                protocol_name: Some(String::new()),
                member_id,
                ..JoinGroupResponse::default()
            },
        }
    }))
}

fn joined(reply: JoinReply, version: i16) -> JoinGroupResponse {
    let members = reply.members.into_iter().map(|member| JoinGroupResponseMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        metadata: member.metadata,
        ..JoinGroupResponseMember::default()
    });
    JoinGroupResponse {
        error_code: reply.error.into(),
        generation_id: reply.generation,
        protocol_type: reply.protocol_type,
        protocol_name: match version {
            NULL_PROTOCOL_NAME_SINCE.. => reply.protocol_name,
            _ => Some(reply.protocol_name.unwrap_or_default()),
        },
        leader: reply.leader,
        skip_assignment: reply.skip_assignment,
        member_id: reply.member_id,
        members: members.collect(),
        ..JoinGroupResponse::default()
    }
}

/// From this version on a synchronization has to name the protocol (KIP-559).
const PROTOCOL_NAMED_SINCE: i16 = 5;

pub(crate) fn sync(call: &Call<'_>, request: SyncGroupRequest) -> Outcome<SyncGroupResponse> {
    let is_named = request.protocol_type.is_some() && request.protocol_name.is_some();
    if call.version >= PROTOCOL_NAMED_SINCE && !is_named {
        return Outcome::Now(SyncGroupResponse {
            error_code: ErrorCode::InconsistentGroupProtocol.into(),
            ..SyncGroupResponse::default()
        });
    }
    if !may_join(call, &request.group_id) {
        return Outcome::Now(SyncGroupResponse {
            error_code: ErrorCode::GroupAuthorizationFailed.into(),
            ..SyncGroupResponse::default()
        });
    }
    let assignments = request.assignments.into_iter();
    let sync = coordinator::SyncRequest {
        group_id: request.group_id,
        generation: request.generation_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
        protocol_type: request.protocol_type,
        protocol_name: request.protocol_name,
        assignments: assignments.map(|it| (it.member_id, it.assignment)).collect(),
    };
    let state = call.state;
    let reply = state.catalog.view(|topics| {
        let topics = VisibleTopics { topics, rights: &call.rights };
        let act = |groups: &mut Groups, now, token| groups.sync(now, &sync, &topics, token);
        state.groups.submit(&state.storage, act)
    });
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::Sync(reply)) => synced(reply),
            other => SyncGroupResponse {
                error_code: failure(other).into(),
                ..SyncGroupResponse::default()
            },
        }
    }))
}

fn synced(reply: SyncReply) -> SyncGroupResponse {
    SyncGroupResponse {
        error_code: reply.error.into(),
        protocol_type: reply.protocol_type,
        protocol_name: reply.protocol_name,
        assignment: reply.assignment,
        ..SyncGroupResponse::default()
    }
}

pub(crate) fn heartbeat(call: &Call<'_>, request: HeartbeatRequest) -> Outcome<HeartbeatResponse> {
    if !may_join(call, &request.group_id) {
        return Outcome::Now(HeartbeatResponse {
            error_code: ErrorCode::GroupAuthorizationFailed.into(),
            ..HeartbeatResponse::default()
        });
    }
    let heartbeat = coordinator::HeartbeatRequest {
        group_id: request.group_id,
        generation: request.generation_id,
        member_id: request.member_id,
        instance_id: request.group_instance_id,
    };
    let state = call.state;
    let reply = state
        .groups
        .submit(&state.storage, |groups, now, token| groups.heartbeat(now, &heartbeat, token));
    Outcome::Later(Box::pin(async move {
        let code = match reply.await {
            Ok(Reply::Heartbeat(code)) => code,
            other => failure(other),
        };
        HeartbeatResponse { error_code: code.into(), ..HeartbeatResponse::default() }
    }))
}

pub(crate) fn leave(call: &Call<'_>, request: LeaveGroupRequest) -> Outcome<LeaveGroupResponse> {
    if !may_join(call, &request.group_id) {
        return Outcome::Now(LeaveGroupResponse {
            error_code: ErrorCode::GroupAuthorizationFailed.into(),
            ..LeaveGroupResponse::default()
        });
    }
    // Versions before 3 name one member, outside the list.
    let batched = call.version >= 3;
    let members = match batched {
        true => request
            .members
            .into_iter()
            .map(|it| LeavingMember { member_id: it.member_id, instance_id: it.group_instance_id })
            .collect(),
        false => vec![LeavingMember { member_id: request.member_id, instance_id: None }],
    };
    let leave = coordinator::LeaveRequest { group_id: request.group_id, members };
    let state = call.state;
    let reply = state.catalog.view(|topics| {
        let act = |groups: &mut Groups, now, token| groups.leave(now, &leave, topics, token);
        state.groups.submit(&state.storage, act)
    });
    Outcome::Later(Box::pin(async move {
        match reply.await {
            Ok(Reply::Leave(reply)) if batched => left_together(leave.members, reply),
            Ok(Reply::Leave(reply)) => left_alone(&reply),
            other => LeaveGroupResponse {
                error_code: failure(other).into(),
                ..LeaveGroupResponse::default()
            },
        }
    }))
}

/// The outcome of the one member is that of the request.
fn left_alone(reply: &LeaveReply) -> LeaveGroupResponse {
    let member = reply.members.first().map_or(ErrorCode::None, |member| member.error);
    let code = if reply.error == ErrorCode::None { member } else { reply.error };
    LeaveGroupResponse { error_code: code.into(), ..LeaveGroupResponse::default() }
}

/// A group that does not exist has none of the members, which is said of each.
fn left_together(asked: Vec<LeavingMember>, reply: LeaveReply) -> LeaveGroupResponse {
    if reply.error == ErrorCode::UnknownMemberId {
        let unknown = asked.into_iter().map(|member| MemberResponse {
            member_id: member.member_id,
            group_instance_id: member.instance_id,
            error_code: ErrorCode::UnknownMemberId.into(),
            ..MemberResponse::default()
        });
        return LeaveGroupResponse { members: unknown.collect(), ..LeaveGroupResponse::default() };
    }
    let members = reply.members.into_iter().map(|member| MemberResponse {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        error_code: member.error.into(),
        ..MemberResponse::default()
    });
    LeaveGroupResponse {
        error_code: reply.error.into(),
        members: members.collect(),
        ..LeaveGroupResponse::default()
    }
}

/// The code for a reply that did not come, or that belongs to another kind of request.
pub(crate) fn failure(reply: Result<Reply, ErrorCode>) -> ErrorCode {
    reply.err().unwrap_or(ErrorCode::UnknownServerError)
}
