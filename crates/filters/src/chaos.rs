//! Breaks a cluster on purpose, so that clients can be tried: latency, errors, disconnects.
//!
//! Claims the requests that the rules name, and their answers where rules give errors. Each request
//! asks each rule that matches it, in order, whether it strikes: latencies add up, and the first
//! error or disconnect ends the matter. Which requests are struck depends on nothing but the seed,
//! the number of the session and the requests on it, so that a run can be repeated.
//!
//! | fault | what happens |
//! |---|---|
//! | latency | the request waits, and with it what follows on its connection |
//! | error | see below |
//! | disconnect | the connection is closed in place of an answer |
//!
//! A request for records, offsets, configurations or topics is answered with the error for each
//! part, and the cluster never sees it. Any other request reaches the cluster, and every error code
//! of the answer becomes the one of the rule: what a client sees whose coordinator fails between
//! doing and telling.
//!
//! Cost: rules with topics need a walk over the structure of each request that they claim.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moldau_protocol::names::{request_layout, response_layout};
use moldau_protocol::{ApiKey, Entity, ErrorCode, Field, Uuid};
use moldau_proxy::{
    Direction, Filter, FilterError, FilterFuture, FilterMetric, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, TopicNames, Upstream,
};

use crate::counter::Counter;
use crate::error::Error;
use crate::fields::{self, Visit};
use crate::partial::{self, Complete, Split};
use crate::session::RecordSession;
use crate::topics::TopicPatterns;

/// Configuration of a [`Chaos`] filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChaosSettings {
    /// From which all chances are drawn.
    pub seed: u64,
    /// All rules that match a request are asked.
    pub rules: Vec<ChaosRule>,
}

