//! The settings of the filter `chaos`.

use std::sync::Arc;
use std::time::Duration;

use moldau_filters::{Chaos, ChaosFault, ChaosRule, ChaosSettings};
use moldau_protocol::ErrorCode;
use moldau_proxy::Filter;
use serde::Deserialize;

use super::{api, unknown};
use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// From which all chances are drawn. Default 0.
    #[serde(default)]
    seed: u64,
    /// All rules that match a request are asked.
    rules: Vec<At<RuleKeys>>,
}

/// What happens to some requests.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleKeys {
    /// The APIs, by Kafka's names.
    apis: Vec<At<String>>,
    /// Requests that name one of these topics. Default: all requests.
    #[serde(default)]
    topics: Vec<String>,
    /// Requests of these principals. Default: of all.
    #[serde(default)]
    principals: Vec<String>,
    /// How many of them are struck, from 0 for none to 1 for all.
    probability: f64,
    /// What strikes them.
    fault: Fault,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Fault {
    LatencyMs(u64),
    LatencyBetweenMs(u64, u64),
    Error(At<String>),
    Disconnect,
}

/// Makes the filter.
///
/// # Errors
/// At the rule that is at fault, or the name.
pub(crate) fn filter(keys: Keys) -> Result<Arc<dyn Filter>, Problem> {
    let seed = keys.seed;
    let mut rules = Vec::new();
    for keys in &keys.rules {
        let rule = rule(&keys.value)?;
        let alone = Chaos::new(ChaosSettings { seed, rules: vec![rule.clone()] });
        alone.map_err(|error| Problem::at(keys, error))?;
        rules.push(rule);
    }
    let made = Chaos::new(ChaosSettings { seed, rules });
    Ok(Arc::new(made.expect("each rule by itself makes one")))
}

fn rule(keys: &RuleKeys) -> Result<ChaosRule, Problem> {
    Ok(ChaosRule {
        apis: keys.apis.iter().map(api).collect::<Result<_, _>>()?,
        topics: keys.topics.clone(),
        principals: keys.principals.clone(),
        probability: keys.probability,
        fault: match &keys.fault {
            Fault::LatencyMs(ms) => ChaosFault::Latency(Duration::from_millis(*ms)),
            Fault::LatencyBetweenMs(from, to) => {
                let [from, to] = [from, to].map(|ms| Duration::from_millis(*ms));
                ChaosFault::LatencyBetween(from, to)
            }
            Fault::Error(name) => ChaosFault::Error(code(name)?),
            Fault::Disconnect => ChaosFault::Disconnect,
        },
    })
}

fn code(name: &At<String>) -> Result<ErrorCode, Problem> {
    let mut all = ErrorCode::ALL.iter().copied();
    all.find(|code| code.name() == name.value).ok_or_else(|| {
        let names: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        unknown(name, "error", "error code", &names)
    })
}
