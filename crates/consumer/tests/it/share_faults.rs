//! Apps of a share group whose locks, connections, sessions or membership are disturbed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{AcknowledgeMode, ShareConsumer, ShareOptions};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{AnyRoute, App, Attempt, Control, Delay, Message, ShareStatus, record};
use moldau_protocol::messages::share_fetch_request::FetchTopic;
use moldau_protocol::messages::{ShareFetchRequest, ShareFetchResponse, ShareGroupDescribeRequest};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::share::{app, broker, configure, numbers, records};
use crate::world::{DEADLINE, GROUP, Seen, TOPIC, channel, next, run_until, values};

/// An app whose connections are disturbed.
fn app_with_faults(broker: &TestBroker) -> App {
    App::new([broker.faults().address()]).options(broker.options()).share(GROUP)
}

/// A handler that tells what it sees and in which attempt, and ends when it gets a permit.
fn gated(sender: &UnboundedSender<Seen>, gate: &Arc<Semaphore>) -> AnyRoute {
    let (sender, gate) = (sender.clone(), Arc::clone(gate));
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        let (sender, gate) = (sender.clone(), Arc::clone(&gate));
        async move {
            sender.send(in_attempt(&message, attempt)).unwrap();
            gate.acquire().await.map(|permit| permit.forget())
        }
    };
    record(handler).into()
}

fn in_attempt(message: &Message, attempt: u32) -> Seen {
    let seen = Seen::of(message);
    Seen { value: format!("{} {attempt}", seen.value), ..seen }
}

