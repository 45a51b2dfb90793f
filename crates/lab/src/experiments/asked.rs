//! Record settings that experiment files and surveys share: contents, sizes, keys and intended
//! times.
//!
//! Files of the user are named here by their paths ([`UserFile`]). The reader of the experiment
//! file passes in their contents; this crate reads no file of the user.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use moldau_load::payload::{Filler, HEADER_BYTES};
use moldau_load::schedule::Arrivals;
use moldau_load::shape::{
    Corpus, CorpusUse, FILE_BYTES_MAX, Keys, SHAPED_BYTES_MAX, Shape, Sizes, Trace, TraceUse,
};
use moldau_load::workload::Pace;
use moldau_measure::Error;

/// What values hold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Payload {
    /// [`Filler::Random`].
    Random,
    /// [`Filler::Text`].
    #[default]
    Text,
    /// [`Filler::Json`].
    Json,
    /// [`Filler::Logs`].
    Logs,
    /// [`Filler::Avro`].
    Avro,
    /// The lines of a file, one in each value.
    File(UserFile<Corpus>),
    /// What is cut from a file, value after value.
    Raw(UserFile<Corpus>),
}

/// How intended times follow one another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Times {
    /// [`Arrivals::Constant`].
    #[default]
    Constant,
    /// [`Arrivals::Poisson`].
    Poisson {
        /// Seed of the distances.
        seed: u64,
    },
    /// [`Arrivals::Bursts`].
    Bursts {
        /// Operations of a group.
        size: u32,
    },
    /// Those of a file, which are a rate of their own.
    Trace {
        /// The file.
        file: UserFile<Trace>,
        /// How many times faster.
        #[serde(default = "as_it_is")]
        speed: f64,
    },
}

fn as_it_is() -> f64 {
    1.0
}

/// A file of the user, in experiments the text of its path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String", bound = "T: Clone + Default")]
pub struct UserFile<T> {
    path: String,
    bytes: u64,
    crc32c: u32,
    /// Empty until it is read.
    content: Arc<T>,
}

impl<T: Default> From<String> for UserFile<T> {
    fn from(path: String) -> Self {
        Self { path, bytes: 0, crc32c: 0, content: Arc::default() }
    }
}

impl<T> From<UserFile<T>> for String {
    fn from(file: UserFile<T>) -> Self {
        file.path
    }
}

/// Reads a file of the user by its path, as far as it has no more than so many bytes.
pub type ReadFile<'a> = dyn FnMut(&str, u64) -> std::io::Result<Vec<u8>> + 'a;

impl<T> UserFile<T> {
    fn read(
        &mut self,
        read: &mut ReadFile<'_>,
        parse: impl FnOnce(Vec<u8>) -> Result<T, String>,
    ) -> Result<(), Error> {
        let told = |problem: String| Error::Plan(format!("{}{problem}", self.path));
        let bytes = read(&self.path, FILE_BYTES_MAX).map_err(|error| told(format!(": {error}")))?;
        self.bytes = bytes.len() as u64;
        self.crc32c = moldau_records::crc32c(&bytes);
        // A place in the file stands right behind its path, as lines of other files do.
        let content = parse(bytes).map_err(|problem| {
            told(if problem.starts_with(' ') { problem } else { format!(":{problem}") })
        })?;
        self.content = Arc::new(content);
        Ok(())
    }
}

/// All that a load says of its records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Bytes of a value where all are of one size.
    pub(crate) record_bytes: usize,
    pub(crate) sizes: Option<&'a Sizes>,
    pub(crate) keys: Option<Keys>,
    pub(crate) payload: &'a Payload,
    pub(crate) times: &'a Times,
}

impl Asked<'_> {
    /// The size of a value, or the mean of those that differ, what it holds, and what differs.
    pub(crate) fn shape(&self) -> (usize, Filler, Shape) {
        let corpus = |file: &UserFile<Corpus>, lines| CorpusUse {
            file: file.path.clone(),
            bytes: file.bytes,
            crc32c: file.crc32c,
            lines,
            content: Arc::clone(&file.content),
        };
        let (filler, corpus) = match self.payload {
            Payload::Random => (Filler::Random, None),
            Payload::Text => (Filler::Text, None),
            Payload::Json => (Filler::Json, None),
            Payload::Logs => (Filler::Logs, None),
            Payload::Avro => (Filler::Avro, None),
            Payload::File(file) => (Filler::File, Some(corpus(file, true))),
            Payload::Raw(file) => (Filler::File, Some(corpus(file, false))),
        };
        let trace = match self.times {
            Times::Trace { file, speed } => Some(TraceUse {
                file: file.path.clone(),
                bytes: file.bytes,
                crc32c: file.crc32c,
                speed: *speed,
                content: Arc::clone(&file.content),
            }),
            Times::Constant | Times::Poisson { .. } | Times::Bursts { .. } => None,
        };
        let shape = Shape { sizes: self.sizes.cloned(), keys: self.keys, corpus, trace };
        let record_bytes = shape.record_bytes(filler.record_bytes_min());
        (record_bytes.unwrap_or(self.record_bytes), filler, shape)
    }
}

impl Payload {
    /// Reads the file that it names, if it names one.
    ///
    /// # Errors
    /// [`Error::Plan`] with the file, and the line where it can.
    pub(crate) fn read_file(&mut self, read: &mut ReadFile<'_>) -> Result<(), Error> {
        let line_bytes_max = SHAPED_BYTES_MAX - HEADER_BYTES;
        match self {
            Self::File(file) => file.read(read, |bytes| Corpus::of_lines(bytes, line_bytes_max)),
            Self::Raw(file) => file.read(read, Corpus::of_bytes),
            Self::Random | Self::Text | Self::Json | Self::Logs | Self::Avro => Ok(()),
        }
    }
}

impl Times {
    /// Whether it says by itself how fast records come.
    pub(crate) fn is_trace(&self) -> bool {
        matches!(self, Self::Trace { .. })
    }

    /// Whether it says how the records of a rate follow one another, other than at equal distances.
    pub(crate) fn spreads_rate(&self) -> bool {
        matches!(self, Self::Poisson { .. } | Self::Bursts { .. })
    }

    /// Reads the file that it names, if it names one.
    ///
    /// # Errors
    /// As [`Payload::read_file`].
    pub(crate) fn read_file(&mut self, read: &mut ReadFile<'_>) -> Result<(), Error> {
        match self {
            Self::Trace { file, .. } => {
                file.read(read, |bytes| Trace::parse(&bytes, SHAPED_BYTES_MAX))
            }
            Self::Constant | Self::Poisson { .. } | Self::Bursts { .. } => Ok(()),
        }
    }

    /// The schedule at a rate, or that of a trace, which needs none; `None` without either.
    pub(crate) fn pace(&self, per_second: Option<u64>, shape: &Shape) -> Option<Pace> {
        if let (Self::Trace { .. }, Some(trace)) = (self, &shape.trace) {
            let per_second = trace.per_second();
            return Some(Pace::Scheduled { per_second, arrivals: Arrivals::Trace });
        }
        let arrivals = match *self {
            Self::Poisson { seed } => Arrivals::Poisson { seed },
            Self::Bursts { size } => Arrivals::Bursts { size },
            Self::Constant | Self::Trace { .. } => Arrivals::Constant,
        };
        per_second.map(|per_second| Pace::Scheduled { per_second, arrivals })
    }
}

#[cfg(test)]
mod tests;
