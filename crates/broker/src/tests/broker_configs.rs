//! Configuration of brokers, defaults of topics that clients change, and loggers.

use std::sync::{Arc, Mutex};

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::IncrementalAlterConfigsRequest;
use moldau_protocol::messages::describe_configs_response::DescribeConfigsResourceResult;
use moldau_storage::Drive;

use super::configs::{APPEND, BROKER, DELETE, SET, TOPIC, altering, describe};
use super::world::{NOW_MS, World, batch, code};
use crate::config::FileKey;
use crate::loggers::{Level, Loggers, ROOT};
use crate::topic_config::TopicDefaults;

const LOGGER: i8 = 8;

/// Kafka's numbers of sources.
const OF_TOPIC: i8 = 1;
const OF_BROKER: i8 = 2;
const OF_CLUSTER: i8 = 3;
const OF_FILE: i8 = 4;
const BUILT_IN: i8 = 5;

type Changes<'a> = &'a [(i8, &'a str, Option<&'a str>)];

fn alter(world: &World, kind: i8, name: &str, changes: Changes<'_>) -> ErrorCode {
    code(world.ask(&altering(kind, name, changes)).responses[0].error_code)
}

fn of(world: &World, kind: i8, name: &str, key: &str) -> DescribeConfigsResourceResult {
    describe(world, kind, name, Some(&[key])).configs.remove(0)
}

/// Value and source of a key.
fn shown(world: &World, kind: i8, name: &str, key: &str) -> (String, i8) {
    let config = of(world, kind, name, key);
    (config.value.unwrap(), config.config_source)
}

fn synonyms(config: DescribeConfigsResourceResult) -> Vec<(String, String, i8)> {
    let synonyms = config.synonyms.into_iter();
    synonyms.map(|it| (it.name, it.value.unwrap(), it.source)).collect()
}

#[test]
fn the_broker_shows_its_own_settings_with_type_source_and_documentation() {
    let key = |name, is_given| FileKey { name, documentation: "What it does.", is_given };
    let world = World::with(Drive::Threads, |config| {
        config.file_keys = vec![key("num.partitions", true), key("quota.window.num", false)];
    });
    let partitions = of(&world, BROKER, "0", "num.partitions");
    assert_eq!((partitions.value.as_deref(), partitions.config_type), (Some("3"), 3));
    assert_eq!((partitions.read_only, partitions.config_source), (true, OF_FILE));
    assert_eq!(partitions.documentation.as_deref(), Some("What it does."));
    let expected = ("num.partitions".to_owned(), "3".to_owned(), OF_FILE);
    assert_eq!(synonyms(partitions), [expected]);
    assert_eq!(shown(&world, BROKER, "0", "node.id"), ("0".to_owned(), OF_FILE));
    assert_eq!(shown(&world, BROKER, "0", "quota.window.num"), ("11".to_owned(), BUILT_IN));
    let all = describe(&world, BROKER, "0", None).configs;
    let fixed = ["node.id", "group.share.assignors", "log.retention.ms"];
    for config in all.iter().filter(|config| fixed.contains(&config.name.as_str())) {
        assert!(!config.documentation.as_ref().unwrap().is_empty(), "{}", config.name);
    }
    let names: std::collections::HashSet<_> = all.iter().map(|config| &config.name).collect();
    assert_eq!(names.len(), all.len());
}

