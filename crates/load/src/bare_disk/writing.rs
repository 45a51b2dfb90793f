//! The loop that writes and flushes at the times of a schedule, in one thread.

use std::time::Instant;

use super::file::{Aligned, File, Ring};
use super::{LATE_MAX, Outcome, finish, me, nanos};
use crate::generator::slots::Slots;
use crate::generator::{BlockingTimer, RunClock};
use crate::run::LatencyRecord;
use crate::schedule::Slice;
use crate::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::CpuMeter;
use moldau_measure::histograms::Latencies;

/// Runs the loop over the file.
pub(super) fn run(file: &File, file_bytes: u64, workload: &Workload) -> Result<Outcome, Error> {
    let mut ring = Ring::new(file, file_bytes);
    let gathered_max = ring.gathered_max(workload.record_bytes);
    let mut buffer = Aligned::random(gathered_max * workload.record_bytes);
    let mut booked = Booked::new(workload);
    let timer = BlockingTimer::new()?;
    let clock = RunClock::starting_at(Instant::now());
    let mut free_at_ns = 0;
    let mut slice = booked.slice(workload)?;
    let mut due = Vec::with_capacity(gathered_max);
    while let Some(first_ns) = slice.next() {
        booked.offer(first_ns)?;
        if booked.is_too_late(clock) {
            continue;
        }
        timer.sleep_until(clock.instant(first_ns))?;
        let start_ns = clock.now_ns();
        gather(&mut slice, first_ns, start_ns, gathered_max, &mut due);
        for further_ns in due.iter().skip(1) {
            booked.offer(*further_ns)?;
        }
        let length = due.len() * workload.record_bytes;
        let bytes = buffer.bytes().get(..length).expect("no more than are gathered");
        ring.append(bytes)?;
        let done_ns = clock.now_ns();
        for intended_ns in &due {
            // Waiting for the flush before is the disk's; only waking up late is the loop's.
            let ready_ns = (*intended_ns).max(free_at_ns);
            let times = Times { intended_ns: *intended_ns, ready_ns, start_ns };
            booked.book(times, done_ns);
        }
        free_at_ns = done_ns;
    }
    booked.into_outcome()
}

/// Replaces `due` by the first operation and those that are due at `now_ns`, up to `due_max`.
fn gather(slice: &mut Slice, first_ns: u64, now_ns: u64, due_max: usize, due: &mut Vec<u64>) {
    due.clear();
    due.push(first_ns);
    while due.len() < due_max && slice.peek().is_some_and(|at_ns| at_ns <= now_ns) {
        due.extend(slice.next());
    }
}

/// When an operation was to begin, could have begun and began, ns since the start of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) intended_ns: u64,
    pub(super) ready_ns: u64,
    pub(super) start_ns: u64,
}

/// What a loop at a schedule has done; only operations that were intended inside the window count.
pub(super) struct Booked {
    from_ns: u64,
    end_ns: u64,
    meter: Option<CpuMeter>,
    latencies: Latencies,
    slots: Slots,
    offered: u64,
    answered: u64,
}

impl Booked {
    pub(super) fn new(workload: &Workload) -> Self {
        let from_ns = nanos(workload.warmup());
        Self {
            from_ns,
            end_ns: from_ns + nanos(workload.window()),
            meter: None,
            latencies: Latencies::default(),
            slots: Slots::new(workload, from_ns),
            offered: 0,
            answered: 0,
        }
    }

    /// The intended times.
    pub(super) fn slice(&self, workload: &Workload) -> Result<Slice, Error> {
        let Pace::Scheduled { per_second, arrivals } = workload.pace else {
            return Err(Error::Plan("a bare loop writes at a schedule".into()));
        };
        Ok(Slice::new(arrivals, per_second, 0, 1, self.end_ns))
    }

    /// Counts an operation, begun or not; the first of the window starts the meter.
    pub(super) fn offer(&mut self, intended_ns: u64) -> Result<(), Error> {
        if intended_ns >= self.from_ns {
            self.offered += 1;
            if self.meter.is_none() {
                self.meter = Some(CpuMeter::start(&me())?);
            }
        }
        Ok(())
    }

    /// Whether the loop is so far behind that it gives the rest up.
    pub(super) fn is_too_late(&self, clock: RunClock) -> bool {
        clock.now_ns() > self.end_ns + nanos(LATE_MAX)
    }

    /// Counts an operation that is on the disk.
    pub(super) fn book(&mut self, times: Times, done_ns: u64) {
        let Times { intended_ns, ready_ns, start_ns } = times;
        if intended_ns < self.from_ns {
            return;
        }
        self.answered += 1;
        self.latencies.lag.record(ready_ns, start_ns, 1);
        self.latencies.service.record(start_ns, done_ns, 1);
        self.latencies.response.record(intended_ns, done_ns, 1);
        if let Some(slot) = self.slots.at(intended_ns) {
            slot.produced_records += 1;
            slot.response().record(intended_ns, done_ns, 1);
        }
    }

    pub(super) fn into_outcome(self) -> Result<Outcome, Error> {
        let meter =
            self.meter.ok_or_else(|| Error::Plan("the schedule has no operation".into()))?;
        let ended = finish(meter, self.end_ns - self.from_ns, 0)?;
        Ok(Outcome {
            before_window_ns: self.from_ns,
            offered: self.offered,
            answered: self.answered,
            latency: Some(LatencyRecord::of(&self.latencies)?),
            series: self.slots.summaries(),
            ..ended
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Arrivals;

    #[test]
    fn writes_due_during_a_flush_join_the_next_up_to_a_limit() {
        let mut slice = Slice::new(Arrivals::Constant, 1_000, 0, 1, 10_000_000);
        let mut due = vec![7];
        let first = slice.next().unwrap();
        gather(&mut slice, first, 2_500_000, 10, &mut due);
        assert_eq!(due, [0, 1_000_000, 2_000_000]);
        let first = slice.next().unwrap();
        gather(&mut slice, first, 9_500_000, 4, &mut due);
        assert_eq!(due, [3_000_000, 4_000_000, 5_000_000, 6_000_000]);
        let first = slice.next().unwrap();
        gather(&mut slice, first, 7_000_000, 4, &mut due);
        assert_eq!(due, [7_000_000]);
    }
}
