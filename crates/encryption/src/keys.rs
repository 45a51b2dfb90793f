//! The life cycle of data keys: which key seals, which opens, and when a service is asked.
//!
//! One data key at a time seals for each key encryption key. From its refresh age, or when half of
//! the records that it may seal are reserved, the next is asked for while it goes on sealing; from
//! its expiry, or with its last record, it seals no more. So a service that is down is noticed only
//! by keys that were never asked for, and by others between refresh and expiry at the earliest.
//! Keys that open and what aliases lead to live by the same rules.
//!
//! If the service says that a key is gone, the key is dropped at once: nothing more is read under
//! it, and nothing is written that could not be read again.
//!
//! All of it is shared by all threads; look-ups must come from within a tokio runtime.

mod cache;
mod circuit;
mod counters;
mod loader;
mod service;
mod template;

use std::sync::Arc;
use std::time::Duration;

pub use self::counters::{KeyCache, KeyCounters, Operation, Outcome};
pub use self::template::KekTemplate;

use self::cache::{Limits, Use};
use self::loader::{Loader, Source};
use self::service::Service;
use crate::{Edek, KekId, Kms, KmsError, KmsFuture, OpeningKey, SealingKey};

/// How long keys are used. The defaults are Kroxylicious's where it has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySettings {
    /// Records that one data key seals at most, reserved a batch at a time; a batch that has more
    /// gets a data key of its own.
    pub records_per_key_max: u64,
    /// Age from which a sealing key is replaced while it goes on sealing.
    pub sealing_key_refresh: Duration,
    /// Age from which a sealing key seals no more.
    pub sealing_key_expiry: Duration,
    /// Most opening keys in memory.
    pub opening_keys_max: usize,
    /// Time without use after which an opening key is forgotten.
    pub opening_key_idle_max: Duration,
    /// Age from which the service is asked again for an opening key that is in use: how long a
    /// revoked key encryption key goes on opening while the service is up.
    pub opening_key_refresh: Duration,
    /// Age from which an opening key opens no more: the same while the service is down.
    pub opening_key_expiry: Duration,
    /// Age from which the service is asked again what an alias leads to.
    pub alias_refresh: Duration,
    /// Age from which what an alias led to counts no more.
    pub alias_expiry: Duration,
    /// How long an alias or a key that the service does not know is not asked for again.
    pub unknown_expiry: Duration,
}

impl Default for KeySettings {
    fn default() -> Self {
        Self {
            records_per_key_max: 5_000_000,
            sealing_key_refresh: Duration::from_secs(3600),
            sealing_key_expiry: Duration::from_secs(7200),
            opening_keys_max: 1000,
            opening_key_idle_max: Duration::from_secs(3600),
            opening_key_refresh: Duration::from_secs(3600),
            opening_key_expiry: Duration::from_secs(7200),
            alias_refresh: Duration::from_secs(480),
            alias_expiry: Duration::from_secs(600),
            unknown_expiry: Duration::from_secs(30),
        }
    }
}

/// The data keys of one key management service.
///
/// Each look-up has two forms. The one that ends in `_now` never waits: where it gives `None`, a
/// call to the service is under way, and the other form waits for it.
pub struct DataKeys {
    aliases: Arc<Loader<Aliases>>,
    sealing: Arc<Loader<Sealing>>,
    opening: Arc<Loader<Opening>>,
    service: Arc<Service>,
    records_per_key_max: u64,
}

impl DataKeys {
    /// How often [`DataKeys::upkeep`] should be called: expired keys stay in memory no longer than
    /// this.
    pub const UPKEEP_INTERVAL: Duration = Duration::from_secs(60);

    /// Data keys that `kms` makes and decrypts. `seed` varies the pauses between attempts.
    #[must_use]
    pub fn new(kms: Arc<dyn Kms>, settings: &KeySettings, seed: u64) -> Self {
        let service = Arc::new(Service::new(kms, seed));
        let unknown = settings.unknown_expiry;
        let aliases = Limits {
            refresh: settings.alias_refresh,
            expiry: settings.alias_expiry,
            idle_max: settings.alias_expiry,
            unknown,
            slots_max: ALIASES_MAX,
        };
        let sealing = Limits {
            refresh: settings.sealing_key_refresh,
            expiry: settings.sealing_key_expiry,
            idle_max: settings.sealing_key_expiry,
            unknown,
            slots_max: SEALING_KEYS_MAX,
        };
        let opening = Limits {
            refresh: settings.opening_key_refresh,
            expiry: settings.opening_key_expiry,
            idle_max: settings.opening_key_idle_max,
            unknown,
            slots_max: settings.opening_keys_max.max(1),
        };
        Self {
            aliases: Loader::new(aliases, Arc::clone(&service)),
            sealing: Loader::new(sealing, Arc::clone(&service)),
            opening: Loader::new(opening, Arc::clone(&service)),
            service,
            records_per_key_max: settings.records_per_key_max,
        }
    }

    /// The key encryption key that `alias` names.
    ///
    /// # Errors
    /// [`KmsError::UnknownKey`] if none has this alias; other [`KmsError`]s say nothing about that.
    pub async fn kek(&self, alias: &str) -> Result<KekId, KmsError> {
        self.aliases.get(alias, |kek| Use::Fresh(kek.clone())).await
    }

