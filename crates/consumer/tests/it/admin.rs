//! The admin port, as scrapers, probes and the page ask it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use moldau_consumer::{Admin, App, Control, DeadLetters, Error, Message, header, record};
use schemars::JsonSchema;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::status::status_when;
use crate::world::{DEADLINE, GROUP, TOPIC, broker};

/// An answer of the port.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

async fn send(port: SocketAddr, request: &str, body: &str) -> Answer {
    let mut stream = TcpStream::connect(port).await.expect("the port is open");
    let host = if request.contains("Host: ") { "" } else { "\r\nHost: localhost" };
    let length = body.len();
    let request =
        format!("{request}{host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.expect("the port reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer of text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    let status = head[9..12].parse().expect("a status");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

pub(crate) async fn get(port: SocketAddr, path: &str) -> Answer {
    send(port, &format!("GET {path} HTTP/1.1"), "").await
}

/// Asks by POST, with the key of the page.
async fn post(port: SocketAddr, path: &str, body: &Value) -> Answer {
    let status = get(port, "/api/status").await.json();
    let key = status["key"].as_str().expect("a key");
    let request = format!("POST {path} HTTP/1.1\r\nX-Moldau-Key: {key}");
    send(port, &request, &body.to_string()).await
}

/// Asks until the answer has this status.
pub(crate) async fn until_status(port: SocketAddr, path: &str, status: u16) -> Answer {
    let asking = async {
        loop {
            let answer = get(port, path).await;
            if answer.status == status {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.expect("it comes to that")
}

pub(crate) async fn port(control: &Control) -> SocketAddr {
    control.admin_address().await.expect("the app runs")
}

#[tokio::test]
async fn clients_that_never_finish_a_request_do_not_keep_probes_away() {
    let broker = broker(1, &[]).await;
    let route = record(async |_: Message| Ok::<(), String>(()));
    let app = broker.app(GROUP).topic(TOPIC, route).admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        let mut slow = Vec::new();
        for _ in 0..200 {
            let mut stream = TcpStream::connect(port).await.unwrap();
            stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").await.unwrap();
            slow.push(stream);
        }
        assert_eq!(get(port, "/metrics").await.status, 200);
        // The newest are still served.
        let newest = slow.last_mut().unwrap();
        newest.write_all(b"localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        newest.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    app.run(test).await.unwrap();
}

#[tokio::test]
async fn metrics_health_and_the_page_are_served_while_the_app_runs() {
    let broker = broker(2, &[(None, "one"), (None, "two")]).await;
    let route = record(async |_: Message| Ok::<(), String>(()));
    let app = broker.app(GROUP).topic(TOPIC, route).admin("127.0.0.1:0");
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        let ready = until_status(port, "/readyz", 200).await;
        assert!(ready.body.starts_with("The app is ready"), "{ready:?}");
        assert_eq!(get(port, "/healthz").await.body, "The app is alive.\n");
        status_when(&control, |it| it.routes[0].handled == 2).await;
        let metrics = get(port, "/metrics").await.body;
        for line in [
            "moldau_consumer_member 1\n",
            "moldau_consumer_partitions 2\n",
            "moldau_consumer_handled_records_total{topic=\"orders\"} 2\n",
            "moldau_consumer_lag_records{topic=\"orders\",partition=\"0\"} 0\n",
            "moldau_consumer_handler_duration_seconds_bucket{le=\"+Inf\",topic=\"orders\"} ",
            "moldau_consumer_sampled_records_total{topic=\"orders\"} ",
        ] {
            assert!(metrics.contains(line), "{line}{metrics}");
        }
        assert!(metrics.ends_with("# EOF\n"), "{metrics}");
        let page = get(port, "/").await;
        assert!(page.head.contains("content-security-policy: default-src 'none'; style-src 'sha"));
        assert!(page.body.contains("<title>Moldau consumer</title>"));
        assert!(!page.body.contains("/*script*/") && !page.body.contains("/*style*/"));
        assert_eq!(get(port, "/elsewhere").await.status, 404);
        assert_eq!(send(port, "DELETE / HTTP/1.1", "").await.status, 405);
    };
    app.run(until).await.unwrap();
    assert_eq!(control.admin_address().await, None, "the app has ended");
}

#[tokio::test]
async fn a_membership_that_is_cut_off_is_neither_alive_nor_ready() {
    let broker = broker(1, &[]).await;
    let route = record(async |_: Message| Ok::<(), String>(()));
    let app = broker.app(GROUP).topic(TOPIC, route).admin("127.0.0.1:0");
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        until_status(port, "/readyz", 200).await;
        tokio::task::spawn_blocking(move || drop(broker)).await.unwrap();
        let dead = until_status(port, "/healthz", 503).await;
        assert!(dead.body.starts_with("The membership is frozen: no heartbeat"), "{dead:?}");
        assert_eq!(get(port, "/readyz").await.status, 503);
    };
    // It could not leave its group.
    tokio::select! {
        ended = app.run(std::future::pending()) => panic!("{ended:?}"),
        () = until => {}
    }
}

/// A handler that blocks the only thread of the app.
#[test]
fn the_port_answers_while_a_handler_blocks_the_app() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let broker = runtime().block_on(broker(1, &[(None, "one")]));
    let (go, wait) = mpsc::channel::<()>();
    let (begins, begun) = mpsc::channel();
    let wait = std::sync::Mutex::new(wait);
    let handler = move |_: Message| {
        begins.send(()).unwrap();
        let ended = wait.lock().unwrap().recv();
        async move { ended }
    };
    let app = broker.app(GROUP).topic(TOPIC, record(handler)).admin("127.0.0.1:0");
    let control = app.control();
    let has_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&has_asked);
    let app = thread::spawn(move || {
        runtime().block_on(app.run(async {
            while !asked.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
        }))
    });
    begun.recv().unwrap();
    runtime().block_on(async {
        let port = port(&control).await;
        let healthy = get(port, "/healthz").await;
        assert_eq!(healthy.status, 200, "{healthy:?}");
        // What was sampled last.
        assert_eq!(get(port, "/metrics").await.status, 200);
    });
    has_asked.store(true, Ordering::SeqCst);
    go.send(()).unwrap();
    app.join().unwrap().unwrap();
}

#[tokio::test]
async fn a_handler_that_does_not_return_ends_liveness() {
    let broker = broker(1, &[(None, "one")]).await;
    let route = record(async |_: Message| std::future::pending::<Result<(), String>>().await);
    let mut options = broker.options();
    options.drain_timeout = Duration::ZERO;
    let admin = Admin::at("127.0.0.1:0").stalled_max(Duration::from_mins(3));
    let app = broker.app(GROUP).options(options).topic(TOPIC, route).admin(admin);
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        status_when(&control, |it| it.routes[0].partitions.iter().any(|it| it.running == 1)).await;
        assert_eq!(get(port, "/healthz").await.status, 200);
        broker.clock().advance(Duration::from_mins(4));
        let dead = until_status(port, "/healthz", 503).await;
        let why = "A handler of orders-0 has made no progress for 240 s.\n";
        assert_eq!(dead.body, why);
    };
    app.run(until).await.unwrap();
}

async fn idle_app(admin: Admin) -> (moldau_consumer::testing::TestBroker, App) {
    let broker = broker(1, &[]).await;
    let route = record(async |_: Message| Ok::<(), String>(()));
    let app = broker.app(GROUP).topic(TOPIC, route).admin(admin);
    (broker, app)
}

#[tokio::test]
async fn a_token_opens_all_but_metrics_and_health() {
    let (_broker, app) = idle_app(Admin::at("127.0.0.1:0").token("s3cret")).await;
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        for path in ["/metrics", "/healthz", "/"] {
            assert_eq!(get(port, path).await.status, 200, "{path}");
        }
        for path in ["/api/status", "/asyncapi.json"] {
            let refused = get(port, path).await;
            assert_eq!(refused.status, 401, "{path}");
            assert!(refused.head.contains("www-authenticate: Bearer"), "{refused:?}");
            for (token, status) in [("s3cret", 200), ("s3cre", 401), ("", 401)] {
                let request = format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer {token}");
                assert_eq!(send(port, &request, "").await.status, status, "{token}");
            }
        }
        assert_eq!(send(port, "POST /api/pause HTTP/1.1", "{}").await.status, 401);
    };
    app.run(until).await.unwrap();
}

