//! What does another topic cost a consumer, and what do threads give? Experiment files with the key
//! `threads`: a backlog of each topic is written and audited once, then read from start to end by
//! every number of threads, for every number of topics, once a round.

mod clients;
mod page;
mod reading;

use std::time::Duration;

use serde::Deserialize;

use super::bench::{Bench, Named};
use super::running::{Running, absence, arms, machine_is_quiet, split};
use super::{Conditions, Progress, rounds};
use crate::checks;
use crate::punctuality::taken_share_of;
use crate::result::{Experiment, RunResult};
use crate::survey::Source;
use crate::systems::{Installations, SystemFile};
use crate::threads::{Reading, ThreadsClaim, ThreadsRecord};
use moldau_load::generator;
use moldau_load::ledger::audit;
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use reading::Backlog;

pub use clients::{CaseFile, ClientFile};
pub use page::page;

/// Most records of a topic: all are due at once, and more would be shed.
const RECORDS_MAX: u32 = 1_000_000;

/// Longest work of a record: with more, a reading takes minutes.
const WORK_US_MAX: u64 = 1_000_000;

/// Most topics and threads: a machine runs only so many at once.
const PLACES_MAX: u16 = 64;

/// Most systems: each runs all the while.
const SYSTEMS_MAX: usize = 8;

/// Share of the records that the short form has.
const QUICK_SHARE: u32 = 4;

/// A place is read again and again until this has passed: connections, whose start is in a reading,
/// and ticks of the machine, which are 10 ms, have to be small beside it.
const READING_NS_MIN: u64 = 300_000_000;

/// Name of the case of writing.
pub(crate) const WRITING: &str = "Writing the backlog";

/// An experiment about threads, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadsFile {
    /// The question.
    pub question: String,
    /// What is expected and why.
    pub hypothesis: String,
    /// Where the claims were published.
    pub source: Option<Source>,
    /// Names of system files.
    pub systems: Vec<String>,
    /// Rounds; each reads every place of the grid once on every system.
    pub rounds: u32,
    /// What is read.
    pub threads: GridFile,
    /// What was published.
    #[serde(default)]
    pub claims: Vec<ThreadsClaim>,
    /// What else is to be said of the source, a sentence each.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Client libraries that are compared; the others with the first.
    #[serde(default)]
    pub clients: Vec<ClientFile>,
    /// What they read.
    #[serde(default)]
    pub cases: Vec<CaseFile>,
}

/// Topics by threads.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridFile {
    /// Numbers of topics, rising.
    pub topics: Vec<u16>,
    /// Numbers of threads, rising.
    pub counts: Vec<u16>,
    /// Records of each topic.
    pub records: u32,
    /// Size of a record's value.
    pub record_bytes: usize,
    /// Partitions of each topic.
    pub partitions: u16,
    /// How long each record holds its thread without taking its processor, us: as a call to a
    /// database does.
    #[serde(default)]
    pub work_us: u64,
}

/// Everything that a run needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file.
    pub file: ThreadsFile,
    /// Its systems, in its order.
    pub systems: Vec<SystemFile>,
    /// What is there to start them from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
}

