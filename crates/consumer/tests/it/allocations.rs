//! What a record costs in allocations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Filter, Message, Metrics, record};
use tokio::sync::Notify;

use crate::world::{GROUP, TOPIC};

const RECORDS: usize = 20_000;

/// Allocations of an app, its fetcher and its handlers, which all run on this thread, while it
/// handles so many records.
fn allocations(records: usize) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let value = "x".repeat(100);
    let broker = runtime.block_on(async {
        let broker = TestBroker::start();
        broker.create_topic(TOPIC, 1).await;
        broker.produce_all(TOPIC, &vec![(Some("key"), value.as_str()); records]).await;
        broker
    });
    let (handled, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let told = Arc::clone(&all);
    let handler = move |message: Message| {
        let is_whole = message.key().is_some() && message.value().is_some_and(|it| it.len() == 100);
        if handled.fetch_add(usize::from(is_whole), Ordering::Relaxed) + 1 == records {
            told.notify_one();
        }
        async { Ok::<_, String>(()) }
    };
    let route = record(handler)
        .layer(Filter::new(|message: &Message| message.partition() == 0))
        .layer(Metrics::default());
    let app = broker.app(GROUP).topic(TOPIC, route);
    let counted = allocation_counter::measure(|| {
        let ended = runtime.block_on(app.run(async { all.notified().await }));
        ended.expect("the app runs");
    });
    counted.count_total
}

#[test]
fn a_record_is_handled_without_an_allocation() {
    // The difference leaves out what an app allocates at its start and end.
    let (few, many) = (allocations(RECORDS), allocations(3 * RECORDS));
    let of_records = many.saturating_sub(few);
    let records = 2 * RECORDS as u64;
    assert!(of_records < records / 10, "{of_records} allocations for {records} records");
}
