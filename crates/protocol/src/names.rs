//! Names in messages of any API: they are found by the message's layout and rewritten where they
//! stand, and all other bytes stay as they are. Records are passed over by their length.
//!
//! ```
//! # use moldau_protocol::messages::DeleteGroupsRequest;
//! # use moldau_protocol::names::{self, Verdict, Visitor};
//! # use moldau_protocol::{Entity, Layout, Message, Reader};
//! struct Shout;
//! impl Visitor for Shout {
//!     fn text(&mut self, _: Entity, text: &str, with: &mut String) -> Verdict {
//!         with.push_str(&text.to_uppercase());
//!         Verdict::Replace
//!     }
//! }
//! let request = DeleteGroupsRequest { groups_names: vec!["a".to_owned()], ..Default::default() };
//! let body = request.to_bytes(2).unwrap();
//! let edits = names::visit(&Layout::of::<DeleteGroupsRequest>(), 2, &body, &mut Shout).unwrap();
//! let mut shouted = Vec::new();
//! edits.apply(&body, &mut shouted);
//! let shouted = DeleteGroupsRequest::decode(&mut Reader::new(&shouted), 2).unwrap();
//! assert_eq!(shouted.groups_names, ["A"]);
//! ```

use std::ops::Range;

use bytes::BytesMut;

use crate::api_key::ApiKey;
use crate::error::{DecodeError, RewriteError};
use crate::generated;
use crate::layout::{Entity, Field, Kind};
use crate::message::Layout;
use crate::reader::Reader;
use crate::uuid::Uuid;
use crate::writer::Writer;

/// Sees the names of a message in their order.
pub trait Visitor {
    /// Decides about a name, or a text that may hold names. What it appends to `with`,
    /// which is empty, takes the place of the text if it says [`Verdict::Replace`].
    fn text(&mut self, entity: Entity, text: &str, with: &mut String) -> Verdict;

    /// Sees the id of a topic.
    fn topic_id(&mut self, _id: Uuid) {}
}

/// The decision about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// Another one takes its place.
    Replace,
    /// The element of an array that it stands in is left out, the innermost one; or the struct is
    /// null, if it can be.
    Drop,
}

/// What is to be changed in a message.
#[derive(Debug, Default)]
pub struct Edits {
    /// In the order of their ranges, which do not overlap.
    list: Vec<Edit>,
    bytes: BytesMut,
}

#[derive(Debug)]
struct Edit {
    /// Bytes of the message.
    range: Range<usize>,
    /// What takes their place, among the bytes of the edits.
    with: Range<usize>,
}

/// The layout of an API's request.
#[must_use]
pub const fn request_layout(api: ApiKey) -> Layout {
    generated::layouts(api).0
}

/// The layout of an API's response.
#[must_use]
pub const fn response_layout(api: ApiKey) -> Layout {
    generated::layouts(api).1
}

/// Shows a visitor the names of a message and gathers what it wants to be changed.
///
/// # Errors
/// The bytes are not this message; a name is longer than a text can be; or something would have to
/// be left out that stands neither in an array nor in a struct that can be null.
pub fn visit(
    layout: &Layout,
    version: i16,
    body: &[u8],
    visitor: &mut impl Visitor,
) -> Result<Edits, RewriteError> {
    if !layout.versions.contains(version) {
        return Err(DecodeError::UnsupportedVersion { message: layout.name, version }.into());
    }
    let mut walk = Walk {
        reader: Reader::new(body),
        version,
        flexible: version >= layout.flexible_from,
        visitor,
        with: String::new(),
        edits: Edits::default(),
    };
    match walk.fields(layout.fields)? {
        Fate::Stays => Ok(walk.edits),
        Fate::Goes => Err(RewriteError::Indispensable { message: layout.name }),
    }
}

impl Edits {
    /// Whether the message stays as it is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Appends the message with the changes; `body` is what was visited.
    pub fn apply(&self, body: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        for Edit { range, with } in &self.list {
            out.extend_from_slice(body.get(at..range.start).unwrap_or_default());
            out.extend_from_slice(self.bytes.get(with.clone()).unwrap_or_default());
            at = range.end;
        }
        out.extend_from_slice(body.get(at..).unwrap_or_default());
    }

    /// Puts what `write` appends in the place of a range, as the edit with this index.
    fn insert<E>(
        &mut self,
        index: usize,
        range: Range<usize>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        write(&mut Writer::new(&mut self.bytes))?;
        self.list.insert(index, Edit { range, with: start..self.bytes.len() });
        Ok(())
    }

