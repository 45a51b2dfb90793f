//! What is compared, under which loads and for how long.

use std::path::PathBuf;
use std::time::Duration;

use crate::experiments::Conditions;
use crate::experiments::bench::Case;
use crate::experiments::fronts::Front;
use crate::systems::{Durability, Kroxylicious};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::profile::Profiler;

/// Sizes of batches: Kafka's default, and one that suits throughput.
const BATCH_KB: [usize; 2] = [16, 128];

/// Records per second of 20 and 50 MB/s of 1 KB records.
const RATES: [u64; 2] = [20 * 1024, 50 * 1024];

/// Producers of single-record requests: one alone puts into a request what falls due while it
/// sleeps for the shortest time that it can.
const SINGLE_PRODUCERS: u16 = 4;

/// Fewest rounds of what a gateway does: an interval over three says little of a difference of a
/// few percent.
const GATEWAY_ROUNDS_MIN: u32 = 5;

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `moldau` executable, started as broker, proxy and relay.
    pub moldau: PathBuf,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// When the broker acknowledges.
    pub durability: Durability,
    /// The arms. The first is the baseline of differences.
    pub fronts: Vec<Front>,
    /// Where Kroxylicious lies, if it is there; without it its fronts are left out, and the report
    /// says so.
    pub kroxylicious: Option<Kroxylicious>,
    /// Records per second of the fixed rates, rising.
    pub rates: Vec<u64>,
    /// Which cases there are.
    pub scope: Scope,
    /// Connections that are opened through each front in a round.
    pub connections: u32,
    /// Time between the start of the last front and the look at what each holds, ms.
    pub rest_ms: u64,
    /// Load on each front before anything is measured, ms: a JVM compiles what it runs often.
    pub first_load_ms: u64,
    /// Time before the window of a run, ms.
    pub warmup_ms: u64,
    /// Window of a run at a fixed rate, ms; twice that before catching up.
    pub window_ms: u64,
    /// Window of a run at full speed, ms.
    pub full_speed_window_ms: u64,
    /// Rounds of each case.
    pub rounds: u32,
    /// What takes a profile of each case and front in the end, if it is wanted.
    pub profiler: Option<Profiler>,
    /// A fault of one further run, to show that the laboratory finds it.
    pub planted: Option<Planted>,
}

/// Which cases an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The usual size of batches at each rate, and full speed in large ones with catching up from
    /// disk: what the answer and its charts need.
    Short,
    /// Each size of batches at each rate.
    FixedRates,
    /// These, single-record requests, full speed and catching up.
    Whole,
}

/// A fault that is planted into a run on the first path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// The broker stands still.
    Stall {
        /// Time from the making of the run's topic to the stall, which should fall into the window.
        after: Duration,
        /// Length of the stall.
        length: Duration,
    },
    /// Acknowledged records are deleted before they are read back.
    Loss,
    /// The generator is to compress far more than its thread can.
    Generator,
}

impl Plan {
    /// The short form has three rounds of few loads, in two minutes with three fronts; the whole
    /// form five of all loads with longer windows, in 40 minutes with all fronts.
    #[must_use]
    pub fn usual(moldau: PathBuf, conditions: Conditions) -> Self {
        let short = Self {
            moldau,
            conditions,
            durability: Durability::Fsync,
            fronts: vec![Front::DIRECT, Front::PASSTHROUGH, Front::ENCRYPTION],
            kroxylicious: None,
            rates: RATES.to_vec(),
            scope: Scope::Short,
            connections: 100,
            rest_ms: 3_000,
            first_load_ms: 2_000,
            warmup_ms: 500,
            window_ms: 2_000,
            full_speed_window_ms: 1_000,
            rounds: 3,
            profiler: None,
            planted: None,
        };
        if short.conditions.quick {
            return short;
        }
        Self {
            first_load_ms: 15_000,
            warmup_ms: 1_000,
            window_ms: 5_000,
            full_speed_window_ms: 3_000,
            rounds: 5,
            scope: Scope::Whole,
            ..short
        }
    }

