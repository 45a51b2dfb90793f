//! IncrementalAlterConfigs, versions 0-1 (KIP-339), of topics, groups, client metrics, brokers and
//! loggers.

use std::collections::{HashMap, HashSet};

use moldau_coordinator::{GroupKey, GroupOverrides};
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use moldau_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use moldau_protocol::{ErrorCode, Message, Reader};

use crate::api::broker_configs::{self, Operation};
use crate::api::describe_configs::{
    RESOURCE_BROKER, RESOURCE_BROKER_LOGGER, RESOURCE_CLIENT_METRICS, RESOURCE_GROUP,
    RESOURCE_TOPIC, authorize, no_default_group,
};
use crate::authorizer::Operation::AlterConfigs;
use crate::call::{Call, DURABLE_WITHIN, Outcome, TOO_MANY_CHANGES, check_changes, once_durable};
use crate::error::Refusal;
use crate::logs::Lsn;
use crate::topic_config::{
    TopicDefaults, TopicOverrides, altered_list, canonical, shown, topic_key,
};
use crate::topic_names;

const TWICE: &str = "duplicate resource in the request";

pub(crate) fn handle(
    call: &Call<'_>,
    request: IncrementalAlterConfigsRequest,
) -> Outcome<IncrementalAlterConfigsResponse> {
    let mut last = None;
    let mut responses = Vec::with_capacity(request.resources.len());
    let mut mentions: HashMap<_, usize> = HashMap::new();
    for resource in &request.resources {
        *mentions.entry((resource.resource_type, &resource.resource_name)).or_default() += 1;
    }
    let within_limit = check_changes(request.resources.len(), TOO_MANY_CHANGES);
    for resource in &request.resources {
        let mut response = AlterConfigsResourceResponse {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            error_message: None,
            ..AlterConfigsResourceResponse::default()
        };
        let is_twice = mentions.get(&(resource.resource_type, &resource.resource_name)) > Some(&1);
        let altered = match is_twice {
            true => Err(Refusal::new(ErrorCode::InvalidRequest, TWICE)),
            false => {
                within_limit.clone().and_then(|()| alter(call, resource, request.validate_only))
            }
        };
        match altered {
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
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => not_durable(response, &refusal),
    })
}

/// Whether the request is of all brokers, and not of the levels of this one's loggers alone.
pub(crate) fn is_of_all(call: &Call<'_>, body: &[u8]) -> bool {
    let request = IncrementalAlterConfigsRequest::decode(&mut Reader::new(body), call.version);
    request.is_ok_and(|request| {
        let mut resources = request.resources.iter();
        resources.any(|resource| resource.resource_type != RESOURCE_BROKER_LOGGER)
    })
}

fn alter(
    call: &Call<'_>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    check_distinct(resource.configs.iter().map(|config| config.name.as_str()))?;
    authorize(&call.rights, AlterConfigs, resource.resource_type, &resource.resource_name)?;
    if resource.resource_type == RESOURCE_GROUP {
        return configure_group(call, &resource.resource_name, validate_only, |overrides| {
            resource.configs.iter().try_for_each(|config| apply_to_group(call, overrides, config))
        });
    }
    match resource.resource_type {
        RESOURCE_BROKER => {
            let name = &resource.resource_name;
            return broker_configs::alter(call, name, &resource.configs, validate_only);
        }
        RESOURCE_CLIENT_METRICS => {
            let (telemetry, name) = (&call.state.telemetry, &resource.resource_name);
            return telemetry.configure(&call.state.storage, name, validate_only, |overrides| {
                resource.configs.iter().try_for_each(|it| apply_to_client_metrics(overrides, it))
            });
        }
        RESOURCE_BROKER_LOGGER => {
            let name = &resource.resource_name;
            broker_configs::alter_loggers(call, name, &resource.configs, validate_only)?;
            return Ok(None);
        }
        _ => {}
    }
    let name = topic_name(resource.resource_type, &resource.resource_name)?;
    let defaults = &call.state.catalog.defaults();
    call.state.catalog.configure(&call.state.storage, name, validate_only, |overrides| {
        resource.configs.iter().try_for_each(|config| apply(overrides, config, defaults))
    })
}

