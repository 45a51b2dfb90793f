//! Every pair of layers, in both orders, with every order of records, for records and batches, on
//! one shard and on three.
//!
//! The same records go through each combination: some are to be left out, some fail once or
//! always, some never return. A model of the layers says what becomes of each; each is handled
//! once, in order, or is a dead letter, and all are committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use moldau_consumer::encryption::KeySettings;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    AnyRoute, Attempt, Batch, Context, DeadLetters, Decrypt, Delay, Expire, Failure, Filter,
    Handler, Layer, Message, MessageRef, Metrics, Order, Pipe, Retry, RetryTopics, Throttle,
    Timeout, Trace, Unique, Window, Work, batch, pipe_header, record, retry_header,
};

use crate::sealed::Sealing;
use crate::world::{DEADLINE, Seen, TOPIC, channel, ticking};

const ATTEMPTS_MAX: u32 = 3;
/// So long that the clock, which a test moves in a hurry, does not pass it while a dead letter is
/// sent.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Of two retry topics.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Apps that run at a time.
pub(crate) const APPS: usize = 12;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Retry,
    DeadLetters,
    Timeout,
    Filter,
    Throttle,
    Delay,
    Expire,
    Metrics,
    RetryTopics,
    Pipe,
    Unique,
    Trace,
    Decrypt,
}

pub(crate) const KINDS: [Kind; 13] = [
    Kind::Retry,
    Kind::DeadLetters,
    Kind::Timeout,
    Kind::Filter,
    Kind::Throttle,
    Kind::Delay,
    Kind::Expire,
    Kind::Metrics,
    Kind::RetryTopics,
    Kind::Pipe,
    Kind::Unique,
    Kind::Trace,
    Kind::Decrypt,
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
    RetryTopics(RetryTopics),
    Pipe(Pipe),
    Unique(Unique),
    Trace(Trace),
    Decrypt(Decrypt),
}

impl Chosen {
    fn new(kind: Kind, combination: &Combination, decrypt: &Decrypt) -> Self {
        match kind {
            Kind::Retry => Self::Retry(Retry::exponential(ATTEMPTS_MAX, Duration::from_secs(1))),
            Kind::DeadLetters => Self::DeadLetters(DeadLetters::to(combination.dead_letters())),
            Kind::Timeout => Self::Timeout(Timeout::after(TIMEOUT)),
            Kind::Filter => Self::Filter(Filter::new(|message| message.value() != Some(b"skip"))),
            Kind::Throttle => Self::Throttle(Throttle::per_second(20)),
            Kind::Delay => Self::Delay(Delay::by(Duration::from_secs(3))),
            Kind::Expire => Self::Expire(Expire::after(Duration::from_hours(10_000))),
            Kind::Metrics => Self::Metrics(Metrics::default()),
            Kind::RetryTopics => Self::RetryTopics(combination.retry_topics()),
            Kind::Pipe => Self::Pipe(Pipe::to(combination.piped())),
            Kind::Unique => Self::Unique(Unique::by(id, Window::new(1000))),
            Kind::Trace => Self::Trace(Trace),
            Kind::Decrypt => Self::Decrypt(decrypt.clone()),
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
            Self::RetryTopics(layer) => layer.call(inner, work, context).await,
            Self::Pipe(layer) => layer.call(inner, work, context).await,
            Self::Unique(layer) => layer.call(inner, work, context).await,
            Self::Trace(layer) => layer.call(inner, work, context).await,
            Self::Decrypt(layer) => layer.call(inner, work, context).await,
        }
    }