    /// [`DataKeys::kek`] without a wait.
    pub fn kek_now(&self, alias: &str) -> Option<Result<KekId, KmsError>> {
        self.aliases.get_now(alias, |kek| Use::Fresh(kek.clone()))
    }

    /// The key that seals under `kek`, with `records` of the records that it may seal reserved.
    ///
    /// # Errors
    /// [`KmsError`], where no key may be used and the service gave none.
    pub async fn sealing_key(
        &self,
        kek: &KekId,
        records: u32,
    ) -> Result<Arc<SealingKey>, KmsError> {
        let records_max = self.records_per_key_max;
        let key = self.sealing.get(&*kek.0, |key| key.reserve(records, records_max)).await?;
        self.service.counters.count_reserved(records);
        Ok(key)
    }

    /// [`DataKeys::sealing_key`] without a wait; nothing is reserved where it gives `None`.
    pub fn sealing_key_now(
        &self,
        kek: &KekId,
        records: u32,
    ) -> Option<Result<Arc<SealingKey>, KmsError>> {
        let records_max = self.records_per_key_max;
        let key = self.sealing.get_now(&*kek.0, |key| key.reserve(records, records_max));
        if let Some(Ok(_)) = key {
            self.service.counters.count_reserved(records);
        }
        key
    }

    /// The key that opens what was sealed with the data key in `edek`.
    ///
    /// # Errors
    /// [`KmsError`], where no key may be used and the service gave none.
    pub async fn opening_key(&self, edek: &[u8]) -> Result<Arc<OpeningKey>, KmsError> {
        self.opening.get(edek, |key| Use::Fresh(Arc::clone(key))).await
    }

    /// [`DataKeys::opening_key`] without a wait.
    pub fn opening_key_now(&self, edek: &[u8]) -> Option<Result<Arc<OpeningKey>, KmsError>> {
        self.opening.get_now(edek, |key| Use::Fresh(Arc::clone(key)))
    }

    /// Forgets keys whose time is over, and lets the service do what is due.
    ///
    /// # Errors
    /// [`KmsError`] of the service; the keys are forgotten anyway.
    pub async fn upkeep(&self) -> Result<(), KmsError> {
        self.aliases.sweep();
        self.sealing.sweep();
        self.opening.sweep();
        self.service.maintain().await
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> &KeyCounters {
        &self.service.counters
    }
}

struct Aliases;

impl Source for Aliases {
    type Key = str;
    type Value = KekId;
    const OPERATION: Operation = Operation::ResolveAlias;
    const CACHE: KeyCache = KeyCache::Aliases;

    fn ask<'a>(kms: &'a dyn Kms, alias: &'a str) -> KmsFuture<'a, KekId> {
        kms.resolve_alias(alias)
    }
}

struct Sealing;

/// A sealing key, and for how many records it was given out.
struct InUse {
    key: Arc<SealingKey>,
    reserved: u64,
}

impl InUse {
    /// Reserves records. A batch with more than the maximum gets a key that seals nothing else:
    /// the count stays within what one request can hold, far below the 2^32 values up to which
    /// AES-GCM with such nonces is safe.
    fn reserve(&mut self, records: u32, records_max: u64) -> Use<Arc<SealingKey>> {
        let reserved = self.reserved.saturating_add(u64::from(records));
        if reserved > records_max && self.reserved > 0 {
            return Use::Spent;
        }
        self.reserved = reserved;
        let key = Arc::clone(&self.key);
        if reserved > records_max - records_max / SPARE_SHARE {
            Use::Ageing(key)
        } else {
            Use::Fresh(key)
        }
    }
}

impl Source for Sealing {
    type Key = str;
    type Value = InUse;
    const OPERATION: Operation = Operation::GenerateDataKey;
    const CACHE: KeyCache = KeyCache::SealingKeys;

    fn ask<'a>(kms: &'a dyn Kms, kek: &'a str) -> KmsFuture<'a, InUse> {
        Box::pin(async move {
            let wrapped = kms.generate_data_key(&KekId(kek.into())).await?;
            let key = SealingKey::new(&wrapped.key, &wrapped.edek)?;
            Ok(InUse { key: Arc::new(key), reserved: 0 })
        })
    }
}

struct Opening;

impl Source for Opening {
    type Key = [u8];
    type Value = Arc<OpeningKey>;
    const OPERATION: Operation = Operation::DecryptEdek;
    const CACHE: KeyCache = KeyCache::OpeningKeys;

    fn ask<'a>(kms: &'a dyn Kms, edek: &'a [u8]) -> KmsFuture<'a, Arc<OpeningKey>> {
        Box::pin(async move {
            let key = kms.decrypt_edek(&Edek(edek.into())).await?;
            Ok(Arc::new(OpeningKey::new(&key)))
        })
    }
}

/// The next key is asked for when half of the records is left: at a hundred thousand records a
/// second and the default maximum, 25 seconds before it is needed. It costs two calls where one
/// would do, each for millions of records.
const SPARE_SHARE: u64 = 2;
/// Most aliases in memory: the topics of a large cluster.
const ALIASES_MAX: usize = 10_000;
/// Most sealing keys in memory: a key for each topic of a large cluster.
const SEALING_KEYS_MAX: usize = 10_000;

#[cfg(test)]
mod tests;
