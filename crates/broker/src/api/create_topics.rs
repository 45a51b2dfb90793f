//! CreateTopics, versions 2-7 (KIP-195, KIP-464 defaults, KIP-525 configs in the answer).
//!
//! A topic is one frame, whatever its number of partitions, so a request may have 10,000 topics,
//! where Kafka counts their partitions. On a journal there is one broker: a
//! replication factor of 1 or -1 is accepted, and a manual assignment that names only it. A cluster
//! accepts any replication factor, and no assignment.

use std::collections::HashMap;

use moldau_coordinator::InternalTopic;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::create_topics_request::CreatableTopic;
use moldau_protocol::messages::create_topics_response::{
    CreatableTopicConfigs, CreatableTopicResult,
};
use moldau_protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};

use crate::authorizer::Operation;
use crate::authorizer::ResourceType::Topic;
use crate::broker_configs::{SOURCE_DEFAULT, SOURCE_TOPIC, code_of};
use crate::call::{Call, Outcome, check_changes, once_durable, patience};
use crate::config::NODE_ID;
use crate::error::Refusal;
use crate::logs::Lsn;
use crate::state::State;
use crate::topic_config::{TOPIC_KEYS, TopicDefaults, TopicOverrides, canonical, shown};

/// From this version on a client that has exceeded its quota is refused (KIP-599).
const QUOTA_STRICT_SINCE: i16 = 6;

/// What Kafka says of a topic that stands twice in a request.
pub(crate) const TWICE: &str = "Duplicate topic name.";

/// What Kafka says of a request for more than 10,000 partitions. Here they may be of 10,000 topics.
const TOO_MANY_PARTITIONS: &str = "Excessively large number of partitions per request.";

pub(crate) fn handle(
    call: &Call<'_>,
    request: CreateTopicsRequest,
) -> Outcome<CreateTopicsResponse> {
    // The right to create on the cluster is one for every name.
    let on_cluster = call.rights.allow_on_cluster(Operation::Create);
    let within_limit = check_changes(request.topics.len(), TOO_MANY_PARTITIONS);
    let mut last = None;
    let mut results = Vec::with_capacity(request.topics.len());
    let mut mentions: HashMap<_, usize> = HashMap::new();
    for topic in &request.topics {
        *mentions.entry(topic.name.as_str()).or_default() += 1;
    }
    for topic in &request.topics {
        let Some(count) = mentions.remove(topic.name.as_str()) else { continue };
        let outcome = if let Err(refusal) = &within_limit {
            Err(refusal.clone())
        } else if count > 1 {
            Err(Refusal::new(ErrorCode::InvalidRequest, TWICE))
        } else if !(on_cluster || call.rights.allow(Topic, Operation::Create, &topic.name)) {
            // As in Kafka, whose words are fewer here.
            let code = ErrorCode::TopicAuthorizationFailed;
            Err(Refusal::new(code, "Authorization failed."))
        } else {
            create(call, topic, request.validate_only, &mut last)
        };
        results.push(outcome.unwrap_or_else(|refusal| refused(topic, refusal)));
    }
    let response = CreateTopicsResponse { topics: results, ..CreateTopicsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, patience(request.timeout_ms), move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => not_durable(response, &refusal),
    })
}

fn create(
    call: &Call<'_>,
    topic: &CreatableTopic,
    validate_only: bool,
    last: &mut Option<Lsn>,
) -> Result<CreatableTopicResult, Refusal> {
    let partitions = partitions_wanted(call, topic)?;
    let configs = topic.configs.iter();
    let configs = configs.map(|config| (&config.name, config.value.as_ref()));
    let overrides = overrides_wanted(configs)?;
    let catalog = &call.state.catalog;
    let mut result = match call.rights.show(Topic, Operation::DescribeConfigs, &topic.name) {
        true => described(topic, partitions, &overrides, &call.state.catalog.defaults()),
        false => CreatableTopicResult {
            name: topic.name.clone(),
            error_message: None,
            topic_config_error_code: ErrorCode::TopicAuthorizationFailed.into(),
            ..CreatableTopicResult::default()
        },
    };
    if validate_only {
        catalog.check_create(&topic.name, partitions, &overrides)?;
        return Ok(result);
    }
    catalog.check_create(&topic.name, partitions, &overrides)?;
    call.mutate(partitions, QUOTA_STRICT_SINCE)?;
    let (created, lsn) = catalog.create(&call.state.storage, &topic.name, partitions, overrides)?;
    *last = Some(lsn);
    result.topic_id = created.id;
    Ok(result)
}

/// Creates the internal topics of a Streams application, those that do not exist. They are there
/// once the returned position is durable.
///
/// # Errors
/// What is wrong with the first of them, or a journal that takes nothing; none is created then.
pub(crate) fn create_internal(
    state: &State,
    topics: &[InternalTopic],
) -> Result<Option<Lsn>, Refusal> {
    let wanted = topics.iter().map(|topic| {
        // 0 stands for the default.
        if topic.replication_factor != 0 {
            check_replication(state, topic.replication_factor)?;
        }
        let partitions = u32::try_from(topic.partitions).map_err(|_negative| {
            let message = format!("topic {} cannot have so many partitions", topic.name);
            Refusal::new(ErrorCode::InvalidPartitions, message)
        })?;
        let configs = topic.configs.iter().map(|(name, value)| (name, Some(value)));
        Ok((topic.name.clone(), partitions, overrides_wanted(configs)?))
    });
    let wanted = wanted.collect::<Result<_, Refusal>>()?;
    state.catalog.create_together(&state.storage, wanted)
}

