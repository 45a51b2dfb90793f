//! Metrics of clients (KIP-714): what operators want of whom, who may push when, what was pushed.
//!
//! Subscriptions are metadata records of the journal. Clients and their metrics are in memory
//! alone.
//!
//! | module | what it holds |
//! |---|---|
//! | `subscriptions` | the resources `client-metrics`, and which of them match a client |
//! | `instances` | clients, and when they may ask and push |
//! | `otlp` | the format of what they push |
//! | `shown` | the values for `/metrics` |
//! | `forwarder` | the way to a collector |

mod forwarder;
mod instances;
mod otlp;
mod shown;
mod subscriptions;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_protocol::ErrorCode;
use moldau_records::{Compression, Decompressor};
use moldau_storage::Lsn;
use moldau_threads::Mutex;
use prometheus_client::encoding::DescriptorEncoder;

use self::forwarder::Forwarder;
pub(crate) use self::instances::Push;
use self::instances::{Instances, known_for_ms};
use self::shown::Shown;
use self::subscriptions::Subscriptions;
pub(crate) use self::subscriptions::{
    Client, SUBSCRIPTION_KEYS, SubscriptionKey, Wanted, check_name,
};
use crate::config::TelemetrySettings;
use crate::error::Refusal;
use crate::metadata_record::MetadataRecord;
use crate::share_session::ConnectionId;
use crate::storage::Storage;
use crate::topic_config::TopicOverrides;

/// Bytes of a push that was decompressed, unless the limit of a push is higher.
const DECOMPRESSED_BYTES_MAX: usize = 4 << 20;

/// All of it.
pub(crate) struct Telemetry {
    bytes_max: usize,
    /// Guards subscriptions and the order of their records in the journal.
    subscriptions: Mutex<Journaled>,
    /// Guards who is known. Taken after the subscriptions.
    instances: Mutex<Instances>,
    /// Guards what was pushed.
    shown: Mutex<Shown>,
    pub(crate) forwarder: Forwarder,
    pub(crate) pushes: AtomicU64,
    pub(crate) throttles: AtomicU64,
    pub(crate) unknown_subscriptions: AtomicU64,
    pub(crate) errors: AtomicU64,
}

#[derive(Default)]
struct Journaled {
    subscriptions: Subscriptions,
    /// Grows with every change of the subscriptions.
    generation: u64,
}

impl Telemetry {
    /// Without subscriptions.
    pub(crate) fn new(settings: &TelemetrySettings) -> Self {
        Self {
            bytes_max: settings.bytes_max,
            subscriptions: Mutex::default(),
            instances: Mutex::default(),
            shown: Mutex::default(),
            forwarder: Forwarder::new(settings.collector.clone()),
            pushes: AtomicU64::new(0),
            throttles: AtomicU64::new(0),
            unknown_subscriptions: AtomicU64::new(0),
            errors: AtomicU64::new(0),
        }
    }

