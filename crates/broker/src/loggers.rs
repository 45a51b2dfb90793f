//! The loggers of the process, as Kafka's resource `BROKER_LOGGER` shows them (KIP-412).

use std::fmt;

/// A level of log lines. Kafka's `FATAL` is [`Level::Error`] here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Only errors.
    Error,
    /// Also warnings.
    Warn,
    /// Also what an operator wants to know.
    Info,
    /// Also details of single connections and requests.
    Debug,
    /// Everything.
    Trace,
}

impl Level {
    /// Kafka's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    /// The level of a name of Kafka's.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "FATAL" | "ERROR" => Some(Self::Error),
            "WARN" => Some(Self::Warn),
            "INFO" => Some(Self::Info),
            "DEBUG" => Some(Self::Debug),
            "TRACE" => Some(Self::Trace),
            _ => None,
        }
    }
}

/// Who filters the log lines of the process. A level holds until the process ends, as in Kafka.
pub trait Loggers: fmt::Debug + Send + Sync {
    /// All loggers with their levels, [`ROOT`] among them.
    fn levels(&self) -> Vec<(&'static str, Level)>;

    /// Gives a logger a level, or the level of [`ROOT`] with `None`.
    fn set(&self, logger: &str, level: Option<Level>);
}

/// The logger whose level the others have until they get their own.
pub const ROOT: &str = "root";
