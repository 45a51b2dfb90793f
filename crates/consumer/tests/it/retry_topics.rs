//! Retry topics, dead letters and their replay.

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    Attempt, BoxError, DeadLetters, Expire, Failure, Filter, Message, MessageRef, Order, Replay,
    Retry, RetryTopics, Route, header, record, retry_header,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::world::{
    GROUP, Seen, TOPIC, broker, channel, drained, next, run_until, ticking, values,
};

const DEAD: &str = "orders.dead";
const SECOND: Duration = Duration::from_secs(1);

fn text(message: &Message, key: &str) -> String {
    String::from_utf8_lossy(message.header(key).expect("the header")).into_owned()
}

/// Fails records whose value is `bad` until this attempt.
fn bad_until(
    attempt_good: u32,
    sender: UnboundedSender<Seen>,
) -> impl Fn(Message, Attempt) -> std::future::Ready<Result<(), &'static str>> + Send + Sync {
    move |message, Attempt(attempt)| {
        let seen = Seen::of(&message);
        let is_bad = seen.value == "bad" && attempt < attempt_good;
        sender
            .send(Seen { value: format!("{} {attempt}", seen.value), ..seen })
            .expect("the test runs");
        std::future::ready(if is_bad { Err("not yet") } else { Ok(()) })
    }
}

async fn with_retry_topics(layer: &RetryTopics, records: &[(Option<&str>, &str)]) -> TestBroker {
    let broker = broker(1, records).await;
    for topic in layer.names() {
        broker.create_topic(topic, 1).await;
    }
    broker.create_topic(DEAD, 2).await;
    broker
}

#[tokio::test]
async fn a_failed_record_waits_in_retry_topics_while_those_behind_it_go_on() {
    let layer = RetryTopics::to("orders.retry", [10 * SECOND, 60 * SECOND]);
    let records = [(Some("a"), "bad"), (Some("a"), "1"), (Some("b"), "2")];
    let broker = with_retry_topics(&layer, &records).await;
    let (sender, mut receiver) = channel();
    let route = record(bad_until(9, sender)).layer(layer).layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let mut dead = Vec::new();
    let shutdown = async {
        // The record behind it is handled first although it has the same key.
        assert_eq!(values(&next(&mut receiver, 3).await), ["bad 1", "1 1", "2 1"]);
        let waiting = &broker.read("orders.retry-1", 1).await[0];
        assert_eq!(waiting.value(), Some(b"bad".as_slice()));
        assert_eq!(text(waiting, retry_header::CAUSE), "not yet");
        assert!(receiver.try_recv().is_err(), "nothing more until time passes");
        broker.clock().advance(10 * SECOND);
        assert_eq!(values(&next(&mut receiver, 1).await), ["bad 2"]);
        assert_eq!(text(&broker.read("orders.retry-2", 1).await[0], retry_header::ATTEMPTS), "2");
        broker.clock().advance(60 * SECOND);
        assert_eq!(values(&next(&mut receiver, 1).await), ["bad 3"]);
        dead = broker.read(DEAD, 1).await;
    };
    app.run(shutdown).await.unwrap();
    let dead = &dead[0];
    let origin = broker.read(TOPIC, 1).await;
    let headers: Vec<_> = dead.headers().map(|it| String::from_utf8_lossy(it.key)).collect();
    assert!(headers.iter().all(|it| !it.starts_with("retry-")), "{headers:?}");
    let expected = [
        (header::TOPIC, TOPIC),
        (header::PARTITION, "0"),
        (header::OFFSET, "0"),
        (header::TIMESTAMP, &origin[0].timestamp().to_string()),
        (header::ATTEMPTS, "3"),
        (header::CAUSE, "not yet"),
    ];
    for (key, value) in expected {
        assert_eq!(text(dead, key), value, "{key}");
    }
    for topic in [TOPIC, "orders.retry-1", "orders.retry-2"] {
        assert_eq!(broker.lag(GROUP, topic).await, 0, "{topic}");
    }
}

#[tokio::test]
async fn attempts_and_delays_survive_a_restart() {
    let layer = RetryTopics::to("orders.retry", [60 * SECOND]);
    let broker = with_retry_topics(&layer, &[(None, "bad"), (None, "1")]).await;
    let (sender, mut receiver) = channel();
    let app = |sender| {
        let route = record(bad_until(3, sender))
            .layer(Retry::exponential(2, SECOND))
            .layer(layer.clone())
            .order(Order::None);
        broker.app(GROUP).topic(TOPIC, route)
    };
    let first = app(sender.clone()).run(async {
        ticking(&broker, next(&mut receiver, 3)).await;
        ticking(&broker, broker.read("orders.retry-1", 1)).await;
    });
    first.await.unwrap();
    let waiting = &broker.read("orders.retry-1", 1).await[0];
    assert_eq!(text(waiting, retry_header::ATTEMPTS), "2");
    let second = app(sender).run(async {
        assert_eq!(values(&next(&mut receiver, 1).await), ["bad 3"]);
        drained(&broker, GROUP, "orders.retry-1").await;
    });
    ticking(&broker, Box::pin(second)).await.unwrap();
    let due: u128 = text(waiting, retry_header::DUE).parse().unwrap();
    assert!(broker.clock().now().as_millis() >= due);
}

