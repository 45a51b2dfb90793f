//! The bench that experiments work at: it runs cases on fresh topics and collects their records.

mod holding;
mod keeping;
mod path;
mod rest;
mod warming;

use std::time::{Duration, Instant};

use super::{Conditions, Progress};
use crate::checks::Check;
use crate::environment::Environment;
use crate::metric::compare_all;
use crate::objective::Objective;
use crate::punctuality;
use crate::result::{Arm, Experiment, LatencyRecord, RunRecord, RunResult};
pub(super) use holding::held;
use moldau_load::generator::{self, Clients, Layout, Measured, Setup, slot_ms};
use moldau_load::ledger::{Audit, Detection, audit, self_test};
use moldau_load::run::{Skew, TransactionsRecord};
use moldau_load::workers::Workers;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::profile::{Profiler, ProfilesRecord, Taking, least_share, profile_window_ms};
pub(super) use path::Path;

/// Faults of the ledger's self-test before every experiment.
const SELF_TEST_FAULTS: u64 = 1_000;

/// What everything is put through, on a topic of its own each time, every record audited.
pub(super) struct Case {
    /// Name of the producing.
    pub(super) name: String,
    pub(super) workload: Workload,
    /// Name under which the reading from start to end is measured as well; without one, what was
    /// not consumed meanwhile is read for the audit alone.
    pub(super) reading: Option<String>,
}

impl Case {
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        let reading = self.reading.as_deref();
        std::iter::once(self.name.as_str()).chain(reading).collect()
    }
}

/// Which run a record is of.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    pub(super) case: &'a str,
    pub(super) path: &'a Path,
    pub(super) pair: u32,
}

/// What an experiment has collected.
pub(super) struct Bench<'a> {
    conditions: &'a Conditions,
    started: Instant,
    started_unix_ms: u64,
    runs: Vec<RunRecord>,
    next_run: u32,
    /// Distinguishes the topics of this sitting from those that others left on the same cluster.
    mark: u32,
    /// What the runs should show.
    objectives: Vec<Objective>,
    /// Checks that the experiment made itself.
    notes: Vec<Check>,
    profiles: Option<ProfilesRecord>,
    progress: &'a mut dyn Progress,
    steps_done: u32,
    steps: u32,
    /// Since when steps have taken their time, and how many were done or recalled before.
    paced_from: (Instant, u32),
    /// Processes that offer the loads; absent if this process does.
    workers: Option<&'a mut Workers>,
    /// Whether threads with intended times wait for a processor as all others do.
    waits_in_turn: bool,
}

/// What is demanded of the runs, the audit of all, and the ledger's self-test.
type Checks = fn(&[RunRecord], &Audit, &Detection) -> Vec<Check>;

impl<'a> Bench<'a> {
    pub(super) fn new(
        conditions: &'a Conditions,
        steps: u32,
        progress: &'a mut dyn Progress,
    ) -> Self {
        Self::with_workers(conditions, steps, progress, None)
    }

    /// A bench whose loads are offered by `workers`, if there are any.
    pub(super) fn with_workers(
        conditions: &'a Conditions,
        steps: u32,
        progress: &'a mut dyn Progress,
        workers: Option<&'a mut Workers>,
    ) -> Self {
        let (started_unix_ms, started) = keeping::begun(progress);
        Self {
            conditions,
            started,
            started_unix_ms,
            runs: Vec::new(),
            next_run: 1,
            mark: fastrand::u32(..),
            objectives: Vec::new(),
            notes: Vec::new(),
            profiles: None,
            progress,
            steps_done: 0,
            steps,
            paced_from: (Instant::now(), 0),
            workers,
            waits_in_turn: false,
        }
    }

    /// From here on, no thread of the generator goes first: see [`Clients::waits_in_turn`].
    pub(super) fn wait_in_turn(&mut self) {
        self.waits_in_turn = true;
    }

    /// Offers a load from here or from workers.
    fn offer(&mut self, setup: &Setup, at_edge: &mut dyn FnMut()) -> Result<Measured, Error> {
        match &mut self.workers {
            Some(workers) => workers.produce(setup, at_edge),
            None => generator::produce_watched(setup, at_edge),
        }
    }

    /// Runs a load once the machine is idle, and returns its outcome.
    fn produced(&mut self, setup: &Setup) -> Result<Measured, Error> {
        self.rest(setup.workload.window())?;
        self.offer(setup, &mut || {})
    }

    /// Announces the next step.
    pub(super) fn step(&mut self, what: &str) {
        self.weighted_step(what, 1);
    }

