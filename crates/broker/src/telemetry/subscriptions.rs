//! Which metrics operators want of which clients: the resources `client-metrics` (KIP-714).

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use moldau_coordinator::compile_pattern;
use moldau_protocol::{ErrorCode, Uuid};
use regex::Regex;

use crate::broker_configs::ConfigType;
use crate::error::Refusal;
use crate::topic_config::{TopicOverrides, VALUE_BYTES_MAX, list, shown};

/// Most subscriptions: a client is compared with all of them.
const SUBSCRIPTIONS_MAX: usize = 1_000;

/// Memory of one compiled expression.
const COMPILED_BYTES_MAX: usize = 64 << 10;

/// Bytes of a subscription's name: the journal keeps it.
const NAME_BYTES_MAX: usize = 4_096;

/// The interval of a client of which nothing is wanted, and the default, in milliseconds.
const INTERVAL_DEFAULT_MS: i32 = 300_000;

/// The interval that a subscription may set, in milliseconds, as in Kafka.
const INTERVAL_RANGE_MS: std::ops::RangeInclusive<i32> = 100..=3_600_000;

/// The name that stands for every metric.
const ALL_METRICS: &str = "*";

const METRICS: &str = "metrics";
const INTERVAL: &str = "interval.ms";
const MATCH: &str = "match";

/// A key of a subscription.
pub(crate) struct SubscriptionKey {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    pub(crate) config_type: ConfigType,
    pub(crate) documentation: &'static str,
}

/// Every key, in alphabetical order.
pub(crate) const SUBSCRIPTION_KEYS: [SubscriptionKey; 3] = [
    SubscriptionKey {
        name: INTERVAL,
        default: "300000",
        config_type: ConfigType::Int,
        documentation: "Milliseconds between two pushes of a client.",
    },
    SubscriptionKey {
        name: MATCH,
        default: "",
        config_type: ConfigType::List,
        documentation: "Clients, as NAME=REGULAR EXPRESSION, all of which must match. Names are \
                        client_instance_id, client_id, client_software_name, \
                        client_software_version, client_source_address and client_source_port. \
                        Default: all clients.",
    },
    SubscriptionKey {
        name: METRICS,
        default: "",
        config_type: ConfigType::List,
        documentation: "Prefixes of the names of metrics that clients push; * for all metrics.",
    },
];

/// What a client is known by.
const PARAMETERS: [&str; 6] = [
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
];

/// The client of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    pub(crate) instance_id: Uuid,
    pub(crate) client_id: String,
    pub(crate) software_name: String,
    pub(crate) software_version: String,
    pub(crate) address: SocketAddr,
    pub(crate) principal: String,
}

impl Client {
    /// What it is known by, with Kafka's names of labels.
    pub(crate) fn parameters(&self) -> [(&'static str, String); PARAMETERS.len()] {
        let [instance_id, client_id, name, version, address, port] = PARAMETERS;
        [
            (instance_id, self.instance_id.to_string()),
            (client_id, self.client_id.clone()),
            (name, self.software_name.clone()),
            (version, self.software_version.clone()),
            (address, self.address.ip().to_canonical().to_string()),
            (port, self.address.port().to_string()),
        ]
    }
}

/// What a client is to push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Prefixes of names in alphabetical order, or [`ALL_METRICS`] alone.
    pub(crate) metrics: Vec<String>,
    pub(crate) interval_ms: i32,
}

/// One resource.
struct Subscription {
    /// As given, by key.
    configs: TopicOverrides,
    metrics: Vec<String>,
    interval_ms: i32,
    patterns: BTreeMap<String, Regex>,
}

/// All resources, by name.
#[derive(Default)]
pub(crate) struct Subscriptions(BTreeMap<String, Subscription>);

impl Subscriptions {
    /// The names of all resources.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What a resource sets.
    pub(crate) fn configs(&self, name: &str) -> TopicOverrides {
        self.0.get(name).map(|found| found.configs.clone()).unwrap_or_default()
    }