    /// What each thing that a gateway does costs by itself, at the lowest rate: the differences are
    /// small, and what saturates the machine would hide them.
    #[must_use]
    pub fn gateway(self) -> Self {
        Self {
            fronts: Front::GATEWAY.to_vec(),
            rates: RATES.first().copied().into_iter().collect(),
            scope: Scope::FixedRates,
            rounds: self.rounds.max(GATEWAY_ROUNDS_MIN),
            ..self
        }
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        let is_double = |(index, front)| self.fronts.iter().skip(index + 1).any(|f| f == front);
        if self.fronts.iter().enumerate().any(is_double) || self.rounds == 0 {
            return Err(Error::Plan("each front once, and at least one round".into()));
        }
        if self.present().next().is_none() {
            return Err(Error::Plan("nothing is left to measure".into()));
        }
        self.cases().iter().try_for_each(|case| case.workload.check())
    }

    /// The fronts that can be started.
    pub(super) fn present(&self) -> impl Iterator<Item = Front> {
        let has_all = |front: &Front| !front.is_kroxylicious() || self.kroxylicious.is_some();
        self.fronts.iter().copied().filter(has_all)
    }

    pub(super) fn steps(&self) -> u32 {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let fronts = count(self.present().count());
        let runs = fronts * (1 + count(self.cases().len()) * self.rounds);
        1 + runs + self.rounds + u32::from(self.planted.is_some())
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let usual = BATCH_KB.first().copied().into_iter();
        if self.scope == Scope::Short {
            let fixed = usual.flat_map(|kilobytes| {
                self.rates.iter().map(move |rate| self.fixed_rate(*rate, kilobytes, false))
            });
            return fixed.chain(BATCH_KB.last().map(|large| self.full_speed(*large))).collect();
        }
        let mut cases = Vec::new();
        for kilobytes in BATCH_KB {
            for rate in &self.rates {
                let is_last =
                    Some(rate) == self.rates.last() && Some(&kilobytes) == BATCH_KB.last();
                let catches_up = is_last && self.scope == Scope::Whole;
                cases.push(self.fixed_rate(*rate, kilobytes, catches_up));
            }
        }
        if self.scope == Scope::Whole {
            cases.extend(self.rates.first().map(|rate| self.single_records(*rate)));
            cases.extend(BATCH_KB.map(|kilobytes| self.full_speed(kilobytes)));
        }
        cases
    }

    /// Produced and consumed at once, and read back again from its start where it catches up.
    fn fixed_rate(&self, per_second: u64, kilobytes: usize, catches_up: bool) -> Case {
        let pace = Pace::Scheduled { per_second, arrivals: Arrivals::Constant };
        let window_ms = if catches_up { 2 * self.window_ms } else { self.window_ms };
        Case {
            name: format!("{}, {}", rate_name(per_second), batch_name(kilobytes)),
            workload: Workload { pace, window_ms, ..self.shape(kilobytes) },
            reading: catches_up
                .then(|| format!("{CATCH_UP} from memory, {}", batch_name(kilobytes))),
        }
    }

    /// Produced alone, and with large batches read back, most of it from the broker's disk.
    fn full_speed(&self, kilobytes: usize) -> Case {
        let window_ms = self.full_speed_window_ms;
        let catches_up = Some(&kilobytes) == BATCH_KB.last();
        Case {
            name: format!("{FULL_SPEED}, {}", batch_name(kilobytes)),
            workload: Workload { consume: false, window_ms, ..self.shape(kilobytes) },
            reading: catches_up.then(|| format!("{CATCH_UP} from disk, {}", batch_name(kilobytes))),
        }
    }

    /// Each record in a request of its own.
    fn single_records(&self, per_second: u64) -> Case {
        let shape = self.shape(1);
        Case {
            name: format!("{}, {SINGLE}", rate_name(per_second)),
            workload: Workload {
                pace: Pace::Scheduled { per_second, arrivals: Arrivals::Constant },
                batch_bytes: shape.record_bytes,
                linger_us: 0,
                producers: SINGLE_PRODUCERS,
                ..shape
            },
            reading: None,
        }
    }

    /// What the cases have in common. A batch may wait as long as it takes to fill at the lowest
    /// rate.
    pub(super) fn shape(&self, kilobytes: usize) -> Workload {
        Workload {
            pace: Pace::Unpaced,
            record_bytes: 1024,
            // All runs of a round offer the same bytes, whichever front looks into them.
            filler: if self.fronts.iter().any(|front| front.reads_json()) {
                Filler::Json
            } else {
                Filler::Text
            },
            partitions: 10,
            producers: 1,
            batch_bytes: kilobytes * 1024,
            linger_us: if kilobytes > 16 { 10_000 } else { 1_000 },
            consume: true,
            tails: 0,
            warmup_ms: self.warmup_ms,
            window_ms: self.window_ms,
            tuning: Tuning::default(),
        }
    }
}

