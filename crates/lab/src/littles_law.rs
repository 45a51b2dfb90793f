//! How many partitions a rate takes: by Little's law as many as records are being handled at once,
//! which is the rate times how long one is handled.
//!
//! The time is measured in the handlers, on one partition; what follows from it is held against the
//! rate at which records are handled on fewer, as many, and more partitions.

use serde::{Deserialize, Serialize};

use crate::survey::Estimate;
use moldau_measure::statistics::{float, median};

/// How far a measured rate may be off the predicted one.
pub const TOLERANCE: f64 = 0.15;

/// What was measured for the law.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LawRecord {
    /// Records offered per second.
    pub records_per_second: u64,
    /// How long a handler waits with each record, ms.
    pub work_ms: u64,
    /// What was measured.
    pub points: Vec<LawPoint>,
}

/// One number of partitions, once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LawPoint {
    /// Name of the system.
    pub arm: String,
    /// Its round, from 0.
    pub round: u32,
    /// Partitions, each with one record in its handler at a time.
    pub partitions: u16,
    /// Length of the window, ns.
    pub window_ns: u64,
    /// Records whose handling ended in the window.
    pub handled: u64,
    /// How long they were handled in all, ns.
    pub handling_ns: u64,
}

impl LawPoint {
    /// Records handled per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        float(self.handled) * 1e9 / float(self.window_ns.max(1))
    }

    /// How long one record was handled, seconds; `None` where none was.
    #[must_use]
    pub fn response(&self) -> Option<f64> {
        (self.handled > 0).then(|| float(self.handling_ns) / float(self.handled) / 1e9)
    }
}

impl LawRecord {
    /// How long a record is handled on one partition, seconds: the median over the rounds.
    #[must_use]
    pub fn response(&self, arm: &str) -> Option<f64> {
        let alone = self.points.iter().filter(|point| point.arm == arm && point.partitions == 1);
        let times: Vec<f64> = alone.filter_map(LawPoint::response).collect();
        (!times.is_empty()).then(|| median(&times))
    }

    /// The partitions that the rate takes, before rounding up.
    #[must_use]
    pub fn needed(&self, arm: &str) -> Option<f64> {
        Some(float(self.records_per_second) * self.response(arm)?)
    }

    /// The rate that the law predicts for so many partitions, records per second.
    #[must_use]
    pub fn predicted(&self, arm: &str, partitions: u16) -> Option<f64> {
        let most = f64::from(partitions) / self.response(arm)?;
        Some(most.min(float(self.records_per_second)))
    }

    /// The numbers of partitions that the law was tested on, rising.
    #[must_use]
    pub fn tested(&self, arm: &str) -> Vec<u16> {
        let of_arm = self.points.iter().filter(|point| point.arm == arm);
        let mut counts: Vec<u16> = of_arm.map(|point| point.partitions).collect();
        counts.sort_unstable();
        counts.dedup();
        counts
    }

    /// Measured by predicted rate for so many partitions, over the rounds.
    #[must_use]
    pub fn agreement(&self, arm: &str, partitions: u16, seed: u64) -> Option<Estimate> {
        let predicted = self.predicted(arm, partitions)?;
        let is_of = |point: &&LawPoint| point.arm == arm && point.partitions == partitions;
        let of_arm = self.points.iter().filter(is_of);
        let ratios: Vec<f64> = of_arm.map(|point| point.rate() / predicted).collect();
        Estimate::of(&ratios, seed, |ratio| ratio)
    }

    /// The number of partitions whose rate may be furthest off the predicted one, and how far: the
    /// far end of the interval where there is one.
    #[must_use]
    pub fn worst(&self, arm: &str, seed: u64) -> Option<(u16, f64)> {
        let tested = self.tested(arm).into_iter();
        let off = tested.filter_map(|partitions| {
            let Estimate { mean, interval, .. } = self.agreement(arm, partitions, seed)?;
            let ends = interval.map_or([mean, mean], |it| [it.low, it.high]);
            Some((partitions, ends.map(|end| (end - 1.0).abs()).into_iter().fold(0.0, f64::max)))
        });
        off.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// The systems that it was measured on, in the order of their first points.
    #[must_use]
    pub fn arms(&self) -> Vec<&str> {
        let mut arms: Vec<&str> = Vec::new();
        for point in &self.points {
            if !arms.contains(&point.arm.as_str()) {
                arms.push(&point.arm);
            }
        }
        arms
    }
}

/// The partitions that a rate takes, and half and twice as many.
#[must_use]
pub fn around(records_per_second: u64, response: f64) -> [u16; 3] {
    let needed = (float(records_per_second) * response).ceil().clamp(1.0, f64::from(u16::MAX / 2));
    // The smallest whole number that is no less; a search keeps floats from being cast.
    let needed = (1..=u16::MAX / 2).find(|count| f64::from(*count) >= needed).unwrap_or(1);
    [(needed / 2).max(1), needed, needed * 2]
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Handlers of 21 ms at 400 records per second, which take 8.4 partitions.
    pub(crate) fn record() -> LawRecord {
        let point = |partitions: u16, handled: u64| LawPoint {
            arm: "ours".into(),
            round: 0,
            partitions,
            window_ns: 10_000_000_000,
            handled,
            handling_ns: handled * 21_000_000,
        };
        LawRecord {
            records_per_second: 400,
            work_ms: 20,
            points: vec![point(1, 476), point(4, 1_800), point(9, 3_990), point(18, 4_000)],
        }
    }

    #[test]
    fn partitions_are_the_rate_times_the_time_of_a_record() {
        let record = record();
        assert!((record.needed("ours").unwrap() - 8.4).abs() < 1e-9);
        assert_eq!(around(400, 0.021), [4, 9, 18]);
        assert_eq!(around(400, 0.000_1), [1, 1, 2]);
        assert_eq!(record.tested("ours"), [1, 4, 9, 18]);
    }

    #[test]
    fn fewer_partitions_cap_the_rate_and_more_do_not_raise_it() {
        let record = record();
        assert!((record.predicted("ours", 4).unwrap() - 4.0 / 0.021).abs() < 1e-9);
        assert_eq!(record.predicted("ours", 9), Some(400.0));
        let found = record.agreement("ours", 4, 1).unwrap();
        assert!((found.mean - 180.0 * 0.021 / 4.0).abs() < 1e-9 && found.interval.is_none());
        assert_eq!(record.agreement("ours", 18, 1).map(|it| it.mean), Some(1.0));
        assert_eq!(record.agreement("theirs", 18, 1), None);
        let (partitions, off) = record.worst("ours", 1).unwrap();
        assert!(partitions == 4 && (off - 0.055).abs() < 1e-9, "{off}");
    }

    #[test]
    fn rates_that_differ_from_round_to_round_are_judged_by_the_far_end_of_their_interval() {
        let mut record = record();
        for (round, handled) in [(1, 3_800), (2, 4_200), (3, 4_000)] {
            let point = record.points[3].clone();
            record.points.push(LawPoint { round, handled, ..point });
        }
        let (partitions, off) = record.worst("ours", 1).unwrap();
        assert!(partitions == 18 && off > 0.055, "{partitions}: {off}");
    }
}
