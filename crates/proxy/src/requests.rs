//! The client's direction: only headers are read, to know which answers will come, but for requests
//! that a filter claims. These are held whole, and what the filters make of them is sent on.

use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use moldau_net::{Acquire, MemoryAccount, MemoryUse, Permit};
use moldau_protocol::messages::ApiKey;

use crate::chain::{FilterFailed, Filtered, SessionChain, Verdict};
use crate::error::Malformed;
use crate::expected::{Expected, Readers};
use crate::filter::Direction;
use crate::flow::{Broken, Scan, Step};
use crate::frame::RequestFrame;
use crate::in_flight::InFlight;
use crate::metrics::{Metrics, add};
use crate::pool;
use crate::sasl::{Renewal, Renewing};
use crate::traffic::ThreadTraffic;

/// Length, API key, version and correlation id: what every request begins with.
const HEAD_BYTES: usize = 12;

/// The shortest request: a header of version 0, without a client id.
const FRAME_BYTES_MIN: usize = 8;

/// Bytes within which the `acks` of a produce request must stand. Before them stand a client id and
/// a transactional id of at most 32767 bytes each, and tagged fields that none define.
const ACKS_WITHIN_BYTES: usize = 96 * 1024;

/// Longest SASL request. Filters hold it whole, for any client. It is Kafka's default for
/// unauthenticated clients (`sasl.server.max.receive.size`).
const AUTHENTICATION_FRAME_BYTES_MAX: usize = 512 << 10;

/// Bytes within which the limits of a fetch request must stand: a client id precedes them.
const LIMITS_WITHIN_BYTES: usize = 64 * 1024;

/// A fetch answer for filters is limited to this part of what one answer may take in memory at
/// most, so that several can be held at once.
const ANSWER_PART: usize = 16;

/// The least limit: answers with a batch of usual size come as whole batches.
const ANSWER_BYTES_MIN: usize = 1024 * 1024;

/// A version that no broker serves. One that gets an ApiVersions request of it answers in version
/// 0 which versions it does serve (KIP-511).
const VERSION_UNSERVED: [u8; 2] = i16::MAX.to_be_bytes();

enum State {
    /// Between requests.
    Between,
    /// So many bytes of a request pass on unread.
    Passing { left: usize, carries_records: bool, expects_response: bool },
    /// A request that a filter claims waits for memory.
    Admitting { head: Head, acquiring: Option<Acquire> },
    /// A request that a filter claims is collected; so many bytes of it are missing.
    Holding { head: Head, missing: usize },
    /// Filters are at work on a request.
    Filtering(Expected, Pin<Box<dyn Future<Output = Result<Filtered, FilterFailed>>>>),
    /// The proxy authenticates anew.
    Renewing(Renewing),
}

/// What the first bytes of a request tell.
#[derive(Clone, Copy)]
struct Head {
    expected: Expected,
    api: Option<ApiKey>,
    /// Bytes of the request with its length.
    total: usize,
    expects_response: bool,
}

/// Follows the requests of one session.
pub(crate) struct RequestScanner {
    state: State,
    /// The bytes of a request that have come, while it is held.
    held: Vec<u8>,
    memory: MemoryAccount,
    /// For a request that is held, and for what filters make of it.
    permit: Option<Permit>,
    /// No further request is taken.
    closing: bool,
    filters: Rc<SessionChain>,
    metrics: Arc<Metrics>,
    traffic: Arc<ThreadTraffic>,
    /// Largest request.
    frame_bytes_max: usize,
    /// Of the proxy's authentication, if that ends.
    renewal: Option<Renewal>,
}

impl RequestScanner {
    pub(crate) fn new(
        filters: Rc<SessionChain>,
        metrics: Arc<Metrics>,
        memory: MemoryAccount,
        frame_bytes_max: usize,
        renewal: Option<Renewal>,
    ) -> Self {
        let traffic = metrics.traffic.here();
        Self {
            state: State::Between,
            held: Vec::new(),
            memory,
            permit: None,
            closing: false,
            filters,
            metrics,
            traffic,
            frame_bytes_max,
            renewal,
        }
    }

