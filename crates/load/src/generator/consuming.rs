//! The consumer thread: reads every partition, checks every record, and notes when it came.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use moldau_client::{Fetched, Start};
use moldau_records::{BatchView, Decompressor};

use super::clock::{RunClock, Timer};
use super::sharing::{Acknowledged, has_reached};
use super::slots::{SlotSamples, Slots};
use super::topics::{Lanes, Readers};
use super::{End, Layout, Setup, Shared, nanos, runtime, target};
use crate::ledger::DeliveryLedger;
use crate::workload::Pace;
use moldau_measure::Error;
use moldau_measure::histograms::Durations;

/// How long to wait for the next bytes before looking whether the run is over.
const POLL_TIMEOUT: Duration = Duration::from_millis(20);

/// How long acknowledged records may stay away after the last that came, beyond what a fetch may
/// wait; then they are lost.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// The same over spread partitions, whose batches lie far apart on the disk.
const SPREAD_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Largest batch after decompression; the generator's own are far smaller.
const BATCH_BYTES_MAX: usize = 64 << 20;

/// What the consumer thread brings home.
pub(super) struct Outcome {
    pub(super) ledger: DeliveryLedger,
    pub(super) end_to_end: Durations,
    pub(super) slots: Vec<SlotSamples>,
    pub(super) consumed_records: u64,
    pub(super) consumed_batches: u64,
    /// Bytes of all batches as they are stored, read once each.
    pub(super) stored_bytes: u64,
    /// When the last record came, ns since the start of the run.
    pub(super) finished_ns: u64,
}

/// Reads until everything is there, nothing comes any more, or `limit` has passed.
pub(super) fn run(
    shared: &Shared<'_>,
    limit: Duration,
    ready: &mpsc::SyncSender<()>,
) -> Result<Outcome, Error> {
    runtime()?.block_on(shared.unless_stopped(consume(shared, limit, ready)))
}

async fn consume(
    shared: &Shared<'_>,
    limit: Duration,
    ready: &mpsc::SyncSender<()>,
) -> Result<Outcome, Error> {
    let setup = shared.setup;
    let mut readers = Readers::of(setup).await?;
    let is_read_back = setup.workload.pace == Pace::ReadBack;
    if !is_read_back {
        readers.assign_share(setup, shared.share, |_| Start::Earliest).await?;
    }
    let clock = shared.ready(ready).await?;
    if is_read_back {
        // The window begins with the clock, and what came before it would take no time.
        let start = clock.instant(0);
        Timer::new()?.sleep(start.saturating_duration_since(Instant::now())).await?;
        readers.assign_share(setup, shared.share, |_| Start::Earliest).await?;
    }
    let mut reading = Reading::new(shared, clock);
    let begun = Instant::now();
    let mut heard = begun;
    let silence_max = silence_max(setup);
    let mut waits = !is_read_back && setup.workload.fetches_wait();
    while !reading.is_complete(shared) && begun.elapsed() < limit {
        if waits && reading.has_window(shared) {
            waits = false;
            // What is left would wait for bytes that never come.
            readers = Readers::of_rest(setup, shared.share, &reading.next).await?;
        }
        match tokio::time::timeout(POLL_TIMEOUT, readers.next()).await {
            Ok(fetched) => {
                reading.take(&fetched?)?;
                heard = Instant::now();
            }
            Err(_) if shared.settled.get().is_some() && heard.elapsed() > silence_max => break,
            Err(_) => {}
        }
    }
    if is_read_back {
        shared.finished(ready).await;
    }
    Ok(reading.into_outcome())
}

/// How long nothing may come of what is acknowledged.
fn silence_max(setup: &Setup) -> Duration {
    let silence_max = match setup.layout {
        Layout::Dense | Layout::Scattered => SILENCE_MAX,
        Layout::Spread { .. } => SPREAD_SILENCE_MAX,
    };
    silence_max + Duration::from_millis(setup.workload.tuning.fetch_max_wait_ms.into())
}

