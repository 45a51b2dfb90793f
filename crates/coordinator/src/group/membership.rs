//! Heartbeats, leaving, and deadlines.

use moldau_protocol::ErrorCode;

use super::{Group, Phase, Step};
use crate::reply::{LeaveReply, LeftMember, Reply};
use crate::request::{HeartbeatRequest, LeaveRequest, LeavingMember, Token};
use crate::timers::Timer;

impl Group {
    pub(crate) fn heartbeat(&mut self, step: &Step<'_>, request: &HeartbeatRequest) -> ErrorCode {
        let checked = self
            .check_member(&request.member_id, request.instance_id.as_deref())
            .and_then(|()| self.check_generation(request.generation));
        if let Err(error) = checked {
            return error;
        }
        self.extend_session(step, &request.member_id);
        if matches!(self.phase, Phase::Preparing { .. }) {
            ErrorCode::RebalanceInProgress
        } else {
            ErrorCode::None
        }
    }

    pub(crate) fn leave(&mut self, step: &mut Step<'_>, request: &LeaveRequest, token: Token) {
        let members_before = self.members.len();
        let mut results = Vec::with_capacity(request.members.len());
        for leaving in &request.members {
            let error = match self.resolve(leaving) {
                Ok(id) => {
                    self.remove_member(step, &id);
                    ErrorCode::None
                }
                Err(error) => error,
            };
            results.push(LeftMember {
                member_id: leaving.member_id.clone(),
                instance_id: leaving.instance_id.clone(),
                error,
            });
        }
        if self.members.len() < members_before {
            self.rebalance_after_removal(step);
        } else {
            // An abandoned id does not hold up the others.
            self.complete_join_if_all_joined(step);
        }
        let reply = LeaveReply { error: ErrorCode::None, members: results };
        step.reply(token, Reply::Leave(reply));
    }

    /// The id of the member that a leave request means.
    fn resolve(&self, leaving: &LeavingMember) -> Result<String, ErrorCode> {
        if leaving.member_id.is_empty() {
            let named = leaving.instance_id.as_ref().and_then(|id| self.static_members.get(id));
            return named.cloned().ok_or(ErrorCode::UnknownMemberId);
        }
        if self.pending_members.contains(&leaving.member_id) {
            return Ok(leaving.member_id.clone());
        }
        self.check_member(&leaving.member_id, leaving.instance_id.as_deref())?;
        Ok(leaving.member_id.clone())
    }

    fn rebalance_after_removal(&mut self, step: &mut Step<'_>) {
        match self.phase {
            Phase::Empty => {}
            Phase::Preparing { .. } => self.complete_join_if_all_joined(step),
            Phase::Completing | Phase::Stable => self.prepare_rebalance(step),
        }
    }

    /// Acts on every deadline that has come.
    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        while let Some(timer) = self.timers.pop_due(step.now_ms) {
            match timer {
                Timer::Join => self.join_timer_fired(step),
                Timer::Sync => self.sync_timer_fired(step),
                Timer::Member(id) => self.session_ended(step, &id),
                // Members of this protocol give everything up before they rejoin.
                Timer::Revocation(_) | Timer::Rejoin(_) | Timer::FetchAssignment(_) => {}
            }
        }
    }

    fn session_ended(&mut self, step: &mut Step<'_>, id: &str) {
        if self.pending_members.contains(id) {
            self.remove_member(step, id);
            self.complete_join_if_all_joined(step);
        } else if self.members.get(id).is_some_and(|member| !member.is_excused()) {
            self.remove_member(step, id);
            self.rebalance_after_removal(step);
        }
    }
}
