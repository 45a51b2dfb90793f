//! Which messages wait, and which of them are held in memory.
//!
//! Of each message, id and place are in memory: about 150 bytes. The messages themselves are held
//! up to a number of bytes, those that are due first; others are read again in time.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher;

/// Two hashes of a message's id with secret keys: equal for different ids as good as never.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Id(u64, u64);

/// When a message is due, in ms since 1970, and its offset.
pub(super) type Place = (u64, i64);

/// A message that is held in memory.
#[derive(Debug)]
struct Near<P> {
    id: Id,
    payload: P,
    bytes: usize,
}

/// The messages of a partition that wait or are being sent.
#[derive(Debug)]
pub(super) struct Pending<P> {
    hashers: [RandomState; 2],
    by_id: HashMap<Id, Place>,
    near: BTreeMap<Place, Near<P>>,
    near_bytes: usize,
    bytes_max: usize,
    far: BTreeMap<Place, Id>,
    /// Messages that are far and have to be written again.
    rewrites: BTreeSet<Place>,
}

impl<P> Pending<P> {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            hashers: [RandomState::new(), RandomState::new()],
            by_id: HashMap::new(),
            near: BTreeMap::new(),
            near_bytes: 0,
            bytes_max,
            far: BTreeMap::new(),
            rewrites: BTreeSet::new(),
        }
    }

    /// Messages that wait or are being sent.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    fn id(&self, key: &[u8]) -> Id {
        let [one, other] = &self.hashers;
        Id(one.hash_one(key), other.hash_one(key))
    }

    /// Adds a message, which replaces one of the same id.
    pub(super) fn insert(&mut self, key: &[u8], place: Place, payload: P, bytes: usize) {
        let id = self.id(key);
        self.cancel(key);
        self.by_id.insert(id, place);
        if self.far.first_key_value().is_none_or(|(first, _)| place < *first) {
            self.hold(place, Near { id, payload, bytes });
        } else {
            self.far.insert(place, id);
        }
    }

    /// Holds a message in memory, and lets go of later ones if they are too many.
    fn hold(&mut self, place: Place, near: Near<P>) {
        self.near_bytes += near.bytes;
        self.near.insert(place, near);
        while self.near_bytes > self.bytes_max && self.near.len() > 1 {
            let Some((place, near)) = self.near.pop_last() else { return };
            self.near_bytes -= near.bytes;
            self.far.insert(place, near.id);
        }
    }

    /// Drops the message of a key. One that is being sent is no longer known.
    pub(super) fn cancel(&mut self, key: &[u8]) {
        if let Some(place) = self.by_id.remove(&self.id(key)) {
            self.drop_at(place);
        }
    }

    fn drop_at(&mut self, place: Place) {
        if let Some(near) = self.near.remove(&place) {
            self.near_bytes -= near.bytes;
        }
        self.far.remove(&place);
        self.rewrites.remove(&place);
    }

    /// It is written that the message at `offset` of this key was sent. If a later message has
    /// replaced that one, compaction would remove it: it has to be written again. It is returned
    /// if it is held, and loaded otherwise.
    pub(super) fn settle(&mut self, key: &[u8], offset: i64) -> Option<&P> {
        let place = *self.by_id.get(&self.id(key))?;
        if place.1 == offset {
            self.cancel(key);
            return None;
        }
        if let Some(near) = self.near.get(&place) {
            return Some(&near.payload);
        }
        if self.far.contains_key(&place) {
            self.rewrites.insert(place);
        }
        None
    }

    /// When the first message is due that is held, in ms.
    pub(super) fn next_due(&self) -> Option<u64> {
        self.near.first_key_value().map(|((due, _), _)| *due)
    }

    /// Takes a message that is due, to be sent.
    pub(super) fn take_due(&mut self, now_ms: u64) -> Option<(Id, Place, P)> {
        let entry = self.near.first_entry().filter(|entry| entry.key().0 <= now_ms)?;
        let (place, near) = entry.remove_entry();
        self.near_bytes -= near.bytes;
        Some((near.id, place, near.payload))
    }

    /// A message that was taken has been sent.
    pub(super) fn sent(&mut self, id: Id, place: Place) {
        if self.by_id.get(&id) == Some(&place) {
            self.by_id.remove(&id);
        }
    }

    /// A message that was taken could not be sent, and is due again at `at_ms`, unless it was
    /// cancelled or replaced.
    pub(super) fn again(&mut self, id: Id, place: Place, at_ms: u64, payload: P, bytes: usize) {
        if self.by_id.get(&id) == Some(&place) {
            let place = (at_ms, place.1);
            self.by_id.insert(id, place);
            self.hold(place, Near { id, payload, bytes });
        }
    }

    /// Messages to load, by offset: the first that are due of those not held, as many as there is
    /// room for. Empty while more than half of the room is in use.
    pub(super) fn to_load(&self) -> BTreeMap<i64, Place> {
        let mut wanted: BTreeMap<i64, Place> = self.rewrites.iter().map(|it| (it.1, *it)).collect();
        if self.near_bytes <= self.bytes_max / 2 {
            let room = self.bytes_max.saturating_sub(self.near_bytes);
            let bytes = match self.near.len() {
                0 => BYTES_GUESSED,
                held => (self.near_bytes / held).max(1),
            };
            let count = (room / bytes).clamp(1, LOADED_MAX);
            wanted.extend(self.far.keys().take(count).map(|place| (place.1, *place)));
        }
        wanted
    }

    /// A message was loaded. Returns it if it has to be written again.
    pub(super) fn loaded(&mut self, place: Place, payload: P, bytes: usize) -> Option<&P> {
        let id = self.far.remove(&place)?;
        let is_rewritten = self.rewrites.remove(&place);
        self.hold(place, Near { id, payload, bytes });
        self.near.get(&place).filter(|_| is_rewritten).map(|near| &near.payload)
    }

    /// A message is no longer in the topic.
    pub(super) fn missing(&mut self, place: Place) -> bool {
        self.rewrites.remove(&place);
        let Some(id) = self.far.remove(&place) else { return false };
        self.sent(id, place);
        true
    }
}

