//! Drawings of a survey: ratios of claims, throughput and latency of every load, each with its
//! axis and unit, as SVG that needs nothing else.

use super::{cases, findings, middle, systems};
use crate::administration::Duty;
use crate::metric::Metric;
use crate::report::html::escape;
use crate::result::RunResult;
use crate::survey::{Contrast, Estimate, SurveyRecord};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain};
use moldau_measure::statistics::Interval;

const WIDTH: f64 = 960.0;
const LABELS: f64 = 330.0;
const FIGURES: f64 = 120.0;
const ROW: f64 = 22.0;

/// Longest label that fits in its column.
const LABEL_CHARACTERS_MAX: usize = 50;

/// The ratios of all claims on a logarithmic axis: a diamond for what was published, hollow points
/// for what was measured the same way, full ones for one setting at a time.
pub(super) fn claims(result: &RunResult, record: &SurveyRecord) -> Option<String> {
    let mut rows = Vec::new();
    for claim in record.claims.iter().filter(|claim| claim.is_ratio(&claim.measured)) {
        rows.push(Row::heading(&claim.says, claim.published));
        for finding in findings(result, claim) {
            let name = |of: &str| format!("{of}, {}", finding.system);
            rows.extend(Row::of(name("measured the same way"), finding.measured, false));
            for (contrast, found) in claim.isolated.iter().zip(&finding.isolated) {
                let of = contrast.of.rsplit_once(", ").map_or(&*contrast.of, |(_, last)| last);
                rows.extend(Row::of(name(of), *found, true));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let ends = rows.iter().flat_map(|row| {
        let interval = row.interval.iter().flat_map(|it| [it.low, it.high]);
        row.at.into_iter().chain(interval).collect::<Vec<_>>()
    });
    let axis = Axis::logarithmic(ends.chain([1.0]))?;
    let mut svg = Svg::new(rows.len(), "Ratios of claims with 95 % intervals");
    svg.grid(&axis, " x");
    for (row, at) in rows.iter().zip(0_u32..) {
        svg.ratio(row, at, &axis);
    }
    Some(svg.finish())
}

/// Records per second of every load on each system.
pub(super) fn throughput(result: &RunResult, _record: &SurveyRecord) -> Option<String> {
    let bar = |(case, system, index): (&str, &str, usize)| {
        let contrast = Contrast { of: case.into(), over: None };
        let found = contrast.estimate(&result.runs, system, Metric::ProduceRecords, result.seed)?;
        let figure = number(found.mean, Unit::RecordsPerSecond);
        Some(Bar { label: format!("{case}, {system}"), index, found, predicted: None, figure })
    };
    let all: Vec<Bar> = places(result).filter_map(bar).collect();
    bars(&all, "Throughput of every load", "")
}

/// Rates on numbers of partitions, beside those that Little's law predicts.
pub(super) fn littles_law(result: &RunResult, _record: &SurveyRecord) -> Option<String> {
    let law = result.littles_law.as_ref()?;
    let bar = |arm: &str, partitions: u16| {
        let predicted = law.predicted(arm, partitions)?;
        let found = law.agreement(arm, partitions, result.seed)?.times(predicted);
        let figure = number(found.mean, Unit::RecordsPerSecond);
        let label = format!("{arm}, partitions {partitions}");
        let index = place(result, arm);
        Some(Bar { label, index, found, predicted: Some(predicted), figure })
    };
    let tested = law.arms().into_iter().flat_map(|arm| {
        law.tested(arm).into_iter().filter_map(move |partitions| bar(arm, partitions))
    });
    bars(&tested.collect::<Vec<Bar>>(), "Little's law", "")
}

/// Seconds that partitions take to be made and moved.
pub(super) fn administration(result: &RunResult, _record: &SurveyRecord) -> Option<String> {
    let administration = result.administration.as_ref()?;
    let takes_time = |(duty, _): &(Duty, u16)| *duty != Duty::IdleProcessors;
    let duties = administration.duties().into_iter().filter(takes_time);
    let all = duties.flat_map(|(duty, partitions)| {
        administration.arms().into_iter().filter_map(move |arm| {
            let found = administration.estimate(arm, duty, partitions, result.seed)?;
            let label = format!("{}, {arm}", duty.words(partitions));
            let figure = format!("{} s", plain(found.mean));
            Some(Bar { label, index: place(result, arm), found, predicted: None, figure })
        })
    });
    bars(&all.collect::<Vec<Bar>>(), "Partitions made and moved", " s")
}

/// A bar from 0.
struct Bar {
    label: String,
    /// Number of its system, for the colour.
    index: usize,
    found: Estimate,
    /// What it should be, if that was said.
    predicted: Option<f64>,
    figure: String,
}

/// Bars with their intervals, and a diamond where one was predicted to end.
fn bars(all: &[Bar], about: &str, unit: &str) -> Option<String> {
    let high = |found: &Estimate| found.interval.map_or(found.mean, |it| it.high);
    let ends = all.iter().flat_map(|bar| [high(&bar.found), bar.predicted.unwrap_or(0.0)]);
    let axis = Axis::linear(ends)?;
    let mut svg = Svg::new(all.len(), about);
    svg.grid(&axis, unit);
    for (bar, at) in all.iter().zip(0_u32..) {
        let y = svg.label(at, &bar.label, false);
        let (from, to) = (axis.place(0.0), axis.place(bar.found.mean));
        svg.body += &format!(
            "<rect class=\"system-{}\" x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
             height=\"{:.1}\"/>",
            bar.index,
            y - ROW * 0.32,
            (to - from).max(1.0),
            ROW * 0.64,
        );
        if let Some(interval) = bar.found.interval {
            svg.span(&axis, y, interval, "zero", 1.5);
        }
        if let Some(predicted) = bar.predicted {
            svg.body += &diamond(axis.place(predicted), y);
        }
        svg.figure(y, &bar.figure);
    }
    Some(svg.finish())
}

/// The number of a system, for its colour.
fn place(result: &RunResult, system: &str) -> usize {
    systems(result).iter().position(|it| *it == system).unwrap_or(0)
}

/// Latencies of every load on a logarithmic axis.
pub(super) fn latency(result: &RunResult, _record: &SurveyRecord) -> Option<String> {
    const OF_SENDING: [Metric; 3] = [Metric::ServiceP50, Metric::ServiceP99, Metric::ServiceP999];
    const OF_SCHEDULE: [Metric; 3] =
        [Metric::ResponseP50, Metric::ResponseP99, Metric::ResponseP999];
    let mut rows = Vec::new();
    for (case, system, index) in places(result) {
        let all = |metrics: [Metric; 3]| {
            let [p50, p99, p999] = metrics.map(|metric| middle(result, case, system, metric));
            Some([p50?, p99?, p999?])
        };
        let found = all(OF_SENDING).or_else(|| all(OF_SCHEDULE));
        rows.extend(found.map(|found| (case, system, index, found)));
    }
    let axis = Axis::logarithmic(rows.iter().flat_map(|(.., found)| found.iter().copied()))?;
    let mut svg = Svg::new(rows.len(), "Latency of every load");
    svg.grid(&axis, " ms");
    for ((case, system, index, [p50, p99, p999]), at) in rows.iter().zip(0_u32..) {
        let y = svg.label(at, &format!("{case}, {system}"), false);
        let class = format!("system-{index}");
        svg.span(&axis, y, Interval { low: *p50, high: *p999 }, &class, 2.0);
        svg.span(&axis, y, Interval { low: *p50, high: *p99 }, &class, 8.0);
        let words = [p50, p99].map(|value| number(*value, Unit::Milliseconds));
        svg.figure(y, &words.join(" / "));
    }
    Some(svg.finish())
}

/// Every load on every system, with the number of the system for its colour.
fn places(result: &RunResult) -> impl Iterator<Item = (&str, &str, usize)> {
    let systems = systems(result);
    cases(result).into_iter().flat_map(move |case| {
        let each: Vec<(usize, &str)> = systems.iter().copied().enumerate().collect();
        each.into_iter().map(move |(index, system)| (case, system, index))
    })
}

/// A row of the ratios.
struct Row {
    label: String,
    /// Absent where a source gives no figure.
    at: Option<f64>,
    interval: Option<Interval>,
    mark: Mark,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Published,
    Hollow,
    Full,
}

impl Row {
    fn heading(says: &str, published: Option<f64>) -> Self {
        Self { label: says.into(), at: published, interval: None, mark: Mark::Published }
    }

    fn of(label: String, found: Option<Estimate>, is_isolated: bool) -> Option<Self> {
        let Estimate { mean, interval, .. } = found?;
        let mark = if is_isolated { Mark::Full } else { Mark::Hollow };
        Some(Self { label, at: Some(mean), interval, mark })
    }
}

/// An axis, in most drawings over the middle column.
pub(super) struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    /// From the power of ten below all values, or of two if they are close, to that above; `None`
    /// without a positive value.
    pub(super) fn logarithmic(values: impl Iterator<Item = f64>) -> Option<Self> {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = positive.fold(None, extend)?;
        let base: f64 = if high / low > 30.0 { 10.0 } else { 2.0 };
        let low = base.powf(low.log(base).floor());
        let high = base.powf(high.log(base).ceil()).max(low * base);
        Some(Self { low, high, is_logarithmic: true })
    }

    pub(super) fn linear(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (_, high) = values.fold(None, extend).filter(|(_, high)| *high > 0.0)?;
        Some(Self { low: 0.0, high: high * 1.02, is_logarithmic: false })
    }

    /// Exactly from one positive value to a higher one, logarithmic.
    pub(super) fn between(low: f64, high: f64) -> Self {
        Self { low, high, is_logarithmic: true }
    }

    /// How far along the axis a value lies, 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = if self.is_logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        share.clamp(0.0, 1.0)
    }

    fn place(&self, value: f64) -> f64 {
        LABELS + self.share(value) * (WIDTH - LABELS - FIGURES)
    }

    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.is_logarithmic {
            // Of 1, 2 and 5 times a power of ten, the largest step that makes three or more.
            let power = 10_f64.powf(self.high.log10().floor());
            let steps = [5.0, 2.0, 1.0, 0.5, 0.2].map(|it| it * power);
            let step = steps.into_iter().find(|step| self.high / step >= 3.0).unwrap_or(power);
            let all = (0_u32..).map(|count| f64::from(count) * step);
            return all.take_while(|tick| *tick <= self.high).collect();
        }
        let base: f64 = if self.high / self.low > 50.0 { 10.0 } else { 2.0 };
        let all = (0..).map(|count| self.low * base.powi(count));
        all.take_while(|tick| *tick <= self.high * 1.001).collect()
    }
}

