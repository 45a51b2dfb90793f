//! Every pair of layers, in both orders, with every order of records, for records and batches, on
//! one shard and on three.
//!
//! The same records go through each combination: some are to be left out, some fail once or
//! always, some never return. A model of the layers says what becomes of each; each is handled
//! once, in order, or is a dead letter, and all are committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    AnyRoute, Attempt, Batch, Context, DeadLetters, Delay, Expire, Failure, Filter, Handler, Layer,
    Message, Metrics, Order, Retry, Throttle, Timeout, Work, batch, record,
};

use crate::world::{DEADLINE, Seen, TOPIC, channel, ticking};

const ATTEMPTS_MAX: u32 = 3;
/// So long that the clock, which a test moves in a hurry, does not pass it while a dead letter is
/// sent.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Apps that run at a time.
const APPS: usize = 24;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Retry,
    DeadLetters,
    Timeout,
    Filter,
    Throttle,
    Delay,
    Expire,
    Metrics,
}

const KINDS: [Kind; 8] = [
    Kind::Retry,
    Kind::DeadLetters,
    Kind::Timeout,
    Kind::Filter,
    Kind::Throttle,
    Kind::Delay,
    Kind::Expire,
    Kind::Metrics,
];

/// A layer that is chosen as the test runs.
enum Chosen {
    Retry(Retry),
    DeadLetters(DeadLetters),
    Timeout(Timeout),
    Filter(Filter<fn(&Message) -> bool>),
    Throttle(Throttle),
    Delay(Delay),
    Expire(Expire),
    Metrics(Metrics),
}

impl Chosen {
    fn new(kind: Kind, dead_letters: &str) -> Self {
        match kind {
            Kind::Retry => Self::Retry(Retry::exponential(ATTEMPTS_MAX, Duration::from_secs(1))),
            Kind::DeadLetters => Self::DeadLetters(DeadLetters::to(dead_letters)),
            Kind::Timeout => Self::Timeout(Timeout::after(TIMEOUT)),
            Kind::Filter => Self::Filter(Filter::new(|message| message.value() != Some(b"skip"))),
            Kind::Throttle => Self::Throttle(Throttle::per_second(20)),
            Kind::Delay => Self::Delay(Delay::by(Duration::from_secs(3))),
            Kind::Expire => Self::Expire(Expire::after(Duration::from_hours(10_000))),
            Kind::Metrics => Self::Metrics(Metrics::default()),
        }
    }
}

impl<W: Work> Layer<W> for Chosen {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        match self {
            Self::Retry(layer) => layer.call(inner, work, context).await,
            Self::DeadLetters(layer) => layer.call(inner, work, context).await,
            Self::Timeout(layer) => layer.call(inner, work, context).await,
            Self::Filter(layer) => layer.call(inner, work, context).await,
            Self::Throttle(layer) => layer.call(inner, work, context).await,
            Self::Delay(layer) => layer.call(inner, work, context).await,
            Self::Expire(layer) => layer.call(inner, work, context).await,
            Self::Metrics(layer) => layer.call(inner, work, context).await,
        }
    }
}

/// What becomes of a record in one attempt.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Fate {
    Handled,
    LeftOut,
    DeadLetter,
    Failed,
    Postponed,
    NeverReturns,
}

fn fate_in_handler(value: &str, attempt: u32) -> Fate {
    match value {
        "poison" => Fate::Failed,
        "flaky" if attempt == 1 => Fate::Failed,
        "stuck" if attempt == 1 => Fate::NeverReturns,
        _ => Fate::Handled,
    }
}

/// The fate behind `layers`, the outermost last.
fn fate_behind(layers: &[Kind], value: &str, attempt: u32) -> Fate {
    let Some((layer, inner)) = layers.split_last() else { return fate_in_handler(value, attempt) };
    match (layer, value) {
        (Kind::Filter, "skip") | (Kind::Expire, "old") => return Fate::LeftOut,
        _ => {}
    }
    match (layer, fate_behind(inner, value, attempt)) {
        (Kind::Timeout, Fate::NeverReturns) => Fate::Failed,
        (Kind::Retry, Fate::Failed) if attempt < ATTEMPTS_MAX => Fate::Postponed,
        (Kind::DeadLetters, Fate::Failed) => Fate::DeadLetter,
        (_, fate) => fate,
    }
}

