//! ElectLeaders 0-2 (KIP-183, KIP-460), AlterPartitionReassignments 0-1 and
//! ListPartitionReassignments 0 (KIP-455, KIP-860).
//!
//! The one broker leads every partition and holds its only replica. So no election is needed, no
//! replica moves, and a reassignment to this broker is done at once.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_partition_reassignments_request::ReassignablePartition;
use moldau_protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use moldau_protocol::messages::elect_leaders_request::TopicPartitions;
use moldau_protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use moldau_protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use moldau_protocol::messages::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ElectLeadersRequest,
    ElectLeadersResponse, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse,
};

use crate::api::create_topics::check_replicas;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::{Refusal, denied};
use crate::topic_config::shown;

/// Kafka's numbers of elections: of the preferred leader, and of any replica.
const ELECTIONS: [i8; 2] = [0, 1];

pub(crate) fn elect(
    call: &Call<'_>,
    request: ElectLeadersRequest,
) -> Outcome<ElectLeadersResponse> {
    let whole = if !call.rights.allow_on_cluster(Operation::Alter) {
        Some(denied(ResourceType::Cluster))
    } else if !ELECTIONS.contains(&request.election_type) {
        let message = format!("Unknown election type {}", request.election_type);
        Some(Refusal::new(ErrorCode::InvalidRequest, message))
    } else {
        None
    };
    let result = |partition_id, refusal: &Refusal| PartitionResult {
        partition_id,
        error_code: refusal.code.into(),
        error_message: Some(refusal.message.clone()),
        ..PartitionResult::default()
    };
    // Of all partitions only those would be listed that get a leader.
    let all = || {
        let topics = call.state.catalog.all();
        let named = topics.iter().map(|topic| TopicPartitions {
            topic: topic.name.to_string(),
            ..TopicPartitions::default()
        });
        named.collect()
    };
    let asked = match (request.topic_partitions, &whole) {
        (Some(asked), _) => asked,
        (None, Some(_)) => Vec::new(),
        (None, None) => all(),
    };
    let asked = asked.into_iter();
    let results = asked.map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| match &whole {
            Some(refusal) => result(*partition, refusal),
            None => result(*partition, &not_elected(call, &topic.topic, *partition)),
        });
        let partition_result = partitions.collect();
        ReplicaElectionResult {
            topic: topic.topic,
            partition_result,
            ..ReplicaElectionResult::default()
        }
    });
    Outcome::Now(ElectLeadersResponse {
        replica_election_results: results.collect(),
        error_code: match (&whole, call.version) {
            (Some(refusal), 1..) => refusal.code.into(),
            _ => ErrorCode::None.into(),
        },
        ..ElectLeadersResponse::default()
    })
}

fn not_elected(call: &Call<'_>, topic: &str, partition: i32) -> Refusal {
    let unknown = |message| Refusal::new(ErrorCode::UnknownTopicOrPartition, message);
    match call.state.catalog.by_name(topic) {
        Some(found) if found.has(partition) => {
            Refusal::new(ErrorCode::ElectionNotNeeded, "the partition has its leader")
        }
        Some(_) => unknown(format!("No such partition as {}-{partition}", shown(topic))),
        None => unknown(format!("No such topic as {}", shown(topic))),
    }
}

pub(crate) fn alter(
    call: &Call<'_>,
    request: AlterPartitionReassignmentsRequest,
) -> Outcome<AlterPartitionReassignmentsResponse> {
    let is_allowed = call.rights.allow_on_cluster(Operation::Alter);
    let whole = (!is_allowed).then(|| denied(ResourceType::Cluster));
    let allow_change = request.allow_replication_factor_change;
    if is_allowed && request.topics.is_empty() {
        return Outcome::Now(AlterPartitionReassignmentsResponse {
            error_message: Some(String::new()),
            ..AlterPartitionReassignmentsResponse::default()
        });
    }
    let responses = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let altered = match &whole {
                Some(refusal) => Err(refusal.clone()),
                None => reassign(call, &topic.name, partition),
            };
            let refusal = altered.err();
            ReassignablePartitionResponse {
                partition_index: partition.partition_index,
                error_code: refusal.as_ref().map_or(ErrorCode::None, |it| it.code).into(),
                error_message: refusal.map(|refusal| refusal.message),
                ..ReassignablePartitionResponse::default()
            }
        });
        let partitions = partitions.collect();
        ReassignableTopicResponse {
            name: topic.name,
            partitions,
            ..ReassignableTopicResponse::default()
        }
    });
    let responses = responses.collect();
    Outcome::Now(AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: allow_change || whole.is_some(),
        error_code: whole.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).into(),
        error_message: whole.map(|refusal| refusal.message),
        responses,
        ..AlterPartitionReassignmentsResponse::default()
    })
}

/// A partition can be reassigned to where it is, and to nowhere else.
fn reassign(
    call: &Call<'_>,
    topic: &str,
    partition: &ReassignablePartition,
) -> Result<(), Refusal> {
    let unknown = |what: String| {
        let message = format!("Unable to find {what}.");
        Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, message))
    };
    match call.state.catalog.by_name(topic) {
        None => return unknown(format!("a topic named {}", shown(topic))),
        Some(found) if !found.has(partition.partition_index) => {
            return unknown(format!("partition {}:{}", shown(topic), partition.partition_index));
        }
        Some(_) => {}
    }
    match &partition.replicas {
        Some(replicas) => check_replicas(call.state, replicas),
        None => {
            let message = "no reassignment of the partition is in progress";
            Err(Refusal::new(ErrorCode::NoReassignmentInProgress, message))
        }
    }
}

/// Nothing is ever in progress.
pub(crate) fn list(
    call: &Call<'_>,
    request: ListPartitionReassignmentsRequest,
) -> Outcome<ListPartitionReassignmentsResponse> {
    if call.rights.allow_on_cluster(Operation::Describe) {
        return Outcome::Now(ListPartitionReassignmentsResponse {
            error_message: None,
            ..ListPartitionReassignmentsResponse::default()
        });
    }
    let refusal = denied(ResourceType::Cluster);
    // As in Kafka, which repeats what was asked for.
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
        let partitions = topic.partition_indexes.iter().map(|index| OngoingPartitionReassignment {
            partition_index: *index,
            ..OngoingPartitionReassignment::default()
        });
        let partitions = partitions.collect();
        OngoingTopicReassignment {
            name: topic.name,
            partitions,
            ..OngoingTopicReassignment::default()
        }
    });
    Outcome::Now(ListPartitionReassignmentsResponse {
        error_code: refusal.code.into(),
        error_message: Some(refusal.message),
        topics: topics.collect(),
        ..ListPartitionReassignmentsResponse::default()
    })
}