#[tokio::test]
async fn an_address_of_other_machines_serves_metrics_and_health_alone_without_a_token() {
    let (_broker, app) = idle_app(Admin::at("0.0.0.0:0")).await;
    let control = app.control();
    let until = async {
        let port = SocketAddr::from(([127, 0, 0, 1], port(&control).await.port()));
        assert_eq!(get(port, "/metrics").await.status, 200);
        for path in ["/", "/api/status", "/asyncapi.json"] {
            assert_eq!(get(port, path).await.status, 403, "{path}");
        }
    };
    app.run(until).await.unwrap();
}

/// A page of another site must neither read what the port tells nor change the app.
#[tokio::test]
async fn requests_of_other_sites_are_refused() {
    let (_broker, app) = idle_app(Admin::at("127.0.0.1:0")).await;
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        let rebound = "GET /api/status HTTP/1.1\r\nHost: attacker.example";
        assert_eq!(send(port, rebound, "").await.status, 403);
        let body = json!({ "topic": TOPIC, "partition": 0, "paused": true });
        let keyless = send(port, "POST /api/pause HTTP/1.1", &body.to_string()).await;
        assert_eq!(keyless.status, 403, "{keyless:?}");
        let key = get(port, "/api/status").await.json()["key"].as_str().unwrap().to_owned();
        let foreign = format!(
            "POST /api/pause HTTP/1.1\r\nX-Moldau-Key: {key}\r\nOrigin: https://attacker.example"
        );
        assert_eq!(send(port, &foreign, &body.to_string()).await.status, 403);
        let odd = json!({ "topic": TOPIC, "partition": 0, "paused": true, "more": 1 });
        assert_eq!(post(port, "/api/pause", &odd).await.status, 400);
        let long = json!({ "topic": "x".repeat(100_000), "partition": 0, "paused": true });
        assert_eq!(post(port, "/api/pause", &long).await.status, 400);
        let elsewhere = json!({ "topic": "elsewhere", "partition": 0, "paused": true });
        assert_eq!(post(port, "/api/pause", &elsewhere).await.status, 409);
        let search = json!({ "topic": "elsewhere" });
        assert_eq!(post(port, "/api/dead-letters", &search).await.status, 400);
    };
    app.run(until).await.unwrap();
}