    /// Applies a record that the journal holds.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn replay(&self, name: String, configs: TopicOverrides) -> Result<(), String> {
        let mut guard = self.subscriptions.lock();
        guard.generation += 1;
        guard.subscriptions.apply(name, configs)
    }

    /// Takes the subscriptions of others in place of these.
    pub(crate) fn replace(&self, by: &Self) {
        let subscriptions = std::mem::take(&mut by.subscriptions.lock().subscriptions);
        let mut guard = self.subscriptions.lock();
        guard.subscriptions = subscriptions;
        guard.generation += 1;
    }

    /// Reads the subscriptions.
    pub(crate) fn view<T>(&self, view: impl FnOnce(&Subscriptions) -> T) -> T {
        view(&self.subscriptions.lock().subscriptions)
    }

    /// Changes what a subscription sets, and returns the position that must be durable first.
    ///
    /// # Errors
    /// What `change` says, a bad value, or a journal that takes nothing.
    pub(crate) fn configure(
        &self,
        storage: &Storage,
        name: &str,
        validate_only: bool,
        change: impl FnOnce(&mut TopicOverrides) -> Result<(), Refusal>,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut guard = self.subscriptions.lock();
        let mut configs = guard.subscriptions.configs(name);
        change(&mut configs)?;
        guard.subscriptions.check(name, &configs)?;
        if validate_only {
            return Ok(None);
        }
        let name = name.to_owned();
        let record = MetadataRecord::ClientMetricsConfigured { name, configs };
        let written = storage.write(&record.encode())?;
        if let MetadataRecord::ClientMetricsConfigured { name, configs } = record {
            let applied = guard.subscriptions.apply(name, configs);
            applied.map_err(|problem| Refusal::new(ErrorCode::InvalidConfig, problem))?;
        }
        guard.generation += 1;
        Ok(Some(written))
    }

    /// Hands over the records that rebuild the subscriptions, which do not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let guard = self.subscriptions.lock();
        let records = guard.subscriptions.iter().map(|(name, configs)| {
            let (name, configs) = (name.clone(), configs.clone());
            MetadataRecord::ClientMetricsConfigured { name, configs }
        });
        take(records.collect())
    }

    /// What a client is to push, with the id of its subscription.
    ///
    /// # Errors
    /// `THROTTLING_QUOTA_EXCEEDED`.
    pub(crate) fn subscription(
        &self,
        client: &Client,
        connection: ConnectionId,
        now_ms: i64,
    ) -> Result<(Wanted, i32), Refusal> {
        let guard = self.subscriptions.lock();
        let of = (&guard.subscriptions, guard.generation);
        let got = self.instances.lock().get(of, (client, connection), now_ms);
        self.counted(got)
    }

    /// Most bytes of one push.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Takes over what a client pushes.
    ///
    /// # Errors
    /// Kafka's code of what is wrong with it.
    pub(crate) fn push(
        &self,
        client: &Client,
        connection: ConnectionId,
        push: &Push,
        metrics: &[u8],
        now_ms: i64,
    ) -> Result<(), Refusal> {
        let guard = self.subscriptions.lock();
        let of = (&guard.subscriptions, guard.generation);
        let by = (client, connection);
        let accepted = self.instances.lock().push(of, by, push, self.bytes_max, now_ms);
        drop(guard);
        let interval_ms = self.counted(accepted)?;
        if metrics.is_empty() {
            return Ok(());
        }
        let taken = self.take(client, push, metrics, (interval_ms, now_ms));
        taken.map_err(|problem| {
            self.instances.lock().refused(client.instance_id, ErrorCode::InvalidRecord);
            self.errors.fetch_add(1, Ordering::Relaxed);
            Refusal::new(ErrorCode::InvalidRecord, problem)
        })?;
        self.pushes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Forgets the client of a connection; what it pushed is shown for some time.
    pub(crate) fn disconnected(&self, connection: ConnectionId) {
        self.instances.lock().disconnected(connection);
    }

    /// Clients that are known.
    pub(crate) fn instances(&self) -> usize {
        self.instances.lock().len()
    }

    /// Values that are shown, and how many found no room so far.
    pub(crate) fn series(&self) -> (usize, u64) {
        let shown = self.shown.lock();
        (shown.len(), shown.dropped)
    }

    /// Writes what clients pushed for a scrape.
    ///
    /// # Errors
    /// The encoder's own.
    pub(crate) fn encode(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        now_ms: i64,
    ) -> Result<(), fmt::Error> {
        let mut shown = self.shown.lock();
        shown.forget(now_ms);
        shown.encode(encoder)
    }

    fn take(
        &self,
        client: &Client,
        push: &Push,
        metrics: &[u8],
        (interval_ms, now_ms): (i32, i64),
    ) -> Result<(), String> {
        let unknown = |_| "there is no such compression type".to_owned();
        let compression = u8::try_from(push.compression_type).map_err(unknown)?;
        let compression = Compression::from_id(compression).map_err(|error| error.to_string())?;
        let mut decompressor = Decompressor::default();
        let bytes_max = self.bytes_max.max(DECOMPRESSED_BYTES_MAX);
        let payload = decompressor.decompress(compression, metrics, bytes_max);
        let payload = payload.map_err(|error| error.to_string())?;
        // All of it or nothing is shown.
        otlp::read(payload, |_| {}).map_err(|error| error.to_string())?;
        let forgotten_ms = now_ms.saturating_add(known_for_ms(interval_ms));
        if let Some(mut values) = self.shown.lock().of(client, forgotten_ms, now_ms) {
            otlp::read(payload, |point| values.put(&point)).map_err(|error| error.to_string())?;
        }
        if self.forwarder.is_on() {
            let parameters = client.parameters();
            let mut attributes: Vec<(&str, &str)> =
                parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
            attributes.push(("principal", &client.principal));
            let bytes_max = forwarder::REQUEST_BYTES_MAX;
            let payload = otlp::with_attributes(payload, &attributes, bytes_max);
            self.forwarder.put(payload.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn counted<T>(&self, outcome: Result<T, Refusal>) -> Result<T, Refusal> {
        match outcome.as_ref().err().map(|refusal| refusal.code) {
            Some(ErrorCode::ThrottlingQuotaExceeded) => {
                self.throttles.fetch_add(1, Ordering::Relaxed);
            }
            Some(ErrorCode::UnknownSubscriptionId) => {
                self.unknown_subscriptions.fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
        outcome
    }
}
