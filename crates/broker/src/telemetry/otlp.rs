//! Metrics in OTLP (`opentelemetry.proto.metrics.v1.MetricsData`), as clients push them.
//!
//! A payload is read in place. Each empty element takes two bytes on the wire and some hundred as
//! an object, so nothing is built of a payload but the labels of one point at a time.
//!
//! | message | fields that are read |
//! |---|---|
//! | `MetricsData` | 1 resource metrics |
//! | `ResourceMetrics` | 1 resource (1 attributes), 2 scope metrics (2 metrics) |
//! | `Metric` | 1 name, 5 gauge (1 points), 7 sum (1 points, 2 temporality, 3 is monotonic) |
//! | `NumberDataPoint` | 4 as double, 6 as integer, 7 attributes |
//! | `KeyValue` | 1 key, 2 value: 1 string, 2 boolean, 3 integer, 4 double |

use std::borrow::Cow;

/// Labels of a point or of a resource; a point with more is skipped. Kafka's clients have less than
/// ten.
const LABELS_MAX: usize = 16;

/// A name with its value.
pub(crate) type Label<'a> = (&'a str, Cow<'a, str>);

/// The bytes are not a message, or have text that is not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the metrics are not a message of OTLP")]
pub(crate) struct Malformed;

/// What a metric measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A value that rises and falls.
    Gauge,
    /// A sum that only grows.
    Counter,
}

/// What a value means beside the value before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Temporality {
    /// It is added to it.
    Delta,
    /// It replaces it.
    Cumulative,
}

/// One value of one metric.
#[derive(Debug, PartialEq)]
pub(crate) struct Point<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
    pub(crate) temporality: Temporality,
    /// Attributes of the point.
    pub(crate) labels: Vec<Label<'a>>,
    /// Attributes of what the point is about.
    pub(crate) resource: &'a [Label<'a>],
    pub(crate) value: f64,
}

