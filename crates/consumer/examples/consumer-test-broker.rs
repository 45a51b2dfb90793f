//! How long test brokers take: each test starts one, produces a record, runs an app until it is
//! handled, and looks at what was committed.
//!
//! ```sh
//! cargo run --release -p moldau-consumer --example consumer-test-broker -- 1000 16
//! ```
//!
//! The arguments are the number of tests, and how many run at a time.

use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Message, State, record};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

type BoxError = Box<dyn Error + Send + Sync>;

async fn note(message: Message, State(seen): State<UnboundedSender<i64>>) -> Result<(), BoxError> {
    Ok(seen.send(message.offset())?)
}

/// One test; how long the start, the test and the end took.
async fn test() -> Result<[Duration; 3], BoxError> {
    let started = Instant::now();
    let broker = TestBroker::start();
    let start = started.elapsed();
    broker.create_topic("orders", 1).await;
    broker.produce("orders", Some("anna"), "one book").await;
    let (sender, mut seen) = unbounded_channel::<i64>();
    let app = broker.app("billing").state(sender).topic("orders", record(note));
    app.run(async { assert_eq!(seen.recv().await, Some(0)) }).await?;
    assert_eq!(broker.committed("billing", "orders").await, 1);
    let all = started.elapsed();
    drop(broker);
    Ok([start, all, started.elapsed() - all])
}

fn main() -> Result<(), BoxError> {
    let number = |at, default| std::env::args().nth(at).map_or(Ok(default), |it| it.parse());
    let (tests, threads) = (number(1, 1_000)?, number(2, 16)?);
    let (next, times) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        while next.fetch_add(1, Ordering::Relaxed) < tests {
            let of_test = runtime.block_on(test())?;
            times.lock().map_err(|error| error.to_string())?.push(of_test);
        }
        Ok::<(), BoxError>(())
    };
    let started = Instant::now();
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().try_for_each(|it| it.join().map_err(|_| "a test panicked")?)
    })?;
    println!("{tests} tests in {:.1} s, {threads} at a time", started.elapsed().as_secs_f64());
    let times = times.into_inner()?;
    for (at, what) in ["start", "start to committed", "end"].into_iter().enumerate() {
        let mut of_part: Vec<_> = times.iter().filter_map(|it| it.get(at)).collect();
        of_part.sort_unstable();
        let share = |share: usize| {
            of_part.get(of_part.len() * share / 100).map_or(0.0, |it| it.as_secs_f64() * 1e3)
        };
        println!("{what}: {:.1} ms (p50), {:.1} ms (p99)", share(50), share(99));
    }
    Ok(())
}
