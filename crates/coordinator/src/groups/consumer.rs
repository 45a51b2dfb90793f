//! Requests of the consumer protocol, before they reach their group.

use moldau_protocol::ErrorCode;

use super::{Groups, check_group_id};
use crate::any_group::AnyGroup;
use crate::assignor::Assignor;
use crate::config::{Config, NAME_BYTES_MAX, SUBSCRIPTION_BYTES_MAX};
use crate::consumer::{JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, check_pattern};
use crate::group_config::GroupOverrides;
use crate::record::GroupRecord;
use crate::reply::{ConsumerGroupDescription, ConsumerHeartbeatReply, Effects, Refused, Reply};
use crate::request::{ConsumerHeartbeat, Token};
use crate::step::Step;
use crate::topics::Topics;

impl Groups {
    /// ConsumerGroupHeartbeat. The reply comes out at once. `makes_own_id` holds for clients that
    /// make the id of their member themselves (version 1 and later, KIP-1082).
    pub fn consumer_heartbeat(
        &mut self,
        now_ms: i64,
        mut request: ConsumerHeartbeat,
        makes_own_id: bool,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        let refused = |(error, message)| {
            let reply = ConsumerHeartbeatReply::refused(error, message);
            Effects::reply(token, Reply::ConsumerHeartbeat(reply))
        };
        if let Err(why) = check(&self.config, &request, makes_own_id) {
            return refused(why);
        }
        let leaves = request.member_epoch < 0;
        if let Err(why) = self.prepare(now_ms, &request) {
            return refused(why);
        }
        if request.member_id.is_empty() {
            request.member_id = self.member_ids.uuid().to_string();
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| {
            let id = request.group_id.as_str();
            let reply = match group {
                AnyGroup::Classic(classic) if !classic.is_deletable() => {
                    join_classic(group, step, &request, topics)
                }
                _ if leaves => {
                    let reply = group.as_consumer(id).leave(step, &request);
                    group.settle(step, id, topics, true);
                    reply
                }
                _ => group.as_consumer(id).heartbeat(step, &request, topics),
            };
            let reply = reply
                .unwrap_or_else(|(error, message)| ConsumerHeartbeatReply::refused(error, message));
            step.reply(token, Reply::ConsumerHeartbeat(reply));
        });
        stepped.unwrap_or_else(|| refused(not_found(&request.group_id)))
    }

    /// Makes sure that there is a group of the consumer protocol, or one that may become it.
    fn prepare(&mut self, now_ms: i64, request: &ConsumerHeartbeat) -> Result<(), Refused> {
        let id = &request.group_id;
        let joins = request.member_epoch == JOIN_EPOCH;
        match self.groups.get(id) {
            Some(AnyGroup::Consumer(_)) => Ok(()),
            Some(AnyGroup::Classic(group)) if joins && group.is_deletable() => Ok(()),
            Some(AnyGroup::Classic(group))
                if joins
                    && self.config.consumer.migration.upgrades()
                    && group.members() <= self.config.consumer.group_size_max =>
            {
                Ok(())
            }
            Some(AnyGroup::Classic(_) | AnyGroup::Share(_) | AnyGroup::Streams(_)) => {
                let message = format!("Group {id} is not a consumer group.");
                Err((ErrorCode::GroupIdNotFound, message))
            }
            None if !joins => Err(not_found(id)),
            None => {
                let message = || "there are as many groups as there may be".to_owned();
                let is_made = self.ensure(id, now_ms);
                is_made.then_some(()).ok_or_else(|| (ErrorCode::PolicyViolation, message()))
            }
        }
    }

    /// ConsumerGroupDescribe for one group.
    ///
    /// # Errors
    ///
    /// Says whether there is no group, or one of another type.
    pub fn describe_consumer(&self, group_id: &str) -> Result<ConsumerGroupDescription, String> {
        match self.groups.get(group_id) {
            Some(AnyGroup::Consumer(group)) => Ok(group.describe(self.config.default_assignor())),
            Some(AnyGroup::Classic(_) | AnyGroup::Share(_) | AnyGroup::Streams(_)) => {
                Err(format!("Group {group_id} is not a consumer group."))
            }
            None => Err(absent(group_id)),
        }
    }

    /// Whether OffsetFetch may come from a member of this epoch. There is nothing to be had from a
    /// group that does not exist.
    ///
    /// # Errors
    ///
    /// What Kafka answers where it may not.
    pub fn check_fetch(
        &self,
        group_id: &str,
        member_id: Option<&str>,
        epoch: i32,
    ) -> Result<(), ErrorCode> {
        self.groups.get(group_id).map_or(Ok(()), |group| group.check_fetch(member_id, epoch))
    }

    /// What a group overrides of the configuration.
    pub fn overrides(&self, group_id: &str) -> GroupOverrides {
        self.overrides.get(group_id).cloned().unwrap_or_default()
    }

    /// The groups that override something.
    pub fn configured(&self) -> impl Iterator<Item = &str> {
        self.overrides.keys().map(String::as_str)
    }

