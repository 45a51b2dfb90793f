//! Traces of requests, at a collector that reads what comes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use moldau_net::HttpUrl;
use moldau_protocol::messages::{ApiKey, HeartbeatRequest, HeartbeatResponse};
use moldau_proxy::{Config, Proxy, Traces};
use serde_json::Value;

use crate::world::{
    Act, Broker, Client, answer, any_ports, await_counter, bootstrap, cluster, config,
};

/// A collector that answers so, and gives what it was sent.
fn collector(status: &'static str) -> (SocketAddr, Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, messages) = sync_channel(100);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let message = read(&mut stream);
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    (address, messages)
}

/// The head of a request and its body.
fn read(stream: &mut TcpStream) -> (String, Value) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

fn traced(broker: &Broker, collector: SocketAddr) -> Proxy {
    let url = format!("http://{collector}/v1/traces");
    let traces = Traces {
        collector: Arc::new(HttpUrl::parse(&url, None).unwrap()),
        sample_ratio: 1.0,
        service_name: "gateway".to_owned(),
    };
    let cluster = cluster("main", any_ports(), &[broker.address]);
    Proxy::start(Config { traces: Some(traces), ..config(vec![cluster]) }).unwrap()
}

fn heart() -> Broker {
    Broker::start(|seen| {
        let id = seen.correlation_id;
        Act::Send(answer(ApiKey::Heartbeat, 4, id, &HeartbeatResponse::default()))
    })
}

#[test]
fn answered_requests_reach_the_collector_as_spans() {
    let (broker, (address, messages)) = (heart(), collector("200 OK"));
    let proxy = traced(&broker, address);
    let mut client = Client::connect(bootstrap(&proxy));
    for _ in 0..3 {
        client.call(4, &HeartbeatRequest::default());
    }
    let mut spans = Vec::new();
    while spans.len() < 3 {
        let (head, message) = messages.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/json\r\n"), "{head}");
        let resource = &message["resourceSpans"][0];
        let service = &resource["resource"]["attributes"][0]["value"]["stringValue"];
        assert_eq!(service, "gateway");
        spans.extend(resource["scopeSpans"][0]["spans"].as_array().unwrap().clone());
    }
    let peer = client.stream.local_addr().unwrap();
    for span in &spans {
        let value = |key: &str| {
            let mut attributes = span["attributes"].as_array().unwrap().iter();
            attributes.find(|it| it["key"] == key).unwrap()["value"].clone()
        };
        assert_eq!((&span["name"], &span["kind"]), (&"Heartbeat".into(), &2.into()));
        assert_eq!(value("moldau.virtual_cluster")["stringValue"], "main");
        assert_eq!(value("enduser.id")["stringValue"], "User:ANONYMOUS");
        assert_eq!(value("client.port")["intValue"], peer.port().to_string());
        let number = |text: &Value| text.as_str().unwrap().parse::<u128>().unwrap();
        let parts = ["wait", "filter", "upstream"].map(|part| format!("moldau.{part}_us"));
        let micros: u128 = parts.iter().map(|part| number(&value(part)["intValue"])).sum();
        let taken = number(&span["endTimeUnixNano"]) - number(&span["startTimeUnixNano"]);
        assert_eq!(taken, micros * 1000);
    }
    await_counter(&proxy, "spans_sent_total", 3);
    await_counter(&proxy, "spans_dropped_total", 0);
}

#[test]
fn clients_are_served_while_the_collector_takes_nothing() {
    let (broker, (address, _messages)) = (heart(), collector("503 Service Unavailable"));
    let proxy = traced(&broker, address);
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(4, &HeartbeatRequest::default());
    await_counter(&proxy, "spans_dropped_total", 1);
    client.call(4, &HeartbeatRequest::default());
    await_counter(&proxy, "spans_dropped_total", 2);
    await_counter(&proxy, "spans_sent_total", 0);
}

/// Spans wait for others before they are sent, and the end came sooner.
#[test]
fn the_last_requests_reach_the_collector_before_the_end() {
    let (broker, (address, messages)) = (heart(), collector("200 OK"));
    let proxy = traced(&broker, address);
    let mut client = Client::connect(bootstrap(&proxy));
    for _ in 0..3 {
        client.call(4, &HeartbeatRequest::default());
    }
    drop(client);
    assert_eq!(proxy.drain(), 0);
    let spans = messages.try_iter().map(|(_, message)| {
        message["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().len()
    });
    assert_eq!(spans.sum::<usize>(), 3);
}

#[test]
fn a_collector_that_never_answers_does_not_keep_the_proxy_from_its_end() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = heart();
    let proxy = traced(&broker, silent.local_addr().unwrap());
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(4, &HeartbeatRequest::default());
    drop(client);
    let (ended, ends) = sync_channel(1);
    std::thread::spawn(move || ended.send(proxy.drain()));
    // An answer is waited for as long as this otherwise.
    assert_eq!(ends.recv_timeout(Duration::from_secs(9)), Ok(0));
}
