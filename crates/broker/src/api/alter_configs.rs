//! AlterConfigs, versions 0-2 (KIP-133), of topics, groups, client metrics and
//! brokers.
//!
//! The configuration of the request replaces all that clients gave the resource before. Kafka's own
//! clients and tools use IncrementalAlterConfigs; KafkaJS and older clients know this one only.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_configs_request::AlterConfigsResource;
use moldau_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use moldau_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use crate::api::broker_configs;
use crate::api::describe_configs::{
    RESOURCE_BROKER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP, authorize,
};
use crate::api::incremental_alter_configs::{
    check_distinct, configure_group, set_of_group, topic_name,
};
use crate::authorizer::Operation::AlterConfigs;
use crate::call::{Call, DURABLE_WITHIN, Outcome, TOO_MANY_CHANGES, check_changes, once_durable};
use crate::error::Refusal;
use crate::logs::Lsn;
use crate::topic_config::{canonical, shown};

pub(crate) fn handle(
    call: &Call<'_>,
    request: AlterConfigsRequest,
) -> Outcome<AlterConfigsResponse> {
    let within_limit = check_changes(request.resources.len(), TOO_MANY_CHANGES);
    let mut last = None;
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let mut response = AlterConfigsResourceResponse {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            error_message: None,
            ..AlterConfigsResourceResponse::default()
        };
        let replaced =
            within_limit.clone().and_then(|()| replace(call, resource, request.validate_only));
        match replaced {
            Ok(lsn) => last = lsn.or(last),
            Err(refusal) => {
                response.error_code = refusal.code.into();
                response.error_message = Some(refusal.message);
            }
        }
        responses.push(response);
    }
    let response = AlterConfigsResponse { responses, ..AlterConfigsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => not_durable(response, &refusal),
    })
}

fn replace(
    call: &Call<'_>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    check_distinct(resource.configs.iter().map(|config| config.name.as_str()))?;
    authorize(&call.rights, AlterConfigs, resource.resource_type, &resource.resource_name)?;
    if resource.resource_type == RESOURCE_GROUP {
        return configure_group(call, &resource.resource_name, validate_only, |overrides| {
            overrides.clear();
            resource.configs.iter().try_for_each(|config| {
                set_of_group(call, overrides, &config.name, config.value.as_deref())
            })
        });
    }
    if resource.resource_type == RESOURCE_BROKER {
        let configs = resource.configs.iter();
        let configs = configs.map(|config| (config.name.as_str(), config.value.as_deref()));
        return broker_configs::replace(call, &resource.resource_name, configs, validate_only);
    }
    if resource.resource_type == RESOURCE_CLIENT_METRICS {
        let (telemetry, name) = (&call.state.telemetry, &resource.resource_name);
        return telemetry.configure(&call.state.storage, name, validate_only, |overrides| {
            overrides.clear();
            for config in &resource.configs {
                let absent = || format!("{} has no value", shown(&config.name));
                let value = config.value.clone();
                let value =
                    value.ok_or_else(|| Refusal::new(ErrorCode::InvalidRequest, absent()))?;
                overrides.insert(config.name.clone(), value);
            }
            Ok(())
        });
    }
    let name = topic_name(resource.resource_type, &resource.resource_name)?;
    call.state.catalog.configure(&call.state.storage, name, validate_only, |overrides| {
        overrides.clear();
        for config in &resource.configs {
            let absent = || format!("{} has no value", shown(&config.name));
            let value = config.value.as_deref();
            let value = value.ok_or_else(|| Refusal::new(ErrorCode::InvalidRequest, absent()))?;
            let value = canonical(&config.name, value);
            let value = value.map_err(|it| Refusal::new(ErrorCode::InvalidConfig, it))?;
            overrides.insert(config.name.clone(), value);
        }
        Ok(())
    })
}

fn not_durable(mut response: AlterConfigsResponse, refusal: &Refusal) -> AlterConfigsResponse {
    for resource in &mut response.responses {
        resource.error_code = refusal.code.into();
        resource.error_message = Some(refusal.message.clone());
    }
    response
}
