//! A session of each filter, and messages of one partition for it. The bench includes this file as
//! well.

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_filters::*;
use moldau_net::Principal;
use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{FetchResponse, ProduceRequest, ProduceResponse};
use moldau_protocol::{ApiKey, frame};
use moldau_proxy::{
    Filter, RequestFrame, RequestOutcome, ResponseFrame, SessionContext, SessionFilter, Upstream,
};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// What is tried, by name.
pub(crate) const PRODUCE: [&str; 10] = [
    "nothing",
    "header",
    "record_validation, JSON",
    "record_validation, schema",
    "quota",
    "audit",
    "chaos",
    "authorization, 1 rule",
    "authorization, 100 rules",
    "authorization, 10000 rules",
];
pub(crate) const FETCH: [&str; 5] = ["nothing", "header", "mask", "quota", "audit"];

const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 12;
const TOPIC: &str = "orders";

/// A filter at work on one session, and its messages.
pub(crate) struct Session {
    runtime: Runtime,
    /// None for no filter.
    filter: Option<Rc<dyn SessionFilter>>,
    request: Vec<u8>,
    answer: Vec<u8>,
    fetched: Vec<u8>,
    /// The other end of the audit.
    _lines: mpsc::Receiver<Vec<u8>>,
}

impl Session {
    /// A session whose messages have one batch of `records` records of 1 KB of JSON.
    pub(crate) fn new(filter: &str, records: usize, codec: Compression) -> Self {
        let (sink, lines) = mpsc::channel(1000);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 4711));
        let context = SessionContext::new("main", address, Principal::user("alice"));
        let filter = named(filter, sink).map(|filter| filter.session(&context));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let records = Some(batch(records, codec));
        let partition = PartitionProduceData { records: records.clone(), ..Default::default() };
        let topic = TopicProduceData {
            name: TOPIC.to_owned(),
            partition_data: vec![partition],
            ..Default::default()
        };
        let request = ProduceRequest { acks: -1, topic_data: vec![topic], ..Default::default() };
        let topic = TopicProduceResponse {
            name: TOPIC.to_owned(),
            partition_responses: vec![PartitionProduceResponse::default()],
            ..Default::default()
        };
        let answer = ProduceResponse { responses: vec![topic], ..Default::default() };
        let topic = FetchableTopicResponse {
            topic: TOPIC.to_owned(),
            partitions: vec![PartitionData { records, ..Default::default() }],
            ..Default::default()
        };
        let fetched = FetchResponse { responses: vec![topic], ..Default::default() };
        let mut bytes = [BytesMut::new(), BytesMut::new(), BytesMut::new()];
        let [of_request, of_answer, of_fetched] = &mut bytes;
        let (produce, fetch) = (PRODUCE_VERSION, FETCH_VERSION);
        frame::encode_request(of_request, produce, 1, Some("any"), &request).expect("valid");
        frame::encode_response(of_answer, ApiKey::Produce, produce, 1, &answer).expect("valid");
        frame::encode_response(of_fetched, ApiKey::Fetch, fetch, 1, &fetched).expect("valid");
        let [request, answer, fetched] = bytes.map(|bytes| bytes.to_vec());
        let runtime = runtime.enable_time().build().expect("a runtime");
        Self { runtime, filter, request, answer, fetched, _lines: lines }
    }

    /// Passes a produce request and its answer.
    ///
    /// # Panics
    /// If the request does not go on.
    pub(crate) fn produce(&self) -> (RequestFrame, ResponseFrame) {
        let request = RequestFrame::parse(self.request.clone(), true).expect("it is whole");
        let answer = self.answer.clone();
        let answer = ResponseFrame::parse(answer, ApiKey::Produce, PRODUCE_VERSION);
        let answer = answer.expect("it is whole");
        let Some(filter) = &self.filter else { return (request, answer) };
        let work = Rc::clone(filter).request(request, Upstream::nowhere());
        let request = match self.runtime.block_on(work) {
            Ok(RequestOutcome::Forward(request)) => request,
            // It does not want the answer.
            Ok(RequestOutcome::ForwardOnly(request)) => return (request, answer),
            _ => panic!("a good request goes on"),
        };
        let answer = self.runtime.block_on(Rc::clone(filter).response(answer));
        (request, answer.expect("a good answer passes"))
    }

    /// Passes a fetch answer.
    ///
    /// # Panics
    /// If it does not pass.
    pub(crate) fn fetch(&self) -> ResponseFrame {
        let answer = ResponseFrame::parse(self.fetched.clone(), ApiKey::Fetch, FETCH_VERSION);
        let answer = answer.expect("it is whole");
        let Some(filter) = &self.filter else { return answer };
        let answer = self.runtime.block_on(Rc::clone(filter).response(answer));
        answer.expect("a good answer passes")
    }
}

