//! Both directions over sockets that take and give bytes in any portions.

use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use moldau_net::{FRAME_BYTES_MAX_DEFAULT, MemoryBudget, Principal};
use moldau_protocol::messages::fetch_response::{
    FetchableTopicResponse, NodeEndpoint, PartitionData,
};
use moldau_protocol::messages::metadata_response::{MetadataResponseBroker, MetadataResponseTopic};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{
    ApiKey, FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse, ShareFetchResponse,
    produce_response, share_fetch_response,
};
use moldau_protocol::{Response, frame};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use tokio::task::LocalSet;

use super::*;
use crate::chain::{Chains, SessionChain};
use crate::context::SessionContext;
use crate::expected::{Expected, Readers};
use crate::filter::{Direction, Filter, SessionFilter};
use crate::latency::SessionLatencies;
use crate::requests::RequestScanner;
use crate::responses::ResponseScanner;
use crate::rewrite::Rewriter;
use crate::unserved::unserved;

/// Gives and takes at most so many bytes at once; none where a portion is 0.
struct Socket {
    bytes: Vec<u8>,
    at: usize,
    portions: Vec<usize>,
    calls: usize,
}

impl Socket {
    fn new(bytes: Vec<u8>, portions: &[usize]) -> Self {
        Self { bytes, at: 0, portions: portions.to_vec(), calls: 0 }
    }

