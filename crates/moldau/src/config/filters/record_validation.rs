//! The settings of the filter `record_validation`.

use std::path::PathBuf;
use std::sync::Arc;

use moldau_filters::{
    Content, FieldRule, RecordValidation, RecordValidationSettings, ValidationRule,
};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::Sources;
use crate::config::problem::{At, Problem};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// The first that matches a topic is its rule.
    rules: Vec<At<RuleKeys>>,
}

/// What records of some topics must be like.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleKeys {
    /// Names of topics, or beginnings of names before a `*`.
    topics: Vec<String>,
    /// What keys must be like. Default: anything.
    #[serde(default)]
    key: FieldKeys,
    /// What values must be like. Default: anything.
    #[serde(default)]
    value: FieldKeys,
    /// Most bytes of a record, not compressed. Default: no limit.
    record_bytes_max: Option<usize>,
    /// Keys of headers that a record must have. Default: none.
    #[serde(default)]
    required_headers: Vec<String>,
}

/// What a key or a value must be like.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FieldKeys {
    /// Whether it may be null. Default `true`.
    allow_null: bool,
    /// Whether it may have no bytes. Default `true`.
    allow_empty: bool,
    /// Its most bytes. Default: no limit.
    bytes_max: Option<usize>,
    /// Ids of a schema registry; the value must begin with one of them. Default: it begins with
    /// none.
    schema_ids: Option<Vec<u32>>,
    /// What its bytes are. Default `any`.
    content: ContentKeys,
}

impl Default for FieldKeys {
    fn default() -> Self {
        let FieldRule { allow_null, allow_empty, bytes_max, schema_ids, .. } = FieldRule::default();
        Self { allow_null, allow_empty, bytes_max, schema_ids, content: ContentKeys::Any }
    }
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum ContentKeys {
    Any,
    Json {
        #[serde(default)]
        unique_keys: bool,
    },
    JsonSchemaFile(At<PathBuf>),
}

/// Makes the filter.
///
/// # Errors
/// At the rule that is at fault, or its schema.
pub(crate) fn filter(keys: Keys, sources: &mut Sources) -> Result<Arc<dyn Filter>, Problem> {
    let mut rules = Vec::new();
    for keys in &keys.rules {
        let rule = rule(&keys.value, sources)?;
        made(vec![rule.clone()]).map_err(|error| Problem::at(keys, error))?;
        rules.push(rule);
    }
    Ok(Arc::new(made(rules).expect("each rule by itself makes one")))
}

fn made(rules: Vec<ValidationRule>) -> Result<RecordValidation, moldau_filters::Error> {
    RecordValidation::new(RecordValidationSettings { rules })
}

fn rule(keys: &RuleKeys, sources: &mut Sources) -> Result<ValidationRule, Problem> {
    Ok(ValidationRule {
        topics: keys.topics.clone(),
        key: field(&keys.key, sources)?,
        value: field(&keys.value, sources)?,
        record_bytes_max: keys.record_bytes_max,
        required_headers: keys.required_headers.clone(),
    })
}

fn field(keys: &FieldKeys, sources: &mut Sources) -> Result<FieldRule, Problem> {
    let content = match &keys.content {
        ContentKeys::Any => Content::Any,
        ContentKeys::Json { unique_keys } => Content::Json { unique_keys: *unique_keys },
        ContentKeys::JsonSchemaFile(file) => schema(file, sources)?,
    };
    Ok(FieldRule {
        allow_null: keys.allow_null,
        allow_empty: keys.allow_empty,
        bytes_max: keys.bytes_max,
        schema_ids: keys.schema_ids.clone(),
        content,
    })
}

/// A schema of a file, compiled by itself so that a mistake is reported with the name of the file.
fn schema(file: &At<PathBuf>, sources: &mut Sources) -> Result<Content, Problem> {
    let content = Content::JsonSchema(sources.text(file)?.as_str().to_owned());
    let value = FieldRule { content: content.clone(), ..FieldRule::default() };
    let topics = vec!["*".to_owned()];
    let alone = made(vec![ValidationRule { topics, value, ..ValidationRule::default() }]);
    let path = file.value.display();
    alone.map_err(|error| Problem::at(file, format_args!("{path}: {error}")))?;
    Ok(content)
}
