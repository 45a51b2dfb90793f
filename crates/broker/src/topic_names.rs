//! Kafka's rules for the names of topics.

use std::collections::HashMap;

use moldau_protocol::ErrorCode;

use crate::error::Refusal;
use crate::topic_config::shown;

/// Longest topic name, since Kafka's own limit keeps `<topic>-<partition>` a file name.
const TOPIC_NAME_BYTES_MAX: usize = 249;

/// Topics that Kafka keeps its own state in. Here that lies in the journal: an ordinary topic of
/// such a name would pass for what it is not.
const INTERNAL_TOPICS: [&str; 4] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];

/// Checks the form of a topic name.
///
/// # Errors
/// `INVALID_TOPIC_EXCEPTION` with the rule.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let name = match name {
        "" => return invalid("the empty string is not allowed"),
        "." | ".." => return invalid(&format!("'{name}' is not allowed")),
        name if name.len() > TOPIC_NAME_BYTES_MAX => {
            return invalid(&format!(
                "the length of '{}' is longer than the max allowed length {TOPIC_NAME_BYTES_MAX}",
                shown(name)
            ));
        }
        name => name,
    };
    if name.bytes().all(legal) {
        return Ok(());
    }
    invalid(&format!(
        "'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    ))
}

fn invalid(problem: &str) -> Result<(), Refusal> {
    let message = format!("Topic name is invalid: {problem}");
    Err(Refusal::new(ErrorCode::InvalidTopicException, message))
}

/// Checks that clients may create a topic of this name, and write to it.
///
/// # Errors
/// `INVALID_TOPIC_EXCEPTION` for the topics that Kafka keeps its own state in.
pub(crate) fn check_ordinary(name: &str) -> Result<(), Refusal> {
    if !INTERNAL_TOPICS.contains(&name) {
        return Ok(());
    }
    let message = format!("{name} is an internal topic of Kafka; this broker has no such topic");
    Err(Refusal::new(ErrorCode::InvalidTopicException, message))
}

/// The names of topics as metrics show them, with `_` for `.`: there no two may be alike. Topics
/// whose names have neither are left out, as they are like no other.
#[derive(Debug, Default)]
pub(crate) struct MetricNames {
    /// How many topics have the name: several of a broker that knew no such rule.
    counts: HashMap<Box<str>, u32>,
}

impl MetricNames {
    /// Checks that a topic that is to be made is like no other.
    ///
    /// # Errors
    /// `INVALID_TOPIC_EXCEPTION`.
    pub(crate) fn check(&self, name: &str) -> Result<(), Refusal> {
        match metric_name(name) {
            Some(unified) if self.counts.contains_key(&unified) => {
                let name = shown(name);
                let message = format!(
                    "topic {name} differs from another topic only in . and _, which collide in \
                     metric names"
                );
                Err(Refusal::new(ErrorCode::InvalidTopicException, message))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn add(&mut self, name: &str) {
        if let Some(unified) = metric_name(name) {
            *self.counts.entry(unified).or_default() += 1;
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        let Some(unified) = metric_name(name) else { return };
        let count = self.counts.get_mut(&unified).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if count == 0 {
            self.counts.remove(&unified);
        }
    }
}

fn metric_name(name: &str) -> Option<Box<str>> {
    name.contains(['.', '_']).then(|| name.replace('.', "_").into())
}
