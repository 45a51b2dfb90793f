//! Configuration: described, altered, refused.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_configs_request::DescribeConfigsResource;
use moldau_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult,
};
use moldau_protocol::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig,
};
use moldau_protocol::messages::{DescribeConfigsRequest, IncrementalAlterConfigsRequest};

use super::world::{NOW_MS, World, batch, code};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn describe(world: &World, kind: i8, name: &str, keys: Option<&[&str]>) -> DescribeConfigsResult {
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

fn altering(
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
    assert_eq!(
        synonyms,
        [("retention.ms", Some("1000"), 1), ("log.retention.ms", Some("604800000"), 5)]
    );
    let default = of_orders(&world, "retention.bytes");
    assert_eq!((default.value.as_deref(), default.config_source), (Some("-1"), 5));
}

#[test]
fn an_empty_list_of_keys_asks_for_all_and_an_unknown_key_for_none() {
    let world = World::new();
    world.create("orders", 1);
    let all = describe(&world, TOPIC, "orders", None).configs.len();
    assert_eq!(describe(&world, TOPIC, "orders", Some(&[])).configs.len(), all);
    assert!(describe(&world, TOPIC, "orders", Some(&["segment.bytes"])).configs.is_empty());
}

#[test]
fn the_broker_shows_its_own_configuration_as_read_only() {
    let world = World::new();
    for name in ["", "0"] {
        let configs = describe(&world, BROKER, name, None).configs;
        let partitions = configs.iter().find(|config| config.name == "num.partitions").unwrap();
        assert_eq!((partitions.value.as_deref(), partitions.read_only), (Some("3"), true));
    }
}

#[test]
fn what_has_no_configuration_is_refused() {
    let world = World::new();
    let refused = |kind, name| code(describe(&world, kind, name, None).error_code);
    assert_eq!(refused(TOPIC, "absent"), ErrorCode::UnknownTopicOrPartition);
    assert_eq!(refused(BROKER, "1"), ErrorCode::InvalidRequest);
    assert_eq!(refused(32, "readers"), ErrorCode::InvalidRequest);
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
fn words_are_appended_to_a_list_once_and_subtracted() {
    let world = World::new();
    world.create("orders", 1);
    assert_eq!(alter(&world, &[(APPEND, "cleanup.policy", Some("delete"))]), ErrorCode::None);
    assert_eq!(value(&world, "cleanup.policy"), "delete");
    assert_eq!(alter(&world, &[(SUBTRACT, "cleanup.policy", Some("compact"))]), ErrorCode::None);
    assert_eq!(value(&world, "cleanup.policy"), "delete");
    let compact = [(APPEND, "cleanup.policy", Some("compact"))];
    assert_eq!(alter(&world, &compact), ErrorCode::InvalidConfig);
    let nothing_left = [(SUBTRACT, "cleanup.policy", Some("delete"))];
    assert_eq!(alter(&world, &nothing_left), ErrorCode::InvalidConfig);
    assert_eq!(value(&world, "cleanup.policy"), "delete");
}

#[test]
fn an_alteration_that_cannot_be_is_refused_and_changes_nothing() {
    let world = World::new();
    world.create("orders", 1);
    let good = (SET, "retention.bytes", Some("5"));
    for (change, expected) in [
        ((SET, "segment.bytes", Some("1")), ErrorCode::InvalidConfig),
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

#[test]
fn an_altered_configuration_holds_for_the_next_produce() {
    let world = World::new();
    world.create("orders", 1);
    world.append("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(alter(&world, &[(SET, "max.message.bytes", Some("10"))]), ErrorCode::None);
    let refused = world.produce("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(code(refused.error_code), ErrorCode::MessageTooLarge);
}
