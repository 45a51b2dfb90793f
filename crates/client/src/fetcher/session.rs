//! Incremental fetch sessions (KIP-227): only what changed since the last fetch is sent.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use moldau_protocol::Uuid;

use super::positions::{Changes, Key, Wanted};

/// Epoch of a request that opens a session.
const EPOCH_FIRST: i32 = 0;

/// The client's side of one session with one broker: what is to be fetched, and how much of that
/// the broker does not know yet.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: i32,
    epoch: i32,
    wanted: HashMap<Key, Wanted>,
    by_name: HashMap<(Arc<str>, i32), Key>,
    by_id: HashMap<(Uuid, i32), Key>,
    /// What the broker does not know yet.
    unsent: HashSet<Key>,
    /// What it is to fetch no longer.
    forget: Vec<Wanted>,
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
    /// Takes in what has changed since the last request.
    pub(super) fn change(&mut self, changes: Changes) {
        for key in changes.leave {
            self.leave(key);
        }
        for wanted in changes.read {
            let known = self.wanted.get(&wanted.key);
            if known == Some(&wanted) {
                continue;
            }
            if known.is_none_or(|known| known.topic.id != wanted.topic.id) {
                self.leave(wanted.key);
                let name = wanted.topic.name.clone();
                self.by_name.insert((name, wanted.partition), wanted.key);
                self.by_id.insert((wanted.topic.id, wanted.partition), wanted.key);
            }
            self.unsent.insert(wanted.key);
            self.wanted.insert(wanted.key, wanted);
        }
    }

    fn leave(&mut self, key: Key) {
        let Some(wanted) = self.wanted.remove(&key) else { return };
        self.unsent.remove(&key);
        self.by_name.remove(&(wanted.topic.name.clone(), wanted.partition));
        self.by_id.remove(&(wanted.topic.id, wanted.partition));
        self.forget.push(wanted);
    }

    /// Whether nothing is to be fetched.
    pub(super) fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// What to send so that the broker fetches exactly what is wanted.
    pub(super) fn request(&mut self) -> SessionRequest {
        let unsent = std::mem::take(&mut self.unsent);
        let mut forget = std::mem::take(&mut self.forget);
        // A broker drops what is to be forgotten after it has added what is to be fetched.
        let mut is_another_topic = false;
        forget.retain(|wanted| {
            let name = (wanted.topic.name.clone(), wanted.partition);
            let again = self.by_name.get(&name).and_then(|key| self.wanted.get(key));
            is_another_topic |= again.is_some_and(|again| again.topic.id != wanted.topic.id);
            again.is_none()
        });
        if is_another_topic {
            self.failed();
        }
        let fetch = if self.epoch == EPOCH_FIRST {
            forget.clear();
            self.wanted.values().cloned().collect()
        } else {
            unsent.iter().filter_map(|key| self.wanted.get(key)).cloned().collect()
        };
        SessionRequest { id: self.id, epoch: self.epoch, fetch, forget }
    }

    /// The wanted partition that a part of an answer belongs to: by name up to version 12 of Fetch,
    /// by id from 13 on (KIP-516).
    pub(super) fn find(&self, name: &Arc<str>, id: Uuid, partition: i32) -> Option<&Wanted> {
        let key = if name.is_empty() {
            self.by_id.get(&(id, partition))
        } else {
            self.by_name.get(&(Arc::clone(name), partition))
        };
        self.wanted.get(key?)
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
        (self.id, self.epoch) = (0, EPOCH_FIRST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::TopicRef;

    fn wanted(partition: i32, position: i64) -> Wanted {
        let topic = TopicRef { name: Arc::from("t"), id: Uuid::from_bytes([1; 16]) };
        let key = u64::try_from(partition).unwrap();
        Wanted { key, topic, partition, position, leader_epoch: 0, generation: 1 }
    }

    fn read(wanted: &[Wanted]) -> Changes {
        Changes { read: wanted.to_vec(), leave: Vec::new() }
    }

    fn open(partitions: &[Wanted]) -> Session {
        let mut session = Session::default();
        session.change(read(partitions));
        session.request();
        session.answered(77);
        session
    }

    #[test]
    fn only_changes_are_sent_once_a_session_is_open() {
        let mut session = Session::default();
        session.change(read(&[wanted(1, 0), wanted(2, 0)]));
        let first = session.request();
        assert_eq!((first.id, first.epoch, first.fetch.len()), (0, 0, 2));
        session.answered(77);
        session.change(read(&[wanted(1, 10), wanted(2, 0)]));
        let second = session.request();
        assert_eq!((second.id, second.epoch), (77, 1));
        assert_eq!(second.fetch, [wanted(1, 10)]);
        session.answered(77);
        session.change(Changes { read: vec![wanted(3, 5)], leave: vec![1] });
        let third = session.request();
        assert_eq!((third.fetch, third.forget), (vec![wanted(3, 5)], vec![wanted(1, 10)]));
        session.answered(77);
        let idle = session.request();
        assert!(idle.fetch.is_empty() && idle.forget.is_empty());
        assert_eq!(idle.epoch, 3);
    }

    /// A broker drops what is to be forgotten after it has added what is to be fetched, so a
    /// partition named in both would never be read again.
    #[test]
    fn partition_assigned_anew_is_not_forgotten() {
        let mut session = open(&[wanted(1, 0), wanted(2, 0)]);
        let anew = Wanted { key: 9, generation: 9, ..wanted(2, 0) };
        session.change(Changes { read: vec![anew.clone()], leave: vec![1, 2] });
        let step = session.request();
        assert_eq!((step.fetch, step.forget), (vec![anew.clone()], vec![wanted(1, 0)]));
        assert_eq!(session.find(&"t".into(), Uuid::default(), 2), Some(&anew));
        assert_eq!(session.find(&"".into(), anew.topic.id, 2), Some(&anew));
        assert_eq!(session.find(&"t".into(), Uuid::default(), 1), None);
    }

    /// Brokers older than 3.1 know topics by name: they would forget the new one.
    #[test]
    fn topic_created_anew_is_read_in_a_session_of_its_own() {
        let mut session = open(&[wanted(1, 0)]);
        let mut anew = wanted(1, 0);
        anew.topic.id = Uuid::from_bytes([2; 16]);
        session.change(read(std::slice::from_ref(&anew)));
        let step = session.request();
        assert_eq!((step.id, step.epoch, step.fetch), (77, 0, vec![anew.clone()]));
        assert!(step.forget.is_empty());
        assert_eq!(session.find(&"".into(), anew.topic.id, 1), Some(&anew));
        assert_eq!(session.find(&"".into(), wanted(1, 0).topic.id, 1), None);
    }

    #[test]
    fn everything_is_sent_again_after_a_failure() {
        let mut session = open(&[wanted(1, 0)]);
        session.failed();
        let again = session.request();
        assert_eq!((again.id, again.epoch, again.fetch.len()), (77, 0, 1));
        session.lost();
        let again = session.request();
        assert_eq!((again.id, again.epoch, again.fetch.len()), (0, 0, 1));
    }

    #[test]
    fn broker_without_sessions_is_asked_in_full_each_time() {
        let mut session = Session::default();
        session.change(read(&[wanted(1, 0)]));
        session.request();
        session.answered(0);
        let again = session.request();
        assert_eq!((again.id, again.epoch, again.fetch.len()), (0, 0, 1));
    }
}
