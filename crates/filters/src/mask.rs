//! Masks fields of JSON values on their way to the consumer.
//!
//! Claims Fetch and ShareFetch requests, to know what topics are called, and their answers. All
//! rules that match a topic apply, one after the other, but those from which the principal is
//! exempt.
//!
//! A value is masked where a path leads, however often, and whatever escapes a key is written with;
//! all other bytes of it stay as they are. Null stays null. Records without a value and keys pass.
//! What begins with the byte 0 is taken for the wire format of schema registries: five bytes that
//! stay, then JSON.
//!
//! | cause | what the client gets |
//! |---|---|
//! | a value that is no JSON | what the rule says: the value, an empty one, or `CORRUPT_MESSAGE` |
//! | a value of more than a million JSON values | `CORRUPT_MESSAGE` |
//! | a batch that cannot be read, formats 0 and 1 among them | `CORRUPT_MESSAGE` |
//! | a topic id without a known name | `UNKNOWN_TOPIC_ID`, and it asks again |
//!
//! Batches before one with a fault pass, but not to share consumers. What a broker cut off at the
//! end of a partition is left out, since it cannot be read and thus not masked.
//!
//! Cost: each batch of a matching topic is unpacked and every value of it read once for each rule;
//! if anything is masked, the batch is copied and packed again with its own codec.

mod path;

use std::fmt;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use aws_lc_rs::hmac;
use moldau_protocol::{ApiKey, ErrorCode};
use moldau_proxy::{
    Direction, Filter, FilterFuture, FilterMetric, RequestFrame, RequestOutcome, ResponseFrame,
    SessionContext, SessionFilter, TopicNames, Upstream,
};
use moldau_records::{BatchView, Edit, RawRecord, RecordEditor};

use self::path::{Paths, Place};
use crate::batches::{Choice, Fault, Policy, Stop, answer, write_record};
use crate::counter::Counter;
use crate::error::Error;
use crate::json::{self, Kind, Text, Visit};
use crate::session::RecordSession;
use crate::topics::TopicPatterns;

/// Configuration of a [`Mask`] filter.
#[derive(Clone, Default)]
pub struct MaskSettings {
    /// All rules that match a topic apply to it.
    pub rules: Vec<MaskRule>,
    /// The secret that [`Masking::Hash`] needs, of 16 bytes at least.
    pub hash_key: Option<Vec<u8>>,
}

/// What is masked in some topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskRule {
    /// Names of topics, or beginnings of names before a `*`.
    pub topics: Vec<String>,
    /// Paths to fields, as `$.customer.iban`, `items[*].price` or `['a.b'].*`.
    pub fields: Vec<String>,
    /// How they are masked.
    pub masking: Masking,
    /// How values that are not JSON are handled.
    pub not_json: NotJson,
    /// Who sees these topics as they are, as `User:alice`.
    pub exempt_principals: Vec<String>,
}

/// How a field is masked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Eight asterisks take its place, whatever it held.
    All,
    /// So many characters from its beginning become asterisks. Of an object or an array, those of
    /// each value in it.
    First(usize),
    /// So many characters from its end become asterisks, likewise.
    Last(usize),
    /// The first 128 bits of its HMAC-SHA256 in hexadecimal take its place, by which equal values
    /// stay equal: of a string what it says, of anything else its bytes.
    Hash,
    /// Null takes its place.
    Null,
}

/// How values that are not JSON are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotJson {
    /// They pass as they are.
    Pass,
    /// An empty value takes their place.
    Empty,
    /// Their partition is withheld with `CORRUPT_MESSAGE`.
    Error,
}

/// The filter of one virtual cluster.
pub struct Mask {
    rules: Vec<Rule>,
    hash_key: Option<hmac::Key>,
    topic_names: TopicNames,
    masked: Counter,
    not_json: Counter,
    withheld: Counter,
}

struct Rule {
    topics: TopicPatterns,
    paths: Paths,
    masking: Masking,
    not_json: NotJson,
    exempt_principals: Vec<String>,
}