    fn portion(&mut self) -> usize {
        self.calls += 1;
        self.portions[self.calls % self.portions.len()]
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let portion = self.portion().min(buffer.remaining()).min(self.bytes.len() - self.at);
        if portion == 0 && self.at < self.bytes.len() {
            return Poll::Pending;
        }
        let end = self.at + portion;
        buffer.put_slice(&self.bytes[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let portion = self.portion();
        if portion == 0 {
            return Poll::Pending;
        }
        let before = self.bytes.len();
        for slice in slices {
            let left = portion - (self.bytes.len() - before);
            self.bytes.extend_from_slice(slice.get(..left).unwrap_or(slice));
        }
        Poll::Ready(Ok(self.bytes.len() - before))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn flow() -> Flow {
    Flow::new(memory(), MemoryUse::Request)
}

fn memory() -> MemoryAccount {
    MemoryBudget::unlimited().account()
}

/// Moves all of `bytes` through a scanner.
fn relayed(
    bytes: &[u8],
    scanner: &mut impl Scan,
    in_flight: &mut InFlight,
    portions: (&[usize], &[usize]),
) -> Vec<u8> {
    let mut cx = Context::from_waker(Waker::noop());
    let mut from = Socket::new(bytes.to_vec(), portions.0);
    let mut to = Socket::new(Vec::new(), portions.1);
    let mut flow = flow();
    loop {
        let still = flow.poll(&mut cx, &mut from, &mut to, scanner, in_flight).unwrap();
        if let Still::Ended { truncated } = still {
            assert!(!truncated);
            assert!(flow.is_written());
            assert!(flow.buffer.is_none());
            return to.bytes;
        }
    }
}

/// Runs `test` with a rewriter, on a thread that may hold listeners.
fn with_rewriter(test: impl FnOnce(&dyn Fn() -> Rewriter)) {
    let (_threads, cluster) = unserved(Vec::new());
    let local = std::net::IpAddr::from([127, 0, 0, 1]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        test(&|| Rewriter::new(Arc::clone(&cluster), local));
    });
}

fn anonymous() -> SessionContext {
    let peer = "192.0.2.7:50000".parse().unwrap();
    SessionContext::new("main", peer, Principal::anonymous())
}

fn no_filters() -> Rc<SessionChain> {
    Chains::new(&"main".into(), Vec::new()).session(&anonymous())
}

/// A filter that holds what carries records and changes nothing.
#[derive(Debug)]
struct Holding(&'static [ApiKey]);

impl Filter for Holding {
    fn name(&self) -> &'static str {
        "holding"
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        self.0.contains(&api)
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Self(self.0))
    }
}

impl SessionFilter for Holding {}

fn holding(apis: &'static [ApiKey]) -> Rc<SessionChain> {
    let filters: Vec<Arc<dyn Filter>> = vec![Arc::new(Holding(apis)), Arc::new(Holding(apis))];
    Chains::new(&"main".into(), filters).session(&anonymous())
}

fn request_scanner(filters: Rc<SessionChain>) -> RequestScanner {
    RequestScanner::new(filters, Arc::default(), memory(), FRAME_BYTES_MAX_DEFAULT, None)
}

fn latencies() -> SessionLatencies {
    SessionLatencies::new(Arc::default(), anonymous())
}

fn response_scanner(rewriter: Rewriter) -> ResponseScanner {
    ResponseScanner::new(no_filters(), rewriter, latencies(), memory(), 0)
}

/// An answer and what it belongs to.
#[derive(Clone, Debug)]
struct Answer {
    expected: Expected,
    bytes: Vec<u8>,
}

fn answer<R: Response>(api_version: i16, response: &R) -> Answer {
    let expected =
        Expected { correlation_id: 5, api_key: R::KEY.key(), api_version, readers: Readers::ALL };
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, R::KEY, api_version, 5, response).unwrap();
    Answer { expected, bytes: bytes.to_vec() }
}

fn opaque(api_key: i16, body: &[u8]) -> Answer {
    let mut bytes = i32::try_from(body.len() + 4).unwrap().to_be_bytes().to_vec();
    bytes.extend([0, 0, 0, 5]);
    bytes.extend(body);
    let (correlation_id, api_version, readers) = (5, 0, Readers::ALL);
    Answer { expected: Expected { correlation_id, api_key, api_version, readers }, bytes }
}

fn produce(partitions: usize, hinted: bool) -> Answer {
    let partition = PartitionProduceResponse { error_code: 6, ..Default::default() };
    let topic = TopicProduceResponse {
        partition_responses: vec![partition; partitions],
        ..Default::default()
    };
    let node = produce_response::NodeEndpoint {
        node_id: 2,
        host: "b".to_owned(),
        port: 9,
        ..Default::default()
    };
    let node_endpoints = vec![node; usize::from(hinted)];
    answer(12, &ProduceResponse { responses: vec![topic], node_endpoints, ..Default::default() })
}

fn fetch(partitions: usize, record_bytes: usize, hinted: bool) -> Answer {
    let partition = PartitionData {
        records: Some(Bytes::from(vec![0xab; record_bytes])),
        ..Default::default()
    };
    let topic =
        FetchableTopicResponse { partitions: vec![partition; partitions], ..Default::default() };
    let node = NodeEndpoint { node_id: 2, host: "b".to_owned(), port: 9, ..Default::default() };
    let node_endpoints = vec![node; usize::from(hinted)];
    answer(17, &FetchResponse { responses: vec![topic], node_endpoints, ..Default::default() })
}

fn metadata(topics: usize) -> Answer {
    let broker = MetadataResponseBroker {
        node_id: 1,
        host: "b.example".to_owned(),
        port: 9092,
        ..Default::default()
    };
    let topic = MetadataResponseTopic { name: Some("orders".to_owned()), ..Default::default() };
    let response = MetadataResponse {
        brokers: vec![broker],
        topics: vec![topic; topics],
        ..Default::default()
    };
    answer(12, &response)
}

fn share_fetch(record_bytes: usize, hinted: bool) -> Answer {
    let partition = share_fetch_response::PartitionData {
        records: Bytes::from(vec![0xcd; record_bytes]),
        ..Default::default()
    };
    let topic = share_fetch_response::ShareFetchableTopicResponse {
        partitions: vec![partition],
        ..Default::default()
    };
    let node = share_fetch_response::NodeEndpoint {
        node_id: 2,
        host: "b".to_owned(),
        port: 9,
        ..Default::default()
    };
    let node_endpoints = vec![node; usize::from(hinted)];
    answer(2, &ShareFetchResponse { responses: vec![topic], node_endpoints, ..Default::default() })
}

fn any_answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        (prop::collection::vec(any::<u8>(), 0..3000), 8_i16..200)
            .prop_map(|(body, key)| opaque(key.max(93), &body)),
        (1_usize..50, any::<bool>()).prop_map(|(partitions, hinted)| produce(partitions, hinted)),
        (0_usize..4, 0_usize..30_000, any::<bool>())
            .prop_map(|(partitions, bytes, hinted)| fetch(partitions, bytes, hinted)),
        (0_usize..3000).prop_map(metadata),
        (0_usize..40_000, any::<bool>())
            .prop_map(|(record_bytes, hinted)| share_fetch(record_bytes, hinted)),
    ]
}

fn any_portions() -> impl Strategy<Value = Vec<usize>> {
    let portion = prop_oneof![Just(0), 1_usize..30, 1_usize..20_000, Just(usize::MAX)];
    // The last portion lets every direction go on.
    prop::collection::vec(portion, 0..12).prop_map(|mut portions| {
        portions.push(7);
        portions
    })
}

