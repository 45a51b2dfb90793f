//! Dead-letter records of share groups. The golden records are what Apache Kafka 4.4.0 wrote for
//! the same records, group and topics.

use bytes::Bytes;
use moldau_coordinator::share_partitions::Shares;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::{
    BatchBuilder, BatchOptions, Compression, Compressor, Decompressor, HeaderView, TimestampType,
    iter_batches,
};

use super::share_deliveries::{SHARERS, acknowledge, acknowledged, acquired, fetch, offsets};
use super::world::{NOW_MS, World, batch, batch_of};
use crate::dead_letters;
use crate::topic_config::TopicOverrides;

const ACCEPT: i8 = 1;
const RELEASE: i8 = 2;
const REJECT: i8 = 3;

const TOPIC: &str = "errors.deadletterqueue.topic.name";
const COPY: &str = "errors.deadletterqueue.copy.record.enable";

/// Offset, key, value, and headers in one line.
type Shown = (i64, Option<String>, Option<String>, String);

impl World {
    fn dead_letter_topic(&self, name: &str, partitions: u32) {
        self.configured_topic(name, partitions, &[("errors.deadletterqueue.group.enable", "true")]);
    }

    fn configured_topic(&self, name: &str, partitions: u32, configs: &[(&str, &str)]) {
        let configs = configs.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        let overrides: TopicOverrides = configs.collect();
        let created = self.state.catalog.create(&self.state.storage, name, partitions, overrides);
        self.wait(self.state.storage.wait_durable(created.unwrap().1)).unwrap();
    }

    fn configure(&self, configs: &[(&str, &str)]) {
        let configured = self.state.groups.configure(&self.state.storage, SHARERS, |overrides| {
            overrides.extend(configs.iter().map(|(key, value)| ((*key).into(), (*value).into())));
            Ok(())
        });
        configured.unwrap();
    }

    /// Writes dead letters until no record waits for one.
    fn bury(&self) {
        self.wait(async {
            tokio::select! {
                () = dead_letters::run(&self.state) => unreachable!("it never ends"),
                () = async {
                    while self.state.shares.view(some_wait) {
                        tokio::task::yield_now().await;
                    }
                } => {}
            }
        });
    }

    /// A member gets all records of `orders`, and says the same of each.
    fn deliver(&self, orders: Uuid, partition: i32, kind: i8) {
        let got = acquired(&self.ask(&fetch("a", 0, orders, &[partition])));
        for (epoch, (first, last, _)) in (1..).zip(got) {
            let mut said = acknowledge("a", epoch, orders, (first, last, &[kind]));
            said.topics[0].partitions[0].partition_index = partition;
            assert_eq!(acknowledged(self, &said), ErrorCode::None);
        }
    }

    /// The records of a partition.
    fn letters(&self, topic: &str, partition: i32) -> Vec<Shown> {
        let bytes = self.fetch(topic, partition, 0).records.unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let mut shown = Vec::new();
        for batch in iter_batches(&bytes) {
            let mut decompressor = Decompressor::default();
            for record in batch.unwrap().records(&mut decompressor, 1 << 20).unwrap() {
                let record = record.unwrap();
                let headers = record.headers().unwrap();
                let headers = headers.map(|HeaderView { key, value }| {
                    format!("{}={}", text(key), text(value.unwrap()))
                });
                let headers = headers.collect::<Vec<_>>().join(" | ");
                let (key, value) = (record.key().map(text), record.value().map(text));
                shown.push((record.offset(), key, value, headers));
            }
        }
        shown
    }
}

fn some_wait(shares: &Shares) -> bool {
    shares.of_group(SHARERS).any(|(_, partition)| partition.dead_letters().is_some())
}

/// The headers of Kafka.
fn headers(partition: i32, offset: i64, deliveries: i16, message: &str) -> String {
    format!(
        "__dlq.errors.topic=orders | __dlq.errors.partition={partition} | \
         __dlq.errors.offset={offset} | __dlq.errors.group=sharers | \
         __dlq.errors.delivery.count={deliveries} | __dlq.errors.message={message}"
    )
}

const REJECTED: &str = "Offset rejected by client.";
const SPENT: &str = "Offset delivery count exceeded the threshold.";

/// A record with a header of its own.
fn with_header(key: Option<&[u8]>, value: Option<&[u8]>) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let own = HeaderView { key: b"own", value: Some(b"header") };
    builder.append(NOW_MS, key, value, [own]).unwrap();
    builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap()
}

