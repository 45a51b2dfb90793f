//! The course of a run in slots of equal length.

use super::nanos;
use crate::run::Slot;
use crate::workload::Workload;
use moldau_measure::histograms::Durations;

/// Most slots of a course, so that it stays readable and small whatever the window.
const SLOTS: u64 = 30;

/// Shortest slot, ms: below it a percentile of a slot has too few samples.
const SLOT_MS_MIN: u64 = 200;

/// Most slots, for a reading that takes longer than the plan's window.
const SLOTS_MAX: u64 = 1_000;

/// Parts of a slot in which acknowledgements are looked for, each a bit.
const PARTS: u32 = u64::BITS;

/// Samples of one slot.
#[derive(Clone, Debug, Default)]
pub struct SlotSamples {
    /// Records acknowledged in it.
    pub produced_records: u64,
    /// The `PARTS` of the slot in which anything was acknowledged, the earliest the lowest bit.
    pub acknowledged_in: u64,
    /// Records delivered in it.
    pub consumed_records: u64,
    /// Intended time to acknowledgement, ns.
    pub response: Option<Box<Durations>>,
    /// Intended time to delivery, ns.
    pub end_to_end: Option<Box<Durations>>,
}

/// Length of a slot, ms: all of a window are alike where half of the most or more can be, and the
/// last is a little shorter where not.
pub fn slot_ms(workload: &Workload) -> u64 {
    let window_ms = workload.window_ms;
    let most = (window_ms / SLOT_MS_MIN).clamp(1, SLOTS);
    let even = (most.div_ceil(2)..=most).rev().find(|slots| window_ms.is_multiple_of(*slots));
    window_ms.div_ceil(even.unwrap_or(most))
}

/// The slots of a window, found by time.
#[derive(Debug)]
pub struct Slots {
    from_ns: u64,
    slot_ns: u64,
    samples: Vec<SlotSamples>,
}

impl Slots {
    /// Empty slots over the window that begins at `from_ns`.
    pub fn new(workload: &Workload, from_ns: u64) -> Self {
        Self { from_ns, slot_ns: slot_ms(workload) * 1_000_000, samples: Vec::new() }
    }

    /// The slot that holds `at_ns`; `None` before the window and beyond the last possible slot.
    pub fn at(&mut self, at_ns: u64) -> Option<&mut SlotSamples> {
        let index = at_ns.checked_sub(self.from_ns)? / self.slot_ns;
        if index >= SLOTS_MAX {
            return None;
        }
        let index = usize::try_from(index).ok()?;
        if index >= self.samples.len() {
            self.samples.resize_with(index + 1, SlotSamples::default);
        }
        self.samples.get_mut(index)
    }

    /// Counts records that were acknowledged together.
    pub fn acknowledged(&mut self, at_ns: u64, records: u64) {
        let (from_ns, slot_ns) = (self.from_ns, self.slot_ns);
        let Some(slot) = self.at(at_ns) else { return };
        let within_ns = (at_ns - from_ns) % slot_ns;
        slot.produced_records += records;
        slot.acknowledged_in |= 1 << (within_ns * u64::from(PARTS) / slot_ns);
    }

    /// Every slot as it stands in a result.
    pub fn summaries(&self) -> Vec<Slot> {
        self.samples.iter().map(SlotSamples::summary).collect()
    }

    /// The samples of all slots, which are empty afterwards.
    pub fn take_samples(&mut self) -> Vec<SlotSamples> {
        std::mem::take(&mut self.samples)
    }
}

impl SlotSamples {
    /// Its response times.
    pub fn response(&mut self) -> &mut Durations {
        self.response.get_or_insert_default()
    }

    /// Its end-to-end times.
    pub fn end_to_end(&mut self) -> &mut Durations {
        self.end_to_end.get_or_insert_default()
    }

    /// The slot as it stands in a result.
    pub fn summary(&self) -> Slot {
        let response = self.response.as_ref().map(|samples| samples.summary()).unwrap_or_default();
        let end_to_end =
            self.end_to_end.as_ref().map(|samples| samples.summary()).unwrap_or_default();
        Slot {
            produced_records: self.produced_records,
            consumed_records: self.consumed_records,
            silence_ns: 0,
            response_p50_ns: response.p50_ns,
            response_p99_ns: response.p99_ns,
            response_max_ns: response.max_ns,
            end_to_end_p99_ns: end_to_end.p99_ns,
        }
    }
}