fn answers_relayed(
    answers: &[Answer],
    rewriter: Rewriter,
    portions: (&[usize], &[usize]),
) -> Vec<u8> {
    answers_scanned(answers, response_scanner(rewriter), portions)
}

fn answers_scanned(
    answers: &[Answer],
    mut scanner: ResponseScanner,
    portions: (&[usize], &[usize]),
) -> Vec<u8> {
    let mut in_flight = InFlight::default();
    answers.iter().for_each(|answer| in_flight.push(answer.expected));
    let bytes: Vec<u8> = answers.iter().flat_map(|answer| answer.bytes.clone()).collect();
    let relayed = relayed(&bytes, &mut scanner, &mut in_flight, portions);
    assert!(in_flight.is_empty() && scanner.is_between_frames());
    relayed
}

#[test]
fn answers_come_out_the_same_in_whatever_portions_they_come() {
    with_rewriter(|rewriter| {
        let strategy = (prop::collection::vec(any_answer(), 1..8), any_portions(), any_portions());
        let test = |(answers, read, write): (Vec<Answer>, Vec<usize>, Vec<usize>)| {
            let whole = (&[usize::MAX][..], &[usize::MAX][..]);
            let alone: Vec<u8> = answers
                .iter()
                .flat_map(|one| answers_relayed(std::slice::from_ref(one), rewriter(), whole))
                .collect();
            let portioned = answers_relayed(&answers, rewriter(), (&read, &write));
            prop_assert!(portioned == alone);
            TestCaseResult::Ok(())
        };
        TestRunner::new(ProptestConfig::with_cases(64)).run(&strategy, test).unwrap();
    });
}

/// A consumer lost its connection by a batch that its producer was allowed to send.
#[test]
fn answers_for_filters_may_be_as_large_as_requests() {
    with_rewriter(|rewriter| {
        let begins = |length: usize, frame_bytes_max| {
            let filters = holding(&[ApiKey::Fetch]);
            let mut scanner =
                ResponseScanner::new(filters, rewriter(), latencies(), memory(), frame_bytes_max);
            let mut in_flight = InFlight::default();
            in_flight.push(fetch(1, 1, false).expected);
            let mut head = i32::try_from(length).unwrap().to_be_bytes().to_vec();
            head.extend(5_i32.to_be_bytes());
            scanner.scan(&mut head, &mut Vec::new(), &mut in_flight).is_ok()
        };
        let default = FRAME_BYTES_MAX_DEFAULT;
        assert!(begins(default - 4, 1) && !begins(default, 1));
        assert!(begins(2 * default - 4, 2 * default) && !begins(2 * default, 2 * default));
    });
}

#[test]
fn answers_that_filters_hold_come_out_the_same_in_whatever_portions_they_come() {
    with_rewriter(|rewriter| {
        let strategy = (prop::collection::vec(any_answer(), 1..8), any_portions(), any_portions());
        let test = |(answers, read, write): (Vec<Answer>, Vec<usize>, Vec<usize>)| {
            let whole = (&[usize::MAX][..], &[usize::MAX][..]);
            let apis = &[ApiKey::Produce, ApiKey::Fetch, ApiKey::ShareFetch, ApiKey::Metadata];
            let scanner =
                || ResponseScanner::new(holding(apis), rewriter(), latencies(), memory(), 0);
            let alone: Vec<u8> = answers
                .iter()
                .flat_map(|one| answers_scanned(std::slice::from_ref(one), scanner(), whole))
                .collect();
            let portioned = answers_scanned(&answers, scanner(), (&read, &write));
            prop_assert!(portioned == alone);
            TestCaseResult::Ok(())
        };
        TestRunner::new(ProptestConfig::with_cases(64)).run(&strategy, test).unwrap();
    });
}

#[test]
fn requests_that_filters_hold_come_out_as_they_came_in_whatever_portions() {
    with_rewriter(|_| {
        let requests = prop::collection::vec(any_request(), 1..10);
        let strategy = (requests, any_portions(), any_portions());
        let test = |(requests, read, write): (Vec<Asked>, Vec<usize>, Vec<usize>)| {
            let bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
            // Other APIs than produce come in versions that are not known.
            let filters = holding(&[ApiKey::Produce]);
            let mut scanner = request_scanner(filters);
            let mut in_flight = InFlight::default();
            let relayed = relayed(&bytes, &mut scanner, &mut in_flight, (&read, &write));
            prop_assert!(relayed == bytes);
            let answered = requests.iter().filter(|(_, answered)| *answered).count();
            let in_order = std::iter::from_fn(|| in_flight.pop()).count();
            prop_assert_eq!(in_order, answered);
            TestCaseResult::Ok(())
        };
        TestRunner::new(ProptestConfig::with_cases(64)).run(&strategy, test).unwrap();
    });
}