    /// All resources with what they set.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &TopicOverrides)> {
        self.0.iter().map(|(name, subscription)| (name, &subscription.configs))
    }

    /// Checks what a resource is to set.
    ///
    /// # Errors
    /// Kafka's codes for a bad name, a bad value, and too many resources.
    pub(crate) fn check(&self, name: &str, configs: &TopicOverrides) -> Result<(), Refusal> {
        check_name(name)?;
        parse(configs)?;
        let is_another = !configs.is_empty() && !self.0.contains_key(name);
        if is_another && self.0.len() >= SUBSCRIPTIONS_MAX {
            let message = format!("the limit is {SUBSCRIPTIONS_MAX} client metrics resources");
            return Err(Refusal::new(ErrorCode::PolicyViolation, message));
        }
        Ok(())
    }

    /// Lets a resource set exactly this; nothing removes it.
    ///
    /// # Errors
    /// What is wrong with a value; it was checked before it entered the journal.
    pub(crate) fn apply(&mut self, name: String, configs: TopicOverrides) -> Result<(), String> {
        if configs.is_empty() {
            self.0.remove(&name);
            return Ok(());
        }
        let subscription = parse(&configs).map_err(|refusal| refusal.message)?;
        self.0.insert(name, Subscription { configs, ..subscription });
        Ok(())
    }

    /// What all resources that match a client want of it.
    pub(crate) fn wanted(&self, client: &Client) -> Wanted {
        let parameters = client.parameters();
        let matches = |subscription: &&Subscription| {
            subscription.patterns.iter().all(|(parameter, pattern)| {
                let value = parameters.iter().find(|(name, _)| name == parameter);
                value.is_some_and(|(_, value)| pattern.is_match(value))
            })
        };
        let (mut metrics, mut interval_ms) = (BTreeSet::new(), INTERVAL_DEFAULT_MS);
        for subscription in self.0.values().filter(matches) {
            metrics.extend(subscription.metrics.iter().cloned());
            interval_ms = interval_ms.min(subscription.interval_ms);
        }
        if metrics.contains(ALL_METRICS) {
            metrics = BTreeSet::from([ALL_METRICS.to_owned()]);
        }
        Wanted { metrics: metrics.into_iter().collect(), interval_ms }
    }
}

/// # Errors
/// `INVALID_REQUEST` for no name, or one that is too long.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    let problem = match name.len() {
        0 => "Subscription name can't be empty",
        1..=NAME_BYTES_MAX => return Ok(()),
        _ => "the name of a client metrics resource is too long",
    };
    Err(Refusal::new(ErrorCode::InvalidRequest, problem))
}

fn parse(configs: &TopicOverrides) -> Result<Subscription, Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
    let (mut metrics, mut interval_ms, mut patterns) =
        (Vec::new(), INTERVAL_DEFAULT_MS, BTreeMap::new());
    for (key, value) in configs {
        if value.len() > VALUE_BYTES_MAX {
            return Err(invalid(format!("the value of {} is too long", shown(key))));
        }
        match key.as_str() {
            METRICS => metrics = list(value).map(str::to_owned).collect(),
            INTERVAL => {
                interval_ms = value.trim().parse().map_err(|_| {
                    invalid(format!("{} is not a number of milliseconds", shown(value)))
                })?;
                if !INTERVAL_RANGE_MS.contains(&interval_ms) {
                    let (least, most) = (INTERVAL_RANGE_MS.start(), INTERVAL_RANGE_MS.end());
                    let message = format!(
                        "Invalid value {interval_ms} for {INTERVAL}, interval must be between \
                         {least} and {most} (1 hour)"
                    );
                    return Err(Refusal::new(ErrorCode::InvalidRequest, message));
                }
            }
            MATCH => {
                for word in list(value) {
                    let (parameter, pattern) = parse_pattern(word).map_err(invalid)?;
                    patterns.insert(parameter, pattern);
                }
            }
            _ => {
                let message = format!("Unknown client metrics configuration: {}", shown(key));
                return Err(Refusal::new(ErrorCode::InvalidRequest, message));
            }
        }
    }
    Ok(Subscription { configs: TopicOverrides::new(), metrics, interval_ms, patterns })
}

fn parse_pattern(word: &str) -> Result<(String, Regex), String> {
    let unknown = || format!("Illegal client matching pattern: {}", shown(word));
    let (parameter, pattern) = word.split_once('=').ok_or_else(unknown)?;
    let (parameter, pattern) = (parameter.trim(), pattern.trim());
    if pattern.contains('=') || !PARAMETERS.contains(&parameter) {
        return Err(unknown());
    }
    let compiled = compile_pattern(pattern, COMPILED_BYTES_MAX);
    let compiled = compiled.map_err(|problem| format!("{}: {problem}", shown(pattern)))?;
    Ok((parameter.to_owned(), compiled))
}
