//! Configuration: described, altered, refused.

use moldau_coordinator::{AutoOffsetReset, IsolationLevel};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::{
    AlterConfigsRequest, DescribeConfigsRequest, IncrementalAlterConfigsRequest,
    alter_configs_request,
};
use moldau_storage::Drive;

use super::world::{NOW_MS, World, batch, code};
use crate::topic_config::TopicDefaults;

pub(super) const TOPIC: i8 = 2;
pub(super) const BROKER: i8 = 4;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

pub(super) const SET: i8 = 0;
pub(super) const DELETE: i8 = 1;
pub(super) const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(super) fn describe(
    world: &World,
    kind: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> DescribeConfigsResult {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| (*key).to_owned()).collect()),
        ..DescribeConfigsResource::default()
    };
    let request = DescribeConfigsRequest {
        resources: vec![resource],
        include_synonyms: true,
        include_documentation: true,
        ..DescribeConfigsRequest::default()
    };
    world.ask(&request).results.remove(0)
}

fn of_orders(world: &World, key: &str) -> DescribeConfigsResourceResult {
    describe(world, TOPIC, "orders", Some(&[key])).configs.remove(0)
}

fn value(world: &World, key: &str) -> String {
    of_orders(world, key).value.unwrap()
}

pub(super) fn altering(
    kind: i8,
    name: &str,
    changes: &[(i8, &str, Option<&str>)],
) -> IncrementalAlterConfigsRequest {
    let configs = changes.iter().map(|(operation, key, value)| AlterableConfig {
        name: (*key).to_owned(),
        config_operation: *operation,
        value: value.map(str::to_owned),
        ..AlterableConfig::default()
    });
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        configs: configs.collect(),
        ..AlterConfigsResource::default()
    };
    IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() }
}

fn alter(world: &World, changes: &[(i8, &str, Option<&str>)]) -> ErrorCode {
    code(world.ask(&altering(TOPIC, "orders", changes)).responses[0].error_code)
}

#[test]
fn a_topic_shows_each_key_with_its_source_and_its_default() {
    let world = World::new();
    world.create_with("orders", 1, &[("retention.ms", "1000")]);
    let all = describe(&world, TOPIC, "orders", None);
    assert_eq!(code(all.error_code), ErrorCode::None);
    assert!(all.configs.iter().all(|config| config.documentation.is_some() && !config.read_only));
    let own = of_orders(&world, "retention.ms");
    assert_eq!((own.value.as_deref(), own.config_source, own.config_type), (Some("1000"), 1, 5));
    let synonyms: Vec<_> =
        own.synonyms.iter().map(|it| (it.name.as_str(), it.value.as_deref(), it.source)).collect();
    // Kafka's broker has its default under another key, log.retention.hours.
    assert_eq!(synonyms, [("retention.ms", Some("1000"), 1)]);
    let default = of_orders(&world, "retention.bytes");
    assert_eq!((default.value.as_deref(), default.config_source), (Some("-1"), 5));
    let synonym = &default.synonyms[0];
    assert_eq!((synonym.name.as_str(), synonym.source), ("log.retention.bytes", 5));
}

#[test]
fn an_empty_list_of_keys_asks_for_all_and_an_unknown_key_for_none() {
    let world = World::new();
    world.create("orders", 1);
    let all = describe(&world, TOPIC, "orders", None).configs.len();
    assert_eq!(describe(&world, TOPIC, "orders", Some(&[])).configs.len(), all);
    assert!(describe(&world, TOPIC, "orders", Some(&["no.such.key"])).configs.is_empty());
}

