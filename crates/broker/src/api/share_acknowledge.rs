//! ShareAcknowledge, versions 1-2 (KIP-932, KIP-1222): what a member of a share group says of the
//! records that it holds.
//!
//! The acknowledgements of a partition hold as a whole or not at all, once they are durable. The
//! last request of a session also takes back what the member still holds.
//!
//! In a cluster the controller has all share partitions. Any other broker answers
//! `NOT_LEADER_OR_FOLLOWER` and names it.

use std::collections::BTreeMap;

use moldau_coordinator::ShareSettings;
use moldau_coordinator::share_partitions::Acknowledgement;
use moldau_protocol::messages::share_acknowledge_response::{
    LeaderIdAndEpoch, NodeEndpoint, PartitionData, ShareAcknowledgeTopicResponse,
};
use moldau_protocol::messages::{ShareAcknowledgeRequest, ShareAcknowledgeResponse};
use moldau_protocol::{ErrorCode, Uuid};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, once_durable};
use crate::config::DURABLE_WITHIN;
use crate::logs::Lsn;
use crate::nodes::Node;
use crate::share_service::delivery_settings;
use crate::share_session::{FINAL_EPOCH, ShareMember, TopicPartition};

/// From this version on locks can be renewed (KIP-1222).
const RENEWAL_SINCE: i16 = 2;

/// Kafka's number for a renewal; those of what ends a delivery are lower.
const RENEW: i8 = 4;

/// Longest member id that Kafka takes.
const MEMBER_ID_BYTES_MAX: usize = 36;

pub(crate) fn handle(
    call: &Call<'_>,
    request: ShareAcknowledgeRequest,
) -> Outcome<ShareAcknowledgeResponse> {
    let refused = |code: ErrorCode, message: Option<&str>| {
        Outcome::Now(ShareAcknowledgeResponse {
            error_code: code.into(),
            error_message: message.map(str::to_owned),
            ..ShareAcknowledgeResponse::default()
        })
    };
    let member = match member_of(call, request.group_id, request.member_id) {
        Ok(member) => member,
        Err((code, message)) => return refused(code, message),
    };
    let epoch = request.share_session_epoch;
    if let Err(code) = call.state.share_sessions.acknowledge(&member, epoch) {
        return refused(code, None);
    }
    let settings = call.state.groups.view(|groups| groups.share_settings(&member.group_id));
    let said = request.topics.into_iter().flat_map(|topic| {
        topic.partitions.into_iter().map(move |partition| {
            let said = partition.acknowledgement_batches.into_iter().map(|batch| Acknowledgement {
                first: batch.first_offset,
                last: batch.last_offset,
                kinds: batch.acknowledge_types,
            });
            ((topic.topic_id, partition.partition_index), said.collect())
        })
    });
    let said: Vec<_> = said.collect();
    let mut settled = settle(call, &member, said, request.is_renew_ack, &settings);
    if epoch == FINAL_EPOCH {
        settled.end_session(call, &member);
    }
    let timeout_ms = settings.record_lock_duration_ms;
    let state = std::sync::Arc::clone(call.state);
    let response = move |results| response(results, timeout_ms, state.nodes.share_leader());
    match settled.written {
        None => Outcome::Now(response(settled.results)),
        Some(lsn) => once_durable(call, lsn, DURABLE_WITHIN, move |durable| {
            if let Err(refusal) = durable {
                settled.fail(refusal.code_of_shares());
            }
            response(settled.results)
        }),
    }
}

fn response(
    results: BTreeMap<TopicPartition, ErrorCode>,
    acquisition_lock_timeout_ms: i32,
    leader: Option<(Node, i32)>,
) -> ShareAcknowledgeResponse {
    let moved = ErrorCode::NotLeaderOrFollower;
    let leader = leader.filter(|_| results.values().any(|code| *code == moved));
    let mut responses: Vec<ShareAcknowledgeTopicResponse> = Vec::new();
    for ((topic_id, partition_index), code) in results {
        if responses.last().is_none_or(|topic| topic.topic_id != topic_id) {
            responses.push(ShareAcknowledgeTopicResponse { topic_id, ..Default::default() });
        }
        if let Some(topic) = responses.last_mut() {
            topic.partitions.push(PartitionData {
                partition_index,
                error_code: code.into(),
                current_leader: leader.as_ref().filter(|_| code == moved).map_or_else(
                    LeaderIdAndEpoch::default,
                    |(node, leader_epoch)| LeaderIdAndEpoch {
                        leader_id: node.id,
                        leader_epoch: *leader_epoch,
                        ..LeaderIdAndEpoch::default()
                    },
                ),
                ..PartitionData::default()
            });
        }
    }
    let endpoint = |(node, _): (Node, i32)| NodeEndpoint {
        node_id: node.id,
        host: node.host,
        port: node.port,
        rack: node.rack,
        ..NodeEndpoint::default()
    };
    ShareAcknowledgeResponse {
        acquisition_lock_timeout_ms,
        responses,
        node_endpoints: leader.into_iter().map(endpoint).collect(),
        ..ShareAcknowledgeResponse::default()
    }
}

