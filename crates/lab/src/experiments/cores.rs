//! How many cores does the proxy need? Fits a model of several terms to its processor time under
//! many loads.
//!
//! Every front stands before the same broker for the whole experiment. Each round runs every case
//! once through each front, in an order of its own, so that disturbances of the machine favour no
//! front. Requests are counted by the broker, batches, records and bytes by the clients, processor
//! time by the kernel over exactly the window. Latencies are not kept, since clients, proxy and
//! broker share the processors.

mod cases;
mod page;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::bench::{Bench, Named};
use super::fronts::{Front, FrontPlan, RunningFront};
use super::rounds::Subject;
use super::{Conditions, Progress};
use crate::checks::{self, Check, Weight};
use crate::result::{Experiment, RunResult};
use crate::sizing::{Fit, HeldOut, Load, Observation, SizingRecord, errors};
use crate::systems::{
    Durability, FRONT_ROLE, FrontFiles, Process, free_addresses, http_get, moldau_broker,
};
use moldau_load::generator::{self, Measured, Setup};
use moldau_load::ledger::audit;
use moldau_load::run::RunRecord;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::CpuMeter;
use moldau_measure::resources::gauge;
use moldau_measure::statistics::float;

pub use page::page;

pub use cases::CasePlan;

/// What can be sized: our own proxy, and the relay that it is held against. A JVM that is warm for
/// one load is not for the next, so that runs of seconds say little of it.
const SIZED: [Front; 3] = [Front::RELAY, Front::PASSTHROUGH, Front::ENCRYPTION];

/// Name of the case without a load.
pub const IDLE: &str = "idle";

/// Median error on held-out cases above which the report says so.
const ERROR_MAX: f64 = 0.1;

/// How far what consumers got may be from what was produced for them: more than a window's edges
/// make, and they did not keep up.
const DELIVERED_MISS_MAX: f64 = 0.05;

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `moldau` executable, started as broker and as proxy.
    pub moldau: PathBuf,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// What stands before the broker, each an arm.
    pub fronts: Vec<Front>,
    /// The loads.
    pub cases: Vec<CasePlan>,
    /// Rounds. Each runs every case through each front.
    pub rounds: u32,
    /// Warming up of a run, ms.
    pub warmup_ms: u64,
    /// Window of a run, ms.
    pub window_ms: u64,
    /// The load that is asked for.
    pub load: Load,
}

impl Plan {
    /// Five rounds: of 24 loads in the short form, under five minutes for two fronts, of 31 in the
    /// long form, under 30 minutes. What a process takes varies by a tenth from run to run however
    /// long each is, so many short runs give narrower intervals than a few long ones.
    #[must_use]
    pub fn usual(moldau: PathBuf, conditions: Conditions, load: Load) -> Self {
        let short = Self {
            moldau,
            conditions,
            fronts: vec![Front::PASSTHROUGH, Front::ENCRYPTION],
            cases: cases::QUICK.to_vec(),
            rounds: 5,
            warmup_ms: 200,
            window_ms: 800,
            load,
        };
        if short.conditions.quick {
            return short;
        }
        Self { cases: cases::full_form(), warmup_ms: 1_000, window_ms: 4_000, ..short }
    }

    fn check(&self) -> Result<(), Error> {
        self.load.check()?;
        if self.fronts.is_empty() || self.cases.is_empty() || self.rounds == 0 {
            return Err(Error::Plan("at least one front, one case and one round".into()));
        }
        for (index, front) in self.fronts.iter().enumerate() {
            if !SIZED.contains(front) || self.fronts[..index].contains(front) {
                return Err(Error::Plan(format!("{front} is not sized, or given twice")));
            }
        }
        self.cases.iter().try_for_each(|case| self.workload(case).check())
    }

    fn workload(&self, case: &CasePlan) -> Workload {
        case.workload(self.warmup_ms, self.window_ms)
    }

