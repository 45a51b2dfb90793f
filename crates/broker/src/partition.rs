//! From the name of a partition, as a request gives it, to its log.

use std::sync::Arc;

use moldau_protocol::ErrorCode;
use moldau_storage::{Log, TopicId};

use crate::catalog::Topic;
use crate::fetch_session::TopicRef;
use crate::state::State;

/// The leader epoch of every partition: the leader never changes.
pub(crate) const LEADER_EPOCH: i32 = 0;

/// The log of a partition that the topic has.
pub(crate) fn log(state: &State, topic: &Topic, partition: i32) -> Arc<Log> {
    state.storage.log(TopicId(topic.id.into_bytes()), partition)
}

/// The log of a partition of a topic given by name.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION`, or the answer to a leader epoch that is not the current one.
pub(crate) fn by_name(
    state: &State,
    topic: &str,
    partition: i32,
    leader_epoch: i32,
) -> Result<Arc<Log>, ErrorCode> {
    let topic = state.catalog.by_name(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    of_topic(state, &topic, partition, leader_epoch)
}

/// The log of a partition of a topic given by name or id.
///
/// # Errors
/// As [`by_name`]; `UNKNOWN_TOPIC_ID` for an id.
pub(crate) fn by_ref(
    state: &State,
    topic: &TopicRef,
    partition: i32,
    leader_epoch: i32,
) -> Result<Arc<Log>, ErrorCode> {
    match topic {
        TopicRef::Name(name) => by_name(state, name, partition, leader_epoch),
        TopicRef::Id(id) => {
            let topic = state.catalog.by_id(*id).ok_or(ErrorCode::UnknownTopicId)?;
            of_topic(state, &topic, partition, leader_epoch)
        }
    }
}

/// KIP-320: an older epoch is fenced, a newer one is not known here.
fn of_topic(
    state: &State,
    topic: &Topic,
    partition: i32,
    leader_epoch: i32,
) -> Result<Arc<Log>, ErrorCode> {
    if !topic.has(partition) {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    match leader_epoch {
        -1 | LEADER_EPOCH => Ok(log(state, topic, partition)),
        older if older < LEADER_EPOCH => Err(ErrorCode::FencedLeaderEpoch),
        _ => Err(ErrorCode::UnknownLeaderEpoch),
    }
}
