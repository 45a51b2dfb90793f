//! The loads of the plan. They differ in what may cost a proxy time: records of 100 B to 10 KB,
//! batches of one record to 128 KB, one to many batches in a request, one to many producers, none
//! to three consumers. No two of these may always vary together, or the model could not separate
//! their costs.

use moldau_load::generator::Layout;
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CasePlan {
    /// Size of a record's value, bytes.
    pub record_bytes: usize,
    /// Size of the values of a batch, bytes.
    pub batch_bytes: usize,
    /// Records per second.
    pub per_second: u64,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Consumers that each read everything.
    pub groups: u16,
    /// Producers, each over a connection of its own.
    pub producers: u16,
    /// Milliseconds that batches of many partitions wait side by side; `None` sends full batches
    /// of one partition after the other.
    pub scattered_ms: Option<u64>,
}

/// The case whose processor time per MB stands for a model of one coefficient: 1 KB records in the
/// Java client's default batches, as such figures are usually published.
pub(super) const REFERENCE: CasePlan = full(1 << 10, 16 << 10, 20_000, 10, 1);

/// Full batches of one partition after the other.
const fn full(
    record_bytes: usize,
    batch_bytes: usize,
    per_second: u64,
    partitions: u16,
    groups: u16,
) -> CasePlan {
    let (producers, scattered_ms) = (1, None);
    CasePlan { record_bytes, batch_bytes, per_second, partitions, groups, producers, scattered_ms }
}

/// Batches of all partitions side by side.
const fn scattered(
    record_bytes: usize,
    per_second: u64,
    partitions: u16,
    groups: u16,
    wait_ms: u64,
) -> CasePlan {
    let full = full(record_bytes, 16 << 10, per_second, partitions, groups);
    CasePlan { scattered_ms: Some(wait_ms), ..full }
}

/// The same load from so many producers.
const fn by(producers: u16, case: CasePlan) -> CasePlan {
    CasePlan { producers, ..case }
}

/// The cases of the short form.
pub(super) const QUICK: &[CasePlan] = &[
    REFERENCE,
    full(1 << 10, 1 << 10, 1_000, 1, 1),
    full(1 << 10, 1 << 10, 3_000, 10, 0),
    full(100, 100, 1_500, 10, 3),
    full(1 << 10, 16 << 10, 10_000, 10, 3),
    full(1 << 10, 16 << 10, 40_000, 10, 0),
    full(100, 16 << 10, 60_000, 10, 1),
    full(100, 16 << 10, 30_000, 10, 3),
    full(100, 16 << 10, 80_000, 1, 0),
    full(10 << 10, 120 << 10, 4_000, 10, 1),
    full(1 << 10, 128 << 10, 15_000, 10, 3),
    full(10 << 10, 10 << 10, 1_000, 10, 1),
    scattered(1 << 10, 8_000, 100, 1, 5),
    scattered(100, 20_000, 100, 3, 20),
    scattered(1 << 10, 20_000, 100, 0, 5),
    scattered(100, 24_000, 200, 0, 5),
    full(1 << 10, 1 << 10, 3_000, 10, 1),
    full(1 << 10, 4 << 10, 8_000, 10, 1),
    full(100, 4 << 10, 30_000, 10, 1),
    full(10 << 10, 120 << 10, 6_000, 10, 0),
    full(10 << 10, 120 << 10, 2_000, 1, 3),
    full(1 << 10, 16 << 10, 40_000, 10, 1),
    full(1 << 10, 16 << 10, 20_000, 100, 2),
    by(4, full(1 << 10, 16 << 10, 20_000, 10, 1)),
];

/// What the long form has on top.
const FURTHER: &[CasePlan] = &[
    full(100, 100, 4_000, 10, 1),
    full(10 << 10, 10 << 10, 1_500, 1, 3),
    full(100, 128 << 10, 80_000, 10, 1),
    full(1 << 10, 128 << 10, 40_000, 10, 1),
    scattered(100, 16_000, 400, 1, 5),
    scattered(1 << 10, 10_000, 10, 3, 5),
    by(8, full(100, 4 << 10, 30_000, 10, 1)),
    by(16, full(1 << 10, 4 << 10, 8_000, 10, 0)),
];

/// The cases of the long form.
pub(super) fn full_form() -> Vec<CasePlan> {
    [QUICK, FURTHER].concat()
}

impl CasePlan {
    /// Its name, which is unique.
    #[must_use]
    pub fn name(&self) -> String {
        let layout = match self.scattered_ms {
            None => size(self.batch_bytes),
            Some(wait_ms) => format!("{wait_ms} ms side by side"),
        };
        let name = format!(
            "{}/s of {} in {layout}, {} partition{}, {} consumer{}",
            self.per_second,
            size(self.record_bytes),
            self.partitions,
            plural(self.partitions),
            self.groups,
            plural(self.groups),
        );
        match self.producers {
            1 => name,
            producers => format!("{name}, {producers} producers"),
        }
    }

    pub(super) fn layout(&self) -> Layout {
        match self.scattered_ms {
            // The generator ends each batch itself, so that its size is what the plan says.
            None => Layout::Spread { stride: 1 },
            Some(_) => Layout::Scattered,
        }
    }

    pub(super) fn workload(&self, warmup_ms: u64, window_ms: u64) -> Workload {
        let pace = Pace::Scheduled { per_second: self.per_second, arrivals: Arrivals::Constant };
        Workload {
            pace,
            record_bytes: self.record_bytes,
            filler: Filler::Text,
            partitions: self.partitions,
            producers: self.producers,
            batch_bytes: self.batch_bytes,
            // Batches that the generator ends wait for no time; the limit is for the last one.
            linger_us: self.scattered_ms.map_or(LINGER_US, |wait_ms| wait_ms * 1_000),
            consume: self.groups > 0,
            tails: self.groups.saturating_sub(1),
            warmup_ms,
            window_ms,
            tuning: Tuning::default(),
        }
    }
}

/// Longer than any batch of the plan takes to fill.
const LINGER_US: u64 = 200_000;

fn plural(count: u16) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn size(bytes: usize) -> String {
    match bytes {
        kilobytes if kilobytes % 1024 == 0 => format!("{} KB", kilobytes / 1024),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_possible_has_a_name_of_its_own_and_is_in_the_long_form() {
        let all = full_form();
        assert!(QUICK.len() >= 24 && all.len() > QUICK.len());
        assert!(all.contains(&REFERENCE) && QUICK.contains(&REFERENCE));
        let mut names: Vec<String> = all.iter().map(CasePlan::name).collect();
        for case in &all {
            case.workload(100, 1_000).check().unwrap();
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        let name = REFERENCE.name();
        assert_eq!(name, "20000/s of 1 KB in 16 KB, 10 partitions, 1 consumer");
    }

    #[test]
    fn batches_of_a_partition_fill_before_they_linger() {
        for case in full_form().iter().filter(|case| case.scattered_ms.is_none()) {
            let records = case.batch_bytes / case.record_bytes;
            let records = u64::try_from(records).unwrap() * u64::from(case.producers);
            let fill_us = records * 1_000_000 / case.per_second;
            assert!(2 * fill_us < LINGER_US, "{}", case.name());
        }
    }
}
