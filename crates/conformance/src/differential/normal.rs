//! What two servers must answer differently: addresses, generated ids, times, sizes, sentences.
//!
//! A value that is replaced stands as `<what it is>`; where it is not what the server itself named
//! or generated, it stays as it is.

use std::collections::BTreeMap;

use moldau_protocol::{Entity, Field, Kind, Uuid};

use super::tree::Tree;
use crate::odd_produces::batch;

/// Fields that hold the number of a broker.
const BROKERS: &[&str] = &[
    "BrokerId",
    "ControllerId",
    "IsrNodes",
    "LeaderId",
    "NodeId",
    "OfflineReplicas",
    "ReplicaId",
    "ReplicaNodes",
];

/// Lists with an element for each broker.
const LISTS_OF_BROKERS: &[&str] = &["Brokers", "NodeEndpoints", "Nodes"];

/// Fields that hold a time of the server's clock.
const TIMES: &[&str] = &[
    "LastCaughtUpTimestamp",
    "LastFetchTimestamp",
    "LastTimestamp",
    "LogAppendTimeMs",
    "TransactionStartTimeMs",
];

/// Fields whose value is a matter of the disk or of how a server stores what it has.
const SIZES: &[&str] = &["PartitionSize", "TotalBytes", "UsableBytes"];

/// Timestamps of records are below this number of milliseconds, those of clocks above.
const CLOCK_MS_MIN: i64 = 1_600_000_000_000;

/// Records of the scripts have the time of the start and some milliseconds; servers themselves are
/// asked when they have started, and not for long.
const OF_CLOCK_MS_MIN: i64 = 1_000;
const OF_CLOCK_MS_MAX: i64 = 3_600_000;

/// What a server said of itself, and what it generated.
#[derive(Default)]
pub(super) struct Known {
    pub(super) broker: i64,
    /// Numbers and ports of all brokers.
    pub(super) brokers: Vec<i64>,
    pub(super) ports: Vec<i64>,
    /// Those of the partitions of the scripts.
    pub(super) leader_epochs: Vec<i64>,
    /// Times of records are shown as distances from this.
    pub(super) now_ms: i64,
    pub(super) cluster: String,
    /// Names of topics by their ids.
    pub(super) topics: BTreeMap<String, String>,
}

impl Known {
    /// The same tree with what must differ replaced.
    pub(super) fn normal(&self, tree: &Tree) -> Tree {
        let Tree::Struct(fields) = tree else { return tree.clone() };
        // A sentence beside an error may be there or not; beside a success it says something.
        let has_failed = fields.iter().any(|(field, value)| {
            field.name.ends_with("ErrorCode") && matches!(value, Tree::Number(1.. | ..=-1))
        });
        let normal = fields.iter().map(|(field, value)| match field.entity {
            Some(Entity::Explanation) if has_failed => (*field, Tree::Text("<text>".to_owned())),
            _ => (*field, self.value(field, value)),
        });
        Tree::Struct(normal.collect())
    }

    fn value(&self, field: &Field, value: &Tree) -> Tree {
        match value {
            Tree::List(elements) => {
                let elements = elements.iter().map(|element| self.value(field, element));
                let mut elements: Vec<_> = elements.collect();
                if LISTS_OF_BROKERS.contains(&field.name) {
                    // Three brokers look like one by now.
                    elements.dedup();
                }
                Tree::List(elements)
            }
            Tree::Struct(_) => self.normal(value),
            Tree::Number(number) => self.number(field.name, *number),
            Tree::Text(text) if is_id(field.kind) => Tree::Text(self.id(text)),
            Tree::Text(text) => Tree::Text(self.text(field, text)),
            Tree::Bytes(bytes) if field.name == "Records" => {
                Tree::Text(batch::describe_by(bytes, &|timestamp| self.time(timestamp)))
            }
            Tree::Bytes(bytes) => Tree::Text(format!("\"{}\"", bytes.escape_ascii())),
            Tree::Null => Tree::Null,
        }
    }

