//! Refuses produced records that break the rules of their topic.
//!
//! Claims Produce requests and their answers. The first rule whose pattern matches a topic is its
//! rule; a topic without one passes unread.
//!
//! Kafka appends a batch whole or not at all, and the offsets and sequence numbers of a batch leave
//! no room for gaps. So a partition whose batch has a bad record is refused as a broker refuses it
//! (KIP-467): its answer is `INVALID_RECORD` with base offset -1 and the bad records by their index
//! in the batch, each with what is wrong. All other partitions of the request go on, and their
//! answers are merged in the order of the request. Clients fail the records that are named with
//! that message, and the others of the batch with a general one; the Java client tries neither
//! again. Versions before 8 have the code alone.
//!
//! **Idempotent and transactional producers.** The cluster never sees the refused batch, just as it
//! keeps no sequence of a batch that it refuses itself. The client learns from `INVALID_RECORD`
//! that its sequence numbers were not used. The Java client then numbers the batches behind it
//! anew, under another epoch, or aborts the transaction. Batches behind it that are already on
//! their way reach the cluster and get `OUT_OF_ORDER_SEQUENCE_NUMBER` there. To drop only the bad
//! records and send the others would break exactly this: the batch would count fewer records than
//! sequence numbers, and the client would take records for lost that were written.
//!
//! | cause | code |
//! |---|---|
//! | a record breaks the rule, or a partition has several batches | `INVALID_RECORD` |
//! | a malformed record, format 0 or 1 | `INVALID_RECORD` |
//! | a wrong CRC or compressed payload | `CORRUPT_MESSAGE` |
//! | a batch too large once unpacked | `MESSAGE_TOO_LARGE` |
//! | a topic id that the cluster does not know | `UNKNOWN_TOPIC_ID` |
//!
//! A producer that waits for no answer (`acks=0`) is disconnected once the other partitions were
//! sent, as Kafka does.
//!
//! Cost: each batch of a topic with a rule is unpacked once and read where it lies. JSON syntax and
//! all other checks allocate nothing for a good record; a JSON Schema needs a tree of each value.

mod rule;

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use moldau_protocol::{ApiKey, ErrorCode};
use moldau_proxy::{
    Direction, Filter, FilterFuture, FilterMetric, RequestFrame, RequestOutcome, ResponseFrame,
    SessionContext, SessionFilter, TopicNames, Upstream,
};
use moldau_records::{BatchView, Edit, RawRecord, RecordEditor};

use self::rule::Rule;
use crate::batches::refused::RefusedInFlight;
use crate::batches::{Choice, Fault, Policy, Stop};
use crate::counter::Counter;
use crate::error::Error;
use crate::session::RecordSession;

/// Configuration of a [`RecordValidation`] filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordValidationSettings {
    /// The first that matches a topic is its rule.
    pub rules: Vec<ValidationRule>,
}

/// What records of some topics must be like.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationRule {
    /// Names of topics, or beginnings of names before a `*`.
    pub topics: Vec<String>,
    /// What keys must be like.
    pub key: FieldRule,
    /// What values must be like.
    pub value: FieldRule,
    /// Most bytes of a record as it stands in its batch, not compressed.
    pub record_bytes_max: Option<usize>,
    /// Keys of headers that a record must have.
    pub required_headers: Vec<String>,
}

/// Rule for keys or values. The default accepts anything.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldRule {
    /// Whether null will do.
    pub allow_null: bool,
    /// Whether no bytes will do.
    pub allow_empty: bool,
    /// Most bytes.
    pub bytes_max: Option<usize>,
    /// The ids of schemas of a registry that a field may begin with, behind the byte 0; an empty
    /// list stands for any. What follows them is what `content` is about. Otherwise fields have no
    /// such prefix.
    pub schema_ids: Option<Vec<u32>>,
    /// What is neither null nor empty.
    pub content: Content,
}

/// Rule for a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Content {
    /// Any bytes.
    #[default]
    Any,
    /// A JSON text (RFC 8259).
    Json {
        /// Whether no object may have a key twice.
        unique_keys: bool,
    },
    /// A JSON text that a JSON Schema takes, given as JSON. References lead within it: nothing is
    /// asked for elsewhere. Patterns take linear time, and so may not look around or back.
    JsonSchema(String),
}

