//! Runs of one load on one system, without and with changes.

use std::path::PathBuf;

use crate::experiments::bench::{self, Bench, Named, Path};
use crate::experiments::hogs::hogs;
use crate::explain::{self, About, Change, Explanation, Finding, Outcome, Trial};
use crate::systems::{Installations, Process, RunningSystem, SystemFile, http_get};
use moldau_load::generator::{self, Setup};
use moldau_load::ledger::{Audit, audit};
use moldau_load::run::RunRecord;
use moldau_load::workload::{BUFFER_BYTES_USUAL, Pace, Workload};
use moldau_measure::Error;
use moldau_measure::resources::gauge;
use moldau_measure::statistics::{float, median};

/// Runs at most before those of a system that was started for a change: what a JVM compiles, it has
/// compiled by then.
const WARM_UPS_MAX: usize = 4;

/// How many times what fills its window a producer keeps.
const WINDOWS_KEPT: usize = 4;

/// What it keeps at least, so that its thread need not look too often.
const KEPT_BYTES_MIN: u32 = 1 << 20;

/// The case of all runs.
const CASE: &str = "The load";

/// What is investigated.
#[derive(Clone, Debug)]
pub(in crate::experiments) struct Subject {
    pub(in crate::experiments) name: String,
    pub(in crate::experiments) file: SystemFile,
    pub(in crate::experiments) installations: Installations,
    /// Of its own; made here.
    pub(in crate::experiments) directory: PathBuf,
    pub(in crate::experiments) workload: Workload,
    /// What is explained; by the first run if left out.
    pub(in crate::experiments) about: Option<About>,
    /// Pairs of runs that test a finding.
    pub(in crate::experiments) pairs: u32,
}

/// Steps of an investigation whose first finding is confirmed.
pub(in crate::experiments) fn steps(subject: &Subject) -> u32 {
    1 + 2 * subject.pairs
}

/// A system that runs, and how to reach it.
struct Running {
    system: RunningSystem,
    path: Path,
}

/// A running investigation.
pub(in crate::experiments) struct Investigation<'a, 'b> {
    bench: &'a mut Bench<'b>,
    subject: &'a Subject,
    base: Running,
    runs: Vec<RunRecord>,
    /// Names of the arms with changes.
    changes: Vec<String>,
}

impl<'a, 'b> Investigation<'a, 'b> {
    /// Starts the system.
    pub(in crate::experiments) fn begin(
        bench: &'a mut Bench<'b>,
        subject: &'a Subject,
    ) -> Result<Self, Error> {
        let base = Running::start(subject, &subject.file, "base")?;
        Ok(Self { bench, subject, base, runs: Vec::new(), changes: Vec::new() })
    }

    /// Measures one run and tests its possible limits.
    pub(in crate::experiments) fn explain(&mut self) -> Result<Explanation, Error> {
        let workload = self.subject.workload.clone();
        // What a JVM compiles, what a client learns of the cluster: the first run pays for that.
        self.run(None, &workload, 0)?;
        self.runs.clear();
        let before = self.base.flushes();
        let first = self.run(None, &workload, 0)?;
        let flush_ms = self.base.flushes().zip(before).map(|(now, then)| now.mean_ms_since(then));
        let about = self.subject.about.unwrap_or_else(|| explain::usual(&first));
        let figure = explain::figure(&first, about);
        let mut trials: Vec<Trial> = Vec::new();
        for finding in explain::of(&first, about, flush_ms) {
            let trial = self.test(finding, about)?;
            let is_confirmed = matches!(trial.outcome, Outcome::Confirmed(_));
            trials.push(trial);
            if is_confirmed {
                break;
            }
        }
        let of_base = self.runs.iter().filter(|run| run.arm == self.subject.name);
        let figures: Vec<f64> = of_base.filter_map(|run| explain::figure(run, about)).collect();
        let figure = if figures.is_empty() { figure.unwrap_or(0.0) } else { median(&figures) };
        Ok(Explanation { about, figure, trials })
    }

    /// Ends the system; gives the runs and the names of the arms with changes.
    pub(in crate::experiments) fn end(self) -> Result<(Vec<RunRecord>, Vec<String>), Error> {
        self.base.stop()?;
        Ok((self.runs, self.changes))
    }

