//! One budget for the memory that peers can make this process hold.
//!
//! Who needs memory on behalf of a peer first acquires a [`Permit`] for it, and waits where none is
//! to be had: the socket is not read meanwhile, so that the peer waits too. An answer may take less
//! than it wants, down to its least. Memory goes back when the permit is dropped.
//!
//! | use | held by | its holder may wait for |
//! |---|---|---|
//! | [`MemoryUse::Request`] | what must be whole, while it arrives | its sender, the uses below |
//! | [`MemoryUse::Answer`] | an answer, until it is written | its reader, the disk, the use below |
//! | [`MemoryUse::Work`] | what is unpacked or built for either | the processor |
//!
//! Each use has a fixed part of the budget in two pools: a quarter of it for permits of up to an
//! eighth of that quarter, and the rest for larger ones. So nothing small waits for what is large,
//! and the reverse.
//!
//! # Progress
//!
//! - A pool serves those who wait in order of arrival, and no permit is larger than what any
//!   account may have of its pool: once all holders have released, the first is served.
//! - A holder waits only for permits of uses further down in the table. It has at most one permit
//!   of each use that it waited for. So there is no circle of holders that wait for each other, and
//!   the longest waiter for [`MemoryUse::Work`] waits for the processor alone.
//! - A holder of [`MemoryUse::Request`] or [`MemoryUse::Answer`] waits for its peer at most. While
//!   others have waited for [`PATIENCE`], holders are woken each time it is over, and end
//!   connections whose peers are too slow for that. So every holder releases.
//! - Peers that come again and again to hold what they get cannot keep out the others: an account
//!   is prompt when it has released enough memory soon, those that are not share three quarters of
//!   a pool, and both kinds take turns.
//!
//! The simulation in the tests runs honest, slow and silent peers against a small budget.

mod pool;

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use self::pool::{Grant, Pool, Wakers};

/// How long anyone waits for memory before those who hold it are asked to be quick, and how often
/// they are asked.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A permit is released soon within this time and what its bytes take at [`PROMPT_RATE`].
const PROMPT: Duration = Duration::from_secs(1);

/// Bytes per second of a peer that is in no way slow.
const PROMPT_RATE: u64 = 1024 * 1024;

/// Bytes that an account releases soon before it is prompt. The kernels on both sides take about
/// 400 KiB of answers for a peer that never reads, for which the proxy has permits of twice that.
const PROOF_BYTES: usize = 1024 * 1024;

/// Accounts that want little are prompt sooner, after this many times as much as they want: what
/// they would hold in the worst case is a small part of what the kernels take.
const PROOF_TIMES: usize = 64;

/// A permit that is held for longer than this, and what its bytes take, is held for long.
const SLOW: Duration = Duration::from_secs(10);

/// Parts of the budget, in eighths, by use.
const EIGHTHS: [usize; 3] = [3, 3, 2];

/// The pool of small permits is this part of a use.
const SMALL_POOL_PART: usize = 4;

/// A small permit is at most this part of its pool.
const SMALL_PART: usize = 8;

/// Use of memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MemoryUse {
    /// What must be whole before it goes on.
    Request = 0,
    /// An answer, until it is written.
    Answer = 1,
    /// What is unpacked or built while a message is worked on.
    Work = 2,
}

impl MemoryUse {
    /// All uses.
    pub const ALL: [Self; 3] = [Self::Request, Self::Answer, Self::Work];

    /// As metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Answer => "answer",
            Self::Work => "work",
        }
    }
}

/// More memory was asked for than the budget ever gives.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{bytes} bytes exceed the {most} bytes of memory for one {}", of.name())]
pub struct MemoryExceeded {
    /// What it was for.
    pub of: MemoryUse,
    /// What was asked for.
    pub bytes: usize,
    /// What is given at most.
    pub most: usize,
}

/// The bytes that peers may make this process hold. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    uses: [Uses; MemoryUse::ALL.len()],
}

