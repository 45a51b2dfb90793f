//! The rules of the log of frames, without the sessions of its owners.

use bytes::Bytes;

use crate::frames::Frame;
use crate::{Answer, Error};

/// The frames, and the epoch that may append.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FrameState {
    epoch: i64,
    first_sequence: i64,
    /// With their epochs, from the first sequence on.
    frames: Vec<(i64, Bytes)>,
    snapshot: Option<Bytes>,
}

impl FrameState {
    /// A later epoch than all before, and the sequence of its first append.
    pub fn begin_epoch(&mut self) -> (i64, i64) {
        self.epoch += 1;
        (self.epoch, self.next_sequence())
    }

    /// As [`crate::Frames::snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Option<(i64, Bytes)> {
        self.snapshot.clone().map(|bytes| (self.first_sequence, bytes))
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch
    }

    pub(super) fn next_sequence(&self) -> i64 {
        self.first_sequence + i64::try_from(self.frames.len()).unwrap_or(i64::MAX)
    }

    fn check(&self, epoch: i64) -> Answer<()> {
        if epoch == self.epoch { Ok(()) } else { Err(Error::Fenced { by: self.epoch }) }
    }

    /// As [`crate::Frames::append`].
    ///
    /// # Errors
    /// [`Error::Fenced`]; [`Error::OutOfSequence`].
    pub fn append(&mut self, epoch: i64, first_sequence: i64, frames: Vec<Bytes>) -> Answer<()> {
        self.check(epoch)?;
        let next = self.next_sequence();
        let differs = Error::OutOfSequence { next };
        let there =
            usize::try_from(next.saturating_sub(first_sequence)).map_err(|_| differs.clone())?;
        let (known, fresh) = frames.split_at(there.min(frames.len()));
        if !known.is_empty() {
            let from = usize::try_from(first_sequence.saturating_sub(self.first_sequence));
            let rows = from.ok().and_then(|from| self.frames.get(from..));
            let are_same = rows.is_some_and(|rows| {
                rows.iter().zip(known).all(|(row, known)| *row == (epoch, known.clone()))
            });
            if !are_same {
                return Err(differs);
            }
        }
        self.frames.extend(fresh.iter().map(|frame| (epoch, frame.clone())));
        Ok(())
    }

    /// As [`crate::Frames::read`].
    ///
    /// # Errors
    /// [`Error::FramesReplaced`].
    pub fn read(&self, from: i64, bytes_max: usize) -> Answer<Vec<Frame>> {
        let Ok(skipped) = usize::try_from(from.saturating_sub(self.first_sequence)) else {
            return Err(Error::FramesReplaced { by: self.first_sequence });
        };
        let mut before = 0;
        let rows = self.frames.iter().skip(skipped).take_while(|(_, bytes)| {
            let is_wanted = before < bytes_max.max(1);
            before += bytes.len();
            is_wanted
        });
        Ok((from..)
            .zip(rows)
            .map(|(sequence, row)| Frame { sequence, bytes: row.1.clone() })
            .collect())
    }

    /// As [`crate::Frames::put_snapshot`].
    ///
    /// # Errors
    /// [`Error::Fenced`]; [`Error::OutOfSequence`].
    pub fn put_snapshot(&mut self, epoch: i64, sequence: i64, bytes: Bytes) -> Answer<()> {
        self.check(epoch)?;
        let next = self.next_sequence();
        if sequence < 0 || sequence > next {
            return Err(Error::OutOfSequence { next });
        }
        if let Ok(gone) = usize::try_from(sequence - self.first_sequence) {
            self.frames.drain(..gone);
            self.first_sequence = sequence;
            self.snapshot = Some(bytes);
        }
        Ok(())
    }
}
