//! The wall clock, and one that never runs backwards.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn wall_clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds since the epoch that never run backwards while the process lives: sessions and
/// transactions must not expire because the clock was set.
pub(crate) struct Clock {
    started: Instant,
    started_ms: i64,
}

impl Clock {
    /// A clock that shows `started_ms` at first.
    pub(crate) fn start(started_ms: i64) -> Self {
        Self { started: Instant::now(), started_ms }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        let elapsed = i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.started_ms.saturating_add(elapsed)
    }
}
