//! Figures side by side: a row for each, in groups below one another.

use maud::{Markup, html};

use super::chart::{Axis, Cell, Estimate, Group, Mark, Series};
use super::ink::{self, Drawn, LINE, px};
use super::scale::Placed;
use moldau_measure::numbers::plain;

/// Height of a bar, and its distance to the next.
const BAR: f64 = 14.0;
const GAP: f64 = 5.0;

/// Room between groups.
const BETWEEN: f64 = 10.0;

/// Share of the width that names may take.
const NAMES_SHARE_MAX: f64 = 0.36;

/// Room below the bars for ticks and the name of the axis.
const FOOT: f64 = 40.0;

/// Draws the groups.
pub(super) fn draw(
    series: &[Series],
    axis: &Axis,
    mark: Mark,
    groups: &[Group],
    width: f64,
) -> Drawn {
    let figures = || groups.iter().flat_map(|group| &group.cells).filter_map(figure);
    let names = series.iter().map(|it| ink::room(&it.name)).fold(0.0, f64::max);
    let left = (names + 10.0).min(width * NAMES_SHARE_MAX);
    let labels = figures().map(|it| ink::room(&plain(it.value))).fold(20.0, f64::max);
    let ends = figures().flat_map(|it| {
        let (low, high) = it.interval.unwrap_or((it.value, it.value));
        [low, it.value, high]
    });
    let placed = Placed::fit(axis, ends, (left, width - labels - 10.0));
    let (rows, bottom) = rows(series, groups, (mark, &placed, width), left);
    let body = html! {
        @for (x, label) in placed.ticks() {
            line class="grid" x1=(px(x)) x2=(px(x)) y1="0" y2=(px(bottom)) {}
            text class="tick" x=(px(x)) y=(px(bottom + 15.0)) text-anchor="middle" { (label) }
        }
        (rows)
        text class="soft" x=(px(width)) y=(px(bottom + 33.0)) text-anchor="end" { (axis.label()) }
    };
    Drawn { body, height: bottom + FOOT }
}

/// The rows of all groups, and where they end.
fn rows(series: &[Series], groups: &[Group], at: (Mark, &Placed, f64), left: f64) -> (Markup, f64) {
    let mut y = 0.0;
    let mut drawn = Vec::new();
    for group in groups {
        if !group.name.is_empty() {
            y += LINE;
            let name = ink::cut(&group.name, at.2);
            drawn.push(html! { text class="group" x="0" y=(px(y - 3.0)) { (name) } });
            y += 4.0;
        }
        for (of, cell) in series.iter().zip(&group.cells) {
            if matches!(cell, Cell::Absent) {
                continue;
            }
            let name = ink::cut(&of.name, left - 8.0);
            drawn.push(html! {
                text class="soft" x=(px(left - 8.0)) y=(px(y + BAR - 3.0)) text-anchor="end" {
                    (name)
                }
                (row(of, cell, at, y))
            });
            y += BAR + GAP;
        }
        y += BETWEEN;
    }
    (html! { @for part in &drawn { (part) } }, y)
}

fn row(series: &Series, cell: &Cell, (mark, placed, _): (Mark, &Placed, f64), y: f64) -> Markup {
    let start = placed.place(0.0).unwrap_or(0.0);
    let (baseline, middle) = (y + BAR - 3.0, y + BAR / 2.0);
    let tone = ink::tone(series.tone);
    let of = match cell {
        Cell::Figure(of) => of,
        Cell::Words(words) => {
            let x = placed.start() + 4.0;
            return html! { text class="soft" x=(px(x)) y=(px(baseline)) { (words) } };
        }
        Cell::Absent => return html! {},
    };
    let Some(value) = placed.place(of.value) else { return html! {} };
    let ends = of.interval.map(|(low, high)| {
        (placed.place(low).unwrap_or(placed.start()), placed.place(high).unwrap_or(value))
    });
    let label = ends.map_or(value, |(_, high)| high.max(value)) + 6.0;
    html! {
        g {
            title { (series.name) ": " (ink::estimate(of)) }
            @match mark {
                Mark::Bar => rect class={ "fill " (tone) } x=(px(start.min(value))) y=(px(y))
                    width=(px((value - start).abs().max(1.0))) height=(px(BAR)) rx="2" {},
                Mark::Dot => circle class={ "fill " (tone) } cx=(px(value)) cy=(px(middle))
                r="4.5" {},
            }
            @if let Some((low, high)) = ends {
                (ink::whisker((low, middle), (high, middle)))
            }
            text x=(px(label)) y=(px(baseline)) { (plain(of.value)) }
        }
    }
}

fn figure(cell: &Cell) -> Option<&Estimate> {
    match cell {
        Cell::Figure(figure) => Some(figure),
        Cell::Words(_) | Cell::Absent => None,
    }
}
