//! Counts handled records, and measures from the first quarter to the end. The time counts from the
//! first record on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use moldau_measure::Error;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use moldau_lab::reader::Outcome;

/// The part of the records, or of the time, that is not measured.
const WARMUP: u32 = 4;

/// How long the first record may take.
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Meter {
    records: u64,
    handled: AtomicU64,
    within: Duration,
    marks: Mutex<Marks>,
    stage: watch::Sender<Stage>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Stage {
    /// No record is handled.
    Starting,
    Handling,
    Done,
}

/// Where the measured part begins and ends.
#[derive(Default)]
struct Marks {
    begin: Option<Mark>,
    end: Option<Mark>,
}

#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    cpu_ns: u64,
    handled: u64,
}

impl Meter {
    pub(super) fn new(records: u64, within: Duration) -> Self {
        Self {
            records,
            handled: AtomicU64::new(0),
            within,
            marks: Mutex::default(),
            stage: watch::Sender::new(Stage::Starting),
        }
    }

    /// Counts records whose handler has returned.
    pub(super) fn count(&self, records: u64) {
        let before = self.handled.fetch_add(records, Ordering::Relaxed);
        let after = before + records;
        if before == 0 {
            self.stage.send_replace(Stage::Handling);
        }
        let begin = self.records / u64::from(WARMUP);
        if before < begin && after >= begin {
            self.begin();
        }
        if before < self.records && after >= self.records {
            self.end();
        }
    }

    /// Returns when all records are handled, or the time is over.
    pub(super) async fn finished(&self) {
        let mut stages = self.stage.subscribe();
        let mut until = self.stage.subscribe();
        let all = async { drop(stages.wait_for(|stage| *stage == Stage::Done).await) };
        let time = async {
            let handling = until.wait_for(|stage| *stage >= Stage::Handling);
            drop(tokio::time::timeout(START_TIMEOUT, handling).await);
            tokio::time::sleep(self.within / WARMUP).await;
            self.begin();
            tokio::time::sleep(self.within - self.within / WARMUP).await;
        };
        tokio::select! {
            () = all => {}
            () = time => self.end(),
        }
    }

    fn begin(&self) {
        let mark = self.mark();
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).begin.get_or_insert(mark);
    }

    fn end(&self) {
        let mark = self.mark();
        self.marks.lock().unwrap_or_else(PoisonError::into_inner).end.get_or_insert(mark);
        self.stage.send_replace(Stage::Done);
    }

    fn mark(&self) -> Mark {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let parts = (u64::try_from(used.tv_sec), u64::try_from(used.tv_nsec));
        let cpu_ns = if let (Ok(s), Ok(ns)) = parts { s * 1_000_000_000 + ns } else { 0 };
        Mark { at: Instant::now(), cpu_ns, handled: self.handled.load(Ordering::Relaxed) }
    }

    /// What was measured.
    ///
    /// # Errors
    /// [`Error::Target`] if nothing came after the first quarter.
    pub(super) fn outcome(&self) -> Result<Outcome, Error> {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(begin), Some(end)) = (marks.begin, marks.end) else {
            return Err(nothing(self.handled.load(Ordering::Relaxed)));
        };
        let records = end.handled.saturating_sub(begin.handled);
        if records == 0 {
            return Err(nothing(end.handled));
        }
        let wall = end.at.saturating_duration_since(begin.at);
        Ok(Outcome {
            records,
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            cpu_ns: end.cpu_ns.saturating_sub(begin.cpu_ns),
        })
    }
}

fn nothing(handled: u64) -> Error {
    let reason = format!("nothing was handled after the first {handled} records");
    Error::Target { action: "reading a backlog".into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_quarter_is_not_measured() {
        let meter = Meter::new(100, Duration::from_secs(60));
        meter.count(10);
        meter.count(20);
        assert!(meter.outcome().is_err());
        meter.count(70);
        let outcome = meter.outcome().unwrap();
        assert_eq!(outcome.records, 70);
        assert!(outcome.wall_ns > 0);
    }

    #[tokio::test]
    async fn records_left_when_the_time_is_over_are_not_waited_for() {
        let meter = Meter::new(100, Duration::ZERO);
        meter.count(10);
        meter.finished().await;
        assert!(meter.outcome().unwrap_err().to_string().contains("first 10 records"));
    }
}
