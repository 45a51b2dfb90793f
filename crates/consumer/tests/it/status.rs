//! Figures of apps that run.

use std::time::Duration;

use moldau_client::TopicPartition;
use moldau_consumer::{
    App, Batch, Control, DeadLetters, Message, Order, PartitionStatus, Pause, Retry, Status, batch,
    record,
};

use crate::world::{DEADLINE, GROUP, Seen, TOPIC, broker, channel, next, ticking};

/// Asks for the figures until they are as wanted.
pub(crate) async fn status_when(control: &Control, is_wanted: impl Fn(&Status) -> bool) -> Status {
    let asking = async {
        loop {
            let status = control.status().await;
            if is_wanted(&status) {
                return status;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.expect("it comes to that")
}

fn first(status: &Status) -> Option<&PartitionStatus> {
    status.routes.first()?.partitions.first()
}

#[tokio::test]
async fn what_was_handled_failed_and_sent_away_is_counted() {
    let broker = broker(1, &[(None, "good"), (None, "bad"), (None, "good")]).await;
    broker.create_topic("dead", 1).await;
    let handler = async |message: Message| match message.value() {
        Some(b"bad") => Err("a bad one"),
        _ => Ok(()),
    };
    let route = record(handler)
        .layer(Retry::exponential(2, Duration::from_secs(1)))
        .layer(DeadLetters::to("dead"));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let control = app.control();
    let mut status = Status::default();
    let until = async {
        let is_done =
            |it: &Status| it.routes[0].handled == 3 && first(it).is_some_and(|it| it.running == 0);
        status = ticking(&broker, status_when(&control, is_done)).await;
    };
    app.run(until).await.unwrap();
    let route = &status.routes[0];
    assert_eq!((route.topic.as_str(), route.dead_letters), (TOPIC, 1));
    assert_eq!(route.failed, [("failed", 2)]);
    assert_eq!(route.dead_letter_topics, ["dead"]);
    assert!(route.handler_p50 <= route.handler_p99 && route.handler_p99.is_some());
    assert!(route.cpu_per_record.is_some_and(|cpu| cpu > Duration::ZERO));
    let partition = &route.partitions[0];
    assert_eq!((partition.done_to, partition.position, partition.end), (Some(3), Some(3), Some(3)));
    assert_eq!((partition.lag, partition.queued_records, partition.running), (Some(0), 0, 0));
    let attempts: Vec<_> = status.failures.iter().map(|it| (it.offset, it.attempt)).collect();
    assert_eq!(attempts, [(1, 2), (1, 1)]);
    assert!(status.failures.iter().all(|it| it.cause == "a bad one" && it.kind == "failed"));
    // The app has ended; what it did is still known.
    let ended = control.status().await;
    assert_eq!((ended.routes[0].handled, ended.routes[0].partitions.len()), (3, 0));
}

#[tokio::test]
async fn what_waits_runs_and_is_paused_is_shown() {
    let records = vec![(None, "one"); 12];
    let broker = broker(1, &records).await;
    let route = batch(async |_: Batch| std::future::pending::<Result<(), String>>().await)
        .records_max(4)
        .queue_max(10, 1 << 20);
    let mut options = broker.options();
    options.drain_timeout = Duration::ZERO;
    let app = broker.app(GROUP).options(options).topic(TOPIC, route);
    let control = app.control();
    let until = async {
        let is_full =
            |it: &Status| first(it).is_some_and(|it| it.running == 1 && it.paused.is_some());
        let status = status_when(&control, is_full).await;
        let partition = first(&status).unwrap();
        assert_eq!(partition.paused, Some(Pause::QueueFull));
        assert_eq!((partition.queued_records, partition.queued_bytes), (10, 30));
        assert_eq!((partition.lag, partition.done_to), (Some(12), Some(0)));
        assert_eq!(partition.stalled, Some(Duration::ZERO));
        broker.clock().advance(Duration::from_mins(9));
        let status = control.status().await;
        assert_eq!(first(&status).unwrap().stalled, Some(Duration::from_mins(9)));
    };
    app.run(until).await.unwrap();
}

#[tokio::test]
async fn a_record_that_waits_for_its_next_attempt_is_retrying() {
    let broker = broker(1, &[(Some("a"), "one"), (Some("b"), "two")]).await;
    let route = record(async |_: Message| Err::<(), _>("not today")).order(Order::by_key());
    let app = broker.app(GROUP).topic(TOPIC, route);
    let control = app.control();
    let until = async {
        let status = status_when(&control, |it| first(it).is_some_and(|it| it.retrying == 2)).await;
        assert_eq!(first(&status).unwrap().delayed, 0);
    };
    app.run(until).await.unwrap();
}

#[tokio::test]
async fn a_paused_partition_starts_nothing_until_it_is_resumed() {
    let broker = broker(1, &[(None, "one")]).await;
    let (sender, mut seen) = channel();
    let handler = move |message: Message| {
        let sender = sender.clone();
        async move { sender.send(Seen::of(&message)) }
    };
    let app: App = broker.app(GROUP).topic(TOPIC, record(handler));
    let control = app.control();
    let partition = TopicPartition::of(TOPIC, 0);
    let until = async {
        next(&mut seen, 1).await;
        assert!(control.pause(&partition).await);
        assert!(!control.pause(&TopicPartition::of(TOPIC, 1)).await);
        broker.produce(TOPIC, None, "two").await;
        let is_queued = |it: &Status| first(it).is_some_and(|it| it.queued_records == 1);
        let status = status_when(&control, is_queued).await;
        let paused = first(&status).unwrap();
        assert_eq!((paused.paused, paused.running), (Some(Pause::Asked), 0));
        assert!(seen.try_recv().is_err());
        assert!(control.resume(&partition).await);
        assert_eq!(next(&mut seen, 1).await[0].value, "two");
    };
    app.run(until).await.unwrap();
    assert_eq!(broker.committed(GROUP, TOPIC).await, 2);
}

/// What a decoder says of a payload quotes it.
#[tokio::test]
async fn a_failure_does_not_show_the_payload() {
    use moldau_consumer::Json;
    let broker = broker(1, &[(None, "\"4111 1111\"")]).await;
    let route = record(async |Json(_): Json<u64>| Ok::<(), String>(()));
    let app = broker.app(GROUP).topic(TOPIC, route);
    let control = app.control();
    let until = async {
        let status = status_when(&control, |it| !it.failures.is_empty()).await;
        let failure = &status.failures[0];
        assert_eq!(
            (failure.kind, &*failure.cause),
            ("undecodable", "the payload cannot be decoded")
        );
        assert!(!format!("{status:?}").contains("4111"));
    };
    app.run(until).await.unwrap();
}
