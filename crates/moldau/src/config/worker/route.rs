//! The keys of a route.

use std::time::Duration;

use moldau_consumer::{Order, RetryTopics};
use regex::Regex;
use serde::Deserialize;

use super::OneOrMore;
use super::handler::{self, HandlerSettings};
use super::share::{GroupType, NOT_SHARED, refuse};
use crate::config::problem::{At, Problem};
use crate::config::{Sources, at_least_one};

/// The keys of a route.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// One topic or a list of them. This or `pattern`.
    topics: Option<At<OneOrMore>>,
    /// Regular expression that the whole name of a topic must match. Default: none.
    pattern: Option<At<String>>,
    /// Numbers of the partitions of the one topic that this process reads, whatever others do.
    /// Default: those that the group assigns.
    partitions: Option<At<Vec<i32>>>,
    /// Which records are handled one after the other: those of a `partition`, those with the same
    /// `key`, or `none`. Default `partition`, and `none` in a share group.
    order: Option<At<OrderChoice>>,
    /// Handles batches of up to this many records. Default: one record at a time.
    batch_records_max: Option<At<usize>>,
    /// Attempts of a record. Default: for ever, with pauses from 1 to 30 seconds.
    retry: Option<RetryKeys>,
    /// Topics in which failed records wait for their next attempt. Default: none.
    retry_topics: Option<At<RetryTopicKeys>>,
    /// Topic for records that cannot be handled. Default: they are tried again.
    dead_letters: Option<At<String>>,
    /// Records per second, over all partitions of this process. Default: no limit.
    throttle_per_second: Option<At<u32>>,
    /// Milliseconds from the timestamp of a record to its handling. Default 0.
    delay_ms: Option<u64>,
    /// Milliseconds from the timestamp of a record after which it is left out. Default: never.
    expire_ms: Option<u64>,
    /// Leaves out all records but those with a header. Default: none is left out.
    filter: Option<FilterKeys>,
    /// What handles the records.
    handler: At<handler::Keys>,
}

/// The keys of `retry`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryKeys {
    /// Attempts in all.
    attempts_max: At<u32>,
    /// Milliseconds before the second attempt; doubles with each. Default 1000.
    pause_ms: Option<u64>,
    /// Longest pause in milliseconds. Default 30000.
    pause_max_ms: Option<u64>,
}

/// The keys of `retry_topics`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetryTopicKeys {
    /// What their names begin with: `-1`, `-2` and so on follow.
    name: String,
    /// Milliseconds before each attempt after the first. A delay that differs from the one before
    /// has a topic of its own.
    delays_ms: At<Vec<u64>>,
}

/// The keys of `filter`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterKeys {
    /// Name of the header.
    header: String,
    /// Values of the header, one of which a record must have.
    values: At<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderChoice {
    Partition,
    Key,
    None,
}

/// What the file says of a route.
pub(crate) struct RouteSettings {
    pub(crate) source: Source,
    pub(crate) layers: Layers,
    pub(crate) handler: HandlerSettings,
}

/// What a route reads.
pub(crate) enum Source {
    /// Topics by name.
    Topics(Vec<At<String>>),
    /// Topics whose name matches.
    Pattern(At<String>),
    /// Partitions of a topic.
    Partitions(At<String>, At<Vec<i32>>),
}

/// What surrounds the handler of a route.
pub(crate) struct Layers {
    pub(crate) order: Order,
    pub(crate) batch_records_max: Option<usize>,
    /// Attempts, first and longest pause.
    pub(crate) retry: Option<(u32, Duration, Duration)>,
    pub(crate) retry_topics: Option<RetryTopics>,
    pub(crate) dead_letters: Option<String>,
    pub(crate) throttle_per_second: Option<u32>,
    pub(crate) delay: Option<Duration>,
    pub(crate) expire: Option<Duration>,
    pub(crate) filter: Option<KeptHeader>,
}

/// A header that a record must have.
#[derive(Clone, Debug)]
pub(crate) struct KeptHeader {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

impl RouteSettings {
    /// Names the route in messages.
    pub(crate) fn name(&self) -> String {
        self.source.name()
    }
}

impl Source {
    /// Topics that are named.
    pub(crate) fn topics(&self) -> &[At<String>] {
        match self {
            Self::Topics(topics) => topics,
            Self::Pattern(_) => &[],
            Self::Partitions(topic, _) => std::slice::from_ref(topic),
        }
    }

    fn name(&self) -> String {
        if let Self::Pattern(pattern) = self {
            return pattern.value.clone();
        }
        let topics: Vec<_> = self.topics().iter().map(|topic| topic.value.as_str()).collect();
        topics.join(",")
    }
}

impl Keys {
    /// # Errors
    /// Names a key that does not go with a share group.
    fn check_shared(&self) -> Result<(), Problem> {
        refuse(self.pattern.as_ref(), "pattern", NOT_SHARED)?;
        refuse(self.partitions.as_ref(), "partitions", NOT_SHARED)?;
        let order = self.order.as_ref().filter(|it| !matches!(it.value, OrderChoice::None));
        refuse(order, "order", "a share group keeps none")?;
        refuse(self.batch_records_max.as_ref(), "batch_records_max", NOT_SHARED)?;
        refuse(self.retry_topics.as_ref(), "retry_topics", NOT_SHARED)
    }

