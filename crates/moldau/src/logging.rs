//! Structured logs on stderr.

use std::io::IsTerminal;

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
    // The convention of no-color.org.
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    fmt()
        .with_writer(std::io::stderr)
        .with_ansi(!is_plain && std::io::stderr().is_terminal())
        .with_max_level(level)
        .with_target(false)
        .init();
}
