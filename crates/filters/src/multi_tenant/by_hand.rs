//! Names that a message's layout does not tell: those whose kind another field tells, those within
//! bytes, and expressions over names. Requests come here when their other names have the prefix,
//! answers when their other names have lost it.

use std::sync::Arc;

use moldau_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ConsumerProtocolAssignment,
    ConsumerProtocolSubscription, DescribeConfigsRequest, DescribeConfigsResponse,
    DescribeGroupsResponse, DescribeLogDirsResponse, DescribeTopicPartitionsRequest,
    FindCoordinatorRequest, FindCoordinatorResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, JoinGroupRequest, JoinGroupResponse,
    ListConfigResourcesResponse, ListTransactionsRequest, ListTransactionsResponse,
    StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse, SyncGroupRequest,
    SyncGroupResponse, describe_topic_partitions_request::Cursor,
    find_coordinator_response::Coordinator,
};
use moldau_protocol::names::Visitor;
use moldau_protocol::{ApiKey, ErrorCode, Layout, Request, Response};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

use super::names::{Adding, Stripping, rewrite_versioned};
use super::regex;
use crate::partial::Complete;

/// Kafka's numbers for the types of what has a configuration.
pub(super) const TOPIC_RESOURCE: i8 = 2;
pub(super) const GROUP_RESOURCE: i8 = 32;

/// Kafka's numbers for what a coordinator is asked for.
const GROUP_KEY: i8 = 0;
const TRANSACTION_KEY: i8 = 1;
const SHARE_KEY: i8 = 2;

/// The configuration of a group that names a topic (KIP-1191).
const DEAD_LETTER_TOPIC: &str = "errors.deadletterqueue.topic.name";

/// The size of a disk if it is unknown (KIP-827).
const UNKNOWN_BYTES: i64 = -1;

/// The first version of FindCoordinator that asks for several (KIP-699).
const COORDINATOR_KEYS_SINCE: i16 = 4;

/// The protocol of classic groups whose bytes have names of topics in Kafka's own form.
const CONSUMER_PROTOCOL: &str = "consumer";

const SUBSCRIPTION: Layout = Layout::of::<ConsumerProtocolSubscription>();
const ASSIGNMENT: Layout = Layout::of::<ConsumerProtocolAssignment>();

/// What became of a request.
pub(super) enum Renamed {
    /// It goes on; its answer may have to be completed.
    Forward(RequestFrame, Option<Complete>),
    /// It is refused.
    Respond(ResponseFrame),
}

/// Puts the prefix before the names of a request that are left. `is_consumer` holds whether the
/// session's classic group is one of consumers, which old versions of SyncGroup do not tell.
pub(super) fn request(
    prefix: &Arc<str>,
    request: RequestFrame,
    is_consumer: &std::cell::Cell<bool>,
) -> Result<Renamed, FilterError> {
    match request.api_key() {
        ApiKey::FindCoordinator => find_coordinator(prefix, request),
        ApiKey::DescribeConfigs => change(request, |message: &mut DescribeConfigsRequest| {
            message.resources.iter_mut().for_each(|of| add(prefix, &mut of.resource_name));
        }),
        ApiKey::AlterConfigs => change(request, |message: &mut AlterConfigsRequest| {
            for of in &mut message.resources {
                add(prefix, &mut of.resource_name);
                let configs =
                    of.configs.iter_mut().filter(|it| is_topic(of.resource_type, &it.name));
                configs.for_each(|it| add_given(prefix, &mut it.value));
            }
        }),
        ApiKey::IncrementalAlterConfigs => {
            change(request, |message: &mut IncrementalAlterConfigsRequest| {
                for of in &mut message.resources {
                    add(prefix, &mut of.resource_name);
                    let configs = of.configs.iter_mut();
                    let topics = configs.filter(|it| is_topic(of.resource_type, &it.name));
                    topics.for_each(|it| add_given(prefix, &mut it.value));
                }
            })
        }
        ApiKey::JoinGroup => join_group(prefix, request, is_consumer),
        ApiKey::SyncGroup => sync_group(prefix, request, is_consumer),
        ApiKey::ConsumerGroupHeartbeat => consumer_heartbeat(prefix, request),
        ApiKey::StreamsGroupHeartbeat => streams_heartbeat(prefix, request),
        ApiKey::ListTransactions => list_transactions(prefix, request),
        ApiKey::DescribeTopicPartitions => describe_topic_partitions(prefix, request),
        _ => Ok(Renamed::Forward(request, None)),
    }
}

