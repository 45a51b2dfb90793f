//! What fronts cost, side by side: processor time, latency, throughput and memory, a column for
//! each arm; with many arms a row for each.

use super::added;
use super::grid::Grid;
use super::table::{NONE, comparisons, shows};
use crate::metric::{Metric, compare_one};
use crate::punctuality::{
    cannot_keep_up, has_latencies, is_late, is_saturated, latencies_are_withheld,
};
use crate::result::{Arm, Experiment, RunRecord, RunResult};
use moldau_load::workload::Pace;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{bytes, estimate, number, thousands};
use moldau_measure::statistics::{median, paired_effect};

/// The arm whose processor time others are multiples of.
const RELAY: &str = "relay";

/// What tells throughput: of what is consumed, if anything is.
const THROUGHPUT: [Metric; 2] = [Metric::ConsumeThroughput, Metric::ProduceThroughput];

/// More columns are wider than a screen.
const ARM_COLUMNS_MAX: usize = 8;

/// The tables of a result that asks what fronts cost; none for any other.
pub(super) fn grids(result: &RunResult) -> Vec<Grid> {
    if result.experiment != Experiment::Overhead {
        return Vec::new();
    }
    let mut grids = vec![processor_time(result), latency(result), throughput(result)];
    grids.extend(added::grids(result));
    grids.push(memory(result));
    grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

fn processor_time(result: &RunResult) -> Grid {
    let has_front = |arm: &&Arm| {
        let mut runs = result.runs.iter().filter(|run| run.arm == arm.name);
        runs.any(|run| Metric::ProxyCpu.of(run).is_some())
    };
    let arms: Vec<&Arm> = result.arms.iter().filter(has_front).collect();
    by_case(
        result,
        &arms,
        "Processor time of what stands before the broker, CPU-ms per MB",
        "User and system time of its process inside the measured window, by MB (2^20 bytes of \
         record values) that were produced and consumed through it there. Means over the runs with \
         95 % intervals; x is the multiple of the bare relay's.",
        |case, arm| cost(result, case, arm),
    )
}

fn latency(result: &RunResult) -> Grid {
    by_case(
        result,
        &result.arms.iter().collect::<Vec<_>>(),
        "Publish latency at a fixed rate, p50 / p99, ms",
        "From the intended time of a record to its acknowledgement, medians over the runs that \
         keep up with the rate and whose generator was in time, counted where some were not; \
         where too many were not, the arm is late and has none. An arm that is saturated does not \
         keep up in half of its runs or more; told is what it takes instead.",
        |case, arm| {
            let runs = runs_of(result, case, arm);
            if cannot_keep_up(&runs) {
                let taken = middle(&runs, Metric::ProduceThroughput)?;
                let taken = number(taken, Unit::MegabytesPerSecond);
                return Some(format!("saturated at {taken} MB/s"));
            }
            if latencies_are_withheld(&runs) {
                let late = runs.iter().filter(|run| is_late(run) && !is_saturated(run)).count();
                return (late > 0).then(|| format!("late in {late} of {} runs", runs.len()));
            }
            let [p50, p99] = [Metric::ResponseP50, Metric::ResponseP99]
                .map(|metric| middle(&runs, metric).map(|value| number(value, Unit::Milliseconds)));
            let count = runs.iter().filter(|run| has_latencies(run)).count();
            let of = if count < runs.len() {
                format!(" ({count} of {} runs)", runs.len())
            } else {
                String::new()
            };
            Some(format!("{} / {}{of}", p50?, p99?))
        },
    )
}

fn throughput(result: &RunResult) -> Grid {
    let arms: Vec<&Arm> = result.arms.iter().collect();
    let first = arms.first().map_or("", |arm| arm.name.as_str());
    let rate = |case: &str, arm: &str| {
        let runs = runs_of(result, case, arm);
        let is_fixed = runs.iter().any(|run| matches!(run.workload.pace, Pace::Scheduled { .. }));
        THROUGHPUT.iter().find_map(|m| middle(&runs, *m)).filter(|_| !is_fixed)
    };
    let shown = |case: &str, arm: &str| {
        let of = |metric: &Metric| {
            comparisons(result, case, arm).find(|it| it.metric == *metric && it.effect.is_some())
        };
        Some(shows(&THROUGHPUT.iter().find_map(of)?.effect?.log_ratio))
    };
    by_case(
        result,
        &arms,
        "Throughput at full speed, MB/s",
        "Medians over the runs; the share is that of the first arm, and what the ratio of \
         neighbouring runs shows: equal within 5 or 10 % where its 90 % interval lies there, open \
         where neither that nor a difference is shown.",
        |case, arm| {
            let own = rate(case, arm)?;
            let words = number(own, Unit::MegabytesPerSecond);
            match rate(case, first).filter(|_| arm != first) {
                Some(whole) => {
                    let shown = shown(case, arm).map_or(String::new(), |it| format!(", {it}"));
                    Some(format!("{words} ({:.0} %{shown})", own / whole * 100.0))
                }
                None => Some(words),
            }
        },
    )
}

fn memory(result: &RunResult) -> Grid {
    let row = |arm: &Arm| {
        let idle = arm.idle?;
        Some(vec![
            arm.name.clone(),
            bytes(idle.resident_bytes),
            bytes(idle.anonymous_bytes),
            thousands(idle.threads),
        ])
    };
    Grid::of(
        "Idle",
        "What each holds some seconds after its start, before anything passed through it.",
        &["arm", "resident", "of it no file's", "threads"],
        result.arms.iter().filter_map(row),
    )
}

/// A row for each case that has a cell, a column for each arm; or the other way round where there
/// are many arms.
fn by_case(
    result: &RunResult,
    arms: &[&Arm],
    title: &str,
    about: &'static str,
    cell: impl Fn(&str, &str) -> Option<String>,
) -> Grid {
    let columns: Vec<String> =
        std::iter::once("case").chain(arms.iter().map(|arm| &*arm.name)).map(Into::into).collect();
    let cases = result.cases();
    let rows = cases.iter().filter_map(|case| {
        let cells: Vec<Option<String>> = arms.iter().map(|arm| cell(case, &arm.name)).collect();
        let has_any = cells.iter().any(Option::is_some);
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NONE.into()));
        has_any.then(|| std::iter::once((*case).to_string()).chain(cells).collect())
    });
    let lines: Vec<Vec<String>> = std::iter::once(columns).chain(rows).collect();
    let is_empty = lines.len() == 1;
    let lines = if arms.len() > ARM_COLUMNS_MAX { transposed(&lines) } else { lines };
    let mut lines = lines.into_iter().filter(|_| !is_empty);
    let columns = lines.next().unwrap_or_default();
    Grid::of(title, about, &columns, lines)
}

