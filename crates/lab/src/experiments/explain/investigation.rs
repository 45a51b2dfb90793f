//! Runs of one load on one system, without and with changes.

use std::path::PathBuf;

use super::changes::{Way, way};
use super::signals::Signals;
use crate::experiments::bench::{self, Bench, Named, Path};
use crate::experiments::hogs::hogs;
use crate::explain::{self, About, Change, Explanation, Finding, Outcome, Trial};
use crate::gathering::{Attention, Gathering};
use crate::systems::{Installations, Process, RunningSystem, SystemFile};
use moldau_load::generator::{self, Setup};
use moldau_load::ledger::{Audit, audit};
use moldau_load::run::RunRecord;
use moldau_load::workload::{BUFFER_BYTES_USUAL, Pace, Workload};
use moldau_measure::Error;
use moldau_measure::control_group::{ControlGroup, Quotas};
use moldau_measure::statistics::median;

/// Findings that are tested at most: what none of them explains needs a person.
const FINDINGS_MAX: usize = 5;

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
    direct: Option<Path>,
}

/// An investigation on its way.
pub(in crate::experiments) struct Investigation<'a, 'b> {
    bench: &'a mut Bench<'b>,
    subject: &'a Subject,
    base: Running,
    runs: Vec<RunRecord>,
    /// Names of the arms with changes.
    changes: Vec<String>,
}

/// What is done to the machine while a run with a change goes on; dropping it ends that.
enum Meanwhile {
    Nothing,
    Signals { _sending: Signals },
    Busy { _hogs: Vec<Process> },
    Quota { _doubled: Quotas },
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

    /// Looks at one run and tests what it may be limited by.
    pub(in crate::experiments) fn explain(&mut self) -> Result<Explanation, Error> {
        let workload = self.subject.workload.clone();
        // What a JVM compiles, what a client learns of the cluster: the first run pays for that.
        self.run(None, &workload, 0)?;
        self.runs.clear();
        let first = self.run(None, &workload, 0)?;
        let about = self.subject.about.unwrap_or_else(|| explain::usual(&first));
        let figure = explain::figure(&first, about);
        let mut trials: Vec<Trial> = Vec::new();
        for finding in explain::of(&first, about).into_iter().take(FINDINGS_MAX) {
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
        let change = finding.change;
        let subject = self.subject;
        let mut workload = subject.workload.clone();
        let mut other = None;
        let mut is_direct = false;
        match way(change, &subject.workload, &subject.file) {
            Way::Load(load) => workload = *load,
            Way::System(file) => other = Some(Running::start(subject, &file, "changed")?),
            Way::Direct => is_direct = true,
            Way::Meanwhile => {
                let is_quota = change == Change::DoubleQuota;
                let fixed = is_quota.then(|| self.base.fixed_quotas()).flatten();
                if let Some(reason) = fixed {
                    return untested(finding, &reason);
                }
            }
            Way::Impossible(reason) => return untested(finding, reason),
        }
        if let Err(error) = workload.check() {
            return untested(finding, &error.to_string());
        }
        self.changes.push(change.words());
        let changed = Changed { change, other: other.as_ref(), is_direct };
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
        let is_direct = changed.is_some_and(|it| it.is_direct);
        let path = running.direct.as_ref().filter(|_| is_direct).unwrap_or(&running.path);
        let words = changed.map(|it| it.change.words());
        let arm = words.as_deref().unwrap_or(&self.subject.name);
        self.bench.step(&format!("{}: {arm}", self.subject.name));
        let keeps = self.subject.file.keeps_records;
        let workload = &lean(workload);
        let setup = self.bench.setup(path, pair, workload);
        if keeps {
            path.control.create_topics(&setup.topics(), workload.partitions)?;
        }
        let meanwhile = changed.map_or(Ok(Meanwhile::Nothing), |it| {
            Meanwhile::begin(it.change, running, self.subject)
        })?;
        let mut gathering = Gathering::of(path.subjects(), Attention::Close);
        let mut measured = generator::produce_watched(&setup, &mut || gathering.edge())?;
        drop(meanwhile);
        measured.evidence = Some(gathering.finish()?);
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
    is_direct: bool,
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
        let past = |address: &str| {
            let direct = Path::to(&subject.name, address.to_string(), system.accounted())?;
            let (clients, admin_ports) = (path.clients.clone(), path.admin_ports.clone());
            let control = direct.control.lasting(system.brokers() == 0);
            Ok::<_, Error>(Path { clients, admin_ports, control, ..direct })
        };
        let direct: Option<Path> = system.direct().map(past).transpose()?;
        Ok(Self { path, direct, system })
    }

    fn stop(self) -> Result<(), Error> {
        self.system.stop()
    }

    /// Control groups with a limit around its processes that can be changed, with their limits.
    fn quotas(&self) -> Vec<(ControlGroup, u64)> {
        let mut found: Vec<(ControlGroup, u64)> = Vec::new();
        for (_, pid) in self.system.accounted() {
            let Some(group) = ControlGroup::of(pid) else { continue };
            let Some(quota) = group.quota_us() else { continue };
            // Writing what is there changes nothing and tells whether it may be written.
            let is_new = found.iter().all(|(known, _)| *known != group);
            if is_new && group.set_quota_us(quota).is_ok() {
                found.push((group, quota));
            }
        }
        found
    }

    /// Why its limits cannot be doubled, if so: tried once, since a group may have no more than the
    /// one around it.
    fn fixed_quotas(&self) -> Option<String> {
        let quotas = self.quotas();
        if quotas.is_empty() {
            return Some("the limit of its control group cannot be changed here".into());
        }
        let refused = Quotas::doubled(&quotas).err()?;
        Some(format!("the limit of its control group cannot be doubled: {refused}"))
    }
}

impl Meanwhile {
    fn begin(change: Change, running: &Running, subject: &Subject) -> Result<Self, Error> {
        match change {
            Change::Continue => {
                let pids = running.system.accounted().into_iter().map(|(_, pid)| pid);
                Ok(Self::Signals { _sending: Signals::go_on(pids.collect())? })
            }
            Change::BusyProcesses(count) => {
                Ok(Self::Busy { _hogs: hogs(count.into(), &subject.directory)? })
            }
            Change::DoubleQuota => {
                Ok(Self::Quota { _doubled: Quotas::doubled(&running.quotas())? })
            }
            _ => Ok(Self::Nothing),
        }
    }
}