/// Takes the prefix from the names of an answer that are left, and leaves out what is of others.
pub(super) fn response(prefix: &str, answer: ResponseFrame) -> Result<ResponseFrame, FilterError> {
    match answer.api_key() {
        ApiKey::FindCoordinator => {
            change_answer(answer, |message: &mut FindCoordinatorResponse| {
                message
                    .coordinators
                    .retain_mut(|of| of.key.is_empty() || strip(prefix, &mut of.key));
            })
        }
        ApiKey::DescribeConfigs => {
            change_answer(answer, |message: &mut DescribeConfigsResponse| {
                message.results.retain_mut(|of| strip(prefix, &mut of.resource_name));
                for of in &mut message.results {
                    let configs = of.configs.iter_mut();
                    for config in configs.filter(|it| is_topic(of.resource_type, &it.name)) {
                        strip_given(prefix, &mut config.value);
                        let synonyms = config.synonyms.iter_mut();
                        synonyms.for_each(|it| strip_given(prefix, &mut it.value));
                    }
                }
            })
        }
        ApiKey::AlterConfigs => change_answer(answer, |message: &mut AlterConfigsResponse| {
            message.responses.retain_mut(|of| strip(prefix, &mut of.resource_name));
        }),
        ApiKey::IncrementalAlterConfigs => {
            change_answer(answer, |message: &mut IncrementalAlterConfigsResponse| {
                message.responses.retain_mut(|of| strip(prefix, &mut of.resource_name));
            })
        }
        ApiKey::ListConfigResources => {
            change_answer(answer, |message: &mut ListConfigResourcesResponse| {
                message.config_resources.retain_mut(|of| {
                    matches!(of.resource_type, TOPIC_RESOURCE | GROUP_RESOURCE)
                        && strip(prefix, &mut of.resource_name)
                });
            })
        }
        ApiKey::DescribeGroups => change_answer(answer, |message: &mut DescribeGroupsResponse| {
            let groups = message.groups.iter_mut();
            for group in groups.filter(|group| group.protocol_type == CONSUMER_PROTOCOL) {
                for member in &mut group.members {
                    rename(&SUBSCRIPTION, &mut member.member_metadata, &mut Stripping(prefix));
                    rename(&ASSIGNMENT, &mut member.member_assignment, &mut Stripping(prefix));
                }
            }
        }),
        // Tenants share the disk, so none may see how full it is (KIP-827).
        ApiKey::DescribeLogDirs => {
            change_answer(answer, |message: &mut DescribeLogDirsResponse| {
                for directory in &mut message.results {
                    (directory.total_bytes, directory.usable_bytes) =
                        (UNKNOWN_BYTES, UNKNOWN_BYTES);
                }
            })
        }
        ApiKey::ConsumerGroupDescribe => {
            change_answer(answer, |message: &mut ConsumerGroupDescribeResponse| {
                let members = message.groups.iter_mut().flat_map(|group| &mut group.members);
                for member in members {
                    let pattern = member.subscribed_topic_regex.as_deref();
                    let own = pattern.and_then(|it| regex::without_prefix(prefix, it));
                    member.subscribed_topic_regex = own.map(str::to_owned);
                }
            })
        }
        _ => Ok(answer),
    }
}