/// Kafka's order: this broker, all brokers, the file, the built-in default.
#[test]
fn clients_change_the_defaults_of_topics_and_the_nearest_source_wins() {
    let world = World::with(Drive::Threads, |config| {
        config.topic_defaults = TopicDefaults::default().with("log.retention.bytes", "4").unwrap();
    });
    world.create("plain", 1);
    world.create_with("own", 1, &[("retention.bytes", "1")]);
    let key = "log.retention.bytes";
    let of_topic = |topic| shown(&world, TOPIC, topic, "retention.bytes");
    let value = |value: &str, source| (value.to_owned(), source);
    assert_eq!(of_topic("plain"), value("4", OF_FILE));
    assert_eq!(alter(&world, BROKER, "", &[(SET, key, Some("3"))]), ErrorCode::None);
    assert_eq!(of_topic("plain"), value("3", OF_CLUSTER));
    assert_eq!(alter(&world, BROKER, "0", &[(SET, key, Some("2"))]), ErrorCode::None);
    assert_eq!(of_topic("plain"), value("2", OF_BROKER));
    assert_eq!(of_topic("own"), value("1", OF_TOPIC));
    let of_broker = of(&world, BROKER, "0", key);
    assert!(!of_broker.read_only);
    let named = |text: &str, source| (key.to_owned(), text.to_owned(), source);
    let given = [named("2", OF_BROKER), named("3", OF_CLUSTER), named("4", OF_FILE)];
    assert_eq!(synonyms(of_broker)[..3], given);
    let of_cluster = describe(&world, BROKER, "", None).configs;
    let names: Vec<_> = of_cluster.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["min.insync.replicas", key]);
    assert_eq!(synonyms(of(&world, BROKER, "", key)), [named("3", OF_CLUSTER)]);
    let world = world.restarted_with(|config| {
        config.topic_defaults = TopicDefaults::default().with("log.retention.bytes", "5").unwrap();
    });
    let of_topic = |topic| shown(&world, TOPIC, topic, "retention.bytes");
    assert_eq!(of_topic("plain"), value("2", OF_BROKER));
    world.state.checkpoint().unwrap();
    let world = world.restarted();
    let of_topic = |topic| shown(&world, TOPIC, topic, "retention.bytes");
    assert_eq!(of_topic("plain"), value("2", OF_BROKER));
    assert_eq!(alter(&world, BROKER, "0", &[(DELETE, key, None)]), ErrorCode::None);
    assert_eq!(of_topic("plain"), value("3", OF_CLUSTER));
    assert_eq!(alter(&world, BROKER, "", &[(DELETE, key, None)]), ErrorCode::None);
    assert_eq!(of_topic("plain"), value("5", OF_FILE));
}

/// Kafka's tools show it beside the own configuration of each topic.
#[test]
fn all_brokers_always_have_one_number_of_replicas_in_sync() {
    let key = "min.insync.replicas";
    let world = World::with(Drive::Threads, |config| {
        config.topic_defaults = TopicDefaults::default().with(key, "2").unwrap();
    });
    world.create("orders", 1);
    assert_eq!(shown(&world, TOPIC, "orders", key), ("2".to_owned(), OF_CLUSTER));
    let named = |text: &str, source| (key.to_owned(), text.to_owned(), source);
    assert_eq!(synonyms(of(&world, BROKER, "", key)), [named("2", OF_CLUSTER)]);
    for (broker, change) in [("", (DELETE, key, None)), ("0", (SET, key, Some("1")))] {
        assert_eq!(
            alter(&world, BROKER, broker, &[change]),
            ErrorCode::InvalidConfig,
            "{broker:?}"
        );
    }
    assert_eq!(alter(&world, BROKER, "", &[(SET, key, Some("1"))]), ErrorCode::None);
    assert_eq!(shown(&world, TOPIC, "orders", key), ("1".to_owned(), OF_CLUSTER));
}

#[test]
fn a_key_that_a_broker_does_not_have_is_deleted() {
    let world = World::new();
    // kafka-reassign-partitions ends each move so.
    let throttle = (DELETE, "leader.replication.throttled.rate", None);
    for broker in ["0", ""] {
        assert_eq!(alter(&world, BROKER, broker, &[throttle]), ErrorCode::None);
    }
}

#[test]
fn a_changed_default_holds_for_the_next_produce_and_the_next_topic() {
    let world = World::new();
    world.create("orders", 1);
    let change = [(SET, "message.max.bytes", Some("10"))];
    assert_eq!(alter(&world, BROKER, "", &change), ErrorCode::None);
    world.create("later", 1);
    for topic in ["orders", "later"] {
        let refused = world.produce(topic, 0, batch(NOW_MS, &["a"]));
        assert_eq!(code(refused.error_code), ErrorCode::MessageTooLarge, "{topic}");
    }
}

#[test]
fn a_list_of_defaults_is_appended_to() {
    let world = World::new();
    world.create("orders", 1);
    let change = [(APPEND, "log.cleanup.policy", Some("compact"))];
    assert_eq!(alter(&world, BROKER, "0", &change), ErrorCode::None);
    let policy = shown(&world, TOPIC, "orders", "cleanup.policy");
    assert_eq!(policy, ("delete,compact".to_owned(), OF_BROKER));
}