    /// Announces a step that counts as `weight` steps.
    pub(super) fn weighted_step(&mut self, what: &str, weight: u32) {
        self.progress.step(self.steps_done, self.steps, what);
        self.steps_done += weight;
    }

    /// One run of a case; its topic goes afterwards. What an earlier sitting of the experiment has
    /// finished does not run again.
    pub(super) fn run_case(&mut self, path: &Path, case: &Case, pair: u32) -> Result<(), Error> {
        if self.recall(&case.name, &path.arm, pair) {
            return Ok(());
        }
        let known = self.runs.len();
        self.carry_out(path, case, pair)?;
        self.keep(&case.name, &path.arm, pair, known)
    }

    fn carry_out(&mut self, path: &Path, case: &Case, pair: u32) -> Result<(), Error> {
        let Case { name, workload, reading } = case;
        match reading {
            Some(reading) => self.produce_then_read(path, [name, reading], pair, workload),
            None if workload.consume => self.produce(path, name, pair, workload),
            None => {
                let (setup, _) = self.produce_and_audit(path, name, pair, workload)?;
                path.control.delete_topics(&setup.topics())
            }
        }
    }

    /// One run that produces, and consumes if the workload says so.
    pub(super) fn produce(
        &mut self,
        path: &Path,
        case: &str,
        pair: u32,
        workload: &Workload,
    ) -> Result<(), Error> {
        self.step(&format!("{case}: {}, {}", path.arm, pair + 1));
        let setup = self.setup(path, pair, workload);
        path.control.create_topics(&setup.topics(), workload.partitions)?;
        let measured = self.produced(&setup)?;
        let delivered = measured.delivered.as_ref().expect("the workload consumes");
        let audit = audit(&measured.sent, delivered);
        let held = held(path, &setup, &measured)?;
        self.record(Named { case, path, pair }, workload, &measured, audit, held)?;
        path.control.delete_topics(&setup.topics())
    }

