//! Metrics of clients: subscriptions, who may push when, and what a restart keeps.

use bytes::Bytes;
use moldau_net::Reply;
use moldau_protocol::messages::{
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse,
    ListConfigResourcesRequest, PushTelemetryRequest, PushTelemetryResponse,
};
use moldau_protocol::{ErrorCode, Request, Uuid};
use moldau_records::{Compression, Compressor, Packing};

use super::configs::{APPEND, DELETE, SET, altering, describe};
use super::versions::each;
use super::world::{CLIENT_ID, NOW_MS, World, code, decoded, request_frame};
use crate::clock::wall_clock_ms;
use crate::metrics::open_metrics;
use crate::telemetry::tests::sample;

const CLIENT_METRICS: i8 = 16;

const ID: Uuid = Uuid::from_bytes([7; 16]);

/// The interval of the subscription, in milliseconds.
const INTERVAL_MS: i64 = 1_000;

impl World {
    fn at<Q: Request>(&self, now_ms: i64, request: &Q) -> Q::Response {
        let Reply::Ready(response) = self.send_at(now_ms, &request_frame(0, request)) else {
            panic!("not answered at once");
        };
        decoded::<Q::Response>(Q::KEY, 0, &response)
    }

    fn subscription(&self, now_ms: i64) -> GetTelemetrySubscriptionsResponse {
        let client_instance_id = ID;
        self.at(now_ms, &GetTelemetrySubscriptionsRequest { client_instance_id, ..<_>::default() })
    }

    fn push(&self, now_ms: i64, request: &PushTelemetryRequest) -> ErrorCode {
        let answer: PushTelemetryResponse = self.at(now_ms, request);
        code(answer.error_code)
    }

    fn subscribe(&self, name: &str, key: &str, operation: i8, value: Option<&str>) -> ErrorCode {
        let request = altering(CLIENT_METRICS, name, &[(operation, key, value)]);
        code(self.ask(&request).responses[0].error_code)
    }

    fn subscribe_all(&self) {
        for (key, value) in [("metrics", "*"), ("interval.ms", "1000")] {
            assert_eq!(self.subscribe("all", key, SET, Some(value)), ErrorCode::None);
        }
    }

    fn page(&self) -> String {
        let net = std::sync::Arc::new(moldau_net::Metrics::default());
        open_metrics(&self.state, &net).unwrap()
    }
}

fn pushing(subscription_id: i32) -> PushTelemetryRequest {
    PushTelemetryRequest {
        client_instance_id: ID,
        subscription_id,
        metrics: Bytes::from(sample()),
        ..PushTelemetryRequest::default()
    }
}

fn packed(codec: Compression, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Compressor::default().compress(Packing::from(codec), bytes, &mut out).unwrap();
    out
}

#[test]
fn a_client_gets_what_matching_subscriptions_want() {
    let world = World::new();
    let none = world.subscription(NOW_MS);
    assert_eq!((none.requested_metrics, none.push_interval_ms), (Vec::new(), 300_000));
    for (name, metrics, interval, matches) in [
        ("a", "org.apache.kafka.producer.", "60000", format!("client_id={CLIENT_ID}")),
        ("b", "org.apache.kafka.consumer.,x", "30000", "client_source_address=127[.].*".to_owned()),
        ("c", "*", "100", "client_software_name=other".to_owned()),
        ("d", "*", "100", format!("client_id=t.*,client_instance_id={}", Uuid::ZERO)),
    ] {
        for (key, value) in
            [("metrics", metrics), ("interval.ms", interval), ("match", matches.as_str())]
        {
            assert_eq!(world.subscribe(name, key, SET, Some(value)), ErrorCode::None, "{name}");
        }
    }
    // It changed, so that the client may ask at once.
    let both = world.subscription(NOW_MS);
    let prefixes = ["org.apache.kafka.consumer.", "org.apache.kafka.producer.", "x"];
    assert_eq!(both.requested_metrics, prefixes);
    assert_eq!((both.push_interval_ms, both.client_instance_id), (30_000, ID));
    assert_eq!(both.accepted_compression_types, [4, 3, 1, 2]);
    assert_eq!((both.telemetry_max_bytes, both.delta_temporality), (1 << 20, true));
    assert_ne!(both.subscription_id, none.subscription_id);
    let world = world.restarted();
    assert_eq!(world.subscription(NOW_MS), both);
    world.state.checkpoint().unwrap();
    let world = world.restarted();
    assert_eq!(world.subscription(NOW_MS), both);
}

