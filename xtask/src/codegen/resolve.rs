//! Turns a definition into the structs to write: which exist, in which versions they can occur,
//! how small they can be, and what type and default each field has in Rust.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::definition::{self, Definition, MessageKind};
use super::names;
use super::versions::Versions;

/// A message with at least one valid version.
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) module: String,
    pub(crate) kind: MessageKind,
    pub(crate) api_key: Option<i16>,
    /// Stable versions only.
    pub(crate) versions: Versions,
    pub(crate) flexible: Versions,
    /// The message itself comes first.
    pub(crate) structs: Vec<Struct>,
}

impl Message {
    /// The Rust of the first flexible version.
    pub(crate) fn flexible_from(&self) -> String {
        if self.flexible.is_empty() {
            "i16::MAX".to_owned()
        } else {
            self.flexible.first.to_string()
        }
    }
}

/// The message or a struct in it.
pub(crate) struct Struct {
    pub(crate) name: String,
    /// Versions of the message in which the struct can occur.
    pub(crate) reach: Versions,
    pub(crate) fields: Vec<Field>,
    /// The fewest bytes that the struct takes in any version.
    pub(crate) size_min: usize,
}

/// One field that exists in at least one version.
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) rust: String,
    pub(crate) kind: Kind,
    pub(crate) versions: Versions,
    pub(crate) nullable: Versions,
    pub(crate) tag: Option<u32>,
    pub(crate) ignorable: bool,
    pub(crate) default: Default,
    /// Whether the field keeps its inflexible form in flexible versions.
    pub(crate) never_compact: bool,
    /// The variant of `Entity` that says what the field names.
    pub(crate) entity: Option<&'static str>,
}

/// The type of a field.
#[derive(Clone, PartialEq)]
pub(crate) enum Kind {
    Bool,
    /// An integer or float with the name of its Rust type.
    Number(&'static str, usize),
    Uuid,
    Text,
    Bytes,
    Struct(String),
    Array(Box<Kind>),
}

/// The value of a field that nobody set.
#[derive(Clone, PartialEq)]
pub(crate) enum Default {
    /// Zero, false or empty; for a nullable field the value that is present and empty.
    Empty,
    Null,
    True,
    Number(i64),
}

/// Resolves a definition, or gives `None` if the message has no stable version left.
pub(crate) fn message(definition: &Definition) -> Result<Option<Message>> {
    let mut versions = Versions::parse(&definition.valid_versions)?;
    if definition.latest_version_unstable {
        versions.last -= 1;
    }
    if versions.is_empty() {
        return Ok(None);
    }
    let flexible = Versions::parse(&definition.flexible_versions)?.and(versions);
    ensure!(flexible.is_empty() || flexible.last == versions.last, "flexible versions end early");

    let mut bodies = BTreeMap::from([(definition.name.as_str(), definition.fields.as_slice())]);
    for common in &definition.common_structs {
        bodies.insert(&common.name, &common.fields);
    }
    collect(&definition.fields, &mut bodies);
    for common in &definition.common_structs {
        collect(&common.fields, &mut bodies);
    }

    let mut order = Vec::new();
    let mut reach = BTreeMap::new();
    visit(&definition.name, versions, &bodies, &mut order, &mut reach)?;
    let mut structs = order
        .iter()
        .map(|name| structure(name, reach[name], bodies[name.as_str()], flexible))
        .collect::<Result<Vec<_>>>()?;
    for index in 0..structs.len() {
        structs[index].size_min = smallest(&structs, &structs[index], flexible);
        ensure!(index == 0 || structs[index].size_min > 0, "{} can be empty", structs[index].name);
    }
    Ok(Some(Message {
        name: definition.name.clone(),
        module: names::snake(&definition.name),
        kind: definition.kind,
        api_key: definition.api_key,
        versions,
        flexible,
        structs,
    }))
}

/// Notes the struct bodies that stand inline in fields.
fn collect<'a>(
    fields: &'a [definition::Field],
    bodies: &mut BTreeMap<&'a str, &'a [definition::Field]>,
) {
    for field in fields.iter().filter(|field| !field.fields.is_empty()) {
        bodies.insert(field.kind.trim_start_matches("[]"), &field.fields);
        collect(&field.fields, bodies);
    }
}

/// Finds the structs below `name` in the order of their appearance, and the versions they occur in.
fn visit(
    name: &str,
    within: Versions,
    bodies: &BTreeMap<&str, &[definition::Field]>,
    order: &mut Vec<String>,
    reach: &mut BTreeMap<String, Versions>,
) -> Result<()> {
    if !order.iter().any(|known| known == name) {
        order.push(name.to_owned());
    }
    let known = reach.get(name).copied().unwrap_or(Versions::NONE);
    reach.insert(name.to_owned(), known.hull(within));
    let fields = bodies.get(name).with_context(|| format!("no struct {name}"))?;
    for field in *fields {
        let here = Versions::parse(&field.versions)?.and(within);
        if let Kind::Struct(inner) = element(&kind(&field.kind)?)
            && !here.is_empty()
        {
            visit(inner, here, bodies, order, reach)?;
        }
    }
    Ok(())
}

/// The innermost type of nested arrays.
fn element(kind: &Kind) -> &Kind {
    match kind {
        Kind::Array(inner) => element(inner),
        other => other,
    }
}

