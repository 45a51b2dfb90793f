//! Counters of key events; they only grow.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::KmsError;

/// Kind of call to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// The key encryption key of an alias.
    ResolveAlias,
    /// A fresh data key.
    GenerateDataKey,
    /// The data key in an EDEK.
    DecryptEdek,
}

/// How a call to a service ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// As asked.
    Ok,
    /// [`KmsError::UnknownKey`].
    UnknownKey,
    /// [`KmsError::Refused`].
    Refused,
    /// [`KmsError::Unavailable`].
    Unavailable,
    /// [`KmsError::DamagedEdek`].
    DamagedEdek,
}

/// A cache of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyCache {
    /// Alias to key encryption key.
    Aliases,
    /// Key encryption key to the data key that seals.
    SealingKeys,
    /// EDEK to the data key that opens.
    OpeningKeys,
}

/// Numbers since the process started.
#[derive(Debug, Default)]
pub struct KeyCounters {
    calls: [[AtomicU64; Outcome::ALL.len()]; Operation::ALL.len()],
    hits: [AtomicU64; KeyCache::ALL.len()],
    waits: [AtomicU64; KeyCache::ALL.len()],
    sealing_keys_replaced: AtomicU64,
    records_reserved: AtomicU64,
}

impl KeyCounters {
    /// Calls that a service was asked, retries included.
    #[must_use]
    pub fn calls(&self, operation: Operation, outcome: Outcome) -> u64 {
        self.calls[operation as usize][outcome as usize].load(Ordering::Relaxed)
    }

    /// Look-ups that were answered from memory, errors among them.
    #[must_use]
    pub fn hits(&self, cache: KeyCache) -> u64 {
        self.hits[cache as usize].load(Ordering::Relaxed)
    }

    /// Look-ups that had to wait for a service.
    #[must_use]
    pub fn waits(&self, cache: KeyCache) -> u64 {
        self.waits[cache as usize].load(Ordering::Relaxed)
    }

    /// Sealing keys that took the place of one before.
    #[must_use]
    pub fn sealing_keys_replaced(&self) -> u64 {
        self.sealing_keys_replaced.load(Ordering::Relaxed)
    }

    /// Records for which sealing keys were given out.
    #[must_use]
    pub fn records_reserved(&self) -> u64 {
        self.records_reserved.load(Ordering::Relaxed)
    }

    pub(super) fn count_call(&self, operation: Operation, error: Option<&KmsError>) {
        let outcome = match error {
            None => Outcome::Ok,
            Some(KmsError::UnknownKey(_)) => Outcome::UnknownKey,
            Some(KmsError::Refused(_)) => Outcome::Refused,
            Some(KmsError::Unavailable(_)) => Outcome::Unavailable,
            Some(KmsError::DamagedEdek(_)) => Outcome::DamagedEdek,
        };
        self.calls[operation as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_hit(&self, cache: KeyCache) {
        self.hits[cache as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_wait(&self, cache: KeyCache) {
        self.waits[cache as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_replaced(&self) {
        self.sealing_keys_replaced.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_reserved(&self, records: u32) {
        self.records_reserved.fetch_add(u64::from(records), Ordering::Relaxed);
    }
}

impl Operation {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::ResolveAlias, Self::GenerateDataKey, Self::DecryptEdek];

    /// The name that metrics give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ResolveAlias => "resolve_alias",
            Self::GenerateDataKey => "generate_data_key",
            Self::DecryptEdek => "decrypt_edek",
        }
    }
}

impl Outcome {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 5] =
        [Self::Ok, Self::UnknownKey, Self::Refused, Self::Unavailable, Self::DamagedEdek];

    /// The name that metrics give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::UnknownKey => "unknown_key",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::DamagedEdek => "damaged_edek",
        }
    }
}

impl KeyCache {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Aliases, Self::SealingKeys, Self::OpeningKeys];

    /// The name that metrics give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Aliases => "aliases",
            Self::SealingKeys => "sealing_keys",
            Self::OpeningKeys => "opening_keys",
        }
    }
}