    /// Tests a finding by pairs of runs, without the change first in every other; by twice as many
    /// where they do not decide.
    fn test(&mut self, finding: Finding, about: About) -> Result<Trial, Error> {
        let untested = |finding, reason: &str| {
            let outcome = Outcome::Untested(reason.into());
            Ok(Trial { finding, pairs: Vec::new(), outcome })
        };
        let change = finding.change.clone();
        let subject = self.subject;
        let mut workload = subject.workload.clone();
        let mut other = None;
        match changed_load(&change, &subject.workload) {
            Some(load) => workload = load,
            None if change == Change::NoFlush => {
                let Some(file) = subject.file.replaced(&subject.file.without_flush) else {
                    return untested(finding, "no way to do without flushes");
                };
                other = Some(Running::start(subject, &file, "changed")?);
            }
            None => {}
        }
        if let Err(error) = workload.check() {
            return untested(finding, &error.to_string());
        }
        self.changes.push(change.words());
        let changed = Changed { change, other: other.as_ref() };
        if other.is_some() {
            self.warm_up(&changed, &workload)?;
        }
        let mut trial = Trial::of(finding, self.pairs(&changed, &workload, about, 0)?);
        if matches!(trial.outcome, Outcome::Undecided(_)) {
            self.bench.expect_steps(2 * subject.pairs as usize);
            let more = self.pairs(&changed, &workload, about, subject.pairs)?;
            trial = Trial::of(trial.finding, [trial.pairs, more].concat());
        }
        if let Some(other) = other {
            other.stop()?;
        }
        if trial.pairs.is_empty() {
            return untested(trial.finding, "no run with the change has the figure");
        }
        Ok(trial)
    }

    /// The figures of pairs of runs without and with a change, as many as the subject has, counted
    /// from `first`.
    fn pairs(
        &mut self,
        changed: &Changed<'_>,
        workload: &Workload,
        about: About,
        first: u32,
    ) -> Result<Vec<(f64, f64)>, Error> {
        let mut pairs = Vec::new();
        for pair in first..first + self.subject.pairs {
            let number = u32::try_from(self.changes.len()).unwrap_or(0) * 100 + pair;
            let mut figures = [None, None];
            let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
            for side in order {
                let run = match side {
                    0 => self.run(None, &self.subject.workload, number)?,
                    _ => self.run(Some(changed), workload, number)?,
                };
                if let Some(figure) = figures.get_mut(side) {
                    *figure = explain::figure(&run, about);
                }
            }
            if let [Some(without), Some(with)] = figures {
                pairs.push((without, with));
            }
        }
        Ok(pairs)
    }

    /// As many runs of a system that was just started as the first system had. None is a pair's.
    fn warm_up(&mut self, changed: &Changed<'_>, workload: &Workload) -> Result<(), Error> {
        let had = self.runs.iter().filter(|run| run.arm == self.subject.name).count();
        let kept = self.runs.len();
        for _ in 0..(1 + had).min(WARM_UPS_MAX) {
            self.run(Some(changed), workload, 0)?;
        }
        self.runs.truncate(kept);
        Ok(())
    }

    /// One run, whose records are read back where they are kept.
    fn run(
        &mut self,
        changed: Option<&Changed<'_>>,
        workload: &Workload,
        pair: u32,
    ) -> Result<RunRecord, Error> {
        let running = changed.and_then(|it| it.other).unwrap_or(&self.base);
        let path = &running.path;
        let words = changed.map(|it| it.change.words());
        let arm = words.as_deref().unwrap_or(&self.subject.name);
        self.bench.step(&format!("{}: {arm}", self.subject.name));
        let keeps = self.subject.file.keeps_records;
        let workload = &lean(workload);
        let setup = self.bench.setup(path, pair, workload);
        if keeps {
            path.control.create_topics(&setup.topics(), workload.partitions)?;
        }
        let busy: Vec<Process> = match changed.map(|it| &it.change) {
            Some(Change::BusyProcesses(count)) => hogs((*count).into(), &self.subject.directory)?,
            _ => Vec::new(),
        };
        let mut measured = generator::produce(&setup)?;
        drop(busy);
        let (mut audited, mut held) = (Audit::default(), 0);
        if keeps {
            (audited, measured.stored_bytes) = read_back(&setup, &measured)?;
            held = bench::held(path, &setup, &measured)?;
            path.control.delete_topics(&setup.topics())?;
        }
        let named = Named { case: CASE, path, pair };
        let mut run = self.bench.run_record(named, workload, &measured, audited, held)?;
        run.arm = arm.to_string();
        self.runs.push(run.clone());
        Ok(run)
    }
}

