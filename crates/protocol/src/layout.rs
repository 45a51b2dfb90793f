//! The layouts of messages as data, for whoever must find something in a message of any API
//! without a line of code for each.
//!
//! A field that has [`Entity`] names something that belongs to somebody. Kafka's definitions tell
//! it of most fields; `cargo xtask codegen` adds those that they leave out.

use crate::versions::VersionRange;

/// What a text or an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entity {
    /// A topic, by name.
    TopicName,
    /// A topic, by id.
    TopicId,
    /// A group of any kind.
    GroupId,
    /// A producer that writes in transactions.
    TransactionalId,
    /// Nothing of itself: a sentence for people, which may hold names.
    Explanation,
}

/// What a field is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// So many bytes.
    Fixed(usize),
    /// 16 bytes.
    Uuid,
    /// UTF-8 after its length.
    Text,
    /// Anything after its length.
    Bytes,
    /// The fields of a struct, one after the other.
    Struct(&'static [Field]),
    /// Elements after their count.
    Array(&'static Self),
}

/// A field of a message or of a struct in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Kafka's name of the field.
    pub name: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// The versions that have the field.
    pub versions: VersionRange,
    /// The versions in which it can be null, if any.
    pub nullable: Option<VersionRange>,
    /// Its tag if it stands among the tagged fields, at the end of its struct.
    pub tag: Option<u32>,
    /// Whether it keeps lengths of fixed size in flexible versions.
    pub is_never_compact: bool,
    /// What it names; for an array of texts, what each of them does.
    pub entity: Option<Entity>,
}

/// A message, or a struct in one.
pub trait Structure {
    /// The fields in their order on the wire; tagged ones may stand anywhere among them.
    const FIELDS: &'static [Field];
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: Kind, first: i16, last: i16) -> Self {
        Self {
            name,
            kind,
            versions: VersionRange::new(first, last),
            nullable: None,
            tag: None,
            is_never_compact: false,
            entity: None,
        }
    }

    pub(crate) const fn nullable(mut self, first: i16, last: i16) -> Self {
        self.nullable = Some(VersionRange::new(first, last));
        self
    }

    pub(crate) const fn tagged(mut self, tag: u32) -> Self {
        self.tag = Some(tag);
        self
    }

    pub(crate) const fn never_compact(mut self) -> Self {
        self.is_never_compact = true;
        self
    }

    pub(crate) const fn of(mut self, entity: Entity) -> Self {
        self.entity = Some(entity);
        self
    }

    /// Whether the field stands among the tagged fields.
    #[must_use]
    pub const fn is_tagged(&self) -> bool {
        self.tag.is_some()
    }

    /// Whether the field can be null in a version.
    #[must_use]
    pub fn is_nullable(&self, version: i16) -> bool {
        self.nullable.is_some_and(|versions| versions.contains(version))
    }
}