#[tokio::test]
async fn what_no_attempt_can_help_skips_the_retry_topics_and_age_counts_from_the_origin() {
    let layer = RetryTopics::to("orders.retry", [60 * SECOND]);
    let broker = with_retry_topics(&layer, &[(None, "never"), (None, "bad")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let seen = Seen::of(&message);
        sender.send(seen.clone()).unwrap();
        async move {
            match &*seen.value {
                "never" => Err::<(), BoxError>(Failure::permanent("never").into()),
                _ => Err("not yet".into()),
            }
        }
    };
    let route =
        record(handler).layer(layer).layer(DeadLetters::to(DEAD)).layer(Expire::after(30 * SECOND));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let shutdown = async {
        assert_eq!(values(&next(&mut receiver, 2).await), ["never", "bad"]);
        broker.read("orders.retry-1", 1).await;
        // It is left out when it is due: by then it is too old.
        broker.clock().advance(60 * SECOND);
        drained(&broker, GROUP, "orders.retry-1").await;
    };
    app.run(shutdown).await.unwrap();
    assert!(receiver.try_recv().is_err());
    let dead = broker.read(DEAD, 1).await;
    assert_eq!(
        (dead[0].value(), text(&dead[0], header::ATTEMPTS)),
        (Some(&b"never"[..]), "1".into())
    );
    assert_eq!(broker.lag("nobody", DEAD).await, 1);
}

#[tokio::test]
async fn dead_letters_go_where_the_route_says_after_its_attempts() {
    let broker = broker(2, &[]).await;
    broker.create_topic("dead.bad", 2).await;
    broker.create_topic("dead.worse", 2).await;
    // Of the keys that go to partition 1 of two.
    let records = ["a", "b", "c", "d", "e"].map(|key| (Some(key), "bad"));
    broker.produce_all(TOPIC, &records).await;
    broker.produce(TOPIC, Some("a"), "worse").await;
    let handler = |message: Message, Attempt(attempt): Attempt| async move {
        match message.value() {
            Some(b"bad") => Err::<(), _>(Failure::from(moldau_consumer::Cause::Failed(
                format!("attempt {attempt}").into(),
            ))),
            _ => Err(Failure::permanent("worse")),
        }
    };
    let by = |_: MessageRef<'_>, failure: &Failure| match failure.is_retriable() {
        true => "dead.bad".to_owned(),
        false => "dead.worse".to_owned(),
    };
    let letters = DeadLetters::by(by).after(3).keep_partition();
    let app = broker.app(GROUP).topic(TOPIC, record(handler).layer(letters));
    let mut dead = Vec::new();
    let shutdown = async {
        dead = ticking(&broker, broker.read("dead.bad", 5)).await;
        dead.extend(ticking(&broker, broker.read("dead.worse", 1)).await);
    };
    app.run(shutdown).await.unwrap();
    for letter in &dead {
        assert_eq!(text(letter, header::PARTITION), letter.partition().to_string());
    }
    let attempts: Vec<_> = dead.iter().map(|it| text(it, header::ATTEMPTS)).collect();
    assert_eq!(attempts, ["3", "3", "3", "3", "3", "1"]);
}

#[tokio::test]
async fn dead_letters_are_replayed_to_the_partitions_that_they_came_from() {
    let broker = broker(2, &[(Some("a"), "bad"), (Some("b"), "bad"), (Some("c"), "bad")]).await;
    broker.create_topic(DEAD, 1).await;
    let failing = async |_: Message| Err::<(), _>("broken");
    let app = broker.app(GROUP).topic(TOPIC, record(failing).layer(DeadLetters::to(DEAD)));
    app.run(async { drop(broker.read(DEAD, 3).await) }).await.unwrap();
    // Something else in the topic is left alone.
    broker.produce(DEAD, None, "stray").await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        assert_eq!(message.headers().count(), 0);
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let selected = Filter::new(|letter: &Message| letter.key() != Some(b"b"));
    let app = broker
        .app(GROUP)
        .topic(TOPIC, record(handler))
        .topic(DEAD, Route::new(Replay).layer(selected));
    let mut seen = run_until(app, &mut receiver, 2).await;
    seen.sort_by(|one, other| one.key.cmp(&other.key));
    let origins = broker.read(TOPIC, 5).await;
    for (seen, key) in seen.iter().zip(["a", "c"]) {
        assert_eq!(seen.key.as_deref(), Some(key));
        let origin = origins.iter().find(|it| it.key() == Some(key.as_bytes())).unwrap();
        assert_eq!(seen.partition, origin.partition());
    }
}
