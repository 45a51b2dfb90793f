//! DescribeConfigs, versions 1-4 (KIP-133, KIP-226 synonyms, KIP-569 documentation).
//!
//! A topic shows every key of Kafka; its documentation says what the key does here, and whether it
//! is stored only or not supported. Sources are the topic, the defaults for all topics, and the
//! built-in default. [`broker_configs`] describes brokers and loggers. A group and a client metrics
//! resource need not exist to have one.

use std::collections::HashSet;

use moldau_coordinator::{GROUP_KEYS, GroupKey, GroupKeyType, GroupOverrides};
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use moldau_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use moldau_protocol::{ErrorCode, Message, Reader};

use crate::api::broker_configs;
use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::broker_configs::{
    ConfigType, SOURCE_CLIENT_METRICS, SOURCE_DEFAULT, SOURCE_GROUP, SOURCE_STATIC_BROKER,
    SOURCE_TOPIC, code_of,
};
use crate::call::{Call, Outcome};
use crate::catalog::{self, Topic};
use crate::config::GroupSettings;
use crate::error::{Refusal, denied};
use crate::rights::Rights;
use crate::telemetry::{self, SUBSCRIPTION_KEYS, SubscriptionKey};
use crate::topic_config::{TOPIC_KEYS, TopicDefaults, TopicKey, TopicOverrides};
use crate::topic_names;

/// Kafka's numbers of resource types.
pub(crate) const RESOURCE_TOPIC: i8 = 2;
pub(crate) const RESOURCE_BROKER: i8 = 4;
pub(crate) const RESOURCE_BROKER_LOGGER: i8 = 8;
pub(crate) const RESOURCE_CLIENT_METRICS: i8 = 16;
pub(crate) const RESOURCE_GROUP: i8 = 32;

const TWICE: &str = "duplicate resource in the request";

pub(crate) fn handle(
    call: &Call<'_>,
    request: DescribeConfigsRequest,
) -> Outcome<DescribeConfigsResponse> {
    let mut seen = HashSet::new();
    let results = request.resources.iter().map(|resource| {
        let is_first = seen.insert((resource.resource_type, &resource.resource_name));
        let mut result = DescribeConfigsResult {
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            ..DescribeConfigsResult::default()
        };
        let described = match is_first {
            true => describe(call, resource, &request),
            // A configuration is a hundred times as long as its name.
            false => Err(Refusal::new(ErrorCode::InvalidRequest, TWICE)),
        };
        match described {
            Ok(configs) => result.configs = configs,
            Err(refusal) => {
                result.error_code = refusal.code.into();
                result.error_message = Some(refusal.message);
            }
        }
        result
    });
    Outcome::Now(DescribeConfigsResponse {
        results: results.collect(),
        ..DescribeConfigsResponse::default()
    })
}

/// Whether the client asks for a topic that is not known here and may be at another broker.
pub(crate) fn names_unknown(call: &Call<'_>, body: &[u8]) -> bool {
    let request = DescribeConfigsRequest::decode(&mut Reader::new(body), call.version);
    request.is_ok_and(|request| {
        let mut resources = request.resources.iter();
        resources.any(|resource| {
            let name = &resource.resource_name;
            resource.resource_type == RESOURCE_TOPIC
                && call.rights.show(ResourceType::Topic, Operation::DescribeConfigs, name)
                && call.state.catalog.is_unknown(name)
        })
    })
}

/// Checks whether the client may describe or alter the configuration of a resource.
///
/// # Errors
/// The code for the resource's type. What has no type is passed: the handler knows it no better.
pub(crate) fn authorize(
    rights: &Rights,
    operation: Operation,
    resource_type: i8,
    name: &str,
) -> Result<(), Refusal> {
    let (resource_type, name) = match resource_type {
        RESOURCE_TOPIC => (ResourceType::Topic, name),
        RESOURCE_GROUP => (ResourceType::Group, name),
        RESOURCE_BROKER | RESOURCE_BROKER_LOGGER | RESOURCE_CLIENT_METRICS => {
            (ResourceType::Cluster, CLUSTER_NAME)
        }
        _ => return Ok(()),
    };
    match rights.allow(resource_type, operation, name) {
        true => Ok(()),
        false => Err(denied(resource_type)),
    }
}

