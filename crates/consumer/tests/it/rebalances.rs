//! Partitions that move between apps, and apps that end in the middle of their work.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_client::GroupProtocol;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, AppOptions, Control, Message, Order, record};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::world::{
    DEADLINE, GROUP, Seen, TOPIC, broker, channel, next, run_until, ticking, values,
};

/// An app that reports each record. Its handler of the value "stuck" never ends.
fn reporting(broker: &TestBroker, sender: UnboundedSender<Seen>) -> App {
    let handler = move |message: Message| {
        let sender = sender.clone();
        async move {
            let seen = Seen::of(&message);
            let is_stuck = seen.value == "stuck";
            let sent = sender.send(seen);
            if is_stuck {
                std::future::pending::<()>().await;
            }
            sent
        }
    };
    broker.app(GROUP).topic(TOPIC, record(handler).order(Order::None))
}

async fn assigned(control: &Control, partitions: usize) {
    let mut assignment = control.assignment();
    let waited = assignment.wait_for(|assigned| assigned.len() == partitions);
    let waited = tokio::time::timeout(DEADLINE, waited).await;
    waited.expect("the group rebalances").expect("the app runs");
}

#[tokio::test]
async fn a_restart_repeats_only_what_was_not_done() {
    let records = [(None, "1"), (None, "stuck"), (None, "2"), (None, "3")];
    let broker = broker(1, &records).await;
    let (sender, mut receiver) = channel();
    // The handler is cancelled once it had its time.
    let app = reporting(&broker, sender);
    ticking(&broker, run_until(app, &mut receiver, 4)).await;
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
    let (sender, mut receiver) = channel();
    broker.produce(TOPIC, None, "4").await;
    let app = reporting(&broker, sender);
    let seen = ticking(&broker, run_until(app, &mut receiver, 2)).await;
    let handled: BTreeSet<_> = values(&seen).into_iter().collect();
    assert_eq!(handled, BTreeSet::from(["4", "stuck"]));
}

#[tokio::test]
async fn a_crash_repeats_only_what_was_not_committed() {
    crash(1).await;
}

#[tokio::test]
async fn a_crash_of_shards_repeats_only_what_was_not_committed() {
    crash(3).await;
}

async fn crash(shards: usize) {
    let records: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    let records: Vec<_> = records.iter().map(|it| (Some(it.as_str()), it.as_str())).collect();
    let broker = broker(3, &records).await;
    let static_member = |app: App| {
        let mut options = AppOptions { ..broker.options() };
        // Another member with the id takes over at once.
        options.membership.protocol = GroupProtocol::Classic;
        options.membership.instance_id = Some("one".to_owned());
        app.options(options).shards(shards)
    };
    let (sender, mut receiver) = channel();
    let app = static_member(reporting(&broker, sender));
    let place = |seen: Seen| (seen.partition, seen.offset);
    let mut handled = BTreeSet::new();
    let crashed = async {
        handled.extend(next(&mut receiver, 50).await.into_iter().map(place));
        while broker.committed(GROUP, TOPIC).await == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = app.run(std::future::pending()) => panic!("it ended: {ended:?}"),
        () = crashed => {}
    }
    let committed = broker.committed(GROUP, TOPIC).await;
    // Its threads end soon.
    while let Some(seen) = receiver.recv().await {
        handled.insert(place(seen));
    }
    broker.produce(TOPIC, None, "last").await;
    let (sender, mut receiver) = channel();
    let all_are_committed = async {
        while broker.committed(GROUP, TOPIC).await < 101 {
            tokio::task::yield_now().await;
        }
    };
    let app = static_member(reporting(&broker, sender));
    let ended = tokio::time::timeout(DEADLINE, app.run(all_are_committed)).await;
    ended.expect("all are committed").expect("the app runs");
    let again: Vec<_> = std::iter::from_fn(|| receiver.try_recv().ok()).map(place).collect();
    let left = usize::try_from(101 - committed).expect("no more than all");
    assert!(again.len() <= left, "what was committed does not come again");
    handled.extend(again);
    assert_eq!(handled.len(), 101, "none is lost");
}

