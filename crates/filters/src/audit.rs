//! Tells who did what to which resource, with which result: a line of JSON for each event.
//!
//! Claims requests and answers of the APIs that the settings name. It should be the first of its
//! virtual cluster's filters, to see requests as clients sent them, and refusals of other filters.
//!
//! | event | when |
//! |---|---|
//! | `request` | a request was answered, of any API but those below |
//! | `unanswered` | such a request went on, and its session ended before the answer came |
//! | `first_use` | a session begins to produce to a topic or to fetch from it |
//! | `summary` | the interval is over and a session goes on to produce or fetch, or it ends |
//!
//! Each line has `time_ms`, `virtual_cluster`, `client_address`, `principal`, `client_id`, `api`.
//! Of a request it has the `resources`: an object for each thing that the request names, and how
//! often the answer has each error code, with what it says of parts that failed. A summary has the
//! messages, bytes of records and error codes of a topic since the one before. No line holds
//! content of records, values of configurations or secrets, and none can be broken up or forged by
//! what a client calls itself.
//!
//! Lines go into a bounded channel, whose other end the owner writes to a file or elsewhere. When
//! it is full, they are dropped and counted, or hold the message until there is room; the settings
//! say which. A session ends if it is held for longer than a filter may take, or once the channel
//! is closed.
//!
//! Cost: of data APIs a walk over the structure of each message; of others two walks and a line.

mod resources;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moldau_protocol::names::response_layout;
use moldau_protocol::{ApiKey, Entity, Field, Uuid};
use moldau_proxy::{
    Direction, Filter, FilterError, FilterFuture, FilterMetric, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, TopicNames, Upstream,
};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::Instant;

use self::resources::{Named, Outcome, beginning, code_name};
use crate::batches::places::{self, Place, Topic};
use crate::counter::Counter;
use crate::fields::{self, Visit};
use crate::session::RecordSession;

/// Configuration of an [`Audit`] filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditSettings {
    /// The APIs to log. [`AUDITED_APIS`] lists those that change or reveal something.
    pub apis: Vec<ApiKey>,
    /// How often a session sums up what it produces and fetches.
    pub summary_interval: Duration,
    /// How lines without room in the queue are handled.
    pub when_full: WhenFull,
}

/// How lines without room in the queue are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They are dropped and counted.
    Drop,
    /// The message waits for room. What a session has to tell at its end is dropped even so.
    Hold,
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct Audit {
    settings: AuditSettings,
    sink: mpsc::Sender<Vec<u8>>,
    topic_names: TopicNames,
    lines: Counter,
    dropped: Counter,
}

impl Audit {
    /// A filter that sends its lines, each with its line feed, to `sink`.
    #[must_use]
    pub fn new(settings: AuditSettings, sink: mpsc::Sender<Vec<u8>>) -> Self {
        let (lines, dropped) = Default::default();
        Self { settings, sink, topic_names: TopicNames::default(), lines, dropped }
    }

    async fn tell(&self, line: Vec<u8>) -> Result<(), FilterError> {
        match self.settings.when_full {
            WhenFull::Drop => self.offer(line),
            WhenFull::Hold => {
                self.sink.send(line).await.map_err(|_| "the audit channel is closed")?;
                self.lines.add(1);
            }
        }
        Ok(())
    }

    fn offer(&self, line: Vec<u8>) {
        match self.sink.try_send(line) {
            Ok(()) => self.lines.add(1),
            Err(_) => self.dropped.add(1),
        }
    }
}