/// What becomes of a record in the end: what no layer settles is tried again.
fn fate(layers: &[Kind], value: &str) -> Fate {
    let mut fates = (1..).map(|attempt| fate_behind(layers, value, attempt));
    let is_final = |fate: &Fate| !matches!(fate, Fate::Failed | Fate::Postponed);
    fates.find(is_final).expect("no record fails for ever")
}

#[derive(Clone, Debug)]
struct Combination {
    number: usize,
    layers: [Kind; 2],
    order: Order,
    is_batch: bool,
    shards: usize,
}

fn combinations() -> Vec<Combination> {
    let mut all = Vec::new();
    for (at, inner) in KINDS.into_iter().enumerate() {
        for outer in KINDS {
            for order in [Order::Partition, Order::by_key(), Order::None] {
                for is_batch in [false, true] {
                    let (number, layers) = (all.len(), [inner, outer]);
                    // Each pair in one order on one shard, in the other order on three.
                    let shards = if KINDS[..=at].contains(&outer) { 1 } else { 3 };
                    all.push(Combination { number, layers, order, is_batch, shards });
                }
            }
        }
    }
    all
}

impl Combination {
    /// The topic that holds what this combination can settle.
    fn topic(&self) -> String {
        let is_among = |kind| self.layers.contains(&kind);
        topic(is_among(Kind::DeadLetters), is_among(Kind::Timeout))
    }

    fn dead_letters(&self) -> String {
        format!("dead.{}", self.number)
    }

    fn route(&self, sender: tokio::sync::mpsc::UnboundedSender<Seen>) -> AnyRoute {
        let [inner, outer] = self.layers.map(|kind| Chosen::new(kind, &self.dead_letters()));
        let by_record = sender.clone();
        if self.is_batch {
            let handler = move |batch: Batch, Attempt(attempt): Attempt| {
                let seen = batch.iter().map(Seen::of).collect();
                handle(seen, attempt, sender.clone())
            };
            return batch(handler)
                .layer(inner)
                .layer(outer)
                .order(self.order)
                .records_max(4)
                .into();
        }
        let handler = move |message: Message, Attempt(attempt): Attempt| {
            handle(vec![Seen::of(&message)], attempt, by_record.clone())
        };
        record(handler).layer(inner).layer(outer).order(self.order).into()
    }

    async fn run(&self, broker: &TestBroker, written: &[Seen]) {
        let (sender, mut receiver) = channel();
        let group = format!("group-{}", self.number);
        let app = broker.app(&group).topic(&self.topic(), self.route(sender)).shards(self.shards);
        let total = i64::try_from(written.len()).expect("some records");
        let shutdown = async {
            while broker.committed(&group, &self.topic()).await < total {
                let clock = broker.clock();
                clock.sleep_until(clock.now() + Duration::from_secs(2)).await;
            }
        };
        let ran = tokio::time::timeout(DEADLINE, app.run(shutdown)).await;
        let ended = ran.unwrap_or_else(|_| panic!("{self:?} does not end"));
        ended.unwrap_or_else(|error| panic!("{self:?}: {error}"));
        assert_eq!(broker.committed(&group, &self.topic()).await, total, "{self:?}");
        let mut handled = Vec::new();
        while let Ok(seen) = receiver.try_recv() {
            handled.push(seen);
        }
        self.check_order(&handled);
        self.check_fates(broker, written, &handled).await;
    }

    fn check_order(&self, handled: &[Seen]) {
        let mut last: BTreeMap<(i32, Option<String>), i64> = BTreeMap::new();
        for seen in handled {
            let row = match self.order {
                Order::Partition => (seen.partition, None),
                Order::Key(_) if seen.key.is_some() => (seen.partition, seen.key.clone()),
                Order::Key(_) | Order::None => continue,
            };
            let before = last.insert(row, seen.offset);
            assert!(before.is_none_or(|before| before < seen.offset), "{self:?}: {seen:?}");
        }
    }

