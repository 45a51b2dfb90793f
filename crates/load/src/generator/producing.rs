//! A producer, one of those of a thread: takes operations from its slice of the schedule and hands
//! them to the client, whose acknowledgements are booked on the same thread.

mod book;
mod transactions;
mod turn;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::try_join_all;
use moldau_client::{
    Acks as ClientAcks, Cluster, Delivery, PartitionHandle, Producer, ProducerOptions, Record,
    RequestTimes,
};
use tokio::sync::Notify;

use super::clock::{RunClock, Timer};
use super::slots::SlotSamples;
use super::{Layout, Setup, Shared, nanos, runtime, target};
use crate::ledger::SentLedger;
use crate::payload::{Header, PayloadWriter};
use crate::run::Requests;
use crate::schedule::{Arrivals, LagQueue, Slice, backlog_operations_max};
use crate::shape::{Choice, Choices, Dealer, key_text};
use crate::workload::{Acks, Pace, Workload};
use book::{Book, Tally};
use moldau_measure::Error;
use moldau_measure::histograms::Latencies;
pub(super) use transactions::Outcome as TransactionsOutcome;
use transactions::Transactions;
use turn::{Place, Turn};

/// Shortest wait of the schedule's loop: operations that fall due within it are taken up
/// together, which bounds the lag that this causes and the cost of waking up.
const WAKE_INTERVAL: Duration = Duration::from_micros(200);

/// Records handed over before the other tasks of the thread get a turn: at 1 us each, answers
/// wait a quarter of a millisecond at most.
const BURST_RECORDS_MAX: usize = 256;

/// How long the last answers may take after the schedule's end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Bytes that may wait for acknowledgement over spread partitions: three times what may be in
/// flight, since the client looks at every partition that waits whenever it makes a request.
const SPREAD_BUFFER_BYTES_MAX: usize = 16 << 20;

/// How long a batch is tried over spread partitions. A broker of many partitions may stand still
/// for most of a minute and is alive, while one that has ended must not hold up the experiment.
const SPREAD_DELIVERY_TIMEOUT: Duration = Duration::from_mins(1);

/// Room for what a record takes in a batch beside its value: key, lengths and the batch's header.
const RECORD_OVERHEAD_BYTES: usize = 1 << 10;

/// What the producers of a run send.
pub(super) struct Contents {
    pub(super) payloads: PayloadWriter,
    /// Draws what records are; absent where they are all alike.
    pub(super) dealer: Option<Dealer>,
}

/// What a producer brings home.
pub(super) struct Outcome {
    pub(super) ledger: SentLedger,
    pub(super) offered: u64,
    pub(super) shed: u64,
    pub(super) answered: u64,
    pub(super) produced_records: u64,
    pub(super) produced_batches: u64,
    /// Batches acknowledged in the whole run.
    pub(super) acked_batches: u64,
    /// Bytes of their values.
    pub(super) acked_bytes: u64,
    /// Requests of the whole run.
    pub(super) requests: u64,
    /// What requests did inside the window.
    pub(super) in_window: Requests,
    /// What came of transactions, where it makes such.
    pub(super) transactions: Option<TransactionsOutcome>,
}

/// What the producers of a thread bring home.
pub(super) struct Produced {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) latencies: Latencies,
    pub(super) slots: Vec<SlotSamples>,
}

pub(super) fn run(
    shared: &Shared<'_>,
    producers: Range<u16>,
    contents: &Contents,
    ready: &std::sync::mpsc::SyncSender<()>,
) -> Result<Produced, Error> {
    let tally = Arc::new(Mutex::new(Tally::new(&shared.setup.workload)));
    let all = producers.map(|producer| produce(shared, producer, contents, &tally, ready));
    let work = async {
        let outcomes = try_join_all(all).await?;
        shared.until_measured().await;
        Ok(outcomes)
    };
    let outcomes = runtime()?.block_on(shared.unless_stopped(work))?;
    let mut tally = lock(&tally);
    let latencies = std::mem::take(&mut tally.latencies);
    Ok(Produced { outcomes, latencies, slots: tally.slots.take_samples() })
}

