//! Records that fail, and handlers that misbehave.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use moldau_client::Record;
use moldau_consumer::{
    Attempt, Batch, Cause, Context, DeadLetters, Failure, Handler, Json, Layer, Message, Metrics,
    Order, Retry, Route, Status, Timeout, batch, header, record,
};

use crate::status::status_when;
use crate::world::{
    GROUP, Seen, TOPIC, broker, channel, drained, next, run_until, ticking, values,
};

const DEAD: &str = "orders.dead";

fn text(message: &Message, key: &str) -> String {
    String::from_utf8_lossy(message.header(key).expect("the header")).into_owned()
}

#[tokio::test]
async fn a_failed_record_is_tried_again_and_only_its_key_waits() {
    let records = [(Some("a"), "bad"), (Some("b"), "1"), (Some("a"), "2"), (Some("b"), "3")];
    let broker = broker(1, &records).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        let seen = Seen::of(&message);
        let is_bad = seen.value == "bad" && attempt < 3;
        let value = format!("{} {attempt}", seen.value);
        sender.send(Seen { value, ..seen }).unwrap();
        async move { if is_bad { Err("not yet") } else { Ok(()) } }
    };
    let route = record(handler)
        .layer(Retry::exponential(3, Duration::from_secs(10)))
        .order(Order::by_key());
    let shutdown = async {
        let mut first = values(&next(&mut receiver, 3).await).join(", ");
        // The other key is not held up; which one comes first is not said.
        first = first.replace("1 1, bad 1", "bad 1, 1 1");
        first = first.replace("1 1, 3 1, bad 1", "bad 1, 1 1, 3 1");
        assert_eq!(first, "bad 1, 1 1, 3 1");
        assert!(receiver.try_recv().is_err(), "nothing more until time passes");
        broker.clock().advance(Duration::from_secs(10));
        assert_eq!(values(&next(&mut receiver, 1).await), ["bad 2"]);
        broker.clock().advance(Duration::from_secs(20));
        assert_eq!(values(&next(&mut receiver, 2).await), ["bad 3", "2 1"]);
    };
    broker.app(GROUP).topic(TOPIC, route).run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 4);
}

#[tokio::test]
async fn a_poison_record_becomes_a_dead_letter_with_its_cause() {
    let broker =
        broker(1, &[(Some("a"), "good"), (Some("a"), "poison"), (Some("a"), "last")]).await;
    broker.create_topic(DEAD, 1).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let seen = Seen::of(&message);
        let handled = match seen.value.as_str() {
            "poison" => Err("it tastes bad"),
            _ => sender.send(seen).map_err(|_| "the test is over"),
        };
        async move { handled }
    };
    let route = record(handler)
        .layer(Retry::exponential(2, Duration::from_secs(1)))
        .layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let seen = ticking(&broker, run_until(app, &mut receiver, 2)).await;
    assert_eq!(values(&seen), ["good", "last"]);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
    let dead = &broker.read(DEAD, 1).await[0];
    assert_eq!((dead.key(), dead.value()), (Some(b"a".as_slice()), Some(b"poison".as_slice())));
    let headers = [
        (header::TOPIC, TOPIC),
        (header::PARTITION, "0"),
        (header::OFFSET, "1"),
        (header::ATTEMPTS, "2"),
        (header::KIND, "failed"),
        (header::CAUSE, "it tastes bad"),
    ];
    for (key, value) in headers {
        assert_eq!(text(dead, key), value, "{key}");
    }
}

#[tokio::test]
async fn a_panic_fails_its_record_alone() {
    let broker = broker(1, &[(None, "panic"), (None, "fine")]).await;
    broker.create_topic(DEAD, 1).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let seen = Seen::of(&message);
        assert_ne!(seen.value, "panic", "as it was told");
        let sent = sender.send(seen);
        async move { sent }
    };
    let route = record(handler).layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    assert_eq!(values(&run_until(app, &mut receiver, 1).await), ["fine"]);
    let dead = &broker.read(DEAD, 1).await[0];
    assert_eq!(text(dead, header::KIND), "panicked");
    assert!(text(dead, header::CAUSE).contains("as it was told"));
}

/// A layer that panics for some records, before or after their handler.
struct Panicking;

impl Layer<Message> for Panicking {
    async fn call<H: Handler<Message>>(
        &self,
        inner: &H,
        work: Message,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        assert_ne!(work.value(), Some(b"before".as_slice()), "before its handler");
        let is_bad = work.value() == Some(b"after");
        inner.call(work, context).await?;
        assert!(!is_bad, "after its handler");
        Ok(())
    }
}

