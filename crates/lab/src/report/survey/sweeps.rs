//! Sweeps: one setting at three values or more, as a chart with a line for each system, and the law
//! that throughput follows where the setting is a number of something that works at once.

use super::drawing::{Axis, trimmed};
use super::{SCALES, levels, middle, systems};
use crate::metric::Metric;
use crate::report::grid::Grid;
use crate::report::html::escape;
use crate::result::RunResult;
use crate::survey::SurveyRecord;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain};
use moldau_measure::statistics::scalability::{Coefficient, Point, Scalability};

/// Fewest values that make a line.
const LEVELS_MIN: usize = 3;

/// What is drawn over the setting, as far as systems have it.
const FIGURES: [Metric; 4] =
    [Metric::ProduceRecords, Metric::ResponseP99, Metric::EndToEndP99, Metric::ProxyCpu];

/// Settings whose unit is not their name.
const UNITS: [(&str, &str); 9] = [
    ("records_per_second", "records/s offered"),
    ("records_per_second_each", "records/s offered by each producer"),
    ("outstanding", "records on their way at once"),
    ("record_bytes", "bytes of a record's value"),
    ("topics", "topics"),
    ("partitions", "partitions of each topic"),
    ("producers", "producers of each topic"),
    ("batch_bytes", "bytes of a producer's largest batch"),
    ("linger_us", "linger, us"),
];

/// A scenario at several values of one setting.
struct Sweep<'a> {
    scenario: &'a str,
    key: &'a str,
    /// Values and the loads that have them, rising.
    levels: Vec<(f64, &'a str)>,
}

fn sweeps(record: &SurveyRecord) -> Vec<Sweep<'_>> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for scenario in record.cells.iter().filter(|cell| cell.from.is_none()) {
        let others = record.cells.iter().filter(|cell| cell.from.as_ref() == Some(&scenario.name));
        for key in others.flat_map(|cell| &cell.settings).map(|setting| setting.key.as_str()) {
            let is_known = |it: &Sweep<'_>| it.scenario == scenario.name && it.key == key;
            let levels: Vec<(f64, &str)> =
                levels(record, scenario, key).iter().map(|it| (it.value, it.cell)).collect();
            if levels.len() >= LEVELS_MIN && !sweeps.iter().any(is_known) {
                sweeps.push(Sweep { scenario: &scenario.name, key, levels });
            }
        }
    }
    sweeps
}

/// The charts with their titles.
pub(super) fn charts(result: &RunResult, record: &SurveyRecord) -> Vec<(String, String)> {
    let mut charts = Vec::new();
    for sweep in sweeps(record) {
        for metric in FIGURES {
            let unit = metric.unit().symbol();
            let title =
                format!("{}: {}, {unit}, over {}", sweep.scenario, metric.label(), sweep.key);
            charts.extend(chart(result, &sweep, metric).map(|svg| (title, svg)));
        }
    }
    charts
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 260.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 12.0;

/// How many times the lowest value the highest is on an axis that is logarithmic.
const LOGARITHMIC_FROM: f64 = 8.0;

fn chart(result: &RunResult, sweep: &Sweep<'_>, metric: Metric) -> Option<String> {
    let mut lines = Vec::new();
    for (index, system) in systems(result).into_iter().enumerate() {
        let point = |(x, case): &(f64, &str)| Some((*x, middle(result, case, system, metric)?));
        let points: Vec<(f64, f64)> = sweep.levels.iter().filter_map(point).collect();
        if points.len() > 1 {
            lines.push(Line { index, system, points });
        }
    }
    let values = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let y_axis = match metric.unit() {
        Unit::Milliseconds => Axis::logarithmic(values),
        _ => Axis::linear(values),
    }?;
    let (lowest, highest) = (sweep.levels.first()?.0, sweep.levels.last()?.0);
    let x_axis = if lowest > 0.0 && highest / lowest >= LOGARITHMIC_FROM {
        Axis::between(lowest, highest)
    } else {
        Axis::linear([highest].into_iter())?
    };
    let plane = Plane { x: x_axis, y: y_axis };
    let about = escape(&format!("{} over {}", metric.label(), sweep.key));
    let mut svg = format!(
        "<svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{about}\">"
    );
    svg += &plane.frame(sweep);
    for (line, row) in lines.iter().zip(0_u32..) {
        svg += &plane.line(line, row, metric.unit());
    }
    Some(svg + "</svg>")
}

/// The points of one system.
struct Line<'a> {
    /// Its number, for the colour.
    index: usize,
    system: &'a str,
    points: Vec<(f64, f64)>,
}

