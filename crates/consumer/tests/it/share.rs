//! Apps that read as members of a share group.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use moldau_client::{Admin, ConfigResource};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    App, Attempt, Batch, DeadLetters, Delay, Error, Failure, Message, Order, Retry, RetryTopics,
    Workers, batch, header, record,
};
use tokio::sync::{Barrier, Semaphore};

use crate::world::{self, DEADLINE, GROUP, Seen, TOPIC, channel, next, run_until, ticking, values};

/// A broker whose share group begins at the first record.
pub(crate) async fn broker(partitions: i32, records: &[(Option<&str>, &str)]) -> TestBroker {
    let broker = world::broker(partitions, records).await;
    configure(&broker, "share.auto.offset.reset", "earliest").await;
    broker
}

/// Sets a configuration of the group.
pub(crate) async fn configure(broker: &TestBroker, key: &str, value: &str) {
    configure_group(broker, GROUP, key, value).await;
}

/// Sets a configuration of any group.
pub(crate) async fn configure_group(broker: &TestBroker, group: &str, key: &str, value: &str) {
    let change = (key.to_owned(), Some(value.to_owned()));
    let group = ConfigResource::Group(group.to_owned());
    Admin::new(broker.cluster().await).alter_configs(&group, &[change]).await.unwrap();
}

pub(crate) fn app(broker: &TestBroker) -> App {
    App::new([broker.address()]).options(broker.options()).share(GROUP)
}

pub(crate) fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

pub(crate) fn records(numbers: &[String]) -> Vec<(Option<&str>, &str)> {
    numbers.iter().map(|it| (Some(it.as_str()), it.as_str())).collect()
}

#[tokio::test]
async fn every_record_of_a_share_group_is_handled_and_none_comes_again() {
    let numbers = numbers(1000);
    let broker = broker(3, &records(&numbers)).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| std::future::ready(sender.send(Seen::of(&message)));
    let app_of = || app(&broker).topic(TOPIC, record(handler.clone()));
    let first = app_of();
    let control = first.control();
    let mut seen = Vec::new();
    let handled = async {
        seen = next(&mut receiver, 1000).await;
        while control.status().await.routes[0].share.unwrap().accepted < 1000 {
            tokio::task::yield_now().await;
        }
        let share = control.status().await.routes[0].share.unwrap();
        assert_eq!((share.held, share.released, share.rejected, share.lost), (0, 0, 0, 0));
    };
    first.run(handled).await.unwrap();
    assert_eq!(values(&seen).into_iter().collect::<BTreeSet<_>>().len(), 1000);
    broker.produce(TOPIC, None, "another").await;
    assert_eq!(values(&run_until(app_of(), &mut receiver, 1).await), ["another"]);
}

#[tokio::test]
async fn apps_of_a_share_group_work_on_one_partition_side_by_side() {
    let broker = broker(1, &[]).await;
    // Each in a batch of its own: a member gets whole batches.
    for number in numbers(20) {
        broker.produce(TOPIC, None, &number).await;
    }
    let both = Arc::new(Barrier::new(2));
    let gate = Arc::new(Semaphore::new(0));
    let run = async || {
        let (sender, mut receiver) = channel();
        let gate = Arc::clone(&gate);
        let opened = Arc::clone(&gate);
        let handler = move |message: Message| {
            let (sender, gate) = (sender.clone(), Arc::clone(&gate));
            async move {
                sender.send(Seen::of(&message)).unwrap();
                gate.acquire().await.map(drop)
            }
        };
        let app = app(&broker).workers(2).topic(TOPIC, record(handler));
        let mut seen = Vec::new();
        let shutdown = async {
            seen = next(&mut receiver, 2).await;
            // Both handle records at this moment.
            both.wait().await;
            opened.add_permits(1);
        };
        app.run(shutdown).await.unwrap();
        seen
    };
    let (one, other) = tokio::join!(run(), run());
    let offsets: BTreeSet<_> = one.iter().chain(&other).map(|it| it.offset).collect();
    assert_eq!(offsets.len(), 4, "{one:?} {other:?}");
}

