//! A member, and the bookkeeping that follows one coming, changing or going.

use bytes::Bytes;
use moldau_protocol::ErrorCode;

use super::{CONSUMER_PROTOCOL_TYPE, Group, Step};
use crate::embedded;
use crate::offered_protocol::Protocol;
use crate::record::MemberRecord;
use crate::reply::{JoinReply, JoinedMember, Reply, SyncReply};
use crate::request::{JoinRequest, Token};
use crate::timers::Timer;

/// How long the join of a new member may wait (`group.new.member.join.timeout.ms`). A client that
/// gave up and joined again would leave a member behind with each attempt.
const NEW_MEMBER_JOIN_TIMEOUT_MS: i32 = 300_000;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) instance_id: Option<String>,
    pub(super) client_id: String,
    pub(super) client_host: String,
    pub(super) rebalance_timeout_ms: i32,
    pub(super) session_timeout_ms: i32,
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// A join that waits for the generation to begin.
    pub(super) join: Option<Token>,
    /// A sync that waits for the leader's assignment.
    pub(super) sync: Option<Token>,
    /// Was not part of any generation, so it has no reason to send heartbeats.
    pub(super) is_new: bool,
}

impl Member {
    pub(super) fn from_request(request: &JoinRequest) -> Self {
        Self {
            instance_id: request.instance_id.clone(),
            client_id: request.client_id.clone(),
            client_host: request.client_host.clone(),
            rebalance_timeout_ms: request.rebalance_timeout_ms.max(0),
            session_timeout_ms: request.session_timeout_ms,
            protocols: detached(&request.protocols),
            assignment: Bytes::new(),
            join: None,
            sync: None,
            is_new: true,
        }
    }

    pub(super) fn from_record(record: &MemberRecord) -> Self {
        Self {
            instance_id: record.instance_id.clone(),
            client_id: record.client_id.clone(),
            client_host: record.client_host.clone(),
            rebalance_timeout_ms: record.rebalance_timeout_ms.max(0),
            session_timeout_ms: record.session_timeout_ms,
            protocols: record.protocols.clone(),
            assignment: record.assignment.clone(),
            join: None,
            sync: None,
            is_new: false,
        }
    }

    pub(super) fn has_joined(&self) -> bool {
        self.join.is_some()
    }

    /// A dynamic member that did not rejoin. Static members may be away until their session ends.
    pub(super) fn is_absent(&self) -> bool {
        self.join.is_none() && self.instance_id.is_none()
    }

    /// Whether the end of the session leaves the member in the group, because it waits for us.
    pub(super) fn is_excused(&self) -> bool {
        !self.is_new && (self.join.is_some() || self.sync.is_some())
    }

    /// The member's metadata for one protocol.
    pub(super) fn metadata(&self, name: &str) -> Bytes {
        let offered = self.protocols.iter().find(|protocol| protocol.name == name);
        offered.map(|protocol| protocol.metadata.clone()).unwrap_or_default()
    }
}

/// Copies of the protocols that do not keep the buffer of their request alive.
fn detached(protocols: &[Protocol]) -> Vec<Protocol> {
    let copies = protocols.iter().map(|protocol| Protocol {
        name: protocol.name.clone(),
        metadata: Bytes::copy_from_slice(&protocol.metadata),
    });
    copies.collect()
}

impl Group {
    /// Adds a member, whose join waits under `token`.
    pub(super) fn add_member(&mut self, request: &JoinRequest, id: &str, token: Token) {
        if self.members.is_empty() {
            self.protocols.kind = Some(request.protocol_type.clone());
        }
        let mut member = Member::from_request(request);
        member.join = Some(token);
        self.joins_waiting += 1;
        self.insert_member(id.to_owned(), member);
    }

