//! Committing and deleting offsets, alike for every type of group.

use moldau_protocol::{ErrorCode, Uuid};

use crate::config::OFFSETS_PER_GROUP_MAX;
use crate::offsets::Offsets;
use crate::record::{CommittedOffset, GroupRecord};
use crate::reply::{Reply, TopicResult};
use crate::request::{
    OffsetCommitRequest, OffsetDeleteRequest, PartitionCommit, Token, TopicCommit,
};
use crate::step::Step;

/// Commits the offsets of partitions that `allowed` has nothing against.
pub(crate) fn commit_offsets(
    step: &mut Step<'_>,
    group_id: &str,
    offsets: &mut Offsets,
    request: &OffsetCommitRequest,
    token: Token,
    allowed: &dyn Fn(Uuid, i32) -> ErrorCode,
) {
    let expire_timestamp_ms = request.retention_ms.map(|ms| step.now_ms.saturating_add(ms));
    let mut results = Vec::with_capacity(request.topics.len());
    // Of a partition that is named twice the last offset counts.
    let mut accepted = Offsets::default();
    let mut added = 0;
    for topic in &request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for commit in &topic.partitions {
            let error = match allowed(topic.topic_id, commit.partition) {
                ErrorCode::None => check_partition(step, offsets, added, &topic.topic, commit),
                error => error,
            };
            partitions.push((commit.partition, error));
            if error != ErrorCode::None {
                continue;
            }
            let committed = CommittedOffset {
                offset: commit.offset,
                leader_epoch: commit.leader_epoch,
                metadata: commit.metadata.clone(),
                commit_timestamp_ms: step.now_ms,
                expire_timestamp_ms,
            };
            let is_new = offsets.get(&topic.topic, commit.partition).is_none();
            added += usize::from(is_new);
            accepted.insert(&topic.topic, commit.partition, committed);
        }
        results.push(TopicResult { topic: topic.topic.clone(), partitions });
    }
    if !accepted.is_empty() {
        let topics = accepted.snapshot().collect();
        let record = GroupRecord::OffsetsCommitted { group_id: group_id.to_owned(), topics };
        if step.fits(&record) {
            offsets.extend(accepted);
            step.record(record);
        } else {
            refuse_accepted(&mut results, ErrorCode::InvalidCommitOffsetSize);
        }
    }
    step.reply(token, Reply::OffsetCommit(results));
}

/// `added` of the commit's partitions before this one had no offset.
fn check_partition(
    step: &Step<'_>,
    offsets: &Offsets,
    added: usize,
    topic: &str,
    commit: &PartitionCommit,
) -> ErrorCode {
    let full = offsets.count() + added >= OFFSETS_PER_GROUP_MAX;
    if too_long(&commit.metadata, step.config.offset_metadata_bytes_max) {
        ErrorCode::OffsetMetadataTooLarge
    } else if full && offsets.get(topic, commit.partition).is_none() {
        ErrorCode::PolicyViolation
    } else {
        ErrorCode::None
    }
}

/// Deletes the offsets of topics that no member subscribes to.
pub(crate) fn delete_offsets(
    step: &mut Step<'_>,
    group_id: &str,
    offsets: &mut Offsets,
    request: &OffsetDeleteRequest,
    token: Token,
    is_subscribed: &dyn Fn(&str) -> bool,
) {
    let mut results = Vec::with_capacity(request.topics.len());
    let mut deleted = Vec::new();
    for (topic, partitions) in &request.topics {
        let subscribed = is_subscribed(topic);
        let error = if subscribed { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
        let partitions_results = partitions.iter().map(|partition| (*partition, error));
        results
            .push(TopicResult { topic: topic.clone(), partitions: partitions_results.collect() });
        if !subscribed {
            let gone: Vec<i32> = partitions
                .iter()
                .copied()
                .filter(|partition| offsets.remove(topic, *partition))
                .collect();
            if !gone.is_empty() {
                deleted.push((topic.clone(), gone));
            }
        }
    }
    record_deleted(step, group_id, deleted);
    step.reply(token, Reply::OffsetDelete(Ok(results)));
}

pub(crate) fn record_deleted(step: &mut Step<'_>, group_id: &str, topics: Vec<(String, Vec<i32>)>) {
    for record in GroupRecord::of_deleted(group_id, topics, step.config.record_bytes_max) {
        step.record(record);
    }
}

/// The same error for all partitions of a commit.
pub(crate) fn refuse_commit(topic: &TopicCommit, error: ErrorCode) -> TopicResult {
    let partitions = topic.partitions.iter().map(|commit| (commit.partition, error));
    TopicResult { topic: topic.topic.clone(), partitions: partitions.collect() }
}

/// What was accepted of a commit is refused after all.
fn refuse_accepted(results: &mut [TopicResult], code: ErrorCode) {
    let errors = results.iter_mut().flat_map(|topic| &mut topic.partitions);
    errors.filter(|(_, error)| *error == ErrorCode::None).for_each(|(_, error)| *error = code);
}

/// Kafka measures the length in UTF-16 units.
fn too_long(text: &str, max: usize) -> bool {
    text.len() > max && text.encode_utf16().count() > max
}
