//! From a group to its records, and back.

use moldau_protocol::ErrorCode;

use super::{CONSUMER_PROTOCOL_TYPE, Group, Phase, Step, member::Member};
use crate::consumer::ConsumerGroup;
use crate::record::{GroupMetadata, GroupRecord, MemberRecord};
use crate::reply::{JoinReply, SyncReply};
use crate::topics::Topics;

impl Group {
    /// Records the group as it stands. Called where a generation becomes stable or empty. False,
    /// and nothing is recorded, if the group is too large for a record.
    #[must_use]
    pub(super) fn write(&mut self, step: &mut Step<'_>) -> bool {
        let metadata = self.metadata();
        let record = GroupRecord::GroupMetadata(metadata.clone());
        let fits = step.fits(&record);
        if fits {
            self.written = Some(metadata);
            step.record(record);
        }
        fits
    }

    /// Records that the group is a classic one from here on.
    pub(crate) fn begin(&mut self, step: &mut Step<'_>) {
        // An empty group with the longest name fits a record.
        let _is_written = self.write(step);
    }

    /// A group with the members of one of the consumer protocol, who have to join again if it
    /// `rebalances`. `None` if it is too large for a record.
    pub(crate) fn migrated(
        step: &mut Step<'_>,
        id: &str,
        generation: i32,
        members: Vec<MemberRecord>,
        rebalances: bool,
    ) -> Option<Self> {
        let mut group = Self::new(id.to_owned(), step.now_ms);
        group.restore(GroupMetadata {
            group_id: id.to_owned(),
            generation,
            protocol_type: Some(CONSUMER_PROTOCOL_TYPE.to_owned()),
            protocol_name: None,
            leader: members.first().map(|member| member.member_id.clone()),
            state_timestamp_ms: step.now_ms,
            members,
        });
        let chosen = group.select_protocol();
        if !rebalances {
            group.protocols.chosen.clone_from(&chosen);
        }
        if !group.write(step) {
            return None;
        }
        group.protocols.chosen = chosen;
        group.update_subscribed_topics();
        for id in group.members.keys().cloned().collect::<Vec<_>>() {
            group.extend_session(step, &id);
        }
        if rebalances {
            group.prepare_rebalance(step);
        }
        Some(group)
    }

    /// The group with the same members as one of the consumer protocol, which is not written yet.
    pub(crate) fn upgraded(&self, topics: &dyn Topics) -> Option<ConsumerGroup> {
        if !self.is_consumer_group() {
            return None;
        }
        let metadata = self.metadata();
        // None without members, which may all have left before their first generation began.
        let chosen = self.protocols.chosen.clone().or_else(|| self.select_protocol());
        let chosen = chosen.unwrap_or_default();
        let (id, members) = (metadata.group_id.as_str(), metadata.members.as_slice());
        ConsumerGroup::of_classic(id, self.generation, &chosen, members, topics)
    }

    /// Has everyone who waits join again.
    pub(crate) fn dismiss(&mut self, step: &mut Step<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            let refused = JoinReply::refused(&id, ErrorCode::RebalanceInProgress);
            self.answer_join(step, &id, refused);
            self.answer_sync(step, &id, SyncReply::refused(ErrorCode::RebalanceInProgress));
        }
    }

    fn metadata(&self) -> GroupMetadata {
        let members = self.members.iter().map(|(id, member)| MemberRecord {
            member_id: id.clone(),
            instance_id: member.instance_id.clone(),
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
            protocols: member.protocols.clone(),
            assignment: member.assignment.clone(),
        });
        GroupMetadata {
            group_id: self.id.clone(),
            generation: self.generation,
            protocol_type: self.protocols.kind.clone(),
            protocol_name: self.protocols.chosen.clone(),
            leader: self.leader.clone(),
            state_timestamp_ms: self.state_timestamp_ms,
            members: members.collect(),
        }
    }

    /// Takes over stored metadata in place of what the group held; its offsets stay.
    pub(crate) fn restore(&mut self, metadata: GroupMetadata) {
        let offsets = std::mem::take(&mut self.offsets);
        *self = Self::new(std::mem::take(&mut self.id), metadata.state_timestamp_ms);
        self.offsets = offsets;
        self.generation = metadata.generation;
        self.protocols.kind.clone_from(&metadata.protocol_type);
        self.protocols.chosen.clone_from(&metadata.protocol_name);
        for record in &metadata.members {
            self.insert_member(record.member_id.clone(), Member::from_record(record));
        }
        let leads = |id: &String| self.members.contains_key(id);
        if let Some(leader) = metadata.leader.clone().filter(leads) {
            self.leader = Some(leader);
        }
        self.phase = if self.members.is_empty() { Phase::Empty } else { Phase::Stable };
        self.update_subscribed_topics();
        self.written = Some(metadata);
    }

    /// Starts the sessions of restored members, who had no chance to send heartbeats. A group that
    /// has more members than are allowed rebalances, which drops those that come too late, and so
    /// does one whose members never were assigned anything since they followed the consumer
    /// protocol: no protocol was chosen.
    pub(crate) fn recover(&mut self, step: &mut Step<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.extend_session(step, &id);
        }
        let is_unassigned = self.protocols.chosen.is_none() && !self.members.is_empty();
        if is_unassigned || self.members.len() > step.config.group_size_max {
            self.prepare_rebalance(step);
        }
    }

    /// Records that restore what is written of this group.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = GroupRecord> + '_ {
        let metadata = self.written.iter().cloned().map(GroupRecord::GroupMetadata);
        let offsets = self.offsets.snapshot().map(|topic| GroupRecord::OffsetsCommitted {
            group_id: self.id.clone(),
            topics: vec![topic],
        });
        metadata.chain(offsets)
    }
}
