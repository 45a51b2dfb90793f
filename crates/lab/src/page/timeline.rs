//! What happened when: a lane for each span, its notes below it, and arrows at the left.
//!
//! Each span has a lane of its own, so that its notes have the whole width. Times are drawn in
//! their order: what takes a microsecond is seen beside what takes minutes.

use maud::{Markup, html};

use super::chart::{Arrow, Note, Span};
use super::ink::{self, Drawn, LINE, px};
use super::scale::count;

/// Height of a span, and the room around it.
const BAR: f64 = 9.0;
const BAR_ROOM: f64 = 15.0;

/// Narrowest span.
const BAR_WIDTH_MIN: f64 = 8.0;

/// Room below the notes of a span.
const LANE_GAP: f64 = 8.0;

/// How far an arrow bends to the left, and how much further the next one.
const BEND: f64 = 18.0;
const BEND_STEP: f64 = 10.0;

/// Part of a bend that a Bezier curve reaches.
const BEND_REACH: f64 = 0.75;

/// Room between arrows and spans.
const HEAD: f64 = 10.0;

/// Draws the spans.
pub(super) fn draw(spans: &[Span], arrows: &[Arrow], width: f64) -> Drawn {
    let left = gutter(arrows);
    let places = Places::of(spans, (left, width - BAR_WIDTH_MIN));
    let mut y = 0.0;
    let mut bars = Vec::new();
    let mut body = Vec::new();
    for (at, span) in spans.iter().enumerate() {
        let is_first = at == 0 || spans.get(at - 1).is_none_or(|before| before.row != span.row);
        if is_first {
            y += LINE;
            body.push(row(&span.row, y, at > 0, width));
            y += 4.0;
        }
        let from = places.place(span.from);
        let to = places.place(span.to).max(from + BAR_WIDTH_MIN);
        bars.push((from, y + BAR / 2.0));
        body.push(html! {
            rect class={ "fill " (ink::tone(span.tone)) } x=(px(from)) y=(px(y)) rx="2"
                width=(px(to - from)) height=(px(BAR)) { title { (span.name) } }
        });
        y += BAR_ROOM;
        let (words, height) = words(span, y, (left, width));
        body.push(words);
        y += height + LANE_GAP;
    }
    let drawn = arrows.iter().enumerate().filter_map(|(at, it)| arrow(it, at, &bars, left));
    let body = html! { @for part in &body { (part) } @for part in drawn { (part) } };
    Drawn { body, height: y.max(LINE) }
}

/// The times of spans, evenly spaced in their order.
struct Places {
    times: Vec<u64>,
    left: f64,
    right: f64,
}

impl Places {
    fn of(spans: &[Span], (left, right): (f64, f64)) -> Self {
        let mut times: Vec<u64> = spans.iter().flat_map(|span| [span.from, span.to]).collect();
        times.sort_unstable();
        times.dedup();
        Self { times, left, right }
    }

    fn place(&self, time: u64) -> f64 {
        let at = self.times.partition_point(|it| *it < time);
        let last = self.times.len().saturating_sub(1).max(1);
        self.left + (self.right - self.left) * count(at) / count(last)
    }
}

/// Room for arrows and their names at the left.
fn gutter(arrows: &[Arrow]) -> f64 {
    let room = |(at, arrow): (usize, &Arrow)| bend(at) * BEND_REACH + ink::room(&arrow.name) + 6.0;
    arrows.iter().enumerate().map(room).fold(0.0, f64::max) + HEAD
}

fn bend(at: usize) -> f64 {
    BEND + BEND_STEP * count(at)
}

/// The name of a row, below a line that parts it from the one before.
fn row(name: &str, y: f64, has_before: bool, width: f64) -> Markup {
    html! {
        @if has_before {
            @let line = y - LINE + 1.0;
            line class="grid" x1="0" x2=(px(width)) y1=(px(line)) y2=(px(line)) {}
        }
        text class="group" x="0" y=(px(y - 2.0)) { (ink::cut(name, width)) }
    }
}

