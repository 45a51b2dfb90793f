//! The cluster's direction: answers in the order of the requests, most of them passed on unread.

use moldau_protocol::messages::ApiKey;

use crate::error::Malformed;
use crate::flow::{Scan, Step};
use crate::in_flight::{Expected, InFlight};
use crate::metrics::add;
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

/// Bytes within which a Metadata answer must have named all brokers: room for about a thousand.
const BROKERS_WITHIN_BYTES: usize = 128 * 1024;

/// An emptied store of held bytes that is larger than this gives its memory back.
const HELD_BYTES_KEPT: usize = 64 * 1024;

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each session, and a box would allocate for each fetch answer"
)]
enum State {
    /// Between answers.
    Between,
    /// So many bytes of an answer pass on unread.
    Passing(usize),
    /// A large answer is collected; so many bytes of it are missing.
    Holding { api: ApiKey, version: i16, missing: usize },
    /// A fetch answer is walked as it passes.
    Walking(FetchWalk),
}

/// Follows the answers of one session.
#[derive(Debug)]
pub(crate) struct ResponseScanner {
    state: State,
    held: Vec<u8>,
    rewriter: Rewriter,
}

impl ResponseScanner {
    pub(crate) fn new(rewriter: Rewriter) -> Self {
        Self { state: State::Between, held: Vec::new(), rewriter }
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
            .map_err(|_| Malformed("answer of negative length"))?;
        let total = length + PREFIX_BYTES;
        if total < HEAD_BYTES {
            return Err(Malformed("answer shorter than a header"));
        }
        let Some(expected) = in_flight.next() else {
            return Err(Malformed("answer to no request"));
        };
        if i32::from_be_bytes([c0, c1, c2, c3]) != expected.correlation_id {
            return Err(Malformed("answer to another request than the next"));
        }
        let step = match self.treat(expected) {
            None => self.pass(total, bytes.len()),
            Some((api, treatment)) => {
                self.begin_known(api, expected.api_version, treatment, total, bytes, insert)?
            }
        };
        if step != Step::Starved {
            in_flight.pop();
        }
        Ok(step)
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
            return match self.rewriter.rewrite(api, version, frame)? {
                Some(splice) => self.replace(frame, total, &splice, insert),
                None => Ok(self.pass(total, available)),
            };
        }
        if api == ApiKey::Metadata {
            return match self.rewriter.rewrite_metadata(version, bytes)? {
                Some(splice) => self.replace(bytes, total, &splice, insert),
                None if available < BROKERS_WITHIN_BYTES => Ok(Step::Starved),
                None => Err(Malformed("metadata of too many brokers")),
            };
        }
        if total <= IN_PLACE_BYTES_MAX {
            return Ok(Step::Starved);
        }
        if total > HELD_BYTES_MAX {
            return Err(Malformed("answer with addresses above the limit"));
        }
        self.held.extend_from_slice(bytes);
        self.state = State::Holding { api, version, missing: total - available };
        Ok(Step::Replace { pass: 0, skip: available })
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

    fn hold(
        &mut self,
        api: ApiKey,
        version: i16,
        missing: usize,
        bytes: &[u8],
        insert: &mut Vec<u8>,
    ) -> Result<Step, Malformed> {
        let taken = bytes.get(..missing).unwrap_or(bytes);
        self.held.extend_from_slice(taken);
        if taken.len() < missing {
            self.state = State::Holding { api, version, missing: missing - taken.len() };
            return Ok(Step::Replace { pass: 0, skip: taken.len() });
        }
        self.state = State::Between;
        if api == ApiKey::ShareFetch {
            let metrics = self.rewriter.cluster().metrics();
            add(&metrics.record_bytes_touched, self.held.len() as u64);
        }
        if let Some(splice) = self.rewriter.rewrite(api, version, &self.held)? {
            let total = self.held.len();
            set_length(&mut self.held, total, &splice)?;
            self.count_rewritten();
            self.held.splice(splice.range, splice.with);
        }
        std::mem::swap(insert, &mut self.held);
        if self.held.capacity() > HELD_BYTES_KEPT {
            self.held = Vec::new();
        }
        Ok(Step::Replace { pass: 0, skip: taken.len() })
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

    fn count_rewritten(&self) {
        add(&self.rewriter.cluster().metrics().answers_rewritten, 1);
    }
}

impl Scan for ResponseScanner {
    fn scan(
        &mut self,
        bytes: &mut [u8],
        insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed> {
        match self.state {
            State::Between => self.begin(bytes, insert, in_flight),
            State::Passing(left) => Ok(self.pass(left, bytes.len())),
            State::Holding { api, version, missing } => {
                self.hold(api, version, missing, bytes, insert)
            }
            State::Walking(_) => self.walk(bytes),
        }
    }
}

/// Writes the length that a frame of `total` bytes, which `frame` begins, will have.
fn set_length(frame: &mut [u8], total: usize, splice: &Splice) -> Result<(), Malformed> {
    let total = total - splice.range.len() + splice.with.len();
    let length = i32::try_from(total - PREFIX_BYTES).map_err(|_| Malformed("answer too long"))?;
    if let Some(prefix) = frame.first_chunk_mut() {
        *prefix = length.to_be_bytes();
    }
    Ok(())
}