/// The sender of a request.
///
/// # Errors
/// The request names no group or member, or the sender may not read as the group.
pub(crate) fn member_of(
    call: &Call<'_>,
    group_id: Option<String>,
    member_id: Option<String>,
) -> Result<ShareMember, (ErrorCode, Option<&'static str>)> {
    let Some(group_id) = group_id else {
        return Err((ErrorCode::InvalidRequest, Some("the request has no group id")));
    };
    if !call.rights.allow(ResourceType::Group, Operation::Read, &group_id) {
        return Err((ErrorCode::GroupAuthorizationFailed, None));
    }
    let is_id = |id: &String| (1..=MEMBER_ID_BYTES_MAX).contains(&id.len());
    match member_id.filter(is_id) {
        Some(member_id) => {
            Ok(ShareMember { group_id: group_id.into(), member_id: member_id.into() })
        }
        None => Err((ErrorCode::InvalidRequest, Some("the request has no valid member id"))),
    }
}

/// What acknowledgements came to.
pub(crate) struct Settled {
    pub(crate) results: BTreeMap<TopicPartition, ErrorCode>,
    /// The results hold once this is durable.
    pub(crate) written: Option<Lsn>,
}

impl Settled {
    /// Ends the member's session and takes back what it holds.
    pub(crate) fn end_session(&mut self, call: &Call<'_>, member: &ShareMember) {
        let partitions = call.state.share_sessions.close(member).unwrap_or_default();
        for partition in partitions {
            match call.state.release(member, [partition]) {
                Ok(written) => self.written = self.written.max(written),
                // The answer is about acknowledgements; locks end by themselves.
                Err(refusal) => tracing::warn!(problem = refusal.message, "records stay locked"),
            }
        }
    }

    /// What was written is not durable.
    pub(crate) fn fail(&mut self, code: ErrorCode) {
        self.results.values_mut().filter(|it| **it == ErrorCode::None).for_each(|it| *it = code);
    }
}

/// Takes what a member says of the records that it holds.
pub(crate) fn settle(
    call: &Call<'_>,
    member: &ShareMember,
    said: Vec<(TopicPartition, Vec<Acknowledgement>)>,
    renews: bool,
    settings: &ShareSettings,
) -> Settled {
    let kind_max = match call.version >= RENEWAL_SINCE && settings.renew_acknowledge_enable {
        true => RENEW,
        false => RENEW - 1,
    };
    let mut settled = Settled { results: BTreeMap::new(), written: None };
    for (partition, acknowledgements) in said.into_iter().filter(|(_, said)| !said.is_empty()) {
        let checked = check(&acknowledgements, kind_max, renews)
            .and_then(|()| find(call, partition))
            .and_then(|()| call.state.storage.deliver())
            .and_then(|()| {
                let (shares, storage) = (&call.state.shares, &call.state.storage);
                let (key, settings) = (member.key(partition), delivery_settings(settings));
                let said = &acknowledgements;
                shares.acknowledge(storage, &key, &member.member_id, said, &settings)
            });
        let code = match checked {
            Ok(written) => {
                settled.written = settled.written.max(written);
                ErrorCode::None
            }
            Err(code) => code,
        };
        settled.results.insert(partition, code);
    }
    settled
}

/// What Kafka checks before it looks at the records.
fn check(
    acknowledgements: &[Acknowledgement],
    kind_max: i8,
    renews: bool,
) -> Result<(), ErrorCode> {
    let mut end = -1;
    for Acknowledgement { first, last, kinds } in acknowledgements {
        let counts = kinds.len() <= 1 || i64::try_from(kinds.len() - 1) == Ok(last - first);
        let are_known = kinds.iter().all(|kind| (0..=kind_max).contains(kind));
        let are_renewed = renews || !kinds.contains(&RENEW);
        let is_ordered = first <= last && *first >= end;
        if kinds.is_empty() || !is_ordered || !counts || !are_known || !are_renewed {
            return Err(ErrorCode::InvalidRequest);
        }
        end = *last;
    }
    Ok(())
}

/// Whether the partition exists and the sender may read it.
pub(crate) fn find(call: &Call<'_>, (topic_id, partition): (Uuid, i32)) -> Result<(), ErrorCode> {
    let topic = call.state.catalog.by_id(topic_id).ok_or(ErrorCode::UnknownTopicId)?;
    if !call.rights.allow(ResourceType::Topic, Operation::Read, &topic.name) {
        return Err(ErrorCode::TopicAuthorizationFailed);
    }
    topic.has(partition).then_some(()).ok_or(ErrorCode::UnknownTopicOrPartition)
}