    /// Bytes of the permit for a request that is held.
    pub(crate) fn permit_bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, Permit::bytes)
    }

    /// Whether a request waits for memory.
    pub(crate) fn waits_for_memory(&self) -> bool {
        matches!(self.state, State::Admitting { .. })
    }

    /// Lets the current request end and takes no further one.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether no further request will be taken.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether no request is under way.
    pub(crate) fn is_between_frames(&self) -> bool {
        matches!(self.state, State::Between)
    }

    /// Whether filters are at work on a request, or the proxy authenticates anew.
    pub(crate) fn is_filtering(&self) -> bool {
        matches!(self.state, State::Filtering(..) | State::Renewing(_))
    }

    /// Whether no request is taken until answers have come.
    pub(crate) fn waits_for_answers(&self, in_flight: &InFlight) -> bool {
        let is_due = self.renewal.as_ref().is_some_and(Renewal::is_due);
        in_flight.is_full() || (is_due && !in_flight.is_empty())
    }

    fn begin(&mut self, bytes: &mut [u8], in_flight: &mut InFlight) -> Result<Step, Malformed> {
        let Some(head) = head(bytes, self.frame_bytes_max)? else { return Ok(Step::Starved) };
        let Head { expected, api, total, .. } = head;
        if let Some(filters) = self.filters.successor() {
            in_flight.push_successor(Rc::clone(&filters));
            self.filters = filters;
        }
        if !self.filters.admits(expected.api_key) {
            return Err(Malformed("request of an API that a filter refuses"));
        }
        if api == Some(ApiKey::ApiVersions)
            && expected.api_version > ApiKey::ApiVersions.valid_versions().max
            && let Some(version) = bytes.get_mut(6..8)
        {
            // An answer that cannot be read could not be intersected with what is known here.
            version.copy_from_slice(&VERSION_UNSERVED);
        }
        if !self.filters.context().admits(api) {
            add(&self.metrics.sasl_sessions_expired, 1);
            self.closing = true;
            return Ok(Step::Held);
        }
        if api == Some(ApiKey::Fetch)
            && self.filters.claims(expected.api_key, Direction::Response)
            && !self.limit_fetch(bytes, total, expected.api_version)?
        {
            return Ok(Step::Starved);
        }
        self.traffic.request(expected.api_key);
        in_flight.begin();
        if let Some(api) = api
            && self.filters.claims(expected.api_key, Direction::Request)
        {
            if !api.valid_versions().contains(expected.api_version) {
                return Err(Malformed("request for a filter in an unknown version"));
            }
            let authenticates = matches!(api, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate);
            if authenticates && total > AUTHENTICATION_FRAME_BYTES_MAX {
                return Err(Malformed("SASL message above the limit"));
            }
            self.permit = self.memory.try_acquire(MemoryUse::Request, held_memory(total));
            if self.permit.is_none() {
                self.state = State::Admitting { head, acquiring: None };
                return Ok(Step::Replace { pass: 0, skip: 0 });
            }
            self.begin_holding(head);
            return self.hold(bytes, in_flight);
        }
        let expects_response = head.expects_response;
        if expects_response {
            in_flight.push(expected);
        }
        let carries_records = api == Some(ApiKey::Produce);
        self.state = State::Passing { left: total, carries_records, expects_response };
        Ok(self.pass(bytes.len(), in_flight))
    }

    /// Lets the cluster answer a fetch with no more than can be held for filters; says whether the
    /// limits had come.
    fn limit_fetch(&self, bytes: &mut [u8], total: usize, version: i16) -> Result<bool, Malformed> {
        let most = self.memory.budget().most(MemoryUse::Answer) / ANSWER_PART;
        let most = i32::try_from(most.max(ANSWER_BYTES_MIN)).unwrap_or(i32::MAX);
        let available = bytes.len();
        let frame = bytes.get_mut(..total.min(available)).unwrap_or_default();
        let Some(at) = fetch_limits_at(frame, version) else {
            let whole = available >= total || available >= LIMITS_WITHIN_BYTES;
            return if whole { Err(Malformed("fetch without limits")) } else { Ok(false) };
        };
        // A fetch that waits for more than it may return waits until its time is over.
        for limit in frame.get_mut(at..).unwrap_or_default().chunks_exact_mut(4).take(2) {
            if let Some(limit) = limit.first_chunk_mut() {
                *limit = i32::from_be_bytes(*limit).min(most).to_be_bytes();
            }
        }
        Ok(true)
    }

    fn begin_holding(&mut self, head: Head) {
        self.held = pool::take_frame(head.total);
        self.state = State::Holding { head, missing: head.total };
    }

    /// Waits for the memory of a request.
    fn poll_admission(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let State::Admitting { head, acquiring } = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let (head, bytes) = (*head, held_memory(head.total));
        if acquiring.is_none() {
            match self.memory.acquire(MemoryUse::Request, bytes..=bytes) {
                Ok(acquire) => *acquiring = Some(acquire),
                Err(error) => return Poll::Ready(Err(Broken::Memory(error))),
            }
        }
        let Some(acquiring) = acquiring else { return Poll::Pending };
        self.permit = Some(ready!(Pin::new(acquiring).poll(cx)));
        self.begin_holding(head);
        Poll::Ready(Ok(()))
    }

    fn pass(&mut self, available: usize, in_flight: &mut InFlight) -> Step {
        let State::Passing { left, carries_records, expects_response } = &mut self.state else {
            return Step::Starved;
        };
        let passed = available.min(*left);
        *left -= passed;
        if *carries_records {
            add(&self.metrics.record_bytes_passed, passed as u64);
        }
        if *left == 0 {
            if *expects_response {
                in_flight.sent();
            }
            self.state = State::Between;
        }
        Step::Pass(passed)
    }

    fn hold(&mut self, bytes: &[u8], in_flight: &mut InFlight) -> Result<Step, Malformed> {
        let State::Holding { head, missing } = &mut self.state else { return Ok(Step::Starved) };
        let taken = bytes.get(..*missing).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        *missing -= taken.len();
        if *missing == 0 {
            let head = *head;
            if head.api == Some(ApiKey::Produce) {
                add(&self.metrics.record_bytes_touched, head.total as u64);
            }
            let frame = std::mem::take(&mut self.held);
            let request = RequestFrame::parse(frame, head.expects_response)
                .map_err(|_| Malformed("request for a filter has a broken header"))?;
            in_flight.begin_filters();
            let filtered = Box::pin(Rc::clone(&self.filters).request(request));
            self.state = State::Filtering(head.expected, filtered);
        }
        Ok(Step::Replace { pass: 0, skip: taken.len() })
    }

    /// Lets the proxy authenticate anew if it is time and nothing is in flight.
    fn begin_renewal(&mut self, cx: &mut Context<'_>, in_flight: &InFlight) {
        let Some(renewal) = &mut self.renewal else { return };
        if matches!(self.state, State::Between) && renewal.poll_due(cx) && in_flight.is_empty() {
            self.state = State::Renewing(renewal.begin(self.filters.upstream()));
        }
    }

    fn renewed(&mut self, lifetime: Option<Duration>) {
        self.state = State::Between;
        if let Some(renewal) = &mut self.renewal {
            renewal.renewed(lifetime);
        }
        add(&self.metrics.upstream_renewals, 1);
    }

    /// Sends what the work under way wants to be sent.
    fn poll_own(&self, insert: &mut Vec<u8>, in_flight: &mut InFlight) -> Poll<Result<(), Broken>> {
        let Some(own) = self.filters.take_own_request() else { return Poll::Pending };
        in_flight.push_own(own.expected, own.answer);
        *insert = own.frame;
        Poll::Ready(Ok(()))
    }

    /// Carries out what the filters decided.
    fn conclude(
        &mut self,
        expected: Expected,
        filtered: Filtered,
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) {
        self.state = State::Between;
        self.closing |= filtered.closes;
        in_flight.end_filters();
        match filtered.verdict {
            Verdict::Forward(request, readers) => {
                if request.expects_response() {
                    in_flight.push(Expected { readers, ..expected });
                }
                *insert = request.into_bytes();
                if let Some(permit) = &mut self.permit {
                    permit.shrink_to(insert.len());
                }
                return;
            }
            Verdict::Answer(answered) => in_flight.push_answered(expected, answered),
            Verdict::Drop => {}
        }
        self.permit = None;
    }
}