/// Changes what a group overrides.
///
/// # Errors
/// What `change` says, a group without a name, more groups than there may be, or a journal that
/// takes nothing.
pub(crate) fn configure_group(
    call: &Call<'_>,
    name: &str,
    validate_only: bool,
    change: impl FnOnce(&mut GroupOverrides) -> Result<(), Refusal>,
) -> Result<Option<Lsn>, Refusal> {
    if name.is_empty() {
        return Err(no_default_group());
    }
    if validate_only {
        return change(&mut call.state.groups.view(|groups| groups.overrides(name))).map(|()| None);
    }
    call.state.groups.configure(&call.state.storage, name, change).map(Some)
}

/// Applies one operation; no key of a group is a list.
fn apply_to_group(
    call: &Call<'_>,
    overrides: &mut GroupOverrides,
    config: &AlterableConfig,
) -> Result<(), Refusal> {
    let name = &config.name;
    match Operation::of(config.config_operation)? {
        Operation::Set => set_of_group(call, overrides, name, config.value.as_deref()),
        Operation::Delete => {
            overrides.remove(name);
            Ok(())
        }
        operation => Err(broker_configs::not_a_list(name, operation)),
    }
}

/// Applies one operation; the values are checked together. As in Kafka, no key is a list here.
fn apply_to_client_metrics(
    overrides: &mut TopicOverrides,
    config: &AlterableConfig,
) -> Result<(), Refusal> {
    let name = &config.name;
    let operation = Operation::of(config.config_operation)?;
    if operation == Operation::Delete {
        overrides.remove(name);
        return Ok(());
    }
    if operation != Operation::Set {
        let message = "lists of client metrics cannot be appended to";
        return Err(Refusal::new(ErrorCode::InvalidConfig, message));
    }
    let value = config.value.clone().ok_or_else(|| {
        Refusal::new(ErrorCode::InvalidRequest, format!("{} has no value", shown(name)))
    })?;
    overrides.insert(name.clone(), value);
    Ok(())
}

/// Gives a key of a group a value.
///
/// # Errors
/// `INVALID_CONFIG` for what is no key of a group, or a value that it does not take.
pub(crate) fn set_of_group(
    call: &Call<'_>,
    overrides: &mut GroupOverrides,
    name: &str,
    value: Option<&str>,
) -> Result<(), Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
    let key = GroupKey::named(name)
        .ok_or_else(|| invalid(format!("Unknown group config name: {}", shown(name))))?;
    let value = value.ok_or_else(|| {
        Refusal::new(ErrorCode::InvalidRequest, format!("{} has no value", shown(name)))
    })?;
    let value = key.parse(&call.state.config.groups, value).map_err(invalid)?;
    overrides.insert(name.to_owned(), value);
    Ok(())
}

/// The topic that a resource names.
///
/// # Errors
/// `INVALID_REQUEST` for any other resource, `INVALID_TOPIC_EXCEPTION` for what names no topic.
pub(crate) fn topic_name(resource_type: i8, name: &str) -> Result<&str, Refusal> {
    if resource_type != RESOURCE_TOPIC {
        let message = "resources of this type have no configuration that can be altered";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    if name.is_empty() {
        let message = "default configurations of topics cannot be altered";
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    topic_names::check_name(name)?;
    Ok(name)
}

/// # Errors
/// `INVALID_REQUEST` where a key stands twice, since the two could contradict each other.
pub(crate) fn check_distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(name) {
            let message = format!("duplicate {} in the request", shown(name));
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
    }
    Ok(())
}

fn apply(
    overrides: &mut TopicOverrides,
    config: &AlterableConfig,
    defaults: &TopicDefaults,
) -> Result<(), Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
    let name = &config.name;
    let value = || {
        let absent =
            || Refusal::new(ErrorCode::InvalidRequest, format!("{} has no value", shown(name)));
        config.value.as_deref().ok_or_else(absent)
    };
    let altered = match Operation::of(config.config_operation)? {
        Operation::Set => value()?.to_owned(),
        Operation::Delete => {
            overrides.remove(name);
            return Ok(());
        }
        operation => {
            let value = value()?;
            if !topic_key(name).is_some_and(|key| key.is_list()) {
                return Err(broker_configs::not_a_list(name, operation));
            }
            let is_append = operation == Operation::Append;
            altered_list(defaults.effective(overrides, name), value, is_append)
        }
    };
    let altered = canonical(name, &altered).map_err(invalid)?;
    overrides.insert(name.clone(), altered);
    Ok(())
}

fn not_durable(
    mut response: IncrementalAlterConfigsResponse,
    refusal: &Refusal,
) -> IncrementalAlterConfigsResponse {
    for resource in &mut response.responses {
        resource.error_code = refusal.code.into();
        resource.error_message = Some(refusal.message.clone());
    }
    response
}
