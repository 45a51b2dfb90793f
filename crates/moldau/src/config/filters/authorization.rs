//! The settings of the filter `authorization`.

use std::path::PathBuf;
use std::sync::Arc;

use moldau_filters::{Authorization, Rules};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::Sources;
use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// File with a rule in each line.
    rules_file: Option<At<PathBuf>>,
    /// The rules themselves.
    rules: Option<At<Vec<At<String>>>>,
}

/// Makes the filter.
///
/// # Errors
/// At the key that is at fault, or the rule.
pub(crate) fn filter(keys: &At<Keys>, sources: &mut Sources) -> Result<Arc<dyn Filter>, Problem> {
    let rules = match (&keys.value.rules_file, &keys.value.rules) {
        (Some(file), None) => Rules::parse(&sources.text(file)?).map_err(|error| {
            Problem::at(file, format_args!("{}: {error}", file.value.display()))
        })?,
        (None, Some(rules)) => {
            let parsed = rules
                .value
                .iter()
                .map(|rule| rule.value.parse().map_err(|reason: String| Problem::at(rule, reason)));
            Rules(parsed.collect::<Result<_, _>>()?)
        }
        (Some(_), Some(rules)) => {
            return Err(Problem::at(rules, "rules: cannot be combined with rules_file"));
        }
        (None, None) => {
            return Err(Problem::at(keys, "the key \"rules_file\" is missing, or rules"));
        }
    };
    Ok(Arc::new(Authorization::new(rules)))
}