fn extend(range: Option<(f64, f64)>, value: f64) -> Option<(f64, f64)> {
    let (low, high) = range.unwrap_or((value, value));
    Some((low.min(value), high.max(value)))
}

/// A drawing of rows under one axis.
struct Svg {
    height: f64,
    rows: u32,
    body: String,
}

impl Svg {
    fn new(rows: usize, about: &str) -> Self {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let height = ROW * (f64::from(rows) + 1.2);
        let body = format!(
            "<svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" \
             aria-label=\"{about}\">"
        );
        Self { height, rows, body }
    }

    fn grid(&mut self, axis: &Axis, unit: &str) {
        let bottom = ROW * f64::from(self.rows);
        for tick in axis.ticks() {
            let x = axis.place(tick);
            let label = trimmed(tick);
            self.body += &format!(
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"0\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}{unit}\
                 </text>",
                self.height - 8.0
            );
        }
    }

    /// Writes the label of a row and gives the height of its middle.
    fn label(&mut self, row: u32, text: &str, is_heading: bool) -> f64 {
        let y = ROW * (f64::from(row) + 0.5);
        let (x, class) = if is_heading { (0.0, " class=\"name\"") } else { (10.0, "") };
        let mut short: String = text.chars().take(LABEL_CHARACTERS_MAX).collect();
        if short.len() < text.len() {
            short.push('…');
        }
        self.body += &format!(
            "<text{class} x=\"{x}\" y=\"{:.1}\">{}<title>{}</title></text>",
            y + 4.0,
            escape(&short),
            escape(text)
        );
        y
    }

