//! The memory of an app whose handler does not go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moldau_client::FetcherOptions;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, AppOptions, Control, Message, Order, Pause, record};
use tokio::sync::Notify;

use crate::world::{self, GROUP, TOPIC};

const VALUE_BYTES: usize = 1_000;
const QUEUE_BYTES: usize = 256 * 1024;

fn app(broker: &TestBroker) -> App {
    let buffer_bytes_max = 1024 * 1024;
    let fetcher = FetcherOptions {
        partition_bytes_max: 128 * 1024,
        buffer_bytes_max,
        ..FetcherOptions::default()
    };
    App::new([broker.address()]).group(GROUP).options(AppOptions { fetcher, ..broker.options() })
}

/// Waits until the only partition is not read on.
async fn paused(control: &Control) {
    loop {
        let status = control.status().await;
        let partition = status.routes.iter().find_map(|route| route.partitions.first());
        if let Some(it) = partition
            && matches!(it.paused, Some(Pause::QueueFull | Pause::Memory))
        {
            assert!(it.queued_bytes <= QUEUE_BYTES + VALUE_BYTES, "{it:?}");
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Most bytes that an app has in memory whose handler stands still for ten minutes while so many
/// records wait, and then goes on.
fn bytes_of_stall(records: usize, order: Order) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let value = "x".repeat(VALUE_BYTES);
    let broker = runtime.block_on(async {
        let broker = TestBroker::start();
        broker.create_topic(TOPIC, 1).await;
        broker.produce_all(TOPIC, &vec![(Some("key"), value.as_str()); records]).await;
        broker
    });
    let (opened, all) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (gate, told) = (Arc::clone(&opened), Arc::clone(&all));
    let handled = Arc::new(AtomicUsize::new(0));
    let handler = move |message: Message| {
        let (gate, told, handled) = (Arc::clone(&gate), Arc::clone(&told), Arc::clone(&handled));
        async move {
            if message.offset() == 0 {
                gate.notified().await;
            }
            if handled.fetch_add(1, Ordering::Relaxed) + 1 == records {
                told.notify_one();
            }
            Ok::<_, String>(())
        }
    };
    let route = record(handler).order(order).queue_max(10_000, QUEUE_BYTES);
    let app = app(&broker).topic(TOPIC, route);
    let control = app.control();
    let shutdown = async {
        paused(&control).await;
        broker.clock().advance(Duration::from_secs(600));
        paused(&control).await;
        opened.notify_one();
        all.notified().await;
        world::drained(&broker, GROUP, TOPIC).await;
    };
    let counted = allocation_counter::measure(|| {
        let shutdown = async {
            let ended = tokio::time::timeout(world::DEADLINE, shutdown).await;
            ended.expect("the app stands still, then goes on");
        };
        runtime.block_on(app.run(shutdown)).expect("the app runs");
    });
    counted.bytes_max
}

#[test]
fn a_handler_that_stands_still_takes_bounded_memory() {
    for order in [Order::Partition, Order::by_key()] {
        let (few, many) = (bytes_of_stall(3_000, order), bytes_of_stall(12_000, order));
        assert!(many < few + (1 << 20), "{few} bytes for 3 MB of records, {many} for 12 MB");
    }
}
