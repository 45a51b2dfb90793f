//! A member in the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup.
//!
//! With the assignor `range` the member gives everything up before it joins again (eager). With
//! `cooperative-sticky` it joins with what it holds, gives up what the leader takes away, and then
//! joins once more, so that the leader can assign that to others (KIP-429). Until the owner has
//! confirmed a revocation, heartbeats keep the member in the group.

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use moldau_protocol::messages::leave_group_request::MemberIdentity;
use moldau_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use moldau_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest,
    SyncGroupRequest, SyncGroupResponse,
};
use regex::Regex;
use tokio::time::Instant;

use crate::group::assignor::{self, Assignor, Subscriber};
use crate::group::machine::{Answer, Ask, Effect, Found, Input, Look, Member, MemberStage, Turn};
use crate::group::options::millis;
use crate::metadata::Metadata;
use crate::{Error, Result};

/// Protocol type of groups whose members consume.
const PROTOCOL_TYPE: &str = "consumer";

/// How far the member is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It does not know which topics match its pattern.
    Matching,
    /// It sends JoinGroup next, or waits for its answer.
    Joining,
    /// It sends SyncGroup next, or waits for its answer.
    Syncing,
    Stable,
    /// It joins again once its owner has given up what was revoked, or at this time without
    /// anything: nobody else limits how long the others wait for that.
    Preparing(Instant),
    Leaving,
    Ended,
}

/// Why topics are looked up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lookup {
    None,
    /// To find the topics that match the pattern.
    Matching,
    /// To assign them as the leader.
    Assigning,
    /// To see whether what the leader assigned has grown.
    Growing,
}

#[derive(Debug)]
pub(super) struct ClassicMember {
    pub(super) member: Member,
    assignor: Assignor,
    pattern: Option<Regex>,
    /// What it subscribes to: the topics of its options and those that match the pattern.
    topics: BTreeSet<String>,
    /// What it last joined with.
    joined_with: BTreeSet<String>,
    stage: Stage,
    lookup: Lookup,
    /// When topics are looked up again.
    lookup_at: Option<Instant>,
    joined: JoinGroupResponse,
    assignments: Vec<SyncGroupRequestAssignment>,
    /// Numbers of partitions by which it assigned as the leader.
    led: Option<HashMap<String, usize>>,
}

impl ClassicMember {
    pub(super) fn new(mut member: Member) -> Result<Self> {
        member.epoch = -1;
        let assignor = Assignor::named(member.options.assignor.as_deref())?;
        let pattern = member.options.pattern.as_deref().map(compile).transpose()?;
        Ok(Self {
            topics: member.options.topics.iter().cloned().collect(),
            joined_with: BTreeSet::new(),
            stage: if pattern.is_some() { Stage::Matching } else { Stage::Joining },
            lookup_at: match member.turn {
                Turn::At(at) if pattern.is_some() => Some(at),
                _ => None,
            },
            member,
            assignor,
            pattern,
            lookup: Lookup::None,
            joined: JoinGroupResponse::default(),
            assignments: Vec::new(),
            led: None,
        })
    }

    pub(super) fn heartbeat_interval(&self) -> Duration {
        self.member.options.heartbeat_interval
    }

    pub(super) fn stage(&self) -> MemberStage {
        match self.stage {
            Stage::Matching | Stage::Joining | Stage::Syncing => MemberStage::Joining,
            Stage::Stable => MemberStage::Stable,
            Stage::Preparing(_) => MemberStage::Revoking,
            Stage::Leaving | Stage::Ended => MemberStage::Ended,
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let ask = match self.member.turn {
            Turn::At(at) if self.stage != Stage::Matching => Some(at),
            _ => None,
        };
        let look = self.lookup_at.filter(|_| self.lookup == Lookup::None);
        let until = match self.stage {
            Stage::Preparing(until) => Some(until),
            _ => None,
        };
        ask.into_iter().chain(look).chain(until).min()
    }

    pub(super) fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        if matches!(input, Input::Answered(_) | Input::Failed(_)) {
            self.member.turn = Turn::Waiting;
        }
        let mut effects = match input {
            Input::Due => Vec::new(),
            Input::Metadata(metadata) => self.outgrown(now, &metadata),
            Input::Answered(answer) => {
                self.member.heard();
                self.answered(now, answer)
            }
            Input::Failed(error) => self.failed(now, error),
            Input::Looked(found) => self.looked(now, found),
            Input::GivenUp(losses, partitions) => {
                self.member.holding.give_up(losses, &partitions);
                Vec::new()
            }
            Input::Leave => self.leave(),
        };
        if let Stage::Preparing(until) = self.stage {
            if !self.member.holding.is_revoking() {
                self.join_at(now);
            } else if now >= until {
                self.start_over(now);
            }
        }
        effects.extend(self.look(now));
        effects.extend(self.ask(now));
        effects
    }

