//! Members that leave, and members that are put out: their session ended, or they did not give up
//! partitions in time.

use std::collections::BTreeSet;

use moldau_protocol::ErrorCode;

use super::{ConsumerGroup, MemberState, STATIC_LEAVE_EPOCH};
use crate::reply::{ConsumerHeartbeatReply, LeaveReply, LeftMember, Refused, Reply};
use crate::request::{ConsumerHeartbeat, LeaveRequest, LeavingMember, Token};
use crate::step::Step;
use crate::timers::Timer;

impl ConsumerGroup {
    /// A heartbeat whose epoch says that the member goes.
    pub(crate) fn leave(
        &mut self,
        step: &mut Step<'_>,
        request: &ConsumerHeartbeat,
    ) -> Result<ConsumerHeartbeatReply, Refused> {
        let id = request.member_id.clone();
        let unknown = |error| (error, format!("member {id} is not a member of group {}", self.id));
        match &request.instance_id {
            Some(instance_id) => {
                self.static_member(&id, instance_id).map_err(unknown)?;
            }
            None if !self.members.contains_key(&id) => {
                return Err(unknown(ErrorCode::UnknownMemberId));
            }
            None => {}
        }
        if request.instance_id.is_some() && request.member_epoch == STATIC_LEAVE_EPOCH {
            self.suspend(step, &id);
        } else {
            self.put_out(step, vec![id.clone()]);
        }
        Ok(ConsumerHeartbeatReply {
            error: ErrorCode::None,
            message: None,
            member_id: id,
            member_epoch: request.member_epoch,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// A static member goes for a while: what it is assigned stays its own until its session ends.
    fn suspend(&mut self, step: &mut Step<'_>, id: &str) {
        let Some(mut member) = self.members.get(id).cloned() else { return };
        member.epoch = STATIC_LEAVE_EPOCH;
        member.revoking.clear();
        member.assigned.values_mut().flat_map(|held| held.values_mut()).for_each(|it| *it = 0);
        self.timers.cancel(&Timer::Revocation(id.to_owned()));
        self.put_member(member);
        self.write(step, &[id], Vec::new(), &BTreeSet::new());
    }

    /// LeaveGroup, as an administrator sends it for members of any protocol.
    pub(crate) fn leave_group(
        &mut self,
        step: &mut Step<'_>,
        request: &LeaveRequest,
        token: Token,
    ) {
        let mut leaving = BTreeSet::new();
        let members = request.members.iter().map(|member| {
            let resolved = self.resolved(member);
            let error = match &resolved {
                Ok(_) => ErrorCode::None,
                Err(error) => *error,
            };
            leaving.extend(resolved);
            LeftMember {
                member_id: member.member_id.clone(),
                instance_id: member.instance_id.clone(),
                error,
            }
        });
        let members = members.collect();
        self.put_out(step, leaving.into_iter().collect());
        let reply = LeaveReply { error: ErrorCode::None, members };
        step.effects.replies.push((token, Reply::Leave(reply)));
    }

    fn resolved(&self, leaving: &LeavingMember) -> Result<String, ErrorCode> {
        match &leaving.instance_id {
            None if self.members.contains_key(&leaving.member_id) => Ok(leaving.member_id.clone()),
            None => Err(ErrorCode::UnknownMemberId),
            Some(instance_id) if leaving.member_id.is_empty() => {
                let named = self.static_members.get(instance_id).cloned();
                named.ok_or(ErrorCode::UnknownMemberId)
            }
            Some(instance_id) => {
                let member = self.static_member(&leaving.member_id, instance_id)?;
                Ok(member.member_id.clone())
            }
        }
    }

    /// Takes members out. The target is computed anew with the next heartbeat of another.
    fn put_out(&mut self, step: &mut Step<'_>, ids: Vec<String>) {
        let gone: Vec<String> =
            ids.into_iter().filter(|id| self.take_member(id).is_some()).collect();
        if gone.is_empty() {
            return;
        }
        self.epoch = self.epoch.saturating_add(1);
        self.metadata_hash = 0;
        if self.members.is_empty() {
            self.target_epoch = self.epoch;
            self.target_timestamp_ms = 0;
            self.regexes = super::Regexes::default();
        }
        self.write(step, &[], gone, &BTreeSet::new());
    }

    /// Acts on every deadline that has come.
    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        let mut gone = Vec::new();
        while let Some(timer) = self.timers.pop_due(step.now_ms) {
            match timer {
                Timer::Member(id) | Timer::Rejoin(id) | Timer::FetchAssignment(id) => {
                    gone.push(id);
                }
                Timer::Revocation(id) => {
                    let member = self.members.get(&id);
                    if member.is_some_and(|it| it.state == MemberState::UnrevokedPartitions) {
                        gone.push(id);
                    }
                }
                Timer::Join | Timer::Sync => {}
            }
        }
        self.put_out(step, gone);
    }
}