/// Locks what is shared within a thread.
fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn produce(
    shared: &Shared<'_>,
    producer: u16,
    contents: &Contents,
    tally: &Arc<Mutex<Tally>>,
    ready: &std::sync::mpsc::SyncSender<()>,
) -> Result<Outcome, Error> {
    let setup = shared.setup;
    let workload = &setup.workload;
    let bootstrap = [setup.bootstrap.as_str()];
    let connected = Cluster::connect(&bootstrap, setup.cluster_options()).await;
    let cluster = connected.map_err(target("connecting a producer"))?;
    let book = Mutex::new(Book::new(setup, producer));
    let books = Arc::new(Books { book, tally: Arc::clone(tally), answered: Notify::new() });
    let sink = Arc::clone(&books);
    let started =
        Producer::start(&cluster, options(setup, producer), move |delivery: &Delivery<'_>| {
            sink.lock().settle(delivery, &mut lock(&sink.tally));
            sink.answered.notify_one();
        });
    let client = started.await.map_err(target("starting a producer"))?;
    let topic = setup.topic_of(producer);
    let name = setup.topics().into_iter().nth(topic.into());
    let name = name.expect("a topic of a producer is one of the run");
    let mut handles = Vec::new();
    for lane in 0..workload.partitions {
        let found = client.partition(&name, setup.layout.partition(lane)).await;
        handles.push(found.map_err(target("finding a partition"))?);
    }
    let transactions = begun(workload, &client, &handles).await?;
    let clock = shared.ready(ready).await?;
    books.lock().start(clock);
    let timer = Timer::new()?;
    let slice = producer.saturating_sub(setup.first_producer);
    let choices = contents.dealer.as_ref();
    let mut sending = Sending {
        workload,
        run: setup.run,
        producer,
        slice,
        seals: matches!(setup.layout, Layout::Spread { .. }),
        is_accounted: setup.is_accounted,
        payloads: &contents.payloads,
        choices: choices.map(|dealer| dealer.choices(slice, workload.all_producers())),
        number: 0,
        client: &client,
        handles,
        books: &books,
        clock,
        timer: Timer::new()?,
        unix_ms_at_start: unix_ms().saturating_sub(clock.now_ns() / 1_000_000),
        value: Vec::with_capacity(workload.record_bytes),
        turn: Turn::new(setup, producer),
        transactions,
    };
    let watched = requests_in_window(&client, &clock, &timer, workload);
    let (shed, in_window) = tokio::try_join!(sending.offer(), watched)?;
    sending.end_transaction().await?;
    let transactions = sending.transactions.map(Transactions::into_outcome);
    // Whatever has no answer by then stays unknown in the ledger.
    let drained = tokio::time::timeout(DRAIN_TIMEOUT, client.flush()).await;
    if drained.is_err() {
        tracing::warn!(producer, "records without an answer remain");
    }
    let mut book = books.lock();
    book.check()?;
    let outcome = book.take_outcome(shed, client.requests_made(), in_window, &mut lock(tally));
    Ok(Outcome { transactions, ..outcome })
}

/// The transactions of a producer that is to make such; the first begins before the clock, as the
/// connections do.
async fn begun(
    workload: &Workload,
    client: &Producer,
    handles: &[PartitionHandle],
) -> Result<Option<Transactions>, Error> {
    let Some(records) = workload.tuning.transaction_records else { return Ok(None) };
    transactions::begin(client, handles).await?;
    let window = nanos(workload.warmup())..nanos(workload.warmup() + workload.window());
    Ok(Some(Transactions::new(records, handles.len(), window)))
}

/// What requests do inside the window. The offering may end it a little early, and a target that
/// stands still a little late.
async fn requests_in_window(
    client: &Producer,
    clock: &RunClock,
    timer: &Timer,
    workload: &Workload,
) -> Result<Requests, Error> {
    let mut readings = [RequestTimes::default(); 2];
    let edges = [workload.warmup(), workload.warmup() + workload.window()];
    for (reading, edge) in readings.iter_mut().zip(edges) {
        let until = clock.instant(nanos(edge));
        timer.sleep(until.saturating_duration_since(std::time::Instant::now())).await?;
        *reading = client.request_times();
    }
    let [first, last] = readings;
    Ok(Requests {
        returned: last.returned - first.returned,
        in_flight_ns: nanos(last.in_flight.saturating_sub(first.in_flight)),
        throttled_ns: nanos(last.throttled.saturating_sub(first.throttled)),
        in_flight_max: last.in_flight_max as u64,
    })
}

