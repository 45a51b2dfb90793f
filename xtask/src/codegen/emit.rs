//! Writes the Rust of one message: its structs, their defaults, layouts, decoders and encoders, and
//! the constructors of random values for the crate's tests. Line breaks are left to rustfmt.

use super::definition::MessageKind;
use super::names;
use super::resolve::{Default, Field, Kind, Message, Struct};
use super::versions::Versions;

/// The source file of a message.
pub(crate) fn message(message: &Message) -> String {
    let Versions { first, last } = message.versions;
    let mut out = format!("//! `{}`, versions {first}-{last}", message.name);
    if let Some(key) = message.api_key {
        out += &format!(", API key {key}");
    }
    out += ".\n\nuse super::prelude::*;\n";
    for structure in &message.structs {
        declare(&mut out, message, structure);
        defaults(&mut out, message, structure);
        layout(&mut out, structure);
        codec(&mut out, message, structure);
        random(&mut out, message, structure);
    }
    traits(&mut out, message);
    out
}

fn traits(out: &mut String, message: &Message) {
    let Versions { first, last } = message.versions;
    let name = &message.name;
    let flexible_from = message.flexible_from();
    *out += &format!(
        "\nimpl Message for {name} {{\nconst NAME: &'static str = {name:?};\n\
         const VERSIONS: VersionRange = VersionRange::new({first}, {last});\n\
         const FLEXIBLE_FROM: i16 = {flexible_from};\n}}\n"
    );
    let api = names::api(name);
    match message.kind {
        MessageKind::Request => {
            *out += &format!(
                "\nimpl Request for {name} {{\nconst KEY: ApiKey = ApiKey::{api};\n\
                 type Response = super::{api}Response;\n}}\n"
            );
        }
        MessageKind::Response => {
            *out +=
                &format!("\nimpl Response for {name} {{\nconst KEY: ApiKey = ApiKey::{api};\n}}\n");
        }
        MessageKind::Header | MessageKind::Data => {}
    }
}

fn declare(out: &mut String, message: &Message, structure: &Struct) {
    let name = &structure.name;
    let derived = if plain_defaults(structure) { ", Default" } else { "" };
    let part =
        if *name == message.name { String::new() } else { format!(" of `{}`", message.name) };
    *out += &format!("\n/// `{name}`{part}.\n#[derive(Clone, Debug, PartialEq{derived})]\n");
    *out += &format!("pub struct {name} {{\n");
    for field in &structure.fields {
        let versions = field.versions.describe(message.versions);
        let null = if field.nullable.is_empty() {
            String::new()
        } else {
            format!(", null in {}", field.nullable.describe(message.versions))
        };
        let tag = field.tag.map_or(String::new(), |tag| format!(", tag {tag}"));
        *out += &format!("/// `{}`, {versions}{null}{tag}.\n", field.name);
        *out += &format!("pub {}: {},\n", field.rust, rust_type(field));
    }
    if !message.flexible.is_empty() {
        *out += "/// Tagged fields that are not known here, by ascending tag.\n";
        *out += "pub unknown_tagged_fields: Vec<RawTaggedField>,\n";
    }
    *out += "}\n";
}

fn plain_type(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "bool".to_owned(),
        Kind::Number(name, _) => (*name).to_owned(),
        Kind::Uuid => "Uuid".to_owned(),
        Kind::Text => "String".to_owned(),
        Kind::Bytes => "Bytes".to_owned(),
        Kind::Struct(name) => name.clone(),
        Kind::Array(inner) => format!("Vec<{}>", plain_type(inner)),
    }
}

fn rust_type(field: &Field) -> String {
    let plain = plain_type(&field.kind);
    if field.nullable.is_empty() { plain } else { format!("Option<{plain}>") }
}

fn plain_defaults(structure: &Struct) -> bool {
    structure.fields.iter().all(|field| match field.default {
        Default::Empty => field.nullable.is_empty(),
        Default::Null => true,
        Default::True | Default::Number(_) => false,
    })
}

