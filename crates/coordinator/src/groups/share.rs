//! Requests of share groups, before they reach their group, and what others ask about such groups.

use std::collections::BTreeSet;

use moldau_protocol::ErrorCode;

use super::consumer::absent;
use super::{Groups, check_group_id};
use crate::any_group::AnyGroup;
use crate::config::{NAME_BYTES_MAX, SUBSCRIPTION_BYTES_MAX};
use crate::group_config;
use crate::record::GroupRecord;
use crate::reply::{
    Effects, GroupState, Refused, Reply, ShareGroupDescription, ShareHeartbeatReply,
};
use crate::request::{ShareHeartbeat, Token};
use crate::share::{JOIN_EPOCH, LEAVE_EPOCH, ShareGroup};
use crate::share_config::{DeadLetterSettings, ShareSettings};
use crate::topics::Topics;

impl Groups {
    /// ShareGroupHeartbeat. The reply comes out at once.
    pub fn share_heartbeat(
        &mut self,
        now_ms: i64,
        request: &ShareHeartbeat,
        topics: &dyn Topics,
        token: Token,
    ) -> Effects {
        let reply = |result: Result<ShareHeartbeatReply, Refused>| {
            let refused = |(error, message)| ShareHeartbeatReply::refused(error, message);
            Reply::ShareHeartbeat(result.unwrap_or_else(refused))
        };
        if let Err(why) = check(request).and_then(|()| self.prepare_share(request)) {
            return Effects::reply(token, reply(Err(why)));
        }
        let stepped = self.step(now_ms, &request.group_id, |group, step| {
            let result = match group {
                AnyGroup::Share(group) if request.member_epoch == LEAVE_EPOCH => {
                    group.leave(step, request)
                }
                AnyGroup::Share(group) => group.heartbeat(step, request, topics),
                _ => Err(other_type(&request.group_id)),
            };
            step.reply(token, reply(result));
        });
        stepped.unwrap_or_else(|| Effects::reply(token, reply(Err(not_found(&request.group_id)))))
    }

    /// Makes sure that there is a share group.
    fn prepare_share(&mut self, request: &ShareHeartbeat) -> Result<(), Refused> {
        let id = &request.group_id;
        match self.groups.get(id) {
            Some(AnyGroup::Share(_)) => Ok(()),
            Some(_) => Err(other_type(id)),
            None if request.member_epoch != JOIN_EPOCH => Err(not_found(id)),
            None if self.groups.len() >= self.config.groups_max => Err(too_many()),
            None => {
                self.groups.insert(id.clone(), AnyGroup::Share(ShareGroup::new(id.clone())));
                Ok(())
            }
        }
    }

    /// Makes an empty share group, unless it exists; the record, for the journal, makes it too.
    ///
    /// # Errors
    ///
    /// The name belongs to a group of another type or to none, or there are too many groups.
    pub fn create_share(&mut self, group_id: &str) -> Result<Option<GroupRecord>, Refused> {
        match self.groups.get(group_id) {
            Some(AnyGroup::Share(_)) => return Ok(None),
            Some(_) => return Err(other_type(group_id)),
            None => check_group_id(group_id)
                .map_err(|code| (code, "the name of the group is too long".to_owned()))?,
        }
        if self.groups.len() >= self.config.groups_max {
            return Err(too_many());
        }
        let (group, record) = ShareGroup::created(group_id.to_owned());
        self.groups.insert(group_id.to_owned(), AnyGroup::Share(group));
        Ok(Some(record))
    }

    /// ShareGroupDescribe for one group.
    ///
    /// # Errors
    ///
    /// Says whether there is no group, or one of another type.
    pub fn describe_share(&self, group_id: &str) -> Result<ShareGroupDescription, String> {
        match self.groups.get(group_id) {
            Some(AnyGroup::Share(group)) => Ok(group.describe()),
            Some(_) => Err(other_type(group_id).1),
            None => Err(absent(group_id)),
        }
    }

    /// The state of a share group: `Empty` without members, else `Stable`. `None` where there is
    /// no group.
    ///
    /// # Errors
    ///
    /// The group is of another type.
    pub fn share_state(&self, group_id: &str) -> Result<Option<GroupState>, Refused> {
        match self.groups.get(group_id) {
            Some(AnyGroup::Share(group)) => Ok(Some(group.state())),
            Some(_) => Err(other_type(group_id)),
            None => Ok(None),
        }
    }

    /// The names of topics that members of share groups subscribe to.
    pub fn shared_topics(&self) -> BTreeSet<&str> {
        let groups = self.groups.values().filter_map(|group| match group {
            AnyGroup::Share(group) => Some(group),
            _ => None,
        });
        groups.flat_map(ShareGroup::topics).collect()
    }

    /// The settings of a share group, which need not exist.
    pub fn share_settings(&self, group_id: &str) -> ShareSettings {
        match self.overrides.get(group_id) {
            Some(overrides) => group_config::share_settings(&self.config, overrides),
            None => self.config.share.settings,
        }
    }

    /// Where records go that a share group gives up, which need not exist.
    pub fn dead_letters(&self, group_id: &str) -> Option<DeadLetterSettings> {
        group_config::dead_letters(self.overrides.get(group_id)?)
    }
}

fn too_many() -> Refused {
    (ErrorCode::PolicyViolation, "there are as many groups as there may be".to_owned())
}

fn not_found(group_id: &str) -> Refused {
    (ErrorCode::GroupIdNotFound, format!("Share group {group_id} not found."))
}

fn other_type(group_id: &str) -> Refused {
    (ErrorCode::GroupIdNotFound, format!("Group {group_id} is not a share group."))
}

/// What can be said without looking at the group, in the order in which Kafka says it.
fn check(request: &ShareHeartbeat) -> Result<(), Refused> {
    let is_empty = |text: &str| text.trim().is_empty();
    let invalid = |message: &str| Err((ErrorCode::InvalidRequest, message.to_owned()));
    if is_empty(&request.member_id) {
        return invalid("the member has no id");
    }
    if is_empty(&request.group_id) {
        return invalid("the group has no id");
    }
    if request.rack_id.as_deref().is_some_and(is_empty) {
        return invalid("the rack id is empty");
    }
    if request.member_epoch == JOIN_EPOCH && request.topics.as_ref().is_none_or(Vec::is_empty) {
        return invalid("a member that joins must subscribe to something");
    }
    if request.member_epoch < LEAVE_EPOCH {
        return invalid("there is no such member epoch");
    }
    // Bounds that Kafka does not have.
    let topics = request.topics.iter().flatten().map(|topic| topic.len() + size_of::<String>());
    let bytes = topics.sum::<usize>() + request.rack_id.as_ref().map_or(0, String::len);
    let is_long = request.member_id.len() > NAME_BYTES_MAX
        || check_group_id(&request.group_id).is_err()
        || bytes > SUBSCRIPTION_BYTES_MAX;
    if is_long {
        let message = "the names of the member and of its topics are too long".to_owned();
        return Err((ErrorCode::PolicyViolation, message));
    }
    Ok(())
}
