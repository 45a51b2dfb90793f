//! What is known about each API besides its messages.

mod generated;

use std::fmt;

use crate::error::DecodeError;
use crate::versions::VersionRange;

pub use generated::ApiKey;

/// One row of the table of APIs.
struct ApiRow {
    name: &'static str,
    versions: VersionRange,
    request_flexible_from: i16,
    response_flexible_from: i16,
}

impl ApiKey {
    /// The number on the wire.
    #[must_use]
    pub const fn key(self) -> i16 {
        self as i16
    }

    /// Kafka's name of the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The versions that this crate can read and write.
    #[must_use]
    pub const fn valid_versions(self) -> VersionRange {
        self.row().versions
    }

    /// Whether a request of this version is flexible (KIP-482).
    #[must_use]
    pub const fn is_flexible(self, version: i16) -> bool {
        version >= self.row().request_flexible_from
    }

    /// The version of the header before a request of this version: 1, or 2 with tagged fields.
    #[must_use]
    pub const fn request_header_version(self, version: i16) -> i16 {
        if self.is_flexible(version) { 2 } else { 1 }
    }

    /// The version of the header before a response of this version: 0, or 1 with tagged fields.
    /// ApiVersions stays at 0, since its reader does not know yet what the broker can (KIP-511).
    #[must_use]
    pub const fn response_header_version(self, version: i16) -> i16 {
        if matches!(self, Self::ApiVersions) || version < self.row().response_flexible_from {
            0
        } else {
            1
        }
    }
}

impl TryFrom<i16> for ApiKey {
    type Error = DecodeError;

    fn try_from(key: i16) -> Result<Self, DecodeError> {
        Self::from_key(key).ok_or(DecodeError::UnknownApi { key })
    }
}

impl From<ApiKey> for i16 {
    fn from(api: ApiKey) -> Self {
        api.key()
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