/// The object store of a cluster keeps its own copies, so any number of replicas is that of one.
fn check_replication(state: &State, factor: i16) -> Result<(), Refusal> {
    if matches!(factor, -1 | 1) || (factor > 0 && state.nodes.is_shared()) {
        return Ok(());
    }
    let message = match factor {
        ..=0 => "Replication factor must be larger than 0, or -1 to use the default value.".into(),
        _ => format!(
            "Unable to replicate the partition {factor} time(s): The target replication factor of \
             {factor} cannot be reached because only 1 broker(s) are registered or some brokers \
             have all their log directories cordoned."
        ),
    };
    Err(Refusal::new(ErrorCode::InvalidReplicationFactor, message))
}

fn partitions_wanted(call: &Call<'_>, topic: &CreatableTopic) -> Result<u32, Refusal> {
    if !topic.assignments.is_empty() {
        return assigned_partitions(call.state, topic);
    }
    check_replication(call.state, topic.replication_factor)?;
    match topic.num_partitions {
        -1 => Ok(call.state.config.partitions_default),
        count => u32::try_from(count).map_err(|_negative| {
            let message = "Number of partitions was set to an invalid non-positive value.";
            Refusal::new(ErrorCode::InvalidPartitions, message)
        }),
    }
}

fn assigned_partitions(state: &State, topic: &CreatableTopic) -> Result<u32, Refusal> {
    let invalid = |message: &str| Refusal::new(ErrorCode::InvalidReplicaAssignment, message);
    let excess = match (topic.replication_factor, topic.num_partitions) {
        (-1, -1) => None,
        (-1, _) => Some("numPartitions"),
        _ => Some("replication factor"),
    };
    if let Some(excess) = excess {
        let message =
            format!("A manual partition assignment was specified, but {excess} was not set to -1.");
        return Err(Refusal::new(ErrorCode::InvalidRequest, message));
    }
    let mut indexes: Vec<i32> = topic.assignments.iter().map(|one| one.partition_index).collect();
    indexes.sort_unstable();
    if !indexes.iter().copied().eq((0..).take(indexes.len())) {
        return Err(invalid("partitions should be a consecutive 0-based integer sequence"));
    }
    topic.assignments.iter().try_for_each(|one| check_replicas(state, &one.broker_ids))?;
    u32::try_from(indexes.len()).map_err(|_over| invalid("too many partitions"))
}

/// Checks the replicas that a client gives a partition: the one broker is all that there can be. In
/// a cluster, every broker serves every partition.
///
/// # Errors
/// `INVALID_REPLICA_ASSIGNMENT`.
pub(crate) fn check_replicas(state: &State, replicas: &[i32]) -> Result<(), Refusal> {
    let message = match (replicas, replicas.iter().min(), replicas.iter().max()) {
        _ if state.nodes.is_shared() => "a cluster assigns the partitions of a topic itself".into(),
        ([NODE_ID], ..) => return Ok(()),
        (_, Some(other), _) | (_, _, Some(other)) if *other != NODE_ID => format!(
            "The manual partition assignment includes broker {other}, but no such broker is \
             registered."
        ),
        (_, Some(_), _) => {
            format!("The manual partition assignment includes the broker {NODE_ID} more than once.")
        }
        _ => "The manual partition assignment includes an empty replica list.".to_owned(),
    };
    Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message))
}

fn overrides_wanted<'a>(
    configs: impl Iterator<Item = (&'a String, Option<&'a String>)>,
) -> Result<TopicOverrides, Refusal> {
    let pairs = configs.map(|(name, value)| {
        let value = match value {
            Some(value) => canonical(name, value),
            None => Err(format!("Null value not supported for topic configs: {}", shown(name))),
        };
        let value = value.map_err(|problem| Refusal::new(ErrorCode::InvalidConfig, problem))?;
        Ok((name.clone(), value))
    });
    pairs.collect()
}

fn described(
    topic: &CreatableTopic,
    partitions: u32,
    overrides: &TopicOverrides,
    defaults: &TopicDefaults,
) -> CreatableTopicResult {
    let configs = TOPIC_KEYS.iter().map(|key| CreatableTopicConfigs {
        name: key.name.to_owned(),
        value: Some(defaults.effective(overrides, key.name).to_owned()),
        config_source: match overrides.contains_key(key.name) {
            true => SOURCE_TOPIC,
            false => {
                defaults.given(key).next().map_or(SOURCE_DEFAULT, |(source, ..)| code_of(source))
            }
        },
        ..CreatableTopicConfigs::default()
    });
    CreatableTopicResult {
        name: topic.name.clone(),
        num_partitions: i32::try_from(partitions).unwrap_or(i32::MAX),
        error_message: None,
        replication_factor: 1,
        configs: Some(configs.collect()),
        ..CreatableTopicResult::default()
    }
}

fn refused(topic: &CreatableTopic, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: refusal.code.into(),
        error_message: Some(refusal.message),
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}

fn not_durable(mut response: CreateTopicsResponse, refusal: &Refusal) -> CreateTopicsResponse {
    for topic in &mut response.topics {
        topic.error_code = refusal.code.into();
        topic.error_message = Some(refusal.message.clone());
    }
    response
}
