//! Figures over another figure: lines, bands, points and reference lines.

use maud::{Markup, html};

use super::chart::{At, Axis, Guide, Line, Point, Series, Style};
use super::ink::{self, Drawn, LINE, px};
use super::scale::Placed;
use moldau_measure::numbers::plain;

/// Height of the plot by its width, within these.
const HEIGHT_SHARE: f64 = 0.5;
const HEIGHT: (f64, f64) = (190.0, 300.0);

/// Room below the plot for ticks and the name of the axis.
const FOOT: f64 = 38.0;

/// Room of a sample of colour in the key, and between its entries.
const SAMPLE: f64 = 18.0;
const ENTRY_GAP: f64 = 14.0;

/// Least room between ticks.
const TICK_GAP: f64 = 6.0;

/// Where the plot is.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Both axes with their places.
struct Plane {
    x: Placed,
    y: Placed,
}

/// Draws the lines.
pub(super) fn draw(
    series: &[Series],
    (x, y): (&Axis, &Axis),
    lines: &[Line],
    guides: &[Guide],
    width: f64,
) -> Drawn {
    let (key, key_height) = key(series, lines, width);
    let height = (width * HEIGHT_SHARE).clamp(HEIGHT.0, HEIGHT.1);
    let top = key_height + LINE + 8.0;
    let points = || lines.iter().flat_map(|line| &line.points);
    let at_y = guides.iter().filter_map(|guide| match guide.at {
        At::Y(y) => Some(y),
        At::X(_) => None,
    });
    let ends = points().flat_map(|point| {
        let (low, high) = point.y.interval.unwrap_or((point.y.value, point.y.value));
        [low, point.y.value, high]
    });
    let vertical = Placed::fit(y, ends.chain(at_y), (top + height, top));
    let labels = vertical.ticks().iter().map(|(_, label)| ink::room(label)).fold(0.0, f64::max);
    let frame = Frame { left: labels + 8.0, right: width - 12.0, top, bottom: top + height };
    let horizontal = Placed::fit(x, points().map(|point| point.x), (frame.left, frame.right));
    let plane = Plane { x: horizontal, y: vertical };
    let body = html! {
        (key)
        text class="soft" x="0" y=(px(top - 8.0)) { (y.label()) }
        (grid(&plane, &frame))
        @for guide in guides { (reference(guide, &plane, &frame)) }
        @for line in lines.iter().filter(|line| line.style == Style::Curve) {
            (band(line, series, &plane))
        }
        @for line in lines { (drawn(line, series, &plane)) }
        text class="soft" x=(px(frame.right)) y=(px(frame.bottom + 33.0)) text-anchor="end" {
            (x.label())
        }
    };
    Drawn { body, height: frame.bottom + FOOT }
}

/// The key, and the room that it takes; none for one series.
fn key(series: &[Series], lines: &[Line], width: f64) -> (Markup, f64) {
    if series.len() < 2 {
        return (html! {}, 0.0);
    }
    let (mut x, mut y) = (0.0, 0.0);
    let mut entries = Vec::new();
    for (index, of) in series.iter().enumerate() {
        let name = ink::cut(&of.name, width - SAMPLE);
        let wide = SAMPLE + ink::room(&name);
        if x > 0.0 && x + wide > width {
            (x, y) = (0.0, y + LINE + 2.0);
        }
        let is_dashed = lines.iter().any(|it| it.series == index && it.style == Style::Dashed);
        let dash = if is_dashed { " dashed" } else { "" };
        entries.push(html! {
            line class={ "stroke " (ink::tone(of.tone)) (dash) } x1=(px(x)) x2=(px(x + 13.0))
                y1=(px(y + 9.0)) y2=(px(y + 9.0)) {}
            text x=(px(x + SAMPLE)) y=(px(y + 13.0)) { (name) }
        });
        x += wide + ENTRY_GAP;
    }
    (html! { @for entry in &entries { (entry) } }, y + LINE + 6.0)
}

