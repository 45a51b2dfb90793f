//! SyncGroup: the leader's assignment makes the generation stable.

use std::collections::HashMap;

use bytes::Bytes;
use moldau_protocol::ErrorCode;

use super::{Group, Phase, Step};
use crate::config::ASSIGNMENTS_BYTES_MAX;
use crate::reply::{Reply, SyncReply};
use crate::request::{SyncRequest, Token};

impl Group {
    pub(crate) fn sync(&mut self, step: &mut Step<'_>, request: &SyncRequest, token: Token) {
        if let Err(error) = self.check_sync(request) {
            step.reply(token, Reply::Sync(SyncReply::refused(error)));
            return;
        }
        let id = request.member_id.as_str();
        self.pending_syncs.remove(id);
        if matches!(self.phase, Phase::Stable) {
            self.extend_session(step, id);
            step.reply(token, Reply::Sync(self.synced(id)));
            return;
        }
        // The member asks again and no longer waits for the answer to its former request.
        self.answer_sync(step, id, SyncReply::refused(ErrorCode::RebalanceInProgress));
        if let Some(member) = self.members.get_mut(id) {
            member.sync = Some(token);
        }
        if self.leader.as_deref() == Some(id) {
            self.assign(step, &request.assignments);
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), ErrorCode> {
        self.check_member(&request.member_id, request.instance_id.as_deref())?;
        self.check_generation(request.generation)?;
        let differs =
            |given: &Option<String>, own: &Option<String>| given.is_some() && given != own;
        if differs(&request.protocol_type, &self.protocols.kind)
            || differs(&request.protocol_name, &self.protocols.chosen)
        {
            return Err(ErrorCode::InconsistentGroupProtocol);
        }
        if matches!(self.phase, Phase::Preparing { .. }) {
            return Err(ErrorCode::RebalanceInProgress);
        }
        let bytes: usize = request.assignments.iter().map(|(_, bytes)| bytes.len()).sum();
        if bytes > ASSIGNMENTS_BYTES_MAX { Err(ErrorCode::PolicyViolation) } else { Ok(()) }
    }

    /// A member that the leader left out gets an empty assignment. A group that is too large to be
    /// recorded learns it from the answers and begins anew, as Kafka's does.
    fn assign(&mut self, step: &mut Step<'_>, assignments: &[(String, Bytes)]) {
        let by_id: HashMap<&str, &Bytes> =
            assignments.iter().map(|(id, bytes)| (id.as_str(), bytes)).collect();
        for (id, member) in &mut self.members {
            let assigned = by_id.get(id.as_str()).map(|bytes| Bytes::copy_from_slice(bytes));
            member.assignment = assigned.unwrap_or_default();
        }
        self.enter(step, Phase::Stable);
        if !self.write(step) {
            self.refuse_waiting_syncs(step, ErrorCode::UnknownServerError);
            self.prepare_rebalance(step);
            return;
        }
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let reply = self.synced(&id);
            if self.answer_sync(step, &id, reply) {
                self.extend_session(step, &id);
            }
        }
    }

    fn synced(&self, id: &str) -> SyncReply {
        SyncReply {
            error: ErrorCode::None,
            protocol_type: self.protocols.kind.clone(),
            protocol_name: self.protocols.chosen.clone(),
            assignment: self.members.get(id).map(|m| m.assignment.clone()).unwrap_or_default(),
        }
    }

    /// Answers the members that wait for an assignment with an error; none has one then.
    pub(super) fn refuse_waiting_syncs(&mut self, step: &mut Step<'_>, error: ErrorCode) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            if self.answer_sync(step, &id, SyncReply::refused(error)) {
                self.extend_session(step, &id);
            }
            if let Some(member) = self.members.get_mut(&id) {
                member.assignment = Bytes::new();
            }
        }
    }
}
