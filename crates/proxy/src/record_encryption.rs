//! The filter that seals the values of records on their way to the cluster and opens them on their
//! way back, in the format of the crate `moldau-encryption`.
//!
//! | message | what becomes of it |
//! |---|---|
//! | Produce request | the values of topics that have a key are sealed |
//! | Produce answer | partitions that were not sent are added with their errors |
//! | Fetch and ShareFetch answer | sealed values are opened, whatever the topic |
//!
//! A partition that cannot be sealed or opened fails alone:
//!
//! | cause | produce | fetch |
//! |---|---|---|
//! | the key management service does not answer, or refuses us | `KAFKA_STORAGE_ERROR` | the same |
//! | a topic without a key, where that is refused | `INVALID_RECORD` | |
//! | a key that was revoked | as without a key | `TOPIC_AUTHORIZATION_FAILED` |
//! | a topic id that the cluster does not know | `UNKNOWN_TOPIC_ID` | |
//! | a batch or sealed record that is damaged | `CORRUPT_MESSAGE` | the same |
//! | a batch that outgrows what is held | `MESSAGE_TOO_LARGE` | `CORRUPT_MESSAGE` |
//!
//! Clients try again after `KAFKA_STORAGE_ERROR` and take it that nothing was written; the Java
//! client and librdkafka give the other errors of a fetch to the application.

mod counters;
mod fetch;
mod lengths;
mod produce;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use moldau_encryption::{DataKeys, KekTemplate, KmsError, OnDamage, Recompression};
use moldau_net::LogLimit;
use moldau_protocol::ApiKey;
use tokio::time::Instant;

use self::counters::Counters;
use self::produce::Unsent;
use crate::context::SessionContext;
use crate::filter::{Direction, Filter, FilterFuture, FilterMetric, RequestOutcome, SessionFilter};
use crate::frame::{RequestFrame, ResponseFrame};
use crate::topic_names::TopicNames;
use crate::upstream::Upstream;

/// Bytes of records of one batch, unpacked, before or after it is sealed: what a broker takes as a
/// frame at most.
const BATCH_BYTES_MAX: usize = 100 * 1024 * 1024;

/// How long all keys of a message may be waited for: what follows on the connection waits as long,
/// also for topics whose keys are there.
const KEYS_WITHIN: Duration = Duration::from_secs(2);

/// How long a thread is at work on one message before its other connections get their turn: some
/// MiB are sealed meanwhile.
const TURN_MAX: Duration = Duration::from_millis(1);

/// What becomes of records for a topic that has no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnresolvedKey {
    /// They pass in clear.
    Passthrough,
    /// They are refused.
    Reject,
}

/// What a [`RecordEncryption`] goes by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordEncryptionSettings {
    /// Which key encryption key a topic has.
    pub template: KekTemplate,
    /// What becomes of records for a topic that has no key.
    pub unresolved_key: UnresolvedKey,
    /// What becomes of fetched records that cannot be opened.
    pub on_damage: OnDamage,
    /// How rewritten batches are compressed.
    pub recompression: Recompression,
}

/// The filter of one virtual cluster.
pub struct RecordEncryption {
    settings: RecordEncryptionSettings,
    keys: DataKeys,
    topic_names: TopicNames,
    counters: Counters,
    not_sealed: LogLimit,
    not_opened: LogLimit,
    not_kept: LogLimit,
}

impl RecordEncryption {
    /// A filter that takes its keys from `keys`.
    #[must_use]
    pub fn new(settings: RecordEncryptionSettings, keys: DataKeys) -> Self {
        Self {
            settings,
            keys,
            topic_names: TopicNames::default(),
            counters: Counters::default(),
            not_sealed: LogLimit::default(),
            not_opened: LogLimit::default(),
            not_kept: LogLimit::default(),
        }
    }
}

/// Shows no key.
impl fmt::Debug for RecordEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordEncryption").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Filter for RecordEncryption {
    fn name(&self) -> &'static str {
        "record_encryption"
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        match direction {
            Direction::Request => api == ApiKey::Produce,
            Direction::Response => {
                matches!(api, ApiKey::Produce | ApiKey::Fetch | ApiKey::ShareFetch)
            }
        }
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Session { filter: self, unsent: RefCell::default() })
    }

    fn background(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let mut turns = tokio::time::interval(DataKeys::UPKEEP_INTERVAL);
            loop {
                turns.tick().await;
                if let Err(error) = self.keys.upkeep().await {
                    self.not_kept.log(|unlogged| {
                        tracing::warn!(%error, unlogged, "data keys cannot be refreshed");
                    });
                }
            }
        })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        self.counters.metrics(self.keys.counters())
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<RecordEncryption>,
    /// For each produce request in flight the partitions that were not sent, in the order of the
    /// requests, which is that of the answers.
    unsent: RefCell<VecDeque<Vec<Unsent>>>,
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let (outcome, unsent) = self.filter.seal(request, upstream).await?;
            if let RequestOutcome::Forward(request) = &outcome
                && request.expects_response()
            {
                self.unsent.borrow_mut().push_back(unsent);
            }
            Ok(outcome)
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            match response.api_key() {
                ApiKey::Produce => {
                    let unsent = self.unsent.borrow_mut().pop_front().unwrap_or_default();
                    produce::add_unsent(response, unsent)
                }
                ApiKey::Fetch => self.filter.open_fetch(response).await,
                ApiKey::ShareFetch => self.filter.open_share_fetch(response).await,
                _ => Ok(response),
            }
        })
    }
}

/// The time for which a thread has been at work on one message.
struct Turn(Instant);

impl Turn {
    fn begin() -> Self {
        Self(Instant::now())
    }

    /// Lets the thread's other connections have their turn if it was long. A small batch may take
    /// as long to unpack as a large one.
    async fn give_way(&mut self) {
        if self.0.elapsed() >= TURN_MAX {
            tokio::task::yield_now().await;
            self.0 = Instant::now();
        }
    }
}

/// Waits for a key until `deadline`.
async fn by<T>(
    deadline: Instant,
    key: impl Future<Output = Result<T, KmsError>>,
) -> Result<T, KmsError> {
    tokio::time::timeout_at(deadline, key).await.unwrap_or_else(|_| {
        Err(KmsError::Unavailable(format!("no keys within {} s", KEYS_WITHIN.as_secs())))
    })
}
