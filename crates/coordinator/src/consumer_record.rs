//! What is stored of a group of the consumer protocol: one record for each change.
//!
//! Fields after `group string`, written as in [`crate::record`]: epoch i32, target epoch i32,
//! target time i64, metadata hash i64, [removed member string], [member], [member string,
//! partitions]. Partitions are [topic 16 bytes, [partition i32]].
//!
//! A member is: id string, instance string?, rack string?, client id string, client host string,
//! rebalance timeout i32, assignor string?, [topic string], regex string?, epoch i32, previous
//! epoch i32, state u8, assigned, revoking; the last two are [topic 16 bytes, [partition i32,
//! epoch i32]]. A member of the classic protocol has 4 added to its state, and then session timeout
//! i32, [protocol string, metadata bytes].

use std::collections::BTreeMap;

use crate::consumer_member::{
    ClassicMember, ConsumerMember, MemberState, OwnedPartitions, Partitions,
};
use crate::error::Error;
use crate::offered_protocol::Protocol;
use crate::wire::{Put, Take, list};

/// Bit of a member's state.
const CLASSIC: u8 = 4;

/// A change of a group of the consumer protocol. It makes the group if there is none, and turns a
/// classic group into one, whose members it then has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumerChange {
    /// The group.
    pub group_id: String,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch that the target assignment was computed for.
    pub target_epoch: i32,
    /// When it was computed.
    pub target_timestamp_ms: i64,
    /// Of the subscribed topics; 0 where it is to be computed.
    pub metadata_hash: i64,
    /// Members that are gone, with their targets.
    pub removed: Vec<String>,
    /// Members that came or changed.
    pub members: Vec<ConsumerMember>,
    /// Targets that changed.
    pub targets: Vec<(String, Partitions)>,
}

pub(crate) fn put_change(put: &mut Put<'_>, change: &ConsumerChange) {
    put.string(&change.group_id);
    put.i32(change.epoch);
    put.i32(change.target_epoch);
    put.i64(change.target_timestamp_ms);
    put.i64(change.metadata_hash);
    put.count(change.removed.len());
    change.removed.iter().for_each(|id| put.string(id));
    put.count(change.members.len());
    change.members.iter().for_each(|member| put_member(put, member));
    put.count(change.targets.len());
    for (id, target) in &change.targets {
        put.string(id);
        put_partitions(put, target);
    }
}

pub(crate) fn put_partitions(put: &mut Put<'_>, partitions: &Partitions) {
    put.count(partitions.len());
    for (topic, indexes) in partitions {
        put.uuid(*topic);
        put.count(indexes.len());
        indexes.iter().for_each(|index| put.i32(*index));
    }
}

fn put_member(put: &mut Put<'_>, member: &ConsumerMember) {
    put.string(&member.member_id);
    put.optional_string(member.instance_id.as_deref());
    put.optional_string(member.rack_id.as_deref());
    put.string(&member.client_id);
    put.string(&member.client_host);
    put.i32(member.rebalance_timeout_ms);
    put.optional_string(member.assignor.as_deref());
    put.count(member.topics.len());
    member.topics.iter().for_each(|topic| put.string(topic));
    put.optional_string(member.regex.as_deref());
    put.i32(member.epoch);
    put.i32(member.previous_epoch);
    let state = match member.state {
        MemberState::Stable => 0,
        MemberState::UnrevokedPartitions => 1,
        MemberState::UnreleasedPartitions => 2,
    };
    put.u8(if member.classic.is_some() { state | CLASSIC } else { state });
    put_owned(put, &member.assigned);
    put_owned(put, &member.revoking);
    if let Some(classic) = &member.classic {
        put.i32(classic.session_timeout_ms);
        put.count(classic.protocols.len());
        for protocol in &classic.protocols {
            put.string(&protocol.name);
            put.bytes(&protocol.metadata);
        }
    }
}

