//! The settings of the filters that hold policies: one module for each, named as its key is.
//!
//! Rules are checked one by one, so that a mistake is reported at its rule.

pub(super) mod audit;
pub(super) mod authorization;
pub(super) mod chaos;
pub(super) mod header;
pub(super) mod mask;
pub(super) mod multi_tenant;
pub(super) mod quota;
pub(super) mod record_encryption;
pub(super) mod record_validation;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use moldau_protocol::ApiKey;
use moldau_proxy::Filter;
use serde::Deserialize;

use super::problem::{At, Problem, nearest};
use super::sources::{Mark, Sources, mark};

/// A filter by its type.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(super) enum FilterEntry {
    RecordEncryption(Box<record_encryption::Settings>),
    MultiTenant(multi_tenant::Keys),
    Authorization(At<authorization::Keys>),
    Header(header::Keys),
    Mask(mask::Keys),
    RecordValidation(record_validation::Keys),
    Quota(quota::Keys),
    Audit(audit::Keys),
    Chaos(chaos::Keys),
}

/// A filter with all that it was made of.
#[derive(Clone)]
pub(super) struct Made {
    cluster: String,
    entry: FilterEntry,
    files: BTreeMap<PathBuf, Mark>,
    filter: Arc<dyn Filter>,
}

impl Made {
    /// Whether the same would be made of an entry now.
    fn is_of(&self, cluster: &str, entry: &FilterEntry) -> bool {
        let Self { cluster: own_cluster, entry: own_entry, files, filter: _ } = self;
        own_cluster == cluster
            && own_entry == entry
            && files.iter().all(|(path, known)| mark(path) == *known)
    }
}

/// The filter of an entry: the one that is in force, with the data keys and other state that it
/// holds, if the entry and its files are as they were. One that writes begins anew each time.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn kept_or_made(
    cluster: &str,
    entry: At<FilterEntry>,
    sources: &mut Sources,
) -> Result<Arc<dyn Filter>, Problem> {
    if let Some(kept) = sources.take_kept(|made| made.is_of(cluster, &entry.value)) {
        let filter = Arc::clone(&kept.filter);
        sources.add_all(&kept.files);
        sources.filters.push(kept);
        return Ok(filter);
    }
    let mut own = Sources::default();
    let made = make(entry.value.clone(), &mut own);
    sources.add_all(&own.files);
    let filter = made?;
    if own.writers.is_empty() && own.background.is_empty() {
        let (cluster, filter) = (cluster.to_owned(), Arc::clone(&filter));
        let made = Made { cluster, entry: entry.value, files: own.files, filter };
        sources.filters.push(made);
    }
    sources.warnings.append(&mut own.warnings);
    sources.background.append(&mut own.background);
    sources.writers.append(&mut own.writers);
    Ok(filter)
}

fn make(entry: FilterEntry, sources: &mut Sources) -> Result<Arc<dyn Filter>, Problem> {
    Ok(match entry {
        FilterEntry::RecordEncryption(settings) => record_encryption::filter(*settings, sources)?,
        FilterEntry::MultiTenant(keys) => Arc::new(keys.filter()?),
        FilterEntry::Authorization(keys) => authorization::filter(&keys, sources)?,
        FilterEntry::Header(keys) => header::filter(keys)?,
        FilterEntry::Mask(keys) => mask::filter(keys, sources)?,
        FilterEntry::RecordValidation(keys) => record_validation::filter(keys, sources)?,
        FilterEntry::Quota(keys) => quota::filter(keys)?,
        FilterEntry::Audit(keys) => audit::filter(keys, sources)?,
        FilterEntry::Chaos(keys) => chaos::filter(keys)?,
    })
}

/// The API of a name, which is Kafka's.
///
/// # Errors
/// There is none, but perhaps one that is called alike.
fn api(name: &At<String>) -> Result<ApiKey, Problem> {
    let all = || (0..=API_KEY_MAX).filter_map(|key| ApiKey::try_from(key).ok());
    all().find(|api| api.name() == name.value).ok_or_else(|| {
        let names: Vec<&str> = all().map(ApiKey::name).collect();
        unknown(name, "apis", "API", &names)
    })
}

/// A name that Kafka does not have.
fn unknown(name: &At<String>, key: &str, what: &str, known: &[&str]) -> Problem {
    let name_itself = &name.value;
    match nearest(name_itself, known) {
        Some(like) => {
            let text = format!("{key}: unknown {what} {name_itself:?}; did you mean {like:?}?");
            Problem::at(name, text)
        }
        None => Problem::at(name, format_args!("{key}: unknown {what} {name_itself:?}")),
    }
}

/// Above every API key of Kafka, which has fewer than a hundred.
const API_KEY_MAX: i16 = 1000;
