//! Requests as clients send them, with what a test does not care about filled in.

use bytes::Bytes;
use moldau_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use moldau_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use moldau_protocol::messages::fetch_response::PartitionData;
use moldau_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use moldau_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use moldau_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use moldau_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use moldau_protocol::messages::offset_fetch_response::OffsetFetchResponsePartitions;
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::messages::produce_response::PartitionProduceResponse;
use moldau_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use moldau_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FetchRequest, FetchResponse, InitProducerIdRequest,
    InitProducerIdResponse, JoinGroupRequest, JoinGroupResponse, ListOffsetsRequest,
    OffsetCommitRequest, OffsetFetchRequest, ProduceRequest, SyncGroupRequest,
};
use moldau_protocol::messages::{
    delete_topics_request::DeleteTopicState, list_offsets_response::ListOffsetsPartitionResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use super::world::{World, code};

/// Version in which produce and fetch name a topic by name.
pub(super) const PRODUCE_BY_NAME: i16 = 12;
pub(super) const FETCH_BY_NAME: i16 = 12;

impl World {
    /// Creates a topic and returns its id.
    pub(super) fn create(&self, name: &str, partitions: i32) -> Uuid {
        self.create_with(name, partitions, &[])
    }

    /// Creates a topic that overrides some configuration.
    pub(super) fn create_with(
        &self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Uuid {
        let topic = CreatableTopic { configs: pairs(configs), ..creatable(name, partitions) };
        let mut response = self.ask(&create(vec![topic]));
        let result = response.topics.pop().unwrap();
        assert_eq!(code(result.error_code), ErrorCode::None, "{:?}", result.error_message);
        result.topic_id
    }

    /// Deletes a topic.
    pub(super) fn delete(&self, name: &str) {
        let topic = DeleteTopicState { name: Some(name.to_owned()), ..DeleteTopicState::default() };
        let request = DeleteTopicsRequest { topics: vec![topic], ..DeleteTopicsRequest::default() };
        let response = self.ask(&request);
        assert_eq!(code(response.responses[0].error_code), ErrorCode::None);
    }

    /// Produces to a partition with acks=all.
    pub(super) fn produce(
        &self,
        topic: &str,
        partition: i32,
        records: Bytes,
    ) -> PartitionProduceResponse {
        let request = produce(topic, partition, records);
        let mut response = self.ask_in(PRODUCE_BY_NAME, &request);
        response.responses.pop().unwrap().partition_responses.pop().unwrap()
    }

    /// Produces to a partition and returns the base offset.
    pub(super) fn append(&self, topic: &str, partition: i32, records: Bytes) -> i64 {
        let response = self.produce(topic, partition, records);
        assert_eq!(code(response.error_code), ErrorCode::None, "{:?}", response.error_message);
        response.base_offset
    }

    /// Fetches one partition without waiting.
    pub(super) fn fetch(&self, topic: &str, partition: i32, offset: i64) -> PartitionData {
        let request = fetch(vec![fetch_topic(topic, &[(partition, offset)])]);
        let mut response = self.ask_in(FETCH_BY_NAME, &request);
        only(&mut response)
    }

    /// Asks where a timestamp is.
    pub(super) fn offset_at(
        &self,
        topic: &str,
        partition: i32,
        timestamp: i64,
    ) -> ListOffsetsPartitionResponse {
        let mut response = self.ask(&list_offsets(topic, partition, timestamp));
        response.topics.pop().unwrap().partitions.pop().unwrap()
    }

    /// Asks for a producer id.
    pub(super) fn producer_id(&self) -> InitProducerIdResponse {
        let request =
            InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        let response = self.ask(&request);
        assert_eq!(code(response.error_code), ErrorCode::None);
        response
    }

    /// Makes a member the only one of a group and its leader.
    pub(super) fn lead(&self, group: &str) -> JoinGroupResponse {
        let told = self.ask(&join(group, ""));
        assert_eq!(code(told.error_code), ErrorCode::MemberIdRequired);
        let joined = self.ask(&join(group, &told.member_id));
        assert_eq!(code(joined.error_code), ErrorCode::None);
        let own = joined.member_id.as_str();
        let synced = self.ask(&sync(group, &joined, own, &[(own, "all of it")]));
        assert_eq!(code(synced.error_code), ErrorCode::None);
        joined
    }

    /// Commits an offset from outside of any generation, as tools do.
    pub(super) fn commit(
        &self,
        group: &str,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> ErrorCode {
        let response = self.ask_in(9, &commit(group, topic, partition, offset));
        code(response.topics[0].partitions[0].error_code)
    }

    /// The committed offset of a partition.
    pub(super) fn committed(
        &self,
        group: &str,
        topic: &str,
        partition: i32,
    ) -> OffsetFetchResponsePartitions {
        let asked = OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics: Some(vec![
                moldau_protocol::messages::offset_fetch_request::OffsetFetchRequestTopics {
                    name: topic.to_owned(),
                    partition_indexes: vec![partition],
                    ..Default::default()
                },
            ]),
            ..OffsetFetchRequestGroup::default()
        };
        let request = OffsetFetchRequest { groups: vec![asked], ..OffsetFetchRequest::default() };
        let mut response = self.ask_in(9, &request);
        let mut group = response.groups.pop().unwrap();
        assert_eq!(code(group.error_code), ErrorCode::None);
        group.topics.pop().unwrap().partitions.pop().unwrap()
    }
}

/// The only partition of an answer.
pub(super) fn only(response: &mut FetchResponse) -> PartitionData {
    assert_eq!(code(response.error_code), ErrorCode::None);
    let mut topic = response.responses.pop().unwrap();
    assert!(response.responses.is_empty() && topic.partitions.len() == 1);
    topic.partitions.pop().unwrap()
}

pub(super) fn pairs(configs: &[(&str, &str)]) -> Vec<CreatableTopicConfig> {
    let configs = configs.iter().map(|(name, value)| CreatableTopicConfig {
        name: (*name).to_owned(),
        value: Some((*value).to_owned()),
        ..CreatableTopicConfig::default()
    });
    configs.collect()
}

pub(super) fn creatable(name: &str, num_partitions: i32) -> CreatableTopic {
    CreatableTopic {
        name: name.to_owned(),
        num_partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    }
}

pub(super) fn create(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest { topics, ..CreateTopicsRequest::default() }
}

pub(super) fn produce(topic: &str, partition: i32, records: Bytes) -> ProduceRequest {
    let partition = PartitionProduceData {
        index: partition,
        records: Some(records),
        ..PartitionProduceData::default()
    };
    let topic = TopicProduceData {
        name: topic.to_owned(),
        partition_data: vec![partition],
        ..TopicProduceData::default()
    };
    ProduceRequest {
        transactional_id: None,
        acks: -1,
        timeout_ms: 1_000,
        topic_data: vec![topic],
        ..ProduceRequest::default()
    }
}

/// Partitions of a topic and the offsets to fetch from, with room for everything.
pub(super) fn fetch_topic(topic: &str, partitions: &[(i32, i64)]) -> FetchTopic {
    let partitions = partitions.iter().map(|(partition, fetch_offset)| FetchPartition {
        partition: *partition,
        fetch_offset: *fetch_offset,
        partition_max_bytes: 1 << 20,
        ..FetchPartition::default()
    });
    FetchTopic {
        topic: topic.to_owned(),
        partitions: partitions.collect(),
        ..FetchTopic::default()
    }
}

/// As [`fetch_topic`], by id.
pub(super) fn fetch_topic_id(topic_id: Uuid, partitions: &[(i32, i64)]) -> FetchTopic {
    FetchTopic { topic_id, ..fetch_topic("", partitions) }
}

/// A fetch without a session that does not wait.
pub(super) fn fetch(topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 10 << 20,
        session_epoch: -1,
        topics,
        ..FetchRequest::default()
    }
}

pub(super) fn list_offsets(topic: &str, partition: i32, timestamp: i64) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition {
        partition_index: partition,
        timestamp,
        ..ListOffsetsPartition::default()
    };
    let topic = ListOffsetsTopic {
        name: topic.to_owned(),
        partitions: vec![partition],
        ..ListOffsetsTopic::default()
    };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() }
}

