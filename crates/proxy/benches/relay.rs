//! What the proxy costs beside a bare TCP relay, with and without record encryption: CPU time per
//! megabyte of records on the same traffic.
//!
//! A scripted client and a scripted broker talk through one arm at a time: relay, proxy, sealing
//! proxy, and back. Only the threads of that arm are counted, by the kernel's clock of each
//! thread. Run with `cargo bench -p moldau-proxy --bench relay`; the number of rounds, the
//! megabytes of each leg and a part of the names of the traffic may follow after `--`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_encryption::{
    DataKeys, KekTemplate, KeySettings, Kms, MemoryKek, MemoryKms, OnDamage, Recompression,
    SealOptions, Sealer, SealingKey,
};
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse,
};
use moldau_protocol::{Request, frame};
use moldau_proxy::{
    Config, Filter, Gateway, Proxy, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
    VirtualCluster,
};
use moldau_records::{BatchBuilder, BatchOptions, BatchView, Compression, Compressor};
use zeroize::Zeroizing;

/// The proxy's own buffer size, so that both read and write in the same portions.
const RELAY_BUFFER_BYTES: usize = 256 * 1024;

/// Requests that the client keeps in flight: the Java client's default.
const WINDOW: usize = 5;

const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 17;

/// Records of all workloads.
const RECORD_BYTES: usize = 1024;
const TOPIC: &str = "orders";

const RELAY_THREAD: &str = "bare-relay";
pub(crate) const PROXY_THREAD: &str = "moldau-proxy-";

/// A request that the client repeats, and the answer that the broker gives to each.
pub(crate) struct Workload {
    name: String,
    /// Bytes of records in the request or the answer, as the client knows them.
    record_bytes: usize,
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Vec<u8>,
    /// The answer of a broker that holds sealed records.
    sealed_answer: Vec<u8>,
}

fn main() {
    let (numbers, names): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.parse::<usize>().is_ok());
    let mut numbers = numbers.iter().filter_map(|number| number.parse().ok());
    let rounds: usize = numbers.next().unwrap_or(5);
    let megabytes: usize = numbers.next().unwrap_or(1000);
    let names: Vec<_> = names.iter().filter(|name| !name.starts_with('-')).collect();
    println!(
        "CPU-ms per MB (2^20 bytes) of records; median of {rounds} rounds, {megabytes} MB each"
    );
    let arms = ("relay", "proxy", "ratio", "range", "sealing", "range");
    println!(
        "{:<26} {:>7} {:>7} {:>6} {:>11} {:>8} {:>13}",
        "traffic", arms.0, arms.1, arms.2, arms.3, arms.4, arms.5
    );
    let keys = Keys::new();
    let workloads = [
        produce(1, 1, 1),
        produce(1, 1, 15),
        produce(10, 1, 15),
        produce(1, 1, 125),
        produce(8, 1, 125),
        fetch(&keys, 1, 1, 1),
        fetch(&keys, 10, 1, 15),
        fetch(&keys, 10, 8, 15),
        fetch(&keys, 10, 1, 125),
    ];
    for workload in &workloads {
        if names.is_empty() || names.iter().any(|name| workload.name.contains(*name)) {
            measure(workload, &keys, rounds, (megabytes << 20) / workload.record_bytes);
        }
    }
}