/// The two pools of a use.
#[derive(Debug)]
struct Uses {
    small: Mutex<Pool>,
    large: Mutex<Pool>,
    small_max: usize,
    large_max: usize,
    /// Those who have waited for longer than [`PATIENCE`].
    impatient: AtomicUsize,
    waits: AtomicU64,
    exceeded: AtomicU64,
}

/// What the memory of a use comes to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryReading {
    /// Bytes that are given at most.
    pub limit: usize,
    /// Bytes that are held.
    pub used: usize,
    /// Permits that are waited for.
    pub waiting: usize,
    /// Permits that had to be waited for.
    pub waits: u64,
    /// Times that more was asked for than is ever given.
    pub exceeded: u64,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Self {
        let uses = MemoryUse::ALL.map(|of| {
            let eighths = EIGHTHS.get(of as usize).copied().unwrap_or_default();
            let limit = bytes / 8 * eighths;
            let small = limit / SMALL_POOL_PART;
            let large = Pool::new(of, limit - small);
            Uses {
                small: Mutex::new(Pool::new(of, small)),
                small_max: small / SMALL_PART,
                large_max: large.limit_of_others(),
                large: Mutex::new(large),
                impatient: AtomicUsize::new(0),
                waits: AtomicU64::new(0),
                exceeded: AtomicU64::new(0),
            }
        });
        Self { inner: Arc::new(Inner { uses }) }
    }

    /// More than there ever is.
    #[must_use]
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// Bytes of all uses.
    #[must_use]
    pub fn bytes(&self) -> usize {
        MemoryUse::ALL.iter().map(|of| self.read(*of).limit).sum()
    }

    /// An account of its own, for one connection.
    #[must_use]
    pub fn account(&self) -> MemoryAccount {
        MemoryAccount { inner: Arc::clone(&self.inner), member: Arc::default() }
    }

    /// The most that one permit can be for.
    #[must_use]
    pub fn most(&self, of: MemoryUse) -> usize {
        self.inner.of(of).large_max
    }

    /// What is in use.
    #[must_use]
    pub fn read(&self, of: MemoryUse) -> MemoryReading {
        let uses = self.inner.of(of);
        let mut reading = MemoryReading {
            waits: uses.waits.load(Ordering::Relaxed),
            exceeded: uses.exceeded.load(Ordering::Relaxed),
            ..MemoryReading::default()
        };
        for pool in [&uses.small, &uses.large] {
            let pool = lock(pool);
            reading.limit += pool.limit;
            reading.used += pool.used;
            reading.waiting += pool.waiting();
        }
        reading
    }
}

/// Owner of permits: one connection. Clones share it.
#[derive(Clone, Debug)]
pub struct MemoryAccount {
    inner: Arc<Inner>,
    member: Arc<Member>,
}

/// State of an account in the pools.
#[derive(Debug, Default)]
struct Member {
    /// Bytes of each use that it released soon since it held any for long, up to [`PROOF_BYTES`].
    proof: [AtomicUsize; MemoryUse::ALL.len()],
    /// Guards the waker of the task that can release what the account holds.
    task: Mutex<Option<Waker>>,
}

impl Member {
    /// Whether it has shown that it releases a permit of so many bytes soon.
    fn is_prompt(&self, of: MemoryUse, bytes: usize) -> bool {
        let proof = self.proof.get(of as usize).map_or(0, |proof| proof.load(Ordering::Relaxed));
        proof >= bytes.saturating_mul(PROOF_TIMES).min(PROOF_BYTES)
    }

    fn waker(&self) -> Option<Waker> {
        lock(&self.task).clone()
    }

    /// Takes note of how long a permit was held.
    fn released(&self, of: MemoryUse, bytes: usize, held: Duration) {
        let Some(proof) = self.proof.get(of as usize) else { return };
        let millis = (bytes as u64).saturating_mul(1000) / PROMPT_RATE;
        let rest = held.saturating_sub(Duration::from_millis(millis));
        if rest > SLOW {
            proof.store(0, Ordering::Relaxed);
        } else if rest <= PROMPT {
            let add = |proof: usize| Some(proof.saturating_add(bytes).min(PROOF_BYTES));
            // It never fails, since there is always a sum.
            let _added = proof.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        }
    }
}

