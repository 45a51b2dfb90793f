//! What reads and writes records.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{
    FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, ShareAcknowledgeRequest,
    ShareAcknowledgeResponse, ShareFetchRequest, ShareFetchResponse, fetch_request, fetch_response,
    produce_request, produce_response, share_acknowledge_request, share_acknowledge_response,
    share_fetch_request, share_fetch_response,
};

use super::{Decide, Named, Partial, take, topic};

/// The first version of Produce and of Fetch that calls topics by id (KIP-516).
const TOPIC_IDS_SINCE: i16 = 13;

/// The epoch of a fetch request that neither uses nor begins a session (KIP-227).
const SESSIONLESS_EPOCH: i32 = -1;

/// The offset in an answer that gives none.
const OFFSET_UNKNOWN: i64 = -1;

impl Partial for ProduceRequest {
    fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<ProduceResponse> {
        let is_by_id = version >= TOPIC_IDS_SINCE;
        let tell = |of: produce_request::TopicProduceData, error_code| {
            let partitions = of.partition_data.iter();
            let partitions = partitions.map(|of| produce_response::PartitionProduceResponse {
                index: of.index,
                error_code,
                base_offset: OFFSET_UNKNOWN,
                ..Default::default()
            });
            produce_response::TopicProduceResponse {
                partition_responses: partitions.collect(),
                name: of.name,
                topic_id: of.topic_id,
                ..Default::default()
            }
        };
        let decide =
            |of: &produce_request::TopicProduceData| decide(topic(&of.name, of.topic_id, is_by_id));
        let responses = take(&mut self.topic_data, decide, tell);
        (!responses.is_empty()).then(|| ProduceResponse { responses, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.topic_data.is_empty()
    }

    fn join(answer: &mut ProduceResponse, mut refused: ProduceResponse) {
        answer.responses.append(&mut refused.responses);
    }
}

/// A session remembers topics of former requests, which would no longer be refused. So what is
/// refused ends the session, and as long as anything is, there is none: each request names all
/// topics and is answered of all.
impl Partial for FetchRequest {
    fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<FetchResponse> {
        let is_by_id = version >= TOPIC_IDS_SINCE;
        let tell = |of: fetch_request::FetchTopic, error_code| {
            let partitions = of.partitions.iter();
            let partitions = partitions.map(|of| fetch_response::PartitionData {
                partition_index: of.partition,
                error_code,
                high_watermark: OFFSET_UNKNOWN,
                ..Default::default()
            });
            fetch_response::FetchableTopicResponse {
                partitions: partitions.collect(),
                topic: of.topic,
                topic_id: of.topic_id,
                ..Default::default()
            }
        };
        let decide =
            |of: &fetch_request::FetchTopic| decide(topic(&of.topic, of.topic_id, is_by_id));
        let responses = take(&mut self.topics, decide, tell);
        if responses.is_empty() {
            return None;
        }
        if self.session_epoch > 0 {
            self.topics.clear();
            let error_code = ErrorCode::FetchSessionIdNotFound.into();
            return Some(FetchResponse { error_code, ..Default::default() });
        }
        self.session_epoch = SESSIONLESS_EPOCH;
        Some(FetchResponse { responses, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.topics.is_empty()
    }

    fn join(answer: &mut FetchResponse, mut refused: FetchResponse) {
        answer.responses.append(&mut refused.responses);
    }
}

impl Partial for ShareFetchRequest {
    fn take_refused(&mut self, _: i16, decide: &Decide<'_>) -> Option<ShareFetchResponse> {
        let tell = |of: share_fetch_request::FetchTopic, error_code| {
            let partitions = of.partitions.iter();
            let partitions = partitions.map(|of| share_fetch_response::PartitionData {
                partition_index: of.partition_index,
                error_code,
                acknowledge_error_code: error_code,
                ..Default::default()
            });
            share_fetch_response::ShareFetchableTopicResponse {
                partitions: partitions.collect(),
                topic_id: of.topic_id,
                ..Default::default()
            }
        };
        let responses = take(&mut self.topics, |of| decide(Named::TopicId(of.topic_id)), tell);
        (!responses.is_empty()).then(|| ShareFetchResponse { responses, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.topics.is_empty()
    }

    fn join(answer: &mut ShareFetchResponse, mut refused: ShareFetchResponse) {
        answer.responses.append(&mut refused.responses);
    }
}

impl Partial for ShareAcknowledgeRequest {
    fn take_refused(&mut self, _: i16, decide: &Decide<'_>) -> Option<ShareAcknowledgeResponse> {
        let tell = |of: share_acknowledge_request::AcknowledgeTopic, error_code| {
            let partitions = of.partitions.iter();
            let partitions = partitions.map(|of| share_acknowledge_response::PartitionData {
                partition_index: of.partition_index,
                error_code,
                ..Default::default()
            });
            share_acknowledge_response::ShareAcknowledgeTopicResponse {
                partitions: partitions.collect(),
                topic_id: of.topic_id,
                ..Default::default()
            }
        };
        let responses = take(&mut self.topics, |of| decide(Named::TopicId(of.topic_id)), tell);
        let is_any = !responses.is_empty();
        is_any.then(|| ShareAcknowledgeResponse { responses, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.topics.is_empty()
    }

    fn join(answer: &mut ShareAcknowledgeResponse, mut refused: ShareAcknowledgeResponse) {
        answer.responses.append(&mut refused.responses);
    }
}