/// Size of a message in memory, as long as none is known.
const BYTES_GUESSED: usize = 2_000;

/// Messages that are loaded at a time.
const LOADED_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 100;

    /// Room for four messages.
    fn pending() -> Pending<i64> {
        Pending::new(4 * BYTES)
    }

    fn insert(pending: &mut Pending<i64>, key: &str, due: u64, offset: i64) {
        pending.insert(key.as_bytes(), (due, offset), offset, BYTES);
    }

    fn take(pending: &mut Pending<i64>, now: u64) -> Option<i64> {
        let (id, place, payload) = pending.take_due(now)?;
        pending.sent(id, place);
        Some(payload)
    }

    fn load(pending: &mut Pending<i64>) {
        for (offset, place) in pending.to_load() {
            pending.loaded(place, offset, BYTES);
        }
    }

    #[test]
    fn messages_come_when_due_in_order_of_time() {
        let mut pending = pending();
        insert(&mut pending, "a", 30, 0);
        insert(&mut pending, "b", 10, 1);
        insert(&mut pending, "c", 20, 2);
        assert_eq!((pending.next_due(), take(&mut pending, 9)), (Some(10), None));
        let taken: Vec<_> = std::iter::from_fn(|| take(&mut pending, 20)).collect();
        assert_eq!((taken, pending.len()), (vec![1, 2], 1));
    }

    #[test]
    fn a_message_is_cancelled_or_replaced_by_its_id() {
        let mut pending = pending();
        insert(&mut pending, "a", 10, 0);
        insert(&mut pending, "b", 10, 1);
        insert(&mut pending, "a", 20, 2);
        pending.cancel(b"b");
        assert_eq!(take(&mut pending, 10), None);
        assert_eq!((take(&mut pending, 20), pending.len()), (Some(2), 0));
    }

    #[test]
    fn those_that_are_due_first_are_held_and_others_loaded_in_time() {
        let mut pending = pending();
        for offset in 0..20_u32 {
            insert(&mut pending, &offset.to_string(), 1_000 - u64::from(offset), offset.into());
        }
        assert_eq!((pending.near.len(), pending.far.len(), pending.near_bytes), (4, 16, 400));
        assert_eq!(pending.to_load(), BTreeMap::new(), "there is no room");
        let mut taken = Vec::new();
        while pending.len() > 0 {
            taken.extend(take(&mut pending, 1_000));
            assert!(pending.near_bytes <= 400);
            load(&mut pending);
        }
        assert_eq!(taken, (0..20).rev().collect::<Vec<_>>());
    }

    #[test]
    fn a_message_larger_than_all_room_is_held_alone() {
        let mut pending = pending();
        pending.insert(b"large", (10, 0), 0, 1_000);
        insert(&mut pending, "small", 5, 1);
        assert_eq!((take(&mut pending, 10), take(&mut pending, 10)), (Some(1), None));
        load(&mut pending);
        assert_eq!(take(&mut pending, 10), Some(0));
    }

    #[test]
    fn a_message_that_could_not_be_sent_is_due_again_unless_replaced() {
        let mut pending = pending();
        insert(&mut pending, "a", 10, 0);
        let (id, place, payload) = pending.take_due(10).expect("it is due");
        pending.again(id, place, 40, payload, BYTES);
        assert_eq!((pending.next_due(), pending.len()), (Some(40), 1));
        let (id, place, payload) = pending.take_due(40).expect("it is due");
        insert(&mut pending, "a", 50, 1);
        pending.again(id, place, 60, payload, BYTES);
        assert_eq!((take(&mut pending, 60), take(&mut pending, 60)), (Some(1), None));
    }

    #[test]
    fn a_message_written_before_its_predecessor_was_settled_is_written_again() {
        let mut pending = pending();
        insert(&mut pending, "a", 10, 0);
        assert_eq!(pending.settle(b"a", 0), None);
        assert_eq!(pending.len(), 0);
        insert(&mut pending, "a", 20, 1);
        assert_eq!(pending.settle(b"a", 0), Some(&1), "it waits at another offset");
        for offset in 2..8 {
            insert(&mut pending, &offset.to_string(), 5, offset);
        }
        assert_eq!(pending.settle(b"a", 0), None, "it is not held");
        let wanted = pending.to_load();
        assert_eq!(wanted.get(&1), Some(&(20, 1)));
    }

    #[test]
    fn a_message_that_is_gone_from_the_topic_is_forgotten() {
        let mut pending = pending();
        for offset in 0..8 {
            insert(&mut pending, &offset.to_string(), 5, offset);
        }
        let last = (5, 7);
        assert!(pending.missing(last));
        assert!(!pending.missing(last));
        assert_eq!(pending.len(), 7);
    }
}
