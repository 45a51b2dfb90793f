//! Requests of streams groups, before they reach their group, and what others ask about such
//! groups.

use moldau_protocol::ErrorCode;

use super::consumer::absent;
use super::{Groups, check_group_id};
use crate::any_group::AnyGroup;
use crate::config::{NAME_BYTES_MAX, SUBSCRIPTION_BYTES_MAX};
use crate::reply::{Effects, Refused, Reply, StreamsGroupDescription};
use crate::request::Token;
use crate::streams::{JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, StreamsGroup};
use crate::streams_config::SUBTOPOLOGIES_MAX;
use crate::streams_heartbeat::{StreamsHeartbeat, StreamsHeartbeatReply};
use crate::streams_topology::StreamsTopology;
use crate::topics::Topics;

impl Groups {
    /// StreamsGroupHeartbeat. The reply comes out at once.
    pub fn streams_heartbeat(
        &mut self,
        now_ms: i64,
        request: &StreamsHeartbeat,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        let reply = |result: Result<StreamsHeartbeatReply, Refused>| {
            let refused = |(error, message)| StreamsHeartbeatReply::refused(error, message);
            Reply::StreamsHeartbeat(Box::new(result.unwrap_or_else(refused)))
        };
        if let Err(why) = check(request).and_then(|()| self.prepare_streams(request)) {
            return Effects::reply(token, reply(Err(why)));
        }
        let leaves = request.member_epoch < 0;
        let id = &request.group_id;
        let stepped = self.step(now_ms, id, |group, step| {
            let result = match group {
                AnyGroup::Streams(group) if leaves => group.leave(step, request),
                AnyGroup::Streams(group) => group.heartbeat(step, request, topics),
                AnyGroup::Classic(classic) => {
                    // The group keeps its type and its offsets if the member is refused.
                    let mut streams = Box::new(StreamsGroup::new(id.clone()));
                    let result = streams.heartbeat(step, request, topics);
                    if result.is_ok() {
                        streams.offsets = std::mem::take(&mut classic.offsets);
                        *group = AnyGroup::Streams(streams);
                    }
                    result
                }
                AnyGroup::Consumer(_) | AnyGroup::Share(_) => Err(other_type(id)),
            };
            step.reply(token, reply(result));
        });
        stepped.unwrap_or_else(|| Effects::reply(token, reply(Err(not_found(id)))))
    }

    /// Makes sure that there is a streams group, or one that may become it.
    fn prepare_streams(&mut self, request: &StreamsHeartbeat) -> Result<(), Refused> {
        let id = &request.group_id;
        let joins = request.member_epoch == JOIN_EPOCH;
        match self.groups.get(id) {
            Some(AnyGroup::Streams(_)) => Ok(()),
            Some(AnyGroup::Classic(group)) if joins && group.is_deletable() => Ok(()),
            Some(_) => Err(other_type(id)),
            None if !joins => Err(not_found(id)),
            None if self.groups.len() >= self.config.groups_max => {
                let message = "there are as many groups as there may be".to_owned();
                Err((ErrorCode::PolicyViolation, message))
            }
            None => {
                let group = AnyGroup::Streams(Box::new(StreamsGroup::new(id.clone())));
                self.groups.insert(id.clone(), group);
                Ok(())
            }
        }
    }

    /// StreamsGroupDescribe for one group.
    ///
    /// # Errors
    ///
    /// Says whether there is no group, or one of another type.
    pub fn describe_streams(&self, group_id: &str) -> Result<StreamsGroupDescription, String> {
        match self.groups.get(group_id) {
            Some(AnyGroup::Streams(group)) => Ok(group.describe()),
            Some(_) => Err(other_type(group_id).1),
            None => Err(absent(group_id)),
        }
    }
}

fn not_found(group_id: &str) -> Refused {
    (ErrorCode::GroupIdNotFound, format!("Streams group {group_id} not found."))
}

