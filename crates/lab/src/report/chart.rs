//! Charts: the data of the interactive ones, and the drawings that need no script.

use serde::Serialize;

use super::html::escape;
use crate::metric::Comparison;
use crate::punctuality::{has_latencies, is_late, is_saturated, tells_no_latencies};
use crate::result::{LatencyRecord, RunRecord, RunResult, Slot};
use crate::self_test::{Curves, Line};
use moldau_measure::Error;
use moldau_measure::histograms::{Durations, HistogramRecord};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::percent;
use moldau_measure::statistics::float;

/// Points of a percentile curve per factor of ten of its tail.
const POINTS_PER_DECADE: u32 = 24;

/// Decades of a percentile curve at most: p99.9999.
const DECADES_MAX: u32 = 6;

/// The data of one interactive chart.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Chart {
    /// Latency over the percentile, whose axis is `-log10(1 - p)`.
    Curve { x: Vec<f64>, arms: Vec<CurveArm> },
    /// A figure over the time of the experiment.
    Course { unit: &'static str, x: Vec<f64>, arms: Vec<CourseArm> },
    /// A figure over a number of partitions, which has a logarithmic axis.
    Over { unit: &'static str, is_log: bool, x: Vec<f64>, arms: Vec<OverLine> },
}

#[derive(Serialize)]
pub(super) struct OverLine {
    pub(super) name: String,
    pub(super) y: Vec<Option<f64>>,
}

#[derive(Serialize)]
pub(super) struct CurveArm {
    name: String,
    /// All runs together, ms.
    merged: Vec<f64>,
    /// The lowest and the highest single run.
    low: Vec<f64>,
    high: Vec<f64>,
}

#[derive(Serialize)]
pub(super) struct CourseArm {
    name: String,
    y: Vec<Option<f64>>,
}

/// The percentile curve of one latency of a case; `None` where no run has it.
pub(super) fn curve(
    result: &RunResult,
    case: &str,
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
    let x = tail_axis(fewest);
    let arms = arms.into_iter().map(|(name, runs)| curve_arm(name, &runs, &x)).collect();
    Ok(Some(Chart::Curve { x, arms }))
}

/// Latencies at a few percentiles, told once each.
pub(super) fn few_quantiles(curves: &Curves) -> Chart {
    let arm = |line: &Line| CurveArm {
        name: line.name.clone(),
        merged: line.ms.clone(),
        low: line.ms.clone(),
        high: line.ms.clone(),
    };
    let x = curves.quantiles.iter().map(|quantile| -(1.0 - quantile).log10()).collect();
    Chart::Curve { x, arms: curves.lines.iter().map(arm).collect() }
}

/// Percentiles that `samples` samples can speak of, on the logarithmic axis of the tail.
fn tail_axis(samples: u64) -> Vec<f64> {
    let decades = samples.ilog10().min(DECADES_MAX);
    (0..=decades * POINTS_PER_DECADE).map(|i| f64::from(i) / f64::from(POINTS_PER_DECADE)).collect()
}

fn curve_arm(name: &str, runs: &[Durations], x: &[f64]) -> CurveArm {
    let mut all = Durations::default();
    for run in runs {
        all.merge(run);
    }
    let at = |durations: &Durations, x: &f64| ms(durations.quantile_ns(1.0 - 10_f64.powf(-x)));
    let over = |pick: fn(f64, f64) -> f64, from: f64| {
        x.iter().map(|x| runs.iter().map(|run| at(run, x)).fold(from, pick)).collect()
    };
    CurveArm {
        name: name.to_string(),
        merged: x.iter().map(|x| at(&all, x)).collect(),
        low: over(f64::min, f64::INFINITY),
        high: over(f64::max, 0.0),
    }
}

/// A figure of the slots of all runs of a case, over the time of the experiment; `None` where no
/// run has it.
pub(super) fn course(
    result: &RunResult,
    case: &str,
    unit: &'static str,
    figure: impl Fn(&RunRecord, &Slot) -> f64,
) -> Option<Chart> {
    let is_shown = |run: &&RunRecord| run.case == case && !is_late(run) && !is_saturated(run);
    let mut runs: Vec<&RunRecord> = result.runs.iter().filter(is_shown).collect();
    runs.sort_by_key(|run| run.window_start_ms);
    let mut x = Vec::new();
    let mut arms: Vec<CourseArm> =
        result.arms.iter().map(|arm| CourseArm { name: arm.name.clone(), y: Vec::new() }).collect();
    for run in runs {
        // The extra point without a value parts the line of this run from that of the next.
        let values = run.series.iter().map(|slot| Some(figure(run, slot))).chain([None]);
        for (slot, value) in (0_u64..).zip(values) {
            x.push(float(run.window_start_ms + slot * run.slot_ms) / 1e3);
            for arm in &mut arms {
                let is_mine = arm.name == run.arm;
                arm.y.push(value.filter(|value| is_mine && *value > 0.0));
            }
        }
    }
    arms.retain(|arm| arm.y.iter().any(Option::is_some));
    (!arms.is_empty()).then_some(Chart::Course { unit, x, arms })
}

/// Figures of arms over the time of the experiment, s; each line is its points `(x, y)`, of which
/// no two of all lines share an `x`.
pub(super) fn over_time(unit: &'static str, lines: &[(&str, Vec<(f64, f64)>)]) -> Chart {
    let mut x: Vec<f64> =
        lines.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x)).collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    let arm = |(name, points): &(&str, Vec<(f64, f64)>)| {
        let at = |x: &f64| points.iter().find(|(of, _)| of == x).map(|(_, y)| *y);
        CourseArm { name: (*name).to_string(), y: x.iter().map(at).collect() }
    };
    let arms = lines.iter().map(arm).collect();
    Chart::Course { unit, x, arms }
}