    fn steps(&self) -> u32 {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        1 + self.rounds * count(self.fronts.len()) * (1 + count(self.cases.len()))
    }
}

/// Runs the experiment.
///
/// # Errors
/// As [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(), progress);
    bench.step("Start broker and proxies");
    let mut systems = Systems::start(plan)?;
    let arms = systems.fronts.iter().map(RunningFront::arm).collect();
    let mut random = fastrand::Rng::with_seed(plan.conditions.seed);
    let mut observations = Vec::new();
    for round in 0..plan.rounds {
        for front in &systems.fronts {
            let what = format!("Idle: {}, {}", front.path().arm, round + 1);
            bench.step(&what);
            let window = Duration::from_millis(plan.window_ms);
            observations.push(bench.once(&what, |_| watch_idle(front, round, window))?);
        }
        let mut order: Vec<&CasePlan> = plan.cases.iter().collect();
        random.shuffle(&mut order);
        for (turn, case) in (round..).zip(order) {
            let mut fronts: Vec<&RunningFront> = systems.fronts.iter().collect();
            if !turn.is_multiple_of(2) {
                fronts.reverse();
            }
            for front in fronts {
                let what = format!("{}: {}, {}", case.name(), front.path().arm, round + 1);
                bench.step(&what);
                let workload = plan.workload(case);
                observations.push(bench.once(&what, |bench| {
                    measure(bench, &systems, front, round, case, &workload)
                })?);
            }
            systems.check()?;
        }
    }
    systems.stop()?;
    let load = plan.load;
    let sizing = SizingRecord { load, reference: cases::REFERENCE.name(), observations };
    for check in judged(&sizing, plan) {
        bench.note(check);
    }
    let mut result = bench.finish(Experiment::Cores, arms, checks::of_costs)?;
    result.comparisons = Vec::new();
    for run in &mut result.runs {
        forget_latencies(run);
    }
    result.sizing = Some(sizing);
    Ok(result)
}

/// Keeps a document of hundreds of runs small, and unusable latencies out of it.
fn forget_latencies(run: &mut RunRecord) {
    run.latency = None;
    run.series = Vec::new();
}

/// The processor time of a front through which nothing passes.
fn watch_idle(front: &RunningFront, round: u32, window: Duration) -> Result<Observation, Error> {
    let meter = CpuMeter::start(&front.path().processes)?;
    thread::sleep(window);
    let (usage, _) = meter.stop()?;
    let window_ns = nanos(window);
    Ok(Observation {
        case: IDLE.into(),
        arm: front.path().arm.clone(),
        round,
        window_ns,
        counted_ns: window_ns,
        cpu_ns: cpu_of_front(&usage),
        ..Observation::default()
    })
}

/// One run of a case through a front, audited.
fn measure(
    bench: &mut Bench<'_>,
    systems: &Systems,
    front: &RunningFront,
    round: u32,
    case: &CasePlan,
    workload: &Workload,
) -> Result<Observation, Error> {
    let (path, name) = (front.path(), case.name());
    let setup = Setup { layout: case.layout(), ..bench.setup(path, round, workload) };
    path.control.create_topic(&setup.topic, workload.partitions)?;
    let mut readings = Vec::new();
    let measured = generator::produce_watched(&setup, &mut || {
        readings.push(Requests::of_broker(systems.admin));
    })?;
    let between = Requests::between(&readings)?;
    let read_back;
    let delivered = match &measured.delivered {
        Some(delivered) => delivered,
        None => {
            let workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..workload.clone() };
            let setup = Setup { workload, ..setup.clone() };
            read_back = generator::read_back(&setup, &measured.sent)?;
            read_back.delivered.as_ref().expect("a reading delivers")
        }
    };
    let audit = audit(&measured.sent, delivered);
    let held = path.control.records_held(&setup.topic, workload.partitions)?;
    bench.record(Named { case: &name, path, pair: round }, workload, &measured, audit, held)?;
    path.control.delete_topic(&setup.topic)?;
    Ok(observation(&name, front, round, case, &measured, between))
}

