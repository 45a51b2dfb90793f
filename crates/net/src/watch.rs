//! When a peer has been silent or slow for too long.
//!
//! A peer that owes the rest of a request, or has to take an answer, must move a number of bytes in
//! each window of time: a byte now and then does not keep a connection, and with it what is held in
//! memory for it. While others wait for that memory, the window is short and the number larger. A
//! peer that waits for nothing must do something within the idle timeout.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::memory::PATIENCE;

/// The shorter one of the idle timeout and the window is measured in this many steps.
const STEPS: u32 = 8;

/// Bytes per second of a peer that is not slow. The kernel takes answers ahead of a reader, and
/// takes more when a third of them is read: the rate leaves room for pauses in between.
const RATE_MIN: u64 = 1024;

/// The window while others wait for memory that is held for the peer.
const PRESSED_WINDOW: Duration = Duration::from_secs(10);

/// The same for a peer that has moved less than [`KNOWN_BYTES`]: peers that come again and again to
/// hold what they get would make others wait for minutes. It outlasts two lost packets.
const PRESSED_WINDOW_UNKNOWN: Duration = Duration::from_secs(3);

/// Bytes that are more than the kernels on both sides take for a peer that does not read.
const KNOWN_BYTES: u64 = 1024 * 1024;

/// Bytes per second of a peer that is not slow, while others wait.
const PRESSED_RATE_MIN: u64 = 16 * 1024;

/// Seconds in which all memory that is held for a peer would move, while others wait.
const PRESSED_SECONDS: u64 = 30;

/// How a peer keeps a connection for nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Silence {
    /// It does nothing.
    Idle,
    /// It takes too little of its answers.
    SlowReader,
    /// It sends too little of a request that it began.
    SlowWriter,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "idle for too long",
            Self::SlowReader => "reads its responses too slowly",
            Self::SlowWriter => "sends a request too slowly",
        })
    }
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Awaited {
    /// The peer has begun a request; its rest would be read.
    pub request: bool,
    /// An answer, or a part of one, could be written if the peer took it.
    pub answer: bool,
    /// The peer waits for us.
    pub ours: bool,
}

/// Memory that is held for a peer while others wait for it, in bytes; 0 where none wait.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pressed {
    /// For its request.
    pub request: usize,
    /// For its answer.
    pub answer: usize,
}

/// Watches one peer. A timer runs a few times within the shorter of both times; traffic only adds
/// to counters.
#[derive(Debug)]
pub struct PeerWatch {
    step: Duration,
    timer: Pin<Box<Sleep>>,
    window_steps: u32,
    window_bytes_min: u64,
    idle_steps: u32,
    idle_steps_max: u32,
    /// Bytes that had moved at the last step.
    moved: u64,
    requests: Meter,
    answers: Meter,
}

/// How bytes move one way.
#[derive(Debug, Default)]
struct Meter {
    bytes: u64,
    /// A request or answer was completed since the last step: what follows is measured anew.
    completed: bool,
    /// Steps since the window began, and the bytes then.
    window: Option<(u32, u64)>,
    pressed: Option<PressedWindow>,
}

#[derive(Clone, Copy, Debug)]
struct PressedWindow {
    begun: Instant,
    seen: Instant,
    bytes: u64,
}

impl PeerWatch {
    /// For a peer that may do nothing for `idle_timeout`, and has to keep up in every `window`.
    #[must_use]
    pub fn new(idle_timeout: Duration, window: Duration) -> Self {
        // A time of 0 would let the timer run all the time.
        let step = (idle_timeout.min(window) / STEPS).max(Duration::from_millis(1));
        let steps = |time: Duration| {
            u32::try_from(time.as_nanos().div_ceil(step.as_nanos())).unwrap_or(u32::MAX).max(1)
        };
        let millis = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        Self {
            step,
            timer: Box::pin(sleep(step)),
            window_steps: steps(window),
            window_bytes_min: (RATE_MIN.saturating_mul(millis) / 1000).max(1),
            idle_steps: 0,
            idle_steps_max: steps(idle_timeout),
            moved: 0,
            requests: Meter::default(),
            answers: Meter::default(),
        }
    }

