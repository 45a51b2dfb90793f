//! What an experiment answers, as plain data, and the renderers that show it.
//!
//! A [`Page`] says everything that a report needs; [`terminal()`], [`html()`] and [`markdown()`]
//! show it, and know no experiment. [`picture`] makes a file of one chart.
//!
//! # How an experiment makes a page
//! `experiments/<name>/page.rs` has one public function from the result to the page, which
//! `pages::page` calls. It reads the result document alone, so that reports can be made again.
//!
//! 1. Begin with `result_page::blank(result, QUESTION)`. It fills in what all results share: the
//!    standing, the reason where figures do not hold, warnings of notes and missed goals, checks,
//!    environment, links to raw data.
//! 2. Where [`Standing::has_figures`], set `answer`: [`ANSWER_SENTENCES_MAX`] plain sentences at
//!    most, figures by `numbers::rough` and `numbers::many`. The first one answers the question;
//!    the last one is `result_page::records(result)`.
//! 3. Set `table`: one row for each thing that is compared, seven columns at most, names of one or
//!    two words with the unit apart, and `about` to say at which load each column was measured.
//!    Terminals that are too narrow lose columns from the right, so the figures that matter stand
//!    left. [`Table::without_empty`] drops columns without a figure.
//! 4. Push one to four `charts`, those that show what the answer says. Each has an `id`, unique
//!    on the page, that names its file; a title; and in `about` how to read it in one or two
//!    sentences: what it counts, whether less is better, what whiskers and bands are.
//!    - [`Plot::Bars`] compares one figure of several things, in groups. [`Mark::Bar`] needs an
//!      axis that starts at zero, [`Mark::Dot`] goes with [`Scale::Log`].
//!    - [`Plot::Lines`] is a figure over another: [`Style::Curve`] with bands, [`Style::Joined`]
//!      for few points with error bars, [`Style::Points`] for single trials, [`Style::Dashed`] for
//!      a model or a limit that grows; [`Guide`] for a limit that does not.
//!    - [`Plot::Timeline`] shows what happened in which order, with [`Arrow`]s for relations.
//!    - [`Series::tone`] is the colour of a thing in every chart of the page; 0 is grey, for the
//!      baseline.
//!
//!    `run_charts` makes what several experiments show: latency by percentile, the course of runs,
//!    means with intervals.
//! 5. Push `details`, in the order in which a reader asks: a title, paragraphs, charts, tables.
//!    They are folded in HTML and left out of the short terminal form. `result_page::comparisons`
//!    and `result_page::audit` are two of them.
//! 6. Test the sentences, the rows of the small table, the ids of the charts; and add the
//!    experiment to the test that makes a page of every published result.
//!
//! Goals need nothing here: `goals` judges figures of runs in every result. Figures that are no
//! run's, such as a ceiling, have a name in `goals` to be judged by.

mod bars;
mod chart;
mod content;
mod drawing;
mod html;
mod ink;
mod lines;
mod markdown;
mod scale;
mod terminal;
#[cfg(test)]
mod tests;
mod timeline;

pub use chart::{
    Arrow, At, Axis, Cell, Chart, Estimate, Group, Guide, Line, Mark, Note, Plot, Point, Scale,
    Series, Span, Style, TONES,
};
pub use content::{
    ANSWER_SENTENCES_MAX, CheckRow, Column, Detail, Link, Outcome, Page, Standing, Table,
};
pub use drawing::picture;
pub(crate) use html::document;
pub use html::html;
pub use markdown::{chart_path, markdown};
pub use terminal::{Extent, LINES_MAX, terminal};
