//! The framework.

use std::convert::Infallible;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use moldau_client::{FetcherOptions, Reset};
use moldau_consumer::{AnyRoute, App, AppOptions, Batch, Message, Order, Workers, batch, record};
use moldau_load::generator::runtime;
use moldau_measure::Error;

use super::meter::Meter;
use super::{Reader, Reading, handle};
use moldau_lab::reader::Handling;

/// Records that are handled at a time where handlers wait: 10,000 a second of 50 ms each are 500.
const WORKERS: usize = 4096;

/// The outcome is known before the app ends, so handlers need not finish.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) fn read(reading: &Reading, meter: &Arc<Meter>) -> Result<(), Error> {
    let own = || runtime()?.block_on(run(reading, meter));
    thread::scope(|scope| {
        let all: Vec<_> = (0..reading.threads).map(|_| scope.spawn(own)).collect();
        all.into_iter()
            .try_for_each(|app| app.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

async fn run(reading: &Reading, meter: &Arc<Meter>) -> Result<(), Error> {
    let options = AppOptions {
        fetcher: FetcherOptions { reset: Reset::Earliest, ..FetcherOptions::default() },
        workers: Workers::Fixed(WORKERS),
        drain_timeout: DRAIN_TIMEOUT,
        ..AppOptions::default()
    };
    let mut app = App::new([reading.bootstrap.clone()]).group(&reading.group).options(options);
    for topic in reading.topic_names() {
        app = app.topic(&topic, route(reading, meter));
    }
    let ran = app.run(meter.finished()).await;
    ran.map_err(|error| Error::Target { action: "consuming".into(), reason: error.to_string() })
}

fn route(reading: &Reading, meter: &Arc<Meter>) -> AnyRoute {
    let (handling, meter) = (reading.handling, Arc::clone(meter));
    match reading.reader {
        Reader::Raw | Reader::Batch => batch(move |records: Batch| {
            let meter = Arc::clone(&meter);
            async move { handle_all(&records, handling, &meter).await }
        })
        .into(),
        Reader::Record => each(handling, meter).into(),
        Reader::Key => each(handling, meter).order(Order::by_key()).into(),
    }
}

fn each(
    handling: Handling,
    meter: Arc<Meter>,
) -> moldau_consumer::Route<Message, impl moldau_consumer::Handler<Message>> {
    record(move |message: Message| {
        let meter = Arc::clone(&meter);
        async move {
            std::hint::black_box(message.value());
            handle(handling).await;
            meter.count(1);
            Ok::<(), Infallible>(())
        }
    })
}

async fn handle_all(records: &Batch, handling: Handling, meter: &Meter) -> Result<(), Infallible> {
    if handling == Handling::Nothing {
        let mut count = 0;
        for message in records.iter() {
            std::hint::black_box(message.value());
            count += 1;
        }
        meter.count(count);
        return Ok(());
    }
    for message in records.iter() {
        std::hint::black_box(message.value());
        handle(handling).await;
        meter.count(1);
    }
    Ok(())
}
