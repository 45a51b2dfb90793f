//! Committing, deleting and expiring the offsets of a group.

use moldau_protocol::ErrorCode;

use super::{Group, Phase, Step};
use crate::config::OFFSETS_PER_GROUP_MAX;
use crate::offsets::Offsets;
use crate::record::{CommittedOffset, GroupRecord, TopicOffsets};
use crate::reply::{FetchedOffset, Reply, TopicResult};
use crate::request::{
    OffsetCommitRequest, OffsetDeleteRequest, PartitionCommit, Token, TopicCommit,
};

impl Group {
    pub(crate) fn offset_commit(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetCommitRequest,
        token: Token,
    ) {
        if let Err(error) = self.check_commit(request) {
            let refused = request.topics.iter().map(|topic| refuse_commit(topic, error));
            step.reply(token, Reply::OffsetCommit(refused.collect()));
            return;
        }
        self.extend_session(step, &request.member_id);
        let expire_timestamp_ms = request.retention_ms.map(|ms| step.now_ms.saturating_add(ms));
        let mut results = Vec::with_capacity(request.topics.len());
        // Of a partition that is named twice the last offset counts.
        let mut accepted = Offsets::default();
        let mut added = 0;
        for topic in &request.topics {
            let mut partitions = Vec::with_capacity(topic.partitions.len());
            for commit in &topic.partitions {
                let error = self.check_partition(step, added, &topic.topic, commit);
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
                let is_new = self.offsets.get(&topic.topic, commit.partition).is_none();
                added += usize::from(is_new);
                accepted.insert(&topic.topic, commit.partition, committed);
            }
            results.push(TopicResult { topic: topic.topic.clone(), partitions });
        }
        if !accepted.is_empty() {
            let topics = accepted.snapshot().collect();
            let record = GroupRecord::OffsetsCommitted { group_id: self.id.clone(), topics };
            if step.fits(&record) {
                self.offsets.extend(accepted);
                step.record(record);
            } else {
                refuse_accepted(&mut results, ErrorCode::InvalidCommitOffsetSize);
            }
        }
        step.reply(token, Reply::OffsetCommit(results));
    }

    /// A consumer outside the group management, or an administrator, may commit to an empty group.
    fn check_commit(&self, request: &OffsetCommitRequest) -> Result<(), ErrorCode> {
        let empty = matches!(self.phase, Phase::Empty);
        if request.generation < 0 && empty {
            return Ok(());
        }
        let names_member = !request.member_id.is_empty() || request.instance_id.is_some();
        if request.generation < 0 && !names_member {
            return Err(ErrorCode::UnknownMemberId);
        }
        self.check_member(&request.member_id, request.instance_id.as_deref())?;
        self.check_generation(request.generation)?;
        // The member learnt the generation from its join; it has to sync before it may commit.
        if matches!(self.phase, Phase::Completing) {
            return Err(ErrorCode::RebalanceInProgress);
        }
        Ok(())
    }

    pub(crate) fn check_transactional_commit(
        &self,
        generation: i32,
        member_id: &str,
        instance_id: Option<&str>,
    ) -> Result<(), ErrorCode> {
        let names_member = !member_id.is_empty() || instance_id.is_some();
        let is_outside = generation < 0 && (matches!(self.phase, Phase::Empty) || !names_member);
        if is_outside {
            return Ok(());
        }
        self.check_member(member_id, instance_id)?;
        self.check_generation(generation)
    }

    /// `added` of the commit's partitions before this one had no offset.
    fn check_partition(
        &self,
        step: &Step<'_>,
        added: usize,
        topic: &str,
        commit: &PartitionCommit,
    ) -> ErrorCode {
        let full = self.offsets.count() + added >= OFFSETS_PER_GROUP_MAX;
        if too_long(&commit.metadata, step.config.offset_metadata_bytes_max) {
            ErrorCode::OffsetMetadataTooLarge
        } else if full && self.offsets.get(topic, commit.partition).is_none() {
            ErrorCode::PolicyViolation
        } else {
            ErrorCode::None
        }
    }

