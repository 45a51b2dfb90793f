//! Dead-letter records of share groups (KIP-1191): one for each record that a group gives up.
//!
//! The journal says first that records are to be archived. Then their dead-letter records are
//! appended, and once these are durable the journal says that the records are archived. A crash
//! between the two repeats the dead-letter records. One chunk is under way at a time, and
//! partitions take turns. A group whose topic does not fit, or whose dead-letter records are
//! refused, loses them as in Kafka: the log says so, and the records are archived.
//!
//! Differs from Kafka: a topic is not the dead-letter topic of itself, and a record that is too
//! large for the topic is the only one that is lost.

mod letter;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_coordinator::DeadLetterSettings;
use moldau_coordinator::share_partitions::{DeadLetters, ShareKey};
use moldau_protocol::ErrorCode;
use moldau_records::Validator;

use self::letter::{Envelope, Letter};
use crate::catalog::Topic;
use crate::clock::wall_clock_ms;
use crate::config::LEADER_EPOCH;
use crate::error::{Refusal, append_refusal, records_refusal};
use crate::logs::{Answered, AppendError, Appended, Isolation, Log, Lsn, ReadLimits, Reading};
use crate::partition;
use crate::retention::join_blocking;
use crate::share_service::delivery_settings;
use crate::state::State;
use crate::topic_config::TopicOverrides;

/// Bytes of records that one chunk copies, beside the first batch: Kafka's limit.
const COPIED_BYTES_MAX: usize = 1 << 20;

/// Memory of a read from disk beside its bytes: the blocks in which its ends lie.
const READ_MEMORY: usize = 4 << 20;

/// Appends of one chunk while the journal takes nothing, as in Kafka; then its records are lost.
const ATTEMPTS_MAX: u32 = 5;

/// The pause before the second attempt, as in Kafka. It doubles with each further one.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Writes dead-letter records, for as long as the returned future is polled.
pub(crate) async fn run(state: &Arc<State>) {
    let mut last = None;
    loop {
        let (key, letters) = state.shares.given_up(&state.storage, last.as_ref()).await;
        bury(state, &key, letters).await;
        last = Some(key);
    }
}

/// Writes the dead-letter records of a first part of these records, and archives that part.
async fn bury(state: &Arc<State>, key: &ShareKey, letters: DeadLetters) {
    let settings = state.groups.view(|groups| groups.dead_letters(&key.group_id));
    let written = match settings {
        Some(settings) => write(state, key, letters, &settings).await,
        None => {
            let message = "the group has no dead-letter topic any more";
            Err(Lost { last: letters.last, refusal: refused(message) })
        }
    };
    let last = written.unwrap_or_else(|lost| {
        tracing::warn!(
            group = &*key.group_id,
            topic_id = %key.topic_id,
            partition = key.partition,
            first_offset = letters.first,
            last_offset = lost.last,
            problem = lost.refusal.message,
            "records are archived without dead-letter records"
        );
        lost.last
    });
    let buried = DeadLetters { last, ..letters };
    let settings = state.groups.view(|groups| groups.share_settings(&key.group_id));
    let archived = state.shares.bury(&state.storage, key, &buried, &delivery_settings(&settings));
    if let Err(refusal) = archived {
        tracing::error!(problem = refusal.message, "failed to archive dead letters");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}

/// Records without dead-letter records, up to this one.
struct Lost {
    last: i64,
    refusal: Refusal,
}

/// Writes dead-letter records, and returns the offset of the last record that has one.
async fn write(
    state: &Arc<State>,
    key: &ShareKey,
    letters: DeadLetters,
    settings: &DeadLetterSettings,
) -> Result<i64, Lost> {
    let lost = |refusal| Lost { last: letters.last, refusal };
    let source = state.catalog.by_id(key.topic_id);
    let source = source.ok_or_else(|| lost(refused("the topic is deleted")))?;
    let mut attempt = 1;
    loop {
        let target = target(state, &source, settings).await.map_err(lost)?;
        let copied = match settings.copies_records {
            true => copied(&source, key, letters).await,
            false => Copied::default(),
        };
        let envelope = Envelope {
            group: Arc::clone(&key.group_id),
            topic: Arc::clone(&source.name),
            partition: key.partition,
            letters: DeadLetters { last: copied.last.unwrap_or(letters.last), ..letters },
        };
        match append(state, target, envelope, copied.batches).await {
            Ok(last) => return Ok(last),
            Err(Lost { refusal, .. }) if is_retried(refusal.code) && attempt < ATTEMPTS_MAX => {
                tracing::warn!(problem = refusal.message, attempt, "no dead-letter record yet");
                tokio::time::sleep(RETRY_PAUSE * 2_u32.pow(attempt - 1)).await;
                attempt += 1;
            }
            Err(lost) => return Err(lost),
        }
    }
}

/// A full disk, or a cluster that does not answer.
fn is_retried(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::KafkaStorageError | ErrorCode::RequestTimedOut)
}

