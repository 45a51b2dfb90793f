//! The client's direction: only headers are read, to know which answers will come.

use std::sync::Arc;

use moldau_net::FRAME_BYTES_MAX_DEFAULT;
use moldau_protocol::messages::ApiKey;

use crate::error::Malformed;
use crate::flow::{Scan, Step};
use crate::in_flight::{Expected, InFlight};
use crate::metrics::{Metrics, add};

/// Length, API key, version and correlation id: what every request begins with.
const HEAD_BYTES: usize = 12;

/// The shortest request: a header of version 0, without a client id.
const FRAME_BYTES_MIN: usize = 8;

/// Bytes within which a produce request must have told its `acks`. Before them stand a client id
/// and a transactional id of at most 32767 bytes each, and tagged fields that none define.
const ACKS_WITHIN_BYTES: usize = 96 * 1024;

/// A version that no broker serves. One that gets an ApiVersions request of it answers in version
/// 0 which versions it does serve (KIP-511).
const VERSION_UNSERVED: [u8; 2] = i16::MAX.to_be_bytes();

/// Follows the requests of one session.
#[derive(Debug)]
pub(crate) struct RequestScanner {
    /// Bytes of the current frame that have not been passed; 0 between frames.
    left: usize,
    /// The current frame is a produce request.
    carries_records: bool,
    /// No further request is taken.
    closing: bool,
    metrics: Arc<Metrics>,
}

impl RequestScanner {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { left: 0, carries_records: false, closing: false, metrics }
    }

    /// Lets the current request end and takes no further one.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// Whether no request is under way.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.left == 0
    }

    fn begin(
        &mut self,
        bytes: &mut [u8],
        in_flight: &mut InFlight,
    ) -> Result<Option<usize>, Malformed> {
        let Some(head) = bytes.first_chunk::<HEAD_BYTES>() else {
            return check_length(bytes).map(|_| None);
        };
        let total = check_length(head)?.unwrap_or_default();
        let [_, _, _, _, key0, key1, version0, version1, correlation_id @ ..] = *head;
        let expected = Expected {
            api_key: i16::from_be_bytes([key0, key1]),
            api_version: i16::from_be_bytes([version0, version1]),
            correlation_id: i32::from_be_bytes(correlation_id),
        };
        let api = ApiKey::try_from(expected.api_key).ok();
        let mut answered = true;
        if api == Some(ApiKey::Produce) {
            let frame = bytes.get(..total).unwrap_or(bytes);
            let Some(acks) = acks(frame, expected.api_version) else {
                let whole = frame.len() == total || frame.len() >= ACKS_WITHIN_BYTES;
                return if whole { Err(Malformed("produce without acks")) } else { Ok(None) };
            };
            answered = acks != 0;
        }
        self.carries_records = api == Some(ApiKey::Produce);
        if api == Some(ApiKey::ApiVersions)
            && expected.api_version > ApiKey::ApiVersions.valid_versions().max
            && let Some(version) = bytes.get_mut(6..8)
        {
            // An answer that cannot be read could not be intersected with what is known here.
            version.copy_from_slice(&VERSION_UNSERVED);
        }
        if answered {
            in_flight.push(expected);
        }
        self.metrics.request(expected.api_key);
        Ok(Some(total))
    }
}

impl Scan for RequestScanner {
    fn scan(
        &mut self,
        bytes: &mut [u8],
        _insert: &mut Vec<u8>,
        in_flight: &mut InFlight,
    ) -> Result<Step, Malformed> {
        if self.left == 0 {
            if self.closing || in_flight.is_full() {
                return Ok(Step::Held);
            }
            match self.begin(bytes, in_flight)? {
                None => return Ok(Step::Starved),
                Some(total) => self.left = total,
            }
        }
        let passed = self.left.min(bytes.len());
        self.left -= passed;
        if self.carries_records {
            add(&self.metrics.record_bytes_passed, passed as u64);
        }
        Ok(Step::Pass(passed))
    }
}

/// Bytes of the frame with its length prefix, once that has arrived.
fn check_length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let Some(prefix) = bytes.first_chunk() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*prefix))
        .map_err(|_| Malformed("request of negative length"))?;
    if length < FRAME_BYTES_MIN {
        return Err(Malformed("request shorter than a header"));
    }
    if length > FRAME_BYTES_MAX_DEFAULT {
        return Err(Malformed("request above the frame limit"));
    }
    Ok(Some(prefix.len() + length))
}

/// The `acks` of a produce request; `None` if the bytes end before. The transactional id stands
/// before them from version 3 on.
fn acks(frame: &[u8], version: i16) -> Option<i16> {
    let mut rest = Rest(frame.get(HEAD_BYTES..)?);
    let flexible = ApiKey::Produce.is_flexible(version);
    rest.string(false)?;
    if flexible {
        for _ in 0..rest.varint()? {
            rest.varint()?;
            let size = rest.varint()?;
            rest.take(size)?;
        }
    }
    if version >= 3 {
        rest.string(flexible)?;
    }
    Some(i16::from_be_bytes(*rest.take(2)?.first_chunk()?))
}

/// Bytes that have not been read. Texts are skipped, whatever is in them.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
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
