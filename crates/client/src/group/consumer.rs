//! A member in the consumer protocol (KIP-848): ConsumerGroupHeartbeat alone.
//!
//! A heartbeat names what the member holds if that changed, and the answer names the partitions
//! that it shall hold. What is missing there is revoked, and reported as given up once the owner
//! confirms it; only then the coordinator gives it to others. Fields that did not change are null,
//! unless the coordinator may not have received them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::messages::consumer_group_heartbeat_request::TopicPartitions;
use moldau_protocol::messages::consumer_group_heartbeat_response::TopicPartitions as AssignedTopic;
use moldau_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use moldau_protocol::{ErrorCode, Uuid};
use tokio::time::Instant;

use crate::group::machine::{Answer, Ask, Effect, Found, Input, Look, Member, MemberStage, Turn};
use crate::group::options::millis;
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Partitions by the id of their topic.
type Partitions = BTreeSet<(Uuid, i32)>;

/// What the coordinator knows of the member.
#[derive(Debug)]
enum Reported {
    /// Nothing for certain: all fields are sent.
    Nothing,
    /// The subscription, and that these are held.
    Held(Arc<Partitions>),
    /// The same, but it has sent an assignment since. It takes what is held as the answer to that,
    /// also if it is the same: it may have given and taken partitions with answers that were lost.
    Outdated(Arc<Partitions>),
}

/// How far the member is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Member,
    /// It leaves as soon as no heartbeat is in flight.
    ToLeave,
    Leaving,
    Ended,
}

/// Whether what is held may differ from the target, beyond what its owner was told of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    Complete,
    Pending,
}

/// When topic ids are looked up.
#[derive(Clone, Copy, Debug)]
enum Lookup {
    Idle,
    Running,
    At(Instant),
}

#[derive(Debug)]
pub(super) struct ConsumerMember {
    pub(super) member: Member,
    stage: Stage,
    reported: Reported,
    /// What the heartbeat in flight reports.
    reporting: Arc<Partitions>,
    target: Partitions,
    /// Topic names by id, of the target and of what is held.
    names: HashMap<Uuid, Arc<str>>,
    /// Ids of the topics of held partitions: a topic that is made anew keeps its name.
    ids: BTreeMap<TopicPartition, Uuid>,
    /// The same as the coordinator names them. A member may hold thousands, and most heartbeats
    /// change none.
    held: Arc<Partitions>,
    progress: Progress,
    interval: Duration,
    lookup: Lookup,
}

impl ConsumerMember {
    /// `id` is any that no other member has.
    pub(super) fn new(mut member: Member, id: String) -> Self {
        member.id = id;
        let interval = member.options.heartbeat_interval;
        Self {
            member,
            stage: Stage::Member,
            reported: Reported::Nothing,
            reporting: Arc::default(),
            target: Partitions::new(),
            names: HashMap::new(),
            ids: BTreeMap::new(),
            held: Arc::default(),
            progress: Progress::Complete,
            interval,
            lookup: Lookup::Idle,
        }
    }

    pub(super) fn stage(&self) -> MemberStage {
        match self.stage {
            Stage::Member if self.member.epoch == 0 => MemberStage::Joining,
            Stage::Member if self.member.holding.is_revoking() => MemberStage::Revoking,
            Stage::Member => MemberStage::Stable,
            Stage::ToLeave | Stage::Leaving | Stage::Ended => MemberStage::Ended,
        }
    }

    pub(super) fn heartbeat_interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn due(&self) -> Option<Instant> {
        let ask = match self.member.turn {
            Turn::At(at) => Some(at),
            Turn::InFlight | Turn::Waiting => None,
        };
        let look = match self.lookup {
            Lookup::At(at) => Some(at),
            Lookup::Idle | Lookup::Running => None,
        };
        ask.into_iter().chain(look).min()
    }