impl Default for FieldRule {
    fn default() -> Self {
        let (bytes_max, schema_ids, content) = (None, None, Content::Any);
        Self { allow_null: true, allow_empty: true, bytes_max, schema_ids, content }
    }
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct RecordValidation {
    rules: Vec<Rule>,
    topic_names: TopicNames,
    valid: Counter,
    invalid: Counter,
    refused: Counter,
}

impl RecordValidation {
    /// A filter by these rules.
    ///
    /// # Errors
    /// A rule names no topic, a pattern cannot be read, or a schema is none.
    pub fn new(settings: RecordValidationSettings) -> Result<Self, Error> {
        Ok(Self {
            rules: settings.rules.into_iter().map(Rule::new).collect::<Result<_, _>>()?,
            topic_names: TopicNames::default(),
            valid: Counter::default(),
            invalid: Counter::default(),
            refused: Counter::default(),
        })
    }
}

impl Filter for RecordValidation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        api == ApiKey::Produce
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        let refused = RefusedInFlight::default();
        Rc::new(Session { filter: self, session: RecordSession::new(session), refused })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        let refused = "Produced partitions refused";
        vec![
            self.valid.metric("validation_records_valid", "Produced records that met their rule"),
            self.invalid.metric("validation_records_invalid", "Produced records that broke a rule"),
            self.refused.metric("validation_partitions_refused", refused),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<RecordValidation>,
    session: RecordSession,
    refused: RefusedInFlight,
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let filter = &*self.filter;
            self.session.learn(&request, &filter.topic_names, &mut upstream).await?;
            let mut checking = Checking::new(filter);
            let (context, names) = (&self.session.context, &filter.topic_names);
            self.refused.produce(request, context, names, &mut checking).await
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move { self.refused.answer(response) })
    }
}

/// The rules at work on one message.
struct Checking<'f> {
    filter: &'f RecordValidation,
    /// The present topic's.
    rule: Option<&'f Rule>,
    /// Batches of the present partition so far.
    batches: usize,
    /// Errors of records in the present batch, and their number.
    bad: Vec<(i32, Cow<'static, str>)>,
    all: u64,
    /// Records of the message that may still be named.
    named_left: usize,
}

impl<'f> Checking<'f> {
    fn new(filter: &'f RecordValidation) -> Self {
        let (bad, named_left) = (Vec::new(), RECORD_ERRORS_MAX);
        Self { filter, rule: None, batches: 0, bad, all: 0, named_left }
    }
}

impl Policy for Checking<'_> {
    fn topic(&mut self, topic: Option<&str>) -> Choice {
        let mut rules = self.filter.rules.iter();
        self.rule = match topic {
            Some(topic) => rules.find(|rule| rule.topics.matches(topic)),
            // Which rule is the first to match depends on the name.
            None => match rules.next() {
                None => None,
                Some(rule) if rule.topics.match_all() => Some(rule),
                Some(_) => return Choice::Refuse(Fault::unknown_topic()),
            },
        };
        if self.rule.is_some() { Choice::Read } else { Choice::Pass }
    }

    fn partition(&mut self, _: &[u8]) {
        self.batches = 0;
        self.bad.clear();
        self.all = 0;
    }

    fn refused(&mut self, _: Option<&str>, _: i32, _: &Fault) {
        self.filter.refused.add(1);
    }
}

impl RecordEditor for Checking<'_> {
    type Error = Stop;

    fn record(&mut self, index: i32, record: &RawRecord<'_>, _: &mut Edit<'_>) -> Result<(), Stop> {
        let Some(rule) = self.rule else { return Ok(()) };
        record.check_headers()?;
        if let Err(message) = rule.check(record) {
            self.all += 1;
            if let Some(left) = self.named_left.checked_sub(1) {
                self.named_left = left;
                self.bad.push((index, message));
            }
        }
        Ok(())
    }

    fn end(&mut self, batch: &BatchView<'_>) -> Result<(), Stop> {
        let records = batch.records_count();
        self.batches += 1;
        if self.batches > 1 {
            // An index would not tell which batch it counts in.
            let message = "a partition of a produce request has more than one batch";
            return Err(Fault::new(ErrorCode::InvalidRecord, message).into());
        }
        let bad = std::mem::take(&mut self.all);
        let good = u64::try_from(records).unwrap_or_default().saturating_sub(bad);
        self.filter.invalid.add(bad);
        if bad == 0 {
            self.filter.valid.add(good);
            return Ok(());
        }
        let mut message = format!("{bad} of {records} records are invalid");
        if let Some((index, first)) = self.bad.first() {
            message.push_str(&format!("; record {index}: {first}"));
        }
        let records = std::mem::take(&mut self.bad);
        Err(Fault { records, ..Fault::new(ErrorCode::InvalidRecord, message) }.into())
    }
}

const NAME: &str = "record_validation";

/// Limit of bad records that an answer names. The others fail with their batch just the same. A few
/// compressed bytes may hold a thousand records, and an answer should not outgrow its request.
const RECORD_ERRORS_MAX: usize = 1000;

#[cfg(test)]
mod tests;
