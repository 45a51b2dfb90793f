//! One entry for arbitrary bytes into whole messages that pass through record encryption. The fuzz
//! target includes this file as well.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_encryption::{DataKeys, KekTemplate, KeySettings, MemoryKek, MemoryKms};
use moldau_filters::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
use moldau_net::Principal;
use moldau_protocol::frame::{self, LENGTH_SIZE};
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::share_fetch_response::{self, ShareFetchableTopicResponse};
use moldau_protocol::messages::{
    FetchResponse, ProduceRequest, ProduceResponse, ShareFetchResponse,
};
use moldau_protocol::{ApiKey, ErrorCode, Request, Response};
use moldau_proxy::{
    Filter, RequestFrame, RequestOutcome, ResponseFrame, SessionContext, SessionFilter, Upstream,
};
use moldau_records::{
    BatchBuilder, BatchOptions, Compression, Compressor, HeaderView, crc32c, iter_batches,
};
use tokio::runtime::Runtime;

const TOPIC: &str = "orders";

/// Topics by id would need a cluster that knows them.
const PRODUCE_VERSION_MAX: i16 = 12;

/// A session of record encryption, and records as a client and as a broker has them.
pub(crate) struct World {
    runtime: Runtime,
    session: Rc<dyn SessionFilter>,
    /// For each codec.
    plain: Vec<Bytes>,
    sealed: Vec<Bytes>,
}

impl World {
    /// A session whose keys are in memory.
    pub(crate) fn new() -> Self {
        let (uuid, key) = ("00112233-4455-6677-8899-aabbccddeeff", format!("{}=", "A".repeat(43)));
        let kek = MemoryKek::parse(uuid, &key.into(), TOPIC).expect("a key");
        let settings = RecordEncryptionSettings {
            template: KekTemplate::parse("$(topicName)").expect("it is valid"),
            unresolved_key: UnresolvedKey::Reject,
            on_damage: OnDamage::Fail,
            recompression: Recompression::SameCodec,
        };
        let kms = Arc::new(MemoryKms::new(vec![kek]));
        let keys = DataKeys::new(kms, &KeySettings::default(), 1);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let plain: Vec<_> = Compression::ALL.into_iter().map(batch).collect();
        let peer = std::net::SocketAddr::from(([192, 0, 2, 7], 50_000));
        let context = SessionContext::new("main", peer, Principal::anonymous());
        let mut world = Self {
            runtime: runtime.enable_time().build().expect("a runtime"),
            session: Arc::new(RecordEncryption::new(settings, keys)).session(&context),
            sealed: Vec::new(),
            plain,
        };
        world.sealed = world.plain.iter().map(|plain| world.seal(plain)).collect();
        world
    }

    /// Sends what `data` says through the filter: its first bytes choose the message and its
    /// version, the others are changes of a place by a byte each.
    ///
    /// # Panics
    /// If a promise of the filter is broken.
    pub(crate) fn read(&self, data: &[u8]) {
        let Some(([selector, version], changes)) = data.split_first_chunk() else { return };
        // Most records are not compressed, so that more of the changes hit what is sealed.
        let codec = usize::from(*selector >> 4);
        let codec = if codec < self.plain.len() { codec } else { 0 };
        let is_frame_changed = selector & 4 != 0;
        let (plain, sealed) = (&self.plain[codec], &self.sealed[codec]);
        let records = |records: &Bytes| match is_frame_changed {
            true => records.clone(),
            false => changed_batch(records, changes, selector & 8 != 0),
        };
        let frame = |bytes: Vec<u8>| match is_frame_changed {
            true => changed_frame(bytes, changes),
            false => bytes,
        };
        match selector & 3 {
            0 => {
                let version = version_of(ApiKey::Produce, *version).min(PRODUCE_VERSION_MAX);
                let request = produce_request(&[plain, &records(plain), plain]);
                let bytes = frame(request_bytes(version, &request));
                self.produce(bytes, is_frame_changed);
            }
            1 => {
                let version = version_of(ApiKey::ShareFetch, *version);
                let response = share_fetch_response(&[sealed, &records(sealed), sealed]);
                let bytes = frame(response_bytes(version, &response));
                self.share_fetch(bytes, version, plain, is_frame_changed);
            }
            _ => {
                let version = version_of(ApiKey::Fetch, *version);
                let response = fetch_response(&[sealed, &records(sealed), sealed]);
                let bytes = frame(response_bytes(version, &response));
                self.fetch(bytes, version, plain, is_frame_changed);
            }
        }
    }

