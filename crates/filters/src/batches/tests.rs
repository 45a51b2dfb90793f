//! Tests of the walk through records, and messages for the tests of filters.

mod bounds;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_net::Principal;
use moldau_protocol::frame;
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response;
use moldau_protocol::messages::share_fetch_response::{self, AcquiredRecords};
use moldau_protocol::messages::{
    FetchResponse, ProduceRequest, ProduceResponse, ShareFetchResponse,
};
use moldau_protocol::{ApiKey, Request, Response, Uuid};
use moldau_proxy::{
    Filter, FilterFuture, RequestFrame, RequestOutcome, ResponseFrame, SessionContext,
    SessionFilter, Upstream,
};
use moldau_records::{
    BATCH_HEADER_LEN, BatchBuilder, BatchOptions, Compression, Compressor, Decompressor, Edit,
    HeaderView, Producer, crc32c, write_header_like,
};
use proptest::prelude::*;

use self::bounds::bounded;
use super::refused::RefusedInFlight;
use super::*;

/// A record as the tests write and read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) timestamp: i64,
}

impl Sample {
    pub(crate) fn of(value: &str) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }
}

/// A batch of an idempotent producer with these records.
pub(crate) fn batch_of(samples: &[Sample], codec: Compression) -> Bytes {
    let producer = Some(Producer { id: 7, epoch: 3, base_sequence: 11 });
    let mut builder = BatchBuilder::new(BatchOptions { producer, ..BatchOptions::default() });
    for sample in samples {
        let headers = sample.headers.iter();
        let headers = headers.map(|(key, value)| HeaderView { key, value: value.as_deref() });
        let (key, value) = (sample.key.as_deref(), sample.value.as_deref());
        builder.append(sample.timestamp, key, value, headers).unwrap();
    }
    builder.finish_bytes(codec, &mut Compressor::default()).unwrap()
}

/// A batch with a record for each value.
pub(crate) fn values(values: &[&str]) -> Bytes {
    let samples: Vec<Sample> = values.iter().map(|value| Sample::of(value)).collect();
    batch_of(&samples, Compression::None)
}

/// The records of all batches.
pub(crate) fn samples(records: &[u8]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for batch in iter_batches(records) {
        let batch = batch.unwrap();
        batch.check_crc().unwrap();
        let mut decompressor = Decompressor::default();
        for record in batch.records(&mut decompressor, BATCH_BYTES_MAX).unwrap() {
            let record = record.unwrap();
            let headers = record.headers().unwrap();
            let headers = headers.map(|it| (it.key.to_vec(), it.value.map(<[u8]>::to_vec)));
            samples.push(Sample {
                key: record.key().map(<[u8]>::to_vec),
                value: record.value().map(<[u8]>::to_vec),
                headers: headers.collect(),
                timestamp: record.timestamp(),
            });
        }
    }
    samples
}

/// The values of all records, as text.
pub(crate) fn texts(records: &[u8]) -> Vec<String> {
    let values = samples(records).into_iter().map(|sample| sample.value.unwrap_or_default());
    values.map(|value| String::from_utf8(value).unwrap()).collect()
}

/// A Produce request with records for the partitions of topics, by name or id as its version has.
pub(crate) fn produce(version: i16, topics: &[(&str, &[&Bytes])]) -> RequestFrame {
    let topics = topics.iter().zip(1_u128..).map(|((name, records), id)| TopicProduceData {
        name: if version < 13 { (*name).to_owned() } else { String::new() },
        topic_id: if version < 13 { Uuid::default() } else { Uuid::from_bytes(id.to_be_bytes()) },
        partition_data: records
            .iter()
            .zip(0..)
            .map(|(records, index)| PartitionProduceData {
                index,
                records: Some(Bytes::clone(records)),
                ..Default::default()
            })
            .collect(),
        ..Default::default()
    });
    let topic_data = topics.collect();
    request(version, &ProduceRequest { acks: -1, timeout_ms: 9, topic_data, ..Default::default() })
}

/// A request as a filter gets it.
pub(crate) fn request<Q: Request>(version: i16, request: &Q) -> RequestFrame {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 5, Some("client"), request).unwrap();
    RequestFrame::parse(bytes.into(), true).unwrap()
}