fn find_coordinator(prefix: &str, request: RequestFrame) -> Result<Renamed, FilterError> {
    let mut message: FindCoordinatorRequest = request.decode()?;
    let code = match message.key_type {
        GROUP_KEY | TRANSACTION_KEY => {
            let keys = std::iter::once(&mut message.key).chain(&mut message.coordinator_keys);
            let is_named = |key: &&mut String| message.key_type == GROUP_KEY || !key.is_empty();
            keys.filter(is_named).for_each(|key| add(prefix, key));
            if request.api_version() >= COORDINATOR_KEYS_SINCE {
                message.key.clear();
            }
            return Ok(Renamed::Forward(request.with_message(&message)?, None));
        }
        SHARE_KEY => ErrorCode::ClusterAuthorizationFailed,
        _ => ErrorCode::InvalidRequest,
    };
    let error_code = code.into();
    let refused = message.coordinator_keys.into_iter().map(|key| Coordinator {
        key,
        node_id: -1,
        port: -1,
        error_code,
        ..Default::default()
    });
    let coordinators: Vec<_> = refused.collect();
    let answer = if request.api_version() >= COORDINATOR_KEYS_SINCE {
        FindCoordinatorResponse { coordinators, ..Default::default() }
    } else {
        FindCoordinatorResponse { error_code, node_id: -1, port: -1, ..Default::default() }
    };
    Ok(Renamed::Respond(request.respond(&answer)?))
}

fn join_group(
    prefix: &Arc<str>,
    request: RequestFrame,
    is_consumer: &std::cell::Cell<bool>,
) -> Result<Renamed, FilterError> {
    let mut message: JoinGroupRequest = request.decode()?;
    is_consumer.set(message.protocol_type == CONSUMER_PROTOCOL);
    if !is_consumer.get() {
        return Ok(Renamed::Forward(request, None));
    }
    for protocol in &mut message.protocols {
        rename(&SUBSCRIPTION, &mut protocol.metadata, &mut Adding(prefix));
    }
    let prefix = Arc::clone(prefix);
    let complete: Complete = Box::new(move |answer| {
        change_answer(answer, |message: &mut JoinGroupResponse| {
            for member in &mut message.members {
                rename(&SUBSCRIPTION, &mut member.metadata, &mut Stripping(&prefix));
            }
        })
    });
    Ok(Renamed::Forward(request.with_message(&message)?, Some(complete)))
}

fn sync_group(
    prefix: &Arc<str>,
    request: RequestFrame,
    is_consumer: &std::cell::Cell<bool>,
) -> Result<Renamed, FilterError> {
    let mut message: SyncGroupRequest = request.decode()?;
    let told = message.protocol_type.as_ref().map(|told| told == CONSUMER_PROTOCOL);
    if !told.unwrap_or(is_consumer.get()) {
        return Ok(Renamed::Forward(request, None));
    }
    for of in &mut message.assignments {
        rename(&ASSIGNMENT, &mut of.assignment, &mut Adding(prefix));
    }
    let prefix = Arc::clone(prefix);
    let complete: Complete = Box::new(move |answer| {
        change_answer(answer, |message: &mut SyncGroupResponse| {
            rename(&ASSIGNMENT, &mut message.assignment, &mut Stripping(&prefix));
        })
    });
    Ok(Renamed::Forward(request.with_message(&message)?, Some(complete)))
}

fn consumer_heartbeat(prefix: &str, request: RequestFrame) -> Result<Renamed, FilterError> {
    let mut message: ConsumerGroupHeartbeatRequest = request.decode()?;
    let Some(pattern) = &mut message.subscribed_topic_regex else {
        return Ok(Renamed::Forward(request, None));
    };
    match regex::with_prefix(prefix, pattern) {
        Some(wide) => *pattern = wide,
        None => {
            let error_code = ErrorCode::InvalidRegularExpression.into();
            let error_message = Some(UNCLEAR_EXPRESSION.to_owned());
            let answer =
                ConsumerGroupHeartbeatResponse { error_code, error_message, ..Default::default() };
            return Ok(Renamed::Respond(request.respond(&answer)?));
        }
    }
    Ok(Renamed::Forward(request.with_message(&message)?, None))
}

