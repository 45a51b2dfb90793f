//! What is tried again and again: the log tells when it begins to fail, and when that is over.

use std::collections::HashMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use moldau_cluster::LogId;
use moldau_threads::Mutex;

/// What fails, by what was tried.
#[derive(Default)]
pub(crate) struct Troubles {
    /// Guards what fails or has failed.
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
    /// It fails, as the log tells.
    Told,
    /// It fails so soon again that the log does not tell it.
    Untold,
    Over,
}

/// What was tried, and with which log if its errors are its own.
type Tried = (&'static str, Option<LogId>);

impl Troubles {
    /// Passes on what came of a try.
    ///
    /// # Errors
    /// Those of the try.
    pub(crate) fn note<T, E: Display>(
        &self,
        what: &'static str,
        came: Result<T, E>,
    ) -> Result<T, E> {
        self.note_of((what, None), &came);
        came
    }

    /// Takes note of what came of a try.
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

    /// Whether the log is to tell of a failure.
    fn fails(&self, tried: Tried, now: Instant) -> bool {
        let mut known = self.known.lock();
        let Some(trouble) = known.get_mut(&tried) else {
            if known.len() >= TROUBLES_MAX {
                known.retain(|_, trouble| trouble.state != State::Over);
            }
            let is_told = known.len() < TROUBLES_MAX;
            if is_told {
                known.insert(tried, Trouble { first: now, last: now, state: State::Told });
            }
            return is_told;
        };
        let was_calm = now.duration_since(trouble.last) >= CALM;
        if trouble.state == State::Over {
            (trouble.first, trouble.state) = (now, State::Untold);
        }
        trouble.last = now;
        let is_news = was_calm || now.duration_since(trouble.first) >= CALM;
        let is_told = is_news && trouble.state == State::Untold;
        if is_told {
            trouble.state = State::Told;
        }
        is_told
    }

    /// For how long it has failed, if the log is to tell that this is over.
    fn works(&self, tried: &Tried, now: Instant) -> Option<Duration> {
        let mut known = self.known.lock();
        let trouble = known.get_mut(tried)?;
        let before = std::mem::replace(&mut trouble.state, State::Over);
        (before == State::Told).then(|| now.duration_since(trouble.first))
    }
}

/// What fails again so soon is told only if it lasts. Else what fails now and then would fill the
/// log.
const CALM: Duration = Duration::from_secs(5);

/// Logs may fail one by one. More are not told.
const TROUBLES_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is told of tries in this second: `x` fails, `.` works.
    fn told(tries: &str) -> Vec<(usize, Option<u64>)> {
        let (troubles, begin, tried) = (Troubles::default(), Instant::now(), ("read", None));
        let mut told = Vec::new();
        for (second, came) in tries.chars().enumerate() {
            let now = begin + Duration::from_secs(u64::try_from(second).unwrap());
            if came == 'x' {
                told.extend(troubles.fails(tried, now).then_some((second, None)));
            } else {
                let over = troubles.works(&tried, now);
                told.extend(over.map(|lasted| (second, Some(lasted.as_secs()))));
            }
        }
        told
    }

    #[test]
    fn what_fails_again_and_again_is_told_once_and_so_is_its_end() {
        assert_eq!(told("....."), []);
        assert_eq!(told(".xxxxxxxxx.."), [(1, None), (10, Some(9))]);
        assert_eq!(told("xx......xx."), [(0, None), (2, Some(2)), (8, None), (10, Some(2))]);
    }

    #[test]
    fn what_fails_now_and_then_is_told_again_only_if_it_lasts() {
        assert_eq!(told("x.x.x.x.x.x."), [(0, None), (1, Some(1))]);
        assert_eq!(told("x.xxxxxxx."), [(0, None), (1, Some(1)), (7, None), (9, Some(7))]);
    }

    #[test]
    fn no_more_is_told_than_has_room() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let log = |partition| Some(LogId { topic: uuid::Uuid::nil(), partition });
        let fails = |partition| troubles.fails(("read", log(partition)), now);
        assert_eq!((0..200).filter(|partition| fails(*partition)).count(), TROUBLES_MAX);
        assert!(troubles.works(&("read", log(7)), now).is_some());
        assert!(fails(150) && !fails(151));
    }
}
