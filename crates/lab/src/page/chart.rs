//! A chart as plain data.

/// A chart: what it shows, and the figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Short name in file names, such as `cpu`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// What is compared; plots refer to these by their place.
    pub series: Vec<Series>,
    /// The figures.
    pub plot: Plot,
}

/// One of the things that a chart compares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its colour, the same in all charts of a page; there are [`TONES`].
    pub tone: usize,
}

/// Number of distinct colours on a page. Later tones repeat them.
pub const TONES: usize = 8;

/// The figures of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// One figure for each series in each group, from left to right.
    Bars {
        /// The figure.
        axis: Axis,
        /// How it is drawn.
        mark: Mark,
        /// The groups, from top to bottom.
        groups: Vec<Group>,
    },
    /// Figures over another figure.
    Lines {
        /// From left to right.
        x: Axis,
        /// From bottom to top.
        y: Axis,
        /// The lines; several of one series are parts of it.
        lines: Vec<Line>,
        /// Reference lines.
        guides: Vec<Guide>,
    },
    /// What happened when, from left to right in order of time, not to scale.
    Timeline {
        /// From top to bottom; spans of one row follow each other.
        spans: Vec<Span>,
        /// Relations between spans.
        arrows: Vec<Arrow>,
    },
}

/// Something that took its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Name of its row.
    pub row: String,
    /// What it is.
    pub name: String,
    /// Its colour.
    pub tone: usize,
    /// Its begin; the unit is that of all spans.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// What happened in it.
    pub notes: Vec<Note>,
}

/// One line below a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What happened.
    pub text: String,
    /// Whether the chart is about it.
    pub is_marked: bool,
}

/// A relation between two spans, by their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrow {
    /// The first.
    pub from: usize,
    /// The second.
    pub to: usize,
    /// The relation.
    pub name: String,
}

/// How a figure beside others is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// By a length from zero.
    Bar,
    /// By a place, for logarithmic axes, which have no zero.
    Dot,
}

/// What is read off one direction of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The quantity.
    pub name: String,
    /// Its unit, or nothing.
    pub unit: String,
    /// Where values stand.
    pub scale: Scale,
}

impl Axis {
    /// An axis.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: impl Into<String>, scale: Scale) -> Self {
        Self { name: name.into(), unit: unit.into(), scale }
    }

    /// Name and unit.
    #[must_use]
    pub fn label(&self) -> String {
        if self.unit.is_empty() {
            self.name.clone()
        } else {
            format!("{}, {}", self.name, self.unit)
        }
    }
}

/// Where values stand on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// In proportion, from zero.
    Linear,
    /// In proportion, from the least value: for times.
    Span,
    /// By the logarithm; values that are not positive are left out.
    Log,
    /// A share below 1 by the logarithm of what is left: 0.9, 0.99 and 0.999 are evenly spaced.
    Percentile,
}

/// A figure, and the ends of its interval where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Both ends of its interval.
    pub interval: Option<(f64, f64)>,
}

impl From<f64> for Estimate {
    fn from(value: f64) -> Self {
        Self { value, interval: None }
    }
}

/// What is drawn side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name; empty where there is one group.
    pub name: String,
    /// One cell for each series of the chart.
    pub cells: Vec<Cell>,
}

/// One bar or dot.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A figure.
    Figure(Estimate),
    /// Why there is none.
    Words(String),
    /// The series has no place in this group.
    Absent,
}

/// Points of a series, from left to right.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Place of its series in the chart.
    pub series: usize,
    /// How it is drawn.
    pub style: Style,
    /// The points.
    pub points: Vec<Point>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Connected; intervals are a band.
    Curve,
    /// Connected by a dashed line.
    Dashed,
    /// Alone; intervals are error bars.
    Points,
    /// Connected, each with its error bar.
    Joined,
}

/// One point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// From left to right.
    pub x: f64,
    /// From bottom to top.
    pub y: Estimate,
}

/// A reference line.
#[derive(Clone, Debug, PartialEq)]
pub struct Guide {
    /// What it marks.
    pub name: String,
    /// Where it is.
    pub at: At,
}

/// Where a reference line is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// At this value of the axis from left to right.
    X(f64),
    /// At this value of the axis from bottom to top.
    Y(f64),
}
