//! Ranges of API versions.

use std::fmt;

/// The versions `min..=max` of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange {
    /// The oldest version.
    pub min: i16,
    /// The newest version.
    pub max: i16,
}

impl VersionRange {
    /// The versions from `min` to `max`, both included.
    #[must_use]
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    /// Whether a version lies in the range.
    #[must_use]
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// The versions that both ranges have, if any.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        let both = Self { min: self.min.max(other.min), max: self.max.min(other.max) };
        (both.min <= both.max).then_some(both)
    }

    /// Every version, ascending.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = i16> {
        self.min..=self.max
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min, self.max)
    }
}
