/// Why stored bytes could not be read. The disk or another writer is to blame, never a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The record ends before its content does.
    #[error("the coordinator record ends early, while reading {field}")]
    Truncated {
        /// What was being read.
        field: &'static str,
    },
    /// Bytes follow the content of the record.
    #[error("{bytes} bytes follow the content of the coordinator record")]
    Trailing {
        /// How many bytes are left over.
        bytes: usize,
    },
    /// The format version is not known.
    #[error("coordinator record of format version {version}, which this program does not know")]
    Version {
        /// The version found.
        version: u8,
    },
    /// The kind of record is not known.
    #[error("coordinator record of unknown kind {kind}")]
    Kind {
        /// The kind found.
        kind: u8,
    },
    /// A value is outside what the format allows.
    #[error("coordinator record holds an invalid {field}")]
    Invalid {
        /// What was being read.
        field: &'static str,
    },
}
