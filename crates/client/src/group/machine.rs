//! What the state machines of both protocols share: what they are told, what they ask for, and
//! the part of a member that does not depend on the protocol. No I/O.

use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::messages::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, HeartbeatRequest,
    HeartbeatResponse, JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeaveGroupResponse,
    ShareGroupHeartbeatRequest, SyncGroupRequest, SyncGroupResponse,
};
use moldau_protocol::{ErrorCode, Uuid};
use tokio::time::Instant;

use crate::group::holding::Holding;
use crate::group::options::MembershipOptions;
use crate::metadata::{Metadata, TopicRef};
use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// How far a member is in taking part in its group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemberStage {
    /// It is not part of the group yet, or the group rebalances.
    Joining,
    /// It has the partitions that the group gives it.
    Stable,
    /// The group waits until it confirms a revocation.
    Revoking,
    /// It has left, or failed for good.
    Ended,
}

/// A request to the coordinator.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Beat(ConsumerGroupHeartbeatRequest),
    ShareBeat(ShareGroupHeartbeatRequest),
    Join(JoinGroupRequest),
    Sync(SyncGroupRequest),
    Heartbeat(HeartbeatRequest),
    Leave(LeaveGroupRequest),
}

/// What the coordinator answers.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Beat(ConsumerGroupHeartbeatResponse),
    Join(JoinGroupResponse),
    Sync(SyncGroupResponse),
    Heartbeat(HeartbeatResponse),
    Leave(LeaveGroupResponse),
}

/// Topics to be looked up in metadata.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Look {
    Every,
    Named(Vec<String>),
    Ids(Vec<Uuid>),
}

/// A topic that exists, and its number of partitions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Found {
    pub(super) topic: TopicRef,
    pub(super) partitions: usize,
}

/// What happens to a member.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The time that the machine asked for has come.
    Due,
    Answered(Answer),
    /// There is no answer to the last [`Ask`].
    Failed(Error),
    Looked(Result<Vec<Found>>),
    /// The owner gives up these partitions, told after this number of losses.
    GivenUp(u64, Vec<TopicPartition>),
    Metadata(Arc<Metadata>),
    Leave,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// Sends this. A request that is in flight is dropped with its connection.
    Ask(Ask),
    /// Looks this up, instead of what is being looked up.
    Look(Look),
    /// Finds the coordinator anew before the next request.
    ForgetCoordinator,
    /// The membership is over: it left, or this is why.
    End(Result<()>),
}

/// Pauses between attempts, and how long the first answer may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) backoff: Duration,
    pub(super) backoff_max: Duration,
    pub(super) start: Duration,
    pub(super) metadata_age_max: Duration,
}

/// What the next request depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// It is sent at this time.
    At(Instant),
    /// A request is in flight.
    InFlight,
    /// Something else must happen first.
    Waiting,
}

/// The part of a member that both protocols have.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) group: Arc<str>,
    pub(super) options: MembershipOptions,
    pub(super) holding: Holding,
    pub(super) id: String,
    /// Member epoch, or generation.
    pub(super) epoch: i32,
    pub(super) last_heartbeat: Option<Instant>,
    pub(super) turn: Turn,
    /// Why the coordinator no longer accepts a member that it had accepted.
    pub(super) refused: Option<Error>,
    patience: Patience,
    /// Attempts in a row that failed.
    failures: u32,
    /// Nobody answered yet, and the first failure after this is final.
    start_until: Option<Instant>,
    random: fastrand::Rng,
}

impl Member {
    pub(super) fn new(
        group: &str,
        options: MembershipOptions,
        patience: Patience,
        now: Instant,
        seed: u64,
    ) -> Self {
        Self {
            group: group.into(),
            options,
            holding: Holding::default(),
            id: String::new(),
            epoch: 0,
            last_heartbeat: None,
            turn: Turn::At(now),
            refused: None,
            patience,
            failures: 0,
            start_until: Some(now + patience.start),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// What an error names as the party that sent something wrong.
    pub(super) fn coordinator(&self) -> Arc<str> {
        format!("the coordinator of group {}", self.group).into()
    }

    /// The coordinator answered without an error.
    pub(super) fn answered(&mut self, now: Instant) {
        self.failures = 0;
        self.refused = None;
        self.last_heartbeat = Some(now);
    }

    /// The coordinator answered, whatever it said.
    pub(super) fn heard(&mut self) {
        self.start_until = None;
    }

    /// When to try again: after a pause that grows with each failure in a row.
    pub(super) fn pause(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures.min(FAILURES_COUNTED_MAX)).unwrap_or(1);
        self.failures = self.failures.saturating_add(1);
        let pause = self.patience.backoff.saturating_mul(factor).min(self.patience.backoff_max);
        pause.mul_f64(0.8 + 0.4 * self.random.f64())
    }

    pub(super) fn metadata_age_max(&self) -> Duration {
        self.patience.metadata_age_max.max(self.patience.backoff)
    }

    /// After an error that is not the protocol's own: tries again, or ends.
    pub(super) fn failed(&mut self, now: Instant, error: Error) -> Vec<Effect> {
        let is_late = self.start_until.is_some_and(|until| now >= until);
        // A right that it had may be granted again. Without it the coordinator gives its
        // partitions to others after the session timeout, and takes no commit meanwhile.
        let is_revoked = error.is_unauthorized() && self.last_heartbeat.is_some();
        if !(error.is_retriable() || is_revoked) || is_late {
            return self.end(Err(error));
        }
        if is_revoked {
            tracing::warn!(group = %self.group, %error, "the member is refused; it tries again");
            self.refused = Some(error.clone());
        }
        self.turn = Turn::At(now + self.pause());
        match error.code() {
            // It is the right one, and reads its state.
            Some(ErrorCode::CoordinatorLoadInProgress) => Vec::new(),
            _ => vec![Effect::ForgetCoordinator],
        }
    }

    pub(super) fn end(&mut self, outcome: Result<()>) -> Vec<Effect> {
        self.turn = Turn::Waiting;
        if outcome.is_err() {
            self.holding.lose();
        }
        vec![Effect::End(outcome)]
    }

    /// The coordinator's code as an error.
    pub(super) fn refusal(&self, code: i16, message: Option<&str>) -> Option<Error> {
        Error::check(code, &format!("membership of group {}", self.group), message).err()
    }
}

/// Doublings of the pause after which it has reached any sensible maximum.
const FAILURES_COUNTED_MAX: u32 = 16;