fn put_owned(put: &mut Put<'_>, owned: &OwnedPartitions) {
    put.count(owned.len());
    for (topic, partitions) in owned {
        put.uuid(*topic);
        put.count(partitions.len());
        for (index, epoch) in partitions {
            put.i32(*index);
            put.i32(*epoch);
        }
    }
}

pub(crate) fn take_change(take: &mut Take<'_>) -> Result<ConsumerChange, Error> {
    Ok(ConsumerChange {
        group_id: take.string("group")?,
        epoch: take.i32("group epoch")?,
        target_epoch: take.i32("target epoch")?,
        target_timestamp_ms: take.i64("target time")?,
        metadata_hash: take.i64("metadata hash")?,
        removed: list(take, "removed members", |take| take.string("removed member"))?,
        members: list(take, "members", take_member)?,
        targets: list(take, "targets", |take| {
            Ok((take.string("member")?, take_partitions(take)?))
        })?,
    })
}

pub(crate) fn take_partitions(take: &mut Take<'_>) -> Result<Partitions, Error> {
    let topics = list(take, "topics", |take| {
        let topic = take.uuid("topic id")?;
        let partitions = list(take, "partitions", |take| Ok((take.i32("partition")?, ())))?;
        Ok((topic, ascending(partitions, "partitions")?.into_keys().collect()))
    })?;
    ascending(topics, "topics")
}

fn take_member(take: &mut Take<'_>) -> Result<ConsumerMember, Error> {
    let mut member = ConsumerMember {
        member_id: take.string("member")?,
        instance_id: take.optional_string("instance")?,
        rack_id: take.optional_string("rack")?,
        client_id: take.string("client id")?,
        client_host: take.string("client host")?,
        rebalance_timeout_ms: take.i32("rebalance timeout")?,
        assignor: take.optional_string("assignor")?,
        topics: {
            let topics = list(take, "topics", |take| Ok((take.string("topic")?, ())))?;
            ascending(topics, "topics")?.into_keys().collect()
        },
        regex: take.optional_string("regular expression")?,
        epoch: take.i32("member epoch")?,
        previous_epoch: take.i32("previous epoch")?,
        state: MemberState::Stable,
        assigned: OwnedPartitions::new(),
        revoking: OwnedPartitions::new(),
        classic: None,
    };
    let state = take.u8("member state")?;
    member.state = match state & !CLASSIC {
        0 => MemberState::Stable,
        1 => MemberState::UnrevokedPartitions,
        2 => MemberState::UnreleasedPartitions,
        _ => return Err(Error::Invalid { field: "member state" }),
    };
    member.assigned = take_owned(take)?;
    member.revoking = take_owned(take)?;
    if state & CLASSIC != 0 {
        let session_timeout_ms = take.i32("session timeout")?;
        let protocols = list(take, "protocols", |take| {
            Ok(Protocol { name: take.string("protocol")?, metadata: take.bytes("metadata")? })
        })?;
        member.classic = Some(ClassicMember { session_timeout_ms, protocols });
    }
    Ok(member)
}

fn take_owned(take: &mut Take<'_>) -> Result<OwnedPartitions, Error> {
    let topics = list(take, "topics", |take| {
        let topic = take.uuid("topic id")?;
        let partitions = list(take, "partitions", |take| {
            Ok((take.i32("partition")?, take.i32("assignment epoch")?))
        })?;
        Ok((topic, ascending(partitions, "partitions")?))
    })?;
    ascending(topics, "topics")
}

/// What was written in the order of its keys, each once.
pub(crate) fn ascending<K: Ord, V>(
    entries: Vec<(K, V)>,
    field: &'static str,
) -> Result<BTreeMap<K, V>, Error> {
    let is_ascending = entries.is_sorted_by(|(one, _), (next, _)| one < next);
    is_ascending.then(|| entries.into_iter().collect()).ok_or(Error::Invalid { field })
}
