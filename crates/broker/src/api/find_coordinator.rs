//! FindCoordinator, versions 0-6 (KIP-699 batches, KIP-932 share keys).
//!
//! This broker coordinates every group. Transactions and share groups are not supported, and the
//! answer says so at this first step, where every client reports it.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};

use crate::call::{Call, Outcome};
use crate::config::NODE_ID;

/// Kafka's number for the coordinator of a group.
const KEY_TYPE_GROUP: i8 = 0;

/// From this version on several keys are asked for at once.
const BATCHED_SINCE: i16 = 4;

pub(crate) fn handle(
    call: &Call<'_>,
    request: FindCoordinatorRequest,
) -> Outcome<FindCoordinatorResponse> {
    let endpoint = call.endpoint();
    let supported = request.key_type == KEY_TYPE_GROUP;
    let coordinator = |key: String| match supported {
        true => Coordinator {
            key,
            node_id: NODE_ID,
            host: endpoint.host.clone(),
            port: endpoint.port,
            ..Coordinator::default()
        },
        false => Coordinator {
            key,
            node_id: -1,
            port: -1,
            error_code: ErrorCode::InvalidRequest.into(),
            error_message: Some("transactions and share groups are not supported".to_owned()),
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
    Outcome::Now(FindCoordinatorResponse {
        error_code: found.error_code,
        error_message: found.error_message,
        node_id: found.node_id,
        host: found.host,
        port: found.port,
        ..FindCoordinatorResponse::default()
    })
}