/// An answer as a filter gets it.
pub(crate) fn response<R: Response>(version: i16, response: &R) -> ResponseFrame {
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, R::KEY, version, 5, response).unwrap();
    ResponseFrame::parse(bytes.into(), R::KEY, version).unwrap()
}

/// The records of a request for each partition, in order.
pub(crate) fn produced(request: &RequestFrame) -> Vec<Bytes> {
    let request: ProduceRequest = request.decode().unwrap();
    let partitions = request.topic_data.into_iter().flat_map(|topic| topic.partition_data);
    partitions.map(|partition| partition.records.unwrap_or_default()).collect()
}

/// A Fetch answer with records of the partitions of a topic.
pub(crate) fn fetched(version: i16, topic: &str, records: &[Bytes]) -> ResponseFrame {
    let partitions = records.iter().zip(0..).map(|(records, partition_index)| PartitionData {
        partition_index,
        high_watermark: 99,
        aborted_transactions: (partition_index == 1).then(|| vec![Default::default(); 2]),
        records: Some(records.clone()),
        ..Default::default()
    });
    let topic = FetchableTopicResponse {
        topic: if version < 13 { topic.to_owned() } else { String::new() },
        topic_id: if version < 13 { Uuid::default() } else { Uuid::from_bytes([1; 16]) },
        partitions: partitions.collect(),
        ..Default::default()
    };
    response(version, &FetchResponse { responses: vec![topic], ..Default::default() })
}

/// Code and records of each fetched partition.
pub(crate) fn fetched_partitions(response: &ResponseFrame) -> Vec<(i16, Bytes)> {
    let answer: FetchResponse = response.decode().unwrap();
    let partitions = answer.responses.into_iter().flat_map(|topic| topic.partitions);
    partitions.map(|it| (it.error_code, it.records.unwrap_or_default())).collect()
}

pub(crate) fn run<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(work)
}

/// A filter at work on a session of `User:alice` from 192.0.2.7, without a way upstream.
pub(crate) struct Session(Rc<dyn SessionFilter>);

impl Session {
    pub(crate) fn new(filter: &Arc<impl Filter + 'static>) -> Self {
        Self::with(filter, &context(Principal::user("alice")))
    }

    pub(crate) fn with(filter: &Arc<impl Filter + 'static>, context: &SessionContext) -> Self {
        Self(Arc::clone(filter).session(context))
    }

    pub(crate) fn request(&self, request: RequestFrame) -> RequestOutcome {
        run(self.start(request)).unwrap()
    }

    pub(crate) fn start(&self, request: RequestFrame) -> FilterFuture<RequestOutcome> {
        Rc::clone(&self.0).request(request, Upstream::nowhere())
    }

    pub(crate) fn forwarded(&self, request: RequestFrame) -> RequestFrame {
        match self.request(request) {
            RequestOutcome::Forward(request) => request,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn response(&self, response: ResponseFrame) -> ResponseFrame {
        run(self.answer(response))
    }

    pub(crate) async fn answer(&self, response: ResponseFrame) -> ResponseFrame {
        Rc::clone(&self.0).response(response).await.unwrap()
    }
}

const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 4711);

pub(crate) fn context(principal: Principal) -> SessionContext {
    SessionContext::new("main", ADDRESS, principal)
}

/// Writes values that contain `up` in capitals, and refuses batches with the value `bad`.
#[derive(Default)]
struct Capitals {
    /// Why partitions were refused.
    codes: Vec<ErrorCode>,
}

impl Policy for Capitals {
    fn topic(&mut self, topic: Option<&str>) -> Choice {
        match topic {
            Some("passing") => Choice::Pass,
            Some("refused") => Choice::Refuse(Fault::new(ErrorCode::InvalidTopicException, "no")),
            _ => Choice::Read,
        }
    }

    fn refused(&mut self, _: Option<&str>, _: i32, fault: &Fault) {
        self.codes.push(fault.code);
    }
}

impl RecordEditor for Capitals {
    type Error = Stop;

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        record.check_headers()?;
        let value = record.value().unwrap_or_default();
        if value == b"bad" {
            return Err(Fault::new(ErrorCode::InvalidRecord, "bad").into());
        }
        if value.windows(2).any(|pair| pair == b"up") {
            let value = Some(&*value.to_ascii_uppercase());
            let headers = [record.headers(), &[]];
            edit.replace(|out| write_record(out, record, value, record.headers_count(), headers))?;
        }
        Ok(())
    }
}