    /// Enters a member and everything that is kept by member.
    pub(super) fn insert_member(&mut self, id: String, member: Member) {
        self.count_protocols(&member.protocols);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.clone());
        }
        if self.leader.is_none() {
            self.leader = Some(id.clone());
        }
        self.pending_members.remove(&id);
        self.members.insert(id, member);
    }

    /// Takes over what a known member asks for; its join waits under `token`.
    pub(super) fn update_member(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        id: &str,
        token: Token,
    ) {
        // The member asks again and no longer waits for the answer to its former request.
        self.answer_join(step, id, JoinReply::refused(id, ErrorCode::RebalanceInProgress));
        let Some(member) = self.members.get_mut(id) else { return };
        let before = std::mem::replace(&mut member.protocols, detached(&request.protocols));
        member.rebalance_timeout_ms = request.rebalance_timeout_ms.max(0);
        member.session_timeout_ms = request.session_timeout_ms;
        member.join = Some(token);
        self.joins_waiting += 1;
        let after = member.protocols.clone();
        self.uncount_protocols(&before);
        self.count_protocols(&after);
    }

    /// Removes a member or an id that waits for its member. Whatever it waits for is refused.
    pub(super) fn remove_member(&mut self, step: &mut Step<'_>, id: &str) {
        self.answer_join(step, id, JoinReply::refused("", ErrorCode::UnknownMemberId));
        self.answer_sync(step, id, SyncReply::refused(ErrorCode::UnknownMemberId));
        self.timers.cancel(&Timer::Member(id.to_owned()));
        self.pending_members.remove(id);
        self.pending_syncs.remove(id);
        let Some(member) = self.members.remove(id) else { return };
        self.uncount_protocols(&member.protocols);
        if let Some(instance_id) = &member.instance_id {
            self.static_members.remove(instance_id);
        }
        if self.leader.as_deref() == Some(id) {
            self.leader = self.members.keys().next().cloned();
        }
    }

    /// Gives a static member another id. Whoever still waits under the old one is fenced.
    pub(super) fn replace_static_member(&mut self, step: &mut Step<'_>, old: &str, id: &str) {
        self.answer_join(step, old, JoinReply::refused(old, ErrorCode::FencedInstanceId));
        self.answer_sync(step, old, SyncReply::refused(ErrorCode::FencedInstanceId));
        self.timers.cancel(&Timer::Member(old.to_owned()));
        let Some(member) = self.members.remove(old) else { return };
        if let Some(instance_id) = &member.instance_id {
            self.static_members.insert(instance_id.clone(), id.to_owned());
        }
        if self.leader.as_deref() == Some(old) {
            self.leader = Some(id.to_owned());
        }
        if self.pending_syncs.remove(old) {
            self.pending_syncs.insert(id.to_owned());
        }
        self.members.insert(id.to_owned(), member);
    }

    fn count_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.protocols.offers.entry(protocol.name.clone()).or_default() += 1;
        }
    }

    fn uncount_protocols(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            if let Some(count) = self.protocols.offers.get_mut(&protocol.name) {
                *count -= 1;
                if *count == 0 {
                    self.protocols.offers.remove(&protocol.name);
                }
            }
        }
    }

    pub(super) fn answer_join(&mut self, step: &mut Step<'_>, id: &str, reply: JoinReply) {
        if let Some(token) = self.members.get_mut(id).and_then(|member| member.join.take()) {
            self.joins_waiting -= 1;
            step.reply(token, Reply::Join(reply));
        }
    }

    pub(super) fn answer_sync(&mut self, step: &mut Step<'_>, id: &str, reply: SyncReply) -> bool {
        let token = self.members.get_mut(id).and_then(|member| member.sync.take());
        token.is_some_and(|token| {
            step.reply(token, Reply::Sync(reply));
            true
        })
    }

    /// Restarts the session of a member.
    pub(super) fn extend_session(&mut self, step: &Step<'_>, id: &str) {
        if let Some(member) = self.members.get(id) {
            let waits_as_new = member.is_new && member.has_joined();
            let timeout_ms =
                if waits_as_new { NEW_MEMBER_JOIN_TIMEOUT_MS } else { member.session_timeout_ms };
            self.timers.schedule(Timer::Member(id.to_owned()), step.after_ms(timeout_ms));
        }
    }

    /// The answer to a member of this generation.
    pub(super) fn joined(
        &self,
        id: &str,
        leader: &str,
        with_members: bool,
        skip: bool,
    ) -> JoinReply {
        JoinReply {
            error: ErrorCode::None,
            generation: self.generation,
            protocol_type: self.protocols.kind.clone(),
            protocol_name: self.protocols.chosen.clone(),
            leader: leader.to_owned(),
            skip_assignment: skip,
            member_id: id.to_owned(),
            members: if with_members { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let name = self.protocols.chosen.as_deref().unwrap_or_default();
        let members = self.members.iter().map(|(id, member)| JoinedMember {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            metadata: member.metadata(name),
        });
        members.collect()
    }

    /// Checks that a request comes from a member, and from the right one of a static member.
    pub(super) fn check_member(
        &self,
        id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        if let Some(instance_id) = instance_id {
            match self.static_members.get(instance_id) {
                None => return Err(ErrorCode::UnknownMemberId),
                Some(current) if current != id => return Err(ErrorCode::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains_key(id) { Ok(()) } else { Err(ErrorCode::UnknownMemberId) }
    }

    pub(super) fn check_generation(&self, generation: i32) -> Result<(), ErrorCode> {
        if generation == self.generation { Ok(()) } else { Err(ErrorCode::IllegalGeneration) }
    }

    pub(super) fn is_consumer_group(&self) -> bool {
        self.protocols.kind.as_deref() == Some(CONSUMER_PROTOCOL_TYPE)
    }

    pub(super) fn update_subscribed_topics(&mut self) {
        self.subscribed_topics = None;
        if !self.is_consumer_group() {
            return;
        }
        let name = self.protocols.chosen.as_deref().unwrap_or_default();
        let subscriptions = self.members.values().map(|member| member.metadata(name));
        let topics: Result<Vec<_>, _> =
            subscriptions.map(|bytes| embedded::topics(&bytes)).collect();
        // A subscription that cannot be read leaves the topics unknown: all count as subscribed.
        self.subscribed_topics = topics.ok().map(|sets| sets.into_iter().flatten().collect());
    }

    /// Whether a member may be reading the topic.
    pub(super) fn is_subscribed(&self, topic: &str) -> bool {
        match &self.subscribed_topics {
            Some(topics) => topics.contains(topic),
            None => self.is_consumer_group(),
        }
    }
}