/// Reads a payload and hands over every point of a gauge or a sum. Points of other types, those
/// without a value and those with more than [`LABELS_MAX`] labels are passed over.
///
/// # Errors
/// [`Malformed`]; some points may have been handed over before.
pub(crate) fn read(payload: &[u8], mut visit: impl FnMut(Point<'_>)) -> Result<(), Malformed> {
    for resource in messages(payload, 1) {
        let resource = resource?;
        let mut of_resource = Vec::new();
        for attributes in messages(resource, 1) {
            read_labels(attributes?, 1, &mut of_resource)?;
        }
        for scope in messages(resource, 2) {
            for metric in messages(scope?, 2) {
                read_metric(metric?, &of_resource, &mut visit)?;
            }
        }
    }
    Ok(())
}

/// The metrics of a payload, with further attributes of the client in each resource; `None` if they
/// take more than `bytes_max`. Payloads one after another are one message
/// (`ExportMetricsServiceRequest`).
///
/// # Errors
/// [`Malformed`].
pub(crate) fn with_attributes(
    payload: &[u8],
    attributes: &[(&str, &str)],
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, Malformed> {
    let (mut out, mut added) = (Vec::new(), Vec::new());
    for (key, value) in attributes {
        let (mut pair, mut any) = (Vec::new(), Vec::new());
        put_message(&mut any, 1, value.as_bytes());
        put_message(&mut pair, 1, key.as_bytes());
        put_message(&mut pair, 2, &any);
        put_message(&mut added, 1, &pair);
    }
    for resource_metrics in messages(payload, 1) {
        let resource_metrics = resource_metrics?;
        let (mut resource, mut rest) = (Vec::new(), Vec::new());
        let mut fields = Fields(resource_metrics);
        loop {
            let before = fields.0;
            let Some(field) = fields.next().transpose()? else { break };
            match field {
                (1, Value::Bytes(bytes)) => resource.extend_from_slice(bytes),
                _ => {
                    let length = before.len() - fields.0.len();
                    rest.extend_from_slice(before.get(..length).ok_or(Malformed)?);
                }
            }
        }
        resource.extend_from_slice(&added);
        let mut whole = Vec::with_capacity(resource.len() + rest.len() + 8);
        put_message(&mut whole, 1, &resource);
        whole.extend_from_slice(&rest);
        put_message(&mut out, 1, &whole);
        if out.len() > bytes_max {
            return Ok(None);
        }
    }
    Ok(Some(out))
}

fn read_metric(
    metric: &[u8],
    resource: &[Label<'_>],
    visit: &mut impl FnMut(Point<'_>),
) -> Result<(), Malformed> {
    let mut name = "";
    for field in Fields(metric) {
        if let (1, Value::Bytes(bytes)) = field? {
            name = text(bytes)?;
        }
    }
    for gauge in messages(metric, 5) {
        let (kind, temporality) = (Kind::Gauge, Temporality::Cumulative);
        for point in messages(gauge?, 1) {
            read_point(point?, (name, kind, temporality), resource, visit)?;
        }
    }
    for sum in messages(metric, 7) {
        let sum = sum?;
        let (mut temporality, mut kind) = (Temporality::Cumulative, Kind::Gauge);
        for field in Fields(sum) {
            match field? {
                (2, Value::Number(1)) => temporality = Temporality::Delta,
                (2, Value::Number(_)) => temporality = Temporality::Cumulative,
                (3, Value::Number(is_monotonic)) => {
                    kind = if is_monotonic == 0 { Kind::Gauge } else { Kind::Counter };
                }
                _ => {}
            }
        }
        for point in messages(sum, 1) {
            read_point(point?, (name, kind, temporality), resource, visit)?;
        }
    }
    Ok(())
}

fn read_point(
    point: &[u8],
    (name, kind, temporality): (&str, Kind, Temporality),
    resource: &[Label<'_>],
    visit: &mut impl FnMut(Point<'_>),
) -> Result<(), Malformed> {
    let mut value = None;
    for field in Fields(point) {
        match field? {
            (4, Value::Fixed64(bits)) => value = Some(f64::from_bits(bits)),
            (6, Value::Fixed64(bits)) => {
                value = Some(signed(bits) as f64);
            }
            _ => {}
        }
    }
    let mut labels = Vec::new();
    read_labels(point, 7, &mut labels)?;
    let Some(value) = value else { return Ok(()) };
    if labels.len() <= LABELS_MAX && resource.len() <= LABELS_MAX {
        visit(Point { name, kind, temporality, labels, resource, value });
    }
    Ok(())
}

/// Reads attributes, at most one more than a point may have.
fn read_labels<'a>(
    message: &'a [u8],
    number: u32,
    labels: &mut Vec<Label<'a>>,
) -> Result<(), Malformed> {
    for pair in messages(message, number) {
        let (mut key, mut value) = ("", None);
        for field in Fields(pair?) {
            match field? {
                (1, Value::Bytes(bytes)) => key = text(bytes)?,
                (2, Value::Bytes(any)) => value = label_value(any)?,
                _ => {}
            }
        }
        if let Some(value) = value
            && labels.len() <= LABELS_MAX
        {
            labels.push((key, value));
        }
    }
    Ok(())
}

/// A value as text; `None` for lists, maps and bytes, which are no labels.
fn label_value(any: &[u8]) -> Result<Option<Cow<'_, str>>, Malformed> {
    let mut value = None;
    for field in Fields(any) {
        value = match field? {
            (1, Value::Bytes(bytes)) => Some(text(bytes)?.into()),
            (2, Value::Number(number)) => Some((number != 0).to_string().into()),
            (3, Value::Number(number)) => Some(signed(number).to_string().into()),
            (4, Value::Fixed64(bits)) => Some(f64::from_bits(bits).to_string().into()),
            _ => None,
        };
    }
    Ok(value)
}

fn signed(bits: u64) -> i64 {
    i64::from_ne_bytes(bits.to_ne_bytes())
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// The elements of a repeated field of messages.
fn messages(message: &[u8], number: u32) -> impl Iterator<Item = Result<&[u8], Malformed>> {
    Fields(message).filter_map(move |field| match field {
        Ok((found, Value::Bytes(bytes))) => (found == number).then_some(Ok(bytes)),
        Ok(_) => None,
        Err(malformed) => Some(Err(malformed)),
    })
}

/// The value of a field, by its wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Fixed64(u64),
    Fixed32,
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first that is malformed.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let key = u32::try_from(self.varint()?).ok()?;
        let number = Some(key >> 3).filter(|number| *number > 0)?;
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => {
                let (bits, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Value::Fixed64(u64::from_le_bytes(*bits))
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            5 => {
                let (_, rest) = self.0.split_first_chunk::<4>()?;
                self.0 = rest;
                Value::Fixed32
            }
            _ => return None,
        };
        Some((number, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn put_message(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    out.push(number << 3 | 2);
    let mut length = bytes.len() as u64;
    while length >= 0x80 {
        let [low, ..] = length.to_le_bytes();
        out.push(low | 0x80);
        length >>= 7;
    }
    let [low, ..] = length.to_le_bytes();
    out.push(low);
    out.extend_from_slice(bytes);
}