impl Filter for Audit {
    fn name(&self) -> &'static str {
        "audit"
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        self.settings.apis.contains(&api)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Session {
            filter: self,
            session: RecordSession::new(session),
            in_flight: RefCell::default(),
            used: RefCell::default(),
            summed_up: Cell::new(Instant::now()),
        })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        vec![
            self.lines.metric("audit_lines", "Audit lines queued for writing"),
            self.dropped
                .metric("audit_lines_dropped", "Audit lines dropped because the queue was full"),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Audit>,
    session: RecordSession,
    /// What is known of requests in flight, in their order, by correlation id.
    in_flight: RefCell<VecDeque<(i32, Asked)>>,
    used: RefCell<HashMap<ApiKey, HashMap<Box<str>, Used>>>,
    summed_up: Cell<Instant>,
}

/// A request that was not answered yet.
struct Asked {
    api: ApiKey,
    version: i16,
    named: Named,
}

/// What a session did to a topic since the last summary.
#[derive(Debug, Default)]
struct Used {
    messages: u64,
    record_bytes: u64,
    codes: BTreeMap<&'static str, u64>,
}

/// A line.
#[derive(Serialize)]
struct Event<'e> {
    event: &'static str,
    time_ms: u128,
    virtual_cluster: &'e str,
    client_address: SocketAddr,
    principal: String,
    client_id: String,
    api: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<i16>,
    #[serde(flatten)]
    of: Of<'e>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Of<'e> {
    Request {
        #[serde(flatten)]
        named: &'e Named,
        #[serde(flatten)]
        outcome: &'e Outcome,
    },
    Unanswered {
        #[serde(flatten)]
        named: &'e Named,
    },
    Topic {
        topic: &'e str,
    },
    Summary {
        topic: &'e str,
        messages: u64,
        record_bytes: u64,
        codes: &'e BTreeMap<&'static str, u64>,
    },
}

