//! ShareGroupHeartbeat of one member, after `GroupMetadataManager` of Kafka 4.4. Differs in one
//! point: Kafka assigns a partition once the share coordinator has stored a state for it, with a
//! later heartbeat; here one broker does both, so the first heartbeat gets partitions.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::{ErrorCode, Uuid};

use super::{JOIN_EPOCH, LEAVE_EPOCH, ShareGroup};
use crate::assignor::{Assignment, MemberTopics};
use crate::config::Config;
use crate::consumer_member::Partitions;
use crate::reply::{Refused, ShareHeartbeatReply};
use crate::request::ShareHeartbeat;
use crate::share_assignor;
use crate::share_record::{ShareChange, ShareMember};
use crate::step::Step;
use crate::topics::{Topics, hash_of};

impl ShareGroup {
    pub(crate) fn heartbeat(
        &mut self,
        step: &mut Step<'_>,
        request: &ShareHeartbeat,
        topics: &dyn Topics,
    ) -> Result<ShareHeartbeatReply, Refused> {
        let id = request.member_id.as_str();
        let before = self.admitted(step.config, request)?;
        let mut after = updated(&before, request);
        let is_known = self.members.insert(id.to_owned(), after.clone()).is_some();
        let head = self.head();
        self.follow_topics(topics, before.topics != after.topics);
        let targets = self.follow_epoch(step, topics);
        let is_bumped = self.epoch != head.epoch;
        if is_bumped || after.epoch != self.target_epoch {
            self.take_over_target(&mut after, topics);
        }
        if !is_known || after != before || self.head() != head || !targets.is_empty() {
            self.members.insert(id.to_owned(), after.clone());
            let change = ShareChange { members: vec![after.clone()], targets, ..self.head() };
            self.write(step, change);
        }
        self.extend_session(step, id);
        let is_full = request.topics.is_some();
        let is_assigned =
            request.member_epoch == JOIN_EPOCH || is_full || before.assigned != after.assigned;
        Ok(ShareHeartbeatReply {
            error: ErrorCode::None,
            message: None,
            member_id: after.member_id,
            member_epoch: after.epoch,
            heartbeat_interval_ms: step.share_settings(&self.id).heartbeat_interval_ms,
            assignment: is_assigned.then_some(after.assigned),
        })
    }

    /// A heartbeat whose epoch says that the member goes.
    pub(crate) fn leave(
        &mut self,
        step: &mut Step<'_>,
        request: &ShareHeartbeat,
    ) -> Result<ShareHeartbeatReply, Refused> {
        let id = request.member_id.clone();
        if !self.members.contains_key(&id) {
            return Err(self.unknown(&id));
        }
        self.put_out(step, vec![id.clone()]);
        Ok(ShareHeartbeatReply {
            error: ErrorCode::None,
            message: None,
            member_id: id,
            member_epoch: LEAVE_EPOCH,
            heartbeat_interval_ms: 0,
            assignment: None,
        })
    }

    /// The member of the request as it was, or as it begins.
    fn admitted(&self, config: &Config, request: &ShareHeartbeat) -> Result<ShareMember, Refused> {
        let (id, epoch) = (request.member_id.as_str(), request.member_epoch);
        let size_max = config.share.group_size_max;
        let Some(member) = self.members.get(id) else {
            return if self.members.len() >= size_max {
                let message = format!("the share group has {size_max} members, and has no more");
                Err((ErrorCode::GroupMaxSizeReached, message))
            } else if epoch == JOIN_EPOCH {
                Ok(ShareMember::new(id))
            } else {
                Err(self.unknown(id))
            };
        };
        // A member that missed the answer to its last heartbeat has the epoch before.
        if [JOIN_EPOCH, member.epoch, member.previous_epoch].contains(&epoch) {
            return Ok(member.clone());
        }
        let message =
            format!("the member is in epoch {}, not in {epoch}; it has to rejoin", member.epoch);
        Err((ErrorCode::FencedMemberEpoch, message))
    }

    fn unknown(&self, id: &str) -> Refused {
        let message = format!("member {id} is not a member of group {}", self.id);
        (ErrorCode::UnknownMemberId, message)
    }

    /// Bumps the epoch if asked to, or if subscribed topics are other than it knew them.
    fn follow_topics(&mut self, topics: &dyn Topics, bump: bool) {
        let is_unknown = self.metadata_hash == 0;
        if !bump && !is_unknown && self.seen_version == Some(topics.version()) {
            return;
        }
        let names = self.members.values().flat_map(|member| &member.topics);
        let hash = hash_of(names.map(String::as_str), topics);
        // An epoch whose target is not computed yet takes the topics as they are then.
        if bump || (!is_unknown && hash != self.metadata_hash) {
            self.epoch = self.epoch.saturating_add(1);
        }
        self.metadata_hash = hash;
        self.seen_version = Some(topics.version());
    }

    /// Computes the target of the epoch, if there is none and it is time to. Returns the targets
    /// that changed.
    fn follow_epoch(&mut self, step: &Step<'_>, topics: &dyn Topics) -> Vec<(String, Partitions)> {
        let interval_ms = i64::from(step.share_settings(&self.id).assignment_interval_ms);
        let is_early = self.target_timestamp_ms != 0
            && step.now_ms < self.target_timestamp_ms.saturating_add(interval_ms);
        if self.target_epoch >= self.epoch || is_early {
            return Vec::new();
        }
        let members = self.members.values().map(|member| MemberTopics {
            id: &member.member_id,
            instance_id: None,
            topics: topic_ids(member, topics),
            current: self.target.get(&member.member_id),
        });
        let names: BTreeSet<&String> =
            self.members.values().flat_map(|member| &member.topics).collect();
        let shapes = names.into_iter().filter_map(|name| topics.by_name(name));
        let sizes: BTreeMap<Uuid, i32> = shapes.map(|it| (it.id, it.partitions)).collect();
        let assigned = share_assignor::assign(&Assignment { members: members.collect(), sizes });
        let changed = assigned.iter().filter(|(id, target)| self.target.get(*id) != Some(*target));
        let changed = changed.map(|(id, target)| (id.clone(), target.clone())).collect();
        self.target = assigned;
        self.target_epoch = self.epoch;
        self.target_timestamp_ms = step.now_ms;
        changed
    }

    /// Gives the member its part of the target, as far as it still subscribes to it.
    fn take_over_target(&self, member: &mut ShareMember, topics: &dyn Topics) {
        let subscribed = topic_ids(member, topics);
        let target = self.target.get(&member.member_id).into_iter().flatten();
        let target = target.filter(|(topic, _)| subscribed.contains(*topic));
        member.assigned = target.map(|(topic, held)| (*topic, held.clone())).collect();
        if member.epoch != self.target_epoch {
            member.previous_epoch = member.epoch;
            member.epoch = self.target_epoch;
        }
    }
}

/// The member with what the request says of it; what is absent stays.
fn updated(member: &ShareMember, request: &ShareHeartbeat) -> ShareMember {
    let mut member = member.clone();
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if let Some(topics) = &request.topics {
        member.topics = topics.iter().cloned().collect();
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member
}

/// Ids of the topics that a member subscribes to and that exist.
fn topic_ids(member: &ShareMember, topics: &dyn Topics) -> BTreeSet<Uuid> {
    let names = member.topics.iter();
    names.filter_map(|name| topics.by_name(name)).map(|topic| topic.id).collect()
}