/// The longest time, in ns, up to a moment of each slot of a window in which nothing was
/// acknowledged, in whole fractions of slots.
pub fn silences_ns(slots: &[SlotSamples], workload: &Workload) -> Vec<u64> {
    let slot_ns = slot_ms(workload) * 1_000_000;
    let parts = nanos(workload.window()) * u64::from(PARTS) / slot_ns;
    let heard =
        slots.iter().flat_map(|slot| (0..PARTS).map(|part| slot.acknowledged_in >> part & 1 == 1));
    let mut silent = 0;
    let silences: Vec<u64> = heard
        .chain(std::iter::repeat(false))
        .take(usize::try_from(parts).unwrap_or(0))
        .map(|is_heard| {
            silent = if is_heard { 0 } else { silent + 1 };
            silent
        })
        .collect();
    let longest = |of_slot: &[u64]| of_slot.iter().max().copied().unwrap_or(0);
    silences
        .chunks(PARTS as usize)
        .map(|of_slot| longest(of_slot) * slot_ns / u64::from(PARTS))
        .collect()
}

/// Adds the slots of another thread, one by one.
pub fn merge(into: &mut Vec<SlotSamples>, from: Vec<SlotSamples>) {
    if into.len() < from.len() {
        into.resize_with(from.len(), SlotSamples::default);
    }
    for (mine, theirs) in into.iter_mut().zip(from) {
        mine.produced_records += theirs.produced_records;
        mine.acknowledged_in |= theirs.acknowledged_in;
        mine.consumed_records += theirs.consumed_records;
        if let Some(samples) = theirs.response {
            mine.response().merge(&samples);
        }
        if let Some(samples) = theirs.end_to_end {
            mine.end_to_end().merge(&samples);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a window of 2 s in slots of 200 ms, that begins at 1 s.
    fn silences_ms(acknowledged_ms: impl Iterator<Item = u64>) -> Vec<u64> {
        let workload = Workload { window_ms: 2_000, ..Workload::of_tests() };
        let mut threads = [(); 2].map(|()| Slots::new(&workload, 1_000_000_000));
        for (number, at_ms) in acknowledged_ms.enumerate() {
            threads[number % 2].acknowledged(at_ms * 1_000_000, 7);
        }
        let [mut one, mut other] = threads;
        let mut all = one.take_samples();
        merge(&mut all, other.take_samples());
        silences_ns(&all, &workload).iter().map(|silence_ns| silence_ns / 1_000_000).collect()
    }

    #[test]
    fn the_slots_of_a_window_are_alike() {
        let of_window = |window_ms| slot_ms(&Workload { window_ms, ..Workload::of_tests() });
        assert_eq!([10_000, 8_000, 4_000, 1_300].map(of_window), [400, 320, 200, 260]);
        assert_eq!([50, 200, 399].map(of_window), [50, 200, 399]);
        // A prime has none.
        assert_eq!(of_window(10_007), 334);
    }

    #[test]
    fn a_silence_is_that_of_all_threads_and_goes_on_across_slots() {
        assert_eq!(silences_ms((1_000..3_000).step_by(3)), [0; 10]);
        let stopped = (1_000..3_000).step_by(2).filter(|at| !(1_350..1_650).contains(at));
        let found = silences_ms(stopped);
        assert_eq!((found.len(), found[0], &found[4..]), (10, 0, &[0; 6][..]), "{found:?}");
        assert!((46..=50).contains(&found[1]) && (246..=250).contains(&found[2]), "{found:?}");
        assert!((294..=300).contains(&found[3]), "{found:?}");
        // Up to the window's end, and from its start.
        let found = silences_ms((1_000..2_500).step_by(2));
        assert!((497..=500).contains(&found[9]), "{found:?}");
        let found = silences_ms((1_600..3_000).step_by(2));
        assert!((597..=600).contains(&found[2]) && found[4..] == [0; 6], "{found:?}");
        assert_eq!(silences_ms(std::iter::empty())[9], 2_000);
    }
}