fn other_type(group_id: &str) -> Refused {
    (ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a streams group."))
}

/// What can be said without looking at the group, in the order in which Kafka says it.
fn check(request: &StreamsHeartbeat) -> Result<(), Refused> {
    let is_empty = |text: &str| text.trim().is_empty();
    let is_empty_option = |text: &Option<String>| text.as_deref().is_some_and(is_empty);
    let invalid = |message: &str| Err((ErrorCode::InvalidRequest, message.to_owned()));
    if is_empty(&request.member_id) {
        return invalid("the member has no id");
    }
    if is_empty(&request.group_id) {
        return invalid("the group has no id");
    }
    if is_empty_option(&request.instance_id) {
        return invalid("the instance id is empty");
    }
    if is_empty_option(&request.rack_id) {
        return invalid("the rack id is empty");
    }
    let tasks = [&request.active, &request.standby, &request.warmup];
    if request.member_epoch == JOIN_EPOCH {
        if request.rebalance_timeout_ms == -1 {
            return invalid("a member that joins must give its rebalance timeout");
        }
        if tasks.into_iter().flatten().any(|tasks| !tasks.is_empty()) {
            return invalid("a member that joins must say that it has no tasks");
        }
        let Some(topology) = &request.topology else {
            return invalid("a member that joins must give its topology");
        };
        check_topology(topology)?;
    } else if request.member_epoch == STATIC_LEAVE_EPOCH && request.instance_id.is_none() {
        return invalid("a member without an instance id cannot leave for a while");
    } else if request.member_epoch < STATIC_LEAVE_EPOCH {
        return invalid("there is no such member epoch");
    }
    let named = tasks.into_iter().flatten().count();
    if named != 0 && named != tasks.len() {
        return invalid("a member must name all of its tasks or none");
    }
    if request.member_epoch != JOIN_EPOCH && request.topology.is_some() {
        return invalid("only a member that joins may give its topology");
    }
    match request.member_epoch == LEAVE_EPOCH {
        true => Ok(()),
        false => check_size(request),
    }
}

fn check_topology(topology: &StreamsTopology) -> Result<(), Refused> {
    let invalid = |message: String| Err((ErrorCode::StreamsInvalidTopology, message));
    for part in topology.subtopologies.values() {
        if let Some(topic) = part.changelog_topics.iter().find(|topic| topic.partitions != 0) {
            let message = format!(
                "the partitions of changelog topic {} follow from other topics, but are given",
                topic.name
            );
            return invalid(message);
        }
        if let Some(topic) = part.repartition_sources.iter().find(|topic| topic.partitions < 0) {
            return invalid(format!("topic {} cannot have so many partitions", topic.name));
        }
    }
    if topology.epoch < 0 {
        return invalid("the epoch of the topology is negative".to_owned());
    }
    if topology.subtopologies.len() > SUBTOPOLOGIES_MAX {
        return invalid(format!("a topology has at most {SUBTOPOLOGIES_MAX} subtopologies"));
    }
    Ok(())
}

/// Bounds that Kafka does not have.
fn check_size(request: &StreamsHeartbeat) -> Result<(), Refused> {
    let texts = [&request.instance_id, &request.rack_id, &request.process_id];
    let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
    let tags = request.tags.iter().flatten().map(|(tag, value)| tag.len() + value.len() + 64);
    let host = request.endpoint.as_ref().map_or(0, |endpoint| endpoint.host.len());
    let topology = request.topology.as_ref().map_or(0, StreamsTopology::bytes);
    let bytes = texts + tags.sum::<usize>() + host + topology;
    let is_long = request.member_id.len() > NAME_BYTES_MAX
        || check_group_id(&request.group_id).is_err()
        || bytes > SUBSCRIPTION_BYTES_MAX;
    if is_long {
        let message = "the names of the member and of its topology are too long".to_owned();
        return Err((ErrorCode::PolicyViolation, message));
    }
    Ok(())
}
