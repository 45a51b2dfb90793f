//! From a share group to its records, and back.

use super::ShareGroup;
use crate::record::GroupRecord;
use crate::share_record::ShareChange;
use crate::step::Step;

impl ShareGroup {
    /// A change of nothing but the epochs.
    pub(super) fn head(&self) -> ShareChange {
        ShareChange {
            group_id: self.id.clone(),
            epoch: self.epoch,
            target_epoch: self.target_epoch,
            target_timestamp_ms: self.target_timestamp_ms,
            metadata_hash: self.metadata_hash,
            removed: Vec::new(),
            members: Vec::new(),
            targets: Vec::new(),
        }
    }

    pub(super) fn write(&mut self, step: &mut Step<'_>, change: ShareChange) {
        self.is_written = true;
        step.record(GroupRecord::ShareChanged(change));
    }

    /// Takes over a stored change.
    pub(crate) fn replay(&mut self, change: ShareChange) {
        self.is_written = true;
        self.epoch = change.epoch;
        self.target_epoch = change.target_epoch;
        self.target_timestamp_ms = change.target_timestamp_ms;
        self.metadata_hash = change.metadata_hash;
        for id in &change.removed {
            self.take_member(id);
        }
        for member in change.members {
            self.members.insert(member.member_id.clone(), member);
        }
        self.target.extend(change.targets);
    }

    /// Starts the sessions of restored members, who had no chance to send heartbeats.
    pub(crate) fn recover(&mut self, step: &mut Step<'_>) {
        for id in self.members.keys().cloned().collect::<Vec<_>>() {
            self.extend_session(step, &id);
        }
    }

    /// Records that restore what is written of this group: one for each member, so that none
    /// grows with the group.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = GroupRecord> + '_ {
        let head = self.is_written.then(|| self.head());
        let members = self.members.values().map(|member| {
            let target = self.target.get(&member.member_id).cloned();
            let targets = target.map(|target| (member.member_id.clone(), target));
            ShareChange {
                members: vec![member.clone()],
                targets: targets.into_iter().collect(),
                ..self.head()
            }
        });
        head.into_iter().chain(members).map(GroupRecord::ShareChanged)
    }
}
