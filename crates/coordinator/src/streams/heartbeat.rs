//! StreamsGroupHeartbeat of a member that comes or stays, after `GroupMetadataManager` of Kafka
//! 4.4.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::ErrorCode;

use super::configured::Configured;
use super::reconcile::{Reconciliation, each, has, has_owned};
use super::{JOIN_EPOCH, NO_TOPOLOGY, OffsetSums, STATIC_LEAVE_EPOCH, StreamsGroup};
use crate::config::Config;
use crate::consumer_member::MemberState;
use crate::reply::Refused;
use crate::step::Step;
use crate::streams_assignor::{Assignment, StreamsCandidate, TasksOf, assign};
use crate::streams_heartbeat::{
    StreamsHeartbeat, StreamsHeartbeatReply, StreamsStatus, StreamsStatusCode, TaskOffset,
};
use crate::streams_record::{
    AssignmentConfigs, StreamsChange, StreamsMember, StreamsTasks, TaskIds,
};
use crate::streams_topology::StreamsTopology;
use crate::timers::Timer;
use crate::topics::{Topics, hash_of};

impl StreamsGroup {
    pub(crate) fn heartbeat(
        &mut self,
        step: &mut Step<'_>,
        request: &StreamsHeartbeat,
        topics: &dyn Topics,
    ) -> Result<StreamsHeartbeatReply, Refused> {
        let id = request.member_id.as_str();
        let before = self.admitted(step.config, request)?;
        let mut after = updated(&before, request);
        let new_topology = self.new_topology(request)?;
        let mut statuses = self.stale_topology(&after);
        let hash = self.configure(new_topology.as_ref(), topics)?;
        self.check_tasks(request)?;
        self.check_offsets(request)?;
        let replaced = self.replaced(request, id);
        let head = self.head();
        let was_empty = self.members.is_empty();
        let (is_unknown, is_initialized) = (!self.members.contains_key(id), new_topology.is_some());
        if let Some(topology) = &new_topology {
            self.topology = Some(topology.clone());
        }
        let mut targets = BTreeSet::new();
        if let Some(former) = &replaced {
            let target = self.target.get(former).cloned().unwrap_or_default();
            self.take_member(former);
            self.target.insert(id.to_owned(), target);
            targets.insert(id.to_owned());
        }
        if self.members.get(id) != Some(&after) {
            self.put_member(after.clone());
        }
        self.keep_offsets(request);
        self.follow(step, hash, is_changed(&before, &after, request));
        self.await_others(step, was_empty);
        targets.extend(self.follow_epoch(step, &mut statuses));
        self.reconcile(step, &mut after, request);
        let is_new = is_unknown || is_initialized || replaced.is_some();
        if is_new || after != before || self.head() != head || !targets.is_empty() {
            self.put_member(after.clone());
            let change = StreamsChange {
                members: vec![after.clone()],
                topology: new_topology,
                removed: replaced.clone().into_iter().collect(),
                ..self.head()
            };
            self.write(step, change, targets);
        }
        self.extend_session(step, id);
        if request.shuts_down && self.shutdown_by.is_none() {
            self.shutdown_by = Some(id.to_owned());
        }
        statuses.extend(self.problems(&after, request));
        Ok(self.answered(step, request, (&before, &after), statuses))
    }