fn kind(text: &str) -> Result<Kind> {
    Ok(match text {
        "bool" => Kind::Bool,
        "int8" => Kind::Number("i8", 1),
        "int16" => Kind::Number("i16", 2),
        "uint16" => Kind::Number("u16", 2),
        "int32" => Kind::Number("i32", 4),
        "uint32" => Kind::Number("u32", 4),
        "int64" => Kind::Number("i64", 8),
        "float64" => Kind::Number("f64", 8),
        "uuid" => Kind::Uuid,
        "string" => Kind::Text,
        "bytes" | "records" => Kind::Bytes,
        _ => match text.strip_prefix("[]") {
            Some(inner) => Kind::Array(Box::new(kind(inner)?)),
            None if text.starts_with(|letter: char| letter.is_ascii_uppercase()) => {
                Kind::Struct(text.to_owned())
            }
            None => bail!("unknown type {text}"),
        },
    })
}

fn structure(
    name: &str,
    reach: Versions,
    body: &[definition::Field],
    flexible: Versions,
) -> Result<Struct> {
    let mut fields = Vec::new();
    for source in body {
        let field =
            field(source, reach, flexible).with_context(|| format!("{name}.{}", source.name))?;
        if !field.versions.is_empty() {
            fields.push(field);
        }
    }
    Ok(Struct { name: name.to_owned(), reach, fields, size_min: 0 })
}

fn field(source: &definition::Field, reach: Versions, flexible: Versions) -> Result<Field> {
    let versions = Versions::parse(&source.versions)?.and(reach);
    let nullable = Versions::parse(&source.nullable_versions)?.and(versions);
    let tagged = Versions::parse(&source.tagged_versions)?.and(versions);
    let kind = kind(&source.kind)?;
    ensure!(tagged.is_empty() || tagged == versions, "tagged in some versions only");
    ensure!(flexible.covers(tagged), "tagged in an inflexible version");
    ensure!(
        tagged.is_empty() || nullable.is_empty() || !matches!(kind, Kind::Struct(_)),
        "a tagged nullable struct"
    );
    Ok(Field {
        name: source.name.clone(),
        rust: names::field(&source.name),
        default: default(source, &kind, nullable)?,
        entity: entity(source, &kind)?,
        kind,
        versions,
        nullable,
        tag: if tagged.is_empty() { None } else { source.tag },
        ignorable: source.ignorable,
        never_compact: source.flexible_versions.as_deref() == Some("none"),
    })
}

/// What a field names. Kafka's definitions tell it but for topic ids, the groups of the APIs
/// between share coordinators, the topics of a consumer's subscription, and texts for people.
fn entity(source: &definition::Field, kind: &Kind) -> Result<Option<&'static str>> {
    let told = source.entity_type.as_deref();
    let entity = match (element(kind), source.name.as_str()) {
        (Kind::Text, "GroupId") => Some("GroupId"),
        (Kind::Text, "Topics") => Some("TopicName"),
        (Kind::Text, "StatusDetail") => Some("Explanation"),
        (Kind::Text, name) if name.ends_with("ErrorMessage") => Some("Explanation"),
        (Kind::Text, _) => match told {
            Some("topicName") => Some("TopicName"),
            Some("groupId") => Some("GroupId"),
            Some("transactionalId") => Some("TransactionalId"),
            Some(other) => bail!("unknown entity type {other}"),
            None => None,
        },
        (Kind::Uuid, "TopicId") => Some("TopicId"),
        _ => None,
    };
    let is_lost = told.is_some() && entity.is_none() && *element(kind) == Kind::Text;
    ensure!(!is_lost, "entity type {told:?} is lost");
    Ok(entity)
}

fn default(source: &definition::Field, kind: &Kind, nullable: Versions) -> Result<Default> {
    let text = match &source.default {
        // Kafka holds records behind a reference that starts as null.
        None if source.kind == "records" && !nullable.is_empty() => return Ok(Default::Null),
        None => return Ok(Default::Empty),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    Ok(match (kind, text.as_str()) {
        (_, "null") if !nullable.is_empty() => Default::Null,
        (_, "" | "false") => Default::Empty,
        (Kind::Bool, "true") => Default::True,
        (Kind::Number(..), digits) => {
            let number = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16)?,
                None => digits.parse()?,
            };
            if number == 0 { Default::Empty } else { Default::Number(number) }
        }
        // The default of a version that is no longer valid.
        (_, "null") => Default::Empty,
        _ => bail!("unknown default {text}"),
    })
}

fn smallest(structs: &[Struct], of: &Struct, flexible: Versions) -> usize {
    (of.reach.first..=of.reach.last)
        .map(|version| size(structs, of, version, flexible.contains(version)))
        .min()
        .unwrap_or(0)
}

/// The fewest bytes that a struct takes in one version.
fn size(structs: &[Struct], of: &Struct, version: i16, flexible: bool) -> usize {
    let fields = of
        .fields
        .iter()
        .filter(|field| field.versions.contains(version) && field.tag.is_none())
        .map(|field| match &field.kind {
            Kind::Bool => 1,
            Kind::Number(_, bytes) => *bytes,
            Kind::Uuid => 16,
            Kind::Struct(_) if field.nullable.contains(version) => 1,
            Kind::Struct(name) => structs
                .iter()
                .find(|inner| inner.name == *name)
                .map_or(0, |inner| size(structs, inner, version, flexible)),
            Kind::Text | Kind::Bytes | Kind::Array(_) if flexible && !field.never_compact => 1,
            Kind::Text => 2,
            Kind::Bytes | Kind::Array(_) => 4,
        });
    fields.sum::<usize>() + usize::from(flexible)
}
