//! The broker's metadata records: what it writes into the journal beside the data.
//!
//! ```text
//! kind u8 | version u8 (0) | body
//! 1 topic created      id 16 | name str16 | partitions u32 | configs
//! 2 topic deleted      id 16
//! 3 partitions grown   id 16 | partitions u32
//! 4 topic configured   id 16 | configs            (the whole set, not a difference)
//! 5 group              the coordinator's own record, to the end
//! 6 producer ids       the coordinator's own record, to the end
//! configs = count u16, then (key str16, value str16) each; str16 = length u16, UTF-8 bytes
//! ```
//! Integers are big-endian. A record that does not parse to its last byte stops the start of the
//! broker: it passed the journal's checksum, so it was written by another version.

use std::collections::BTreeMap;

/// The configuration that a topic overrides, by key.
pub(crate) type TopicOverrides = BTreeMap<String, String>;

/// One metadata record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MetadataRecord {
    /// A topic and all its partitions exist from here on.
    TopicCreated { id: [u8; 16], name: String, partitions: u32, overrides: TopicOverrides },
    /// The topic and its data are gone.
    TopicDeleted { id: [u8; 16] },
    /// The topic has this many partitions.
    PartitionsGrown { id: [u8; 16], partitions: u32 },
    /// The topic overrides exactly these configurations.
    TopicConfigured { id: [u8; 16], overrides: TopicOverrides },
    /// A record of the group coordinator.
    Group(Vec<u8>),
    /// A block of producer ids, as the coordinator writes it.
    ProducerIds(Vec<u8>),
}

impl MetadataRecord {
    /// The record as it stands in the journal.
    ///
    /// Strings were bounded to `u16::MAX` bytes when they were accepted; a longer one is cut off
    /// by an assertion, never silently.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::TopicCreated { id, name, partitions, overrides } => {
                out.extend_from_slice(&[1, 0]);
                out.extend_from_slice(id);
                put_string(&mut out, name);
                out.extend_from_slice(&partitions.to_be_bytes());
                put_overrides(&mut out, overrides);
            }
            Self::TopicDeleted { id } => {
                out.extend_from_slice(&[2, 0]);
                out.extend_from_slice(id);
            }
            Self::PartitionsGrown { id, partitions } => {
                out.extend_from_slice(&[3, 0]);
                out.extend_from_slice(id);
                out.extend_from_slice(&partitions.to_be_bytes());
            }
            Self::TopicConfigured { id, overrides } => {
                out.extend_from_slice(&[4, 0]);
                out.extend_from_slice(id);
                put_overrides(&mut out, overrides);
            }
            Self::Group(record) => {
                out.extend_from_slice(&[5, 0]);
                out.extend_from_slice(record);
            }
            Self::ProducerIds(record) => {
                out.extend_from_slice(&[6, 0]);
                out.extend_from_slice(record);
            }
        }
        out
    }

    /// Reads one record.
    ///
    /// # Errors
    /// Says what does not fit; the record then belongs to another version of Moldau.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut fields = Fields(bytes);
        let [kind, version] = fields.array::<2>()?;
        if version != 0 {
            return Err(format!("metadata record of kind {kind} has unknown version {version}"));
        }
        let record = match kind {
            1 => Self::TopicCreated {
                id: fields.array()?,
                name: fields.string()?,
                partitions: u32::from_be_bytes(fields.array()?),
                overrides: fields.overrides()?,
            },
            2 => Self::TopicDeleted { id: fields.array()? },
            3 => Self::PartitionsGrown {
                id: fields.array()?,
                partitions: u32::from_be_bytes(fields.array()?),
            },
            4 => Self::TopicConfigured { id: fields.array()?, overrides: fields.overrides()? },
            5 => Self::Group(std::mem::take(&mut fields.0).to_vec()),
            6 => Self::ProducerIds(std::mem::take(&mut fields.0).to_vec()),
            other => return Err(format!("metadata record of unknown kind {other}")),
        };
        match fields.0.len() {
            0 => Ok(record),
            rest => Err(format!("{rest} bytes follow a metadata record of kind {kind}")),
        }
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    let length = u16::try_from(text.len()).expect("bounded when the request was accepted");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn put_overrides(out: &mut Vec<u8>, overrides: &TopicOverrides) {
    let count = u16::try_from(overrides.len()).expect("there are fewer config keys than that");
    out.extend_from_slice(&count.to_be_bytes());
    for (key, value) in overrides {
        put_string(out, key);
        put_string(out, value);
    }
}

/// What is left of a record.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) =
            self.0.split_first_chunk::<N>().ok_or("metadata record ends early".to_owned())?;
        self.0 = rest;
        Ok(*head)
    }

    fn string(&mut self) -> Result<String, String> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let (head, rest) =
            self.0.split_at_checked(length).ok_or("metadata record ends early".to_owned())?;
        self.0 = rest;
        let text = std::str::from_utf8(head).map_err(|error| format!("not UTF-8: {error}"))?;
        Ok(text.to_owned())
    }

    fn overrides(&mut self) -> Result<TopicOverrides, String> {
        let count = u16::from_be_bytes(self.array()?);
        (0..count).map(|_| Ok((self.string()?, self.string()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn overrides() -> impl Strategy<Value = TopicOverrides> {
        proptest::collection::btree_map("[a-z.]{1,20}", ".{0,20}", 0..5)
    }

    fn record() -> impl Strategy<Value = MetadataRecord> {
        prop_oneof![
            (any::<[u8; 16]>(), "[a-z]{1,249}", any::<u32>(), overrides()).prop_map(
                |(id, name, partitions, overrides)| MetadataRecord::TopicCreated {
                    id,
                    name,
                    partitions,
                    overrides
                }
            ),
            any::<[u8; 16]>().prop_map(|id| MetadataRecord::TopicDeleted { id }),
            (any::<[u8; 16]>(), any::<u32>())
                .prop_map(|(id, partitions)| MetadataRecord::PartitionsGrown { id, partitions }),
            (any::<[u8; 16]>(), overrides())
                .prop_map(|(id, overrides)| MetadataRecord::TopicConfigured { id, overrides }),
            any::<Vec<u8>>().prop_map(MetadataRecord::Group),
            any::<Vec<u8>>().prop_map(MetadataRecord::ProducerIds),
        ]
    }

    proptest! {
        #[test]
        fn a_record_reads_back_as_written(record in record()) {
            prop_assert_eq!(MetadataRecord::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn a_shortened_record_is_refused(record in record(), cut in 1usize..40) {
            let bytes = record.encode();
            let kept = bytes.len().saturating_sub(cut);
            let shorter = MetadataRecord::decode(&bytes[..kept]);
            // The coordinator's records run to the end, so a shorter one is another record.
            let runs_to_end =
                matches!(record, MetadataRecord::Group(_) | MetadataRecord::ProducerIds(_));
            prop_assert!(shorter.is_err() || runs_to_end);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
            if let Ok(record) = MetadataRecord::decode(&bytes) {
                prop_assert_eq!(record.encode(), bytes);
            }
        }
    }
}
