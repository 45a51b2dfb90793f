//! What handlers return, in transactions and without.

use std::time::Duration;

use moldau_client::{
    Admin, CommittedOffset, Delivery, FetcherOptions, GroupMetadata, GroupProtocol, Isolation,
    Producer, ProducerOptions, Record, TopicPartition,
};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    App, Attempt, Batch, DeadLetters, Error, Message, Order, Outgoing, Position, Reader, Retry,
    batch, record,
};
use moldau_protocol::ErrorCode;
use tokio::sync::oneshot;

use crate::world::{DEADLINE, GROUP, Seen, TOPIC, broker, channel, next, ticking, values};

const OUT: &str = "out";

async fn copy(message: Message) -> Result<Outgoing, String> {
    Ok(copy_of(&message, OUT))
}

fn copy_of(message: &Message, topic: &str) -> Outgoing {
    Outgoing::to(topic).value(message.value().unwrap_or_default().to_vec()).header("by", "copy")
}

/// All records of a topic up to its end, as readers of committed records see them.
async fn committed(broker: &TestBroker, topic: &str) -> Vec<Seen> {
    let isolation = Isolation::ReadCommitted;
    let fetcher = FetcherOptions { isolation, ..FetcherOptions::default() };
    let reader = Reader::new([broker.address()]).topic(topic, Position::Earliest);
    let mut records = reader.fetcher(fetcher).until_end().open().await.expect("it opens");
    let mut all = Vec::new();
    while let Some(message) = records.next().await {
        all.push(Seen::of(&message.expect("it can be read")));
    }
    all
}

/// Completes when the group has committed so many records.
async fn handled(broker: &TestBroker, count: i64) {
    let wait = async {
        while broker.committed(GROUP, TOPIC).await < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, wait).await.expect("all are handled");
}

async fn world(records: &[(Option<&str>, &str)]) -> TestBroker {
    let broker = broker(1, records).await;
    broker.create_topic(OUT, 1).await;
    broker
}

