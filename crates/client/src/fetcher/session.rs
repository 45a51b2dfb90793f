//! Incremental fetch sessions (KIP-227): only what changed since the last fetch is sent.

use std::collections::{HashMap, HashSet};

use super::positions::Wanted;
use crate::metadata::TopicRef;

/// Epoch of a request that opens a session.
const EPOCH_FIRST: i32 = 0;

/// The client's side of one session with one broker.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: i32,
    epoch: i32,
    /// What the broker knows.
    sent: HashMap<Partition, Wanted>,
}

/// What the broker tells partitions apart by.
type Partition = (TopicRef, i32);

fn partition(wanted: &Wanted) -> Partition {
    (wanted.topic.clone(), wanted.partition)
}

/// The session part of one request.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SessionRequest {
    pub(super) id: i32,
    pub(super) epoch: i32,
    pub(super) fetch: Vec<Wanted>,
    pub(super) forget: Vec<Wanted>,
}

impl Session {
    /// What to send so that the broker fetches exactly `wanted`.
    pub(super) fn request(&mut self, wanted: &[Wanted]) -> SessionRequest {
        let full = self.epoch == EPOCH_FIRST;
        if full {
            self.sent.clear();
        }
        let fetch: Vec<Wanted> = wanted
            .iter()
            .filter(|wanted| self.sent.get(&partition(wanted)) != Some(wanted))
            .cloned()
            .collect();
        let mut forget = Vec::new();
        if self.sent.len() + fetch.len() > wanted.len() {
            let known: HashSet<Partition> = wanted.iter().map(partition).collect();
            self.sent.retain(|partition, sent| {
                let keep = known.contains(partition);
                if !keep {
                    forget.push(sent.clone());
                }
                keep
            });
        }
        for wanted in &fetch {
            self.sent.insert(partition(wanted), wanted.clone());
        }
        SessionRequest { id: self.id, epoch: self.epoch, fetch, forget }
    }

    /// Takes note of the session id in an answer; 0 if the broker keeps no session.
    pub(super) fn answered(&mut self, id: i32) {
        if id == 0 {
            self.lost();
        } else {
            self.id = id;
            self.epoch = if self.epoch == i32::MAX { 1 } else { self.epoch + 1 };
        }
    }

    /// The request failed: the next one closes the session, if there is one, and opens another.
    pub(super) fn failed(&mut self) {
        self.epoch = EPOCH_FIRST;
    }

    /// The broker does not know the session.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use moldau_protocol::Uuid;

    use super::*;

    fn wanted(partition: i32, position: i64) -> Wanted {
        let topic = TopicRef { name: Arc::from("t"), id: Uuid::default() };
        Wanted { key: 1, topic, partition, position, leader_epoch: 0, generation: 1 }
    }

    #[test]
    fn only_changes_are_sent_once_a_session_is_open() {
        let mut session = Session::default();
        let first = session.request(&[wanted(1, 0), wanted(2, 0)]);
        assert_eq!((first.id, first.epoch, first.fetch.len()), (0, 0, 2));
        session.answered(77);
        let second = session.request(&[wanted(1, 10), wanted(2, 0)]);
        assert_eq!((second.id, second.epoch), (77, 1));
        assert_eq!(second.fetch, [wanted(1, 10)]);
        session.answered(77);
        let third = session.request(&[wanted(2, 0), wanted(3, 5)]);
        assert_eq!((third.fetch, third.forget), (vec![wanted(3, 5)], vec![wanted(1, 10)]));
        session.answered(77);
        let idle = session.request(&[wanted(2, 0), wanted(3, 5)]);
        assert!(idle.fetch.is_empty() && idle.forget.is_empty());
        assert_eq!(idle.epoch, 3);
    }

    /// A broker drops what is to be forgotten after it has added what is to be fetched, so a
    /// partition named in both would never be read again.
    #[test]
    fn partition_assigned_anew_is_not_forgotten() {
        let mut session = Session::default();
        session.request(&[wanted(1, 0), wanted(2, 0)]);
        session.answered(77);
        let anew = Wanted { key: 9, generation: 9, ..wanted(2, 0) };
        let step = session.request(std::slice::from_ref(&anew));
        assert_eq!((step.fetch, step.forget), (vec![anew], vec![wanted(1, 0)]));
    }

    #[test]
    fn everything_is_sent_again_after_a_failure() {
        let mut session = Session::default();
        session.request(&[wanted(1, 0)]);
        session.answered(77);
        session.failed();
        let again = session.request(&[wanted(1, 0)]);
        assert_eq!((again.id, again.epoch, again.fetch.len()), (77, 0, 1));
        session.lost();
        let again = session.request(&[wanted(1, 0)]);
        assert_eq!((again.id, again.epoch, again.fetch.len()), (0, 0, 1));
    }

    #[test]
    fn broker_without_sessions_is_asked_in_full_each_time() {
        let mut session = Session::default();
        session.request(&[wanted(1, 0)]);
        session.answered(0);
        let again = session.request(&[wanted(1, 0)]);
        assert_eq!((again.id, again.epoch, again.fetch.len()), (0, 0, 1));
    }
}