fn measure(workload: &Workload, keys: &Keys, rounds: usize, requests: usize) {
    let broker_in_clear = broker(workload.answer.clone());
    let relay = relay(broker_in_clear);
    let proxy = proxy(broker_in_clear, Vec::new());
    let sealing = self::proxy(broker(workload.sealed_answer.clone()), vec![keys.filter()]);
    let (_, through_proxy) = proxy.bootstrap_addresses().remove(0);
    let (_, through_sealing) = sealing.bootstrap_addresses().remove(0);
    let megabytes = (workload.record_bytes * requests) as f64 / f64::from(1 << 20);
    let leg = |address: SocketAddr, thread: &str| {
        let before = cpu_time(thread);
        drive(address, workload, requests, WINDOW);
        (cpu_time(thread) - before).as_secs_f64() * 1e3 / megabytes
    };
    let (mut relays, mut proxies, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut sealings = Vec::new();
    for _ in 0..rounds {
        let relayed = leg(relay, RELAY_THREAD);
        let proxied = leg(through_proxy, PROXY_THREAD);
        let sealed = leg(through_sealing, PROXY_THREAD) + leg(through_sealing, PROXY_THREAD);
        let proxied = (proxied + leg(through_proxy, PROXY_THREAD)) / 2.0;
        let relayed = (relayed + leg(relay, RELAY_THREAD)) / 2.0;
        relays.push(relayed);
        proxies.push(proxied);
        ratios.push(proxied / relayed);
        sealings.push(sealed / 2.0);
    }
    let name = &*workload.name;
    let (relayed, proxied, ratio) =
        (median(&mut relays), median(&mut proxies), median(&mut ratios));
    let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
    let sealed = median(&mut sealings);
    let (sealed_low, sealed_high) = (sealings[0], sealings[sealings.len() - 1]);
    print!("{name:<26} {relayed:>7.3} {proxied:>7.3} {ratio:>6.2} {low:>5.2}-{high:<5.2}");
    println!(" {sealed:>8.3} {sealed_low:>6.3}-{sealed_high:<6.3}");
    drop((proxy, sealing));
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// CPU time of all threads of this process whose name begins with `name`.
pub(crate) fn cpu_time(name: &str) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("a Linux kernel");
    let nanoseconds = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        fs::read_to_string(task.join("comm")).ok()?.starts_with(name).then_some(())?;
        fs::read_to_string(task.join("schedstat")).ok()?.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Keeps `window` requests in flight until all are answered.
pub(crate) fn drive(address: SocketAddr, workload: &Workload, requests: usize, window: usize) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_nodelay(true).expect("a TCP socket");
    let mut answer = vec![0; workload.answer.len()];
    let mut sent = 0;
    for answered in 0..requests {
        while sent < requests && sent < answered + window {
            stream.write_all(&workload.request).expect("it reads");
            sent += 1;
        }
        stream.read_exact(&mut answer).expect("it answers");
    }
}

/// Answers every request with the same bytes; all have the same correlation id.
pub(crate) fn broker(answer: Vec<u8>) -> SocketAddr {
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

pub(crate) fn proxy(upstream: SocketAddr, filters: Vec<Arc<dyn Filter>>) -> Proxy {
    let bootstrap = SocketAddr::from(([127, 0, 0, 1], 0));
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    Proxy::start(Config {
        admin: None,
        network_threads: 1,
        traces: None,
        drain_timeout: Duration::ZERO,
        virtual_clusters: vec![VirtualCluster {
            filters,
            ..VirtualCluster::plain("bench", gateway, vec![upstream.to_string()])
        }],
    })
    .expect("it starts")
}

fn request_bytes<Q: Request>(version: i16, request: &Q) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 0, Some("bench"), request).expect("valid");
    bytes.to_vec()
}

/// The keys of the sealing proxy and of the records that the broker holds.
pub(crate) struct Keys {
    kms: Arc<MemoryKms>,
    sealing: SealingKey,
}

impl Keys {
    pub(crate) fn new() -> Self {
        let (uuid, key) = (
            "a7a3b1c2-0001-4a6b-8c3d-1f2e3d4c5b6a",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoyMzQ1Njc=",
        );
        let kek = MemoryKek::parse(uuid, &Zeroizing::new(key.to_owned()), TOPIC).expect("a key");
        let kms = Arc::new(MemoryKms::new(vec![kek]));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let wrapped = runtime.block_on(async {
            let kek = kms.resolve_alias(TOPIC).await.expect("it has the key");
            kms.generate_data_key(&kek).await.expect("it has the key")
        });
        let sealing = SealingKey::new(&wrapped.key, &wrapped.edek).expect("a short EDEK");
        Self { kms, sealing }
    }

