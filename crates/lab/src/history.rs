//! Many results over time: each figure as a line.
//!
//! Results belong to one line only if the machine and what was offered are the same; another
//! processor begins another line.

mod page;

use crate::checks::Verdict;
use crate::figures;
use crate::metric::Metric;
use crate::result::RunResult;
use moldau_measure::statistics::median;

pub use page::page;

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

impl Line {
    /// The first value and the latest, where there are two or more.
    #[must_use]
    pub fn ends(&self) -> Option<[f64; 2]> {
        let (first, later) = self.points.split_first()?;
        Some([first.value, later.last()?.value])
    }
}

/// Lays results over time, in whatever order they come.
#[must_use]
pub fn history(results: &[RunResult]) -> History {
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
    history
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
                load,
            }),
        }
    }
}

fn machine(result: &RunResult) -> String {
    let it = &result.environment;
    match it.processors {
        0 => "an unknown machine".into(),
        processors => {
            format!("{processors} x {}, {} on {}", it.cpu_model, it.file_system, it.device)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

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
    fn values_stand_in_the_order_of_time_whatever_the_order_of_results() {
        let mut results: Vec<RunResult> =
            (0..4).map(|day| result(day, if day < 2 { 1.0 } else { 1.1 })).collect();
        results.reverse();
        let history = history(&results);
        assert_eq!((history.results, history.left_out.len()), (4, 0));
        let line = proxy_cpu(&history);
        let ids: Vec<&str> = line.points.iter().map(|point| point.id.as_str()).collect();
        assert_eq!(ids, ["day-0", "day-1", "day-2", "day-3"]);
        let [first, latest] = line.ends().unwrap();
        assert!((latest / first - 1.1).abs() < 0.02, "{first} {latest}");
    }

    #[test]
    fn another_machine_and_another_load_begin_lines_of_their_own() {
        let mut results: Vec<RunResult> = (0..3).map(|day| result(day, 1.0)).collect();
        results[1].environment.cpu_model = "another".into();
        for run in &mut results[2].runs {
            run.workload.record_bytes = 2048;
        }
        let history = history(&results);
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
        let history = history(&[result(0, 1.0), broken]);
        assert_eq!(history.left_out, ["day-1: not valid"]);
        assert_eq!(proxy_cpu(&history).points.len(), 1);
    }
}
