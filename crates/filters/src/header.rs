//! Adds headers to records and removes headers from them, on their way to the cluster, to the
//! client, or both.
//!
//! Claims requests and answers of Produce, of Fetch and ShareFetch, or of all, as the rules need. A
//! record first loses the headers that any matching rule removes, then gets those that matching
//! rules add, in the order of the rules, behind the ones that it had.
//!
//! A partition whose batches cannot be read is refused with `CORRUPT_MESSAGE`, `INVALID_RECORD` or
//! `MESSAGE_TOO_LARGE`, so that no record passes by a rule; a topic id that the cluster does not
//! know gets `UNKNOWN_TOPIC_ID`. Records of formats 0 and 1 have no headers and are fetched as they
//! are.
//!
//! Cost: each batch of a matching topic is unpacked, checked, copied and packed again with its own
//! codec; what is added is made once for each message. Other topics cost a walk over the message's
//! structure.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use moldau_protocol::ApiKey;
use moldau_proxy::{
    Direction, Filter, FilterFuture, FilterMetric, RequestFrame, RequestOutcome, ResponseFrame,
    SessionContext, SessionFilter, TopicNames, Upstream,
};
use moldau_records::{
    BatchView, Edit, Error as RecordsError, RawRecord, RecordEditor, read_header, varint,
};

use crate::batches::refused::RefusedInFlight;
use crate::batches::{Choice, Fault, Policy, Stop, answer, write_record};
use crate::counter::Counter;
use crate::error::Error;
use crate::session::RecordSession;
use crate::topics::TopicPatterns;

/// Configuration of a [`Header`] filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderSettings {
    /// All rules that match a topic apply to it.
    pub rules: Vec<HeaderRule>,
}

/// Which headers some topics gain and lose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderRule {
    /// Names of topics, or beginnings of names before a `*`.
    pub topics: Vec<String>,
    /// On which way the rule applies.
    pub on: HeaderWay,
    /// Keys of the headers that are removed, or beginnings of keys before a `*`.
    pub remove: Vec<String>,
    /// Keys and values of the headers that are added.
    pub add: Vec<(String, HeaderValue)>,
}

/// On which way records change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderWay {
    /// From the producer to the cluster.
    Produce,
    /// From the cluster to the consumer.
    Fetch,
    /// On both.
    Both,
}

/// The value of a header that is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderValue {
    /// These bytes.
    Static(Vec<u8>),
    /// The principal, as `User:alice`.
    Principal,
    /// The client's address without its port.
    ClientAddress,
    /// The client's name for itself, empty if it has none.
    ClientId,
    /// The name of the virtual cluster.
    VirtualCluster,
    /// When the message passed, in ms since 1970, as decimal digits.
    Time,
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct Header {
    rules: Vec<Rule>,
    topic_names: TopicNames,
    changed: Counter,
    refused: Counter,
}

#[derive(Debug)]
struct Rule {
    topics: TopicPatterns,
    on: HeaderWay,
    remove: Vec<KeyPattern>,
    add: Vec<(String, HeaderValue)>,
}

#[derive(Debug)]
enum KeyPattern {
    Literal(String),
    Prefix(String),
}

impl Header {
    /// A filter by these rules.
    ///
    /// # Errors
    /// A rule names no topic, or a pattern has a `*` elsewhere than at its end.
    pub fn new(settings: HeaderSettings) -> Result<Self, Error> {
        let rules = settings.rules.into_iter().map(|rule| {
            let topics = TopicPatterns::parse(NAME, &rule.topics)?;
            let remove =
                rule.remove.into_iter().map(KeyPattern::parse).collect::<Result<_, _>>()?;
            Ok(Rule { topics, on: rule.on, remove, add: rule.add })
        });
        Ok(Self {
            rules: rules.collect::<Result<_, Error>>()?,
            topic_names: TopicNames::default(),
            changed: Counter::default(),
            refused: Counter::default(),
        })
    }

    fn needs(&self, way: HeaderWay) -> bool {
        self.rules.iter().any(|rule| rule.applies(way))
    }
}

impl Rule {
    fn applies(&self, way: HeaderWay) -> bool {
        self.on == HeaderWay::Both || self.on == way
    }
}

impl KeyPattern {
    fn parse(pattern: String) -> Result<Self, Error> {
        match pattern.strip_suffix('*') {
            None if !pattern.contains('*') => Ok(Self::Literal(pattern)),
            Some(prefix) if !prefix.contains('*') => Ok(Self::Prefix(prefix.to_owned())),
            _ => {
                let reason = format!("header `{pattern}`: a `*` may stand at the end only");
                Err(Error::setting(NAME, reason))
            }
        }
    }

    fn matches(&self, key: &[u8]) -> bool {
        match self {
            Self::Literal(name) => name.as_bytes() == key,
            Self::Prefix(prefix) => key.starts_with(prefix.as_bytes()),
        }
    }
}