    fn filter(&self) -> Arc<dyn Filter> {
        let settings = RecordEncryptionSettings {
            template: KekTemplate::parse("$(topicName)").expect("valid"),
            unresolved_key: UnresolvedKey::Reject,
            on_damage: OnDamage::Fail,
            recompression: Recompression::SameCodec,
        };
        let kms: Arc<dyn Kms> = self.kms.clone();
        Arc::new(RecordEncryption::new(settings, DataKeys::new(kms, &KeySettings::default(), 1)))
    }

    fn seal(&self, batch: &Bytes) -> Bytes {
        let options = SealOptions { bytes_max: 16 << 20, recompression: Recompression::SameCodec };
        let mut sealed = Vec::new();
        let batch = BatchView::parse(batch).expect("a batch");
        Sealer::new(options).seal(&batch, &self.sealing, &mut sealed).expect("a batch");
        sealed.into()
    }
}

/// A batch of so many records of random bytes.
fn batch(records: usize) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..records {
        let value: Vec<u8> =
            std::iter::repeat_with(|| fastrand::u8(..)).take(RECORD_BYTES).collect();
        builder.append(0, None, Some(&value), []).expect("a small record");
    }
    builder.finish_bytes(Compression::None, &mut Compressor::default()).expect("a small batch")
}

fn name(api: &str, partitions: usize, batches: usize, records: usize) -> String {
    format!("{api}, {partitions} x {batches} x {records} KB")
}

pub(crate) fn fetch(keys: &Keys, partitions: usize, batches: usize, records: usize) -> Workload {
    let batch = batch(records);
    let answer = |batch: &Bytes| {
        let data = PartitionData {
            records: Some(batch.repeat(batches).into()),
            ..PartitionData::default()
        };
        let topic =
            FetchableTopicResponse { partitions: vec![data; partitions], ..Default::default() };
        let response = FetchResponse { responses: vec![topic], ..Default::default() };
        let mut bytes = BytesMut::new();
        let api = ApiKey::Fetch;
        frame::encode_response(&mut bytes, api, FETCH_VERSION, 0, &response).expect("valid");
        bytes.to_vec()
    };
    Workload {
        name: name("fetch", partitions, batches, records),
        record_bytes: partitions * batches * records * RECORD_BYTES,
        request: request_bytes(FETCH_VERSION, &FetchRequest::default()),
        answer: answer(&batch),
        sealed_answer: answer(&keys.seal(&batch)),
    }
}

pub(crate) fn produce(partitions: usize, batches: usize, records: usize) -> Workload {
    let data = (0..partitions).map(|index| PartitionProduceData {
        index: index.try_into().expect("a small number"),
        records: Some(batch(records).repeat(batches).into()),
        ..PartitionProduceData::default()
    });
    let topic = TopicProduceData {
        name: TOPIC.to_owned(),
        partition_data: data.collect(),
        ..Default::default()
    };
    let request = ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() };
    let topic = TopicProduceResponse {
        name: TOPIC.to_owned(),
        partition_responses: vec![PartitionProduceResponse::default(); partitions],
        ..Default::default()
    };
    let response = ProduceResponse { responses: vec![topic], ..Default::default() };
    let mut answer = BytesMut::new();
    let api = ApiKey::Produce;
    frame::encode_response(&mut answer, api, PRODUCE_VERSION, 0, &response).expect("valid");
    Workload {
        name: name("produce", partitions, batches, records),
        record_bytes: partitions * batches * records * RECORD_BYTES,
        request: request_bytes(PRODUCE_VERSION, &request),
        answer: answer.to_vec(),
        sealed_answer: answer.to_vec(),
    }
}
