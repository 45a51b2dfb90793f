//! IncrementalAlterConfigs, versions 0-1 (KIP-339), of topics.
//!
//! Broker configuration is read at the start of the process and cannot be altered.

use std::collections::HashSet;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use moldau_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use moldau_storage::Lsn;

use crate::api::describe_configs::RESOURCE_TOPIC;
use crate::call::{Call, Outcome, once_durable};
use crate::error::Refusal;
use crate::metadata_record::TopicOverrides;
use crate::topic_config::{ValueType, effective, topic_key};

pub(crate) fn handle(
    call: &Call<'_>,
    request: IncrementalAlterConfigsRequest,
) -> Outcome<IncrementalAlterConfigsResponse> {
    let mut last = None;
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let mut response = AlterConfigsResourceResponse {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            ..AlterConfigsResourceResponse::default()
        };
        match alter(call, resource, request.validate_only) {
            Ok(lsn) => last = lsn.or(last),
            Err(refusal) => {
                response.error_code = refusal.code.into();
                response.error_message = Some(refusal.message);
            }
        }
        responses.push(response);
    }
    let response =
        IncrementalAlterConfigsResponse { responses, ..IncrementalAlterConfigsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, move |durable| match durable {
        true => response,
        false => storage_failed(response),
    })
}

fn alter(
    call: &Call<'_>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    if resource.resource_type != RESOURCE_TOPIC {
        let message = "only the configuration of topics can be altered";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let mut keys = HashSet::new();
    if let Some(twice) = resource.configs.iter().find(|config| !keys.insert(&config.name)) {
        let message = format!("{} stands twice in the request", twice.name);
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let name = &resource.resource_name;
    call.state.catalog.configure(&call.state.storage, name, validate_only, |overrides| {
        resource.configs.iter().try_for_each(|config| apply(overrides, config))
    })
}

/// Applies one operation: 0 set, 1 delete, 2 append to a list, 3 subtract from a list.
fn apply(overrides: &mut TopicOverrides, config: &AlterableConfig) -> Result<(), Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
    let name = &config.name;
    let value = || {
        let absent = || Refusal::new(ErrorCode::InvalidRequest, format!("{name} has no value"));
        config.value.clone().ok_or_else(absent)
    };
    match config.config_operation {
        0 => {
            overrides.insert(name.clone(), value()?);
        }
        1 => {
            overrides.remove(name);
        }
        operation @ (2 | 3) => {
            let is_list = topic_key(name).is_some_and(|key| key.value_type == ValueType::List);
            if !is_list {
                return Err(invalid(format!("{name} is not a list")));
            }
            let value = value()?;
            let mut words: Vec<&str> = effective(overrides, name).split(',').collect();
            words.retain(|word| !word.is_empty() && !value.split(',').any(|other| other == *word));
            if operation == 2 {
                words.extend(value.split(','));
            }
            let words = words.join(",");
            overrides.insert(name.clone(), words);
        }
        other => {
            let message = format!("there is no configuration operation {other}");
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
    }
    Ok(())
}

fn storage_failed(
    mut response: IncrementalAlterConfigsResponse,
) -> IncrementalAlterConfigsResponse {
    for resource in &mut response.responses {
        resource.error_code = ErrorCode::KafkaStorageError.into();
    }
    response
}
