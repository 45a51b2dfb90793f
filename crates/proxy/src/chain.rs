//! The filters of a virtual cluster, one after the other.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moldau_protocol::ApiKey;

use crate::context::SessionContext;
use crate::filter::{Direction, Filter, FilterFuture, FilterMetric, RequestOutcome, SessionFilter};
use crate::frame::{RequestFrame, ResponseFrame};
use crate::in_flight::Answered;
use crate::log_limit::LogLimit;
use crate::metrics::add;
use crate::upstream::{Outbox, OwnRequest, Upstream};

/// How long a filter may hold a message: as long as clients wait for an answer by default, Kafka's
/// `request.timeout.ms`.
const FILTER_TIMEOUT: Duration = Duration::from_secs(30);

/// The filters of a virtual cluster.
#[derive(Debug)]
pub(crate) struct Chain {
    cluster: String,
    filters: Vec<Link>,
    claims: Claims,
    /// A bit for each API that clients may use.
    admitted: u128,
    admits_unknown: bool,
    failures: LogLimit,
}

#[derive(Debug)]
struct Link {
    filter: Arc<dyn Filter>,
    claims: Claims,
    errors: AtomicU64,
}

/// A filter failed, which was logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the filter {filter} failed")]
pub(crate) struct FilterFailed {
    filter: &'static str,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Filtered {
    pub(crate) verdict: Verdict,
    /// The session takes no further request.
    pub(crate) closes: bool,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Forward(RequestFrame),
    Answer(Answered),
    Drop,
}

impl Chain {
    pub(crate) fn new(cluster: &str, filters: Vec<Arc<dyn Filter>>) -> Arc<Self> {
        let filters: Vec<Link> = filters
            .into_iter()
            .map(|filter| {
                let claims = Claims::of(&*filter);
                Link { filter, claims, errors: AtomicU64::new(0) }
            })
            .collect();
        let claims = filters.iter().fold(Claims::default(), |all, link| all.and(link.claims));
        let admit = |api| filters.iter().all(|link: &Link| link.filter.admits(api));
        let admitted = ApiKey::ALL.iter().filter(|api| admit(Some(**api)));
        let admitted = admitted.fold(0, |bits, api| bits | bit(api.key()));
        let admits_unknown = admit(None);
        let (cluster, failures) = (cluster.to_owned(), LogLimit::default());
        Arc::new(Self { cluster, filters, claims, admitted, admits_unknown, failures })
    }

    /// Whether clients may use an API.
    pub(crate) fn admits(&self, api_key: i16) -> bool {
        match ApiKey::try_from(api_key) {
            Ok(_) => self.admitted & bit(api_key) != 0,
            Err(_) => self.admits_unknown,
        }
    }

    /// Whether any filter needs these messages.
    pub(crate) fn claims(&self, api_key: i16, direction: Direction) -> bool {
        self.claims.contain(api_key, direction)
    }

    /// The filters at work on one session.
    pub(crate) fn session(self: &Arc<Self>, context: &SessionContext) -> Rc<SessionChain> {
        let filters = self.filters.iter().map(|link| Arc::clone(&link.filter).session(context));
        let (chain, outbox) = (Arc::clone(self), Outbox::default());
        Rc::new(SessionChain { chain, filters: filters.collect(), outbox })
    }

    /// What filters do beside the sessions.
    pub(crate) async fn background(self: Arc<Self>) {
        for link in &self.filters {
            tokio::task::spawn_local(Arc::clone(&link.filter).background());
        }
    }

    /// What all filters have counted, with the name of the virtual cluster.
    pub(crate) fn metrics(&self) -> Vec<(String, FilterMetric)> {
        let errors = self.filters.iter().map(|link| FilterMetric {
            name: "filter_errors",
            help: "Sessions that a filter ended by an error",
            labels: vec![("filter", link.filter.name().to_owned())],
            value: link.errors.load(Ordering::Relaxed),
        });
        let own = self.filters.iter().flat_map(|link| link.filter.metrics());
        errors.chain(own).map(|metric| (self.cluster.clone(), metric)).collect()
    }
}

/// The filters of one session.
pub(crate) struct SessionChain {
    chain: Arc<Chain>,
    filters: Vec<Rc<dyn SessionFilter>>,
    /// What the filter at work on a request wants to be sent.
    outbox: Outbox,
}

impl fmt::Debug for SessionChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionChain").field("chain", &self.chain).finish_non_exhaustive()
    }
}

impl SessionChain {
    /// How many filters there are.
    pub(crate) fn len(&self) -> usize {
        self.filters.len()
    }

