//! The settings of the filters that hold policies: one module for each, named as its key is.
//!
//! Rules are checked one by one, so that a mistake is told where its rule stands.

pub(super) mod audit;
pub(super) mod authorization;
pub(super) mod chaos;
pub(super) mod header;
pub(super) mod mask;
pub(super) mod quota;
pub(super) mod record_validation;

use moldau_protocol::ApiKey;

use super::problem::{At, Problem, nearest};

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
            let text = format!("{key}: {name_itself:?} is no {what}; did you mean {like:?}?");
            Problem::at(name, text)
        }
        None => Problem::at(name, format_args!("{key}: {name_itself:?} is no {what}")),
    }
}

/// Above every key of Kafka's APIs, of which there are fewer than a hundred.
const API_KEY_MAX: i16 = 1000;