    /// Bytes came from the peer.
    #[inline]
    pub fn received(&mut self, bytes: u64) {
        self.requests.bytes += bytes;
    }

    /// The peer took bytes.
    #[inline]
    pub fn sent(&mut self, bytes: u64) {
        self.answers.bytes += bytes;
    }

    /// A request has become whole.
    #[inline]
    pub fn request_came(&mut self) {
        self.requests.completed = true;
    }

    /// The peer has taken all there was.
    #[inline]
    pub fn answers_went(&mut self) {
        self.answers.completed = true;
    }

    /// Whether nothing has moved for a step.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.idle_steps > 0
    }

    /// Whether a step has gone by; the task is woken when it has.
    #[inline]
    pub fn poll_step(&mut self, cx: &mut Context<'_>) -> bool {
        let Poll::Ready(()) = self.timer.as_mut().poll(cx) else { return false };
        self.timer.as_mut().reset(Instant::now() + self.step);
        true
    }

    /// Counts a step that ended by awaiting this.
    pub fn step(&mut self, awaited: Awaited) -> Option<Silence> {
        let (steps, bytes_min) = (self.window_steps, self.window_bytes_min);
        let moved = self.requests.bytes + self.answers.bytes;
        let is_busy = moved > self.moved || awaited.answer || awaited.ours;
        self.idle_steps = if is_busy { 0 } else { self.idle_steps + 1 };
        self.moved = moved;
        let writes_slowly = self.requests.is_slow(awaited.request, steps, bytes_min);
        let reads_slowly = self.answers.is_slow(awaited.answer, steps, bytes_min);
        match () {
            () if reads_slowly => Some(Silence::SlowReader),
            () if writes_slowly => Some(Silence::SlowWriter),
            () if self.idle_steps >= self.idle_steps_max => Some(Silence::Idle),
            () => None,
        }
    }

    /// Called when the task is woken while others wait for memory.
    pub fn press(&mut self, awaited: Awaited, pressed: Pressed) -> Option<Silence> {
        let request = if awaited.request { pressed.request } else { 0 };
        let answer = if awaited.answer { pressed.answer } else { 0 };
        if self.answers.is_slow_under_pressure(answer) {
            Some(Silence::SlowReader)
        } else if self.requests.is_slow_under_pressure(request) {
            Some(Silence::SlowWriter)
        } else {
            None
        }
    }
}

impl Meter {
    fn is_slow(&mut self, is_awaited: bool, window_steps: u32, bytes_min: u64) -> bool {
        let was_completed = std::mem::take(&mut self.completed);
        let Some((steps, begun)) = self.window.filter(|_| is_awaited && !was_completed) else {
            self.window = is_awaited.then_some((0, self.bytes));
            return false;
        };
        let is_over = steps + 1 >= window_steps;
        let is_slow = is_over && self.bytes - begun < bytes_min;
        self.window = Some(if is_over { (0, self.bytes) } else { (steps + 1, begun) });
        is_slow
    }

