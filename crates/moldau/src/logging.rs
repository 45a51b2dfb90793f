//! Structured logs on stderr, with a level for each logger that can change while the process runs.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use moldau_broker::{Level, Loggers, ROOT};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Registry, fmt, reload};

use crate::arguments::LogLevel;

/// Loggers beside [`ROOT`]: the crates that write log lines in a broker.
const LOGGERS: [&str; 4] = ["moldau_broker", "moldau_cluster", "moldau_net", "moldau_storage"];

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
        .with_target(false)
        .fmt_fields(fields());
    let (filter, filter_in_use) = reload::Layer::new(levels.filter());
    tracing_subscriber::registry().with(filter).with(lines).init();
    ProcessLoggers { levels: Mutex::new(levels), filter: filter_in_use }
}

/// Writes the fields of an event. Some hold what handlers, clients and servers say: that must
/// neither look like a line of its own, nor command a terminal, nor be of any length.
fn fields() -> impl for<'writer> FormatFields<'writer> + 'static {
    debug_fn(|writer, field, value| {
        if field.name() != "message" {
            write!(writer, "{}=", field.name())?;
        }
        let text = format!("{value:?}");
        let mut letters = text.chars();
        for letter in letters.by_ref().take(VALUE_CHARS_MAX) {
            match letter.is_control() {
                true => write!(writer, "{}", letter.escape_default())?,
                false => writer.write_char(letter)?,
            }
        }
        if letters.next().is_some() { writer.write_str("...") } else { Ok(()) }
    })
    .delimited(" ")
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
        let root = filter_of(self.root);
        // Notices of the database say at this level that something is there already.
        let notices = if root == LevelFilter::INFO { LevelFilter::WARN } else { root };
        Targets::new().with_default(root).with_target(DATABASE, notices).with_targets(own)
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

/// The logger of the client of PostgreSQL.
const DATABASE: &str = "tokio_postgres";
/// Longest value in a line: enough for errors with their causes.
const VALUE_CHARS_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek};
    use std::sync::Arc;

    use super::*;

    #[test]
    fn notices_of_the_database_are_for_those_who_debug() {
        let shows = |root, target| {
            Levels { root, own: BTreeMap::new() }
                .filter()
                .would_enable(target, &tracing::Level::INFO)
        };
        let notices = "tokio_postgres::connection";
        assert!(!shows(Level::Info, notices) && shows(Level::Debug, notices));
        assert!(shows(Level::Info, "moldau_broker") && !shows(Level::Error, notices));
    }

    /// The error of a handler, which quotes a record, could forge lines of the log.
    #[test]
    fn what_others_say_is_one_line_of_visible_letters() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let lines = fmt::layer()
            .with_writer(Arc::clone(&file))
            .with_ansi(false)
            .without_time()
            .with_target(false)
            .fmt_fields(fields());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            tracing::warn!(topic = "t", failure = %"bad\nERROR forged\u{1b}[31m", "dead letter");
            tracing::warn!(failure = %"x".repeat(VALUE_CHARS_MAX + 1), "long");
        });
        let mut written = String::new();
        (&*file).rewind().unwrap();
        (&*file).read_to_string(&mut written).unwrap();
        let long = "x".repeat(VALUE_CHARS_MAX);
        let expected = format!(
            " WARN dead letter topic=\"t\" failure=bad\\nERROR forged\\u{{1b}}[31m\n WARN long \
             failure={long}...\n"
        );
        assert_eq!(written, expected);
    }
}