/// A handler that is no function.
struct Bomb;

impl Handler<Message> for Bomb {
    async fn call(&self, work: Message, _: Context<'_>) -> Result<(), Failure> {
        tokio::task::yield_now().await;
        assert_ne!(work.value(), Some(b"later".as_slice()), "in the middle");
        Ok(())
    }
}

#[tokio::test]
async fn panics_of_layers_and_handlers_are_failures_to_the_outer_layers() {
    let records = ["before", "after", "later", "fine"].map(|value| (None, value));
    let broker = broker(1, &records).await;
    broker.create_topic(DEAD, 1).await;
    let route = Route::new(Bomb).layer(Panicking).layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    app.run(drained(&broker, GROUP, TOPIC)).await.unwrap();
    let causes = broker.read(DEAD, 3).await;
    let causes: Vec<_> = causes.iter().map(|it| text(it, header::CAUSE)).collect();
    for (cause, words) in causes.iter().zip(["before its", "after its", "in the middle"]) {
        assert!(cause.starts_with("the handler panicked: ") && cause.contains(words), "{cause}");
    }
}

/// Nothing settles it: it is tried again, and the operator sees why.
#[tokio::test]
async fn a_panic_without_layers_is_counted_and_tried_again() {
    let broker = broker(1, &[(None, "later"), (None, "fine")]).await;
    let app = broker.app(GROUP).topic(TOPIC, Route::new(Bomb));
    let control = app.control();
    let test = async {
        let is_tried_again = |it: &Status| it.routes[0].failed == [("panicked", 2)];
        let status = ticking(&broker, status_when(&control, is_tried_again)).await;
        assert!(status.failures[0].cause.contains("in the middle"), "{status:?}");
    };
    app.run(test).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 0, "nothing is lost");
}

/// A handler that panics before it has a future.
struct Eager;

impl Handler<Message> for Eager {
    fn call(
        &self,
        work: Message,
        _: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        assert_ne!(work.value(), Some(b"bad".as_slice()), "at once");
        std::future::ready(Ok(()))
    }
}

#[tokio::test]
async fn a_panic_of_a_call_that_has_no_future_yet_fails_its_record_alone() {
    let broker = broker(1, &[(None, "fine"), (None, "bad"), (None, "fine")]).await;
    let app = broker.app(GROUP).topic(TOPIC, Route::new(Eager));
    let control = app.control();
    let test = async {
        let is_tried_again = |it: &Status| it.routes[0].failed == [("panicked", 2)];
        let status = ticking(&broker, status_when(&control, is_tried_again)).await;
        let trouble = &status.failures[0];
        assert!(trouble.offset == 1 && trouble.cause.contains("at once"), "{status:?}");
    };
    app.run(test).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
}

#[tokio::test]
async fn a_handler_that_never_returns_times_out() {
    let broker = broker(1, &[(None, "stuck"), (None, "fine")]).await;
    broker.create_topic(DEAD, 1).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sender = sender.clone();
        async move {
            let seen = Seen::of(&message);
            if seen.value == "stuck" {
                std::future::pending::<()>().await;
            }
            sender.send(seen)
        }
    };
    let route =
        record(handler).layer(Timeout::after(Duration::from_secs(30))).layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let seen = ticking(&broker, run_until(app, &mut receiver, 1)).await;
    assert_eq!(values(&seen), ["fine"]);
    assert_eq!(text(&broker.read(DEAD, 1).await[0], header::KIND), "timed_out");
}

