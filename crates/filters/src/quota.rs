//! Limits how many bytes and requests pass in a second: of a principal, a client id, a topic.
//!
//! Claims Produce, Fetch and ShareFetch requests and their answers; if requests of principals or
//! client ids are limited, all other requests too, but for those that come before authentication.
//!
//! As in Kafka, what a client sends or gets goes on at once and is charged. If a limit is passed,
//! the answer says in `throttle_time_ms` for how long, unless the cluster asked for more, and no
//! request that the filter claims goes on until that time is over, nor what follows it on the
//! connection (KIP-219). Answers of other APIs do not say it. All limits that a message falls under
//! are charged, and the longest time counts; Kafka charges the most specific one.
//!
//! | what | charged when | amount |
//! |---|---|---|
//! | produce bytes | the request comes | the frame; of a topic, its records |
//! | fetch bytes | the answer comes | the frame; of a topic, its records |
//! | requests | the request comes; of a topic, records of it pass | 1 |
//!
//! A bucket holds what its limit allows in the time of the burst, belongs to all sessions of the
//! virtual cluster, and may be overdrawn. Topics whose id has no known name are limited by it.
//!
//! One throttle lasts [`THROTTLE_MAX`] at most, for a filter may not hold a message longer than
//! clients wait. A limit is therefore passed where even one message of each connection in that time
//! is too much.
//!
//! Cost: a look-up for each limit that applies; limits of topics need a walk over the message's
//! structure. An answer is copied only if it is throttled.

mod buckets;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::ApiKey;
use moldau_protocol::messages::ProduceResponse;
use moldau_proxy::{
    Direction, Filter, FilterError, FilterFuture, FilterMetric, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, TopicNames, Upstream,
};
use tokio::time::Instant;

use self::buckets::Table;
use crate::batches::places::{self, Place, Topic};
use crate::counter::Counter;
use crate::error::Error;
use crate::session::RecordSession;

/// Configuration of a [`Quota`] filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaSettings {
    /// All that apply to a message are charged.
    pub limits: Vec<QuotaLimit>,
    /// For how long an entity that was idle may go without a limit.
    pub burst: Duration,
}

/// How much some entities may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaLimit {
    /// Clients that the limit applies to.
    pub entity: QuotaEntity,
    /// Bytes that are produced in a second, 1 at least.
    pub produce_bytes_per_second: Option<u64>,
    /// Bytes that are fetched in a second, 1 at least.
    pub fetch_bytes_per_second: Option<u64>,
    /// Requests in a second, 1 at least.
    pub requests_per_second: Option<u64>,
}

/// Clients that a limit applies to: a name, a prefix before a `*`, or all that no other limit
/// covers. The first pattern that matches counts. Each name has a bucket of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuotaEntity {
    /// A principal, as `User:alice`.
    Principal(Option<String>),
    /// What clients call themselves.
    ClientId(Option<String>),
    /// A topic.
    Topic(Option<String>),
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct Quota {
    principals: Tables,
    client_ids: Tables,
    topics: Tables,
    topic_names: TopicNames,
    throttled: Counter,
    throttled_ms: Counter,
}

/// The limits of one kind of entity.
#[derive(Debug)]
struct Tables {
    produce_bytes: Table,
    fetch_bytes: Table,
    requests: Table,
}

