//! What a route is for: a topic, those that match a pattern, or partitions.

use std::sync::Arc;

use moldau_client::{Error as ClientError, TopicPartition};
use regex::Regex;

use crate::Result;

/// What a route is for.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// The topic with this name.
    Named(Arc<str>),
    /// Source whose whole name matches.
    Matching(Pattern),
    /// These partitions, without a group that assigns them.
    Partitions(Vec<TopicPartition>),
}

/// A regular expression for the names of topics.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    pub(crate) text: Arc<str>,
    regex: Regex,
}

impl Pattern {
    /// # Errors
    /// It is not a regular expression.
    pub(crate) fn new(pattern: &str) -> Result<Self> {
        // Alone first: a parenthesis too much would end the group around it.
        let regex =
            Regex::new(pattern).and_then(|_alone| Regex::new(&format!(r"\A(?:{pattern})\z")));
        let text = Arc::<str>::from(pattern);
        match regex {
            Ok(regex) => Ok(Self { text, regex }),
            Err(error) => {
                let reason = error.to_string().into();
                Err(ClientError::InvalidPattern { pattern: text, reason }.into())
            }
        }
    }
}

impl Source {
    /// Whether the topic is one of them.
    pub(crate) fn cover(&self, topic: &str) -> bool {
        match self {
            Self::Named(name) => **name == *topic,
            Self::Matching(pattern) => pattern.regex.is_match(topic),
            Self::Partitions(partitions) => {
                partitions.iter().any(|partition| &*partition.topic == topic)
            }
        }
    }

    /// What figures call it: the name of the topic, or the pattern.
    pub(crate) fn label(&self) -> Arc<str> {
        match self {
            Self::Matching(pattern) => Arc::clone(&pattern.text),
            Self::Named(_) | Self::Partitions(_) => self.name().cloned().unwrap_or_default(),
        }
    }

    /// The topic that it names.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Named(name) => Some(name),
            Self::Matching(_) => None,
            Self::Partitions(partitions) => partitions.first().map(|partition| &partition.topic),
        }
    }
}
