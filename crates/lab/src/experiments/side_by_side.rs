//! Whole systems against each other: throughput at several shapes, latency at a fixed rate.
//!
//! All systems run through the whole experiment, and the rounds of a case go through them in
//! alternating order. Each is warmed up first, since a JVM compiles what it runs often.

mod page;

use std::path::PathBuf;

use super::bench::Case;
use super::bench::{Bench, Path};
use super::rounds::{self, Subject};
use super::{Conditions, Progress};
use crate::checks;
use crate::result::{Arm, Experiment, RunResult};
use crate::systems::{
    Durability, KafkaInstallation, Process, free_addresses, kafka_broker, moldau_broker_configured,
    prepare_kafka,
};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::profile::Profiler;

pub use page::page;

/// One of the systems that are compared.
#[derive(Clone, Debug)]
pub enum System {
    /// Our broker.
    Moldau {
        /// The executable.
        program: PathBuf,
        /// When it acknowledges.
        durability: Durability,
    },
    /// Apache Kafka, started by the experiment.
    Kafka(KafkaInstallation),
    /// A cluster that runs already; its processor time is not known.
    External {
        /// What to call it.
        name: String,
        /// Where to connect.
        bootstrap: String,
    },
}

impl System {
    /// Name of its arm.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Moldau { .. } => "moldau",
            Self::Kafka(_) => "kafka",
            Self::External { name, .. } => name,
        }
    }

    /// Its arm.
    #[must_use]
    pub(super) fn arm(&self) -> Arm {
        let description = match self {
            Self::Moldau { durability: Durability::Fsync, .. } => {
                "moldau broker, acknowledging after the flush to the disk".to_string()
            }
            Self::Moldau { durability: Durability::Os, .. } => {
                "moldau broker, acknowledging once the operating system has it".to_string()
            }
            Self::Kafka(_) => {
                "Apache Kafka, one KRaft node, default settings, 1 GiB heap, newest data in \
                 the page cache; it does not flush before it acknowledges"
                    .to_string()
            }
            Self::External { .. } => "an existing cluster".to_string(),
        };
        Arm::of(self.name(), description)
    }
}

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The systems. The first is the baseline of differences.
    pub systems: Vec<System>,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// Warming up of each system at full speed, ms.
    pub warmup_ms: u64,
    /// What is produced at full speed.
    pub full_speed: Vec<Workload>,
    /// What is produced at a rate that all keep up with, and read back at full speed.
    pub catch_up: Vec<Workload>,
    /// What is produced and consumed at a fixed rate.
    pub fixed_rate: Vec<Workload>,
    /// Rounds of each case.
    pub rounds: u32,
    /// What takes a profile of each case and system in the end, if it is wanted.
    pub profiler: Option<Profiler>,
}

/// The broker keeps what is caught up with in memory, as the page cache does for Kafka, MiB.
const TAIL_CACHE_MIB: u32 = 640;

/// Bytes per second of what is caught up with: all keep up with it, so that all read as much back,
/// and six seconds of it, with what surrounds records, stay below [`TAIL_CACHE_MIB`].
const BACKLOG_BYTES_PER_SECOND: u64 = 64 << 20;

/// Records per second of 50 MB/s of 1 KB records, the rate at which latencies are compared.
const RATE: u64 = 50 * 1024;

