//! What tests of apps begin with.

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, MessageRef};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long anything may take on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const GROUP: &str = "workers";
pub(crate) const TOPIC: &str = "orders";

/// What a handler saw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Seen {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: Option<String>,
    pub(crate) value: String,
}

impl Seen {
    pub(crate) fn of<'a>(message: impl Into<MessageRef<'a>>) -> Self {
        let message = message.into();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(text),
            value: text(message.value().unwrap_or_default()),
        }
    }
}

pub(crate) fn channel() -> (UnboundedSender<Seen>, UnboundedReceiver<Seen>) {
    unbounded_channel()
}

/// A broker with one topic, which holds these records.
pub(crate) async fn broker(partitions: i32, records: &[(Option<&str>, &str)]) -> TestBroker {
    let broker = TestBroker::start();
    broker.create_topic(TOPIC, partitions).await;
    broker.produce_all(TOPIC, records).await;
    broker
}

/// The next `count` of what handlers saw.
pub(crate) async fn next(receiver: &mut UnboundedReceiver<Seen>, count: usize) -> Vec<Seen> {
    let mut all = Vec::new();
    let receive = async {
        while all.len() < count {
            all.push(receiver.recv().await.expect("a handler lives"));
        }
    };
    let received = tokio::time::timeout(DEADLINE, receive).await;
    received.unwrap_or_else(|_| panic!("{} of {count} came: {all:?}", all.len()));
    all
}

pub(crate) fn values(seen: &[Seen]) -> Vec<&str> {
    seen.iter().map(|it| it.value.as_str()).collect()
}

/// Runs the app until `count` records were seen.
pub(crate) async fn run_until(
    app: App,
    receiver: &mut UnboundedReceiver<Seen>,
    count: usize,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    let ended = app.run(async { seen = next(receiver, count).await }).await;
    ended.expect("the app runs");
    seen
}

/// Moves the broker's clock on until `until` completes. Each step is followed by turns for the
/// tasks that it wakes.
pub(crate) async fn ticking<T>(broker: &TestBroker, until: impl Future<Output = T>) -> T {
    let tick = async {
        loop {
            broker.clock().advance(Duration::from_millis(500));
            for _turn in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    };
    tokio::select! {
        biased;
        done = until => done,
        () = tick => unreachable!("it ticks for ever"),
    }
}

/// Waits until a group has committed all records of a topic.
pub(crate) async fn drained(broker: &TestBroker, group: &str, topic: &str) {
    let drain = async {
        while broker.lag(group, topic).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    let drained = tokio::time::timeout(DEADLINE, drain).await;
    drained.unwrap_or_else(|_| panic!("{group} does not commit all of {topic}"));
}
