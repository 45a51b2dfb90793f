//! Structured logs on stderr.

use tracing_subscriber::fmt;

use crate::arguments::LogLevel;

/// Starts writing log lines of this level and above to stderr.
pub(crate) fn start(level: LogLevel) {
    let level = match level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
    };
    fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false).init();
}