#[tokio::test]
async fn a_dead_letter_is_found_and_replayed_to_its_origin() {
    let broker = broker(2, &[]).await;
    broker.create_topic("dead", 1).await;
    broker.produce_all(TOPIC, &[(Some("anna"), "no"), (Some("ben"), "no"), (None, "no")]).await;
    let is_well = Arc::new(AtomicBool::new(false));
    let well = Arc::clone(&is_well);
    let handler = move |_: Message| {
        let outcome = if well.load(Ordering::SeqCst) { Ok(()) } else { Err("no <b>stock</b>") };
        async move { outcome }
    };
    let route = record(handler).layer(DeadLetters::to("dead"));
    let app = broker.app(GROUP).topic(TOPIC, route).admin("127.0.0.1:0");
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        status_when(&control, |it| it.routes[0].dead_letters == 3).await;
        is_well.store(true, Ordering::SeqCst);
        let all = post(port, "/api/dead-letters", &json!({ "topic": "dead" })).await.json();
        assert_eq!(all["letters"].as_array().unwrap().len(), 3);
        assert_eq!(all["older"], json!({}));
        let search = json!({ "topic": "dead", "filter": "ANNA" });
        let found = post(port, "/api/dead-letters", &search).await.json();
        let letter = &found["letters"][0];
        assert_eq!(found["letters"].as_array().unwrap().len(), 1);
        assert_eq!((&letter["key"]["text"], &letter["kind"]), (&json!("anna"), &json!("failed")));
        assert_eq!(
            (&letter["cause"], &letter["replayed"]),
            (&json!("no <b>stock</b>"), &json!(null))
        );
        let wanted = json!({ "topic": "dead", "letters": [[0, letter["offset"]], [0, 99]] });
        let outcomes = post(port, "/api/replay", &wanted).await.json();
        let to = format!("{TOPIC}-{}", letter["originPartition"].as_str().unwrap());
        assert_eq!(outcomes[0]["to"], json!(to));
        assert!(outcomes[1]["error"].is_string(), "{outcomes}");
        status_when(&control, |it| it.routes[0].handled == 4).await;
        let found = post(port, "/api/dead-letters", &search).await.json();
        assert!(found["letters"][0]["replayed"].is_u64(), "{found}");
    };
    app.run(until).await.unwrap();
    let replayed = broker.read(TOPIC, 4).await;
    let annas: Vec<_> = replayed.iter().filter(|it| it.key() == Some(b"anna")).collect();
    assert_eq!(annas.len(), 2);
    assert_eq!(annas[1].value(), Some(b"no".as_slice()));
    assert_eq!(annas[0].partition(), annas[1].partition());
    assert_eq!(annas[1].header(header::TOPIC), None);
}

