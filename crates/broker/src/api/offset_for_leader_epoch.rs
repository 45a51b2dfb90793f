//! OffsetForLeaderEpoch, versions 2-4 (KIP-101, KIP-320): where an epoch ends.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use moldau_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use moldau_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::config::LEADER_EPOCH;
use crate::partition::{self, Partition};

pub(crate) fn handle(
    call: &Call<'_>,
    request: OffsetForLeaderEpochRequest,
) -> Outcome<OffsetForLeaderEpochResponse> {
    let rights = &call.rights;
    let is_broker = rights.allow_on_cluster(Operation::ClusterAction);
    let topics = request.topics.into_iter().map(|topic| {
        let is_allowed =
            is_broker || rights.allow(ResourceType::Topic, Operation::Describe, &topic.topic);
        let partitions = topic.partitions.iter().map(|asked| match is_allowed {
            true => end_of(call, &topic.topic, asked),
            false => EpochEndOffset {
                partition: asked.partition,
                error_code: ErrorCode::TopicAuthorizationFailed.into(),
                ..EpochEndOffset::default()
            },
        });
        OffsetForLeaderTopicResult {
            partitions: partitions.collect(),
            topic: topic.topic,
            ..OffsetForLeaderTopicResult::default()
        }
    });
    Outcome::Now(OffsetForLeaderEpochResponse {
        topics: topics.collect(),
        ..OffsetForLeaderEpochResponse::default()
    })
}

fn end_of(call: &Call<'_>, topic: &str, asked: &OffsetForLeaderPartition) -> EpochEndOffset {
    let mut answer = EpochEndOffset { partition: asked.partition, ..EpochEndOffset::default() };
    let epoch = asked.current_leader_epoch;
    match partition::by_name(call.state, topic, asked.partition, epoch) {
        // Its leader is of the first epoch, in which nothing was written. It has no other, which
        // the default says.
        Ok(Partition::Unwritten { .. }) => {
            if asked.leader_epoch == LEADER_EPOCH {
                answer.leader_epoch = LEADER_EPOCH;
                answer.end_offset = 0;
            }
        }
        Ok(Partition::Written(log)) => {
            let end = log.end_of_epoch(asked.leader_epoch);
            answer.leader_epoch = end.leader_epoch;
            answer.end_offset = end.end_offset;
        }
        Err(code) => answer.error_code = code.into(),
    }
    answer
}