/// The topic of a group's dead-letter records, made if that is allowed.
async fn target(
    state: &State,
    source: &Topic,
    settings: &DeadLetterSettings,
) -> Result<Arc<Topic>, Refusal> {
    let own = &state.config.groups.share;
    let name = settings.topic.as_str();
    if name.starts_with("__") {
        return Err(refused(format!("dead-letter topic {name} starts with __")));
    }
    if !name.starts_with(own.dead_letter_prefix.as_str()) {
        let prefix = &own.dead_letter_prefix;
        return Err(refused(format!("dead-letter topic {name} does not start with {prefix}")));
    }
    if *name == *source.name {
        return Err(refused(format!("{name} would be the dead-letter topic of itself")));
    }
    let topic = match state.catalog.by_name(name) {
        Some(topic) => topic,
        None if own.dead_letter_auto_create => {
            let overrides = TopicOverrides::from([
                (TAKES_DEAD_LETTERS.to_owned(), "true".to_owned()),
                ("message.timestamp.type".to_owned(), "CreateTime".to_owned()),
            ]);
            let partitions = state.config.partitions_default;
            let (topic, lsn) = state.catalog.create(&state.storage, name, partitions, overrides)?;
            // Before that a cluster has no such logs.
            written(state, lsn).await?;
            topic
        }
        None => return Err(refused(format!("there is no dead-letter topic {name}"))),
    };
    match topic.config.takes_dead_letters {
        true => Ok(topic),
        false => Err(refused(format!("topic {name} has no {TAKES_DEAD_LETTERS}=true"))),
    }
}

/// The key of a topic that allows dead-letter records.
const TAKES_DEAD_LETTERS: &str = "errors.deadletterqueue.group.enable";

fn refused(message: impl Into<String>) -> Refusal {
    Refusal::new(ErrorCode::InvalidConfig, message)
}

/// What was read of the records themselves.
#[derive(Default)]
struct Copied {
    batches: Vec<Bytes>,
    /// The last offset that the batches reach; `None` if all others get headers alone.
    last: Option<i64>,
}

/// Reads records that are to be copied. Those that cannot be read get headers alone, as in Kafka.
async fn copied(source: &Topic, key: &ShareKey, letters: DeadLetters) -> Copied {
    let Some(log) = source.logs.find(key.partition) else { return Copied::default() };
    let from = letters.first.max(log.start_offset());
    if from > letters.last {
        return Copied::default();
    }
    let read = match read(&log, from).await {
        Ok(read) => read,
        Err(error) => {
            tracing::warn!(topic = &*source.name, offset = from, %error, "dead letters lack data");
            return Copied::default();
        }
    };
    let last = (read.next_offset > from).then(|| letters.last.min(read.next_offset - 1));
    Copied { batches: read.batches, last }
}

async fn read(log: &Log, from: i64) -> Result<crate::logs::Read, crate::logs::Error> {
    let limits = ReadLimits {
        bytes_max: COPIED_BYTES_MAX,
        memory_max: COPIED_BYTES_MAX + READ_MEMORY,
        min_one: true,
    };
    match log.read(from, limits, Isolation::ReadUncommitted)? {
        Reading::Ready(read) => Ok(read),
        Reading::Pending(read) => read.await,
    }
}

/// Appends what fits of the dead-letter records, and waits until it is durable.
async fn append(
    state: &Arc<State>,
    target: Arc<Topic>,
    envelope: Envelope,
    batches: Vec<Bytes>,
) -> Result<i64, Lost> {
    let index = envelope.partition % target.partitions_end();
    let all = envelope.letters.last;
    let found = partition::for_append(state, &target, index);
    let log = found.map_err(|refusal| Lost { last: all, refusal })?;
    let counted = Arc::clone(state);
    let packed = tokio::task::spawn_blocking(move || {
        let now_ms = wall_clock_ms();
        let Letter { bytes, last } = envelope.pack(&batches, &target.config, now_ms);
        let lost = |refusal| Lost { last, refusal };
        let mut validator = Validator::default();
        let checked = validator.check(&bytes, &letter::rules(&target.config, now_ms));
        let batch = checked.map_err(|invalid| lost(records_refusal(&invalid.error)))?;
        let appended = log.append(&batch, LEADER_EPOCH);
        let appended = appended.map_err(|error| lost(append_refusal(&error)))?;
        counted.counters.produced(bytes.len(), batch.records_count());
        Ok((appended, last))
    });
    let (appended, last) = join_blocking(packed).await?;
    durable(state, appended).await.map_err(|refusal| Lost { last, refusal })?;
    Ok(last)
}

/// Without a limit of time: the record of a slow disk would be written twice.
async fn durable(state: &State, appended: Answered<Appended, AppendError>) -> Result<(), Refusal> {
    match appended {
        Answered::Now(appended) => written(state, appended.lsn).await,
        Answered::Later(ticket) => ticket.await.map(drop).map_err(|error| append_refusal(&error)),
    }
}

async fn written(state: &State, lsn: Lsn) -> Result<(), Refusal> {
    let durable = state.storage.wait_durable(lsn).await;
    durable.map_err(|_failed| {
        let message = "the journal failed, or another broker is the controller";
        Refusal::new(ErrorCode::KafkaStorageError, message)
    })
}