    async fn check_fates(&self, broker: &TestBroker, written: &[Seen], handled: &[Seen]) {
        let place = |seen: &Seen| (seen.partition, seen.offset);
        let places: BTreeSet<_> = handled.iter().map(place).collect();
        assert_eq!(places.len(), handled.len(), "{self:?}: handled twice");
        let is_expected = |seen: &&Seen| fate(&self.layers, &seen.value) == Fate::Handled;
        let left_out = |seen: &Seen| fate(&self.layers, &seen.value) == Fate::LeftOut;
        let expected: BTreeSet<_> = written.iter().filter(is_expected).map(place).collect();
        if !self.is_batch {
            assert_eq!(places, expected, "{self:?}");
        }
        // A batch fails or waits as a whole, so the others in it decide about a record too.
        let may_be = |seen: &&Seen| !left_out(seen) && seen.value != "poison";
        let possible: BTreeSet<_> = written.iter().filter(may_be).map(place).collect();
        assert!(places.is_subset(&possible), "{self:?}");
        let dead = written.iter().filter(|it| !places.contains(&place(it)) && !left_out(it));
        let mut dead: Vec<String> = dead.map(|seen| seen.value.clone()).collect();
        if !self.layers.contains(&Kind::DeadLetters) {
            assert_eq!(dead, [""; 0], "{self:?}: lost");
            return;
        }
        let letters = broker.read(&self.dead_letters(), dead.len()).await;
        let mut found: Vec<String> = letters.iter().map(|it| Seen::of(it).value).collect();
        dead.sort_unstable();
        found.sort_unstable();
        // A timeout that covers the sending may repeat it.
        if self.layers != [Kind::DeadLetters, Kind::Timeout] {
            assert_eq!(found, dead, "{self:?}");
        }
    }
}

/// Handles all of them or none.
async fn handle(
    all: Vec<Seen>,
    attempt: u32,
    sender: tokio::sync::mpsc::UnboundedSender<Seen>,
) -> Result<(), String> {
    let fates = all.iter().map(|seen| fate_in_handler(&seen.value, attempt));
    match fates.max().expect("a batch has records") {
        Fate::Failed => return Err("told to fail".to_owned()),
        Fate::NeverReturns => std::future::pending().await,
        _ => {}
    }
    all.into_iter().try_for_each(|seen| sender.send(seen)).map_err(|error| error.to_string())
}

fn topic(has_poison: bool, has_stuck: bool) -> String {
    format!("{TOPIC}.{has_poison}.{has_stuck}")
}

/// Writes the records of a topic; returns them as handlers see them.
async fn write(broker: &TestBroker, has_poison: bool, has_stuck: bool) -> Vec<Seen> {
    let topic = topic(has_poison, has_stuck);
    broker.create_topic(&topic, 2).await;
    let cycle = ["good", "skip", "flaky", "old", "good", "poison", "good", "stuck"];
    let is_left = |value: &&str| match *value {
        "poison" => has_poison,
        "stuck" => has_stuck,
        _ => true,
    };
    let values = cycle.iter().cycle().take(24).filter(|value| is_left(value));
    let keys = [Some("a"), Some("b"), Some("c"), None, Some("d")];
    let mut count = 0;
    for (value, key) in values.zip(keys.iter().cycle()) {
        let at = if *value == "old" { Duration::ZERO } else { broker.clock().now() };
        broker.produce_at(at, &topic, &[(*key, value)]).await;
        count += 1;
    }
    broker.read(&topic, count).await.iter().map(Seen::of).collect()
}

#[tokio::test]
async fn every_pair_of_layers_settles_every_record_in_every_order() {
    let broker = TestBroker::start();
    let mut written = BTreeMap::new();
    for (has_poison, has_stuck) in [(false, false), (false, true), (true, false), (true, true)] {
        let records = write(&broker, has_poison, has_stuck).await;
        written.insert(topic(has_poison, has_stuck), records);
    }
    let combinations = combinations();
    assert_eq!(combinations.len(), 384);
    let with_letters = combinations.iter().filter(|it| it.layers.contains(&Kind::DeadLetters));
    for combination in with_letters {
        broker.create_topic(&combination.dead_letters(), 1).await;
    }
    let all = async {
        for some in combinations.chunks(APPS) {
            join_all(some.iter().map(|it| it.run(&broker, &written[&it.topic()]))).await;
        }
    };
    ticking(&broker, all).await;
}