fn options(setup: &Setup, producer: u16) -> ProducerOptions {
    let workload = &setup.workload;
    let usual = ProducerOptions::default();
    let in_flight_max = usize::from(workload.tuning.in_flight_max);
    let options = ProducerOptions {
        in_flight_max,
        idempotent: in_flight_max <= usual.in_flight_max,
        acks: match workload.tuning.acks {
            Acks::All => ClientAcks::All,
            Acks::Leader => ClientAcks::Leader,
        },
        compression: workload.tuning.compression.into(),
        linger: Duration::from_micros(workload.linger_us),
        batch_bytes: workload.batch_bytes,
        buffer_bytes_max: workload.buffer_bytes(),
        transactional_id: transactional_id(setup, producer),
        ..usual
    };
    match setup.layout {
        Layout::Dense | Layout::Scattered => options,
        Layout::Spread { .. } => ProducerOptions {
            // Twice the size leaves the end of a batch to the generator.
            batch_bytes: 2 * workload.batch_bytes,
            buffer_bytes_max: SPREAD_BUFFER_BYTES_MAX,
            delivery_timeout: SPREAD_DELIVERY_TIMEOUT,
            ..options
        },
    }
}

/// The transactional id of a producer, where it makes transactions; no other run has it.
fn transactional_id(setup: &Setup, producer: u16) -> Option<String> {
    let makes = setup.workload.tuning.transaction_records.is_some();
    makes.then(|| format!("{}-{producer}", setup.topic))
}

/// The book, shared between the sending loop and the client's sink, which run on one thread.
struct Books {
    /// Guards the book; never waited for.
    book: Mutex<Book>,
    /// That of the thread; never waited for either.
    tally: Arc<Mutex<Tally>>,
    /// Notified of every answer. Only the loop of a closed pace waits for it.
    answered: Notify,
}

impl Books {
    fn lock(&self) -> MutexGuard<'_, Book> {
        lock(&self.book)
    }
}

struct Sending<'a> {
    workload: &'a Workload,
    run: u32,
    producer: u16,
    /// Which slice of the schedule it offers.
    slice: u16,
    /// Whether it ends batches itself.
    seals: bool,
    /// Whether records say what they are.
    is_accounted: bool,
    payloads: &'a PayloadWriter,
    /// What records are; absent where they are all alike.
    choices: Option<Choices<'a>>,
    /// Records handed over.
    number: u64,
    client: &'a Producer,
    handles: Vec<PartitionHandle>,
    books: &'a Books,
    clock: RunClock,
    timer: Timer,
    unix_ms_at_start: u64,
    value: Vec<u8>,
    turn: Turn,
    transactions: Option<Transactions>,
}

/// Why a burst of records ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Burst {
    /// Nothing is due.
    Idle,
    /// The other tasks of the thread should have a turn.
    Long,
    /// The client has no room.
    Full,
    /// The transaction has all its records.
    Transaction,
}

