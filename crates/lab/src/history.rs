//! Many results over time: each figure as a line, and where it changed for good.
//!
//! Results belong to one line only if the machine and what was offered are the same; another
//! processor begins another line.

use crate::checks::Verdict;
use crate::figures;
use crate::metric::Metric;
use crate::result::RunResult;
use moldau_measure::histograms::RESOLUTION;
use moldau_measure::statistics::change_points::{VALUES_MAX, change_points, smallest_p};
use moldau_measure::statistics::{float, median, unpaired_effect};

/// Level of all tests of a history together.
const LEVEL: f64 = 0.05;

/// What many results came to.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The figures, each in the order of time.
    pub lines: Vec<Line>,
    /// Results that were read and used.
    pub results: usize,
    /// Results that were left out, each with the reason.
    pub left_out: Vec<String>,
}

impl History {
    /// Fewest results with which each of as many lines can show a change.
    #[must_use]
    pub fn results_min(&self) -> usize {
        let level = level_among(self.lines.len());
        (0..VALUES_MAX).find(|results| smallest_p(*results) <= level).unwrap_or(VALUES_MAX)
    }
}

/// One figure of one case and arm over time, on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The case.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The figure.
    pub metric: Metric,
    /// The machine, for people.
    pub machine: String,
    /// Its values by time.
    pub points: Vec<Point>,
    /// Whether they are enough to show a change among so many lines.
    pub is_tested: bool,
    /// Where it changed.
    pub changes: Vec<Change>,
    /// What was offered, as text; lines of other loads are other lines.
    load: String,
}

/// A figure of one result.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The result.
    pub id: String,
    /// Version of the binary that was measured.
    pub version: String,
    /// When it was measured, ms since 1970.
    pub unix_ms: u64,
    /// Median over its runs.
    pub value: f64,
    /// Lowest and highest run.
    pub range: [f64; 2],
}

/// What a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tendency {
    /// Values became better.
    Better,
    /// Values became worse.
    Worse,
    /// Values stayed, and scatter more or less than before.
    Spread,
}

impl Tendency {
    /// In tables.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Spread => "spread",
        }
    }
}

/// A change of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first point after it.
    pub at: usize,
    /// Median from the change before to this one.
    pub before: f64,
    /// Median from here to the next change.
    pub after: f64,
    /// Whether the values are shown to lie elsewhere; they may merely scatter otherwise.
    pub is_shift: bool,
    /// How often as clear a change comes about by chance.
    pub p: f64,
}

impl Change {
    /// What it is for.
    #[must_use]
    pub fn tendency(&self, metric: Metric) -> Tendency {
        let is_worse = (self.after > self.before) == metric.unit().less_is_better();
        match (self.is_shift, is_worse) {
            (false, _) => Tendency::Spread,
            (true, true) => Tendency::Worse,
            (true, false) => Tendency::Better,
        }
    }
}

/// Lays results over time, in whatever order they come.
#[must_use]
pub fn history(results: &[RunResult], seed: u64) -> History {
    let mut ordered: Vec<&RunResult> = results.iter().collect();
    ordered.sort_by_key(|result| result.started_unix_ms);
    let mut history = History { lines: Vec::new(), results: 0, left_out: Vec::new() };
    for result in ordered {
        match result.verdict {
            Verdict::Ok | Verdict::ObjectiveFailed => {
                history.results += 1;
                append(&mut history.lines, result);
            }
            Verdict::RecordsLost => history.left_out.push(format!("{}: lost records", result.id)),
            Verdict::Invalid => history.left_out.push(format!("{}: not valid", result.id)),
            Verdict::Environment => {
                history.left_out.push(format!("{}: did not happen", result.id));
            }
        }
    }
    find_changes(&mut history.lines, seed);
    history
}

/// Looks for the changes of lines at the level of all of them together. It is shared by those that
/// have enough points to reach their part of it, and the others take nothing from them (Tarone
/// 1990, "A Modified Bonferroni Method for Discrete Data").
fn find_changes(lines: &mut [Line], seed: u64) {
    let smallest: Vec<f64> = lines.iter().map(|line| smallest_p(line.points.len())).collect();
    let reaching = |level: f64| smallest.iter().filter(|p| **p <= level).count();
    let among = (1..=lines.len()).find(|among| reaching(level_among(*among)) <= *among);
    let level = level_among(among.unwrap_or(1));
    for (line, smallest) in lines.iter_mut().zip(&smallest) {
        line.is_tested = *smallest <= level;
        if line.is_tested {
            line.changes = changes(&line.points, level, seed);
        }
    }
}

/// The level of each of so many lines.
fn level_among(lines: usize) -> f64 {
    LEVEL / float(lines.max(1) as u64)
}

