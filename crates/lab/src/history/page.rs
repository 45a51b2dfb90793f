//! A history as a page.

use super::{History, Line};
use crate::page::{
    self, Axis, Chart, Detail, Page, Plot, Point, Scale, Series, Standing, Style, Table,
};
use crate::run_charts::slug;
use moldau_measure::numbers::{number, percent};
use moldau_measure::statistics::float;

/// Points of the small drawing of a row.
const SPARKS: usize = 32;

const MS_PER_DAY: f64 = 86_400_000.0;

/// One sentence, then each figure with its course.
#[must_use]
pub fn page(history: &History) -> Page {
    let since = history.lines.iter().flat_map(|line| &line.points).map(|it| it.unix_ms).min();
    let charts = history.lines.iter().filter(|line| line.points.len() > 1);
    let charts = charts.map(|line| chart(line, since.unwrap_or(0))).collect();
    Page {
        title: "What changed over time?".into(),
        about: String::new(),
        standing: Standing::Holds,
        answer: vec![sentence(history)],
        warnings: history.left_out.iter().map(|it| format!("Left out: {it}")).collect(),
        table: Some(courses(history)),
        charts: Vec::new(),
        details: vec![Detail::of("Every figure over time", charts, Vec::new())],
        checks: Vec::new(),
        facts: Vec::new(),
        links: Vec::new(),
    }
}

/// Which figure moved most from the first result to the latest.
fn sentence(history: &History) -> String {
    let results = match history.results {
        1 => "1 result".to_string(),
        count => format!("{count} results"),
    };
    let counts = format!("{results}, {} figures", history.lines.len());
    let moved = history.lines.iter().filter_map(|line| {
        let [first, latest] = line.ends()?;
        Some((line, (latest / first).ln())).filter(|(_, ln)| ln.is_finite())
    });
    let Some((line, ln)) = moved.max_by(|one, other| one.1.abs().total_cmp(&other.1.abs())) else {
        return format!("{counts}: no figure has two results.");
    };
    format!(
        "{counts}. From the first result to the latest, {} of {} moved most: {}.",
        line.metric.label(),
        place(line),
        percent(ln)
    )
}

fn place(line: &Line) -> String {
    format!("{}, {}", line.case, line.arm)
}

fn courses(history: &History) -> Table {
    let rows = history.lines.iter().map(|line| {
        let unit = line.metric.unit();
        let latest = line.points.last().map_or(0.0, |point| point.value);
        vec![
            place(line),
            format!("{}, {}", line.metric.label(), unit.symbol()),
            line.points.len().to_string(),
            number(latest, unit),
            sparks(line),
        ]
    });
    Table::of("", "", &["case, arm", "figure", "results", "latest", "course"], rows)
}

/// The newest points between the lowest and the highest of them.
fn sparks(line: &Line) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let newest = line.points.len().saturating_sub(SPARKS);
    let values: Vec<f64> = line.points.iter().skip(newest).map(|point| point.value).collect();
    let (low, high) = ends(values.iter().copied());
    let level = |value: &f64| {
        let share = (value - low) / (high - low).max(f64::MIN_POSITIVE);
        LEVELS.get(index(share * 7.0)).copied().unwrap_or(' ')
    };
    values.iter().map(level).collect()
}

/// Medians of each result with the range of its runs.
fn chart(line: &Line, since_ms: u64) -> Chart {
    let unit = line.metric.unit();
    let point = |it: &super::Point| {
        let [low, high] = it.range;
        let y = page::Estimate { value: it.value, interval: Some((low, high)) };
        Point { x: float(it.unix_ms.saturating_sub(since_ms)) / MS_PER_DAY, y }
    };
    let points = line.points.iter().map(point).collect();
    let title = format!("{}: {}", line.metric.label(), place(line));
    Chart {
        id: slug(&format!("{title} {}", line.machine)),
        title,
        about: format!("Medians with the range of the runs. {}", line.machine),
        series: vec![Series { name: line.arm.clone(), tone: 1 }],
        plot: Plot::Lines {
            x: Axis::new("since the first result", "days", Scale::Linear),
            y: Axis::new(line.metric.label(), unit.symbol(), Scale::Linear),
            lines: vec![page::Line { series: 0, style: Style::Joined, points }],
            guides: Vec::new(),
        },
    }
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 7; the cast saturates"
)]
fn index(at: f64) -> usize {
    at.round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::RunResult;
    use crate::sample;

    /// The sample on so many days, without its proxy in the first of them.
    fn days(count: u64, without_proxy: u64) -> History {
        let sample = sample::result();
        let of_day = |day: u64| -> RunResult {
            let mut result = sample.clone();
            result.started_unix_ms += day * 86_400_000;
            result.runs.retain(|run| run.arm == "direct" || day >= without_proxy);
            result
        };
        let results: Vec<RunResult> = (0..count).map(of_day).collect();
        crate::history::history(&results)
    }

    #[test]
    fn the_figure_that_moved_most_is_named() {
        assert!(sentence(&days(1, 0)).ends_with("figures: no figure has two results."));
        let told = sentence(&days(3, 1));
        assert!(told.starts_with("3 results, 40 figures. From the first result"), "{told}");
    }

    #[test]
    fn every_figure_with_two_results_has_a_row_and_a_chart() {
        let mut results: Vec<RunResult> = (0..3_u64)
            .map(|day| {
                let mut result = sample::result();
                result.id = format!("day-{day}");
                result.started_unix_ms += day * 86_400_000;
                for run in &mut result.runs {
                    run.produced_records += day * run.produced_records / 8;
                }
                result
            })
            .collect();
        results[2].runs.retain(|run| run.arm == "direct");
        let found = crate::history::history(&results);
        let page = page(&found);
        assert!(page.answer[0].starts_with("3 results"), "{:?}", page.answer);
        let rows = &page.table.as_ref().unwrap().rows;
        let produced = rows.iter().find(|row| row[1] == "produced records, records/s").unwrap();
        assert_eq!(produced[4], "▁▅█");
        let charts: Vec<&Chart> = page.all_charts().collect();
        let of = |arm: &str| charts.iter().find(|chart| chart.id.contains(arm)).unwrap();
        let Plot::Lines { lines, .. } = &of("direct").plot else { panic!("bars") };
        assert_eq!(lines[0].points.iter().map(|it| it.x).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        let mut ids: Vec<&str> = charts.iter().map(|chart| chart.id.as_str()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
