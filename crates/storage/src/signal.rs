//! Wakes a thread that has something to do now and then.

use std::time::Duration;

use moldau_threads::{Condvar, Mutex};

/// Wanted work of one thread. What is wanted several times before the thread looks is wanted once.
#[derive(Default)]
pub(crate) struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    #[default]
    Resting,
    Wanted,
    Stopped,
}

impl Signal {
    pub(crate) fn want(&self) {
        let mut state = self.state.lock();
        if *state == State::Resting {
            *state = State::Wanted;
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        *self.state.lock() = State::Stopped;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.state.lock() == State::Stopped
    }

    /// Waits for this long, or until the end; whether that has come.
    pub(crate) fn stops_within(&self, time: Duration) -> bool {
        let state = self.state.lock();
        let state = self.changed.wait_timeout_while(state, time, |state| *state != State::Stopped);
        *state == State::Stopped
    }

    /// Waits until there may be something to do; false at the end.
    pub(crate) fn wait(&self) -> bool {
        self.wait_within(Duration::MAX)
    }

    /// As [`Signal::wait`], but for no longer than `time`.
    pub(crate) fn wait_within(&self, time: Duration) -> bool {
        let state = self.state.lock();
        let mut state =
            self.changed.wait_timeout_while(state, time, |state| *state == State::Resting);
        if *state == State::Stopped {
            return false;
        }
        *state = State::Resting;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_when_work_is_wanted_or_its_time_is_over() {
        let signal = Signal::default();
        assert!(signal.wait_within(Duration::ZERO));
        signal.want();
        signal.want();
        assert!(signal.wait());
        assert!(*signal.state.lock() == State::Resting);
        signal.stop();
        assert!(!signal.wait() && !signal.wait_within(Duration::ZERO));
    }
}
