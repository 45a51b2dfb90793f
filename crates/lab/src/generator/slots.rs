//! The course of a run in slots of equal length.

use crate::histograms::Durations;
use crate::run::Slot;
use crate::workload::Workload;

/// Slots of a course, so that it stays readable and small whatever the window.
const SLOTS: u64 = 30;

/// Shortest slot, ms: below it a percentile of a slot has too few samples.
const SLOT_MS_MIN: u64 = 200;

/// Most slots, for a reading that takes longer than the plan's window.
const SLOTS_MAX: u64 = 1_000;

/// Samples of one slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotSamples {
    pub(crate) produced_records: u64,
    pub(crate) consumed_records: u64,
    pub(crate) response: Option<Box<Durations>>,
    pub(crate) end_to_end: Option<Box<Durations>>,
}

/// Length of a slot, ms.
pub(crate) fn slot_ms(workload: &Workload) -> u64 {
    (workload.window_ms / SLOTS).max(SLOT_MS_MIN)
}

/// The slots of a window, found by time.
#[derive(Debug)]
pub(crate) struct Slots {
    from_ns: u64,
    slot_ns: u64,
    samples: Vec<SlotSamples>,
}

impl Slots {
    pub(crate) fn new(workload: &Workload, from_ns: u64) -> Self {
        Self { from_ns, slot_ns: slot_ms(workload) * 1_000_000, samples: Vec::new() }
    }

    /// The slot that holds `at_ns`; `None` before the window and beyond the last possible slot.
    pub(crate) fn at(&mut self, at_ns: u64) -> Option<&mut SlotSamples> {
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

    pub(crate) fn summaries(&self) -> Vec<Slot> {
        self.samples.iter().map(SlotSamples::summary).collect()
    }

    pub(crate) fn take_samples(&mut self) -> Vec<SlotSamples> {
        std::mem::take(&mut self.samples)
    }
}

impl SlotSamples {
    pub(crate) fn response(&mut self) -> &mut Durations {
        self.response.get_or_insert_default()
    }

    pub(crate) fn end_to_end(&mut self) -> &mut Durations {
        self.end_to_end.get_or_insert_default()
    }

    pub(crate) fn summary(&self) -> Slot {
        let response = self.response.as_ref().map(|samples| samples.summary()).unwrap_or_default();
        let end_to_end =
            self.end_to_end.as_ref().map(|samples| samples.summary()).unwrap_or_default();
        Slot {
            produced_records: self.produced_records,
            consumed_records: self.consumed_records,
            response_p50_ns: response.p50_ns,
            response_p99_ns: response.p99_ns,
            response_max_ns: response.max_ns,
            end_to_end_p99_ns: end_to_end.p99_ns,
        }
    }
}

/// Adds the slots of another thread, one by one.
pub(crate) fn merge(into: &mut Vec<SlotSamples>, from: Vec<SlotSamples>) {
    if into.len() < from.len() {
        into.resize_with(from.len(), SlotSamples::default);
    }
    for (mine, theirs) in into.iter_mut().zip(from) {
        mine.produced_records += theirs.produced_records;
        mine.consumed_records += theirs.consumed_records;
        if let Some(samples) = theirs.response {
            mine.response().merge(&samples);
        }
        if let Some(samples) = theirs.end_to_end {
            mine.end_to_end().merge(&samples);
        }
    }
}