impl Mask {
    /// A filter by these rules.
    ///
    /// # Errors
    /// A rule names no topic or no field, a pattern or a path cannot be read, or the key for hashes
    /// is missing or short.
    pub fn new(settings: MaskSettings) -> Result<Self, Error> {
        let needs_key = settings.rules.iter().any(|rule| rule.masking == Masking::Hash);
        let has_key = |key: &Vec<u8>| key.len() >= HASH_KEY_BYTES_MIN;
        if needs_key && !settings.hash_key.as_ref().is_some_and(has_key) {
            let reason = format!("hashes need a key of {HASH_KEY_BYTES_MIN} bytes at least");
            return Err(Error::setting(NAME, reason));
        }
        let rules = settings.rules.into_iter().map(|rule| {
            Ok(Rule {
                topics: TopicPatterns::parse(NAME, &rule.topics)?,
                paths: Paths::parse(&rule.fields)?,
                masking: rule.masking,
                not_json: rule.not_json,
                exempt_principals: rule.exempt_principals,
            })
        });
        Ok(Self {
            rules: rules.collect::<Result<_, Error>>()?,
            hash_key: settings.hash_key.map(|key| hmac::Key::new(hmac::HMAC_SHA256, &key)),
            topic_names: TopicNames::default(),
            masked: Counter::default(),
            not_json: Counter::default(),
            withheld: Counter::default(),
        })
    }
}

/// Shows no key.
impl fmt::Debug for MaskSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskSettings").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Shows no key.
impl fmt::Debug for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mask").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

impl Filter for Mask {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        matches!(api, ApiKey::Fetch | ApiKey::ShareFetch)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Session { filter: self, session: RecordSession::new(session) })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        let masked = "Fetched records with masked fields";
        let not_json = "Fetched records to mask that were not JSON";
        vec![
            self.masked.metric("mask_records_masked", masked),
            self.not_json.metric("mask_records_not_json", not_json),
            self.withheld.metric(
                "mask_partitions_withheld",
                "Fetched partitions withheld from the consumer",
            ),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Mask>,
    session: RecordSession,
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            self.session.learn(&request, &self.filter.topic_names, &mut upstream).await?;
            Ok(RequestOutcome::Forward(request))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let filter = &*self.filter;
            let principal = self.session.context.principal().to_string();
            let is_exempt = |rule: &&Rule| rule.exempt_principals.contains(&principal);
            let rules: Vec<&Rule> = filter.rules.iter().filter(|rule| !is_exempt(rule)).collect();
            if rules.is_empty() {
                return Ok(response);
            }
            let mut editing = Editing::new(filter, rules);
            let names = self.session.names(&filter.topic_names);
            answer::fetched(response, &self.session.context, Some(names), &mut editing).await
        })
    }
}

/// The rules at work on one message.
struct Editing<'s> {
    filter: &'s Mask,
    rules: Vec<&'s Rule>,
    /// Those for the present topic.
    matching: Vec<&'s Rule>,
    spans: Vec<Range<usize>>,
    /// A value after the rules so far, and after the one at hand.
    value: Vec<u8>,
    next: Vec<u8>,
    masked: u64,
}

impl<'s> Editing<'s> {
    fn new(filter: &'s Mask, rules: Vec<&'s Rule>) -> Self {
        Self {
            filter,
            rules,
            matching: Vec::new(),
            spans: Vec::new(),
            value: Vec::new(),
            next: Vec::new(),
            masked: 0,
        }
    }

    /// Takes a value through all rules, into `self.value`, and returns true if any changes it.
    fn mask(&mut self, value: &[u8]) -> Result<bool, Fault> {
        let mut is_masked = false;
        for at in 0..self.matching.len() {
            let Some(&rule) = self.matching.get(at) else { break };
            let before = if is_masked { &*self.value } else { value };
            let json_at = if before.first() == Some(&0) { WIRE_FORMAT_BYTES } else { 0 };
            let (kept, json) = before.split_at_checked(json_at).unwrap_or((before, &[]));
            self.spans.clear();
            let mut finding = Finding { rule, spans: &mut self.spans };
            self.next.clear();
            match json::scan(json, rule.paths.root(), &mut finding) {
                Ok(()) if self.spans.is_empty() => continue,
                Ok(()) => {
                    self.next.extend_from_slice(kept);
                    let key = self.filter.hash_key.as_ref();
                    write_masked(&mut self.next, json, &mut self.spans, rule.masking, key);
                }
                Err(malformed) if malformed.is_too_large() => {
                    let message = format!("a value cannot be masked: {malformed}");
                    return Err(Fault::new(ErrorCode::MessageTooLarge, message));
                }
                Err(malformed) => {
                    self.filter.not_json.add(1);
                    match rule.not_json {
                        NotJson::Pass => continue,
                        NotJson::Empty => {}
                        NotJson::Error => {
                            let message = format!("a value is no JSON: {malformed}");
                            return Err(Fault::new(ErrorCode::CorruptMessage, message));
                        }
                    }
                }
            }
            std::mem::swap(&mut self.value, &mut self.next);
            is_masked = true;
        }
        Ok(is_masked)
    }
}