impl Plan {
    /// The usual shapes: 1 KB and 100 B records, 1 and 10 partitions, and 50 MB/s.
    #[must_use]
    pub fn usual(systems: Vec<System>, conditions: Conditions) -> Self {
        let quick = conditions.quick;
        let (window_ms, warmup_ms) = if quick { (3_000, 500) } else { (8_000, 2_000) };
        let shape = |record_bytes, partitions| Workload {
            pace: Pace::Unpaced,
            record_bytes,
            filler: Filler::Text,
            partitions,
            producers: 1,
            batch_bytes: 128 * 1024,
            linger_us: 5_000,
            consume: false,
            tails: 0,
            warmup_ms,
            window_ms,
            tuning: Tuning::default(),
        };
        let backlog = |record_bytes: usize, partitions| {
            let per_second = BACKLOG_BYTES_PER_SECOND / record_bytes as u64;
            Workload {
                pace: Pace::Scheduled { per_second, arrivals: Arrivals::Constant },
                warmup_ms: 0,
                window_ms: 6_000,
                ..shape(record_bytes, partitions)
            }
        };
        let fixed = Workload {
            pace: Pace::Scheduled { per_second: RATE, arrivals: Arrivals::Constant },
            batch_bytes: 16 * 1024,
            linger_us: 1_000,
            consume: true,
            ..shape(1024, 10)
        };
        Self {
            systems,
            conditions,
            warmup_ms: if quick { 4_000 } else { 15_000 },
            full_speed: vec![shape(1024, 1), shape(1024, 10), shape(100, 1), shape(100, 10)],
            catch_up: vec![backlog(1024, 1), backlog(1024, 10), backlog(100, 10)],
            fixed_rate: vec![fixed],
            rounds: if quick { 3 } else { 6 },
            profiler: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.systems.is_empty() || self.rounds == 0 {
            return Err(Error::Plan("at least one system and one round".into()));
        }
        let mut workloads = self.full_speed.iter().chain(&self.catch_up).chain(&self.fixed_rate);
        workloads.try_for_each(Workload::check)
    }

    fn cases(&self) -> impl Iterator<Item = Case> {
        let full_speed = self.full_speed.iter().map(|workload| {
            let shape = shape_name(workload);
            Case { name: format!("Produce {shape}"), workload: workload.clone(), reading: None }
        });
        let catch_up = self.catch_up.iter().map(|workload| {
            let shape = shape_name(workload);
            Case {
                name: format!("Backlog of {shape}"),
                workload: workload.clone(),
                reading: Some(format!("Catch up {shape}")),
            }
        });
        let fixed_rate = self.fixed_rate.iter().map(|workload| Case {
            name: format!("Fixed rate, {}", shape_name(workload)),
            workload: workload.clone(),
            reading: None,
        });
        full_speed.chain(catch_up).chain(fixed_rate)
    }

    fn steps(&self) -> u32 {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let cases = count(self.full_speed.len() + self.catch_up.len() + self.fixed_rate.len());
        count(self.systems.len()) * (2 + cases * self.rounds)
    }
}

/// Runs the experiment.
///
/// # Errors
/// As [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.steps(), progress);
    let mut running = Vec::new();
    for system in &plan.systems {
        bench.step(&format!("Start {}", system.name()));
        running.push(Running::start(system, &plan.conditions)?);
    }
    if let Some(shape) = plan.full_speed.first().or(plan.fixed_rate.first()) {
        let workload = Workload { warmup_ms: 0, window_ms: plan.warmup_ms, ..shape.clone() };
        for system in &running {
            bench.warm_up(&system.path, &workload)?;
        }
    }
    for case in plan.cases() {
        rounds::run(&mut bench, &mut running, &case, plan.rounds)?;
    }
    for case in plan.cases() {
        let paths = running.iter().map(Subject::path);
        bench.profile(plan.profiler.as_ref(), paths, &case)?;
    }
    for system in running {
        system.stop()?;
    }
    let arms = plan.systems.iter().map(arm).collect();
    bench.finish(Experiment::SideBySide, arms, checks::of_arms)
}

fn shape_name(workload: &Workload) -> String {
    let size = match workload.record_bytes {
        1024 => "1 KB".to_string(),
        bytes => format!("{bytes} B"),
    };
    let partitions = if workload.partitions == 1 { "partition" } else { "partitions" };
    format!("{size} records, {} {partitions}", workload.partitions)
}

/// The arm of a system, as it is started here.
fn arm(system: &System) -> Arm {
    let mut arm = system.arm();
    if matches!(system, System::Moldau { .. }) {
        arm.description += &format!(", with {TAIL_CACHE_MIB} MiB of the newest data in memory");
    }
    arm
}

/// A system that the laboratory started, or a cluster that ran already.
pub(super) struct Running {
    path: Path,
    process: Option<Process>,
}

impl Running {
    pub(super) fn start(system: &System, conditions: &Conditions) -> Result<Self, Error> {
        let directory = conditions.directory(system.name())?;
        let [listen, other] = free_addresses()?;
        let (bootstrap, process) = match system {
            System::Moldau { program, durability } => {
                let lines =
                    format!("listeners: PLAINTEXT://{listen}\ntail_cache_mib: {TAIL_CACHE_MIB}\n");
                let spec =
                    moldau_broker_configured(program, &directory, other, *durability, &lines)?;
                (listen.to_string(), Some(Process::start(&spec, &directory)?))
            }
            System::Kafka(installation) => {
                prepare_kafka(installation, &directory, listen, other)?;
                let spec = kafka_broker(installation, &directory, listen)?;
                (listen.to_string(), Some(Process::start(&spec, &directory)?))
            }
            System::External { bootstrap, .. } => (bootstrap.clone(), None),
        };
        let processes = process.iter().map(|p| (p.role().to_string(), p.pid())).collect();
        let admin_ports = process.as_ref().and_then(Process::admin_port).into_iter().collect();
        let path = Path { admin_ports, ..Path::to(system.name(), bootstrap, processes)? };
        Ok(Self { path, process })
    }

    pub(super) fn stop(self) -> Result<(), Error> {
        if let Some(process) = self.process {
            process.stop()?;
        }
        Ok(())
    }
}

impl Subject for Running {
    fn path(&self) -> &Path {
        &self.path
    }

    fn check(&mut self) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), Process::check_alive)
    }
}
