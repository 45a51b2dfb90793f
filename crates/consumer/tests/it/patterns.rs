//! What an app reads: patterns of topics, partitions of its own, segments of keys.

use std::collections::{BTreeMap, BTreeSet};

use moldau_client::{Admin, GroupProtocol};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{AnyRoute, Error, Message, record};
use tokio::sync::mpsc::UnboundedSender;

use crate::world::{DEADLINE, GROUP, Seen, TOPIC, broker, channel, next, run_until, values};

/// A route that reports each record, with a name before its value.
fn reporting(name: &'static str, sender: &UnboundedSender<Seen>) -> AnyRoute {
    let sender = sender.clone();
    let handler = move |message: Message| {
        let seen = Seen::of(&message);
        let value = format!("{name} {}", seen.value);
        let sent = sender.send(Seen { value, ..seen });
        async move { sent }
    };
    record(handler).into()
}

async fn pattern_follows_topics(protocol: GroupProtocol) {
    let broker = TestBroker::start();
    broker.create_topic("orders.eu", 1).await;
    broker.create_topic("orders.us", 1).await;
    broker.create_topic("my.orders.eu", 1).await;
    for topic in ["orders.eu", "orders.us", "my.orders.eu"] {
        broker.produce(topic, None, topic).await;
    }
    let (sender, mut receiver) = channel();
    let mut options = broker.options();
    options.membership.protocol = protocol;
    // The client looks for topics of a classic group when metadata is as old as this.
    options.cluster.metadata_max_age = std::time::Duration::from_millis(20);
    let app = broker
        .app(GROUP)
        .options(options)
        .pattern(r"orders\..*", reporting("any", &sender))
        .pattern("orders.*", reporting("late", &sender))
        .topic("orders.us", reporting("us", &sender));
    let control = app.control();
    let test = async {
        let first = next(&mut receiver, 2).await;
        let first: BTreeSet<_> = values(&first).into_iter().collect();
        assert_eq!(first, BTreeSet::from(["any orders.eu", "us orders.us"]));
        broker.create_topic("orders.asia", 1).await;
        broker.produce("orders.asia", None, "tea").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["any tea"]);
        let admin = Admin::new(broker.cluster().await);
        admin.delete_topics(&["orders.eu".to_owned()]).await.unwrap();
        let mut assignment = control.assignment();
        let gone = assignment.wait_for(|all| all.iter().all(|it| &*it.topic != "orders.eu"));
        let gone = tokio::time::timeout(DEADLINE, gone).await;
        drop(gone.expect("the deleted topic is no longer read").expect("the app runs"));
        broker.produce("orders.asia", None, "silk").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["any silk"]);
    };
    app.run(test).await.unwrap();
    assert_eq!(broker.committed(GROUP, "orders.asia").await, 2);
    assert_eq!(broker.committed(GROUP, "my.orders.eu").await, 0);
}

#[tokio::test]
async fn a_pattern_follows_topics_that_come_and_go() {
    pattern_follows_topics(GroupProtocol::Consumer).await;
}

#[tokio::test]
async fn a_pattern_follows_topics_that_come_and_go_in_classic_groups() {
    pattern_follows_topics(GroupProtocol::Classic).await;
}

#[tokio::test]
async fn partitions_are_read_without_a_member_and_committed_for_a_group() {
    let records: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    let records: Vec<_> = records.iter().map(|it| (Some(it.as_str()), it.as_str())).collect();
    let broker = broker(2, &records).await;
    let of_one = broker.read(TOPIC, 20).await.iter().filter(|it| it.partition() == 1).count();
    let (sender, mut receiver) = channel();
    let app = || broker.app(GROUP).partitions(TOPIC, [1], reporting("one", &sender));
    let seen = run_until(app(), &mut receiver, of_one).await;
    assert!(seen.iter().all(|it| it.partition == 1));
    assert_eq!(broker.committed(GROUP, TOPIC).await, i64::try_from(of_one).unwrap());
    let key = seen[0].key.clone().unwrap();
    broker.produce(TOPIC, Some(&key), "again").await;
    assert_eq!(values(&run_until(app(), &mut receiver, 1).await), ["one again"]);
}

#[tokio::test]
async fn partitions_without_a_group_are_read_from_the_start_each_time() {
    let broker = broker(1, &[(None, "1")]).await;
    let (sender, mut receiver) = channel();
    for _start in 0..2 {
        let app = moldau_consumer::App::new([broker.address()]);
        let app = app.options(broker.options());
        let app = app.partitions(TOPIC, [0], reporting("it", &sender));
        assert_eq!(values(&run_until(app, &mut receiver, 1).await), ["it 1"]);
    }
}

#[tokio::test]
async fn segments_share_the_keys_of_a_partition() {
    let keys: Vec<String> = (0..300).map(|number| format!("key-{}", number % 60)).collect();
    let records: Vec<_> = keys.iter().map(|key| (Some(key.as_str()), key.as_str())).collect();
    let broker = broker(3, &records).await;
    broker.produce_all(TOPIC, &[(None, "one"), (None, "two"), (None, "three")]).await;
    let mut owners: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut total = 0;
    for index in 0..3 {
        let (sender, mut receiver) = channel();
        let app = broker.app(GROUP).segment(index, 3).topic(TOPIC, reporting("", &sender));
        let group = format!("{GROUP}-{index}");
        let done = async {
            while broker.committed(&group, TOPIC).await < 303 {
                tokio::task::yield_now().await;
            }
        };
        app.run(async { tokio::time::timeout(DEADLINE, done).await.expect("it ends") })
            .await
            .unwrap();
        let mut last = BTreeMap::new();
        while let Ok(seen) = receiver.try_recv() {
            total += 1;
            let before = last.insert((seen.partition, seen.key.clone()), seen.offset);
            assert!(before.is_none_or(|before| before < seen.offset), "{seen:?}");
            if let Some(key) = seen.key {
                owners.entry(key).or_default().insert(index);
            }
        }
        assert!(last.len() > 10, "segment {index} has its share: {}", last.len());
    }
    assert_eq!((total, owners.len()), (303, 60), "each record once");
    assert!(owners.values().all(|owners| owners.len() == 1));
}

#[tokio::test]
async fn apps_that_cannot_run_say_why() {
    let broker = broker(1, &[]).await;
    let (sender, _receiver) = channel();
    let app = |group| broker.app(group);
    let route = || reporting("", &sender);
    let both = app(GROUP).topic(TOPIC, route()).partitions("other", [0], route());
    let never = std::future::pending;
    assert!(matches!(both.run(never()).await, Err(Error::AssignedAndSubscribed)));
    let twice = app(GROUP).partitions(TOPIC, [0], route()).partitions(TOPIC, [1], route());
    assert!(matches!(twice.run(never()).await, Err(Error::RouteTwice { .. })));
    let none = app(GROUP).segment(3, 3).topic(TOPIC, route()).run(never()).await;
    assert!(matches!(none, Err(Error::NoSegment { index: 3, count: 3 })));
    let pattern = app(GROUP).pattern("or(ders", route()).run(never()).await.unwrap_err();
    assert!(pattern.to_string().contains("or(ders"), "{pattern}");
}
