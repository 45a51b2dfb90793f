//! Structured logs on stderr, with a level for each logger that can change while the process runs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use moldau_broker::{Level, Loggers, ROOT};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::arguments::LogLevel;

/// Loggers beside [`ROOT`]: the crates that write log lines in a broker.
const LOGGERS: [&str; 3] = ["moldau_broker", "moldau_net", "moldau_storage"];

/// Starts writing log lines of this level and above to stderr.
pub(crate) fn start(level: LogLevel) -> ProcessLoggers {
    let levels = Levels {
        root: match level {
            LogLevel::Error => Level::Error,
            LogLevel::Warn => Level::Warn,
            LogLevel::Info => Level::Info,
            LogLevel::Debug => Level::Debug,
        },
        own: BTreeMap::new(),
    };
    // The convention of no-color.org.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let lines = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(!is_plain && std::io::stderr().is_terminal())
        .with_target(false);
    let (filter, filter_in_use) = reload::Layer::new(levels.filter());
    tracing_subscriber::registry().with(filter).with(lines).init();
    ProcessLoggers { levels: Mutex::new(levels), filter: filter_in_use }
}

/// The loggers of this process.
#[derive(Debug)]
pub(crate) struct ProcessLoggers {
    /// Guards the levels in force.
    levels: Mutex<Levels>,
    filter: reload::Handle<Targets, Registry>,
}

#[derive(Debug)]
struct Levels {
    root: Level,
    /// Those of loggers that have their own.
    own: BTreeMap<&'static str, Level>,
}

impl Levels {
    fn filter(&self) -> Targets {
        let own = self.own.iter().map(|(logger, level)| (*logger, filter_of(*level)));
        Targets::new().with_default(filter_of(self.root)).with_targets(own)
    }
}

impl Loggers for ProcessLoggers {
    fn levels(&self) -> Vec<(&'static str, Level)> {
        let levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |logger| (logger, levels.own.get(logger).copied().unwrap_or(levels.root));
        LOGGERS.into_iter().map(of).chain([(ROOT, levels.root)]).collect()
    }

    fn set(&self, logger: &str, level: Option<Level>) {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        let own = LOGGERS.into_iter().find(|own| *own == logger);
        match (own, level) {
            (Some(own), Some(level)) => drop(levels.own.insert(own, level)),
            (Some(own), None) => drop(levels.own.remove(own)),
            (None, level) => levels.root = level.unwrap_or(levels.root),
        }
        // It fails only once the process writes no more log lines.
        let _ = self.filter.reload(levels.filter());
    }
}

fn filter_of(level: Level) -> LevelFilter {
    match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
        Level::Trace => LevelFilter::TRACE,
    }
}
