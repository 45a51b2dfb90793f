use moldau_protocol::DecodeError;
use moldau_protocol::walk::{HIDING_TAG, RunKind, Walker};

use crate::error::Malformed;

/// Length and correlation id, which the walker does not see.
const HEAD_BYTES: usize = 8;

/// A fetch answer that is walked while it passes.
#[derive(Debug)]
pub(crate) struct FetchWalk {
    walker: Walker,
    head_left: usize,
    /// Bytes of the answer that have not come, the head included.
    left: usize,
}

/// What one look at the bytes found.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Walked {
    /// Bytes of the answer.
    pub(crate) bytes: usize,
    /// Bytes of records among them.
    pub(crate) record_bytes: usize,
    /// A leader hint began among them and was hidden.
    pub(crate) hidden: bool,
}

impl FetchWalk {
    /// For an answer of `total` bytes with its length.
    pub(crate) fn new(version: i16, total: usize) -> Result<Self, Malformed> {
        let walker = Walker::fetch_response(version, total.saturating_sub(HEAD_BYTES));
        let walker = walker.map_err(|_| Malformed("fetch response of an unknown version"))?;
        Ok(Self { walker, head_left: HEAD_BYTES, left: total })
    }

    /// Whether the answer has come to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Walks the bytes that belong to the answer. The addresses of a leader hint are hidden from
    /// the client by an unknown tag in the place of theirs, since the answer cannot change its
    /// length any more; the client then asks for metadata.
    pub(crate) fn advance(&mut self, bytes: &mut [u8]) -> Result<Walked, Malformed> {
        let mut walked = Walked { bytes: bytes.len().min(self.left), ..Walked::default() };
        let mine = bytes.get_mut(..walked.bytes).unwrap_or_default();
        self.left -= walked.bytes;
        let head = self.head_left.min(mine.len());
        self.head_left -= head;
        let mut rest = mine.get_mut(head..).unwrap_or_default();
        while !rest.is_empty() {
            let run = self.walker.next_run(rest).map_err(broken)?;
            let Some((piece, after)) = rest.split_at_mut_checked(run.len) else {
                return Err(Malformed("fetch response out of step"));
            };
            match (run.kind, piece) {
                (RunKind::Structure, _) => {}
                (RunKind::Records, piece) => walked.record_bytes += piece.len(),
                (RunKind::NodeEndpointsTag, piece) => {
                    piece.fill(HIDING_TAG);
                    walked.hidden = true;
                }
            }
            rest = after;
        }
        if self.is_done() && !self.walker.is_complete() {
            return Err(Malformed("fetch response ends within a field"));
        }
        Ok(walked)
    }
}

fn broken(error: DecodeError) -> Malformed {
    tracing::debug!(%error, "failed to parse a fetch response");
    Malformed("malformed fetch response")
}
