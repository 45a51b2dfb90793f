//! Who may commit and fetch offsets of a group of the consumer protocol, and which offsets expire.

use moldau_protocol::{ErrorCode, Uuid};

use super::ConsumerGroup;
use crate::commits::{commit_offsets, delete_offsets, record_deleted, refuse_commit};
use crate::reply::Reply;
use crate::request::{OffsetCommitRequest, OffsetDeleteRequest, Token};
use crate::step::Step;

impl ConsumerGroup {
    pub(crate) fn offset_commit(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetCommitRequest,
        token: Token,
    ) {
        let epoch = request.generation;
        let checked = match epoch < 0 && self.members.is_empty() {
            true => Ok(i32::MAX),
            false => self.check_member_epoch(&request.member_id, epoch),
        };
        let member = self.members.get(&request.member_id);
        let is_classic = member.is_some_and(|member| member.classic.is_some());
        let is_outdated = !request.knows_member_epochs && !is_classic;
        let error = match checked {
            Err(ErrorCode::StaleMemberEpoch) if is_outdated => Some(ErrorCode::UnsupportedVersion),
            Err(error) => Some(error),
            Ok(_) if is_outdated && epoch >= 0 => Some(ErrorCode::UnsupportedVersion),
            Ok(_) => None,
        };
        if let Some(error) = error {
            let refused = request.topics.iter().map(|topic| refuse_commit(topic, error));
            step.effects.replies.push((token, Reply::OffsetCommit(refused.collect())));
            return;
        }
        let allowed = |topic: Uuid, partition: i32| match member {
            Some(member) if epoch < member.epoch => {
                // The member may have been given a later epoch and not know it yet: what it got
                // before is still its own.
                let since = member.epoch_of(topic, partition);
                match since.is_some_and(|since| since <= epoch) {
                    true => ErrorCode::None,
                    false => ErrorCode::StaleMemberEpoch,
                }
            }
            _ => ErrorCode::None,
        };
        commit_offsets(step, &self.id, &mut self.offsets, request, token, &allowed);
    }

    /// The epoch of the member, if the request may be of it.
    fn check_member_epoch(&self, member_id: &str, epoch: i32) -> Result<i32, ErrorCode> {
        let member = self.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        match &member.classic {
            Some(_) if epoch != member.epoch => Err(ErrorCode::IllegalGeneration),
            None if epoch > member.epoch => Err(ErrorCode::StaleMemberEpoch),
            _ => Ok(member.epoch),
        }
    }

    /// OffsetFetch of a member says which epoch it has.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        let Some(member_id) = member_id else {
            return if epoch < 0 { Ok(()) } else { Err(ErrorCode::UnknownMemberId) };
        };
        match self.check_member_epoch(member_id, epoch)? == epoch {
            true => Ok(()),
            false => Err(ErrorCode::StaleMemberEpoch),
        }
    }

    pub(crate) fn check_transactional_commit(
        &self,
        epoch: i32,
        (member_id, instance_id): (&str, Option<&str>),
        partitions: &[(Uuid, i32)],
    ) -> Result<(), ErrorCode> {
        let is_outside = epoch < 0
            && (self.members.is_empty() || (member_id.is_empty() && instance_id.is_none()));
        if is_outside {
            return Ok(());
        }
        let member = self.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)?;
        let may_commit = |(topic, index): &(Uuid, i32)| {
            member.epoch_of(*topic, *index).is_some_and(|since| since <= epoch)
        };
        let is_earlier = epoch < member.epoch && partitions.iter().all(may_commit);
        match &member.classic {
            _ if epoch == member.epoch || is_earlier => Ok(()),
            Some(_) => Err(ErrorCode::IllegalGeneration),
            None => Err(ErrorCode::StaleMemberEpoch),
        }
    }

    /// Offsets of topics that no member subscribes to may go.
    pub(crate) fn offset_delete(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetDeleteRequest,
        token: Token,
    ) {
        let names = request.topics.iter().map(|(topic, _)| topic.clone());
        let subscribed: Vec<String> = names.filter(|topic| self.is_subscribed(topic)).collect();
        let is_subscribed = |topic: &str| subscribed.iter().any(|it| it == topic);
        delete_offsets(step, &self.id, &mut self.offsets, request, token, &is_subscribed);
    }

    /// Drops offsets whose retention has passed since they were committed, but for the topics that
    /// members read.
    pub(crate) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        let (now_ms, retention_ms) = (step.now_ms, step.config.offsets_retention_ms);
        let subscribed: std::collections::BTreeSet<String> = self
            .members
            .values()
            .flat_map(|member| self.topics_of(member))
            .map(str::to_owned)
            .collect();
        let expired = self.offsets.remove_where(|topic, committed| {
            let ends_ms = committed
                .expire_timestamp_ms
                .unwrap_or(committed.commit_timestamp_ms.saturating_add(retention_ms));
            ends_ms <= now_ms && !subscribed.contains(topic)
        });
        record_deleted(step, &self.id, expired);
    }
}
