//! DescribeCluster, versions 0-2 (KIP-700, KIP-919 endpoint types, KIP-1073 fenced brokers).
//!
//! Controllers are not reachable by clients, so asking for their endpoints is refused.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use moldau_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};

use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::rights::Rights;

/// Kafka's number for broker endpoints.
const ENDPOINT_TYPE_BROKERS: i8 = 1;
const ENDPOINT_TYPE_CONTROLLERS: i8 = 2;

/// What the client may do to the cluster; nothing where it may not even describe it (KIP-430).
pub(crate) fn cluster_operations(rights: &Rights) -> i32 {
    match rights.allow_on_cluster(Operation::Describe) {
        true => rights.operations(ResourceType::Cluster, CLUSTER_NAME),
        false => 0,
    }
}

pub(crate) fn handle(
    call: &Call<'_>,
    request: DescribeClusterRequest,
) -> Outcome<DescribeClusterResponse> {
    if request.endpoint_type != ENDPOINT_TYPE_BROKERS {
        let (code, message) = match request.endpoint_type {
            ENDPOINT_TYPE_CONTROLLERS => {
                (ErrorCode::MismatchedEndpointType, "this listener is one of a broker")
            }
            _ => (ErrorCode::UnsupportedEndpointType, "there is no such kind of endpoint"),
        };
        return Outcome::Now(DescribeClusterResponse {
            error_code: code.into(),
            error_message: Some(message.to_owned()),
            ..DescribeClusterResponse::default()
        });
    }
    let members = call.members();
    let mut response = DescribeClusterResponse {
        endpoint_type: request.endpoint_type,
        cluster_id: call.state.cluster_id.clone(),
        controller_id: members.controller_id(),
        ..DescribeClusterResponse::default()
    };
    if request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = cluster_operations(&call.rights);
    }
    let brokers = members.brokers.iter().map(|node| DescribeClusterBroker {
        broker_id: node.id,
        host: node.host.clone(),
        port: node.port,
        rack: node.rack.clone(),
        ..DescribeClusterBroker::default()
    });
    response.brokers = brokers.collect();
    Outcome::Now(response)
}
