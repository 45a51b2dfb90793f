//! Charts made of runs, for the pages of experiments that have such.

use crate::metric::Metric;
use crate::page::{
    Axis, Cell, Chart, Estimate, Group, Line, Mark, Plot, Point, Scale, Series, Style,
};
use crate::punctuality::{has_latencies, is_late, is_saturated, is_scheduled, tells_no_latencies};
use crate::result::{Arm, LatencyRecord, RunResult, Slot};
use crate::run_figures::{estimate, milliseconds, runs_of, throughput_estimate};
use moldau_load::run::RunRecord;
use moldau_measure::Error;
use moldau_measure::histograms::{Durations, HistogramRecord};
use moldau_measure::statistics::float;

/// The colour of an arm where none is the baseline.
pub(crate) fn tone(result: &RunResult, arm: &str) -> usize {
    result.arms.iter().position(|it| it.name == arm).map_or(0, |place| place + 1)
}

/// What lines of several arms show.
pub(crate) struct Drawn<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) about: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

/// A line for each arm that has two points; `None` where none has.
pub(crate) fn lines(
    result: &RunResult,
    drawn: Drawn<'_>,
    points: impl Fn(&str) -> Vec<(f64, f64)>,
) -> Option<Chart> {
    let Drawn { id, title, about, x, y } = drawn;
    let (mut series, mut lines) = (Vec::new(), Vec::new());
    for arm in &result.arms {
        let points: Vec<Point> =
            points(&arm.name).into_iter().map(|(x, y)| Point { x, y: y.into() }).collect();
        if points.len() > 1 {
            lines.push(Line { series: series.len(), style: Style::Joined, points });
            series.push(Series { name: arm.name.clone(), tone: tone(result, &arm.name) });
        }
    }
    (!lines.is_empty()).then(|| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        series,
        plot: Plot::Lines { x, y, lines, guides: Vec::new() },
    })
}

/// What bars of several loads and arms show.
pub(crate) struct Compared<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) about: &'a str,
    pub(crate) axis: Axis,
    pub(crate) mark: Mark,
}

/// A figure of every arm, in a group for each load; `None` where there is none. Arms that have it
/// in no load are left out.
pub(crate) fn bars(
    result: &RunResult,
    cases: &[&str],
    compared: Compared<'_>,
    tone: impl Fn(&str) -> usize,
    figure: impl Fn(&[&RunRecord]) -> Cell,
) -> Option<Chart> {
    let cell = |case: &str, arm: &Arm| figure(&runs_of(result, case, &arm.name));
    let has_any = |arm: &&Arm| cases.iter().any(|case| cell(case, arm) != Cell::Absent);
    let arms: Vec<&Arm> = result.arms.iter().filter(has_any).collect();
    let group = |case: &&str| Group {
        name: (*case).to_owned(),
        cells: arms.iter().map(|arm| cell(case, arm)).collect(),
    };
    let groups: Vec<Group> = cases
        .iter()
        .map(group)
        .filter(|group| group.cells.iter().any(|cell| *cell != Cell::Absent))
        .collect();
    let series = arms.iter();
    let series = series.map(|arm| Series { name: arm.name.clone(), tone: tone(&arm.name) });
    let Compared { id, title, about, axis, mark } = compared;
    (!groups.is_empty()).then(|| Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        series: series.collect(),
        plot: Plot::Bars { axis, mark, groups },
    })
}

/// Two charts of the same arms and axis as the groups of one, under these names.
pub(crate) fn together(mut first: Chart, second: Chart, names: [&str; 2]) -> Option<Chart> {
    let Plot::Bars { groups, .. } = &mut first.plot else { return None };
    let Plot::Bars { groups: others, .. } = second.plot else { return None };
    groups.extend(others);
    for (group, name) in groups.iter_mut().zip(names) {
        name.clone_into(&mut group.name);
    }
    (first.series == second.series).then_some(first)
}

/// CPU time per MB of every arm, a group for each load.
pub(crate) fn cpu(
    result: &RunResult,
    id: &str,
    cases: &[&str],
    (metric, of_whom): (Metric, &str),
    tone: impl Fn(&str) -> usize,
) -> Option<Chart> {
    let about = format!(
        "Of {of_whom}, per MB that goes in and out. Less is better; whiskers are 95 % intervals of \
         the mean."
    );
    let axis = Axis::new("CPU time per MB", "ms", Scale::Linear);
    let title = "CPU time per MB";
    let compared = Compared { id, title, about: &about, axis, mark: Mark::Bar };
    bars(result, cases, compared, tone, |runs| {
        estimate(runs, metric, result.seed).map_or(Cell::Absent, Cell::Figure)
    })
}

/// Throughput of every arm without a rate, a group for each load.
pub(crate) fn throughput(
    result: &RunResult,
    id: &str,
    cases: &[&str],
    tone: impl Fn(&str) -> usize,
) -> Option<Chart> {
    let compared = Compared {
        id,
        title: "Throughput at full speed",
        about: "As fast as it is taken. More is better; whiskers are 95 % intervals of the mean.",
        axis: Axis::new("throughput", "MB/s", Scale::Linear),
        mark: Mark::Bar,
    };
    bars(result, cases, compared, tone, |runs| {
        throughput_estimate(runs, result.seed).map_or(Cell::Absent, Cell::Figure)
    })
}