/// The outcome of a request, and the codes of the partitions that were refused.
fn produce_through(request: RequestFrame) -> (RequestOutcome, RefusedInFlight, Vec<ErrorCode>) {
    let (in_flight, mut policy) = (RefusedInFlight::default(), Capitals::default());
    let names = TopicNames::default();
    let outcome = run(in_flight.produce(request, &bounded(1 << 20), &names, &mut policy)).unwrap();
    (outcome, in_flight, policy.codes)
}

fn fetch_through(response: ResponseFrame) -> ResponseFrame {
    run(answer::fetched(response, &bounded(1 << 20), None, &mut Capitals::default())).unwrap()
}

#[test]
fn produced_records_change_in_every_version_and_nothing_else_does() {
    for version in ApiKey::Produce.valid_versions().iter() {
        let (same, up) = (values(&["a", "b"]), values(&["a", "up", "b", "upper"]));
        let topics = [("t", &[&same, &up, &same][..]), ("u", &[&up])];
        let request = produce(version, &topics);
        let (outcome, ..) = produce_through(request);
        let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
        let records = produced(&sent);
        assert_eq!([&records[0], &records[2]], [&same, &same]);
        for changed in [&records[1], &records[3]] {
            assert_eq!(texts(changed), ["a", "UP", "b", "UPPER"]);
        }
        // The same message, encoded from its fields, is the same to the byte.
        let message: ProduceRequest = sent.decode().unwrap();
        let bytes = sent.bytes().to_vec();
        assert_eq!(sent.with_message(&message).unwrap().bytes(), bytes);
    }
}

#[test]
fn fetched_records_change_in_every_version_and_nothing_else_does() {
    for version in ApiKey::Fetch.valid_versions().iter() {
        let (same, up) = (values(&["a"]), values(&["up", "a"]));
        let two: Bytes = [&same[..], &up, &same].concat().into();
        let response = fetched(version, "t", &[up.clone(), two.clone(), Bytes::new(), same]);
        let before: FetchResponse = response.decode().unwrap();
        let answer = fetch_through(response);
        let partitions = fetched_partitions(&answer);
        assert_eq!(texts(&partitions[0].1), ["UP", "a"]);
        assert_eq!(texts(&partitions[1].1), ["a", "UP", "a", "a"]);
        let mut message: FetchResponse = answer.decode().unwrap();
        let bytes = answer.bytes().to_vec();
        assert_eq!(answer.with_message(&message).unwrap().bytes(), bytes);
        let after = message.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
        let came = before.responses.iter().flat_map(|topic| &topic.partitions);
        after.zip(came).for_each(|(after, came)| after.records = came.records.clone());
        assert_eq!(message, before);
    }
}

#[test]
fn share_fetched_records_change_in_every_version_and_a_fault_withholds_all() {
    for version in ApiKey::ShareFetch.valid_versions().iter() {
        let good: Bytes = [values(&["up"]), values(&["b"])].concat().into();
        let bad: Bytes = [values(&["up"]), values(&["bad"])].concat().into();
        let partition = |records: &Bytes| share_fetch_response::PartitionData {
            records: records.clone(),
            error_message: Some("m".to_owned()),
            acquired_records: vec![AcquiredRecords { last_offset: 4, ..Default::default() }],
            ..Default::default()
        };
        let topic = share_fetch_response::ShareFetchableTopicResponse {
            partitions: vec![partition(&good), partition(&bad), partition(&Bytes::new())],
            ..Default::default()
        };
        let message = ShareFetchResponse { responses: vec![topic], ..Default::default() };
        let answer = fetch_through(response(version, &message));
        let mut after: ShareFetchResponse = answer.decode().unwrap();
        let partitions = &mut after.responses[0].partitions;
        assert_eq!(texts(&partitions[0].records), ["UP", "b"]);
        assert_eq!(partitions[1].error_code, i16::from(ErrorCode::CorruptMessage));
        assert!(partitions[1].records.is_empty() && partitions[1].acquired_records.is_empty());
        partitions[0].records = good;
        partitions[1] = partition(&bad);
        assert_eq!(after, message);
    }
}

