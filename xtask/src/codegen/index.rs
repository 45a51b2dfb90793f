//! Writes the files that cover all messages: the module index and the table of API keys.

use anyhow::{Context, Result};

use super::definition::MessageKind;
use super::names;
use super::resolve::Message;

/// `mod.rs`.
pub(crate) fn modules(messages: &[Message]) -> String {
    let mut out = String::from(
        "//! Kafka's messages, written by `cargo xtask codegen` from the definitions in\n\
         //! `kafka-clients`; not to be edited.\n\n\
         #![expect(unused_variables, reason = \"not every message looks at its version\")]\n\
         #![expect(clippy::field_reassign_with_default, \
         reason = \"fields depend on the version\")]\n\n\
         use crate::api_key::ApiKey;\nuse crate::message::Layout;\n\n\
         /// What every message needs.\n\
         mod prelude {\n\
         pub(super) use bytes::Bytes;\n\n\
         pub(super) use crate::api_key::ApiKey;\n\
         pub(super) use crate::error::{DecodeError, EncodeError};\n\
         pub(super) use crate::layout::{Entity, Field, Kind, Structure};\n\
         pub(super) use crate::message::{Message, Request, Response};\n\
         #[cfg(test)]\n\
         pub(super) use crate::random::{Generator, Random};\n\
         pub(super) use crate::reader::{FromWire, Reader};\n\
         pub(super) use crate::tagged::RawTaggedField;\n\
         pub(super) use crate::uuid::Uuid;\n\
         pub(super) use crate::versions::VersionRange;\n\
         pub(super) use crate::writer::{ToWire, Writer};\n\
         }\n\n",
    );
    for message in messages {
        out += &format!("pub mod {};\n", message.module);
    }
    out += "\n";
    for message in messages {
        out += &format!("pub use {}::{};\n", message.module, message.name);
    }
    out += &layouts(messages);
    out += "\n/// Calls a macro with the path of every message's type: for tests and fuzz targets.";
    out += "\n#[macro_export]\nmacro_rules! with_every_message {\n($callback:ident) => {\n\
            $callback! {\n";
    for message in messages {
        out += &format!("$crate::messages::{},\n", message.name);
    }
    out += "}\n};\n}\n";
    out += "\n/// Calls a macro with the name, request and response of every API: for tests.\n\
            #[cfg(test)]\nmacro_rules! with_every_api {\n($callback:ident) => {\n$callback! {\n";
    for message in messages.iter().filter(|message| message.kind == MessageKind::Request) {
        let api = names::api(&message.name);
        out += &format!("{api} {api}Request {api}Response,\n");
    }
    out + "}\n};\n}\n#[cfg(test)]\npub(crate) use with_every_api;\n"
}

/// The function that gives the layouts of an API's messages.
fn layouts(messages: &[Message]) -> String {
    let mut out = String::from(
        "\n/// The layouts of an API's request and response.\n\
         pub(crate) const fn layouts(api: ApiKey) -> (Layout, Layout) {\nmatch api {\n",
    );
    for message in messages.iter().filter(|message| message.kind == MessageKind::Request) {
        let api = names::api(&message.name);
        out += &format!(
            "ApiKey::{api} => (Layout::of::<{api}Request>(), Layout::of::<{api}Response>()),\n"
        );
    }
    out + "}\n}\n"
}

/// The table of API keys. It names no message, since the messages name their keys.
pub(crate) fn api_keys(messages: &[Message]) -> Result<String> {
    let mut requests: Vec<_> =
        messages.iter().filter(|message| message.kind == MessageKind::Request).collect();
    requests.sort_by_key(|message| message.api_key);
    let mut variants = String::new();
    let mut all = String::new();
    let mut rows = String::new();
    let mut keys = String::new();
    for request in requests {
        let api = names::api(&request.name);
        let key = request.api_key.with_context(|| format!("{} has no key", request.name))?;
        let response = messages
            .iter()
            .find(|message| message.name == format!("{api}Response"))
            .with_context(|| format!("{api} has no response"))?;
        variants += &format!("/// `{api}`, key {key}.\n{api} = {key},\n");
        all += &format!("Self::{api},\n");
        keys += &format!("{key} => Self::{api},\n");
        let flexible_from = [request, response].map(|message| message.flexible_from());
        rows += &format!(
            "Self::{api} => ApiRow {{\nname: {api:?},\nversions: VersionRange::new({}, {}),\n\
             request_flexible_from: {},\nresponse_flexible_from: {},\n}},\n",
            request.versions.first, request.versions.last, flexible_from[0], flexible_from[1]
        );
    }
    Ok(format!(
        "//! The table of API keys, written by `cargo xtask codegen`; not to be edited.\n\n\
         use super::ApiRow;\nuse crate::versions::VersionRange;\n\n\
         /// The kind of a request, as its header's first two bytes give it.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]\n\
         #[repr(i16)]\npub enum ApiKey {{\n{variants}}}\n\n\
         impl ApiKey {{\n\
         /// Every API, by ascending key.\n\
         pub const ALL: &'static [Self] = &[\n{all}];\n\n\
         /// The API with this key.\n\
         #[must_use]\n\
         pub const fn from_key(key: i16) -> Option<Self> {{\n\
         Some(match key {{\n{keys}_ => return None,\n}})\n}}\n\n\
         pub(super) const fn row(self) -> ApiRow {{\nmatch self {{\n{rows}}}\n}}\n}}\n"
    ))
}