    /// The member of the request as it was, or as it begins.
    fn admitted(
        &self,
        config: &Config,
        request: &StreamsHeartbeat,
    ) -> Result<StreamsMember, Refused> {
        let id = request.member_id.as_str();
        let joins = request.member_epoch == JOIN_EPOCH;
        let instance = request.instance_id.as_deref();
        let is_known = self.members.contains_key(id)
            || instance.is_some_and(|id| self.static_members.contains_key(id));
        let size_max = config.streams.group_size_max;
        if joins && !is_known && self.members.len() >= size_max {
            let message = format!("the streams group has {size_max} members, and has no more");
            return Err((ErrorCode::GroupMaxSizeReached, message));
        }
        let Some(instance_id) = instance else {
            return match self.members.get(id) {
                Some(member) => {
                    check_epoch(member, request)?;
                    Ok(member.clone())
                }
                None if joins => Ok(StreamsMember::new(id)),
                None => {
                    let message = format!("member {id} is not a member of group {}", self.id);
                    Err((ErrorCode::UnknownMemberId, message))
                }
            };
        };
        if !joins {
            let member = self.static_member(id, instance_id).map_err(|error| {
                (error, format!("instance {instance_id} is not the one of member {id}"))
            })?;
            check_epoch(member, request)?;
            return Ok(member.clone());
        }
        let current = self.static_members.get(instance_id).and_then(|id| self.members.get(id));
        match current {
            None => Ok(self.members.get(id).cloned().unwrap_or_else(|| StreamsMember::new(id))),
            Some(member) if member.epoch != STATIC_LEAVE_EPOCH => {
                let message = format!(
                    "instance {instance_id} is in use by member {}, which has not left",
                    member.member_id
                );
                Err((ErrorCode::UnreleasedInstanceId, message))
            }
            Some(member) => {
                let member_id = id.to_owned();
                Ok(StreamsMember { member_id, epoch: 0, previous_epoch: 0, ..member.clone() })
            }
        }
    }

    /// The id under which a static member that comes back was here before.
    fn replaced(&self, request: &StreamsHeartbeat, id: &str) -> Option<String> {
        let instance_id = request.instance_id.as_ref()?;
        self.static_members.get(instance_id).filter(|former| *former != id).cloned()
    }

    /// The topology of the request, if the group has none yet.
    fn new_topology(&self, request: &StreamsHeartbeat) -> Result<Option<StreamsTopology>, Refused> {
        match (&self.topology, &request.topology) {
            (None, Some(topology)) => Ok(Some(topology.clone())),
            (Some(own), Some(topology)) if own.epoch <= topology.epoch && own != topology => {
                let message = "the group has another topology, and a change of it is not supported";
                Err((ErrorCode::InvalidRequest, message.to_owned()))
            }
            (Some(_), _) => Ok(None),
            (None, None) => {
                let message = format!("group {} has no topology", self.id);
                Err((ErrorCode::UnknownServerError, message))
            }
        }
    }

    fn stale_topology(&self, member: &StreamsMember) -> Vec<StreamsStatus> {
        let Some(own) = self.topology.as_ref().map(|topology| topology.epoch) else {
            return Vec::new();
        };
        if member.topology_epoch >= own {
            return Vec::new();
        }
        let detail = format!(
            "the member has the topology of epoch {}, the group that of epoch {own}",
            member.topology_epoch
        );
        vec![StreamsStatus::new(StreamsStatusCode::StaleTopology, detail)]
    }

    /// Looks at the topics of the topology, if they may have changed; returns their hash.
    fn configure(
        &mut self,
        new_topology: Option<&StreamsTopology>,
        topics: &dyn Topics,
    ) -> Result<i64, Refused> {
        let is_seen = self.configured.is_some() && self.seen_version == Some(topics.version());
        if is_seen && new_topology.is_none() {
            return Ok(self.metadata_hash);
        }
        let Some(topology) = new_topology.or(self.topology.as_ref()) else { return Ok(0) };
        let hash = hash_of(topology.required_topics().into_iter(), topics);
        if new_topology.is_some() || self.configured.is_none() || hash != self.metadata_hash {
            self.configured = Some(Configured::of(topology, topics)?);
        }
        self.seen_version = Some(topics.version());
        Ok(hash)
    }

    /// The epoch of the topology, if all of its topics are there.
    fn ready_epoch(&self) -> i32 {
        let is_ready = self.configured.as_ref().is_some_and(Configured::is_ready);
        self.topology.as_ref().filter(|_| is_ready).map_or(NO_TOPOLOGY, |topology| topology.epoch)
    }