#[tokio::test]
async fn older_dead_letters_follow_on_the_newest() {
    let broker = broker(1, &[]).await;
    broker.create_topic("dead", 1).await;
    let names: Vec<String> = (0..60).map(|number| format!("record-{number}")).collect();
    let records: Vec<_> = names.iter().map(|name| (None, name.as_str())).collect();
    broker.produce_all("dead", &records).await;
    let route = record(async |_: Message| Ok::<(), String>(())).layer(DeadLetters::to("dead"));
    let app = broker.app(GROUP).topic(TOPIC, route).admin("127.0.0.1:0");
    let control = app.control();
    let until = async {
        let port = port(&control).await;
        let mut offsets = Vec::new();
        let mut before = json!(null);
        while before != json!({}) {
            let search = json!({ "topic": "dead", "before": before });
            let found = post(port, "/api/dead-letters", &search).await.json();
            let letters = found["letters"].as_array().unwrap().iter();
            offsets.extend(letters.map(|letter| letter["offset"].as_i64().unwrap()));
            before = found["older"].clone();
        }
        assert_eq!(offsets, (0..60).rev().collect::<Vec<_>>());
        let search = json!({ "topic": "dead", "filter": "record-7" });
        let found = post(port, "/api/dead-letters", &search).await.json();
        assert_eq!(found["letters"].as_array().unwrap().len(), 1);
    };
    app.run(until).await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_or_a_token_that_cannot_be_sent_ends_the_app() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for admin in [Admin::at(&address), Admin::at("127.0.0.1:0").token("a b")] {
        let (_broker, app) = idle_app(admin).await;
        let ended = app.run(std::future::pending()).await;
        assert!(matches!(ended, Err(Error::Admin { .. })), "{ended:?}");
    }
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Order {
    customer: String,
    lines: Vec<Line>,
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is read")]
struct Line {
    item: String,
}

#[test]
fn the_asyncapi_document_names_topics_payloads_and_the_group() {
    let handler = async |_: Message| Ok::<(), String>(());
    let app = App::new(["localhost:9092"])
        .group(GROUP)
        .version("1.4.0")
        .topic(TOPIC, record(handler).payload::<Order>().layer(DeadLetters::to("dead")))
        .topic("returns", record(handler).payload::<Order>().layer(DeadLetters::to("dead")));
    let document = app.asyncapi();
    assert_eq!(document["info"], json!({ "title": GROUP, "version": "1.4.0" }));
    assert_eq!(document["servers"]["bootstrap-0"]["host"], "localhost:9092");
    let operations: Vec<_> = document["operations"].as_object().unwrap().keys().collect();
    let expected = ["receive-orders", "receive-returns", "send-orders-dead", "send-returns-dead"];
    assert_eq!(operations, expected);
    let group = &document["operations"]["receive-orders"]["bindings"]["kafka"]["groupId"];
    assert_eq!(group["enum"], json!([GROUP]));
    let schemas = &document["components"]["schemas"];
    assert!(schemas["Order"].is_object() && schemas["Line"].is_object(), "{schemas}");
    assert_references_lead_somewhere(&document);
}

#[test]
fn the_asyncapi_document_has_a_channel_without_an_address_for_each_pattern() {
    let handler = async |_: Message| Ok::<(), String>(());
    let app = App::new(["localhost:9092"])
        .group(GROUP)
        .pattern(r"orders\..*", record(handler).layer(DeadLetters::to("dead")))
        .topic(TOPIC, record(handler))
        .pattern("returns~?", record(handler));
    let document = app.asyncapi();
    let channels = document["channels"].as_object().unwrap();
    let names: Vec<_> = channels.keys().collect();
    assert_eq!(names, ["dead", "orders", "pattern-0", "pattern-1"]);
    assert_eq!(channels["pattern-0"]["address"], Value::Null);
    assert!(channels["pattern-0"].as_object().unwrap().contains_key("address"));
    assert_eq!(channels["pattern-0"]["x-topic-pattern"], r"orders\..*");
    assert_eq!(channels["pattern-1"]["x-topic-pattern"], "returns~?");
    assert_eq!(channels["orders"]["address"], "orders");
    let operations = document["operations"].as_object().unwrap();
    assert!(operations.contains_key("receive-pattern-0"), "{operations:?}");
    assert!(operations.contains_key("send-pattern-0-dead"), "{operations:?}");
    assert_references_lead_somewhere(&document);
}

fn assert_references_lead_somewhere(document: &Value) {
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}
