use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moldau_threads::Mutex;

/// A failure that repeats is logged once in this time.
const PERIOD: Duration = Duration::from_secs(5);

/// Keeps a failure that clients can repeat at will from filling the log.
#[derive(Debug, Default)]
pub struct LogLimit {
    unlogged: AtomicU64,
    /// Guards the time of the last line.
    last: Mutex<Option<Instant>>,
}

impl LogLimit {
    /// Calls `log` with the number of failures since the last line, unless that was just now.
    pub fn log(&self, log: impl FnOnce(u64)) {
        let mut last = self.last.lock();
        if last.is_some_and(|last| last.elapsed() < PERIOD) {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            return;
        }
        *last = Some(Instant::now());
        // What reads the log may be slow.
        drop(last);
        log(self.unlogged.swap(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_at_once_is_not_logged_but_counted() {
        let (limit, mut lines) = (LogLimit::default(), Vec::new());
        for _ in 0..3 {
            limit.log(|unlogged| lines.push(unlogged));
        }
        assert_eq!(lines, [0]);
        *limit.last.lock() = Instant::now().checked_sub(PERIOD);
        limit.log(|unlogged| lines.push(unlogged));
        assert_eq!(lines, [0, 2]);
    }
}