/// A topic without overrides had Kafka's own defaults, whatever the operator chose.
#[test]
fn topics_have_the_defaults_of_the_broker_and_say_so() {
    let world = World::with(Drive::Threads, |config| {
        let given = [("log.retention.hours", "2"), ("log.segment.bytes", "2097152")];
        let defaults = given.iter().try_fold(TopicDefaults::default(), |it, (k, v)| it.with(k, v));
        config.topic_defaults = defaults.unwrap();
    });
    world.create_with("orders", 1, &[("segment.bytes", "1048576")]);
    let retention = of_orders(&world, "retention.ms");
    assert_eq!((retention.value.as_deref(), retention.config_source), (Some("7200000"), 4));
    let synonyms = |config: DescribeConfigsResourceResult| -> Vec<_> {
        let synonyms = config.synonyms.into_iter();
        synonyms.map(|it| (it.name, it.value.unwrap(), it.source)).collect()
    };
    let synonym = |name: &str, value: &str, source| (name.to_owned(), value.to_owned(), source);
    assert_eq!(synonyms(retention), [synonym("log.retention.hours", "2", 4)]);
    let wanted = [
        synonym("segment.bytes", "1048576", 1),
        synonym("log.segment.bytes", "2097152", 4),
        synonym("log.segment.bytes", "1073741824", 5),
    ];
    assert_eq!(synonyms(of_orders(&world, "segment.bytes")), wanted);
    let broker = describe(&world, BROKER, "0", None).configs;
    let shown = |name: &str| {
        let config = broker.iter().find(|config| config.name == name)?;
        Some((config.value.clone()?, config.config_source))
    };
    assert_eq!(shown("log.retention.hours"), Some(("2".to_owned(), 4)));
    assert_eq!(shown("log.retention.ms"), None);
    assert_eq!(shown("message.max.bytes"), Some(("1048588".to_owned(), 5)));
}

