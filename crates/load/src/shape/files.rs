//! What a user's files hold: values, or instants. The caller reads the files and passes in their
//! bytes.

use std::ops::Range;

use moldau_measure::statistics::float;

/// Largest file of values or instants: it is held in memory while a load runs.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// Most lines or instants of a file: at 100,000 records per second a minute and a half.
const LINES_MAX: usize = 10_000_000;

/// Digits of a second that count.
const FRACTION_DIGITS: usize = 9;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The content of a file that values are made of.
#[derive(Clone, Default, PartialEq)]
pub struct Corpus {
    bytes: Vec<u8>,
    /// Where each line lies that is not empty, without its end; none where the file is cut.
    lines: Vec<Range<usize>>,
}

impl std::fmt::Debug for Corpus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Corpus of {} bytes in {} lines", self.bytes.len(), self.lines.len())
    }
}

impl Corpus {
    /// A file with a value in each line. Line ends and empty lines are not values.
    ///
    /// # Errors
    /// A sentence on what is wrong, with the line.
    pub fn of_lines(bytes: Vec<u8>, line_bytes_max: usize) -> Result<Self, String> {
        let mut lines = Vec::new();
        let mut start = 0;
        for (number, line) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            let content = line.strip_suffix(b"\r").unwrap_or(line);
            if content.len() > line_bytes_max {
                let found = content.len();
                return Err(format!("{number}: a line of {found} bytes is above {line_bytes_max}"));
            }
            if lines.len() == LINES_MAX {
                return Err(format!("{number}: more than {LINES_MAX} lines"));
            }
            if !content.is_empty() {
                lines.push(start..start + content.len());
            }
            start += line.len() + 1;
        }
        if lines.is_empty() { Err(" holds no line".into()) } else { Ok(Self { bytes, lines }) }
    }

    /// A file that values are cut from.
    ///
    /// # Errors
    /// A sentence, where it is empty.
    pub fn of_bytes(bytes: Vec<u8>) -> Result<Self, String> {
        if bytes.is_empty() {
            return Err(" is empty".into());
        }
        Ok(Self { bytes, lines: Vec::new() })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// A line by its number; empty beyond the last.
    pub fn line(&self, index: usize) -> &[u8] {
        let place = self.lines.get(index).cloned().unwrap_or_default();
        self.bytes.get(place).unwrap_or_default()
    }

    pub(super) fn line_bytes_mean(&self) -> f64 {
        let bytes: usize = self.lines.iter().map(Range::len).sum();
        float(bytes as u64) / float(self.lines.len().max(1) as u64)
    }

    pub(super) fn line_bytes_max(&self) -> usize {
        self.lines.iter().map(Range::len).max().unwrap_or(0)
    }

    /// The bytes, over and over until there are as many more as `beyond`; with how many they are.
    pub fn repeated(&self, beyond: usize) -> (Vec<u8>, usize) {
        let count = self.bytes.len();
        (self.bytes.iter().copied().cycle().take(count + beyond).collect(), count)
    }
}

/// The instants at which records of a trace were, and perhaps their sizes.
#[derive(Clone, Default, PartialEq)]
pub struct Trace {
    /// From the first on, rising.
    instants_ns: Vec<u64>,
    /// Of each instant, or none at all.
    bytes: Vec<u32>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trace of {} instants", self.instants_ns.len())
    }
}

impl Trace {
    /// Reads a trace: an instant in seconds on each line, and behind a comma the bytes of the
    /// record's value if there are any. The first instant is the start of the run. A first line
    /// of words names the columns; empty lines and those that begin with `#` are passed over.
    ///
    /// # Errors
    /// A sentence on what is wrong, with the line.
    pub fn parse(bytes: &[u8], record_bytes_max: usize) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| " is not a text in UTF-8".to_string())?;
        let mut trace = Self::default();
        let mut first_ns = None;
        let mut last_ns = 0;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            let is_heading = number == 1 && line.starts_with(|c: char| c.is_ascii_alphabetic());
            if line.is_empty() || line.starts_with('#') || is_heading {
                continue;
            }
            let at = |problem: String| format!("{number}: {problem}");
            let (time, size) = match line.split_once(',') {
                Some((time, size)) => (time.trim(), Some(size.trim())),
                None => (line, None),
            };
            let instant_ns = nanoseconds(time)
                .ok_or_else(|| at(format!("{time:?} is no instant in seconds")))?;
            if instant_ns < last_ns {
                return Err(at(format!("{time} is before the instant of the line before")));
            }
            last_ns = instant_ns;
            if trace.instants_ns.len() == LINES_MAX {
                return Err(at(format!("more than {LINES_MAX} instants")));
            }
            if size.is_some() != trace.has_sizes() && !trace.instants_ns.is_empty() {
                return Err(at("every line has bytes, or none has".into()));
            }
            trace.instants_ns.push(instant_ns - *first_ns.get_or_insert(instant_ns));
            if let Some(size) = size {
                let is_possible =
                    |bytes: &u32| usize::try_from(*bytes).is_ok_and(|it| it <= record_bytes_max);
                let bytes = size.parse().ok().filter(is_possible);
                let problem = || at(format!("{size:?} is no size up to {record_bytes_max}"));
                trace.bytes.push(bytes.ok_or_else(problem)?);
            }
        }
        if trace.instants_ns.is_empty() { Err(" holds no instant".into()) } else { Ok(trace) }
    }

    /// The instants from the first on, ns.
    #[must_use]
    pub fn instants_ns(&self) -> &[u64] {
        &self.instants_ns
    }

    /// From the first instant to the last, ns.
    #[must_use]
    pub fn span_ns(&self) -> u64 {
        self.instants_ns.last().copied().unwrap_or(0)
    }

    /// When an instant comes at so many times the speed of the file, ns.
    pub fn scaled(instant_ns: u64, speed: f64) -> u64 {
        nanos(float(instant_ns) / speed)
    }

    pub(super) fn has_sizes(&self) -> bool {
        !self.bytes.is_empty()
    }

    /// The bytes of a record; of those beyond the last, that of the last.
    pub(super) fn bytes_at(&self, index: u64) -> usize {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let bytes = self.bytes.get(index).or(self.bytes.last()).copied().unwrap_or(0);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    pub(super) fn bytes_mean(&self, bytes_min: usize) -> Option<f64> {
        let least = u32::try_from(bytes_min).unwrap_or(u32::MAX);
        let sum: u64 = self.bytes.iter().map(|bytes| u64::from((*bytes).max(least))).sum();
        self.has_sizes().then(|| float(sum) / float(self.bytes.len() as u64))
    }

    pub(super) fn bytes_max(&self) -> Option<usize> {
        self.bytes.iter().max().and_then(|bytes| usize::try_from(*bytes).ok())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an instant is not negative; the cast saturates"
)]
fn nanos(instant: f64) -> u64 {
    instant as u64
}

/// Decimal seconds as nanoseconds; digits beyond those are passed over.
fn nanoseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(FRACTION_DIGITS);
    let nanos = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.parse::<u64>().ok()?.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
}
