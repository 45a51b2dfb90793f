//! The settings of the filter `mask`.

use std::path::PathBuf;
use std::sync::Arc;

use moldau_filters::{Mask, MaskRule, MaskSettings, Masking, NotJson};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::Sources;
use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// File with the secret that hashes need, in its one line. Default: none.
    hash_key_file: Option<At<PathBuf>>,
    /// All rules that match a topic apply to it.
    rules: Vec<At<RuleKeys>>,
}

/// What is masked in some topics.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleKeys {
    /// Names of topics, or beginnings of names before a `*`.
    topics: Vec<String>,
    /// Paths to fields.
    fields: Vec<String>,
    /// How they are masked.
    masking: MaskingKeys,
    /// Handling of values that are not JSON. Default `error`.
    #[serde(default)]
    not_json: NotJsonKeys,
    /// Principals that see these topics unmasked. Default: none.
    #[serde(default)]
    exempt_principals: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum MaskingKeys {
    All,
    First(usize),
    Last(usize),
    Hash,
    Null,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum NotJsonKeys {
    Pass,
    Empty,
    #[default]
    Error,
}

/// Makes the filter.
///
/// # Errors
/// At the rule that is at fault, or the file.
pub(crate) fn filter(keys: Keys, sources: &mut Sources) -> Result<Arc<dyn Filter>, Problem> {
    let secret = keys.hash_key_file.as_ref().map(|file| sources.secret(file)).transpose()?;
    let hash_key = secret.map(|secret| secret.as_bytes().to_vec());
    let mut rules = Vec::new();
    for keys in &keys.rules {
        let rule = rule(&keys.value);
        let alone = MaskSettings { rules: vec![rule.clone()], hash_key: hash_key.clone() };
        Mask::new(alone).map_err(|error| Problem::at(keys, error))?;
        rules.push(rule);
    }
    let made = Mask::new(MaskSettings { rules, hash_key });
    Ok(Arc::new(made.expect("each rule by itself makes one")))
}

fn rule(keys: &RuleKeys) -> MaskRule {
    MaskRule {
        topics: keys.topics.clone(),
        fields: keys.fields.clone(),
        masking: match keys.masking {
            MaskingKeys::All => Masking::All,
            MaskingKeys::First(count) => Masking::First(count),
            MaskingKeys::Last(count) => Masking::Last(count),
            MaskingKeys::Hash => Masking::Hash,
            MaskingKeys::Null => Masking::Null,
        },
        not_json: match keys.not_json {
            NotJsonKeys::Pass => NotJson::Pass,
            NotJsonKeys::Empty => NotJson::Empty,
            NotJsonKeys::Error => NotJson::Error,
        },
        exempt_principals: keys.exempt_principals.clone(),
    }
}