impl MemoryAccount {
    /// The budget that the account belongs to.
    #[must_use]
    pub fn budget(&self) -> MemoryBudget {
        MemoryBudget { inner: Arc::clone(&self.inner) }
    }

    /// Has this task woken when others wait for what the account holds.
    pub fn set_task(&self, waker: &Waker) {
        *lock(&self.member.task) = Some(waker.clone());
    }

    /// Whether others have waited for memory of this use for longer than [`PATIENCE`].
    #[must_use]
    pub fn is_pressed(&self, of: MemoryUse) -> bool {
        self.inner.of(of).impatient.load(Ordering::Relaxed) > 0
    }

    /// A permit, if one is to be had at once.
    #[must_use]
    pub fn try_acquire(&self, of: MemoryUse, bytes: usize) -> Option<Permit> {
        let of = self.inner.place(of, bytes);
        let grant = lock(self.inner.pool(of)).take(&self.member, &(bytes..=bytes))?;
        Some(self.permit(of, grant))
    }

    /// A permit for what makes work faster and can be done without: at once as long as three
    /// quarters of the memory are free, or not at all. It may be held for any time.
    #[must_use]
    pub fn try_acquire_spare(&self, of: MemoryUse, bytes: usize) -> Option<Permit> {
        let of = self.inner.place(of, bytes);
        let grant = lock(self.inner.pool(of)).take_spare(&self.member, bytes)?;
        Some(self.permit(of, grant))
    }

    /// Waits for a permit of at least the first number of bytes, and up to the last.
    ///
    /// # Errors
    /// [`MemoryExceeded`]: even the least is more than is ever given.
    pub fn acquire(
        &self,
        of: MemoryUse,
        bytes: RangeInclusive<usize>,
    ) -> Result<Acquire, MemoryExceeded> {
        let (bytes, uses) = (*bytes.start()..=*bytes.end().max(bytes.start()), self.inner.of(of));
        if *bytes.start() > uses.large_max {
            uses.exceeded.fetch_add(1, Ordering::Relaxed);
            return Err(MemoryExceeded { of, bytes: *bytes.start(), most: uses.large_max });
        }
        let of = self.inner.place(of, *bytes.start());
        Ok(Acquire { account: self.clone(), of, bytes, state: AcquireState::Begun })
    }

    /// A permit for memory that is in use already, beyond the limit if need be: others wait until
    /// there is room again.
    pub fn charge(&self, of: MemoryUse, bytes: usize) -> Permit {
        let of = self.inner.place(of, bytes);
        let grant = lock(self.inner.pool(of)).charge(&self.member, bytes);
        self.permit(of, grant)
    }

    fn permit(&self, of: Place, grant: Grant) -> Permit {
        let (account, since) = (self.clone(), Instant::now());
        Permit { account, of, most: grant.bytes, grant: Some(grant), since }
    }
}

/// One of the pools.
#[derive(Clone, Copy, Debug)]
struct Place {
    of: MemoryUse,
    is_small: bool,
}

impl Inner {
    fn of(&self, of: MemoryUse) -> &Uses {
        self.uses.get(of as usize).expect("every use has its pools")
    }

    fn place(&self, of: MemoryUse, bytes: usize) -> Place {
        Place { of, is_small: bytes <= self.of(of).small_max }
    }

    fn pool(&self, Place { of, is_small }: Place) -> &Mutex<Pool> {
        let uses = self.of(of);
        if is_small { &uses.small } else { &uses.large }
    }
}

/// Memory that may be used, given back when this is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its memory back"]
pub struct Permit {
    account: MemoryAccount,
    of: Place,
    /// Bytes that it was for at first.
    most: usize,
    grant: Option<Grant>,
    since: Instant,
}

