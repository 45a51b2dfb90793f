//! Wakes a thread that has something to do now and then.

use std::sync::{Condvar, Mutex};

use crate::sync::lock;

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
        let mut state = lock(&self.state);
        if *state == State::Resting {
            *state = State::Wanted;
            self.changed.notify_one();
        }
    }

    pub(crate) fn stop(&self) {
        *lock(&self.state) = State::Stopped;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *lock(&self.state) == State::Stopped
    }

    /// Waits until there may be something to do; false at the end.
    pub(crate) fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        while *state == State::Resting {
            state = self
                .changed
                .wait(state)
                .expect("a thread that panicked under the lock left it half changed");
        }
        if *state == State::Stopped {
            return false;
        }
        *state = State::Resting;
        true
    }
}
