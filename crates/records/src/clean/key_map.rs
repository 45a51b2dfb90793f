//! Which record of a key is its last: a hash table of fixed size, from key to offset.
//!
//! ```text
//! slot: hash of the key, 128 bit | offset + 1, 64 bit; 0 is an empty slot
//! ```
//! The table holds hashes in place of keys, as Kafka's `SkimpyOffsetMap` does, so a record whose
//! key collides with that of a later one would be lost. Among 2^32 keys, more than 100 GB of slots,
//! the odds that any two collide are 2^-65. The seed keeps producers from preparing collisions;
//! one who could would only hide a record that overwriting its key hides as well.
//!
//! Probing is linear, and entries that follow one another are in the order of their homes (Robin
//! Hood hashing): a search ends at the first entry that is closer to its home than the key would
//! be, so looking up keys that are absent, the usual case in a log cleaned before, stays short at
//! full load.

use twox_hash::XxHash3_128;

/// Bytes that a key takes.
const SLOT_LEN: usize = size_of::<Slot>();
/// Part of the slots that may be taken: Kafka's `log.cleaner.io.buffer.load.factor`.
const LOAD_NUMERATOR: usize = 9;
const LOAD_DENOMINATOR: usize = 10;

/// High and low half of the hash, then the offset + 1. Zeros are an empty slot, so a large table
/// costs no memory until it is used.
type Slot = [u64; 3];

/// High and low half.
pub(super) type KeyHash = [u64; 2];

/// The table holds as many keys as its size allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the key map is full")]
pub struct Full;

/// The last offset of each key in a range of a log: from the first dirty offset up to
/// [`Self::end_offset`].
pub struct KeyMap {
    slots: Vec<Slot>,
    /// Slots in use, from the front; those behind are empty.
    slots_used: usize,
    len: usize,
    seed: u64,
    from_offset: i64,
    end_offset: i64,
}

impl KeyMap {
    /// A map in one allocation of at most `bytes`, 24 for a slot. The seed should be random.
    /// Below 48 bytes it can hold no key, so that no cleaning makes progress.
    #[must_use]
    pub fn new(bytes: usize, seed: u64) -> Self {
        let slots = vec![[0; 3]; bytes / SLOT_LEN];
        let slots_used = slots.len();
        Self { slots, slots_used, len: 0, seed, from_offset: 0, end_offset: 0 }
    }

    /// Forgets all keys, for a log whose dirty records lie from `from_offset` to below
    /// `until_offset`. Only as many slots are used as that range can need, so a short log neither
    /// clears nor searches a large table.
    pub fn start(&mut self, from_offset: i64, until_offset: i64) {
        if let Some(used) = self.slots.get_mut(..self.slots_used) {
            used.fill([0; 3]);
        }
        let keys_max = until_offset.saturating_sub(from_offset).max(0).unsigned_abs();
        let keys_max = usize::try_from(keys_max).unwrap_or(usize::MAX);
        let needed = (keys_max / LOAD_NUMERATOR).saturating_mul(LOAD_DENOMINATOR);
        self.slots_used = self.slots.len().min(needed.saturating_add(2 * LOAD_DENOMINATOR));
        self.len = 0;
        self.from_offset = from_offset;
        self.end_offset = from_offset;
    }

    /// First offset of the range: records before it are not to be inserted.
    #[must_use]
    pub fn from_offset(&self) -> i64 {
        self.from_offset
    }

    /// Offset that follows the range, which is the first dirty offset once the log is cleaned.
    /// Records from here on are kept, with any key.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Extends the range, over records without keys and over offsets without records. An offset
    /// within the range changes nothing.
    pub fn advance_to(&mut self, end_offset: i64) {
        self.end_offset = self.end_offset.max(end_offset);
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no key was inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of keys at which the map is full, for the range given to [`Self::start`].
    #[must_use]
    pub fn capacity(&self) -> usize {
        // Dividing first leaves a slot empty at any size, which ends every search.
        self.slots_used / LOAD_DENOMINATOR * LOAD_NUMERATOR
            + (self.slots_used % LOAD_DENOMINATOR).saturating_sub(1)
    }

    /// Notes that `key` is at `offset`, and extends the range to it. The largest offset of a key
    /// stays. Offsets are never negative.
    ///
    /// # Errors
    /// [`Full`] when the key is not there and no slot is left; nothing is changed then.
    pub fn insert(&mut self, key: &[u8], offset: i64) -> Result<(), Full> {
        self.insert_hash(self.hash(key), offset)
    }

    /// As [`Self::insert`]. Hashing the keys of a batch before the first search lets the processor
    /// fetch the slots of several at once, which a record to be parsed in between prevents.
    #[inline]
    pub(super) fn insert_hash(&mut self, hash: KeyHash, offset: i64) -> Result<(), Full> {
        assert!(offset >= 0, "a log has no negative offsets");
        let mut entry: Slot = [hash[0], hash[1], offset.unsigned_abs() + 1];
        let (mut at, found) = self.find(hash);
        if found {
            let slot = &mut self.slots[at];
            slot[2] = slot[2].max(entry[2]);
        } else if self.len >= self.capacity() {
            return Err(Full);
        } else {
            // Those that follow are no farther from their homes: each moves on by a slot.
            while self.slots[at][2] != 0 {
                std::mem::swap(&mut self.slots[at], &mut entry);
                at = self.next(at);
            }
            self.slots[at] = entry;
            self.len += 1;
        }
        self.advance_to(offset.saturating_add(1));
        Ok(())
    }

    /// The largest offset of `key` in the range, `None` where the range does not hold it.
    #[must_use]
    pub fn latest(&self, key: &[u8]) -> Option<i64> {
        self.latest_hash(self.hash(key))
    }

    /// As [`Self::latest`].
    #[inline]
    pub(super) fn latest_hash(&self, hash: KeyHash) -> Option<i64> {
        let (at, found) = self.find(hash);
        let offset = self.slots.get(at).filter(|_| found)?[2] - 1;
        i64::try_from(offset).ok()
    }

    /// The slot of a hash and whether it holds it; else the slot where it belongs.
    #[inline]
    fn find(&self, hash: KeyHash) -> (usize, bool) {
        let mut at = self.home(hash[0]);
        let mut distance = 0;
        while let Some(slot) = self.slots.get(at) {
            if slot[..2] == hash && slot[2] != 0 {
                return (at, true);
            }
            if slot[2] == 0 || self.distance(at) < distance {
                break;
            }
            at = self.next(at);
            distance += 1;
        }
        (at, false)
    }

    #[inline]
    pub(super) fn hash(&self, key: &[u8]) -> KeyHash {
        let hash = XxHash3_128::oneshot_with_seed(self.seed, key);
        let half = |bits: u128| u64::try_from(bits).unwrap_or(u64::MAX);
        [half(hash >> u64::BITS), half(hash & u128::from(u64::MAX))]
    }

    /// The hash as a fraction of the slots: a multiplication where a remainder takes a division.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        let at = (u128::from(hash) * self.slots_used as u128) >> u64::BITS;
        usize::try_from(at).unwrap_or(0)
    }