/// The offset of a topic that was deleted would hide records of the one that has its name since.
#[tokio::test]
async fn a_transaction_does_not_commit_offsets_of_a_deleted_topic_for_another() {
    let broker = world(&[]).await;
    let cluster = broker.cluster().await;
    let options =
        ProducerOptions { transactional_id: Some("one".to_owned()), ..ProducerOptions::default() };
    let producer = Producer::start(cluster, options, |_: &Delivery<'_>| {}).await.unwrap();
    let member = GroupMetadata::outside(GROUP);
    let topic_id = cluster.topic(TOPIC).await.unwrap().topic.id;
    let offset = CommittedOffset { topic_id, ..CommittedOffset::at(3) };
    let offsets = [(TopicPartition::of(TOPIC, 0), offset)];
    producer.begin_transaction(&[]).await.unwrap();
    producer.send_offsets_to_transaction(&member, &offsets).await.unwrap();
    producer.abort_transaction().await.unwrap();

    Admin::new(cluster).delete_topics(&[TOPIC.to_owned()]).await.unwrap();
    broker.create_topic(TOPIC, 1).await;
    producer.begin_transaction(&[]).await.unwrap();
    let sent = producer.send_offsets_to_transaction(&member, &offsets).await;
    assert_eq!(sent.unwrap_err().code(), Some(ErrorCode::UnknownTopicId));
    producer.abort_transaction().await.unwrap();
}

#[tokio::test]
async fn returned_records_are_sent_before_the_record_is_done() {
    let broker = world(&[(None, "1"), (None, "2")]).await;
    let app = broker.app(GROUP).topic(TOPIC, record(copy));
    app.run(handled(&broker, 2)).await.unwrap();
    let out = broker.read(OUT, 2).await;
    assert_eq!(out[1].value(), Some(b"2".as_slice()));
    assert_eq!(out[1].header("by"), Some(b"copy".as_slice()));
}

#[tokio::test]
async fn a_returned_record_that_cannot_be_sent_fails_its_record() {
    let broker = world(&[(None, "1")]).await;
    broker.create_topic("dead", 1).await;
    let to_nowhere = async |message: Message| Ok::<_, String>(copy_of(&message, "nowhere"));
    for is_exactly_once in [false, true] {
        let group = format!("group-{is_exactly_once}");
        let route = record(to_nowhere).layer(DeadLetters::to("dead"));
        let mut app = broker.app(&group).topic(TOPIC, route);
        if is_exactly_once {
            app = app.exactly_once("one");
        }
        let done = async {
            while broker.committed(&group, TOPIC).await < 1 {
                tokio::task::yield_now().await;
            }
        };
        app.run(done).await.unwrap();
    }
    assert_eq!(values(&committed(&broker, "dead").await), ["1", "1"]);
}

#[tokio::test]
async fn what_failed_attempts_returned_is_not_sent_and_dead_letters_are_part_of_the_transaction() {
    let broker = world(&[(None, "good"), (None, "poison"), (None, "flaky")]).await;
    broker.create_topic("dead", 1).await;
    let handler = async |message: Message, Attempt(attempt): Attempt| {
        let is_done = match message.value() {
            Some(b"poison") => false,
            Some(b"flaky") => attempt == 2,
            _ => true,
        };
        if is_done { Ok(vec![copy_of(&message, OUT); 2]) } else { Err("it tastes bad") }
    };
    let route = record(handler)
        .layer(Retry::exponential(2, Duration::from_secs(1)))
        .layer(DeadLetters::to("dead"))
        .order(Order::by_key());
    let app = broker.app(GROUP).topic(TOPIC, route).exactly_once("one");
    ticking(&broker, app.run(handled(&broker, 3))).await.unwrap();
    let mut out = committed(&broker, OUT).await;
    out.sort_by(|one, other| one.value.cmp(&other.value));
    assert_eq!(values(&out), ["flaky", "flaky", "good", "good"]);
    assert_eq!(values(&committed(&broker, "dead").await), ["poison"]);
}

#[tokio::test]
async fn a_batch_and_what_it_returned_are_one_transaction() {
    let broker = world(&[(None, "a"), (None, "b"), (None, "c")]).await;
    let handler = async |batch: Batch| {
        let values = batch.iter().filter_map(|it| it.value()).collect::<Vec<_>>().concat();
        Ok::<_, String>(Some(Outgoing::to(OUT).value(values)))
    };
    let app = broker.app(GROUP).topic(TOPIC, batch(handler)).exactly_once("one");
    app.run(handled(&broker, 3)).await.unwrap();
    assert_eq!(values(&committed(&broker, OUT).await).concat(), "abc");
}

#[tokio::test]
async fn records_of_aborted_transactions_are_not_handled() {
    let broker = world(&[]).await;
    let options =
        ProducerOptions { transactional_id: Some("other".to_owned()), ..Default::default() };
    let ignore = |_: &Delivery<'_>| {};
    let producer = Producer::start(broker.cluster().await, options, ignore).await.unwrap();
    let partition = producer.partition(TOPIC, 0).await.unwrap();
    for (value, is_committed) in [("aborted", false), ("committed", true)] {
        producer.begin_transaction(&[partition]).await.unwrap();
        let value = Some(value.as_bytes());
        let record = Record { token: 0, timestamp: 1, key: None, value, headers: &[] };
        producer.send(partition, &record).unwrap();
        match is_committed {
            true => producer.commit_transaction().await.unwrap(),
            false => producer.abort_transaction().await.unwrap(),
        }
    }
    let app = broker.app(GROUP).topic(TOPIC, record(copy)).exactly_once("one");
    let done = async {
        while committed(&broker, OUT).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    app.run(done).await.unwrap();
    assert_eq!(values(&committed(&broker, OUT).await), ["committed"]);
}

#[tokio::test]
async fn a_transaction_that_is_refused_is_handled_again() {
    let broker = broker(1, &[(None, "1"), (None, "2"), (None, "3")]).await;
    let admin = Admin::new(broker.cluster().await);
    let small = ("max.message.bytes".to_owned(), "200".to_owned());
    let spec =
        moldau_client::TopicSpec { configs: vec![small], ..moldau_client::TopicSpec::new(OUT, 1) };
    admin.create_topics(&[spec], false).await.unwrap().remove(0).unwrap();
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let seen = Seen::of(&message);
        sender.send(seen.clone()).unwrap();
        async move { Ok::<_, String>(Outgoing::to(OUT).value(seen.value.repeat(300))) }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler)).exactly_once("one");
    let test = async {
        // The second time shows that the transaction was aborted.
        let first = next(&mut receiver, 6).await;
        assert_eq!(values(&first)[..4], ["1", "2", "3", "1"]);
        assert_eq!(broker.committed(GROUP, TOPIC).await, 0);
        let large = ("max.message.bytes".to_owned(), Some("10000".to_owned()));
        admin
            .alter_configs(&moldau_client::ConfigResource::Topic(OUT.into()), &[large])
            .await
            .unwrap();
        // A record that was found to be too large meanwhile waits for its next attempt.
        ticking(&broker, handled(&broker, 3)).await;
    };
    app.run(test).await.unwrap();
    assert_eq!(committed(&broker, OUT).await.len(), 3);
}