/// A consumer that joins; an empty member id asks for one.
pub(super) fn join(group: &str, member: &str) -> JoinGroupRequest {
    let protocol = JoinGroupRequestProtocol {
        name: "range".to_owned(),
        metadata: Bytes::from_static(b"subscription"),
        ..JoinGroupRequestProtocol::default()
    };
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 1_500_000,
        rebalance_timeout_ms: 1_500_000,
        member_id: member.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![protocol],
        ..JoinGroupRequest::default()
    }
}

/// A sync of a member in the generation that it joined, with the leader's assignments.
pub(super) fn sync(
    group: &str,
    joined: &JoinGroupResponse,
    member: &str,
    assignments: &[(&str, &str)],
) -> SyncGroupRequest {
    let assignments = assignments.iter().map(|(member, assignment)| SyncGroupRequestAssignment {
        member_id: (*member).to_owned(),
        assignment: Bytes::copy_from_slice(assignment.as_bytes()),
        ..SyncGroupRequestAssignment::default()
    });
    SyncGroupRequest {
        group_id: group.to_owned(),
        generation_id: joined.generation_id,
        member_id: member.to_owned(),
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        assignments: assignments.collect(),
        ..SyncGroupRequest::default()
    }
}

pub(super) fn commit(group: &str, topic: &str, partition: i32, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        partition_index: partition,
        committed_offset: offset,
        committed_metadata: Some("note".to_owned()),
        ..OffsetCommitRequestPartition::default()
    };
    let topic = OffsetCommitRequestTopic {
        name: topic.to_owned(),
        partitions: vec![partition],
        ..OffsetCommitRequestTopic::default()
    };
    OffsetCommitRequest {
        group_id: group.to_owned(),
        topics: vec![topic],
        ..OffsetCommitRequest::default()
    }
}
