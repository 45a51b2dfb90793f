//! What groups have committed.

use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use moldau_protocol::messages::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest, OffsetFetchResponse,
    TxnOffsetCommitRequest, TxnOffsetCommitResponse, offset_commit_request, offset_commit_response,
    txn_offset_commit_request, txn_offset_commit_response,
};

use super::{Decide, Named, Partial, join_groups, take, topic};

/// The first version of OffsetCommit and of OffsetFetch that calls topics by id (KIP-848).
const TOPIC_IDS_SINCE: i16 = 10;

/// The first version of TxnOffsetCommit that calls topics by id (KIP-1319).
const TOPIC_IDS_OF_TRANSACTIONS_SINCE: i16 = 6;

/// The first version of OffsetFetch with an error for all topics.
const ERROR_OF_ALL_SINCE: i16 = 2;

/// The first version of OffsetFetch that asks for several groups (KIP-709).
const GROUPS_SINCE: i16 = 8;

/// The offset and the epoch of what was never committed.
const NOT_COMMITTED: i64 = -1;

/// Implements [`Partial`] for a request that commits offsets, by name or by id of a topic.
macro_rules! commit {
    ($request:ident, $response:ident, $since:expr, $asked:path, $told:path, $of:path) => {
        impl Partial for $request {
            fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<$response> {
                let is_by_id = version >= $since;
                let tell = |of: $asked, error_code| {
                    let partitions = of.partitions.iter().map(|of| {
                        let mut refused = <$of>::default();
                        refused.partition_index = of.partition_index;
                        refused.error_code = error_code;
                        refused
                    });
                    let mut refused = <$told>::default();
                    refused.partitions = partitions.collect();
                    refused.name = of.name;
                    refused.topic_id = of.topic_id;
                    refused
                };
                let decide = |of: &$asked| decide(topic(&of.name, of.topic_id, is_by_id));
                let topics = take(&mut self.topics, decide, tell);
                (!topics.is_empty()).then(|| $response { topics, ..Default::default() })
            }

            fn has_left(&self, _: i16) -> bool {
                !self.topics.is_empty()
            }

            fn join(answer: &mut $response, mut refused: $response) {
                answer.topics.append(&mut refused.topics);
            }
        }
    };
}

commit!(
    OffsetCommitRequest,
    OffsetCommitResponse,
    TOPIC_IDS_SINCE,
    offset_commit_request::OffsetCommitRequestTopic,
    offset_commit_response::OffsetCommitResponseTopic,
    offset_commit_response::OffsetCommitResponsePartition
);

commit!(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TOPIC_IDS_OF_TRANSACTIONS_SINCE,
    txn_offset_commit_request::TxnOffsetCommitRequestTopic,
    txn_offset_commit_response::TxnOffsetCommitResponseTopic,
    txn_offset_commit_response::TxnOffsetCommitResponsePartition
);

/// A group that is refused is left out with all its topics; of others, single topics may be.
impl Partial for OffsetFetchRequest {
    fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<OffsetFetchResponse> {
        if version < GROUPS_SINCE {
            return take_from_one(self, version, decide);
        }
        let is_by_id = version >= TOPIC_IDS_SINCE;
        let tell = |of: OffsetFetchRequestGroup, error_code| OffsetFetchResponseGroup {
            group_id: of.group_id,
            error_code,
            ..Default::default()
        };
        let mut groups = take(&mut self.groups, |of| decide(Named::Group(&of.group_id)), tell);
        for group in &mut self.groups {
            let Some(wanted) = &mut group.topics else { continue };
            let decide =
                |of: &OffsetFetchRequestTopics| decide(topic(&of.name, of.topic_id, is_by_id));
            let topics = take(wanted, decide, refused_topic);
            if !topics.is_empty() {
                let group_id = group.group_id.clone();
                groups.push(OffsetFetchResponseGroup { group_id, topics, ..Default::default() });
            }
        }
        (!groups.is_empty()).then(|| OffsetFetchResponse { groups, ..Default::default() })
    }

    fn has_left(&self, version: i16) -> bool {
        if version < GROUPS_SINCE {
            return self.topics.as_ref().is_none_or(|topics| !topics.is_empty());
        }
        !self.groups.is_empty()
    }

    fn join(answer: &mut OffsetFetchResponse, mut refused: OffsetFetchResponse) {
        answer.topics.append(&mut refused.topics);
        join_groups(
            &mut answer.groups,
            refused.groups,
            |group| &group.group_id,
            |told, mut refused| {
                // A group that failed as a whole tells of no topic.
                if told.error_code == 0 {
                    told.topics.append(&mut refused.topics);
                }
            },
        );
    }
}

/// As it was before a request could ask for several groups.
fn take_from_one(
    request: &mut OffsetFetchRequest,
    version: i16,
    decide: &Decide<'_>,
) -> Option<OffsetFetchResponse> {
    if let Some(code) = decide(Named::Group(&request.group_id)) {
        let error_code = code.into();
        let mut named = std::mem::take(request.topics.get_or_insert_default());
        if version >= ERROR_OF_ALL_SINCE {
            named.clear();
        }
        let topics = named.into_iter().map(|of| refused_named_topic(of, error_code)).collect();
        return Some(OffsetFetchResponse { topics, error_code, ..Default::default() });
    }
    let decide = |of: &OffsetFetchRequestTopic| decide(Named::Topic(&of.name));
    let topics = take(request.topics.as_mut()?, decide, refused_named_topic);
    (!topics.is_empty()).then(|| OffsetFetchResponse { topics, ..Default::default() })
}

fn refused_topic(of: OffsetFetchRequestTopics, error_code: i16) -> OffsetFetchResponseTopics {
    let partitions = of.partition_indexes.iter().map(|index| OffsetFetchResponsePartitions {
        partition_index: *index,
        committed_offset: NOT_COMMITTED,
        metadata: Some(String::new()),
        error_code,
        ..Default::default()
    });
    OffsetFetchResponseTopics {
        partitions: partitions.collect(),
        name: of.name,
        topic_id: of.topic_id,
        ..Default::default()
    }
}

fn refused_named_topic(of: OffsetFetchRequestTopic, error_code: i16) -> OffsetFetchResponseTopic {
    let partitions = of.partition_indexes.iter().map(|index| OffsetFetchResponsePartition {
        partition_index: *index,
        committed_offset: NOT_COMMITTED,
        metadata: Some(String::new()),
        error_code,
        ..Default::default()
    });
    OffsetFetchResponseTopic {
        partitions: partitions.collect(),
        name: of.name,
        ..Default::default()
    }
}