/// What happens to some requests.
#[derive(Clone, Debug, PartialEq)]
pub struct ChaosRule {
    /// The APIs; there must be one at least.
    pub apis: Vec<ApiKey>,
    /// Requests that name one of these topics, by name or by the beginning of names before a `*`;
    /// all requests if there is none.
    pub topics: Vec<String>,
    /// Requests of these principals, as `User:alice`; of all if there is none.
    pub principals: Vec<String>,
    /// How many of them are struck, from 0 for none to 1 for all.
    pub probability: f64,
    /// What strikes them.
    pub fault: ChaosFault,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChaosFault {
    /// It waits for so long, [`LATENCY_MAX`] at most.
    Latency(Duration),
    /// It waits for a time between these, any as likely as the other.
    LatencyBetween(Duration, Duration),
    /// It fails.
    Error(ErrorCode),
    /// Its connection is closed.
    Disconnect,
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct Chaos {
    seed: u64,
    rules: Vec<Rule>,
    sessions: AtomicU64,
    topic_names: TopicNames,
    delayed: Counter,
    failed: Counter,
    disconnected: Counter,
}

#[derive(Debug)]
struct Rule {
    apis: Vec<ApiKey>,
    topics: Option<TopicPatterns>,
    principals: Vec<String>,
    probability: f64,
    fault: ChaosFault,
}

impl Chaos {
    /// A filter by these rules.
    ///
    /// # Errors
    /// A rule names no API, its probability lies outside of 0 to 1, its latency is too long or its
    /// range ends before it begins, or a pattern cannot be read.
    pub fn new(settings: ChaosSettings) -> Result<Self, Error> {
        let rules = settings.rules.into_iter().map(Rule::new).collect::<Result<_, _>>()?;
        let (delayed, failed, disconnected) = Default::default();
        let (sessions, topic_names) = Default::default();
        let seed = settings.seed;
        Ok(Self { seed, rules, sessions, topic_names, delayed, failed, disconnected })
    }

    fn asks_for_topics(&self) -> bool {
        self.rules.iter().any(|rule| rule.topics.is_some())
    }
}

impl Rule {
    fn new(rule: ChaosRule) -> Result<Self, Error> {
        let longest = match rule.fault {
            ChaosFault::Latency(latency) => latency,
            ChaosFault::LatencyBetween(shortest, longest) if shortest <= longest => longest,
            ChaosFault::LatencyBetween(..) => {
                return Err(Error::setting(NAME, "a latency ends before it begins"));
            }
            ChaosFault::Error(_) | ChaosFault::Disconnect => Duration::ZERO,
        };
        if longest > LATENCY_MAX {
            let reason = format!("a latency is {} s at most", LATENCY_MAX.as_secs());
            return Err(Error::setting(NAME, reason));
        }
        if !(0.0..=1.0).contains(&rule.probability) {
            return Err(Error::setting(NAME, "a probability lies between 0 and 1"));
        }
        if rule.apis.is_empty() {
            return Err(Error::setting(NAME, "a rule names no API"));
        }
        let patterns = Some(rule.topics).filter(|topics| !topics.is_empty());
        let topics = patterns.map(|patterns| TopicPatterns::parse(NAME, &patterns)).transpose()?;
        let ChaosRule { apis, principals, probability, fault, .. } = rule;
        Ok(Self { apis, topics, principals, probability, fault })
    }

    fn matches(&self, api: ApiKey, principal: &str, topics: &[String]) -> bool {
        let has_topic = |patterns: &TopicPatterns| topics.iter().any(|it| patterns.matches(it));
        self.apis.contains(&api)
            && (self.principals.is_empty() || self.principals.iter().any(|of| of == principal))
            && self.topics.as_ref().is_none_or(has_topic)
    }
}

impl Filter for Chaos {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        self.rules.iter().filter(|rule| rule.apis.contains(&api)).any(|rule| {
            direction == Direction::Request || matches!(rule.fault, ChaosFault::Error(_))
        })
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        // Seeds of sessions lie far apart, even if configured seeds are close.
        let seed = self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Rc::new(Session {
            filter: self,
            session: RecordSession::new(session),
            random: RefCell::new(fastrand::Rng::with_seed(seed)),
            in_flight: RefCell::default(),
        })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        vec![
            self.delayed.metric("chaos_delayed", "Requests delayed on purpose"),
            self.failed.metric("chaos_failed", "Requests failed on purpose"),
            self.disconnected.metric("chaos_disconnected", "Connections closed on purpose"),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Chaos>,
    session: RecordSession,
    random: RefCell<fastrand::Rng>,
    /// How to handle the answers to requests in flight, in their order, by correlation id.
    in_flight: RefCell<VecDeque<(i32, Answer)>>,
}

/// How an answer is handled.
enum Answer {
    Passes,
    Completed(Complete),
    Fails(ErrorCode),
}

impl Session {
    /// How long a request waits, and what ends it.
    fn strike(&self, api: ApiKey, topics: &[String]) -> (Duration, Option<ChaosFault>) {
        let principal = self.session.context.principal().to_string();
        let mut random = self.random.borrow_mut();
        let mut wait = Duration::ZERO;
        let rules = self.filter.rules.iter();
        for rule in rules.filter(|rule| rule.matches(api, &principal, topics)) {
            if random.f64() >= rule.probability {
                continue;
            }
            match rule.fault {
                ChaosFault::Latency(latency) => wait += latency,
                ChaosFault::LatencyBetween(shortest, longest) => {
                    let range = u64::try_from((longest - shortest).as_micros());
                    let more = random.u64(..=range.unwrap_or(u64::MAX));
                    wait += shortest + Duration::from_micros(more);
                }
                fault => return (wait.min(LATENCY_MAX), Some(fault)),
            }
        }
        (wait.min(LATENCY_MAX), None)
    }

    /// The topics that a request names, if any rule asks for them.
    async fn topics(
        &self,
        request: &RequestFrame,
        upstream: &mut Upstream,
    ) -> Result<Vec<String>, FilterError> {
        let filter = &*self.filter;
        if !filter.asks_for_topics() {
            return Ok(Vec::new());
        }
        self.session.learn(request, &filter.topic_names, upstream).await?;
        let mut topics = Topics { names: &filter.topic_names, found: Vec::new() };
        let layout = request_layout(request.api_key());
        fields::visit(&layout, request.api_version(), request.body(), &mut topics)?;
        Ok(topics.found)
    }

    fn fail(&self, request: RequestFrame, code: ErrorCode) -> Result<RequestOutcome, FilterError> {
        self.filter.failed.add(1);
        let (request, answer) = match partial::split(request, &|_| Some(code))? {
            Split::Nothing(response) => return Ok(RequestOutcome::Respond(response)),
            Split::Part(request, complete) => (request, Answer::Completed(complete)),
            Split::Whole(request) => (request, Answer::Fails(code)),
        };
        Ok(self.forward(request, answer))
    }

    fn forward(&self, request: RequestFrame, answer: Answer) -> RequestOutcome {
        let is_seen = self.filter.claims(request.api_key(), Direction::Response);
        if is_seen && request.expects_response() {
            self.in_flight.borrow_mut().push_back((request.correlation_id(), answer));
        }
        RequestOutcome::Forward(request)
    }
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let topics = self.topics(&request, &mut upstream).await?;
            let (wait, end) = self.strike(request.api_key(), &topics);
            if !wait.is_zero() {
                self.filter.delayed.add(1);
                tokio::time::sleep(wait).await;
            }
            match end {
                Some(ChaosFault::Disconnect) => {
                    self.filter.disconnected.add(1);
                    Ok(RequestOutcome::Close(None))
                }
                Some(ChaosFault::Error(code)) => self.fail(request, code),
                _ => Ok(self.forward(request, Answer::Passes)),
            }
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let mut in_flight = self.in_flight.borrow_mut();
            let id = response.correlation_id();
            let is_known = in_flight.front().is_some_and(|(of, _)| *of == id);
            let answer = if is_known { in_flight.pop_front() } else { None };
            match answer {
                Some((_, Answer::Completed(complete))) => complete(response),
                Some((_, Answer::Fails(code))) => with_code(response, code),
                Some((_, Answer::Passes)) | None => Ok(response),
            }
        })
    }
}

