//! Quotas of clients: who is limited, for how long, and what a restart keeps.

use std::net::IpAddr;

use moldau_net::Reply;
use moldau_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::describe_client_quotas_request::ComponentData;
use moldau_protocol::messages::{
    AlterClientQuotasRequest, CreatePartitionsRequest, DescribeClientQuotasRequest,
    HeartbeatRequest, ProduceRequest,
};
use moldau_protocol::{ErrorCode, Request};

use super::requests::{FETCH_BY_NAME, creatable, create, fetch, fetch_topic, only, produce};
use super::versions::each;
use super::world::{CLIENT_ID, NOW_MS, World, batch, code, decoded, request_frame};

/// The last version of Produce with names.
const PRODUCE_BY_NAME: i16 = 12;

type Part<'a> = (&'a str, Option<&'a str>);

fn entry(entity: &[Part<'_>], key: &str, value: Option<f64>) -> EntryData {
    let parts = entity.iter().map(|(kind, name)| EntityData {
        entity_type: (*kind).to_owned(),
        entity_name: name.map(str::to_owned),
        ..EntityData::default()
    });
    let op = OpData {
        key: key.to_owned(),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
        ..OpData::default()
    };
    EntryData { entity: parts.collect(), ops: vec![op], ..EntryData::default() }
}

pub(super) fn altering(
    entity: &[Part<'_>],
    key: &str,
    value: Option<f64>,
) -> AlterClientQuotasRequest {
    let entries = vec![entry(entity, key, value)];
    AlterClientQuotasRequest { entries, ..AlterClientQuotasRequest::default() }
}

impl World {
    fn alter_quota(&self, entity: &[Part<'_>], key: &str, value: Option<f64>) -> ErrorCode {
        code(self.ask(&altering(entity, key, value)).entries[0].error_code)
    }

    /// Every quota as text, in order.
    fn quotas(&self, components: &[(&str, i8, Option<&str>)], strict: bool) -> Vec<String> {
        let components = components.iter().map(|(kind, match_type, name)| ComponentData {
            entity_type: (*kind).to_owned(),
            match_type: *match_type,
            r#match: name.map(str::to_owned),
            ..ComponentData::default()
        });
        let components = components.collect();
        let request = DescribeClientQuotasRequest { components, strict, ..Default::default() };
        let entries = self.ask(&request).entries.unwrap();
        let shown = entries.iter().flat_map(|entry| {
            let parts = entry.entity.iter().map(|part| {
                format!("{}={}", part.entity_type, part.entity_name.as_deref().unwrap_or("*"))
            });
            let entity = parts.collect::<Vec<_>>().join(",");
            entry.values.iter().map(move |value| format!("{entity} {}={}", value.key, value.value))
        });
        shown.collect()
    }
}

#[test]
fn quotas_are_described_and_survive_restarts() {
    let world = World::new();
    assert_eq!(world.quotas(&[], false), [""; 0]);
    let (alice, app) = (("user", Some("alice")), ("client-id", Some("app")));
    let (user, client) = (("user", None), ("client-id", None));
    for (entity, key, value) in [
        (&[alice][..], "producer_byte_rate", 1000.0),
        (&[alice, app], "consumer_byte_rate", 2000.0),
        (&[user, client], "request_percentage", 12.5),
        (&[client], "controller_mutation_rate", 0.5),
        (&[("ip", Some("::ffff:10.0.0.1"))], "connection_creation_rate", 7.0),
        (&[user], "producer_byte_rate", 5.0),
    ] {
        assert_eq!(world.alter_quota(entity, key, Some(value)), ErrorCode::None);
    }
    assert_eq!(world.alter_quota(&[user], "producer_byte_rate", None), ErrorCode::None);
    let all = [
        "user=alice producer_byte_rate=1000",
        "client-id=* controller_mutation_rate=0.5",
        "user=*,client-id=* request_percentage=12.5",
        "user=alice,client-id=app consumer_byte_rate=2000",
        "ip=10.0.0.1 connection_creation_rate=7",
    ];
    assert_eq!(world.quotas(&[], false), all);
    assert_eq!(world.quotas(&[("user", 0, Some("alice"))], true), all[..1]);
    assert_eq!(world.quotas(&[("user", 0, Some("alice"))], false), [all[0], all[3]]);
    assert_eq!(world.quotas(&[("user", 1, None), ("client-id", 2, None)], true), [all[2]]);
    let world = world.restarted();
    assert_eq!(world.quotas(&[], false), all);
    world.state.checkpoint().unwrap();
    let world = world.restarted();
    assert_eq!(world.quotas(&[], false), all);
}

#[test]
fn a_filter_for_quotas_that_cannot_be_is_refused() {
    let world = World::new();
    let refusal = |components: &[(&str, i8, Option<&str>)]| {
        let components = components.iter().map(|(kind, match_type, name)| ComponentData {
            entity_type: (*kind).to_owned(),
            match_type: *match_type,
            r#match: name.map(str::to_owned),
            ..ComponentData::default()
        });
        let components = components.collect();
        code(
            world.ask(&DescribeClientQuotasRequest { components, ..Default::default() }).error_code,
        )
    };
    let (user, address) = (("user", 0, Some("alice")), ("ip", 0, Some("127.0.0.1")));
    assert_eq!(refusal(&[user, ("client-id", 2, None)]), ErrorCode::None);
    assert_eq!(refusal(&[user, user]), ErrorCode::InvalidRequest);
    assert_eq!(refusal(&[user, address]), ErrorCode::InvalidRequest);
    assert_eq!(refusal(&[("user", 0, None)]), ErrorCode::InvalidRequest);
    assert_eq!(refusal(&[("user", 1, Some("a"))]), ErrorCode::InvalidRequest);
    assert_eq!(refusal(&[("user", 9, None)]), ErrorCode::InvalidRequest);
    assert_eq!(refusal(&[("planet", 2, None)]), ErrorCode::UnsupportedVersion);
}

#[test]
fn a_quota_that_cannot_be_is_refused() {
    let world = World::new();
    let alice = [("user", Some("alice"))];
    let rate = "producer_byte_rate";
    for (entity, key, value) in [
        (&alice[..], "no_such_rate", 1.0),
        (&alice, "connection_creation_rate", 1.0),
        (&alice, rate, 0.0),
        (&alice, rate, -1.0),
        (&alice, rate, f64::NAN),
        (&alice, rate, 1.5),
        (&[], rate, 1.0),
        (&[("planet", None)], rate, 1.0),
        (&[("user", Some(""))], rate, 1.0),
        (&[("user", None), ("ip", None)], rate, 1.0),
        (&[("ip", None)], rate, 1.0),
        (&[("ip", Some("a host"))], "connection_creation_rate", 1.0),
    ] {
        let refused = world.alter_quota(entity, key, Some(value));
        assert_eq!(refused, ErrorCode::InvalidRequest, "{entity:?} {key} {value}");
    }
    let mut twice = altering(&alice, rate, Some(1.0));
    let again = twice.entries[0].ops[0].clone();
    twice.entries[0].ops.push(again);
    assert_eq!(code(world.ask(&twice).entries[0].error_code), ErrorCode::InvalidRequest);
    let only =
        AlterClientQuotasRequest { validate_only: true, ..altering(&alice, rate, Some(1.0)) };
    assert_eq!(code(world.ask(&only).entries[0].error_code), ErrorCode::None);
    assert_eq!(world.quotas(&[], false), [""; 0]);
    // An entity that is refused does not stop the next.
    let mut mixed = altering(&alice, rate, Some(-1.0));
    mixed.entries.push(entry(&[("user", Some("bob"))], rate, Some(1.0)));
    let answers = world.ask(&mixed).entries.into_iter().map(|it| code(it.error_code));
    assert_eq!(answers.collect::<Vec<_>>(), [ErrorCode::InvalidRequest, ErrorCode::None]);
    assert_eq!(world.quotas(&[], false), ["user=bob producer_byte_rate=1"]);
}

#[test]
fn a_producer_above_its_quota_is_throttled_and_its_records_are_kept() {
    let world = World::new();
    world.create("orders", 1);
    world.alter_quota(&[("client-id", Some(CLIENT_ID))], "producer_byte_rate", Some(1.0));
    for version in [3, 9, PRODUCE_BY_NAME] {
        let request = produce("orders", 0, batch(NOW_MS, &["a"]));
        let response = world.ask_in(version, &request);
        assert!(response.throttle_time_ms > 1_000, "{version}: {}", response.throttle_time_ms);
        assert_eq!(response.responses[0].partition_responses[0].error_code, 0);
    }
    world.alter_quota(&[("client-id", Some(CLIENT_ID))], "producer_byte_rate", Some(1e9));
    let request = produce("orders", 0, batch(NOW_MS, &["a"]));
    assert_eq!(world.ask_in(PRODUCE_BY_NAME, &request).throttle_time_ms, 0);
    assert_eq!(world.state.quotas.throttles().next().unwrap().1, 3);
}

/// A quota of another user, or of another client, is not that of this one.
#[test]
fn a_quota_limits_its_entity_alone() {
    let world = World::new();
    world.create("orders", 1);
    for entity in [&[("user", Some("bob"))][..], &[("user", None), ("client-id", Some("x"))]] {
        world.alter_quota(entity, "producer_byte_rate", Some(1.0));
    }
    let ask = || {
        let request = produce("orders", 0, batch(NOW_MS, &["a"]));
        world.ask_in(PRODUCE_BY_NAME, &request).throttle_time_ms
    };
    assert_eq!(ask(), 0);
    *world.user.borrow_mut() = "bob";
    assert!(ask() > 0);
}

#[test]
fn a_produce_without_acks_mutes_its_connection() {
    let world = World::new();
    world.create("orders", 1);
    world.alter_quota(&[("client-id", None)], "producer_byte_rate", Some(1.0));
    let request = ProduceRequest { acks: 0, ..produce("orders", 0, batch(NOW_MS, &["a"])) };
    let (reply, client) = world.send_as_client(&request_frame(PRODUCE_BY_NAME, &request));
    assert!(matches!(reply, Reply::NoResponse));
    assert!(world.is_muted(&client));
}

#[test]
fn a_consumer_above_its_quota_gets_nothing_until_it_has_waited() {
    let world = World::new();
    world.create("orders", 1);
    for _ in 0..20 {
        world.append("orders", 0, batch(NOW_MS, &["0123456789"]));
    }
    let request = fetch(vec![fetch_topic("orders", &[(0, 0)])]);
    let all = only(&mut world.ask_in(FETCH_BY_NAME, &request)).records.unwrap().len();
    world.alter_quota(&[("user", None)], "consumer_byte_rate", Some(20.0));
    // Its full windows allow 200 bytes, which is less than all.
    let mut first = world.ask_in(FETCH_BY_NAME, &request);
    assert_eq!(first.throttle_time_ms, 0);
    let bytes = only(&mut first).records.unwrap().len();
    assert!(bytes > 0 && bytes <= 200 && bytes < all, "{bytes} of {all}");
    let second = world.ask_in(FETCH_BY_NAME, &request);
    assert!(second.throttle_time_ms > 0);
    assert!(second.responses.is_empty());
    assert_eq!(second.error_code, 0);
    // What it did not get does not count.
    let third = world.ask_in(FETCH_BY_NAME, &request).throttle_time_ms;
    assert!((third - second.throttle_time_ms).abs() < 1_000, "{third}");
    let reply = world.send_at(NOW_MS + 60_000, &request_frame(FETCH_BY_NAME, &request));
    let Reply::Later(answer, _) = reply else { panic!("a fetch takes time") };
    let response = world.wait(answer);
    let fetch = moldau_protocol::messages::FetchRequest::KEY;
    let mut later: moldau_protocol::messages::FetchResponse =
        decoded(fetch, FETCH_BY_NAME, &response);
    assert_eq!(only(&mut later).records.unwrap().len(), bytes);
}

#[test]
fn the_time_of_requests_is_limited_and_throttles_for_a_window_at_most() {
    let world = World::new();
    world.alter_quota(&[("user", None)], "request_percentage", Some(1e-9));
    let heartbeat = HeartbeatRequest { group_id: "readers".to_owned(), ..Default::default() };
    for (version, response) in each(&world, |_| heartbeat.clone()) {
        assert_eq!(response.throttle_time_ms, if version == 0 { 0 } else { 1_000 });
    }
    // A response that waits for the disk.
    assert_eq!(world.ask(&create(vec![creatable("orders", 1)])).throttle_time_ms, 1_000);
    world.alter_quota(&[("user", None)], "request_percentage", Some(100.0));
    assert_eq!(world.ask(&heartbeat).throttle_time_ms, 0);
}

#[test]
fn too_many_created_and_deleted_partitions_are_refused() {
    let world = World::new();
    // A full bucket holds eleven.
    world.alter_quota(&[("user", None)], "controller_mutation_rate", Some(1.0));
    let ask = |name, partitions| {
        let response = world.ask(&create(vec![creatable(name, partitions)]));
        (code(response.topics[0].error_code), response.throttle_time_ms)
    };
    assert_eq!(ask("one", 11), (ErrorCode::None, 0));
    assert_eq!(ask("two", 4), (ErrorCode::None, 4_000));
    assert_eq!(ask("three", 1), (ErrorCode::ThrottlingQuotaExceeded, 4_000));
    let grown = world.ask(&CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic {
            name: "one".to_owned(),
            count: 12,
            assignments: None,
            ..CreatePartitionsTopic::default()
        }],
        timeout_ms: 1_000,
        ..CreatePartitionsRequest::default()
    });
    assert_eq!(code(grown.results[0].error_code), ErrorCode::ThrottlingQuotaExceeded);
    // Clients of old versions do not know the code.
    let old = world.ask_in(5, &create(vec![creatable("three", 1)]));
    assert_eq!((code(old.topics[0].error_code), old.throttle_time_ms), (ErrorCode::None, 5_000));
}

#[test]
fn connections_of_an_address_above_its_quota_wait() {
    let world = World::new();
    let address = IpAddr::from([10, 0, 0, 1]);
    let ask = || world.state.quotas.connection(address, NOW_MS);
    assert_eq!(ask(), 0);
    world.alter_quota(&[("ip", Some("10.0.0.1"))], "connection_creation_rate", Some(1.0));
    let waits: Vec<i32> = (0..12).map(|_| ask()).collect();
    assert_eq!(waits[..10], [0; 10]);
    assert_eq!(waits[10..], [1_000; 2], "what is refused does not count");
    assert_eq!(world.state.quotas.connection(IpAddr::from([10, 0, 0, 2]), NOW_MS), 0);
}

/// Asks every version of what concerns quotas.
pub(super) fn ask_about_quotas(world: &World) {
    each(world, |_| DescribeClientQuotasRequest::default());
    for value in [Some(1e9), None, Some(-1.0)] {
        each(world, |_| altering(&[("user", Some("alice"))], "producer_byte_rate", value));
    }
}
