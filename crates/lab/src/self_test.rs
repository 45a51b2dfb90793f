//! What the laboratory found about itself, as the result document holds it.

use serde::{Deserialize, Serialize};

/// A promise of the laboratory that is put to the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfTest {
    /// Response times contain every wait, also that of operations which were never sent in time.
    Stall,
    /// Another driver reports the same of the same target.
    Drivers,
}

impl SelfTest {
    /// What is asked.
    #[must_use]
    pub fn question(self) -> &'static str {
        match self {
            Self::Stall => "Does a stop of the target show in full?",
            Self::Drivers => "Does another driver report the same?",
        }
    }
}

/// Tables and curves of a self-test; what was demanded of them stands in the checks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SelfTestRecord {
    /// In the order in which they are shown.
    pub tables: Vec<Table>,
    /// In the order in which they are shown.
    pub curves: Vec<Curves>,
}

/// Figures of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// How the figures came about.
    pub about: String,
    /// Names of the columns with their units; the first is that of the rows' names.
    pub columns: Vec<String>,
    /// As many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A figure in the unit of its column.
    Figure(f64),
    /// A name or a remark.
    Words(String),
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

impl From<&str> for Cell {
    fn from(words: &str) -> Self {
        Self::Words(words.into())
    }
}

impl From<String> for Cell {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

/// Latencies at a few percentiles, from several sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curves {
    /// What was done.
    pub title: String,
    /// The percentiles as shares, 0 to 1, rising.
    pub quantiles: Vec<f64>,
    /// One per source.
    pub lines: Vec<Line>,
}

/// Latencies of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// The source.
    pub name: String,
    /// One latency per percentile, ms.
    pub ms: Vec<f64>,
}
