//! Translates configurations of other proxies, and of Kafka's broker, into ours.
//!
//! What has no translation goes to stderr with its place in the other file, and stands as a comment
//! above the translation: nothing gets lost unseen.

mod foreign;
mod kafka_proxy;
mod kroxylicious;
mod kroxylicious_acl;
mod kroxylicious_filters;
mod kroxylicious_tls;
mod kroxylicious_validation;
mod properties;
mod server_properties;
mod yaml;

use std::fmt;

pub(crate) use kafka_proxy::kafka_proxy;
pub(crate) use kroxylicious::kroxylicious;
pub(crate) use server_properties::server_properties;

use yaml::Map;

/// A configuration in our words.
#[derive(Debug)]
pub(crate) struct Translation {
    map: Map,
    /// Settings that could not be translated, each with its position in the other configuration.
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
