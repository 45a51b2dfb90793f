//! What is stored of a streams group: one record for each change.
//!
//! Fields after `group string`, written as in [`crate::record`]: epoch i32, target epoch i32,
//! target time i64, metadata hash i64, validated topology epoch i32, standby replicas i32, [tag
//! string], [topology] with one element at most, [removed member string], [member], [member string,
//! tasks].
//!
//! A topology is: epoch i32, [subtopology id string, [source topic string], [changelog topic],
//! [sink topic string], [repartition topic], [copartition group]]. A topic is: name string,
//! partitions i32, replication factor i16, [key string, value string]. A copartition group is:
//! [source topic index i16], [repartition topic index i16].
//!
//! A member is: id string, instance string?, rack string?, client id string, client host string,
//! rebalance timeout i32, topology epoch i32, process id string, [host string, port i32] with one
//! element at most, [tag string, value string], epoch i32, previous epoch i32, state u8, assigned,
//! revoking. Tasks of a member are: active [subtopology string, [partition i32, epoch i32]],
//! standby [subtopology string, [partition i32]]. Those of a target have no epochs.

use std::collections::{BTreeMap, BTreeSet};

use crate::consumer_member::MemberState;
use crate::consumer_record::ascending;
use crate::error::Error;
use crate::streams_topology::{StreamsTopology, put_map, put_topology, take_map, take_topology};
use crate::wire::{Put, Take, list};

/// Partitions by the id of their subtopology: each is one task.
pub type TaskIds = BTreeMap<String, BTreeSet<i32>>;

/// Tasks by the id of their subtopology, each with the epoch in which its member got it.
pub type OwnedTasks = BTreeMap<String, BTreeMap<i32, i32>>;

/// Tasks that a member is to get. Nothing makes warm-up tasks, as in Kafka 4.4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsTasks {
    /// It processes these.
    pub active: TaskIds,
    /// It keeps copies of their state.
    pub standby: TaskIds,
}

/// Tasks that a member has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberTasks {
    /// It processes these.
    pub active: OwnedTasks,
    /// It keeps copies of their state.
    pub standby: TaskIds,
}

/// A change of a streams group. It makes the group if there is none, and turns a classic group
/// without members into one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsChange {
    /// The group.
    pub group_id: String,
    /// Its epoch.
    pub epoch: i32,
    /// The epoch that the target assignment was computed for.
    pub target_epoch: i32,
    /// When it was computed.
    pub target_timestamp_ms: i64,
    /// Of the topics of the topology; 0 where it is to be computed.
    pub metadata_hash: i64,
    /// Epoch of the topology whose topics all exist; -1 where some do not.
    pub validated_epoch: i32,
    /// Standby replicas and tags that the epoch was made with; -1 replicas before the first.
    pub assignment: AssignmentConfigs,
    /// The topology, where it changed.
    pub topology: Option<StreamsTopology>,
    /// Members that are gone, with their targets.
    pub removed: Vec<String>,
    /// Members that came or changed.
    pub members: Vec<StreamsMember>,
    /// Targets that changed.
    pub targets: Vec<(String, StreamsTasks)>,
}

/// Configurations that a target assignment depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignmentConfigs {
    /// `streams.num.standby.replicas`.
    pub standby_replicas: i32,
    /// `streams.rack.aware.assignment.tags`.
    pub rack_tags: Vec<String>,
}

/// Where a member answers interactive queries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserEndpoint {
    /// Host name or address.
    pub host: String,
    /// Port.
    pub port: u16,
}

/// A member of a streams group: one thread of a process. All of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsMember {
    /// The member's id.
    pub member_id: String,
    /// Set for static members (KIP-345).
    pub instance_id: Option<String>,
    /// Where the client is.
    pub rack_id: Option<String>,
    /// As the client named itself.
    pub client_id: String,
    /// Address of the client.
    pub client_host: String,
    /// How long the member may take to give up tasks.
    pub rebalance_timeout_ms: i32,
    /// Epoch of the topology that it has.
    pub topology_epoch: i32,
    /// The process that it is part of.
    pub process_id: String,
    /// Where it answers interactive queries.
    pub endpoint: Option<UserEndpoint>,
    /// What else the client says of where it is.
    pub tags: BTreeMap<String, String>,
    /// -2 while a static member is away.
    pub epoch: i32,
    /// The epoch before; its answer may have been lost.
    pub previous_epoch: i32,
    /// What it has to do next.
    pub state: MemberState,
    /// What it may run.
    pub assigned: MemberTasks,
    /// What it has to give up, and holds until it says that it did.
    pub revoking: MemberTasks,
}

