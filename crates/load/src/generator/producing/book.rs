//! What a producer thread books: the times of its operations until their answers come.

use std::collections::VecDeque;

use moldau_client::Delivery;

use super::Outcome;
use crate::generator::clock::RunClock;
use crate::generator::slots::Slots;
use crate::generator::{Layout, Setup, nanos};
use crate::ledger::SentLedger;
use crate::run::Requests;
use crate::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::histograms::Latencies;

/// What the producers of a thread measure together: the histograms of a course take megabytes.
pub(super) struct Tally {
    pub(super) latencies: Latencies,
    pub(super) slots: Slots,
}

impl Tally {
    pub(super) fn new(workload: &Workload) -> Self {
        let slots = Slots::new(workload, nanos(workload.warmup()));
        Self { latencies: Latencies::default(), slots }
    }
}

pub(super) struct Book {
    layout: Layout,
    /// The lane of the first partition of the producer's topic.
    first_lane: u16,
    clock: Option<RunClock>,
    from_ns: u64,
    to_ns: u64,
    /// Which of the times of an operation say something.
    times: Times,
    lanes: Vec<Lane>,
    ledger: SentLedger,
    offered: u64,
    answered: u64,
    produced_records: u64,
    produced_batches: u64,
    acked_batches: u64,
    acked_bytes: u64,
    /// Records handed over whose answer has not come.
    waiting: u64,
    /// The first answer that no run can go on after.
    failure: Option<String>,
}

/// Which times of operations a pace makes meaningful.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// Intended times, and all that follow from them.
    All,
    /// The time of sending, from which the answer is awaited.
    OfSending,
    /// None: records queue in the client as far as it has room.
    None,
}

impl Times {
    fn of(pace: Pace) -> Self {
        match pace {
            Pace::Scheduled { .. } => Self::All,
            Pace::Closed { .. } => Self::OfSending,
            Pace::Unpaced | Pace::ReadBack => Self::None,
        }
    }
}

/// Operations of one partition without an answer, in the order of their sequence numbers.
#[derive(Default)]
struct Lane {
    first_sequence: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy)]
struct Waiting {
    intended_ns: u64,
    sent_ns: u64,
    /// Bytes of its value.
    bytes: u32,
    settled: bool,
}

impl Waiting {
    /// Adds its times up to `now_ns` to those that say something.
    fn record(&self, now_ns: u64, times: Times, Tally { latencies, slots }: &mut Tally) {
        latencies.service.record(self.sent_ns, now_ns, 1);
        if times == Times::OfSending {
            return;
        }
        latencies.response.record(self.intended_ns, now_ns, 1);
        if let Some(slot) = slots.at(self.intended_ns) {
            slot.response().record(self.intended_ns, now_ns, 1);
        }
    }
}

impl Book {
    pub(super) fn new(setup: &Setup, producer: u16) -> Self {
        let workload = &setup.workload;
        let from_ns = nanos(workload.warmup());
        Self {
            layout: setup.layout,
            first_lane: setup.first_lane(setup.topic_of(producer)),
            clock: None,
            from_ns,
            to_ns: from_ns + nanos(workload.window()),
            times: Times::of(workload.pace),
            lanes: (0..workload.lanes()).map(|_| Lane::default()).collect(),
            ledger: SentLedger::new(producer, workload.lanes()),
            offered: 0,
            answered: 0,
            produced_records: 0,
            produced_batches: 0,
            acked_batches: 0,
            acked_bytes: 0,
            failure: None,
            waiting: 0,
        }
    }

    pub(super) fn start(&mut self, clock: RunClock) {
        self.clock = Some(clock);
    }

    /// An operation left the schedule.
    pub(super) fn taken_up(&mut self, intended_ns: u64, now_ns: u64, tally: &mut Tally) {
        if self.is_in_window(intended_ns) {
            self.offered += 1;
            tally.latencies.lag.record(intended_ns, now_ns, 1);
        }
    }

    pub(super) fn next_sequence(&self, partition: u16) -> u64 {
        self.ledger.next_sequence(partition)
    }

    /// Records handed over whose answer has not come.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// An operation was handed to the client, with a value of so many bytes.
    pub(super) fn sent(&mut self, partition: u16, intended_ns: u64, sent_ns: u64, bytes: usize) {
        self.ledger.sent(partition);
        self.waiting += 1;
        if let Some(lane) = self.lanes.get_mut(usize::from(partition)) {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            lane.waiting.push_back(Waiting { intended_ns, sent_ns, bytes, settled: false });
        }
    }

