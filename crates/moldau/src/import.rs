//! Translates the configuration of another proxy into ours.
//!
//! What has no translation is told with the place that it has there, and stands as a comment above
//! what is printed: nothing gets lost unseen.

mod foreign;
mod kafka_proxy;
mod kroxylicious;
mod kroxylicious_acl;
mod kroxylicious_filters;
mod kroxylicious_tls;
mod kroxylicious_validation;
mod yaml;

use std::fmt;

pub(crate) use kafka_proxy::kafka_proxy;
pub(crate) use kroxylicious::kroxylicious;

use yaml::Map;

/// A configuration in our words.
#[derive(Debug)]
pub(crate) struct Translation {
    map: Map,
    /// What could not be translated, each with the place that it has in the other configuration.
    pub(crate) notes: Vec<String>,
}

/// The YAML file, headed by what could not be translated.
impl fmt::Display for Translation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.notes.is_empty() {
            f.write_str("# Not translated:\n")?;
        }
        for note in &self.notes {
            // A text of the other configuration must not end the comment.
            writeln!(f, "# - {}", note.replace(['\n', '\r'], " "))?;
        }
        write!(f, "{}", self.map)
    }
}
