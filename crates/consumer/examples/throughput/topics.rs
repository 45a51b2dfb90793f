//! What many topics cost: the records per second of one topic and of a thousand, how evenly topics
//! are served beside one with a long backlog, and what a process costs that has nothing to do.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moldau_client::{FetcherOptions, GroupProtocol};
use moldau_consumer::{App, AppOptions, Message, record};
use tokio::sync::Notify;

use crate::modes::cpu_time;
use crate::{Error, Options, broker, fill, start};

/// Partitions of each topic, and threads of the app.
const PARTITIONS: usize = 10;
const SHARDS: usize = 4;

/// The backlog of the hot topic, in backlogs of another.
const HOT: usize = 500;

/// Bytes of a partition in one fetch: small, so that no partition is read to its end at once.
const FETCH_BYTES: i32 = 16 * 1024;

/// How long the idle process is watched.
const IDLE: Duration = Duration::from_secs(10);

/// Fills topics, and starts a process for each measurement.
pub(crate) fn compare(options: &Options) -> Result<(), Error> {
    let (_broker, bootstrap) = broker(options)?;
    let topics = options.topics.ok_or("no topics")?;
    let each = options.records / topics / PARTITIONS * PARTITIONS;
    let spread = names("spread", topics, each);
    let single = vec![("single".to_owned(), each * topics)];
    let hot = vec![("hot".to_owned(), each * HOT)];
    for set in [&spread, &single, &hot] {
        fill::fill_topics(&bootstrap, set, PARTITIONS)?;
    }
    let mut rates = [Vec::new(), Vec::new()];
    for _round in 0..options.rounds {
        for (prefix, rates) in ["single", "spread"].into_iter().zip(&mut rates) {
            rates.push(run(&bootstrap, prefix, options, each)?.0);
        }
    }
    let [single, spread] = rates.map(|rates| crate::median(rates.into_iter()));
    println!("one topic       {:.2} M records/s", single / 1e6);
    println!("{topics} topics  {:.2} M records/s, {:.1} %", spread / 1e6, 100.0 * spread / single);
    let (_, idle) = run(&bootstrap, "spread", options, each)?;
    println!("idle            {:.2} % of a core", 100.0 * idle);
    let (jain, _) = run(&bootstrap, "hot", options, each)?;
    println!("one hot topic   Jain index {jain:.4}");
    Ok(())
}

fn names(prefix: &str, count: usize, records: usize) -> Vec<(String, usize)> {
    (0..count).map(|number| (format!("{prefix}-{number}"), records)).collect()
}

fn run(bootstrap: &str, set: &str, options: &Options, each: usize) -> Result<(f64, f64), Error> {
    let (_process, line) = start(&[
        "measure-topics".to_owned(),
        format!("bootstrap={bootstrap}"),
        format!("topic={set}"),
        format!("topics={}", options.topics.ok_or("no topics")?),
        format!("records={each}"),
    ])?;
    let (first, second) = line.split_once(' ').ok_or_else(|| format!("{set} failed: {line}"))?;
    Ok((first.parse()?, second.parse()?))
}

/// Consumes all topics of a set. Prints records per second, and the processors that the process
/// used once it was idle; of the set with a hot topic, Jain's index of the topics at half time.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let bootstrap = options.bootstrap.clone().ok_or("no bootstrap")?;
    let (count, each) = (options.topics.ok_or("no topics")?, options.records);
    let sets: Vec<(String, usize)> = match options.topic.as_str() {
        "single" => vec![("single".to_owned(), each * count)],
        "hot" => {
            let mut sets = names("spread", count, each);
            sets.push(("hot".to_owned(), each * HOT));
            sets
        }
        prefix => names(prefix, count, each),
    };
    let is_hot = options.topic == "hot";
    let total: usize = sets.iter().map(|(_, records)| *records).sum();
    let stop_at = if is_hot { each * count / 2 } else { total };
    let race = Arc::new(Race {
        handled: sets.iter().map(|_| AtomicUsize::new(0)).collect(),
        all: AtomicUsize::new(0),
        stop_at,
        started: Mutex::default(),
        over: Notify::new(),
    });
    runtime.block_on(async {
        let mut app_options = AppOptions::default();
        app_options.membership.protocol = GroupProtocol::Consumer;
        if is_hot {
            app_options.fetcher =
                FetcherOptions { partition_bytes_max: FETCH_BYTES, ..app_options.fetcher };
        }
        let mut app = App::new([bootstrap])
            .group(format!("measure-{}", std::process::id()))
            .options(app_options)
            .shards(SHARDS);
        for (topic, (name, _)) in sets.iter().enumerate() {
            let race = Arc::clone(&race);
            let handler = move |message: Message| {
                race.saw(topic, message.value());
                std::future::ready(Ok::<(), Infallible>(()))
            };
            app = app.topic(name, record(handler));
        }
        app.run(race.ended(is_hot)).await
    })?;
    Ok(())
}

/// What was handled of each topic.
struct Race {
    handled: Vec<AtomicUsize>,
    all: AtomicUsize,
    stop_at: usize,
    /// Guards the time of the first record.
    started: Mutex<Option<Instant>>,
    over: Notify,
}

impl Race {
    fn saw(&self, topic: usize, value: Option<&[u8]>) {
        std::hint::black_box(value.map_or(0, <[u8]>::len));
        self.handled[topic].fetch_add(1, Ordering::Relaxed);
        let before = self.all.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        } else if before + 1 == self.stop_at {
            self.over.notify_one();
        }
    }

    async fn ended(&self, is_hot: bool) {
        self.over.notified().await;
        if is_hot {
            let handled = self.handled.iter().map(|it| it.load(Ordering::Relaxed) as f64);
            println!("{} 0", jain(&handled.collect::<Vec<_>>()));
            return;
        }
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = started.map_or(Duration::ZERO, |started| started.elapsed());
        // The first tick comes at once, the second one leaves the last commits behind.
        let mut ticks = tokio::time::interval(IDLE);
        ticks.tick().await;
        ticks.tick().await;
        let (before, since) = (cpu_time(), Instant::now());
        ticks.tick().await;
        let idle = (cpu_time() - before).as_secs_f64() / since.elapsed().as_secs_f64();
        println!("{} {idle}", self.stop_at as f64 / elapsed.as_secs_f64());
    }
}

/// Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    sum * sum / (squares * shares.len() as f64)
}