    fn answered(&mut self, now: Instant, answer: Answer) -> Vec<Effect> {
        match (self.stage, answer) {
            (Stage::Joining, Answer::Join(answer)) => self.joined(now, answer),
            (Stage::Syncing, Answer::Sync(answer)) => self.synced(now, &answer),
            (Stage::Stable | Stage::Preparing(_), Answer::Heartbeat(answer)) => {
                self.beaten(now, &answer)
            }
            (Stage::Leaving, Answer::Leave(answer)) => {
                let refusal = self.member.refusal(answer.error_code, None);
                let gone = |error: &Error| error.code() == Some(ErrorCode::UnknownMemberId);
                self.end(refusal.filter(|error| !gone(error)).map_or(Ok(()), Err))
            }
            // A heartbeat that was in flight when the member decided to join again.
            _ => {
                self.member.turn = Turn::At(now);
                Vec::new()
            }
        }
    }

    fn joined(&mut self, now: Instant, answer: JoinGroupResponse) -> Vec<Effect> {
        if !answer.member_id.is_empty() {
            self.member.id.clone_from(&answer.member_id);
        }
        if let Some(error) = self.member.refusal(answer.error_code, None) {
            return match error.code() {
                Some(ErrorCode::MemberIdRequired) => {
                    self.join_at(now);
                    Vec::new()
                }
                _ => self.refused(now, error),
            };
        }
        self.member.answered(now);
        self.member.epoch = answer.generation_id;
        self.stage = Stage::Syncing;
        self.assignments = Vec::new();
        self.led = None;
        let leads = answer.leader == answer.member_id;
        self.joined = answer;
        if !leads {
            self.member.turn = Turn::At(now);
            return Vec::new();
        }
        let address = self.member.coordinator();
        let mut topics = BTreeSet::new();
        for member in &self.joined.members {
            match assignor::decode_subscription(&member.metadata, &address) {
                Ok(subscription) => topics.extend(subscription.topics),
                Err(error) => return self.end(Err(error)),
            }
        }
        self.member.turn = Turn::Waiting;
        self.lookup = Lookup::Assigning;
        vec![Effect::Look(Look::Named(topics.into_iter().collect()))]
    }

    /// As the group's leader: who reads what.
    fn assign(&mut self, found: &[Found]) -> Result<()> {
        let address = self.member.coordinator();
        let mut members = Vec::with_capacity(self.joined.members.len());
        let mut partitions = HashMap::new();
        for member in &self.joined.members {
            let subscription = assignor::decode_subscription(&member.metadata, &address)?;
            // A topic that a member asks for and that does not exist has nothing to read.
            partitions.extend(subscription.topics.iter().map(|topic| (topic.clone(), 0)));
            // Static members keep their place in the order across restarts.
            let order = member.group_instance_id.as_ref().unwrap_or(&member.member_id);
            members.push(Subscriber::new(order, &member.member_id, subscription));
        }
        for topic in found {
            if let Some(count) = partitions.get_mut(topic.topic.name.as_ref()) {
                *count = topic.partitions;
            }
        }
        let assigned = self.assignor.assign(&mut members, &partitions);
        self.led = Some(partitions);
        if self.joined.skip_assignment {
            return Ok(());
        }
        for (member_id, partitions) in assigned {
            let assignment = assignor::encode_assignment(&partitions)?;
            let assignment =
                SyncGroupRequestAssignment { member_id, assignment, ..Default::default() };
            self.assignments.push(assignment);
        }
        Ok(())
    }

    fn synced(&mut self, now: Instant, answer: &SyncGroupResponse) -> Vec<Effect> {
        if let Some(error) = self.member.refusal(answer.error_code, None) {
            return self.refused(now, error);
        }
        let address = self.member.coordinator();
        let assigned = match assignor::decode_assignment(&answer.assignment, &address) {
            Ok(assigned) => assigned,
            Err(error) => return self.end(Err(error)),
        };
        self.member.answered(now);
        let holding = &mut self.member.holding;
        let kept: BTreeSet<_> = assigned.iter().cloned().collect();
        holding.revoke(holding.held().difference(&kept).cloned().collect::<Vec<_>>());
        holding.assign(assigned);
        self.stage = Stage::Stable;
        if holding.is_revoking() {
            self.stage = Stage::Preparing(now + self.member.options.rebalance_timeout);
        }
        self.member.turn = Turn::At(now + self.member.options.heartbeat_interval);
        if self.pattern.is_some() || self.led.iter().flatten().any(|(_, count)| *count == 0) {
            self.lookup_at = Some(now + self.member.metadata_age_max());
        }
        Vec::new()
    }