    /// One run that produces, then one that reads everything back at full speed. Each has an audit
    /// of its own if the first consumes as well; otherwise it belongs to the reading.
    fn produce_then_read(
        &mut self,
        path: &Path,
        cases: [&str; 2],
        pair: u32,
        workload: &Workload,
    ) -> Result<(), Error> {
        let [produce_case, read_case] = cases;
        self.step(&format!("{produce_case}: {}, {}", path.arm, pair + 1));
        let mut setup = self.setup(path, pair, workload);
        path.control.create_topics(&setup.topics(), workload.partitions)?;
        let produced = self.produced(&setup)?;
        let (mut consumed, mut held) = (Audit::default(), 0);
        if let Some(delivered) = &produced.delivered {
            consumed = audit(&produced.sent, delivered);
            held = path.control.records_held_by_all(&setup.topics(), workload.partitions)?;
        }
        let named = Named { case: produce_case, path, pair };
        self.record(named, workload, &produced, consumed, held)?;
        setup.workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..workload.clone() };
        let read = generator::read_back(&setup, &produced.sent)?;
        let delivered = read.delivered.as_ref().expect("a reading delivers");
        let audit = audit(&produced.sent, delivered);
        let held = path.control.records_held_by_all(&setup.topics(), workload.partitions)?;
        let named = Named { case: read_case, path, pair };
        self.record(named, &setup.workload, &read, audit, held)?;
        path.control.delete_topics(&setup.topics())
    }

    /// One run that produces without a consumer, audited by a reading that is not measured. Gives
    /// what ran and its records; its topics stay.
    pub(super) fn produce_and_audit(
        &mut self,
        path: &Path,
        case: &str,
        pair: u32,
        workload: &Workload,
    ) -> Result<(Setup, u64), Error> {
        self.produce_and_audit_after(path, case, pair, workload, |_| Ok(()))
    }

    /// The same with `work` done between producing and reading.
    pub(super) fn produce_and_audit_after(
        &mut self,
        path: &Path,
        case: &str,
        pair: u32,
        workload: &Workload,
        work: impl FnOnce(&Setup) -> Result<(), Error>,
    ) -> Result<(Setup, u64), Error> {
        self.step(&format!("{case}: {}, {}", path.arm, pair + 1));
        let mut setup = self.setup(path, pair, workload);
        path.control.create_topics(&setup.topics(), workload.partitions)?;
        let mut produced = self.produced(&setup)?;
        work(&setup)?;
        setup.workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..workload.clone() };
        let read = generator::read_back(&setup, &produced.sent)?;
        produced.stored_bytes = read.stored_bytes;
        let delivered = read.delivered.as_ref().expect("a reading delivers");
        let audit = audit(&produced.sent, delivered);
        let held = held(path, &setup, &produced)?;
        self.record(Named { case, path, pair }, workload, &produced, audit, held)?;
        Ok((setup, held))
    }

    /// Reads back what was produced to topics that are still there, and records the run without
    /// latencies.
    pub(super) fn read_back(
        &mut self,
        named: Named<'_>,
        mut setup: Setup,
        mut produced: Measured,
    ) -> Result<(), Error> {
        let workload = setup.workload.clone();
        setup.workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..workload.clone() };
        let read = generator::read_back(&setup, &produced.sent)?;
        produced.stored_bytes = read.stored_bytes;
        let delivered = read.delivered.as_ref().expect("a reading delivers");
        let audit = audit(&produced.sent, delivered);
        let control = &named.path.control;
        let held = control.records_held_by_all(&setup.topics(), workload.partitions)?;
        let run = self.run_record(named, &workload, &produced, audit, held)?;
        self.runs.push(RunRecord { latency: None, ..run });
        Ok(())
    }

    /// The runs so far.
    pub(super) fn runs(&self) -> &[RunRecord] {
        &self.runs
    }

    /// Adds a run that this bench did not carry out.
    pub(super) fn add(&mut self, run: RunRecord) {
        self.runs.push(run);
    }

    /// Adds what the runs should show; the checks judge it.
    pub(super) fn demand(&mut self, objectives: Vec<Objective>) {
        self.objectives.extend(objectives);
    }

    /// Adds a check that the experiment made itself.
    pub(super) fn note(&mut self, check: Check) {
        self.notes.push(check);
    }

    /// Seed of everything random in the experiment.
    pub(super) fn seed(&self) -> u64 {
        self.conditions.seed
    }

    /// Time of the experiment, ms since its start.
    pub(super) fn at_ms(&self, instant: Instant) -> u64 {
        millis(instant.saturating_duration_since(self.started))
    }

    /// What a path does with a workload, for choosing a rate; not recorded.
    pub(super) fn probe(&mut self, path: &Path, workload: &Workload) -> Result<Measured, Error> {
        self.step(&format!("Calibrate: {}", path.arm));
        let setup = self.setup(path, 0, workload);
        path.control.create_topics(&setup.topics(), workload.partitions)?;
        let measured = self.offer(&setup, &mut || {})?;
        path.control.delete_topics(&setup.topics())?;
        Ok(measured)
    }

    /// Profiles a case on each path, each in an unpublished run after the measured ones. A case
    /// that only reads back is not profiled: it cannot go on for a given time.
    pub(super) fn profile<'p>(
        &mut self,
        profiler: Option<&Profiler>,
        paths: impl Iterator<Item = &'p Path>,
        case: &Case,
    ) -> Result<(), Error> {
        let Some(profiler) = profiler else { return Ok(()) };
        let directory = &self.conditions.work_directory;
        for path in paths {
            let of_case = |run: &&RunRecord| run.case == case.name && run.arm == path.arm;
            let least = least_share(
                self.runs.iter().filter(of_case).map(|run| (&run.processes[..], run.window_ns)),
            );
            let window_ms = profile_window_ms(case.workload.window_ms, least);
            let workload = Workload { window_ms, ..case.workload.clone() };
            self.expect_steps(1);
            self.step(&format!("Profile {}: {}", case.name, path.arm));
            let setup = self.setup(path, 0, &workload);
            path.control.create_topics(&setup.topics(), workload.partitions)?;
            let (processes, window) = (path.profiled(), workload.window());
            let mut taking = None;
            self.offer(&setup, &mut || {
                taking
                    .get_or_insert_with(|| Taking::begin(profiler, &processes, window, directory));
            })?;
            let profiles = self.profiles.get_or_insert_with(|| ProfilesRecord {
                moldau_sha256: profiler.moldau_sha256().to_owned(),
                ..ProfilesRecord::default()
            });
            for ended in taking.into_iter().flat_map(|taking| taking.end(&case.name, &path.arm)) {
                match ended {
                    Ok(taken) => profiles.taken.push(taken),
                    Err(missing) => profiles.missing.push(missing),
                }
            }
            path.control.delete_topics(&setup.topics())?;
        }
        Ok(())
    }

    /// Whether an arm that keeps up has latencies in fewer than `wanted` of its runs of a case.
    pub(super) fn lacks_latencies(&self, case: &str, wanted: u32) -> bool {
        let of_case: Vec<&RunRecord> = self.runs.iter().filter(|run| run.case == case).collect();
        punctuality::lacks_latencies(&of_case, usize::try_from(wanted).unwrap_or(usize::MAX))
    }

    /// Announces that so many steps more will come than were counted.
    pub(super) fn expect_steps(&mut self, count: usize) {
        self.steps += u32::try_from(count).unwrap_or(0);
    }

    /// Takes back that so many steps were announced.
    pub(super) fn expect_fewer_steps(&mut self, count: usize) {
        self.steps = self.steps.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
    }

    /// The runs of a pair take the same seed, so that they offer the same bytes.
    pub(super) fn setup(&mut self, path: &Path, pair: u32, workload: &Workload) -> Setup {
        let run = self.next_run;
        self.next_run += 1;
        Setup {
            bootstrap: path.bootstrap.clone(),
            clients: Clients { waits_in_turn: self.waits_in_turn, ..path.clients.clone() },
            topic: self.topic_of(run),
            run,
            seed: self.conditions.seed.wrapping_add(pair.into()),
            workload: workload.clone(),
            layout: Layout::Dense,
            first_producer: 0,
            processes: path.processes.clone(),
            is_accounted: true,
        }
    }

    pub(super) fn record(
        &mut self,
        named: Named<'_>,
        workload: &Workload,
        measured: &Measured,
        audit: Audit,
        held_records: u64,
    ) -> Result<(), Error> {
        let run = self.run_record(named, workload, measured, audit, held_records)?;
        self.runs.push(run);
        Ok(())
    }

    /// The record of a run, which is not added.
    pub(super) fn run_record(
        &self,
        Named { case, path, pair }: Named<'_>,
        workload: &Workload,
        measured: &Measured,
        audit: Audit,
        held_records: u64,
    ) -> Result<RunRecord, Error> {
        let has_times = matches!(workload.pace, Pace::Scheduled { .. } | Pace::Closed { .. });
        let latency = if has_times { Some(LatencyRecord::of(&measured.latencies)?) } else { None };
        let series = measured.course(workload);
        Ok(RunRecord {
            pair,
            window_start_ms: millis(measured.window_start.saturating_duration_since(self.started)),
            window_ns: measured.window_ns,
            offered: measured.offered,
            shed: measured.shed,
            produced_records: measured.produced_records,
            produced_batches: measured.produced_batches,
            answered: measured.answered,
            consumed_records: measured.consumed_records,
            stored_bytes: measured.stored_bytes,
            latency,
            slot_ms: slot_ms(workload),
            longest_silence_ns: series.iter().map(|slot| slot.silence_ns).max().unwrap_or(0),
            series,
            processes: measured.processes.clone(),
            host: measured.host,
            held_records,
            audit,
            requests: measured.requests_in_window,
            transactions: transactions(measured)?,
            skew: skew(workload, measured),
            workers: measured.workers.clone(),
            ..RunRecord::bare(case, &path.arm, workload.clone())
        })
    }

    /// Closes the experiment: comparisons, checks, verdict.
    pub(super) fn finish(
        self,
        experiment: Experiment,
        arms: Vec<Arm>,
        checks: Checks,
    ) -> Result<RunResult, Error> {
        let Conditions { version, work_directory, seed, quick } = self.conditions.clone();
        let audit = self.runs.iter().fold(Audit::default(), |sum, run| sum.plus(run.audit));
        let self_test = self_test(seed, SELF_TEST_FAULTS)?;
        let mut checks = checks(&self.runs, &audit, &self_test);
        checks.extend(self.objectives.iter().map(|wish| wish.check(&self.runs, seed)));
        checks.extend(self.notes);
        checks.extend(self.progress.sittings().and_then(|sittings| sittings.check()));
        let mut environment = Environment::inspect(&version, &work_directory).of_runs(&self.runs);
        if self.waits_in_turn {
            environment.generator_niceness = None;
        }
        let mut result = RunResult {
            elapsed_ms: millis(self.started.elapsed()),
            seed,
            quick,
            arms,
            runs: self.runs,
            audit,
            profiles: self.profiles,
            ..RunResult::bare(experiment, self.started_unix_ms, environment, checks)
        };
        let arms: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
        result.comparisons = compare_all(&result.runs, &result.cases(), &arms, result.seed);
        Ok(result)
    }
}

/// Times of transactions, if producers made any.
fn transactions(measured: &Measured) -> Result<Option<TransactionsRecord>, Error> {
    let Some(made) = &measured.transactions else { return Ok(None) };
    let (commit, begin) = (made.commit.to_record()?, made.begin.to_record()?);
    Ok(Some(TransactionsRecord { commit, begin }))
}

/// Sizes and keys of the records, if the load varies them.
fn skew(workload: &Workload, measured: &Measured) -> Option<Skew> {
    let is_plain = workload.tuning.shape.is_plain();
    if is_plain { None } else { Skew::of(&measured.sent, measured.acked_bytes) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