    fn topics(&self) -> Vec<String> {
        match self {
            Self::RetryTopics(layer) => Layer::<W>::topics(layer),
            _ => Vec::new(),
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
    /// Sent to a retry topic.
    Moved,
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

/// The fate behind `layers`, the outermost last, of a record that was moved `moves` times.
fn fate_behind(layers: &[Kind], value: &str, attempt: u32, moves: usize) -> Fate {
    let Some((layer, inner)) = layers.split_last() else { return fate_in_handler(value, attempt) };
    // A filter sees only what is in clear where it stands.
    let sees_values = !inner.contains(&Kind::Decrypt);
    match (layer, value) {
        (Kind::Filter, "skip") if sees_values => return Fate::LeftOut,
        (Kind::Expire, "old") => return Fate::LeftOut,
        _ => {}
    }
    match (layer, fate_behind(inner, value, attempt, moves)) {
        (Kind::Timeout, Fate::NeverReturns) => Fate::Failed,
        (Kind::Retry, Fate::Failed) if attempt < ATTEMPTS_MAX => Fate::Postponed,
        (Kind::DeadLetters, Fate::Failed) => Fate::DeadLetter,
        (Kind::RetryTopics, Fate::Failed) if moves < RETRY_DELAYS.len() => Fate::Moved,
        (_, fate) => fate,
    }
}

/// What becomes of a record in the end: what no layer settles is tried again.
fn fate(layers: &[Kind], value: &str) -> Fate {
    let mut moves = 0;
    for attempt in 1..100 {
        match fate_behind(layers, value, attempt, moves) {
            Fate::Failed | Fate::Postponed => {}
            Fate::Moved => moves += 1,
            fate => return fate,
        }
    }
    panic!("a record fails for ever");
}

#[derive(Clone, Debug)]
pub(crate) struct Combination {
    /// The number of the pair, and of the route in its app.
    pub(crate) number: (usize, usize),
    pub(crate) layers: [Kind; 2],
    pub(crate) order: Order,
    pub(crate) is_batch: bool,
    pub(crate) shards: usize,
}

/// An app for each pair of layers, with a route for each order, for records and batches.
fn pairs() -> Vec<Vec<Combination>> {
    let mut all = Vec::new();
    for (at, inner) in KINDS.into_iter().enumerate() {
        for outer in KINDS {
            let mut routes = Vec::new();
            for order in [Order::Partition, Order::by_key(), Order::None] {
                for is_batch in [false, true] {
                    let (number, layers) = ((all.len(), routes.len()), [inner, outer]);
                    // Each pair in one order on one shard, in the other order on three.
                    let shards = if KINDS[..=at].contains(&outer) { 1 } else { 3 };
                    routes.push(Combination { number, layers, order, is_batch, shards });
                }
            }
            all.push(routes);
        }
    }
    all
}

impl Combination {
    /// The topic that holds what this combination can settle.
    pub(crate) fn topic(&self) -> String {
        let is_among = |kind| self.layers.contains(&kind);
        let topic = topic(is_among(Kind::DeadLetters), is_among(Kind::Timeout), self.number.1);
        if is_among(Kind::Decrypt) { sealed(&topic) } else { topic }
    }

    /// A name of its own.
    fn name(&self, what: &str) -> String {
        format!("{what}.{}.{}", self.number.0, self.number.1)
    }

    fn dead_letters(&self) -> String {
        self.name("dead")
    }

    fn piped(&self) -> String {
        self.name("piped")
    }

    fn retry_topics(&self) -> RetryTopics {
        RetryTopics::to(&self.name("retry"), RETRY_DELAYS)
    }

    /// Topics that the layers send records to.
    fn topics_written(&self) -> Vec<String> {
        let mut topics = Vec::new();
        if self.layers.contains(&Kind::DeadLetters) {
            topics.push(self.dead_letters());
        }
        if self.layers.contains(&Kind::Pipe) {
            topics.push(self.piped());
        }
        if self.layers.contains(&Kind::RetryTopics) {
            topics.extend_from_slice(self.retry_topics().names());
        }
        topics
    }

    pub(crate) fn route(
        &self,
        decrypt: &Decrypt,
        sender: tokio::sync::mpsc::UnboundedSender<Seen>,
    ) -> AnyRoute {
        let [inner, outer] = self.layers.map(|kind| Chosen::new(kind, self, decrypt));
        let by_record = sender.clone();
        if self.is_batch {
            let handler = move |batch: Batch, Attempt(attempt): Attempt| {
                let seen = batch.iter().map(origin).collect();
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
            handle(vec![origin(&message)], attempt, by_record.clone())
        };
        record(handler).layer(inner).layer(outer).order(self.order).into()
    }

    /// Waits until all is committed.
    async fn drained(&self, broker: &TestBroker, group: &str) {
        let mut topics = vec![self.topic()];
        if self.layers.contains(&Kind::RetryTopics) {
            // Records go from each of them to the next.
            topics.extend_from_slice(self.retry_topics().names());
        }
        for topic in topics {
            while broker.lag(group, &topic).await > 0 {
                let clock = broker.clock();
                clock.sleep_until(clock.now() + Duration::from_secs(2)).await;
            }
        }
    }

    fn check_order(&self, handled: &[Seen]) {
        let mut last: BTreeMap<(i32, Option<String>), i64> = BTreeMap::new();
        let has_retry_topics = self.layers.contains(&Kind::RetryTopics);
        // A record that was moved comes later, with all of its batch.
        let is_moved = |seen: &Seen| {
            has_retry_topics && (self.is_batch || matches!(&*seen.value, "flaky" | "stuck"))
        };
        for seen in handled.iter().filter(|seen| !is_moved(seen)) {
            let row = match self.order {
                Order::Partition => (seen.partition, None),
                Order::Key(_) if seen.key.is_some() => (seen.partition, seen.key.clone()),
                Order::Key(_) | Order::None => continue,
            };
            let before = last.insert(row, seen.offset);
            assert!(before.is_none_or(|before| before < seen.offset), "{self:?}: {seen:?}");
        }
    }

    pub(crate) async fn check_piped(&self, broker: &TestBroker, handled: &[Seen]) {
        if !self.layers.contains(&Kind::Pipe) {
            return;
        }
        let count = broker.lag("nobody", &self.piped()).await;
        let piped = broker.read(&self.piped(), usize::try_from(count).expect("a count")).await;
        let text = |message: &Message, key| {
            String::from_utf8(message.header(key).expect("the header").to_vec()).expect("text")
        };
        let origin = |message: &Message| {
            (text(message, pipe_header::PARTITION), text(message, pipe_header::OFFSET))
        };
        let piped: BTreeSet<_> = piped.iter().map(origin).collect();
        let is_piped =
            |seen: &Seen| piped.contains(&(seen.partition.to_string(), seen.offset.to_string()));
        assert!(handled.iter().all(is_piped), "{self:?}: {piped:?}");
    }

    pub(crate) async fn check_fates(
        &self,
        broker: &TestBroker,
        written: &[Seen],
        handled: &[Seen],
    ) {
        let place = |seen: &Seen| (seen.partition, seen.offset);
        let places: BTreeSet<_> = handled.iter().map(place).collect();
        // A timeout that covers the sending may repeat it.
        let sends = [Kind::DeadLetters, Kind::RetryTopics, Kind::Pipe];
        let repeats = self.layers[1] == Kind::Timeout && sends.contains(&self.layers[0]);
        assert!(repeats || places.len() == handled.len(), "{self:?}: handled twice");
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
        if self.layers == [Kind::Decrypt, Kind::DeadLetters] {
            // They are sealed.
            assert_eq!(found.len(), dead.len(), "{self:?}");
            return;
        }
        dead.sort_unstable();
        found.sort_unstable();
        if !repeats {
            assert_eq!(found, dead, "{self:?}");
        }
    }
}

/// A record as it was written, whatever retry topics it came through.
fn origin<'a>(message: impl Into<MessageRef<'a>>) -> Seen {
    let message = message.into();
    let number = |key: &str| {
        let text = std::str::from_utf8(message.header(key)?).expect("a header is text");
        Some(text.parse().expect("it is a number"))
    };
    let mut seen = Seen::of(message);
    if let Some(offset) = number(retry_header::OFFSET) {
        seen.offset = offset;
        let partition = number(retry_header::PARTITION).expect("the origin is told in full");
        seen.partition = i32::try_from(partition).expect("a partition");
    }
    seen
}

/// Of each record its own.
fn id(message: MessageRef<'_>) -> Option<Vec<u8>> {
    let Seen { partition, offset, .. } = origin(message);
    Some(format!("{partition} {offset}").into_bytes())
}

/// Runs the app of a pair.
async fn run(pair: &[Combination], world: &World) {
    let World { broker, written, .. } = world;
    let group = format!("group-{}", pair[0].number.0);
    let (mut app, mut receivers) = (broker.app(&group).shards(pair[0].shards), Vec::new());
    for combination in pair {
        let (sender, receiver) = channel();
        app = app.topic(&combination.topic(), combination.route(&world.decrypt, sender));
        receivers.push(receiver);
    }
    let shutdown = async {
        for combination in pair {
            combination.drained(broker, &group).await;
        }
    };
    let ran = tokio::time::timeout(DEADLINE, app.run(shutdown)).await;
    let layers = pair[0].layers;
    let ended = ran.unwrap_or_else(|_| panic!("{layers:?} does not end"));
    ended.unwrap_or_else(|error| panic!("{layers:?}: {error}"));
    for (combination, receiver) in pair.iter().zip(&mut receivers) {
        let topic = combination.topic();
        assert_eq!(broker.lag(&group, &topic).await, 0, "{combination:?}");
        let mut handled = Vec::new();
        while let Ok(seen) = receiver.try_recv() {
            handled.push(seen);
        }
        combination.check_order(&handled);
        combination.check_fates(broker, &written[&topic], &handled).await;
        combination.check_piped(broker, &handled).await;
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

fn topic(has_poison: bool, has_stuck: bool, route: usize) -> String {
    format!("{TOPIC}.{has_poison}.{has_stuck}.{route}")
}

/// The topic with the same records, sealed.
fn sealed(topic: &str) -> String {
    format!("{topic}.sealed")
}

pub(crate) struct World {
    pub(crate) broker: TestBroker,
    pub(crate) decrypt: Decrypt,
    /// The records of each topic in clear.
    pub(crate) written: BTreeMap<String, Vec<Seen>>,
}

impl World {
    /// A broker with all topics that the pairs read and write.
    pub(crate) async fn of(pairs: &[Vec<Combination>]) -> Self {
        let broker = TestBroker::start();
        let sealing = Sealing::start(&broker).await;
        let mut written = BTreeMap::new();
        for (has_poison, has_stuck) in [(false, false), (false, true), (true, false), (true, true)]
        {
            for route in 0..pairs[0].len() {
                let topic = topic(has_poison, has_stuck, route);
                let records = write(&broker, &sealing, &topic, has_poison, has_stuck).await;
                written.insert(sealed(&topic), records.clone());
                written.insert(topic, records);
            }
        }
        for topic in pairs.iter().flatten().flat_map(Combination::topics_written) {
            broker.create_topic(&topic, 1).await;
        }
        let decrypt = Decrypt::with(sealing.kms.clone(), &KeySettings::default());
        Self { broker, decrypt, written }
    }
}

/// Writes the records of a topic, and of that with the same records sealed; returns them as
/// handlers see them.
async fn write(
    broker: &TestBroker,
    sealing: &Sealing,
    topic: &str,
    has_poison: bool,
    has_stuck: bool,
) -> Vec<Seen> {
    broker.create_topic(topic, 2).await;
    broker.create_topic(&sealed(topic), 2).await;
    let cycle = ["good", "skip", "flaky", "old", "good", "poison", "good", "stuck"];
    let is_left = |value: &&str| match *value {
        "poison" => has_poison,
        "stuck" => has_stuck,
        _ => true,
    };
    let values = cycle.iter().cycle().take(24).filter(|value| is_left(value));
    let keys = [Some("a"), Some("b"), Some("c"), None, Some("d")];
    let records: Vec<_> = values.zip(keys.iter().cycle()).map(|(it, key)| (*key, *it)).collect();
    let is_old = |record: &(Option<&str>, &str)| record.1 == "old";
    for some in records.chunk_by(|one, next| is_old(one) == is_old(next)) {
        let at = if some.iter().any(is_old) { Duration::ZERO } else { broker.clock().now() };
        broker.produce_at(at, topic, some).await;
        sealing.produce(at, &sealed(topic), some).await;
    }
    broker.read(topic, records.len()).await.iter().map(Seen::of).collect()
}

#[tokio::test]
async fn every_pair_of_layers_settles_every_record_in_every_order() {
    let pairs = pairs();
    assert_eq!(pairs.len(), KINDS.len().pow(2));
    let world = World::of(&pairs).await;
    let all = async {
        for some in pairs.chunks(APPS) {
            join_all(some.iter().map(|pair| run(pair, &world))).await;
        }
    };
    ticking(&world.broker, all).await;
}
