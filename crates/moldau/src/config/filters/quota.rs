//! The settings of the filter `quota`.

use std::sync::Arc;
use std::time::Duration;

use moldau_filters::{Quota, QuotaEntity, QuotaLimit, QuotaSettings};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::at_least_one;
use crate::config::problem::{At, Problem, nowhere};

/// What stands for each entity that no other limit is for, as in Kafka's own tools.
const DEFAULT_ENTITY: &str = "<default>";

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Seconds for which an entity that was idle may go without a limit. Default 10.
    #[serde(default = "default_burst_s")]
    burst_s: At<u32>,
    /// All that apply to a message are charged.
    limits: Vec<At<LimitKeys>>,
}

/// How much some entities may use.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitKeys {
    /// Clients that the limit applies to.
    entity: Entity,
    /// Bytes that are produced in a second. Default: no limit.
    produce_bytes_per_second: Option<u64>,
    /// Bytes that are fetched in a second. Default: no limit.
    fetch_bytes_per_second: Option<u64>,
    /// Requests in a second. Default: no limit.
    requests_per_second: Option<u64>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Entity {
    Principal(String),
    ClientId(String),
    Topic(String),
}

/// As long as Kafka's windows together: `quota.window.num` and `quota.window.size.seconds`.
fn default_burst_s() -> At<u32> {
    nowhere(10)
}

/// Makes the filter.
///
/// # Errors
/// At the limit that is at fault.
pub(crate) fn filter(keys: Keys) -> Result<Arc<dyn Filter>, Problem> {
    at_least_one(&keys.burst_s, "burst_s")?;
    let burst = Duration::from_secs(keys.burst_s.value.into());
    let mut limits = Vec::new();
    for keys in &keys.limits {
        let limit = limit(&keys.value);
        let rates = [
            limit.produce_bytes_per_second,
            limit.fetch_bytes_per_second,
            limit.requests_per_second,
        ];
        if rates.iter().all(Option::is_none) {
            return Err(Problem::at(keys, "limits: sets no limit"));
        }
        let alone = Quota::new(&QuotaSettings { limits: vec![limit.clone()], burst });
        alone.map_err(|error| Problem::at(keys, error))?;
        limits.push(limit);
    }
    let made = Quota::new(&QuotaSettings { limits, burst });
    Ok(Arc::new(made.expect("each limit by itself makes one")))
}

fn limit(keys: &LimitKeys) -> QuotaLimit {
    let pattern = |text: &String| (text != DEFAULT_ENTITY).then(|| text.clone());
    QuotaLimit {
        entity: match &keys.entity {
            Entity::Principal(name) => QuotaEntity::Principal(pattern(name)),
            Entity::ClientId(name) => QuotaEntity::ClientId(pattern(name)),
            Entity::Topic(name) => QuotaEntity::Topic(pattern(name)),
        },
        produce_bytes_per_second: keys.produce_bytes_per_second,
        fetch_bytes_per_second: keys.fetch_bytes_per_second,
        requests_per_second: keys.requests_per_second,
    }
}
