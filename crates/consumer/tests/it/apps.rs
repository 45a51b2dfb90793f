//! Apps from their first record to their last commit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use moldau_consumer::{
    App, Batch, DeadLetters, Error, Json, Message, Order, Retry, State, Tick, Workers, batch,
    record,
};
use tokio::sync::{Notify, Semaphore};

use crate::world::{self, GROUP, Seen, TOPIC, broker, channel, next, run_until, ticking, values};

fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn every_record_is_handled_once_and_committed() {
    let numbers = numbers(1000);
    let records: Vec<_> = numbers.iter().map(|it| (Some(it.as_str()), it.as_str())).collect();
    let broker = broker(3, &records).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler));
    let seen = run_until(app, &mut receiver, 1000).await;
    let handled: BTreeSet<_> = values(&seen).into_iter().collect();
    assert_eq!(handled.len(), 1000);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1000);
}

#[tokio::test]
async fn another_run_goes_on_after_the_first() {
    let broker = broker(1, &[(None, "one"), (None, "two")]).await;
    for expected in [vec!["one", "two"], vec!["three"]] {
        let (sender, mut receiver) = channel();
        let handler = move |message: Message| {
            let sent = sender.send(Seen::of(&message));
            async move { sent }
        };
        let app = broker.app(GROUP).topic(TOPIC, record(handler));
        let seen = run_until(app, &mut receiver, expected.len()).await;
        assert_eq!(values(&seen), expected);
        broker.produce(TOPIC, None, "three").await;
    }
}

#[tokio::test]
async fn records_of_a_key_stay_in_order_while_keys_run_beside_each_other() {
    let numbers = numbers(400);
    let keys: Vec<String> = (0..400).map(|number| format!("key {}", number % 7)).collect();
    let records: Vec<_> =
        keys.iter().zip(&numbers).map(|(key, it)| (Some(key.as_str()), it.as_str())).collect();
    let broker = broker(2, &records).await;
    let (sender, mut receiver) = channel();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let seen_most = Arc::clone(&most);
    let handler = move |message: Message| {
        let (sender, running, most) = (sender.clone(), Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            for _turn in 0..fastrand::u8(..5) {
                tokio::task::yield_now().await;
            }
            running.fetch_sub(1, Ordering::SeqCst);
            sender.send(Seen::of(&message))
        }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler).order(Order::by_key()));
    let seen = run_until(app, &mut receiver, 400).await;
    let mut last: BTreeMap<_, i64> = BTreeMap::new();
    for it in &seen {
        let before = last.insert(it.key.clone(), it.offset);
        assert!(before.is_none_or(|before| before < it.offset), "{it:?} came after {before:?}");
    }
    assert!(seen_most.load(Ordering::SeqCst) > 1, "keys run beside each other");
    assert_eq!(broker.committed(GROUP, TOPIC).await, 400);
}

