//! A history for a terminal, and as one HTML page whose charts need no script.

use super::grid::Grid;
use super::html::{escape, page};
use super::text::wrapped;
use crate::history::{History, Line};
use moldau_measure::numbers::{number, percent};

/// Points of the small drawing in a terminal.
const SPARKS: usize = 32;

/// Size of a chart, and the room that its words take on the left.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 76.0;

/// One sentence, then each figure with its course.
#[must_use]
pub fn history(history: &History) -> String {
    let mut text = format!("{}\n", wrapped(&sentence(history), 96));
    text += &courses(history).text();
    for left_out in &history.left_out {
        text += &format!("  left out  {left_out}\n");
    }
    text
}

/// The page.
#[must_use]
pub fn history_html(history: &History) -> String {
    let mut body = format!(
        "<header><p class=\"kicker\">moldau lab history</p><h1>History</h1>\
         <p class=\"answer\">{}</p></header>",
        escape(&sentence(history))
    );
    body += "<h2>Figures</h2><p class=\"about\">Medians of each result, with the range of its \
             runs.</p>";
    body.extend(history.lines.iter().filter(|line| line.points.len() > 1).map(chart));
    if !history.left_out.is_empty() {
        body += &format!("<p>Left out: {}</p>", escape(&history.left_out.join("; ")));
    }
    page("History", &body, "Made by moldau lab history.", &[])
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

fn courses(history: &History) -> Grid {
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
    Grid::of("Figures", "", &["case, arm", "figure", "results", "latest", "course"], rows)
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

fn chart(line: &Line) -> String {
    let (low, high) = ends(line.points.iter().flat_map(|point| point.range));
    let (low, high) = (low - (high - low) * 0.05, high + (high - low) * 0.05);
    let steps = count(line.points.len().saturating_sub(1)).max(1.0);
    let x = |at: usize| LEFT + count(at) / steps * (WIDTH - LEFT - 12.0);
    let y = |value: f64| {
        10.0 + (1.0 - (value - low) / (high - low).max(f64::MIN_POSITIVE)) * (HEIGHT - 34.0)
    };
    let unit = line.metric.unit();
    let title = format!("{}, {}: {}", line.metric.label(), unit.symbol(), place(line));
    let mut svg = format!(
        "<div class=\"card\"><h3>{}</h3><p class=\"soft\">{}</p>\
         <svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escape(&title),
        escape(&line.machine),
        escape(&title),
    );
    for value in [low, f64::midpoint(low, high), high] {
        svg += &format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <text class=\"tick\" x=\"{1}\" y=\"{2:.1}\" text-anchor=\"end\">{3}</text>",
            y(value),
            LEFT - 6.0,
            y(value) + 4.0,
            number(value.max(0.0), unit)
        );
    }
    for (at, point) in line.points.iter().enumerate() {
        let [least, most] = point.range;
        svg += &format!(
            "<line class=\"same\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{1:.1}\" y2=\"{2:.1}\"/>\
             <circle class=\"same\" cx=\"{0:.1}\" cy=\"{3:.1}\" r=\"3.5\"><title>{4}, version {5}: \
             {6} {7}</title></circle>",
            x(at),
            y(least),
            y(most),
            y(point.value),
            escape(&point.id),
            escape(&point.version),
            number(point.value, unit),
            escape(unit.symbol()),
        );
    }
    let ids = [line.points.first(), line.points.last()];
    for (point, (place, anchor)) in ids.into_iter().zip([(LEFT, "start"), (WIDTH, "end")]) {
        let id = point.map_or("", |point| &point.id);
        svg += &format!(
            "<text class=\"tick\" x=\"{place}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            HEIGHT - 6.0,
            escape(id)
        );
    }
    svg + "</svg></div>"
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

#[expect(clippy::cast_precision_loss, reason = "a number of results")]
fn count(length: usize) -> f64 {
    length as f64
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
    use crate::report::sample;
    use crate::result::RunResult;

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
}
