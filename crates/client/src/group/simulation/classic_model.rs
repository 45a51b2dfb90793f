//! A coordinator of the classic protocol: JoinGroup waits for all members, SyncGroup for the
//! leader.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::join_group_response::JoinGroupResponseMember;
use moldau_protocol::messages::{
    HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupResponse, SyncGroupRequest,
    SyncGroupResponse,
};

use super::{Answer, Ask, Model, Token};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Phase {
    /// JoinGroups are collected.
    #[default]
    Preparing,
    /// The leader is to assign.
    Completing,
    Stable,
}

#[derive(Default)]
struct Known {
    metadata: Bytes,
    joining: Option<Token>,
    syncing: Option<Token>,
    assignment: Bytes,
}

#[derive(Default)]
pub(super) struct ClassicModel {
    phase: Phase,
    generation: i32,
    leader: String,
    members: BTreeMap<String, Known>,
    /// Ids given to those who must join with them.
    ids: BTreeSet<String>,
    ids_given: u32,
    answers: Vec<(Token, Answer)>,
}

impl ClassicModel {
    fn join(&mut self, token: Token, request: JoinGroupRequest) {
        let refused = |code: ErrorCode, member_id: String| {
            let error_code = code.code();
            Answer::Join(JoinGroupResponse { error_code, member_id, ..Default::default() })
        };
        let id = request.member_id;
        if id.is_empty() {
            self.ids_given += 1;
            let id = format!("member-{}", self.ids_given);
            self.ids.insert(id.clone());
            self.answers.push((token, refused(ErrorCode::MemberIdRequired, id)));
            return;
        }
        if !self.ids.remove(&id) && !self.members.contains_key(&id) {
            self.answers.push((token, refused(ErrorCode::UnknownMemberId, id)));
            return;
        }
        let known = self.members.entry(id).or_default();
        known.metadata = request.protocols[0].metadata.clone();
        known.joining = Some(token);
        self.prepare();
    }

    fn prepare(&mut self) {
        self.phase = Phase::Preparing;
        for known in self.members.values_mut() {
            if let Some(token) = known.syncing.take() {
                let error_code = ErrorCode::RebalanceInProgress.code();
                let answer = SyncGroupResponse { error_code, ..Default::default() };
                self.answers.push((token, Answer::Sync(answer)));
            }
        }
        self.complete();
    }

    fn complete(&mut self) {
        let all = !self.members.is_empty() && self.members.values().all(|it| it.joining.is_some());
        if self.phase != Phase::Preparing || !all {
            return;
        }
        self.phase = Phase::Completing;
        self.generation += 1;
        self.leader.clone_from(self.members.keys().next().unwrap());
        let member = |(id, known): (&String, &Known)| JoinGroupResponseMember {
            member_id: id.clone(),
            metadata: known.metadata.clone(),
            ..Default::default()
        };
        let members: Vec<_> = self.members.iter().map(member).collect();
        for (id, known) in &mut self.members {
            let answer = JoinGroupResponse {
                generation_id: self.generation,
                protocol_name: Some("any".to_owned()),
                leader: self.leader.clone(),
                member_id: id.clone(),
                members: if *id == self.leader { members.clone() } else { Vec::new() },
                ..Default::default()
            };
            let token = known.joining.take().unwrap();
            self.answers.push((token, Answer::Join(answer)));
        }
    }

    fn sync(&mut self, token: Token, request: SyncGroupRequest) {
        let mut refused = |code: ErrorCode| {
            let answer = SyncGroupResponse { error_code: code.code(), ..Default::default() };
            self.answers.push((token, Answer::Sync(answer)));
        };
        let Some(known) = self.members.get_mut(&request.member_id) else {
            return refused(ErrorCode::UnknownMemberId);
        };
        if request.generation_id != self.generation {
            return refused(ErrorCode::IllegalGeneration);
        }
        if self.phase == Phase::Preparing {
            return refused(ErrorCode::RebalanceInProgress);
        }
        known.syncing = Some(token);
        if self.phase == Phase::Completing && request.member_id == self.leader {
            for known in self.members.values_mut() {
                known.assignment = Bytes::new();
            }
            for assigned in request.assignments {
                let known = self.members.get_mut(&assigned.member_id).unwrap();
                known.assignment = assigned.assignment;
            }
            self.phase = Phase::Stable;
        }
        if self.phase == Phase::Stable {
            for known in self.members.values_mut() {
                let assignment = known.assignment.clone();
                let answer = SyncGroupResponse { assignment, ..Default::default() };
                let token = known.syncing.take();
                self.answers.extend(token.map(|token| (token, Answer::Sync(answer))));
            }
        }
    }

    fn heartbeat_code(&self, id: &str, generation: i32) -> ErrorCode {
        match self.phase {
            _ if !self.members.contains_key(id) => ErrorCode::UnknownMemberId,
            _ if generation != self.generation => ErrorCode::IllegalGeneration,
            Phase::Preparing => ErrorCode::RebalanceInProgress,
            Phase::Completing | Phase::Stable => ErrorCode::None,
        }
    }
}

impl Model for ClassicModel {
    fn ask(&mut self, token: Token, ask: Ask) {
        match ask {
            Ask::Join(request) => self.join(token, request),
            Ask::Sync(request) => self.sync(token, request),
            Ask::Heartbeat(request) => {
                let code = self.heartbeat_code(&request.member_id, request.generation_id);
                let answer = HeartbeatResponse { error_code: code.code(), ..Default::default() };
                self.answers.push((token, Answer::Heartbeat(answer)));
            }
            Ask::Leave(request) => {
                self.expel(&request.members[0].member_id);
                self.answers.push((token, Answer::Leave(LeaveGroupResponse::default())));
            }
            Ask::Beat(_) | Ask::ShareBeat(_) => panic!("{ask:?}"),
        }
    }

    fn answers(&mut self) -> Vec<(Token, Answer)> {
        std::mem::take(&mut self.answers)
    }

    fn expel(&mut self, id: &str) {
        self.ids.remove(id);
        let Some(known) = self.members.remove(id) else { return };
        let error_code = ErrorCode::UnknownMemberId.code();
        if let Some(token) = known.joining {
            let answer = JoinGroupResponse { error_code, ..Default::default() };
            self.answers.push((token, Answer::Join(answer)));
        }
        if let Some(token) = known.syncing {
            let answer = SyncGroupResponse { error_code, ..Default::default() };
            self.answers.push((token, Answer::Sync(answer)));
        }
        self.prepare();
    }

    fn has(&self, id: &str) -> bool {
        self.members.contains_key(id)
    }

    fn rebalance_timeout(&mut self) {
        if self.phase == Phase::Preparing {
            self.members.retain(|_, known| known.joining.is_some());
            self.complete();
        }
    }
}
