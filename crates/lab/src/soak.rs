//! What systems hold in the course of hours under a steady load, and whether it grows.
//!
//! A soak is made of legs of equal length, each a run on a topic of its own that is audited and
//! deleted, so that what grows is the system and neither its data nor the account of them. What a
//! system holds is looked at after each leg. The first quarter fills caches and warms compilers up
//! and is shown, but no slope is taken of it.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::survey::LeftOut;
use moldau_load::run::RunRecord;
use moldau_measure::resources::Resources;
use moldau_measure::statistics::slope::Slope;
use moldau_measure::statistics::{float, median};

/// Name of the case of all legs.
pub const LEG: &str = "a leg";

/// Growth in the measured time that is less than this share of what there is is none, however
/// surely it is there.
pub const GROWTH_SHARE_MIN: f64 = 0.02;

/// One leg in so many comes before slopes are taken.
const WARMING_SHARE: usize = 4;

/// Fewest legs that show whether anything grows: the slope is fitted to those after the first
/// quarter.
pub const LEGS_MIN: u32 = 7;

const SECONDS_PER_HOUR: f64 = 3_600.0;

/// Everything that a soak found beside its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SoakRecord {
    /// What was held after each leg.
    pub holdings: Vec<Holding>,
    /// Systems that were not there, or have no process that could be looked at.
    pub left_out: Vec<LeftOut>,
}

/// What a system held after a leg.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holding {
    /// The system.
    pub arm: String,
    /// Number of the leg, from 0: the `pair` of its run.
    pub leg: u32,
    /// When, ms since the start of the experiment.
    pub at_ms: u64,
    /// What all its processes held together.
    pub held: Resources,
    /// Bytes that its files occupied.
    pub disk_bytes: u64,
}

/// A figure that may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Resident memory without the cache for readers, if the system reports that, MB.
    Memory,
    /// Open descriptors.
    Descriptors,
    /// Files on the disk, MB.
    Disk,
    /// 99th percentile of publishing, ms.
    Publish,
    /// 99th percentile from when a record was due to its delivery, ms.
    EndToEnd,
    /// Records per second that were acknowledged.
    Rate,
}

impl Figure {
    /// All, in the order of tables.
    pub const ALL: [Self; 6] =
        [Self::Memory, Self::Descriptors, Self::Disk, Self::Publish, Self::EndToEnd, Self::Rate];

    /// Name in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Descriptors => "descriptors",
            Self::Disk => "disk",
            Self::Publish => "publish p99",
            Self::EndToEnd => "end to end p99",
            Self::Rate => "acknowledged",
        }
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Memory | Self::Disk => "MB",
            Self::Descriptors => "open",
            Self::Publish | Self::EndToEnd => "ms",
            Self::Rate => "records/s",
        }
    }

    /// Whether a system that goes on for ever must not let it grow. The disk is freed when the
    /// system sees fit, which may be after the last leg.
    #[must_use]
    pub fn must_not_grow(self) -> bool {
        matches!(self, Self::Memory | Self::Descriptors)
    }

    /// Its course on a system: seconds since the start of the experiment, and the figure.
    #[must_use]
    pub fn course(self, record: &SoakRecord, runs: &[RunRecord], arm: &str) -> Vec<(f64, f64)> {
        const BYTES_PER_MB: f64 = moldau_load::workload::BYTES_PER_MB;
        let value = |holding: &Holding| {
            let run = || runs.iter().find(|run| run.arm == arm && run.pair == holding.leg);
            match self {
                Self::Memory => Some(float(holding.held.less_cache_bytes()) / BYTES_PER_MB),
                Self::Descriptors => Some(float(holding.held.descriptors)),
                Self::Disk => Some(float(holding.disk_bytes) / BYTES_PER_MB),
                Self::Publish => Metric::ResponseP99.of(run()?),
                Self::EndToEnd => Metric::EndToEndP99.of(run()?),
                Self::Rate => Metric::ProduceRecords.of(run()?),
            }
        };
        let of_arm = record.holdings.iter().filter(|holding| holding.arm == arm);
        of_arm.filter_map(|it| Some((float(it.at_ms) / 1e3, value(it)?))).collect()
    }
}

/// How a figure went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The median of what a slope is taken of.
    pub level: f64,
    /// The figure's rise per hour, and its interval at 95 %.
    pub per_hour: Slope,
    /// Whether growth is shown.
    pub grows: bool,
}

impl Drift {
    /// The drift of a course; `None` with too few points.
    #[must_use]
    pub fn of(course: &[(f64, f64)]) -> Option<Self> {
        let warm = course.get(course.len().div_ceil(WARMING_SHARE)..)?;
        let slope = Slope::of(warm)?;
        let level = median(&warm.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        let (first, last) = (warm.first()?.0, warm.last()?.0);
        let rise = slope.rise * (last - first);
        let hourly = |per_second: f64| per_second * SECONDS_PER_HOUR;
        let mut per_hour = slope;
        per_hour.rise = hourly(slope.rise);
        per_hour.interval_95.low = hourly(slope.interval_95.low);
        per_hour.interval_95.high = hourly(slope.interval_95.high);
        let grows = slope.interval_95.low > 0.0 && rise >= GROWTH_SHARE_MIN * level;
        Some(Self { level, per_hour, grows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(of: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let mut random = fastrand::Rng::with_seed(2);
        (0..24).map(|at| f64::from(at) * 10.0).map(|s| (s, of(s) + random.f64())).collect()
    }

    #[test]
    fn growth_is_per_hour_and_excludes_the_first_quarter() {
        let grown = Drift::of(&course(|seconds| 100.0 + seconds * 0.1)).unwrap();
        assert!(grown.grows && (grown.per_hour.rise - 360.0).abs() < 20.0, "{grown:?}");
        let filled = Drift::of(&course(|seconds| 100.0 + seconds.min(50.0))).unwrap();
        assert!(!filled.grows && (filled.level - 150.5).abs() < 0.5, "{filled:?}");
        // However sure, a thousandth is nothing that anybody would restart a broker for.
        let little = Drift::of(&course(|seconds| 1e6 + seconds)).unwrap();
        assert!(!little.grows && little.per_hour.interval_95.low > 0.0, "{little:?}");
        let least = usize::try_from(LEGS_MIN).unwrap();
        assert!(Drift::of(&course(|_| 1.0)[..least]).is_some());
        assert_eq!(Drift::of(&course(|_| 1.0)[..least - 1]), None);
    }
}