/// The load with producers that keep some times what fills their window and no more: of a system
/// that takes few, the rest would be waited for long after the measured window.
fn lean(workload: &Workload) -> Workload {
    let mut lean = workload.clone();
    if lean.pace == Pace::Unpaced {
        let window = usize::from(lean.tuning.in_flight_max) * usize::from(lean.partitions);
        let bytes = WINDOWS_KEPT.saturating_mul(window).saturating_mul(lean.batch_bytes);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        lean.tuning.buffer_bytes = bytes.clamp(KEPT_BYTES_MIN, BUFFER_BYTES_USUAL);
    }
    lean
}

/// How a run differs from the others.
struct Changed<'a> {
    change: Change,
    other: Option<&'a Running>,
}

/// The load with a change; `None` of a change that is made elsewhere.
fn changed_load(change: &Change, load: &Workload) -> Option<Workload> {
    let mut changed = load.clone();
    match (change, &mut changed.pace) {
        (Change::DoubleRate, Pace::Scheduled { per_second, .. }) => {
            *per_second = per_second.saturating_mul(2);
        }
        (Change::DoubleOutstanding, Pace::Closed { outstanding }) => {
            *outstanding = outstanding.saturating_mul(2);
        }
        (Change::DoubleInFlight, _) => {
            changed.tuning.in_flight_max = load.tuning.in_flight_max.saturating_mul(2);
        }
        (Change::DoubleProducers, _) => changed.producers = load.producers.saturating_mul(2),
        (Change::NoLinger, _) => changed.linger_us = 0,
        _ => return None,
    }
    Some(changed)
}

/// Flushes that a broker has made, and the time that they took.
#[derive(Clone, Copy)]
struct Flushes {
    count: u64,
    ns: u64,
}

impl Flushes {
    fn mean_ms_since(self, before: Self) -> f64 {
        let (count, ns) =
            (self.count.saturating_sub(before.count), self.ns.saturating_sub(before.ns));
        float(ns) / float(count.max(1)) / 1e6
    }
}

/// The audit of a run, and the bytes of its batches as they are stored.
fn read_back(setup: &Setup, measured: &generator::Measured) -> Result<(Audit, u64), Error> {
    if let Some(delivered) = &measured.delivered {
        return Ok((audit(&measured.sent, delivered), measured.stored_bytes));
    }
    let mut setup = setup.clone();
    setup.workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..setup.workload };
    setup.workload.tuning.fetch_min_bytes = 1;
    let read = generator::read_back(&setup, &measured.sent)?;
    let delivered = read.delivered.as_ref().expect("a reading delivers");
    Ok((audit(&measured.sent, delivered), read.stored_bytes))
}

impl Running {
    fn start(subject: &Subject, file: &SystemFile, name: &str) -> Result<Self, Error> {
        let directory = subject.directory.join(name);
        std::fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let system = file.start(&subject.installations, &directory)?;
        let path = Path::to_system(&subject.name, &system)?;
        path.control.wait_for_brokers(file.brokers)?;
        Ok(Self { path, system })
    }

    /// Flush times from the metrics page of a broker.
    fn flushes(&self) -> Option<Flushes> {
        self.path.admin_ports.iter().find_map(|(_, address)| {
            let page = http_get(*address, "/metrics")?;
            let count = gauge(&page, "journal_flushes_total")?;
            Some(Flushes { count, ns: gauge(&page, "journal_flush_nanoseconds_total")? })
        })
    }

    fn stop(self) -> Result<(), Error> {
        self.system.stop()
    }
}
