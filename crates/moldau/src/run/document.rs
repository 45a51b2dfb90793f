//! The document of a request: one record or a batch, as JSON.
//!
//! A payload is a key, a value, or the value of a header. In the form of bytes, the document has
//! the length of each payload in its place, and the bytes follow the document in the order of
//! their lengths.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use moldau_consumer::Message;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// How the bytes of a payload stand in a document.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Encoding {
    /// A string; other bytes than UTF-8 cannot be handled.
    #[default]
    Text,
    /// A JSON value as part of the document.
    Json,
    /// A string in base64.
    Base64,
}

/// How payloads stand in documents, and in replies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// As values of the document.
    Values { key: Encoding, value: Encoding, headers: Encoding },
    /// As bytes behind the document.
    Bytes,
}

/// Which payload of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Key,
    Value,
    Header,
}

/// A request as it is sent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Document {
    /// The JSON document, on one line.
    pub(crate) json: Bytes,
    /// The payloads in [`Form::Bytes`].
    pub(crate) payloads: Bytes,
}

/// A record that cannot be put into a document.
#[derive(Debug, thiserror::Error)]
#[error("the {what} at offset {offset} {problem}")]
pub(crate) struct Unencodable {
    what: &'static str,
    /// Offset of the record.
    pub(crate) offset: i64,
    problem: String,
}

/// A request as it is put together.
struct Writer {
    form: Form,
    json: Vec<u8>,
    payloads: Vec<u8>,
}

impl Form {
    /// The document of one record, with its number and that of the attempt.
    ///
    /// # Errors
    /// A payload does not have the form.
    pub(crate) fn record(
        self,
        id: u64,
        attempt: u32,
        message: &Message,
    ) -> Result<Document, Unencodable> {
        let mut writer = Writer { form: self, json: Vec::new(), payloads: Vec::new() };
        writer.number("{\"id\":", id);
        writer.json.push(b',');
        writer.record(message)?;
        writer.number(",\"attempt\":", attempt);
        writer.json.push(b'}');
        Ok(writer.end())
    }

    /// The document of a batch.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) fn batch(
        self,
        id: u64,
        attempt: u32,
        messages: &[Message],
    ) -> Result<Document, Unencodable> {
        let mut writer = Writer { form: self, json: Vec::new(), payloads: Vec::new() };
        writer.number("{\"id\":", id);
        writer.number(",\"attempt\":", attempt);
        writer.json.extend_from_slice(b",\"records\":[");
        for (index, message) in messages.iter().enumerate() {
            writer.json.extend_from_slice(if index == 0 { b"{" } else { b",{" });
            writer.record(message)?;
            writer.json.push(b'}');
        }
        writer.json.extend_from_slice(b"]}");
        Ok(writer.end())
    }

    /// The encoding of a payload; `None` for its length.
    pub(crate) fn encoding(self, part: Part) -> Option<Encoding> {
        match (self, part) {
            (Self::Values { key, .. }, Part::Key) => Some(key),
            (Self::Values { value, .. }, Part::Value) => Some(value),
            (Self::Values { headers, .. }, Part::Header) => Some(headers),
            (Self::Bytes, _) => None,
        }
    }
}

impl Encoding {
    /// The bytes that `raw` stands for.
    ///
    /// # Errors
    /// It is no string, or not in base64.
    pub(crate) fn decode(self, raw: &RawValue) -> Result<Vec<u8>, String> {
        let text = || serde_json::from_str::<String>(raw.get()).map_err(|_| "is not a string");
        match self {
            Self::Text => Ok(text()?.into_bytes()),
            Self::Json => Ok(raw.get().as_bytes().to_vec()),
            Self::Base64 => STANDARD.decode(text()?).map_err(|_| "is not in base64".to_owned()),
        }
    }
}

impl Writer {
    fn end(self) -> Document {
        Document { json: self.json.into(), payloads: self.payloads.into() }
    }

    fn record(&mut self, message: &Message) -> Result<(), Unencodable> {
        self.json.extend_from_slice(b"\"topic\":");
        self.text(message.topic());
        self.number(",\"partition\":", message.partition());
        self.number(",\"offset\":", message.offset());
        self.number(",\"timestamp\":", message.timestamp());
        let of_record = |what, problem| Unencodable { what, offset: message.offset(), problem };
        self.json.extend_from_slice(b",\"key\":");
        self.payload(Part::Key, message.key()).map_err(|it| of_record("key", it))?;
        self.json.extend_from_slice(b",\"value\":");
        self.payload(Part::Value, message.value()).map_err(|it| of_record("value", it))?;
        self.json.extend_from_slice(b",\"headers\":[");
        for (index, header) in message.headers().enumerate() {
            self.json.extend_from_slice(if index == 0 { b"[" } else { b",[" });
            let name = std::str::from_utf8(header.key);
            let name = name.map_err(|_| of_record("name of a header", NOT_TEXT.to_owned()))?;
            self.text(name);
            self.json.push(b',');
            let written = self.payload(Part::Header, header.value);
            written.map_err(|it| of_record("value of a header", it))?;
            self.json.push(b']');
        }
        self.json.push(b']');
        Ok(())
    }

    fn payload(&mut self, part: Part, bytes: Option<&[u8]>) -> Result<(), String> {
        let Some(bytes) = bytes else {
            self.json.extend_from_slice(b"null");
            return Ok(());
        };
        match self.form.encoding(part) {
            None => {
                self.number("", bytes.len());
                self.payloads.extend_from_slice(bytes);
            }
            Some(Encoding::Text) => {
                self.text(std::str::from_utf8(bytes).map_err(|_| NOT_TEXT.to_owned())?);
            }
            Some(Encoding::Json) => {
                let checked = serde_json::from_slice::<IgnoredAny>(bytes);
                checked.map_err(|error| format!("is not JSON: {error}"))?;
                // A line break in valid JSON stands between tokens.
                let is_break = |byte: u8| matches!(byte, b'\n' | b'\r');
                let on_line = bytes.iter().map(|byte| if is_break(*byte) { b' ' } else { *byte });
                self.json.extend(on_line);
            }
            Some(Encoding::Base64) => self.text(&STANDARD.encode(bytes)),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        serde_json::to_writer(&mut self.json, text).expect("a vector takes all");
    }

    fn number(&mut self, before: &str, number: impl std::fmt::Display) {
        write!(self.json, "{before}{number}").expect("a vector takes all");
    }
}

const NOT_TEXT: &str = "is not UTF-8";
