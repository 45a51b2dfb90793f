//! A sink that speaks just enough Kafka to be produced to, and keeps nothing.
//!
//! It shows what the generator can offer where no target is the limit. It serves ApiVersions,
//! Metadata, InitProducerId and Produce. Every requested topic exists and has [`PARTITIONS`]
//! partitions; batches are counted by their headers, acknowledged at the next offsets, and
//! forgotten. Each connection has a thread, which answers one request after the other.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufReader, ErrorKind, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{
    ApiVersionsResponse, InitProducerIdResponse, MetadataRequest, MetadataResponse, ProduceResponse,
};
use moldau_protocol::produce::ProduceRequestView;
use moldau_protocol::{ApiKey, ErrorCode, Message, Uuid};
use moldau_records::iter_batches;

use moldau_measure::Error;

/// Arguments under which the program is a null sink; where it listens follows.
pub const ARGUMENTS: [&str; 2] = ["lab", "null-sink"];

/// Partitions of every topic: more than any run of the laboratory against a sink has.
pub const PARTITIONS: i32 = 64;

/// The sink's node id.
const NODE: i32 = 0;

/// Largest request: 100 batches of 1 MiB each would be one, and the client's are a hundredth of it.
const REQUEST_BYTES_MAX: usize = 100 << 20;

/// How long a connection may say nothing, as brokers have it (`connections.max.idle.ms`).
const IDLE_MAX: Duration = Duration::from_mins(10);

/// Bytes that one read takes at most; larger requests are read into their own memory.
const READ_BYTES: usize = 256 * 1024;

/// Memory for a request that is added at a time.
const ROOM_BYTES: usize = 1 << 20;

/// Most topics in one answer.
const TOPICS_MAX: usize = 1 << 10;

/// Most connections at a time. Each has a thread. A client has a handful.
const CONNECTIONS_MAX: usize = 256;

/// Most partitions that offsets are counted of: those of many runs over one sink.
const ENDS_MAX: usize = 1 << 20;

/// What is served.
const APIS: [ApiKey; 4] =
    [ApiKey::ApiVersions, ApiKey::Metadata, ApiKey::InitProducerId, ApiKey::Produce];

/// Arguments of the `moldau` executable for the process of a sink.
#[must_use]
pub fn arguments(listen: SocketAddr) -> Vec<OsString> {
    let mut args: Vec<OsString> = ARGUMENTS.map(OsString::from).to_vec();
    args.extend(["--listen".into(), listen.to_string().into()]);
    args
}

/// Serves the connections of `listener` until the process ends.
///
/// # Errors
/// [`Error::Machine`] once no connection can be accepted any more.
pub fn run(listener: &TcpListener) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::machine("looking up the own address"))?;
    let sink = Arc::new(Sink::new(address));
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The client disconnected while it waited. Other connections go on.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(Error::machine("accepting a connection")(error)),
        };
        if Arc::strong_count(&sink) > CONNECTIONS_MAX {
            tracing::warn!(CONNECTIONS_MAX, "too many connections, one is closed");
            continue;
        }
        let sink = Arc::clone(&sink);
        let served = thread::Builder::new().spawn(move || {
            if let Err(error) = sink.serve(&stream) {
                tracing::debug!(%error, "a connection ended");
            }
        });
        if let Err(error) = served {
            tracing::warn!(%error, "a connection is closed for want of a thread");
        }
    }
}

struct Sink {
    address: SocketAddr,
    /// Guards the end offsets of all partitions.
    ends: Mutex<HashMap<(Uuid, i32), i64>>,
    producers: AtomicI64,
}