#[tokio::test]
async fn a_batch_is_a_row_of_records() {
    let broker = broker(1, &[(None, "a"), (None, "b"), (None, "c"), (None, "d")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |batch: Batch| {
        assert!(batch.len() <= 3);
        let sent = batch.iter().try_for_each(|message| sender.send(Seen::of(message)));
        async move { sent }
    };
    let app = broker.app(GROUP).topic(TOPIC, batch(handler).records_max(3));
    let seen = run_until(app, &mut receiver, 4).await;
    assert_eq!(values(&seen), ["a", "b", "c", "d"]);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 4);
}

#[derive(serde::Deserialize)]
struct Purchase {
    item: String,
    count: u32,
}

#[tokio::test]
async fn handlers_take_typed_values_and_state() {
    let broker = broker(1, &[(None, r#"{"item":"book","count":2}"#)]).await;
    let (sender, mut receiver) = channel();
    let typed = move |Json(order): Json<Purchase>, message: Message, State(name): State<String>| {
        let value = format!("{name}: {} {}", order.count, order.item);
        let sent = sender.send(Seen { value, ..Seen::of(&message) });
        async move { sent }
    };
    let app = broker.app(GROUP).state("shop".to_owned()).topic(TOPIC, record(typed));
    let seen = run_until(app, &mut receiver, 1).await;
    assert_eq!(values(&seen), ["shop: 2 book"]);
}

#[tokio::test]
async fn workers_are_added_while_the_app_runs() {
    let broker = broker(1, &[(None, "a"), (None, "b"), (None, "c")]).await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let handler = move |message: Message| {
        let (sender, gate) = (sender.clone(), Arc::clone(&gate));
        async move {
            sender.send(Seen::of(&message)).unwrap();
            gate.acquire().await.map(|permit| permit.forget())
        }
    };
    let app = broker.app(GROUP).workers(1).topic(TOPIC, record(handler).order(Order::None));
    let control = app.control();
    let shutdown = async {
        next(&mut receiver, 1).await;
        assert!(receiver.try_recv().is_err(), "one worker runs one handler");
        control.set_workers(3);
        next(&mut receiver, 2).await;
        opened.add_permits(3);
    };
    app.run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
}

#[tokio::test]
async fn workers_follow_the_load() {
    let broker = broker(1, &[(None, "x"); 4_000]).await;
    let (sender, mut receiver) = channel();
    let clock = broker.clock().clone();
    let running = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&most);
    let handler = move |message: Message| {
        let (sender, clock) = (sender.clone(), clock.clone());
        let (running, most) = (Arc::clone(&running), Arc::clone(&counted));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            clock.sleep_until(clock.now() + Duration::from_millis(400)).await;
            running.fetch_sub(1, Ordering::Relaxed);
            sender.send(Seen::of(&message))
        }
    };
    let route = record(handler).order(Order::None);
    let app = broker.app(GROUP).workers(Workers::Auto).topic(TOPIC, route);
    let handled = async {
        next(&mut receiver, 4_000).await;
        world::drained(&broker, GROUP, TOPIC).await;
    };
    ticking(&broker, app.run(handled)).await.unwrap();
    assert!(most.load(Ordering::Relaxed) >= 128, "{most:?} ran at a time");
}

#[tokio::test]
async fn a_slow_route_leaves_workers_to_others() {
    let broker = broker(1, &[(None, "slow"); 10]).await;
    broker.create_topic("quick", 1).await;
    broker.produce_all("quick", &[(None, "quick"); 10]).await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let told = sender.clone();
    let slow = move |message: Message| {
        let (sender, gate) = (told.clone(), Arc::clone(&gate));
        async move {
            sender.send(Seen::of(&message)).unwrap();
            gate.acquire().await.map(|permit| permit.forget())
        }
    };
    let quick = move |message: Message| std::future::ready(sender.send(Seen::of(&message)));
    let app = broker
        .app(GROUP)
        .workers(4)
        .topic(TOPIC, record(slow).order(Order::None).concurrency(3))
        .topic("quick", record(quick));
    let shutdown = async {
        let seen = next(&mut receiver, 13).await;
        assert_eq!(values(&seen).iter().filter(|it| **it == "slow").count(), 3);
        opened.add_permits(10);
        next(&mut receiver, 7).await;
    };
    app.run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 10);
}

#[tokio::test]
async fn a_full_queue_pauses_its_partition_alone() {
    let broker = broker(1, &[(None, "x"); 50]).await;
    broker.create_topic("quiet", 1).await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let stuck = move |_: Message| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            gate.notify_one();
            Ok::<_, String>(())
        }
    };
    let quiet = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let app = broker
        .app(GROUP)
        .topic(TOPIC, record(stuck).queue_max(5, 1 << 20))
        .topic("quiet", record(quiet));
    let shutdown = async {
        for number in ["1", "2", "3"] {
            broker.produce("quiet", None, number).await;
            next(&mut receiver, 1).await;
        }
        opened.notify_one();
        while broker.committed(GROUP, TOPIC).await < 50 {
            tokio::task::yield_now().await;
        }
    };
    app.run(shutdown).await.unwrap();
}

