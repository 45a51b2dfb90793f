//! Single permits, and a simulation of honest, slow and silent peers.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;

use fastrand::Rng;
use tokio::task::{LocalSet, spawn_local};

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    match Pin::new(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Lets virtual time pass.
async fn pass(time: Duration) {
    tokio::time::sleep_until(Instant::now() + time).await;
}

fn used(budget: &MemoryBudget, of: MemoryUse) -> usize {
    budget.read(of).used
}

/// 16 MiB: of 6 MiB for answers, 1.5 are for permits up to 192 KiB, and 4.5 for larger ones.
fn budget() -> MemoryBudget {
    MemoryBudget::new(16 * MIB)
}

#[tokio::test(start_paused = true)]
async fn what_a_permit_is_for_comes_back_when_it_is_dropped_or_shrunk() {
    let budget = budget();
    let account = budget.account();
    let mut permit = account.try_acquire(MemoryUse::Answer, 100 * KIB).unwrap();
    permit.shrink_to(40 * KIB);
    permit.shrink_to(60 * KIB);
    assert_eq!((permit.bytes(), used(&budget, MemoryUse::Answer)), (40 * KIB, 40 * KIB));
    drop(permit);
    assert_eq!(used(&budget, MemoryUse::Answer), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_given_away_by_halves() {
    let budget = budget();
    let account = budget.account();
    let mut take = || poll(&mut account.acquire(MemoryUse::Answer, 64 * KIB..=64 * MIB).unwrap());
    let sizes = |permits: &[Permit]| permits.iter().map(|it| it.bytes() / KIB).collect::<Vec<_>>();
    // Three quarters of 1.5 MiB, since the account has not shown that it is prompt.
    let permits: Vec<_> = std::iter::from_fn(&mut take).collect();
    assert_eq!(sizes(&permits)[..5], [384, 256, 256, 128, 64]);
    drop(permits);
    let permits: Vec<_> = std::iter::from_fn(&mut take).collect();
    assert_eq!(sizes(&permits)[..5], [768, 384, 192, 96, 64]);
}

#[tokio::test(start_paused = true)]
async fn spare_memory_is_given_while_most_is_free() {
    let budget = budget();
    let account = budget.account();
    let take = || account.try_acquire_spare(MemoryUse::Answer, 128 * KIB);
    let spare: Vec<_> = std::iter::from_fn(take).collect();
    assert_eq!(spare.len(), 3, "a quarter of 1.5 MiB");
    assert!(account.try_acquire(MemoryUse::Answer, 128 * KIB).is_some());
}

#[tokio::test(start_paused = true)]
async fn more_than_is_ever_given_is_an_error() {
    let budget = budget();
    let account = budget.account();
    let most = budget.most(MemoryUse::Answer);
    assert!(poll(&mut account.acquire(MemoryUse::Answer, most..=most).unwrap()).is_some());
    let refused = account.acquire(MemoryUse::Answer, most + 1..=most + 1).unwrap_err();
    let error = MemoryExceeded { of: MemoryUse::Answer, bytes: most + 1, most };
    assert_eq!(refused, error);
    assert_eq!(budget.read(MemoryUse::Answer).exceeded, 1);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_served_in_order_and_not_overtaken() {
    let budget = budget();
    let account = budget.account();
    let held: Vec<_> =
        std::iter::from_fn(|| account.try_acquire(MemoryUse::Request, 192 * KIB)).collect();
    let mut first = account.acquire(MemoryUse::Request, 192 * KIB..=192 * KIB).unwrap();
    let mut second = account.acquire(MemoryUse::Request, KIB..=KIB).unwrap();
    assert!(poll(&mut first).is_none() && poll(&mut second).is_none());
    assert!(account.try_acquire(MemoryUse::Request, KIB).is_none());
    drop(held);
    assert!(poll(&mut second).is_some() && poll(&mut first).is_some());
    assert_eq!(used(&budget, MemoryUse::Request), 0);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_lets_the_next_pass() {
    let budget = budget();
    let account = budget.account();
    let mut rest: Vec<_> =
        std::iter::from_fn(|| account.try_acquire(MemoryUse::Request, 192 * KIB)).collect();
    let held = rest.pop();
    let mut gone = account.acquire(MemoryUse::Request, 192 * KIB..=192 * KIB).unwrap();
    let mut next = account.acquire(MemoryUse::Request, KIB..=KIB).unwrap();
    assert!(poll(&mut gone).is_none() && poll(&mut next).is_none());
    drop(held);
    drop(gone);
    assert!(poll(&mut next).is_some());
    drop(rest);
    assert_eq!(used(&budget, MemoryUse::Request), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_use_already_holds_up_others_until_there_is_room() {
    let budget = budget();
    let account = budget.account();
    let charged = account.charge(MemoryUse::Answer, 100 * MIB);
    assert!(account.try_acquire(MemoryUse::Answer, MIB).is_none());
    assert!(account.try_acquire(MemoryUse::Answer, KIB).is_some(), "small ones have their own");
    drop(charged);
    assert!(account.try_acquire(MemoryUse::Answer, MIB).is_some());
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_prompt_finds_room_that_others_do_not() {
    let budget = budget();
    let (prompt, slow) = (budget.account(), budget.account());
    let take = |account: &MemoryAccount| account.try_acquire(MemoryUse::Answer, 192 * KIB);
    (0..6).for_each(|_| drop(take(&prompt)));
    let held: Vec<_> = std::iter::from_fn(|| take(&slow)).collect();
    assert_eq!(held.len(), 6);
    let mut waiting = slow.acquire(MemoryUse::Answer, KIB..=KIB).unwrap();
    assert!(poll(&mut waiting).is_none());
    let permit = take(&prompt).unwrap();
    // Held for so long, it costs the account its standing.
    tokio::time::advance(2 * SLOW).await;
    drop(permit);
    assert!(take(&prompt).is_none());
    drop(held);
    assert!(poll(&mut waiting).is_some());
}

/// Peers that never read kept honest ones out for minutes: the kernel took their first answers, and
/// they held the next ones as prompt peers do.
#[tokio::test(start_paused = true)]
async fn what_the_kernel_takes_ahead_makes_no_peer_prompt() {
    let budget = budget();
    let take = |account: &MemoryAccount| account.try_acquire(MemoryUse::Answer, 192 * KIB);
    let silent: Vec<_> = (0..100).map(|_| budget.account()).collect();
    for silent in &silent {
        (0..4).for_each(|_| drop(take(silent)));
    }
    let honest = budget.account();
    (0..6).for_each(|_| drop(take(&honest)));
    let held: Vec<_> = silent.iter().filter_map(take).collect();
    assert_eq!(held.len(), 6, "they share three quarters");
    assert!(take(&honest).is_some());
}

#[tokio::test(start_paused = true)]
async fn little_that_was_released_soon_is_proof_for_little() {
    let budget = budget();
    let (modest, slow) = (budget.account(), budget.account());
    let take = |account: &MemoryAccount, bytes| account.try_acquire(MemoryUse::Answer, bytes);
    (0..64).for_each(|_| drop(take(&modest, KIB)));
    let _held: Vec<_> = std::iter::from_fn(|| take(&slow, 192 * KIB)).collect();
    assert!(take(&modest, KIB).is_some());
    assert!(take(&modest, 2 * KIB).is_none());
}

#[tokio::test(start_paused = true)]
async fn holders_are_asked_to_be_quick_once_others_have_waited() {
    struct Woken(AtomicUsize);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let budget = budget();
    let (holder, waiter) = (budget.account(), budget.account());
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    holder.set_task(&Waker::from(Arc::clone(&woken)));
    let held = holder.charge(MemoryUse::Answer, 6 * MIB);
    let waiting = waiter.acquire(MemoryUse::Answer, MIB..=MIB).unwrap();
    let waited = tokio::spawn(waiting);
    pass(PATIENCE / 2).await;
    assert!(!holder.is_pressed(MemoryUse::Answer));
    pass(PATIENCE).await;
    assert!(holder.is_pressed(MemoryUse::Answer));
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    pass(PATIENCE).await;
    assert_eq!(woken.0.load(Ordering::Relaxed), 2);
    drop(held);
    drop(waited.await.unwrap());
    assert!(!holder.is_pressed(MemoryUse::Answer));
}

/// How a simulated peer sends its requests and reads its answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Peer {
    /// Bytes per second.
    Steady(u64),
    /// Stops in the middle of what it sends or reads, until it is disconnected.
    Silent,
}

/// A server of simulated peers: each holds a request while it is sent, then unpacks it, then holds
/// an answer while it is read.
struct Simulation {
    budget: MemoryBudget,
    /// Peers cut off, and answers read by honest ones.
    cut_off: Cell<usize>,
    most_used: RefCell<[usize; MemoryUse::ALL.len()]>,
}

/// Cut off for being slow while others waited.
struct CutOff;

/// A connection of a simulated peer.
struct Connection {
    account: MemoryAccount,
    /// Bytes that the kernels on both sides still take for a peer that does not read.
    kernel: usize,
    /// Bytes that moved either way.
    moved: u64,
}

impl Connection {
    fn is_prompt(&self) -> bool {
        let mut uses = [MemoryUse::Request, MemoryUse::Answer].into_iter();
        uses.all(|of| self.account.member.is_prompt(of, PROOF_BYTES))
    }
}

/// How a peer was served.
struct Served {
    exchanges: usize,
    /// The longest exchange of those that it began as a prompt peer.
    longest: Duration,
}

impl Simulation {
    /// Bytes of answers that the kernels hold of one connection.
    const KERNEL_BYTES: usize = 410 * KIB;

    /// Bytes that a peer moves in a second at least while others wait.
    const RATE_MIN: u64 = 16 * 1024;

    /// Seconds in which it moves all that is held for it.
    const SECONDS_MAX: u64 = 30;

    fn connect(&self) -> Connection {
        Connection { account: self.budget.account(), kernel: Self::KERNEL_BYTES, moved: 0 }
    }

    /// Moves `bytes` at the peer's speed, as a connection with its watch does.
    async fn transfer(
        &self,
        connection: &mut Connection,
        of: MemoryUse,
        peer: Peer,
        bytes: usize,
    ) -> Result<(), CutOff> {
        let mut left = bytes as u64;
        let rate_min = Self::RATE_MIN.max(left / Self::SECONDS_MAX);
        let mut pressed = 0;
        while left > 0 {
            let step = Duration::from_millis(100);
            let moved = if let Peer::Steady(rate) = peer { rate / 10 } else { 0 };
            left = left.saturating_sub(moved);
            connection.moved += moved;
            pass(step).await;
            pressed = if connection.account.is_pressed(of) { pressed + 1 } else { 0 };
            let steps_max = if connection.moved < MIB as u64 { 30 } else { 100 };
            if pressed >= steps_max && moved * 10 < rate_min {
                return Err(CutOff);
            }
        }
        Ok(())
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        peer: Peer,
        rng: &mut Rng,
    ) -> Result<(), CutOff> {
        let account = connection.account.clone();
        // Silent peers take the largest permits that there are.
        let part = if peer == Peer::Silent { 1 } else { 8 };
        let largest = (self.budget.most(MemoryUse::Request) / part).ilog2();
        let size = 1_usize << rng.u32(10..=largest);
        let request = account.acquire(MemoryUse::Request, size..=size);
        let request = request.map_err(|_| CutOff)?.await;
        self.note();
        // Silent ones stop where they hold the most.
        let stops_sending = peer == Peer::Silent && rng.bool();
        let sending = if stops_sending { peer } else { Peer::Steady(4 << 20) };
        self.transfer(connection, MemoryUse::Request, sending, size).await?;
        let most = self.budget.most(MemoryUse::Work);
        let work = account.acquire(MemoryUse::Work, (2 * size).min(most)..=(2 * size).min(most));
        let work = work.map_err(|_| CutOff)?.await;
        self.note();
        pass(Duration::from_millis(2)).await;
        drop((work, request));
        let least = 1_usize << rng.u32(10..=largest);
        let answer = account.acquire(MemoryUse::Answer, least..=55 * MIB);
        let answer = answer.map_err(|_| CutOff)?.await;
        self.note();
        // A peer that never reads has its first answers taken all the same.
        let taken = answer.bytes().min(connection.kernel);
        let taken = if peer == Peer::Silent { taken } else { 0 };
        connection.kernel -= taken;
        self.transfer(connection, MemoryUse::Answer, peer, answer.bytes() - taken).await
    }

    fn note(&self) {
        let mut most_used = self.most_used.borrow_mut();
        for (of, most) in MemoryUse::ALL.into_iter().zip(most_used.iter_mut()) {
            let reading = self.budget.read(of);
            assert!(reading.used <= reading.limit, "{of:?}: {reading:?}");
            *most = reading.used.max(*most);
        }
    }

    /// Connects again and again until the time is over.
    async fn live(self: Rc<Self>, peer: Peer, mut rng: Rng, until: Instant) -> Served {
        let (mut exchanges, mut longest) = (0, Duration::ZERO);
        let mut connection = self.connect();
        while Instant::now() < until {
            let (begun, was_prompt) = (Instant::now(), connection.is_prompt());
            match self.exchange(&mut connection, peer, &mut rng).await {
                Ok(()) => exchanges += 1,
                Err(CutOff) => {
                    self.cut_off.set(self.cut_off.get() + 1);
                    connection = self.connect();
                }
            }
            if was_prompt {
                longest = longest.max(begun.elapsed());
            }
            pass(Duration::from_millis(rng.u64(0..50))).await;
        }
        Served { exchanges, longest }
    }
}

fn simulate(seed: u64) {
    println!("seed {seed}");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut rng = Rng::with_seed(seed);
        let simulation = Rc::new(Simulation {
            budget: MemoryBudget::new(rng.usize(8..96) * MIB),
            cut_off: Cell::new(0),
            most_used: RefCell::default(),
        });
        let until = Instant::now() + Duration::from_mins(5);
        let mut start = |peer| {
            let simulation = Rc::clone(&simulation);
            spawn_local(simulation.live(peer, rng.fork(), until))
        };
        let honest: Vec<_> = (0..4).map(|_| start(Peer::Steady(8 << 20))).collect();
        // They have shown that they are prompt when the others come.
        pass(Duration::from_secs(30)).await;
        let modest: Vec<_> = (0..4).map(|_| start(Peer::Steady(64 << 10))).collect();
        let silent: Vec<_> = (0..200).map(|_| start(Peer::Silent)).collect();
        for honest in honest {
            let Served { exchanges, longest } = honest.await.unwrap();
            println!("{exchanges} exchanges, the longest took {longest:?}");
            assert!(exchanges >= 100 && longest < Duration::from_secs(20));
        }
        for modest in modest {
            let Served { exchanges, .. } = modest.await.unwrap();
            assert!(exchanges >= 1, "slow as it is, it is served");
        }
        for silent in silent {
            let mut silent = pin!(silent);
            let waited = tokio::time::timeout(Duration::from_mins(10), silent.as_mut()).await;
            if waited.is_err() {
                // Nothing asks it to end any more.
                silent.abort();
            }
        }
        tokio::task::yield_now().await;
        assert!(simulation.cut_off.get() >= 200, "{} were cut off", simulation.cut_off.get());
        for (of, most) in MemoryUse::ALL.into_iter().zip(simulation.most_used.take()) {
            assert!(most > 0 && used(&simulation.budget, of) == 0, "{of:?}: {most}");
        }
    });
}

/// Two hundred peers held all the memory, and all other peers waited for ever.
#[test]
fn honest_peers_are_served_among_many_that_hold_what_they_get() {
    [1, 2, 3, 16_441_954_721_187_374_689].into_iter().for_each(simulate);
    simulate(fastrand::u64(..));
}

#[test]
fn of_many_threads_each_gets_its_turn_and_all_comes_back() {
    let budget = MemoryBudget::new(MIB);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let budget = &budget;
            scope.spawn(move || {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
                let mut rng = Rng::with_seed(thread);
                runtime.block_on(async {
                    let account = budget.account();
                    for _ in 0..2000 {
                        let bytes = rng.usize(1..=budget.most(MemoryUse::Answer));
                        let permit =
                            account.acquire(MemoryUse::Answer, bytes..=2 * bytes).unwrap().await;
                        tokio::task::yield_now().await;
                        drop(permit);
                    }
                });
            });
        }
    });
    assert_eq!(used(&budget, MemoryUse::Answer), 0);
}
