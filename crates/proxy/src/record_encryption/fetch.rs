//! Fetch and ShareFetch: values are opened straight into the frame that is sent on. A partition
//! that cannot be opened is given up to where it can be, and answered by an error from there on.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use bytes::Bytes;
use moldau_encryption::{
    Damage, Error, KeyLookup, KmsError, OnDamage, OpenOptions, Opened, Opener, OpeningKey,
    Recompression,
};
use moldau_protocol::messages::{FetchResponse, ShareFetchResponse, fetch_response};
use moldau_protocol::walk::{RunKind, Walker};
use moldau_protocol::{ErrorCode, Message};
use moldau_records::{BatchView, iter_batches};
use tokio::time::Instant;

use super::counters::Cause;
use super::{BATCH_BYTES_MAX, KEYS_WITHIN, RecordEncryption, Turn, lengths};
use crate::frame::ResponseFrame;
use crate::pool;
use crate::upstream::FilterError;

/// Length and correlation id, which the walker does not see.
const HEAD_BYTES: usize = 8;

/// Why a partition cannot be read on.
#[derive(Debug)]
struct Withheld {
    cause: Cause,
    code: ErrorCode,
    /// For the log.
    detail: String,
}

/// How far the records of a partition were opened.
struct Progress {
    /// Any batch differs from what came.
    rewritten: bool,
    /// What keeps the rest back.
    withheld: Option<Withheld>,
}

/// What the service said of each data key of a batch, which the cache could forget before it is
/// used.
type AtHand = HashMap<Box<[u8]>, Result<Arc<OpeningKey>, KmsError>>;

/// How to have the service asked for the keys of the partitions that follow. Done when the first
/// key of a message is waited for.
#[derive(Clone, Copy)]
struct Ahead<'a> {
    asked: &'a Cell<bool>,
    ask: &'a dyn Fn(),
}

impl Ahead<'_> {
    fn ask_once(self) {
        if !self.asked.replace(true) {
            (self.ask)();
        }
    }
}

impl RecordEncryption {
    /// Opens the records of a fetch answer.
    pub(super) async fn open_fetch(
        &self,
        response: ResponseFrame,
    ) -> Result<ResponseFrame, FilterError> {
        let version = response.api_version();
        let flexible = version >= FetchResponse::FLEXIBLE_FROM;
        let frame = response.bytes();
        let mut rest = frame.get(HEAD_BYTES..).unwrap_or_default();
        let mut walker = Walker::fetch_response(version, rest.len())?;
        let mut out = pool::take_frame(frame.len());
        out.reserve(frame.len());
        out.extend_from_slice(frame.get(..HEAD_BYTES).unwrap_or_default());
        let deadline = Instant::now() + KEYS_WITHIN;
        let mut rewritten = false;
        let mut withheld = Vec::new();
        let (mut ordinal, mut turn) = (0, Turn::begin());
        let asked = Cell::new(false);
        while !rest.is_empty() {
            let run = walker.next_run(rest)?;
            let (piece, after) =
                rest.split_at_checked(run.len).ok_or("a fetch answer is out of step")?;
            rest = after;
            if run.kind != RunKind::Records {
                out.extend_from_slice(piece);
                continue;
            }
            let length_at = lengths::find(&out, piece.len(), flexible)
                .ok_or("a length takes more bytes than it needs")?;
            let records_at = out.len();
            let ahead = Ahead { asked: &asked, ask: &|| self.ask_for_runs(&walker, rest) };
            let progress = self.open_records(piece, deadline, ahead, &mut turn, &mut out).await;
            if let Some(reason) = progress.withheld {
                self.tell_withheld(&reason);
                if out.len() == records_at {
                    // The answer still needs records here, by which the partition is found again.
                    out.extend_from_slice(piece);
                    withheld.push((ordinal, reason.code));
                }
            }
            rewritten |= progress.rewritten || out.len() - records_at != piece.len();
            let opened = out.len() - records_at;
            lengths::correct(&mut out, length_at, piece.len(), opened, flexible);
            ordinal += 1;
        }
        if !walker.is_complete() {
            return Err("a fetch answer ends within a field".into());
        }
        if !withheld.is_empty() {
            let response = response.with_bytes(out)?;
            let mut answer: FetchResponse = response.decode()?;
            withhold(&mut answer, &withheld);
            return Ok(response.with_message(&answer)?);
        }
        if rewritten {
            return Ok(response.with_bytes(out)?);
        }
        pool::give_frame(out);
        Ok(response)
    }

