//! Reads a backlog by the `StreamConsumer` of rdkafka, with the arguments and the output of
//! `moldau lab reader`: each thread has a consumer of the group.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clap::Parser;
use rdkafka::ClientConfig;
use rdkafka::consumer::{Consumer, StreamConsumer};
use rdkafka::message::Message;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

#[derive(Clone, Debug, Parser)]
struct Arguments {
    #[arg(long)]
    bootstrap: String,
    #[arg(long)]
    group: String,
    #[arg(long)]
    topic_prefix: String,
    #[arg(long)]
    topics: u32,
    #[arg(long)]
    threads: u16,
    #[arg(long)]
    records: u64,
    /// nothing, compute:US, or wait:US.
    #[arg(long, value_parser = handling)]
    handling: Handling,
    #[arg(long)]
    within_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum Handling {
    Nothing,
    Compute(Duration),
    Wait(Duration),
}

fn handling(text: &str) -> Result<Handling, String> {
    let time = |us: &str| us.parse().map(Duration::from_micros).map_err(|error| error.to_string());
    match text.split_once(':') {
        None if text == "nothing" => Ok(Handling::Nothing),
        Some(("compute", us)) => Ok(Handling::Compute(time(us)?)),
        Some(("wait", us)) => Ok(Handling::Wait(time(us)?)),
        _ => Err("none of nothing, compute:US, wait:US".into()),
    }
}

/// Processor time in ns, time, and records handled.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    cpu_ns: i64,
    handled: u64,
}

struct Meter {
    records: u64,
    handled: AtomicU64,
    begin: Mutex<Option<Mark>>,
    end: Mutex<Option<Mark>>,
    begun: watch::Sender<bool>,
    done: watch::Sender<bool>,
}

impl Meter {
    fn count(&self) {
        let after = self.handled.fetch_add(1, Ordering::Relaxed) + 1;
        if after == 1 {
            self.begun.send_replace(true);
        }
        if after == self.records / 4 {
            self.set(&self.begin);
        }
        if after == self.records {
            self.set(&self.end);
            self.done.send_replace(true);
        }
    }

    fn set(&self, place: &Mutex<Option<Mark>>) {
        let used = clock_gettime(ClockId::ProcessCPUTime);
        let cpu_ns = used.tv_sec * 1_000_000_000 + used.tv_nsec;
        let handled = self.handled.load(Ordering::Relaxed);
        place.lock().unwrap().get_or_insert(Mark { at: Instant::now(), cpu_ns, handled });
    }
}

fn main() {
    let arguments = Arguments::parse();
    let meter = Arc::new(Meter {
        records: arguments.records,
        handled: AtomicU64::new(0),
        begin: Mutex::new(None),
        end: Mutex::new(None),
        begun: watch::Sender::new(false),
        done: watch::Sender::new(false),
    });
    thread::scope(|scope| {
        for _ in 0..arguments.threads {
            scope.spawn(|| read(&arguments, &meter));
        }
        let within = Duration::from_millis(arguments.within_ms);
        let timer = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        timer.block_on(async {
            let (mut begun, mut done) = (meter.begun.subscribe(), meter.done.subscribe());
            let time = async {
                let first = begun.wait_for(|begun| *begun);
                drop(tokio::time::timeout(Duration::from_secs(30), first).await);
                tokio::time::sleep(within / 4).await;
                meter.set(&meter.begin);
                tokio::time::sleep(within - within / 4).await;
            };
            tokio::select! {
                _ = done.wait_for(|done| *done) => {}
                () = time => {
                    meter.set(&meter.end);
                    meter.done.send_replace(true);
                }
            }
        });
    });
    let (begin, end) = (meter.begin.lock().unwrap().unwrap(), meter.end.lock().unwrap().unwrap());
    let records = end.handled - begin.handled;
    let wall_ns = end.at.duration_since(begin.at).as_nanos();
    let cpu_ns = end.cpu_ns - begin.cpu_ns;
    println!(r#"{{"records":{records},"wall_ns":{wall_ns},"cpu_ns":{cpu_ns}}}"#);
}

fn read(arguments: &Arguments, meter: &Meter) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", &arguments.bootstrap)
            .set("group.id", &arguments.group)
            .set("auto.offset.reset", "earliest")
            .create()
            .unwrap();
        let topics: Vec<String> =
            (0..arguments.topics).map(|it| format!("{}{it}", arguments.topic_prefix)).collect();
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        consumer.subscribe(&topics).unwrap();
        let mut done = meter.done.subscribe();
        let follow = async {
            loop {
                let message = consumer.recv().await.unwrap();
                black_box(message.payload());
                match arguments.handling {
                    Handling::Nothing => {}
                    Handling::Compute(time) => {
                        let end = Instant::now() + time;
                        while Instant::now() < end {
                            std::hint::spin_loop();
                        }
                    }
                    Handling::Wait(time) => tokio::time::sleep(time).await,
                }
                meter.count();
            }
        };
        tokio::select! {
            _ = done.wait_for(|done| *done) => {}
            () = follow => {}
        }
    });
}