impl Filter for Header {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        match api {
            ApiKey::Produce => self.needs(HeaderWay::Produce),
            ApiKey::Fetch | ApiKey::ShareFetch => self.needs(HeaderWay::Fetch),
            _ => false,
        }
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        let refused = RefusedInFlight::default();
        Rc::new(Session { filter: self, session: RecordSession::new(session), refused })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        let changed = "Records with changed headers";
        let refused = "Partitions refused or withheld because they could not be read";
        vec![
            self.changed.metric("header_records_changed", changed),
            self.refused.metric("header_partitions_refused", refused),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Header>,
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
            let names = &self.filter.topic_names;
            self.session.learn(&request, names, &mut upstream).await?;
            if request.api_key() != ApiKey::Produce {
                return Ok(RequestOutcome::Forward(request));
            }
            let mut editing = Editing::new(&self, HeaderWay::Produce);
            self.refused.produce(request, &self.session.context, names, &mut editing).await
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            if response.api_key() == ApiKey::Produce {
                return self.refused.answer(response);
            }
            let names = self.session.names(&self.filter.topic_names);
            let mut editing = Editing::new(&self, HeaderWay::Fetch);
            answer::fetched(response, &self.session.context, Some(names), &mut editing).await
        })
    }
}

/// The rules at work on one message.
struct Editing<'s> {
    filter: &'s Header,
    session: &'s RecordSession,
    way: HeaderWay,
    /// Keys that records of the present topic lose.
    remove: Vec<&'s KeyPattern>,
    /// Headers that they gain, encoded, and how many those are.
    added: Vec<u8>,
    added_count: usize,
    /// Headers of a record that loses some.
    kept: Vec<u8>,
    /// Records of the present batch that changed.
    changed: u64,
}

impl<'s> Editing<'s> {
    fn new(session: &'s Session, way: HeaderWay) -> Self {
        let Session { filter, session, .. } = session;
        let (remove, added, kept) = (Vec::new(), Vec::new(), Vec::new());
        Self { filter, session, way, remove, added, added_count: 0, kept, changed: 0 }
    }

    fn add(&mut self, key: &str, value: &HeaderValue) {
        let context = &self.session.context;
        write_bytes(&mut self.added, key.as_bytes());
        match value {
            HeaderValue::Static(bytes) => write_bytes(&mut self.added, bytes),
            HeaderValue::Principal => self.add_text(&context.principal().to_string()),
            HeaderValue::ClientAddress => self.add_text(&context.client_address().ip().to_string()),
            HeaderValue::ClientId => self.add_text(&self.session.client_id()),
            HeaderValue::VirtualCluster => self.add_text(context.virtual_cluster()),
            HeaderValue::Time => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                self.add_text(&since.as_millis().to_string());
            }
        }
        self.added_count += 1;
    }

    fn add_text(&mut self, text: &str) {
        write_bytes(&mut self.added, text.as_bytes());
    }

    /// Gathers the headers that a record keeps, and counts them; `None` if it keeps all.
    fn keep(&mut self, record: &RawRecord<'_>) -> Result<Option<usize>, RecordsError> {
        self.kept.clear();
        let (mut count, mut rest) = (0, record.headers());
        for _ in 0..record.headers_count() {
            let before = rest;
            let header = read_header(&mut rest)?;
            if !self.remove.iter().any(|pattern| pattern.matches(header.key)) {
                let bytes = before.get(..before.len() - rest.len()).unwrap_or_default();
                self.kept.extend_from_slice(bytes);
                count += 1;
            }
        }
        Ok((count < record.headers_count()).then_some(count))
    }
}

impl Policy for Editing<'_> {
    fn topic(&mut self, topic: Option<&str>) -> Choice {
        self.remove.clear();
        self.added.clear();
        self.added_count = 0;
        let (filter, way) = (self.filter, self.way);
        for rule in filter.rules.iter().filter(|rule| rule.applies(way)) {
            let matches = match topic {
                Some(topic) => rule.topics.matches(topic),
                None if rule.topics.match_all() => true,
                None => return Choice::Refuse(Fault::unknown_topic()),
            };
            if matches {
                self.remove.extend(&rule.remove);
                rule.add.iter().for_each(|(key, value)| self.add(key, value));
            }
        }
        if self.remove.is_empty() && self.added_count == 0 { Choice::Pass } else { Choice::Read }
    }

    fn refused(&mut self, _: Option<&str>, _: i32, _: &Fault) {
        self.filter.refused.add(1);
    }

    fn passes_old_formats(&self) -> bool {
        self.way == HeaderWay::Fetch
    }
}

impl RecordEditor for Editing<'_> {
    type Error = Stop;

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        let kept = if self.remove.is_empty() {
            record.check_headers()?;
            None
        } else {
            self.keep(record)?
        };
        let (count, headers) = match kept {
            Some(count) => (count, &*self.kept),
            None if self.added_count == 0 => return Ok(()),
            None => (record.headers_count(), record.headers()),
        };
        let (count, parts) = (count + self.added_count, [headers, &self.added]);
        edit.replace(|out| write_record(out, record, record.value(), count, parts))?;
        self.changed += 1;
        Ok(())
    }

    fn end(&mut self, _: &BatchView<'_>) -> Result<(), Stop> {
        self.filter.changed.add(std::mem::take(&mut self.changed));
        Ok(())
    }
}

/// Appends bytes as a header has its key and its value.
fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Text from the operator or from a field of the protocol is far shorter.
    let length = i32::try_from(bytes.len()).unwrap_or(i32::MAX);
    varint::write_i32(out, length);
    out.extend_from_slice(bytes);
}

const NAME: &str = "header";

#[cfg(test)]
mod tests;
