//! Version ranges as the message definitions write them: `3`, `0-4`, `2+` and `none`.

use anyhow::{Context, Result};

/// Versions `first..=last`; empty where `first > last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) first: i16,
    pub(crate) last: i16,
}

impl Versions {
    pub(crate) const NONE: Self = Self { first: 0, last: -1 };

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let number = |digits: &str| {
            digits.trim().parse::<i16>().with_context(|| format!("bad version range {text:?}"))
        };
        if text == "none" {
            return Ok(Self::NONE);
        }
        if let Some(first) = text.strip_suffix('+') {
            return Ok(Self { first: number(first)?, last: i16::MAX });
        }
        match text.split_once('-') {
            Some((first, last)) => Ok(Self { first: number(first)?, last: number(last)? }),
            None => Ok(Self { first: number(text)?, last: number(text)? }),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.first > self.last
    }

    pub(crate) fn and(self, other: Self) -> Self {
        let both = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        if both.is_empty() { Self::NONE } else { both }
    }

    /// The smallest range that holds both.
    pub(crate) fn hull(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.and(other) == other
    }

    pub(crate) fn contains(self, version: i16) -> bool {
        (self.first..=self.last).contains(&version)
    }

    /// The Rust condition on `v` that holds in these versions, given that `v` lies in `within`.
    pub(crate) fn condition(self, within: Self) -> String {
        let here = self.and(within);
        match (here.first == within.first, here.last == within.last) {
            _ if here.is_empty() => "false".to_owned(),
            (true, true) => "true".to_owned(),
            (false, true) => format!("v >= {}", here.first),
            (true, false) => format!("v <= {}", here.last),
            (false, false) => format!("({}..={}).contains(&v)", here.first, here.last),
        }
    }

    /// The opposite of [`condition`](Self::condition).
    pub(crate) fn opposite_condition(self, within: Self) -> String {
        let here = self.and(within);
        match (here.first == within.first, here.last == within.last) {
            _ if here.is_empty() => "true".to_owned(),
            (true, true) => "false".to_owned(),
            (false, true) => format!("v < {}", here.first),
            (true, false) => format!("v > {}", here.last),
            (false, false) => format!("!({}..={}).contains(&v)", here.first, here.last),
        }
    }

    /// For doc comments: `versions 3+`, `version 2`, `versions 0-4`, given the message's range.
    pub(crate) fn describe(self, within: Self) -> String {
        let here = self.and(within);
        if here.last == within.last {
            format!("versions {}+", here.first)
        } else if here.first == here.last {
            format!("version {}", here.first)
        } else {
            format!("versions {}-{}", here.first, here.last)
        }
    }
}