/// What a span is, its notes, and the room that they take.
fn words(span: &Span, top: f64, (left, width): (f64, f64)) -> (Markup, f64) {
    let room = width - left;
    let line = |class: &'static str, words: &str| {
        let lines = ink::wrapped(words, room);
        lines.into_iter().map(move |line| (class, line)).collect::<Vec<_>>()
    };
    let note = |note: &Note| line(if note.is_marked { "group" } else { "soft" }, &note.text);
    let head = line("soft", &span.name).into_iter();
    let lines: Vec<(&str, String)> = head.chain(span.notes.iter().flat_map(note)).collect();
    let height = LINE * count(lines.len());
    let markup = html! {
        @for (at, (class, line)) in lines.iter().enumerate() {
            @let y = top + LINE * count(at) + 11.0;
            text class=(class) x=(px(left)) y=(px(y)) { (ink::cut(line, room)) }
        }
    };
    (markup, height)
}

/// An arrow at the left of the spans; nothing if one of them is not there.
fn arrow(arrow: &Arrow, at: usize, bars: &[(f64, f64)], left: f64) -> Option<Markup> {
    let (start, end) = (*bars.get(arrow.from)?, *bars.get(arrow.to)?);
    let x = left - 3.0;
    let control = x - bend(at);
    let curve = format!(
        "M{} {}C{} {} {} {} {} {}",
        px(x),
        px(start.1),
        px(control),
        px(start.1),
        px(control),
        px(end.1),
        px(x),
        px(end.1)
    );
    let head = format!(
        "M{} {}L{} {}L{} {}",
        px(x - 6.0),
        px(end.1 - 4.0),
        px(x),
        px(end.1),
        px(x - 6.0),
        px(end.1 + 4.0)
    );
    let name_x = x - bend(at) * BEND_REACH - 3.0;
    // Names of arrows between the same spans stand below each other.
    let name_y = f64::midpoint(start.1, end.1) + 4.0 + LINE * count(at);
    Some(html! {
        @for (bar_x, bar_y) in [start, end] {
            @if bar_x > left {
                line class="guide" x1=(px(x)) x2=(px(bar_x)) y1=(px(bar_y)) y2=(px(bar_y)) {}
            }
        }
        path class="whisker" d=(curve) {}
        path class="whisker" d=(head) {}
        text class="tick" x=(px(name_x)) y=(px(name_y)) text-anchor="end" { (arrow.name) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(row: &str, from: u64, to: u64) -> Span {
        let note = |text: &str, is_marked| Note { text: text.into(), is_marked };
        let notes = vec![note("sent 7 to partition 0", true), note("polled 1", false)];
        Span { row: row.into(), name: "transaction".into(), tone: 3, from, to, notes }
    }

    #[test]
    fn spans_follow_the_order_of_time_and_arrows_point_at_them() {
        let spans = [span("client 1", 10, 1_000_000), span("client 2", 11, 12)];
        let arrows = [Arrow { from: 0, to: 1, name: "wr".into() }];
        let places = Places::of(&spans, (0.0, 90.0));
        assert_eq!([10, 11, 12, 1_000_000].map(|it| places.place(it)), [0.0, 30.0, 60.0, 90.0]);
        for width in [340.0, 500.0] {
            let Drawn { body, height } = draw(&spans, &arrows, width);
            let svg = body.into_string();
            assert_eq!((svg.matches("<rect").count(), svg.matches(">wr<").count()), (2, 1));
            assert!(height > 100.0, "{height}");
        }
    }

    #[test]
    fn an_arrow_to_nothing_and_no_spans_are_drawn_without_a_panic() {
        let arrows = [Arrow { from: 0, to: 9, name: "ww".into() }];
        assert!(draw(&[], &arrows, 340.0).body.into_string().is_empty());
    }
}
