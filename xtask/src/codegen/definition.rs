//! The message definitions as Kafka's JSON has them.

use anyhow::Result;
use serde::Deserialize;

/// One message definition.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Definition {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: MessageKind,
    pub(crate) api_key: Option<i16>,
    pub(crate) valid_versions: String,
    #[serde(default = "none")]
    pub(crate) flexible_versions: String,
    #[serde(default)]
    pub(crate) latest_version_unstable: bool,
    #[serde(default)]
    pub(crate) fields: Vec<Field>,
    #[serde(default)]
    pub(crate) common_structs: Vec<CommonStruct>,
}

/// What a message is for.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MessageKind {
    Request,
    Response,
    Header,
    Data,
}

/// A struct that several fields of one message share.
#[derive(Deserialize)]
pub(crate) struct CommonStruct {
    pub(crate) name: String,
    pub(crate) fields: Vec<Field>,
}

/// One field of a message or of a struct in it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Field {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) versions: String,
    #[serde(default = "none")]
    pub(crate) nullable_versions: String,
    pub(crate) flexible_versions: Option<String>,
    #[serde(default = "none")]
    pub(crate) tagged_versions: String,
    pub(crate) tag: Option<u32>,
    #[serde(default)]
    pub(crate) ignorable: bool,
    pub(crate) default: Option<serde_json::Value>,
    pub(crate) entity_type: Option<String>,
    #[serde(default)]
    pub(crate) fields: Vec<Self>,
}

fn none() -> String {
    "none".to_owned()
}

/// Reads a definition: JSON in which whole lines may be `//` comments.
pub(crate) fn parse(text: &str) -> Result<Definition> {
    let json: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .flat_map(|line| [line, "\n"])
        .collect();
    Ok(serde_json::from_str(&json)?)
}