fn observation(
    name: &str,
    front: &RunningFront,
    round: u32,
    case: &CasePlan,
    measured: &Measured,
    between: Requests,
) -> Observation {
    let bytes = |records: u64| records.saturating_mul(case.record_bytes as u64);
    Observation {
        case: name.into(),
        arm: front.path().arm.clone(),
        round,
        partitions: case.partitions,
        groups: case.groups,
        window_ns: measured.window_ns,
        cpu_ns: cpu_of_front(&measured.processes),
        counted_ns: between.at_ns,
        produce_requests: between.produce,
        fetch_requests: between.fetch,
        produced_batches: measured.produced_batches,
        consumed_batches: measured.consumed_batches,
        produced_records: measured.produced_records,
        consumed_records: measured.consumed_records,
        produced_bytes: bytes(measured.produced_records),
        consumed_bytes: bytes(measured.consumed_records),
    }
}

fn cpu_of_front(usage: &[moldau_measure::cpu::ProcessUsage]) -> u64 {
    usage.iter().filter(|usage| usage.role == FRONT_ROLE).map(|usage| usage.cpu_ns).sum()
}

/// The broker's counters of requests, which are independent of clients and proxies.
#[derive(Clone, Copy, Debug)]
struct Requests {
    /// When they were read, ns since some moment; between two readings, the time between them.
    at_ns: u64,
    produce: u64,
    fetch: u64,
}

impl Requests {
    fn of_broker(admin: SocketAddr) -> Option<(Instant, Self)> {
        let page = http_get(admin, "/metrics")?;
        // A request that never came has no line.
        let of = |api: &str| gauge(&page, &format!("requests_total{{api=\"{api}\"}}")).unwrap_or(0);
        Some((Instant::now(), Self { at_ns: 0, produce: of("Produce"), fetch: of("Fetch") }))
    }

    /// What was counted between the two readings of a run.
    fn between(readings: &[Option<(Instant, Self)>]) -> Result<Self, Error> {
        let [Some((opened, first)), Some((closed, last))] = readings else {
            return Err(Error::Target {
                action: "reading the broker's counters".into(),
                reason: "no answer in time".into(),
            });
        };
        Ok(Self {
            at_ns: nanos(closed.saturating_duration_since(*opened)),
            produce: last.produce.saturating_sub(first.produce),
            fetch: last.fetch.saturating_sub(first.fetch),
        })
    }
}

/// What the experiment checks about its own figures.
fn judged(sizing: &SizingRecord, plan: &Plan) -> Vec<Check> {
    let mut checks = vec![everything_is_delivered(&sizing.observations)];
    for front in &plan.fronts {
        let observations = sizing.of_arm(front.name());
        if let Some(fit) = Fit::of(&observations, &sizing.reference, plan.conditions.seed) {
            let (median, most) = errors(fit.held_out.iter().map(HeldOut::error));
            checks.push(Check {
                name: format!("{front}: error of the model on held-out cases, median"),
                passed: median <= ERROR_MAX,
                weight: Weight::Note,
                found: format!("{:.1} %, at most {:.1} %", median * 100.0, most * 100.0),
                demanded: format!("<= {:.0} %", ERROR_MAX * 100.0),
            });
        }
    }
    checks
}

/// Consumers that fall behind read old data later, which is another load than the one intended.
fn everything_is_delivered(observations: &[Observation]) -> Check {
    let miss = |run: &&Observation| {
        let due = float(run.produced_records) * f64::from(run.groups);
        if due > 0.0 { (float(run.consumed_records) / due - 1.0).abs() } else { 0.0 }
    };
    let worst = observations.iter().map(|run| miss(&run)).fold(0.0, f64::max);
    Check {
        name: "consumers keep up: delivered in the window against produced, worst run".into(),
        passed: worst <= DELIVERED_MISS_MAX,
        weight: Weight::Validity,
        found: format!("{:.1} % apart", worst * 100.0),
        demanded: format!("<= {:.0} %", DELIVERED_MISS_MAX * 100.0),
    }
}

