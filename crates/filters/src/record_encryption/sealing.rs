//! Produce: values are sealed straight into the frame that is sent on.

use std::sync::Arc;

use moldau_encryption::{KekId, KmsError, Sealer, SealingKey};
use moldau_protocol::ErrorCode;
use moldau_records::{BatchView, Compression, Edit, RawRecord, RecordEditor, iter_batches};
use tokio::time::Instant;

use super::counters::{Cause, NO_KEY};
use super::{KEYS_WITHIN, RecordEncryption, UnresolvedKey, by};
use crate::batches::{Ahead, Choice, Fault, Name, Policy, Stop, Waiting};

/// The filter at work on one produce request.
pub(super) struct Sealing<'f> {
    filter: &'f RecordEncryption,
    /// Until when keys are waited for, once any is.
    deadline: Option<Instant>,
    /// What the policy waits for.
    needs: Option<Need>,
    /// What it waited for.
    kek_at_hand: Option<Result<KekId, KmsError>>,
    key_at_hand: Option<Result<Arc<SealingKey>, KmsError>>,
    /// The key encryption key of the present topic; `None` if its records pass in clear.
    kek: Option<KekId>,
    /// For the present batch.
    sealer: Option<Sealer>,
    sealed: u32,
}

enum Need {
    /// The key encryption key of this alias.
    Kek(String),
    /// A key for so many records of the present topic.
    Key(u32),
}

impl<'f> Sealing<'f> {
    pub(super) fn new(filter: &'f RecordEncryption) -> Self {
        Self {
            filter,
            deadline: None,
            needs: None,
            kek_at_hand: None,
            key_at_hand: None,
            kek: None,
            sealer: None,
            sealed: 0,
        }
    }

    /// Requests the keys of all topics from the service at once: first what their aliases lead to,
    /// then the data keys. The results are there when each topic has its turn.
    async fn request_all(&self, ahead: &Ahead<'_>, deadline: Instant) {
        let RecordEncryption { keys, settings, .. } = self.filter;
        let aliases =
            || ahead.topics().map(|name: Name<'_>| settings.template.alias(name.as_str()));
        for alias in aliases() {
            drop(keys.kek_now(&alias));
        }
        for alias in aliases() {
            if let Ok(kek) = by(deadline, keys.kek(&alias)).await {
                drop(keys.sealing_key_now(&kek, 0));
            }
        }
    }
}

impl Policy for Sealing<'_> {
    fn topic(&mut self, topic: Option<&str>) -> Choice {
        self.kek = None;
        let RecordEncryption { keys, settings, .. } = self.filter;
        let Some(topic) = topic else { return Choice::Refuse(Fault::unknown_topic()) };
        let alias = settings.template.alias(topic);
        let Some(kek) = self.kek_at_hand.take().or_else(|| keys.kek_now(&alias)) else {
            self.needs = Some(Need::Kek(alias));
            return Choice::Wait;
        };
        match (kek, settings.unresolved_key) {
            (Ok(kek), _) => {
                self.kek = Some(kek);
                Choice::Read
            }
            (Err(KmsError::UnknownKey(_)), UnresolvedKey::Passthrough) => Choice::Pass,
            (Err(error), _) => Choice::Refuse(of_service(&error)),
        }
    }

    fn partition(&mut self, records: &[u8]) {
        if self.kek.is_none() {
            let batches = iter_batches(records).flatten();
            let counts = batches.map(|it| u64::try_from(it.records_count()).unwrap_or_default());
            self.filter.counters.passed_plain.add(counts.sum());
        }
    }

    fn refused(&mut self, topic: Option<&str>, partition: i32, fault: &Fault) {
        self.filter.counters.not_sealed(Cause::of(fault));
        self.filter.not_sealed.log(|unlogged| {
            let Fault { code, message, detail, .. } = fault;
            let error = detail.as_deref().unwrap_or(message);
            tracing::warn!(topic, partition, ?code, error, unlogged, "records are not sealed");
        });
    }

    fn wait<'a>(&'a mut self, ahead: Ahead<'a>) -> Waiting<'a> {
        Box::pin(async move {
            let keys = &self.filter.keys;
            let is_first = self.deadline.is_none();
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + KEYS_WITHIN);
            if is_first {
                self.request_all(&ahead, deadline).await;
            }
            match (self.needs.take(), &self.kek) {
                (Some(Need::Kek(alias)), _) => {
                    self.kek_at_hand = Some(by(deadline, keys.kek(&alias)).await);
                }
                (Some(Need::Key(records)), Some(kek)) => {
                    self.key_at_hand = Some(by(deadline, keys.sealing_key(kek, records)).await);
                }
                _ => {}
            }
        })
    }
}

impl RecordEditor for Sealing<'_> {
    type Error = Stop;

    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Stop> {
        batch.check_count()?;
        self.sealed = 0;
        let records = batch.records_count().unsigned_abs();
        let RecordEncryption { keys, settings, .. } = self.filter;
        let key_now = || keys.sealing_key_now(self.kek.as_ref()?, records);
        let Some(key) = self.key_at_hand.take().or_else(key_now) else {
            self.needs = Some(Need::Key(records));
            return Err(Stop::Wait);
        };
        let key = key.map_err(|error| of_service(&error))?;
        self.sealer = Some(Sealer::new(key, records));
        Ok(settings.recompression.of(batch.compression()?))
    }

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        let sealer = self.sealer.as_mut().expect("a batch began");
        self.sealed += u32::from(sealer.seal(record, edit)?);
        Ok(())
    }

    fn end(&mut self, _: &BatchView<'_>) -> Result<(), Stop> {
        self.filter.counters.sealed.add(self.sealed.into());
        Ok(())
    }
}

fn of_service(error: &KmsError) -> Fault {
    let (code, message) = match error {
        KmsError::UnknownKey(_) => (ErrorCode::InvalidRecord, NO_KEY),
        _ => (ErrorCode::KafkaStorageError, "the key of the topic is not available at the moment"),
    };
    Fault { detail: Some(error.to_string()), ..Fault::new(code, message) }
}
