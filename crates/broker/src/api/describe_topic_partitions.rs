//! DescribeTopicPartitions, version 0 (KIP-966): topics and partitions in pages.
//!
//! A page ends after `response_partition_limit` partitions, at most [`PAGE_PARTITIONS_MAX`], and
//! names the partition with which the next one begins.

use moldau_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use moldau_protocol::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use moldau_protocol::{ErrorCode, Uuid};

use crate::call::{Call, Outcome};
use crate::catalog::{self, Topic};
use crate::config::NODE_ID;
use crate::partition::LEADER_EPOCH;

/// Kafka's `max.request.partition.size.limit`.
const PAGE_PARTITIONS_MAX: usize = 2_000;

pub(crate) fn handle(
    call: &Call<'_>,
    request: DescribeTopicPartitionsRequest,
) -> Outcome<DescribeTopicPartitionsResponse> {
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let mut page = Page { room: limit.clamp(1, PAGE_PARTITIONS_MAX), topics: Vec::new() };
    let (first_topic, first_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index.max(0)),
        None => ("", 0),
    };
    let start = |name: &str| if name == first_topic { first_partition } else { 0 };
    let mut names: Vec<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut next_cursor = None;
    if names.is_empty() {
        // One topic more than a page can hold is enough to fill it, since each has a partition.
        for topic in call.state.catalog.named_from(first_topic, PAGE_PARTITIONS_MAX + 1) {
            next_cursor = page.add(&topic, start(&topic.name));
            if next_cursor.is_some() {
                break;
            }
        }
    }
    for name in names.into_iter().filter(|name| *name >= first_topic) {
        match call.state.catalog.by_name(name) {
            Some(topic) => next_cursor = page.add(&topic, start(name)),
            None => page.topics.push(unknown(name)),
        }
        if next_cursor.is_some() {
            break;
        }
    }
    Outcome::Now(DescribeTopicPartitionsResponse {
        topics: page.topics,
        next_cursor,
        ..DescribeTopicPartitionsResponse::default()
    })
}

struct Page {
    room: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
}

impl Page {
    /// Adds a topic from a partition on; returns where the next page begins if this one is full.
    fn add(&mut self, topic: &Topic, first: i32) -> Option<Cursor> {
        let end = topic.partitions_end();
        if self.room == 0 {
            return Some(cursor(topic, first));
        }
        let partitions: Vec<_> = (first..end).take(self.room).map(describe).collect();
        self.room -= partitions.len();
        let next = partitions.last().map_or(end, |last| last.partition_index + 1);
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            partitions,
            ..DescribeTopicPartitionsResponseTopic::default()
        });
        (next < end).then(|| cursor(topic, next))
    }
}

fn cursor(topic: &Topic, partition_index: i32) -> Cursor {
    Cursor { topic_name: topic.name.to_string(), partition_index, ..Cursor::default() }
}

fn describe(partition_index: i32) -> DescribeTopicPartitionsResponsePartition {
    DescribeTopicPartitionsResponsePartition {
        partition_index,
        leader_id: NODE_ID,
        leader_epoch: LEADER_EPOCH,
        replica_nodes: vec![NODE_ID],
        isr_nodes: vec![NODE_ID],
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        ..DescribeTopicPartitionsResponsePartition::default()
    }
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let code = match catalog::check_name(name) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(refusal) => refusal.code,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: code.into(),
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}