    /// What the filter makes of a request; `None` if it ends the session.
    pub(crate) fn request(&self, request: RequestFrame) -> Option<RequestOutcome> {
        let work = Rc::clone(&self.session).request(request, Upstream::nowhere());
        self.runtime.block_on(work).ok()
    }

    /// What the filter makes of an answer; `None` if it ends the session.
    pub(crate) fn response(&self, response: ResponseFrame) -> Option<ResponseFrame> {
        self.runtime.block_on(Rc::clone(&self.session).response(response)).ok()
    }

    /// A batch as it is sent on.
    pub(crate) fn seal(&self, batch: &Bytes) -> Bytes {
        let bytes = request_bytes(PRODUCE_VERSION_MAX, &produce_request(&[batch]));
        let request = RequestFrame::parse(bytes, false).expect("it was encoded");
        let Some(RequestOutcome::Forward(request)) = self.request(request) else {
            panic!("a good request is sent on")
        };
        let request: ProduceRequest = request.decode().expect("it was rewritten");
        records_of(request).remove(0)
    }

    fn produce(&self, bytes: Vec<u8>, is_frame_changed: bool) {
        let Ok(request) = RequestFrame::parse(bytes, false) else { return };
        if request.api_key() != ApiKey::Produce || request.api_version() > PRODUCE_VERSION_MAX {
            return;
        }
        let count = request.decode().map(|request| records_of(request).len()).ok();
        let came = request.bytes().to_vec();
        let Some(outcome) = self.request(request) else {
            assert!(is_frame_changed, "a request without a fault ended its session");
            return;
        };
        let (sent, answered) = match outcome {
            RequestOutcome::Forward(request)
            | RequestOutcome::ForwardOnly(request)
            | RequestOutcome::Close(Some(request)) => {
                assert_framed(request.bytes());
                // Whatever is wrong in it beside its records is the cluster's to tell.
                if is_frame_changed && (count.is_none() || request.bytes() == came) {
                    return;
                }
                (records_of(request.decode().expect("it was rewritten")), 0)
            }
            RequestOutcome::Respond(response) | RequestOutcome::RespondAndClose(response) => {
                assert_framed(response.bytes());
                let answer: ProduceResponse = response.decode().expect("it was encoded");
                (Vec::new(), answer.responses.len())
            }
            RequestOutcome::Close(None) => (Vec::new(), 0),
        };
        if is_frame_changed {
            return;
        }
        assert_eq!((count, answered), (Some(3), 0));
        assert!((2..=3).contains(&sent.len()), "two partitions have no fault");
        for records in [&sent[0], &sent[sent.len() - 1]] {
            let batch = iter_batches(records).next().expect("a batch").expect("it is whole");
            assert_eq!(batch.check_crc(), Ok(()));
        }
    }

    fn fetch(&self, bytes: Vec<u8>, version: i16, plain: &Bytes, is_frame_changed: bool) {
        let Ok(response) = ResponseFrame::parse(bytes, ApiKey::Fetch, version) else { return };
        let Some(response) = self.response(response) else {
            assert!(is_frame_changed, "an answer without a fault ended its session");
            return;
        };
        assert_framed(response.bytes());
        if is_frame_changed {
            return;
        }
        let answer: FetchResponse = response.decode().expect("it was rewritten");
        let partitions: Vec<_> =
            answer.responses.into_iter().flat_map(|topic| topic.partitions).collect();
        let [before, between, after] = &partitions[..] else { panic!("{}", partitions.len()) };
        for partition in [before, after] {
            assert_eq!(partition.error_code, 0);
            assert_eq!(partition.records.as_ref(), Some(plain));
        }
        assert_told(between.error_code, between.records.as_ref().is_none_or(Bytes::is_empty));
    }