impl Sending<'_> {
    /// Offers the whole workload; returns how many operations were never offered.
    async fn offer(&mut self) -> Result<u64, Error> {
        let end_ns = nanos(self.workload.length());
        self.sleep_until(0).await?;
        match self.workload.pace {
            Pace::Scheduled { per_second, arrivals } => {
                let producers = u32::from(self.workload.all_producers());
                let slice = match (arrivals, &self.workload.tuning.shape.trace) {
                    (Arrivals::Trace, Some(trace)) => {
                        Slice::of_trace(trace, self.slice.into(), producers, end_ns)
                    }
                    _ => Slice::new(arrivals, per_second, self.slice.into(), producers, end_ns),
                };
                let waiting_max = backlog_operations_max(self.workload.all_producers());
                self.follow(LagQueue::new(slice, waiting_max)).await
            }
            Pace::Closed { outstanding } => {
                self.keep_outstanding(self.share_of(outstanding), end_ns).await.map(|()| 0)
            }
            Pace::Unpaced => self.flood(end_ns).await.map(|()| 0),
            Pace::ReadBack => Ok(0),
        }
    }

    async fn follow(&mut self, mut queue: LagQueue) -> Result<u64, Error> {
        let mut refused = None;
        loop {
            let now_ns = self.take_up(&mut queue)?;
            let next = || refused.take().or_else(|| queue.pop());
            let (burst, back) = self.send_burst(now_ns, next)?;
            refused = back;
            match (burst, queue.next_due_ns()) {
                (Burst::Idle, None) => return Ok(queue.shed()),
                (Burst::Idle, Some(due_ns)) => {
                    self.sleep_until(due_ns.max(now_ns + nanos(WAKE_INTERVAL))).await?;
                }
                (Burst::Long, _) => tokio::task::yield_now().await,
                (Burst::Full, _) => self.timer.sleep(WAKE_INTERVAL).await?,
                (Burst::Transaction, _) => self.turn_transaction(Some(&mut queue)).await?,
            }
        }
    }

    /// Takes up what is due; gives the time.
    fn take_up(&self, queue: &mut LagQueue) -> Result<u64, Error> {
        let now_ns = self.clock.now_ns();
        let mut book = self.books.lock();
        book.check()?;
        let tally = &mut lock(&self.books.tally);
        queue.take_up(now_ns, |intended_ns| book.taken_up(intended_ns, now_ns, tally));
        Ok(now_ns)
    }

    /// Ends the transaction and begins the next. What falls due meanwhile is taken up as ever: it
    /// is the target that keeps it waiting, and not the generator.
    async fn turn_transaction(&mut self, mut queue: Option<&mut LagQueue>) -> Result<(), Error> {
        let turned = {
            let turning = transactions::turn(self.client, &self.handles, &self.clock);
            tokio::pin!(turning);
            loop {
                tokio::select! {
                    turned = &mut turning => break turned,
                    slept = self.timer.sleep(WAKE_INTERVAL) => slept?,
                }
                if let Some(queue) = &mut queue {
                    self.take_up(queue)?;
                }
            }
        };
        // A batch that was refused says more than the commit that it made impossible.
        self.books.lock().check()?;
        let turned = turned?;
        if let Some(transactions) = &mut self.transactions {
            transactions.turned(&turned);
        }
        Ok(())
    }

    /// Commits what the last transaction holds.
    async fn end_transaction(&mut self) -> Result<(), Error> {
        let Some(transactions) = &mut self.transactions else { return Ok(()) };
        let ended = transactions::commit(self.client).await;
        self.books.lock().check()?;
        ended?;
        transactions.ended();
        Ok(())
    }

    async fn flood(&mut self, end_ns: u64) -> Result<(), Error> {
        let burst_bytes = BURST_RECORDS_MAX * self.workload.record_bytes;
        let room_bytes = burst_bytes.min(self.workload.buffer_bytes() / 2).max(self.room_bytes());
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= end_ns {
                return Ok(());
            }
            self.books.lock().check()?;
            match self.send_burst(now_ns, || Some(now_ns))?.0 {
                Burst::Idle | Burst::Long => tokio::task::yield_now().await,
                Burst::Full => self.client.room(room_bytes).await,
                Burst::Transaction => self.turn_transaction(None).await?,
            }
        }
    }

    /// Room in the client that any record fits in.
    fn room_bytes(&self) -> usize {
        let Workload { filler, record_bytes, ref tuning, .. } = *self.workload;
        let largest = tuning.shape.record_bytes_max(filler.record_bytes_min());
        largest.unwrap_or(record_bytes).max(record_bytes) + RECORD_OVERHEAD_BYTES
    }

    /// This producer's share of what all have on their way: the first ones take the remainder.
    fn share_of(&self, outstanding: u32) -> u64 {
        let producers = u32::from(self.workload.all_producers());
        let remainder = u32::from(u32::from(self.slice) < outstanding % producers);
        u64::from(outstanding / producers + remainder)
    }

    async fn keep_outstanding(&mut self, outstanding: u64, end_ns: u64) -> Result<(), Error> {
        loop {
            let now_ns = self.clock.now_ns();
            if now_ns >= end_ns {
                return Ok(());
            }
            let mut free = {
                let book = self.books.lock();
                book.check()?;
                outstanding.saturating_sub(book.waiting())
            };
            if free == 0 {
                let left = Duration::from_nanos(end_ns - now_ns);
                // No answer until the end is the end as well.
                if tokio::time::timeout(left, self.books.answered.notified()).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            let next = || {
                free = free.checked_sub(1)?;
                Some(now_ns)
            };
            match self.send_burst(now_ns, next)?.0 {
                Burst::Full => self.client.room(self.room_bytes()).await,
                Burst::Transaction => self.turn_transaction(None).await?,
                Burst::Idle | Burst::Long => {}
            }
        }
    }

    /// Hands over operations until there are no more, enough, or no room; gives back the
    /// operation that found no room.
    fn send_burst(
        &mut self,
        now_ns: u64,
        mut next: impl FnMut() -> Option<u64>,
    ) -> Result<(Burst, Option<u64>), Error> {
        let books = self.books;
        let mut book = books.lock();
        for _ in 0..BURST_RECORDS_MAX {
            if self.transactions.as_ref().is_some_and(Transactions::is_full) {
                return Ok((Burst::Transaction, None));
            }
            let Some(intended_ns) = next() else { return Ok((Burst::Idle, None)) };
            let choice = self.choices.map(|choices| choices.of(self.number));
            let key = choice.and_then(|choice| choice.key).map(key_text);
            let place = match &key {
                Some(key) => self.turn.place_of(key),
                None => self.turn.place(now_ns),
            };
            let kind = Kind { key, choice };
            if !self.send(&book, place, &kind, intended_ns, now_ns)? {
                return Ok((Burst::Full, Some(intended_ns)));
            }
            book.sent(place.lane, intended_ns, now_ns, self.value.len());
            self.number += 1;
            if let Some(transactions) = &mut self.transactions {
                transactions.sent(place.partition.into());
            }
            if key.is_none() {
                self.turn.advance(now_ns);
            }
            if self.seals && self.turn.is_full() {
                self.seal(place)?;
            }
        }
        Ok((Burst::Long, None))
    }

    /// Whether the client had room for the record.
    fn send(
        &mut self,
        book: &Book,
        place: Place,
        kind: &Kind,
        intended_ns: u64,
        now_ns: u64,
    ) -> Result<bool, Error> {
        let sequence = book.next_sequence(place.lane);
        let (run, producer) = (self.run, self.producer);
        let header = Header { run, producer, partition: place.lane, sequence, intended_ns };
        match kind.choice {
            _ if !self.is_accounted => self.payloads.write_filler(sequence, &mut self.value),
            Some(choice) => self.payloads.write_body(header, choice.body, &mut self.value),
            None => self.payloads.write(header, &mut self.value),
        }
        let unix_ms = self.unix_ms_at_start + now_ns / 1_000_000;
        let record = Record {
            token: sequence,
            timestamp: i64::try_from(unix_ms).unwrap_or(i64::MAX),
            key: kind.key.as_ref().map(<[u8; 8]>::as_slice),
            value: Some(&self.value),
            headers: &[],
        };
        match self.client.send(self.handle(place), &record) {
            Ok(()) => Ok(true),
            Err(moldau_client::Error::BufferFull) => Ok(false),
            Err(error) => Err(target("sending a record")(error)),
        }
    }

    fn seal(&self, place: Place) -> Result<(), Error> {
        self.client.seal(self.handle(place)).map_err(target("ending a batch"))
    }

    fn handle(&self, place: Place) -> PartitionHandle {
        let handle = self.handles.get(usize::from(place.partition));
        *handle.expect("the turn keeps to the partitions of the workload")
    }

    async fn sleep_until(&self, at_ns: u64) -> Result<(), Error> {
        let until = self.clock.instant(at_ns);
        self.timer.sleep(until.saturating_duration_since(std::time::Instant::now())).await
    }
}

/// What a record is, beside its value.
struct Kind {
    key: Option<[u8; 8]>,
    /// Absent where records are all alike.
    choice: Option<Choice>,
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