impl Policy for Editing<'_> {
    fn topic(&mut self, topic: Option<&str>) -> Choice {
        self.matching.clear();
        for &rule in &self.rules {
            match topic {
                Some(topic) if !rule.topics.matches(topic) => {}
                None if !rule.topics.match_all() => return Choice::Refuse(Fault::unknown_topic()),
                _ => self.matching.push(rule),
            }
        }
        if self.matching.is_empty() { Choice::Pass } else { Choice::Read }
    }

    fn refused(&mut self, _: Option<&str>, _: i32, _: &Fault) {
        self.filter.withheld.add(1);
    }
}

impl RecordEditor for Editing<'_> {
    type Error = Stop;

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        // An empty value holds nothing that could be masked, and no JSON.
        let Some(value) = record.value().filter(|value| !value.is_empty()) else { return Ok(()) };
        if self.mask(value)? {
            self.masked += 1;
            let (value, headers) = (Some(&*self.value), [record.headers(), &[]]);
            edit.replace(|out| write_record(out, record, value, record.headers_count(), headers))?;
        }
        Ok(())
    }

    fn end(&mut self, _: &BatchView<'_>) -> Result<(), Stop> {
        self.filter.masked.add(std::mem::take(&mut self.masked));
        Ok(())
    }
}

/// Finds what a rule masks in a value.
struct Finding<'f> {
    rule: &'f Rule,
    spans: &'f mut Vec<Range<usize>>,
}

impl Visit<'_> for Finding<'_> {
    type Place = Place;

    fn member(&mut self, parent: Place, key: &Text<'_>) -> Place {
        self.rule.paths.member(parent, key)
    }

    fn element(&mut self, parent: Place, index: usize) -> Place {
        self.rule.paths.element(parent, index)
    }

    fn value(&mut self, place: Place, kind: Kind, span: Range<usize>) {
        let masks_leaves = matches!(self.rule.masking, Masking::First(_) | Masking::Last(_));
        let is_leaf = !matches!(kind, Kind::Object | Kind::Array);
        let is_meant = match masks_leaves {
            true => is_leaf && (place.is_within || self.rule.paths.end_at(place)),
            false => self.rule.paths.end_at(place),
        };
        if is_meant && kind != Kind::Null {
            self.spans.push(span);
        }
    }
}

/// Appends a JSON text with something else in place of the spans.
fn write_masked(
    out: &mut Vec<u8>,
    json: &[u8],
    spans: &mut [Range<usize>],
    masking: Masking,
    key: Option<&hmac::Key>,
) {
    // What lies within another span goes with it.
    spans.sort_unstable_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut done = 0;
    for span in spans.iter().filter(|span| !span.is_empty()) {
        if span.start < done {
            continue;
        }
        out.extend_from_slice(json.get(done..span.start).unwrap_or_default());
        let field = json.get(span.clone()).and_then(|field| str::from_utf8(field).ok());
        write_mask(out, field.unwrap_or_default(), masking, key);
        done = span.end;
    }
    out.extend_from_slice(json.get(done..).unwrap_or_default());
}

fn write_mask(out: &mut Vec<u8>, field: &str, masking: Masking, key: Option<&hmac::Key>) {
    let said = match field.starts_with('"') {
        true => Text::of_value(field).unescaped(),
        false => field.into(),
    };
    let masked = match (masking, key) {
        (Masking::Null, _) => return out.extend_from_slice(b"null"),
        // A filter that hashes has a key.
        (Masking::All, _) | (Masking::Hash, None) => MASK.to_owned(),
        (Masking::First(count), _) => {
            let mask = |(at, character)| if at < count { '*' } else { character };
            said.chars().enumerate().map(mask).collect()
        }
        (Masking::Last(count), _) => {
            let shown = said.chars().count().saturating_sub(count);
            let mask = |(at, character)| if at < shown { character } else { '*' };
            said.chars().enumerate().map(mask).collect()
        }
        (Masking::Hash, Some(key)) => {
            let tag = hmac::sign(key, said.as_bytes());
            let bytes = tag.as_ref().iter().take(HASH_BYTES);
            bytes.map(|byte| format!("{byte:02x}")).collect()
        }
    };
    // Text can always be written as JSON.
    out.extend_from_slice(serde_json::Value::String(masked).to_string().as_bytes());
}

const NAME: &str = "mask";

/// Replacement of a masked field. It does not reveal the field's length.
const MASK: &str = "********";

/// Bytes of a hash that are shown: enough that no two values meet by chance.
const HASH_BYTES: usize = 16;

/// A key that cannot be found by trying, so that hashes of short fields cannot be either.
const HASH_KEY_BYTES_MIN: usize = 16;

/// The byte 0 and the id of a schema.
const WIRE_FORMAT_BYTES: usize = 5;

#[cfg(test)]
mod tests;
