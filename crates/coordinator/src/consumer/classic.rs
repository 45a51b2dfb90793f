//! Members of the classic protocol in a group of the consumer protocol, after
//! `GroupMetadataManager` of Kafka 4.4: they join and fetch their assignment as before, and the
//! broker assigns. A heartbeat asks them to join again where a heartbeat of the consumer protocol
//! would bring another assignment.

use std::collections::BTreeSet;

use bytes::Bytes;
use moldau_protocol::ErrorCode;

use super::heartbeat::MemberChange;
use super::{ConsumerGroup, ConsumerMember, MemberState, Partitions};
use crate::config::{Config, MigrationPolicy};
use crate::consumer_member::ClassicMember;
use crate::embedded::{NamedPartitions, Subscription, decode_assignment, encode_assignment};
use crate::offered_protocol::Protocol;
use crate::offsets::Offsets;
use crate::record::MemberRecord;
use crate::reply::{JoinReply, SyncReply};
use crate::request::{HeartbeatRequest, JoinRequest, SyncRequest};
use crate::step::Step;
use crate::timers::Timer;
use crate::topics::Topics;

/// Protocol type of the members.
const PROTOCOL_TYPE: &str = "consumer";

/// In place of the hash of the topics where a classic group has not assigned all of them: it
/// rebalances, or topics have grown. The first member then gets another target even if it is a
/// static one that subscribes to the same topics as before; in Kafka nobody would read the rest.
const UNASSIGNED_HASH: i64 = 1;

impl ConsumerGroup {
    /// A group with the members of a classic one, all with what they were assigned. `None` if what
    /// a member sent or was assigned cannot be read, or has user data that would be lost.
    pub(crate) fn of_classic(
        id: &str,
        generation: i32,
        protocol: &str,
        members: &[MemberRecord],
        topics: &dyn Topics,
    ) -> Option<Self> {
        let mut group = Self::new(id.to_owned(), Offsets::default());
        (group.epoch, group.target_epoch) = (generation, generation);
        for member in members {
            let mut offered = member.protocols.iter();
            // One that joined during a rebalance may not offer the protocol before it.
            let offered = offered.find(|offered| offered.name == protocol);
            let offered = offered.or(member.protocols.first())?;
            let subscription = Subscription::decode(&offered.metadata).ok()?;
            let mut assigned = by_id(&decode_assignment(&member.assignment).ok()??, topics);
            // Assignments of two generations may name a partition twice.
            for (topic, indexes) in &mut assigned {
                indexes.retain(|index| !group.owners.contains_key(&(*topic, *index)));
            }
            assigned.retain(|_, indexes| !indexes.is_empty());
            let held =
                |indexes: &BTreeSet<i32>| indexes.iter().map(|it| (*it, generation)).collect();
            group.target.insert(member.member_id.clone(), assigned.clone());
            group.put_member(ConsumerMember {
                instance_id: member.instance_id.clone(),
                rack_id: subscription.rack_id,
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                topics: subscription.topics,
                epoch: generation,
                previous_epoch: generation,
                assigned: assigned.iter().map(|(topic, them)| (*topic, held(them))).collect(),
                classic: Some(ClassicMember {
                    session_timeout_ms: member.session_timeout_ms,
                    protocols: member.protocols.clone(),
                }),
                ..ConsumerMember::new(&member.member_id)
            });
        }
        if !group.assigns_all(topics) {
            group.metadata_hash = UNASSIGNED_HASH;
        }
        Some(group)
    }

    /// Whether every partition of the subscribed topics has a member.
    fn assigns_all(&self, topics: &dyn Topics) -> bool {
        let names = self.members.values().flat_map(|member| &member.topics);
        let names: BTreeSet<&String> = names.collect();
        let count = |name: &String| topics.by_name(name).map_or(0, |topic| topic.partitions);
        let wanted: i64 = names.into_iter().map(|name| i64::from(count(name))).sum();
        i64::try_from(self.owners.len()) == Ok(wanted)
    }

