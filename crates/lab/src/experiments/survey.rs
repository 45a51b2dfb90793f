//! Surveys as files: scenarios that change what they like, factors that change one setting of a
//! scenario at a time, and published claims that are tested by them, on systems that are files too.
//!
//! A round runs every load on every system once, forwards and backwards in turn, each on a topic of
//! its own whose records are all read back. The format is described in `docs/experiments.md`.

mod asked;
mod page;
mod settings;
mod stages;

use std::time::Duration;

use serde::Deserialize;

use super::administration::AdministrationFile;
use super::asked::ReadFile;
use super::bench::Bench;
use super::littles_law::LawFile;
use super::running::{absence, arms, machine_is_quiet, split, twin};
use super::{Conditions, Progress, rounds};
use crate::checks::{self, Check, Weight};
use crate::metric::Metric;
use crate::punctuality::taken_share;
use crate::result::{Experiment, RunResult};
use crate::survey::{Asks, Cell, Claim, LeftOut, Setting, Source, SurveyRecord, SystemPair};
use crate::systems::{Installations, SystemFile};
use crate::totals::PublishedTotal;
use moldau_load::payload::Filler;
use moldau_load::run::RunRecord;
use moldau_load::workers::Workers;
use moldau_load::workload::{Codec, Workload};
use moldau_measure::Error;
use moldau_measure::profile::Profiler;
use moldau_measure::statistics::median;

use settings::check_effects;
use stages::{Beside, stages};

pub use page::page;

pub use settings::Settings;

/// Most systems: each runs all the while.
const SYSTEMS_MAX: usize = 8;

/// Most loads of a file: a round runs all of them on every system.
const CELLS_MAX: usize = 64;

/// The short form's share of warm-up and window, and the shortest window.
const QUICK_SHARE: u64 = 4;
const QUICK_WINDOW_MS_MIN: u64 = 1_000;

/// A codec that changes the stored size of a payload that it should shorten by less than this
/// share has not done its work.
const CODEC_SHARE_MIN: f64 = 0.02;

/// A survey, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyFile {
    /// The question.
    pub question: String,
    /// What is expected and why.
    pub hypothesis: String,
    /// Where the claims were published.
    pub source: Option<Source>,
    /// Names of system files; tables compare with the first.
    pub systems: Vec<String>,
    /// Rounds.
    pub rounds: u32,
    /// How long it may take.
    pub within_s: Option<Within>,
    /// Time before each measured window, ms.
    pub warmup_ms: u64,
    /// The measured window of each run, ms.
    pub window_ms: u64,
    /// What all loads have in common unless they say otherwise.
    #[serde(default)]
    pub load: Settings,
    /// Loads that may differ in several settings, as published ones do.
    pub scenarios: Vec<Scenario>,
    /// Loads that differ from a scenario in one setting.
    #[serde(default)]
    pub factors: Vec<Factor>,
    /// Systems that are compared with each other, load by load.
    #[serde(default)]
    pub pairs: Vec<SystemPair>,
    /// How many partitions a rate takes, put to the test.
    pub littles_law: Option<LawFile>,
    /// Partitions that are made and moved.
    pub administration: Option<AdministrationFile>,
    /// What was published.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// What was published of loads over many topics, whose totals are audited.
    #[serde(default)]
    pub totals: Vec<PublishedTotal>,
    /// Its questions beyond the tables.
    pub asks: Option<Asks>,
    /// Further remarks on the source, a sentence each.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// How long a survey may take: rounds that would end later are left out, but for the three that an
/// interval takes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Within {
    /// The whole form, s.
    pub whole: u32,
    /// The short form, s.
    pub quick: u32,
}

/// A load with a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// How it differs from what all loads have in common.
    #[serde(default)]
    pub load: Settings,
    /// The survey's systems that get it, and what differs from it; all, if none is named.
    #[serde(default)]
    pub systems: Vec<String>,
    /// Whether the whole form always profiles it, even without `--profile`.
    #[serde(default)]
    pub profile: bool,
    /// Whether the short form measures it, and what differs from it.
    #[serde(default = "yes")]
    pub quick: bool,
}

impl Scenario {
    /// A load that all systems get, in both forms.
    #[must_use]
    pub fn of(name: String, load: Settings) -> Self {
        Self { name, load, systems: Vec::new(), profile: false, quick: true }
    }
}