async fn partitions_move(protocol: GroupProtocol, shards: usize) {
    let broker = broker(4, &[]).await;
    let (sender, mut receiver) = channel();
    let app = || {
        let mut options = broker.options();
        options.membership.protocol = protocol;
        reporting(&broker, sender.clone()).options(options).shards(shards)
    };
    let keys: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let records: Vec<_> = keys.iter().map(|it| (Some(it.as_str()), it.as_str())).collect();
    let (first, second) = (app(), app());
    let (of_first, of_second) = (first.control(), second.control());
    let (end_first, first_ends) = oneshot::channel::<()>();
    let (end_second, second_ends) = oneshot::channel::<()>();
    let run_first = first.run(async { first_ends.await.expect("a message") });
    let run_second = async {
        assigned(&of_first, 4).await;
        second.run(async { second_ends.await.expect("a message") }).await
    };
    let test = async {
        assigned(&of_first, 4).await;
        broker.produce_all(TOPIC, &records).await;
        assigned(&of_second, 2).await;
        assigned(&of_first, 2).await;
        broker.produce_all(TOPIC, &records).await;
        let mut seen = next(&mut receiver, 400).await;
        end_second.send(()).expect("the app runs");
        assigned(&of_first, 4).await;
        broker.produce_all(TOPIC, &records).await;
        seen.extend(next(&mut receiver, 200).await);
        end_first.send(()).expect("the app runs");
        seen
    };
    let (first_ended, second_ended, seen) = tokio::join!(run_first, run_second, test);
    first_ended.expect("it leaves");
    second_ended.expect("it leaves");
    assert!(receiver.try_recv().is_err(), "no record comes twice");
    let handled: BTreeSet<_> = seen.iter().map(|it| (it.partition, it.offset)).collect();
    assert_eq!(handled.len(), 600);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 600);
}

#[tokio::test]
async fn partitions_move_without_a_repeated_record() {
    partitions_move(GroupProtocol::Consumer, 1).await;
}

#[tokio::test]
async fn partitions_move_without_a_repeated_record_in_classic_groups() {
    partitions_move(GroupProtocol::Classic, 1).await;
}

#[tokio::test]
async fn partitions_move_without_a_repeated_record_between_shards() {
    partitions_move(GroupProtocol::Consumer, 3).await;
}

#[tokio::test]
async fn a_handler_that_blocks_stops_its_shard_alone() {
    let keys: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let mut records = vec![(None, "block")];
    records.extend(keys.iter().map(|it| (Some(it.as_str()), "other")));
    let broker = broker(2, &records).await;
    let written = broker.read(TOPIC, records.len()).await;
    let of_second = written.iter().filter(|message| message.partition() == 1).count();
    let (release, is_released) = std::sync::mpsc::channel::<()>();
    let is_released = Arc::new(Mutex::new(is_released));
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        if message.value() == Some(b"block") {
            let released = is_released.lock().expect("nobody panics").recv();
            released.expect_err("the sender is dropped");
        }
        std::future::ready(sender.send(Seen::of(&message)))
    };
    let options = AppOptions { shards: 2, drain_timeout: Duration::ZERO, ..broker.options() };
    let blocking = broker.app(GROUP).topic(TOPIC, record(handler)).options(options);
    let seen = run_until(blocking, &mut receiver, of_second).await;
    assert!(seen.iter().all(|it| it.partition == 1), "{seen:?}");
    assert_eq!(broker.committed(GROUP, TOPIC).await, i64::try_from(of_second).expect("a few"));
    let (sender, mut receiver) = channel();
    let left = records.len() - of_second;
    let seen = run_until(reporting(&broker, sender), &mut receiver, left).await;
    assert!(seen.iter().all(|it| it.partition == 0), "{seen:?}");
    drop(release);
    assert_eq!(broker.committed(GROUP, TOPIC).await, i64::try_from(records.len()).expect("a few"));
}