impl Sink {
    fn new(address: SocketAddr) -> Self {
        Self { address, ends: Mutex::default(), producers: 0.into() }
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(IDLE_MAX))?;
        let mut input = BufReader::with_capacity(READ_BYTES, stream);
        let mut output = stream;
        let (mut frame, mut answer) = (Vec::new(), BytesMut::new());
        while let Some(request) = read_frame(&mut input, &mut frame)? {
            self.answer(request, &mut answer)?;
            output.write_all(&answer)?;
            answer.clear();
        }
        Ok(())
    }

    /// Appends the answer to a request, if it is to have one.
    fn answer(&self, frame: &[u8], out: &mut BytesMut) -> std::io::Result<()> {
        let (header, body) = RequestHeader::parse(frame).map_err(invalid)?;
        let (api, version, correlation) =
            (header.api_key, header.api_version, header.correlation_id);
        let encoded = match api {
            ApiKey::ApiVersions => {
                frame::encode_response(out, api, version, correlation, &api_versions())
            }
            ApiKey::Metadata => {
                let body = Bytes::copy_from_slice(body);
                let request = MetadataRequest::from_bytes(&body, version).map_err(invalid)?;
                let answer = self.metadata(request)?;
                frame::encode_response(out, api, version, correlation, &answer)
            }
            ApiKey::InitProducerId => {
                let producer_id = self.producers.fetch_add(1, Ordering::Relaxed);
                let response = InitProducerIdResponse { producer_id, ..Default::default() };
                frame::encode_response(out, api, version, correlation, &response)
            }
            ApiKey::Produce => {
                let request = ProduceRequestView::parse(body, version).map_err(invalid)?;
                let (response, _) = self.produce(&request)?;
                if request.acks() == 0 {
                    return Ok(());
                }
                frame::encode_response(out, api, version, correlation, &response)
            }
            _ => return Err(invalid(format!("{} is not served", api.name()))),
        };
        encoded.map_err(invalid)
    }

    fn metadata(&self, request: MetadataRequest) -> std::io::Result<MetadataResponse> {
        let topics = request.topics.unwrap_or_default();
        // Each is answered with all its partitions, a thousand times as long as its name.
        if topics.len() > TOPICS_MAX {
            return Err(invalid("more topics than one answer may list"));
        }
        Ok(MetadataResponse {
            brokers: vec![MetadataResponseBroker {
                node_id: NODE,
                host: self.address.ip().to_string(),
                port: self.address.port().into(),
                ..Default::default()
            }],
            cluster_id: Some("null-sink".into()),
            controller_id: NODE,
            topics: topics.into_iter().map(|topic| known_topic(topic.name)).collect(),
            ..Default::default()
        })
    }

    /// Books the batches of a request; gives the answer, and how many records they hold.
    fn produce(&self, request: &ProduceRequestView<'_>) -> std::io::Result<(ProduceResponse, u32)> {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut responses = Vec::new();
        let mut records = 0_u32;
        for topic in request.topics() {
            let topic = topic.map_err(invalid)?;
            let id = topic.id.unwrap_or_else(|| topic_id(topic.name.unwrap_or_default()));
            let mut partition_responses = Vec::new();
            for partition in topic.partitions() {
                let partition = partition.map_err(invalid)?;
                let mut count = 0;
                for batch in iter_batches(partition.records.unwrap_or_default()) {
                    let batch = batch.map_err(invalid)?;
                    batch.check_count().map_err(invalid)?;
                    count += i64::from(batch.records_count());
                }
                if ends.len() >= ENDS_MAX {
                    return Err(invalid("more partitions than offsets are counted of"));
                }
                records = records.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
                let end = ends.entry((id, partition.index)).or_default();
                partition_responses.push(PartitionProduceResponse {
                    index: partition.index,
                    base_offset: *end,
                    ..Default::default()
                });
                *end = end.saturating_add(count);
            }
            responses.push(TopicProduceResponse {
                name: topic.name.unwrap_or_default().into(),
                topic_id: topic.id.unwrap_or_default(),
                partition_responses,
                ..Default::default()
            });
        }
        Ok((ProduceResponse { responses, ..Default::default() }, records))
    }
}

