//! Confluent's wire format.

use std::fmt;

use crate::message::Message;

/// Names a schema in a registry.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum SchemaId {
    /// By its number.
    Id(u32),
    /// By its GUID, in the usual form with hyphens.
    Guid(String),
}

impl SchemaId {
    /// The id of a record's value, and what follows it.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub(super) fn of(message: &Message) -> Result<(Self, &[u8]), &'static str> {
        let value = message.value().ok_or("the value is null")?;
        if let Some(header) = message.header(HEADER) {
            let (id, rest) = Self::read(header)?;
            return match rest {
                [] => Ok((id, value)),
                _ => Err("bytes follow the schema id in its header"),
            };
        }
        Self::read(value)
    }

    /// The id at the beginning of a value, and what follows it. In Protobuf values the message
    /// indexes are next.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub fn read(bytes: &[u8]) -> Result<(Self, &[u8]), &'static str> {
        match bytes.split_first() {
            Some((0, rest)) => {
                let (id, rest) = rest.split_first_chunk().ok_or("the schema id is cut off")?;
                Ok((Self::Id(u32::from_be_bytes(*id)), rest))
            }
            Some((1, rest)) => {
                let (guid, rest) =
                    rest.split_first_chunk::<16>().ok_or("the schema guid is cut off")?;
                let digits: String = guid.iter().map(|byte| format!("{byte:02x}")).collect();
                let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
                let parts = parts.map(|range| digits.get(range).unwrap_or_default());
                Ok((Self::Guid(parts.join("-")), rest))
            }
            Some(_) => Err("the value does not begin with a schema id"),
            None => Err("the value is empty"),
        }
    }
}

impl fmt::Display for SchemaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Guid(guid) => guid.fmt(f),
        }
    }
}

/// What stands before a payload.
pub(super) fn prefix(id: u32) -> Vec<u8> {
    let mut prefix = vec![0];
    prefix.extend_from_slice(&id.to_be_bytes());
    prefix
}

/// Reads which message of its schema follows, and moves `bytes` past it.
///
/// # Errors
/// What is wrong with it.
#[cfg(feature = "protobuf")]
pub(super) fn read_indexes(bytes: &mut &[u8]) -> Result<Vec<i32>, &'static str> {
    let read = |bytes: &mut &[u8]| {
        moldau_records::varint::read_i32(bytes).map_err(|_| "the message indexes are damaged")
    };
    let count = usize::try_from(read(bytes)?).ok().filter(|count| *count <= INDEXES_MAX);
    match count.ok_or("the message is nested too deeply")? {
        0 => Ok(vec![0]),
        count => (0..count).map(|_| read(bytes)).collect(),
    }
}

/// Appends which message of its schema follows.
#[cfg(feature = "protobuf")]
pub(super) fn write_indexes(indexes: &[i32], out: &mut Vec<u8>) {
    use moldau_records::varint::write_i32;
    if indexes == [0] {
        return write_i32(out, 0);
    }
    write_i32(out, i32::try_from(indexes.len()).unwrap_or(i32::MAX));
    for index in indexes {
        write_i32(out, *index);
    }
}

/// Header that holds the schema id instead of the value.
const HEADER: &str = "__value_schema_id";

/// Deepest nesting of a Protobuf message: that of Protobuf itself.
#[cfg(feature = "protobuf")]
const INDEXES_MAX: usize = 100;

#[cfg(all(test, feature = "protobuf"))]
mod tests {
    use super::*;

    /// The bytes are those of the serializer of confluent-kafka 2.16.1 for Python.
    #[test]
    fn message_indexes_are_those_of_other_serializers() {
        let messages: [(&[i32], &[u8]); 4] = [
            (&[0], b"\x00"),
            (&[1], b"\x02\x02"),
            (&[2, 1], b"\x04\x04\x02"),
            (&[0, 0], b"\x04\0\0"),
        ];
        for (indexes, bytes) in messages {
            let mut written = Vec::new();
            write_indexes(indexes, &mut written);
            assert_eq!(written, bytes);
            assert_eq!(read_indexes(&mut &*bytes), Ok(indexes.to_vec()));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            if let Ok((id, rest)) = SchemaId::read(&bytes)
                && let SchemaId::Id(id) = id
            {
                assert_eq!([&prefix(id), rest].concat(), bytes);
            }
            let mut rest = &*bytes;
            if let Ok(indexes) = read_indexes(&mut rest) {
                let mut written = Vec::new();
                write_indexes(&indexes, &mut written);
                assert_eq!(read_indexes(&mut &*written), Ok(indexes));
            }
        }
    }
}