    /// Whether the member names tasks that there are.
    fn check_tasks(&self, request: &StreamsHeartbeat) -> Result<(), Refused> {
        let Some(configured) = self.configured.as_ref().filter(|it| it.is_ready()) else {
            return Ok(());
        };
        for (id, partitions) in
            [&request.active, &request.standby, &request.warmup].into_iter().flatten().flatten()
        {
            let Some(count) = configured.tasks_of(id) else {
                let message = format!("the topology has no subtopology {id}");
                return Err((ErrorCode::InvalidRequest, message));
            };
            if let Some(partition) = partitions.iter().find(|it| !(0..count).contains(*it)) {
                let message = format!("subtopology {id} has {count} tasks, but no {partition}");
                return Err((ErrorCode::InvalidRequest, message));
            }
        }
        Ok(())
    }

    fn check_offsets(&self, request: &StreamsHeartbeat) -> Result<(), Refused> {
        for offsets in [&request.task_offsets, &request.task_end_offsets].into_iter().flatten() {
            let mut seen = BTreeSet::new();
            for offset in offsets {
                if !seen.insert((&offset.subtopology, offset.partition)) {
                    let message = format!(
                        "the offset of task {}_{} is there twice",
                        offset.subtopology, offset.partition
                    );
                    return Err((ErrorCode::InvalidRequest, message));
                }
            }
        }
        Ok(())
    }

    /// Keeps the offsets of tasks that there are.
    fn keep_offsets(&mut self, request: &StreamsHeartbeat) {
        let Some(configured) = &self.configured else { return };
        let sums = |offsets: &[TaskOffset]| {
            let mut sums = OffsetSums::new();
            for offset in offsets {
                let count = configured.tasks_of(&offset.subtopology).unwrap_or(0);
                if (0..count).contains(&offset.partition) {
                    let of_part = sums.entry(offset.subtopology.clone()).or_default();
                    of_part.insert(offset.partition, offset.offset);
                }
            }
            sums
        };
        if request.task_offsets.is_none() && request.task_end_offsets.is_none() {
            return;
        }
        let own = self.task_offsets.entry(request.member_id.clone()).or_default();
        if let Some(offsets) = &request.task_offsets {
            own.current = sums(offsets);
        }
        if let Some(offsets) = &request.task_end_offsets {
            own.end = sums(offsets);
        }
    }

    /// Bumps the epoch of the group if anything changed that the target depends on.
    fn follow(&mut self, step: &Step<'_>, hash: i64, is_changed: bool) {
        let settings = step.streams_settings(&self.id);
        let assignment = AssignmentConfigs {
            standby_replicas: settings.standby_replicas,
            rack_tags: settings.rack_tags,
        };
        let validated_epoch = self.ready_epoch();
        let is_bumped = is_changed
            || hash != self.metadata_hash
            || validated_epoch != self.validated_epoch
            || assignment != self.assignment;
        if is_bumped {
            self.epoch = self.epoch.saturating_add(1);
            self.metadata_hash = hash;
            self.validated_epoch = validated_epoch;
            self.assignment = assignment;
        }
    }

    /// The first member of an empty group waits for others.
    fn await_others(&mut self, step: &Step<'_>, was_empty: bool) {
        let delay_ms = step.streams_settings(&self.id).initial_rebalance_delay_ms;
        if was_empty && delay_ms > 0 && !self.timers.is_scheduled(&Timer::Join) {
            self.timers.schedule(Timer::Join, step.after_ms(delay_ms));
        }
    }

