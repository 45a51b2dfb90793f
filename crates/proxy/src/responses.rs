//! The cluster's direction: answers in the order of the requests, most of them passed on unread.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use moldau_net::{Acquire, FRAME_BYTES_MAX_DEFAULT, MemoryAccount, MemoryUse, Permit};
use moldau_protocol::messages::ApiKey;
use tokio::sync::oneshot;

use crate::chain::{FilterFailed, SessionChain};
use crate::error::Malformed;
use crate::expected::{Answered, Expected, Readers};
use crate::flow::{Broken, Scan, Step};
use crate::frame::ResponseFrame;
use crate::in_flight::{InFlight, Source};
use crate::latency::{Micros, Part, SessionLatencies, Timing};
use crate::metrics::add;
use crate::pool;
use crate::rewrite::{Rewriter, Splice, Treatment, treatment};
use crate::walk::FetchWalk;

/// Length and correlation id.
const HEAD_BYTES: usize = 8;

/// Bytes of the length.
const PREFIX_BYTES: usize = 4;

/// An answer up to this size that must be whole waits in the receive buffer, and a fetch answer is
/// rewritten rather than walked: leader hints come with errors, which carry no records.
const IN_PLACE_BYTES_MAX: usize = 16 * 1024;

/// The largest answer that is held: above the 50 MiB that a share consumer fetches at most. Its
/// memory grows only as its bytes arrive.
const HELD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The largest answer that is held for filters, also to a request of their own, unless requests may
/// be larger: what a broker takes as a request at most, and thus more than any batch that it may
/// have to return beyond the limits of the client, and more than it tells of a topic of a million
/// partitions.
const FILTERED_BYTES_MAX: usize = FRAME_BYTES_MAX_DEFAULT;

/// Bytes within which a Metadata answer must have named all brokers: room for about a thousand.
const BROKERS_WITHIN_BYTES: usize = 128 * 1024;

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each session, and a box would allocate for each fetch answer"
)]
enum State {
    /// Between answers.
    Between,
    /// So many bytes of an answer pass on unread.
    Passing(usize),
    /// An answer of so many bytes waits for memory.
    Admitting { held_for: HeldFor, total: usize, acquiring: Option<Acquire> },
    /// An answer is collected; so many bytes of it are missing.
    Holding { held_for: HeldFor, missing: usize },
    /// A fetch answer is walked as it passes.
    Walking(FetchWalk),
    /// Filters are at work on an answer.
    Filtering(Pin<Box<dyn Future<Output = Result<ResponseFrame, FilterFailed>>>>),
}

/// Who needs an answer whole.
enum HeldFor {
    /// The rewriter.
    Rewriter { api: ApiKey, version: i16 },
    /// The rewriter, then the filters.
    Filters { api: ApiKey, version: i16, readers: Readers },
    /// The filter that asked for it.
    Asker(oneshot::Sender<Vec<u8>>),
}

/// Follows the answers of one session.
pub(crate) struct ResponseScanner {
    state: State,
    held: Vec<u8>,
    memory: MemoryAccount,
    /// For an answer that is held, and for what filters make of it.
    permit: Option<Permit>,
    filters: Rc<SessionChain>,
    filtered_bytes_max: usize,
    rewriter: Rewriter,
    /// Of the request whose answer is under way.
    timing: Option<(i16, Timing)>,
    now: Micros,
    latencies: SessionLatencies,
}

impl ResponseScanner {
    pub(crate) fn new(
        filters: Rc<SessionChain>,
        rewriter: Rewriter,
        latencies: SessionLatencies,
        memory: MemoryAccount,
        frame_bytes_max: usize,
    ) -> Self {
        Self {
            state: State::Between,
            held: Vec::new(),
            memory,
            permit: None,
            filters,
            filtered_bytes_max: FILTERED_BYTES_MAX.max(frame_bytes_max),
            rewriter,
            timing: None,
            now: Micros::default(),
            latencies,
        }
    }

    /// Bytes of the permit for an answer that is held.
    pub(crate) fn permit_bytes(&self) -> usize {
        self.permit.as_ref().map_or(0, Permit::bytes)
    }

    /// Whether no answer is under way.
    pub(crate) fn is_between_frames(&self) -> bool {
        matches!(self.state, State::Between)
    }