#[tokio::test]
async fn an_app_whose_id_another_one_takes_ends() {
    let broker = world(&[(None, "1")]).await;
    let app = |group| broker.app(group).topic(TOPIC, record(copy)).exactly_once("one");
    let (end, ends) = oneshot::channel::<()>();
    let first = app(GROUP).run(std::future::pending());
    let second = async {
        handled(&broker, 1).await;
        app("others").run(async { drop(ends.await) }).await
    };
    let test = async {
        while broker.committed("others", TOPIC).await < 1 {
            tokio::task::yield_now().await;
        }
        broker.produce(TOPIC, None, "2").await;
    };
    let all = async {
        let fenced = async {
            let ended = first.await;
            drop(end);
            ended
        };
        tokio::join!(fenced, second, test)
    };
    let (first, second, ()) = tokio::time::timeout(DEADLINE, all).await.expect("it is fenced");
    match first {
        Err(Error::Client(error)) => assert!(error.is_fenced(), "{error}"),
        other => panic!("{other:?}"),
    }
    second.unwrap();
    let mut out = committed(&broker, OUT).await;
    out.sort_by(|one, other| one.value.cmp(&other.value));
    assert!(values(&out)[..2] == ["1", "1"], "{out:?}");
}

/// Members come and go, some without a farewell; each record is copied once all the same.
async fn rebalances(protocol: GroupProtocol, order: Order) {
    let broker = TestBroker::start();
    broker.create_topic(TOPIC, 4).await;
    broker.create_topic(OUT, 2).await;
    let app = |id: &str| -> App {
        let mut options = broker.options();
        options.membership.protocol = protocol;
        options.producer.transaction_timeout = Duration::from_secs(1);
        let route = record(copy).order(order);
        broker.app(GROUP).options(options).topic(TOPIC, route).exactly_once(id)
    };
    let written: Vec<String> = (0..400).map(|number| number.to_string()).collect();
    let records: Vec<_> = written.iter().map(|it| (Some(it.as_str()), it.as_str())).collect();
    let (end, ends) = oneshot::channel::<()>();
    let steady = app("steady").run(async { drop(ends.await) });
    let others = async {
        for (round, records) in records.chunks(100).enumerate() {
            let before = i64::try_from(round * 100).unwrap();
            let other = app("other").run(handled(&broker, before + 50));
            let write = broker.produce_all(TOPIC, records);
            let (ended, ()) = tokio::join!(other, write);
            ended.unwrap();
        }
        handled(&broker, 400).await;
        drop(end);
    };
    let (ended, ()) = tokio::join!(steady, others);
    ended.unwrap();
    let mut out: Vec<_> = committed(&broker, OUT).await.into_iter().map(|it| it.value).collect();
    out.sort_by_key(|value| value.parse::<u32>().unwrap());
    assert_eq!(out, written);
}

#[tokio::test]
async fn rebalances_neither_lose_nor_repeat() {
    rebalances(GroupProtocol::Consumer, Order::by_key()).await;
}

#[tokio::test]
async fn rebalances_of_classic_groups_neither_lose_nor_repeat() {
    rebalances(GroupProtocol::Classic, Order::Partition).await;
}