impl AssignmentConfigs {
    /// Before the first epoch.
    pub(crate) const NONE: Self = Self { standby_replicas: -1, rack_tags: Vec::new() };
}

impl MemberTasks {
    pub(crate) fn is_empty(&self) -> bool {
        self.active.is_empty() && self.standby.is_empty()
    }

    /// The tasks without their epochs.
    pub fn ids(&self) -> StreamsTasks {
        let active = self.active.iter();
        let active = active.map(|(part, held)| (part.clone(), held.keys().copied().collect()));
        StreamsTasks { active: active.collect(), standby: self.standby.clone() }
    }
}

impl StreamsMember {
    pub(crate) fn new(member_id: &str) -> Self {
        Self {
            member_id: member_id.to_owned(),
            instance_id: None,
            rack_id: None,
            client_id: String::new(),
            client_host: String::new(),
            rebalance_timeout_ms: -1,
            topology_epoch: -1,
            process_id: String::new(),
            endpoint: None,
            tags: BTreeMap::new(),
            epoch: 0,
            previous_epoch: 0,
            state: MemberState::Stable,
            assigned: MemberTasks::default(),
            revoking: MemberTasks::default(),
        }
    }

    /// Whether the member has all of the target of this epoch.
    pub(crate) fn is_at(&self, target_epoch: i32) -> bool {
        self.state == MemberState::Stable && self.epoch == target_epoch
    }

    /// The epoch in which the member got an active task that it holds.
    pub(crate) fn epoch_of(&self, subtopology: &str, partition: i32) -> Option<i32> {
        let of = |held: &OwnedTasks| held.get(subtopology)?.get(&partition).copied();
        of(&self.assigned.active).or_else(|| of(&self.revoking.active))
    }
}

pub(crate) fn put_change(put: &mut Put<'_>, change: &StreamsChange) {
    put.string(&change.group_id);
    put.i32(change.epoch);
    put.i32(change.target_epoch);
    put.i64(change.target_timestamp_ms);
    put.i64(change.metadata_hash);
    put.i32(change.validated_epoch);
    put.i32(change.assignment.standby_replicas);
    put.count(change.assignment.rack_tags.len());
    change.assignment.rack_tags.iter().for_each(|tag| put.string(tag));
    put.count(usize::from(change.topology.is_some()));
    change.topology.iter().for_each(|topology| put_topology(put, topology));
    put.count(change.removed.len());
    change.removed.iter().for_each(|id| put.string(id));
    put.count(change.members.len());
    change.members.iter().for_each(|member| put_member(put, member));
    put.count(change.targets.len());
    for (id, target) in &change.targets {
        put.string(id);
        put_tasks(put, &target.active);
        put_tasks(put, &target.standby);
    }
}

fn put_tasks(put: &mut Put<'_>, tasks: &TaskIds) {
    put.count(tasks.len());
    for (subtopology, partitions) in tasks {
        put.string(subtopology);
        put.count(partitions.len());
        partitions.iter().for_each(|partition| put.i32(*partition));
    }
}

fn put_member_tasks(put: &mut Put<'_>, tasks: &MemberTasks) {
    put.count(tasks.active.len());
    for (subtopology, partitions) in &tasks.active {
        put.string(subtopology);
        put.count(partitions.len());
        for (partition, epoch) in partitions {
            put.i32(*partition);
            put.i32(*epoch);
        }
    }
    put_tasks(put, &tasks.standby);
}

