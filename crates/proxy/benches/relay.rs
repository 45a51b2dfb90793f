//! What the proxy costs beside a bare TCP relay: CPU time per megabyte on the same traffic.
//!
//! A scripted client and a scripted broker talk through one of the two at a time, in the order
//! relay, proxy, proxy, relay. Only the threads of the relay or of the proxy are counted, by the
//! kernel's clock of each thread. Run with `cargo bench -p moldau-proxy`; the number of rounds and
//! the megabytes of each leg may follow after `--`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse,
};
use moldau_protocol::{Request, frame};
use moldau_proxy::{Config, Proxy, VirtualCluster};

/// The proxy's own buffer size, so that both read and write in the same portions.
const RELAY_BUFFER_BYTES: usize = 256 * 1024;

/// Requests that the client keeps in flight: the Java client's default.
const WINDOW: usize = 5;

const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 17;

const RELAY_THREAD: &str = "bare-relay";
const PROXY_THREAD: &str = "moldau-proxy-";

/// Requests that the client repeats, and the answer that the broker gives to each.
struct Workload {
    name: &'static str,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Workload {
    fn bytes(&self) -> usize {
        self.request.len() + self.answer.len()
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let rounds: usize = numbers.next().unwrap_or(5);
    let megabytes: usize = numbers.next().unwrap_or(1000);
    println!("CPU-ms per MB through it; median of {rounds} rounds, {megabytes} MB each leg");
    println!("{:<28} {:>8} {:>8} {:>7} {:>15}", "traffic", "relay", "proxy", "ratio", "range");
    let workloads = [
        fetch("fetch, 10 x 100 KB", 10, 100_000),
        fetch("fetch, 1 x 1 MB", 1, 1_000_000),
        produce("produce, 1 x 16 KB", 1, 16_000),
        produce("produce, 8 x 16 KB", 8, 16_000),
        produce("produce, 1 x 1 MB", 1, 1_000_000),
    ];
    for workload in &workloads {
        measure(workload, rounds, megabytes * 1_000_000 / workload.bytes());
    }
}

fn measure(workload: &Workload, rounds: usize, requests: usize) {
    let broker = broker(workload.answer.clone());
    let relay = relay(broker);
    let proxy = proxy(broker);
    let (_, through_proxy) = proxy.bootstrap_addresses().remove(0);
    let megabytes = (workload.bytes() * requests) as f64 / 1e6;
    let leg = |address: SocketAddr, thread: &str| {
        let before = cpu_time(thread);
        let started = Instant::now();
        drive(address, workload, requests);
        let cpu = (cpu_time(thread) - before).as_secs_f64() * 1e3 / megabytes;
        (cpu, megabytes / started.elapsed().as_secs_f64())
    };
    let (mut relays, mut proxies, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let first = leg(relay, RELAY_THREAD).0;
        let proxied = leg(through_proxy, PROXY_THREAD).0 + leg(through_proxy, PROXY_THREAD).0;
        let relayed = first + leg(relay, RELAY_THREAD).0;
        relays.push(relayed / 2.0);
        proxies.push(proxied / 2.0);
        ratios.push(proxied / relayed);
    }
    let name = workload.name;
    let (relayed, proxied, ratio) =
        (median(&mut relays), median(&mut proxies), median(&mut ratios));
    let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
    println!("{name:<28} {relayed:>8.3} {proxied:>8.3} {ratio:>7.2} {low:>7.2}-{high:<7.2}");
    drop(proxy);
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of all threads of this process whose name begins with `name`.
fn cpu_time(name: &str) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("a Linux kernel");
    let nanoseconds = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        fs::read_to_string(task.join("comm")).ok()?.starts_with(name).then_some(())?;
        fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Keeps a window of requests in flight until all are answered.
fn drive(address: SocketAddr, workload: &Workload, requests: usize) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let mut answer = vec![0; workload.answer.len()];
    let mut sent = 0;
    for answered in 0..requests {
        while sent < requests && sent < answered + WINDOW {
            stream.write_all(&workload.request).expect("it reads");
            sent += 1;
        }
        stream.read_exact(&mut answer).expect("it answers");
    }
}

/// Answers every request with the same bytes; all have the same correlation id.
fn broker(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || answer_all(stream, &answer));
        }
    });
    address
}

