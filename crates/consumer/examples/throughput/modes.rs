//! One measurement: a process that consumes a topic.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use moldau_client::{Cluster, ClusterOptions, Fetcher, FetcherOptions, GroupProtocol, Start};
use moldau_consumer::{AnyRoute, App, AppOptions, Batch, Message, Order, batch, record};
use moldau_records::Decompressor;
use tokio::sync::Notify;

use crate::{Error, Options};

/// Consumes the topic; prints records per second, and CPU seconds and page faults per million
/// records.
pub(crate) fn measure(options: &Options) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let partitions = options.partitions.first().copied().ok_or("no partitions")?;
    let course = Arc::new(Course::new(partitions, options.records)?);
    let bootstrap = options.bootstrap.clone().ok_or("no bootstrap")?;
    let mode = options.modes.first().map(String::as_str);
    runtime.block_on(async {
        let route: AnyRoute = match mode {
            Some("raw") => return raw(&bootstrap, &options.topic, partitions, &course).await,
            Some("batch") => batch_route(&course),
            Some("record") => record_route(&course, Order::Partition),
            Some("key") => record_route(&course, Order::by_key()),
            Some("unordered") => record_route(&course, Order::None),
            _ => return Err("unknown mode".into()),
        };
        let mut app_options = AppOptions::default();
        app_options.membership.protocol = GroupProtocol::Consumer;
        let app = App::new([bootstrap])
            .group(format!("measure-{}", std::process::id()))
            .options(app_options)
            .topic(&options.topic, route);
        app.run(course.ended()).await?;
        Ok(())
    })?;
    let (rate, cpu, faults) = course.figures();
    println!("{rate} {cpu} {faults}");
    Ok(())
}

async fn raw(
    bootstrap: &str,
    topic: &str,
    partitions: usize,
    course: &Course,
) -> Result<(), Error> {
    let cluster = Cluster::connect(&[bootstrap.to_owned()], ClusterOptions::default()).await?;
    let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
    for partition in 0..i32::try_from(partitions)? {
        fetcher.assign(topic, partition, Start::Earliest).await?;
    }
    let mut decompressor = Decompressor::default();
    while !course.is_over() {
        let fetched = fetcher.next().await?;
        fetched.for_each_record(&mut decompressor, 1 << 20, |record| {
            course.saw(record.offset(), record.value());
        })?;
    }
    Ok(())
}

fn batch_route(course: &Arc<Course>) -> AnyRoute {
    let course = Arc::clone(course);
    let handler = move |batch: Batch| {
        batch.iter().for_each(|message| course.saw(message.offset(), message.value()));
        std::future::ready(Ok::<(), Infallible>(()))
    };
    batch(handler).into()
}

fn record_route(course: &Arc<Course>, order: Order) -> AnyRoute {
    let course = Arc::clone(course);
    let handler = move |message: Message| {
        course.saw(message.offset(), message.value());
        std::future::ready(Ok::<(), Infallible>(()))
    };
    record(handler).order(order).into()
}

/// From the first record to the last.
struct Course {
    /// Offset of the last record of each partition.
    last_offset: i64,
    records: usize,
    partitions_left: AtomicUsize,
    /// Guards what was used up to the first and the last record.
    marks: Mutex<Vec<Mark>>,
    over: Notify,
}

/// What a process has used at a moment.
struct Mark {
    at: Instant,
    cpu: Duration,
    page_faults: u64,
}

impl Mark {
    fn now() -> Self {
        Self { at: Instant::now(), cpu: cpu_time(), page_faults: page_faults() }
    }
}

impl Course {
    fn new(partitions: usize, records: usize) -> Result<Self, Error> {
        Ok(Self {
            last_offset: i64::try_from(records / partitions)? - 1,
            records,
            partitions_left: AtomicUsize::new(partitions),
            marks: Mutex::default(),
            over: Notify::new(),
        })
    }

    fn saw(&self, offset: i64, value: Option<&[u8]>) {
        std::hint::black_box(value.map_or(0, <[u8]>::len));
        if offset == 0 || offset == self.last_offset {
            self.saw_end(offset);
        }
    }

    #[cold]
    fn saw_end(&self, offset: i64) {
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.is_empty() {
            marks.push(Mark::now());
        }
        if offset == self.last_offset && self.partitions_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            marks.push(Mark::now());
            self.over.notify_one();
        }
    }

    fn is_over(&self) -> bool {
        self.partitions_left.load(Ordering::Relaxed) == 0
    }

    async fn ended(&self) {
        self.over.notified().await;
    }

    fn figures(&self) -> (f64, f64, f64) {
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        let [start, end] = &marks[..] else { return (0.0, 0.0, 0.0) };
        let records = self.records as f64;
        let rate = records / (end.at - start.at).as_secs_f64();
        let cpu = (end.cpu - start.cpu).as_secs_f64() * 1e6 / records;
        let faults = (end.page_faults - start.page_faults) as f64;
        (rate, cpu, faults * 1e6 / records)
    }
}

/// CPU time of the threads of this process.
pub(crate) fn cpu_time() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanos = tasks.filter_map(|task| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// Page faults of this process that no disk had to serve: memory used for the first time.
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    fields.split_whitespace().nth(7).and_then(|faults| faults.parse().ok()).unwrap_or(0)
}