    /// Starts the sessions of all members.
    pub(crate) fn begin_sessions(&mut self, step: &Step<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.extend_session(step, &id);
        }
    }

    /// JoinGroup, answered at once. `new_id` becomes the id of a member that has none.
    pub(crate) fn join(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        new_id: String,
        topics: &dyn Topics,
    ) -> JoinReply {
        let is_new = request.member_id.is_empty();
        let id = if is_new { new_id } else { request.member_id.clone() };
        match self.join_member(step, request, &id, topics) {
            Ok(reply) => reply,
            Err(error @ ErrorCode::MemberIdRequired) => JoinReply::refused(&id, error),
            Err(error) => JoinReply::refused(&request.member_id, error),
        }
    }

    fn join_member(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        id: &str,
        topics: &dyn Topics,
    ) -> Result<JoinReply, ErrorCode> {
        let before = self.joining(step.config, request, id)?;
        let first = request.protocols.first().ok_or(ErrorCode::InconsistentGroupProtocol)?;
        let subscription = Subscription::decode(&first.metadata)
            .map_err(|_| ErrorCode::InconsistentGroupProtocol)?;
        let owned = by_id(&subscription.owned, topics);
        let mut after = before.clone();
        after.instance_id.clone_from(&request.instance_id);
        after.rack_id = subscription.rack_id.or(after.rack_id);
        after.rebalance_timeout_ms = request.rebalance_timeout_ms.max(0);
        (after.assignor, after.regex) = (None, None);
        after.topics = subscription.topics;
        after.client_id.clone_from(&request.client_id);
        after.client_host.clone_from(&request.client_host);
        after.classic = Some(ClassicMember {
            session_timeout_ms: request.session_timeout_ms,
            protocols: request.protocols.clone(),
        });
        let replaced = self.replaced(request.instance_id.as_deref(), id);
        let change = MemberChange { before, after, replaced, owned: Some(&owned) };
        let after = self.apply(step, change, topics);
        self.timers.cancel(&Timer::Rejoin(id.to_owned()));
        // Its next join, which heartbeats ask for, ends the wait for what it gives up.
        self.timers.cancel(&Timer::Revocation(id.to_owned()));
        let at_ms = step.after_ms(after.rebalance_timeout_ms);
        self.timers.schedule(Timer::FetchAssignment(id.to_owned()), at_ms);
        self.extend_session(step, id);
        Ok(JoinReply {
            error: ErrorCode::None,
            generation: after.epoch,
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(first.name.clone()),
            leader: String::new(),
            skip_assignment: false,
            member_id: after.member_id,
            members: Vec::new(),
        })
    }

    /// The member of the request as it was, or as it begins.
    fn joining(
        &self,
        config: &Config,
        request: &JoinRequest,
        id: &str,
    ) -> Result<ConsumerMember, ErrorCode> {
        let is_new = request.member_id.is_empty();
        if config.consumer.migration == MigrationPolicy::Disabled {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let instance = request.instance_id.as_ref();
        let is_known = self.members.contains_key(&request.member_id)
            || instance.is_some_and(|id| self.static_members.contains_key(id));
        if self.members.len() >= config.consumer.group_size_max && !is_known {
            return Err(ErrorCode::GroupMaxSizeReached);
        }
        if !self.supports(&request.protocol_type, &request.protocols) {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        let Some(instance_id) = &request.instance_id else {
            if is_new && request.require_known_member_id {
                return Err(ErrorCode::MemberIdRequired);
            }
            return Ok(self.members.get(id).cloned().unwrap_or_else(|| ConsumerMember::new(id)));
        };
        if !is_new {
            return self.static_member(id, instance_id).cloned();
        }
        let former = self.static_members.get(instance_id).and_then(|id| self.members.get(id));
        Ok(match former {
            None => ConsumerMember::new(id),
            Some(former) => ConsumerMember {
                member_id: id.to_owned(),
                epoch: 0,
                previous_epoch: 0,
                ..former.clone()
            },
        })
    }

    /// Whether at least one of the protocols is offered by all classic members.
    fn supports(&self, protocol_type: &str, protocols: &[Protocol]) -> bool {
        let classic = || self.members.values().filter_map(|member| member.classic.as_ref());
        let offers = |member: &ClassicMember, name: &str| {
            member.protocols.iter().any(|offered| offered.name == name)
        };
        protocol_type == PROTOCOL_TYPE
            && protocols.iter().any(|it| classic().all(|member| offers(member, &it.name)))
    }

    /// SyncGroup, answered at once.
    pub(crate) fn sync(
        &mut self,
        step: &Step<'_>,
        request: &SyncRequest,
        topics: &dyn Topics,
    ) -> SyncReply {
        match self.synced(step, request, topics) {
            Ok(reply) => reply,
            Err(error) => SyncReply::refused(error),
        }
    }

    fn synced(
        &mut self,
        step: &Step<'_>,
        request: &SyncRequest,
        topics: &dyn Topics,
    ) -> Result<SyncReply, ErrorCode> {
        let id = request.member_id.as_str();
        let instance_id = request.instance_id.as_deref();
        let member = self.classic_member(id, instance_id, request.generation)?;
        let classic = member.classic.as_ref().ok_or(ErrorCode::UnknownMemberId)?;
        let first = classic.protocols.first().ok_or(ErrorCode::UnknownMemberId)?;
        let differs =
            |given: &Option<String>, own: &str| given.as_ref().is_some_and(|it| it != own);
        if differs(&request.protocol_type, PROTOCOL_TYPE)
            || differs(&request.protocol_name, &first.name)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if self.target_epoch > member.epoch && member.state != MemberState::UnrevokedPartitions {
            self.await_rejoin(step, id);
            return Err(ErrorCode::RebalanceInProgress);
        }
        let assigned = member.assigned_partitions();
        let assignment = assignment(member, classic, &assigned, topics);
        let reply = SyncReply {
            error: ErrorCode::None,
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: Some(first.name.clone()),
            assignment,
        };
        self.timers.cancel(&Timer::FetchAssignment(id.to_owned()));
        self.extend_session(step, id);
        Ok(reply)
    }

    /// Heartbeat of a classic member.
    pub(crate) fn classic_heartbeat(
        &mut self,
        step: &Step<'_>,
        request: &HeartbeatRequest,
    ) -> ErrorCode {
        let id = request.member_id.as_str();
        let instance_id = request.instance_id.as_deref();
        let member = match self.classic_member(id, instance_id, request.generation) {
            Ok(member) => member,
            Err(error) => return error,
        };
        let must_rejoin = match member.state {
            _ if member.epoch < self.target_epoch => true,
            // Without members of the consumer protocol only a join computes the next target.
            _ if self.epoch > self.target_epoch && !self.is_early(step) => true,
            MemberState::Stable => false,
            MemberState::UnrevokedPartitions => true,
            MemberState::UnreleasedPartitions => !self.waits_for_others(member),
        };
        self.extend_session(step, id);
        if must_rejoin {
            self.await_rejoin(step, id);
            return ErrorCode::RebalanceInProgress;
        }
        ErrorCode::None
    }

    /// A member of the classic protocol in this generation.
    fn classic_member(
        &self,
        id: &str,
        instance_id: Option<&str>,
        generation: i32,
    ) -> Result<&ConsumerMember, ErrorCode> {
        let member = match instance_id {
            Some(instance_id) => self.static_member(id, instance_id)?,
            None => self.members.get(id).ok_or(ErrorCode::UnknownMemberId)?,
        };
        if member.classic.is_none() {
            return Err(ErrorCode::UnknownMemberId);
        }
        let is_current = member.epoch == generation;
        is_current.then_some(member).ok_or(ErrorCode::IllegalGeneration)
    }

    /// Puts the member out unless it joins within its rebalance timeout.
    fn await_rejoin(&mut self, step: &Step<'_>, id: &str) {
        let timer = Timer::Rejoin(id.to_owned());
        let timeout_ms = self.members.get(id).map_or(0, |member| member.rebalance_timeout_ms);
        if !self.timers.is_scheduled(&timer) {
            self.timers.schedule(timer, step.after_ms(timeout_ms));
        }
    }

    /// Whether others hold any of what the target gives to the member.
    fn waits_for_others(&self, member: &ConsumerMember) -> bool {
        let target = self.target.get(&member.member_id).into_iter().flatten();
        let mut wanted = target.flat_map(|(topic, them)| them.iter().map(|it| (*topic, *it)));
        wanted.any(|key| self.owners.get(&key).is_some_and(|owner| *owner != member.member_id))
    }

    /// Whether the group has members, all of the classic protocol.
    pub(crate) fn is_all_classic(&self) -> bool {
        !self.members.is_empty() && self.members.values().all(|member| member.classic.is_some())
    }

    /// The members as a classic group has them, with all that they may still read: what follows
    /// the classic group must not give it to others before they have joined again. Kafka takes the
    /// target instead, which others may be reading.
    pub(crate) fn classic_members(&self, topics: &dyn Topics) -> Vec<MemberRecord> {
        let members = self.members.values().filter_map(|member| {
            let classic = member.classic.as_ref()?;
            let mut held = Partitions::new();
            for (topic, index) in member.held() {
                held.entry(topic).or_default().insert(index);
            }
            Some(MemberRecord {
                member_id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                rebalance_timeout_ms: member.rebalance_timeout_ms,
                session_timeout_ms: classic.session_timeout_ms,
                protocols: classic.protocols.clone(),
                assignment: assignment(member, classic, &held, topics),
            })
        });
        members.collect()
    }

    pub(crate) fn epoch(&self) -> i32 {
        self.epoch
    }
}

/// Topics that do not exist are left out.
fn by_id(named: &NamedPartitions, topics: &dyn Topics) -> Partitions {
    let known =
        named.iter().filter_map(|(name, them)| Some((topics.by_name(name)?.id, them.clone())));
    known.collect()
}

/// Partitions of topics that the member subscribes to, in the version of its own subscription.
fn assignment(
    member: &ConsumerMember,
    classic: &ClassicMember,
    assigned: &Partitions,
    topics: &dyn Topics,
) -> Bytes {
    let first = classic.protocols.first();
    let subscription = first.map(|first| Subscription::decode(&first.metadata));
    let version = subscription.and_then(Result::ok).map_or(0, |it| it.version);
    let named = member.topics.iter().filter_map(|name| {
        let partitions = assigned.get(&topics.by_name(name)?.id)?;
        Some((name.clone(), partitions.clone()))
    });
    encode_assignment(version, &named.collect())
}
