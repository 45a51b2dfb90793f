//! The time of day.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// As [`unix_ms`], as records have it.
pub(crate) fn timestamp_ms() -> i64 {
    i64::try_from(unix_ms()).unwrap_or(i64::MAX)
}