impl Session {
    fn event<'e>(
        &'e self,
        event: &'static str,
        api: ApiKey,
        api_version: Option<i16>,
        of: Of<'e>,
    ) -> Event<'e> {
        let context = &self.session.context;
        Event {
            event,
            time_ms: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis(),
            virtual_cluster: context.virtual_cluster(),
            client_address: context.client_address(),
            principal: context.principal().to_string(),
            client_id: beginning(&self.session.client_id()).to_owned(),
            api: api.name(),
            api_version,
            of,
        }
    }

    /// Counts records of topics, and tells of topics that are used for the first time.
    async fn count(
        &self,
        api: ApiKey,
        version: i16,
        places: &[Place<'_>],
    ) -> Result<(), FilterError> {
        let names = &self.filter.topic_names;
        for places in places.chunk_by(|a, b| a.ordinals.0 == b.ordinals.0) {
            let Some(first) = places.first() else { continue };
            let bytes: usize = places.iter().map(|place| place.records.len()).sum();
            let first = match first.topic {
                Topic::Name(name) => self.note_use(api, name, bytes),
                Topic::Id(id) => match names.get(id) {
                    Some(name) => self.note_use(api, &name, bytes),
                    None => self.note_use(api, &id.to_string(), bytes),
                },
            };
            if let Some(topic) = &first {
                let of = Of::Topic { topic };
                let event = self.event("first_use", api, Some(version), of);
                self.filter.tell(line(&event)?).await?;
            }
        }
        Ok(())
    }

    /// Counts records of a topic, and gives its name if it is used for the first time.
    fn note_use(&self, api: ApiKey, topic: &str, bytes: usize) -> Option<Box<str>> {
        self.with_topic(api, topic, |of, is_first| {
            of.messages += 1;
            of.record_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
            is_first.map(Box::from)
        })
    }

    /// Lends what is counted of a topic, with its name if that begins here.
    fn with_topic<T>(
        &self,
        api: ApiKey,
        topic: &str,
        work: impl FnOnce(&mut Used, Option<&str>) -> T,
    ) -> T {
        let mut used = self.used.borrow_mut();
        let used = used.entry(api).or_default();
        let topic = beginning(topic);
        if let Some(of) = used.get_mut(topic) {
            return work(of, None);
        }
        let topic = if used.len() < TOPICS_MAX { topic } else { OTHER_TOPICS };
        let first = (!used.contains_key(topic)).then_some(topic);
        work(used.entry(topic.into()).or_default(), first)
    }

    /// Counts the error codes of topics.
    fn count_codes(&self, response: &ResponseFrame) -> Result<(), FilterError> {
        let layout = response_layout(response.api_key());
        let mut codes = TopicCodes { session: self, api: response.api_key(), topic: None };
        Ok(fields::visit(&layout, response.api_version(), response.body(), &mut codes)?)
    }

    /// What there is to sum up.
    fn summaries(&self) -> Vec<(ApiKey, Box<str>, Used)> {
        let mut summaries = Vec::new();
        for (api, used) in self.used.borrow_mut().iter_mut() {
            let with_use =
                used.iter_mut().filter(|(_, of)| of.messages > 0 || !of.codes.is_empty());
            summaries.extend(with_use.map(|(topic, of)| (*api, topic.clone(), std::mem::take(of))));
        }
        summaries
    }

    fn summary<'e>(&'e self, api: ApiKey, topic: &'e str, used: &'e Used) -> Event<'e> {
        let Used { messages, record_bytes, codes } = used;
        let (messages, record_bytes) = (*messages, *record_bytes);
        self.event("summary", api, None, Of::Summary { topic, messages, record_bytes, codes })
    }

    async fn sum_up_if_due(&self) -> Result<(), FilterError> {
        if self.summed_up.get().elapsed() < self.filter.settings.summary_interval {
            return Ok(());
        }
        self.summed_up.set(Instant::now());
        for (api, topic, used) in self.summaries() {
            self.filter.tell(line(&self.summary(api, &topic, &used))?).await?;
        }
        Ok(())
    }

    /// Whether the answer is the one to the first request in flight.
    fn is_awaited(&self, response: &ResponseFrame) -> bool {
        let in_flight = self.in_flight.borrow();
        in_flight.front().is_some_and(|(id, _)| *id == response.correlation_id())
    }

    /// The line about a request and its answer.
    fn answered(&self, response: &ResponseFrame, is_awaited: bool) -> Result<Vec<u8>, FilterError> {
        let in_flight = self.in_flight.borrow();
        let asked = in_flight.front().filter(|_| is_awaited).map(|(_, asked)| &asked.named);
        let (nothing, outcome) = (Named::default(), resources::of_response(response)?);
        let of = Of::Request { named: asked.unwrap_or(&nothing), outcome: &outcome };
        let (api, version) = (response.api_key(), response.api_version());
        line(&self.event("request", api, Some(version), of))
    }
}

/// A client that leaves before the answer has still done what it requested.
impl Drop for Session {
    fn drop(&mut self) {
        let asked = self.in_flight.take().into_iter().map(|(_, asked)| asked);
        for Asked { api, version, named } in asked.filter(|asked| !is_summed_up(asked.api)) {
            let of = Of::Unanswered { named: &named };
            if let Ok(line) = line(&self.event("unanswered", api, Some(version), of)) {
                self.filter.offer(line);
            }
        }
        for (api, topic, used) in self.summaries() {
            if let Ok(line) = line(&self.summary(api, &topic, &used)) {
                self.filter.offer(line);
            }
        }
    }
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let (api, version) = (request.api_key(), request.api_version());
            let named = if is_summed_up(api) {
                let names = &self.filter.topic_names;
                self.session.learn(&request, names, &mut upstream).await?;
                self.sum_up_if_due().await?;
                if api == ApiKey::Produce {
                    self.count(api, version, &places::of_produce(&request)?).await?;
                }
                Named::default()
            } else {
                self.session.note_client_id(&request);
                resources::of_request(&request)?
            };
            if request.expects_response() {
                let asked = Asked { api, version, named };
                self.in_flight.borrow_mut().push_back((request.correlation_id(), asked));
            }
            Ok(RequestOutcome::Forward(request))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let (api, version) = (response.api_key(), response.api_version());
            let is_awaited = self.is_awaited(&response);
            if is_summed_up(api) {
                self.count(api, version, &places::of_answer(&response)?).await?;
                self.count_codes(&response)?;
            } else {
                self.filter.tell(self.answered(&response, is_awaited)?).await?;
            }
            // Not before, so that a session that ends while its line waits tells of the request.
            if is_awaited {
                self.in_flight.borrow_mut().pop_front();
            }
            Ok(response)
        })
    }
}

