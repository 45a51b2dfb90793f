//! A line that is worse than loopback: everything takes a while, or only so many bytes pass in a
//! second.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that are read at once where there is a limit: few, so that what does not pass stays with
/// who sent it, as it would before a slow line.
const LIMITED_BYTES: usize = 4 * 1024;

/// The same where there is none.
const PORTION_BYTES: usize = 64 * 1024;

/// Portions on the line at a time: 16 MB at most, more than clients have on their way.
const PORTIONS_MAX: usize = 256;

/// How far a line may be behind its rate and still make up for it: a timer fires late by tenths of
/// a millisecond, which is longer than a portion takes on a fast line.
const CATCH_UP_MAX: Duration = Duration::from_millis(5);

/// What a line adds, in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Time that everything takes.
    pub delay: Duration,
    /// Bytes that pass in a second; all without a limit.
    pub bytes_per_second: Option<u64>,
}

/// Bytes and when they come to the line's end.
type Portion = (Instant, Vec<u8>);

impl Line {
    pub(super) fn is_bare(self) -> bool {
        self == Self::default()
    }

    /// Carries until `from` says no more, which `to` then hears; a failure of either ends both.
    pub(super) fn carry(self, from: &TcpStream, to: &TcpStream) {
        let (sender, receiver) = mpsc::sync_channel(PORTIONS_MAX);
        thread::scope(|scope| {
            let out = thread::Builder::new().spawn_scoped(scope, move || deliver(&receiver, to));
            let ended = out.and_then(|_| self.take(from, &sender));
            if ended.is_err() {
                // Whichever side is gone already cannot be closed again.
                drop(from.shutdown(Shutdown::Both));
                drop(to.shutdown(Shutdown::Both));
            }
            // The other end hears of the end behind all that is on the line.
            drop(sender);
        });
    }

    /// Puts what comes on the line, no faster than it carries.
    fn take(self, mut from: &TcpStream, sender: &SyncSender<Portion>) -> std::io::Result<()> {
        let mut free_at = Instant::now();
        let is_limited = self.bytes_per_second.is_some();
        let mut buffer = vec![0; if is_limited { LIMITED_BYTES } else { PORTION_BYTES }];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let now = Instant::now();
            if let Some(limit) = self.bytes_per_second {
                free_at = begin(free_at, now) + time_of(count, limit);
                thread::sleep(free_at.saturating_duration_since(now));
            }
            let portion = buffer.get(..count).unwrap_or_default().to_vec();
            let arrives_at = Instant::now() + self.delay;
            if sender.send((arrives_at, portion)).is_err() {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }
}

/// Gives the portions on when their time has come, those due together at once.
fn deliver(receiver: &Receiver<Portion>, mut to: &TcpStream) {
    let mut next: Option<Portion> = None;
    while let Ok((arrives_at, mut bytes)) = next.take().map_or_else(|| receiver.recv(), Ok) {
        thread::sleep(arrives_at.saturating_duration_since(Instant::now()));
        let now = Instant::now();
        while let Ok((arrives_at, more)) = receiver.try_recv() {
            if arrives_at > now {
                next = Some((arrives_at, more));
                break;
            }
            bytes.extend(more);
        }
        if to.write_all(&bytes).is_err() {
            // Who sends hears of it, and with it the other direction.
            drop(to.shutdown(Shutdown::Both));
            return;
        }
    }
    // A side that is gone needs to hear of no end.
    drop(to.shutdown(Shutdown::Write));
}

/// When what comes `now` begins to take its time on a line that is free at that instant.
fn begin(free_at: Instant, now: Instant) -> Instant {
    free_at.max(now.checked_sub(CATCH_UP_MAX).unwrap_or(now))
}

/// How long so many bytes take.
fn time_of(bytes: usize, per_second: u64) -> Duration {
    Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_their_time() {
        assert_eq!(time_of(4_096, 4_096_000), Duration::from_millis(1));
        assert_eq!(time_of(1, 0), Duration::from_secs(1));
    }

    #[test]
    fn what_timers_are_late_by_is_made_up_for_and_a_pause_is_not() {
        let now = Instant::now() + Duration::from_mins(1);
        let late = now.checked_sub(Duration::from_millis(1)).unwrap();
        assert_eq!(begin(late, now), late);
        let paused = now.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(begin(paused, now), now.checked_sub(CATCH_UP_MAX).unwrap());
        assert_eq!(begin(now + CATCH_UP_MAX, now), now + CATCH_UP_MAX);
    }

    #[test]
    fn only_a_line_that_adds_nothing_is_bare() {
        assert!(Line::default().is_bare());
        assert!(!Line { bytes_per_second: Some(1), ..Line::default() }.is_bare());
    }
}
