//! FindCoordinator, versions 0-6 (KIP-699 batches, KIP-932 share keys).
//!
//! A broker on its journal coordinates every group, every transaction and every share partition. In
//! a cluster one broker coordinates all of them.

use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use moldau_protocol::{ErrorCode, Uuid};

use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::{Refusal, denied};

/// Kafka's numbers for the coordinators of a group, a transaction and a share partition.
const KEY_TYPE_GROUP: i8 = 0;
const KEY_TYPE_TRANSACTION: i8 = 1;
const KEY_TYPE_SHARE: i8 = 2;

/// From this version on several keys are asked for at once.
const BATCHED_SINCE: i16 = 4;

pub(crate) fn handle(
    call: &Call<'_>,
    request: FindCoordinatorRequest,
) -> Outcome<FindCoordinatorResponse> {
    let members = call.members();
    let find = |key: &str| {
        check(call, request.key_type, key)?;
        members.coordinator().ok_or_else(|| {
            let message = "no broker is the coordinator at the moment";
            Refusal::new(ErrorCode::CoordinatorNotAvailable, message)
        })
    };
    let coordinator = |key: String| match find(&key) {
        Ok(node) => Coordinator {
            key,
            node_id: node.id,
            host: node.host.clone(),
            port: node.port,
            ..Coordinator::default()
        },
        Err(refusal) => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..Coordinator::default()
        },
    };
    if call.version >= BATCHED_SINCE {
        return Outcome::Now(FindCoordinatorResponse {
            coordinators: request.coordinator_keys.into_iter().map(coordinator).collect(),
            ..FindCoordinatorResponse::default()
        });
    }
    let found = coordinator(request.key);
    let is_found = found.error_code == 0;
    Outcome::Now(FindCoordinatorResponse {
        error_code: found.error_code,
        // Kafka names the error that there is not.
        error_message: if is_found { Some("NONE".to_owned()) } else { found.error_message },
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..FindCoordinatorResponse::default()
    })
}

/// From this version on brokers ask for the coordinator of a share partition.
const SHARE_SINCE: i16 = 6;

fn check(call: &Call<'_>, key_type: i8, key: &str) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let (resource_type, operation, name) = match key_type {
        KEY_TYPE_GROUP => (ResourceType::Group, Operation::Describe, key),
        KEY_TYPE_TRANSACTION => (ResourceType::TransactionalId, Operation::Describe, key),
        KEY_TYPE_SHARE if call.version < SHARE_SINCE => {
            return invalid("this version knows no coordinator of share partitions");
        }
        KEY_TYPE_SHARE => (ResourceType::Cluster, Operation::ClusterAction, CLUSTER_NAME),
        _ => return invalid("there is no such type of coordinator"),
    };
    if !call.rights.allow(resource_type, operation, name) {
        return Err(denied(resource_type));
    }
    if key_type == KEY_TYPE_SHARE && !is_share_partition(key) {
        return invalid("the key is not of the form group:topic id:partition");
    }
    Ok(())
}

/// Whether the key is `group:topic id:partition`; the group may have colons too.
fn is_share_partition(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let (partition, topic_id, group) = (parts.next(), parts.next(), parts.next());
    partition.is_some_and(|it| it.parse::<i32>().is_ok())
        && topic_id.is_some_and(|it| it.parse::<Uuid>().is_ok())
        && group.is_some_and(|it| !it.trim().is_empty())
}