/// The columns of a table as its lines.
fn transposed(lines: &[Vec<String>]) -> Vec<Vec<String>> {
    let count = lines.first().map_or(0, Vec::len);
    let column = |at: usize| lines.iter().filter_map(|line| line.get(at).cloned()).collect();
    (0..count).map(column).collect()
}

/// What an arm's front takes of a processor, with its interval and as a multiple of the relay.
fn cost(result: &RunResult, case: &str, arm: &str) -> Option<String> {
    let unit = Metric::ProxyCpu.unit();
    let figures = figures(&runs_of(result, case, arm), Metric::ProxyCpu);
    let mut words = match paired_effect(&figures, result.seed) {
        Some(effect) => estimate(&effect, unit),
        None if figures.is_empty() => return None,
        None => number(median(&figures), unit),
    };
    if arm != RELAY {
        let compared =
            compare_one(&result.runs, case, RELAY, arm, Metric::ProxyCpu, result.seed).effect;
        if let Some(effect) = compared {
            words += &format!(", {} x", number(effect.log_ratio.mean.exp(), Unit::Times));
        }
    }
    Some(words)
}

fn runs_of<'a>(result: &'a RunResult, case: &'a str, arm: &'a str) -> Vec<&'a RunRecord> {
    result.runs_of(case, arm).collect()
}

fn figures(runs: &[&RunRecord], metric: Metric) -> Vec<f64> {
    runs.iter().filter_map(|run| metric.of(run)).collect()
}