    fn beaten(&mut self, now: Instant, answer: &HeartbeatResponse) -> Vec<Effect> {
        let refusal = self.member.refusal(answer.error_code, None);
        let must_join =
            refusal.as_ref().and_then(Error::code) == Some(ErrorCode::RebalanceInProgress);
        if let Some(error) = refusal.filter(|_| !must_join) {
            return self.refused(now, error);
        }
        self.member.answered(now);
        self.member.turn = Turn::At(now + self.member.options.heartbeat_interval);
        if must_join {
            self.prepare(now);
        }
        Vec::new()
    }

    /// The member must join again: at once, or when it has given up what must be before.
    fn prepare(&mut self, now: Instant) {
        if self.assignor == Assignor::Range {
            let holding = &mut self.member.holding;
            holding.revoke(holding.held().iter().cloned().collect::<Vec<_>>());
        }
        match self.stage {
            _ if !self.member.holding.is_revoking() => self.join_at(now),
            Stage::Preparing(_) => {}
            _ => self.stage = Stage::Preparing(now + self.member.options.rebalance_timeout),
        }
    }

    fn join_at(&mut self, at: Instant) {
        self.stage = Stage::Joining;
        if self.member.turn != Turn::InFlight {
            self.member.turn = Turn::At(at);
        }
    }

    /// The coordinator refused; some refusals are part of the protocol.
    fn refused(&mut self, now: Instant, error: Error) -> Vec<Effect> {
        match error.code() {
            Some(ErrorCode::UnknownMemberId) => {
                self.member.id.clear();
                self.start_over(now);
                Vec::new()
            }
            Some(ErrorCode::IllegalGeneration) => {
                self.start_over(now);
                Vec::new()
            }
            Some(ErrorCode::RebalanceInProgress) => {
                let pause = self.member.pause();
                self.join_at(now + pause);
                Vec::new()
            }
            _ => self.failed(now, error),
        }
    }

    /// The group went on without the member.
    fn start_over(&mut self, now: Instant) {
        self.member.holding.lose();
        self.member.epoch = -1;
        self.led = None;
        let pause = self.member.pause();
        self.join_at(now + pause);
    }

    fn failed(&mut self, now: Instant, error: Error) -> Vec<Effect> {
        if self.stage == Stage::Leaving {
            return self.end(Err(error));
        }
        let effects = self.member.failed(now, error);
        if effects.iter().any(|effect| matches!(effect, Effect::End(_))) {
            self.stage = Stage::Ended;
        } else if self.stage == Stage::Syncing {
            // What became of the SyncGroup is unknown; the group takes a member that joins again.
            self.stage = Stage::Joining;
        }
        effects
    }

    fn end(&mut self, outcome: Result<()>) -> Vec<Effect> {
        self.stage = Stage::Ended;
        self.member.end(outcome)
    }

    fn looked(&mut self, now: Instant, found: Result<Vec<Found>>) -> Vec<Effect> {
        let why = std::mem::replace(&mut self.lookup, Lookup::None);
        let found = match (found, why) {
            (Ok(found), _) => found,
            (Err(error), Lookup::Matching) if self.stage == Stage::Matching => {
                let effects = self.failed(now, error);
                self.lookup_at = Some(now + self.member.pause());
                return effects;
            }
            (Err(error), Lookup::Assigning) => return self.failed(now, error),
            (Err(error), _) => {
                tracing::debug!(group = %self.member.group, %error, "metadata of topics");
                self.lookup_at = Some(now + self.member.metadata_age_max());
                return Vec::new();
            }
        };
        match why {
            Lookup::None => {}
            Lookup::Assigning => match self.assign(&found) {
                Ok(()) => self.member.turn = Turn::At(now),
                Err(error) => return self.end(Err(error)),
            },
            Lookup::Matching => self.matched(now, &found),
            Lookup::Growing => {
                self.lookup_at = Some(now + self.member.metadata_age_max());
                let has_grown = |found: &Found| {
                    let assigned = self.led.as_ref().and_then(|it| it.get(&*found.topic.name));
                    assigned.is_some_and(|count| *count != found.partitions)
                };
                if found.iter().any(has_grown) {
                    self.rejoin(now);
                }
            }
        }
        Vec::new()
    }

    fn matched(&mut self, now: Instant, found: &[Found]) {
        let names = found.iter().map(|found| found.topic.name.to_string());
        let mut topics: BTreeSet<String> = match &self.pattern {
            Some(pattern) => names.filter(|name| pattern.is_match(name)).collect(),
            None => BTreeSet::new(),
        };
        topics.extend(self.member.options.topics.iter().cloned());
        self.topics = topics;
        // They may have changed while the member was joining.
        let has_changed = self.topics != self.joined_with;
        self.lookup_at = Some(now + self.member.metadata_age_max());
        match self.stage {
            Stage::Matching => self.join_at(now),
            _ if has_changed => self.rejoin(now),
            _ => {}
        }
    }

