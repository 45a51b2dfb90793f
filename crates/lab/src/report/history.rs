//! A history for a terminal, and as one HTML page whose charts need no script.

use super::grid::Grid;
use super::html::{escape, page};
use super::text::wrapped;
use crate::history::{Change, History, Line, Tendency};
use moldau_measure::numbers::{number, percent};

/// Points of the small drawing in a terminal.
const SPARKS: usize = 32;

/// Size of a chart, and the room that its words take on the left.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 150.0;
const LEFT: f64 = 76.0;

/// One sentence, then each figure with its course and its last change.
#[must_use]
pub fn history(history: &History) -> String {
    let mut text = format!("{}\n", wrapped(&sentence(history), 96));
    text += &changes(history).map_or_else(String::new, |grid| grid.text());
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
    body += &changes(history).map_or_else(String::new, |grid| grid.html());
    body += "<h2>Figures</h2><p class=\"about\">Medians of each result, with the range of its \
             runs. A horizontal line is the median between two changes.</p>";
    body.extend(history.lines.iter().filter(|line| line.points.len() > 1).map(chart));
    if !history.left_out.is_empty() {
        body += &format!("<p>Left out: {}</p>", escape(&history.left_out.join("; ")));
    }
    page("History", &body, "Made by moldau lab history.", &[])
}

fn sentence(history: &History) -> String {
    let changed: Vec<(&Line, &Change)> = history
        .lines
        .iter()
        .flat_map(|line| line.changes.iter().map(move |it| (line, it)))
        .collect();
    let tested = history.lines.iter().filter(|line| line.is_tested).count();
    let results = match history.results {
        1 => "1 result".to_string(),
        count => format!("{count} results"),
    };
    let counts = format!("{results}, {} figures", history.lines.len());
    if tested == 0 {
        return format!(
            "{counts}: no figure has {} results, and fewer cannot show a change among so many.",
            history.results_min()
        );
    }
    let short = match history.lines.len() - tested {
        0 => String::new(),
        1 => " 1 other has too few results to show a change among so many.".into(),
        count => format!(" {count} others have too few results to show a change among so many."),
    };
    let Some((line, change)) = changed
        .iter()
        .max_by_key(|(line, it)| line.points.get(it.at).map_or(0, |point| point.unix_ms))
    else {
        return format!("{counts}: none of the {tested} with enough of them has changed.{short}");
    };
    let worse =
        changed.iter().filter(|(line, it)| it.tendency(line.metric) == Tendency::Worse).count();
    format!(
        "{counts}: {} changes, {worse} of them for the worse. The last: {} of {}, {} from {} \
         on.{short}",
        changed.len(),
        line.metric.label(),
        place(line),
        percent((change.after / change.before).ln()),
        line.points.get(change.at).map_or("?", |point| &point.id),
    )
}

fn place(line: &Line) -> String {
    format!("{}, {}", line.case, line.arm)
}

fn changes(history: &History) -> Option<Grid> {
    let of_line = |line: &Line| {
        let rows = line.changes.iter().map(|change| {
            let unit = line.metric.unit();
            let point = line.points.get(change.at);
            vec![
                point.map_or_else(String::new, |point| point.id.clone()),
                point.map_or_else(String::new, |point| point.version.clone()),
                place(line),
                format!("{}, {}", line.metric.label(), unit.symbol()),
                number(change.before, unit),
                number(change.after, unit),
                percent((change.after / change.before).ln()),
                change.tendency(line.metric).word().into(),
                if change.p < 0.0001 { "< 0.0001".into() } else { format!("{:.4}", change.p) },
            ]
        });
        rows.collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = history.lines.iter().flat_map(of_line).collect();
    rows.sort();
    let columns =
        ["from", "version", "case, arm", "figure", "before", "after", "change", "", "by chance"];
    let about = "Changes at the 5 % level over all figures together: the energy statistic, tested \
                 by permutations. By chance: how often values in another order have as clear a \
                 change.";
    (!rows.is_empty()).then(|| Grid::of("Changes", about, &columns, rows.into_iter()))
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
    svg += &medians(line, &x, &y);
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

/// The medians between changes, coloured by what the change before was.
fn medians(line: &Line, x: &impl Fn(usize) -> f64, y: &impl Fn(f64) -> f64) -> String {
    let mut svg = String::new();
    let last = line.points.len().saturating_sub(1);
    let ends = line.changes.iter().skip(1).map(|it| it.at.saturating_sub(1)).chain([last]);
    let before = line.changes.first().map(|it| (0, it.at.saturating_sub(1), it.before, "same"));
    let after = line.changes.iter().zip(ends).map(|(change, end)| {
        let class = match change.tendency(line.metric) {
            Tendency::Spread => "same",
            told => told.word(),
        };
        (change.at, end, change.after, class)
    });
    for (start, end, value, class) in before.into_iter().chain(after) {
        svg += &format!(
            "<line class=\"{class}\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{2:.1}\" y2=\"{2:.1}\" \
             stroke-width=\"3\"/>",
            x(start),
            x(end),
            y(value)
        );
    }
    svg
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
        crate::history::history(&results, 1)
    }

    #[test]
    fn figures_with_too_few_results_are_not_told_as_unchanged() {
        // 40 lines, of which each has a level of 1 in 800.
        for count in [1, 6, 12] {
            let told = sentence(&days(count, 0));
            assert!(told.contains("40 figures: no figure has 13 results"), "{told}");
            assert!(!told.contains("has changed"), "{told}");
        }
        let told = sentence(&days(13, 0));
        assert!(told.ends_with("none of the 40 with enough of them has changed."), "{told}");
    }

    #[test]
    fn the_figures_that_are_too_short_are_counted() {
        let told = sentence(&days(13, 6));
        let expected = "none of the 19 with enough of them has changed. 21 others have too few \
                        results to show a change among so many.";
        assert!(told.ends_with(expected), "{told}");
    }
}