impl Scan for RequestScanner {
    fn poll_insert(
        &mut self,
        cx: &mut Context<'_>,
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Poll<Result<(), Broken>> {
        self.begin_renewal(cx, in_flight);
        match &mut self.state {
            State::Filtering(expected, filtering) => {
                let expected = *expected;
                match filtering.as_mut().poll(cx) {
                    Poll::Pending => return self.poll_own(insert, in_flight),
                    Poll::Ready(Err(failed)) => return Poll::Ready(Err(Broken::Filter(failed))),
                    Poll::Ready(Ok(filtered)) => {
                        self.conclude(expected, filtered, insert, in_flight);
                    }
                }
            }
            State::Renewing(renewing) => match renewing.as_mut().poll(cx) {
                Poll::Pending => return self.poll_own(insert, in_flight),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Renewal(error))),
                Poll::Ready(Ok(lifetime)) => self.renewed(lifetime),
            },
            State::Admitting { .. } => return self.poll_admission(cx),
            _ => {}
        }
        Poll::Ready(Ok(()))
    }

    fn scan(
        &mut self,
        bytes: &mut [u8],
        _insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed> {
        match self.state {
            State::Between if self.closing || self.waits_for_answers(in_flight) => Ok(Step::Held),
            State::Between => self.begin(bytes, in_flight),
            State::Passing { .. } => Ok(self.pass(bytes.len(), in_flight)),
            State::Holding { .. } => self.hold(bytes, in_flight),
            // Nothing is scanned while the insert is pending.
            State::Admitting { .. } | State::Filtering(..) | State::Renewing(_) => Ok(Step::Held),
        }
    }

    fn take_permit(&mut self) -> Option<Permit> {
        // While filters are at work, an insert is a request of their own.
        if self.is_filtering() { None } else { self.permit.take() }
    }
}

