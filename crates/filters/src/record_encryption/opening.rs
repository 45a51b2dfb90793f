//! Fetch and ShareFetch: sealed values are opened straight into the frame that is sent on.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use moldau_encryption::{Damage, KmsError, OpeningKey, SealedRecord};
use moldau_protocol::ErrorCode;
use moldau_records::{BatchView, Compression, Edit, RawRecord, RecordEditor};
use tokio::time::Instant;

use super::counters::Cause;
use super::{KEYS_WITHIN, OnDamage, RecordEncryption, by};
use crate::batches::{Ahead, Choice, Fault, Policy, Stop, Waiting};

/// What the service answered about a data key.
type Answer = Result<Arc<OpeningKey>, KmsError>;

/// The filter at work on one answer.
pub(super) struct Opening<'f> {
    filter: &'f RecordEncryption,
    /// Until when keys are waited for, once any is.
    deadline: Option<Instant>,
    /// The wrapped data key of the last sealed record, and the key itself.
    last_edek: Vec<u8>,
    last_key: Option<Answer>,
    /// Wrapped data keys of the present batch, to be waited for.
    missing: HashSet<Box<[u8]>>,
    /// Keys that were waited for, which the cache could forget before they are used.
    at_hand: HashMap<Box<[u8]>, Answer>,
    /// Of the present batch.
    base_offset: i64,
    opened: u32,
    passed_damaged: u32,
}

impl<'f> Opening<'f> {
    pub(super) fn new(filter: &'f RecordEncryption) -> Self {
        Self {
            filter,
            deadline: None,
            last_edek: Vec::new(),
            last_key: None,
            missing: HashSet::new(),
            at_hand: HashMap::new(),
            base_offset: 0,
            opened: 0,
            passed_damaged: 0,
        }
    }

    /// The key of an EDEK; `None` if it must be waited for.
    #[inline]
    fn key(&mut self, edek: &[u8]) -> Option<&Answer> {
        if self.last_key.is_none() || self.last_edek != edek {
            self.last_key = self.look_up(edek);
            self.last_edek.clear();
            self.last_edek.extend_from_slice(edek);
        }
        self.last_key.as_ref()
    }

    /// Once a key is missing, all keys of the batch are gathered.
    fn look_up(&mut self, edek: &[u8]) -> Option<Answer> {
        if self.missing.is_empty() {
            let at_hand = self.at_hand.get(edek).cloned();
            let answer = at_hand.or_else(|| self.filter.keys.opening_key_now(edek));
            if answer.is_some() {
                return answer;
            }
        }
        if !self.missing.contains(edek) {
            self.missing.insert(edek.into());
        }
        None
    }

    /// Lets a record pass as it is, where the settings say so.
    fn pass(
        &mut self,
        record: &RawRecord<'_>,
        damage: Damage,
        refusal: Option<KmsError>,
    ) -> Result<(), Stop> {
        let offset = self.base_offset.wrapping_add(i64::from(record.offset_delta()));
        if self.filter.settings.on_damage == OnDamage::Pass {
            if self.passed_damaged == 0 {
                self.filter.not_opened.log(|unlogged| {
                    tracing::warn!(offset, error = %damage, unlogged, "a record passes sealed");
                });
            }
            self.passed_damaged += 1;
            return Ok(());
        }
        let code = match refusal {
            Some(KmsError::UnknownKey(_)) => ErrorCode::TopicAuthorizationFailed,
            _ => ErrorCode::InvalidRecord,
        };
        let message = format!("the sealed record at offset {offset} cannot be opened: {damage}");
        let detail = refusal.map(|error| format!("{message} ({error})"));
        Err(Fault { detail, ..Fault::new(code, message) }.into())
    }
}

impl Policy for Opening<'_> {
    fn topic(&mut self, _: Option<&str>) -> Choice {
        Choice::Read
    }

    fn refused(&mut self, _: Option<&str>, _: i32, fault: &Fault) {
        self.filter.counters.not_opened(Cause::of(fault));
        self.filter.not_opened.log(|unlogged| {
            let Fault { code, message, detail, .. } = fault;
            let error = detail.as_deref().unwrap_or(message);
            tracing::warn!(?code, error, unlogged, "records are not opened");
        });
    }

    /// They have no headers, and so no sealed records.
    fn passes_old_formats(&self) -> bool {
        true
    }

    fn wait<'a>(&'a mut self, ahead: Ahead<'a>) -> Waiting<'a> {
        Box::pin(async move {
            let keys = &self.filter.keys;
            let is_first = self.deadline.is_none();
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + KEYS_WITHIN);
            if is_first {
                // The service is asked for all keys at once, so that none waits for another.
                let (mut last, mut requests) = (Vec::new(), 0);
                let request = |record: &RawRecord<'_>| {
                    if let Ok(Some(Ok(sealed))) = SealedRecord::find(record)
                        && sealed.edek() != last
                        && requests < EDEKS_MAX
                    {
                        drop(keys.opening_key_now(sealed.edek()));
                        last = sealed.edek().to_vec();
                        requests += 1;
                    }
                };
                ahead.records(request).await;
            }
            for edek in self.missing.drain() {
                let key = by(deadline, keys.opening_key(&edek)).await;
                self.at_hand.insert(edek, key);
            }
        })
    }
}

impl RecordEditor for Opening<'_> {
    type Error = Stop;

    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Stop> {
        self.base_offset = batch.base_offset();
        (self.opened, self.passed_damaged) = (0, 0);
        self.missing.clear();
        Ok(self.filter.settings.recompression.of(batch.compression()?))
    }

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        let sealed = match SealedRecord::find(record)? {
            None => return Ok(()),
            Some(Err(damage)) => return self.pass(record, damage, None),
            Some(Ok(sealed)) => sealed,
        };
        let Some(answer) = self.key(sealed.edek()) else {
            if self.missing.len() > EDEKS_MAX {
                let message = "the batch was sealed with too many data keys";
                return Err(Fault::new(ErrorCode::InvalidRecord, message).into());
            }
            return Ok(());
        };
        let key = match answer {
            Ok(key) => key,
            Err(error) if is_about_key(error) => {
                let refusal = error.clone();
                return self.pass(record, Damage::Edek, Some(refusal));
            }
            Err(error) => return Err(of_service(error).into()),
        };
        if let Err(damage) = sealed.open(key, edit) {
            return self.pass(record, damage, None);
        }
        self.opened += 1;
        Ok(())
    }

    fn end(&mut self, _: &BatchView<'_>) -> Result<(), Stop> {
        if !self.missing.is_empty() {
            return Err(Stop::Wait);
        }
        self.at_hand.clear();
        self.filter.counters.opened.add(self.opened.into());
        self.filter.counters.passed_damaged.add(self.passed_damaged.into());
        Ok(())
    }
}

/// Whether the service answered, and will not give this key.
fn is_about_key(error: &KmsError) -> bool {
    matches!(error, KmsError::UnknownKey(_) | KmsError::DamagedEdek(_))
}

fn of_service(error: &KmsError) -> Fault {
    let message = "the key of the records is not available at the moment";
    let fault = Fault::new(ErrorCode::KafkaStorageError, message);
    Fault { detail: Some(error.to_string()), ..fault }
}

/// Limit of data keys awaited in one batch, and requested ahead for one answer. A writer seals a
/// batch with one key. A forged batch must not cause millions of calls to the service.
const EDEKS_MAX: usize = 1000;