fn streams_heartbeat(prefix: &str, request: RequestFrame) -> Result<Renamed, FilterError> {
    let mut message: StreamsGroupHeartbeatRequest = request.decode()?;
    let subtopologies = message.topology.iter_mut().flat_map(|it| &mut it.subtopologies);
    let mut is_changed = false;
    for pattern in subtopologies.flat_map(|it| &mut it.source_topic_regex) {
        let Some(wide) = regex::with_prefix(prefix, pattern) else {
            let error_code = ErrorCode::StreamsInvalidTopology.into();
            let error_message = Some(UNCLEAR_EXPRESSION.to_owned());
            let answer =
                StreamsGroupHeartbeatResponse { error_code, error_message, ..Default::default() };
            return Ok(Renamed::Respond(request.respond(&answer)?));
        };
        *pattern = wide;
        is_changed = true;
    }
    let request = if is_changed { request.with_message(&message)? } else { request };
    Ok(Renamed::Forward(request, None))
}

fn list_transactions(prefix: &str, request: RequestFrame) -> Result<Renamed, FilterError> {
    let mut message: ListTransactionsRequest = request.decode()?;
    let Some(pattern) = &mut message.transactional_id_pattern else {
        return Ok(Renamed::Forward(request, None));
    };
    let Some(wide) = regex::with_prefix(prefix, pattern) else {
        let error_code = ErrorCode::InvalidRegularExpression.into();
        let answer = ListTransactionsResponse { error_code, ..Default::default() };
        return Ok(Renamed::Respond(request.respond(&answer)?));
    };
    *pattern = wide;
    Ok(Renamed::Forward(request.with_message(&message)?, None))
}

/// All topics come in pages, in the order of their names. Only some are the tenant's: the first
/// that could be begins the first page.
fn describe_topic_partitions(prefix: &str, request: RequestFrame) -> Result<Renamed, FilterError> {
    let mut message: DescribeTopicPartitionsRequest = request.decode()?;
    if !message.topics.is_empty() || message.cursor.is_some() {
        return Ok(Renamed::Forward(request, None));
    }
    message.cursor = Some(Cursor { topic_name: prefix.to_owned(), ..Default::default() });
    Ok(Renamed::Forward(request.with_message(&message)?, None))
}

/// Told to a client whose expression cannot be put behind the prefix for certain.
const UNCLEAR_EXPRESSION: &str = "The regular expression has groups or classes that this cluster \
                                  does not take.";

fn change<Q: Request>(
    request: RequestFrame,
    change: impl FnOnce(&mut Q),
) -> Result<Renamed, FilterError> {
    let mut message: Q = request.decode()?;
    change(&mut message);
    Ok(Renamed::Forward(request.with_message(&message)?, None))
}

fn change_answer<R: Response>(
    answer: ResponseFrame,
    change: impl FnOnce(&mut R),
) -> Result<ResponseFrame, FilterError> {
    let mut message: R = answer.decode()?;
    change(&mut message);
    Ok(answer.with_message(&message)?)
}

/// Whether a configuration names a topic.
fn is_topic(resource_type: i8, name: &str) -> bool {
    resource_type == GROUP_RESOURCE && name == DEAD_LETTER_TOPIC
}

/// Puts the prefix before the name of a topic, if there is one.
fn add_given(prefix: &str, name: &mut Option<String>) {
    name.iter_mut().filter(|name| !name.is_empty()).for_each(|name| add(prefix, name));
}

/// Takes the prefix away. A topic of others is none to the tenant.
fn strip_given(prefix: &str, name: &mut Option<String>) {
    if let Some(name) = name
        && !strip(prefix, name)
    {
        name.clear();
    }
}

fn add(prefix: &str, name: &mut String) {
    name.insert_str(0, prefix);
}

/// Takes the prefix away; false if there is none.
fn strip(prefix: &str, name: &mut String) -> bool {
    let has_prefix = name.starts_with(prefix);
    if has_prefix {
        name.drain(..prefix.len());
    }
    has_prefix
}

/// Rewrites what members of a classic group tell each other. What is not in Kafka's form is theirs
/// alone: the cluster cannot read it either.
fn rename(layout: &Layout, bytes: &mut bytes::Bytes, visitor: &mut impl Visitor) {
    if let Ok(renamed) = rewrite_versioned(layout, bytes, visitor) {
        *bytes = renamed.into();
    }
}
