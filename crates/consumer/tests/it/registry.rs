//! Values in the wire format of a Schema Registry. The bytes are those of the serializers of
//! confluent-kafka 2.16.1 for Python.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use moldau_client::{Cluster, ClusterOptions, Delivery, Producer, ProducerOptions, Record};
use moldau_consumer::schema_registry::{Avro, JsonSchema, Protobuf, RegistryError, SchemaRegistry};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{DeadLetters, Message, Metrics, header, record};
use moldau_records::HeaderView;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::world::{DEADLINE, GROUP, TOPIC, broker, ticking};

const DEAD: &str = "orders.dead";
const AVRO: &[u8] = b"\x00\x00\x00\x00\x01\xd8\x04\x0aanvil\x00";
const AVRO_PAYLOAD: &[u8] = b"\xd8\x04\x0aanvil\x00";
const GUID_HEADER: &[u8] = b"\x01\x80\xdb\x7a\x08\x5f\xb1\x42\xd4\x82\xc4\xc2\xb2\x19\xc9\x38\x35";
const JSON: &[u8] = b"\x00\x00\x00\x00\x02{\"id\":300,\"item\":\"anvil\"}";
/// Of the first message of its schema, and of the second.
const PROTOBUF: &[u8] = b"\x00\x00\x00\x00\x03\x00\x08\xac\x02\x12\x05anvil";
const PROTOBUF_SECOND: &[u8] = b"\x00\x00\x00\x00\x04\x02\x02\x08\xac\x02\x12\x05anvil";
const SCHEMA: &str = r#"{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},
    {"name":"item","type":"string"},{"name":"note","type":["null","string"]}]}"#;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct Order {
    id: i64,
    item: String,
    note: Option<String>,
}

/// The message of `PROTOBUF`.
#[derive(Clone, PartialEq, prost::Message)]
struct Proto {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(string, tag = "2")]
    item: String,
}

fn order() -> Order {
    Order { id: 300, item: "anvil".to_owned(), note: None }
}

/// A stand-in for a registry: answers by `METHOD path`, and what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    pub(crate) answers: Arc<Mutex<HashMap<String, (u16, String)>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    /// The header `authorization` that it wants.
    pub(crate) authorization: Option<String>,
}

impl Registry {
    pub(crate) fn answer(&self, request: &str, status: u16, body: &serde_json::Value) {
        let answer = (status, body.to_string());
        self.answers.lock().expect("a lock").insert(request.to_owned(), answer);
    }

    /// How often a request was made that begins so.
    pub(crate) fn asked(&self, request: &str) -> usize {
        let asked = self.asked.lock().expect("a lock");
        asked.iter().filter(|it| it.starts_with(request)).count()
    }

    async fn start(&self) -> SchemaRegistry {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let registry = self.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                registry.serve(socket).await;
            }
        });
        SchemaRegistry::new(&format!("http://{address}")).expect("a URL")
    }

    /// Answers one request.
    pub(crate) async fn serve(&self, mut socket: impl AsyncRead + AsyncWrite + Unpin) {
        let mut request = Vec::new();
        while !is_whole(&request) {
            socket.read_buf(&mut request).await.expect("a request");
        }
        let text = String::from_utf8(request).expect("text");
        let line = text.lines().next().expect("a line").replace(" HTTP/1.1", "");
        let is_admitted = self.authorization.as_ref().is_none_or(|wanted| {
            text.lines().any(|line| line.strip_prefix("authorization: ") == Some(wanted))
        });
        let answer = self.answers.lock().expect("a lock").get(&line).cloned();
        let (status, body) = match is_admitted {
            true => answer.unwrap_or((404, "{}".to_owned())),
            false => (401, r#"{"error_code":40101,"message":"Unauthorized"}"#.to_owned()),
        };
        self.asked.lock().expect("a lock").push(text);
        let head = format!(
            "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        // The client may have given up.
        drop(socket.write_all((head + &body).as_bytes()).await);
        drop(socket.shutdown().await);
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().expect("a number"))
}

/// Appends records with values of bytes and perhaps a header.
async fn produce(broker: &TestBroker, values: &[(&[u8], Option<&[u8]>)]) {
    let cluster = Cluster::connect(&[broker.address()], ClusterOptions::default()).await;
    let cluster = cluster.expect("the broker answers");
    let sink = |delivery: &Delivery<'_>| assert!(delivery.error.is_none(), "{delivery:?}");
    let started = Producer::start(&cluster, ProducerOptions::default(), sink).await;
    let producer = started.expect("the broker answers");
    let handle = producer.partition(TOPIC, 0).await.expect("it exists");
    for (value, id) in values {
        let header = id.map(|id| HeaderView { key: b"__value_schema_id", value: Some(id) });
        let headers: Vec<_> = header.into_iter().collect();
        let timestamp = now_ms();
        let record =
            Record { token: 0, timestamp, key: None, value: Some(value), headers: &headers };
        producer.send(handle, &record).expect("there is room");
    }
    producer.close().await;
}

/// Retention deletes records of long ago.
fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(now.expect("after 1970").as_millis()).expect("a time of this era")
}