#[test]
fn what_one_read_brings_is_written_at_once_though_filters_held_it() {
    with_rewriter(|_| {
        let request = |version: i16| {
            let mut bytes = BytesMut::new();
            let request = ProduceRequest { acks: -1, ..Default::default() };
            frame::encode_request(&mut bytes, version, 5, Some("client"), &request).unwrap();
            bytes.to_vec()
        };
        let mut unclaimed = request(9);
        unclaimed[5] = 1;
        let bytes = [request(9), request(9), unclaimed.clone(), unclaimed, request(9)].concat();
        let mut scanner = request_scanner(holding(&[ApiKey::Produce]));
        let (mut flow, mut in_flight) = (flow(), InFlight::default());
        let mut cx = Context::from_waker(Waker::noop());
        let mut from = Socket::new(bytes.clone(), &[usize::MAX]);
        let mut to = Socket::new(Vec::new(), &[usize::MAX]);
        let still = flow.poll(&mut cx, &mut from, &mut to, &mut scanner, &mut in_flight).unwrap();
        assert_eq!(still, Still::Ended { truncated: false });
        assert!(to.bytes == bytes);
        assert_eq!(to.calls, 1);
    });
}

#[test]
fn inserts_that_are_not_taken_stop_the_scan() {
    with_rewriter(|_| {
        let mut bytes = BytesMut::new();
        let data = PartitionProduceData {
            records: Some(Bytes::from(vec![7; INSERT_BYTES_MAX / 8])),
            ..Default::default()
        };
        let topic = TopicProduceData { partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() };
        for _ in 0..40 {
            frame::encode_request(&mut bytes, 9, 5, Some("client"), &request).unwrap();
        }
        let mut scanner = request_scanner(holding(&[ApiKey::Produce]));
        let (mut flow, mut in_flight) = (flow(), InFlight::default());
        let mut cx = Context::from_waker(Waker::noop());
        let mut from = Socket::new(bytes.to_vec(), &[usize::MAX]);
        let mut to = Socket::new(Vec::new(), &[0]);
        for _ in 0..5 {
            let still =
                flow.poll(&mut cx, &mut from, &mut to, &mut scanner, &mut in_flight).unwrap();
            assert_eq!(still, Still::Blocked);
        }
        assert!(from.at <= BUFFER_BYTES, "{}", from.at);
        to.portions = vec![usize::MAX];
        let still = flow.poll(&mut cx, &mut from, &mut to, &mut scanner, &mut in_flight).unwrap();
        assert_eq!(still, Still::Ended { truncated: false });
        assert!(to.bytes == bytes);
    });
}

#[test]
fn answers_without_addresses_are_not_changed() {
    with_rewriter(|rewriter| {
        let answers = [opaque(12, b"body"), produce(3, false), fetch(2, 50, false)];
        let large = [fetch(2, 500_000, false), opaque(-7, &[1; 700_000])];
        let answers = [&answers[..], &large[..]].concat();
        let bytes: Vec<u8> = answers.iter().flat_map(|answer| answer.bytes.clone()).collect();
        assert!(answers_relayed(&answers, rewriter(), (&[100_000], &[70_000])) == bytes);
    });
}

#[test]
fn relaying_allocates_nothing_once_it_runs() {
    with_rewriter(|rewriter| {
        let answers = [opaque(12, b"body"), produce(3, false), fetch(2, 50, false)];
        let answers = vec![[&answers[..], &[fetch(9, 100_000, false)]].concat(); 50].concat();
        let mut scanner = response_scanner(rewriter());
        let mut in_flight = InFlight::default();
        let bytes: Vec<u8> = answers.iter().flat_map(|answer| answer.bytes.clone()).collect();
        let mut flow = flow();
        let mut cx = Context::from_waker(Waker::noop());
        let mut pass = |to: &mut Socket| {
            answers.iter().for_each(|answer| in_flight.push(answer.expected));
            let mut from = Socket::new(bytes.clone(), &[200_000]);
            flow.ended = false;
            let poll = || flow.poll(&mut cx, &mut from, to, &mut scanner, &mut in_flight).is_ok();
            let mut poll = poll;
            allocation_counter::measure(|| assert!(poll())).count_total
        };
        let mut to = Socket::new(Vec::with_capacity(2 * bytes.len()), &[usize::MAX]);
        let _first_takes_a_buffer = pass(&mut to);
        assert_eq!(pass(&mut to), 0);
        assert_eq!(to.bytes.len(), 2 * bytes.len());
    });
}

