//! Headers that layers add to records that they send, and what they say of a record's origin.

use moldau_client::Record;
use moldau_records::HeaderView;

use crate::context::Context;
use crate::failure::{Cause, Failure};
use crate::message::MessageRef;
use crate::outbox::To;

/// Headers of dead letters; their values are text.
pub mod header {
    /// Topic that the record was read from first.
    pub const TOPIC: &str = "dead-letter-topic";
    /// Its partition there.
    pub const PARTITION: &str = "dead-letter-partition";
    /// Its offset there.
    pub const OFFSET: &str = "dead-letter-offset";
    /// Its timestamp in ms since 1970.
    pub const TIMESTAMP: &str = "dead-letter-timestamp";
    /// How often its handling was tried.
    pub const ATTEMPTS: &str = "dead-letter-attempts";
    /// The kind of the failure: [`Failure::kind`](crate::Failure::kind).
    pub const KIND: &str = "dead-letter-kind";
    /// The failure in words.
    pub const CAUSE: &str = "dead-letter-cause";

    pub(super) const ALL: [&str; 7] = [TOPIC, PARTITION, OFFSET, TIMESTAMP, ATTEMPTS, KIND, CAUSE];
}

/// Headers of records in retry topics; their values are text.
pub mod retry_header {
    /// Topic that the record was read from first.
    pub const TOPIC: &str = "retry-topic";
    /// Its partition there.
    pub const PARTITION: &str = "retry-partition";
    /// Its offset there.
    pub const OFFSET: &str = "retry-offset";
    /// Its timestamp there, in ms since 1970.
    pub const TIMESTAMP: &str = "retry-timestamp";
    /// How often its handling was tried.
    pub const ATTEMPTS: &str = "retry-attempts";
    /// How many delays it was given.
    pub const STEP: &str = "retry-step";
    /// When it is to be tried again, in ms since 1970.
    pub const DUE: &str = "retry-due";
    /// When its handling failed first, in ms since 1970.
    pub const FIRST_FAILURE: &str = "retry-first-failure";
    /// The kind of the last failure: [`Failure::kind`](crate::Failure::kind).
    pub const KIND: &str = "retry-kind";
    /// The last failure in words.
    pub const CAUSE: &str = "retry-cause";

    pub(super) const ALL: [&str; 10] =
        [TOPIC, PARTITION, OFFSET, TIMESTAMP, ATTEMPTS, STEP, DUE, FIRST_FAILURE, KIND, CAUSE];
}

/// Headers of records that [`Pipe`](crate::Pipe) sends; their values are text.
pub mod pipe_header {
    /// Topic that the record was read from first.
    pub const TOPIC: &str = "pipe-topic";
    /// Its partition there.
    pub const PARTITION: &str = "pipe-partition";
    /// Its offset there.
    pub const OFFSET: &str = "pipe-offset";
}

/// Where a record was read first, whatever retry topics it came through.
pub(crate) struct Origin {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
}

impl Origin {
    pub(crate) fn of(message: MessageRef<'_>) -> Self {
        Self::by(message, retry_header::TOPIC, retry_header::PARTITION, retry_header::OFFSET)
            .unwrap_or_else(|| Self {
                topic: message.topic().to_owned(),
                partition: message.partition(),
                offset: message.offset(),
                timestamp: message.timestamp(),
            })
    }

    /// Where a dead letter came from; `None` if it does not say so.
    pub(super) fn of_dead_letter(message: MessageRef<'_>) -> Option<Self> {
        Self::by(message, header::TOPIC, header::PARTITION, header::OFFSET)
    }

    fn by(message: MessageRef<'_>, topic: &str, partition: &str, offset: &str) -> Option<Self> {
        Some(Self {
            topic: std::str::from_utf8(message.header(topic)?).ok()?.to_owned(),
            partition: number(message, partition)?,
            offset: number(message, offset)?,
            timestamp: made_at(message),
        })
    }
}

/// When a record was made, in ms since 1970: its timestamp, that of its origin in a retry topic.
pub(super) fn made_at(message: MessageRef<'_>) -> i64 {
    number(message, retry_header::TIMESTAMP).unwrap_or_else(|| message.timestamp())
}

/// Whether a record came through a retry topic.
pub(super) fn is_retry(message: MessageRef<'_>) -> bool {
    message.header(retry_header::TOPIC).is_some()
}

/// How often the handling of a record of a retry topic was tried before it came there.
pub(crate) fn attempts_before(message: MessageRef<'_>) -> u32 {
    number(message, retry_header::ATTEMPTS).unwrap_or(0)
}

/// The number in a header.
pub(super) fn number<N: std::str::FromStr>(message: MessageRef<'_>, key: &str) -> Option<N> {
    std::str::from_utf8(message.header(key)?).ok()?.parse().ok()
}

/// A failure in words, short enough for a header.
pub(super) fn cause(failure: &Failure) -> String {
    failure.to_string().chars().take(CAUSE_CHARS_MAX).collect()
}

/// The time in ms since 1970.
pub(super) fn now_ms(context: Context<'_>) -> i64 {
    i64::try_from(context.now().as_millis()).unwrap_or(i64::MAX)
}

/// Sends a record, with its key as it is, and another value if there is one. Of its headers those
/// of dead letters and retry topics are left out, and those that are `added`, which follow.
pub(super) async fn send(
    message: MessageRef<'_>,
    to: To<'_>,
    value: Option<&[u8]>,
    added: &[(&str, String)],
    context: Context<'_>,
) -> Result<(), Failure> {
    let is_added = |key: &[u8]| added.iter().any(|(it, _)| it.as_bytes() == key);
    let kept = message.headers().filter(|it| !is_ours(it.key) && !is_added(it.key));
    let added = added
        .iter()
        .map(|(key, value)| HeaderView { key: key.as_bytes(), value: Some(value.as_bytes()) });
    let headers: Vec<HeaderView<'_>> = kept.chain(added).collect();
    let record = Record {
        token: 0,
        timestamp: now_ms(context),
        key: message.key(),
        value,
        headers: &headers,
    };
    let sent = context.outbox().send(to, record).await;
    sent.map_err(|error| Cause::Failed(error.into()).into())
}

fn is_ours(key: &[u8]) -> bool {
    header::ALL.iter().chain(&retry_header::ALL).any(|it| it.as_bytes() == key)
}

/// Longest cause in a header: some lines of text, so that the record still fits its batch.
const CAUSE_CHARS_MAX: usize = 1024;