#[tokio::test]
async fn values_of_the_serializers_of_others_are_decoded() {
    let broker = broker(1, &[]).await;
    let registry = Registry::default();
    let schema = serde_json::json!({ "schema": SCHEMA });
    registry.answer("GET /schemas/ids/1", 200, &schema);
    registry.answer("GET /schemas/guids/80db7a08-5fb1-42d4-82c4-c2b219c93835", 200, &schema);
    let client = registry.start().await;
    let values = [(AVRO, None), (AVRO_PAYLOAD, Some(GUID_HEADER)), (AVRO, None)];
    produce(&broker, &values).await;
    produce(&broker, &[(JSON, None), (PROTOBUF, None), (PROTOBUF_SECOND, None)]).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let by_avro = sender.clone();
    let avro = move |Avro(order): Avro<Order>| {
        let sent = by_avro.send(order);
        async move { sent }
    };
    let app =
        broker.app(GROUP).state(client).topic(TOPIC, record(avro).layer(DeadLetters::to(DEAD)));
    broker.create_topic(DEAD, 1).await;
    let shutdown = async {
        for _record in 0..3 {
            let received = tokio::time::timeout(DEADLINE, receiver.recv()).await;
            assert_eq!(received.expect("in time"), Some(order()));
        }
        // What is of other formats is undecodable: the registry does not know ids 2 to 4.
        for letter in broker.read(DEAD, 3).await {
            assert_eq!(letter.header(header::KIND), Some(b"undecodable".as_slice()));
        }
    };
    app.run(shutdown).await.expect("the app runs");
    assert_eq!((registry.asked("GET /schemas/ids/1 "), registry.asked("GET")), (1, 5));

    let json = async |JsonSchema(value): JsonSchema<serde_json::Value>| match &value["item"] {
        item if item == "anvil" => Ok(()),
        _ => Err("another value"),
    };
    let dead = "dead.json";
    broker.create_topic(dead, 1).await;
    let app = broker.app("json").topic(TOPIC, record(json).layer(DeadLetters::to(dead)));
    let shutdown = async {
        // All but the one whose offset is 3.
        for (letter, offset) in broker.read(dead, 5).await.iter().zip(["0", "1", "2", "4", "5"]) {
            assert_eq!(letter.header(header::KIND), Some(b"undecodable".as_slice()));
            assert_eq!(letter.header(header::OFFSET), Some(offset.as_bytes()));
        }
    };
    app.run(shutdown).await.expect("the app runs");

    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let protobuf = move |Protobuf(value): Protobuf<Proto>, message: Message| {
        let sent = if message.offset() < 4 { Ok(()) } else { sender.send(value) };
        async move { sent }
    };
    let dead = "dead.protobuf";
    broker.create_topic(dead, 1).await;
    let app = broker.app("protobuf").topic(TOPIC, record(protobuf).layer(DeadLetters::to(dead)));
    let shutdown = async {
        for _record in 0..2 {
            let received = tokio::time::timeout(DEADLINE, receiver.recv()).await;
            let expected = Proto { id: 300, item: "anvil".to_owned() };
            assert_eq!(received.expect("in time"), Some(expected));
        }
    };
    app.run(shutdown).await.expect("the app runs");
}

#[tokio::test]
async fn a_registry_that_is_down_is_asked_again_and_damaged_values_are_not() {
    let broker = broker(1, &[]).await;
    broker.create_topic(DEAD, 1).await;
    let registry = Registry::default();
    let down = serde_json::json!({ "error_code": 50003, "message": "no leader" });
    registry.answer("GET /schemas/ids/1", 503, &down);
    let client = registry.start().await.basic_auth("app", "secret").expect("credentials");
    let cut = &AVRO[..AVRO.len() - 3];
    let longer = [AVRO, b"more"].concat();
    produce(&broker, &[(cut, None), (&longer, None), (b"\x07", None), (AVRO, None)]).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |Avro(order): Avro<Order>| {
        let sent = sender.send(order);
        async move { sent }
    };
    let metrics = Metrics::default();
    // Failures that another attempt may help are left to the app, which tries again for ever.
    let letters = DeadLetters::to(DEAD).after(u32::MAX);
    let route = record(handler).layer(metrics.clone()).layer(letters);
    let app = broker.app(GROUP).state(client).topic(TOPIC, route);
    let shutdown = async {
        while metrics.read().failed == 0 {
            tokio::task::yield_now().await;
        }
        let schema = serde_json::json!({ "schema": SCHEMA });
        registry.answer("GET /schemas/ids/1", 200, &schema);
        let received = tokio::time::timeout(DEADLINE, receiver.recv()).await;
        assert_eq!(received.expect("in time"), Some(order()));
    };
    ticking(&broker, Box::pin(app.run(shutdown))).await.expect("the app runs");
    let letters = broker.read(DEAD, 3).await;
    assert!(letters.iter().all(|it| it.header(header::KIND) == Some(b"undecodable".as_slice())));
    // "app:secret" in base64.
    let authorization = "authorization: Basic YXBwOnNlY3JldA==";
    let asked = registry.asked.lock().expect("a lock");
    assert!(asked.iter().all(|it| it.contains(authorization)), "{asked:?}");
}