/// One setting at several values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// The scenario whose other settings stay.
    pub from: String,
    /// The values, each as the one setting that differs.
    pub levels: Vec<Settings>,
    /// Whether the short form measures them.
    #[serde(default = "yes")]
    pub quick: bool,
}

fn yes() -> bool {
    true
}

/// Everything that a run of a survey needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The survey.
    pub file: SurveyFile,
    /// Its systems, in its order.
    pub systems: Vec<SystemFile>,
    /// What is there to start them from.
    pub installations: Installations,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// What takes profiles of loads and systems, if any are wanted.
    pub profiler: Option<Profiler>,
    /// Whether they are taken of every load, and not only of those that say so themselves.
    pub profiles_all: bool,
}

/// A load of the survey, whole.
struct Load {
    cell: Cell,
    settings: Settings,
    /// The systems that get it; all, if none is named.
    systems: Vec<String>,
    /// Whether the whole form profiles it.
    profile: bool,
    /// Whether the short form measures it.
    quick: bool,
}

impl Load {
    fn is_for(&self, system: &str) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|name| name == system)
    }

    /// What differs from a scenario in one setting.
    fn changed(&self, level: &Settings, quick: bool) -> Self {
        let settings = level.named();
        let words = settings.iter().map(|Setting { key, value }| format!("{key} {value}"));
        let change = words.collect::<Vec<_>>().join(", ");
        let from = &self.cell.name;
        Self {
            cell: Cell { name: format!("{from}, {change}"), settings, from: Some(from.clone()) },
            settings: level.over(&self.settings),
            systems: self.systems.clone(),
            profile: false,
            quick: self.quick && quick,
        }
    }
}