fn defaults(out: &mut String, message: &Message, structure: &Struct) {
    if plain_defaults(structure) {
        return;
    }
    *out +=
        &format!("\nimpl Default for {} {{\nfn default() -> Self {{\nSelf {{\n", structure.name);
    for field in &structure.fields {
        let value = match (&field.default, field.nullable.is_empty()) {
            (Default::Null, _) => "None".to_owned(),
            (Default::True, _) => "true".to_owned(),
            (Default::Number(number), _) => number.to_string(),
            (Default::Empty, false) => "Some(Default::default())".to_owned(),
            (Default::Empty, true) => "Default::default()".to_owned(),
        };
        *out += &format!("{}: {value},\n", field.rust);
    }
    if !message.flexible.is_empty() {
        *out += "unknown_tagged_fields: Vec::new(),\n";
    }
    *out += "}\n}\n}\n";
}

/// The fields as data.
fn layout(out: &mut String, structure: &Struct) {
    let name = &structure.name;
    *out += &format!("\nimpl Structure for {name} {{\nconst FIELDS: &'static [Field] = &[\n");
    for field in &structure.fields {
        let Versions { first, last } = field.versions;
        let kind = layout_kind(&field.kind);
        *out += &format!("Field::new({:?}, {kind}, {first}, {last})", field.name);
        if !field.nullable.is_empty() {
            *out += &format!(".nullable({}, {})", field.nullable.first, field.nullable.last);
        }
        if let Some(tag) = field.tag {
            *out += &format!(".tagged({tag})");
        }
        if field.never_compact {
            *out += ".never_compact()";
        }
        if let Some(entity) = field.entity {
            *out += &format!(".of(Entity::{entity})");
        }
        *out += ",\n";
    }
    *out += "];\n}\n";
}

fn layout_kind(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "Kind::Fixed(1)".to_owned(),
        Kind::Number(_, size) => format!("Kind::Fixed({size})"),
        Kind::Uuid => "Kind::Uuid".to_owned(),
        Kind::Text => "Kind::Text".to_owned(),
        Kind::Bytes => "Kind::Bytes".to_owned(),
        Kind::Struct(name) => format!("Kind::Struct({name}::FIELDS)"),
        Kind::Array(inner) => format!("Kind::Array(&{})", layout_kind(inner)),
    }
}

fn codec(out: &mut String, message: &Message, structure: &Struct) {
    let name = &structure.name;
    *out += &format!(
        "\nimpl FromWire for {name} {{\nconst SIZE_MIN: usize = {};\n\n\
         fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {{\n\
         let mut m = Self::default();\n",
        structure.size_min
    );
    for field in structure.fields.iter().filter(|field| field.tag.is_none()) {
        let statement = format!("m.{} = {};", field.rust, read(field));
        guarded(out, field.versions.condition(structure.reach), &statement);
    }
    read_tags(out, message, structure);
    *out += "Ok(m)\n}\n}\n";
    *out += &format!(
        "\nimpl ToWire for {name} {{\n\
         fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {{\n"
    );
    for field in &structure.fields {
        write_field(out, structure, field);
    }
    write_tags(out, message, structure);
    *out += "Ok(())\n}\n}\n";
}

fn guarded(out: &mut String, condition: String, statement: &str) {
    match condition.as_str() {
        "true" => *out += &format!("{statement}\n"),
        _ => *out += &format!("if {condition} {{ {statement} }}\n"),
    }
}

/// The flag that selects the compact form of a field.
fn compact(field: &Field) -> &'static str {
    if field.never_compact { "false" } else { "f" }
}

