//! ListOffsets, versions 1-11 (KIP-79 by time, KIP-734 max timestamp, KIP-405 local log).
//!
//! A lookup by time is exact: the first record whose timestamp is not before the one asked for,
//! which means that the one batch that holds it is read and, if compressed, unpacked. A consumer of
//! committed records is shown nothing from the last stable offset on (KIP-98). There is no
//! remote storage: the local log start is the log start, and the last tiered offset is unknown.

use std::collections::HashSet;
use std::sync::Arc;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use moldau_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use moldau_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};

use crate::authorizer::Operation::Describe;
use crate::authorizer::ResourceType::Topic;
use crate::call::{Call, Outcome, Turns};
use crate::config::LEADER_EPOCH;
use crate::error::read_code;
use crate::logs::{Isolation, TimeLookup, TimestampOffset};
use crate::partition::{self, Partition, isolation_of};

/// From this version on an offset comes with its leader epoch (KIP-320).
const LEADER_EPOCH_SINCE: i16 = 4;

/// Timestamps that mean something else (`ListOffsetsRequest` of Kafka).
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// Elements of a turn that a lookup by time counts for, of which one may take milliseconds.
const LOOKUP_BY_TIME_COST: usize = 1024;

pub(crate) fn handle(call: &Call<'_>, request: ListOffsetsRequest) -> Outcome<ListOffsetsResponse> {
    let state = Arc::clone(call.state);
    let version = call.version;
    let rights = call.rights.clone();
    // A lookup by time may read from disk, so it runs outside the network thread's turn.
    Outcome::Later(Box::pin(async move {
        let mut turns = Turns::default();
        let isolation = isolation_of(request.isolation_level);
        let mut topics = Vec::with_capacity(request.topics.len());
        let (mut once, twice) = (HashSet::new(), twice(&request.topics));
        for topic in &request.topics {
            let is_allowed = rights.allow(Topic, Describe, &topic.name);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in &topic.partitions {
                turns.step(cost(asked.timestamp)).await;
                let named = (topic.name.as_str(), asked.partition_index);
                let is_twice = is_allowed && twice.contains(&named);
                if is_twice && !once.insert(named) {
                    continue;
                }
                let found = match is_known(asked.timestamp, version) {
                    _ if !is_allowed => Err(ErrorCode::TopicAuthorizationFailed),
                    _ if is_twice => Err(ErrorCode::InvalidRequest),
                    true => {
                        let epoch = asked.current_leader_epoch;
                        partition::by_name(&state, &topic.name, asked.partition_index, epoch)
                    }
                    false => Err(ErrorCode::UnsupportedVersion),
                };
                partitions.push(match found {
                    Ok(found) => with_epoch(version, look_up(&found, asked, isolation).await),
                    Err(code) => refused(asked, code),
                });
            }
            // As in Kafka, only partitions are answered.
            if topic.partitions.is_empty() {
                continue;
            }
            topics.push(ListOffsetsTopicResponse {
                name: topic.name.clone(),
                partitions,
                ..ListOffsetsTopicResponse::default()
            });
        }
        ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
    }))
}

/// The partitions that are named more than once; as in Kafka each is refused, once.
fn twice(topics: &[ListOffsetsTopic]) -> HashSet<(&str, i32)> {
    let mut seen = HashSet::new();
    let named = topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|asked| (topic.name.as_str(), asked.partition_index))
    });
    named.filter(|named| !seen.insert(*named)).collect()
}

/// What a lookup counts for: one by time reads and unpacks a batch.
fn cost(timestamp: i64) -> usize {
    match timestamp {
        0.. | MAX_TIMESTAMP => LOOKUP_BY_TIME_COST,
        _ => 1,
    }
}

/// Whether the version has a meaning for the timestamp; the special ones came one after the other.
fn is_known(timestamp: i64, version: i16) -> bool {
    match timestamp {
        0.. | LATEST | EARLIEST => true,
        MAX_TIMESTAMP => version >= 7,
        EARLIEST_LOCAL => version >= 8,
        LATEST_TIERED => version >= 9,
        EARLIEST_PENDING_UPLOAD => version >= 11,
        _ => false,
    }
}

/// Versions without leader epochs cannot say one.
fn with_epoch(version: i16, found: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse {
    match version {
        LEADER_EPOCH_SINCE.. => found,
        _ => ListOffsetsPartitionResponse { leader_epoch: -1, ..found },
    }
}

async fn look_up(
    partition: &Partition,
    asked: &ListOffsetsPartition,
    isolation: Isolation,
) -> ListOffsetsPartitionResponse {
    let at =
        |offset| Ok(Some(TimestampOffset { offset, timestamp: -1, leader_epoch: LEADER_EPOCH }));
    if let Partition::Written(log) = partition
        && let Err(error) = log.refresh().await
    {
        return refused(asked, read_code(&error));
    }
    let found = match (partition, asked.timestamp) {
        (_, LATEST_TIERED | EARLIEST_PENDING_UPLOAD) => Ok(None),
        (Partition::Unwritten { .. }, LATEST | EARLIEST | EARLIEST_LOCAL) => at(0),
        (Partition::Unwritten { .. }, _) => Ok(None),
        (Partition::Written(log), LATEST) => at(log.end_for(isolation)),
        (Partition::Written(log), EARLIEST | EARLIEST_LOCAL) => at(log.start_offset()),
        (Partition::Written(log), MAX_TIMESTAMP) => log.look_up(TimeLookup::Largest).await,
        (Partition::Written(log), timestamp) => {
            log.look_up(TimeLookup::NotBefore(timestamp, isolation)).await
        }
    };
    match found {
        Ok(Some(found)) => ListOffsetsPartitionResponse {
            partition_index: asked.partition_index,
            timestamp: found.timestamp,
            offset: found.offset,
            leader_epoch: found.leader_epoch,
            ..ListOffsetsPartitionResponse::default()
        },
        Ok(None) => refused(asked, ErrorCode::None),
        Err(error) => refused(asked, read_code(&error)),
    }
}

fn refused(asked: &ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse {
        partition_index: asked.partition_index,
        error_code: code.into(),
        ..ListOffsetsPartitionResponse::default()
    }
}
