//! The rows that all reports share.

use crate::metric::Comparison;
use crate::punctuality::{has_latencies, is_scheduled};
use crate::result::{RunRecord, RunResult};
use moldau_load::workload::Pace;
use moldau_measure::numbers::{number, percent, plain, signed};
use moldau_measure::statistics::{Likeness, PairedEffect};

/// One figure of one case in words.
pub(super) struct Row {
    pub(super) figure: String,
    pub(super) baseline: String,
    pub(super) arm: String,
    pub(super) difference: String,
    pub(super) interval: String,
    pub(super) ratio: String,
    /// What the ratio shows, see [`shows`].
    pub(super) shows: String,
    /// `worse`, `better` or `same`, for colours.
    pub(super) tendency: &'static str,
}

/// What stands where a figure does not exist.
pub(super) const NONE: &str = "-";

impl Row {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let unit = comparison.metric.unit();
        let value = |value: Option<f64>| value.map_or(NONE.into(), |v| number(v, unit));
        let mut row = Self {
            figure: format!("{}, {}", comparison.metric.label(), unit.symbol()),
            baseline: value(comparison.baseline_median),
            arm: value(comparison.arm_median),
            difference: NONE.into(),
            interval: NONE.into(),
            ratio: NONE.into(),
            shows: NONE.into(),
            tendency: "same",
        };
        if let Some(effect) = &comparison.effect {
            let interval = effect.difference.interval_95;
            row.difference = signed(effect.difference.mean, unit);
            row.interval =
                format!("{} to {}", signed(interval.low, unit), signed(interval.high, unit));
            row.ratio = percent(effect.log_ratio.mean);
            row.shows = shows(&effect.log_ratio);
            if effect.difference.is_different() {
                let is_worse = (effect.difference.mean > 0.0) == unit.less_is_better();
                row.tendency = if is_worse { "worse" } else { "better" };
            }
        }
        row
    }
}

/// What the logarithm of a ratio shows, in a few words: that both sides are equivalent, that they
/// differ, or what difference would have shown.
pub(super) fn shows(log_ratio: &PairedEffect) -> String {
    match log_ratio.likeness() {
        Likeness::Equivalent { percent } => format!("equal within {percent} %"),
        Likeness::Different => "differs".into(),
        Likeness::Open { detectable_percent } => {
            format!("open, {} % would show", plain(detectable_percent))
        }
    }
}

/// Two arms of a case that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Contrast<'a> {
    pub(super) baseline: &'a str,
    pub(super) arm: &'a str,
}

/// The arms of a case that are compared, in the order of the comparisons.
pub(super) fn contrasts<'a>(result: &'a RunResult, case: &str) -> Vec<Contrast<'a>> {
    let mut contrasts = Vec::new();
    for comparison in result.comparisons.iter().filter(|c| c.case == case) {
        let contrast = Contrast { baseline: &comparison.baseline, arm: &comparison.arm };
        if !contrasts.contains(&contrast) {
            contrasts.push(contrast);
        }
    }
    contrasts
}

/// The comparisons of a case with one arm.
pub(super) fn comparisons<'a>(
    result: &'a RunResult,
    case: &'a str,
    arm: &'a str,
) -> impl Iterator<Item = &'a Comparison> {
    result.comparisons.iter().filter(move |c| c.case == case && c.arm == arm)
}

/// How many runs an arm has in a case, and in how many of the baseline's and its own the generator
/// was in time, if not in all.
pub(super) fn runs_counted(result: &RunResult, case: &str, contrast: Contrast<'_>) -> String {
    let of = |arm| result.runs_of(case, arm);
    let Contrast { baseline, arm } = contrast;
    let words = format!("{} runs", of(arm).count());
    let [theirs, own] = [baseline, arm].map(|arm| of(arm).filter(|run| has_latencies(run)).count());
    let has_all = [(baseline, theirs), (arm, own)]
        .into_iter()
        .all(|(arm, count)| count == of(arm).filter(|run| is_scheduled(run)).count());
    if has_all { words } else { format!("{words}, latencies of {theirs} and {own}") }
}

/// What the runs of a case offered, in words.
pub(super) fn offered(run: &RunRecord) -> String {
    let workload = &run.workload;
    let records = format!(
        "{} B records{}, {} partition{}, batches of {} KB at most",
        workload.record_bytes,
        super::shapes::words(&workload.tuning.shape),
        workload.partitions,
        if workload.partitions == 1 { "" } else { "s" },
        workload.batch_bytes / 1024,
    );
    match workload.pace {
        Pace::Scheduled { per_second, .. } => format!(
            "{} records/s at fixed intended times, {records}, linger {} ms, {}, \
             measured for {} s after {} s of warm-up",
            moldau_measure::numbers::thousands(per_second),
            digits(workload.linger_us, 1_000),
            if workload.consume { "consumed meanwhile" } else { "not consumed" },
            digits(workload.window_ms, 1_000),
            digits(workload.warmup_ms, 1_000),
        ),
        Pace::Closed { outstanding } => {
            format!(
                "{} records on their way at once, {records}",
                moldau_measure::numbers::thousands(outstanding.into())
            )
        }
        Pace::Unpaced => format!("as fast as possible, {records}"),
        Pace::ReadBack => format!("read from start to end, {records}"),
    }
}

fn digits(value: u64, per_unit: u64) -> String {
    let tenths = value * 10 / per_unit;
    if tenths.is_multiple_of(10) {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}
