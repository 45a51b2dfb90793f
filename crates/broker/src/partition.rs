//! From the name of a partition, as a request gives it, to its log.

use std::sync::Arc;

use moldau_protocol::ErrorCode;

use crate::catalog::{self, Topic};
use crate::config::LEADER_EPOCH;
use crate::error::Refusal;
use crate::fetch_session::TopicRef;
use crate::logs::{Isolation, Log, Registration, TopicId, Waiter};
use crate::state::State;
use crate::topic_logs::FirstAppend;

/// What a request of this isolation level is to see. Kafka takes anything but 1 for 0.
pub(crate) fn isolation_of(level: i8) -> Isolation {
    match level {
        1 => Isolation::ReadCommitted,
        _ => Isolation::ReadUncommitted,
    }
}

/// A partition that a topic has.
pub(crate) enum Partition {
    /// It was written, or may have been.
    Written(Log),
    /// It is empty and has no state: its log starts and ends at offset 0, and has no epoch.
    Unwritten { topic: Arc<Topic>, index: i32 },
}

impl Partition {
    fn of(state: &State, topic: Arc<Topic>, index: i32) -> Self {
        let found = match state.logs.begin_with_an_append() {
            true => topic.logs.find(index),
            false => for_append(state, &topic, index).ok(),
        };
        match found {
            Some(log) => Self::Written(log),
            None => Self::Unwritten { topic, index },
        }
    }

    /// Wakes the waiter when the partition's high watermark moves, for as long as the watch lives.
    pub(crate) fn watch(&self, waiter: &Arc<Waiter>) -> Watch {
        match self {
            Self::Written(log) => Watch::Appends { _held: log.register(waiter) },
            Self::Unwritten { topic, index } => {
                match topic.logs.await_first_append(*index, waiter) {
                    Ok(first) => Watch::FirstAppend(first),
                    Err(log) => Watch::Appends { _held: log.register(waiter) },
                }
            }
        }
    }
}

/// Keeps a waiter registered with a partition until dropped.
pub(crate) enum Watch {
    Appends { _held: Registration },
    FirstAppend(FirstAppend),
}

impl Watch {
    /// Goes over to the log of a partition that was first written meanwhile. To be called after
    /// each wake, before the partition is read: a first append becomes readable only later.
    pub(crate) fn follow(&mut self, waiter: &Arc<Waiter>) {
        if let Self::FirstAppend(first) = self
            && let Some(log) = first.log()
        {
            *self = Self::Appends { _held: log.register(waiter) };
        }
    }
}

/// The log of a partition that the topic has, to append to.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION`: the topic was deleted a moment ago.
pub(crate) fn for_append(state: &State, topic: &Topic, partition: i32) -> Result<Log, Refusal> {
    let named = (TopicId(topic.id.into_bytes()), &topic.name);
    let log = topic.logs.for_append(&state.logs, named, partition);
    log.ok_or_else(|| catalog::unknown_name(&topic.name))
}

/// The partition of a topic given by name.
///
/// # Errors
/// `UNKNOWN_TOPIC_OR_PARTITION`, or the answer to a leader epoch that is not the current one.
pub(crate) fn by_name(
    state: &State,
    topic: &str,
    partition: i32,
    leader_epoch: i32,
) -> Result<Partition, ErrorCode> {
    let topic = state.catalog.by_name(topic).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    of_topic(state, topic, partition, leader_epoch)
}

/// The partition of a topic given by name or id.
///
/// # Errors
/// As [`by_name`]; `UNKNOWN_TOPIC_ID` for an id.
pub(crate) fn by_ref(
    state: &State,
    topic: &TopicRef,
    partition: i32,
    leader_epoch: i32,
) -> Result<Partition, ErrorCode> {
    match topic {
        TopicRef::Name(name) => by_name(state, name, partition, leader_epoch),
        TopicRef::Id(id) => {
            let topic = state.catalog.by_id(*id).ok_or(ErrorCode::UnknownTopicId)?;
            of_topic(state, topic, partition, leader_epoch)
        }
    }
}

/// KIP-320: an older epoch is fenced, a newer one is not known here. In a cluster the epoch is that
/// of a leader that nothing depends on.
fn of_topic(
    state: &State,
    topic: Arc<Topic>,
    partition: i32,
    leader_epoch: i32,
) -> Result<Partition, ErrorCode> {
    if !topic.has(partition) {
        return Err(ErrorCode::UnknownTopicOrPartition);
    }
    match leader_epoch {
        _ if state.nodes.is_shared() => Ok(Partition::of(state, topic, partition)),
        -1 | LEADER_EPOCH => Ok(Partition::of(state, topic, partition)),
        older if older < LEADER_EPOCH => Err(ErrorCode::FencedLeaderEpoch),
        _ => Err(ErrorCode::UnknownLeaderEpoch),
    }
}
