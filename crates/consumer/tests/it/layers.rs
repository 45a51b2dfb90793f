//! Layers that select records or let them wait.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use moldau_consumer::{
    Attempt, Batch, Delay, DoneIds, Expire, Filter, Message, MessageRef, Metrics, Order, Pipe,
    Throttle, Trace, Unique, Window, batch, pipe_header, record,
};

use crate::world::{
    GROUP, Seen, TOPIC, broker, channel, drained, next, run_until, ticking, values,
};

#[tokio::test]
async fn filters_leave_records_out_of_batches_too() {
    let broker = broker(1, &[(None, "a"), (None, "test"), (None, "b")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |batch: Batch| {
        let sent = batch.iter().try_for_each(|message| sender.send(Seen::of(message)));
        async move { sent }
    };
    let filter = Filter::new(|message: &Message| message.value() != Some(b"test"));
    let app = broker.app(GROUP).topic(TOPIC, batch(handler).layer(filter));
    assert_eq!(values(&run_until(app, &mut receiver, 2).await), ["a", "b"]);
    assert_eq!(broker.committed(GROUP, TOPIC).await, 3);
}

#[tokio::test]
async fn records_wait_for_their_delay_or_expire() {
    let broker = broker(1, &[]).await;
    let now = broker.clock().now();
    broker.produce_at(now - Duration::from_secs(600), TOPIC, &[(None, "old")]).await;
    broker.produce_at(now, TOPIC, &[(None, "fresh")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let metrics = Metrics::default();
    let route = record(handler)
        .layer(Delay::by(Duration::from_secs(60)))
        .layer(metrics.clone())
        .layer(Expire::after(Duration::from_secs(300)));
    let shutdown = async {
        while metrics.read().postponed == 0 {
            tokio::task::yield_now().await;
        }
        assert!(receiver.try_recv().is_err());
        broker.clock().advance(Duration::from_secs(60));
        assert_eq!(values(&next(&mut receiver, 1).await), ["fresh"]);
    };
    broker.app(GROUP).topic(TOPIC, route).run(shutdown).await.unwrap();
    let counts = metrics.read();
    assert_eq!((counts.handled, counts.failed, counts.postponed), (1, 0, 1));
}

#[tokio::test]
async fn a_throttle_lets_records_through_as_time_passes() {
    let broker = broker(1, &[(None, "a"), (None, "b"), (None, "c")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let metrics = Metrics::default();
    let route = record(handler).layer(Throttle::per_second(1)).layer(metrics.clone());
    let shutdown = async {
        for (postponed, value) in ["a", "b", "c"].into_iter().enumerate() {
            while metrics.read().postponed < postponed as u64 {
                tokio::task::yield_now().await;
            }
            broker.clock().advance(Duration::from_secs(u64::from(postponed > 0)));
            assert_eq!(values(&next(&mut receiver, 1).await), [value]);
        }
    };
    broker.app(GROUP).topic(TOPIC, route).run(shutdown).await.unwrap();
}

#[tokio::test]
async fn records_are_piped_once_they_are_handled_and_derived_ones_before() {
    let broker = broker(1, &[(Some("a"), "bad"), (Some("b"), "good")]).await;
    broker.create_topic("good", 1).await;
    broker.create_topic("tried", 1).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        let seen = Seen::of(&message);
        let is_bad = attempt == 1 && seen.value == "bad";
        let sent = sender.send(seen);
        async move { if is_bad { Err("not yet") } else { sent.map_err(|_| "the test is over") } }
    };
    let only_good =
        |message: MessageRef<'_>| (message.key() == Some(b"b")).then(|| "good".to_owned());
    let upper = |message: MessageRef<'_>| Some(message.value()?.to_ascii_uppercase());
    let route = record(handler)
        .layer(Pipe::by(only_good))
        .layer(Pipe::to("tried").value(upper).before_handling());
    let app = broker.app(GROUP).topic(TOPIC, route);
    let shutdown = async {
        next(&mut receiver, 3).await;
        drained(&broker, GROUP, TOPIC).await;
    };
    ticking(&broker, Box::pin(app.run(shutdown))).await.unwrap();
    let tried: Vec<_> = broker.read("tried", 3).await.iter().map(Seen::of).collect();
    assert_eq!(values(&tried), ["BAD", "BAD", "GOOD"]);
    assert_eq!(broker.lag("nobody", "good").await, 1);
    let good = &broker.read("good", 1).await[0];
    assert_eq!((good.key(), good.value()), (Some(&b"b"[..]), Some(&b"good"[..])));
    let headers = [(pipe_header::TOPIC, TOPIC), (pipe_header::OFFSET, "1")];
    for (key, value) in headers {
        assert_eq!(good.header(key), Some(value.as_bytes()), "{key}");
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_piped_is_not_done() {
    let broker = broker(1, &[(None, "a")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler).layer(Pipe::to("nowhere")));
    let shutdown = async { drop(next(&mut receiver, 2).await) };
    ticking(&broker, app.run(shutdown)).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 0);
}

#[tokio::test]
async fn a_record_whose_id_was_handled_is_left_out_once_it_is_done() {
    let records = [(Some("a"), "1"), (Some("a"), "2"), (None, "3"), (Some("b"), "4"), (None, "5")];
    for order in [Order::Partition, Order::None] {
        let broker = broker(1, &records).await;
        let (sender, mut receiver) = channel();
        let handler = move |message: Message, Attempt(attempt): Attempt| {
            let sender = sender.clone();
            async move {
                // Others come to run meanwhile.
                tokio::task::yield_now().await;
                match attempt {
                    1 => Err("not yet"),
                    _ => sender.send(Seen::of(&message)).map_err(|_| "the test is over"),
                }
            }
        };
        let unique = Unique::by_key(Window::new(100));
        let app = broker.app(GROUP).topic(TOPIC, record(handler).layer(unique).order(order));
        let seen = ticking(&broker, run_until(app, &mut receiver, 4)).await;
        let mut of_key: Vec<_> = seen.iter().map(|it| it.key.clone()).collect();
        of_key.sort_unstable();
        assert_eq!(of_key, [None, None, Some("a".into()), Some("b".into())]);
        assert!(receiver.try_recv().is_err());
    }
}

/// Ids that outlive an app.
#[derive(Clone, Default)]
struct Table(Arc<Mutex<Vec<Vec<u8>>>>);

impl DoneIds for Table {
    async fn contains(&self, id: &[u8]) -> Result<bool, moldau_consumer::BoxError> {
        Ok(self.0.lock().expect("a lock").iter().any(|it| it == id))
    }

    async fn insert(&self, id: &[u8]) -> Result<(), moldau_consumer::BoxError> {
        self.0.lock().expect("a lock").push(id.to_vec());
        Ok(())
    }
}

#[tokio::test]
async fn ids_in_a_store_are_known_to_the_next_app_and_within_a_batch() {
    let records = [(Some("a"), "1"), (Some("a"), "2"), (Some("b"), "3")];
    let broker = broker(1, &records).await;
    let table = Table::default();
    let by_key = |message: MessageRef<'_>| Some(message.key()?.to_vec());
    for (group, expected) in [("first", &["1", "3"][..]), ("second", &["4"])] {
        let (sender, mut receiver) = channel();
        let handler = move |batch: Batch| {
            let sent = batch.iter().try_for_each(|message| sender.send(Seen::of(message)));
            async move { sent }
        };
        let route = batch(handler).layer(Unique::by(by_key, table.clone()));
        let app = broker.app(group).topic(TOPIC, route);
        assert_eq!(values(&run_until(app, &mut receiver, expected.len()).await), expected);
        assert!(receiver.try_recv().is_err());
        broker.produce(TOPIC, Some("c"), "4").await;
    }
}

/// Log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("a lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_record_is_handled_in_a_span_that_says_what_it_is() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let broker = broker(1, &[(None, "a")]).await;
    let (sender, mut receiver) = channel();
    let handler = move |message: Message, Attempt(attempt): Attempt| {
        tracing::info!("handler runs");
        let sent = sender.send(Seen::of(&message));
        async move { if attempt == 1 { Err("not yet") } else { sent.map_err(|_| "over") } }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler).layer(Trace));
    ticking(&broker, run_until(app, &mut receiver, 2)).await;
    let text = String::from_utf8(lines.0.lock().expect("a lock").clone()).expect("text");
    let of_handler: Vec<_> = text.lines().filter(|it| it.contains("handler runs")).collect();
    for (line, attempt) in of_handler.iter().zip(1..) {
        let fields = format!("topic=\"orders\" partition=0 offset=0 records=1 attempt={attempt}");
        assert!(line.contains(&fields), "{line}");
    }
    assert_eq!(of_handler.len(), 2, "{text}");
}
