//! What all drawings share: places as text, the room that words take, and charts in words.

use maud::{Markup, html};

use super::chart::{Arrow, Cell, Chart, Estimate, Plot, Span};
use super::scale::count;
use moldau_measure::numbers::plain;

/// Distance of lines of text.
pub(super) const LINE: f64 = 16.0;

/// Room that a letter takes on average.
const LETTER: f64 = 6.4;

/// A drawing and how high it is.
pub(super) struct Drawn {
    pub(super) body: Markup,
    pub(super) height: f64,
}

/// A place as an attribute.
pub(super) fn px(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Room that words take.
pub(super) fn room(words: &str) -> f64 {
    LETTER * count(words.chars().count())
}

/// Words that take no more room than there is, cut with an ellipsis.
pub(super) fn cut(words: &str, most: f64) -> String {
    if room(words) <= most {
        return words.to_owned();
    }
    let mut kept: String = words.to_owned();
    while kept.pop().is_some() {
        if room(&kept) + LETTER <= most {
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

/// Words in lines of this width.
pub(super) fn wrapped(words: &str, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if room(line) + room(word) + LETTER <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A figure with its interval.
pub(super) fn estimate(estimate: &Estimate) -> String {
    let value = plain(estimate.value);
    match estimate.interval {
        Some((low, high)) => format!("{value} [{}, {}]", plain(low), plain(high)),
        None => value,
    }
}

/// What a chart shows, for those who do not see it. Curves have too many points for that.
pub(super) fn told(chart: &Chart) -> String {
    let (axis, groups) = match &chart.plot {
        Plot::Bars { axis, groups, .. } => (axis, groups),
        Plot::Lines { .. } => {
            let names: Vec<&str> = chart.series.iter().map(|series| series.name.as_str()).collect();
            return format!("Lines: {}.", names.join(", "));
        }
        Plot::Timeline { spans, arrows } => return told_timeline(spans, arrows),
    };
    let mut parts = vec![format!("{}.", axis.label())];
    for group in groups {
        let cells = chart.series.iter().zip(&group.cells).filter_map(|(series, cell)| {
            let figure = match cell {
                Cell::Figure(figure) => estimate(figure),
                Cell::Words(words) => words.clone(),
                Cell::Absent => return None,
            };
            Some(format!("{} {figure}", series.name))
        });
        let cells = cells.collect::<Vec<_>>().join(", ");
        let name = if group.name.is_empty() { String::new() } else { format!("{}: ", group.name) };
        parts.push(format!("{name}{cells}."));
    }
    parts.join(" ")
}

/// Spans and arrows in words.
fn told_timeline(spans: &[Span], arrows: &[Arrow]) -> String {
    let span = |span: &Span| {
        let notes: Vec<&str> = span.notes.iter().map(|note| note.text.as_str()).collect();
        let notes =
            if notes.is_empty() { String::new() } else { format!(": {}", notes.join("; ")) };
        format!("{}, {}{notes}.", span.row, span.name)
    };
    let arrow = |arrow: &Arrow| {
        let [from, to] = [arrow.from, arrow.to].map(|at| spans.get(at));
        let (from, to) = from.zip(to)?;
        let [from, to] = [from, to].map(|span| format!("{} ({})", span.row, span.name));
        Some(format!("Arrow from {from} to {to}: {}.", arrow.name))
    };
    let parts: Vec<String> =
        spans.iter().map(span).chain(arrows.iter().filter_map(arrow)).collect();
    parts.join(" ")
}

/// A bar of uncertainty along one direction, with ends.
pub(super) fn whisker(from: (f64, f64), to: (f64, f64)) -> Markup {
    const END: f64 = 3.0;
    let is_flat = (from.1 - to.1).abs() < f64::EPSILON;
    let end = |(x, y): (f64, f64)| {
        if is_flat {
            format!("M{} {}V{}", px(x), px(y - END), px(y + END))
        } else {
            format!("M{} {}H{}", px(x - END), px(y), px(x + END))
        }
    };
    let path =
        format!("M{} {}L{} {}{}{}", px(from.0), px(from.1), px(to.0), px(to.1), end(from), end(to));
    html! { path class="whisker" d=(path) {} }
}

/// Class of a series' colour.
pub(super) fn tone(of: usize) -> String {
    format!("t{}", of % super::chart::TONES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_and_wrapped_to_the_room_that_there_is() {
        assert_eq!(cut("passthrough", 100.0), "passthrough");
        let short = cut("kroxylicious-encryption", 100.0);
        assert!(short.ends_with('…') && room(&short) <= 100.0, "{short}");
        let lines = wrapped("a line that is longer than there is room", 100.0);
        assert!(lines.len() > 1 && lines.iter().all(|line| room(line) <= 100.0), "{lines:?}");
        assert_eq!(lines.join(" "), "a line that is longer than there is room");
    }
}