#[test]
fn an_unchanged_message_is_the_same_frame() {
    let same: Bytes = [values(&["a"]), values(&["b"])].concat().into();
    let request = produce(9, &[("t", &[&values(&["a"])]), ("passing", &[&values(&["up"])])]);
    let bytes = request.bytes().to_vec();
    let (outcome, ..) = produce_through(request);
    let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
    assert_eq!(sent.bytes(), bytes);
    let response = fetched(12, "t", &[same]);
    let bytes = response.bytes().to_vec();
    assert_eq!(fetch_through(response).bytes(), bytes);
}

#[test]
fn refused_partitions_are_left_out_and_answered_where_the_request_had_them() {
    let (good, bad) = (values(&["up"]), values(&["a", "bad"]));
    for version in ApiKey::Produce.valid_versions().iter() {
        let all = [("t", &[&bad, &good, &bad][..]), ("u", &[&bad]), ("v", &[&good])];
        let (outcome, in_flight, codes) = produce_through(produce(version, &all));
        assert_eq!(codes, [ErrorCode::InvalidRecord; 3]);
        let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
        assert_eq!(produced(&sent).iter().flat_map(|it| texts(it)).collect::<Vec<_>>(), ["UP"; 2]);
        let sent: ProduceRequest = sent.decode().unwrap();
        let mut said = ProduceResponse::default();
        for topic in &sent.topic_data {
            let mut of_topic = produce_response::TopicProduceResponse {
                name: topic.name.clone(),
                topic_id: topic.topic_id,
                ..Default::default()
            };
            let partitions = topic.partition_data.iter();
            of_topic.partition_responses.extend(partitions.map(|partition| {
                produce_response::PartitionProduceResponse {
                    index: partition.index,
                    base_offset: 42,
                    ..Default::default()
                }
            }));
            said.responses.push(of_topic);
        }
        let answer: ProduceResponse =
            in_flight.answer(response(version, &said)).unwrap().decode().unwrap();
        let told = answer.responses.iter().flat_map(|topic| {
            topic.partition_responses.iter().map(|it| (it.index, it.error_code, it.base_offset))
        });
        let bad_at = |index| (index, i16::from(ErrorCode::InvalidRecord), -1);
        let expected = [bad_at(0), (1, 0, 42), bad_at(2), bad_at(0), (0, 0, 42)];
        assert_eq!(told.collect::<Vec<_>>(), expected, "version {version}");
        let message = &answer.responses[0].partition_responses[0].error_message;
        assert_eq!(message.as_deref(), (version >= 8).then_some("bad"));
    }
}

#[test]
fn a_request_with_nothing_left_is_answered() {
    let request = produce(11, &[("refused", &[&values(&["a"]), &values(&["b"])])]);
    let (outcome, ..) = produce_through(request);
    let RequestOutcome::Respond(answer) = outcome else { panic!("{outcome:?}") };
    let answer: ProduceResponse = answer.decode().unwrap();
    let partitions = &answer.responses[0].partition_responses;
    let code = i16::from(ErrorCode::InvalidTopicException);
    assert_eq!(
        partitions.iter().map(|it| (it.index, it.error_code)).collect::<Vec<_>>(),
        [(0, code), (1, code)]
    );
}

#[test]
fn a_producer_that_gets_no_answer_is_disconnected_once_the_rest_was_sent() {
    let mut message: ProduceRequest =
        produce(9, &[("t", &[&values(&["bad"]), &values(&["a"])])]).decode().unwrap();
    message.acks = 0;
    let request = RequestFrame::parse(request(9, &message).bytes().to_vec(), false).unwrap();
    let (outcome, ..) = produce_through(request);
    let RequestOutcome::Close(Some(rest)) = outcome else { panic!("{outcome:?}") };
    assert_eq!(produced(&rest), [values(&["a"])]);
}

