//! Committing, deleting and expiring the offsets of a group.

use std::collections::BTreeSet;

use moldau_protocol::ErrorCode;

use super::{Group, Phase, Step};
use crate::commits::{commit_offsets, delete_offsets, record_deleted, refuse_commit};
use crate::reply::Reply;
use crate::request::{OffsetCommitRequest, OffsetDeleteRequest, Token};

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
        let allowed = |_topic, _partition| ErrorCode::None;
        commit_offsets(step, &self.id, &mut self.offsets, request, token, &allowed);
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
        let is_empty = matches!(self.phase, Phase::Empty);
        let names = request.topics.iter().map(|(topic, _)| topic.clone());
        let subscribed: BTreeSet<String> =
            names.filter(|topic| !is_empty && self.is_subscribed(topic)).collect();
        let is_subscribed = |topic: &str| subscribed.contains(topic);
        delete_offsets(step, &self.id, &mut self.offsets, request, token, &is_subscribed);
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
        record_deleted(step, &self.id, expired);
    }
}
