//! State of upkeep between pieces of work.

use std::time::{Duration, Instant};

/// Memory, and what was seen of the journal.
#[derive(Default)]
pub(crate) struct Workshop {
    pub(crate) memory: Memory,
    pub(crate) speed: Speed,
    pub(crate) turns: Turns,
}

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    RemoveDead,
    Sort,
    Merge,
    RemoveSpare,
}

/// Whose turn it is, so that nothing waits for ever behind what always finds something to do.
#[derive(Default)]
pub(crate) struct Turns {
    /// Files sorted since the last merge.
    sorted: u32,
    /// Dead segments removed since something was sorted or merged.
    removed: u32,
}

impl Turns {
    /// What is done next, or what comes behind it if there is none of that. What is dead goes
    /// first, all of it unless sorting is urgent.
    pub(crate) fn order(&self, is_urgent: bool) -> [Work; 4] {
        let is_merges_turn = self.sorted >= SORTED_PER_MERGE;
        let [first, then] =
            if is_merges_turn { [Work::Merge, Work::Sort] } else { [Work::Sort, Work::Merge] };
        if is_urgent && self.removed >= REMOVED_IN_A_ROW {
            [first, then, Work::RemoveDead, Work::RemoveSpare]
        } else {
            [Work::RemoveDead, first, then, Work::RemoveSpare]
        }
    }

    pub(crate) fn note(&mut self, done: Work) {
        match done {
            Work::Sort => (self.sorted, self.removed) = (self.sorted + 1, 0),
            Work::Merge => (self.sorted, self.removed) = (0, 0),
            Work::RemoveDead => self.removed += 1,
            Work::RemoveSpare => {}
        }
    }
}

/// Memory for windows. It is dear to get, most of all where a hypervisor takes what is free: a
/// processor is busy for a tenth of a second, beside producers that have it to themselves
/// otherwise. So it is kept from one file to the next.
#[derive(Default)]
pub(crate) struct Memory {
    bytes: Vec<u8>,
    used: Option<Instant>,
}

impl Memory {
    /// At least `bytes` bytes. Pages that are never written take no memory.
    pub(crate) fn window(&mut self, bytes: usize, memory: usize) -> &mut [u8] {
        if self.bytes.len() < bytes {
            self.bytes = Vec::new();
            self.bytes = vec![0; bytes.max(memory)];
        }
        &mut self.bytes
    }

    pub(crate) fn note_use(&mut self, now: Instant) {
        self.used = Some(now);
    }

    /// Gives back what was not used for a while.
    pub(crate) fn rest(&mut self, now: Instant) {
        if self.used.is_some_and(|used| now.saturating_duration_since(used) >= KEPT_FOR) {
            *self = Memory::default();
        }
    }
}

/// How fast the journal grows.
#[derive(Default)]
pub(crate) struct Speed {
    since: Option<(Instant, u64)>,
    bytes_per_second: u64,
}

impl Speed {
    /// Bytes a second lately, where the journal ends at `position` now.
    pub(crate) fn look(&mut self, now: Instant, position: u64) -> u64 {
        let (since, from) = *self.since.get_or_insert((now, position));
        let elapsed = now.saturating_duration_since(since);
        if elapsed >= SPEED_OVER {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
            self.bytes_per_second = (position - from).saturating_mul(1000) / millis;
            self.since = Some((now, position));
        }
        self.bytes_per_second
    }
}

/// Four segments of a level become one of the next, so that one merge for three sorted files keeps
/// up; segments that are mostly dead come on top.
const SORTED_PER_MERGE: u32 = 2;
/// As many as a merge leaves behind. Together they take about as long as sorting a file.
const REMOVED_IN_A_ROW: u32 = 4;
/// A journal at full speed fills a file in less than a second.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// The time over which the journal's speed is taken.
const SPEED_OVER: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_have_their_turn_between_sorted_files() {
        let mut turns = Turns::default();
        let mut first = |is_merge_due: bool| {
            let is_due = |work: &Work| match work {
                Work::Sort => true,
                Work::Merge => is_merge_due,
                Work::RemoveDead | Work::RemoveSpare => false,
            };
            let done = turns.order(false).into_iter().find(is_due).unwrap();
            turns.note(done);
            done
        };
        let done: Vec<_> = (0..6).map(|_| first(true)).collect();
        assert_eq!(done[..3], [Work::Sort, Work::Sort, Work::Merge]);
        assert_eq!(done[..3], done[3..]);
        // It comes as soon as there is one.
        assert!((0..5).all(|_| first(false) == Work::Sort));
        assert_eq!(first(true), Work::Merge);
    }

    #[test]
    fn the_speed_is_that_of_the_last_while() {
        let begun = Instant::now();
        let mut speed = Speed::default();
        assert_eq!(speed.look(begun, 1000), 0);
        assert_eq!(speed.look(begun + SPEED_OVER / 2, 2000), 0);
        assert_eq!(speed.look(begun + SPEED_OVER, 3000), 4000);
        assert_eq!(speed.look(begun + SPEED_OVER + SPEED_OVER / 2, 9000), 4000);
        assert_eq!(speed.look(begun + SPEED_OVER * 3, 3000), 0);
    }

    #[test]
    fn memory_is_kept_while_it_is_used() {
        let begun = Instant::now();
        let mut memory = Memory::default();
        memory.window(10, 100)[9] = 1;
        memory.note_use(begun);
        memory.rest(begun + KEPT_FOR / 2);
        assert_eq!((memory.window(100, 100).len(), memory.window(10, 100)[9]), (100, 1));
        memory.rest(begun + KEPT_FOR);
        assert_eq!(memory.window(10, 10), [0; 10]);
    }
}
