//! Two results side by side: what differs between them, and whether they may be compared at all.
//!
//! Runs of one result stand next to each other in time and are compared in pairs; runs of two
//! results are not, so the difference has in it whatever changed between the two sittings.

mod page;

use crate::checks::Verdict;
use crate::environment::Environment;
use crate::figures::{self, Series};
use crate::metric::Metric;
use crate::result::RunResult;
use moldau_load::workload::Workload;
use moldau_measure::histograms::RESOLUTION;
use moldau_measure::statistics::{UnpairedEffect, median, unpaired_effect};

pub use page::page;

/// Most names listed of cases or arms that only one result has.
const ALONE_SHOWN: usize = 3;

/// What is compared where names differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// A case of the first result, and one of the second.
    pub cases: Option<[String; 2]>,
    /// An arm of the first result, and one of the second.
    pub arms: Option<[String; 2]>,
}

/// What comparing two results came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Why nothing was compared.
    pub refusals: Vec<String>,
    /// In what the machines and the programs differ: name, first, second.
    pub environments: Vec<[String; 3]>,
    /// What stands in the way of a sure answer.
    pub warnings: Vec<String>,
    /// Case and arm by case and arm.
    pub contrasts: Vec<Contrast>,
}

/// One case and arm of either result.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// Of the first.
    pub first: Place,
    /// Of the second.
    pub second: Place,
    /// Why they were not compared: settings that differ.
    pub refusal: Option<String>,
    /// Figures that either has.
    pub differences: Vec<Difference>,
}

/// A case and an arm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The case.
    pub case: String,
    /// The arm.
    pub arm: String,
}

/// A figure of the results.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The figure.
    pub metric: Metric,
    /// Median over the runs of the first and of the second; none of one that does not have it.
    pub medians: [Option<f64>; 2],
    /// Runs of either that have it.
    pub runs: [usize; 2],
    /// Logarithm of the ratio of the second to the first; none with too few runs or a figure of 0.
    pub log_ratio: Option<UnpairedEffect>,
    /// The verdict on the second result, corrected for the number of figures.
    pub outcome: Outcome,
}

/// What a difference says of the second result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// It does not have the figure any more, as where a system cannot keep up with its load.
    Gone,
    /// No difference is shown.
    Open,
}

impl Compared {
    /// What follows for the exit code: a figure that is worse or gone, or nothing that could be
    /// compared.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut differences = self.contrasts.iter().flat_map(|contrast| &contrast.differences);
        if differences.clone().all(|difference| difference.log_ratio.is_none()) {
            Verdict::Invalid
        } else if differences.any(|it| matches!(it.outcome, Outcome::Worse | Outcome::Gone)) {
            Verdict::ObjectiveFailed
        } else {
            Verdict::Ok
        }
    }
}

/// Compares the second result with the first.
#[must_use]
pub fn compare(first: &RunResult, second: &RunResult, choice: &Choice, seed: u64) -> Compared {
    let environments = environments(&first.environment, &second.environment);
    let refusals = refusals(first, second);
    let mut compared =
        Compared { refusals, environments, warnings: Vec::new(), contrasts: Vec::new() };
    if !compared.refusals.is_empty() {
        return compared;
    }
    let (matched, alone) = matched(first, second, choice);
    compared.warnings = warnings(first, second, &alone);
    let [of_first, of_second] = [first, second].map(figures::all);
    for (one, other) in matched {
        let refusal = differing(first, second, &one, &other);
        let differences = match refusal {
            Some(_) => Vec::new(),
            None => {
                let mut all = differences([&of_first, &of_second], &one, &other, seed);
                // Each tool has figures of its own, and lacks those of others.
                let is_of_tools = [first, second].iter().any(|it| it.imported().is_some());
                all.retain(|it| !is_of_tools || !it.runs.contains(&0));
                all
            }
        };
        compared.contrasts.push(Contrast { first: one, second: other, refusal, differences });
    }
    if compared.contrasts.is_empty() {
        compared.refusals.push(
            "no case and arm has the same names in both; --cases and --arms say what is to be \
             compared"
                .into(),
        );
    }
    judge(&mut compared.contrasts);
    compared
}