/// The expression that reads a field.
fn read(field: &Field) -> String {
    let f = compact(field);
    let null = field.nullable.condition(field.versions);
    match (&field.kind, field.nullable.is_empty()) {
        (Kind::Bool, _) => "r.bool()?".to_owned(),
        (Kind::Number(name, _), _) => format!("r.{name}()?"),
        (Kind::Uuid, _) => "r.uuid()?".to_owned(),
        (Kind::Text, true) => format!("r.string({f})?"),
        (Kind::Text, false) => format!("r.nullable_string({f}, {null})?"),
        (Kind::Bytes, true) => format!("r.bytes({f})?"),
        (Kind::Bytes, false) => format!("r.nullable_bytes({f}, {null})?"),
        (Kind::Struct(name), true) => format!("{name}::read(r, v, f)?"),
        (Kind::Struct(_), false) => format!("r.nullable_struct(v, f, {null})?"),
        (Kind::Array(_), true) => "r.array(v, f)?".to_owned(),
        (Kind::Array(_), false) => format!("r.nullable_array(v, f, {null})?"),
    }
}

/// The statement that writes a field.
fn write(field: &Field) -> String {
    let f = compact(field);
    let (name, value) = (&field.name, &field.rust);
    let null = format!("{}, {name:?}", field.nullable.condition(field.versions));
    match (&field.kind, field.nullable.is_empty()) {
        (Kind::Bool, _) => format!("w.bool(self.{value});"),
        (Kind::Number(name, _), _) => format!("w.{name}(self.{value});"),
        (Kind::Uuid, _) => format!("w.uuid(self.{value});"),
        (Kind::Text, true) => format!("w.string(&self.{value}, {f})?;"),
        (Kind::Text, false) => format!("w.nullable_string(self.{value}.as_deref(), {f}, {null})?;"),
        (Kind::Bytes, true) => format!("w.bytes(&self.{value}, {f})?;"),
        (Kind::Bytes, false) => format!("w.nullable_bytes(self.{value}.as_deref(), {f}, {null})?;"),
        (Kind::Struct(_), true) => format!("self.{value}.write(w, v, f)?;"),
        (Kind::Struct(_), false) => {
            format!("w.nullable_struct(self.{value}.as_ref(), v, f, {null})?;")
        }
        (Kind::Array(_), true) => format!("w.array(&self.{value}, v, f)?;"),
        (Kind::Array(_), false) => {
            format!("w.nullable_array(self.{value}.as_deref(), v, f, {null})?;")
        }
    }
}

/// The condition that a field differs from its default.
fn is_set(field: &Field) -> String {
    let value = format!("self.{}", field.rust);
    match (&field.kind, &field.default, field.nullable.is_empty()) {
        (_, Default::Null, _) => format!("{value}.is_some()"),
        (_, Default::True, _) => format!("!{value}"),
        (_, Default::Number(number), _) => format!("{value} != {number}"),
        (Kind::Bool, Default::Empty, _) => value,
        (Kind::Number("f64", _), Default::Empty, _) => format!("{value} != 0.0"),
        (Kind::Number(..), Default::Empty, _) => format!("{value} != 0"),
        (Kind::Uuid, Default::Empty, _) => format!("{value} != Uuid::ZERO"),
        (Kind::Struct(name), Default::Empty, true) => format!("{value} != {name}::default()"),
        (Kind::Struct(_), Default::Empty, false) => {
            format!("{value} != Some(Default::default())")
        }
        (Kind::Text | Kind::Bytes | Kind::Array(_), Default::Empty, true) => {
            format!("!{value}.is_empty()")
        }
        (Kind::Text | Kind::Bytes | Kind::Array(_), Default::Empty, false) => {
            format!("{value}.as_ref().is_none_or(|value| !value.is_empty())")
        }
    }
}