#[test]
fn resources_are_described_listed_and_removed() {
    let world = World::new();
    let shown = |world: &World| -> Vec<_> {
        let configs = describe(world, CLIENT_METRICS, "all", None).configs;
        configs.into_iter().map(|it| (it.value.unwrap(), it.config_source)).collect()
    };
    let default = |value: &str| (value.to_owned(), 5);
    let own = |value: &str| (value.to_owned(), 7);
    assert_eq!(shown(&world), [default("300000"), default(""), default("")]);
    let listed = |world: &World| {
        let resource_types = vec![CLIENT_METRICS];
        let request = ListConfigResourcesRequest { resource_types, ..<_>::default() };
        world.ask(&request).config_resources.len()
    };
    world.subscribe_all();
    assert_eq!(world.subscribe("all", "metrics", APPEND, Some("a")), ErrorCode::InvalidConfig);
    assert_eq!(shown(&world), [own("1000"), default(""), own("*")]);
    assert_eq!(listed(&world), 1);
    for key in ["metrics", "interval.ms"] {
        assert_eq!(world.subscribe("all", key, DELETE, None), ErrorCode::None);
    }
    assert_eq!(listed(&world), 0);
    let world = world.restarted();
    assert_eq!(listed(&world), 0);
}

#[test]
fn values_that_mean_nothing_are_refused() {
    let world = World::new();
    for (key, value, expected) in [
        ("interval.ms", "99", ErrorCode::InvalidRequest),
        ("interval.ms", "3600001", ErrorCode::InvalidRequest),
        ("interval.ms", "soon", ErrorCode::InvalidConfig),
        ("match", "client_id", ErrorCode::InvalidConfig),
        ("match", "planet=.*", ErrorCode::InvalidConfig),
        ("match", "client_id=(", ErrorCode::InvalidConfig),
        ("match", "client_id=.{1000}{1000}", ErrorCode::InvalidConfig),
        ("planets", "a", ErrorCode::InvalidRequest),
    ] {
        assert_eq!(world.subscribe("all", key, SET, Some(value)), expected, "{key}={value}");
    }
    assert_eq!(world.subscribe("", "metrics", SET, Some("*")), ErrorCode::InvalidRequest);
}

#[test]
fn a_client_asks_and_pushes_once_an_interval() {
    let world = World::new();
    world.subscribe_all();
    let id = world.subscription(NOW_MS).subscription_id;
    let push = pushing(id);
    assert_eq!(code(world.subscription(NOW_MS + 1).error_code), ErrorCode::ThrottlingQuotaExceeded);
    // The first push may come at once.
    assert_eq!(world.push(NOW_MS + 2, &push), ErrorCode::None);
    assert_eq!(world.push(NOW_MS + 3, &push), ErrorCode::ThrottlingQuotaExceeded);
    assert_eq!(world.push(NOW_MS + 2 + INTERVAL_MS, &push), ErrorCode::None);
    let last = PushTelemetryRequest { terminating: true, ..push.clone() };
    assert_eq!(world.push(NOW_MS + 3 + INTERVAL_MS, &last), ErrorCode::None);
    assert_eq!(world.push(NOW_MS + 3 * INTERVAL_MS, &push), ErrorCode::InvalidRequest);
}