impl SurveyFile {
    /// Whether the whole form always takes profiles, even without `--profile`.
    #[must_use]
    pub fn profiles_itself(&self) -> bool {
        self.scenarios.iter().any(|scenario| scenario.profile)
    }

    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::RecordTooSmall`].
    pub fn check(&self) -> Result<(), Error> {
        if !(1..=SYSTEMS_MAX).contains(&self.systems.len()) {
            return refuse(format!("systems: 1 to {SYSTEMS_MAX} of them"));
        }
        rounds::check(self.rounds)?;
        if self.within_s.is_some_and(|it| it.whole == 0 || it.quick == 0) {
            return refuse("within_s: a second at least".into());
        }
        self.littles_law.as_ref().map_or(Ok(()), |law| law.check(&self.systems))?;
        self.factors.iter().try_for_each(|factor| self.check_factor(factor))?;
        let loads = self.loads();
        if !(1..=CELLS_MAX).contains(&loads.len()) {
            return refuse(format!("scenarios and factors: 1 to {CELLS_MAX} loads in all"));
        }
        let names: Vec<&str> = loads.iter().map(|load| load.cell.name.as_str()).collect();
        let systems: Vec<&str> = self.systems.iter().map(String::as_str).collect();
        let pairs: Vec<&str> = self.pairs.iter().map(|pair| pair.name.as_str()).collect();
        for all in [&names, &systems, &pairs] {
            if let Some(twin) = twin(all) {
                return refuse(format!("{twin:?} is there twice"));
            }
        }
        let of_loads = self.scenarios.iter().flat_map(|scenario| &scenario.systems);
        let of_pairs = self.pairs.iter().flat_map(|pair| [&pair.of, &pair.over]);
        if let Some(unknown) = of_loads.chain(of_pairs).find(|it| !systems.contains(&it.as_str())) {
            return refuse(format!("scenarios, pairs: {unknown:?} is not one of the systems"));
        }
        let administration = self.administration.as_ref();
        administration.map_or(Ok(()), |it| it.check(&systems, &pairs))?;
        self.claims.iter().try_for_each(|claim| check_claim(claim, &names, &systems, &pairs))?;
        self.check_asked()?;
        if let Some(unknown) = self.totals.iter().find(|it| !names.contains(&it.load.as_str())) {
            return refuse(format!("totals: {:?} is not one of the loads", unknown.load));
        }
        for Load { cell, settings, .. } in &loads {
            let named = |error: Error| Error::Plan(format!("load {:?}: {error}", cell.name));
            settings
                .check_exclusions()
                .and_then(|()| self.workload(settings, false).check())
                .map_err(named)?;
        }
        self.check_effects(&loads)
    }

    /// Refuses settings that have an effect in none of the loads that are made of them. What loads
    /// share may be idle in some.
    fn check_effects(&self, loads: &[Load]) -> Result<(), Error> {
        let mut all: Vec<Settings> = Vec::new();
        // Each scenario is followed by what differs from it.
        let groups = loads.chunk_by(|_, next| next.cell.from.is_some());
        for (scenario, group) in self.scenarios.iter().zip(groups) {
            let named = |error: Error| Error::Plan(format!("load {:?}: {error}", scenario.name));
            let mut settings: Vec<Settings> = group.iter().map(|it| it.settings.clone()).collect();
            let factors = self.factors.iter().filter(|factor| factor.from == scenario.name);
            let levels = factors.flat_map(|factor| &factor.levels);
            for (level, whole) in levels.zip(settings.iter().skip(1)) {
                check_effects(level, std::slice::from_ref(whole)).map_err(named)?;
            }
            if let Some(Asks::Latency(asked)) = &self.asks
                && all.is_empty()
                && !asked.full_speed_percent.is_empty()
            {
                // The rates of the first scenario follow from its full speed.
                let rate = Settings { records_per_second: Some(1), ..Settings::default() };
                settings.push(rate.over(&scenario.load.over(&self.load)));
            }
            check_effects(&scenario.load, &settings).map_err(named)?;
            all.extend(settings);
        }
        check_effects(&self.load, &all)
    }

    /// Reads the files of the user that its loads name.
    ///
    /// # Errors
    /// [`Error::Plan`] with the file, and the line where it can.
    pub fn read_files(&mut self, read: &mut ReadFile<'_>) -> Result<(), Error> {
        let scenarios = self.scenarios.iter_mut().map(|scenario| &mut scenario.load);
        let levels = self.factors.iter_mut().flat_map(|factor| &mut factor.levels);
        let mut all = std::iter::once(&mut self.load).chain(scenarios).chain(levels);
        all.try_for_each(|settings| settings.read_files(read))
    }

    /// One setting at a time: that is what a factor is.
    fn check_factor(&self, factor: &Factor) -> Result<(), Error> {
        let Factor { from, levels, .. } = factor;
        let Some(scenario) = self.scenarios.iter().find(|scenario| scenario.name == *from) else {
            let names = self.scenarios.iter().map(|scenario| format!("{:?}", scenario.name));
            let names: Vec<String> = names.collect();
            let names = names.join(", ");
            return refuse(format!("factors.from: {from:?} is not one of the scenarios {names}"));
        };
        let base = scenario.load.over(&self.load);
        let mut of_first: Option<String> = None;
        for level in levels {
            let named = level.named();
            let [Setting { key, value }] = named.as_slice() else {
                return refuse(format!(
                    "factors.levels, from {from:?}: a level changes one setting, not {}",
                    named.len()
                ));
            };
            let key_of_first = of_first.get_or_insert_with(|| key.clone());
            if key_of_first != key {
                return refuse(format!(
                    "factors.levels, from {from:?}: all change one setting, not {key_of_first} \
                     and {key}"
                ));
            }
            if level.over(&base) == base {
                return refuse(format!(
                    "factors.levels, from {from:?}: {key} is {value} there already"
                ));
            }
        }
        if levels.is_empty() {
            return refuse(format!("factors.levels, from {from:?}: one at least"));
        }
        Ok(())
    }

    /// The loads in the order of tables: each scenario, then what differs from it.
    fn loads(&self) -> Vec<Load> {
        let mut loads = Vec::new();
        for Scenario { name, load, systems, profile, quick } in &self.scenarios {
            let settings = load.over(&self.load);
            let cell = Cell { name: name.clone(), settings: load.named(), from: None };
            let (systems, profile, quick) = (systems.clone(), *profile, *quick);
            let scenario = Load { cell, settings, systems, profile, quick };
            let factors = self.factors.iter().filter(|factor| factor.from == *name);
            let levels = factors.flat_map(|it| it.levels.iter().map(|level| (level, it.quick)));
            let changed: Vec<Load> =
                levels.map(|(level, is_quick)| scenario.changed(level, is_quick)).collect();
            loads.push(scenario);
            loads.extend(changed);
        }
        loads
    }

    fn workload(&self, settings: &Settings, quick: bool) -> Workload {
        let share = if quick { QUICK_SHARE } else { 1 };
        let warmup_ms = settings.warmup_ms.unwrap_or(self.warmup_ms);
        let window_ms = settings.window_ms.unwrap_or(self.window_ms);
        settings.workload(warmup_ms / share, window_of(window_ms, quick))
    }
}

/// A window in the form that is run.
fn window_of(window_ms: u64, quick: bool) -> u64 {
    let share = if quick { QUICK_SHARE } else { 1 };
    (window_ms / share).max(window_ms.min(QUICK_WINDOW_MS_MIN))
}

fn check_claim(
    claim: &Claim,
    cells: &[&str],
    systems: &[&str],
    pairs: &[&str],
) -> Result<(), Error> {
    let says = &claim.says;
    if let Some(pair) = &claim.pair {
        if !pairs.contains(&pair.as_str()) {
            return refuse(format!("claim {says:?}: {pair:?} is not one of the pairs"));
        }
        if claim.measured.over.is_some() || !claim.isolated.is_empty() || !claim.systems.is_empty()
        {
            return refuse(format!("claim {says:?}: a pair compares systems at one load"));
        }
    }
    if let Some(unknown) = claim.loads().find(|name| !cells.contains(name)) {
        let cells = cells.join("; ");
        return refuse(format!(
            "claim {says:?}: {unknown:?} is not one of the loads, which are: {cells}"
        ));
    }
    if let Some(unknown) = claim.systems.iter().find(|name| !systems.contains(&name.as_str())) {
        return refuse(format!("claim {says:?}: {unknown:?} is not one of the systems"));
    }
    match (claim.holds.at_least, claim.holds.at_most) {
        (None, None) => refuse(format!("claim {says:?}: holds: an end at least")),
        (Some(low), Some(high)) if low > high => {
            refuse(format!("claim {says:?}: holds: {low} is above {high}"))
        }
        _ => Ok(()),
    }
}

fn refuse(text: String) -> Result<(), Error> {
    Err(Error::Plan(text))
}

impl Plan {
    fn rounds(&self) -> u32 {
        rounds::of_file(self.file.rounds, self.conditions.quick)
    }

    /// How long all its rounds may take: less than the survey, since what is left may take longer
    /// than what was, and there is more than rounds.
    fn limit(&self) -> Duration {
        let Some(Within { whole, quick }) = self.file.within_s else { return Duration::MAX };
        let seconds = if self.conditions.quick { quick } else { whole };
        Duration::from_secs(seconds.into()).mul_f64(LIMIT_SHARE)
    }
}

/// Share of a survey's time in which its rounds should end.
const LIMIT_SHARE: f64 = 0.93;

/// Runs the survey.
///
/// # Errors
/// [`Error::Plan`] where no system is there, otherwise as [`super::overhead::run`].
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    run_from(plan, None, progress)
}

/// As [`run`], the loads being offered by `workers`, if there are any.
///
/// # Errors
/// As [`run`], and [`Error::Peer`] for a worker that is lost.
pub fn run_from(
    plan: &Plan,
    workers: Option<&mut Workers>,
    progress: &mut dyn Progress,
) -> Result<RunResult, Error> {
    let file = &plan.file;
    file.check()?;
    let (there, left_out) = split(&file.systems, &plan.systems, &plan.installations)?;
    let mut loads = file.loads();
    loads.retain(|load| load.quick || !plan.conditions.quick);
    loads.retain(|load| there.iter().any(|(name, _)| load.is_for(name)));
    if let Some(workers) = &workers {
        if file.littles_law.is_some() || file.administration.is_some() {
            let text = "workers offer loads: not those of littles_law and administration";
            return Err(Error::Plan(text.into()));
        }
        let mut workloads =
            loads.iter().map(|load| file.workload(&load.settings, plan.conditions.quick));
        workloads.try_for_each(|workload| workers.check(&workload))?;
    }
    let stages = stages(plan, &loads, &there);
    if stages.is_empty() {
        return Err(Error::Plan("no load has a system that is there".into()));
    }
    let steps = stages.iter().map(|stage| stage.steps(plan)).sum();
    let mut bench = Bench::with_workers(&plan.conditions, steps, progress, workers);
    let mut beside = Beside::default();
    for stage in &stages {
        let Beside { littles_law, administration, rated, left_out } =
            stage.run(plan, &mut bench)?;
        beside.rated.extend(rated);
        beside.littles_law = littles_law.or(beside.littles_law);
        beside.administration = administration.or(beside.administration);
        beside.left_out = beside.left_out.plus(left_out);
    }
    let mut cells: Vec<Cell> = loads.iter().map(|load| load.cell.clone()).collect();
    cells.extend(beside.rated);
    let shares: Vec<f64> = bench.runs().iter().filter_map(taken_share).collect();
    let own = [codecs_differ(bench.runs()), machine_is_quiet(&shares)];
    let rounds = beside.left_out.told(plan.rounds());
    for check in left_out.iter().map(absence).chain(own).chain(rounds) {
        bench.note(check);
    }
    let record = record(file, cells, left_out);
    let is_asked = record.asks.is_some();
    if let Some(Asks::Latency(_)) = record.asks {
        let systems: Vec<&str> = there.iter().map(|(name, _)| *name).collect();
        bench.note(asked::curves_are_known(&record, bench.runs(), &systems));
    }
    let checks = match (is_asked, record.totals.is_empty()) {
        (true, _) => checks::of_curves,
        (false, true) => checks::of_arms,
        (false, false) => checks::of_published,
    };
    let mut result = bench.finish(Experiment::Survey(record), arms(&there), checks)?;
    (result.littles_law, result.administration) = (beside.littles_law, beside.administration);
    Ok(result)
}

/// What the survey is, for its report. The short form leaves loads out, and with them what is
/// claimed of them.
fn record(file: &SurveyFile, cells: Vec<Cell>, left_out: Vec<LeftOut>) -> SurveyRecord {
    let is_measured = |name: &str| cells.iter().any(|cell| cell.name == name);
    let claims = file.claims.iter().filter(|claim| claim.loads().all(is_measured));
    let totals = file.totals.iter().filter(|total| is_measured(&total.load));
    SurveyRecord {
        question: file.question.trim().into(),
        hypothesis: file.hypothesis.trim().into(),
        source: file.source.clone(),
        pairs: file.pairs.clone(),
        claims: claims.cloned().collect(),
        totals: totals.cloned().collect(),
        cells,
        asks: file.asks.clone(),
        remarks: file.remarks.clone(),
        left_out,
    }
}

/// If all codecs store the same number of bytes, the survey shows nothing about codecs. Random
/// values do not compress, and it is unknown how far a user's file does.
fn codecs_differ(runs: &[RunRecord]) -> Check {
    let is_compressed = |run: &&RunRecord| run.workload.tuning.compression != Codec::None;
    let is_known = |run: &&RunRecord| !matches!(run.workload.filler, Filler::Random | Filler::File);
    let shortened = runs.iter().filter(is_compressed).filter(is_known);
    let mut cases: Vec<(&str, Vec<f64>)> = Vec::new();
    for run in shortened {
        let ratio = Metric::CompressionRatio.of(run);
        match cases.iter_mut().find(|(case, _)| *case == run.case) {
            Some((_, ratios)) => ratios.extend(ratio),
            None => cases.push((&run.case, ratio.into_iter().collect())),
        }
    }
    let ratios = cases.iter().map(|(case, ratios)| (*case, median(ratios)));
    let worst = ratios.min_by(|one, other| one.1.total_cmp(&other.1));
    Check {
        name: "codecs shorten what can be shortened: values by stored bytes".into(),
        passed: worst.is_none_or(|(_, ratio)| ratio >= 1.0 + CODEC_SHARE_MIN),
        weight: Weight::Validity,
        found: worst.map_or("no load with a codec".into(), |(case, ratio)| {
            format!("{ratio:.2} x at least ({case})")
        }),
        demanded: format!(">= {} x", 1.0 + CODEC_SHARE_MIN),
    }
}

#[cfg(test)]
mod tests;