    /// Computes the target of the epoch, if there is none and it is time to. Returns the members
    /// whose target changed; says in `statuses` that it is early.
    pub(super) fn follow_epoch(
        &mut self,
        step: &Step<'_>,
        statuses: &mut Vec<StreamsStatus>,
    ) -> BTreeSet<String> {
        let mut delayed = |detail: &str| {
            statuses.push(StreamsStatus::new(StreamsStatusCode::AssignmentDelayed, detail));
            BTreeSet::new()
        };
        if self.timers.is_scheduled(&Timer::Join) {
            return delayed("the group waits for other members before its first assignment");
        }
        if self.target_epoch >= self.epoch {
            return BTreeSet::new();
        }
        let interval_ms = i64::from(step.streams_settings(&self.id).assignment_interval_ms);
        let is_early = self.target_timestamp_ms != 0
            && step.now_ms < self.target_timestamp_ms.saturating_add(interval_ms);
        if is_early {
            return delayed("the last assignment was computed a moment ago");
        }
        let targets = self.compute_target();
        let changed = targets
            .iter()
            .filter(|(id, target)| self.target.get(*id).cloned().unwrap_or_default() != **target);
        let changed = changed.map(|(id, _)| id.clone()).collect();
        self.target = targets;
        self.target_epoch = self.epoch;
        self.target_timestamp_ms = step.now_ms;
        changed
    }

    fn compute_target(&self) -> BTreeMap<String, StreamsTasks> {
        let configured = self.configured.as_ref().filter(|configured| configured.is_ready());
        let tasks = configured.into_iter().flat_map(Configured::tasks).map(|(id, count)| {
            let parts = self.topology.as_ref().map(|topology| &topology.subtopologies);
            let part = parts.and_then(|parts| parts.get(id));
            TasksOf {
                id,
                count,
                is_stateful: part.is_some_and(|part| !part.changelog_topics.is_empty()),
            }
        });
        let members = self.members.values().map(|member| StreamsCandidate {
            id: &member.member_id,
            process: &member.process_id,
            current: &member.assigned,
            offsets: self.task_offsets.get(&member.member_id).map(|offsets| &offsets.current),
        });
        assign(&Assignment {
            members: members.collect(),
            subtopologies: tasks.collect(),
            standby_replicas: self.assignment.standby_replicas,
        })
    }

    fn reconcile(
        &mut self,
        step: &Step<'_>,
        member: &mut StreamsMember,
        request: &StreamsHeartbeat,
    ) {
        if member.is_at(self.target_epoch) {
            return;
        }
        let owned = match (&request.active, &request.standby) {
            (Some(active), Some(standby)) => {
                Some(StreamsTasks { active: active.clone(), standby: standby.clone() })
            }
            _ => None,
        };
        let none = StreamsTasks::default();
        // While the group waits for its first members, none of them has any task.
        let is_waiting = self.timers.is_scheduled(&Timer::Join);
        let target = self.target.get(&member.member_id).filter(|_| !is_waiting);
        let next = Reconciliation {
            target_epoch: self.target_epoch,
            target: target.unwrap_or(&none),
            owned: owned.as_ref(),
            holders: &self.holders,
        }
        .next(member);
        if next == *member {
            return;
        }
        let timer = Timer::Revocation(member.member_id.clone());
        if next.state == MemberState::UnrevokedPartitions {
            self.timers.schedule(timer, step.after_ms(next.rebalance_timeout_ms));
        } else {
            self.timers.cancel(&timer);
        }
        *member = next;
    }

    /// What keeps the application from its work, beside what the member itself is late with.
    fn problems(&self, member: &StreamsMember, request: &StreamsHeartbeat) -> Vec<StreamsStatus> {
        let problem = self.configured.as_ref().and_then(|configured| configured.problem.clone());
        let shutdown = self.shutdown_by.as_ref().map(|by| {
            let detail = format!("member {by} asked for the end of the application");
            StreamsStatus::new(StreamsStatusCode::ShutdownApplication, detail)
        });
        let tags = self.assignment.rack_tags.iter();
        let missing: Vec<&str> =
            tags.filter(|tag| !member.tags.contains_key(*tag)).map(String::as_str).collect();
        let missing = (request.knows_missing_tags && !missing.is_empty()).then(|| {
            let detail = format!("the client has no tag {}", missing.join(", "));
            StreamsStatus::new(StreamsStatusCode::MissingClientTags, detail)
        });
        problem.into_iter().chain(shutdown).chain(missing).collect()
    }

