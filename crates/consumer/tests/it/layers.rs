//! Layers that select records or let them wait.

use std::time::Duration;

use moldau_consumer::{Batch, Delay, Expire, Filter, Message, Metrics, Throttle, batch, record};

use crate::world::{GROUP, Seen, TOPIC, broker, channel, next, run_until, values};

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
