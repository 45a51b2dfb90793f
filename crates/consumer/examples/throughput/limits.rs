//! What tests take that start a broker each, and what an app holds whose handlers stand still.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use moldau_client::GroupProtocol;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, AppOptions, Attempt, Message, Order, Retry, record};
use tokio::sync::{Notify, watch};

use crate::{Error, Options, fill, start};

/// Runs so many tests, as `cargo test` would on a machine with more cores; prints their time.
pub(crate) fn tests(count: usize) -> Result<(), Error> {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism()?.get() * TESTS_PER_CORE;
    let failed = std::thread::scope(|scope| {
        let work = || {
            while next.fetch_add(1, Ordering::Relaxed) < count {
                test();
            }
        };
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().filter_map(|thread| thread.join().err()).count()
    });
    if failed > 0 {
        return Err(format!("{failed} threads failed").into());
    }
    println!("{count} tests, {threads} at a time: {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// A test as users write them: each record fails once, and is tried again after a pause of the
/// broker's clock.
fn test() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let broker = TestBroker::start();
        broker.create_topic("orders", 3).await;
        let keys: Vec<String> = (0..TEST_RECORDS).map(|key| key.to_string()).collect();
        let records: Vec<_> = keys.iter().map(|key| (Some(key.as_str()), "one book")).collect();
        broker.produce_all("orders", &records).await;
        let handler = async |_: Message, Attempt(attempt): Attempt| {
            if attempt == 1 { Err("not at once") } else { Ok(()) }
        };
        let route = record(handler).layer(Retry::exponential(2, Duration::from_secs(1)));
        let app = broker.app("billing").topic("orders", route.order(Order::by_key()));
        let done = async {
            while broker.lag("billing", "orders").await > 0 {
                broker.clock().advance(Duration::from_millis(500));
                tokio::task::yield_now().await;
            }
        };
        app.run(done).await.expect("the app runs");
    });
}

/// Starts an app whose handlers stand still for so many seconds, while more records wait than it
/// may hold, and then go on; prints its memory.
pub(crate) fn stall(options: &Options, seconds: u64) -> Result<(), Error> {
    let (_broker, bootstrap) = start(&["broker".to_owned()])?;
    let partitions = options.partitions.first().copied().unwrap_or(1);
    fill::fill(&bootstrap, &options.topic, partitions, options.records)?;
    let (_process, line) = start(&[
        "measure-stall".to_owned(),
        format!("bootstrap={bootstrap}"),
        format!("topic={}", options.topic),
        format!("records={}", options.records),
        format!("stall={seconds}"),
    ])?;
    println!("{line}");
    Ok(())
}

/// The process of the app.
pub(crate) fn measure_stall(options: &Options) -> Result<(), Error> {
    let (bootstrap, records) = (options.bootstrap.clone().ok_or("no bootstrap")?, options.records);
    let stall = Duration::from_secs(options.stall.ok_or("no time")?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (gate, opened) = watch::channel(false);
    let (handled, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (counted, told) = (Arc::clone(&handled), Arc::clone(&all));
    let handler = move |_: Message| {
        let mut opened = opened.clone();
        let (counted, told) = (Arc::clone(&counted), Arc::clone(&told));
        async move {
            // The gate lives longer than the app.
            drop(opened.wait_for(|is_open| *is_open).await);
            if counted.fetch_add(1, Ordering::Relaxed) + 1 == records {
                told.notify_one();
            }
            Ok::<(), Infallible>(())
        }
    };
    let mut app_options = AppOptions::default();
    app_options.membership.protocol = GroupProtocol::Consumer;
    let app = App::new([bootstrap]).group("stalled").options(app_options);
    let app = app.topic(&options.topic, record(handler).order(Order::by_key()));
    let course = async {
        stand_still(&all, FULL_AFTER.min(stall)).await?;
        let first = memory("VmRSS:")?;
        stand_still(&all, stall.saturating_sub(FULL_AFTER)).await?;
        let (last, peak) = (memory("VmRSS:")?, memory("VmHWM:")?);
        let before = handled.load(Ordering::Relaxed);
        gate.send_replace(true);
        all.notified().await;
        println!(
            "{first} after {FULL_AFTER:?}, {last} after {stall:?}, peak {peak}, {before} records \
             handled till then and {records} at the end, peak {}",
            memory("VmHWM:")?
        );
        Ok::<(), Error>(())
    };
    let mut outcome = Ok(());
    runtime.block_on(app.run(async { outcome = course.await }))?;
    outcome
}

async fn stand_still(all: &Notify, time: Duration) -> Result<(), Error> {
    match tokio::time::timeout(time, all.notified()).await {
        Ok(()) => Err("the handlers did not stand still".into()),
        Err(_) => Ok(()),
    }
}

/// A line of this process's status.
fn memory(name: &str) -> Result<String, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such line")?;
    Ok(line.trim().to_owned())
}

/// Tests at a time, for each core: they wait most of the time.
const TESTS_PER_CORE: usize = 8;

const TEST_RECORDS: usize = 20;

/// By then every queue is full.
const FULL_AFTER: Duration = Duration::from_secs(10);
