//! Seals the values of records on their way to the cluster and opens them on their way back, in the
//! format of the crate `moldau-encryption`.
//!
//! | message | what the filter does |
//! |---|---|
//! | Produce request | seals the values of topics that have a key |
//! | Produce answer | adds the partitions that were not sent, with their errors |
//! | Fetch and ShareFetch answer | opens sealed values, whatever the topic |
//!
//! A partition that cannot be sealed or opened fails alone:
//!
//! | cause | produce | fetch |
//! |---|---|---|
//! | the key management service does not answer, or refuses us | `KAFKA_STORAGE_ERROR` | the same |
//! | a topic without a key, where that is refused | `INVALID_RECORD` | |
//! | a key that was revoked | as without a key | `TOPIC_AUTHORIZATION_FAILED` |
//! | a topic id that the cluster does not know | `UNKNOWN_TOPIC_ID` | |
//! | a wrong checksum | `CORRUPT_MESSAGE` | the same |
//! | a malformed batch or sealed record | `INVALID_RECORD` | `CORRUPT_MESSAGE` |
//! | a batch that is too large, unpacked or sealed | `MESSAGE_TOO_LARGE` | `CORRUPT_MESSAGE` |
//!
//! Clients try again after `KAFKA_STORAGE_ERROR` and assume that nothing was written; the Java
//! client and librdkafka pass the other errors of a fetch to the application.
//!
//! Cost: each batch of a topic with a key is unpacked, checked and sealed straight into the frame
//! that is sent on, and packed with its own codec if it had one.

mod counters;
mod opening;
mod sealing;

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use moldau_encryption::{DataKeys, KekTemplate, KmsError};
use moldau_net::LogLimit;
use moldau_protocol::ApiKey;
use moldau_proxy::{
    Direction, Filter, FilterFuture, FilterMetric, RequestFrame, RequestOutcome, ResponseFrame,
    SessionContext, SessionFilter, TopicNames, Upstream,
};
use moldau_records::Compression;
use tokio::time::Instant;

use self::counters::Counters;
use self::opening::Opening;
use self::sealing::Sealing;
use crate::batches::names::MissingNames;
use crate::batches::refused::RefusedInFlight;
use crate::batches::{answer, names};

/// What to do with records for a topic that has no key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum UnresolvedKey {
    /// Pass them in clear.
    Passthrough,
    /// Refuse them.
    Reject,
}

/// What to do with fetched records that cannot be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Withhold their partition from there on.
    #[default]
    Fail,
    /// Pass them as they are.
    Pass,
}

/// How to compress rewritten batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recompression {
    /// With the codec that they had, as Kroxylicious does.
    #[default]
    SameCodec,
    /// Not at all. Sealed values do not compress, so it costs little beside keys and headers.
    Uncompressed,
}

impl Recompression {
    fn of(self, codec: Compression) -> Compression {
        match self {
            Self::SameCodec => codec,
            Self::Uncompressed => Compression::None,
        }
    }
}

/// The settings of a [`RecordEncryption`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordEncryptionSettings {
    /// Which key encryption key a topic has.
    pub template: KekTemplate,
    /// What to do with records for a topic that has no key.
    pub unresolved_key: UnresolvedKey,
    /// What to do with fetched records that cannot be opened.
    pub on_damage: OnDamage,
    /// How to compress rewritten batches.
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

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        let (context, refused) = (session.clone(), RefusedInFlight::default());
        Rc::new(Session { filter: self, context, refused })
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
    context: SessionContext,
    refused: RefusedInFlight,
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let topic_names = &self.filter.topic_names;
            let missing = MissingNames::default();
            names::learn(topic_names, &missing, &request, &mut upstream).await?;
            let mut sealing = Sealing::new(&self.filter);
            self.refused.produce(request, &self.context, topic_names, &mut sealing).await
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            if response.api_key() == ApiKey::Produce {
                return self.refused.answer(response);
            }
            let mut opening = Opening::new(&self.filter);
            answer::fetched(response, &self.context, None, &mut opening).await
        })
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

/// How long a message waits for all its keys together: whatever follows on the connection waits as
/// long, also for topics whose keys are there.
const KEYS_WITHIN: Duration = Duration::from_secs(2);