/// Another attempt does not help a record whose schema nobody knows. A registry that does not let
/// the app in says nothing of the record.
#[tokio::test]
async fn an_unknown_schema_is_the_fault_of_its_record_alone() {
    let broker = broker(1, &[]).await;
    broker.create_topic(DEAD, 1).await;
    let registry = Registry::default();
    let refused = serde_json::json!({ "error_code": 40101, "message": "who are you?" });
    registry.answer("GET /schemas/ids/1", 401, &refused);
    let client = registry.start().await;
    let unknown = b"\x00\x00\x00\x00\x09\xd8\x04\x0aanvil\x00";
    produce(&broker, &[(unknown, None), (AVRO, None)]).await;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |Avro(order): Avro<Order>| {
        let sent = sender.send(order);
        async move { sent }
    };
    let metrics = Metrics::default();
    let letters = DeadLetters::to(DEAD).after(u32::MAX);
    let route = record(handler).layer(metrics.clone()).layer(letters);
    let app = broker.app(GROUP).state(client).topic(TOPIC, route);
    let shutdown = async {
        while metrics.read().failed < 2 {
            tokio::task::yield_now().await;
        }
        let schema = serde_json::json!({ "schema": SCHEMA });
        registry.answer("GET /schemas/ids/1", 200, &schema);
        let received = tokio::time::timeout(DEADLINE, receiver.recv()).await;
        assert_eq!(received.expect("in time"), Some(order()));
    };
    ticking(&broker, Box::pin(app.run(shutdown))).await.expect("the app runs");
    let letter = &broker.read(DEAD, 1).await[0];
    assert_eq!(letter.header(header::KIND), Some(b"undecodable".as_slice()));
    let cause = String::from_utf8_lossy(letter.header(header::CAUSE).expect("a cause"));
    assert!(cause.contains("schema 9"), "{cause}");
    assert_eq!(broker.committed(GROUP, TOPIC).await, 2);
}

#[tokio::test]
async fn values_are_encoded_as_other_serializers_do() {
    let registry = Registry::default();
    for (subject, id) in [("orders-value", 1), ("json", 2), ("first", 3), ("second%2F4", 4)] {
        let request = format!("POST /subjects/{subject}/versions");
        registry.answer(&request, 200, &serde_json::json!({ "id": id }));
    }
    registry.answer("GET /schemas/ids/1", 200, &serde_json::json!({ "schema": SCHEMA }));
    let client = registry.start().await;
    for _time in 0..2 {
        let avro = client.encode_avro("orders-value", SCHEMA, &order()).await;
        assert_eq!(avro.expect("it is of the schema"), AVRO);
    }
    assert_eq!(registry.asked("POST"), 1);
    let value = serde_json::json!({ "id": 300, "item": "anvil" });
    assert_eq!(client.encode_json("json", "{}", &value).await.expect("it is encoded"), JSON);
    let value = Proto { id: 300, item: "anvil".to_owned() };
    let first = client.encode_protobuf("first", "", &[0], &value).await;
    assert_eq!(first.expect("it is encoded"), PROTOBUF);
    let second = client.encode_protobuf("second/4", "", &[1], &value).await;
    assert_eq!(second.expect("it is encoded"), PROTOBUF_SECOND);
    let wrong = serde_json::json!({ "id": "three" });
    client.encode_avro("orders-value", SCHEMA, &wrong).await.expect_err("of another type");
    let unknown = client.register("nobody", "AVRO", SCHEMA).await.expect_err("unknown");
    assert!(matches!(unknown, RegistryError::Unknown(_)), "{unknown}");
    for url in ["", "registry:8081", "ftp://registry", "http://user:password@registry"] {
        let error = SchemaRegistry::new(url).expect_err("not a URL").to_string();
        assert!(!error.contains("password"), "{error}");
    }
}