#[test]
fn what_the_running_broker_cannot_change_is_refused_and_changes_nothing() {
    let world = World::new();
    world.create("orders", 1);
    let good = (SET, "log.retention.bytes", Some("5"));
    for (change, expected) in [
        ((SET, "log.dirs", Some("x")), ErrorCode::InvalidRequest),
        ((SET, "no.such.key", Some("x")), ErrorCode::InvalidRequest),
        ((SET, "log.retention.hours", Some("1")), ErrorCode::InvalidRequest),
        ((SET, "log.retention.ms", None), ErrorCode::InvalidRequest),
        ((SET, "log.retention.ms", Some("week")), ErrorCode::InvalidRequest),
        ((APPEND, "log.retention.ms", Some("1")), ErrorCode::InvalidConfig),
        ((9, "log.retention.ms", Some("1")), ErrorCode::InvalidRequest),
        ((SET, "log.cleaner.min.compaction.lag.ms", Some("5")), ErrorCode::InvalidRequest),
    ] {
        let lag = (SET, "log.cleaner.max.compaction.lag.ms", Some("4"));
        assert_eq!(alter(&world, BROKER, "0", &[good, lag, change]), expected, "{change:?}");
        assert_eq!(shown(&world, TOPIC, "orders", "retention.bytes").1, BUILT_IN);
    }
    assert_eq!(alter(&world, BROKER, "1", &[good]), ErrorCode::InvalidRequest);
    let request = altering(BROKER, "0", &[good]);
    let validating = IncrementalAlterConfigsRequest { validate_only: true, ..request };
    assert_eq!(code(world.ask(&validating).responses[0].error_code), ErrorCode::None);
    assert_eq!(shown(&world, TOPIC, "orders", "retention.bytes").1, BUILT_IN);
}

/// Loggers that keep the changes.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<(String, Option<Level>)>>);

impl Loggers for Recorder {
    fn levels(&self) -> Vec<(&'static str, Level)> {
        vec![("moldau_net", Level::Debug), (ROOT, Level::Warn)]
    }

    fn set(&self, logger: &str, level: Option<Level>) {
        self.0.lock().unwrap().push((logger.to_owned(), level));
    }
}

#[test]
fn loggers_show_their_levels_and_get_others() {
    let recorder = Arc::new(Recorder::default());
    let world = World::with(Drive::Threads, |config| config.loggers = Some(recorder.clone()));
    let root = of(&world, LOGGER, "0", "root");
    assert_eq!(
        (root.value.as_deref(), root.config_source, root.read_only),
        (Some("WARN"), 6, false)
    );
    assert_eq!(of(&world, LOGGER, "0", "moldau_net").value.as_deref(), Some("DEBUG"));
    let refused = describe(&world, LOGGER, "1", None);
    assert_eq!(code(refused.error_code), ErrorCode::InvalidRequest);
    let first = (SET, "root", Some("ERROR"));
    for (change, expected) in [
        ((SET, "moldau_net", Some("LOUD")), ErrorCode::InvalidConfig),
        ((SET, "moldau_net", None), ErrorCode::InvalidRequest),
        ((SET, "no.such.Logger", Some("INFO")), ErrorCode::InvalidConfig),
        ((DELETE, "root", None), ErrorCode::InvalidRequest),
        ((APPEND, "moldau_net", Some("INFO")), ErrorCode::InvalidRequest),
    ] {
        let changes = if change.1 == "root" { vec![change] } else { vec![first, change] };
        assert_eq!(alter(&world, LOGGER, "0", &changes), expected, "{change:?}");
    }
    let request = altering(LOGGER, "0", &[first]);
    world.ask(&IncrementalAlterConfigsRequest { validate_only: true, ..request });
    assert_eq!(*recorder.0.lock().unwrap(), []);
    let changes = [(SET, "root", Some("FATAL")), (DELETE, "moldau_net", None)];
    assert_eq!(alter(&world, LOGGER, "0", &changes), ErrorCode::None);
    let expected = [("root".to_owned(), Some(Level::Error)), ("moldau_net".to_owned(), None)];
    assert_eq!(*recorder.0.lock().unwrap(), expected);
}