    fn is_slow_under_pressure(&mut self, held: usize) -> bool {
        if held == 0 {
            self.pressed = None;
            return false;
        }
        let (now, bytes) = (Instant::now(), self.bytes);
        let last = self.pressed.filter(|last| now - last.seen <= 3 * PATIENCE);
        let begun = PressedWindow { begun: now, seen: now, bytes };
        let window = last.unwrap_or(begun);
        let is_known = bytes >= KNOWN_BYTES;
        let time = if is_known { PRESSED_WINDOW } else { PRESSED_WINDOW_UNKNOWN };
        let is_over = now - window.begun >= time;
        let rate_min = (held as u64 / PRESSED_SECONDS).max(PRESSED_RATE_MIN);
        let bytes_min = rate_min * time.as_secs();
        let is_slow = is_over && bytes - window.bytes < bytes_min;
        self.pressed = Some(if is_over { begun } else { PressedWindow { seen: now, ..window } });
        is_slow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Awaited = Awaited { request: true, answer: false, ours: false };
    const ANSWER: Awaited = Awaited { request: false, answer: true, ours: true };
    const OURS: Awaited = Awaited { request: false, answer: false, ours: true };

    /// Steps of half a second.
    fn watch() -> PeerWatch {
        PeerWatch::new(Duration::from_secs(8), Duration::from_secs(4))
    }

    /// The number of steps until the connection ends, and why.
    fn end(mut each: impl FnMut(&mut PeerWatch) -> Option<Silence>) -> Option<(usize, Silence)> {
        let mut watch = watch();
        (1..100).find_map(|step| Some((step, each(&mut watch)?)))
    }

    #[tokio::test]
    async fn silence_ends_a_connection_and_any_traffic_keeps_it() {
        assert_eq!(end(|watch| watch.step(Awaited::default())), Some((16, Silence::Idle)));
        let talking = end(|watch| {
            watch.received(1);
            watch.request_came();
            watch.step(Awaited::default())
        });
        assert_eq!(talking, None);
        assert_eq!(end(|watch| watch.step(OURS)), None);
        // Half of a request is no more than silence, where the window is longer.
        let mut watch = PeerWatch::new(Duration::from_secs(4), Duration::from_secs(40));
        let halting = (1..100).find_map(|step| Some((step, watch.step(REQUEST)?)));
        assert_eq!(halting, Some((8, Silence::Idle)));
    }

    /// A session that sent or took a byte per step was kept for ever, with all it held.
    #[tokio::test]
    async fn a_byte_now_and_then_does_not_keep_a_connection() {
        let dripping = |bytes| {
            move |watch: &mut PeerWatch| {
                watch.received(bytes);
                watch.step(REQUEST)
            }
        };
        assert_eq!(end(dripping(1)), Some((9, Silence::SlowWriter)));
        assert_eq!(end(dripping(RATE_MIN / 2)), None);
        let sipping = |bytes| {
            move |watch: &mut PeerWatch| {
                watch.sent(bytes);
                watch.step(ANSWER)
            }
        };
        assert_eq!(end(sipping(1)), Some((9, Silence::SlowReader)));
        assert_eq!(end(sipping(RATE_MIN / 2)), None);
    }

    #[tokio::test]
    async fn bytes_count_over_the_window_and_not_by_the_step() {
        let mut step = 0;
        let bursts = end(|watch| {
            step += 1;
            watch.sent(if step % 8 == 0 { 4 * RATE_MIN } else { 0 });
            watch.step(ANSWER)
        });
        assert_eq!(bursts, None);
    }

    #[tokio::test]
    async fn small_answers_that_are_all_taken_are_never_slow() {
        let taken = end(|watch| {
            watch.sent(10);
            watch.answers_went();
            watch.step(ANSWER)
        });
        assert_eq!(taken, None);
    }

    /// The seconds after which a peer is cut off that had taken `before` bytes and moves so many in
    /// each second, while others wait for the memory of its answer.
    async fn pressed(before: u64, held: usize, bytes_per_second: u64) -> Option<usize> {
        let mut watch = PeerWatch::new(Duration::from_mins(10), Duration::from_mins(2));
        watch.sent(before);
        for second in 1..60 {
            watch.sent(bytes_per_second);
            if watch.press(ANSWER, Pressed { request: 0, answer: held }).is_some() {
                return Some(second);
            }
            tokio::time::advance(PATIENCE).await;
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn while_others_wait_a_peer_has_to_be_quicker() {
        for (before, seconds) in [(0, 4), (KNOWN_BYTES, 11)] {
            assert_eq!(pressed(before, 100 << 10, 1024).await, Some(seconds));
            assert_eq!(pressed(before, 100 << 10, PRESSED_RATE_MIN).await, None);
            assert_eq!(pressed(before, 30 << 20, PRESSED_RATE_MIN).await, Some(seconds));
            assert_eq!(pressed(before, 30 << 20, 1 << 20).await, None);
            assert_eq!(pressed(before, 0, 0).await, None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pressure_that_has_passed_is_forgotten() {
        let mut watch = watch();
        let held = Pressed { request: 1, answer: 0 };
        watch.received(KNOWN_BYTES);
        for _ in 0..4 {
            for _ in 0..9 {
                assert_eq!(watch.press(REQUEST, held), None);
                tokio::time::advance(PATIENCE).await;
            }
            tokio::time::advance(4 * PATIENCE).await;
        }
    }
}
