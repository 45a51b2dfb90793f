//! Messages as trees, by the layouts of the generated messages: requests are written from JSON,
//! responses are read into a [`Tree`] that keeps the field of each value.

use anyhow::{Context, Result, bail, ensure};
use bytes::BytesMut;
use moldau_protocol::{Field, Kind, Layout, Reader, Uuid, Writer};
use serde_json::Value;

/// A value of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Null,
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<Tree>),
    Struct(Vec<(&'static Field, Tree)>),
}

impl Tree {
    /// Every value of the fields with this name, wherever they stand.
    pub(super) fn all<'a>(&'a self, name: &str) -> Vec<&'a Self> {
        match self {
            Self::List(elements) => elements.iter().flat_map(|it| it.all(name)).collect(),
            Self::Struct(fields) => fields
                .iter()
                .flat_map(|(field, value)| match field.name == name {
                    true => vec![value],
                    false => value.all(name),
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The first number in a field with this name.
    pub(super) fn number(&self, name: &str) -> Result<i64> {
        match self.all(name).first() {
            Some(Self::Number(number)) => Ok(*number),
            other => bail!("{name} is {other:?} in {self:?}"),
        }
    }

    /// Every number in a field with this name.
    pub(super) fn numbers(&self, name: &str) -> Vec<i64> {
        let number =
            |value: &Self| if let Self::Number(number) = value { Some(*number) } else { None };
        self.all(name).into_iter().filter_map(number).collect()
    }

    /// The first text in a field with this name.
    pub(super) fn text(&self, name: &str) -> Result<String> {
        match self.all(name).first() {
            Some(Self::Text(text)) => Ok(text.clone()),
            other => bail!("{name} is {other:?} in {self:?}"),
        }
    }

    /// Every number in a field whose name ends with `ErrorCode`.
    pub(super) fn codes(&self) -> Vec<i64> {
        match self {
            Self::List(elements) => elements.iter().flat_map(Self::codes).collect(),
            Self::Struct(fields) => fields
                .iter()
                .flat_map(|(field, value)| match value {
                    Self::Number(code) if field.name.ends_with("ErrorCode") => vec![*code],
                    other => other.codes(),
                })
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// The body of a request. Fields that `json` leaves out are null, empty or zero; those that the
/// version lacks are left out.
pub(super) fn encode(layout: &Layout, version: i16, json: &Value) -> Result<BytesMut> {
    let mut out = BytesMut::new();
    let flexible = version >= layout.flexible_from;
    let mut encoder = Encoder { version, flexible, out: &mut out };
    encoder.fields(layout.fields, json).with_context(|| format!("{}: {json}", layout.name))?;
    Ok(out)
}

struct Encoder<'a> {
    version: i16,
    flexible: bool,
    out: &'a mut BytesMut,
}

impl Encoder<'_> {
    fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.out)
    }

    fn fields(&mut self, fields: &[Field], json: &Value) -> Result<()> {
        let object = json.as_object().context("an object is expected")?;
        for name in object.keys() {
            ensure!(fields.iter().any(|field| field.name == name), "there is no field {name}");
        }
        let present = |field: &&Field| field.versions.contains(self.version);
        let present: Vec<_> = fields.iter().filter(present).collect();
        for field in present.iter().filter(|field| !field.is_tagged()) {
            let json = object.get(field.name).unwrap_or(&Value::Null);
            match field.kind {
                Kind::Struct(_) if field.nullable.is_some() && json.is_null() => {
                    self.writer().i8(-1);
                }
                Kind::Struct(fields) if field.nullable.is_some() => {
                    self.writer().i8(1);
                    self.fields(fields, json)?;
                }
                kind => self.value(kind, field, json).with_context(|| field.name.to_owned())?,
            }
        }
        if self.flexible {
            self.tagged(&present, object)?;
        }
        Ok(())
    }

    fn tagged(
        &mut self,
        present: &[&Field],
        object: &serde_json::Map<String, Value>,
    ) -> Result<()> {
        let given = |field: &&&Field| field.is_tagged() && object.contains_key(field.name);
        let mut given: Vec<_> = present.iter().filter(given).collect();
        given.sort_by_key(|field| field.tag);
        self.writer().unsigned_varint(u32::try_from(given.len())?);
        for field in given {
            let mut content = BytesMut::new();
            let (version, flexible) = (self.version, self.flexible);
            let mut encoder = Encoder { version, flexible, out: &mut content };
            encoder.value(field.kind, field, &object[field.name])?;
            let mut writer = self.writer();
            writer.unsigned_varint(field.tag.unwrap_or_default());
            writer.unsigned_varint(u32::try_from(content.len())?);
            writer.raw(&content);
        }
        Ok(())
    }

    fn value(&mut self, kind: Kind, field: &Field, json: &Value) -> Result<()> {
        let flexible = self.flexible && !field.is_never_compact;
        let nullable = field.is_nullable(self.version);
        match (kind, json) {
            (Kind::Fixed(size), json) => {
                let bytes = number(json)?.to_be_bytes();
                self.writer().raw(bytes.get(bytes.len() - size..).context("at most 8 bytes")?);
            }
            (Kind::Uuid, Value::Null) => self.writer().uuid(Uuid::ZERO),
            (Kind::Uuid, json) => {
                let id = json.as_str().context("an id is a text")?.parse()?;
                self.writer().uuid(id);
            }
            (Kind::Text, Value::Null) if nullable => {
                self.writer().nullable_string(None, flexible, true, "a text")?;
            }
            (Kind::Text, json) => {
                let text = text(json)?;
                self.writer().string(&text, flexible)?;
            }
            (Kind::Bytes, Value::Null) if nullable => {
                self.writer().nullable_bytes(None, flexible, true, "bytes")?;
            }
            (Kind::Bytes, json) => {
                let bytes = bytes(&text(json)?)?;
                self.writer().bytes(&bytes, flexible)?;
            }
            (Kind::Struct(fields), json) => self.fields(fields, json)?,
            (Kind::Array(_), Value::Null) if nullable => {
                // A compact count is one more than it says; null is zero.
                if flexible { self.writer().unsigned_varint(0) } else { self.writer().i32(-1) }
            }
            (Kind::Array(element), json) => {
                let none = Vec::new();
                let elements =
                    if json.is_null() { &none } else { json.as_array().context("a list")? };
                self.writer().length(elements.len(), flexible, "array")?;
                for json in elements {
                    self.value(*element, field, json)?;
                }
            }
        }
        Ok(())
    }
}

fn number(json: &Value) -> Result<i64> {
    match json {
        Value::Null => Ok(0),
        Value::Bool(is) => Ok((*is).into()),
        Value::String(text) => text.parse().with_context(|| format!("{text} is no number")),
        other => other.as_i64().with_context(|| format!("{other} is no number")),
    }
}

fn text(json: &Value) -> Result<String> {
    match json {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        other => bail!("{other} is no text"),
    }
}

/// A text, or hexadecimal digits behind `0x`.
fn bytes(text: &str) -> Result<Vec<u8>> {
    let Some(digits) = text.strip_prefix("0x") else { return Ok(text.as_bytes().to_vec()) };
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

/// Bytes as [`encode`] takes them.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

/// Reads the body of a response, all of it.
pub(super) fn decode(layout: &Layout, version: i16, body: &[u8]) -> Result<Tree> {
    let mut reader = Reader::new(body);
    let decoder = Decoder { version, flexible: version >= layout.flexible_from };
    let tree = decoder.fields(layout.fields, &mut reader)?;
    reader.finish()?;
    Ok(tree)
}

struct Decoder {
    version: i16,
    flexible: bool,
}

impl Decoder {
    fn fields(&self, fields: &'static [Field], reader: &mut Reader<'_>) -> Result<Tree> {
        let mut values = Vec::new();
        for field in fields {
            if field.is_tagged() || !field.versions.contains(self.version) {
                continue;
            }
            let value = match field.kind {
                Kind::Struct(_) if field.nullable.is_some() && reader.i8()? < 0 => Tree::Null,
                kind => self.value(kind, field, reader)?,
            };
            values.push((field, value));
        }
        if self.flexible {
            let mut raw = Vec::new();
            reader.unknown_tagged_fields(&mut raw)?;
            for one in raw {
                let with_tag = |field: &&Field| field.tag == Some(one.tag);
                let field = fields.iter().find(with_tag);
                let field = field.with_context(|| format!("unknown tag {}", one.tag))?;
                let mut content = Reader::new(&one.data);
                values.push((field, self.value(field.kind, field, &mut content)?));
                content.finish()?;
            }
        }
        Ok(Tree::Struct(values))
    }

    fn value(&self, kind: Kind, field: &Field, reader: &mut Reader<'_>) -> Result<Tree> {
        let flexible = self.flexible && !field.is_never_compact;
        let nullable = field.is_nullable(self.version);
        Ok(match kind {
            Kind::Fixed(size) => {
                let bytes = reader.take(size, "number")?;
                let sign = if bytes.first().is_some_and(|byte| *byte > 0x7f) { -1 } else { 0 };
                Tree::Number(bytes.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
            }
            Kind::Uuid => Tree::Text(reader.uuid()?.to_string()),
            Kind::Text => match reader.str(flexible, nullable)? {
                Some(text) => Tree::Text(text.to_owned()),
                None => Tree::Null,
            },
            Kind::Bytes => match reader.nullable_bytes(flexible, nullable)? {
                Some(bytes) => Tree::Bytes(bytes.to_vec()),
                None => Tree::Null,
            },
            Kind::Struct(fields) => self.fields(fields, reader)?,
            Kind::Array(element) => match reader.count(flexible, nullable, 1)? {
                Some(count) => {
                    let elements = (0..count).map(|_| self.value(*element, field, reader));
                    Tree::List(elements.collect::<Result<_>>()?)
                }
                None => Tree::Null,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use moldau_protocol::messages::{CreateTopicsRequest, FetchResponse, fetch_response};
    use moldau_protocol::{Message, RawTaggedField};
    use serde_json::json;

    use super::*;

    #[test]
    fn json_becomes_the_message_that_it_describes() {
        let json = json!({"Topics": [{"Name": "a", "NumPartitions": -1, "Configs": [
            {"Name": "k", "Value": null}]}], "timeoutMs": "7", "validateOnly": true});
        for version in CreateTopicsRequest::VERSIONS.iter() {
            let body = encode(&Layout::of::<CreateTopicsRequest>(), version, &json).unwrap();
            let request = CreateTopicsRequest::from_bytes(&body.freeze(), version).unwrap();
            assert_eq!((request.timeout_ms, request.validate_only), (7, true));
            let topic = &request.topics[0];
            assert_eq!((topic.name.as_str(), topic.num_partitions), ("a", -1));
            assert_eq!(topic.configs[0].value, None);
        }
    }

    #[test]
    fn a_field_that_does_not_exist_is_an_error() {
        let layout = Layout::of::<CreateTopicsRequest>();
        assert!(encode(&layout, 5, &json!({"Topic": []})).is_err());
        assert!(encode(&layout, 5, &json!({"Topics": [{"Name": 1}]})).is_err());
    }

    #[test]
    fn a_response_is_read_with_its_tagged_fields() {
        let response = FetchResponse {
            error_code: -1,
            responses: vec![fetch_response::FetchableTopicResponse {
                partitions: vec![fetch_response::PartitionData {
                    current_leader: fetch_response::LeaderIdAndEpoch {
                        leader_id: 7,
                        ..Default::default()
                    },
                    ..Default::default()
                }],
                ..Default::default()
            }],
            ..Default::default()
        };
        let layout = Layout::of::<FetchResponse>();
        let tree = decode(&layout, 16, &response.to_bytes(16).unwrap()).unwrap();
        assert_eq!(tree.number("LeaderId").unwrap(), 7);
        assert_eq!(tree.codes(), [-1, 0]);
        let unknown = RawTaggedField { tag: 99, data: vec![1].into() };
        let odd = FetchResponse { unknown_tagged_fields: vec![unknown], ..Default::default() };
        assert!(decode(&layout, 16, &odd.to_bytes(16).unwrap()).is_err());
    }
}
