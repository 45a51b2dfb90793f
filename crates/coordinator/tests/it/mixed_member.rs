//! A member of the classic protocol type `consumer`, as a Java client is one.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use moldau_coordinator::{
    HeartbeatRequest, JoinReply, JoinRequest, JoinedMember, Protocol, SyncReply, SyncRequest, Token,
};
use moldau_protocol::ErrorCode;

use crate::consumer_world::GROUP;

pub(crate) const TOPIC: &str = "topic";
pub(crate) const SESSION_MS: i32 = 10_000;
pub(crate) const REBALANCE_MS: i32 = 20_000;

/// What a classic member waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    Out,
    Joining(Token),
    Syncing(Token),
    Stable,
}

/// What a member does with its partitions before it joins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Strategy {
    /// It gives up all.
    Eager,
    /// It keeps all, and joins once more when it has given up some.
    Cooperative,
}

#[derive(Clone, Debug)]
pub(crate) struct Classic {
    pub(crate) id: String,
    pub(crate) instance_id: Option<String>,
    pub(crate) generation: i32,
    pub(crate) protocol: Option<String>,
    pub(crate) owned: BTreeSet<i32>,
    pub(crate) phase: Phase,
    pub(crate) strategy: Strategy,
}

impl Classic {
    pub(crate) fn new(instance_id: Option<String>, strategy: Strategy) -> Self {
        Self {
            id: String::new(),
            instance_id,
            generation: -1,
            protocol: None,
            owned: BTreeSet::new(),
            phase: Phase::Out,
            strategy,
        }
    }

    pub(crate) fn join(&self) -> JoinRequest {
        let metadata = subscription(&self.owned);
        let names = ["range", "roundrobin"].into_iter();
        JoinRequest {
            group_id: GROUP.to_owned(),
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            client_id: "classic".to_owned(),
            client_host: "/127.0.0.1".to_owned(),
            session_timeout_ms: SESSION_MS,
            rebalance_timeout_ms: REBALANCE_MS,
            protocol_type: "consumer".to_owned(),
            protocols: names
                .map(|name| Protocol { name: name.to_owned(), metadata: metadata.clone() })
                .collect(),
            require_known_member_id: true,
            supports_skipping_assignment: true,
        }
    }

    /// Takes the answer to a join, and returns what to send next, as the leader with assignments
    /// of `count` partitions.
    pub(crate) fn joined(&mut self, reply: JoinReply, count: i32) -> Option<SyncRequest> {
        match reply.error {
            ErrorCode::None => {}
            ErrorCode::MemberIdRequired => {
                self.id = reply.member_id;
                self.phase = Phase::Out;
                return None;
            }
            ErrorCode::InconsistentGroupProtocol => {
                self.phase = Phase::Out;
                return None;
            }
            error => {
                self.restart(error);
                return None;
            }
        }
        self.id.clone_from(&reply.member_id);
        self.generation = reply.generation;
        self.protocol.clone_from(&reply.protocol_name);
        let leads = reply.leader == self.id && !reply.skip_assignment;
        let assignments = if leads { assigned(reply.members, count) } else { Vec::new() };
        Some(SyncRequest {
            group_id: GROUP.to_owned(),
            generation: self.generation,
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: self.protocol.clone(),
            assignments,
        })
    }

    pub(crate) fn synced(&mut self, reply: &SyncReply) {
        if reply.error != ErrorCode::None {
            return self.restart(reply.error);
        }
        let before = std::mem::replace(&mut self.owned, partitions(&reply.assignment));
        // Others wait for what it gave up.
        let gave_up = !before.is_subset(&self.owned);
        self.phase = if gave_up { Phase::Out } else { Phase::Stable };
    }

    pub(crate) fn heartbeat(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: GROUP.to_owned(),
            generation: self.generation,
            member_id: self.id.clone(),
            instance_id: self.instance_id.clone(),
        }
    }

    /// It joins again, as another where it was put out.
    pub(crate) fn restart(&mut self, error: ErrorCode) {
        self.phase = Phase::Out;
        match error {
            ErrorCode::RebalanceInProgress => {
                if self.strategy == Strategy::Eager {
                    self.owned.clear();
                }
            }
            ErrorCode::IllegalGeneration => self.owned.clear(),
            ErrorCode::UnknownMemberId | ErrorCode::FencedInstanceId => {
                self.owned.clear();
                self.id.clear();
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A subscription of version 1 to the topic, with what the member owns.
pub(crate) fn subscription(owned: &BTreeSet<i32>) -> Bytes {
    let mut bytes = [&[0, 1, 0, 0, 0, 1, 0, 5], TOPIC.as_bytes(), &[255; 4]].concat();
    match owned.is_empty() {
        true => bytes.extend([0; 4]),
        false => bytes.extend(topic_partitions(owned)),
    }
    bytes.into()
}

/// Each partition goes to its own member, once it is free.
fn assigned(members: Vec<JoinedMember>, count: i32) -> Vec<(String, Bytes)> {
    let among = i32::try_from(members.len()).expect("few");
    // After the topic and its name there is no user data, and then what the member owns.
    let owned = |member: &JoinedMember| partitions_at(&member.metadata, 17);
    let owners: BTreeMap<i32, String> = members
        .iter()
        .flat_map(|member| owned(member).into_iter().map(|it| (it, member.member_id.clone())))
        .collect();
    let assignments = members.into_iter().zip(0..).map(|(member, index)| {
        let is_free =
            |partition: &i32| owners.get(partition).is_none_or(|owner| *owner == member.member_id);
        let share = (0..count).filter(|partition| partition % among == index).filter(is_free);
        (member.member_id.clone(), assignment(&share.collect()))
    });
    assignments.collect()
}

/// An assignment of version 1.
pub(crate) fn assignment(partitions: &BTreeSet<i32>) -> Bytes {
    [&[0, 1], topic_partitions(partitions).as_slice(), &[255; 4]].concat().into()
}

/// The partitions of an assignment.
pub(crate) fn partitions(assignment: &[u8]) -> BTreeSet<i32> {
    partitions_at(assignment, 2)
}

fn topic_partitions(partitions: &BTreeSet<i32>) -> Vec<u8> {
    let count = i32::try_from(partitions.len()).expect("few");
    let mut bytes = [&[0, 0, 0, 1, 0, 5], TOPIC.as_bytes(), &count.to_be_bytes()].concat();
    partitions.iter().for_each(|index| bytes.extend(index.to_be_bytes()));
    bytes
}

fn partitions_at(bytes: &[u8], start: usize) -> BTreeSet<i32> {
    let Some(topics) = bytes.get(start..start + 4) else { return BTreeSet::new() };
    if topics == [0; 4] {
        return BTreeSet::new();
    }
    let number = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let first = start + 4 + 2 + TOPIC.len();
    let count = usize::try_from(number(first)).expect("not negative");
    (1..=count).map(|index| number(first + 4 * index)).collect()
}