    /// Replaces what a group overrides, and returns the record of it. It counts from the next
    /// heartbeat of each member on. The caller has checked the values. `None` where as many groups
    /// override something as there may be groups.
    pub fn configure(&mut self, group_id: &str, overrides: GroupOverrides) -> Option<GroupRecord> {
        let is_known = self.overrides.contains_key(group_id) || overrides.is_empty();
        if !is_known && self.overrides.len() >= self.config.groups_max {
            return None;
        }
        let configs: Vec<_> = overrides.into_iter().collect();
        self.replace_overrides(group_id.to_owned(), configs.clone());
        Some(GroupRecord::GroupConfigured { group_id: group_id.to_owned(), configs })
    }

    pub(super) fn replace_overrides(&mut self, group_id: String, configs: Vec<(String, String)>) {
        if configs.is_empty() {
            self.overrides.remove(&group_id);
        } else {
            self.overrides.insert(group_id, configs.into_iter().collect());
        }
    }
}

/// Makes a classic group with members one of the consumer protocol, if a member of that can join.
fn join_classic(
    group: &mut AnyGroup,
    step: &mut Step<'_>,
    request: &ConsumerHeartbeat,
    topics: &dyn Topics,
) -> Result<ConsumerHeartbeatReply, Refused> {
    let refused = |why| {
        let message = format!("classic group {} cannot be upgraded: {why}", request.group_id);
        (ErrorCode::GroupIdNotFound, message)
    };
    let AnyGroup::Classic(classic) = group else { return Err(not_found(&request.group_id)) };
    let unread = "its members are no consumers, or what they sent cannot be read";
    let mut upgraded = classic.upgraded(topics).ok_or_else(|| refused(unread))?;
    upgraded.begin_sessions(step);
    let reply = upgraded.heartbeat(step, request, topics)?;
    if !step.effects.records.iter().all(|record| step.fits(record)) {
        step.effects.records.clear();
        return Err(refused("it is too large for a record"));
    }
    classic.dismiss(step);
    upgraded.offsets = std::mem::take(&mut classic.offsets);
    *group = AnyGroup::Consumer(upgraded);
    Ok(reply)
}

fn not_found(group_id: &str) -> Refused {
    (ErrorCode::GroupIdNotFound, format!("Consumer group {group_id} not found."))
}

/// What Kafka says of a group that cannot be described.
pub(super) fn absent(group_id: &str) -> String {
    format!("Group {group_id} not found.")
}

/// What can be said without looking at the group, in the order in which Kafka says it.
fn check(config: &Config, request: &ConsumerHeartbeat, makes_own_id: bool) -> Result<(), Refused> {
    let epoch = request.member_epoch;
    let is_empty = |text: &str| text.trim().is_empty();
    let is_empty_option = |text: &Option<String>| text.as_deref().is_some_and(is_empty);
    let must_have_id = makes_own_id || epoch > 0 || epoch == LEAVE_EPOCH;
    let invalid = |message: &str| Err((ErrorCode::InvalidRequest, message.to_owned()));
    if must_have_id && is_empty(&request.member_id) {
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
    if epoch == JOIN_EPOCH {
        if request.rebalance_timeout_ms == -1 {
            return invalid("a member that joins must give its rebalance timeout");
        }
        if request.owned.as_ref().is_none_or(|owned| !owned.is_empty()) {
            return invalid("a member that joins must say that it holds no partitions");
        }
        if request.topics.is_none() && request.regex.is_none() {
            return invalid("a member that joins must subscribe to something");
        }
    } else if epoch == STATIC_LEAVE_EPOCH && request.instance_id.is_none() {
        return invalid("a member without an instance id cannot leave for a while");
    } else if epoch < STATIC_LEAVE_EPOCH {
        return invalid("there is no such member epoch");
    }
    if let Some(assignor) = &request.assignor {
        let assignors = &config.consumer.assignors;
        if Assignor::named(assignor).is_none_or(|wanted| !assignors.contains(&wanted)) {
            let names: Vec<&str> = assignors.iter().map(|assignor| assignor.name()).collect();
            let message = format!(
                "there is no assignor {assignor}; those that there are: {}",
                names.join(", ")
            );
            return Err((ErrorCode::UnsupportedAssignor, message));
        }
    }
    check_size(request)?;
    // A member that stays has its pattern checked beside the one that it had.
    match &request.regex {
        Some(regex) if epoch == JOIN_EPOCH => check_pattern(regex),
        _ => Ok(()),
    }
}

/// Bounds that Kafka does not have.
fn check_size(request: &ConsumerHeartbeat) -> Result<(), Refused> {
    let texts = [&request.instance_id, &request.rack_id, &request.regex];
    let topics = request.topics.iter().flatten().map(|topic| topic.len() + size_of::<String>());
    let bytes = texts.into_iter().flatten().map(String::len).chain(topics).sum::<usize>();
    let is_long = request.member_id.len() > NAME_BYTES_MAX
        || check_group_id(&request.group_id).is_err()
        || bytes > SUBSCRIPTION_BYTES_MAX;
    if is_long {
        let message = "the names of the member and of its topics are too long".to_owned();
        return Err((ErrorCode::PolicyViolation, message));
    }
    Ok(())
}