#[test]
fn a_push_for_a_subscription_that_changed_is_refused_and_may_ask_at_once() {
    let world = World::new();
    world.subscribe_all();
    let id = world.subscription(NOW_MS).subscription_id;
    assert_eq!(world.subscribe("all", "metrics", SET, Some("a")), ErrorCode::None);
    assert_eq!(world.push(NOW_MS + 1, &pushing(id)), ErrorCode::UnknownSubscriptionId);
    let next = world.subscription(NOW_MS + 1);
    assert_eq!(
        (code(next.error_code), next.requested_metrics),
        (ErrorCode::None, vec!["a".into()])
    );
    assert_eq!(
        world.push(NOW_MS + 1 + INTERVAL_MS, &pushing(next.subscription_id)),
        ErrorCode::None
    );
}

#[test]
fn pushes_that_cannot_be_read_are_refused() {
    let world = World::new();
    world.subscribe_all();
    let id = world.subscription(NOW_MS).subscription_id;
    let huge = vec![0; (1 << 20) + 1];
    // A MiB at most, but much more once decompressed.
    let bomb = packed(Compression::Zstd, &vec![0; 64 << 20]);
    for (case, compression_type, metrics, expected) in [
        (1, 0, vec![1, 2, 3], ErrorCode::InvalidRecord),
        (2, 4, sample(), ErrorCode::InvalidRecord),
        (3, 9, sample(), ErrorCode::UnsupportedCompressionType),
        (4, 0, huge, ErrorCode::TelemetryTooLarge),
        (5, 4, bomb, ErrorCode::InvalidRecord),
        (6, 0, Vec::new(), ErrorCode::None),
    ] {
        let metrics = Bytes::from(metrics);
        let push = PushTelemetryRequest { compression_type, metrics, ..pushing(id) };
        assert_eq!(world.push(NOW_MS + case * INTERVAL_MS, &push), expected, "case {case}");
    }
    for reserved in [0_u128, 1] {
        let client_instance_id = Uuid::from_bytes(reserved.to_be_bytes());
        let push = PushTelemetryRequest { client_instance_id, ..pushing(id) };
        assert_eq!(world.push(NOW_MS, &push), ErrorCode::InvalidRequest);
    }
    assert!(!world.page().contains("org_apache_kafka"));
}

#[test]
fn compressed_metrics_are_on_the_page_of_metrics() {
    let world = World::new();
    world.subscribe_all();
    let now_ms = wall_clock_ms();
    let id = world.subscription(now_ms).subscription_id;
    for (turn, codec) in (1..).zip(Compression::ALL) {
        let metrics = Bytes::from(packed(codec, &sample()));
        let compression_type = codec.id().cast_signed();
        let push = PushTelemetryRequest { compression_type, metrics, ..pushing(id) };
        assert_eq!(world.push(now_ms + turn * INTERVAL_MS, &push), ErrorCode::None, "{codec:?}");
    }
    let page = world.page();
    let labels =
        format!("client_instance_id=\"{ID}\",client_id=\"{CLIENT_ID}\",group_id=\"readers\"");
    for line in [
        format!("org_apache_kafka_consumer_poll_total{{{labels}}} 20.0"),
        "moldau_telemetry_pushes_total 5".to_owned(),
        "moldau_telemetry_series 2".to_owned(),
    ] {
        assert!(page.lines().any(|found| found == line), "{line} is not in {page}");
    }
    assert!(page.ends_with("# EOF\n"));
}

/// As many clients as one wants to be cost no more than the broker keeps.
#[test]
fn instances_are_bounded_and_expire() {
    let world = World::new();
    for id in 2..20_000_u128 {
        let client_instance_id = Uuid::from_bytes(id.to_be_bytes());
        world
            .at(NOW_MS, &GetTelemetrySubscriptionsRequest { client_instance_id, ..<_>::default() });
    }
    assert_eq!(world.state.telemetry.instances(), 16_384);
    world.subscription(NOW_MS + 3 * 300_000);
    assert_eq!(world.state.telemetry.instances(), 1);
}

/// Every version of both APIs.
pub(super) fn ask_about_telemetry(world: &World) {
    each(world, |_| GetTelemetrySubscriptionsRequest::default());
    each(world, |_| pushing(0));
}