fn given_up(world: &World, kind: i8) -> Uuid {
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b", "c"]));
    world.share(SHARERS, "a", 0);
    world.deliver(orders, 0, kind);
    orders
}

#[test]
fn rejected_records_are_copied_as_kafka_copies_them() {
    let world = World::new();
    world.dead_letter_topic("dlq.one", 3);
    world.configure(&[(TOPIC, "dlq.one"), (COPY, "true")]);
    let orders = world.create("orders", 5);
    world.append("orders", 3, with_header(Some(b"k"), Some(b"v")));
    world.append("orders", 4, with_header(None, None));
    world.share(SHARERS, "a", 0);
    world.deliver(orders, 3, REJECT);
    world.deliver(orders, 4, REJECT);
    world.bury();
    let text = |text: &str| Some(text.to_owned());
    let first = (0, text("k"), text("v"), headers(3, 0, 1, REJECTED));
    assert_eq!(world.letters("dlq.one", 0), [first]);
    assert_eq!(world.letters("dlq.one", 1), [(0, None, None, headers(4, 0, 1, REJECTED))]);
    let bytes = world.fetch("dlq.one", 0, 0).records.unwrap();
    let batch = iter_batches(&bytes).next().unwrap().unwrap();
    assert_eq!(batch.timestamp_type(), TimestampType::CreateTime);
    assert!(batch.base_timestamp() > NOW_MS, "the time of the dead letter, not of the record");
    assert!(!batch.has_producer_id());
}

#[test]
fn spent_records_leave_headers_alone_unless_copied() {
    let world = World::new();
    world.dead_letter_topic("dlq.one", 1);
    world.configure(&[(TOPIC, "dlq.one"), ("share.delivery.count.limit", "2")]);
    let orders = given_up(&world, RELEASE);
    world.bury();
    assert_eq!(world.letters("dlq.one", 0), []);
    world.deliver(orders, 0, RELEASE);
    world.bury();
    let expected = [0, 1, 2].map(|offset| (offset, None, None, headers(0, offset, 2, SPENT)));
    assert_eq!(world.letters("dlq.one", 0), expected);
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 3, 0)]);
}

#[test]
fn a_group_without_a_dead_letter_topic_archives_at_once() {
    let world = World::new();
    given_up(&world, REJECT);
    assert!(!world.state.shares.view(some_wait));
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 3, 0)]);
}

#[test]
fn a_record_is_archived_after_its_dead_letter_even_across_a_restart() {
    let world = World::new();
    world.dead_letter_topic("dlq.one", 1);
    world.configure(&[(TOPIC, "dlq.one"), (COPY, "true")]);
    let orders = given_up(&world, REJECT);
    // The acknowledgement is answered, and the partition goes on.
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 0, 3)]);
    world.append("orders", 0, batch(NOW_MS, &["d"]));
    assert_eq!(acquired(&world.ask(&fetch("a", 0, orders, &[0]))), [(3, 3, 1)]);
    let world = world.restarted();
    world.state.checkpoint().expect("a checkpoint");
    let world = world.restarted();
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 0, 4)]);
    world.bury();
    let values: Vec<_> = world.letters("dlq.one", 0).into_iter().map(|it| it.2.unwrap()).collect();
    assert_eq!(values, ["a", "b", "c"]);
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 3, 1)]);
    let world = world.restarted();
    assert!(!world.state.shares.view(some_wait));
    assert_eq!(world.letters("dlq.one", 0).len(), 3);
}

#[test]
fn a_topic_that_does_not_fit_never_blocks_the_partition() {
    let cases: [(&str, &[(&str, &str)]); 6] = [
        ("dlq.absent", &[]),
        ("dlq.off", &[]),
        ("other", &[("errors.deadletterqueue.group.enable", "true")]),
        ("dlq.a b", &[]),
        (
            "dlq.keyed",
            &[("errors.deadletterqueue.group.enable", "true"), ("cleanup.policy", "compact")],
        ),
        (
            "dlq.small",
            &[("errors.deadletterqueue.group.enable", "true"), ("max.message.bytes", "10")],
        ),
    ];
    for (name, configs) in cases {
        let world = World::new();
        if !matches!(name, "dlq.absent" | "dlq.a b") {
            world.configured_topic(name, 1, configs);
        }
        world.configure(&[(TOPIC, name)]);
        given_up(&world, REJECT);
        world.bury();
        assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 3, 0)], "{name}");
        assert_eq!(world.state.catalog.by_name("dlq.absent").map(|_| ()), None);
    }
}