#[tokio::test]
async fn a_failed_record_is_released_after_its_pause_and_its_attempt_is_the_delivery() {
    let broker = broker(1, &[(None, "poor"), (None, "good")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        let seen = Seen::of(&message);
        let value = format!("{} {attempt}", seen.value);
        sender.send(Seen { value, ..seen.clone() }).unwrap();
        std::future::ready(match seen.value == "poor" && attempt < 3 {
            true => Err("not yet".to_owned()),
            false => Ok(()),
        })
    };
    let route = record(handler).layer(Retry::exponential(4, Duration::from_secs(60)));
    let app = app(&broker).topic(TOPIC, route);
    let control = app.control();
    let shutdown = async {
        let mut first = next(&mut receiver, 2).await;
        first.sort_by_key(|it| it.offset);
        assert_eq!(values(&first), ["poor 1", "good 1"]);
        let again = ticking(&broker, next(&mut receiver, 2)).await;
        assert_eq!(values(&again), ["poor 2", "poor 3"]);
        while control.status().await.routes[0].share.unwrap().accepted < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(control.status().await.routes[0].share.unwrap().released, 2);
    };
    app.run(shutdown).await.unwrap();
}

#[tokio::test]
async fn what_is_given_up_is_rejected_or_becomes_a_dead_letter() {
    for has_dead_letters in [false, true] {
        let broker = broker(1, &[(None, "broken"), (None, "poor"), (None, "good")]).await;
        broker.create_topic("dead", 1).await;
        let handler = move |message: Message| {
            std::future::ready(match message.value() {
                Some(b"broken") => Err(Failure::permanent("broken")),
                Some(b"poor") => Err(moldau_consumer::Cause::Failed("poor".into()).into()),
                _ => Ok(()),
            })
        };
        let dead_letters = has_dead_letters.then(|| DeadLetters::to("dead"));
        let retry = Retry::exponential(2, Duration::from_secs(1));
        let route = record(handler).layer(retry).layer(dead_letters);
        let app = app(&broker).topic(TOPIC, route);
        let control = app.control();
        let (accepted, rejected) = if has_dead_letters { (3, 0) } else { (1, 2) };
        let shutdown = async {
            let settled = async {
                loop {
                    let share = control.status().await.routes[0].share.unwrap();
                    if share.accepted + share.rejected == 3 {
                        return (share.accepted, share.rejected);
                    }
                    tokio::task::yield_now().await;
                }
            };
            let settled = tokio::time::timeout(DEADLINE, ticking(&broker, settled)).await.unwrap();
            assert_eq!(settled, (accepted, rejected));
        };
        app.run(shutdown).await.unwrap();
        if has_dead_letters {
            let letters = broker.read("dead", 2).await;
            let attempts = |it: &Message| it.header(header::ATTEMPTS).map(<[u8]>::to_vec);
            let attempts: BTreeSet<_> = letters.iter().filter_map(attempts).collect();
            assert_eq!(attempts, BTreeSet::from([b"1".to_vec(), b"2".to_vec()]));
        }
    }
}

#[tokio::test]
async fn what_an_app_did_not_start_goes_to_another_when_it_ends() {
    let numbers = numbers(50);
    let broker = broker(1, &records(&numbers)).await;
    let (sender, mut receiver) = channel();
    let gate = Arc::new(Semaphore::new(0));
    let (opened, told) = (Arc::clone(&gate), sender.clone());
    let stuck = move |message: Message| {
        let (sender, gate) = (told.clone(), Arc::clone(&gate));
        async move {
            sender.send(Seen::of(&message)).unwrap();
            gate.acquire().await.map(drop)
        }
    };
    let first = app(&broker).workers(3).topic(TOPIC, record(stuck));
    let mut seen = Vec::new();
    let shutdown = async {
        seen = next(&mut receiver, 3).await;
        opened.add_permits(3);
    };
    first.run(shutdown).await.unwrap();
    while let Ok(more) = receiver.try_recv() {
        seen.push(more);
    }
    let handler = move |message: Message| std::future::ready(sender.send(Seen::of(&message)));
    let second = app(&broker).topic(TOPIC, record(handler));
    let count = 50 - seen.len();
    seen.extend(run_until(second, &mut receiver, count).await);
    assert_eq!(values(&seen).into_iter().collect::<BTreeSet<_>>().len(), 50);
}

#[tokio::test]
async fn a_delayed_record_waits_and_counts_no_attempt() {
    let broker = broker(1, &[(None, "late")]).await;
    let (sender, mut receiver) = channel();
    let has_come = Arc::new(AtomicBool::new(false));
    let come = Arc::clone(&has_come);
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        come.store(true, Ordering::SeqCst);
        assert_eq!(attempt, 1);
        std::future::ready(sender.send(Seen::of(&message)))
    };
    let app = app(&broker).topic(TOPIC, record(handler).layer(Delay::by(Duration::from_secs(60))));
    let control = app.control();
    let shutdown = async {
        while control.status().await.routes[0].share.unwrap().held < 1 {
            tokio::task::yield_now().await;
        }
        assert!(!has_come.load(Ordering::SeqCst));
        ticking(&broker, next(&mut receiver, 1)).await;
    };
    app.run(shutdown).await.unwrap();
}

#[tokio::test]
async fn what_a_share_group_cannot_do_is_refused_before_the_app_runs() {
    let handler = || record(async |_: Message| Ok::<(), String>(()));
    let app = || App::new(["127.0.0.1:1"]).share(GROUP);
    let retry_topics = RetryTopics::to("group", [Duration::from_secs(1)]);
    let refused = [
        app().topic("a", handler()).exactly_once("id"),
        app().topic("a", handler()).segment(0, 2),
        app().topic("a", handler()).shards(2),
        app().topic("a", handler()).workers(Workers::Auto),
        app().topic("a", handler()).scheduled_messages("messages"),
        app().topic("a", handler().order(Order::by_key())),
        app().topic("a", handler().layer(retry_topics)),
        app().topic("a", batch(async |_: Batch| Ok::<(), String>(()))),
        app().pattern("a.*", handler()),
        app().partitions("a", [0], handler()),
    ];
    for (number, app) in refused.into_iter().enumerate() {
        let ended = app.run(std::future::ready(())).await;
        assert!(matches!(ended, Err(Error::NotShared(_))), "{number}: {ended:?}");
    }
}