/// Memory of a request of so many bytes for filters: as it came, and as it is sent on.
fn held_memory(total: usize) -> usize {
    2 * total
}

/// Reads the first bytes of a request; `None` if too few have come.
fn head(bytes: &[u8], frame_bytes_max: usize) -> Result<Option<Head>, Malformed> {
    let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
        return check_length(bytes, frame_bytes_max).map(|_| None);
    };
    let total = check_length(head, frame_bytes_max)?.unwrap_or_default();
    let [_, _, _, _, key0, key1, version0, version1, correlation_id @ ..] = *head;
    let expected = Expected {
        api_key: i16::from_be_bytes([key0, key1]),
        api_version: i16::from_be_bytes([version0, version1]),
        correlation_id: i32::from_be_bytes(correlation_id),
        readers: Readers::ALL,
    };
    let api = ApiKey::try_from(expected.api_key).ok();
    let mut expects_response = true;
    if api == Some(ApiKey::Produce) {
        let frame = bytes.get(..total).unwrap_or(bytes);
        let Some(acks) = acks(frame, expected.api_version) else {
            let whole = frame.len() == total || frame.len() >= ACKS_WITHIN_BYTES;
            return if whole { Err(Malformed("produce without acks")) } else { Ok(None) };
        };
        expects_response = acks != 0;
    }
    Ok(Some(Head { expected, api, total, expects_response }))
}

/// Bytes of the frame with its length prefix, once that has arrived.
fn check_length(bytes: &[u8], frame_bytes_max: usize) -> Result<Option<usize>, Malformed> {
    let Some(prefix) = bytes.first_chunk() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*prefix))
        .map_err(|_| Malformed("request of negative length"))?;
    if length < FRAME_BYTES_MIN {
        return Err(Malformed("request shorter than a header"));
    }
    if length > frame_bytes_max {
        return Err(Malformed("request above the frame limit"));
    }
    Ok(Some(prefix.len() + length))
}

/// Where the least and the most bytes of a fetch stand, one after the other; `None` if the bytes
/// end before. The replica id stands before them up to version 14, and the longest wait.
fn fetch_limits_at(frame: &[u8], version: i16) -> Option<usize> {
    let mut rest = Rest(frame.get(HEAD_BYTES..)?);
    rest.header(ApiKey::Fetch.is_flexible(version))?;
    rest.take(if version < 15 { 8 } else { 4 })?;
    let at = frame.len() - rest.0.len();
    rest.take(8)?;
    Some(at)
}

/// The `acks` of a produce request; `None` if the bytes end before. The transactional id stands
/// before them from version 3 on.
fn acks(frame: &[u8], version: i16) -> Option<i16> {
    let mut rest = Rest(frame.get(HEAD_BYTES..)?);
    let flexible = ApiKey::Produce.is_flexible(version);
    rest.header(flexible)?;
    if version >= 3 {
        rest.string(flexible)?;
    }
    Some(i16::from_be_bytes(*rest.take(2)?.first_chunk()?))
}

/// Bytes that have not been read. Texts are skipped unread.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// Skips what follows the correlation id in the header of a request.
    fn header(&mut self, flexible: bool) -> Option<()> {
        self.string(false)?;
        if flexible {
            for _ in 0..self.varint()? {
                self.varint()?;
                let size = self.varint()?;
                self.take(size)?;
            }
        }
        Some(())
    }

    fn varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in [0, 7, 14, 21, 28] {
            let byte = *self.take(1)?.first()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(value)
    }

    /// Skips a text or null.
    fn string(&mut self, flexible: bool) -> Option<()> {
        let length = if flexible {
            self.varint()?.saturating_sub(1)
        } else {
            let length = i16::from_be_bytes(*self.take(2)?.first_chunk()?);
            usize::try_from(length).unwrap_or(0)
        };
        self.take(length).map(|_| ())
    }
}