fn put_member(put: &mut Put<'_>, member: &StreamsMember) {
    put.string(&member.member_id);
    put.optional_string(member.instance_id.as_deref());
    put.optional_string(member.rack_id.as_deref());
    put.string(&member.client_id);
    put.string(&member.client_host);
    put.i32(member.rebalance_timeout_ms);
    put.i32(member.topology_epoch);
    put.string(&member.process_id);
    put.count(usize::from(member.endpoint.is_some()));
    if let Some(endpoint) = &member.endpoint {
        put.string(&endpoint.host);
        put.i32(i32::from(endpoint.port));
    }
    put_map(put, &member.tags);
    put.i32(member.epoch);
    put.i32(member.previous_epoch);
    put.u8(match member.state {
        MemberState::Stable => 0,
        MemberState::UnrevokedPartitions => 1,
        MemberState::UnreleasedPartitions => 2,
    });
    put_member_tasks(put, &member.assigned);
    put_member_tasks(put, &member.revoking);
}

pub(crate) fn take_change(take: &mut Take<'_>) -> Result<StreamsChange, Error> {
    Ok(StreamsChange {
        group_id: take.string("group")?,
        epoch: take.i32("group epoch")?,
        target_epoch: take.i32("target epoch")?,
        target_timestamp_ms: take.i64("target time")?,
        metadata_hash: take.i64("metadata hash")?,
        validated_epoch: take.i32("validated epoch")?,
        assignment: AssignmentConfigs {
            standby_replicas: take.i32("standby replicas")?,
            rack_tags: list(take, "rack tags", |take| take.string("rack tag"))?,
        },
        topology: one_at_most(take, "topology", take_topology)?,
        removed: list(take, "removed members", |take| take.string("removed member"))?,
        members: list(take, "members", take_member)?,
        targets: list(take, "targets", |take| {
            let id = take.string("member")?;
            let active = take_tasks(take)?;
            Ok((id, StreamsTasks { active, standby: take_tasks(take)? }))
        })?,
    })
}

fn one_at_most<T>(
    take: &mut Take<'_>,
    field: &'static str,
    element: impl FnMut(&mut Take<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut found = list(take, field, element)?;
    if found.len() > 1 { Err(Error::Invalid { field }) } else { Ok(found.pop()) }
}

fn take_tasks(take: &mut Take<'_>) -> Result<TaskIds, Error> {
    let tasks = list(take, "tasks", |take| {
        let subtopology = take.string("subtopology")?;
        let partitions = list(take, "partitions", |take| Ok((take.i32("partition")?, ())))?;
        Ok((subtopology, ascending(partitions, "partitions")?.into_keys().collect()))
    })?;
    ascending(tasks, "tasks")
}

fn take_member_tasks(take: &mut Take<'_>) -> Result<MemberTasks, Error> {
    let active = list(take, "tasks", |take| {
        let subtopology = take.string("subtopology")?;
        let partitions = list(take, "partitions", |take| {
            Ok((take.i32("partition")?, take.i32("assignment epoch")?))
        })?;
        Ok((subtopology, ascending(partitions, "partitions")?))
    })?;
    Ok(MemberTasks { active: ascending(active, "tasks")?, standby: take_tasks(take)? })
}

fn take_member(take: &mut Take<'_>) -> Result<StreamsMember, Error> {
    Ok(StreamsMember {
        member_id: take.string("member")?,
        instance_id: take.optional_string("instance")?,
        rack_id: take.optional_string("rack")?,
        client_id: take.string("client id")?,
        client_host: take.string("client host")?,
        rebalance_timeout_ms: take.i32("rebalance timeout")?,
        topology_epoch: take.i32("topology epoch")?,
        process_id: take.string("process")?,
        endpoint: one_at_most(take, "endpoint", |take| {
            let host = take.string("host")?;
            let port = u16::try_from(take.i32("port")?);
            Ok(UserEndpoint { host, port: port.map_err(|_| Error::Invalid { field: "port" })? })
        })?,
        tags: take_map(take, "tags")?,
        epoch: take.i32("member epoch")?,
        previous_epoch: take.i32("previous epoch")?,
        state: match take.u8("member state")? {
            0 => MemberState::Stable,
            1 => MemberState::UnrevokedPartitions,
            2 => MemberState::UnreleasedPartitions,
            _ => return Err(Error::Invalid { field: "member state" }),
        },
        assigned: take_member_tasks(take)?,
        revoking: take_member_tasks(take)?,
    })
}
