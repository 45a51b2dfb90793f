//! Work that is retried: the log says when it begins to fail, and when it succeeds again.
//!
//! An outage of a cluster's service fails all kinds of work. The requests to the service log it
//! once, so what only follows from it is not logged here, except for those who debug.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use moldau_cluster::LogId;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_threads::Mutex;
use tracing::field::display;

use crate::error::Refusal;

/// An error of retried work.
pub(crate) trait Failure: Display {
    /// Whether it follows from an outage of a service, or from a change of controllers. Both are
    /// logged elsewhere.
    fn is_consequence(&self) -> bool;
}

impl Failure for moldau_cluster::Error {
    fn is_consequence(&self) -> bool {
        // A database may refuse one kind of request, and answer all others.
        self.is_outage() && !matches!(self, Self::DatabaseRefused(_))
    }
}

impl Failure for Refusal {
    fn is_consequence(&self) -> bool {
        matches!(
            self.code,
            ErrorCode::CoordinatorNotAvailable
                | ErrorCode::NotController
                | ErrorCode::NotCoordinator
                | ErrorCode::NotLeaderOrFollower
                | ErrorCode::RequestTimedOut
        )
    }
}

/// A log of a cluster, and the name of its topic.
#[derive(Clone, Copy)]
pub(crate) struct NamedLog<'a> {
    pub(crate) topic: &'a str,
    pub(crate) id: LogId,
}

/// The failures of retried work.
#[derive(Default)]
pub(crate) struct Troubles {
    /// Guards the work that fails or has failed.
    known: Mutex<HashMap<Tried, Trouble>>,
}

struct Trouble {
    /// When it began to fail.
    first: Instant,
    /// When it failed last.
    last: Instant,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It fails, and the log says so.
    Logged,
    /// It fails again so soon that the log does not say so.
    Quiet,
    Over,
}

/// The work, and its log if each log can fail by itself.
type Tried = (&'static str, Option<LogId>);

impl Troubles {
    /// Notes the result of an attempt, and returns it.
    ///
    /// # Errors
    /// Those of the attempt.
    pub(crate) fn note<T, E: Failure>(
        &self,
        what: &'static str,
        came: Result<T, E>,
    ) -> Result<T, E> {
        self.note_of(what, None, &came);
        came
    }

    /// Notes the result of an attempt. With a log it can fail for this log alone, which is damage.
    pub(crate) fn note_of<T, E: Failure>(
        &self,
        what: &'static str,
        log: Option<NamedLog<'_>>,
        came: &Result<T, E>,
    ) {
        let now = Instant::now();
        let tried = (what, log.map(|log| log.id));
        let topic = log.map(|log| log.topic);
        let topic_id = log.map(|log| display(Uuid::from_bytes(log.id.topic.into_bytes())));
        let partition = log.map(|log| log.id.partition);
        match came {
            Ok(_) => {
                let all = log.map(|_| (what, None));
                for over in [Some(tried), all].into_iter().flatten() {
                    let Some(lasted) = self.works(&over, now) else { continue };
                    let lasted_ms = lasted.as_millis();
                    tracing::info!(topic, topic_id, partition, lasted_ms, "could {what} again");
                }
            }
            Err(error) if error.is_consequence() || !self.fails(tried, now) => {
                tracing::debug!(topic, topic_id, partition, %error, "failed to {what}");
            }
            Err(error) if log.is_some() => {
                tracing::error!(topic, topic_id, partition, %error, "failed to {what}");
            }
            Err(error) => tracing::warn!(%error, "failed to {what}"),
        }
    }

    /// Whether to log a failure.
    fn fails(&self, tried: Tried, now: Instant) -> bool {
        let mut known = self.known.lock();
        let Some(trouble) = known.get_mut(&tried) else {
            if known.len() >= TROUBLES_MAX {
                known.retain(|_, trouble| trouble.state != State::Over);
            }
            let is_logged = known.len() < TROUBLES_MAX;
            if is_logged {
                known.insert(tried, Trouble { first: now, last: now, state: State::Logged });
            }
            return is_logged;
        };
        let was_calm = now.duration_since(trouble.last) >= CALM;
        if trouble.state == State::Over {
            (trouble.first, trouble.state) = (now, State::Quiet);
        }
        trouble.last = now;
        let is_news = was_calm || now.duration_since(trouble.first) >= CALM;
        let is_logged = is_news && trouble.state == State::Quiet;
        if is_logged {
            trouble.state = State::Logged;
        }
        is_logged
    }

    /// For how long it has failed, if its end is to be logged.
    fn works(&self, tried: &Tried, now: Instant) -> Option<Duration> {
        let mut known = self.known.lock();
        let trouble = known.get_mut(tried)?;
        let before = std::mem::replace(&mut trouble.state, State::Over);
        (before == State::Logged).then(|| now.duration_since(trouble.first))
    }
}

/// A failure that follows another one so soon is logged only if it lasts. Otherwise occasional
/// failures would fill the log.
const CALM: Duration = Duration::from_secs(5);

/// Each log can fail by itself. Failures of more logs than these are not logged.
const TROUBLES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is logged of attempts, one in each second: `x` fails, `.` works.
    fn logged(tries: &str) -> Vec<(usize, Option<u64>)> {
        let (troubles, begin, tried) = (Troubles::default(), Instant::now(), ("read", None));
        let mut logged = Vec::new();
        for (second, came) in tries.chars().enumerate() {
            let now = begin + Duration::from_secs(u64::try_from(second).unwrap());
            if came == 'x' {
                logged.extend(troubles.fails(tried, now).then_some((second, None)));
            } else {
                let over = troubles.works(&tried, now);
                logged.extend(over.map(|lasted| (second, Some(lasted.as_secs()))));
            }
        }
        logged
    }

    #[test]
    fn an_outage_is_logged_once_and_so_is_its_end() {
        assert_eq!(logged("....."), []);
        assert_eq!(logged(".xxxxxxxxx.."), [(1, None), (10, Some(9))]);
        assert_eq!(logged("xx......xx."), [(0, None), (2, Some(2)), (8, None), (10, Some(2))]);
    }

    #[test]
    fn a_failure_soon_after_another_is_logged_only_if_it_lasts() {
        assert_eq!(logged("x.x.x.x.x.x."), [(0, None), (1, Some(1))]);
        assert_eq!(logged("x.xxxxxxx."), [(0, None), (1, Some(1)), (7, None), (9, Some(7))]);
    }

    #[test]
    fn what_follows_from_an_outage_is_not_logged_for_each_kind_of_work() {
        use moldau_cluster::Error;
        let troubles = Troubles::default();
        for away in [Error::SequencerAway("a".into()), Error::StoreAway("a".into())] {
            assert!(troubles.note("read", Err::<(), _>(away)).is_err());
        }
        let lost = Refusal::new(ErrorCode::NotController, "another broker is the controller");
        assert!(troubles.note("write", Err::<(), _>(lost)).is_err());
        assert!(troubles.known.lock().is_empty());
        assert!(troubles.note("read", Err::<(), _>(Error::Refused("a".into()))).is_err());
        assert_eq!(troubles.known.lock().len(), 1);
    }

    #[test]
    fn failures_of_too_many_logs_are_not_logged() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let log = |partition| Some(LogId { topic: uuid::Uuid::nil(), partition });
        let fails = |partition| troubles.fails(("read", log(partition)), now);
        assert_eq!((0..200).filter(|partition| fails(*partition)).count(), TROUBLES_MAX);
        assert!(troubles.works(&("read", log(7)), now).is_some());
        assert!(fails(150) && !fails(151));
    }
}
