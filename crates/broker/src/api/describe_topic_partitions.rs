//! DescribeTopicPartitions, version 0 (KIP-966): topics and partitions in pages.
//!
//! A page ends after `response_partition_limit` partitions, at most [`PAGE_PARTITIONS_MAX`], and
//! names the partition with which the next one begins. Authorised operations always stand in it.

use std::sync::Arc;

use moldau_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use moldau_protocol::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use moldau_protocol::{ErrorCode, Message, Reader, Uuid};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, Turns};
use crate::catalog::Topic;
use crate::nodes::Members;
use crate::rights::Rights;
use crate::state::State;
use crate::topic_names;

/// Kafka's `max.request.partition.size.limit`.
const PAGE_PARTITIONS_MAX: usize = 2_000;

pub(crate) fn handle(
    call: &Call<'_>,
    request: DescribeTopicPartitionsRequest,
) -> Outcome<DescribeTopicPartitionsResponse> {
    let (state, rights) = (Arc::clone(call.state), call.rights.clone());
    let members = call.members();
    Outcome::Later(Box::pin(async move { page(&state, (&rights, &members), request).await }))
}

/// Whether the client asks for a topic that is not known here and may be at another broker.
pub(crate) fn names_unknown(call: &Call<'_>, body: &[u8]) -> bool {
    let request = DescribeTopicPartitionsRequest::decode(&mut Reader::new(body), call.version);
    request.is_ok_and(|request| {
        let mut names = request.topics.iter().map(|topic| &topic.name);
        names.any(|name| {
            call.rights.show(ResourceType::Topic, Operation::Describe, name)
                && call.state.catalog.is_unknown(name)
        })
    })
}

async fn page(
    state: &State,
    (rights, members): (&Rights, &Members),
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let room = limit.clamp(1, PAGE_PARTITIONS_MAX);
    let mut page = Page { rights, members, room, topics: Vec::new(), next_cursor: None };
    let (first_topic, first_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index.max(0)),
        None => ("", 0),
    };
    let start = |name: &str| if name == first_topic { first_partition } else { 0 };
    let mut names: Vec<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        page.fill(state, first_topic, start).await;
    }
    let names = names.into_iter().filter(|name| *name >= first_topic);
    let (names, refused): (Vec<_>, Vec<_>) =
        names.partition(|name| rights.allow(ResourceType::Topic, Operation::Describe, name));
    for name in names {
        match state.catalog.by_name(name) {
            Some(topic) => page.add(&topic, start(name)),
            None => page.add_unknown(name),
        }
        if page.next_cursor.is_some() {
            break;
        }
    }
    page.topics.extend(refused.into_iter().map(unauthorized));
    DescribeTopicPartitionsResponse {
        topics: page.topics,
        next_cursor: page.next_cursor,
        ..DescribeTopicPartitionsResponse::default()
    }
}

struct Page<'a> {
    rights: &'a Rights,
    members: &'a Members,
    room: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
    /// Where the next page begins, once this one is full.
    next_cursor: Option<Cursor>,
}

impl Page<'_> {
    /// Adds topics of which the client may know, from a name on.
    async fn fill(&mut self, state: &State, first: &str, start: impl Fn(&str) -> i32) {
        let mut turns = Turns::default();
        let mut first = first.to_owned();
        loop {
            // One topic more than a page can hold is enough to fill it, since each has a partition.
            let topics = state.catalog.named_from(&first, PAGE_PARTITIONS_MAX + 1);
            for topic in &topics {
                if self.rights.show(ResourceType::Topic, Operation::Describe, &topic.name) {
                    self.add(topic, start(&topic.name));
                }
                if self.next_cursor.is_some() {
                    return;
                }
                turns.step(1).await;
            }
            match topics.last() {
                // The least name behind the last one.
                Some(last) if topics.len() > PAGE_PARTITIONS_MAX => {
                    first = format!("{}\0", last.name)
                }
                _ => return,
            }
        }
    }

    /// Adds a topic from a partition on, or notes that there is no room left for it.
    fn add(&mut self, topic: &Topic, first: i32) {
        let end = topic.partitions_end();
        if self.room == 0 {
            self.next_cursor = Some(cursor(topic, first));
            return;
        }
        let page_end = end.min(first.saturating_add(i32::try_from(self.room).unwrap_or(i32::MAX)));
        let leaders = self.members.leaders(topic.id, first..page_end, end);
        let described = (first..page_end).zip(leaders);
        let partitions: Vec<_> = described.map(|(index, leader)| describe(index, leader)).collect();
        self.room -= partitions.len();
        let next = partitions.last().map_or(end, |last| last.partition_index + 1);
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            name: Some(topic.name.to_string()),
            topic_id: topic.id,
            partitions,
            topic_authorized_operations: self.rights.operations(ResourceType::Topic, &topic.name),
            ..DescribeTopicPartitionsResponseTopic::default()
        });
        self.next_cursor = (next < end).then(|| cursor(topic, next));
    }

    fn add_unknown(&mut self, name: &str) {
        let code = match topic_names::check_name(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(refusal) => refusal.code,
        };
        self.topics.push(DescribeTopicPartitionsResponseTopic {
            error_code: code.into(),
            name: Some(name.to_owned()),
            topic_id: Uuid::ZERO,
            topic_authorized_operations: self.rights.operations(ResourceType::Topic, name),
            ..DescribeTopicPartitionsResponseTopic::default()
        });
    }
}

fn cursor(topic: &Topic, partition_index: i32) -> Cursor {
    Cursor { topic_name: topic.name.to_string(), partition_index, ..Cursor::default() }
}

fn describe(
    partition_index: i32,
    (leader, leader_epoch): (i32, i32),
) -> DescribeTopicPartitionsResponsePartition {
    DescribeTopicPartitionsResponsePartition {
        partition_index,
        leader_id: leader,
        leader_epoch,
        replica_nodes: vec![leader],
        isr_nodes: vec![leader],
        eligible_leader_replicas: Some(Vec::new()),
        last_known_elr: Some(Vec::new()),
        ..DescribeTopicPartitionsResponsePartition::default()
    }
}

/// The client may not know whether the topic exists.
fn unauthorized(name: &str) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::TopicAuthorizationFailed.into(),
        name: Some(name.to_owned()),
        topic_id: Uuid::ZERO,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}
