//! ListGroups 0-5, DescribeGroups 0-6, DeleteGroups 0-3.
//!
//! KIP-518 state filter, KIP-848 type filter, KIP-1043 error messages. DescribeGroups knows classic
//! groups only.

use std::collections::HashSet;

use moldau_coordinator::{GroupDescription, Reply};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::delete_groups_response::DeletableGroupResult;
use moldau_protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use moldau_protocol::messages::list_groups_response::ListedGroup;
use moldau_protocol::messages::{
    DeleteGroupsRequest, DeleteGroupsResponse, DescribeGroupsRequest, DescribeGroupsResponse,
    ListGroupsRequest, ListGroupsResponse,
};

use crate::api::membership::failure;
use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::topic_config::shown;

/// From this version on a missing group is an error rather than a dead group (KIP-1043).
const GROUP_ID_NOT_FOUND_SINCE: i16 = 6;

pub(crate) fn list(call: &Call<'_>, request: ListGroupsRequest) -> Outcome<ListGroupsResponse> {
    let matches = |filter: &[String], word: &str| {
        filter.is_empty() || filter.iter().any(|wanted| wanted.eq_ignore_ascii_case(word))
    };
    // Each broker of a cluster is asked, and the coordinator tells: others may be behind it.
    let coordinates = call.state.storage.decides();
    let groups: Vec<_> =
        call.state.groups.view(|groups| groups.list().filter(|_| coordinates).collect());
    let rights = &call.rights;
    // As in Kafka the right to describe the cluster shows every group.
    let is_shown = |group_id: &str| rights.show(ResourceType::Group, Operation::Describe, group_id);
    let shows_all = rights.show(ResourceType::Cluster, Operation::Describe, CLUSTER_NAME);
    let listed = groups
        .into_iter()
        .filter(|group| shows_all || is_shown(&group.group_id))
        .filter(|group| matches(&request.states_filter, group.state.name()))
        .filter(|group| matches(&request.types_filter, group.group_type.name()))
        .map(|group| ListedGroup {
            group_id: group.group_id,
            protocol_type: group.protocol_type,
            group_state: group.state.name().to_owned(),
            group_type: group.group_type.name().to_owned(),
            ..ListedGroup::default()
        });
    Outcome::Now(ListGroupsResponse { groups: listed.collect(), ..ListGroupsResponse::default() })
}

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeGroupsRequest,
) -> Outcome<DescribeGroupsResponse> {
    // Each is described once, so that an answer is bounded by the groups that exist.
    let mut seen = HashSet::new();
    let groups = request.groups.into_iter().filter(|group_id| seen.insert(group_id.clone()));
    let groups = groups.map(|group_id| {
        if !call.rights.allow(ResourceType::Group, Operation::Describe, &group_id) {
            return unauthorized(group_id);
        }
        let mut group = match call.state.groups.view(|groups| groups.describe(&group_id)) {
            Some(group) => described(group),
            None => absent(group_id, call.version),
        };
        if request.include_authorized_operations && group.error_code == 0 {
            group.authorized_operations =
                call.rights.operations(ResourceType::Group, &group.group_id);
        }
        group
    });
    Outcome::Now(DescribeGroupsResponse {
        groups: groups.collect(),
        ..DescribeGroupsResponse::default()
    })
}

fn described(group: GroupDescription) -> DescribedGroup {
    let members = group.members.into_iter().map(|member| DescribedGroupMember {
        member_id: member.member_id,
        group_instance_id: member.instance_id,
        client_id: member.client_id,
        client_host: member.client_host,
        member_metadata: member.metadata,
        member_assignment: member.assignment,
        ..DescribedGroupMember::default()
    });
    DescribedGroup {
        group_id: group.group_id,
        group_state: group.state.name().to_owned(),
        protocol_type: group.protocol_type,
        protocol_data: group.protocol_name,
        members: members.collect(),
        ..DescribedGroup::default()
    }
}

fn unauthorized(group_id: String) -> DescribedGroup {
    let error_code = ErrorCode::GroupAuthorizationFailed.into();
    DescribedGroup { error_code, group_id, ..DescribedGroup::default() }
}

fn absent(group_id: String, version: i16) -> DescribedGroup {
    let mut group = DescribedGroup { group_state: "Dead".to_owned(), ..Default::default() };
    if version >= GROUP_ID_NOT_FOUND_SINCE {
        group.error_code = ErrorCode::GroupIdNotFound.into();
        group.error_message = Some(format!("Group {} not found.", shown(&group_id)));
    }
    group.group_id = group_id;
    group
}

pub(crate) fn delete(
    call: &Call<'_>,
    request: DeleteGroupsRequest,
) -> Outcome<DeleteGroupsResponse> {
    let state = call.state;
    let may_delete =
        |name: &String| call.rights.allow(ResourceType::Group, Operation::Delete, name);
    // As in Kafka, a name given twice is answered once.
    let mut seen = HashSet::new();
    let names = request.groups_names.into_iter().filter(|name| seen.insert(name.clone()));
    let (names, refused): (Vec<_>, Vec<_>) = names.partition(may_delete);
    let reply = state
        .groups
        .submit(&state.storage, |groups, _now, token| groups.delete_groups(&names, token));
    Outcome::Later(Box::pin(async move {
        let results = match reply.await {
            Ok(Reply::DeleteGroups(results)) => results,
            other => {
                let code = failure(other);
                names.into_iter().map(|name| (name, code)).collect()
            }
        };
        let refused = refused.into_iter().map(|name| (name, ErrorCode::GroupAuthorizationFailed));
        let results = results.into_iter().chain(refused);
        let results = results.map(|(group_id, code)| DeletableGroupResult {
            group_id,
            error_code: code.into(),
            ..DeletableGroupResult::default()
        });
        DeleteGroupsResponse { results: results.collect(), ..DeleteGroupsResponse::default() }
    }))
}