/// Writes a code over every error code of an answer.
fn with_code(response: ResponseFrame, code: ErrorCode) -> Result<ResponseFrame, FilterError> {
    let mut places = CodePlaces(Vec::new());
    let layout = response_layout(response.api_key());
    fields::visit(&layout, response.api_version(), response.body(), &mut places)?;
    let mut bytes = response.header_bytes();
    let body_at = bytes.len();
    bytes.extend_from_slice(response.body());
    for at in places.0 {
        let place = bytes.get_mut(body_at + at..).and_then(<[u8]>::first_chunk_mut);
        *place.ok_or("an error code lies beyond its answer")? = i16::from(code).to_be_bytes();
    }
    Ok(response.with_bytes(bytes)?)
}

/// Finds error codes.
struct CodePlaces(Vec<usize>);

impl Visit<'_> for CodePlaces {
    fn text(&mut self, _: &'static Field, _: &str) {}

    fn uuid(&mut self, _: &'static Field, _: Uuid) {}

    fn number(&mut self, field: &'static Field, at: usize, _: i64) {
        if field.name == "ErrorCode" {
            self.0.push(at);
        }
    }
}

/// Finds names of topics.
struct Topics<'n> {
    names: &'n TopicNames,
    found: Vec<String>,
}

impl Visit<'_> for Topics<'_> {
    fn text(&mut self, field: &'static Field, text: &str) {
        if field.entity == Some(Entity::TopicName) {
            self.found.push(text.to_owned());
        }
    }

    fn uuid(&mut self, field: &'static Field, id: Uuid) {
        if field.entity == Some(Entity::TopicId) {
            self.found.extend(self.names.get(id).map(|name| (*name).to_owned()));
        }
    }

    fn number(&mut self, _: &'static Field, _: usize, _: i64) {}
}

const NAME: &str = "chaos";

/// The longest latency of a request: a proxy ends the session of a filter that takes 30 s.
pub const LATENCY_MAX: Duration = Duration::from_secs(25);

#[cfg(test)]
mod tests;