    /// Opens the records of an answer to a share consumer. A partition of which not all can be
    /// opened is withheld: its client would take missing records for gaps, and acknowledge them.
    pub(super) async fn open_share_fetch(
        &self,
        response: ResponseFrame,
    ) -> Result<ResponseFrame, FilterError> {
        let mut answer: ShareFetchResponse = response.decode()?;
        let deadline = Instant::now() + KEYS_WITHIN;
        let (mut changed, mut turn) = (false, Turn::begin());
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
        let all: Vec<Bytes> = partitions.map(|partition| partition.records.clone()).collect();
        let asked = Cell::new(false);
        let ahead =
            Ahead { asked: &asked, ask: &|| all.iter().for_each(|it| self.ask_for_all(it)) };
        for partition in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
            if partition.records.is_empty() {
                continue;
            }
            let mut out = Vec::with_capacity(partition.records.len());
            let progress =
                self.open_records(&partition.records, deadline, ahead, &mut turn, &mut out).await;
            changed |= progress.rewritten || progress.withheld.is_some();
            if let Some(reason) = progress.withheld {
                self.tell_withheld(&reason);
                out.clear();
                partition.error_code = reason.code.into();
                partition.acquired_records.clear();
            }
            partition.records = Bytes::from(out);
        }
        Ok(if changed { response.with_message(&answer)? } else { response })
    }

    /// Appends the batches as far as they can be opened.
    async fn open_records(
        &self,
        records: &[u8],
        deadline: Instant,
        ahead: Ahead<'_>,
        turn: &mut Turn,
        out: &mut Vec<u8>,
    ) -> Progress {
        let mut progress = Progress { rewritten: false, withheld: None };
        let mut batches = iter_batches(records);
        for batch in batches.by_ref() {
            let opened = match batch {
                Ok(batch) => self.open_batch(&batch, records, deadline, ahead, out).await,
                // Formats 0 and 1 have no headers, and so no sealed records.
                Err(moldau_records::Error::UnsupportedMagic { .. }) => break,
                Err(error) => Err(Withheld::of(&error.into(), None)),
            };
            match opened {
                Ok(rewritten) => progress.rewritten |= rewritten,
                Err(withheld) => {
                    progress.withheld = Some(withheld);
                    return progress;
                }
            }
            turn.give_way().await;
        }
        // The last batch may be cut off, and clients pass over it.
        out.extend_from_slice(batches.remainder());
        progress
    }

    /// Appends a batch, and says whether it differs from what came.
    async fn open_batch(
        &self,
        batch: &BatchView<'_>,
        records: &[u8],
        deadline: Instant,
        ahead: Ahead<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Withheld> {
        let mut at_hand = None;
        loop {
            let mut failure = None;
            let lookup = |edek: &[u8]| self.look_up(edek, at_hand.as_ref(), &mut failure);
            let opened = self.with_opener(|opener| opener.open(batch, lookup, out));
            match opened.map_err(|error| Withheld::of(&error, failure.as_ref()))? {
                Opened::Unchanged => {
                    out.extend_from_slice(batch.bytes());
                    return Ok(false);
                }
                Opened::Rewritten(counts) => {
                    self.counters.opened(counts.opened);
                    if let Some((offset, damage)) = counts.first_passed {
                        self.counters.passed_damaged(counts.passed);
                        self.tell_passed(offset, damage);
                    }
                    return Ok(true);
                }
                Opened::KeyUnknown => {}
            }
            if let Some(error) = failure.filter(|error| !is_about_key(error)) {
                return Err(Withheld::of_service(&error));
            }
            self.ask_for_all(records);
            ahead.ask_once();
            at_hand = Some(self.keys_of(batch, deadline).await?);
        }
    }

    /// The key of an EDEK, from the keys at hand once these were gathered. A failure that is not
    /// about this key alone counts as not knowing it.
    fn look_up(
        &self,
        edek: &[u8],
        at_hand: Option<&AtHand>,
        failure: &mut Option<KmsError>,
    ) -> KeyLookup<Arc<OpeningKey>> {
        let said = match at_hand {
            Some(keys) => keys.get(edek).cloned(),
            None => self.keys.opening_key_now(edek),
        };
        let error = match said {
            None => return KeyLookup::Unknown,
            Some(Ok(key)) => return KeyLookup::Found(key),
            Some(Err(error)) => failure.insert(error),
        };
        if is_about_key(error) { KeyLookup::Refused } else { KeyLookup::Unknown }
    }

    /// Has the service asked for the keys of all batches at once, so that each is not waited for
    /// in its turn.
    fn ask_for_all(&self, records: &[u8]) {
        for batch in iter_batches(records).flatten() {
            // Damage shows when the batch is opened.
            let _damage = self.with_opener(|opener| {
                opener.edeks(&batch, |edek| drop(self.keys.opening_key_now(edek)))
            });
        }
    }

    /// [`ask_for_all`](Self::ask_for_all) for all records of an answer from where the walker is.
    fn ask_for_runs(&self, walker: &Walker, mut rest: &[u8]) {
        let mut walker = walker.clone();
        // What is broken shows when its turn comes.
        while let Ok(run) = walker.next_run(rest)
            && let Some((piece, after)) = rest.split_at_checked(run.len)
            && !piece.is_empty()
        {
            if run.kind == RunKind::Records {
                self.ask_for_all(piece);
            }
            rest = after;
        }
    }

    /// Waits for the keys of a batch.
    async fn keys_of(&self, batch: &BatchView<'_>, deadline: Instant) -> Result<AtHand, Withheld> {
        let mut edeks: Vec<Box<[u8]>> = Vec::new();
        self.with_opener(|opener| opener.edeks(batch, |edek| edeks.push(edek.into())))
            .map_err(|error| Withheld::of(&error, None))?;
        let mut keys = AtHand::new();
        for edek in edeks {
            if let Entry::Vacant(place) = keys.entry(edek) {
                let key = super::by(deadline, self.keys.opening_key(place.key())).await;
                place.insert(key);
            }
        }
        Ok(keys)
    }

    fn tell_withheld(&self, withheld: &Withheld) {
        self.counters.not_opened(withheld.cause);
        self.not_opened.log(|unlogged| {
            let (error, code) = (&*withheld.detail, withheld.code);
            tracing::warn!(?code, error, unlogged, "records are not opened");
        });
    }

    fn tell_passed(&self, offset: i64, damage: Damage) {
        self.not_opened.log(|unlogged| {
            tracing::warn!(offset, error = %damage, unlogged, "a record passes sealed");
        });
    }

    /// Lends the thread's opener, whose buffers are worth keeping.
    fn with_opener<T>(&self, work: impl FnOnce(&mut Opener) -> T) -> T {
        type Way = (Recompression, OnDamage);
        thread_local! {
            /// One for each way to open that the filters of this process use.
            static OPENERS: RefCell<Vec<(Way, Opener)>> = const { RefCell::new(Vec::new()) };
        }
        let way = (self.settings.recompression, self.settings.on_damage);
        OPENERS.with_borrow_mut(|openers| {
            let place = openers.iter().position(|(of, _)| *of == way);
            let place = place.unwrap_or_else(|| {
                let (recompression, on_damage) = way;
                let bytes_max = BATCH_BYTES_MAX;
                openers
                    .push((way, Opener::new(OpenOptions { bytes_max, recompression, on_damage })));
                openers.len() - 1
            });
            let (_, opener) = openers.get_mut(place).expect("it was found or added");
            work(opener)
        })
    }
}