const FULL_SPEED: &str = "Produce at full speed";
pub(super) const CATCH_UP: &str = "Catch up";
const SINGLE: &str = "single-record requests";

/// MB/s of this many 1 KB records per second.
fn rate_name(per_second: u64) -> String {
    let (whole, rest) = (per_second / 1024, per_second % 1024);
    if rest == 0 { format!("{whole} MB/s") } else { format!("{per_second} records/s") }
}

fn batch_name(kilobytes: usize) -> String {
    format!("{kilobytes} KB batches")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short() -> Plan {
        Plan::usual("moldau".into(), Conditions::of_tests())
    }

    fn plan() -> Plan {
        Plan::usual("moldau".into(), Conditions { quick: false, ..Conditions::of_tests() })
    }

    #[test]
    fn the_short_form_has_the_loads_of_the_answer() {
        let names: Vec<String> =
            short().cases().iter().flat_map(Case::names).map(str::to_owned).collect();
        assert_eq!(
            names,
            [
                "20 MB/s, 16 KB batches",
                "50 MB/s, 16 KB batches",
                "Produce at full speed, 128 KB batches",
                "Catch up from disk, 128 KB batches",
            ]
        );
        // A start, a first load each, three cases, one of them read back as well, and connections.
        assert_eq!(short().steps(), 1 + 3 * (1 + 3 * 3) + 3);
    }

    #[test]
    fn every_size_meets_every_rate_and_the_last_is_read_again() {
        let cases = plan().cases();
        let names: Vec<Vec<&str>> = cases.iter().map(Case::names).collect();
        assert_eq!(
            names.concat(),
            [
                "20 MB/s, 16 KB batches",
                "50 MB/s, 16 KB batches",
                "20 MB/s, 128 KB batches",
                "50 MB/s, 128 KB batches",
                "Catch up from memory, 128 KB batches",
                "20 MB/s, single-record requests",
                "Produce at full speed, 16 KB batches",
                "Produce at full speed, 128 KB batches",
                "Catch up from disk, 128 KB batches",
            ]
        );
        for case in &cases {
            let workload = &case.workload;
            let is_scheduled = matches!(workload.pace, Pace::Scheduled { .. });
            assert_eq!(workload.consume, is_scheduled, "{}", case.name);
            assert_eq!((workload.record_bytes, workload.partitions), (1024, 10), "{}", case.name);
            let is_single = case.name.contains("single");
            assert_eq!(
                (workload.batch_bytes == 1024, workload.linger_us == 0),
                (is_single, is_single)
            );
        }
    }

    #[test]
    fn a_gateway_is_measured_at_one_rate_with_values_that_its_filters_can_read() {
        let plan = plan().gateway();
        assert!(plan.check().is_ok());
        let cases = plan.cases();
        let names: Vec<Vec<&str>> = cases.iter().map(Case::names).collect();
        assert_eq!(names.concat(), ["20 MB/s, 16 KB batches", "20 MB/s, 128 KB batches"]);
        assert!(cases.iter().all(|case| case.workload.filler == Filler::Json));
        assert!(self::plan().cases().iter().all(|case| case.workload.filler == Filler::Text));
    }

    #[test]
    fn a_batch_has_time_to_fill_at_every_rate() {
        for case in plan().cases() {
            let Pace::Scheduled { per_second, .. } = case.workload.pace else { continue };
            let records = u64::try_from(case.workload.batch_bytes / 1024).unwrap();
            let fills_us = (records - 1) * 1_000_000 / per_second;
            assert!(fills_us <= case.workload.linger_us, "{}: {fills_us} us", case.name);
        }
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert!(plan().check().is_ok());
        for broken in [
            Plan { fronts: Vec::new(), ..plan() },
            Plan { fronts: vec![Front::RELAY, Front::DIRECT, Front::RELAY], ..plan() },
            Plan { fronts: vec![Front::KROXYLICIOUS], ..plan() },
            Plan { rounds: 0, ..plan() },
            Plan { rates: vec![0], ..plan() },
            Plan { window_ms: 0, ..plan() },
        ] {
            assert!(matches!(broken.check(), Err(Error::Plan(_))), "{broken:?}");
        }
    }

    #[test]
    fn steps_count_every_run() {
        // A start, a first load each, nine cases less the two that come with others, connections.
        assert_eq!(plan().steps(), 1 + 3 * (1 + 7 * 5) + 5);
    }
}