fn describe(
    call: &Call<'_>,
    resource: &DescribeConfigsResource,
    request: &DescribeConfigsRequest,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let name = &resource.resource_name;
    let wanted = |key: &str| match &resource.configuration_keys {
        // Old clients say "all" by an empty list.
        Some(keys) if !keys.is_empty() => keys.iter().any(|wanted| wanted == key),
        _ => true,
    };
    authorize(&call.rights, Operation::DescribeConfigs, resource.resource_type, name)?;
    match resource.resource_type {
        RESOURCE_TOPIC => {
            topic_names::check_name(name)?;
            let topic =
                call.state.catalog.by_name(name).ok_or_else(|| catalog::unknown_name(name))?;
            let keys = TOPIC_KEYS.iter().filter(|key| wanted(key.name));
            let defaults = call.state.catalog.defaults();
            Ok(keys.map(|key| of_topic(&topic, key, &defaults, request)).collect())
        }
        RESOURCE_GROUP if name.is_empty() => Err(no_default_group()),
        RESOURCE_GROUP => {
            let overrides = call.state.groups.view(|groups| groups.overrides(name));
            let config = &call.state.config.groups;
            let keys = GROUP_KEYS.iter().filter(|key| wanted(key.name));
            Ok(keys.map(|key| of_group(config, &overrides, key, request)).collect())
        }
        RESOURCE_CLIENT_METRICS => {
            telemetry::check_name(name)?;
            let configs = call.state.telemetry.view(|all| all.configs(name));
            let keys = SUBSCRIPTION_KEYS.iter().filter(|key| wanted(key.name));
            Ok(keys.map(|key| of_client_metrics(&configs, key, request)).collect())
        }
        RESOURCE_BROKER | RESOURCE_BROKER_LOGGER => {
            let mut configs = match resource.resource_type {
                RESOURCE_BROKER => broker_configs::describe(call.state, name, request)?,
                _ => broker_configs::describe_loggers(call.state, name)?,
            };
            configs.retain(|config| wanted(&config.name));
            Ok(configs)
        }
        other => {
            let message = format!("resources of type {other} have no configuration here");
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        }
    }
}

/// `INVALID_REQUEST` for the group of the empty name.
pub(crate) fn no_default_group() -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, "there is no configuration for all groups")
}

fn of_group(
    config: &GroupSettings,
    overrides: &GroupOverrides,
    key: &GroupKey,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let default = key.default(config);
    let is_builtin = default == key.default(&GroupSettings::default());
    let broker_source = if is_builtin { SOURCE_DEFAULT } else { SOURCE_STATIC_BROKER };
    let own = overrides.get(key.name).map(|value| (key.name, value.clone(), SOURCE_GROUP));
    let of_broker = (key.broker_key.unwrap_or(key.name), default, broker_source);
    let (_, value, source) = own.clone().unwrap_or_else(|| of_broker.clone());
    let synonyms = own.into_iter().chain([of_broker]);
    let shown = synonyms.filter(|_| request.include_synonyms);
    let shown = shown.map(|(name, value, source)| DescribeConfigsSynonym {
        name: name.to_owned(),
        value: Some(value),
        source,
        ..DescribeConfigsSynonym::default()
    });
    DescribeConfigsResourceResult {
        name: key.name.to_owned(),
        value: Some(value),
        config_source: source,
        synonyms: shown.collect(),
        config_type: match key.value_type() {
            GroupKeyType::Boolean => ConfigType::Boolean.code(),
            GroupKeyType::String => ConfigType::String.code(),
            GroupKeyType::Int => ConfigType::Int.code(),
            GroupKeyType::List => ConfigType::List.code(),
        },
        documentation: request.include_documentation.then(|| key.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}

/// As in Kafka, the default is no synonym.
fn of_client_metrics(
    configs: &TopicOverrides,
    key: &SubscriptionKey,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let own = configs.get(key.name).map(|value| (value.as_str(), SOURCE_CLIENT_METRICS));
    let (value, source) = own.unwrap_or((key.default, SOURCE_DEFAULT));
    let synonyms = own.into_iter().filter(|_| request.include_synonyms);
    let synonyms = synonyms.map(|(value, source)| DescribeConfigsSynonym {
        name: key.name.to_owned(),
        value: Some(value.to_owned()),
        source,
        ..DescribeConfigsSynonym::default()
    });
    DescribeConfigsResourceResult {
        name: key.name.to_owned(),
        value: Some(value.to_owned()),
        config_source: source,
        synonyms: synonyms.collect(),
        config_type: key.config_type.code(),
        documentation: request.include_documentation.then(|| key.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}

fn of_topic(
    topic: &Topic,
    key: &TopicKey,
    defaults: &TopicDefaults,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let own = topic.overrides.get(key.name).map(|value| (key.name, value.as_str(), SOURCE_TOPIC));
    let given = defaults.given(key).map(|(source, name, value)| (name, value, code_of(source)));
    // Kafka names no default where several keys of different units may hold it.
    let alone = match key.broker_keys {
        [alone] => Some((alone.name, key.default, SOURCE_DEFAULT)),
        _ => None,
    };
    let synonyms: Vec<_> = own.into_iter().chain(given).chain(alone).collect();
    let source = synonyms.first().map_or(SOURCE_DEFAULT, |(_, _, source)| *source);
    let shown = synonyms.iter().filter(|_| request.include_synonyms);
    let shown = shown.map(|(name, value, source)| DescribeConfigsSynonym {
        name: (*name).to_owned(),
        value: Some((*value).to_owned()),
        source: *source,
        ..DescribeConfigsSynonym::default()
    });
    DescribeConfigsResourceResult {
        name: key.name.to_owned(),
        value: Some(defaults.effective(&topic.overrides, key.name).to_owned()),
        config_source: source,
        synonyms: shown.collect(),
        config_type: key.type_code(),
        documentation: request.include_documentation.then(|| key.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}