impl Withheld {
    /// For a batch that does not open; `failure` is what the service said of its key, if it did.
    fn of(error: &Error, failure: Option<&KmsError>) -> Self {
        let (cause, code) = match (error, failure) {
            (Error::Damaged { damage: Damage::Edek, .. }, Some(KmsError::UnknownKey(_))) => {
                (Cause::KeyGone, ErrorCode::TopicAuthorizationFailed)
            }
            (Error::BatchTooLarge { .. }, _) => (Cause::Size, ErrorCode::CorruptMessage),
            _ => (Cause::Damage, ErrorCode::CorruptMessage),
        };
        let detail = match failure {
            Some(failure) => format!("{error} ({failure})"),
            None => error.to_string(),
        };
        Self { cause, code, detail }
    }

    fn of_service(error: &KmsError) -> Self {
        let (cause, code) = (Cause::Service, ErrorCode::KafkaStorageError);
        Self { cause, code, detail: error.to_string() }
    }
}

/// Whether the service answered, and will not give this key.
fn is_about_key(error: &KmsError) -> bool {
    matches!(error, KmsError::UnknownKey(_) | KmsError::DamagedEdek(_))
}

/// Puts errors in the place of records, counted among the partitions that have any.
fn withhold(answer: &mut FetchResponse, withheld: &[(usize, ErrorCode)]) {
    let partitions = answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
    let with_records = partitions
        .filter(|partition| partition.records.as_ref().is_some_and(|records| !records.is_empty()));
    for (ordinal, partition) in with_records.enumerate() {
        if let Some((_, code)) = withheld.iter().find(|(of, _)| *of == ordinal) {
            *partition = fetch_response::PartitionData {
                partition_index: partition.partition_index,
                error_code: (*code).into(),
                high_watermark: -1,
                records: Some(Bytes::new()),
                ..fetch_response::PartitionData::default()
            };
        }
    }
}
