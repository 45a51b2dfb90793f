//! Opens records that the proxy sealed.

use std::collections::HashMap;
use std::sync::{Arc, Once};

use moldau_encryption::{DataKeys, KeySettings, Kms, KmsError, MARKER_KEY, SealedRecord};
use moldau_records::RawRecord;

use super::Layer;
use crate::context::Context;
use crate::failure::{BoxError, Cause, Failure};
use crate::handler::{Handler, Work};
use crate::message::{Message, MessageRef};

/// Opens the values of records that the proxy, or Kroxylicious, has sealed: inner layers and the
/// handler see them in clear. Records that are not sealed pass as they are. The service of keys
/// wraps the data keys of records; those that were opened are kept for as long as its settings say.
///
/// A key that the service does not give fails the record or batch, to be tried again. A record that
/// was changed, or whose data key is damaged, is undecodable; the others of its batch are handled.
///
/// It belongs inside of all layers that send records, such as [`DeadLetters`](super::DeadLetters)
/// or [`RetryTopics`](super::RetryTopics): they then send what was sealed as it is.
#[derive(Clone)]
pub struct Decrypt {
    keys: Arc<DataKeys>,
    upkeep: Arc<Once>,
}

impl Decrypt {
    /// Opens records with keys of `kms`.
    pub fn with(kms: Arc<dyn Kms>, settings: &KeySettings) -> Self {
        let keys = DataKeys::new(kms, settings, fastrand::u64(..));
        Self { keys: Arc::new(keys), upkeep: Arc::new(Once::new()) }
    }

    /// The record in clear; `None` if it is not sealed.
    async fn open(&self, message: MessageRef<'_>) -> Result<Option<Message>, Failure> {
        if message.value().is_none() || message.header(MARKER_KEY).is_none() {
            return Ok(None);
        }
        let undecodable = |error: BoxError| Failure::from(Cause::Undecodable(error));
        let record = message.encoded().map_err(|error| undecodable(error.into()))?;
        let raw = RawRecord::parse(&record).map_err(|error| undecodable(error.into()))?;
        let found = SealedRecord::find(&raw).map_err(|error| undecodable(error.into()))?;
        let Some(sealed) = found else { return Ok(None) };
        let sealed = sealed.map_err(|damage| undecodable(damage.to_string().into()))?;
        let key = self.keys.opening_key(sealed.edek()).await.map_err(|error| match error {
            KmsError::DamagedEdek(_) => undecodable(error.into()),
            _ => Cause::Failed(error.into()).into(),
        })?;
        let mut opened = Vec::new();
        let open = sealed.open_into(&key, &mut opened);
        open.map_err(|damage| undecodable(damage.to_string().into()))?;
        message.with(opened).map(Some).map_err(|error| undecodable(error.into()))
    }

    /// Lets keys be forgotten in time, until the layer is gone.
    fn start_upkeep(&self) {
        let keys = Arc::downgrade(&self.keys);
        self.upkeep.call_once(|| {
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(DataKeys::UPKEEP_INTERVAL).await;
                    let Some(keys) = keys.upgrade() else { return };
                    if let Err(error) = keys.upkeep().await {
                        tracing::warn!(%error, "the service of keys cannot be maintained");
                    }
                }
            });
        });
    }
}

impl std::fmt::Debug for Decrypt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decrypt").finish_non_exhaustive()
    }
}

impl<W: Work> Layer<W> for Decrypt {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        self.start_upkeep();
        let (mut opened, mut damaged) = (HashMap::new(), Vec::new());
        let mut failure = None;
        for message in work.messages() {
            match self.open(message).await {
                Ok(None) => {}
                Ok(Some(clear)) => drop(opened.insert(message.offset(), clear)),
                Err(error) if error.is_retriable() => return Err(error),
                Err(error) => {
                    damaged.push(message.offset());
                    failure.get_or_insert(error);
                }
            }
        }
        let work = match damaged.is_empty() {
            true => Some(work),
            false => work.retain(|message| !damaged.contains(&message.offset())),
        };
        if let Some(work) = work {
            let in_clear = |message: MessageRef<'_>| {
                opened.get(&message.offset()).cloned().unwrap_or_else(|| message.to_message())
            };
            let work = if opened.is_empty() { work } else { work.map(in_clear) };
            let called = inner.call(work, context).await;
            called.map_err(|failure| failure.and_concerning(&damaged))?;
        }
        failure.map_or(Ok(()), |failure| Err(failure.only(damaged)))
    }
}
