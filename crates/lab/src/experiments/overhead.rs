//! What does a proxy cost? One broker reached directly, through a bare relay, through our proxy
//! with each thing that it can do, and through Kroxylicious.
//!
//! All of them run through the whole experiment. Each round of a case goes through all, forwards
//! and backwards in turn, and all runs of a round offer the same bytes at the same intended times.
//! Sizes of batches and rates differ between cases, since what a proxy costs follows requests more
//! than bytes. One that cannot keep up with a rate is a finding, not a failure.

mod goals;

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use super::bench::Bench;
use super::bench::Case;
use super::connecting;
use super::fronts::{Front, FrontPlan, RunningFront};
use super::rounds::{self, Subject};
use super::{Conditions, Progress};
use crate::checks::{self, Check, Weight};
use crate::result::{Arm, Experiment, RunResult};
use crate::systems::{
    Durability, FrontFiles, Kroxylicious, Process, free_addresses, moldau_broker_configured,
};
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

/// Warm-up and window of the run during which the broker stops, ms.
const STALLED_MS: (u64, u64) = (1_000, 5_000);

/// The broker's cache holds what is written before catching up from memory, with what encryption
/// adds, and a small part of what is written at full speed.
const TAIL_CACHE_MIB: u32 = 640;

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
    /// What is compared; differences are told against the first.
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
    /// Stops the broker during one further run, to show that the laboratory sees it.
    pub stall: Option<Stall>,
}

/// Which cases an experiment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each size of batches at each rate.
    FixedRates,
    /// These, single-record requests, full speed and catching up.
    Whole,
}

/// The broker stands still during a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Time from the making of the run's topic to the stall, which should fall into the window.
    pub after: Duration,
    /// Length of the stall.
    pub length: Duration,
}