impl ThreadsFile {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::RecordTooSmall`].
    pub fn check(&self) -> Result<(), Error> {
        let grid = &self.threads;
        let refuse = |text: String| Err(Error::Plan(text));
        if !(1..=SYSTEMS_MAX).contains(&self.systems.len()) {
            return refuse(format!("systems: 1 to {SYSTEMS_MAX} of them"));
        }
        rounds::check(self.rounds)?;
        for (key, numbers) in [("topics", &grid.topics), ("counts", &grid.counts)] {
            let is_rising = numbers.windows(2).all(|pair| pair[0] < pair[1]);
            let in_range = numbers.iter().all(|number| (1..=PLACES_MAX).contains(number));
            if numbers.is_empty() || !is_rising || !in_range {
                return refuse(format!("threads.{key}: rising numbers from 1 to {PLACES_MAX}"));
            }
        }
        if !(QUICK_SHARE..=RECORDS_MAX).contains(&grid.records) {
            return refuse(format!("threads.records: {QUICK_SHARE} to {RECORDS_MAX}"));
        }
        if grid.work_us > WORK_US_MAX {
            return refuse(format!("threads.work_us: at most {WORK_US_MAX}"));
        }
        for claim in &self.claims {
            let is_in =
                |number: Option<u16>, all: &[u16]| number.is_none_or(|it| all.contains(&it));
            if !is_in(claim.topics, &grid.topics) || !is_in(claim.threads, &grid.counts) {
                let says = &claim.says;
                return refuse(format!("claim {says:?}: topics or threads are not in the grid"));
            }
        }
        clients::check(&self.clients, &self.cases)?;
        self.written().check()
    }

    /// Describes the load of one topic: as fast as the system acknowledges.
    fn written(&self) -> Workload {
        let GridFile { record_bytes, partitions, work_us, .. } = self.threads;
        Workload {
            pace: Pace::Unpaced,
            record_bytes,
            filler: Filler::Text,
            partitions,
            producers: 1,
            // What holds a thread for long is dealt out record by record, or few threads have most.
            batch_bytes: if work_us > 0 { record_bytes } else { BATCH_BYTES },
            linger_us: LINGER_US,
            consume: false,
            tails: 0,
            warmup_ms: 0,
            window_ms: BURST_MS,
            tuning: Tuning::default(),
        }
    }

    /// The same as it is done: so many records that are all due at once, and none after them.
    fn burst(&self, records: u32) -> Workload {
        let arrivals = Arrivals::Bursts { size: records };
        let pace = Pace::Scheduled { per_second: records.into(), arrivals };
        Workload { pace, ..self.written() }
    }
}

/// Batches of the backlog, and how long one may wait for more: as a busy producer makes them.
const BATCH_BYTES: usize = 16 * 1024;
const LINGER_US: u64 = 10_000;

/// A burst of `n` at `n` a second is followed by the next after this time, ms, and ends before.
const BURST_MS: u64 = 1_000;

impl Plan {
    fn rounds(&self) -> u32 {
        rounds::of_file(self.file.rounds, self.conditions.quick)
    }

    fn records(&self) -> u32 {
        let records = self.file.threads.records;
        if self.conditions.quick { records / QUICK_SHARE } else { records }
    }

    /// The places of the grid, topics changing last.
    fn places(&self) -> Vec<(u16, u16)> {
        let GridFile { topics, counts, .. } = &self.file.threads;
        topics.iter().flat_map(|topics| counts.iter().map(move |count| (*topics, *count))).collect()
    }

    fn most_topics(&self) -> u16 {
        self.file.threads.topics.last().copied().unwrap_or(0)
    }
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] where no system is there, [`Error::Target`] when a record is missing, otherwise
/// as [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    let file = &plan.file;
    file.check()?;
    let (there, mut left_out) = split(&file.systems, &plan.systems, &plan.installations)?;
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let places = plan.places();
    let (clients, absent) = clients::split(plan);
    left_out.extend(absent);
    let of_clients = count(clients::steps(plan, clients.len(), there.len()));
    let of_each = 1 + u32::from(plan.most_topics()) + (1 + plan.rounds()) * count(places.len());
    let mut bench =
        Bench::new(&plan.conditions, count(there.len()) * of_each + of_clients, progress);
    let mut systems = Vec::new();
    for (name, system) in &there {
        bench.step(&format!("Start {name}"));
        let running = Running::start(&plan.conditions, &plan.installations, name, system)?;
        let backlogs = write(plan, &mut bench, &running)?;
        systems.push((running, backlogs));
    }
    let work = Duration::from_micros(file.threads.work_us);
    // A round before the first pays for what is done but once, as a JVM's compiling.
    read_round(&mut bench, &mut systems, &places, work, None)?;
    let mut readings = Vec::new();
    for round in 0..plan.rounds() {
        readings.extend(read_round(&mut bench, &mut systems, &places, work, Some(round))?);
    }
    let (mut runnings, backlogs): (Vec<Running>, Vec<Vec<Backlog>>) = systems.into_iter().unzip();
    let compared = clients::read_all(plan, &mut bench, &clients, &mut runnings)?;
    for (running, backlogs) in runnings.into_iter().zip(backlogs) {
        // A cluster that runs already would keep them.
        let topics: Vec<String> = backlogs.into_iter().map(|backlog| backlog.topic).collect();
        running.path.control.delete_topics(&topics)?;
        running.stop()?;
    }
    let shares = foreign_shares(&readings, &there);
    for check in left_out.iter().map(absence).chain([machine_is_quiet(&shares)]) {
        bench.note(check);
    }
    let record = ThreadsRecord {
        question: file.question.trim().into(),
        hypothesis: file.hypothesis.trim().into(),
        source: file.source.clone(),
        topics: file.threads.topics.clone(),
        threads: file.threads.counts.clone(),
        records: plan.records(),
        record_bytes: file.threads.record_bytes,
        partitions: file.threads.partitions,
        work_us: file.threads.work_us,
        readings,
        clients: compared,
        claims: file.claims.clone(),
        remarks: file.remarks.clone(),
        left_out,
    };
    bench.finish(Experiment::Threads(record), arms(&there), checks::all)
}

/// Writes every topic and reads it back for the audit.
fn write(plan: &Plan, bench: &mut Bench<'_>, running: &Running) -> Result<Vec<Backlog>, Error> {
    let path = &running.path;
    let records = plan.records();
    let mut backlogs = Vec::new();
    for index in 0..plan.most_topics() {
        // What held the backlog of an earlier sitting is gone; what became of its records counts.
        let mut pair = u32::from(index);
        while bench.recall(WRITING, &path.arm, pair) {
            bench.expect_steps(1);
            pair += u32::from(plan.most_topics());
        }
        bench.step(&format!("{WRITING}: {}, topic {}", path.arm, index + 1));
        let known = bench.runs().len();
        let mut setup = bench.setup(path, index.into(), &plan.file.burst(records));
        let partitions = setup.workload.partitions;
        path.control.create_topic(&setup.topic, partitions)?;
        let mut produced = generator::produce(&setup)?;
        let told = plan.file.written();
        setup.workload = Workload { pace: Pace::ReadBack, ..told.clone() };
        let read = generator::read_back(&setup, &produced.sent)?;
        produced.stored_bytes = read.stored_bytes;
        let delivered = read.delivered.as_ref().expect("a reading delivers");
        let audit = audit(&produced.sent, delivered);
        let ends = path.control.ends(&setup.topic, partitions)?;
        let held = ends.iter().sum();
        bench.record(Named { case: WRITING, path, pair }, &told, &produced, audit, held)?;
        bench.keep(WRITING, &path.arm, pair, known)?;
        if held != u64::from(records) {
            let reason = format!("{held} records of {records} are there");
            return Err(Error::Target { action: "writing a backlog".into(), reason });
        }
        backlogs.push(Backlog { topic: setup.topic, ends });
    }
    Ok(backlogs)
}

/// Every place of the grid on every system, forwards in even rounds and backwards in odd ones;
/// without a round, to warm up.
fn read_round(
    bench: &mut Bench<'_>,
    systems: &mut [(Running, Vec<Backlog>)],
    places: &[(u16, u16)],
    work: Duration,
    round: Option<u32>,
) -> Result<Vec<Reading>, Error> {
    let name = round.map_or("warm-up".into(), |round| format!("{}", round + 1));
    // Every sitting warms up anew.
    let is_kept = round.is_some();
    let round = round.unwrap_or(0);
    let all = places.iter().flat_map(|place| (0..systems.len()).map(move |at| (*place, at)));
    let mut order: Vec<((u16, u16), usize)> = all.collect();
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    let mut readings = Vec::new();
    for ((topics, threads), at) in order {
        let Some((running, backlogs)) = systems.get_mut(at) else { continue };
        let arm = running.path.arm.clone();
        let what = format!("{arm}: {topics} topics, {threads} threads, {name}");
        bench.step(&what);
        let chosen = backlogs.get(..usize::from(topics)).unwrap_or_default();
        let read = |_: &mut Bench<'_>| {
            let mut reading = reading::read(&running.path, chosen, threads, work)?;
            while reading.wall_ns < READING_NS_MIN {
                reading = reading.plus(reading::read(&running.path, chosen, threads, work)?);
            }
            Ok(Reading { arm, round, topics, ..reading })
        };
        readings.push(bench.once_if(&what, |_| is_kept, read)?);
        running.system.check_alive()?;
    }
    Ok(readings)
}

/// The share of the machine that other processes used in each reading. Only systems with known
/// processes have one: work of unknown processes would count as foreign.
fn foreign_shares(readings: &[Reading], systems: &[(&str, &SystemFile)]) -> Vec<f64> {
    let is_known = |it: &&Reading| {
        systems.iter().any(|(name, file)| *name == it.arm && !file.processes.is_empty())
    };
    let share = |it: &Reading| taken_share_of(it.host, it.consumer_cpu_ns + it.system_cpu_ns);
    readings.iter().filter(is_known).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use moldau_measure::cpu::HostUsage;

    fn file() -> ThreadsFile {
        serde_json::from_str(
            r#"{"question": "q", "hypothesis": "h", "systems": ["moldau"], "rounds": 5,
                "threads": {"topics": [1, 2], "counts": [1, 3], "records": 1000,
                            "record_bytes": 100, "partitions": 6},
                "claims": [{"says": "s", "at": "a", "figure": "share_of_alone", "topics": 2,
                            "threads": 1, "published": 0.24, "holds": {"at_most": 0.3}}]}"#,
        )
        .unwrap()
    }

    fn refused(change: impl FnOnce(&mut ThreadsFile)) -> String {
        let mut file = file();
        change(&mut file);
        file.check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        file().check().unwrap();
        assert!(refused(|file| file.threads.topics = vec![2, 1]).contains("threads.topics"));
        assert!(refused(|file| file.threads.counts.clear()).contains("threads.counts"));
        assert!(refused(|file| file.threads.records = 2_000_000).contains("threads.records"));
        assert!(refused(|file| file.claims[0].topics = Some(3)).contains("not in the grid"));
        assert!(refused(|file| file.threads.record_bytes = 8).contains("record"));
        assert!(refused(|file| file.threads.work_us = 2_000_000).contains("threads.work_us"));
        assert!(refused(|file| file.rounds = 0).contains("rounds"));
    }

    /// A broker that ran already made the machine look busy, and the result worthless.
    #[test]
    fn a_cluster_that_runs_already_is_no_foreign_work() {
        let of = |text: &str| serde_json::from_str::<SystemFile>(text).unwrap();
        let external = of(r#"{"description": "d", "bootstrap": "${external}"}"#);
        let own = of(r#"{"description": "d", "bootstrap": "${address.a}", "processes": [
                {"name": "a", "role": "broker", "command": ["a"], "ready": {"tcp": "b"}}]}"#);
        let systems = [("own", &own), ("external", &external)];
        let host = HostUsage { busy_ticks: 90, idle_ticks: 10, ..HostUsage::default() };
        let reading = |arm: &str, system_cpu_ns| Reading {
            arm: arm.into(),
            consumer_cpu_ns: 100_000_000,
            system_cpu_ns,
            host,
            ..Reading::default()
        };
        let readings = [reading("external", 0), reading("own", 200_000_000)];
        // 600 of the 1,000 ms were neither the consumers' nor the system's.
        let shares = foreign_shares(&readings, &systems);
        assert!(shares.len() == 1 && (shares[0] - 0.6).abs() < 1e-9, "{shares:?}");
        assert!(!machine_is_quiet(&shares).passed);
        let unknown = machine_is_quiet(&foreign_shares(&readings[..1], &systems));
        assert!(unknown.passed && unknown.found.starts_with("not known"), "{unknown:?}");
    }

    #[test]
    fn a_burst_has_exactly_its_records() {
        let workload = file().burst(1_000);
        let Pace::Scheduled { per_second, arrivals } = workload.pace else { panic!() };
        let end_ns = workload.window_ms * 1_000_000;
        let slice = moldau_load::schedule::Slice::new(arrivals, per_second, 0, 1, end_ns);
        assert!(slice.peek() == Some(0) && slice.count() == 1_000);
    }
}
