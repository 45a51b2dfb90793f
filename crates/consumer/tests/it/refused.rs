//! Topics that refuse what handlers and layers send to them.

use std::collections::BTreeSet;
use std::time::Duration;

use moldau_client::{Admin, ConfigResource, FetcherOptions, Isolation};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    App, DeadLetters, Message, MessageRef, Order, Outgoing, Pause, Pipe, Position, Reader, Retry,
    RetryTopics, Status, header, record,
};

use crate::admin::{get, port, until_status};
use crate::status::status_when;
use crate::world::{DEADLINE, GROUP, TOPIC, broker, drained, ticking};

const DEAD: &str = "orders.dead";
const OUT: &str = "invoices";
/// What the topics of these tests refuse, unless they are told otherwise.
const TOO_LARGE: usize = 3000;

async fn limit(broker: &TestBroker, topic: &str, bytes: usize) {
    let limit = [("max.message.bytes".to_owned(), Some(bytes.to_string()))];
    let topic = ConfigResource::Topic(topic.to_owned());
    Admin::new(broker.cluster().await).alter_configs(&topic, &limit).await.unwrap();
}

/// Topics that refuse large records.
async fn with_topics(broker: &TestBroker, topics: &[&str]) {
    for topic in topics {
        broker.create_topic(topic, 1).await;
        limit(broker, topic, 2000).await;
    }
}

/// Returns a record that is large where the value is "large".
async fn invoice(message: Message) -> Result<Outgoing, String> {
    let is_large = message.value() == Some(b"large");
    let value = vec![b'x'; if is_large { TOO_LARGE } else { 10 }];
    Ok(Outgoing::to(OUT).key(message.value().unwrap_or_default().to_vec()).value(value))
}

fn blocked(status: &Status) -> Option<String> {
    let partition = status.routes.first()?.partitions.first()?;
    (partition.paused == Some(Pause::Blocked)).then(|| partition.trouble.clone())?
}

/// The app stops at offset 1, says why everywhere, and goes on once the topic takes large records.
async fn blocks_until_it_is_mended(broker: &TestBroker, app: App, refusing: &str) {
    let app = app.admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        let status = status_when(&control, |it| blocked(it).is_some()).await;
        let why = blocked(&status).unwrap();
        let words = format!("blocked at offset 1: produce to {refusing}-0: MessageTooLarge");
        assert!(why.starts_with(&words), "{why}");
        let line = "moldau_consumer_paused{topic=\"orders\",partition=\"0\",cause=\"blocked\"} 1";
        let metrics = get(port, "/metrics").await.body;
        assert!(metrics.contains(line), "{metrics}");
        // Other causes may come first in the answer, such as a heartbeat that is late.
        let words = format!("The app does not go on in orders-0: {words}");
        let unready = async {
            while !until_status(port, "/readyz", 503).await.body.starts_with(&words) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, unready).await.expect("/readyz names the blocked partition");
        assert_eq!(get(port, "/healthz").await.status, 200);
        // The record before it is done.
        while broker.committed(GROUP, TOPIC).await < 1 {
            tokio::task::yield_now().await;
        }
        limit(broker, refusing, 1_000_000).await;
        ticking(broker, drained(broker, GROUP, TOPIC)).await;
        status_when(&control, |it| blocked(it).is_none()).await;
        until_status(port, "/readyz", 200).await;
    };
    app.run(test).await.unwrap();
}

async fn three() -> TestBroker {
    let broker = broker(1, &[(None, "small"), (None, "large"), (None, "last")]).await;
    with_topics(&broker, &[OUT, DEAD]).await;
    broker
}

#[tokio::test]
async fn a_returned_record_that_its_topic_refuses_blocks_until_that_is_mended() {
    let broker = three().await;
    let app = broker.app(GROUP).topic(TOPIC, record(invoice));
    blocks_until_it_is_mended(&broker, app, OUT).await;
    assert_eq!(broker.read(OUT, 3).await[1].value().map(<[u8]>::len), Some(TOO_LARGE));
}

#[tokio::test]
async fn a_piped_record_that_its_topic_refuses_blocks_until_that_is_mended() {
    let broker = three().await;
    let large = |it: MessageRef<'_>| match it.value() {
        Some(b"large") => Some(vec![b'x'; TOO_LARGE]),
        value => value.map(<[u8]>::to_vec),
    };
    let handler = async |_: Message| Ok::<(), String>(());
    let app = broker.app(GROUP).topic(TOPIC, record(handler).layer(Pipe::to(OUT).value(large)));
    blocks_until_it_is_mended(&broker, app, OUT).await;
}

/// A record whose dead letter and retry are too large for their topics.
async fn large() -> TestBroker {
    let value = "x".repeat(TOO_LARGE);
    let broker = broker(1, &[(None, "small"), (None, &value), (None, "last")]).await;
    with_topics(&broker, &[DEAD, "retry-1"]).await;
    broker
}

async fn fails_if_large(message: Message) -> Result<(), &'static str> {
    if message.value().is_some_and(|value| value.len() == TOO_LARGE) { Err("no") } else { Ok(()) }
}