    /// # Errors
    /// Names the key that is at fault.
    pub(super) fn settings(
        self,
        group_type: GroupType,
        sources: &mut Sources,
    ) -> Result<RouteSettings, Problem> {
        if group_type == GroupType::Share {
            self.check_shared()?;
        }
        let source = source(self.topics, self.pattern, self.partitions, &self.handler)?;
        let dead_letters = self.dead_letters.as_ref();
        let topics = source.topics();
        if let Some(dead) = dead_letters.filter(|it| topics.iter().any(|o| o.value == it.value)) {
            let text = "dead_letters: must be another topic than those of the route";
            return Err(Problem::at(dead, text));
        }
        if let Some(dead) = dead_letters {
            check_name(dead, &dead.value, "dead_letters")?;
        }
        if let Some(records) = &self.batch_records_max {
            at_least_one(records, "batch_records_max")?;
        }
        if let Some(records) = &self.throttle_per_second {
            at_least_one(records, "throttle_per_second")?;
        }
        if let Some(FilterKeys { values, .. }) = &self.filter
            && values.value.is_empty()
        {
            return Err(Problem::at(values, "values: at least one is needed"));
        }
        let handler = handler::settings(&self.handler, source.name(), sources)?;
        let layers = Layers {
            order: match (self.order.map(|order| order.value), group_type) {
                (Some(OrderChoice::None), _) | (None, GroupType::Share) => Order::None,
                (Some(OrderChoice::Key), _) => Order::by_key(),
                (Some(OrderChoice::Partition), _) | (None, GroupType::Consumer) => Order::Partition,
            },
            batch_records_max: self.batch_records_max.map(|records| records.value),
            retry: self.retry.map(RetryKeys::settings).transpose()?,
            retry_topics: self.retry_topics.map(|keys| keys.value.settings()).transpose()?,
            dead_letters: self.dead_letters.map(|topic| topic.value),
            throttle_per_second: self.throttle_per_second.map(|records| records.value),
            delay: self.delay_ms.map(Duration::from_millis),
            expire: self.expire_ms.map(Duration::from_millis),
            filter: self.filter.map(|FilterKeys { header, values }| KeptHeader {
                name: header,
                values: values.value,
            }),
        };
        Ok(RouteSettings { source, layers, handler })
    }
}

impl RetryKeys {
    fn settings(self) -> Result<(u32, Duration, Duration), Problem> {
        at_least_one(&self.attempts_max, "attempts_max")?;
        let first = Duration::from_millis(self.pause_ms.unwrap_or(1000));
        let max = Duration::from_millis(self.pause_max_ms.unwrap_or(30_000));
        Ok((self.attempts_max.value, first, max))
    }
}

impl RetryTopicKeys {
    fn settings(self) -> Result<RetryTopics, Problem> {
        if self.name.is_empty() || self.delays_ms.value.is_empty() {
            let text = "retry_topics: a name and at least one of delays_ms are needed";
            return Err(Problem::at(&self.delays_ms, text));
        }
        let delays = self.delays_ms.value.iter().copied().map(Duration::from_millis);
        let topics = RetryTopics::to(&self.name, delays);
        for name in topics.names() {
            check_name(&self.delays_ms, name, "retry_topics")?;
        }
        Ok(topics)
    }
}

/// What a route reads; `place` is where the route stands.
fn source<T>(
    topics: Option<At<OneOrMore>>,
    pattern: Option<At<String>>,
    partitions: Option<At<Vec<i32>>>,
    place: &At<T>,
) -> Result<Source, Problem> {
    let topics = match (topics, pattern) {
        (None, None) => {
            return Err(Problem::at(place, "topics: a route needs topics or a pattern"));
        }
        (Some(_), Some(pattern)) => {
            return Err(Problem::at(&pattern, "pattern: a route has topics or a pattern"));
        }
        (None, Some(pattern)) => {
            if let Some(partitions) = partitions {
                let text = "partitions: needs one topic, not a pattern";
                return Err(Problem::at(&partitions, text));
            }
            check_pattern(&pattern)?;
            return Ok(Source::Pattern(pattern));
        }
        (Some(topics), None) => topics,
    };
    let names: Vec<_> = topics.value.texts().into_iter().map(|it| topics.with(it)).collect();
    if names.is_empty() || names.iter().any(|topic| topic.value.is_empty()) {
        return Err(Problem::at(&topics, "topics: at least one name is needed"));
    }
    names.iter().try_for_each(|topic| check_name(topic, &topic.value, "topics"))?;
    let Some(partitions) = partitions else { return Ok(Source::Topics(names)) };
    let numbers = &partitions.value;
    if numbers.is_empty() || numbers.iter().any(|number| *number < 0) {
        return Err(Problem::at(&partitions, "partitions: numbers from 0 on are needed"));
    }
    match <[_; 1]>::try_from(names) {
        Ok([topic]) => Ok(Source::Partitions(topic, partitions)),
        Err(_) => Err(Problem::at(&partitions, "partitions: needs one topic, not several")),
    }
}

/// # Errors
/// It is not a regular expression.
fn check_pattern(pattern: &At<String>) -> Result<(), Problem> {
    Regex::new(&pattern.value).map(drop).map_err(|error| {
        let error = error.to_string();
        // The lines before it draw where the fault is.
        let reason = error.lines().last().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        let text = format!("pattern: {:?} is not a regular expression: {reason}", pattern.value);
        Problem::at(pattern, text)
    })
}

/// # Errors
/// No topic of Kafka may have the name.
fn check_name<T>(place: &At<T>, name: &str, key: &str) -> Result<(), Problem> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(is_legal)
        && !matches!(name, "." | "..")
    {
        return Ok(());
    }
    let text = format!(
        "{key}: {name:?} is not a name of a topic, which has up to {NAME_BYTES_MAX} letters, \
         digits, dots, underscores and hyphens"
    );
    Err(Problem::at(place, text))
}

/// Longest name of a topic in Kafka.
const NAME_BYTES_MAX: usize = 249;