impl Quota {
    /// A filter by these limits.
    ///
    /// # Errors
    /// A limit is 0, or a pattern has a `*` elsewhere than at its end.
    pub fn new(settings: &QuotaSettings) -> Result<Self, Error> {
        let tables = || Tables {
            produce_bytes: Table::new(settings.burst),
            fetch_bytes: Table::new(settings.burst),
            requests: Table::new(settings.burst),
        };
        let (mut principals, mut client_ids, mut topics) = (tables(), tables(), tables());
        for limit in &settings.limits {
            let (tables, pattern) = match &limit.entity {
                QuotaEntity::Principal(pattern) => (&mut principals, pattern),
                QuotaEntity::ClientId(pattern) => (&mut client_ids, pattern),
                QuotaEntity::Topic(pattern) => (&mut topics, pattern),
            };
            for (table, rate) in [
                (&mut tables.produce_bytes, limit.produce_bytes_per_second),
                (&mut tables.fetch_bytes, limit.fetch_bytes_per_second),
                (&mut tables.requests, limit.requests_per_second),
            ] {
                if let Some(rate) = rate {
                    table.limit(pattern.as_deref(), rate)?;
                }
            }
        }
        let topic_names = TopicNames::default();
        let (throttled, throttled_ms) = Default::default();
        Ok(Self { principals, client_ids, topics, topic_names, throttled, throttled_ms })
    }

    fn limits_requests(&self) -> bool {
        !self.principals.requests.is_empty() || !self.client_ids.requests.is_empty()
    }

    /// Charges each topic for its records.
    fn charge_topics(&self, places: &[Place<'_>], way: Way, now: Instant) -> Duration {
        let mut longest = Duration::ZERO;
        let of_topics = places.chunk_by(|a, b| a.ordinals.0 == b.ordinals.0);
        for places in of_topics {
            let Some(first) = places.first() else { continue };
            let bytes = places.iter().map(|place| place.records.len()).sum();
            let mut charge = |name: &str| {
                longest = longest.max(self.topics.bytes(way).take(name, bytes, now));
                longest = longest.max(self.topics.requests.take(name, 1, now));
            };
            match first.topic {
                Topic::Name(name) => charge(name),
                Topic::Id(id) => match self.topic_names.get(id) {
                    Some(name) => charge(&name),
                    None => charge(&id.to_string()),
                },
            }
        }
        longest
    }

    fn note(&self, throttle: Duration) {
        if !throttle.is_zero() {
            self.throttled.add(1);
            self.throttled_ms.add(u64::try_from(throttle.as_millis()).unwrap_or(u64::MAX));
        }
    }
}

/// Which bytes a message has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Produce,
    Fetch,
}

impl Tables {
    fn bytes(&self, way: Way) -> &Table {
        match way {
            Way::Produce => &self.produce_bytes,
            Way::Fetch => &self.fetch_bytes,
        }
    }

    fn is_empty(&self) -> bool {
        [&self.produce_bytes, &self.fetch_bytes, &self.requests].iter().all(|it| it.is_empty())
    }
}

impl Filter for Quota {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        match api {
            ApiKey::Produce | ApiKey::Fetch | ApiKey::ShareFetch => true,
            ApiKey::ApiVersions | ApiKey::SaslHandshake | ApiKey::SaslAuthenticate => false,
            _ => direction == Direction::Request && self.limits_requests(),
        }
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Session {
            filter: self,
            session: RecordSession::new(session),
            muted_until: Cell::new(None),
            in_flight: RefCell::default(),
        })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        let throttled_ms = "Milliseconds for which clients were throttled";
        vec![
            self.throttled.metric("quota_throttles", "Messages that exceeded a limit"),
            self.throttled_ms.metric("quota_throttle_ms", throttled_ms),
        ]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Quota>,
    session: RecordSession,
    /// No request is taken before.
    muted_until: Cell<Option<Instant>>,
    /// Throttle times for the answers to requests in flight, in their order, by correlation id.
    in_flight: RefCell<VecDeque<(i32, Duration)>>,
}

impl Session {
    /// Charges all limits but those of topics.
    fn charge(&self, table: impl Fn(&Tables) -> &Table, amount: usize, now: Instant) -> Duration {
        let filter = &*self.filter;
        let mut longest = Duration::ZERO;
        let of_principals = table(&filter.principals);
        if !of_principals.is_empty() {
            let principal = self.session.context.principal().to_string();
            longest = longest.max(of_principals.take(&principal, amount, now));
        }
        let of_client_ids = table(&filter.client_ids);
        if !of_client_ids.is_empty() {
            longest = longest.max(of_client_ids.take(&self.session.client_id(), amount, now));
        }
        longest
    }

