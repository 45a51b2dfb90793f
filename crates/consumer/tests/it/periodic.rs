//! Periodic jobs of apps and of routes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Message, State, Tick, record};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::world::{DEADLINE, GROUP, TOPIC, broker};

const INTERVAL: Duration = Duration::from_secs(5);

async fn ignore(_: Message) -> Result<(), String> {
    Ok(())
}

async fn report(tick: Tick, State(sender): State<UnboundedSender<Tick>>) -> Result<(), String> {
    sender.send(tick).map_err(|error| error.to_string())
}

async fn next(ticks: &mut UnboundedReceiver<Tick>) -> Tick {
    let tick = tokio::time::timeout(DEADLINE, ticks.recv()).await;
    tick.expect("a tick comes").expect("the app runs")
}

#[tokio::test]
async fn each_partition_is_ticked_without_records() {
    let broker = broker(3, &[]).await;
    let (sender, mut ticks) = unbounded_channel();
    let route = record(ignore).periodic(INTERVAL, report);
    let app = broker.app(GROUP).state(sender).topic(TOPIC, route);
    let control = app.control();
    let shutdown = async {
        control.assignment().wait_for(|it| it.len() == 3).await.expect("the app runs");
        for _round in 0..3 {
            let mut partitions = Vec::new();
            while partitions.len() < 3 {
                tokio::select! {
                    tick = next(&mut ticks) => partitions.extend(tick.partition().cloned()),
                    () = step(&broker) => {}
                }
            }
            partitions.sort_unstable();
            let numbers: Vec<_> = partitions.iter().map(|it| it.partition).collect();
            assert_eq!(numbers, [0, 1, 2], "each partition once a round");
        }
    };
    app.run(shutdown).await.expect("it runs");
}

/// Moves the clock on by a fraction of the interval, in turns with others.
async fn step(broker: &TestBroker) {
    for _turn in 0..50 {
        tokio::task::yield_now().await;
    }
    broker.clock().advance(INTERVAL / 5);
}

#[tokio::test]
async fn the_app_ticks_every_interval() {
    let broker = broker(1, &[]).await;
    let (sender, mut ticks) = unbounded_channel();
    let app = broker.app(GROUP).state(sender).periodic(INTERVAL, report);
    let app = app.topic(TOPIC, record(ignore));
    let control = app.control();
    let start = broker.clock().now();
    let shutdown = async {
        control.assignment().wait_for(|it| it.len() == 1).await.expect("the app runs");
        broker.clock().advance(INTERVAL - Duration::from_millis(1));
        tokio::task::yield_now().await;
        assert!(ticks.try_recv().is_err(), "it is not due");
        broker.clock().advance(Duration::from_millis(1));
        let tick = next(&mut ticks).await;
        assert_eq!((tick.at() - start, tick.partition()), (INTERVAL, None));
        // Two are missed, one is called.
        broker.clock().advance(INTERVAL * 3);
        assert_eq!(next(&mut ticks).await.at() - start, INTERVAL * 2);
        tokio::task::yield_now().await;
        assert!(ticks.try_recv().is_err(), "missed ticks are left out");
        broker.clock().advance(INTERVAL);
        assert_eq!(next(&mut ticks).await.at() - start, INTERVAL * 5);
    };
    app.run(shutdown).await.expect("it runs");
}

#[tokio::test]
async fn a_job_that_fails_or_panics_is_called_again() {
    let broker = broker(1, &[]).await;
    let (sender, mut ticks) = unbounded_channel();
    let calls = Arc::new(AtomicUsize::new(0));
    let failing = move |tick: Tick| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        sender.send(tick).expect("the test runs");
        async move {
            assert!(call != 0, "the first");
            if call == 1 { Err("the second") } else { Ok(()) }
        }
    };
    let app = broker.app(GROUP).periodic(INTERVAL, failing).topic(TOPIC, record(ignore));
    let control = app.control();
    let shutdown = async {
        control.assignment().wait_for(|it| it.len() == 1).await.expect("the app runs");
        for _call in 0..3 {
            broker.clock().advance(INTERVAL);
            next(&mut ticks).await;
        }
    };
    app.run(shutdown).await.expect("it runs");
}

#[tokio::test]
async fn calls_for_a_partition_never_overlap_and_finish_at_the_end() {
    let broker = broker(1, &[]).await;
    let (sender, mut ticks) = unbounded_channel();
    let running = Arc::new(AtomicUsize::new(0));
    let finished = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&finished);
    let clock = broker.clock().clone();
    let slow = move |tick: Tick| {
        let (sender, clock) = (sender.clone(), clock.clone());
        let (running, finished) = (Arc::clone(&running), Arc::clone(&finished));
        async move {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "calls overlap");
            let sent = sender.send(());
            clock.sleep_until(tick.at() + INTERVAL * 3).await;
            running.fetch_sub(1, Ordering::SeqCst);
            finished.fetch_add(1, Ordering::SeqCst);
            sent
        }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(ignore).periodic(INTERVAL, slow));
    let control = app.control();
    let mut calls = 0;
    let shutdown = async {
        control.assignment().wait_for(|it| it.len() == 1).await.expect("the app runs");
        while calls < 3 {
            tokio::select! {
                call = ticks.recv() => calls += call.map_or(0, |()| 1),
                () = step(&broker) => {}
            }
        }
    };
    let run = async { app.run(shutdown).await.expect("it runs") };
    crate::world::ticking(&broker, run).await;
    assert!(counted.load(Ordering::SeqCst) >= 2);
}