/// Broker and fronts, which run through the whole experiment.
struct Systems {
    /// Ended before the broker.
    fronts: Vec<RunningFront>,
    broker: Process,
    admin: SocketAddr,
}

impl Systems {
    fn start(plan: &Plan) -> Result<Self, Error> {
        let directory = &plan.conditions.work_directory;
        let [listen, admin] = free_addresses()?;
        let data = directory.join("data");
        let spec = moldau_broker(&plan.moldau, &data, listen, admin, Durability::Fsync);
        let broker = Process::start(&spec, directory)?;
        let fronts = FrontPlan {
            moldau: plan.moldau.clone(),
            kroxylicious: None,
            work_directory: directory.clone(),
            files: FrontFiles::make(&directory.join("files"), plan.conditions.seed)?,
            upstream: listen,
            upstream_tls: None,
            node: 0,
            broker: (broker.role().to_string(), broker.pid()),
            broker_admin: broker.admin_port(),
            seed: plan.conditions.seed,
        };
        let fronts =
            plan.fronts.iter().map(|front| front.start(&fronts)).collect::<Result<_, _>>()?;
        Ok(Self { fronts, broker, admin })
    }

    fn check(&mut self) -> Result<(), Error> {
        self.broker.check_alive()?;
        self.fronts.iter_mut().try_for_each(RunningFront::check)
    }

    fn stop(self) -> Result<(), Error> {
        self.fronts.into_iter().try_for_each(RunningFront::stop)?;
        self.broker.stop()?;
        Ok(())
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let load = Load {
            produce_bytes_per_second: 1e6,
            record_bytes: 100,
            batch_bytes: 1_000,
            groups: 1,
            partitions: 1,
            batches_per_request: None,
            batches_per_fetch: None,
        };
        Plan::usual("moldau".into(), Conditions::of_tests(), load)
    }

    #[test]
    fn impossible_plans_are_refused() {
        assert!(plan().check().is_ok());
        let load = Load { partitions: 0, ..plan().load };
        for broken in [
            Plan { fronts: Vec::new(), ..plan() },
            Plan { fronts: vec![Front::DIRECT], ..plan() },
            Plan { fronts: vec![Front::KROXYLICIOUS], ..plan() },
            Plan { fronts: vec![Front::RELAY, Front::RELAY], ..plan() },
            Plan { cases: Vec::new(), ..plan() },
            Plan { rounds: 0, ..plan() },
            Plan { window_ms: 0, ..plan() },
            Plan { load, ..plan() },
        ] {
            assert!(matches!(broken.check(), Err(Error::Plan(_))), "{broken:?}");
        }
    }

    #[test]
    fn requests_are_counted_between_two_readings() {
        let at = Instant::now();
        let reading = |after_ms, produce, fetch| {
            Some((at + Duration::from_millis(after_ms), Requests { at_ns: 0, produce, fetch }))
        };
        let between = Requests::between(&[reading(0, 5, 7), reading(2_000, 25, 7)]).unwrap();
        assert_eq!((between.at_ns, between.produce, between.fetch), (2_000_000_000, 20, 0));
        assert!(Requests::between(&[reading(0, 5, 7), None]).is_err());
        assert!(Requests::between(&[]).is_err());
    }

    #[test]
    fn consumers_that_fall_behind_make_the_figures_worthless() {
        let run = |consumed_records| Observation {
            groups: 2,
            produced_records: 1_000,
            consumed_records,
            ..Observation::default()
        };
        assert!(everything_is_delivered(&[run(1_960), Observation::default()]).passed);
        let behind = everything_is_delivered(&[run(2_000), run(1_200)]);
        assert!(!behind.passed && behind.weight == Weight::Validity, "{behind:?}");
    }
}