    fn mute(&self, throttle: Duration, now: Instant) -> Duration {
        let throttle = throttle.min(THROTTLE_MAX);
        self.filter.note(throttle);
        if !throttle.is_zero() {
            self.muted_until.set(self.muted_until.get().max(Some(now + throttle)));
        }
        throttle
    }

    async fn charge_request(
        &self,
        request: &RequestFrame,
        upstream: &mut Upstream,
    ) -> Result<(), FilterError> {
        let filter = &*self.filter;
        match filter.topics.is_empty() {
            true => self.session.note_client_id(request),
            false => self.session.learn(request, &filter.topic_names, upstream).await?,
        }
        let now = Instant::now();
        let mut throttle = self.charge(|tables| &tables.requests, 1, now);
        if request.api_key() == ApiKey::Produce {
            let bytes = request.bytes().len();
            throttle = throttle.max(self.charge(|tables| &tables.produce_bytes, bytes, now));
            if !filter.topics.is_empty() {
                let places = places::of_produce(request)?;
                throttle = throttle.max(filter.charge_topics(&places, Way::Produce, now));
            }
        }
        let throttle = self.mute(throttle, now);
        if request.expects_response() && filter.claims(request.api_key(), Direction::Response) {
            self.in_flight.borrow_mut().push_back((request.correlation_id(), throttle));
        }
        Ok(())
    }

    fn charge_answer(&self, response: &ResponseFrame) -> Result<Duration, FilterError> {
        let mut in_flight = self.in_flight.borrow_mut();
        let is_known = in_flight.front().is_some_and(|(id, _)| *id == response.correlation_id());
        let told = if is_known { in_flight.pop_front() } else { None };
        let told = told.map(|(_, throttle)| throttle).unwrap_or_default();
        if response.api_key() == ApiKey::Produce {
            return Ok(told);
        }
        let now = Instant::now();
        let bytes = response.bytes().len();
        let mut throttle = self.charge(|tables| &tables.fetch_bytes, bytes, now);
        if !self.filter.topics.is_empty() {
            let places = places::of_answer(response)?;
            throttle = throttle.max(self.filter.charge_topics(&places, Way::Fetch, now));
        }
        Ok(self.mute(throttle, now).max(told))
    }
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            if let Some(until) = self.muted_until.take() {
                tokio::time::sleep_until(until).await;
            }
            self.charge_request(&request, &mut upstream).await?;
            Ok(RequestOutcome::Forward(request))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let throttle = self.charge_answer(&response)?;
            if throttle.is_zero() {
                return Ok(response);
            }
            tell(response, i32::try_from(throttle.as_millis()).unwrap_or(i32::MAX).max(1))
        })
    }
}

/// Says in an answer for how long its client is throttled, unless it says more.
fn tell(response: ResponseFrame, throttle_time_ms: i32) -> Result<ResponseFrame, FilterError> {
    if response.api_key() == ApiKey::Produce {
        let mut answer: ProduceResponse = response.decode()?;
        answer.throttle_time_ms = answer.throttle_time_ms.max(throttle_time_ms);
        return Ok(response.with_message(&answer)?);
    }
    // It is the first field of both kinds of fetch answers.
    let mut bytes = response.header_bytes();
    let (told, rest) = response.body().split_first_chunk().ok_or("a fetch answer is too short")?;
    let told = i32::from_be_bytes(*told).max(throttle_time_ms);
    bytes.extend_from_slice(&told.to_be_bytes());
    bytes.extend_from_slice(rest);
    Ok(response.with_bytes(bytes)?)
}

/// The longest time for which a session is held at once. Clients wait 30 s for an answer by
/// default, and may have sent the next request before they learned of the throttle.
pub const THROTTLE_MAX: Duration = Duration::from_secs(20);

const NAME: &str = "quota";

#[cfg(test)]
mod tests;