    pub(super) fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        let mut effects = match input {
            Input::Due | Input::Metadata(_) => Vec::new(),
            Input::Answered(Answer::Beat(answer)) => {
                self.member.heard();
                self.answered(now, answer)
            }
            Input::Answered(_) => Vec::new(),
            Input::Failed(error) => self.failed(now, error),
            Input::Looked(found) => {
                self.looked(now, found);
                Vec::new()
            }
            Input::GivenUp(losses, partitions) => {
                self.member.holding.give_up(losses, &partitions);
                self.progress = Progress::Pending;
                Vec::new()
            }
            Input::Leave => {
                self.stage = Stage::ToLeave;
                Vec::new()
            }
        };
        if self.stage == Stage::Member && self.progress == Progress::Pending {
            effects.extend(self.reconcile(now));
        }
        effects.extend(self.ask(now));
        effects
    }

    fn answered(&mut self, now: Instant, answer: ConsumerGroupHeartbeatResponse) -> Vec<Effect> {
        let refusal = self.member.refusal(answer.error_code, answer.error_message.as_deref());
        if self.stage == Stage::Leaving {
            let gone = |error: &Error| error.code() == Some(ErrorCode::UnknownMemberId);
            return self.end(refusal.filter(|error| !gone(error)).map_or(Ok(()), Err));
        }
        let Some(error) = refusal else {
            self.follow(now, answer);
            return Vec::new();
        };
        match error.code() {
            Some(ErrorCode::UnknownMemberId | ErrorCode::FencedMemberEpoch) => {
                self.fenced(now);
                Vec::new()
            }
            // The group was deleted after the member's session had ended.
            Some(ErrorCode::GroupIdNotFound) if self.member.epoch > 0 => {
                self.fenced(now);
                Vec::new()
            }
            _ => self.failed(now, error),
        }
    }

    fn follow(&mut self, now: Instant, answer: ConsumerGroupHeartbeatResponse) {
        self.member.answered(now);
        self.member.epoch = answer.member_epoch;
        if let Some(id) = answer.member_id.filter(|id| !id.is_empty()) {
            self.member.id = id;
        }
        if let Some(interval) =
            u64::try_from(answer.heartbeat_interval_ms).ok().filter(|ms| *ms > 0)
        {
            self.interval = Duration::from_millis(interval);
        }
        self.reported = Reported::Held(std::mem::take(&mut self.reporting));
        if let Some(assignment) = answer.assignment {
            let topics = assignment.topic_partitions.into_iter();
            let of_topic = |topic: AssignedTopic| {
                let id = topic.topic_id;
                topic.partitions.into_iter().map(move |partition| (id, partition))
            };
            self.target = topics.flat_map(of_topic).collect();
            self.progress = Progress::Pending;
            if let Reported::Held(held) = std::mem::replace(&mut self.reported, Reported::Nothing) {
                self.reported = Reported::Outdated(held);
            }
        }
        self.member.turn = Turn::At(now + self.interval);
    }

    /// The group went on without the member, which joins again with the same id.
    fn fenced(&mut self, now: Instant) {
        self.member.holding.lose();
        self.member.epoch = 0;
        self.reported = Reported::Nothing;
        self.target.clear();
        self.ids.clear();
        self.held = Arc::default();
        self.progress = Progress::Complete;
        self.member.turn = Turn::At(now + self.member.pause());
    }

    fn failed(&mut self, now: Instant, error: Error) -> Vec<Effect> {
        if self.stage == Stage::Leaving {
            return self.end(Err(error));
        }
        self.reported = Reported::Nothing;
        let effects = self.member.failed(now, error);
        if effects.iter().any(|effect| matches!(effect, Effect::End(_))) {
            self.stage = Stage::Ended;
        }
        effects
    }

    fn end(&mut self, outcome: Result<()>) -> Vec<Effect> {
        self.stage = Stage::Ended;
        self.member.end(outcome)
    }

    fn looked(&mut self, now: Instant, found: Result<Vec<Found>>) {
        match found {
            Ok(found) => {
                self.names.extend(found.into_iter().map(|it| (it.topic.id, it.topic.name)));
            }
            Err(error) => tracing::debug!(group = %self.member.group, %error, "names of topics"),
        }
        // A topic that was deleted meanwhile leaves the target with a later answer.
        self.lookup = match self.unnamed().is_empty() {
            true => Lookup::Idle,
            false => Lookup::At(now + self.member.metadata_age_max().min(LOOKUP_PAUSE)),
        };
    }

    fn unnamed(&self) -> Vec<Uuid> {
        let ids: BTreeSet<Uuid> = self.target.iter().map(|(id, _)| *id).collect();
        ids.into_iter().filter(|id| !self.names.contains_key(id)).collect()
    }

    /// From what is held to the target.
    fn reconcile(&mut self, now: Instant) -> Vec<Effect> {
        let held = self.member.holding.held();
        self.ids.retain(|partition, _| held.contains(partition));
        let mut wanted = BTreeMap::new();
        for (id, partition) in &self.target {
            if let Some(name) = self.names.get(id) {
                wanted.insert(TopicPartition { topic: name.clone(), partition: *partition }, *id);
            }
        }
        let stale = self.ids.iter().filter(|(partition, id)| wanted.get(*partition) != Some(*id));
        let stale: Vec<TopicPartition> = stale.map(|(partition, _)| partition.clone()).collect();
        self.member.holding.revoke(stale);
        let held = self.member.holding.held();
        wanted.retain(|partition, _| !held.contains(partition));
        self.member.holding.assign(wanted.keys().cloned());
        self.ids.extend(wanted);
        let held = self.ids.iter().map(|(partition, id)| (*id, partition.partition));
        self.held = Arc::new(held.collect());
        let is_due = match self.lookup {
            Lookup::Idle => true,
            Lookup::Running => false,
            Lookup::At(at) => now >= at,
        };
        let unnamed = self.unnamed();
        if unnamed.is_empty() {
            self.progress = Progress::Complete;
        }
        if !is_due || unnamed.is_empty() {
            return Vec::new();
        }
        self.lookup = Lookup::Running;
        vec![Effect::Look(Look::Ids(unnamed))]
    }

    /// The next request, if it is time.
    fn ask(&mut self, now: Instant) -> Option<Effect> {
        if self.member.turn == Turn::InFlight {
            return None;
        }
        match self.stage {
            Stage::ToLeave if self.member.epoch == 0 => return self.end(Ok(())).pop(),
            Stage::ToLeave => {
                self.stage = Stage::Leaving;
                self.member.turn = Turn::InFlight;
                return Some(Effect::Ask(Ask::Beat(self.leave_request())));
            }
            Stage::Leaving | Stage::Ended => return None,
            Stage::Member => {}
        }
        let held = Arc::clone(&self.held);
        let is_news = match &self.reported {
            Reported::Nothing => false,
            Reported::Held(reported) | Reported::Outdated(reported) => *reported != held,
        };
        let is_due = matches!(self.member.turn, Turn::At(at) if now >= at);
        if !is_due && !is_news {
            return None;
        }
        self.member.turn = Turn::InFlight;
        let request = self.heartbeat(&held);
        self.reporting = held;
        Some(Effect::Ask(Ask::Beat(request)))
    }

    fn heartbeat(&self, held: &Arc<Partitions>) -> ConsumerGroupHeartbeatRequest {
        let options = &self.member.options;
        let mut request = self.request(self.member.epoch);
        if matches!(&self.reported, Reported::Held(reported) if reported == held) {
            return request;
        }
        let mut topics: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for (id, partition) in held.iter() {
            topics.entry(*id).or_default().push(*partition);
        }
        let of =
            |(topic_id, partitions)| TopicPartitions { topic_id, partitions, ..Default::default() };
        request.topic_partitions = Some(topics.into_iter().map(of).collect());
        if matches!(self.reported, Reported::Nothing) {
            request.rack_id.clone_from(&options.rack);
            request.rebalance_timeout_ms = millis(options.rebalance_timeout);
            request.subscribed_topic_names = Some(options.topics.clone());
            request.subscribed_topic_regex.clone_from(&options.pattern);
            request.server_assignor.clone_from(&options.assignor);
        }
        request
    }

    fn leave_request(&self) -> ConsumerGroupHeartbeatRequest {
        let is_static = self.member.options.instance_id.is_some();
        self.request(if is_static { LEAVE_FOR_A_WHILE } else { LEAVE })
    }

    fn request(&self, member_epoch: i32) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.member.group.to_string(),
            member_id: self.member.id.clone(),
            member_epoch,
            instance_id: self.member.options.instance_id.clone(),
            ..Default::default()
        }
    }
}

/// Pause before ids without a name are looked up again.
const LOOKUP_PAUSE: Duration = Duration::from_secs(1);

/// Epoch with which a member leaves.
const LEAVE: i32 = -1;

/// Epoch with which a static member leaves, which keeps its partitions for the session timeout.
const LEAVE_FOR_A_WHILE: i32 = -2;
