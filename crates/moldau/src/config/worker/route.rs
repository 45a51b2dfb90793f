//! The keys of a route.

use std::time::Duration;

use moldau_consumer::Order;
use serde::Deserialize;

use super::OneOrMore;
use super::handler::{self, HandlerSettings};
use crate::config::problem::{At, Problem};
use crate::config::{Sources, at_least_one};

/// The keys of a route.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// One topic or a list of them.
    topics: At<OneOrMore>,
    /// Which records are handled one after the other: those of a `partition`, those with the same
    /// `key`, or `none`. Default `partition`.
    #[serde(default)]
    order: OrderChoice,
    /// Handles batches of up to this many records. Default: one record at a time.
    batch_records_max: Option<At<usize>>,
    /// Attempts of a record. Default: for ever, with pauses from 1 to 30 seconds.
    retry: Option<RetryKeys>,
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

/// The keys of `filter`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterKeys {
    /// Name of the header.
    header: String,
    /// Values of the header, one of which a record must have.
    values: At<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderChoice {
    #[default]
    Partition,
    Key,
    None,
}

/// What the file says of a route.
pub(crate) struct RouteSettings {
    pub(crate) topics: Vec<At<String>>,
    pub(crate) layers: Layers,
    pub(crate) handler: HandlerSettings,
}

/// What surrounds the handler of a route.
pub(crate) struct Layers {
    pub(crate) order: Order,
    pub(crate) batch_records_max: Option<usize>,
    /// Attempts, first and longest pause.
    pub(crate) retry: Option<(u32, Duration, Duration)>,
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
        let topics: Vec<_> = self.topics.iter().map(|topic| topic.value.as_str()).collect();
        topics.join(",")
    }
}

impl Keys {
    /// # Errors
    /// Names the key that is at fault.
    pub(super) fn settings(self, sources: &mut Sources) -> Result<RouteSettings, Problem> {
        let topics: Vec<_> =
            self.topics.value.texts().into_iter().map(|it| self.topics.with(it)).collect();
        if topics.is_empty() || topics.iter().any(|topic| topic.value.is_empty()) {
            return Err(Problem::at(&self.topics, "topics: at least one name is needed"));
        }
        let dead_letters = self.dead_letters.as_ref();
        if let Some(dead) = dead_letters.filter(|it| topics.iter().any(|o| o.value == it.value)) {
            let text = "dead_letters: must be another topic than those of the route";
            return Err(Problem::at(dead, text));
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
        let names: Vec<_> = topics.iter().map(|topic| topic.value.as_str()).collect();
        let handler = handler::settings(&self.handler, names.join(","), sources)?;
        let layers = Layers {
            order: match self.order {
                OrderChoice::Partition => Order::Partition,
                OrderChoice::Key => Order::by_key(),
                OrderChoice::None => Order::None,
            },
            batch_records_max: self.batch_records_max.map(|records| records.value),
            retry: self.retry.map(RetryKeys::settings).transpose()?,
            dead_letters: self.dead_letters.map(|topic| topic.value),
            throttle_per_second: self.throttle_per_second.map(|records| records.value),
            delay: self.delay_ms.map(Duration::from_millis),
            expire: self.expire_ms.map(Duration::from_millis),
            filter: self.filter.map(|FilterKeys { header, values }| KeptHeader {
                name: header,
                values: values.value,
            }),
        };
        Ok(RouteSettings { topics, layers, handler })
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