fn append(lines: &mut Vec<Line>, result: &RunResult) {
    let machine = machine(result);
    for series in figures::all(result) {
        let load = figures::workload(result, &series.case, &series.arm);
        let load = load.map_or_else(String::new, |load| format!("{load:?}"));
        let fold = |pick: fn(f64, f64) -> f64| series.values.iter().copied().reduce(pick);
        let (Some(low), Some(high)) = (fold(f64::min), fold(f64::max)) else { continue };
        let point = Point {
            id: result.id.clone(),
            version: result.environment.binary_version.clone(),
            unix_ms: result.started_unix_ms,
            value: median(&series.values),
            range: [low, high],
        };
        let is_same = |line: &&mut Line| {
            (&line.case, &line.arm, line.metric) == (&series.case, &series.arm, series.metric)
                && (&line.machine, &line.load) == (&machine, &load)
        };
        match lines.iter_mut().find(is_same) {
            Some(line) => line.points.push(point),
            None => lines.push(Line {
                case: series.case,
                arm: series.arm,
                metric: series.metric,
                machine: machine.clone(),
                points: vec![point],
                is_tested: false,
                changes: Vec::new(),
                load,
            }),
        }
    }
}

fn machine(result: &RunResult) -> String {
    let it = &result.environment;
    match it.processors {
        0 => "a machine that is not told".into(),
        processors => {
            format!("{processors} x {}, {} on {}", it.cpu_model, it.file_system, it.device)
        }
    }
}

fn changes(points: &[Point], level: f64, seed: u64) -> Vec<Change> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let found = change_points(&values, level, seed);
    let ends: Vec<usize> = found.iter().map(|it| it.at).chain([values.len()]).collect();
    let mut start = 0;
    let mut changes = Vec::new();
    for (change, end) in found.iter().zip(ends.iter().skip(1)) {
        let segment = |from: usize, to: usize| values.get(from..to).unwrap_or_default();
        let (earlier, later) = (segment(start, change.at), segment(change.at, *end));
        let (before, after) = (median(earlier), median(later));
        let is_shift = is_shift([earlier, later], after / before, seed);
        changes.push(Change { at: change.at, before, after, is_shift, p: change.p });
        start = change.at;
    }
    changes
}

