//! When a session has been silent for too long.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// Silence is measured in this many steps.
const STEPS: u32 = 8;

/// An unfinished frame that gains fewer bytes than this in a step counts as silence, so that a
/// client cannot hold a session by sending a byte at a time.
const STEP_BYTES_MIN: u64 = 64 * 1024;

/// How a client keeps a session for nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Silence {
    /// It does nothing.
    Idle,
    /// It takes nothing of its answers.
    SlowReader,
}

/// Watches for clients that keep a session for nothing. A timer per session runs a few times within
/// the shorter of both times; traffic only adds to counters.
pub(crate) struct Watch {
    step: Duration,
    timer: Pin<Box<Sleep>>,
    idle_steps_max: u32,
    slow_steps_max: u32,
    idle_steps: u32,
    slow_steps: u32,
    /// Bytes from and to the client since the last step.
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

impl Watch {
    pub(crate) fn new(idle_timeout: Duration, slow_reader_timeout: Duration) -> Self {
        let step = idle_timeout.min(slow_reader_timeout) / STEPS;
        // A time of 0 would let the timer run all the time.
        let step = step.max(Duration::from_millis(1));
        let steps = |time: Duration| {
            let steps = time.as_nanos().div_ceil(step.as_nanos());
            u32::try_from(steps).unwrap_or(u32::MAX).max(1)
        };
        Self {
            step,
            timer: Box::pin(sleep(step)),
            idle_steps_max: steps(idle_timeout),
            slow_steps_max: steps(slow_reader_timeout),
            idle_steps: 0,
            slow_steps: 0,
            received: 0,
            sent: 0,
        }
    }

    /// Whether a step has gone by; the task is woken when it has.
    pub(crate) fn poll_step(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(()) = self.timer.as_mut().poll(cx) else { return false };
        self.timer.as_mut().reset(Instant::now() + self.step);
        true
    }

    /// Counts a step, in which the client was within a request, waited for an answer, or was owed
    /// bytes that it did not take.
    pub(crate) fn step(&mut self, within_frame: bool, waits: bool, owed: bool) -> Option<Silence> {
        let received = std::mem::take(&mut self.received);
        let sent = std::mem::take(&mut self.sent);
        let enough = if within_frame { STEP_BYTES_MIN } else { 1 };
        let is_idle = received < enough && sent == 0 && (within_frame || !waits) && !owed;
        self.idle_steps = if is_idle { self.idle_steps + 1 } else { 0 };
        self.slow_steps = if owed && sent == 0 { self.slow_steps + 1 } else { 0 };
        if self.slow_steps >= self.slow_steps_max {
            return Some(Silence::SlowReader);
        }
        (self.idle_steps >= self.idle_steps_max).then_some(Silence::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch() -> Watch {
        Watch::new(Duration::from_secs(8), Duration::from_secs(4))
    }

    /// Steps until the session ends, in half seconds.
    fn end(
        watch: &mut Watch,
        mut each: impl FnMut(&mut Watch) -> Option<Silence>,
    ) -> Option<usize> {
        (1..100).find(|_| each(watch).is_some())
    }

    #[tokio::test]
    async fn silence_ends_a_session_and_any_traffic_keeps_it() {
        assert_eq!(end(&mut watch(), |watch| watch.step(false, false, false)), Some(16));
        let talking = |watch: &mut Watch| {
            watch.received += 1;
            watch.step(false, false, false)
        };
        assert_eq!(end(&mut watch(), talking), None);
        assert_eq!(end(&mut watch(), |watch| watch.step(false, true, false)), None);
    }

    #[tokio::test]
    async fn a_frame_that_comes_by_bytes_does_not_keep_a_session() {
        let dripping = |bytes| {
            move |watch: &mut Watch| {
                watch.received += bytes;
                watch.step(true, false, false)
            }
        };
        assert_eq!(end(&mut watch(), dripping(100)), Some(16));
        assert_eq!(end(&mut watch(), dripping(STEP_BYTES_MIN)), None);
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_left_and_a_slow_one_is_not() {
        assert_eq!(end(&mut watch(), |watch| watch.step(false, true, true)), Some(8));
        let slow = |watch: &mut Watch| {
            watch.sent += 1;
            watch.step(false, true, true)
        };
        assert_eq!(end(&mut watch(), slow), None);
    }
}