#[test]
fn answers_find_their_request_even_if_one_is_missing() {
    let (_, in_flight, _) =
        produce_through(produce(9, &[("t", &[&values(&["bad"]), &values(&["a"])])]));
    let mut bytes = response(9, &ProduceResponse::default()).bytes().to_vec();
    bytes[4..8].copy_from_slice(&77_i32.to_be_bytes());
    let other = ResponseFrame::parse(bytes.clone(), ApiKey::Produce, 9).unwrap();
    assert_eq!(in_flight.answer(other).unwrap().bytes(), bytes);
    let own = in_flight.answer(response(9, &ProduceResponse::default())).unwrap();
    assert_eq!(own.decode::<ProduceResponse>().unwrap().responses.len(), 1);
}

#[test]
fn fetched_batches_pass_up_to_a_fault_and_what_is_cut_off_is_left_out() {
    let (up, bad) = (values(&["up"]), values(&["bad"]));
    let (a, cut) = (values(&["a"]), &up[..up.len() - 1]);
    let partitions = [
        [&up[..], &bad, &a].concat(),
        [&a[..], &bad, &a].concat(),
        [&bad[..], &a].concat(),
        [&up[..], cut].concat(),
        [&a[..], cut].concat(),
        cut[..20].to_vec(),
    ];
    let answer = fetched(11, "t", &partitions.map(Bytes::from));
    let after = fetched_partitions(&fetch_through(answer));
    let read: Vec<_> = after.iter().map(|(code, records)| (*code, texts(records))).collect();
    let texts = |of: &[&str]| of.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let corrupt = i16::from(ErrorCode::CorruptMessage);
    assert_eq!(
        read,
        [
            (0, texts(&["UP"])),
            (0, texts(&["a"])),
            (corrupt, texts(&[])),
            (0, texts(&["UP"])),
            (0, texts(&["a"])),
            (0, texts(&[])),
        ]
    );
}

#[test]
fn produced_records_that_are_cut_off_are_refused() {
    let whole = values(&["up"]);
    for end in 1..whole.len() {
        let request = produce(9, &[("t", &[&whole.slice(..end)])]);
        let (outcome, _, codes) = produce_through(request);
        assert!(matches!(outcome, RequestOutcome::Respond(_)), "{end} {outcome:?}");
        assert_eq!(codes.len(), 1);
        let is_known = matches!(codes[0], ErrorCode::CorruptMessage | ErrorCode::InvalidRecord);
        assert!(is_known, "{end} {codes:?}");
    }
}

#[test]
fn control_batches_and_old_formats_are_not_rewritten() {
    let mut control = values(&["up"]).to_vec();
    control[22] |= 1 << 5;
    mend(&mut control);
    let answer = fetched(11, "t", &[control.clone().into()]);
    assert_eq!(fetched_partitions(&fetch_through(answer)), [(0, control.into())]);
    let mut old = values(&["up"]).to_vec();
    old[16] = 1;
    let answer = fetched(11, "t", &[old.into()]);
    let after = fetched_partitions(&fetch_through(answer));
    assert_eq!(after, [(i16::from(ErrorCode::CorruptMessage), Bytes::new())]);
}

#[test]
fn a_payload_that_unpacks_without_end_is_refused() {
    let bomb = vec![0; BATCH_BYTES_MAX + 1];
    let like = values(&["up"]);
    let like = BatchView::parse(&like).unwrap();
    let mut batch = vec![0; BATCH_HEADER_LEN];
    Compressor::default().compress(Compression::Zstd, &bomb, &mut batch).unwrap();
    write_header_like(&mut batch, &like, Compression::Zstd).unwrap();
    assert!(batch.len() < BATCH_BYTES_MAX / 1000);
    let (_, _, codes) = produce_through(produce(9, &[("t", &[&batch.into()])]));
    assert_eq!(codes, [ErrorCode::MessageTooLarge]);
}