/// A name of a case as part of a file's name.
pub(crate) fn slug(name: &str) -> String {
    let letter = |it: char| if it.is_alphanumeric() { it.to_ascii_lowercase() } else { '-' };
    let letters: String = name.chars().map(letter).collect();
    letters.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Points of a percentile curve per factor of ten of its tail.
const POINTS_PER_DECADE: u32 = 12;

/// Decades of a percentile curve at most: p99.9999.
const DECADES_MAX: u32 = 6;

/// Latencies of a case by percentile, all runs of an arm together with the lowest and the highest
/// run as a band; `None` where no arm has any.
///
/// # Errors
/// [`Error::Document`] when a histogram cannot be read.
pub(crate) fn percentiles(
    result: &RunResult,
    case: &str,
    tone: impl Fn(&str) -> usize,
    latency: impl Fn(&LatencyRecord) -> &HistogramRecord,
) -> Result<Option<Chart>, Error> {
    let mut arms: Vec<(&str, Vec<Durations>)> = Vec::new();
    for arm in &result.arms {
        let of_arm: Vec<&RunRecord> = result.runs_of(case, &arm.name).collect();
        if tells_no_latencies(&of_arm) {
            continue;
        }
        let kept = of_arm.into_iter().filter(|run| has_latencies(run));
        let records = kept.filter_map(|run| run.latency.as_ref());
        let runs: Vec<Durations> =
            records.map(|record| latency(record).durations()).collect::<Result<_, _>>()?;
        if runs.iter().any(|run| run.count() > 0) {
            arms.push((&arm.name, runs));
        }
    }
    let fewest = arms.iter().flat_map(|(_, runs)| runs).map(Durations::count).min().unwrap_or(0);
    if fewest == 0 {
        return Ok(None);
    }
    let quantiles = quantiles(fewest);
    let series = arms.iter().map(|(name, _)| Series { name: (*name).into(), tone: tone(name) });
    let series = series.collect();
    let lines = arms.iter().enumerate();
    let lines = lines.map(|(series, (_, runs))| curve(series, runs, &quantiles)).collect();
    let x = Axis::new("percentile", "", Scale::Percentile);
    let y = Axis::new("latency", "ms", Scale::Log);
    Ok(Some(Chart {
        id: format!("latency-{}", slug(case)),
        title: format!("Latency, {case}"),
        about: "From the intended time of a record on, all runs together. The band spans the runs."
            .into(),
        series,
        plot: Plot::Lines { x, y, lines, guides: Vec::new() },
    }))
}

/// Shares that so many samples can speak of, closer together the nearer they are to 1.
fn quantiles(samples: u64) -> Vec<f64> {
    let decades = samples.ilog10().min(DECADES_MAX);
    let steps = 1..=decades * POINTS_PER_DECADE;
    steps.map(|at| 1.0 - 10_f64.powf(-f64::from(at) / f64::from(POINTS_PER_DECADE))).collect()
}

fn curve(series: usize, runs: &[Durations], quantiles: &[f64]) -> Line {
    let mut all = Durations::default();
    for run in runs {
        all.merge(run);
    }
    let point = |quantile: &f64| {
        let ms = |durations: &Durations| milliseconds(durations.quantile_ns(*quantile));
        let low = runs.iter().map(ms).fold(f64::INFINITY, f64::min);
        let high = runs.iter().map(ms).fold(0.0, f64::max);
        Point { x: *quantile, y: Estimate { value: ms(&all), interval: Some((low, high)) } }
    };
    Line { series, style: Style::Curve, points: quantiles.iter().map(point).collect() }
}

/// A figure of each slot of the runs of a case over the time of the experiment, a line for each
/// run; `None` where no run has it.
pub(crate) fn course(
    result: &RunResult,
    case: &str,
    tone: impl Fn(&str) -> usize,
    y: Axis,
    figure: impl Fn(&RunRecord, &Slot) -> f64,
) -> Option<Chart> {
    let is_shown = |run: &&RunRecord| run.case == case && !is_late(run) && !is_saturated(run);
    let runs: Vec<&RunRecord> = result.runs.iter().filter(is_shown).collect();
    let names: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
    let names = names.into_iter().filter(|name| runs.iter().any(|run| run.arm == *name));
    let series: Vec<Series> =
        names.map(|name| Series { name: name.into(), tone: tone(name) }).collect();
    let line = |run: &RunRecord| {
        let slots = (0_u64..).zip(&run.series).map(|(slot, of)| Point {
            x: float(run.window_start_ms + slot * run.slot_ms) / 1e3,
            y: figure(run, of).into(),
        });
        let points: Vec<Point> = slots.filter(|point| point.y.value > 0.0).collect();
        let series = series.iter().position(|series| series.name == run.arm)?;
        (!points.is_empty()).then_some(Line { series, style: Style::Curve, points })
    };
    let lines: Vec<Line> = runs.into_iter().filter_map(line).collect();
    let x = Axis::new("time of the experiment", "s", Scale::Span);
    (!lines.is_empty()).then(|| Chart {
        id: format!("course-{}", slug(case)),
        title: case.to_owned(),
        about: String::new(),
        series,
        plot: Plot::Lines { x, y, lines, guides: Vec::new() },
    })
}

/// The course of a case: latency at a fixed rate, otherwise throughput.
pub(crate) fn usual_course(
    result: &RunResult,
    case: &str,
    tone: impl Fn(&str) -> usize,
) -> Option<Chart> {
    let is_fixed = result.runs.iter().any(|run| run.case == case && is_scheduled(run));
    if is_fixed {
        let y = Axis::new("publish p99 of each slot", "ms", Scale::Log);
        return course(result, case, tone, y, |_, slot| milliseconds(slot.response_p99_ns));
    }
    let y = Axis::new("throughput", "MB/s", Scale::Linear);
    course(result, case, tone, y, |run, slot| {
        let records = slot.produced_records.max(slot.consumed_records);
        run.megabytes(records) * 1e3 / float(run.slot_ms.max(1))
    })
}
