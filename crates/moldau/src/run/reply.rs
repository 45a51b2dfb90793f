//! What handlers answer.

use std::time::Duration;

use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::document::{Document, Form, Part};

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub(crate) struct Reply {
    /// Number of the request.
    pub(crate) id: u64,
    pub(crate) outcome: Outcome,
}

/// What a handler says of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    /// It is done once these records are stored.
    Done(Vec<Produced>),
    /// It failed.
    Refused(Refusal),
}

/// Why a request failed, and what becomes of it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) error: String,
    pub(crate) retry: Retrying,
    /// Places of the records of a batch that failed; empty for all.
    pub(crate) failed: Vec<usize>,
}

/// Whether a further attempt may help.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Retrying {
    /// After the pause of the route.
    #[default]
    Usual,
    /// After this pause.
    After(Duration),
    Never,
}

/// A record to be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Produced {
    pub(crate) topic: String,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

/// The first document that a process writes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hello {
    /// Version of the protocol.
    moldau: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    id: Option<u64>,
    #[serde(default)]
    ok: bool,
    error: Option<String>,
    retry: Option<bool>,
    retry_after_ms: Option<u64>,
    #[serde(default)]
    failed: Vec<usize>,
    #[serde(default)]
    produce: Vec<ProducedKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProducedKeys {
    topic: String,
    key: Option<Box<RawValue>>,
    value: Option<Box<RawValue>>,
    #[serde(default)]
    headers: Vec<(String, Option<Box<RawValue>>)>,
}

impl Reply {
    /// Reads the reply of a process.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn parse(document: Document, form: Form) -> Result<Self, String> {
        let keys = keys(&document.json)?;
        let id = keys.id.ok_or("without an id")?;
        let outcome = keys.outcome(form, document.payloads)?;
        Ok(Self { id, outcome })
    }
}

impl Outcome {
    /// Reads the body of an HTTP response, whose status says whether the request is done.
    ///
    /// # Errors
    /// Why it is not a reply.
    pub(crate) fn parse_body(body: &[u8], form: Form, is_success: bool) -> Result<Self, String> {
        let mut keys = keys(body)?;
        keys.ok |= is_success && keys.error.is_none();
        keys.outcome(form, Bytes::new())
    }
}

impl Keys {
    fn outcome(self, form: Form, payloads: Bytes) -> Result<Outcome, String> {
        match (self.ok, self.error) {
            (true, None) => {
                let mut payloads = payloads;
                let produced = self.produce.into_iter();
                let produced: Result<Vec<_>, String> =
                    produced.map(|it| it.produced(form, &mut payloads)).collect();
                let produced = produced?;
                if payloads.has_remaining() {
                    return Err(format!("with {} bytes too many", payloads.remaining()));
                }
                Ok(Outcome::Done(produced))
            }
            (false, Some(error)) => {
                let retry = match (self.retry, self.retry_after_ms) {
                    (Some(false), None) => Retrying::Never,
                    (Some(false), Some(_)) => {
                        return Err("with retry_after_ms, but retry is false".to_owned());
                    }
                    (_, Some(pause)) => Retrying::After(Duration::from_millis(pause)),
                    (_, None) => Retrying::Usual,
                };
                Ok(Outcome::Refused(Refusal { error, retry, failed: self.failed }))
            }
            (true, Some(_)) => Err("that is ok and has an error".to_owned()),
            (false, None) => Err("that is neither ok nor has an error".to_owned()),
        }
    }
}

impl ProducedKeys {
    fn produced(self, form: Form, payloads: &mut Bytes) -> Result<Produced, String> {
        let mut take = |part, what: &str, raw: Option<Box<RawValue>>| {
            let decoded = raw.map(|raw| payload(&raw, form, part, payloads)).transpose();
            decoded.map_err(|error| format!("with a record whose {what} {error}"))
        };
        let key = take(Part::Key, "key", self.key)?;
        let value = take(Part::Value, "value", self.value)?;
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, raw) in self.headers {
            headers.push((name, take(Part::Header, "header", raw)?));
        }
        Ok(Produced { topic: self.topic, key, value, headers })
    }
}

/// Checks the first document that a process writes.
///
/// # Errors
/// It is no hello, or one of another version.
pub(crate) fn check_hello(document: &Document) -> Result<(), String> {
    match serde_json::from_slice::<Hello>(&document.json) {
        Ok(Hello { moldau: VERSION }) => Ok(()),
        Ok(Hello { moldau }) => Err(format!("speaks version {moldau} of the protocol, not 1")),
        Err(_) => Err(format!(
            "wrote {} before {{\"moldau\":1}}; stdout is for replies, stderr for messages",
            shown(&document.json)
        )),
    }
}

/// The start of a document, for messages.
pub(crate) fn shown(json: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(json).chars().take(SHOWN_CHARS_MAX).collect();
    format!("{text:?}")
}

fn keys(json: &[u8]) -> Result<Keys, String> {
    serde_json::from_slice(json).map_err(|error| format!("that is not valid: {error}"))
}

fn payload(
    raw: &RawValue,
    form: Form,
    part: Part,
    payloads: &mut Bytes,
) -> Result<Vec<u8>, String> {
    match form.encoding(part) {
        Some(encoding) => encoding.decode(raw),
        None => {
            let length = raw.get().parse::<usize>().map_err(|_| "is not a length")?;
            if length > payloads.len() {
                return Err(format!("is {length} bytes, of which {} follow", payloads.len()));
            }
            Ok(payloads.split_to(length).to_vec())
        }
    }
}

