//! Lateness of scheduled messages while many wait: messages come due at a steady rate, in another
//! order than they were scheduled in.
//!
//! ```sh
//! cargo run --release -p moldau-consumer --example consumer-schedule -- 1000000 1000 30
//! ```
//!
//! The arguments are how many messages wait, how many come due each second, and for how many
//! seconds.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moldau_client::{Delivery, Producer, ProducerOptions, Record};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    AppOptions, Clock, Message, State, TopicDeclaration, record, schedule_header,
};
use moldau_records::HeaderView;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

const SCHEDULE: &str = "schedule";
const TARGET: &str = "reminders";

/// A message arrived so many ms after its time.
async fn note(
    message: Message,
    State(clock): State<Clock>,
    State(late): State<UnboundedSender<u64>>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let at = message.header(schedule_header::AT).unwrap_or_default();
    let due: u64 = std::str::from_utf8(at)?.parse()?;
    let now = u64::try_from(clock.now().as_millis())?;
    late.send(now.saturating_sub(due))?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let number = |at, default| std::env::args().nth(at).map_or(Ok(default), |it| it.parse());
    let (waiting, rate, seconds) = (number(1, 1_000_000)?, number(2, 1_000)?, number(3, 30)?);
    let broker = TestBroker::start();
    broker.create_topic(TARGET, 1).await;
    let clock = Clock::system();
    let app = broker.app("reminders").scheduled_messages(SCHEDULE);
    let plan =
        app.declare(SCHEDULE, TopicDeclaration::partitions(1).config("cleanup.policy", "compact"));
    plan.topics().plan().await?.apply().await?;
    let first = clock.now() + LEAD * u32::try_from(1 + waiting / 1_000_000)?;
    let started = Instant::now();
    fill(&broker, waiting, rate, rate * seconds, first).await?;
    println!("{waiting} messages scheduled in {:.1} s", started.elapsed().as_secs_f64());
    let (sender, mut late) = unbounded_channel::<u64>();
    let options = AppOptions { clock: clock.clone(), ..broker.options() };
    let app = broker.app("reminders").options(options).state(clock.clone()).state(sender);
    let app = app.scheduled_messages(SCHEDULE).topic(TARGET, record(note));
    let mut all = Vec::new();
    app.run(async {
        while all.len() < usize::try_from(rate * seconds).unwrap_or(usize::MAX) {
            all.extend(late.recv().await);
        }
    })
    .await?;
    all.sort_unstable();
    let at = |share: usize| all.get(all.len() * share / 1_000).copied().unwrap_or_default();
    println!(
        "{} sent; late by {} ms (p50), {} ms (p99), {} ms (p99.9), {} ms (max)",
        all.len(),
        at(500),
        at(990),
        at(999),
        all.last().copied().unwrap_or_default()
    );
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("memory of broker and app together: {}", memory.trim_start_matches("VmHWM:").trim());
    Ok(())
}

/// Schedules `waiting` messages. Of these, `due` come due at `rate` a second from `first` on, the
/// others later; both are mixed.
async fn fill(
    broker: &TestBroker,
    waiting: u64,
    rate: u64,
    due: u64,
    first: Duration,
) -> Result<(), Box<dyn Error>> {
    let failed = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&failed);
    let sink = move |delivery: &Delivery<'_>| {
        counted.fetch_add(usize::from(delivery.error.is_some()), Ordering::Relaxed);
    };
    let cluster = broker.cluster().await;
    let producer = Producer::start(cluster, ProducerOptions::default(), sink).await?;
    let handle = producer.partition(SCHEDULE, 0).await?;
    let value = [b'x'; 100];
    // A step that has no factor in common with the number mixes times and offsets.
    let mut place = 0;
    for number in 0..waiting {
        place = (place + STEP) % waiting;
        let ms = if place < due { place * 1_000 / rate } else { LATER_MS + place };
        let at = (first + Duration::from_millis(ms)).as_millis().to_string();
        let id = number.to_string();
        let headers = [(schedule_header::TOPIC, TARGET), (schedule_header::AT, &*at)]
            .map(|(key, value)| HeaderView { key: key.as_bytes(), value: Some(value.as_bytes()) });
        let record = Record {
            token: 0,
            timestamp: i64::try_from(Clock::system().now().as_millis())?,
            key: Some(id.as_bytes()),
            value: Some(&value),
            headers: &headers,
        };
        producer.room_for(&record).await;
        producer.send(handle, &record)?;
    }
    producer.close().await;
    match failed.load(Ordering::Relaxed) {
        0 => Ok(()),
        batches => Err(format!("{batches} batches were not delivered").into()),
    }
}

/// How long before the first message is due, for each million: enough to schedule and to read them.
const LEAD: Duration = Duration::from_secs(60);

/// The other messages are due an hour later.
const LATER_MS: u64 = 3_600_000;

/// A prime.
const STEP: u64 = 7_368_787;