/// Rules. One applies to the client and the topic. The others apply to other topics, other clients,
/// and prefixes of either, in turn.
fn authorization(count: usize) -> Authorization {
    let others = (1..count).map(|number| match number % 4 {
        0 => format!("allow User:alice Write topic other-{number}"),
        1 => format!("allow User:other-{number} Write topic {TOPIC}"),
        2 => format!("allow User:alice Write topic other-{number}-*"),
        _ => format!("allow User:other-{number}-* Write topic ord*"),
    });
    let rules: Vec<String> =
        others.chain([format!("allow User:alice Write topic {TOPIC}")]).collect();
    Authorization::new(Rules::parse(&rules.join("\n")).expect("valid"))
}

fn named(name: &str, sink: mpsc::Sender<Vec<u8>>) -> Option<Arc<dyn Filter>> {
    let topics = || vec!["ord*".to_owned()];
    let validation = |content| {
        let value = FieldRule { content, ..FieldRule::default() };
        let rule = ValidationRule { topics: topics(), value, ..ValidationRule::default() };
        RecordValidation::new(RecordValidationSettings { rules: vec![rule] }).expect("valid")
    };
    if let Some(rules) = name.strip_prefix("authorization, ") {
        let count = rules.split(' ').next().and_then(|count| count.parse().ok());
        return Some(Arc::new(authorization(count.expect("a number of rules"))));
    }
    Some(match name {
        "header" => {
            let add = vec![("from".to_owned(), HeaderValue::Principal)];
            let (topics, on, remove) = (topics(), HeaderWay::Both, Vec::new());
            let rules = vec![HeaderRule { topics, on, remove, add }];
            Arc::new(Header::new(HeaderSettings { rules }).expect("valid"))
        }
        "mask" => {
            let rule = MaskRule {
                topics: topics(),
                fields: vec!["$.customer.iban".to_owned()],
                masking: Masking::All,
                not_json: NotJson::Error,
                exempt_principals: Vec::new(),
            };
            Arc::new(Mask::new(MaskSettings { rules: vec![rule], hash_key: None }).expect("valid"))
        }
        "record_validation, JSON" => Arc::new(validation(Content::Json { unique_keys: false })),
        "record_validation, schema" => Arc::new(validation(Content::JsonSchema(SCHEMA.to_owned()))),
        "quota" => {
            let limit = |entity| QuotaLimit {
                entity,
                produce_bytes_per_second: Some(u64::MAX),
                fetch_bytes_per_second: Some(u64::MAX),
                requests_per_second: Some(u64::MAX),
            };
            let limits = vec![limit(QuotaEntity::Principal(None)), limit(QuotaEntity::Topic(None))];
            let burst = Duration::from_secs(1);
            Arc::new(Quota::new(&QuotaSettings { limits, burst }).expect("valid"))
        }
        "audit" => {
            let settings = AuditSettings {
                apis: AUDITED_APIS.to_vec(),
                summary_interval: Duration::from_secs(60),
                when_full: WhenFull::Drop,
            };
            Arc::new(Audit::new(settings, sink))
        }
        "chaos" => {
            let rule = ChaosRule {
                apis: vec![ApiKey::Produce],
                topics: topics(),
                principals: Vec::new(),
                probability: 0.0,
                fault: ChaosFault::Disconnect,
            };
            Arc::new(Chaos::new(ChaosSettings { seed: 1, rules: vec![rule] }).expect("valid"))
        }
        _ => return None,
    })
}

/// A batch of JSON values of 1 KB.
pub(crate) fn batch(records: usize, codec: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let items: Vec<String> =
        (0..16).map(|at| format!(r#"{{"sku":"article {at}","price":{at}.5,"count":3}}"#)).collect();
    let value = format!(
        r#"{{"id":4711,"customer":{{"name":"A. N. Other","iban":"DE89370400440532013000"}},
            "items":[{}],"note":"{}"}}"#,
        items.join(","),
        "x".repeat(200),
    );
    for _ in 0..records {
        builder.append(0, None, Some(value.as_bytes()), []).expect("a small record");
    }
    builder.finish_bytes(codec, &mut Compressor::default()).expect("a small batch")
}

const SCHEMA: &str = r#"{"type":"object","required":["id","customer"],"properties":{
    "id":{"type":"integer"},"customer":{"type":"object","required":["iban"]},
    "items":{"type":"array","items":{"type":"object","required":["sku","price"]}}}}"#;
