//! Extracts the resources and results of requests from messages of any API.
//!
//! Only fields in the lists here are logged. No list has a field that holds content, a value of a
//! configuration, or a secret.

use std::collections::BTreeMap;

use moldau_protocol::names::{request_layout, response_layout};
use moldau_protocol::{Entity, ErrorCode, Field, Uuid};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::fields::{self, Visit};

/// What a request or an answer names: an object for each struct that names anything.
#[derive(Debug, Default, Serialize)]
pub(super) struct Named {
    pub(super) resources: Vec<Map<String, Value>>,
    /// How many more there were.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) left_out: usize,
}

/// How a request ended.
#[derive(Debug, Default, Serialize)]
pub(super) struct Outcome {
    /// How often the answer has each error code, by Kafka's name of it.
    pub(super) codes: BTreeMap<&'static str, u64>,
    /// What the answer says of parts that failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<Map<String, Value>>,
}

/// Resources of a request.
pub(super) fn of_request(request: &RequestFrame) -> Result<Named, FilterError> {
    let mut gathering = Gathering::default();
    let layout = request_layout(request.api_key());
    fields::visit(&layout, request.api_version(), request.body(), &mut gathering)?;
    gathering.end_all();
    Ok(gathering.named)
}

/// How a request ended.
pub(super) fn of_response(response: &ResponseFrame) -> Result<Outcome, FilterError> {
    let mut gathering = Gathering { is_response: true, ..Gathering::default() };
    let layout = response_layout(response.api_key());
    fields::visit(&layout, response.api_version(), response.body(), &mut gathering)?;
    gathering.end_all();
    Ok(Outcome { codes: gathering.codes, failed: gathering.named.resources })
}

/// The name of an error code on the wire.
pub(super) fn code_name(code: i64) -> &'static str {
    let code = i16::try_from(code).ok().and_then(|code| ErrorCode::try_from(code).ok());
    code.map_or("UNKNOWN", ErrorCode::name)
}

/// Longest text that is logged: clients choose its length.
pub(super) fn beginning(text: &str) -> &str {
    match text.char_indices().nth(TEXT_CHARACTERS_MAX) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

#[derive(Default)]
struct Gathering {
    is_response: bool,
    named: Named,
    codes: BTreeMap<&'static str, u64>,
    /// What each struct around the place at hand names so far, the message itself first.
    open: Vec<Map<String, Value>>,
}

impl Gathering {
    fn put(&mut self, name: &str, value: Value) {
        if self.open.is_empty() {
            self.open.push(Map::new());
        }
        let Some(object) = self.open.last_mut() else { return };
        match object.get_mut(name) {
            None => drop(object.insert(name.to_owned(), value)),
            Some(Value::Array(values)) if values.len() < NAMES_MAX => values.push(value),
            Some(Value::Array(_)) => {}
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }

    fn end(&mut self, object: Map<String, Value>) {
        // Only failed parts of an answer are logged. The codes show that the rest succeeded.
        let is_told = match self.is_response {
            true => object.contains_key(ERROR_CODE) && object.len() > 1,
            false => !object.is_empty(),
        };
        match is_told {
            true if self.named.resources.len() < NAMES_MAX => self.named.resources.push(object),
            true => self.named.left_out += 1,
            false => {}
        }
    }

    fn end_all(&mut self) {
        while let Some(object) = self.open.pop() {
            self.end(object);
        }
    }
}

impl Visit<'_> for Gathering {
    fn begin_element(&mut self) {
        if self.open.is_empty() {
            self.open.push(Map::new());
        }
        self.open.push(Map::new());
    }

    fn end_element(&mut self) {
        if let Some(object) = self.open.pop() {
            self.end(object);
        }
    }

    fn text(&mut self, field: &'static Field, text: &str) {
        let name = match field.entity {
            Some(Entity::TopicName) => "topic",
            Some(Entity::GroupId) => "group",
            Some(Entity::TransactionalId) => "transactional_id",
            Some(Entity::TopicId | Entity::Explanation) => return,
            None => match TEXTS.iter().find(|(of, _)| *of == field.name) {
                Some((_, name)) => name,
                None => return,
            },
        };
        self.put(name, Value::String(beginning(text).to_owned()));
    }

    fn uuid(&mut self, field: &'static Field, id: Uuid) {
        if field.entity == Some(Entity::TopicId) && id != Uuid::ZERO {
            self.put("topic_id", Value::String(id.to_string()));
        }
    }

    fn number(&mut self, field: &'static Field, _: usize, number: i64) {
        if field.name == "ErrorCode" && self.is_response {
            let code = code_name(number);
            *self.codes.entry(code).or_default() += 1;
            if number != 0 {
                self.put(ERROR_CODE, Value::String(code.to_owned()));
            }
        } else if let Some((_, name)) = NUMBERS.iter().find(|(of, _)| *of == field.name) {
            self.put(name, Value::from(number));
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

const ERROR_CODE: &str = "error_code";

/// Texts that are logged beside names of topics, groups and transactional ids.
const TEXTS: [(&str, &str); 15] = [
    ("Name", "name"),
    ("ResourceName", "resource_name"),
    ("ResourceNameFilter", "resource_name"),
    ("Principal", "principal"),
    ("PrincipalFilter", "principal"),
    ("PrincipalName", "principal_name"),
    ("PrincipalType", "principal_type"),
    ("Host", "host"),
    ("HostFilter", "host"),
    ("EntityType", "entity_type"),
    ("EntityName", "entity_name"),
    ("Key", "key"),
    ("MemberId", "member_id"),
    ("GroupInstanceId", "group_instance_id"),
    ("Mechanism", "mechanism"),
];

/// Numbers that are logged, with Kafka's meaning.
const NUMBERS: [(&str, &str); 11] = [
    ("ResourceType", "resource_type"),
    ("ResourceTypeFilter", "resource_type"),
    ("ResourcePatternType", "pattern_type"),
    ("PatternTypeFilter", "pattern_type"),
    ("Operation", "operation"),
    ("PermissionType", "permission_type"),
    ("ConfigOperation", "config_operation"),
    ("NumPartitions", "num_partitions"),
    ("ReplicationFactor", "replication_factor"),
    ("Count", "count"),
    ("Committed", "committed"),
];

/// Objects of a line, and names of one kind in an object: a request may name any number.
const NAMES_MAX: usize = 100;

/// Characters of a text that are logged: Kafka's limit for the name of a topic.
const TEXT_CHARACTERS_MAX: usize = 249;