    /// How far the entry of a slot is from its home.
    #[inline]
    fn distance(&self, at: usize) -> usize {
        let home = self.home(self.slots[at][0]);
        if at >= home { at - home } else { at + self.slots_used - home }
    }

    #[inline]
    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots_used { 0 } else { at + 1 }
    }
}

impl std::fmt::Debug for KeyMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyMap")
            .field("len", &self.len)
            .field("capacity", &self.capacity())
            .field("from_offset", &self.from_offset)
            .field("end_offset", &self.end_offset)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn filled(slots: usize, keys: usize) -> KeyMap {
        let mut map = KeyMap::new(slots * SLOT_LEN, 1);
        for key in 0..keys {
            map.insert(&key.to_be_bytes(), i64::try_from(key).unwrap()).unwrap();
        }
        map
    }

    #[test]
    fn a_map_answers_as_a_hash_map_up_to_its_capacity() {
        let mut random = fastrand::Rng::with_seed(3);
        for slots in [2, 3, 7, 10, 11, 64, 1000] {
            let mut map = KeyMap::new(slots * SLOT_LEN, random.u64(..));
            let mut model = HashMap::new();
            assert_eq!(map.capacity(), slots * 9 / 10);
            for offset in 0..4000 {
                let key = random.usize(..2 * slots).to_be_bytes();
                let known = model.contains_key(&key);
                let inserted = map.insert(&key, offset);
                assert_eq!(inserted.is_ok(), known || model.len() < map.capacity(), "{slots}");
                if inserted.is_ok() {
                    model.insert(key, offset);
                }
                assert_eq!(map.len(), model.len());
            }
            for key in 0..4 * slots {
                let key = key.to_be_bytes();
                assert_eq!(map.latest(&key), model.get(&key).copied(), "{slots}");
            }
        }
    }

    #[test]
    fn no_key_of_a_full_map_is_far_from_its_home() {
        let map = filled(100_000, 90_000);
        let distances: usize = (0..map.slots.len())
            .filter(|&at| map.slots[at][2] != 0)
            .map(|at| map.distance(at))
            .sum();
        // Linear probing at this load takes 4.5 steps on average in theory.
        assert!(distances < 6 * map.len(), "{distances}");
    }

    #[test]
    fn a_full_map_takes_later_offsets_of_its_keys_and_no_other_key() {
        let mut map = filled(10, 9);
        assert_eq!(map.insert(b"other", 20), Err(Full));
        assert_eq!((map.latest(b"other"), map.end_offset(), map.len()), (None, 9, 9));
        map.insert(&3usize.to_be_bytes(), 20).unwrap();
        assert_eq!((map.latest(&3usize.to_be_bytes()), map.end_offset()), (Some(20), 21));
    }

    #[test]
    fn the_largest_offset_of_a_key_stays() {
        let mut map = KeyMap::new(240, 1);
        for offset in [5, 3, 0, i64::MAX, 7] {
            map.insert(b"", offset).unwrap();
        }
        assert_eq!((map.latest(b""), map.end_offset()), (Some(i64::MAX), i64::MAX));
    }

    #[test]
    fn a_map_without_room_is_full_at_once_and_finds_nothing() {
        for bytes in [0, 23, 24, 47] {
            let mut map = KeyMap::new(bytes, 1);
            assert_eq!((map.insert(b"a", 0), map.latest(b"a")), (Err(Full), None));
        }
    }

    #[test]
    fn a_started_map_is_empty_and_has_room_for_its_range() {
        let mut map = filled(100_000, 90_000);
        for (from, until) in [(7, 7), (7, 8), (100, 1000), (0, i64::MAX), (i64::MIN, 5), (9, 3)] {
            map.start(from, until);
            assert_eq!((map.len(), map.from_offset(), map.end_offset()), (0, from, from));
            assert!((0..90_000usize).all(|key| map.latest(&key.to_be_bytes()).is_none()));
            assert!(map.slots.iter().all(|slot| *slot == [0; 3]), "{from} {until}");
            let room = until.saturating_sub(from).clamp(0, 90_000);
            for key in 0..room {
                map.insert(&key.to_be_bytes(), key).unwrap();
            }
            assert!(map.capacity() < usize::try_from(room).unwrap() + 20);
        }
    }
}