    /// The leader begins a rebalance if a topic that it assigned has another number of partitions.
    fn outgrown(&mut self, now: Instant, metadata: &Metadata) -> Vec<Effect> {
        let has_grown = |(topic, count): (&String, &usize)| {
            metadata.partition_count(topic).is_some_and(|known| known != *count)
        };
        if self.led.iter().flatten().any(has_grown) {
            self.rejoin(now);
        }
        Vec::new()
    }

    /// Joins again on its own account.
    fn rejoin(&mut self, now: Instant) {
        if self.stage == Stage::Stable {
            self.prepare(now);
        }
    }

    fn leave(&mut self) -> Vec<Effect> {
        // A static member keeps its partitions for the session timeout, so that a restart causes
        // no rebalance.
        if self.member.id.is_empty() || self.member.options.instance_id.is_some() {
            return self.end(Ok(()));
        }
        self.stage = Stage::Leaving;
        self.member.turn = Turn::InFlight;
        let member_id = self.member.id.clone();
        let request = LeaveGroupRequest {
            group_id: self.member.group.to_string(),
            members: vec![MemberIdentity { member_id, ..Default::default() }],
            ..Default::default()
        };
        vec![Effect::Ask(Ask::Leave(request))]
    }

    fn look(&mut self, now: Instant) -> Option<Effect> {
        if self.lookup != Lookup::None || self.lookup_at.is_none_or(|at| now < at) {
            return None;
        }
        match self.stage {
            Stage::Leaving | Stage::Ended => return None,
            _ => {}
        }
        self.lookup_at = None;
        if self.pattern.is_some() {
            self.lookup = Lookup::Matching;
            return Some(Effect::Look(Look::Every));
        }
        self.lookup = Lookup::Growing;
        let topics = self.led.iter().flatten().map(|(topic, _)| topic.clone());
        Some(Effect::Look(Look::Named(topics.collect())))
    }

    /// The next request, if it is time.
    fn ask(&mut self, now: Instant) -> Option<Effect> {
        if !matches!(self.member.turn, Turn::At(at) if now >= at) {
            return None;
        }
        let ask = match self.stage {
            Stage::Matching | Stage::Leaving | Stage::Ended => return None,
            Stage::Joining => match self.join_request() {
                Ok(request) => Ask::Join(request),
                Err(error) => return self.end(Err(error)).pop(),
            },
            Stage::Syncing => Ask::Sync(self.sync_request()),
            Stage::Stable | Stage::Preparing(_) => Ask::Heartbeat(self.heartbeat()),
        };
        self.member.turn = Turn::InFlight;
        Some(Effect::Ask(ask))
    }

    fn join_request(&mut self) -> Result<JoinGroupRequest> {
        self.joined_with.clone_from(&self.topics);
        let options = &self.member.options;
        let metadata: Bytes = self.assignor.subscription(
            self.topics.iter().cloned().collect(),
            self.member.holding.held().iter(),
            self.member.epoch,
            options.rack.clone(),
        )?;
        Ok(JoinGroupRequest {
            group_id: self.member.group.to_string(),
            session_timeout_ms: millis(options.session_timeout),
            rebalance_timeout_ms: millis(options.rebalance_timeout),
            member_id: self.member.id.clone(),
            group_instance_id: options.instance_id.clone(),
            protocol_type: PROTOCOL_TYPE.to_owned(),
            protocols: vec![JoinGroupRequestProtocol {
                name: self.assignor.name().to_owned(),
                metadata,
                ..Default::default()
            }],
            ..Default::default()
        })
    }

    fn sync_request(&mut self) -> SyncGroupRequest {
        SyncGroupRequest {
            group_id: self.member.group.to_string(),
            generation_id: self.member.epoch,
            member_id: self.member.id.clone(),
            group_instance_id: self.member.options.instance_id.clone(),
            protocol_type: Some(PROTOCOL_TYPE.to_owned()),
            protocol_name: self.joined.protocol_name.clone(),
            assignments: std::mem::take(&mut self.assignments),
            ..Default::default()
        }
    }

    fn heartbeat(&self) -> HeartbeatRequest {
        HeartbeatRequest {
            group_id: self.member.group.to_string(),
            generation_id: self.member.epoch,
            member_id: self.member.id.clone(),
            group_instance_id: self.member.options.instance_id.clone(),
            ..Default::default()
        }
    }
}

/// A name matches as a whole.
fn compile(pattern: &str) -> Result<Regex> {
    // On its own first: `a)(b` must not become valid by what stands around it.
    let compiled =
        Regex::new(pattern).and_then(|_alone| Regex::new(&format!(r"\A(?:{pattern})\z")));
    compiled.map_err(|error| Error::InvalidPattern {
        pattern: pattern.into(),
        reason: Arc::from(error.to_string()),
    })
}