/// Counts error codes of the topics of an answer.
struct TopicCodes<'s, 'm> {
    session: &'s Session,
    api: ApiKey,
    topic: Option<Topic<'m>>,
}

impl<'m> Visit<'m> for TopicCodes<'_, 'm> {
    fn text(&mut self, field: &'static Field, text: &'m str) {
        if field.entity == Some(Entity::TopicName) {
            self.topic = Some(Topic::Name(text));
        }
    }

    fn uuid(&mut self, field: &'static Field, id: Uuid) {
        if field.entity == Some(Entity::TopicId) {
            self.topic = Some(Topic::Id(id));
        }
    }

    fn number(&mut self, field: &'static Field, _: usize, number: i64) {
        if field.name != "ErrorCode" || number == 0 {
            return;
        }
        let count = |topic: &str| {
            self.session.with_topic(self.api, topic, |of, _| {
                *of.codes.entry(code_name(number)).or_default() += 1;
            });
        };
        match self.topic {
            Some(Topic::Name(name)) => count(name),
            Some(Topic::Id(id)) => match self.session.filter.topic_names.get(id) {
                Some(name) => count(&name),
                None => count(&id.to_string()),
            },
            // The code of a whole answer.
            None => count(""),
        }
    }
}

fn is_summed_up(api: ApiKey) -> bool {
    matches!(api, ApiKey::Produce | ApiKey::Fetch | ApiKey::ShareFetch)
}

fn line(event: &Event<'_>) -> Result<Vec<u8>, FilterError> {
    let mut line = serde_json::to_vec(event)?;
    line.push(b'\n');
    Ok(line)
}

/// APIs that change or reveal something, and those that carry records.
pub const AUDITED_APIS: &[ApiKey] = &[
    ApiKey::Produce,
    ApiKey::Fetch,
    ApiKey::ShareFetch,
    ApiKey::SaslAuthenticate,
    ApiKey::CreateTopics,
    ApiKey::DeleteTopics,
    ApiKey::CreatePartitions,
    ApiKey::DeleteRecords,
    ApiKey::AlterConfigs,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::DescribeConfigs,
    ApiKey::CreateAcls,
    ApiKey::DeleteAcls,
    ApiKey::DescribeAcls,
    ApiKey::AlterUserScramCredentials,
    ApiKey::DescribeUserScramCredentials,
    ApiKey::AlterClientQuotas,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
    ApiKey::AlterShareGroupOffsets,
    ApiKey::DeleteShareGroupOffsets,
    ApiKey::InitProducerId,
    ApiKey::JoinGroup,
    ApiKey::ElectLeaders,
    ApiKey::AlterPartitionReassignments,
    ApiKey::AlterReplicaLogDirs,
    ApiKey::CreateDelegationToken,
    ApiKey::RenewDelegationToken,
    ApiKey::ExpireDelegationToken,
    ApiKey::DescribeDelegationToken,
    ApiKey::UpdateFeatures,
    ApiKey::UnregisterBroker,
    ApiKey::UnregisterController,
    ApiKey::AddRaftVoter,
    ApiKey::RemoveRaftVoter,
];

/// Topics of a session that are counted by name. Those beyond share a count.
const TOPICS_MAX: usize = 1000;

/// What stands for the topics beyond; no topic can be called so.
const OTHER_TOPICS: &str = "(other topics)";

#[cfg(test)]
mod tests;