    fn span(&mut self, axis: &Axis, y: f64, interval: Interval, class: &str, width: f64) {
        self.body += &format!(
            "<line class=\"{class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" \
             stroke-width=\"{width}\"/>",
            axis.place(interval.low),
            axis.place(interval.high),
        );
    }

    fn figure(&mut self, y: f64, text: &str) {
        self.body +=
            &format!("<text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", y + 4.0);
    }

    fn ratio(&mut self, row: &Row, at: u32, axis: &Axis) {
        let y = self.label(at, &row.label, row.mark == Mark::Published);
        let Some(value) = row.at else { return };
        let x = axis.place(value);
        if let Some(interval) = row.interval {
            self.span(axis, y, interval, "same", 2.0);
        }
        self.body += &match row.mark {
            Mark::Published => diamond(x, y),
            Mark::Hollow => {
                format!("<circle class=\"hollow\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>")
            }
            Mark::Full => format!("<circle class=\"same\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\"/>"),
        };
        self.figure(y, &format!("{} x", number(value, Unit::Times)));
    }

    fn finish(self) -> String {
        self.body + "</svg>"
    }
}

fn diamond(x: f64, y: f64) -> String {
    format!("<path class=\"worse\" d=\"M{x:.1} {:.1}l5 6l-5 6l-5 -6z\"/>", y - 6.0)
}

/// A tick without needless zeros.
pub(super) fn trimmed(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logarithmic_axis_begins_and_ends_at_ticks() {
        let axis = Axis::logarithmic([0.4, 3.0].into_iter()).unwrap();
        assert_eq!(axis.ticks(), [0.25, 0.5, 1.0, 2.0, 4.0]);
        assert_eq!(axis.place(0.25).round(), LABELS);
        assert_eq!(axis.place(4.0).round(), WIDTH - FIGURES);
        let wide = Axis::logarithmic([0.2, 300.0].into_iter()).unwrap();
        assert_eq!(wide.ticks().len(), 5);
        assert!(Axis::logarithmic([0.0].into_iter()).is_none());
    }

    #[test]
    fn a_linear_axis_begins_at_zero() {
        let axis = Axis::linear([12_000.0, 7_000.0].into_iter()).unwrap();
        assert_eq!(axis.ticks(), [0.0, 2_000.0, 4_000.0, 6_000.0, 8_000.0, 10_000.0, 12_000.0]);
        assert_eq!(axis.place(0.0), LABELS);
    }

    #[test]
    fn ticks_have_no_needless_zeros() {
        assert_eq!(["0.25", "10", "1"], [0.25, 10.0, 1.0].map(trimmed).each_ref().map(|t| &**t));
    }
}
