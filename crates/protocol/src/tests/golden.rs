//! Bytes that the message classes of Apache Kafka 4.3.1 wrote.

use bytes::Bytes;

use crate::message::Message;
use crate::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey};
use crate::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use crate::messages::fetch_response::{
    AbortedTransaction, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint, PartitionData,
};
use crate::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use crate::messages::produce_request::{PartitionProduceData, TopicProduceData};
use crate::messages::{
    ApiVersionsResponse, ConsumerGroupHeartbeatResponse, FetchResponse, MetadataResponse,
    ProduceRequest, RequestHeader,
};
use crate::uuid::Uuid;

const TOPIC_ID: Uuid = Uuid::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

fn bytes(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

#[track_caller]
fn check<M: Message + PartialEq + std::fmt::Debug>(message: &M, version: i16, hex: &str) {
    assert_eq!(message.to_bytes(version), Ok(bytes(hex)));
    assert_eq!(M::from_bytes(&bytes(hex), version).as_ref(), Ok(message));
}

#[test]
fn flexible_request_header_keeps_the_old_form_of_the_client_id() {
    let header = RequestHeader {
        request_api_key: 3,
        request_api_version: 12,
        correlation_id: 66,
        client_id: Some("probe".to_owned()),
        ..Default::default()
    };
    check(&header, 2, "0003 000c 00000042 0005 70726f6265 00");
}

fn metadata_response() -> MetadataResponse {
    MetadataResponse {
        throttle_time_ms: 5,
        brokers: vec![MetadataResponseBroker {
            node_id: 1,
            host: "localhost".to_owned(),
            port: 9092,
            ..Default::default()
        }],
        cluster_id: Some("river".to_owned()),
        controller_id: 1,
        topics: vec![MetadataResponseTopic {
            name: Some("orders".to_owned()),
            partitions: vec![MetadataResponsePartition {
                partition_index: 2,
                leader_id: 1,
                leader_epoch: 7,
                replica_nodes: vec![1, 2],
                isr_nodes: vec![1],
                offline_replicas: vec![2],
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[test]
fn metadata_response_is_written_as_kafka_writes_it() {
    let mut response = metadata_response();
    check(
        &response,
        8,
        "00000005 00000001 00000001 0009 6c6f63616c686f7374 00002384 ffff 0005 7269766572 00000001
         00000001 0000 0006 6f7264657273 00 00000001 0000 00000002 00000001 00000007
         00000002 00000001 00000002 00000001 00000001 00000001 00000002 80000000 80000000",
    );
    response.topics[0].topic_id = TOPIC_ID;
    check(
        &response,
        12,
        "00000005 02 00000001 0a 6c6f63616c686f7374 00002384 00 00 06 7269766572 00000001
         02 0000 07 6f7264657273 000102030405060708090a0b0c0d0e0f 00
         02 0000 00000002 00000001 00000007 03 00000001 00000002 02 00000001 02 00000002 00
         80000000 00 00",
    );
}

#[test]
fn fetch_response_with_leader_hints_is_written_as_kafka_writes_it() {
    let response = FetchResponse {
        throttle_time_ms: 9,
        session_id: 77,
        responses: vec![FetchableTopicResponse {
            topic_id: TOPIC_ID,
            partitions: vec![PartitionData {
                partition_index: 3,
                error_code: 6,
                high_watermark: 100,
                last_stable_offset: 90,
                log_start_offset: 10,
                current_leader: LeaderIdAndEpoch {
                    leader_id: 2,
                    leader_epoch: 8,
                    ..Default::default()
                },
                aborted_transactions: Some(vec![AbortedTransaction {
                    producer_id: 4,
                    first_offset: 50,
                    ..Default::default()
                }]),
                records: Some(Bytes::from_static(&[1, 2, 3])),
                ..Default::default()
            }],
            ..Default::default()
        }],
        node_endpoints: vec![NodeEndpoint {
            node_id: 2,
            host: "b".to_owned(),
            port: 9093,
            ..Default::default()
        }],
        ..Default::default()
    };
    check(
        &response,
        17,
        "00000009 0000 0000004d 02 000102030405060708090a0b0c0d0e0f 02 00000003 0006
         0000000000000064 000000000000005a 000000000000000a
         02 0000000000000004 0000000000000032 00 ffffffff 04 010203
         01 01 09 00000002 00000008 00 00 01 00 0d 02 00000002 02 62 00002385 00 00",
    );
}

#[test]
fn oldest_fetch_response_is_written_as_kafka_writes_it() {
    let response = FetchResponse {
        responses: vec![FetchableTopicResponse {
            topic: "orders".to_owned(),
            partitions: vec![PartitionData {
                partition_index: 3,
                high_watermark: 100,
                last_stable_offset: 90,
                aborted_transactions: None,
                records: Some(Bytes::from_static(&[1, 2, 3])),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    check(
        &response,
        4,
        "00000000 00000001 0006 6f7264657273 00000001 00000003 0000 0000000000000064
         000000000000005a ffffffff 00000003 010203",
    );
}

#[test]
fn produce_request_is_written_as_kafka_writes_it() {
    let request = ProduceRequest {
        transactional_id: Some("t".to_owned()),
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: "orders".to_owned(),
            partition_data: vec![PartitionProduceData {
                index: 1,
                records: Some(Bytes::from_static(&[1, 2, 3])),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    check(
        &request,
        3,
        "0001 74 ffff 00007530 00000001 0006 6f7264657273 00000001 00000001 00000003 010203",
    );
    check(&request, 9, "02 74 ffff 00007530 02 07 6f7264657273 02 00000001 04 010203 00 00 00");
}

#[test]
fn api_versions_response_is_written_as_kafka_writes_it() {
    let api = ApiVersion { api_key: 1, min_version: 4, max_version: 18, ..Default::default() };
    let response = ApiVersionsResponse { api_keys: vec![api], ..Default::default() };
    check(&response, 0, "0000 00000001 0001 0004 0012");
    let feature = FinalizedFeatureKey {
        name: "group.version".to_owned(),
        max_version_level: 1,
        min_version_level: 1,
        ..Default::default()
    };
    let response = ApiVersionsResponse {
        finalized_features_epoch: 12,
        finalized_features: vec![feature],
        ..response
    };
    check(
        &response,
        3,
        "0000 02 0001 0004 0012 00 00000000 02 01 08 000000000000000c
         02 14 02 0e 67726f75702e76657273696f6e 0001 0001 00",
    );
}

#[test]
fn nullable_structs_are_written_as_kafka_writes_them() {
    let response = ConsumerGroupHeartbeatResponse::default();
    check(&response, 0, "00000000 0000 00 00 00000000 00000000 ff 00");
    let partitions =
        TopicPartitions { topic_id: TOPIC_ID, partitions: vec![0, 1], ..Default::default() };
    let assignment = Assignment { topic_partitions: vec![partitions], ..Default::default() };
    let response = ConsumerGroupHeartbeatResponse {
        member_id: Some("m".to_owned()),
        member_epoch: 4,
        heartbeat_interval_ms: 5000,
        assignment: Some(assignment),
        ..Default::default()
    };
    check(
        &response,
        1,
        "00000000 0000 00 02 6d 00000004 00001388
         01 02 000102030405060708090a0b0c0d0e0f 03 00000000 00000001 00 00 00",
    );
}
