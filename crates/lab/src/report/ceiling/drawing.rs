//! Drawings of the search, which need no script.

use super::super::html::escape;
use super::{megabytes, rates, whole};
use crate::ceiling::search::{Bounds, Found, Outcome};
use crate::ceiling::{CeilingRecord, Repeats, SearchRecord, Trial, producers_in_words};
use moldau_measure::numbers::plain;

/// The ceiling of each search that has one, and of searches of the same load together.
pub(super) fn cards(record: &CeilingRecord, repeats: &[Repeats<'_>]) -> String {
    let is_alone = |search: &&SearchRecord| {
        search.found.bounds == Bounds::Both && !repeats.iter().any(|group| group.has(search))
    };
    let together = repeats.iter().filter_map(|group| {
        let count = group.searches.len();
        Some(card(group.searches.first()?, rates(group), &format!("; {count} searches")))
    });
    let alone = record.searches.iter().filter(is_alone).map(|search| {
        let Found { rate, bracket, .. } = search.found;
        card(search, [rate, bracket.low, bracket.high], "")
    });
    let cards: String = together.chain(alone).collect();
    format!("<div class=\"cards\">{cards}</div>")
}

fn card(search: &SearchRecord, [rate, low, high]: [f64; 3], more: &str) -> String {
    format!(
        "<div class=\"card\"><div class=\"name\">{}, {}</div>\
         <div class=\"value\">{} <small>records/s</small></div>\
         <div class=\"detail\">[{}, {}]; {} MB/s{more}</div></div>",
        escape(&search.arm),
        producers_in_words(search.producers),
        whole(rate),
        whole(low),
        whole(high),
        plain(megabytes(search, rate)),
    )
}

/// How each search went: its trials in their order over their rates.
pub(super) fn searches(record: &CeilingRecord) -> String {
    let mut html = String::from(
        "<h2>The searches</h2><p class=\"about\">Trials from top to bottom: filled where the rate \
         was sustained, crossed where it was missed, hollow where others took the machine. The \
         line is the highest rate that was sustained, dotted the lowest above it that was \
         missed.</p>",
    );
    for pair in record.searches.chunks(2) {
        html += "<div class=\"pair\">";
        for search in pair {
            html += &format!(
                "<div class=\"card\"><h3>{}, {}</h3>{}</div>",
                escape(&search.arm),
                producers_in_words(search.producers),
                drawing(search)
            );
        }
        html += "</div>";
    }
    html
}

const WIDTH: f64 = 460.0;
const MARGIN: f64 = 30.0;
const ROW: f64 = 20.0;

/// Rates that are written along the axis.
const TICKS: u32 = 4;

fn drawing(search: &SearchRecord) -> String {
    let found = search.found;
    let rates = search.trials.iter().map(|trial| trial.rate);
    let ends = [found.bracket.low, found.bracket.high];
    let (low, high) = rates
        .chain(ends)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), rate| (low.min(rate), high.max(rate)));
    if low >= high {
        return String::new();
    }
    let x = |rate: f64| MARGIN + (rate - low) / (high - low) * (WIDTH - 2.0 * MARGIN);
    let rows = f64::from(u32::try_from(search.trials.len()).unwrap_or(0));
    let bottom = ROW * (rows + 1.0);
    let height = bottom + 2.0 * ROW;
    let mut svg = format!(
        "<svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"Trials of the search over their rates\">"
    );
    for tick in 0..=TICKS {
        let rate = low + (high - low) * f64::from(tick) / f64::from(TICKS);
        svg += &format!(
            "<line class=\"grid\" x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"0\" y2=\"{bottom}\"/>\
             <text class=\"tick\" x=\"{0:.1}\" y=\"{1}\" text-anchor=\"middle\">{2}</text>",
            x(rate),
            bottom + 14.0,
            whole(rate),
        );
    }
    for (rate, dash) in [(found.rate, ""), (ends[0], "2 3"), (ends[1], "2 3")] {
        svg += &format!(
            "<line class=\"zero\" stroke-dasharray=\"{dash}\" x1=\"{0:.1}\" x2=\"{0:.1}\" \
             y1=\"0\" y2=\"{bottom}\"/>",
            x(rate)
        );
    }
    for (number, trial) in (1_u32..).zip(&search.trials) {
        let (x, y) = (x(trial.rate), ROW * f64::from(number));
        svg += &mark(trial, x, y);
    }
    svg += &format!(
        "<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">records/s</text></svg>",
        WIDTH / 2.0,
        bottom + 30.0
    );
    svg
}

/// A trial by its outcome, around a point.
fn mark(trial: &Trial, x: f64, y: f64) -> String {
    let title = format!(
        "<title>{} records/s {}, p99 {} ms</title>",
        whole(trial.rate),
        trial.outcome.word(),
        plain(trial.p99_ms)
    );
    let circle = |class: &str| {
        format!("<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"5\">{title}</circle>")
    };
    let (left, top) = (x - 5.0, y - 5.0);
    match trial.outcome {
        Outcome::Sustained => circle("better"),
        Outcome::Disturbed => circle("hollow"),
        Outcome::Missed => format!(
            "<path class=\"worse\" stroke-width=\"2.5\" d=\"M{left:.1} {top}l10 10m0 -10l-10 \
             10\">{title}</path>"
        ),
    }
}