fn answer_all(mut stream: TcpStream, answer: &[u8]) {
    stream.set_nodelay(true).expect("a TCP socket");
    let mut request = Vec::new();
    let mut length = [0; 4];
    while stream.read_exact(&mut length).is_ok() {
        request.resize(u32::from_be_bytes(length) as usize, 0);
        if stream.read_exact(&mut request).is_err() {
            return;
        }
        let is_metadata = request.get(..2) == Some(&ApiKey::Metadata.key().to_be_bytes());
        let written = if is_metadata {
            let mut bytes = BytesMut::new();
            let none = MetadataResponse::default();
            frame::encode_response(&mut bytes, ApiKey::Metadata, 7, 0, &none).expect("valid");
            stream.write_all(&bytes)
        } else {
            stream.write_all(answer)
        };
        if written.is_err() {
            return;
        }
    }
}

/// One thread, one buffer for each direction, nothing looked at.
fn relay(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    listener.set_nonblocking(true).expect("a TCP socket");
    let relay = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("an event queue").block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("in a runtime");
            while let Ok((mut downstream, _)) = listener.accept().await {
                let mut upstream =
                    tokio::net::TcpStream::connect(upstream).await.expect("it is up");
                downstream.set_nodelay(true).expect("a TCP socket");
                upstream.set_nodelay(true).expect("a TCP socket");
                let (down, up) = (&mut downstream, &mut upstream);
                let sizes = RELAY_BUFFER_BYTES;
                // Ends with the client, by whatever error that causes.
                let _ended = tokio::io::copy_bidirectional_with_sizes(down, up, sizes, sizes).await;
            }
        });
    };
    thread::Builder::new().name(RELAY_THREAD.to_owned()).spawn(relay).expect("a thread");
    address
}

fn proxy(upstream: SocketAddr) -> Proxy {
    Proxy::start(Config {
        admin: None,
        network_threads: 1,
        drain_timeout: Duration::ZERO,
        virtual_clusters: vec![VirtualCluster {
            name: "bench".to_owned(),
            bootstrap: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertised_host: None,
            upstream: vec![upstream.to_string()],
            broker_port_start: 0,
            filters: Vec::new(),
        }],
    })
    .expect("it starts")
}

fn request_bytes<Q: Request>(version: i16, request: &Q) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 0, Some("bench"), request).expect("valid");
    bytes.to_vec()
}

fn random(count: usize) -> Bytes {
    std::iter::repeat_with(|| fastrand::u8(..)).take(count).collect()
}

fn fetch(name: &'static str, partitions: usize, record_bytes: usize) -> Workload {
    let partitions = (0..partitions)
        .map(|_| PartitionData { records: Some(random(record_bytes)), ..PartitionData::default() });
    let topic = FetchableTopicResponse { partitions: partitions.collect(), ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    let mut answer = BytesMut::new();
    frame::encode_response(&mut answer, ApiKey::Fetch, FETCH_VERSION, 0, &response).expect("valid");
    let request = request_bytes(FETCH_VERSION, &FetchRequest::default());
    Workload { name, request, answer: answer.to_vec() }
}

fn produce(name: &'static str, partitions: usize, record_bytes: usize) -> Workload {
    let data = (0..partitions).map(|_| PartitionProduceData {
        records: Some(random(record_bytes)),
        ..PartitionProduceData::default()
    });
    let topic = TopicProduceData {
        name: "orders".to_owned(),
        partition_data: data.collect(),
        ..Default::default()
    };
    let request = ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() };
    let topic = TopicProduceResponse {
        name: "orders".to_owned(),
        partition_responses: vec![PartitionProduceResponse::default(); partitions],
        ..Default::default()
    };
    let response = ProduceResponse { responses: vec![topic], ..Default::default() };
    let mut answer = BytesMut::new();
    let api = ApiKey::Produce;
    frame::encode_response(&mut answer, api, PRODUCE_VERSION, 0, &response).expect("valid");
    Workload { name, request: request_bytes(PRODUCE_VERSION, &request), answer: answer.to_vec() }
}