    fn begin(
        &mut self,
        bytes: &mut [u8],
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else { return Ok(Step::Starved) };
        let [length @ .., c0, c1, c2, c3] = *head;
        let length = usize::try_from(i32::from_be_bytes(length))
            .map_err(|_| Malformed("response of negative length"))?;
        let total = length + PREFIX_BYTES;
        if total < HEAD_BYTES {
            return Err(Malformed("response shorter than a header"));
        }
        let Some(expected) = in_flight.next() else {
            return Err(Malformed("response without a request"));
        };
        if i32::from_be_bytes([c0, c1, c2, c3]) != expected.correlation_id {
            return Err(Malformed("response out of order"));
        }
        if let Some(step) = self.begin_held(expected, total, bytes, insert, in_flight)? {
            return Ok(step);
        }
        let step = match self.treat(expected) {
            None => self.pass(total, bytes.len()),
            Some((api, treatment)) => {
                self.begin_known(api, expected.api_version, treatment, total, bytes, insert)?
            }
        };
        if step != Step::Starved
            && let Some((_, timing)) = in_flight.pop()
        {
            self.timing = Some((expected.api_key, timing));
        }
        Ok(step)
    }

    /// Begins an answer that a filter asked for or that filters claim.
    fn begin_held(
        &mut self,
        expected: Expected,
        total: usize,
        bytes: &[u8],
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Option<Step>, Malformed> {
        let readers = expected.readers;
        if !self.filters.reads(readers, expected.api_key) && !in_flight.next_is_own() {
            return Ok(None);
        }
        let Some((source, timing)) = in_flight.pop() else { return Ok(None) };
        let held_for = match source {
            _ if total > self.filtered_bytes_max => {
                return Err(Malformed("response for a filter above the limit"));
            }
            Source::Own(asker) => HeldFor::Asker(asker),
            _ => {
                let version = expected.api_version;
                let api = ApiKey::try_from(expected.api_key).ok();
                let api = api
                    .filter(|api| api.valid_versions().contains(version))
                    .ok_or(Malformed("response for a filter in an unknown version"))?;
                self.timing = Some((expected.api_key, timing));
                HeldFor::Filters { api, version, readers }
            }
        };
        self.begin_holding(held_for, total, bytes, insert).map(Some)
    }

    /// Holds an answer once there is memory for it.
    fn begin_holding(
        &mut self,
        held_for: HeldFor,
        total: usize,
        bytes: &[u8],
        insert: &mut Vec<u8>,
    ) -> Result<Step, Malformed> {
        self.permit = self.memory.try_acquire(MemoryUse::Answer, held_for.memory(total));
        if self.permit.is_none() {
            self.state = State::Admitting { held_for, total, acquiring: None };
            return Ok(Step::Replace { pass: 0, skip: 0 });
        }
        self.held = pool::take_frame(total);
        self.state = State::Holding { held_for, missing: total };
        self.hold(bytes, insert)
    }

    /// Waits for the memory of an answer.
    fn poll_admission(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        let State::Admitting { held_for, total, acquiring } = &mut self.state else {
            return Poll::Ready(Ok(()));
        };
        let (total, bytes) = (*total, held_for.memory(*total));
        if acquiring.is_none() {
            match self.memory.acquire(MemoryUse::Answer, bytes..=bytes) {
                Ok(acquire) => *acquiring = Some(acquire),
                Err(error) => return Poll::Ready(Err(Broken::Memory(error))),
            }
        }
        let Some(acquiring) = acquiring else { return Poll::Pending };
        self.permit = Some(ready!(Pin::new(acquiring).poll(cx)));
        if let State::Admitting { held_for, .. } =
            std::mem::replace(&mut self.state, State::Between)
        {
            self.held = pool::take_frame(total);
            self.state = State::Holding { held_for, missing: total };
        }
        Poll::Ready(Ok(()))
    }

    fn treat(&self, expected: Expected) -> Option<(ApiKey, Treatment)> {
        let api = ApiKey::try_from(expected.api_key).ok()?;
        match treatment(api, expected.api_version) {
            Treatment::Opaque => None,
            treatment => Some((api, treatment)),
        }
    }

    fn begin_known(
        &mut self,
        api: ApiKey,
        version: i16,
        treatment: Treatment,
        total: usize,
        bytes: &mut [u8],
        insert: &mut Vec<u8>,
    ) -> Result<Step, Malformed> {
        let available = bytes.len();
        if treatment == Treatment::Walked && total > IN_PLACE_BYTES_MAX {
            self.state = State::Walking(FetchWalk::new(version, total)?);
            return self.walk(bytes);
        }
        if let Some(frame) = bytes.get_mut(..total) {
            return match self.rewriter.rewrite(&self.filters, api, version, frame)? {
                Some(splice) => self.replace(frame, total, &splice, insert),
                None => Ok(self.pass(total, available)),
            };
        }
        if api == ApiKey::Metadata {
            return match self.rewriter.rewrite_metadata(&self.filters, version, bytes)? {
                Some(splice) => self.replace(bytes, total, &splice, insert),
                None if available < BROKERS_WITHIN_BYTES => Ok(Step::Starved),
                None => Err(Malformed("metadata of too many brokers")),
            };
        }
        if total <= IN_PLACE_BYTES_MAX {
            return Ok(Step::Starved);
        }
        if total > HELD_BYTES_MAX {
            return Err(Malformed("response with addresses above the limit"));
        }
        let held_for = HeldFor::Rewriter { api, version };
        self.begin_holding(held_for, total, bytes, insert)
    }

    /// Splices an answer of `total` bytes where it lies; what follows the splice passes.
    fn replace(
        &mut self,
        bytes: &mut [u8],
        total: usize,
        splice: &Splice,
        insert: &mut Vec<u8>,
    ) -> Result<Step, Malformed> {
        set_length(bytes, total, splice)?;
        self.count_rewritten();
        insert.extend_from_slice(&splice.with);
        self.set_passing(total - splice.range.end);
        Ok(Step::Replace { pass: splice.range.start, skip: splice.range.len() })
    }

    fn hold(&mut self, bytes: &[u8], insert: &mut Vec<u8>) -> Result<Step, Malformed> {
        let State::Holding { missing, .. } = &mut self.state else { return Ok(Step::Starved) };
        let taken = bytes.get(..*missing).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        *missing -= taken.len();
        if *missing == 0 {
            self.release(insert)?;
        }
        Ok(Step::Replace { pass: 0, skip: taken.len() })
    }

    /// Hands on what was held, which is whole.
    fn release(&mut self, insert: &mut Vec<u8>) -> Result<(), Malformed> {
        let state = std::mem::replace(&mut self.state, State::Between);
        let State::Holding { held_for, .. } = state else { return Ok(()) };
        match held_for {
            HeldFor::Rewriter { api, version } => {
                if api == ApiKey::ShareFetch {
                    self.count_touched();
                }
                self.rewrite_held(api, version)?;
                *insert = std::mem::take(&mut self.held);
            }
            HeldFor::Filters { api, version, readers } => {
                if matches!(api, ApiKey::Fetch | ApiKey::ShareFetch) {
                    self.count_touched();
                }
                if treatment(api, version) != Treatment::Opaque {
                    self.rewrite_held(api, version)?;
                }
                let frame = std::mem::take(&mut self.held);
                let response = ResponseFrame::parse(frame, api, version)
                    .map_err(|_| Malformed("response for a filter has a broken header"))?;
                self.filter(response, readers);
            }
            HeldFor::Asker(asker) => {
                // A filter that no longer waits needs no answer.
                drop(asker.send(std::mem::take(&mut self.held)));
                self.permit = None;
            }
        }
        Ok(())
    }

    /// Has the filters look at an answer that want it.
    fn filter(&mut self, response: ResponseFrame, readers: Readers) {
        self.spend(Part::Wait);
        let filtering = Rc::clone(&self.filters).response(response, readers);
        self.state = State::Filtering(Box::pin(filtering));
    }

    fn spend(&mut self, part: Part) {
        if let Some((_, timing)) = &mut self.timing {
            timing.spend(part, self.now);
        }
    }

    /// Counts the request whose answer has passed, if that was not done.
    fn count_latency(&mut self) {
        self.spend(Part::Wait);
        if let Some((api_key, timing)) = self.timing.take() {
            let tracer = self.rewriter.cluster().tracer();
            tracer.answered(self.filters.context(), api_key, timing.spent());
            self.latencies.add(api_key, timing);
        }
    }

    fn rewrite_held(&mut self, api: ApiKey, version: i16) -> Result<(), Malformed> {
        let Some(splice) = self.rewriter.rewrite(&self.filters, api, version, &self.held)? else {
            return Ok(());
        };
        let total = self.held.len();
        set_length(&mut self.held, total, &splice)?;
        self.count_rewritten();
        self.held.splice(splice.range, splice.with);
        Ok(())
    }

    fn walk(&mut self, bytes: &mut [u8]) -> Result<Step, Malformed> {
        let State::Walking(walk) = &mut self.state else { return Ok(Step::Starved) };
        let walked = walk.advance(bytes)?;
        if walk.is_done() {
            self.state = State::Between;
        }
        let metrics = self.rewriter.cluster().metrics();
        add(&metrics.record_bytes_passed, walked.record_bytes as u64);
        if walked.hidden {
            add(&metrics.hints_neutralised, 1);
        }
        Ok(Step::Pass(walked.bytes))
    }

    fn pass(&mut self, total: usize, available: usize) -> Step {
        let passed = total.min(available);
        self.set_passing(total - passed);
        Step::Pass(passed)
    }

    fn set_passing(&mut self, left: usize) {
        self.state = if left == 0 { State::Between } else { State::Passing(left) };
    }

    fn count_touched(&self) {
        let metrics = self.rewriter.cluster().metrics();
        add(&metrics.record_bytes_touched, self.held.len() as u64);
    }

    fn count_rewritten(&self) {
        add(&self.rewriter.cluster().metrics().answers_rewritten, 1);
    }
}

impl Scan for ResponseScanner {
    fn poll_insert(
        &mut self,
        cx: &mut Context<'_>,
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Poll<Result<(), Broken>> {
        self.now = in_flight.now();
        if matches!(self.state, State::Between) {
            self.count_latency();
            while let Some(filters) = in_flight.pop_successor() {
                self.filters = filters;
            }
            if let Some((answered, timing)) = in_flight.pop_answered() {
                let api_key = answered.response.api_key().key();
                let Answered { response, readers } = answered;
                self.timing = Some((api_key, timing));
                if !self.filters.reads(readers, api_key) {
                    *insert = response.into_bytes();
                    return Poll::Ready(Ok(()));
                }
                self.filter(response, readers);
            }
        }
        let filtering = match &mut self.state {
            State::Filtering(filtering) => filtering,
            State::Admitting { .. } => return self.poll_admission(cx),
            _ => return Poll::Ready(Ok(())),
        };
        match filtering.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(response)) => {
                self.state = State::Between;
                self.spend(Part::Filter);
                *insert = response.into_bytes();
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(failed)) => Poll::Ready(Err(Broken::Filter(failed))),
        }
    }