    /// Whether any filter needs these messages.
    pub(crate) fn claims(&self, api_key: i16, direction: Direction) -> bool {
        self.chain.claims(api_key, direction)
    }

    /// Whether clients may use an API.
    pub(crate) fn admits(&self, api_key: i16) -> bool {
        self.chain.admits(api_key)
    }

    /// Whether any of the first `count` filters needs these messages.
    pub(crate) fn first_claim(&self, count: usize, api_key: i16, direction: Direction) -> bool {
        self.chain.claims(api_key, direction)
            && self.claiming(api_key, direction).any(|(index, _)| index < count)
    }

    /// What the filter at work on a request wants to be sent.
    pub(crate) fn take_own_request(&self) -> Option<OwnRequest> {
        self.outbox.borrow_mut().take()
    }

    /// Takes a request through all filters that claim it.
    pub(crate) async fn request(
        self: Rc<Self>,
        mut request: RequestFrame,
    ) -> Result<Filtered, FilterFailed> {
        let mut closes = false;
        let (api_key, expects_response) = (request.api_key().key(), request.expects_response());
        for (index, filter) in self.claiming(api_key, Direction::Request) {
            let upstream = Upstream::new(Rc::clone(&self.outbox));
            request = match self.run(index, Rc::clone(filter).request(request, upstream)).await? {
                RequestOutcome::Forward(request) => request,
                RequestOutcome::Respond(response) if expects_response => {
                    let answered = Answered { response, filters: index };
                    return Ok(Filtered { verdict: Verdict::Answer(answered), closes });
                }
                RequestOutcome::Close(Some(request)) => {
                    closes = true;
                    request
                }
                RequestOutcome::Respond(_) | RequestOutcome::Close(None) => {
                    return Ok(Filtered { verdict: Verdict::Drop, closes: true });
                }
            };
        }
        Ok(Filtered { verdict: Verdict::Forward(request), closes })
    }

    /// Takes a response through those of the first `count` filters that claim it, from the last
    /// of them to the first.
    pub(crate) async fn response(
        self: Rc<Self>,
        mut response: ResponseFrame,
        count: usize,
    ) -> Result<ResponseFrame, FilterFailed> {
        let api_key = response.api_key().key();
        let claiming = self.claiming(api_key, Direction::Response).rev();
        for (index, filter) in claiming.filter(|(index, _)| *index < count) {
            response = self.run(index, Rc::clone(filter).response(response)).await?;
        }
        Ok(response)
    }

    fn claiming(
        &self,
        api_key: i16,
        direction: Direction,
    ) -> impl DoubleEndedIterator<Item = (usize, &Rc<dyn SessionFilter>)> {
        let links = self.chain.filters.iter().zip(&self.filters).enumerate();
        links
            .filter(move |(_, (link, _))| link.claims.contain(api_key, direction))
            .map(|(index, (_, filter))| (index, filter))
    }

    async fn run<T>(&self, index: usize, work: FilterFuture<T>) -> Result<T, FilterFailed> {
        let error = match tokio::time::timeout(FILTER_TIMEOUT, work).await {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(error)) => error,
            Err(elapsed) => elapsed.into(),
        };
        let Some(link) = self.chain.filters.get(index) else {
            return Err(FilterFailed { filter: "" });
        };
        add(&link.errors, 1);
        let filter = link.filter.name();
        self.chain.failures.log(|unlogged| {
            let cluster = &*self.chain.cluster;
            tracing::warn!(cluster, filter, %error, unlogged, "a filter ended a session");
        });
        Err(FilterFailed { filter })
    }
}

/// Messages that filters need: a bit for each API key.
#[derive(Clone, Copy, Debug, Default)]
struct Claims {
    requests: u128,
    responses: u128,
}

impl Claims {
    fn of(filter: &dyn Filter) -> Self {
        let bits = |direction| {
            let claimed = ApiKey::ALL.iter().filter(|api| filter.claims(**api, direction));
            claimed.fold(0, |bits, api| bits | bit(api.key()))
        };
        Self { requests: bits(Direction::Request), responses: bits(Direction::Response) }
    }

    fn and(self, other: Self) -> Self {
        let Self { requests, responses } = other;
        Self { requests: self.requests | requests, responses: self.responses | responses }
    }

    fn contain(self, api_key: i16, direction: Direction) -> bool {
        let bits = match direction {
            Direction::Request => self.requests,
            Direction::Response => self.responses,
        };
        bits & bit(api_key) != 0
    }
}

/// The bit of an API; none for a key that Kafka does not use.
fn bit(api_key: i16) -> u128 {
    u32::try_from(api_key).ok().and_then(|key| 1_u128.checked_shl(key)).unwrap_or_default()
}