/// The median of a figure over the runs that have it.
fn middle(runs: &[&RunRecord], metric: Metric) -> Option<f64> {
    let figures = figures(runs, metric);
    (!figures.is_empty()).then(|| median(&figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    /// The sample with a bare relay of half the proxy's cost as a third arm.
    fn with_relay() -> RunResult {
        let mut result = sample::result();
        let proxied = result.runs.iter().filter(|run| run.arm == "proxy").cloned();
        let relayed = proxied.map(|mut run| {
            run.arm = RELAY.into();
            for usage in run.processes.iter_mut().filter(|usage| usage.role == "proxy") {
                usage.cpu_ns /= 2;
            }
            run
        });
        let relayed: Vec<RunRecord> = relayed.collect();
        result.runs.extend(relayed);
        result.arms.push(Arm::of(RELAY, "a bare relay"));
        result
    }

    fn grid<'a>(grids: &'a [Grid], title: &str) -> &'a Grid {
        grids.iter().find(|grid| grid.title.starts_with(title)).expect("the table is there")
    }

    #[test]
    fn processor_time_stands_by_case_and_arm_with_the_multiple_of_the_relay() {
        let grids = grids(&with_relay());
        let cpu = grid(&grids, "Processor time");
        assert_eq!(cpu.columns, ["case", "proxy", "relay"]);
        let [fixed, full_speed] = cpu.rows.as_slice() else { panic!("{:?}", cpu.rows) };
        // 260 ms over 240,000 records of 1 KB in each of six runs.
        assert_eq!(fixed[1..], ["1.11 [1.11, 1.11], 2.00 x", "0.555 [0.555, 0.555]"]);
        assert!(full_speed[1].ends_with(", 2.00 x"), "{full_speed:?}");
    }

    #[test]
    fn throughput_is_told_at_full_speed_alone_and_as_a_share() {
        let grids = grids(&with_relay());
        let [row] = grid(&grids, "Throughput").rows.as_slice() else { panic!("one case") };
        assert_eq!(row[0], "Produce at full speed");
        assert_eq!(row[1], "246");
        assert!(row[2].ends_with("(80 %, differs)"), "{row:?}");
    }

    #[test]
    fn a_saturated_arm_has_a_rate_instead_of_latencies() {
        let mut result = with_relay();
        for run in result.runs.iter_mut().filter(|run| run.arm == RELAY && run.latency.is_some()) {
            run.produced_records = 60_000;
        }
        let grids = grids(&result);
        let [row] = grid(&grids, "Publish latency").rows.as_slice() else { panic!("one case") };
        assert!(row[1].contains(" / ") && row[2].contains(" / "), "{row:?}");
        assert_eq!(row[3], "saturated at 9.77 MB/s");
    }

    #[test]
    fn latencies_say_over_how_many_runs_they_are_if_not_over_all() {
        let mut result = with_relay();
        let late = result.runs.iter_mut().filter(|run| run.arm == "proxy").take(2);
        late.for_each(|run| sample::make_late(run, 1_100_000, 100));
        let grids = grids(&result);
        let [row] = grid(&grids, "Publish latency").rows.as_slice() else { panic!("one case") };
        assert!(row[2].ends_with(" (4 of 6 runs)") && !row[1].contains("runs"), "{row:?}");
        let page = crate::report::markdown(&result);
        assert!(page.contains("| median of 6 runs, latencies of 6 and 4 | direct | proxy |"));
        assert!(page.contains("| median of 3 runs | direct | proxy |"));
    }

    #[test]
    fn many_arms_have_a_row_each() {
        let mut result = with_relay();
        let arm = |index: usize| Arm::of(&format!("arm-{index}"), "");
        result.arms.extend((result.arms.len()..ARM_COLUMNS_MAX + 1).map(arm));
        let grids = grids(&result);
        let latency = grid(&grids, "Publish latency");
        assert_eq!(latency.columns, ["case", sample::FIXED]);
        assert_eq!(latency.rows.len(), ARM_COLUMNS_MAX + 1);
        assert_eq!(latency.rows[0][0], "direct");
        assert_eq!(latency.rows[3], ["arm-3", "-"]);
    }

    #[test]
    fn idle_memory_is_told_of_arms_that_have_a_front() {
        let mut result = with_relay();
        assert!(grids(&result).iter().all(|grid| grid.title != "Idle"));
        let idle = moldau_measure::resources::Resources {
            resident_bytes: 3 << 20,
            anonymous_bytes: 1 << 20,
            threads: 2,
            ..Default::default()
        };
        result.arms[1].idle = Some(idle);
        let grids = grids(&result);
        assert_eq!(grid(&grids, "Idle").rows, [["proxy", "3.00 MiB", "1.00 MiB", "2"]]);
    }

    #[test]
    fn other_questions_have_no_such_tables() {
        let result = RunResult { experiment: Experiment::SideBySide, ..with_relay() };
        assert!(grids(&result).is_empty());
    }
}