impl Permit {
    /// Bytes that may be used.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.grant.map_or(0, |grant| grant.bytes)
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let Some(grant) = self.grant.as_mut().filter(|grant| grant.bytes > bytes) else { return };
        let wakers = lock(self.account.inner.pool(self.of)).shrink(grant, bytes);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(grant) = self.grant.take() else { return };
        self.account.member.released(self.of.of, self.most, self.since.elapsed());
        let wakers = lock(self.account.inner.pool(self.of)).release(grant);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Resolves with a permit. Dropping it gives up the place among those who wait. It needs a runtime
/// with time where it has to wait.
#[derive(Debug)]
pub struct Acquire {
    account: MemoryAccount,
    of: Place,
    bytes: RangeInclusive<usize>,
    state: AcquireState,
}

#[derive(Debug)]
enum AcquireState {
    Begun,
    Waiting {
        ticket: u64,
        patience: Pin<Box<Sleep>>,
        /// It counts among those who are.
        is_impatient: bool,
    },
    Done,
}

impl Future for Acquire {
    type Output = Permit;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Permit> {
        let this = &mut *self;
        let inner = &this.account.inner;
        let uses = inner.of(this.of.of);
        let mut pool = lock(inner.pool(this.of));
        let granted = match &this.state {
            AcquireState::Begun => match pool.take(&this.account.member, &this.bytes) {
                Some(grant) => Some(grant),
                None => {
                    let (bytes, waker) = (this.bytes.clone(), cx.waker().clone());
                    let ticket = pool.wait(&this.account.member, bytes, waker);
                    uses.waits.fetch_add(1, Ordering::Relaxed);
                    let patience = Box::pin(sleep(PATIENCE));
                    this.state = AcquireState::Waiting { ticket, patience, is_impatient: false };
                    None
                }
            },
            AcquireState::Waiting { ticket, .. } => pool.taken(*ticket, cx.waker()),
            AcquireState::Done => panic!("polled after it was done"),
        };
        drop(pool);
        if let Some(grant) = granted {
            this.end_wait();
            return Poll::Ready(this.account.permit(this.of, grant));
        }
        this.poll_patience(cx);
        Poll::Pending
    }
}

impl Acquire {
    /// Asks the holders to be quick when this was waited for long enough.
    fn poll_patience(&mut self, cx: &mut Context<'_>) {
        let AcquireState::Waiting { patience, is_impatient, .. } = &mut self.state else { return };
        while patience.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            patience.as_mut().reset(now + PATIENCE);
            let inner = &self.account.inner;
            if !std::mem::replace(is_impatient, true) {
                inner.of(self.of.of).impatient.fetch_add(1, Ordering::Relaxed);
            }
            let mut pool = lock(inner.pool(self.of));
            let was_pressed = pool.pressed.is_some_and(|pressed| now - pressed < PATIENCE / 2);
            let wakers = if was_pressed { Wakers::new() } else { pool.holders() };
            pool.pressed = if was_pressed { pool.pressed } else { Some(now) };
            drop(pool);
            wakers.into_iter().for_each(Waker::wake);
        }
    }

    /// Leaves those who wait, and returns the ticket.
    fn end_wait(&mut self) -> Option<u64> {
        match std::mem::replace(&mut self.state, AcquireState::Done) {
            AcquireState::Waiting { ticket, is_impatient, .. } => {
                if is_impatient {
                    let impatient = &self.account.inner.of(self.of.of).impatient;
                    impatient.fetch_sub(1, Ordering::Relaxed);
                }
                Some(ticket)
            }
            AcquireState::Begun | AcquireState::Done => None,
        }
    }
}

impl Drop for Acquire {
    fn drop(&mut self) {
        let Some(ticket) = self.end_wait() else { return };
        let wakers = lock(self.account.inner.pool(self.of)).cancel(ticket);
        wakers.into_iter().for_each(Waker::wake);
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