/// A request, and whether it will be answered.
type Asked = (Vec<u8>, bool);

fn any_request() -> impl Strategy<Value = Asked> {
    let produce = (3_i16..14, -1_i16..2, ".{0,300}", 0_usize..50_000);
    prop_oneof![
        produce.prop_map(|(version, acks, transaction, record_bytes)| {
            let data = PartitionProduceData {
                records: Some(Bytes::from(vec![7; record_bytes])),
                ..Default::default()
            };
            let topic = TopicProduceData { partition_data: vec![data], ..Default::default() };
            let transactional_id = Some(transaction).filter(|id| !id.is_empty());
            let request = ProduceRequest {
                transactional_id,
                acks,
                topic_data: vec![topic],
                ..Default::default()
            };
            let mut bytes = BytesMut::new();
            frame::encode_request(&mut bytes, version, 5, Some("client"), &request).unwrap();
            (bytes.to_vec(), acks != 0)
        }),
        (prop::collection::vec(any::<u8>(), 0..2000), 1_i16..400).prop_map(|(body, key)| {
            let mut bytes = i32::try_from(8 + body.len()).unwrap().to_be_bytes().to_vec();
            bytes.extend(key.to_be_bytes());
            bytes.extend([0, 1, 0, 0, 0, 5]);
            bytes.extend(body);
            (bytes, true)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_come_out_as_they_came_in_whatever_portions(
        requests in prop::collection::vec(any_request(), 1..10),
        read in any_portions(),
        write in any_portions(),
    ) {
        let bytes: Vec<u8> = requests.iter().flat_map(|(bytes, _)| bytes.clone()).collect();
        let mut scanner = request_scanner(no_filters());
        let mut in_flight = InFlight::default();
        let relayed = relayed(&bytes, &mut scanner, &mut in_flight, (&read, &write));
        prop_assert!(relayed == bytes);
        for (request, _) in requests.iter().filter(|(_, answered)| *answered) {
            let next = in_flight.next().unwrap();
            prop_assert!(request[4..6] == next.api_key.to_be_bytes());
            prop_assert!(request[6..8] == next.api_version.to_be_bytes());
            prop_assert_eq!(next.correlation_id, 5);
            in_flight.pop();
        }
        prop_assert!(in_flight.is_empty());
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        portions in any_portions(),
        key in 0_i16..90,
        version in 0_i16..20,
    ) {
        let mut cx = Context::from_waker(Waker::noop());
        let mut requests = request_scanner(no_filters());
        let mut framed = i32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
        framed.extend(key.to_be_bytes());
        framed.extend(version.to_be_bytes());
        framed.extend(&bytes);
        for bytes in [bytes, framed] {
            let mut from = Socket::new(bytes, &portions);
            let mut to = Socket::new(Vec::new(), &[usize::MAX]);
            let (mut flow, mut in_flight) = (flow(), InFlight::default());
            let scanner = &mut requests;
            while matches!(
                flow.poll(&mut cx, &mut from, &mut to, scanner, &mut in_flight),
                Ok(Still::Idle | Still::Blocked)
            ) {}
        }
    }
}

#[test]
fn random_answers_never_panic() {
    with_rewriter(|rewriter| {
        let answer = (0_i16..93, 0_i16..20, prop::collection::vec(any::<u8>(), 0..2000));
        let test = |(api_key, api_version, body): (i16, i16, Vec<u8>)| {
            let mut scanner = response_scanner(rewriter());
            let mut in_flight = InFlight::default();
            let (correlation_id, readers) = (5, Readers::ALL);
            in_flight.push(Expected { correlation_id, api_key, api_version, readers });
            let mut from = Socket::new(opaque(api_key, &body).bytes, &[300]);
            let mut to = Socket::new(Vec::new(), &[usize::MAX]);
            let mut cx = Context::from_waker(Waker::noop());
            let mut flow = flow();
            // A broken answer is an error; an opaque one passes.
            let _end = flow.poll(&mut cx, &mut from, &mut to, &mut scanner, &mut in_flight);
            TestCaseResult::Ok(())
        };
        TestRunner::new(ProptestConfig::with_cases(2000)).run(&answer, test).unwrap();
    });
}