#[test]
fn a_topic_is_not_the_dead_letter_topic_of_itself() {
    let world = World::with(moldau_storage::Drive::Threads, |config| {
        config.groups.share.dead_letter_prefix = String::new();
    });
    world.dead_letter_topic("orders", 1);
    let orders = world.state.catalog.by_name("orders").unwrap().id;
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    world.configure(&[(TOPIC, "orders")]);
    world.share(SHARERS, "a", 0);
    world.deliver(orders, 0, REJECT);
    world.bury();
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 1, 0)]);
    assert_eq!(world.letters("orders", 0).len(), 1);
}

#[test]
fn an_absent_topic_is_created_where_that_is_allowed() {
    let world = World::with(moldau_storage::Drive::Threads, |config| {
        config.groups.share.dead_letter_auto_create = true;
    });
    world.configure(&[(TOPIC, "dlq.made")]);
    given_up(&world, REJECT);
    world.bury();
    let made = world.state.catalog.by_name("dlq.made").expect("it was created");
    assert_eq!(made.partitions, world.state.config.partitions_default);
    let expected =
        [("errors.deadletterqueue.group.enable", "true"), ("message.timestamp.type", "CreateTime")];
    assert!(made.overrides.iter().map(|(key, value)| (&**key, &**value)).eq(expected));
    assert_eq!(world.letters("dlq.made", 0).len(), 3);
}

#[test]
fn records_that_the_log_lost_have_dead_letters_without_data() {
    let world = World::new();
    world.dead_letter_topic("dlq.one", 1);
    world.configure(&[(TOPIC, "dlq.one"), (COPY, "true")]);
    let orders = world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a", "b"]));
    world.append("orders", 0, batch(NOW_MS, &["c"]));
    world.share(SHARERS, "a", 0);
    world.deliver(orders, 0, REJECT);
    let log = world.state.catalog.by_name("orders").unwrap().logs.find(0).unwrap();
    let trimmed = log.of_journal().unwrap().delete_records(2).unwrap();
    world.wait(world.state.storage.wait_durable(trimmed.lsn)).unwrap();
    // The next fetch tells the group where the log begins.
    assert_eq!(acquired(&world.ask(&fetch("a", 0, orders, &[0]))), []);
    world.bury();
    let values: Vec<_> = world.letters("dlq.one", 0).into_iter().map(|it| it.2).collect();
    assert_eq!(values, [None, None, Some("c".to_owned())]);
    assert_eq!(offsets(&world, SHARERS), [("orders".to_owned(), 0, 3, 0)]);
}

#[test]
fn large_records_are_spread_over_batches() {
    let world = World::new();
    world.configured_topic(
        "dlq.small",
        1,
        &[("errors.deadletterqueue.group.enable", "true"), ("max.message.bytes", "1000")],
    );
    world.configure(&[(TOPIC, "dlq.small"), (COPY, "true")]);
    let orders = world.create("orders", 1);
    let (small, huge) = ("s".repeat(300), "h".repeat(2_000));
    let values = [&*small, &*small, &*huge, &*small].map(|value| (NOW_MS, value));
    world.append("orders", 0, batch_of(BatchOptions::default(), Compression::Zstd, &values));
    world.share(SHARERS, "a", 0);
    world.deliver(orders, 0, REJECT);
    world.bury();
    // As in Kafka a record that is too large has no dead letter; the others have.
    let letters = world.letters("dlq.small", 0);
    let found: Vec<_> = letters.iter().map(|it| &*it.3).collect();
    assert_eq!(found, [0, 1, 3].map(|offset| headers(0, offset, 1, REJECTED)));
    assert!(letters.iter().all(|it| it.2.as_ref() == Some(&small)));
}

#[test]
fn accepted_records_and_gaps_have_no_dead_letters() {
    let world = World::new();
    world.dead_letter_topic("dlq.one", 1);
    world.configure(&[(TOPIC, "dlq.one")]);
    let orders = given_up(&world, ACCEPT);
    world.append("orders", 0, batch(NOW_MS, &["d"]));
    world.deliver(orders, 0, 0);
    assert!(!world.state.shares.view(some_wait));
    assert_eq!(world.letters("dlq.one", 0), []);
}
