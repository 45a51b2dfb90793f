//! The filters of a virtual cluster, one after the other.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moldau_net::{LogLimit, NetworkHandle, Phase, Shutdown};
use moldau_protocol::ApiKey;
use moldau_threads::{Mutex, MutexGuard};

use crate::context::SessionContext;
use crate::expected::{Answered, Readers};
use crate::filter::{Direction, Filter, FilterFuture, FilterMetric, RequestOutcome, SessionFilter};
use crate::frame::{RequestFrame, ResponseFrame};
use crate::metrics::add;
use crate::upstream::{Outbox, OwnRequest, Upstream};

/// How long a filter may hold a message: as long as clients wait for an answer by default, Kafka's
/// `request.timeout.ms`.
const FILTER_TIMEOUT: Duration = Duration::from_secs(30);

/// The chain of a virtual cluster that is in force, which a reload replaces.
#[derive(Debug)]
pub(crate) struct Chains {
    /// Raised by each replacement, so that sessions see one by a load.
    generation: AtomicU64,
    /// Guards the chain that is in force.
    current: Mutex<Arc<Chain>>,
}

/// The filters of a virtual cluster.
#[derive(Debug)]
pub(crate) struct Chain {
    cluster: Arc<str>,
    generation: u64,
    filters: Vec<Link>,
    claims: Claims,
    /// A bit for each API that clients may use.
    admitted: u128,
    admits_unknown: bool,
    failures: LogLimit,
    /// Tells what runs beside the sessions that another chain is in force.
    replaced: Shutdown,
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
    /// The filters want its answer.
    Forward(RequestFrame, Readers),
    Answer(Answered),
    Drop,
}

impl Chains {
    pub(crate) fn new(cluster: &Arc<str>, filters: Vec<Arc<dyn Filter>>) -> Arc<Self> {
        let current = Mutex::new(Chain::new(cluster, 0, filters));
        Arc::new(Self { generation: AtomicU64::new(0), current })
    }

    /// The chain that is in force.
    pub(crate) fn current(&self) -> Arc<Chain> {
        Arc::clone(&self.lock())
    }

    /// Puts other filters in force, unless they are the same, and returns their chain.
    pub(crate) fn replace(&self, filters: &[Arc<dyn Filter>]) -> Option<Arc<Chain>> {
        let mut current = self.lock();
        let same = |(link, filter): (&Link, _)| Arc::ptr_eq(&link.filter, filter);
        if current.filters.len() == filters.len() && current.filters.iter().zip(filters).all(same) {
            return None;
        }
        current.replaced.advance(Phase::Stopped);
        let generation = current.generation + 1;
        *current = Chain::new(&current.cluster, generation, filters.to_vec());
        self.generation.store(generation, Ordering::Release);
        Some(Arc::clone(&current))
    }

    /// The filters at work on one session.
    pub(crate) fn session(self: &Arc<Self>, context: &SessionContext) -> Rc<SessionChain> {
        let chain = self.current();
        let filters = chain.filters.iter().map(|link| Arc::clone(&link.filter).session(context));
        let filters = filters.collect();
        let (chains, context, outbox) = (Arc::clone(self), context.clone(), Outbox::default());
        Rc::new(SessionChain { chains, chain, context, filters, outbox })
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Chain>> {
        self.current.lock()
    }
}

impl Chain {
    fn new(cluster: &Arc<str>, generation: u64, filters: Vec<Arc<dyn Filter>>) -> Arc<Self> {
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
        Arc::new(Self {
            cluster: Arc::clone(cluster),
            generation,
            claims,
            admitted,
            admits_unknown: admit(None),
            failures: LogLimit::default(),
            replaced: Shutdown::new(),
            filters,
        })
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

    /// Ends what filters do beside the sessions, since no further session will come.
    pub(crate) fn retire(&self) {
        self.replaced.advance(Phase::Stopped);
    }

    /// Background tasks of the filters, until other filters replace them.
    pub(crate) async fn background(self: Arc<Self>, net: NetworkHandle) {
        for link in &self.filters {
            let (work, replaced) = (Arc::clone(&link.filter).background(), self.replaced.clone());
            net.spawn_here("the work of a filter beside its sessions", async move {
                tokio::select! {
                    () = work => {}
                    () = replaced.reached(Phase::Stopped) => {}
                }
            });
        }
    }

    /// Counters of all filters.
    pub(crate) fn metrics(&self) -> Vec<FilterMetric> {
        let errors = self.filters.iter().map(|link| FilterMetric {
            name: "filter_errors",
            help: "Sessions ended by an error in a filter",
            labels: vec![("filter", link.filter.name().to_owned())],
            value: link.errors.load(Ordering::Relaxed),
        });
        let own = self.filters.iter().flat_map(|link| link.filter.metrics());
        errors.chain(own).collect()
    }
}

/// The filters of one session.
pub(crate) struct SessionChain {
    chains: Arc<Chains>,
    chain: Arc<Chain>,
    context: SessionContext,
    filters: Vec<Rc<dyn SessionFilter>>,
    /// Request that the active filter wants to send.
    outbox: Outbox,
}

impl fmt::Debug for SessionChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionChain").field("chain", &self.chain).finish_non_exhaustive()
    }
}