#[test]
fn resources_without_configuration_are_refused() {
    let world = World::new();
    let refused = |kind, name| code(describe(&world, kind, name, None).error_code);
    assert_eq!(refused(TOPIC, "absent"), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(refused(TOPIC, "not a name"), ErrorCode::InvalidTopicException);
    assert_eq!(refused(BROKER, "1"), ErrorCode::InvalidRequest);
    assert_eq!(refused(GROUP, ""), ErrorCode::InvalidRequest);
    assert_eq!(refused(CLIENT_METRICS, ""), ErrorCode::InvalidRequest);
}

#[test]
fn a_value_is_set_and_deleted() {
    let world = World::new();
    world.create("orders", 1);
    assert_eq!(alter(&world, &[(SET, "retention.ms", Some("5"))]), ErrorCode::None);
    assert_eq!(value(&world, "retention.ms"), "5");
    assert_eq!(alter(&world, &[(DELETE, "retention.ms", None)]), ErrorCode::None);
    assert_eq!(value(&world, "retention.ms"), "604800000");
    assert_eq!(alter(&world, &[(DELETE, "retention.ms", None)]), ErrorCode::None);
}

#[test]
fn list_values_are_appended_once_and_subtracted() {
    let world = World::new();
    world.create("orders", 1);
    for (operation, words, left) in [
        (APPEND, "compact", "delete,compact"),
        (APPEND, "compact", "delete,compact"),
        (SUBTRACT, "delete", "compact"),
        (APPEND, "delete , compact", "compact,delete"),
        (SUBTRACT, "absent", "compact,delete"),
        (SUBTRACT, "", "compact,delete"),
        (SUBTRACT, "compact,delete", ""),
        (APPEND, "delete", "delete"),
    ] {
        let change = [(operation, "cleanup.policy", Some(words))];
        assert_eq!(alter(&world, &change), ErrorCode::None, "{change:?}");
        assert_eq!(value(&world, "cleanup.policy"), left, "{change:?}");
    }
    for words in ["absent", ""] {
        let change = [(APPEND, "cleanup.policy", Some(words))];
        assert_eq!(alter(&world, &change), ErrorCode::InvalidConfig, "{words}");
        assert_eq!(value(&world, "cleanup.policy"), "delete");
    }
}

/// Each step alone is short enough; the journal's record could not hold the third.
#[test]
fn list_cannot_exceed_the_storable_length() {
    let world = World::new();
    world.create("orders", 1);
    let key = "leader.replication.throttled.replicas";
    let of_broker = |broker: usize| vec![format!("10000000:{broker}"); 2_900].join(",");
    assert_eq!(alter(&world, &[(SET, key, Some(&of_broker(0)))]), ErrorCode::None);
    let more = of_broker(1);
    assert_eq!(alter(&world, &[(APPEND, key, Some(&more))]), ErrorCode::InvalidConfig);
    assert_eq!(value(&world, key), of_broker(0));
}

#[test]
fn value_is_shown_in_canonical_form() {
    let world = World::new();
    world.create_with("orders", 1, &[("retention.ms", " 005 ")]);
    assert_eq!(value(&world, "retention.ms"), "5");
    assert_eq!(alter(&world, &[(SET, "retention.ms", Some("+6"))]), ErrorCode::None);
    assert_eq!(value(&world, "retention.ms"), "6");
}

#[test]
fn the_older_alteration_replaces_the_whole_configuration() {
    let world = World::new();
    world.create_with("orders", 1, &[("retention.bytes", "7")]);
    let replace = |kind, name: &str, configs: &[(&str, Option<&str>)]| {
        let configs = configs.iter().map(|(name, value)| alter_configs_request::AlterableConfig {
            name: (*name).to_owned(),
            value: value.map(str::to_owned),
            ..Default::default()
        });
        let resource = alter_configs_request::AlterConfigsResource {
            resource_type: kind,
            resource_name: name.to_owned(),
            configs: configs.collect(),
            ..Default::default()
        };
        let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
        code(world.ask(&request).responses[0].error_code)
    };
    let shown = || (value(&world, "retention.ms"), value(&world, "retention.bytes"));
    let both = |ms: &str, bytes: &str| (ms.to_owned(), bytes.to_owned());
    assert_eq!(replace(TOPIC, "orders", &[("retention.ms", Some("5"))]), ErrorCode::None);
    assert_eq!(shown(), both("5", "-1"));
    for (configs, refusal) in [
        ([("retention.ms", Some("week"))], ErrorCode::InvalidConfig),
        ([("retention.ms", None)], ErrorCode::InvalidRequest),
        ([("no.such.key", Some("1"))], ErrorCode::InvalidConfig),
    ] {
        assert_eq!(replace(TOPIC, "orders", &configs), refusal, "{configs:?}");
        assert_eq!(shown(), both("5", "-1"));
    }
    assert_eq!(replace(TOPIC, "orders", &[]), ErrorCode::None);
    assert_eq!(shown(), both("604800000", "-1"));
    assert_eq!(replace(TOPIC, "absent", &[]), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(replace(BROKER, "1", &[]), ErrorCode::InvalidRequest);
    assert_eq!(replace(BROKER, "0", &[("log.retention.ms", Some("5"))]), ErrorCode::None);
    assert_eq!(shown(), both("5", "-1"));
    assert_eq!(replace(BROKER, "0", &[]), ErrorCode::None);
    assert_eq!(shown(), both("604800000", "-1"));
    assert_eq!(replace(BROKER, "0", &[("log.dirs", Some("x"))]), ErrorCode::InvalidRequest);
}

#[test]
fn invalid_alteration_changes_nothing() {
    let world = World::new();
    world.create("orders", 1);
    let good = (SET, "retention.bytes", Some("5"));
    for (change, expected) in [
        ((SET, "no.such.key", Some("1")), ErrorCode::InvalidConfig),
        ((SET, "compression.type", Some("lzma")), ErrorCode::InvalidConfig),
        ((SET, "retention.ms", Some("week")), ErrorCode::InvalidConfig),
        ((SET, "retention.ms", None), ErrorCode::InvalidRequest),
        ((APPEND, "retention.ms", Some("1")), ErrorCode::InvalidConfig),
        ((APPEND, "cleanup.policy", None), ErrorCode::InvalidRequest),
        ((9, "retention.ms", Some("1")), ErrorCode::InvalidRequest),
        (good, ErrorCode::InvalidRequest),
    ] {
        assert_eq!(alter(&world, &[good, change]), expected, "{change:?}");
        assert_eq!(value(&world, "retention.bytes"), "-1");
    }
    let of = |kind, name| code(world.ask(&altering(kind, name, &[good])).responses[0].error_code);
    assert_eq!(of(TOPIC, "absent"), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(of(TOPIC, "not a name"), ErrorCode::InvalidTopicException);
    assert_eq!(of(TOPIC, ""), ErrorCode::InvalidRequest);
    assert_eq!(of(BROKER, "0"), ErrorCode::InvalidRequest);
}

#[test]
fn validating_an_alteration_changes_nothing() {
    let world = World::new();
    world.create("orders", 1);
    let request = altering(TOPIC, "orders", &[(SET, "retention.ms", Some("5"))]);
    let validating = IncrementalAlterConfigsRequest { validate_only: true, ..request };
    assert_eq!(code(world.ask(&validating).responses[0].error_code), ErrorCode::None);
    assert_eq!(value(&world, "retention.ms"), "604800000");
}

/// Kafka Streams, Connect and Schema Registry cannot start where one of these is refused.
#[test]
fn the_topics_of_common_tools_are_created() {
    let world = World::new();
    let repartition = [
        ("cleanup.policy", "delete"),
        ("segment.bytes", "52428800"),
        ("retention.ms", "-1"),
        ("message.timestamp.type", "CreateTime"),
    ];
    world.create_with("repartition", 1, &repartition);
    let changelog = [("cleanup.policy", "compact"), ("message.timestamp.type", "CreateTime")];
    world.create_with("changelog", 1, &changelog);
    let windowed = [
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "86460000"),
        ("message.timestamp.type", "CreateTime"),
    ];
    world.create_with("windowed-changelog", 1, &windowed);
    let connect = [("cleanup.policy", "compact"), ("min.insync.replicas", "1")];
    world.create_with("connect-offsets", 1, &connect);
    world.create_with("schemas", 1, &[("cleanup.policy", "compact")]);
}

#[test]
fn an_altered_configuration_holds_for_the_next_produce() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(alter(&world, &[(SET, "max.message.bytes", Some("10"))]), ErrorCode::None);
    let refused = world.produce("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(code(refused.error_code), ErrorCode::MessageTooLarge);
}

/// A hundred bytes of a request came back as several thousand, as often as they stood in it.
#[test]
fn a_configuration_is_described_once_in_an_answer() {
    let world = World::new();
    world.create("orders", 1);
    let resource = DescribeConfigsResource {
        resource_type: TOPIC,
        resource_name: "orders".to_owned(),
        configuration_keys: None,
        ..DescribeConfigsResource::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource; 2], ..Default::default() };
    let results = world.ask(&request).results;
    let told: Vec<_> =
        results.iter().map(|it| (code(it.error_code), it.configs.is_empty())).collect();
    assert_eq!(told, [(ErrorCode::None, false), (ErrorCode::InvalidRequest, true)]);
}

#[test]
fn a_group_has_a_configuration_that_outlives_a_restart() {
    let key = "consumer.session.timeout.ms";
    let world = World::new();
    let alter = |world: &World, operation, value| {
        let request = altering(GROUP, "readers", &[(operation, key, value)]);
        code(world.ask(&request).responses[0].error_code)
    };
    let shown = |world: &World| {
        let config = describe(world, GROUP, "readers", Some(&[key])).configs.remove(0);
        (config.value.unwrap(), config.config_source, config.config_type)
    };
    assert_eq!(describe(&world, GROUP, "readers", None).configs.len(), 20);
    assert_eq!(shown(&world), ("45000".to_owned(), 5, 3));
    assert_eq!(alter(&world, SET, Some("50000")), ErrorCode::None);
    assert_eq!(alter(&world, SET, Some("70000")), ErrorCode::InvalidConfig);
    assert_eq!(alter(&world, APPEND, Some("1")), ErrorCode::InvalidConfig);
    let world = world.restarted();
    assert_eq!(shown(&world), ("50000".to_owned(), 8, 3));
    assert_eq!(alter(&world, DELETE, None), ErrorCode::None);
    assert_eq!(shown(&world).1, 5);
    let unknown = altering(GROUP, "readers", &[(SET, "retention.ms", Some("1"))]);
    assert_eq!(code(world.ask(&unknown).responses[0].error_code), ErrorCode::InvalidConfig);
    let unnamed = altering(GROUP, "", &[(SET, key, Some("50000"))]);
    assert_eq!(code(world.ask(&unnamed).responses[0].error_code), ErrorCode::InvalidRequest);
}

#[test]
fn keys_of_streams_groups_take_numbers_and_tags() {
    let world = World::new();
    let set = |key: &str, value: &str| {
        let request = altering(GROUP, "counters", &[(SET, key, Some(value))]);
        code(world.ask(&request).responses[0].error_code)
    };
    let shown = |key: &str| {
        let config = describe(&world, GROUP, "counters", Some(&[key])).configs.remove(0);
        (config.value.unwrap(), config.config_source, config.config_type)
    };
    let cases = [
        ("streams.session.timeout.ms", "45000", 3, "50000", "44999"),
        ("streams.heartbeat.interval.ms", "5000", 3, "6000", "4999"),
        ("streams.assignment.interval.ms", "1000", 3, "0", "15001"),
        ("streams.num.standby.replicas", "0", 3, "1", "3"),
        ("streams.initial.rebalance.delay.ms", "3000", 3, "0", "-1"),
        ("streams.rack.aware.assignment.tags", "", 7, "zone,rack", "zone,zone"),
    ];
    for (key, default, config_type, value, wrong) in cases {
        assert_eq!(shown(key), (default.to_owned(), 5, config_type), "{key}");
        assert_eq!(set(key, wrong), ErrorCode::InvalidConfig, "{key}");
        assert_eq!(set(key, value), ErrorCode::None, "{key}");
        assert_eq!(shown(key), (value.to_owned(), 8, config_type), "{key}");
    }
}

#[test]
fn keys_of_share_groups_take_words_and_numbers() {
    let world = World::new();
    let set = |key: &str, value: &str| {
        let request = altering(GROUP, "workers", &[(SET, key, Some(value))]);
        code(world.ask(&request).responses[0].error_code)
    };
    let shown = |key: &str| {
        let config = describe(&world, GROUP, "workers", Some(&[key])).configs.remove(0);
        (config.value.unwrap(), config.config_source, config.config_type, config.synonyms.len())
    };
    let cases = [
        ("share.auto.offset.reset", "latest", (2, 1), "by_duration:PT1H", "none"),
        ("share.isolation.level", "read_uncommitted", (2, 1), "read_committed", "serializable"),
        ("share.renew.acknowledge.enable", "true", (1, 1), "false", "no"),
        ("share.record.lock.duration.ms", "30000", (3, 1), "15000", "14999"),
        ("share.delivery.count.limit", "5", (3, 1), "2", "1"),
        ("share.partition.max.record.locks", "2000", (3, 1), "4000", "4001"),
    ];
    for (key, default, (config_type, synonyms), value, wrong) in cases {
        assert_eq!(shown(key), (default.to_owned(), 5, config_type, synonyms), "{key}");
        assert_eq!(set(key, wrong), ErrorCode::InvalidConfig, "{key}");
        assert_eq!(set(key, value), ErrorCode::None, "{key}");
        assert_eq!(shown(key), (value.to_owned(), 8, config_type, synonyms + 1), "{key}");
    }
    let settings = world.state.groups.view(|groups| groups.share_settings("workers"));
    assert_eq!(settings.auto_offset_reset, AutoOffsetReset::ByDuration(3_600_000));
    assert_eq!(settings.isolation_level, IsolationLevel::ReadCommitted);
    assert_eq!((settings.record_lock_duration_ms, settings.delivery_count_limit), (15_000, 2));
    assert!(!settings.renew_acknowledge_enable);
}