    fn share_fetch(&self, bytes: Vec<u8>, version: i16, plain: &Bytes, is_frame_changed: bool) {
        let Ok(response) = ResponseFrame::parse(bytes, ApiKey::ShareFetch, version) else { return };
        let Some(response) = self.response(response) else {
            assert!(is_frame_changed, "an answer without a fault ended its session");
            return;
        };
        assert_framed(response.bytes());
        if is_frame_changed {
            return;
        }
        let answer: ShareFetchResponse = response.decode().expect("it was rewritten");
        let partitions: Vec<_> =
            answer.responses.into_iter().flat_map(|topic| topic.partitions).collect();
        let [before, between, after] = &partitions[..] else { panic!("{}", partitions.len()) };
        for partition in [before, after] {
            assert_eq!((partition.error_code, &partition.records), (0, plain));
        }
        assert_told(between.error_code, between.records.is_empty());
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Records are either there or replaced by an error that belongs to them.
fn assert_told(error_code: i16, is_empty: bool) {
    let code = ErrorCode::try_from(error_code).expect("a code of Kafka");
    match code {
        ErrorCode::None => {}
        ErrorCode::CorruptMessage | ErrorCode::TopicAuthorizationFailed => assert!(is_empty),
        _ => panic!("{code:?}"),
    }
}

fn assert_framed(bytes: &[u8]) {
    let (length, rest) = bytes.split_first_chunk().expect("a frame");
    assert_eq!(usize::try_from(i32::from_be_bytes(*length)), Ok(rest.len()));
}

fn version_of(api: ApiKey, byte: u8) -> i16 {
    let versions: Vec<i16> = api.valid_versions().iter().collect();
    versions[usize::from(byte) % versions.len()]
}

/// Each change is a place and a byte.
fn change(bytes: &mut [u8], changes: &[u8]) {
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % bytes.len();
        bytes[at] ^= change[2];
    }
}

/// A batch with changes, and with a right CRC if that is wanted.
fn changed_batch(batch: &Bytes, changes: &[u8], is_mended: bool) -> Bytes {
    let mut bytes = batch.to_vec();
    change(&mut bytes, changes);
    if is_mended {
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    bytes.into()
}

/// A frame with changes behind its length.
fn changed_frame(mut bytes: Vec<u8>, changes: &[u8]) -> Vec<u8> {
    change(&mut bytes[LENGTH_SIZE..], changes);
    bytes
}

fn batch(codec: Compression) -> Bytes {
    let headers = [HeaderView { key: b"h", value: Some(b"1") }];
    let mut builder = BatchBuilder::new(BatchOptions::default());
    builder.append(5, Some(b"key"), Some(b"some value"), headers).expect("it is small");
    builder.append(6, None, Some(b""), []).expect("it is small");
    builder.append(7, Some(b"key"), None, []).expect("it is small");
    builder.finish_bytes(codec, &mut Compressor::default()).expect("it is small")
}

/// A request with these records, each for a partition.
pub(crate) fn produce_request(records: &[&Bytes]) -> ProduceRequest {
    let partitions = records.iter().zip(0..).map(|(records, index)| PartitionProduceData {
        index,
        records: Some(Bytes::clone(records)),
        ..Default::default()
    });
    let topic = TopicProduceData {
        name: TOPIC.to_owned(),
        partition_data: partitions.collect(),
        ..Default::default()
    };
    ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() }
}

fn records_of(request: ProduceRequest) -> Vec<Bytes> {
    let partitions = request.topic_data.into_iter().flat_map(|topic| topic.partition_data);
    partitions.map(|partition| partition.records.unwrap_or_default()).collect()
}

/// An answer with these records, each of a partition.
pub(crate) fn fetch_response(records: &[&Bytes]) -> FetchResponse {
    let partitions = records.iter().zip(0..).map(|(records, partition_index)| PartitionData {
        partition_index,
        records: Some(Bytes::clone(records)),
        ..Default::default()
    });
    let topic = FetchableTopicResponse {
        topic: TOPIC.to_owned(),
        partitions: partitions.collect(),
        ..Default::default()
    };
    FetchResponse { responses: vec![topic], ..Default::default() }
}

/// An answer to a share consumer with these records, each of a partition.
pub(crate) fn share_fetch_response(records: &[&Bytes]) -> ShareFetchResponse {
    let partitions = records.iter().zip(0..).map(|(records, partition_index)| {
        share_fetch_response::PartitionData {
            partition_index,
            records: Bytes::clone(records),
            ..Default::default()
        }
    });
    let topic =
        ShareFetchableTopicResponse { partitions: partitions.collect(), ..Default::default() };
    ShareFetchResponse { responses: vec![topic], ..Default::default() }
}

/// A request as a frame.
pub(crate) fn request_bytes<Q: Request>(version: i16, request: &Q) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 1, Some("any"), request).expect("it is valid");
    bytes.into()
}

/// An answer as a frame.
pub(crate) fn response_bytes<R: Response>(version: i16, response: &R) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, R::KEY, version, 1, response).expect("it is valid");
    bytes.into()
}