#[test]
fn changed_batches_are_refused_or_rewritten_and_never_more() {
    let mut random = fastrand::Rng::with_seed(11);
    let header = (b"h".to_vec(), Some(b"1".to_vec()));
    let sample = Sample { key: Some(b"k".into()), headers: vec![header], ..Sample::of("up") };
    for codec in Compression::ALL {
        let batch = batch_of(&[sample.clone(), Sample::of("b"), Sample::default()], codec);
        for _ in 0..2_000 {
            let mut changed = batch.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..changed.len());
                changed[at] ^= 1 << random.u8(..8);
            }
            if random.bool() {
                mend(&mut changed);
            }
            let request = produce(9, &[("t", &[&changed.clone().into(), &batch])]);
            let (outcome, _, codes) = produce_through(request);
            let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
            let records = produced(&sent);
            assert_eq!(texts(records.last().unwrap()), ["UP", "b", ""]);
            assert_eq!(records.len() + codes.len(), 2);
            assert!(codes.iter().all(|code| matches!(
                code,
                ErrorCode::CorruptMessage
                    | ErrorCode::InvalidRecord
                    | ErrorCode::MessageTooLarge
                    | ErrorCode::UnsupportedCompressionType
            )));
            let answer = fetched(12, "t", &[changed.into(), batch.clone()]);
            let partitions = fetched_partitions(&fetch_through(answer));
            assert_eq!(texts(&partitions[1].1), ["UP", "b", ""]);
        }
    }
}

#[test]
fn changed_frames_never_panic() {
    let mut random = fastrand::Rng::with_seed(13);
    let (up, session) = (values(&["up"]), bounded(1 << 20));
    for _ in 0..20_000 {
        let version = random.i16(3..=12);
        let mut bytes = produce(version, &[("t", &[&up, &up])]).bytes().to_vec();
        let at = random.usize(14..bytes.len());
        bytes[at] ^= 1 << random.u8(..8);
        if let Ok(request) = RequestFrame::parse(bytes, true) {
            let (in_flight, names) = (RefusedInFlight::default(), TopicNames::default());
            drop(run(in_flight.produce(request, &session, &names, &mut Capitals::default())));
        }
        let version = random.i16(4..=18);
        let mut bytes = fetched(version, "t", &[up.clone(), up.clone()]).bytes().to_vec();
        let at = random.usize(8..bytes.len());
        bytes[at] ^= 1 << random.u8(..8);
        if let Ok(response) = ResponseFrame::parse(bytes, ApiKey::Fetch, version) {
            drop(run(answer::fetched(response, &session, None, &mut Capitals::default())));
        }
    }
}

/// Writes the CRC anew.
pub(crate) fn mend(batch: &mut [u8]) {
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..40));
    let header = (proptest::collection::vec(any::<u8>(), 0..8), bytes());
    let value = prop_oneof![bytes(), Just(Some(b"up".to_vec()))];
    (bytes(), value, proptest::collection::vec(header, 0..3), 0..i64::from(i32::MAX))
        .prop_map(|(key, value, headers, timestamp)| Sample { key, value, headers, timestamp })
}

proptest! {
    #[test]
    fn a_rewritten_batch_reads_like_the_one_before_but_for_what_changed(
        before in proptest::collection::vec(any_sample(), 1..20),
        codec in proptest::sample::select(&Compression::ALL[..]),
    ) {
        let batch = batch_of(&before, codec);
        let (outcome, _, codes) = produce_through(produce(9, &[("t", &[&batch])]));
        let is_bad = before.iter().any(|sample| sample.value.as_deref() == Some(b"bad"));
        if is_bad {
            prop_assert_eq!(codes, [ErrorCode::InvalidRecord]);
            return Ok(());
        }
        let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
        let after = produced(&sent).remove(0);
        let expected: Vec<Sample> = before.iter().cloned().map(|mut sample| {
            if let Some(value) = &mut sample.value
                && value.windows(2).any(|pair| pair == b"up")
            {
                value.make_ascii_uppercase();
            }
            sample
        }).collect();
        prop_assert_eq!(samples(&after), expected);
        let (view, came) = (BatchView::parse(&after).unwrap(), BatchView::parse(&batch).unwrap());
        prop_assert_eq!(view.check_count(), Ok(()));
        prop_assert_eq!(view.attributes(), came.attributes());
        prop_assert_eq!(view.last_offset_delta(), came.last_offset_delta());
        prop_assert_eq!(view.producer_id(), came.producer_id());
        prop_assert_eq!(view.producer_epoch(), came.producer_epoch());
        prop_assert_eq!(view.base_sequence(), came.base_sequence());
        prop_assert_eq!(view.max_timestamp(), came.max_timestamp());
    }
}
