//! Apps that read topics as members of a share group (KIP-932): topics are queues whose records are
//! handled one by one, in any order, by as many members as there are.
//!
//! | module | what it holds |
//! |---|---|
//! | `worker` | the task that fetches, starts handlers and says what became of records |
//! | `lines` | records that wait for their handler |
//!
//! The broker counts deliveries and says which are too many. A record stays locked for the member
//! until it is accepted, released or rejected; its lock is renewed (KIP-1222) for as long as the
//! app works on it.

mod lines;
mod worker;

pub(crate) use self::worker::{Parts, Worker, records_max};
use crate::status::Question;

/// Answers who asks for partitions: there are none with offsets of their own.
fn answer(question: Question) {
    // Who asked may be gone.
    match question {
        Question::Partitions(asker) => drop(asker.send(Vec::new())),
        Question::SetPaused(_, _, asker) => drop(asker.send(false)),
    }
}