    /// The outcome of a batch, whose tokens are sequence numbers.
    pub(super) fn settle(&mut self, delivery: &Delivery<'_>, tally: &mut Tally) {
        let now_ns = self.clock.map_or(0, |clock| clock.now_ns());
        let count = u64::try_from(delivery.tokens.len()).unwrap_or(u64::MAX);
        self.waiting = self.waiting.saturating_sub(count);
        let (Some(partition), Some(first)) =
            (self.lane(delivery.partition), delivery.tokens.first())
        else {
            return;
        };
        if let Some(error) = delivery.error {
            if !error.is_ambiguous() {
                self.ledger.failed(partition, count);
            }
            self.failure.get_or_insert_with(|| error.to_string());
            return;
        }
        let base_offset = delivery.base_offset.and_then(|offset| u64::try_from(offset).ok());
        match base_offset {
            Some(offset) => self.ledger.acked(partition, *first, count, offset),
            None => self.failure = Some("an acknowledgement without an offset".into()),
        }
        self.acked_batches += 1;
        if self.is_in_window(now_ns) {
            self.produced_records += count;
            self.produced_batches += 1;
            tally.slots.acknowledged(now_ns, count);
        }
        self.settle_times(partition, delivery.tokens, now_ns, tally);
    }

    fn lane(&self, partition: i32) -> Option<u16> {
        self.layout.lane(partition)?.checked_add(self.first_lane)
    }

    fn settle_times(&mut self, partition: u16, tokens: &[u64], now_ns: u64, tally: &mut Tally) {
        let window = self.from_ns..self.to_ns;
        let Some(lane) = self.lanes.get_mut(usize::from(partition)) else { return };
        for sequence in tokens {
            let index = sequence.wrapping_sub(lane.first_sequence);
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            let Some(waiting) = lane.waiting.get_mut(index) else { continue };
            waiting.settled = true;
            self.acked_bytes += u64::from(waiting.bytes);
            if self.times == Times::None || !window.contains(&waiting.intended_ns) {
                continue;
            }
            self.answered += 1;
            waiting.record(now_ns, self.times, tally);
        }
        while lane.waiting.pop_front_if(|waiting| waiting.settled).is_some() {
            lane.first_sequence += 1;
        }
    }

    fn is_in_window(&self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    /// # Errors
    /// [`Error::Target`] once a batch was refused.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.failure {
            None => Ok(()),
            Some(reason) => {
                Err(Error::Target { action: "producing".into(), reason: reason.clone() })
            }
        }
    }

    /// Counts the operations of the window that have no answer with the time that they have waited
    /// so far, which theirs is longer than: without them, tails would be those of the others.
    fn count_unanswered(&self, tally: &mut Tally) {
        let Some(clock) = self.clock.filter(|_| self.times != Times::None) else { return };
        let (now_ns, window) = (clock.now_ns(), self.from_ns..self.to_ns);
        let waiting = self.lanes.iter().flat_map(|lane| &lane.waiting);
        for unanswered in waiting.filter(|it| !it.settled && window.contains(&it.intended_ns)) {
            unanswered.record(now_ns, self.times, tally);
        }
    }

    /// Everything booked; the book is empty afterwards.
    pub(super) fn take_outcome(
        &mut self,
        shed: u64,
        requests: u64,
        in_window: Requests,
        tally: &mut Tally,
    ) -> Outcome {
        self.count_unanswered(tally);
        Outcome {
            ledger: std::mem::replace(&mut self.ledger, SentLedger::new(0, 0)),
            offered: self.offered,
            shed,
            answered: self.answered,
            produced_records: self.produced_records,
            produced_batches: self.produced_batches,
            acked_batches: self.acked_batches,
            acked_bytes: self.acked_bytes,
            requests,
            in_window,
            transactions: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::schedule::Arrivals;

    #[test]
    fn unanswered_operations_count_with_the_time_that_they_waited() {
        let workload = Workload {
            pace: Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant },
            record_bytes: 100,
            warmup_ms: 1_000,
            window_ms: 1_000,
            ..Workload::of_tests()
        };
        let setup = Setup::of_tests(String::new(), workload);
        let (mut book, mut tally) = (Book::new(&setup, 0), Tally::new(&setup.workload));
        let begun = Instant::now().checked_sub(Duration::from_secs(40)).unwrap();
        book.start(RunClock::starting_at(begun));
        // Ahead of the window, within it twice, and behind it.
        for intended_ms in [500, 1_200, 1_800, 2_500] {
            let intended_ns = intended_ms * 1_000_000;
            book.taken_up(intended_ns, intended_ns, &mut tally);
            book.sent(0, intended_ns, intended_ns, 100);
        }
        let outcome = book.take_outcome(0, 0, Requests::default(), &mut tally);
        assert_eq!((outcome.offered, outcome.answered), (2, 0));
        assert_eq!(tally.latencies.response.count(), 2);
        assert!(tally.latencies.response.quantile_ns(0.5) > 37_000_000_000);
    }
}