/// The next request, in memory that grows to the largest as its bytes come: a length is a claim.
fn read_frame<'a>(
    input: &mut impl Read,
    memory: &'a mut Vec<u8>,
) -> std::io::Result<Option<&'a [u8]>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > REQUEST_BYTES_MAX {
        return Err(invalid("a request beyond the limit"));
    }
    let mut end = 0;
    while end < length {
        let start = end;
        end = length.min(memory.len().max(start + ROOM_BYTES));
        memory.resize(memory.len().max(end), 0);
        input.read_exact(memory.get_mut(start..end).unwrap_or_default())?;
    }
    Ok(memory.get(..length))
}

fn api_versions() -> ApiVersionsResponse {
    let versions = |api: ApiKey| {
        let versions = api.valid_versions();
        let (min_version, max_version) = (versions.min, versions.max);
        ApiVersion { api_key: api.key(), min_version, max_version, ..Default::default() }
    };
    ApiVersionsResponse { api_keys: APIS.map(versions).to_vec(), ..Default::default() }
}

fn known_topic(name: Option<String>) -> MetadataResponseTopic {
    let Some(name) = name else {
        let error_code = ErrorCode::UnknownTopicId.code();
        return MetadataResponseTopic { error_code, ..Default::default() };
    };
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: NODE,
        replica_nodes: vec![NODE],
        isr_nodes: vec![NODE],
        ..Default::default()
    };
    MetadataResponseTopic {
        topic_id: topic_id(&name),
        name: Some(name),
        partitions: (0..PARTITIONS).map(partition).collect(),
        ..Default::default()
    }
}