    pub(crate) fn fetch_all_offsets(&self) -> Vec<(String, Vec<FetchedOffset>)> {
        self.offsets.fetch_all()
    }

    pub(crate) fn fetch_offset(&self, topic: &str, partition: i32) -> FetchedOffset {
        self.offsets.fetch(topic, partition)
    }

    /// An active group keeps its offsets, except that of a consumer group those of topics that
    /// no member subscribes may go.
    pub(crate) fn offset_delete(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetDeleteRequest,
        token: Token,
    ) {
        if !matches!(self.phase, Phase::Empty) && !self.is_consumer_group() {
            step.reply(token, Reply::OffsetDelete(Err(ErrorCode::NonEmptyGroup)));
            return;
        }
        let mut results = Vec::with_capacity(request.topics.len());
        let mut deleted = Vec::new();
        for (topic, partitions) in &request.topics {
            let subscribed = !matches!(self.phase, Phase::Empty) && self.is_subscribed(topic);
            let error =
                if subscribed { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
            let partitions_results = partitions.iter().map(|partition| (*partition, error));
            results.push(TopicResult {
                topic: topic.clone(),
                partitions: partitions_results.collect(),
            });
            if !subscribed {
                let gone: Vec<i32> = partitions
                    .iter()
                    .copied()
                    .filter(|partition| self.offsets.remove(topic, *partition))
                    .collect();
                if !gone.is_empty() {
                    deleted.push((topic.clone(), gone));
                }
            }
        }
        self.record_deleted(step, deleted);
        step.reply(token, Reply::OffsetDelete(Ok(results)));
    }

    pub(crate) fn topic_deleted(&mut self, topic: &str) {
        self.offsets.remove_topic(topic);
    }

    /// Whether DeleteGroups may remove the group.
    pub(crate) fn is_deletable(&self) -> bool {
        matches!(self.phase, Phase::Empty)
    }

    /// Drops the offsets whose retention has passed. It counts from the commit, or from the moment
    /// when the last member left (KIP-211).
    pub(crate) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        let (now_ms, retention_ms) = (step.now_ms, step.config.offsets_retention_ms);
        let simple = self.protocols.kind.is_none();
        let empty = matches!(self.phase, Phase::Empty);
        let unused_since_ms = (empty && !simple).then_some(self.state_timestamp_ms);
        // The members of an active group read their topics, if it is known which those are.
        let stable = matches!(self.phase, Phase::Stable) && self.is_consumer_group();
        let subscribed = self.subscribed_topics.as_ref().filter(|_| stable);
        if !simple && !empty && subscribed.is_none() {
            return;
        }
        let expired = self.offsets.remove_where(|topic, committed| {
            if subscribed.is_some_and(|topics| topics.contains(topic)) {
                return false;
            }
            let since_ms = unused_since_ms.unwrap_or(committed.commit_timestamp_ms);
            let ends_ms = committed.expire_timestamp_ms;
            ends_ms.unwrap_or(since_ms.saturating_add(retention_ms)) <= now_ms
        });
        self.record_deleted(step, expired);
    }

    fn record_deleted(&self, step: &mut Step<'_>, topics: Vec<(String, Vec<i32>)>) {
        let bytes_max = step.config.record_bytes_max;
        for record in GroupRecord::of_deleted(&self.id, topics, bytes_max) {
            step.record(record);
        }
    }

    pub(crate) fn replay_committed(&mut self, topics: Vec<TopicOffsets>) {
        for TopicOffsets { topic, partitions } in topics {
            for (partition, committed) in partitions {
                self.offsets.insert(&topic, partition, committed);
            }
        }
    }

    pub(crate) fn replay_deleted(&mut self, topics: &[(String, Vec<i32>)]) {
        for (topic, partitions) in topics {
            for partition in partitions {
                self.offsets.remove(topic, *partition);
            }
        }
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