#[tokio::test]
async fn a_dead_letter_that_its_topic_refuses_blocks_until_that_is_mended() {
    let broker = large().await;
    let route = record(fails_if_large).layer(DeadLetters::to(DEAD));
    blocks_until_it_is_mended(&broker, broker.app(GROUP).topic(TOPIC, route), DEAD).await;
    assert_eq!(broker.read(DEAD, 1).await[0].header(header::CAUSE), Some(b"no".as_slice()));
}

#[tokio::test]
async fn a_record_that_its_retry_topic_refuses_becomes_a_dead_letter() {
    let broker = large().await;
    limit(&broker, DEAD, 1_000_000).await;
    let retries = RetryTopics::to("retry", [Duration::from_secs(1)]);
    let route = record(fails_if_large).layer(retries).layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    app.run(ticking(&broker, drained(&broker, GROUP, TOPIC))).await.unwrap();
    let letter = &broker.read(DEAD, 1).await[0];
    let cause = String::from_utf8_lossy(letter.header(header::CAUSE).unwrap()).into_owned();
    assert!(cause.starts_with("produce to retry-1-0: MessageTooLarge"), "{cause}");
}

#[tokio::test]
async fn a_refused_output_is_tried_again_and_becomes_a_dead_letter_with_the_refusal() {
    let broker = three().await;
    let route = record(invoice).layer(Retry::exponential(2, Duration::from_secs(1)));
    let app = broker.app(GROUP).topic(TOPIC, route.layer(DeadLetters::to(DEAD)));
    app.run(ticking(&broker, drained(&broker, GROUP, TOPIC))).await.unwrap();
    let letter = &broker.read(DEAD, 1).await[0];
    let text = |key| String::from_utf8_lossy(letter.header(key).unwrap()).into_owned();
    assert_eq!((text(header::OFFSET), text(header::ATTEMPTS)), ("1".into(), "2".into()));
    assert!(text(header::CAUSE).starts_with("produce to invoices-0: MessageTooLarge"));
}

/// A batch is refused as a whole: records that only shared it are not to blame.
#[tokio::test]
async fn records_in_the_batch_of_a_refused_one_are_delivered() {
    let names: Vec<String> = (0..200).map(|number| format!("small {number}")).collect();
    let mut records: Vec<_> = names.iter().map(|name| (None, name.as_str())).collect();
    records.insert(100, (None, "large"));
    let broker = broker(1, &records).await;
    with_topics(&broker, &[OUT, DEAD]).await;
    let mut options = broker.options();
    options.producer.linger = Duration::from_millis(20);
    let route = record(invoice).layer(DeadLetters::to(DEAD)).order(Order::None);
    let app = broker.app(GROUP).options(options).topic(TOPIC, route);
    app.run(drained(&broker, GROUP, TOPIC)).await.unwrap();
    let letters = broker.lag("nobody", DEAD).await;
    assert_eq!(letters, 1, "the large one alone");
    let sent = broker.read(OUT, 200).await;
    let sent: BTreeSet<_> = sent.iter().filter_map(Message::key).collect();
    assert_eq!(sent.len(), 200);
}

/// A transaction is aborted as a whole: what it held comes again, and the one to blame fails.
#[tokio::test]
async fn what_a_transaction_cannot_send_becomes_a_dead_letter_and_the_rest_is_sent() {
    let names: Vec<String> = (0..50).map(|number| format!("small {number}")).collect();
    let mut records: Vec<_> =
        names.iter().map(|name| (Some(name.as_str()), name.as_str())).collect();
    records.insert(10, (Some("a"), "large"));
    records.insert(30, (Some("b"), "large"));
    for order in [Order::Partition, Order::by_key()] {
        let broker = broker(1, &records).await;
        with_topics(&broker, &[OUT, DEAD]).await;
        let route = record(invoice).layer(DeadLetters::to(DEAD)).order(order);
        let app = broker.app(GROUP).topic(TOPIC, route).exactly_once("one");
        app.run(ticking(&broker, drained(&broker, GROUP, TOPIC))).await.unwrap();
        assert_eq!(committed(&broker, DEAD).await, 2);
        assert_eq!(committed(&broker, OUT).await, 50);
    }
}

#[tokio::test]
async fn what_no_transaction_can_send_blocks_until_that_is_mended() {
    let broker = three().await;
    let app = broker.app(GROUP).topic(TOPIC, record(invoice)).exactly_once("one");
    blocks_until_it_is_mended(&broker, app, OUT).await;
    assert_eq!(committed(&broker, OUT).await, 3);
}

/// How many records of committed transactions a topic holds.
async fn committed(broker: &TestBroker, topic: &str) -> usize {
    let options = FetcherOptions { isolation: Isolation::ReadCommitted, ..Default::default() };
    let reader = Reader::new([broker.address()]).topic(topic, Position::Earliest);
    let mut records = reader.fetcher(options).until_end().open().await.unwrap();
    let mut count = 0;
    while let Some(record) = records.next().await {
        record.unwrap();
        count += 1;
    }
    count
}
