//! The AsyncAPI 3.0 document of an app: the topics that it reads, as which group, and the topics
//! to which it sends dead letters.
//!
//! Names of topics are legal keys of the document as they are. A route of a pattern has a channel
//! `pattern-N` without an address, and with the pattern as `x-topic-pattern`.

use serde_json::{Map, Value, json};

use crate::layer::header;
use crate::source::Source;

/// What the document says of a route.
pub(crate) struct Described<'a> {
    pub(crate) source: &'a Source,
    pub(crate) dead_letter_topics: &'a [String],
    #[cfg(feature = "schemars")]
    pub(crate) payload: Option<PayloadSchema>,
}

/// Makes the schema of a payload, with the types that it refers to.
#[cfg(feature = "schemars")]
pub(crate) type PayloadSchema = fn(&mut schemars::SchemaGenerator) -> schemars::Schema;

/// The document. `secured` tells of the use of TLS.
pub(crate) fn document(
    group: &str,
    version: &str,
    bootstrap: &[String],
    is_secured: bool,
    routes: &[Described<'_>],
) -> Value {
    let protocol = if is_secured { "kafka-secure" } else { "kafka" };
    let servers = bootstrap.iter().enumerate().map(|(number, host)| {
        (format!("bootstrap-{number}"), json!({ "host": host, "protocol": protocol }))
    });
    let mut parts = Parts::default();
    let binding = json!({
        "kafka": { "groupId": { "type": "string", "enum": [group] }, "bindingVersion": "0.5.0" },
    });
    let mut patterns = 0;
    for route in routes {
        let payload = parts.payload(route);
        // A pattern is no legal key.
        let name = match route.source {
            Source::Matching(_) => format!("pattern-{patterns}"),
            named => named.label().to_string(),
        };
        parts.message(&name, &message(&name, payload));
        if let Source::Matching(pattern) = route.source {
            patterns += 1;
            parts.set_pattern(&name, &pattern.text);
        }
        let mut operation = parts.operation("receive", &name);
        operation["bindings"] = binding.clone();
        parts.operations.insert(format!("receive-{name}"), operation);
        for dead in route.dead_letter_topics {
            // Routes may share the topic; it then holds what any of them takes.
            if !parts.channels.contains_key(dead) {
                let mut letter = message(dead, None);
                letter["headers"] = dead_letter_headers();
                letter["summary"] = json!("A record that could not be handled, as it was.");
                parts.message(dead, &letter);
            }
            let operation = parts.operation("send", dead);
            parts.operations.insert(format!("send-{name}-{dead}"), operation);
        }
    }
    json!({
        "asyncapi": "3.0.0",
        "info": { "title": group, "version": version },
        "servers": servers.collect::<Map<_, _>>(),
        "channels": parts.channels,
        "operations": parts.operations,
        "components": { "messages": parts.messages, "schemas": parts.schemas() },
    })
}

#[derive(Default)]
struct Parts {
    channels: Map<String, Value>,
    operations: Map<String, Value>,
    messages: Map<String, Value>,
    #[cfg(feature = "schemars")]
    generator: Generator,
}

impl Parts {
    /// A channel with one message.
    fn message(&mut self, topic: &str, message: &Value) {
        self.messages.insert(topic.to_owned(), message.clone());
        let channel = json!({
            "address": topic,
            "messages": { topic: { "$ref": format!("#/components/messages/{topic}") } },
        });
        self.channels.insert(topic.to_owned(), channel);
    }

    /// A channel for all topics that match: which these are is not known beforehand.
    fn set_pattern(&mut self, channel: &str, pattern: &str) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel["address"] = Value::Null;
            channel["x-topic-pattern"] = json!(pattern);
        }
    }

    fn operation(&self, action: &str, topic: &str) -> Value {
        json!({
            "action": action,
            "channel": { "$ref": format!("#/channels/{topic}") },
            "messages": [{ "$ref": format!("#/channels/{topic}/messages/{topic}") }],
        })
    }

    #[cfg(not(feature = "schemars"))]
    #[expect(clippy::unused_self, reason = "with the feature, it collects schemas")]
    fn payload(&self, _: &Described<'_>) -> Option<Value> {
        None
    }

    #[cfg(feature = "schemars")]
    fn payload(&mut self, route: &Described<'_>) -> Option<Value> {
        route.payload.map(|schema| schema(&mut self.generator.0).to_value())
    }

    #[cfg(not(feature = "schemars"))]
    #[expect(clippy::unused_self, reason = "with the feature, it has schemas")]
    fn schemas(&self) -> Value {
        json!({})
    }

    #[cfg(feature = "schemars")]
    fn schemas(&self) -> Value {
        json!(self.generator.0.definitions())
    }
}

/// Collects the types of all payloads, so that two of the same name get two names.
#[cfg(feature = "schemars")]
struct Generator(schemars::SchemaGenerator);

#[cfg(feature = "schemars")]
impl Default for Generator {
    fn default() -> Self {
        // What AsyncAPI understands without a further name of a format.
        let settings = schemars::generate::SchemaSettings::draft07().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Self(settings.into_generator())
    }
}

fn message(topic: &str, payload: Option<Value>) -> Value {
    let mut message = json!({ "name": topic });
    if let Some(payload) = payload {
        message["contentType"] = json!("application/json");
        message["payload"] = payload;
    }
    message
}

fn dead_letter_headers() -> Value {
    let headers = [
        (header::TOPIC, "Topic that the record was read from"),
        (header::PARTITION, "Its partition"),
        (header::OFFSET, "Its offset"),
        (header::TIMESTAMP, "Its timestamp in ms since 1970"),
        (header::ATTEMPTS, "How often its handling was tried"),
        (header::KIND, "The kind of the failure"),
        (header::CAUSE, "The failure in words"),
    ];
    let properties = headers
        .map(|(name, about)| (name.to_owned(), json!({ "type": "string", "description": about })));
    json!({ "type": "object", "properties": Map::from_iter(properties) })
}