/// The relative differences of a case with their intervals, as an SVG drawing.
pub(super) fn intervals(comparisons: &[&Comparison]) -> String {
    const WIDTH: f64 = 960.0;
    const LABELS: f64 = 170.0;
    const FIGURES: f64 = 200.0;
    const ROW: f64 = 30.0;
    let effects: Vec<_> = comparisons
        .iter()
        .filter_map(|comparison| Some((comparison, comparison.effect.as_ref()?)))
        .filter(|(_, effect)| effect.difference.mean != 0.0)
        .collect();
    let reach = effects
        .iter()
        .flat_map(|(_, e)| [e.log_ratio.interval_95.low.abs(), e.log_ratio.interval_95.high.abs()])
        .fold(0.02, f64::max);
    let (left, right) = (LABELS, WIDTH - FIGURES);
    let place = |log: f64| f64::midpoint(left, right) + log / reach * (right - left) * 0.48;
    let height = ROW * (float_count(effects.len()) + 1.0);
    let mut svg = format!(
        "<svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Relative differences with 95 % intervals\">"
    );
    for (share, class) in
        [(-1.0, "grid"), (-0.5, "grid"), (0.0, "zero"), (0.5, "grid"), (1.0, "grid")]
    {
        let (x, bottom) = (place(share * reach), height - ROW * 0.8);
        let label = percent(share * reach);
        svg += &format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            height - 6.0
        );
    }
    for (row, (comparison, effect)) in (0_u32..).zip(&effects) {
        let y = ROW * (f64::from(row) + 0.5);
        let (low, high) = (effect.log_ratio.interval_95.low, effect.log_ratio.interval_95.high);
        let class = tendency(comparison.metric.unit(), effect.log_ratio.mean, low, high);
        svg += &format!(
            "<text x=\"0\" y=\"{:.1}\">{}</text>\
             <line class=\"{class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y}\" y2=\"{y}\" \
             stroke-width=\"3\" stroke-linecap=\"round\"/>\
             <circle class=\"{class}\" cx=\"{:.1}\" cy=\"{y}\" r=\"5\"/>\
             <text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{} [{}, {}]</text>",
            y + 4.0,
            escape(comparison.metric.label()),
            place(low),
            place(high),
            place(effect.log_ratio.mean),
            y + 4.0,
            percent(effect.log_ratio.mean),
            percent(low),
            percent(high),
        );
    }
    svg + "</svg>"
}

fn tendency(unit: Unit, mean: f64, low: f64, high: f64) -> &'static str {
    if low <= 0.0 && high >= 0.0 {
        "same"
    } else if (mean > 0.0) == unit.less_is_better() {
        "worse"
    } else {
        "better"
    }
}

/// Processes whose processor time is drawn and what they are called, from the disk outwards.
const ROLES: [(&str, &str); 3] =
    [("broker", "broker"), ("proxy", "proxy"), ("generator", "client")];

/// The processor time per MB of each process, one bar per arm; `None` where no process took any.
pub(super) fn cpu_bars(result: &RunResult, case: &str) -> Option<String> {
    let bars: Vec<(&str, Vec<(String, f64)>)> = result
        .arms
        .iter()
        .map(|arm| (arm.name.as_str(), cpu_parts(result, case, &arm.name)))
        .filter(|(_, parts)| parts.iter().any(|(_, ms)| *ms > 0.0))
        .collect();
    if bars.is_empty() {
        return None;
    }
    let widest = bars
        .iter()
        .map(|(_, parts)| parts.iter().map(|(_, ms)| ms).sum::<f64>())
        .fold(f64::MIN_POSITIVE, f64::max);
    let mut html = String::from("<div class=\"bars\">");
    for (arm, parts) in bars {
        html += &format!("<span>{}</span><div class=\"stack\">", escape(arm));
        for (role, ms) in parts {
            html += &format!(
                "<span class=\"role-{role}\" style=\"width:{:.2}%\" \
                 title=\"{role}: {ms:.3} CPU-ms/MB\">{ms:.2}</span>",
                ms / widest * 100.0
            );
        }
        html += "</div>";
    }
    html += "</div><div class=\"key\">";
    for (role, name) in ROLES {
        html += &format!("<span><i class=\"role-{role}\"></i>{name}</span>");
    }
    Some(html + "</div>")
}

fn cpu_parts(result: &RunResult, case: &str, arm: &str) -> Vec<(String, f64)> {
    let mut parts: Vec<(String, Vec<f64>)> = Vec::new();
    for run in result.runs_of(case, arm) {
        let moved = run.megabytes(run.produced_records + run.consumed_records);
        // Several of a role, as the brokers of a cluster, add up.
        let mut of_run: Vec<(&str, f64)> = Vec::new();
        for usage in run.processes.iter().filter(|_| moved > 0.0) {
            let ms = ms(usage.cpu_ns) / moved;
            match of_run.iter_mut().find(|(role, _)| *role == usage.role) {
                Some((_, sum)) => *sum += ms,
                None => of_run.push((&usage.role, ms)),
            }
        }
        for (role, ms) in of_run {
            match parts.iter_mut().find(|(known, _)| known == role) {
                Some((_, values)) => values.push(ms),
                None => parts.push((role.to_owned(), vec![ms])),
            }
        }
    }
    let place = |role: &str| ROLES.iter().position(|(known, _)| *known == role);
    parts.retain(|(role, _)| place(role).is_some());
    parts.sort_by_key(|(role, _)| place(role));
    parts
        .into_iter()
        .map(|(role, values)| (role, moldau_measure::statistics::median(&values)))
        .collect()
}

pub(super) fn ms(nanos: u64) -> f64 {
    float(nanos) / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a number of rows")]
fn float_count(count: usize) -> f64 {
    count as f64
}
