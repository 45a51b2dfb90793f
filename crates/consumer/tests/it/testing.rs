//! The test broker: what it does to apps, and how many there may be.

use std::time::Duration;

use futures_util::FutureExt;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, Message, Order, State, record};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::world::{DEADLINE, GROUP, Seen, TOPIC, broker, channel, next};

async fn note(message: Message, State(seen): State<UnboundedSender<Seen>>) -> Result<(), String> {
    seen.send(Seen::of(&message)).map_err(|error| error.to_string())
}

fn noting(app: App) -> (App, UnboundedReceiver<Seen>) {
    let (sender, seen) = channel();
    (app.state(sender).topic(TOPIC, record(note)), seen)
}

fn values(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|it| &*it.value).collect()
}

#[tokio::test]
async fn an_app_goes_on_after_its_connections_ended() {
    let broker = broker(1, &[(None, "one")]).await;
    let (app, mut seen) = noting(broker.app_with_faults(GROUP));
    let test = async {
        assert_eq!(values(&next(&mut seen, 1).await), ["one"]);
        for value in ["two", "three"] {
            broker.faults().disconnect();
            broker.produce(TOPIC, None, value).await;
            assert_eq!(values(&next(&mut seen, 1).await), [value]);
        }
    };
    app.run(test).await.expect("it runs");
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
}

#[tokio::test]
async fn held_fetches_come_once_they_are_let_go() {
    let broker = broker(1, &[(None, "one")]).await;
    let (app, mut seen) = noting(broker.app_with_faults(GROUP));
    let held = broker.faults().hold_fetches();
    let control = app.control();
    let test = async {
        control.assignment().wait_for(|it| it.len() == 1).await.expect("the app runs");
        assert_eq!(seen.try_recv().ok(), None);
        drop(held);
        assert_eq!(values(&next(&mut seen, 1).await), ["one"]);
    };
    app.run(test).await.expect("it runs");
}

#[tokio::test]
async fn delayed_fetches_go_by_the_clock() {
    let broker = broker(1, &[(None, "one")]).await;
    broker.faults().delay_fetches(Duration::from_secs(10));
    let (app, mut seen) = noting(broker.app_with_faults(GROUP));
    let test = async {
        let arrived = next(&mut seen, 1);
        tokio::pin!(arrived);
        let step = async || {
            tokio::task::yield_now().await;
            broker.clock().advance(Duration::from_secs(1));
        };
        let start = broker.clock().now();
        loop {
            tokio::select! {
                arrived = &mut arrived => break assert_eq!(values(&arrived), ["one"]),
                () = step() => {}
            }
        }
        assert!(broker.clock().now() - start >= Duration::from_secs(10));
    };
    app.run(test).await.expect("it runs");
}

#[tokio::test]
async fn a_rebalance_takes_a_partition_and_gives_it_back() {
    let broker = broker(2, &[]).await;
    let (app, _seen) = noting(broker.app(GROUP));
    let mut assignment = app.control().assignment();
    let test = async {
        assignment.wait_for(|it| it.len() == 2).await.expect("the app runs");
        let mut fewer = assignment.clone();
        let fewer = async { drop(fewer.wait_for(|it| it.len() == 1).await.expect("it runs")) };
        tokio::join!(broker.rebalance(GROUP, TOPIC), fewer);
        let back = tokio::time::timeout(DEADLINE, assignment.wait_for(|it| it.len() == 2)).await;
        drop(back.expect("it comes back").expect("the app runs"));
    };
    app.run(test).await.expect("it runs");
}

#[tokio::test]
async fn a_group_that_is_rewound_gets_records_again() {
    let broker = broker(1, &[(None, "one"), (None, "two")]).await;
    for again in [0, 1] {
        let (app, mut seen) = noting(broker.app(GROUP));
        let expected = ["one", "two"].get(again..).unwrap_or_default();
        let test = async {
            assert_eq!(values(&next(&mut seen, expected.len()).await), expected);
        };
        app.run(test).await.expect("it runs");
        broker.rewind(GROUP, TOPIC, 1).await;
    }
}

#[tokio::test]
async fn the_ledger_says_what_is_done() {
    let broker = broker(1, &[(None, "stuck"), (None, "one"), (None, "two")]).await;
    let (sender, mut seen) = channel();
    let handler = async |message: Message, State(seen): State<UnboundedSender<Seen>>| {
        if message.value() == Some(b"stuck") {
            return Err("stuck".to_owned());
        }
        seen.send(Seen::of(&message)).map_err(|error| error.to_string())
    };
    let app = broker.app(GROUP).state(sender).topic(TOPIC, record(handler).order(Order::None));
    app.run(next(&mut seen, 2).map(drop)).await.expect("it runs");
    let ledger = broker.ledger(GROUP, TOPIC, 0).await;
    let done = [0, 1, 2].map(|offset| ledger.is_done(offset));
    assert_eq!((ledger.base(), done), (0, [false, true, true]));
}

#[test]
fn many_tests_run_beside_each_other() {
    let test = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime starts").block_on(async {
            let broker = broker(1, &[(None, "one")]).await;
            let (app, mut seen) = noting(broker.app(GROUP));
            app.run(next(&mut seen, 1).map(drop)).await.expect("it runs");
            assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
        });
    };
    std::thread::scope(|scope| {
        for _test in 0..32 {
            scope.spawn(test);
        }
    });
}

#[test]
fn a_broker_leaves_nothing_behind() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let dir = runtime.expect("a runtime starts").block_on(async {
        let broker = TestBroker::start();
        let (app, _seen) = noting(broker.app_with_faults(GROUP));
        broker.create_topic(TOPIC, 1).await;
        app.run(std::future::ready(())).await.expect("it runs");
        broker.directory().to_owned()
    });
    assert!(!dir.exists(), "{}", dir.display());
}
