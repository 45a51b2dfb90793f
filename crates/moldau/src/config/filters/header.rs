//! The settings of the filter `header`.

use std::sync::Arc;

use moldau_filters::{Header, HeaderRule, HeaderSettings, HeaderValue, HeaderWay};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// All rules that match a topic apply to it.
    rules: Vec<At<RuleKeys>>,
}

/// Which headers some topics gain and lose.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleKeys {
    /// Names of topics, or beginnings of names before a `*`.
    topics: Vec<String>,
    /// On which way the rule applies.
    on: Way,
    /// Keys of the headers that are removed, or beginnings of keys before a `*`. Default: none.
    #[serde(default)]
    remove: Vec<String>,
    /// The headers that are added. Default: none.
    #[serde(default)]
    add: Vec<AddKeys>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Way {
    Produce,
    Fetch,
    Both,
}

/// A header that is added.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddKeys {
    /// Its key.
    key: String,
    /// Its value.
    value: Value,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Value {
    Static(String),
    Principal,
    ClientAddress,
    ClientId,
    VirtualCluster,
    Time,
}

/// Makes the filter.
///
/// # Errors
/// At the rule that is at fault.
pub(crate) fn filter(keys: Keys) -> Result<Arc<dyn Filter>, Problem> {
    let mut rules = Vec::new();
    for keys in &keys.rules {
        let rule = rule(&keys.value);
        let alone = Header::new(HeaderSettings { rules: vec![rule.clone()] });
        alone.map_err(|error| Problem::at(keys, error))?;
        rules.push(rule);
    }
    let made = Header::new(HeaderSettings { rules });
    Ok(Arc::new(made.expect("each rule by itself makes one")))
}

fn rule(keys: &RuleKeys) -> HeaderRule {
    let value = |value: &Value| match value {
        Value::Static(text) => HeaderValue::Static(text.as_bytes().to_vec()),
        Value::Principal => HeaderValue::Principal,
        Value::ClientAddress => HeaderValue::ClientAddress,
        Value::ClientId => HeaderValue::ClientId,
        Value::VirtualCluster => HeaderValue::VirtualCluster,
        Value::Time => HeaderValue::Time,
    };
    HeaderRule {
        topics: keys.topics.clone(),
        on: match keys.on {
            Way::Produce => HeaderWay::Produce,
            Way::Fetch => HeaderWay::Fetch,
            Way::Both => HeaderWay::Both,
        },
        remove: keys.remove.clone(),
        add: keys.add.iter().map(|add| (add.key.clone(), value(&add.value))).collect(),
    }
}
