//! OffsetForLeaderEpoch, versions 2-4 (KIP-101, KIP-320): where an epoch ends.

use std::sync::Arc;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use moldau_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use moldau_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, Turns};
use crate::config::LEADER_EPOCH;
use crate::error::read_code;
use crate::partition::{self, Partition};
use crate::state::State;

pub(crate) fn handle(
    call: &Call<'_>,
    request: OffsetForLeaderEpochRequest,
) -> Outcome<OffsetForLeaderEpochResponse> {
    let (state, rights) = (Arc::clone(call.state), call.rights.clone());
    Outcome::Later(Box::pin(async move {
        let is_broker = rights.allow_on_cluster(Operation::ClusterAction);
        let mut topics = Vec::with_capacity(request.topics.len());
        let mut turns = Turns::default();
        for topic in request.topics {
            let is_allowed =
                is_broker || rights.allow(ResourceType::Topic, Operation::Describe, &topic.topic);
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for asked in &topic.partitions {
                turns.step(1).await;
                partitions.push(match is_allowed {
                    true => end_of(&state, &topic.topic, asked).await,
                    false => EpochEndOffset {
                        partition: asked.partition,
                        error_code: ErrorCode::TopicAuthorizationFailed.into(),
                        ..EpochEndOffset::default()
                    },
                });
            }
            topics.push(OffsetForLeaderTopicResult {
                partitions,
                topic: topic.topic,
                ..OffsetForLeaderTopicResult::default()
            });
        }
        OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
    }))
}

async fn end_of(state: &State, topic: &str, asked: &OffsetForLeaderPartition) -> EpochEndOffset {
    let mut answer = EpochEndOffset { partition: asked.partition, ..EpochEndOffset::default() };
    let epoch = asked.current_leader_epoch;
    match partition::by_name(state, topic, asked.partition, epoch) {
        // Its leader is of the first epoch, in which nothing was written. It has no other, which
        // the default says.
        Ok(Partition::Unwritten { .. }) => {
            if asked.leader_epoch == LEADER_EPOCH {
                answer.leader_epoch = LEADER_EPOCH;
                answer.end_offset = 0;
            }
        }
        Ok(Partition::Written(log)) => {
            if let Err(error) = log.refresh().await {
                answer.error_code = read_code(&error).into();
                return answer;
            }
            let end = log.end_of_epoch(asked.leader_epoch);
            answer.leader_epoch = end.leader_epoch;
            answer.end_offset = end.end_offset;
        }
        Err(code) => answer.error_code = code.into(),
    }
    answer
}
