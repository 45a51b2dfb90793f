//! Members that leave, and members that are put out: their session ended, or they did not give up
//! tasks in time.

use std::collections::BTreeSet;

use moldau_protocol::ErrorCode;

use super::{STATIC_LEAVE_EPOCH, StreamsGroup};
use crate::consumer_member::MemberState;
use crate::reply::Refused;
use crate::step::Step;
use crate::streams_heartbeat::{StreamsHeartbeat, StreamsHeartbeatReply};
use crate::streams_record::{MemberTasks, StreamsChange};
use crate::timers::Timer;

impl StreamsGroup {
    /// A heartbeat whose epoch says that the member goes.
    pub(crate) fn leave(
        &mut self,
        step: &mut Step<'_>,
        request: &StreamsHeartbeat,
    ) -> Result<StreamsHeartbeatReply, Refused> {
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
        if request.shuts_down && self.shutdown_by.is_none() {
            self.shutdown_by = Some(id.clone());
        }
        if request.instance_id.is_some() && request.member_epoch == STATIC_LEAVE_EPOCH {
            self.suspend(step, &id);
        } else {
            self.put_out(step, vec![id.clone()]);
        }
        Ok(StreamsHeartbeatReply::left(id, request.member_epoch))
    }

    /// A static member goes for a while: what it is assigned stays its own until its session ends.
    fn suspend(&mut self, step: &mut Step<'_>, id: &str) {
        let Some(mut member) = self.members.get(id).cloned() else { return };
        member.epoch = STATIC_LEAVE_EPOCH;
        member.revoking = MemberTasks::default();
        let held = member.assigned.active.values_mut().flat_map(|held| held.values_mut());
        held.for_each(|epoch| *epoch = 0);
        self.timers.cancel(&Timer::Revocation(id.to_owned()));
        self.put_member(member.clone());
        let change = StreamsChange { members: vec![member], ..self.head() };
        self.write(step, change, BTreeSet::new());
    }

    /// Takes members out. The target is computed anew with the next heartbeat of another.
    fn put_out(&mut self, step: &mut Step<'_>, ids: Vec<String>) {
        let gone: Vec<String> =
            ids.into_iter().filter(|id| self.take_member(id).is_some()).collect();
        if gone.is_empty() {
            return;
        }
        self.epoch = self.epoch.saturating_add(1);
        if self.members.is_empty() {
            self.target_epoch = self.epoch;
            self.target_timestamp_ms = 0;
            self.shutdown_by = None;
        }
        let change = StreamsChange { removed: gone, ..self.head() };
        self.write(step, change, BTreeSet::new());
    }

    /// Acts on every deadline that has come.
    pub(crate) fn expire(&mut self, step: &mut Step<'_>) {
        let mut gone = Vec::new();
        let mut is_assembled = false;
        while let Some(timer) = self.timers.pop_due(step.now_ms) {
            match timer {
                Timer::Member(id) => gone.push(id),
                Timer::Revocation(id) => {
                    let member = self.members.get(&id);
                    if member.is_some_and(|it| it.state == MemberState::UnrevokedPartitions) {
                        gone.push(id);
                    }
                }
                Timer::Join => is_assembled = true,
                Timer::Sync | Timer::Rejoin(_) | Timer::FetchAssignment(_) => {}
            }
        }
        self.put_out(step, gone);
        if is_assembled && !self.members.is_empty() {
            let head = self.head();
            let targets = self.follow_epoch(step, &mut Vec::new());
            if self.head() != head {
                self.write(step, self.head(), targets);
            }
        }
    }
}
