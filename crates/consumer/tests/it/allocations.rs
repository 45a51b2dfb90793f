//! What a record costs in allocations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    AnyRoute, Batch, Filter, Message, MessageRef, Metrics, Order, batch, record,
};
use tokio::sync::Notify;

use crate::world::{GROUP, TOPIC};

const RECORDS: usize = 20_000;
const KEYS: usize = 1_000;

/// Counts the records that a handler was given.
#[derive(Clone)]
struct Count {
    handled: Arc<AtomicUsize>,
    all: Arc<Notify>,
    records: usize,
}

impl Count {
    fn add(&self, message: MessageRef<'_>) {
        let is_whole = message.key().is_some() && message.value().is_some_and(|it| it.len() == 100);
        if self.handled.fetch_add(usize::from(is_whole), Ordering::Relaxed) + 1 == self.records {
            self.all.notify_one();
        }
    }
}

/// Allocations of an app, its fetcher and its handlers, which all run on this thread, while it
/// handles so many records.
fn allocations(records: usize, route: impl Fn(Count) -> AnyRoute) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let value = "x".repeat(100);
    let keys: Vec<_> = (0..KEYS).map(|number| number.to_string()).collect();
    let key = |number: usize| Some(keys[number % KEYS].as_str());
    let all: Vec<_> = (0..records).map(|number| (key(number), value.as_str())).collect();
    let broker = runtime.block_on(async {
        let broker = TestBroker::start();
        broker.create_topic(TOPIC, 1).await;
        broker.produce_all(TOPIC, &all).await;
        broker
    });
    let count = Count { handled: Arc::default(), all: Arc::default(), records };
    let app = broker.app(GROUP).topic(TOPIC, route(count.clone()));
    let counted = allocation_counter::measure(|| {
        let ended = runtime.block_on(app.run(async { count.all.notified().await }));
        ended.expect("the app runs");
    });
    counted.count_total
}

/// Fails if records cost more than the allocations of their fetches.
fn assert_no_allocation_per_record(route: impl Fn(Count) -> AnyRoute) {
    // The difference leaves out what an app allocates at its start and end.
    let (few, many) = (allocations(RECORDS, &route), allocations(3 * RECORDS, &route));
    let of_records = many.saturating_sub(few);
    let records = 2 * RECORDS as u64;
    assert!(of_records < records / 10, "{of_records} allocations for {records} records");
}

fn by_record(count: Count, order: Order) -> AnyRoute {
    let handler = move |message: Message| {
        count.add((&message).into());
        async { Ok::<_, String>(()) }
    };
    let route = record(handler).order(order);
    let route = route.layer(Filter::new(|message: &Message| message.partition() == 0));
    route.layer(Metrics::default()).into()
}

#[test]
fn a_record_is_handled_without_an_allocation() {
    assert_no_allocation_per_record(|count| by_record(count, Order::Partition));
}

#[test]
fn a_record_in_the_order_of_its_key_is_handled_without_an_allocation() {
    assert_no_allocation_per_record(|count| by_record(count, Order::by_key()));
}

#[test]
fn a_record_without_order_is_handled_without_an_allocation() {
    assert_no_allocation_per_record(|count| by_record(count, Order::None));
}

#[test]
fn a_batch_is_handled_without_an_allocation_per_record() {
    assert_no_allocation_per_record(|count| {
        let handler = move |records: Batch| {
            records.iter().for_each(|message| count.add(message));
            async { Ok::<_, String>(()) }
        };
        batch(handler).layer(Metrics::default()).into()
    });
}