/// Figures that do not hold are compared with nothing.
fn refusals(first: &RunResult, second: &RunResult) -> Vec<String> {
    let words = |result: &RunResult, which: &str| {
        let reason = match result.verdict {
            Verdict::Ok | Verdict::ObjectiveFailed => return None,
            Verdict::RecordsLost => "lost records",
            Verdict::Invalid => "is not valid",
            Verdict::Environment => "did not happen",
        };
        Some(format!("the {which} result ({}) {reason}", result.id))
    };
    [words(first, "first"), words(second, "second")].into_iter().flatten().collect()
}

fn environments(first: &Environment, second: &Environment) -> Vec<[String; 3]> {
    let rows = |it: &Environment| {
        [
            ("processors", format!("{} x {}", it.processors, it.cpu_model)),
            ("memory, bytes", it.memory_bytes.to_string()),
            ("kernel", it.kernel.clone()),
            ("file system", format!("{} on {}", it.file_system, it.device)),
            ("clock", it.clock_source.clone()),
            ("processor limit", it.cgroup_cpu_max.clone()),
            ("memory limit", it.cgroup_memory_max.clone()),
            ("frequency policy", it.frequency_governor.clone()),
            ("version of moldau", it.binary_version.clone()),
        ]
    };
    let both = rows(first).into_iter().zip(rows(second));
    let differing = both.filter(|((_, one), (_, other))| one != other);
    differing.map(|((name, one), (_, other))| [name.into(), one, other]).collect()
}

/// What is compared with what, and what stands alone on each side.
fn matched(
    first: &RunResult,
    second: &RunResult,
    choice: &Choice,
) -> (Vec<(Place, Place)>, [Vec<Place>; 2]) {
    let places = |result| -> Vec<Place> {
        let all = figures::places(result).into_iter();
        all.map(|(case, arm)| Place { case: case.into(), arm: arm.into() }).collect()
    };
    let (mut of_first, of_second) = (places(first), places(second));
    let names = |pair: &Option<[String; 2]>, side: usize, name: &str| {
        pair.as_ref().and_then(|pair| pair.get(side)).is_none_or(|wanted| wanted == name)
    };
    let is_chosen = |side: usize, place: &Place| {
        names(&choice.cases, side, &place.case) && names(&choice.arms, side, &place.arm)
    };
    of_first.retain(|place| is_chosen(0, place));
    let (mut rest, others): (Vec<Place>, Vec<Place>) =
        of_second.into_iter().partition(|place| is_chosen(1, place));
    let is_same = |one: &Place, other: &Place| {
        (choice.cases.is_some() || one.case == other.case)
            && (choice.arms.is_some() || one.arm == other.arm)
    };
    let mut found = Vec::new();
    let mut alone = Vec::new();
    // One against one needs no names.
    let is_only = of_first.len() == 1 && rest.len() == 1 && others.is_empty();
    for place in of_first {
        match rest.iter().position(|other| is_only || is_same(&place, other)) {
            Some(at) => found.push((place, rest.remove(at))),
            None => alone.push(place),
        }
    }
    (found, [alone, rest])
}

fn warnings(first: &RunResult, second: &RunResult, alone: &[Vec<Place>; 2]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (places, side) in alone.iter().zip(["first", "second"]) {
        let shown = places.iter().take(ALONE_SHOWN);
        let shown = shown.map(|it| format!("{}, {}", it.case, it.arm)).collect::<Vec<_>>();
        let more = match places.len().saturating_sub(ALONE_SHOWN) {
            0 => String::new(),
            count => format!("; and {count} more"),
        };
        if !shown.is_empty() {
            warnings.push(format!("only in the {side}: {}{more}", shown.join("; ")));
        }
    }
    if first.id == second.id && first == second {
        warnings.push("both are the same result".into());
    }
    let is_foreign = [first, second].map(|result| result.imported().is_some());
    if is_foreign[0] != is_foreign[1] {
        warnings.push(
            "one side is of another tool: what it offered is not known, and its latency counts \
             from sending, with which that of this laboratory from sending is compared"
                .into(),
        );
    }
    for result in [first, second] {
        for output in result.imported().into_iter().flat_map(|record| &record.outputs) {
            for warning in &output.warnings {
                let text = format!("{}: {warning}", output.tool.name());
                if !warnings.contains(&text) {
                    warnings.push(text);
                }
            }
        }
    }
    warnings
}