#[tokio::test]
async fn partitions_whose_records_fail_leave_the_buffer_to_others() {
    let (keys, value) = (numbers(1600), "x".repeat(1000));
    let records: Vec<_> = keys.iter().map(|it| (Some(it.as_str()), value.as_str())).collect();
    let broker = broker(16, &records).await;
    broker.create_topic("quiet", 1).await;
    let (sender, mut receiver) = channel();
    let is_repaired = Arc::new(AtomicBool::new(false));
    let (repaired, to_failing) = (Arc::clone(&is_repaired), sender.clone());
    let failing = move |message: Message| {
        let handled = match repaired.load(Ordering::SeqCst) {
            false => Err("not yet".to_owned()),
            true => to_failing.send(Seen::of(&message)).map_err(|error| error.to_string()),
        };
        async move { handled }
    };
    let quiet = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let mut options = broker.options();
    options.fetcher.buffer_bytes_max = 128 * 1024;
    options.fetcher.partition_bytes_max = 64 * 1024;
    let app = broker
        .app(GROUP)
        .options(options)
        .topic(TOPIC, record(failing).queue_max(5, 1 << 20))
        .topic("quiet", record(quiet));
    let shutdown = async {
        for number in ["1", "2", "3"] {
            broker.produce("quiet", None, number).await;
            assert_eq!(values(&next(&mut receiver, 1).await), [number]);
        }
        is_repaired.store(true, Ordering::SeqCst);
        let handled = ticking(&broker, next(&mut receiver, 1600)).await;
        let keys: BTreeSet<_> = handled.into_iter().map(|seen| seen.key).collect();
        assert_eq!(keys.len(), 1600);
    };
    app.run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1600);
}

#[tokio::test]
async fn an_app_that_cannot_run_says_why() {
    let handler = || record(async |_: Message| Ok::<(), String>(()));
    let shutdown = std::future::ready(());
    let app = App::new(["127.0.0.1:1"]).topic("a", handler());
    assert!(matches!(app.run(shutdown.clone()).await, Err(Error::NoGroup)));
    let app = App::new(["127.0.0.1:1"]).group(GROUP);
    assert!(matches!(app.run(shutdown.clone()).await, Err(Error::NoRoute)));
    let app = App::new(["127.0.0.1:1"]).group(GROUP).topic("a", handler()).topic("a", handler());
    assert!(matches!(app.run(shutdown).await, Err(Error::RouteTwice { .. })));
}

#[tokio::test]
async fn an_app_without_the_state_that_its_handlers_take_does_not_start() {
    let app = || App::new(["127.0.0.1:1"]).group(GROUP);
    let plain = || record(async |_: Message| Ok::<(), String>(()));
    let stateful = || record(async |_: Message, State(_): State<Duration>| Ok::<(), String>(()));
    let job = async |_: Tick, State(_): State<Duration>| Ok::<(), String>(());
    let interval = Duration::from_secs(1);
    let layered =
        || stateful().layer(Retry::exponential(2, interval)).layer(DeadLetters::to("dead"));
    let apps = [
        app().topic("a", stateful()),
        app().topic("a", layered()).state(7_u8),
        app().topic("a", plain().periodic(interval, job)),
        app().topic("a", plain()).periodic(interval, job),
        app().share(GROUP).topic("a", stateful()),
    ];
    for (case, app) in apps.into_iter().enumerate() {
        let ended = app.run(std::future::ready(())).await;
        let is_refused = matches!(&ended, Err(Error::NoState("core::time::Duration")));
        assert!(is_refused, "case {case}: {ended:?}");
    }
    let broker = broker(1, &[]).await;
    let app = broker.app(GROUP).topic(TOPIC, layered()).state(interval);
    app.run(std::future::ready(())).await.expect("it has the state");
}

#[tokio::test]
async fn a_route_that_reads_its_own_dead_letters_is_refused() {
    let app = || App::new(["127.0.0.1:1"]).group(GROUP);
    let route =
        || record(async |_: Message| Ok::<(), String>(())).layer(DeadLetters::to("orders.dead"));
    let own = [
        app().topic("orders.dead", route()),
        app().pattern("orders.*", route()),
        app().partitions("orders.dead", [0], route()),
    ];
    for app in own {
        let ended = app.run(std::future::ready(())).await;
        let Err(Error::OwnDeadLetters { topic }) = ended else { panic!("{ended:?}") };
        assert_eq!(topic, "orders.dead");
    }
    let broker = broker(1, &[]).await;
    let other = record(async |_: Message| Ok::<(), String>(()));
    let app = broker.app(GROUP).pattern("orders.*", route()).topic("orders.dead", other);
    app.run(std::future::ready(())).await.expect("another route takes them");
}