impl Plan {
    /// The short form has three rounds, in four minutes with three fronts; the long form five of
    /// longer windows, in 40 minutes with all fronts.
    #[must_use]
    pub fn usual(moldau: PathBuf, conditions: Conditions) -> Self {
        let short = Self {
            moldau,
            conditions,
            durability: Durability::Fsync,
            fronts: vec![Front::DIRECT, Front::PASSTHROUGH, Front::ENCRYPTION],
            kroxylicious: None,
            rates: RATES.to_vec(),
            scope: Scope::Whole,
            connections: 100,
            rest_ms: 3_000,
            first_load_ms: 2_000,
            warmup_ms: 500,
            window_ms: 2_000,
            full_speed_window_ms: 1_000,
            rounds: 3,
            profiler: None,
            stall: None,
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

    fn check(&self) -> Result<(), Error> {
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
    fn present(&self) -> impl Iterator<Item = Front> {
        let has_all = |front: &Front| !front.is_kroxylicious() || self.kroxylicious.is_some();
        self.fronts.iter().copied().filter(has_all)
    }

    fn steps(&self) -> u32 {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let fronts = count(self.present().count());
        let runs = fronts * (1 + count(self.cases().len()) * self.rounds);
        1 + runs + self.rounds + u32::from(self.stall.is_some())
    }

    fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for kilobytes in BATCH_KB {
            for rate in &self.rates {
                let is_last =
                    Some(rate) == self.rates.last() && Some(&kilobytes) == BATCH_KB.last();
                let catches_up = is_last && self.scope == Scope::Whole;
                cases.push(self.fixed_rate(*rate, kilobytes, catches_up));
            }
        }
        if self.scope == Scope::FixedRates {
            return cases;
        }
        cases.extend(self.rates.first().map(|rate| self.single_records(*rate)));
        cases.extend(BATCH_KB.map(|kilobytes| self.full_speed(kilobytes)));
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
    fn shape(&self, kilobytes: usize) -> Workload {
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
const CATCH_UP: &str = "Catch up";
const SINGLE: &str = "single-record requests";

/// MB/s of this many 1 KB records per second.
fn rate_name(per_second: u64) -> String {
    let (whole, rest) = (per_second / 1024, per_second % 1024);
    if rest == 0 { format!("{whole} MB/s") } else { format!("{per_second} records/s") }
}

fn batch_name(kilobytes: usize) -> String {
    format!("{kilobytes} KB batches")
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] for an impossible plan; otherwise when a system does not start, ends early or
/// fails. A run whose figures do not hold is a verdict of the result, not an error.
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(), progress);
    bench.step("Start the broker and what stands before it");
    let (mut broker, mut fronts) = start(plan)?;
    thread::sleep(Duration::from_millis(plan.rest_ms));
    let arms: Vec<Arm> = fronts.iter().map(|front| arm(front, plan.durability)).collect();
    let cases = plan.cases();
    let first_load = Workload { window_ms: plan.first_load_ms, warmup_ms: 0, ..plan.shape(16) };
    for front in &fronts {
        bench.probe(front.path(), &first_load)?;
    }
    if let (Some(stall), Some(case), Some(front)) = (plan.stall, cases.first(), fronts.first()) {
        let (warmup_ms, window_ms) = STALLED_MS;
        let stalled = Case {
            name: format!("{}, the broker stops meanwhile", case.name),
            workload: Workload { warmup_ms, window_ms, ..case.workload.clone() },
            reading: None,
        };
        with_stall(&broker, stall, || bench.run_case(front.path(), &stalled, 0))?;
    }
    for case in &cases {
        rounds::run(&mut bench, &mut fronts, case, plan.rounds)?;
        broker.check_alive()?;
    }
    let mut connections = Vec::new();
    for round in 0..plan.rounds {
        let what = format!("Open connections, {}", round + 1);
        bench.step(&what);
        let opened =
            bench.once(&what, |_| connecting::measure(&fronts, round, plan.connections))?;
        connections.extend(opened);
    }
    for case in &cases {
        let paths = fronts.iter().map(Subject::path);
        bench.profile(plan.profiler.as_ref(), paths, case)?;
    }
    fronts.into_iter().try_for_each(RunningFront::stop)?;
    broker.stop()?;
    for check in goals::checks(plan, bench.runs(), &arms).into_iter().chain(omitted(plan)) {
        bench.note(check);
    }
    let result = bench.finish(Experiment::Overhead, arms, checks::of_arms)?;
    Ok(RunResult { connections, ..result })
}

fn start(plan: &Plan) -> Result<(Process, Vec<RunningFront>), Error> {
    let directory = &plan.conditions.work_directory;
    let files = FrontFiles::make(&directory.join("files"), plan.conditions.seed)?;
    let [listen, listen_tls, admin] = free_addresses()?;
    let path = files.directory().display();
    let lines = format!(
        "tail_cache_mib: {TAIL_CACHE_MIB}\n\
         listeners:\n\
         \x20 - {{name: PLAIN, address: '{listen}'}}\n\
         \x20 - name: TLS\n\
         \x20   address: {listen_tls}\n\
         \x20   tls: {{certificate_file: '{path}/server.pem', key_file: '{path}/server.key'}}\n"
    );
    let durability = plan.durability;
    let spec = moldau_broker_configured(&plan.moldau, directory, admin, durability, &lines)?;
    let broker = Process::start(&spec, directory)?;
    let from = FrontPlan {
        moldau: plan.moldau.clone(),
        kroxylicious: plan.kroxylicious.clone(),
        work_directory: directory.clone(),
        files,
        upstream: listen,
        upstream_tls: Some(listen_tls),
        node: 0,
        broker: (broker.role().to_string(), broker.pid()),
        broker_admin: broker.admin_port(),
        seed: plan.conditions.seed,
    };
    let fronts = plan.present().map(|front| front.start(&from)).collect::<Result<_, _>>()?;
    Ok((broker, fronts))
}

fn arm(front: &RunningFront, durability: Durability) -> Arm {
    let mut arm = front.arm();
    if arm.name == Front::DIRECT.name() {
        arm.description += match durability {
            Durability::Fsync => ", acknowledged after the flush to the disk",
            Durability::Os => ", acknowledged once the operating system has it",
        };
        arm.description += &format!(", with {TAIL_CACHE_MIB} MiB of the newest data in memory");
    }
    arm
}

/// A note for each front that was wished for and could not be started.
fn omitted(plan: &Plan) -> impl Iterator<Item = Check> {
    let is_absent = |front: &&Front| front.is_kroxylicious() && plan.kroxylicious.is_none();
    plan.fronts.iter().filter(is_absent).map(|front| Check {
        name: format!("arm {front}"),
        passed: false,
        weight: Weight::Note,
        found: "left out, Kroxylicious is not there".into(),
        demanded: "cargo xtask peers".into(),
    })
}

/// Does `work` while the broker stands still for a moment.
fn with_stall(
    broker: &Process,
    Stall { after, length }: Stall,
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    thread::scope(|scope| {
        let stalling = scope.spawn(move || {
            thread::sleep(after);
            broker.suspend()?;
            thread::sleep(length);
            broker.resume()
        });
        let worked = work();
        let stalled = stalling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        worked.and(stalled)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan::usual("moldau".into(), Conditions::of_tests())
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
    fn what_is_not_there_is_left_out_and_said() {
        let all = Plan { fronts: Front::PEERS.to_vec(), ..plan() };
        assert_eq!(all.present().collect::<Vec<_>>(), Front::PEERS[..4]);
        let said: Vec<Check> = omitted(&all).collect();
        assert_eq!(said.len(), 2);
        assert!(said.iter().all(|check| !check.passed && check.weight == Weight::Note));
        assert!(said[1].name.contains("kroxylicious-encryption"));
        let there = Kroxylicious { java: "java".into(), directory: "there".into() };
        let all = Plan { kroxylicious: Some(there), ..all };
        assert_eq!(all.present().collect::<Vec<_>>(), Front::PEERS);
        assert_eq!(omitted(&all).count(), 0);
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
        assert_eq!(plan().steps(), 1 + 3 * (1 + 7 * 3) + 3);
    }
}