/// The settings in which what was offered differs; windows only shorten or lengthen the same.
fn differing(first: &RunResult, second: &RunResult, one: &Place, other: &Place) -> Option<String> {
    let loads = [
        figures::workload(first, &one.case, &one.arm),
        figures::workload(second, &other.case, &other.arm),
    ];
    let differing = match loads {
        [Some(one), Some(other)] => {
            let pairs = settings(one).into_iter().zip(settings(other));
            let differing = pairs.filter(|((_, one), (_, other))| one != other);
            differing.map(|((name, one), (_, other))| format!("{name}: {one}, {other}")).collect()
        }
        _ => {
            let sizes = [record_bytes(first, one), record_bytes(second, other)];
            match sizes {
                [Some(one), Some(other)] if one != other => {
                    vec![format!("record_bytes: {one}, {other}")]
                }
                _ => Vec::new(),
            }
        }
    };
    (!differing.is_empty()).then(|| differing.join("; "))
}

fn settings(workload: &Workload) -> Vec<(String, String)> {
    let value = serde_json::to_value(workload).expect("numbers and words have a JSON form");
    let fields = value.as_object().into_iter().flatten();
    let kept = fields.filter(|(name, _)| !matches!(name.as_str(), "warmup_ms" | "window_ms"));
    kept.map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn record_bytes(result: &RunResult, place: &Place) -> Option<u64> {
    if let Some(workload) = figures::workload(result, &place.case, &place.arm) {
        return Some(workload.record_bytes as u64);
    }
    let mut outputs = result.imported().into_iter().flat_map(|record| &record.outputs);
    outputs.find(|it| it.case == place.case && it.arm == place.arm)?.record_bytes
}

fn differences(sides: [&[Series]; 2], one: &Place, other: &Place, seed: u64) -> Vec<Difference> {
    let of = |side: &[Series], place: &Place, metric: Metric| -> Option<Vec<f64>> {
        let is_of = |series: &&Series| {
            series.case == place.case && series.arm == place.arm && series.metric == metric
        };
        side.iter().find(is_of).map(|series| series.values.clone())
    };
    let [first, second] = sides;
    let from_schedule = of(first, one, Metric::ResponseP50).is_some()
        && of(second, other, Metric::ResponseP50).is_some();
    let mut metrics: Vec<Metric> = Vec::new();
    let of_first = first.iter().filter(|it| it.case == one.case && it.arm == one.arm);
    let of_second = second.iter().filter(|it| it.case == other.case && it.arm == other.arm);
    for series in of_first.chain(of_second) {
        // Latency from sending says less than that from the intended time.
        let is_lesser =
            matches!(series.metric, Metric::ServiceP50 | Metric::ServiceP99 | Metric::ServiceP999);
        if !(is_lesser && from_schedule || metrics.contains(&series.metric)) {
            metrics.push(series.metric);
        }
    }
    let difference = |metric: Metric| {
        let sides = [of(first, one, metric), of(second, other, metric)];
        let logarithms = |values: &Option<Vec<f64>>| -> Vec<f64> {
            values.iter().flatten().map(|it| it.ln()).collect()
        };
        let [one, other] = sides.each_ref().map(logarithms);
        let is_gone = is_judged(metric) && matches!(sides, [Some(_), None]);
        Difference {
            metric,
            medians: sides.each_ref().map(|values| values.as_deref().map(median)),
            runs: [one.len(), other.len()],
            log_ratio: unpaired_effect(&one, &other, seed),
            outcome: if is_gone { Outcome::Gone } else { Outcome::Open },
        }
    };
    metrics.into_iter().map(difference).collect()
}

/// Decides over all figures together, so that one of twenty is not worse by chance.
fn judge(contrasts: &mut [Contrast]) {
    let all = || contrasts.iter().flat_map(|contrast| &contrast.differences);
    let count = all().filter(|it| is_judged(it.metric) && it.log_ratio.is_some()).count();
    for difference in contrasts.iter_mut().flat_map(|contrast| &mut contrast.differences) {
        let Some(effect) = &difference.log_ratio else { continue };
        let is_told = effect.mean.abs() >= RESOLUTION.ln_1p();
        if is_judged(difference.metric) && is_told && effect.is_shown_among(count) {
            let is_worse = (effect.mean > 0.0) == difference.metric.unit().less_is_better();
            difference.outcome = if is_worse { Outcome::Worse } else { Outcome::Better };
        }
    }
}

/// Usage of the laboratory's own clients is no figure of the system.
fn is_judged(metric: Metric) -> bool {
    metric != Metric::GeneratorCpu
}

#[cfg(test)]
mod tests;
