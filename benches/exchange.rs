//! A scripted client and a scripted broker with a proxy between them, on sockets of this machine.
//! Benches of several crates include this file.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{
    ApiKey, FetchRequest, FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse,
};
use moldau_protocol::{Request, frame};
use moldau_proxy::{Config, Filter, Gateway, Proxy, VirtualCluster};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

const PRODUCE_VERSION: i16 = 12;
pub(crate) const FETCH_VERSION: i16 = 17;

/// Records of all workloads.
const RECORD_BYTES: usize = 1024;
pub(crate) const TOPIC: &str = "orders";

pub(crate) const PROXY_THREAD: &str = "moldau-proxy-";

/// A request that the client repeats, and the answer that the broker gives to each.
pub(crate) struct Workload {
    pub(crate) name: String,
    /// Bytes of records in the request or the answer, as the client knows them.
    pub(crate) record_bytes: usize,
    pub(crate) request: Vec<u8>,
    pub(crate) answer: Vec<u8>,
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

pub(crate) fn proxy(upstream: SocketAddr, filters: Vec<Arc<dyn Filter>>) -> Proxy {
    let bootstrap = SocketAddr::from(([127, 0, 0, 1], 0));
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    Proxy::start(Config {
        admin: None,
        memory_bytes: 1 << 30,
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

/// A batch of so many records of random bytes.
pub(crate) fn batch(records: usize) -> Bytes {
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

/// Fetches so many records in each of so many batches of so many partitions.
pub(crate) fn fetch(partitions: usize, batches: usize, records: usize) -> Workload {
    Workload {
        name: name("fetch", partitions, batches, records),
        record_bytes: partitions * batches * records * RECORD_BYTES,
        request: request_bytes(FETCH_VERSION, &FetchRequest::default()),
        answer: fetched(&batch(records), partitions, batches),
    }
}

/// An answer with the same batch in all places.
pub(crate) fn fetched(batch: &Bytes, partitions: usize, batches: usize) -> Vec<u8> {
    let records = Some(batch.repeat(batches).into());
    let data = PartitionData { records, ..PartitionData::default() };
    let topic = FetchableTopicResponse { partitions: vec![data; partitions], ..Default::default() };
    let response = FetchResponse { responses: vec![topic], ..Default::default() };
    let mut bytes = BytesMut::new();
    let api = ApiKey::Fetch;
    frame::encode_response(&mut bytes, api, FETCH_VERSION, 0, &response).expect("valid");
    bytes.to_vec()
}

/// Produces likewise.
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
    }
}
