//! Who may commit and fetch offsets of a streams group, and which offsets expire.

use moldau_protocol::{ErrorCode, Uuid};

use super::StreamsGroup;
use crate::commits::{commit_offsets, delete_offsets, record_deleted, refuse_commit};
use crate::reply::Reply;
use crate::request::{OffsetCommitRequest, OffsetDeleteRequest, Token};
use crate::step::Step;
use crate::streams_record::StreamsMember;
use crate::streams_topology::StreamsTopology;

impl StreamsGroup {
    pub(crate) fn offset_commit(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetCommitRequest,
        token: Token,
    ) {
        let epoch = request.generation;
        let member = match epoch < 0 && self.members.is_empty() {
            true => Ok(None),
            false => self.member_of(&request.member_id).map(Some),
        };
        let error = match &member {
            Err(error) => Some(*error),
            Ok(Some(_)) if !request.knows_member_epochs => Some(ErrorCode::UnsupportedVersion),
            Ok(Some(member)) if epoch > member.epoch => Some(ErrorCode::StaleMemberEpoch),
            Ok(_) => None,
        };
        if let Some(error) = error {
            let refused = request.topics.iter().map(|topic| refuse_commit(topic, error));
            step.reply(token, Reply::OffsetCommit(refused.collect()));
            return;
        }
        let member = member.ok().flatten().cloned();
        let configured = &self.configured;
        let allowed = |topic: Uuid, partition: i32| match &member {
            Some(member) if epoch < member.epoch => {
                let part = configured.as_ref().and_then(|it| it.reader_of(topic));
                let since = part.and_then(|part| member.epoch_of(part, partition));
                match since.is_some_and(|since| since <= epoch) {
                    true => ErrorCode::None,
                    false => ErrorCode::StaleMemberEpoch,
                }
            }
            _ => ErrorCode::None,
        };
        commit_offsets(step, &self.id, &mut self.offsets, request, token, &allowed);
    }

    fn member_of(&self, member_id: &str) -> Result<&StreamsMember, ErrorCode> {
        self.members.get(member_id).ok_or(ErrorCode::UnknownMemberId)
    }

    /// OffsetFetch of a member says which epoch it has.
    pub(crate) fn check_fetch(&self, member_id: Option<&str>, epoch: i32) -> Result<(), ErrorCode> {
        let Some(member_id) = member_id else {
            return if epoch < 0 { Ok(()) } else { Err(ErrorCode::UnknownMemberId) };
        };
        match self.member_of(member_id)?.epoch == epoch {
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
        let member = self.member_of(member_id)?;
        let may_commit = |(topic, partition): &(Uuid, i32)| {
            let part = self.configured.as_ref().and_then(|it| it.reader_of(*topic));
            let since = part.and_then(|part| member.epoch_of(part, *partition));
            since.is_some_and(|since| since <= epoch)
        };
        let is_earlier = epoch < member.epoch && partitions.iter().all(may_commit);
        if epoch == member.epoch || is_earlier { Ok(()) } else { Err(ErrorCode::StaleMemberEpoch) }
    }

    /// Offsets of topics that the application does not read may go.
    pub(crate) fn offset_delete(
        &mut self,
        step: &mut Step<'_>,
        request: &OffsetDeleteRequest,
        token: Token,
    ) {
        let topology = self.topology.as_ref().filter(|_| !self.members.is_empty());
        let read = topology.map(StreamsTopology::inputs).unwrap_or_default();
        let is_read = |topic: &str| read.contains(topic);
        delete_offsets(step, &self.id, &mut self.offsets, request, token, &is_read);
    }

    /// Drops offsets whose retention has passed since they were committed, but for the topics that
    /// members read.
    pub(crate) fn expire_offsets(&mut self, step: &mut Step<'_>) {
        let (now_ms, retention_ms) = (step.now_ms, step.config.offsets_retention_ms);
        let topology = self.topology.as_ref().filter(|_| !self.members.is_empty());
        let read = topology.map(StreamsTopology::inputs).unwrap_or_default();
        let expired = self.offsets.remove_where(|topic, committed| {
            let ends_ms = committed
                .expire_timestamp_ms
                .unwrap_or(committed.commit_timestamp_ms.saturating_add(retention_ms));
            ends_ms <= now_ms && !read.contains(topic)
        });
        record_deleted(step, &self.id, expired);
    }
}