    fn scan(
        &mut self,
        bytes: &mut [u8],
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed> {
        match self.state {
            State::Between => self.begin(bytes, insert, in_flight),
            State::Passing(left) => Ok(self.pass(left, bytes.len())),
            State::Holding { .. } => self.hold(bytes, insert),
            State::Walking(_) => self.walk(bytes),
            // Nothing is scanned while the insert is pending.
            State::Admitting { .. } | State::Filtering(_) => Ok(Step::Held),
        }
    }

    fn take_permit(&mut self) -> Option<Permit> {
        self.permit.take()
    }
}

impl HeldFor {
    /// Memory of an answer of so many bytes: as it came, and for filters as it is sent on.
    fn memory(&self, total: usize) -> usize {
        match self {
            Self::Filters { .. } => 2 * total,
            Self::Rewriter { .. } | Self::Asker(_) => total,
        }
    }
}

/// Writes the length that a frame of `total` bytes, which `frame` begins, will have.
fn set_length(frame: &mut [u8], total: usize, splice: &Splice) -> Result<(), Malformed> {
    let total = total - splice.range.len() + splice.with.len();
    let length = i32::try_from(total - PREFIX_BYTES).map_err(|_| Malformed("response too long"))?;
    if let Some(prefix) = frame.first_chunk_mut() {
        *prefix = length.to_be_bytes();
    }
    Ok(())
}
