//! The clock of a run and waiting on it with microsecond precision.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use moldau_measure::Error;

/// Nanoseconds since the start of a run, the same for all its threads. Before the start it is 0.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    start: Instant,
}

impl RunClock {
    /// A clock that starts at an instant, by when all threads should be ready.
    pub fn starting_at(start: Instant) -> Self {
        Self { start }
    }

    /// Nanoseconds since the clock began.
    pub fn now_ns(&self) -> u64 {
        let elapsed = Instant::now().saturating_duration_since(self.start);
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The instant `ns` after the clock began.
    pub fn instant(&self, ns: u64) -> Instant {
        self.start + Duration::from_nanos(ns)
    }
}

/// Waits inside a tokio runtime, whose own timers count whole milliseconds.
#[derive(Debug)]
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    pub(super) fn new() -> Result<Self, Error> {
        let action = "making a timer";
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(|errno| Error::machine(action)(errno.into()))?;
        #[expect(
            deprecated,
            reason = "the constructor trusts the descriptor to stay open, and an OwnedFd does"
        )]
        let fd = AsyncFd::new(fd).map_err(Error::machine(action))?;
        Ok(Self { fd })
    }

    /// Waits for `duration`, but at least for one turn of the runtime.
    pub(super) async fn sleep(&self, duration: Duration) -> Result<(), Error> {
        let action = "waiting on a timer";
        if duration.is_zero() {
            tokio::task::yield_now().await;
            return Ok(());
        }
        timerfd_settime(self.fd.get_ref(), TimerfdTimerFlags::empty(), &once_after(duration))
            .map_err(|errno| Error::machine(action)(errno.into()))?;
        loop {
            let mut ready = self.fd.readable().await.map_err(Error::machine(action))?;
            let mut expirations = [0_u8; 8];
            match rustix::io::read(ready.get_inner(), &mut expirations) {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(errno) => return Err(Error::machine(action)(errno.into())),
            }
        }
    }
}
/// Waits on a thread with the same precision, so that a bare loop is woken as the generator is.
#[derive(Debug)]
pub struct BlockingTimer {
    fd: OwnedFd,
}

impl BlockingTimer {
    /// A timer of the kernel.
    ///
    /// # Errors
    /// [`Error::Machine`] when the kernel gives none.
    pub fn new() -> Result<Self, Error> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)
            .map_err(|errno| Error::machine("making a timer")(errno.into()))?;
        Ok(Self { fd })
    }

    /// Waits until `instant`; not at all if it has passed.
    pub fn sleep_until(&self, instant: Instant) -> Result<(), Error> {
        let duration = instant.saturating_duration_since(Instant::now());
        if duration.is_zero() {
            return Ok(());
        }
        let refused = |errno: Errno| Error::machine("waiting on a timer")(errno.into());
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once_after(duration))
            .map_err(refused)?;
        let mut expirations = [0; 8];
        loop {
            match rustix::io::read(&self.fd, &mut expirations) {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(refused(errno)),
            }
        }
    }
}

fn once_after(duration: Duration) -> Itimerspec {
    let it_value = Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value }
}