/// Waits until the counters of the only route are such.
async fn until(control: &Control, is_so: impl Fn(&ShareStatus) -> bool) -> ShareStatus {
    let wait = async {
        loop {
            let status = control.status().await.routes[0].share.unwrap();
            if is_so(&status) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.expect("the counters get there")
}

/// The members of the group.
async fn members(broker: &TestBroker) -> Vec<String> {
    let groups = vec![GROUP.to_owned()];
    let request = ShareGroupDescribeRequest { group_ids: groups, ..Default::default() };
    let described = broker.cluster().await.send_any(&request).await.unwrap();
    let members = described.groups.into_iter().flat_map(|group| group.members);
    members.map(|member| member.member_id).collect()
}

/// Speaks for the only member over another connection.
async fn in_its_name(broker: &TestBroker, share_session_epoch: i32) -> ShareFetchResponse {
    let request = ShareFetchRequest {
        group_id: Some(GROUP.to_owned()),
        member_id: members(broker).await.pop(),
        share_session_epoch,
        topics: Vec::<FetchTopic>::new(),
        ..Default::default()
    };
    broker.cluster().await.send_any(&request).await.unwrap()
}

#[tokio::test]
async fn a_record_stays_with_a_handler_that_takes_longer_than_its_lock() {
    let broker = broker(1, &[(None, "long")]).await;
    configure(&broker, "share.record.lock.duration.ms", "4000").await;
    broker.create_topic("witness", 1).await;
    broker.produce("witness", None, "locked").await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let first = app(&broker).workers(1).topic(TOPIC, gated(&sender, &gate));
    let control = first.control();
    let (elsewhere, mut of_other) = channel();
    let other = app(&broker).workers(1).topic(TOPIC, gated(&elsewhere, &gate));
    let shutdown = async {
        assert_eq!(values(&next(&mut receiver, 1).await), ["long 1"]);
        let rest = async {
            // A lock that began later and that nobody renews ends, so that of the app's record
            // would have ended too.
            let options = ShareOptions {
                topics: vec!["witness".to_owned()],
                acknowledge: AcknowledgeMode::Explicit,
                ..ShareOptions::default()
            };
            let joined = ShareConsumer::join(broker.cluster().await, GROUP, options).await;
            let mut witness = joined.unwrap();
            assert_eq!(witness.next().await.unwrap().delivery_count(0), Some(1));
            assert_eq!(witness.next().await.unwrap().delivery_count(0), Some(2));
            witness.leave().await.unwrap();
            broker.produce(TOPIC, None, "short").await;
            // The app has a worker for one record only, but may have locked this one too.
            gate.add_permits(2);
            until(&control, |share| share.accepted > 0).await
        };
        let mut lost = None;
        other.run(async { lost = Some(rest.await.lost) }).await.unwrap();
        assert_eq!(lost, Some(0));
    };
    first.run(shutdown).await.unwrap();
    let mut others = Vec::new();
    while let Ok(seen) = of_other.try_recv() {
        others.push(seen.value);
    }
    assert!(others.iter().all(|it| it.starts_with("short")), "{others:?}");
}

#[tokio::test]
async fn records_in_hand_when_a_connection_ends_are_handled_once() {
    let broker = broker(1, &records(&numbers(3))).await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let app = app_with_faults(&broker).workers(2).topic(TOPIC, gated(&sender, &gate));
    let control = app.control();
    let mut seen = Vec::new();
    let shutdown = async {
        seen = next(&mut receiver, 2).await;
        let faults = broker.faults();
        let held = faults.hold_fetches();
        faults.disconnect();
        broker.produce(TOPIC, None, "late").await;
        drop(held);
        // It comes with the others, which the broker gives again.
        until(&control, |share| share.held == 4).await;
        gate.add_permits(4);
        seen.extend(next(&mut receiver, 2).await);
        let share = until(&control, |share| share.accepted == 4).await;
        assert_eq!((share.held, share.lost), (0, 0));
    };
    app.run(shutdown).await.unwrap();
    let mut values = values(&seen);
    values.sort_unstable();
    // What no handler had begun may have been delivered for nothing.
    let names: Vec<_> = values.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(names, ["0", "1", "2", "late"]);
    assert!(receiver.try_recv().is_err());
}

#[tokio::test]
async fn nothing_is_lost_while_connections_end_again_and_again() {
    let numbers = numbers(400);
    let broker = broker(3, &records(&numbers)).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sender = sender.clone();
        async move {
            tokio::task::yield_now().await;
            sender.send(Seen::of(&message))
        }
    };
    let first = app_with_faults(&broker).workers(4).topic(TOPIC, record(handler.clone()));
    let mut handled = BTreeSet::new();
    let shutdown = async {
        while handled.len() < 400 {
            let seen = next(&mut receiver, 1).await;
            let is_first = handled.insert(seen[0].value.clone());
            if is_first && handled.len() % 40 == 0 {
                broker.faults().disconnect();
            }
        }
    };
    first.run(shutdown).await.unwrap();
    while let Ok(seen) = receiver.try_recv() {
        handled.insert(seen.value);
    }
    // What could not be acknowledged comes again; all the rest is done.
    broker.produce(TOPIC, None, "another").await;
    let second = app(&broker).topic(TOPIC, record(handler));
    let control = second.control();
    let mut again = Vec::new();
    let shutdown = async {
        while again.last().is_none_or(|it| it != "another") {
            again.push(next(&mut receiver, 1).await.remove(0).value);
        }
        until(&control, |share| share.held == 0).await;
    };
    second.run(shutdown).await.unwrap();
    assert_eq!(handled, numbers.into_iter().collect());
    assert!(again.len() < 400, "{again:?}");
}

#[tokio::test]
async fn a_member_that_was_put_out_joins_again_and_goes_on() {
    let broker = broker(1, &[(None, "in hand")]).await;
    configure(&broker, "share.session.timeout.ms", "1000").await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let app = app_with_faults(&broker).workers(2).topic(TOPIC, gated(&sender, &gate));
    let control = app.control();
    let shutdown = async {
        let mut seen = next(&mut receiver, 1).await;
        let held = broker.faults().hold_heartbeats();
        while !members(&broker).await.is_empty() {
            tokio::task::yield_now().await;
        }
        drop(held);
        while members(&broker).await.is_empty() {
            tokio::task::yield_now().await;
        }
        broker.produce(TOPIC, None, "after it").await;
        gate.add_permits(2);
        seen.extend(next(&mut receiver, 1).await);
        assert_eq!(values(&seen), ["in hand 1", "after it 1"]);
        let share = until(&control, |share| share.accepted == 2).await;
        assert_eq!((share.held, share.lost), (0, 0));
    };
    app.run(shutdown).await.unwrap();
}

#[tokio::test]
async fn a_share_session_that_the_broker_has_lost_is_opened_again() {
    // Ended by the last request of a session, the broker does not find it; begun anew, it has
    // another epoch.
    for epoch in [-1, 0] {
        let broker = broker(1, &[(None, "in hand")]).await;
        configure(&broker, "share.record.lock.duration.ms", "2000").await;
        let (sender, mut receiver) = channel();
        let gate = Arc::new(Semaphore::new(0));
        let app = app(&broker).workers(2).topic(TOPIC, gated(&sender, &gate));
        let control = app.control();
        let mut seen = Vec::new();
        let shutdown = async {
            seen = next(&mut receiver, 1).await;
            assert_eq!(in_its_name(&broker, epoch).await.error_code, 0);
            broker.produce(TOPIC, None, "after it").await;
            gate.add_permits(10);
            until(&control, |share| share.accepted >= 2 && share.held == 0).await;
        };
        app.run(shutdown).await.unwrap();
        while let Ok(more) = receiver.try_recv() {
            seen.push(more);
        }
        let offsets: BTreeSet<_> = seen.iter().map(|it| it.offset).collect();
        assert_eq!(offsets, BTreeSet::from([0, 1]), "{epoch}: {seen:?}");
        // Nothing is left of the records that were in hand.
        broker.produce(TOPIC, None, "last").await;
        let (sender, mut receiver) = channel();
        let second = app_of(&broker, &sender);
        assert_eq!(values(&run_until(second, &mut receiver, 1).await), ["last 1"], "{epoch}");
    }
}

/// An app that tells what it sees.
fn app_of(broker: &TestBroker, sender: &UnboundedSender<Seen>) -> App {
    app(broker).topic(TOPIC, gated(sender, &Arc::new(Semaphore::new(100))))
}

#[tokio::test]
async fn what_is_fetched_while_an_app_drains_goes_to_another_at_once() {
    let broker = broker(1, &[(None, "long")]).await;
    configure(&broker, "share.record.lock.duration.ms", "60000").await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let first = app_with_faults(&broker).workers(2).topic(TOPIC, gated(&sender, &gate));
    let (elsewhere, mut of_other) = channel();
    let draining = Semaphore::new(0);
    let run_first = async {
        let shutdown = async {
            next(&mut receiver, 1).await;
            draining.add_permits(1);
        };
        first.run(shutdown).await.unwrap();
    };
    let run_other = async {
        draining.acquire().await.unwrap().forget();
        let held = broker.faults().hold_fetches();
        broker.produce(TOPIC, None, "short").await;
        drop(held);
        let seen = run_until(app_of(&broker, &elsewhere), &mut of_other, 1).await;
        assert!(seen[0].value.starts_with("short"), "{seen:?}");
        gate.add_permits(1);
    };
    tokio::join!(run_first, run_other);
}

#[tokio::test]
async fn a_record_that_an_app_only_held_counts_as_delivered() {
    let broker = broker(1, &[(None, "waiting")]).await;
    let handler = async |_: Message| Ok::<(), String>(());
    let delayed = record(handler).layer(Delay::by(Duration::from_secs(60)));
    let first = app(&broker).topic(TOPIC, delayed);
    let control = first.control();
    let shutdown = async {
        until(&control, |share| share.held == 1).await;
    };
    first.run(shutdown).await.unwrap();
    let (sender, mut receiver) = channel();
    let seen = run_until(app_of(&broker, &sender), &mut receiver, 1).await;
    assert_eq!(values(&seen), ["waiting 2"]);
}
