//! JoinGroup, after `GroupMetadataManager.classicGroupJoin` of Kafka 4.3 (KIP-345, KIP-394,
//! KIP-814). Differs in two points: a join that replaces a waiting one of the same member answers
//! that with REBALANCE_IN_PROGRESS, where Kafka never answers it; and a static member comes back to
//! a full group, which Kafka refuses.

use moldau_protocol::ErrorCode;

use super::{Group, Phase, Step};
use crate::config::PENDING_MEMBERS_MAX;
use crate::reply::{JoinReply, Reply};
use crate::request::{JoinRequest, Token};
use crate::timers::Timer;

impl Group {
    /// `new_id` becomes the id of a member that has none.
    pub(crate) fn join(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        token: Token,
        new_id: String,
    ) {
        let id = request.member_id.as_str();
        let refusal = if !self.has_room_for(step, request) {
            self.remove_member(step, id);
            self.complete_join_if_all_joined(step);
            Some(JoinReply::refused("", ErrorCode::GroupMaxSizeReached))
        } else if !self.supports(&request.protocol_type, &request.protocols) {
            Some(JoinReply::refused(id, ErrorCode::InconsistentGroupProtocol))
        } else if id.is_empty() {
            self.join_without_id(step, request, token, new_id)
        } else {
            self.join_with_id(step, request, token)
        };
        if let Some(reply) = refusal {
            step.reply(token, Reply::Join(reply));
        }
    }

    /// A rejoining member keeps its place. While members rejoin, only those count that did.
    fn has_room_for(&self, step: &Step<'_>, request: &JoinRequest) -> bool {
        let size_max = step.config.group_size_max;
        let instance = request.instance_id.as_ref().filter(|_| request.member_id.is_empty());
        let former = instance.and_then(|id| self.static_members.get(id));
        let member = self.members.get(former.unwrap_or(&request.member_id));
        match self.phase {
            Phase::Empty => true,
            Phase::Preparing { .. } => {
                member.is_some_and(|member| member.has_joined()) || self.joins_waiting < size_max
            }
            Phase::Completing | Phase::Stable => member.is_some() || self.members.len() < size_max,
        }
    }

    /// Returns the reply unless the join waits or was answered.
    fn join_without_id(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        token: Token,
        new_id: String,
    ) -> Option<JoinReply> {
        let known = request.instance_id.as_ref().and_then(|id| self.static_members.get(id));
        if let Some(old) = known.cloned() {
            return self.rejoin_static(step, request, token, &old, &new_id);
        }
        if request.instance_id.is_some() || !request.require_known_member_id {
            self.admit(step, request, token, &new_id);
            return None;
        }
        if self.pending_members.len() >= PENDING_MEMBERS_MAX {
            return Some(JoinReply::refused("", ErrorCode::GroupMaxSizeReached));
        }
        let deadline = step.after_ms(request.session_timeout_ms);
        self.timers.schedule(Timer::Member(new_id.clone()), deadline);
        self.pending_members.insert(new_id.clone());
        Some(JoinReply::refused(&new_id, ErrorCode::MemberIdRequired))
    }

    /// Returns the reply unless the join waits or was answered.
    fn join_with_id(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        token: Token,
    ) -> Option<JoinReply> {
        let id = request.member_id.as_str();
        if self.pending_members.contains(id) && request.instance_id.is_none() {
            self.admit(step, request, token, id);
            return None;
        }
        if let Err(error) = self.check_member(id, request.instance_id.as_deref()) {
            return Some(JoinReply::refused(id, error));
        }
        let unchanged = self.members.get(id).is_some_and(|m| m.protocols == request.protocols);
        let leads = self.leader.as_deref() == Some(id);
        // A member that missed its answer gets it again. The leader of a stable group rejoins to
        // start a rebalance, for reasons that its metadata need not show.
        let answered = match self.phase {
            Phase::Empty => return Some(JoinReply::refused(id, ErrorCode::UnknownMemberId)),
            Phase::Preparing { .. } => false,
            Phase::Completing => unchanged,
            Phase::Stable => unchanged && !leads,
        };
        if answered {
            let leader = self.leader.clone().unwrap_or_default();
            return Some(self.joined(id, &leader, leads, false));
        }
        self.update_member(step, request, id, token);
        self.rebalance(step);
        None
    }

    /// Adds a member and starts or continues a rebalance.
    fn admit(&mut self, step: &mut Step<'_>, request: &JoinRequest, token: Token, id: &str) {
        if let Phase::Preparing { initial: Some(wait) } = &mut self.phase {
            wait.member_added = true;
        }
        self.add_member(request, id, token);
        self.extend_session(step, id);
        self.rebalance(step);
    }

    /// A static member came back under the same instance id. A stable group goes on undisturbed
    /// if the protocol that it would choose stays the same and what the member offers fits the
    /// group's record.
    fn rejoin_static(
        &mut self,
        step: &mut Step<'_>,
        request: &JoinRequest,
        token: Token,
        old: &str,
        id: &str,
    ) -> Option<JoinReply> {
        let leader_before = self.leader.clone().unwrap_or_default();
        self.replace_static_member(step, old, id);
        self.update_member(step, request, id, token);
        self.extend_session(step, id);
        let is_recorded = matches!(self.phase, Phase::Stable)
            && self.select_protocol() == self.protocols.chosen
            && self.write(step);
        match self.phase {
            Phase::Stable if is_recorded => {
                self.update_subscribed_topics();
                let leads = self.leader.as_deref() == Some(id);
                let skip = leads && request.supports_skipping_assignment;
                // Told of the former leader, a client that cannot skip the assignment takes itself
                // for a follower and leaves the assignment alone.
                let leader = if skip { id } else { leader_before.as_str() };
                let reply = self.joined(id, leader, skip, skip);
                self.answer_join(step, id, reply);
            }
            // The leader may be assigning to the old id already.
            Phase::Completing | Phase::Stable => self.prepare_rebalance(step),
            Phase::Preparing { .. } | Phase::Empty => self.complete_join_if_all_joined(step),
        }
        None
    }
}
