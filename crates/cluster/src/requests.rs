//! Requests that brokers leave to the owner of the log of frames, since only the owner decides.
//!
//! A request and its answer are a row of the database. So brokers need no way to one another, and
//! no credentials but those of the database.
//!
//! The owner of an epoch takes a request, and only that owner answers it. If the epoch ends in
//! between, nobody knows what came of the request. One that nobody has taken waits for the next
//! owner.

use bytes::Bytes;
use uuid::Uuid;

use crate::frames::Asked;

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The owner has answered.
    Answered {
        /// What it said.
        answer: Bytes,
        /// Sequence behind the frames that the answer may tell of.
        next_sequence: i64,
    },
    /// Who took it owns the log no longer.
    Unknown,
}

/// The requests to the owner of the log. Each of these calls is atomic, and fails with
/// [`Error::SequencerAway`](crate::Error::SequencerAway) if there is no answer.
///
/// Nobody hears of a request or an answer by itself: see
/// [`Wakes::announce_requests`](crate::Wakes::announce_requests).
pub trait Requests: Send + Sync + 'static {
    /// Leaves requests to the owner. Those whose id is known already are left as they are.
    fn ask(&self, requests: Vec<(Uuid, Bytes)>) -> Asked<'_, ()>;

    /// Takes requests for the owner of this epoch, in the order of their arrival: those that nobody
    /// has taken, and those that this epoch has taken and not answered. None if another epoch has
    /// begun.
    fn take(&self, epoch: i64) -> Asked<'_, Vec<(Uuid, Bytes)>>;

    /// Answers requests. Those that were forgotten are passed over.
    fn answer(&self, answers: Vec<(Uuid, Bytes)>) -> Asked<'_, ()>;

    /// What came of those of the requests that wait no longer.
    fn look(&self, ids: Vec<Uuid>) -> Asked<'_, Vec<(Uuid, Fate)>>;

    /// Removes requests; one that nobody has taken is never answered.
    fn forget(&self, ids: Vec<Uuid>) -> Asked<'_, ()>;
}