    fn number(&self, name: &str, number: i64) -> Tree {
        let word = match name {
            name if BROKERS.contains(&name) && self.brokers.contains(&number) => "<broker>",
            name if TIMES.contains(&name) && number > CLOCK_MS_MIN => "<time>",
            name if SIZES.contains(&name) && number >= 0 => "<size>",
            "Port" if self.ports.contains(&number) => "<port>",
            "LeaderEpoch" if self.leader_epochs.contains(&number) => "<leader epoch>",
            "ProducerId" if number >= 0 => "<producer>",
            "SessionId" if number > 0 => "<session>",
            "SubscriptionId" if number != 0 => "<subscription>",
            "FinalizedFeaturesEpoch" if number >= 0 => "<epoch>",
            _ => return Tree::Number(number),
        };
        Tree::Text(word.to_owned())
    }

    /// The time of a record: a distance, or that of the server's clock while it was asked.
    fn time(&self, timestamp: i64) -> String {
        match timestamp.saturating_sub(self.now_ms) {
            _ if timestamp == -1 => "never".to_owned(),
            OF_CLOCK_MS_MIN..=OF_CLOCK_MS_MAX => "<time>".to_owned(),
            distance => distance.to_string(),
        }
    }

    fn id(&self, text: &str) -> String {
        if text == Uuid::ZERO.to_string() {
            return "<no id>".to_owned();
        }
        let name = self.topics.get(text).map(|name| format!("<id of {name}>"));
        name.unwrap_or_else(|| "<id>".to_owned())
    }

    /// The keys of share groups hold ids.
    fn without_ids(&self, text: &str) -> String {
        let named = |text: String, (id, name): (&String, &String)| text.replace(id, name);
        self.topics.iter().fold(text.to_owned(), named)
    }

    fn text(&self, field: &Field, text: &str) -> String {
        match field.name {
            _ if field.entity == Some(Entity::Explanation) && !text.is_empty() => "<text>".into(),
            "ClusterId" if text == self.cluster => "<cluster>".to_owned(),
            "LogDir" if !text.is_empty() => "<directory>".to_owned(),
            "ResourceName" if self.brokers.iter().any(|broker| text == broker.to_string()) => {
                "<broker>".to_owned()
            }
            "Key" => self.without_ids(text),
            _ if !self.cluster.is_empty() && text == self.cluster => "<cluster>".to_owned(),
            _ => {
                let address = |port: &i64| format!("127.0.0.1:{port}");
                let without = |text: String, port| text.replace(&address(port), "<address>");
                self.ports.iter().fold(without_random_end(text), without)
            }
        }
    }
}

fn is_id(kind: Kind) -> bool {
    match kind {
        Kind::Uuid => true,
        Kind::Array(element) => is_id(*element),
        _ => false,
    }
}

/// Members' names end with a random id in Kafka's hexadecimal form.
fn without_random_end(text: &str) -> String {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<_> = text.rsplitn(6, '-').collect();
    let is_random = parts.len() >= LENGTHS.len()
        && parts
            .iter()
            .zip(LENGTHS.iter().rev())
            .all(|(part, length)| part.len() == *length && is_hex(part));
    let kept = text.len().checked_sub(36).filter(|_| is_random);
    kept.map_or_else(|| text.to_owned(), |kept| format!("{}<random>", &text[..kept]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_random_end_of_a_member_goes_and_nothing_else() {
        let member = "differential-0a1b2c3d-0000-1111-2222-333344445555";
        assert_eq!(without_random_end(member), "differential-<random>");
        assert_eq!(without_random_end(&member[13..]), "<random>");
        for other in ["a", "a-b-c-d-e-f", "differential-0a1b2c3x-0000-1111-2222-333344445555"] {
            assert_eq!(without_random_end(other), other);
        }
    }

    #[test]
    fn only_what_the_server_itself_named_is_replaced() {
        let known = Known { brokers: vec![1], ports: vec![9092], ..Known::default() };
        let word = |word: &str| Tree::Text(word.to_owned());
        assert_eq!(known.number("LeaderId", 1), word("<broker>"));
        assert_eq!(known.number("LeaderId", -1), Tree::Number(-1));
        assert_eq!(known.number("PartitionIndex", 1), Tree::Number(1));
        assert_eq!(known.number("Port", 9093), Tree::Number(9093));
        assert_eq!(known.number("LogAppendTimeMs", -1), Tree::Number(-1));
    }
}
