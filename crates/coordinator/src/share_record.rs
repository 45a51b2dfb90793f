//! What is stored of a share group: one record for each change.
//!
//! Fields after `group string`, written as in [`crate::record`]: epoch i32, target epoch i32,
//! target time i64, metadata hash i64, [removed member string], [member], [member string,
//! partitions]. Partitions are [topic 16 bytes, [partition i32]].
//!
//! A member is: id string, rack string?, client id string, client host string, [topic string],
//! epoch i32, previous epoch i32, assigned partitions.

use std::collections::BTreeSet;

use crate::consumer_member::Partitions;
use crate::consumer_record::{ascending, put_partitions, take_partitions};
use crate::error::Error;
use crate::wire::{Put, Take, list};

/// A change of a share group. It makes the group if there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareChange {
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
    pub members: Vec<ShareMember>,
    /// Targets that changed.
    pub targets: Vec<(String, Partitions)>,
}

/// A member of a share group. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareMember {
    /// The member's id.
    pub member_id: String,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// As the client named itself.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// Names of topics.
    pub topics: BTreeSet<String>,
    /// The epoch of the target that the member has.
    pub epoch: i32,
    /// The epoch before; its answer may have been lost.
    pub previous_epoch: i32,
    /// What it may fetch, also if others may.
    pub assigned: Partitions,
}

impl ShareMember {
    pub(crate) fn new(member_id: &str) -> Self {
        Self {
            member_id: member_id.to_owned(),
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            topics: BTreeSet::new(),
            epoch: 0,
            previous_epoch: -1,
            assigned: Partitions::new(),
        }
    }
}

pub(crate) fn put_change(put: &mut Put<'_>, change: &ShareChange) {
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

fn put_member(put: &mut Put<'_>, member: &ShareMember) {
    put.string(&member.member_id);
    put.optional_string(member.rack_id.as_deref());
    put.string(&member.client_id);
    put.string(&member.client_host);
    put.count(member.topics.len());
    member.topics.iter().for_each(|topic| put.string(topic));
    put.i32(member.epoch);
    put.i32(member.previous_epoch);
    put_partitions(put, &member.assigned);
}

pub(crate) fn take_change(take: &mut Take<'_>) -> Result<ShareChange, Error> {
    Ok(ShareChange {
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

fn take_member(take: &mut Take<'_>) -> Result<ShareMember, Error> {
    Ok(ShareMember {
        member_id: take.string("member")?,
        rack_id: take.optional_string("rack")?,
        client_id: take.string("client id")?,
        client_host: take.string("client host")?,
        topics: {
            let topics = list(take, "topics", |take| Ok((take.string("topic")?, ())))?;
            ascending(topics, "topics")?.into_keys().collect()
        },
        epoch: take.i32("member epoch")?,
        previous_epoch: take.i32("previous epoch")?,
        assigned: take_partitions(take)?,
    })
}