#[tokio::test]
async fn what_no_attempt_can_help_is_tried_once() {
    let broker = broker(1, &[(None, "{"), (None, "1")]).await;
    broker.create_topic(DEAD, 1).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let (sender, mut receiver) = channel();
    let handler = move |Json(_): Json<u32>, message: Message| {
        counted.fetch_add(1, Ordering::SeqCst);
        sender.send(Seen::of(&message)).unwrap();
        async { Err::<(), _>(Failure::permanent("never")) }
    };
    let route = record(handler)
        .layer(Retry::exponential(5, Duration::from_secs(1)))
        .layer(DeadLetters::to(DEAD));
    let app = broker.app(GROUP).topic(TOPIC, route);
    run_until(app, &mut receiver, 1).await;
    let dead = broker.read(DEAD, 2).await;
    let kinds: Vec<_> = dead.iter().map(|it| text(it, header::KIND)).collect();
    assert_eq!(kinds, ["undecodable", "permanent"]);
    assert!(dead.iter().all(|it| text(it, header::ATTEMPTS) == "1"));
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failure_that_no_layer_settles_is_tried_for_ever() {
    let broker = broker(1, &[(None, "late")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        let done = match attempt {
            0..10 => Err("not yet"),
            _ => sender.send(Seen::of(&message)).map_err(|_| "the test is over"),
        };
        async move { done }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler));
    ticking(&broker, run_until(app, &mut receiver, 1)).await;
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
}

#[tokio::test]
async fn a_batch_that_fails_comes_again_as_it_was() {
    let broker = broker(1, &[(None, "a"), (None, "b"), (None, "c")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |batch: Batch, Attempt(attempt): Attempt| {
        let values: Vec<_> = batch.iter().map(|message| Seen::of(message).value).collect();
        let first = Seen::of(batch.iter().next().unwrap());
        sender.send(Seen { value: format!("{} {attempt}", values.join("")), ..first }).unwrap();
        async move { if attempt == 1 && values[0] == "a" { Err("not yet") } else { Ok(()) } }
    };
    let app = broker.app(GROUP).topic(TOPIC, batch(handler).records_max(2));
    let seen = ticking(&broker, run_until(app, &mut receiver, 3)).await;
    assert_eq!(values(&seen), ["ab 1", "ab 2", "c 1"]);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
}

#[tokio::test]
async fn a_pause_that_the_handler_asks_for_replaces_the_usual_one() {
    let broker = broker(1, &[(None, "busy")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        sender.send(Seen::of(&message)).unwrap();
        let busy = Failure::from(Cause::Failed("busy".into()));
        let asked = busy.retry_after(Duration::from_secs(600));
        async move { if attempt < 2 { Err(asked) } else { Ok(()) } }
    };
    let metrics = Metrics::default();
    let route = record(handler).layer(Retry::exponential(3, Duration::from_secs(1)));
    let route = route.layer(metrics.clone());
    let shutdown = async {
        next(&mut receiver, 1).await;
        while metrics.read().postponed == 0 {
            tokio::task::yield_now().await;
        }
        broker.clock().advance(Duration::from_secs(599));
        tokio::task::yield_now().await;
        assert!(receiver.try_recv().is_err());
        broker.clock().advance(Duration::from_secs(1));
        next(&mut receiver, 1).await;
    };
    broker.app(GROUP).topic(TOPIC, route).run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
}

/// A handler that sends what it is given to another topic.
struct Copying;

impl Handler<Batch> for Copying {
    async fn call(&self, work: Batch, context: Context<'_>) -> Result<(), Failure> {
        let copies = work.iter().map(|message| {
            let (key, value) = (message.key(), message.value());
            (DEAD, Record { token: 0, timestamp: 1, key, value, headers: &[] })
        });
        let sent = context.send(0, copies).await;
        sent.map_err(|error| Cause::Failed(error.into()).into())
    }
}

#[tokio::test]
async fn records_that_a_handler_sends_arrive_in_order_before_its_own_are_done() {
    let broker = broker(1, &[(None, "a"), (None, "b"), (None, "c")]).await;
    broker.create_topic(DEAD, 1).await;
    let app = broker.app(GROUP).topic(TOPIC, Route::<Batch, _>::new(Copying));
    let shutdown = async {
        let copies = broker.read(DEAD, 3).await;
        let copies: Vec<_> = copies.iter().filter_map(|it| it.value()).collect();
        assert_eq!(copies, [b"a", b"b", b"c"]);
    };
    app.run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
}

#[tokio::test]
async fn only_the_records_of_a_batch_that_a_failure_concerns_become_dead_letters() {
    let broker = broker(1, &[(None, "a"), (None, "bad"), (None, "c")]).await;
    broker.create_topic(DEAD, 1).await;
    let handler = |batch: Batch| {
        let bad = batch.iter().filter(|it| it.value() == Some(b"bad")).map(|it| it.offset());
        let bad: Vec<i64> = bad.collect();
        let failure = Failure::permanent("bad").only_concerning(bad);
        async move { Err::<(), _>(failure) }
    };
    let app = broker.app(GROUP).topic(TOPIC, batch(handler).layer(DeadLetters::to(DEAD)));
    let shutdown = async {
        let dead = broker.read(DEAD, 1).await;
        assert_eq!(dead[0].value(), Some(b"bad".as_slice()));
    };
    app.run(shutdown).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
    broker.produce(DEAD, None, "after").await;
    let dead = broker.read(DEAD, 2).await;
    assert_eq!(dead[1].value(), Some(b"after".as_slice()));
}
