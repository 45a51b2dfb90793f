//! Frames on their way into the metadata log that the brokers of a cluster share.
//!
//! One broker owns the log. It decides from its state, submits the record and applies it at once,
//! since nobody else writes meanwhile; whoever asked is answered once the frame is in the log. If
//! the ownership ends, frames that are not known to be there never become durable here, and the
//! state that they led to is dropped.
//!
//! A frame is one or more records, each as length u32 (big-endian) and bytes. Positions count the
//! frames that this process has submitted.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use moldau_storage::{Admissions, AppendError, Durable, Error, Lsn, WaitDurable};
use moldau_threads::Mutex;
use tokio::sync::Notify;

use crate::catching_up::CatchingUp;
use crate::forwards::Forwards;

/// Frames, and their bytes, that are appended to the log at a time.
const FRAMES_PER_APPEND: usize = 1024;
const BYTES_PER_APPEND: usize = 4 << 20;

/// Bytes of frames that wait for their append. More are refused: the log does not answer then.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The frames of one broker that are not in the log yet.
pub(crate) struct Submissions {
    /// Guards the frames and their order.
    inner: Mutex<Inner>,
    /// Told when there is a frame to append.
    submitted: Notify,
    /// Bytes of requests that wait for an object.
    pub(crate) admissions: Arc<Admissions>,
    /// Its failure is what stops the broker.
    pub(crate) life: Arc<Durable>,
    frame_bytes_max: usize,
    /// What the owner is asked for.
    pub(crate) forwards: Forwards,
    /// What waits for the end of the log.
    pub(crate) catching_up: CatchingUp,
}

struct Inner {
    role: Role,
    /// Position of the last frame.
    end: u64,
    durable: Arc<Durable>,
    /// What was lost with the last ownership.
    lost: Option<Lost>,
    queue: VecDeque<Bytes>,
    queued_bytes: usize,
}

/// What this broker is to the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Follows,
    /// In this epoch.
    Owns(i64),
}

/// Positions that never become durable.
struct Lost {
    end: u64,
    durable: Arc<Durable>,
}

impl Submissions {
    /// A broker that follows the log. Frames have a limit, and so have the bytes of requests that
    /// wait for an object.
    pub(crate) fn new(frame_bytes_max: usize, unanswered_bytes_max: usize) -> Self {
        let inner = Inner {
            role: Role::Follows,
            end: 0,
            durable: Durable::new(0),
            lost: None,
            queue: VecDeque::new(),
            queued_bytes: 0,
        };
        Self {
            inner: Mutex::new(inner),
            submitted: Notify::new(),
            admissions: Admissions::new(unanswered_bytes_max),
            life: Durable::new(0),
            frame_bytes_max,
            forwards: Forwards::default(),
            catching_up: CatchingUp::default(),
        }
    }

    /// Whether this broker owns the log.
    pub(crate) fn owns(&self) -> bool {
        self.epoch().is_some()
    }

    /// The epoch in which this broker owns the log.
    pub(crate) fn epoch(&self) -> Option<i64> {
        match self.inner.lock().role {
            Role::Owns(epoch) => Some(epoch),
            Role::Follows => None,
        }
    }

    /// Submits records as one frame: all of them come into the log or none.
    ///
    /// # Errors
    /// [`AppendError::TooLarge`]; [`AppendError::Away`] where another broker owns the log, or too
    /// many frames wait.
    pub(crate) fn submit<'a>(
        &self,
        records: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<Lsn, AppendError> {
        let bytes: usize = records.clone().map(|record| record.len() + LENGTH_BYTES).sum();
        if bytes > self.frame_bytes_max {
            return Err(AppendError::TooLarge { bytes, limit: self.frame_bytes_max });
        }
        let frame = frame_of(records);
        let mut inner = self.inner.lock();
        if inner.role == Role::Follows || inner.queued_bytes > QUEUE_BYTES_MAX {
            return Err(AppendError::Away);
        }
        inner.queued_bytes += frame.len();
        inner.queue.push_back(frame);
        inner.end += 1;
        let lsn = Lsn(inner.end);
        drop(inner);
        self.submitted.notify_one();
        Ok(lsn)
    }

    /// Resolves when the frame is in the log, or is lost.
    pub(crate) fn wait(&self, lsn: Lsn) -> WaitDurable {
        let inner = self.inner.lock();
        let lost = inner.lost.as_ref().filter(|lost| lsn.0 <= lost.end);
        lost.map_or(&inner.durable, |lost| &lost.durable).wait(lsn)
    }