/// Where points lie.
struct Plane {
    x: Axis,
    y: Axis,
}

impl Plane {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.share(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.share(value) * (HEIGHT - BOTTOM - TOP)
    }

    /// The grid, the ticks and the unit below.
    fn frame(&self, sweep: &Sweep<'_>) -> String {
        let mut svg = String::new();
        for tick in self.y.ticks() {
            let (y, end) = (self.y(tick), WIDTH - RIGHT);
            svg += &format!(
                "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{end}\" y2=\"{y:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                trimmed(tick)
            );
        }
        for (value, _) in &sweep.levels {
            svg += &format!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.x(*value),
                HEIGHT - BOTTOM + 18.0,
                trimmed(*value)
            );
        }
        let known = UNITS.iter().find(|(key, _)| *key == sweep.key);
        svg + &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            HEIGHT - 6.0,
            escape(known.map_or(sweep.key, |(_, unit)| unit))
        )
    }

    /// A line with its points, and its name in a row of the legend.
    fn line(&self, Line { index, system, points }: &Line<'_>, row: u32, unit: Unit) -> String {
        let system = escape(system);
        let places = points.iter().map(|(x, y)| format!("{:.1},{:.1}", self.x(*x), self.y(*y)));
        let mut svg = format!(
            "<polyline class=\"system-{index} line\" points=\"{}\"/>",
            places.collect::<Vec<_>>().join(" ")
        );
        for (x, y) in points {
            svg += &format!(
                "<circle class=\"system-{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>\
                 {system}: {} {}</title></circle>",
                self.x(*x),
                self.y(*y),
                number(*y, unit),
                unit.symbol()
            );
        }
        let y = TOP + 10.0 + 18.0 * f64::from(row);
        svg + &format!(
            "<circle class=\"system-{index}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\"/>\
             <text x=\"{:.1}\" y=\"{y:.1}\">{system}</text>",
            WIDTH - RIGHT + 20.0,
            y - 4.0,
            WIDTH - RIGHT + 30.0,
        )
    }
}

/// The universal scalability law of every sweep of something that works at once.
pub(super) fn law(result: &RunResult, record: &SurveyRecord) -> Grid {
    let mut rows = Vec::new();
    for sweep in sweeps(record).iter().filter(|sweep| SCALES.contains(&sweep.key)) {
        for system in systems(result) {
            rows.extend(fit(result, sweep, system).map(|law| law_row(sweep, system, &law)));
        }
    }
    Grid::of(
        "How throughput scales",
        "The universal scalability law over all rounds, with 95 % intervals: the rate of one \
         alone, the share of the work that only one does at a time, and what each pair costs. \
         Where the load is offered at a rate, a system that keeps up shows no contention: the \
         sweep then did not reach its limit, and no end is seen.",
        &["load", "system", "rate of one, records/s", "contention", "coherence", "most, records/s"],
        rows.into_iter(),
    )
}

fn fit(result: &RunResult, sweep: &Sweep<'_>, system: &str) -> Option<Scalability> {
    let points = sweep.levels.iter().flat_map(|(value, case)| {
        let concurrency = format!("{value:.0}").parse::<u32>().ok();
        let runs = result.runs_of(case, system).filter_map(|run| Metric::ProduceRecords.of(run));
        let point = move |throughput| Some(Point::measured(concurrency?, throughput));
        runs.filter_map(point)
    });
    Scalability::fit(&points.collect::<Vec<Point>>(), result.seed)
}

fn law_row(sweep: &Sweep<'_>, system: &str, law: &Scalability) -> Vec<String> {
    let words = |of: Coefficient, shown: &dyn Fn(f64) -> String| {
        let ends = of.interval_95;
        format!("{} [{}, {}]", shown(of.value), shown(ends.low), shown(ends.high))
    };
    let most = law.throughput_max().map_or("no end seen".into(), plain);
    vec![
        format!("{}, {}", sweep.scenario, sweep.key),
        system.into(),
        words(law.rate, &plain),
        words(law.contention, &|value| format!("{:.1} %", value * 100.0)),
        words(law.coherence, &|value| format!("{:.2} %", value * 100.0)),
        most,
    ]
}