struct Reading {
    clock: RunClock,
    lanes: Lanes,
    from_ns: u64,
    to_ns: u64,
    is_scheduled: bool,
    ledger: DeliveryLedger,
    end_to_end: Durations,
    slots: Slots,
    consumed_records: u64,
    consumed_batches: u64,
    stored_bytes: u64,
    finished_ns: u64,
    decompressor: Decompressor,
    is_accounted: bool,
    /// The offset that is next, by lane.
    next: Vec<u64>,
}

impl Reading {
    fn new(shared: &Shared<'_>, clock: RunClock) -> Self {
        let setup = shared.setup;
        let workload = &setup.workload;
        let (from_ns, to_ns) = match workload.pace {
            Pace::ReadBack => (0, u64::MAX),
            Pace::Scheduled { .. } | Pace::Closed { .. } | Pace::Unpaced => {
                let from_ns = nanos(workload.warmup());
                (from_ns, from_ns + nanos(workload.window()))
            }
        };
        Self {
            clock,
            lanes: Lanes::of(setup),
            from_ns,
            to_ns,
            is_scheduled: matches!(workload.pace, Pace::Scheduled { .. }),
            ledger: DeliveryLedger::new(setup.run, workload.all_producers(), workload.lanes()),
            end_to_end: Durations::default(),
            slots: Slots::new(workload, from_ns),
            consumed_records: 0,
            consumed_batches: 0,
            stored_bytes: 0,
            finished_ns: 0,
            decompressor: Decompressor::default(),
            is_accounted: setup.is_accounted,
            next: vec![0; workload.lanes().into()],
        }
    }

    /// Whether all that was to come has come.
    fn is_complete(&self, shared: &Shared<'_>) -> bool {
        match (shared.end, shared.settled.get()) {
            (End::Offsets(offsets), _) => self.next.iter().sum::<u64>() >= offsets,
            (End::Acked, None) => false,
            (End::Acked, Some(Acknowledged { ends, .. })) => {
                has_reached(self.next.iter().copied(), ends, shared.share)
            }
        }
    }

    /// Whether nothing more is produced and nothing that comes counts for the window any more.
    fn has_window(&self, shared: &Shared<'_>) -> bool {
        shared.settled.get().is_some_and(|settled| {
            let has_come = |records| self.end_to_end.count() >= records;
            !self.is_scheduled || settled.in_window.is_some_and(has_come)
        })
    }

    fn take(&mut self, fetched: &Fetched) -> Result<(), Error> {
        let lane = self.lanes.lane(&fetched.topic.name, fetched.partition).unwrap_or(u16::MAX);
        let batches = fetched.batches().map(|it| it.map_err(target("reading a fetched batch")));
        self.take_batches(lane, fetched.position, batches)
    }

