//! The format of metrics, against the reference library, and the bounds of what is kept.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prometheus_client::collector::Collector;
use prometheus_client::registry::Registry;
use proptest::prelude::*;
use prost::Message;

use std::sync::Arc;

use moldau_net::HttpUrl;

use super::*;
use crate::telemetry::otlp::{Kind, Temporality};

/// The time of the first push.
const NOW_MS: i64 = 1_000_000;

pub(crate) fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn point(value: number_data_point::Value, attributes: Vec<KeyValue>) -> NumberDataPoint {
    NumberDataPoint { value: Some(value), attributes, ..NumberDataPoint::default() }
}

fn gauge(name: &str, points: Vec<NumberDataPoint>) -> Metric {
    let data = Some(metric::Data::Gauge(Gauge { data_points: points }));
    Metric { name: name.to_owned(), data, ..Metric::default() }
}

fn sum(name: &str, value: i64, temporality: AggregationTemporality) -> Metric {
    let data = Some(metric::Data::Sum(Sum {
        data_points: vec![point(number_data_point::Value::AsInt(value), Vec::new())],
        aggregation_temporality: temporality.into(),
        is_monotonic: true,
    }));
    Metric { name: name.to_owned(), data, ..Metric::default() }
}

/// A payload as clients make it.
pub(crate) fn payload(attributes: Vec<KeyValue>, metrics: Vec<Metric>) -> Vec<u8> {
    let resource = Some(Resource { attributes, ..Resource::default() });
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let all = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
    MetricsData { resource_metrics: vec![all] }.encode_to_vec()
}

/// One gauge and one sum of deltas.
pub(crate) fn sample() -> Vec<u8> {
    let rate = number_data_point::Value::AsDouble(1.5);
    let points = vec![point(rate, vec![text("node.id", "7")])];
    payload(
        vec![text("group_id", "readers")],
        vec![
            gauge("org.apache.kafka.consumer.fetch.rate", points),
            sum("org.apache.kafka.consumer.poll.total", 4, AggregationTemporality::Delta),
        ],
    )
}

fn client(instance: u8) -> Client {
    Client {
        instance_id: moldau_protocol::Uuid::from_bytes([instance; 16]),
        client_id: "orders \"1\"".to_owned(),
        software_name: "apache-kafka-java".to_owned(),
        software_version: "4.4.0".to_owned(),
        address: "192.0.2.1:4711".parse().unwrap(),
        principal: "alice".to_owned(),
    }
}

#[derive(Debug)]
struct Page(Shown);

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.encode(&mut encoder)
    }
}

/// The page of a scrape, without comments.
fn scraped(shown: Shown) -> (String, Shown) {
    let mut registry = Registry::default();
    let mut text = String::new();
    registry.register_collector(Box::new(Page(shown)));
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let values: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    (values.join("\n"), Shown::default())
}

fn pushed(shown: &mut Shown, client: &Client, payload: &[u8], now_ms: i64) {
    let mut values = shown.of(client, now_ms + 60_000, now_ms).unwrap();
    otlp::read(payload, |point| values.put(&point)).unwrap();
}

#[test]
fn points_are_read_as_the_reference_wrote_them() {
    let mut points = Vec::new();
    otlp::read(&sample(), |point| {
        let labels = point.labels.iter().chain(point.resource);
        let labels: Vec<_> = labels.map(|(name, value)| format!("{name}={value}")).collect();
        points.push((
            point.name.to_owned(),
            point.kind,
            point.temporality,
            labels.join(" "),
            point.value,
        ));
    })
    .unwrap();
    let fetch = "org.apache.kafka.consumer.fetch.rate".to_owned();
    let poll = "org.apache.kafka.consumer.poll.total".to_owned();
    let labels = "node.id=7 group_id=readers".to_owned();
    assert_eq!(
        points,
        [
            (fetch, Kind::Gauge, Temporality::Cumulative, labels, 1.5),
            (poll, Kind::Counter, Temporality::Delta, "group_id=readers".to_owned(), 4.0),
        ]
    );
}

#[test]
fn values_of_labels_have_kafkas_types() {
    use any_value::Value as Any;
    let attributes = vec![
        attribute("int", Any::IntValue(-3)),
        attribute("bool", Any::BoolValue(true)),
        attribute("double", Any::DoubleValue(0.5)),
        attribute("bytes", Any::BytesValue(vec![1])),
    ];
    let points = vec![point(number_data_point::Value::AsInt(-1), attributes)];
    let mut labels = Vec::new();
    otlp::read(&payload(Vec::new(), vec![gauge("a", points)]), |point| {
        assert_eq!(point.value, -1.0);
        labels = point.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    })
    .unwrap();
    assert_eq!(labels, ["int=-3", "bool=true", "double=0.5"]);
}

#[test]
fn the_page_has_clients_gauges_and_sums() {
    let mut shown = Shown::default();
    let client = client(1);
    pushed(&mut shown, &client, &sample(), NOW_MS);
    pushed(&mut shown, &client, &sample(), NOW_MS + 1);
    let (page, _) = scraped(shown);
    let id = client.instance_id;
    let own = format!("client_instance_id=\"{id}\",client_id=\"orders \\\"1\\\"\"");
    assert_eq!(
        page,
        format!(
            "moldau_telemetry_client_info{{{own},client_software_name=\"apache-kafka-java\",\
             client_software_version=\"4.4.0\",client_source_address=\"192.0.2.1\",\
             client_source_port=\"4711\",principal=\"alice\"}} 1\n\
             org_apache_kafka_consumer_fetch_rate{{{own},group_id=\"readers\",node_id=\"7\"}} 1.5\n\
             org_apache_kafka_consumer_poll_total{{{own},group_id=\"readers\"}} 8.0"
        )
    );
}

