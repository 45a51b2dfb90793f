//! A page as plain data.

use super::chart::Chart;

/// Most sentences of an answer: what needs more is a table.
pub const ANSWER_SENTENCES_MAX: usize = 3;

/// What an experiment has to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// The question.
    pub title: String,
    /// When and in which form it was asked.
    pub about: String,
    /// Whether its figures hold.
    pub standing: Standing,
    /// The answer: plain sentences, [`ANSWER_SENTENCES_MAX`] at most.
    pub answer: Vec<String>,
    /// What a reader must know before using a figure.
    pub warnings: Vec<String>,
    /// The small table beside the answer: at most ten rows are readable there.
    pub table: Option<Table>,
    /// The charts that show the answer.
    pub charts: Vec<Chart>,
    /// Everything else that was found, folded on the page.
    pub details: Vec<Detail>,
    /// What the laboratory checked about itself, and goals.
    pub checks: Vec<CheckRow>,
    /// Where and with what it was measured: name and value.
    pub facts: Vec<(String, String)>,
    /// Files beside the page that hold the raw data.
    pub links: Vec<Link>,
}

impl Page {
    /// All charts, in their order.
    pub fn all_charts(&self) -> impl Iterator<Item = &Chart> {
        self.charts.iter().chain(self.details.iter().flat_map(|detail| &detail.charts))
    }
}

/// What the checks say of the figures of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They hold.
    Holds,
    /// They hold, and a goal was missed.
    GoalMissed,
    /// They hold, and show that a system broke a promise.
    PromiseBroken,
    /// Acknowledged records did not come back as they were sent.
    RecordsLost,
    /// They do not hold.
    Invalid,
}

impl Standing {
    /// Whether figures may be shown as the answer.
    #[must_use]
    pub fn has_figures(self) -> bool {
        matches!(self, Self::Holds | Self::GoalMissed | Self::PromiseBroken)
    }

    /// In two words.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Holds => "figures hold",
            Self::GoalMissed => "goal missed",
            Self::PromiseBroken => "anomalies",
            Self::RecordsLost => "records lost",
            Self::Invalid => "not valid",
        }
    }
}

/// A part of a page that is folded: what a reader opens who wants to know more.
#[derive(Clone, Debug, PartialEq)]
pub struct Detail {
    /// What it holds.
    pub title: String,
    /// Paragraphs ahead of charts and tables.
    pub text: Vec<String>,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// Its tables.
    pub tables: Vec<Table>,
}

impl Detail {
    /// A part of words alone.
    #[must_use]
    pub fn words(title: &str, text: Vec<String>) -> Self {
        Self { text, ..Self::of(title, Vec::new(), Vec::new()) }
    }

    /// A part with the title of its table.
    #[must_use]
    pub fn table(table: Table) -> Self {
        Self::of(&table.title.clone(), Vec::new(), vec![table])
    }

    /// A part without text.
    #[must_use]
    pub fn of(title: &str, charts: Vec<Chart>, tables: Vec<Table>) -> Self {
        Self { title: title.into(), text: Vec::new(), charts, tables }
    }

    /// Whether it shows nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.charts.is_empty()
            && self.tables.iter().all(|it| it.rows.is_empty())
    }
}

/// A table of words and figures; the first column names the row.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What its figures are.
    pub about: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, of as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of cells whose columns begin with words or end with figures, as their cells are.
    #[must_use]
    pub fn of<C: ToString>(
        title: &str,
        about: &str,
        columns: &[C],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let rows: Vec<Vec<String>> = rows.collect();
        let column = |(at, name): (usize, &C)| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let is_words = at == 0 || are_words(cells);
            Column { name: name.to_string(), unit: String::new(), is_words }
        };
        let columns = columns.iter().enumerate().map(column).collect();
        Self { title: title.into(), about: about.into(), columns, rows }
    }

    /// The table without the columns where every cell is `empty`.
    #[must_use]
    pub fn without_empty(mut self, empty: &str) -> Self {
        let is_kept = |at: usize, rows: &[Vec<String>]| {
            rows.iter().any(|row| row.get(at).is_some_and(|cell| cell != empty))
        };
        for at in
            (0..self.columns.len()).rev().filter(|at| !is_kept(*at, &self.rows)).collect::<Vec<_>>()
        {
            self.columns.remove(at);
            for row in self.rows.iter_mut().filter(|row| at < row.len()) {
                row.remove(at);
            }
        }
        self
    }
}

/// Whether cells are words. Unknown and refused figures do not count.
fn are_words<'a>(cells: impl Iterator<Item = &'a String>) -> bool {
    let mut cells = cells.filter(|cell| cell.chars().any(char::is_alphanumeric)).peekable();
    cells.peek().is_some() && cells.all(|cell| cell.starts_with(char::is_alphabetic))
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What its cells are.
    pub name: String,
    /// Their unit, or nothing.
    pub unit: String,
    /// Whether its cells are words, which begin below one another; figures end there.
    pub is_words: bool,
}

impl Column {
    /// A column of figures.
    #[must_use]
    pub fn figures(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { name: name.into(), unit: unit.into(), is_words: false }
    }

    /// A column of words.
    #[must_use]
    pub fn words(name: impl Into<String>) -> Self {
        Self { name: name.into(), unit: String::new(), is_words: true }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckRow {
    /// What was checked.
    pub name: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What was found.
    pub found: String,
    /// What was demanded.
    pub demanded: String,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It did not, and the reader should know; the figures hold.
    Noted,
    /// It failed.
    Failed,
}

impl Outcome {
    /// In one word.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Noted => "note",
            Self::Failed => "failed",
        }
    }
}

/// A file beside the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What the file holds.
    pub text: String,
    /// Its path from the directory of the page.
    pub path: String,
}
