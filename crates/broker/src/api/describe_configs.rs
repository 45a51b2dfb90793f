//! DescribeConfigs, versions 1-4 (KIP-133, KIP-226 synonyms, KIP-569 documentation).
//!
//! A topic shows every key of Kafka; its documentation says what the key does here, and whether it
//! is stored only or not supported. Sources are the topic and the built-in default. The broker
//! shows the settings of its own that Kafka knows by another name. There are no defaults for the
//! whole cluster (the broker of the empty name), and no groups, loggers or client metrics with a
//! configuration.

use std::collections::HashSet;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use moldau_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::catalog::{self, Topic};
use crate::config::NODE_ID;
use crate::error::{Refusal, denied};
use crate::rights::Rights;
use crate::topic_config::{TOPIC_KEYS, TopicKey, shown};

/// Kafka's numbers of resource types.
pub(crate) const RESOURCE_TOPIC: i8 = 2;
const RESOURCE_BROKER: i8 = 4;
const RESOURCE_BROKER_LOGGER: i8 = 8;
const RESOURCE_CLIENT_METRICS: i8 = 16;
const RESOURCE_GROUP: i8 = 32;

/// Kafka's numbers of sources: the topic itself, the process's own start, the built-in default.
const SOURCE_TOPIC: i8 = 1;
const SOURCE_STATIC_BROKER: i8 = 4;
const SOURCE_DEFAULT: i8 = 5;

/// Kafka's number for free text; the broker's settings are shown as such.
const TYPE_STRING: i8 = 2;

const TWICE: &str = "a resource stands in a request once";

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
            catalog::check_name(name)?;
            let topic =
                call.state.catalog.by_name(name).ok_or_else(|| catalog::unknown_name(name))?;
            let keys = TOPIC_KEYS.iter().filter(|key| wanted(key.name));
            Ok(keys.map(|key| of_topic(&topic, key, request)).collect())
        }
        RESOURCE_BROKER if name.is_empty() => Ok(Vec::new()),
        RESOURCE_BROKER if *name == NODE_ID.to_string() => {
            let values = call.state.config.broker_configs();
            let values = values.into_iter().filter(|(key, _)| wanted(key));
            Ok(values.map(|(key, value)| of_broker(key, value)).collect())
        }
        RESOURCE_BROKER => {
            let message = format!("broker {} is not this one, which is {NODE_ID}", shown(name));
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        }
        other => {
            let message = format!("resources of type {other} have no configuration here");
            Err(Refusal::new(ErrorCode::InvalidRequest, message))
        }
    }
}

fn of_topic(
    topic: &Topic,
    key: &TopicKey,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let own = topic.overrides.get(key.name);
    let source = if own.is_some() { SOURCE_TOPIC } else { SOURCE_DEFAULT };
    let mut synonyms = Vec::new();
    if request.include_synonyms {
        let synonym = |name: &str, value: &str, source| DescribeConfigsSynonym {
            name: name.to_owned(),
            value: Some(value.to_owned()),
            source,
            ..DescribeConfigsSynonym::default()
        };
        synonyms.extend(own.map(|value| synonym(key.name, value, SOURCE_TOPIC)));
        let default = |name| synonym(name, key.default, SOURCE_DEFAULT);
        synonyms.extend(key.broker_synonym.map(default));
    }
    DescribeConfigsResourceResult {
        name: key.name.to_owned(),
        value: Some(own.map_or(key.default, String::as_str).to_owned()),
        config_source: source,
        synonyms,
        config_type: key.type_code(),
        documentation: request.include_documentation.then(|| key.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}

fn of_broker(key: &str, value: String) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: key.to_owned(),
        value: Some(value),
        read_only: true,
        config_source: SOURCE_STATIC_BROKER,
        config_type: TYPE_STRING,
        ..DescribeConfigsResourceResult::default()
    }
}
