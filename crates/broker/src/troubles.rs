//! Work that is retried: the log says when it begins to fail, and when it succeeds again.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use moldau_cluster::LogId;
use moldau_threads::Mutex;

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
    pub(crate) fn note<T, E: Display>(
        &self,
        what: &'static str,
        came: Result<T, E>,
    ) -> Result<T, E> {
        self.note_of((what, None), &came);
        came
    }

    /// Notes the result of an attempt.
    pub(crate) fn note_of<T, E: Display>(&self, tried: Tried, came: &Result<T, E>) {
        let (now, (what, log)) = (Instant::now(), tried);
        let shown = log.map(tracing::field::debug);
        match came {
            Ok(_) => {
                let all = log.map(|_| (what, None));
                for over in [Some(tried), all].into_iter().flatten() {
                    let Some(lasted) = self.works(&over, now) else { continue };
                    let lasted_ms = lasted.as_millis();
                    tracing::warn!(log = shown, lasted_ms, "could {what} again");
                }
            }
            Err(error) if self.fails(tried, now) => {
                tracing::warn!(log = shown, %error, "failed to {what}");
            }
            Err(error) => tracing::debug!(log = shown, %error, "failed to {what}"),
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
    fn failures_of_too_many_logs_are_not_logged() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let log = |partition| Some(LogId { topic: uuid::Uuid::nil(), partition });
        let fails = |partition| troubles.fails(("read", log(partition)), now);
        assert_eq!((0..200).filter(|partition| fails(*partition)).count(), TROUBLES_MAX);
        assert!(troubles.works(&("read", log(7)), now).is_some());
        assert!(fails(150) && !fails(151));
    }
}