#[test]
fn cumulative_sums_replace_what_was_before() {
    let mut shown = Shown::default();
    let client = client(1);
    for value in [4, 9] {
        let metric = sum("polls", value, AggregationTemporality::Cumulative);
        pushed(&mut shown, &client, &payload(Vec::new(), vec![metric]), NOW_MS);
    }
    let (page, _) = scraped(shown);
    assert!(page.ends_with(" 9.0"), "{page}");
}

#[test]
fn a_client_that_does_not_push_is_forgotten_with_its_values() {
    let mut shown = Shown::default();
    pushed(&mut shown, &client(1), &sample(), NOW_MS);
    pushed(&mut shown, &client(2), &sample(), NOW_MS + 30_000);
    assert_eq!(shown.len(), 4);
    shown.forget(NOW_MS + 60_000);
    assert_eq!(shown.len(), 2);
    shown.forget(NOW_MS + 90_000);
    assert_eq!(scraped(shown).0, "");
}

/// A page with a name twice, or one of the broker's own, could not be read.
#[test]
fn names_that_are_taken_are_not_shown() {
    let mut shown = Shown::default();
    let number = || vec![point(number_data_point::Value::AsInt(1), Vec::new())];
    let metrics = vec![
        gauge("moldau.topics", number()),
        gauge("polls", number()),
        sum("polls.total", 1, AggregationTemporality::Delta),
        gauge("", number()),
    ];
    pushed(&mut shown, &client(1), &payload(Vec::new(), metrics), NOW_MS);
    assert_eq!((shown.len(), shown.dropped), (1, 3));
}

#[test]
fn values_above_the_limits_are_dropped_and_counted() {
    let mut shown = Shown::default();
    let labeled =
        |label: &str| point(number_data_point::Value::AsInt(1), vec![text("partition", label)]);
    let points = (0..12_000).map(|partition| labeled(&partition.to_string()));
    let metrics = vec![gauge("lag", points.collect())];
    pushed(&mut shown, &client(1), &payload(Vec::new(), metrics), NOW_MS);
    assert!((1_000..10_000).contains(&shown.len()), "{}", shown.len());
    assert_eq!(shown.len() as u64 + shown.dropped, 12_000);
    let long = gauge("lag", vec![labeled(&"x".repeat(600))]);
    let before = shown.dropped;
    pushed(&mut shown, &client(2), &payload(Vec::new(), vec![long]), NOW_MS);
    assert_eq!(shown.dropped, before + 1);
}

#[test]
fn forwarded_payloads_are_one_message_with_the_attributes_of_the_clients() {
    let attributes = [("client_id", "orders"), ("principal", "alice")];
    let mut body = Vec::new();
    for _ in 0..2 {
        body.extend(otlp::with_attributes(&sample(), &attributes, 1 << 20).unwrap().unwrap());
    }
    let read = ExportMetricsServiceRequest::decode(&*body).unwrap();
    let MetricsData { resource_metrics: sent } = MetricsData::decode(&*sample()).unwrap();
    assert_eq!(read.resource_metrics.len(), 2);
    for found in &read.resource_metrics {
        let resource = found.resource.clone().unwrap().attributes;
        let expected =
            [text("group_id", "readers"), text("client_id", "orders"), text("principal", "alice")];
        assert_eq!(resource, expected);
        assert_eq!(found.scope_metrics, sent[0].scope_metrics);
    }
    assert_eq!(otlp::with_attributes(&sample(), &attributes, 100), Ok(None));
}

/// The queue to a collector that does not answer holds so many bytes and no more.
#[test]
fn payloads_above_the_limit_of_the_queue_are_dropped_and_counted() {
    let collector = HttpUrl::parse("http://127.0.0.1:1/v1/metrics", None).unwrap();
    let forwarder = Forwarder::new(Some(Arc::new(collector)));
    for _ in 0..20 {
        forwarder.put(Some(vec![0; 1 << 20]));
    }
    forwarder.put(None);
    assert_eq!(forwarder.dropped.load(Ordering::Relaxed), 5);
}

proptest! {
    /// Bytes of a client make no panic, and what is read by one is read by the other.
    #[test]
    fn any_bytes_are_read_or_refused(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        is_sample in any::<bool>(),
    ) {
        if is_sample {
            bytes = sample();
            for (index, value) in flips {
                let index = index.index(bytes.len());
                bytes[index] = value;
            }
        }
        let mut shown = Shown::default();
        let mut values = shown.of(&client(1), NOW_MS, 0).unwrap();
        let is_read = otlp::read(&bytes, |point| values.put(&point)).is_ok();
        if MetricsData::decode(&*bytes).is_ok() {
            prop_assert!(is_read);
        }
        let _either = otlp::with_attributes(&bytes, &[("a", "b")], 1 << 20);
        scraped(shown);
    }
}