    /// The same behind all others.
    fn push<E>(
        &mut self,
        range: Range<usize>,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.insert(self.list.len(), range, write)
    }
}

/// What a name takes at a visitor that keeps it, or in the edits with a prefix before it: a message
/// of short names could take fifty times its bytes.
const NAME_BYTES: usize = 128;

/// What a value means for the struct or array that it stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stays,
    Goes,
}

/// A message on its way past a visitor.
struct Walk<'a, 'v, V> {
    reader: Reader<'a>,
    version: i16,
    flexible: bool,
    visitor: &'v mut V,
    /// What the visitor writes to, used again for each text.
    with: String,
    edits: Edits,
}

impl<V: Visitor> Walk<'_, '_, V> {
    /// Walks the fields of a struct. Tagged ones name nothing, which a test holds.
    fn fields(&mut self, fields: &'static [Field]) -> Result<Fate, RewriteError> {
        let mut fate = Fate::Stays;
        for field in fields {
            if field.is_tagged() || !field.versions.contains(self.version) {
                continue;
            }
            let one = match field.kind {
                Kind::Struct(fields) if field.nullable.is_some() => self.nullable_struct(fields)?,
                kind => self.value(kind, field)?,
            };
            if one == Fate::Goes {
                fate = Fate::Goes;
            }
        }
        if self.flexible {
            self.reader.skip_tagged_fields()?;
        }
        Ok(fate)
    }

    /// Walks a field or an element of its array.
    fn value(&mut self, kind: Kind, field: &Field) -> Result<Fate, RewriteError> {
        let flexible = self.flexible && !field.is_never_compact;
        match kind {
            Kind::Fixed(size) => {
                self.reader.take(size, field.name)?;
            }
            Kind::Uuid => {
                let id = self.reader.uuid()?;
                if field.entity == Some(Entity::TopicId) {
                    self.reader.charge(size_of::<Uuid>())?;
                    self.visitor.topic_id(id);
                }
            }
            Kind::Bytes => {
                self.reader.slice(flexible, field.is_nullable(self.version))?;
            }
            Kind::Text => return self.text(field, flexible),
            Kind::Struct(fields) => return self.fields(fields),
            Kind::Array(element) => self.array(*element, field, flexible)?,
        }
        Ok(Fate::Stays)
    }

    fn text(&mut self, field: &Field, flexible: bool) -> Result<Fate, RewriteError> {
        let start = self.reader.position();
        let text = self.reader.str(flexible, field.is_nullable(self.version))?;
        let (Some(text), Some(entity)) = (text, field.entity) else { return Ok(Fate::Stays) };
        self.reader.charge(text.len() + NAME_BYTES)?;
        self.with.clear();
        match self.visitor.text(entity, text, &mut self.with) {
            Verdict::Keep => {}
            Verdict::Replace => {
                let range = start..self.reader.position();
                self.edits.push(range, |writer| writer.string(&self.with, flexible))?;
            }
            Verdict::Drop => return Ok(Fate::Goes),
        }
        Ok(Fate::Stays)
    }

    /// Walks a struct behind the byte that tells whether it is null.
    fn nullable_struct(&mut self, fields: &'static [Field]) -> Result<Fate, RewriteError> {
        let (start, edits) = (self.reader.position(), self.edits.list.len());
        if self.reader.i8()? >= 0 && self.fields(fields)? == Fate::Goes {
            self.edits.list.truncate(edits);
            self.edits.push(start..self.reader.position(), |writer| {
                writer.i8(-1);
                Ok::<_, RewriteError>(())
            })?;
        }
        Ok(Fate::Stays)
    }

    fn array(&mut self, kind: Kind, field: &Field, flexible: bool) -> Result<(), RewriteError> {
        let (count_at, edits) = (self.reader.position(), self.edits.list.len());
        let nullable = field.is_nullable(self.version);
        let Some(count) = self.reader.count(flexible, nullable, 1)? else { return Ok(()) };
        if let Kind::Fixed(size) = kind {
            self.reader.take(count.saturating_mul(size), field.name)?;
            return Ok(());
        }
        let counted = self.reader.position();
        let mut left = count;
        for _ in 0..count {
            let (start, edits) = (self.reader.position(), self.edits.list.len());
            if self.value(kind, field)? == Fate::Goes {
                left -= 1;
                self.edits.list.truncate(edits);
                self.edits.push(start..self.reader.position(), |_| Ok::<_, RewriteError>(()))?;
            }
        }
        if left < count {
            let range = count_at..counted;
            self.edits.insert(edits, range, |writer| writer.length(left, flexible, "array"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