/// The id of a topic follows from its name, so that nothing has to be remembered.
fn topic_id(name: &str) -> Uuid {
    let mut id = [0; 16];
    for (salt, part) in (b'1'..).zip(id.chunks_exact_mut(4)) {
        let salted = [name.as_bytes(), &[salt]].concat();
        part.copy_from_slice(&moldau_records::crc32c(&salted).to_be_bytes());
    }
    Uuid::from_bytes(id)
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> std::io::Error {
    std::io::Error::new(ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use moldau_protocol::Writer;
    use moldau_protocol::messages::ProduceRequest;
    use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
    use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
    use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

    use super::*;
    use crate::generator::{self, Setup};
    use crate::run::Skew;
    use crate::shape::{Keys, Shape, Sizes};
    use crate::workload::{Tuning, Workload};

    /// Where the header of a batch counts its records.
    const RECORDS_COUNT_AT: usize = 57;

    fn workload() -> Workload {
        Workload {
            record_bytes: 100,
            partitions: 3,
            producers: 2,
            batch_bytes: 4_096,
            linger_us: 0,
            consume: false,
            window_ms: 100,
            ..Workload::of_tests()
        }
    }

    fn setup(address: SocketAddr, workload: Workload) -> Setup {
        Setup::of_tests(address.to_string(), workload)
    }

    #[test]
    fn every_record_that_is_produced_is_acknowledged_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the tests.
        thread::spawn(move || run(&listener));
        let measured = generator::produce(&setup(address, workload())).unwrap();
        assert!(measured.acked_records > 0);
        let sent: u64 = (0..3)
            .flat_map(|lane| measured.sent.iter().map(move |s| (lane, s)))
            .map(|(lane, ledger)| ledger.next_sequence(lane))
            .sum();
        assert_eq!(sent, measured.acked_records);
    }

    #[test]
    fn more_topics_than_an_answer_may_list_are_refused() {
        let sink = Sink::new(([127, 0, 0, 1], 1).into());
        let told = |topics: usize| {
            let topic = MetadataRequestTopic { name: Some("x".into()), ..Default::default() };
            let topics = Some(vec![topic; topics]);
            sink.metadata(MetadataRequest { topics, ..Default::default() })
        };
        assert_eq!(told(TOPICS_MAX).unwrap().topics.len(), TOPICS_MAX);
        assert_eq!(told(TOPICS_MAX + 1).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_batch_with_a_wrong_record_count_is_refused() {
        let sink = Sink::new(([127, 0, 0, 1], 1).into());
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for value in ["one", "two"] {
            builder.append(0, None, Some(value.as_bytes()), []).unwrap();
        }
        let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
        let answer = |count: i32| {
            let mut records = batch.to_vec();
            records[RECORDS_COUNT_AT..][..4].copy_from_slice(&count.to_be_bytes());
            let data =
                PartitionProduceData { records: Some(Bytes::from(records)), ..Default::default() };
            let topic = TopicProduceData { partition_data: vec![data], ..Default::default() };
            let request = ProduceRequest { acks: 1, topic_data: vec![topic], ..Default::default() };
            let mut body = BytesMut::new();
            request.encode(&mut Writer::new(&mut body), 13).unwrap();
            let request = ProduceRequestView::parse(&body, 13).unwrap();
            sink.produce(&request).map(|(_, records)| records)
        };
        assert_eq!(answer(2).unwrap(), 2);
        for count in [1, 3, 0, -1, i32::MAX] {
            assert_eq!(answer(count).unwrap_err().kind(), ErrorKind::InvalidData, "{count}");
        }
    }

    #[test]
    fn a_length_is_believed_as_far_as_bytes_come() {
        let mut memory = Vec::new();
        let claimed = u32::try_from(REQUEST_BYTES_MAX).unwrap().to_be_bytes();
        let come = [claimed.as_slice(), &[7; 10]].concat();
        let error = read_frame(&mut come.as_slice(), &mut memory).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(memory.len() <= ROOM_BYTES, "{}", memory.len());
        // What does come is whole, in what room there is and in more.
        for length in [10, ROOM_BYTES + 10, 3 * ROOM_BYTES] {
            let body: Vec<u8> = (0..=250).cycle().take(length).collect();
            let length = u32::try_from(length).unwrap().to_be_bytes();
            let come = [length.as_slice(), &body].concat();
            let frame = read_frame(&mut come.as_slice(), &mut memory).unwrap();
            assert!(frame == Some(&body));
        }
    }

    #[test]
    fn records_with_keys_go_where_kafka_sends_them() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || run(&listener));
        let shape = Shape {
            keys: Some(Keys::RoundRobin { count: 5 }),
            sizes: Some(Sizes::Uniform { min: 100, max: 300 }),
            ..Shape::default()
        };
        let workload = Workload {
            partitions: 4,
            consume: false,
            tuning: Tuning { shape, ..Tuning::default() },
            ..workload()
        };
        let measured = generator::produce(&setup(address, workload)).unwrap();
        let sent: Vec<u64> = (0..4)
            .map(|lane| measured.sent.iter().map(|it| it.next_sequence(lane)).sum())
            .collect();
        // Of five keys that come in turn each partition has its share, but for the last round of
        // either producer.
        let keys = ["00000000", "00000001", "00000002", "00000003", "00000004"];
        let partitions = keys.map(|key| moldau_client::partition_for_key(key.as_bytes(), 4));
        let rounds = sent.iter().sum::<u64>() / 5;
        for (lane, count) in (0..).zip(&sent) {
            let own = partitions.iter().filter(|partition| **partition == lane).count() as u64;
            assert!(count.abs_diff(own * rounds) <= 10, "{sent:?} {partitions:?}");
        }
        let skew = Skew::of(&measured.sent, measured.acked_bytes).unwrap();
        assert_eq!(Some(skew.largest_partition_records), sent.iter().copied().max());
        assert_eq!(skew.records, measured.acked_records);
        assert!((100..=300).contains(&(skew.value_bytes / skew.records)));
    }

    #[test]
    fn an_invalid_request_ends_only_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || run(&listener));
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, 0, 0], &[255; 8]] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            stream.write_all(bytes).unwrap();
            let mut rest = Vec::new();
            let end = stream.read_to_end(&mut rest);
            let is_over = |kind| kind != ErrorKind::WouldBlock && kind != ErrorKind::TimedOut;
            assert!(end.map_or_else(|error| is_over(error.kind()), |count| count == 0));
        }
    }
}
