//! The rule of a topic, ready to be asked about records.

use std::borrow::Cow;

use jsonschema::{PatternOptions, Validator};
use moldau_records::{RawRecord, read_header};

use super::{Content, FieldRule, NAME, ValidationRule};
use crate::error::Error;
use crate::json::{self, Check};
use crate::topics::TopicPatterns;

/// What is wrong with a record, for its producer.
pub(super) type Wrong = Cow<'static, str>;

#[derive(Debug)]
pub(super) struct Rule {
    pub(super) topics: TopicPatterns,
    key: Field,
    value: Field,
    record_bytes_max: usize,
    required_headers: Vec<String>,
}

/// What a key or a value must be like.
#[derive(Debug)]
struct Field {
    name: &'static str,
    allow_null: bool,
    allow_empty: bool,
    bytes_max: usize,
    schema_ids: Option<Vec<u32>>,
    content: Checked,
}

#[derive(Debug)]
enum Checked {
    Any,
    Json { unique_keys: bool },
    Schema(Box<Validator>),
}

impl Rule {
    pub(super) fn new(rule: ValidationRule) -> Result<Self, Error> {
        Ok(Self {
            topics: TopicPatterns::parse(NAME, &rule.topics)?,
            key: Field::new("key", rule.key)?,
            value: Field::new("value", rule.value)?,
            record_bytes_max: rule.record_bytes_max.unwrap_or(usize::MAX),
            required_headers: rule.required_headers,
        })
    }

    /// Finds the first thing that is wrong with a record whose headers can be read.
    pub(super) fn check(&self, record: &RawRecord<'_>) -> Result<(), Wrong> {
        let bytes = record.bytes().len();
        if bytes > self.record_bytes_max {
            let max = self.record_bytes_max;
            return Err(format!("the record has {bytes} bytes, {max} are allowed").into());
        }
        self.key.check(record.key())?;
        self.value.check(record.value())?;
        let missing = self.required_headers.iter().find(|name| !has_header(record, name));
        match missing {
            Some(name) => Err(format!("the header `{name}` is missing").into()),
            None => Ok(()),
        }
    }
}

impl Field {
    fn new(name: &'static str, rule: FieldRule) -> Result<Self, Error> {
        let content = match rule.content {
            Content::Any => Checked::Any,
            Content::Json { unique_keys } => Checked::Json { unique_keys },
            Content::JsonSchema(schema) => Checked::Schema(Box::new(validator(name, &schema)?)),
        };
        Ok(Self {
            name,
            allow_null: rule.allow_null,
            allow_empty: rule.allow_empty,
            bytes_max: rule.bytes_max.unwrap_or(usize::MAX),
            schema_ids: rule.schema_ids,
            content,
        })
    }

    fn check(&self, field: Option<&[u8]>) -> Result<(), Wrong> {
        let name = self.name;
        let bytes = match field {
            None if self.allow_null => return Ok(()),
            None => return Err(format!("the {name} is null").into()),
            Some([]) if self.allow_empty => return Ok(()),
            Some([]) => return Err(format!("the {name} is empty").into()),
            Some(bytes) => bytes,
        };
        if bytes.len() > self.bytes_max {
            let (len, max) = (bytes.len(), self.bytes_max);
            return Err(format!("the {name} has {len} bytes, {max} are allowed").into());
        }
        let content = match &self.schema_ids {
            Some(ids) => self.behind_schema_id(bytes, ids)?,
            None => bytes,
        };
        match &self.content {
            Checked::Any => Ok(()),
            Checked::Json { unique_keys } => json::scan(content, (), &mut Check::new(*unique_keys))
                .map_err(|malformed| format!("the {name} is no JSON: {malformed}").into()),
            Checked::Schema(schema) => self.check_schema(content, schema),
        }
    }

    /// Checks and passes over the prefix of the wire format.
    fn behind_schema_id<'b>(&self, bytes: &'b [u8], ids: &[u32]) -> Result<&'b [u8], Wrong> {
        let name = self.name;
        let Some((&[0, a, b, c, d], content)) = bytes.split_first_chunk() else {
            return Err(format!("the {name} does not begin with the id of a schema").into());
        };
        let id = u32::from_be_bytes([a, b, c, d]);
        if ids.is_empty() || ids.contains(&id) {
            return Ok(content);
        }
        Err(format!("the {name} has schema {id}, which its topic does not allow").into())
    }

    /// What is said of a wrong value tells where and why, and nothing that it holds.
    fn check_schema(&self, content: &[u8], schema: &Validator) -> Result<(), Wrong> {
        let name = self.name;
        // Keys that stand twice would be checked by their last value only, whichever the consumer
        // takes.
        json::scan(content, (), &mut Check::new(true))
            .map_err(|malformed| format!("the {name} is no JSON: {malformed}"))?;
        let value = serde_json::from_slice(content)
            .map_err(|error| format!("the {name} is no JSON: {error}"))?;
        if schema.is_valid(&value) {
            return Ok(());
        }
        let errors = schema.iter_errors(&value).next();
        let reason = errors.map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "/".to_owned() } else { place };
            shortened(format!("at `{place}`: {}", error.masked()))
        });
        let reason = reason.unwrap_or_default();
        Err(format!("the {name} does not match its schema {reason}").into())
    }
}

fn validator(name: &str, schema: &str) -> Result<Validator, Error> {
    let wrong = |reason: String| Error::setting(NAME, format!("schema of the {name}: {reason}"));
    let schema = serde_json::from_str(schema).map_err(|error| wrong(error.to_string()))?;
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .offline()
        .build(&schema)
        .map_err(|error| wrong(error.to_string()))
}

fn has_header(record: &RawRecord<'_>, name: &str) -> bool {
    let mut headers = record.headers();
    (0..record.headers_count())
        .map_while(|_| read_header(&mut headers).ok())
        .any(|header| header.key == name.as_bytes())
}

/// Cuts a text where a schema or a key of the client made it long.
fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(REASON_CHARACTERS_MAX) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Limit in characters of the error for one record; an answer may name many records.
const REASON_CHARACTERS_MAX: usize = 200;