fn grid(plane: &Plane, frame: &Frame) -> Markup {
    let mut right = f64::NEG_INFINITY;
    let mut ticks = plane.x.ticks();
    // Names that would run into one another are left out.
    ticks.retain(|(at, label)| {
        let half = ink::room(label) / 2.0;
        let has_room = at - half > right + TICK_GAP;
        if has_room {
            right = at + half;
        }
        has_room
    });
    html! {
        @for (y, label) in plane.y.ticks() {
            line class="grid" x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y)) y2=(px(y)) {}
            text class="tick" x=(px(frame.left - 6.0)) y=(px(y + 4.0)) text-anchor="end" { (label) }
        }
        @for (x, label) in &ticks {
            line class="grid" x1=(px(*x)) x2=(px(*x)) y1=(px(frame.top)) y2=(px(frame.bottom)) {}
            @let y = frame.bottom + 15.0;
            text class="tick" x=(px(*x)) y=(px(y)) text-anchor="middle" { (label) }
        }
    }
}

/// Where a point stands; `None` where an axis cannot show it.
fn place(point: &Point, plane: &Plane) -> Option<(f64, f64)> {
    Some((plane.x.place(point.x)?, plane.y.place(point.y.value)?))
}

/// The intervals of a curve.
fn band(line: &Line, series: &[Series], plane: &Plane) -> Markup {
    let edges: Vec<(f64, f64, f64)> = line
        .points
        .iter()
        .filter_map(|point| {
            let (low, high) = point.y.interval?;
            Some((plane.x.place(point.x)?, plane.y.place(low)?, plane.y.place(high)?))
        })
        .collect();
    let upper = edges.iter().map(|(x, _, high)| (*x, *high));
    let lower = edges.iter().rev().map(|(x, low, _)| (*x, *low));
    let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
    html! {
        @if outline.len() > 2 {
            path class={ "band " (tone_of(line, series)) } d={ (path(&outline)) "Z" } {}
        }
    }
}

fn drawn(line: &Line, series: &[Series], plane: &Plane) -> Markup {
    let tone = tone_of(line, series);
    let name = series.get(line.series).map_or("", |series| series.name.as_str());
    let places: Vec<(f64, f64)> =
        line.points.iter().filter_map(|point| place(point, plane)).collect();
    let dash = if line.style == Style::Dashed { " dashed" } else { "" };
    html! {
        @if line.style != Style::Points && places.len() > 1 {
            path class={ "stroke " (tone) (dash) } d=(path(&places)) { title { (name) } }
        }
        @if matches!(line.style, Style::Points | Style::Joined) {
            @for point in &line.points { (dot(point, name, &tone, plane)) }
        }
    }
}

fn dot(point: &Point, name: &str, tone: &str, plane: &Plane) -> Markup {
    let Some((x, y)) = place(point, plane) else { return html! {} };
    let ends = point
        .y
        .interval
        .and_then(|(low, high)| Some(((x, plane.y.place(low)?), (x, plane.y.place(high)?))));
    html! {
        g {
            title { (name) ", " (plain(point.x)) ": " (ink::estimate(&point.y)) }
            @if let Some((low, high)) = ends { (ink::whisker(low, high)) }
            circle class={ "fill " (tone) } cx=(px(x)) cy=(px(y)) r="3.5" {}
        }
    }
}

fn reference(guide: &Guide, plane: &Plane, frame: &Frame) -> Markup {
    let (from, to, text) = match guide.at {
        At::X(x) => {
            let Some(x) = plane.x.place(x) else { return html! {} };
            ((x, frame.top), (x, frame.bottom), (x, frame.top - 4.0, "middle"))
        }
        At::Y(y) => {
            let Some(y) = plane.y.place(y) else { return html! {} };
            ((frame.left, y), (frame.right, y), (frame.right, y - 4.0, "end"))
        }
    };
    html! {
        path class="guide" d=(path(&[from, to])) {}
        text class="soft" x=(px(text.0)) y=(px(text.1)) text-anchor=(text.2) { (guide.name) }
    }
}

fn tone_of(line: &Line, series: &[Series]) -> String {
    ink::tone(series.get(line.series).map_or(0, |series| series.tone))
}

fn path(points: &[(f64, f64)]) -> String {
    let parts = points.iter().map(|(x, y)| format!("{} {}", px(*x), px(*y)));
    format!("M{}", parts.collect::<Vec<_>>().join("L"))
}