    /// Takes the records of a lane from `position` on.
    fn take_batches<'a>(
        &mut self,
        lane: u16,
        position: i64,
        all: impl Iterator<Item = Result<BatchView<'a>, Error>>,
    ) -> Result<(), Error> {
        let now_ns = self.clock.now_ns();
        let broken = |error: moldau_records::Error| Error::Target {
            action: "reading a fetched batch".into(),
            reason: error.to_string(),
        };
        let (mut count, mut batches) = (0, 0);
        let window = self.from_ns..self.to_ns;
        for batch in all {
            let batch = batch?;
            if let Some(next) = self.next.get_mut(usize::from(lane)) {
                *next = u64::try_from(batch.next_offset()).unwrap_or(0).max(*next);
            }
            if batch.is_control() {
                self.pass(lane, batch.base_offset().max(position)..batch.next_offset());
                continue;
            }
            batches += 1;
            // A batch that reaches back before the position was read before.
            if batch.base_offset() >= position {
                self.stored_bytes += batch.bytes().len() as u64;
            }
            // No client takes a batch whose checksum does not hold, so nothing in it has come.
            let is_sound = batch.check_crc().is_ok();
            let records = batch.records(&mut self.decompressor, BATCH_BYTES_MAX).map_err(broken)?;
            for record in records {
                let record = record.map_err(broken)?;
                if record.offset() < position {
                    continue;
                }
                count += 1;
                if !self.is_accounted {
                    continue;
                }
                let offset = u64::try_from(record.offset()).unwrap_or(u64::MAX);
                if !is_sound {
                    self.ledger.note_damaged(lane, offset);
                    continue;
                }
                let value = record.value().unwrap_or_default();
                let Some(header) = self.ledger.observe(lane, offset, value) else { continue };
                if self.is_scheduled && window.contains(&header.intended_ns) {
                    self.end_to_end.record(header.intended_ns, now_ns, 1);
                    if let Some(slot) = self.slots.at(header.intended_ns) {
                        slot.end_to_end().record(header.intended_ns, now_ns, 1);
                    }
                }
            }
        }
        if window.contains(&now_ns) {
            self.consumed_records += count;
            self.consumed_batches += batches;
            if let Some(slot) = self.slots.at(now_ns) {
                slot.consumed_records += count;
            }
        }
        self.finished_ns = now_ns;
        Ok(())
    }

    /// Passes offsets of the ends of transactions, which are no records.
    fn pass(&mut self, lane: u16, offsets: std::ops::Range<i64>) {
        for offset in offsets {
            self.ledger.pass(lane, u64::try_from(offset).unwrap_or(u64::MAX));
        }
    }

    fn into_outcome(mut self) -> Outcome {
        Outcome {
            ledger: self.ledger,
            end_to_end: self.end_to_end,
            slots: self.slots.take_samples(),
            consumed_records: self.consumed_records,
            consumed_batches: self.consumed_batches,
            stored_bytes: self.stored_bytes,
            finished_ns: self.finished_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};
    use tokio::sync::watch;

    use std::net::TcpListener;
    use std::thread;

    use super::super::sharing::Settled;
    use super::super::{Share, read_back};
    use super::*;
    use crate::ledger::audit;
    use crate::null_sink;
    use crate::payload::{Account, Filler, Header, PayloadWriter};
    use crate::workload::Workload;

    /// A batch of three records, with these bits of its checksum turned.
    fn batch(turned: u8) -> Vec<u8> {
        let writer = PayloadWriter::new(Filler::Text, Account::default(), 1, 100).unwrap();
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for sequence in 0..3 {
            let header = Header { run: 7, producer: 0, partition: 0, sequence, intended_ns: 0 };
            let mut value = Vec::new();
            writer.write(header, &mut value);
            builder.append(7, None, Some(&value), []).unwrap();
        }
        let mut bytes =
            builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap().to_vec();
        bytes[17] ^= turned;
        bytes
    }

    #[test]
    fn records_of_a_batch_whose_checksum_does_not_hold_are_damaged() {
        let read = |turned: u8| {
            let setup = Setup::of_tests(String::new(), Workload::of_tests());
            let (start, stop) = (watch::channel(None).1, watch::channel(()).1);
            let (settled, end) = (Settled::new(), End::Acked);
            let shared = Shared { setup: &setup, share: Share::WHOLE, start, stop, settled, end };
            let mut reading = Reading::new(&shared, RunClock::starting_at(Instant::now()));
            let bytes = batch(turned);
            reading
                .take_batches(0, 0, [Ok(BatchView::parse(&bytes).unwrap())].into_iter())
                .unwrap();
            let found = audit(&[], &reading.into_outcome().ledger);
            (found.delivered, found.damaged)
        };
        assert_eq!(read(0), (3, 0));
        assert_eq!(read(1), (0, 3));
    }

    /// The consumer waited for a clock that was never sent, and the reading waited for the
    /// consumer.
    #[test]
    fn a_reading_whose_processes_are_gone_ends() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bootstrap = listener.local_addr().unwrap().to_string();
        thread::spawn(move || null_sink::run(&listener));
        let workload = Workload { pace: Pace::ReadBack, ..Workload::of_tests() };
        let ghost = ("ghost".to_owned(), u32::MAX >> 2);
        let setup = Setup { processes: vec![ghost], ..Setup::of_tests(bootstrap, workload) };
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(read_back(&setup, &[]).map(|_| ())));
        let ended = ended.recv_timeout(Duration::from_mins(1)).expect("it ends");
        assert!(matches!(ended, Err(Error::Machine { .. })), "{ended:?}");
    }
}
