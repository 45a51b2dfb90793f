//! ListConfigResources, versions 0-1 (KIP-1000, KIP-1142): resources that have a configuration.
//!
//! Version 0 lists client metrics only. As in Kafka the right to describe the configuration of the
//! cluster shows every name.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::list_config_resources_response::ConfigResource;
use moldau_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};

use crate::api::describe_configs::{
    RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP,
    RESOURCE_TOPIC,
};
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::denied;

/// Types of resources, as far as a version knows them.
const TYPES: [i8; 5] = [
    RESOURCE_TOPIC,
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
];

pub(crate) fn handle(
    call: &Call<'_>,
    request: ListConfigResourcesRequest,
) -> Outcome<ListConfigResourcesResponse> {
    let refused = |code: ErrorCode| {
        Outcome::Now(ListConfigResourcesResponse {
            error_code: code.into(),
            ..ListConfigResourcesResponse::default()
        })
    };
    if !call.rights.allow_on_cluster(Operation::DescribeConfigs) {
        return refused(denied(ResourceType::Cluster).code);
    }
    let known: &[i8] = if call.version == 0 { &[RESOURCE_CLIENT_METRICS] } else { &TYPES };
    let asked = &request.resource_types;
    if asked.iter().any(|resource_type| !known.contains(resource_type)) {
        return refused(ErrorCode::UnsupportedVersion);
    }
    let wanted = |resource_type: &i8| asked.is_empty() || asked.contains(resource_type);
    let mut config_resources = Vec::new();
    for resource_type in known.iter().copied().filter(wanted) {
        let names = names(call, resource_type).into_iter();
        config_resources.extend(names.map(|resource_name| ConfigResource {
            resource_name,
            resource_type,
            ..ConfigResource::default()
        }));
    }
    Outcome::Now(ListConfigResourcesResponse {
        config_resources,
        ..ListConfigResourcesResponse::default()
    })
}

fn names(call: &Call<'_>, resource_type: i8) -> Vec<String> {
    match resource_type {
        RESOURCE_TOPIC => {
            call.state.catalog.all().iter().map(|topic| topic.name.to_string()).collect()
        }
        RESOURCE_BROKER | RESOURCE_BROKER_LOGGER => vec![call.state.nodes.id().to_string()],
        RESOURCE_CLIENT_METRICS => {
            call.state.telemetry.view(|all| all.names().map(str::to_owned).collect())
        }
        RESOURCE_GROUP => {
            call.state.groups.view(|groups| groups.configured().map(str::to_owned).collect())
        }
        _ => Vec::new(),
    }
}