/// Whether values that are known to differ are shown to lie elsewhere, which their medians do by
/// chance where they only scatter more.
fn is_shift([before, after]: [&[f64]; 2], ratio: f64, seed: u64) -> bool {
    let logarithms = |values: &[f64]| values.iter().map(|it| it.ln()).collect::<Vec<_>>();
    let effect = unpaired_effect(&logarithms(before), &logarithms(after), seed);
    // The place was chosen among all between two values. Of too few to know their scatter nothing
    // else can be said.
    let places = before.len() + after.len() - 1;
    let is_shown = effect.is_none_or(|effect| effect.is_shown_among(places));
    is_shown && ratio.ln().abs() >= RESOLUTION.ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use moldau_measure::statistics::standard_normal;

    /// A result of day `day` whose proxy takes `share` of the usual processor time.
    fn result(day: u64, share: f64) -> RunResult {
        let mut result = sample::result();
        result.started_unix_ms += day * 86_400_000;
        result.id = format!("day-{day}");
        let mut random = fastrand::Rng::with_seed(day);
        for usage in result.runs.iter_mut().flat_map(|run| &mut run.processes) {
            if usage.role == "proxy" {
                let noise = 1.0 + 0.01 * (random.f64() - 0.5);
                usage.cpu_ns = format!("{:.0}", 260e6 * share * noise).parse().unwrap();
            }
        }
        result
    }

    fn proxy_cpu(history: &History) -> &Line {
        let of = |line: &&Line| line.metric == Metric::ProxyCpu && line.case == sample::FIXED;
        history.lines.iter().find(of).unwrap()
    }

    #[test]
    fn a_step_is_told_with_its_result_and_its_size() {
        let mut results: Vec<RunResult> =
            (0..16).map(|day| result(day, if day < 10 { 1.0 } else { 1.1 })).collect();
        results.reverse();
        let history = history(&results, 1);
        assert_eq!((history.results, history.left_out.len()), (16, 0));
        let line = proxy_cpu(&history);
        let [change] = line.changes.as_slice() else { panic!("{:?}", line.changes) };
        assert_eq!(line.points[change.at].id, "day-10");
        assert!(
            (change.after / change.before - 1.1).abs() < 0.01
                && change.tendency(line.metric) == Tendency::Worse
        );
        // Nothing else changed.
        assert_eq!(history.lines.iter().filter(|line| !line.changes.is_empty()).count(), 2);
    }

    fn point(value: f64) -> Point {
        let (id, version) = (String::new(), String::new());
        Point { id, version, unix_ms: 0, value, range: [value, value] }
    }

    /// A line of these values and 1 % of noise.
    fn line(number: u64, values: impl Iterator<Item = f64>) -> Line {
        let mut random = fastrand::Rng::with_seed(number);
        let point = |value: f64| point(value * (1.0 + 0.01 * (random.f64() - 0.5)));
        Line {
            case: format!("case {number}"),
            arm: "arm".into(),
            metric: Metric::ProxyCpu,
            machine: String::new(),
            points: values.map(point).collect(),
            is_tested: false,
            changes: Vec::new(),
            load: String::new(),
        }
    }

    /// What becomes of lines of 10 and 20 values around these, which scatter by so many per cent.
    fn tendencies(around: [f64; 2], scatter: [f64; 2], metric: Metric) -> Vec<Tendency> {
        let of = |seed: u64| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut value = |at: usize| {
                let side = usize::from(at >= 10);
                let off = scatter[side] / 100.0 * standard_normal(&mut random);
                around[side] * (1.0 + off)
            };
            let values: Vec<f64> = (0..30).map(&mut value).collect();
            let mut line = line(seed, std::iter::empty());
            line.points = values.iter().map(|value| point(*value)).collect();
            changes(&line.points, 0.05, seed)
        };
        let changes = (0..60).flat_map(of);
        changes.map(|change| change.tendency(metric)).collect()
    }

    #[test]
    fn values_that_scatter_more_around_the_same_are_no_worse() {
        let metric = Metric::ProxyCpu;
        let found = tendencies([100.0, 100.0], [0.3, 6.0], metric);
        let directed = found.iter().filter(|it| **it != Tendency::Spread).count();
        assert!(found.len() >= 30 && directed * 6 <= found.len(), "{directed} of {}", found.len());
        // What lies elsewhere does so however it scatters.
        let found = tendencies([100.0, 110.0], [0.3, 4.0], metric);
        let worse = found.iter().filter(|it| **it == Tendency::Worse).count();
        assert!(found.len() >= 60 && worse * 10 >= found.len() * 9, "{worse} of {}", found.len());
        let found = tendencies([100.0, 110.0], [0.3, 0.3], Metric::ProduceRecords);
        let better = found.iter().filter(|it| **it == Tendency::Better).count();
        assert!(better >= 60 && found.len() <= 66, "{better} of {}", found.len());
    }

    #[test]
    fn a_step_in_one_of_many_lines_is_found() {
        // A level of 1 in 16,000 for each, and 1 in 92,378 orders are as clear.
        let steady = |number: u64| line(number, [100.0; 20].into_iter());
        let mut lines: Vec<Line> = (0..799).map(steady).collect();
        lines.push(line(799, (0..20).map(|at| if at < 10 { 100.0 } else { 120.0 })));
        find_changes(&mut lines, 1);
        assert!(lines.iter().all(|line| line.is_tested));
        let [change] = lines[799].changes.as_slice() else { panic!("{:?}", lines[799].changes) };
        assert!(change.at == 10 && change.p <= 0.05 / 800.0, "{change:?}");
        let others = lines.iter().take(799).filter(|line| !line.changes.is_empty()).count();
        assert!(others <= 1, "{others}");
    }

    #[test]
    fn lines_that_cannot_show_a_change_take_nothing_from_those_that_can() {
        let step = |at: usize| if at < 5 { 100.0 } else { 120.0 };
        let of = |short: u64| {
            let mut lines = vec![line(0, (0..10).map(step))];
            lines.extend((1..=short).map(|number| line(number, [100.0; 7].into_iter())));
            find_changes(&mut lines, 1);
            let tested = lines.iter().filter(|line| line.is_tested).count();
            (tested, lines[0].changes.len())
        };
        assert_eq!(of(0), (1, 1));
        assert_eq!(of(500), (1, 1));
    }

    #[test]
    fn no_step_is_told_among_more_lines_than_its_results_can_bear() {
        // Two of 12,870 orders are as clear, and the level of each is 1 in 16,000.
        let step = |at: usize| if at < 8 { 100.0 } else { 120.0 };
        let lines = (0..800).map(|number| line(number, (0..16).map(step)));
        let mut history = History { lines: lines.collect(), results: 16, left_out: Vec::new() };
        find_changes(&mut history.lines, 1);
        assert!(history.lines.iter().all(|line| !line.is_tested && line.changes.is_empty()));
        assert_eq!(history.results_min(), 18);
    }

    #[test]
    fn another_machine_and_another_load_begin_lines_of_their_own() {
        let mut results: Vec<RunResult> = (0..3).map(|day| result(day, 1.0)).collect();
        results[1].environment.cpu_model = "another".into();
        for run in &mut results[2].runs {
            run.workload.record_bytes = 2048;
        }
        let history = history(&results, 1);
        let of_proxy = history
            .lines
            .iter()
            .filter(|line| line.metric == Metric::ProxyCpu && line.case == sample::FIXED);
        assert_eq!(of_proxy.map(|line| line.points.len()).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn results_that_do_not_hold_are_left_out_by_name() {
        let mut broken = result(1, 1.0);
        broken.verdict = Verdict::Invalid;
        let history = history(&[result(0, 1.0), broken], 1);
        assert_eq!(history.left_out, ["day-1: not valid"]);
        assert_eq!(proxy_cpu(&history).points.len(), 1);
    }
}