/// Version of the protocol between this process and its handlers.
pub(crate) const VERSION: u32 = 1;

/// Characters of a wrong document in messages.
const SHOWN_CHARS_MAX: usize = 120;

#[cfg(test)]
mod tests {
    use super::super::document::Encoding;
    use super::*;

    const TEXT: Form =
        Form::Values { key: Encoding::Text, value: Encoding::Text, headers: Encoding::Text };
    const JSON: Form =
        Form::Values { key: Encoding::Base64, value: Encoding::Json, headers: Encoding::Text };

    fn parse(json: &str, payloads: &[u8], form: Form) -> Result<Reply, String> {
        let json = Bytes::copy_from_slice(json.as_bytes());
        Reply::parse(Document { json, payloads: Bytes::copy_from_slice(payloads) }, form)
    }

    fn refusal(json: &str) -> Refusal {
        match parse(json, b"", TEXT).unwrap().outcome {
            Outcome::Refused(refusal) => refusal,
            Outcome::Done(_) => panic!("{json} is done"),
        }
    }

    #[test]
    fn replies_say_what_becomes_of_a_request() {
        let done = Reply { id: 7, outcome: Outcome::Done(Vec::new()) };
        assert_eq!(parse(r#"{"id":7,"ok":true}"#, b"", TEXT), Ok(done));
        let usual = refusal(r#"{"id":7,"error":"busy"}"#);
        assert_eq!((usual.error.as_str(), usual.retry), ("busy", Retrying::Usual));
        assert_eq!(refusal(r#"{"id":7,"error":"","retry":false}"#).retry, Retrying::Never);
        let later = refusal(r#"{"id":7,"error":"","retry_after_ms":250}"#);
        assert_eq!(later.retry, Retrying::After(Duration::from_millis(250)));
        assert_eq!(refusal(r#"{"id":7,"error":"","failed":[0,2]}"#).failed, [0, 2]);
    }

    #[test]
    fn wrong_replies_are_refused_with_the_reason() {
        for (json, reason) in [
            ("no", "expected"),
            (r#"{"ok":true}"#, "without an id"),
            (r#"{"id":1}"#, "neither ok nor has an error"),
            (r#"{"id":1,"ok":false}"#, "neither ok nor has an error"),
            (r#"{"id":1,"ok":true,"error":"e"}"#, "is ok and has an error"),
            (r#"{"id":1,"error":"e","retry_after":1}"#, "unknown field `retry_after`"),
            (r#"{"id":1,"error":"e","retry":false,"retry_after_ms":1}"#, "retry is false"),
            (r#"{"id":-1,"ok":true}"#, "invalid value"),
            (r#"{"id":1,"ok":true,"produce":[{"value":"v"}]}"#, "missing field `topic`"),
            (r#"{"id":1,"ok":true,"produce":[{"topic":"t","key":1}]}"#, "key is not a string"),
        ] {
            let problem = parse(json, b"", TEXT).unwrap_err();
            assert!(problem.contains(reason), "{json}: {problem}");
        }
    }

    #[test]
    fn produced_payloads_have_the_form_of_the_route() {
        let json = r#"{"id":1,"ok":true,"produce":[{"topic":"t","key":"a2V5",
            "value":{"b":1, "a":123456789012345678901234567890},
            "headers":[["h","x"],["n",null]]}]}"#;
        let Outcome::Done(produced) = parse(json, b"", JSON).unwrap().outcome else { panic!() };
        assert_eq!(produced[0].key.as_deref(), Some(b"key".as_slice()));
        let value = br#"{"b":1, "a":123456789012345678901234567890}"#;
        assert_eq!(produced[0].value.as_deref(), Some(value.as_slice()));
        let headers = [("h".to_owned(), Some(b"x".to_vec())), ("n".to_owned(), None)];
        assert_eq!(produced[0].headers, headers);
    }

    #[test]
    fn produced_bytes_follow_the_document() {
        let json =
            r#"{"id":1,"ok":true,"produce":[{"topic":"t","key":1,"value":2},{"topic":"u"}]}"#;
        let Outcome::Done(produced) = parse(json, b"kvv", Form::Bytes).unwrap().outcome else {
            panic!()
        };
        assert_eq!(produced[0].key.as_deref(), Some(b"k".as_slice()));
        assert_eq!(produced[0].value.as_deref(), Some(b"vv".as_slice()));
        assert_eq!((&produced[1].key, &produced[1].value), (&None, &None));
        let short = parse(json, b"kv", Form::Bytes).unwrap_err();
        assert!(short.contains("value is 2 bytes, of which 1 follow"), "{short}");
        let long = parse(json, b"kvv!", Form::Bytes).unwrap_err();
        assert!(long.contains("1 bytes too many"), "{long}");
    }

    #[test]
    fn hello_of_another_version_or_none_is_refused() {
        let check = |json: &'static str| {
            check_hello(&Document { json: json.into(), payloads: Bytes::new() })
        };
        assert_eq!(check(r#"{"moldau":1}"#), Ok(()));
        assert!(check(r#"{"moldau":2}"#).unwrap_err().contains("version 2"));
        assert!(check("ready").unwrap_err().contains("wrote \"ready\" before"));
    }
}