impl SessionChain {
    /// The filters that are in force, if these are no longer.
    #[inline]
    pub(crate) fn successor(&self) -> Option<Rc<Self>> {
        let generation = self.chains.generation.load(Ordering::Acquire);
        (generation != self.chain.generation).then(|| self.succeed())
    }

    /// A filter that is in both chains keeps what it remembers of the session.
    #[cold]
    fn succeed(&self) -> Rc<Self> {
        let (chains, chain) = (Arc::clone(&self.chains), self.chains.current());
        let filters = chain.filters.iter().map(|link| {
            let mut here = self.chain.filters.iter().zip(&self.filters);
            let kept = here.find(|(known, _)| Arc::ptr_eq(&known.filter, &link.filter));
            let begun = || Arc::clone(&link.filter).session(&self.context);
            kept.map_or_else(begun, |(_, filter)| Rc::clone(filter))
        });
        let (filters, context) = (filters.collect(), self.context.clone());
        Rc::new(Self { chains, filters, context, chain, outbox: Outbox::default() })
    }

    /// Whether any filter needs these messages.
    pub(crate) fn claims(&self, api_key: i16, direction: Direction) -> bool {
        self.chain.claims(api_key, direction)
    }

    /// Whether clients may use an API.
    pub(crate) fn admits(&self, api_key: i16) -> bool {
        self.chain.admits(api_key)
    }

    /// Whether any of these filters needs answers of an API.
    pub(crate) fn reads(&self, readers: Readers, api_key: i16) -> bool {
        self.chain.claims(api_key, Direction::Response)
            && self.claiming(api_key, Direction::Response).any(|(at, _)| readers.contain(at))
    }

    /// What all sessions with these filters share.
    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// Whose filters these are.
    pub(crate) fn context(&self) -> &SessionContext {
        &self.context
    }

    /// A way for the proxy's own requests, while no filter is at work on a request.
    pub(crate) fn upstream(&self) -> Upstream {
        Upstream::new(Rc::clone(&self.outbox))
    }

    /// Request that the active filter wants to send.
    pub(crate) fn take_own_request(&self) -> Option<OwnRequest> {
        self.outbox.borrow_mut().take()
    }

    /// Takes a request through all filters that claim it.
    pub(crate) async fn request(
        self: Rc<Self>,
        mut request: RequestFrame,
    ) -> Result<Filtered, FilterFailed> {
        let (mut closes, mut readers) = (false, Readers::ALL);
        let (api_key, expects_response) = (request.api_key().key(), request.expects_response());
        for (index, filter) in self.claiming(api_key, Direction::Request) {
            let upstream = Upstream::new(Rc::clone(&self.outbox));
            request = match self.run(index, Rc::clone(filter).request(request, upstream)).await? {
                RequestOutcome::Forward(request) => request,
                RequestOutcome::ForwardOnly(request) => {
                    readers = readers.without(index);
                    request
                }
                RequestOutcome::Respond(response) if expects_response => {
                    let answered = Answered { response, readers: readers.before(index) };
                    return Ok(Filtered { verdict: Verdict::Answer(answered), closes });
                }
                RequestOutcome::Close(Some(request)) => {
                    closes = true;
                    request
                }
                RequestOutcome::RespondAndClose(response) if expects_response => {
                    let answered = Answered { response, readers: readers.before(index) };
                    return Ok(Filtered { verdict: Verdict::Answer(answered), closes: true });
                }
                RequestOutcome::Respond(_)
                | RequestOutcome::RespondAndClose(_)
                | RequestOutcome::Close(None) => {
                    return Ok(Filtered { verdict: Verdict::Drop, closes: true });
                }
            };
        }
        Ok(Filtered { verdict: Verdict::Forward(request, readers), closes })
    }

    /// Takes a response through those of its readers that claim it, from the last to the first.
    pub(crate) async fn response(
        self: Rc<Self>,
        mut response: ResponseFrame,
        readers: Readers,
    ) -> Result<ResponseFrame, FilterFailed> {
        let api_key = response.api_key().key();
        let claiming = self.claiming(api_key, Direction::Response).rev();
        for (index, filter) in claiming.filter(|(index, _)| readers.contain(*index)) {
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