    /// Position up to which frames are in the log.
    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.inner.lock().durable.position())
    }

    /// Position of the last frame.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.inner.lock().end)
    }

    /// From here on this broker owns the log.
    pub(crate) fn own(&self, epoch: i64) {
        self.inner.lock().role = Role::Owns(epoch);
    }

    /// The ownership has ended: what is not known to be in the log is lost.
    pub(crate) fn lose(&self) {
        let mut inner = self.inner.lock();
        inner.role = Role::Follows;
        inner.queue.clear();
        inner.queued_bytes = 0;
        let end = inner.end;
        let durable = std::mem::replace(&mut inner.durable, Durable::new(end));
        inner.lost = Some(Lost { end, durable: Arc::clone(&durable) });
        drop(inner);
        durable.fail(Error::Closed);
    }

    /// The next frames to append, once there are some.
    pub(crate) async fn next(&self) -> Vec<Bytes> {
        loop {
            let frames = self.take();
            if !frames.is_empty() {
                return frames;
            }
            self.submitted.notified().await;
        }
    }

    fn take(&self) -> Vec<Bytes> {
        let mut inner = self.inner.lock();
        let (mut frames, mut bytes) = (Vec::new(), 0);
        while frames.len() < FRAMES_PER_APPEND && bytes < BYTES_PER_APPEND {
            let Some(frame) = inner.queue.pop_front() else { break };
            bytes += frame.len();
            frames.push(frame);
        }
        inner.queued_bytes -= bytes;
        frames
    }

    /// The next so many frames are in the log.
    pub(crate) fn appended(&self, frames: usize) {
        let inner = self.inner.lock();
        let position = inner.durable.position() + u64::try_from(frames).unwrap_or(u64::MAX);
        assert!(position <= inner.end, "only what was submitted is appended");
        inner.durable.advance(position);
    }
}

/// The frame of some records.
pub(crate) fn frame_of<'a>(records: impl Iterator<Item = &'a [u8]>) -> Bytes {
    let mut frame = BytesMut::new();
    for record in records {
        frame.put_u32(u32::try_from(record.len()).expect("a frame has a limit"));
        frame.put_slice(record);
    }
    frame.freeze()
}

/// The records of a frame.
///
/// # Errors
/// A frame that another version wrote.
pub(crate) fn records_of(frame: &[u8]) -> Result<Vec<&[u8]>, String> {
    let (mut rest, mut records) = (frame, Vec::new());
    while !rest.is_empty() {
        let split = rest.split_first_chunk::<LENGTH_BYTES>().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
        });
        let (record, behind) = split.ok_or("a frame ends early")?;
        records.push(record);
        rest = behind;
    }
    Ok(records)
}

const LENGTH_BYTES: usize = size_of::<u32>();

#[cfg(test)]
mod tests {
    use super::*;
    use moldau_storage::block_on;

    fn submissions() -> Submissions {
        Submissions::new(100, 100)
    }

    fn submit(to: &Submissions, records: &[&[u8]]) -> Result<Lsn, AppendError> {
        to.submit(records.iter().copied())
    }

    #[test]
    fn a_frame_gives_back_its_records_and_no_other_bytes_do() {
        let submissions = submissions();
        submissions.own(1);
        submit(&submissions, &[b"a", b"", b"bcd"]).unwrap();
        let frames = block_on(submissions.next());
        assert_eq!(records_of(&frames[0]).unwrap(), [&b"a"[..], b"", b"bcd"]);
        for cut in [1, 4, 6, 12] {
            assert!(records_of(&frames[0][..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn only_the_owner_submits_and_no_frame_is_too_large() {
        let submissions = submissions();
        assert_eq!(submit(&submissions, &[b"a"]), Err(AppendError::Away));
        submissions.own(1);
        assert_eq!(submit(&submissions, &[b"a"]), Ok(Lsn(1)));
        let large = AppendError::TooLarge { bytes: 101, limit: 100 };
        assert_eq!(submit(&submissions, &[&[0; 97]]), Err(large));
    }

    #[test]
    fn what_was_not_appended_is_lost_with_the_ownership_and_nothing_else() {
        let submissions = submissions();
        submissions.own(1);
        let lsns: Vec<_> = (0..3).map(|_| submit(&submissions, &[b"a"]).unwrap()).collect();
        let waiting = submissions.wait(lsns[2]);
        assert_eq!(block_on(submissions.next()).len(), 3);
        submissions.appended(1);
        submissions.lose();
        assert!(block_on(waiting).is_err());
        assert!(block_on(submissions.wait(lsns[0])).is_ok());
        assert!(block_on(submissions.wait(lsns[1])).is_err());
        submissions.own(1);
        let later = submit(&submissions, &[b"b"]).unwrap();
        block_on(submissions.next());
        submissions.appended(1);
        assert!(block_on(submissions.wait(later)).is_ok());
        assert!(block_on(submissions.wait(lsns[2])).is_err(), "its frame never came to the log");
    }
}
