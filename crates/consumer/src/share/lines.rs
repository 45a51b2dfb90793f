//! Records that wait for their handler: a line for each route, each with its limit.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use moldau_client::TopicPartition;

use crate::message::Message;
use crate::scheduler::Attempt;

/// A record that is locked for this member.
#[derive(Debug)]
pub(super) struct Held {
    /// The line of its route.
    pub(super) line: usize,
    pub(super) partition: TopicPartition,
    pub(super) message: Message,
    pub(super) attempt: Attempt,
}

/// The lines of an app. They have turns.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<Line>,
    by_topic: HashMap<Arc<str>, usize>,
    queued: usize,
    running: usize,
    /// The line that is looked at first.
    turn: usize,
}

#[derive(Debug)]
struct Line {
    queue: VecDeque<Held>,
    running: usize,
    running_max: usize,
}

impl Lines {
    /// Adds the line of a route's topic, of which at most `running_max` run at a time.
    pub(super) fn add(&mut self, topic: Arc<str>, running_max: usize) {
        self.by_topic.insert(topic, self.lines.len());
        let running_max = running_max.max(1);
        self.lines.push(Line { queue: VecDeque::new(), running: 0, running_max });
    }

    /// The line of a topic.
    pub(super) fn of(&self, topic: &str) -> Option<usize> {
        self.by_topic.get(topic).copied()
    }

    /// Records that wait.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Records that are handled.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn push(&mut self, held: Held) {
        if let Some(line) = self.lines.get_mut(held.line) {
            line.queue.push_back(held);
            self.queued += 1;
        }
    }

    /// The next record that may be handled, which then counts as running.
    pub(super) fn start(&mut self) -> Option<Held> {
        let count = self.lines.len();
        for step in 0..count {
            let index = (self.turn + step) % count;
            let line = self.lines.get_mut(index)?;
            if line.running >= line.running_max {
                continue;
            }
            if let Some(held) = line.queue.pop_front() {
                line.running += 1;
                self.queued -= 1;
                self.running += 1;
                self.turn = (index + 1) % count;
                return Some(held);
            }
        }
        None
    }

    /// A record of this line is handled no longer.
    pub(super) fn end(&mut self, line: usize) {
        if let Some(line) = self.lines.get_mut(line) {
            line.running -= 1;
            self.running -= 1;
        }
    }

    /// Empties all lines.
    pub(super) fn clear(&mut self) {
        self.lines.iter_mut().for_each(|line| line.queue.clear());
        self.queued = 0;
    }
}
