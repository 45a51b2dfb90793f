//! Charts as SVG, inside a page or as pictures of their own.
//!
//! A drawing is made for a width: one for wide screens and print, one for a telephone. Colours are
//! CSS variables, so that light and dark are left to the reader's settings.

use maud::{Markup, PreEscaped, html};

use super::bars;
use super::chart::{Chart, Plot};
use super::ink::{self, Drawn, px};
use super::lines;
use super::timeline;

/// Colours and letters of charts.
pub(super) const STYLE: &str = include_str!("../../assets/chart.css");

/// Width of a chart beside another, and of one on a telephone.
pub(super) const WIDE: f64 = 500.0;
pub(super) const NARROW: f64 = 340.0;

/// Width of a picture, and the room around it.
const PICTURE: f64 = 760.0;
const MARGIN: f64 = 16.0;

/// The chart for a place of this width.
pub(super) fn svg(chart: &Chart, width: f64) -> Markup {
    let Drawn { body, height } = draw(chart, width);
    html! {
        svg class="chart" viewBox=(format!("0 0 {} {}", px(width), px(height))) role="img"
            aria-label=(chart.title) {
            desc { (chart.about) " " (ink::told(chart)) }
            (body)
        }
    }
}

/// The chart as a file of its own, with its title and what it needs to be read.
#[must_use]
pub fn picture(chart: &Chart) -> String {
    let inner = PICTURE - 2.0 * MARGIN;
    let Drawn { body, height } = draw(chart, inner);
    let about = ink::wrapped(&chart.about, inner);
    let top = 44.0 + ink::LINE * super::scale::count(about.len());
    let (width, height) = (px(PICTURE), px(height + top + MARGIN));
    let markup = html! {
        svg class="chart" xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(chart.title) {
            title { (chart.title) }
            desc { (chart.about) " " (ink::told(chart)) }
            style { (PreEscaped(STYLE)) }
            rect class="sheet" width=(width) height=(height) rx="10" {}
            text class="title" x=(px(MARGIN)) y="28" { (chart.title) }
            @for (at, line) in about.iter().enumerate() {
                @let y = 48.0 + ink::LINE * super::scale::count(at);
                text class="soft" x=(px(MARGIN)) y=(px(y)) { (line) }
            }
            g transform=(format!("translate({} {})", px(MARGIN), px(top))) { (body) }
        }
    };
    markup.into_string()
}

fn draw(chart: &Chart, width: f64) -> Drawn {
    match &chart.plot {
        Plot::Bars { axis, mark, groups } => bars::draw(&chart.series, axis, *mark, groups, width),
        Plot::Lines { x, y, lines, guides } => {
            lines::draw(&chart.series, (x, y), lines, guides, width)
        }
        Plot::Timeline { spans, arrows } => timeline::draw(spans, arrows, width),
    }
}