    fn answered(
        &mut self,
        step: &Step<'_>,
        request: &StreamsHeartbeat,
        (before, after): (&StreamsMember, &StreamsMember),
        statuses: Vec<StreamsStatus>,
    ) -> StreamsHeartbeatReply {
        let joins = request.member_epoch == JOIN_EPOCH;
        let tasks_changed = before.assigned != after.assigned;
        if before.endpoint != after.endpoint || (tasks_changed && after.endpoint.is_some()) {
            self.endpoint_epoch = self.endpoint_epoch.wrapping_add(1);
        }
        let knows_endpoints = self.endpoint_epoch == request.endpoint_epoch;
        let interval_ms = step.streams_settings(&self.id).heartbeat_interval_ms;
        let missing = self.configured.as_ref().map(|configured| configured.missing.clone());
        StreamsHeartbeatReply {
            statuses,
            assignment: (joins || tasks_changed).then(|| after.assigned.ids()),
            endpoint_epoch: self.endpoint_epoch,
            endpoints: (!knows_endpoints).then(|| self.endpoints()),
            missing_topics: missing.unwrap_or_default(),
            ..StreamsHeartbeatReply::to(&after.member_id, after.epoch, interval_ms)
        }
    }
}

/// The member with what the request says of it; what is absent stays.
fn updated(member: &StreamsMember, request: &StreamsHeartbeat) -> StreamsMember {
    let mut member = member.clone();
    if request.instance_id.is_some() {
        member.instance_id.clone_from(&request.instance_id);
    }
    if request.rack_id.is_some() {
        member.rack_id.clone_from(&request.rack_id);
    }
    if request.rebalance_timeout_ms != -1 {
        member.rebalance_timeout_ms = request.rebalance_timeout_ms.max(0);
    }
    if let Some(topology) = &request.topology {
        member.topology_epoch = topology.epoch;
    }
    if let Some(process_id) = &request.process_id {
        member.process_id.clone_from(process_id);
    }
    if request.endpoint.is_some() || request.member_epoch == JOIN_EPOCH {
        member.endpoint.clone_from(&request.endpoint);
    }
    if let Some(tags) = &request.tags {
        member.tags.clone_from(tags);
    }
    member.client_id.clone_from(&request.client_id);
    member.client_host.clone_from(&request.client_host);
    member
}

/// Whether the member says something of itself that needs another assignment. Of a static member
/// only what the assignor looks at does.
fn is_changed(before: &StreamsMember, after: &StreamsMember, request: &StreamsHeartbeat) -> bool {
    match request.instance_id {
        None => before != after,
        Some(_) => {
            before.topology_epoch != after.topology_epoch
                || before.rack_id != after.rack_id
                || before.tags != after.tags
                || before.process_id != after.process_id
        }
    }
}

/// A member that missed the answer to its last heartbeat may have the epoch before, as long as it
/// has nothing that it was not given.
fn check_epoch(member: &StreamsMember, request: &StreamsHeartbeat) -> Result<(), Refused> {
    let epoch = request.member_epoch;
    let is_given = |tasks: &Option<TaskIds>, is_assigned: &dyn Fn(&str, i32) -> bool| {
        tasks.as_ref().is_some_and(|tasks| each(tasks).all(|(id, it)| is_assigned(id, it)))
    };
    let assigned = &member.assigned;
    let has_missed_answer = epoch == member.previous_epoch
        && is_given(&request.active, &|id, it| has_owned(&assigned.active, id, it))
        && is_given(&request.standby, &|id, it| has(&assigned.standby, id, it))
        && is_given(&request.warmup, &|_, _| false);
    if epoch == JOIN_EPOCH || epoch == member.epoch || (epoch < member.epoch && has_missed_answer) {
        return Ok(());
    }
    let message = format!(
        "the member is in epoch {}, not in {epoch}; it has to give up all tasks and rejoin",
        member.epoch
    );
    Err((ErrorCode::FencedMemberEpoch, message))
}
