//! When a service that does not answer is asked again.

use std::time::Duration;

use tokio::time::Instant;

use crate::KmsError;

/// Lets calls through until some in a row had no answer; then one at a time, ever less often, until
/// one has.
#[derive(Default)]
pub(super) struct Circuit {
    /// Calls in a row without an answer.
    failures: u32,
    /// Set once there were too many.
    open: Option<Open>,
}

struct Open {
    /// When the next call may go out.
    until: Instant,
    pause: Duration,
    error: KmsError,
}

/// A change of what the service counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It does not answer.
    Down,
    /// It answers again.
    Up,
}

impl Circuit {
    /// Whether a call may go out; otherwise the error of the last that did.
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), KmsError> {
        match &mut self.open {
            Some(open) if now < open.until => Err(open.error.clone()),
            Some(open) => {
                // This call is the one that finds out. Others wait for it as long as it may take.
                open.until = now + CALL_TIME_MAX;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Takes note of how a call ended, and says whether that changed what the service counts as.
    /// `jitter` from 0 to 1 keeps many processes from asking at the same moment.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        error: Option<&KmsError>,
        jitter: f64,
    ) -> Option<Turn> {
        let was_open = self.open.is_some();
        let Some(error @ KmsError::Unavailable(_)) = error else {
            *self = Self::default();
            return was_open.then_some(Turn::Up);
        };
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_MAX {
            let doubled = |open: &Open| (open.pause * 2).min(PAUSE_MAX);
            let pause = self.open.as_ref().map_or(PAUSE_MIN, doubled);
            let until = now + pause.mul_f64(0.75 + jitter / 4.0);
            self.open = Some(Open { until, pause, error: error.clone() });
        }
        (!was_open && self.open.is_some()).then_some(Turn::Down)
    }
}

/// The longest that a call may take. A produce request waits 30 s by default in Kafka's clients;
/// three attempts and the delays between them fit into that.
pub(super) const CALL_TIME_MAX: Duration = Duration::from_secs(5);
/// Calls in a row without an answer after which the service counts as down: the attempts for one
/// key.
const FAILURES_MAX: u32 = 3;
/// The first pause is shorter than what a client waits before it tries again.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// What a service that came back stays unused at most.
const PAUSE_MAX: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> KmsError {
        KmsError::Unavailable("down".into())
    }

    fn fail_thrice(circuit: &mut Circuit, now: Instant) {
        for _ in 0..FAILURES_MAX {
            circuit.observe(now, Some(&down()), 1.0);
        }
    }

    #[test]
    fn calls_pass_until_three_in_a_row_had_no_answer() {
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        for _ in 0..5 {
            circuit.observe(now, Some(&down()), 1.0);
            circuit.observe(now, Some(&down()), 1.0);
            // A refusal is an answer: the service is there.
            circuit.observe(now, Some(&KmsError::Refused("no".into())), 1.0);
        }
        assert_eq!(circuit.admit(now), Ok(()));
        let turns = [(); 3].map(|()| circuit.observe(now, Some(&down()), 1.0));
        assert_eq!(turns, [None, None, Some(Turn::Down)]);
        assert_eq!(circuit.admit(now), Err(down()));
    }

    #[test]
    fn one_call_at_a_time_finds_out_ever_less_often() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        fail_thrice(&mut circuit, now);
        for pause_ms in [500, 1000, 2000, 4000, 5000, 5000] {
            let pause = Duration::from_millis(pause_ms);
            assert_eq!(circuit.admit(now + pause - Duration::from_millis(1)), Err(down()));
            now += pause;
            assert_eq!(circuit.admit(now), Ok(()));
            assert_eq!(circuit.admit(now), Err(down()), "the other call has not come back");
            circuit.observe(now, Some(&down()), 1.0);
        }
        now += PAUSE_MAX;
        assert_eq!(circuit.admit(now), Ok(()));
        assert_eq!(circuit.observe(now, None, 1.0), Some(Turn::Up));
        assert_eq!((circuit.admit(now), circuit.admit(now)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_call_that_never_comes_back_blocks_only_as_long_as_a_call_may_take() {
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        fail_thrice(&mut circuit, now);
        assert_eq!(circuit.admit(now + PAUSE_MIN), Ok(()));
        assert_eq!(circuit.admit(now + PAUSE_MIN + CALL_TIME_MAX), Ok(()));
    }
}