fn write_field(out: &mut String, structure: &Struct, field: &Field) {
    let condition = field.versions.condition(structure.reach);
    let refusal =
        format!("return Err(EncodeError::absent(\"{}.{}\", v));", structure.name, field.name);
    match (field.tag.is_some(), condition.as_str(), field.ignorable) {
        (false, "true", _) => *out += &format!("{}\n", write(field)),
        (false, _, true) => *out += &format!("if {condition} {{ {} }}\n", write(field)),
        (false, _, false) => {
            *out += &format!(
                "if {condition} {{ {} }} else if {} {{ {refusal} }}\n",
                write(field),
                is_set(field)
            );
        }
        (true, "true", _) | (true, _, true) => {}
        (true, _, false) => {
            let opposite = field.versions.opposite_condition(structure.reach);
            *out += &format!("if {opposite} && {} {{ {refusal} }}\n", is_set(field));
        }
    }
}

fn tagged(structure: &Struct) -> Vec<&Field> {
    let mut fields: Vec<_> = structure.fields.iter().filter(|field| field.tag.is_some()).collect();
    fields.sort_by_key(|field| field.tag);
    fields
}

fn read_tags(out: &mut String, message: &Message, structure: &Struct) {
    if message.flexible.and(structure.reach).is_empty() {
        return;
    }
    let fields = tagged(structure);
    if fields.is_empty() {
        *out += "if f { r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?; }\n";
        return;
    }
    *out += "if f { r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| { match tag {\n";
    for field in fields {
        let tag = field.tag.unwrap_or_default();
        let condition = match field.versions.condition(structure.reach.and(message.flexible)) {
            always if always == "true" => String::new(),
            condition => format!(" if {condition}"),
        };
        *out += &format!("{tag}{condition} => m.{} = {},\n", field.rust, read(field));
    }
    *out += "_ => return Ok(false),\n}\nOk(true)\n})?; }\n";
}

fn write_tags(out: &mut String, message: &Message, structure: &Struct) {
    if message.flexible.is_empty() {
        return;
    }
    let flexible = message.flexible.and(structure.reach);
    if !flexible.is_empty() {
        let fields = tagged(structure);
        if fields.is_empty() {
            *out += "if f { w.unknown_tagged_fields(&self.unknown_tagged_fields)?; }";
        } else {
            *out += "if f {\nlet mut tags = w.tagged_fields(&self.unknown_tagged_fields);\n";
            for field in fields {
                let tag = field.tag.unwrap_or_default();
                let condition = match field.versions.condition(flexible) {
                    always if always == "true" => is_set(field),
                    condition => format!("{condition} && {}", is_set(field)),
                };
                // Fallible writes end in `?;`, which the closure returns instead.
                let content = match write(field).strip_suffix("?;") {
                    Some(fallible) => fallible.to_owned(),
                    None => format!("{{ {} Ok(()) }}", write(field)),
                };
                *out += &format!("if {condition} {{ tags.field({tag}, |w| {content})?; }}\n");
            }
            *out += "tags.finish()?;\n}";
        }
        *out += if flexible == structure.reach { "\n" } else { " else " };
    }
    if flexible != structure.reach {
        *out += &format!(
            "if !self.unknown_tagged_fields.is_empty() {{ \
             return Err(EncodeError::absent(\"{}.unknown_tagged_fields\", v)); }}\n",
            structure.name
        );
    }
}

fn random(out: &mut String, message: &Message, structure: &Struct) {
    *out += &format!(
        "\n#[cfg(test)]\nimpl Random for {} {{\n\
         fn random(g: &mut Generator, v: i16, f: bool) -> Self {{\nlet mut m = Self::default();\n",
        structure.name
    );
    for field in &structure.fields {
        let value = match field.nullable.condition(field.versions).as_str() {
            "false" if field.nullable.is_empty() => "Random::random(g, v, f)".to_owned(),
            null => format!("g.nullable({null}, v, f)"),
        };
        let statement = format!("m.{} = {value};", field.rust);
        guarded(out, field.versions.condition(structure.reach), &statement);
    }
    if !message.flexible.and(structure.reach).is_empty() {
        *out += "if f { m.unknown_tagged_fields = g.unknown_tagged_fields(); }\n";
    }
    *out += "m\n}\n}\n";
}
