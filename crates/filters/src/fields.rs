//! The fields of messages of any API, found by the layout of the message.

use moldau_protocol::{DecodeError, Field, Kind, Layout, Reader, Uuid};

/// Receives the fields of a message in order, except records, other bytes and tagged fields.
pub(crate) trait Visit<'m> {
    /// A struct within an array begins.
    fn begin_element(&mut self) {}

    /// It ends.
    fn end_element(&mut self) {}

    /// A text.
    fn text(&mut self, field: &'static Field, text: &'m str);

    /// An id.
    fn uuid(&mut self, field: &'static Field, id: Uuid);

    /// A number of up to 64 bits, at this place of the body.
    fn number(&mut self, field: &'static Field, at: usize, number: i64);
}

/// Shows a visitor a whole message.
pub(crate) fn visit<'m>(
    layout: &Layout,
    version: i16,
    body: &'m [u8],
    visitor: &mut dyn Visit<'m>,
) -> Result<(), DecodeError> {
    if !layout.versions.contains(version) {
        return Err(DecodeError::UnsupportedVersion { message: layout.name, version });
    }
    let flexible = version >= layout.flexible_from;
    let mut walk = Walk { reader: Reader::new(body), version, flexible, visitor };
    walk.fields(layout.fields)
}

struct Walk<'m, 'v> {
    reader: Reader<'m>,
    version: i16,
    flexible: bool,
    visitor: &'v mut dyn Visit<'m>,
}

impl Walk<'_, '_> {
    fn fields(&mut self, fields: &'static [Field]) -> Result<(), DecodeError> {
        for field in fields {
            if field.is_tagged() || !field.versions.contains(self.version) {
                continue;
            }
            match field.kind {
                // A byte tells whether such a struct is there.
                Kind::Struct(_) if field.nullable.is_some() && self.reader.i8()? < 0 => {}
                kind => self.value(kind, field)?,
            }
        }
        if self.flexible {
            self.reader.skip_tagged_fields()?;
        }
        Ok(())
    }

    fn value(&mut self, kind: Kind, field: &'static Field) -> Result<(), DecodeError> {
        let flexible = self.flexible && !field.is_never_compact;
        let nullable = field.is_nullable(self.version);
        match kind {
            Kind::Fixed(size) => {
                let at = self.reader.position();
                let bytes = self.reader.take(size, field.name)?;
                if let Some(number) = number(bytes) {
                    self.visitor.number(field, at, number);
                }
            }
            Kind::Uuid => {
                let id = self.reader.uuid()?;
                self.visitor.uuid(field, id);
            }
            Kind::Bytes => {
                self.reader.slice(flexible, nullable)?;
            }
            Kind::Text => {
                if let Some(text) = self.reader.str(flexible, nullable)? {
                    self.visitor.text(field, text);
                }
            }
            Kind::Struct(fields) => self.fields(fields)?,
            Kind::Array(element) => {
                let count = self.reader.count(flexible, nullable, 1)?.unwrap_or_default();
                for _ in 0..count {
                    let is_struct = matches!(element, Kind::Struct(_));
                    if is_struct {
                        self.visitor.begin_element();
                    }
                    self.value(*element, field)?;
                    if is_struct {
                        self.visitor.end_element();
                    }
                }
            }
        }
        Ok(())
    }
}

/// Decodes a signed big-endian number.
fn number(bytes: &[u8]) -> Option<i64> {
    match *bytes {
        [byte] => Some(i8::from_be_bytes([byte]).into()),
        [a, b] => Some(i16::from_be_bytes([a, b]).into()),
        [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
        _ => Some(i64::from_be_bytes(*bytes.first_chunk()?)).filter(|_| bytes.len() == 8),
    }
}
