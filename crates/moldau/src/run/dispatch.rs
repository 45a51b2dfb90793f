//! Which request goes to which process. It has no processes, threads or clocks.
//!
//! A request goes to the process with the fewest requests. If a process ends with several of them,
//! nobody knows which one is to blame: each becomes a suspect, and is sent again to a process that
//! has nothing else. So a request that ends its process never takes others along twice.

use std::collections::VecDeque;

/// A request, and what the caller needs with it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Request<T> {
    pub(super) id: u64,
    /// It is sent only to a process without other requests.
    pub(super) is_suspect: bool,
    pub(super) payload: T,
}

/// Why a process ended, as far as requests are concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Blame {
    /// Any of its requests.
    Any,
    /// The request with this number.
    One(u64),
}

/// What a process may get.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// It does not run, or has not said hello.
    Down,
    Up,
    /// It gets no more requests until it has none, and then a suspect.
    Reserved,
    /// It has a suspect.
    Exclusive,
}

#[derive(Debug)]
struct Slot<T> {
    stage: Stage,
    /// Requests that it is to be sent.
    outgoing: VecDeque<Request<T>>,
    /// Requests that it was sent, in this order.
    sent: VecDeque<Request<T>>,
}

/// The requests of a route, and its processes.
#[derive(Debug)]
pub(super) struct Dispatch<T> {
    slots: Vec<Slot<T>>,
    waiting: VecDeque<Request<T>>,
    suspects: VecDeque<Request<T>>,
    in_flight_max: usize,
}

impl<T> Dispatch<T> {
    /// Processes that do not run yet, each of which takes up to `in_flight_max` requests.
    pub(super) fn new(processes: usize, in_flight_max: usize) -> Self {
        let slot = || Slot { stage: Stage::Down, outgoing: VecDeque::new(), sent: VecDeque::new() };
        Self {
            slots: (0..processes).map(|_| slot()).collect(),
            waiting: VecDeque::new(),
            suspects: VecDeque::new(),
            in_flight_max,
        }
    }

    /// Takes a request.
    pub(super) fn push(&mut self, request: Request<T>) {
        let queue = if request.is_suspect { &mut self.suspects } else { &mut self.waiting };
        queue.push_back(request);
        self.assign();
    }

    /// The process takes requests.
    pub(super) fn up(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.stage = Stage::Up;
        }
        self.assign();
    }

    /// Whether the process is to be sent requests.
    pub(super) fn has_outgoing(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| !slot.outgoing.is_empty())
    }

    /// The next request for the process, which counts as sent. Those that are not wanted any more
    /// are dropped.
    pub(super) fn take(&mut self, slot: usize, is_wanted: impl Fn(&T) -> bool) -> Option<&T> {
        loop {
            let request = self.slots.get_mut(slot)?.outgoing.pop_front();
            let Some(request) = request else {
                self.assign();
                if self.has_outgoing(slot) {
                    continue;
                }
                return None;
            };
            if is_wanted(&request.payload) {
                let sent = &mut self.slots.get_mut(slot)?.sent;
                sent.push_back(request);
                return sent.back().map(|request| &request.payload);
            }
            self.slots.get_mut(slot)?.end_exclusive();
        }
    }

    /// Number of the first request that the process has not answered.
    pub(super) fn oldest(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot)?.sent.front().map(|request| request.id)
    }

    /// The process has answered a request; `None` if it has no such request.
    pub(super) fn settle(&mut self, slot: usize, id: u64) -> Option<T> {
        let slot = self.slots.get_mut(slot)?;
        let at = slot.sent.iter().position(|request| request.id == id)?;
        let request = slot.sent.remove(at)?;
        slot.end_exclusive();
        self.assign();
        Some(request.payload)
    }

    /// The process has ended. Returns the request that is to blame, if it is known; all others are
    /// sent again.
    pub(super) fn fail(&mut self, slot: usize, blame: Blame) -> Option<T> {
        let slot = self.slots.get_mut(slot)?;
        slot.stage = Stage::Down;
        let outgoing = std::mem::take(&mut slot.outgoing);
        let sent = std::mem::take(&mut slot.sent);
        let is_alone = sent.len() == 1;
        let mut culprit = None;
        let mut again = VecDeque::new();
        for mut request in sent {
            match blame {
                Blame::Any if is_alone => culprit = Some(request.payload),
                Blame::One(id) if id == request.id => culprit = Some(request.payload),
                Blame::Any => {
                    request.is_suspect = true;
                    again.push_back(request);
                }
                Blame::One(_) => again.push_back(request),
            }
        }
        for request in again.into_iter().chain(outgoing).rev() {
            let queue = if request.is_suspect { &mut self.suspects } else { &mut self.waiting };
            queue.push_front(request);
        }
        self.assign();
        culprit
    }

    fn assign(&mut self) {
        self.assign_suspects();
        while !self.waiting.is_empty() {
            let is_free = |slot: &&mut Slot<T>| {
                slot.stage == Stage::Up && slot.requests() < self.in_flight_max
            };
            let free = self.slots.iter_mut().filter(is_free).min_by_key(|slot| slot.requests());
            let Some(slot) = free else { return };
            slot.outgoing.extend(self.waiting.pop_front());
        }
    }

    fn assign_suspects(&mut self) {
        while !self.suspects.is_empty() {
            let is_up = |slot: &&mut Slot<T>| matches!(slot.stage, Stage::Up | Stage::Reserved);
            let idlest = self.slots.iter_mut().filter(is_up).min_by_key(|slot| slot.requests());
            let Some(slot) = idlest else { return };
            if slot.requests() == 0 {
                slot.stage = Stage::Exclusive;
                slot.outgoing.extend(self.suspects.pop_front());
            } else {
                let is_reserved = |slot: &Slot<T>| slot.stage == Stage::Reserved;
                if !self.slots.iter().any(is_reserved) {
                    self.reserve();
                }
                return;
            }
        }
    }

    /// Lets the process with the fewest requests become idle.
    fn reserve(&mut self) {
        let is_up = |slot: &&mut Slot<T>| slot.stage == Stage::Up;
        let idlest = self.slots.iter_mut().filter(is_up).min_by_key(|slot| slot.requests());
        if let Some(slot) = idlest {
            slot.stage = Stage::Reserved;
        }
    }
}

impl<T> Slot<T> {
    fn requests(&self) -> usize {
        self.outgoing.len() + self.sent.len()
    }

    /// A suspect is over, or the process it was reserved for is idle and not needed.
    fn end_exclusive(&mut self) {
        if self.requests() == 0 && matches!(self.stage, Stage::Exclusive | Stage::Reserved) {
            self.stage = Stage::Up;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn push(dispatch: &mut Dispatch<u64>, ids: impl IntoIterator<Item = u64>) {
        for id in ids {
            dispatch.push(Request { id, is_suspect: false, payload: id });
        }
    }

    /// Sends all that a process may get.
    fn send(dispatch: &mut Dispatch<u64>, slot: usize) -> Vec<u64> {
        std::iter::from_fn(|| dispatch.take(slot, |_| true).copied()).collect()
    }

    #[test]
    fn requests_go_to_the_process_with_the_fewest_up_to_the_limit() {
        let mut dispatch = Dispatch::new(2, 2);
        push(&mut dispatch, 0..6);
        assert!(!dispatch.has_outgoing(0));
        dispatch.up(0);
        dispatch.up(1);
        assert_eq!(send(&mut dispatch, 0), [0, 1]);
        assert_eq!(send(&mut dispatch, 1), [2, 3]);
        assert_eq!((dispatch.oldest(0), dispatch.settle(0, 1)), (Some(0), Some(1)));
        assert_eq!((dispatch.settle(0, 1), dispatch.settle(1, 0)), (None, None));
        assert_eq!(send(&mut dispatch, 0), [4]);
    }

    #[test]
    fn a_process_that_ends_with_one_request_blames_it() {
        let mut dispatch = Dispatch::new(1, 4);
        dispatch.up(0);
        push(&mut dispatch, [7]);
        assert_eq!(send(&mut dispatch, 0), [7]);
        push(&mut dispatch, [8]);
        // What was not sent has nothing to do with it.
        assert_eq!(dispatch.fail(0, Blame::Any), Some(7));
        dispatch.up(0);
        assert_eq!(send(&mut dispatch, 0), [8]);
    }

    #[test]
    fn requests_of_a_process_that_ended_are_sent_again_alone() {
        let mut dispatch = Dispatch::new(1, 4);
        dispatch.up(0);
        push(&mut dispatch, 1..=3);
        assert_eq!(send(&mut dispatch, 0), [1, 2, 3]);
        assert_eq!(dispatch.fail(0, Blame::Any), None);
        push(&mut dispatch, [4]);
        dispatch.up(0);
        assert_eq!(send(&mut dispatch, 0), [1]);
        assert_eq!(dispatch.settle(0, 1), Some(1));
        assert_eq!(send(&mut dispatch, 0), [2]);
        assert_eq!(dispatch.fail(0, Blame::Any), Some(2));
        dispatch.up(0);
        assert_eq!(send(&mut dispatch, 0), [3]);
        assert_eq!(dispatch.settle(0, 3), Some(3));
        assert_eq!(send(&mut dispatch, 0), [4]);
    }

    #[test]
    fn a_suspect_waits_for_one_process_while_others_go_on() {
        let mut dispatch = Dispatch::new(2, 2);
        dispatch.up(0);
        dispatch.up(1);
        push(&mut dispatch, 0..4);
        assert_eq!(send(&mut dispatch, 0), [0, 2]);
        assert_eq!(send(&mut dispatch, 1), [1, 3]);
        dispatch.push(Request { id: 9, is_suspect: true, payload: 9 });
        push(&mut dispatch, [4, 5]);
        assert_eq!(dispatch.settle(0, 0), Some(0));
        assert_eq!(dispatch.settle(1, 1), Some(1));
        assert_eq!((send(&mut dispatch, 0), send(&mut dispatch, 1)), (vec![], vec![4]));
        assert_eq!(dispatch.settle(0, 2), Some(2));
        assert_eq!(send(&mut dispatch, 0), [9]);
        assert_eq!(dispatch.settle(0, 9), Some(9));
        assert_eq!(send(&mut dispatch, 0), [5]);
    }

    #[test]
    fn a_hang_is_blamed_on_the_request_that_hangs() {
        let mut dispatch = Dispatch::new(1, 4);
        dispatch.up(0);
        push(&mut dispatch, 1..=3);
        assert_eq!(send(&mut dispatch, 0), [1, 2, 3]);
        assert_eq!(dispatch.fail(0, Blame::One(1)), Some(1));
        dispatch.up(0);
        assert_eq!(send(&mut dispatch, 0), [2, 3]);
    }

    #[test]
    fn unwanted_requests_are_not_sent() {
        let mut dispatch = Dispatch::new(1, 1);
        dispatch.up(0);
        dispatch.push(Request { id: 1, is_suspect: true, payload: 1 });
        push(&mut dispatch, 2..=3);
        assert_eq!(dispatch.take(0, |id| *id == 3), Some(&3));
        assert_eq!(dispatch.take(0, |_| true), None);
    }

    /// Processes end, hang and answer at random; every request is settled exactly once, and a
    /// request that ends its process never ends a request that does not.
    #[test]
    fn no_request_is_lost_or_blamed_for_another() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let processes = random.usize(1..4);
            let mut dispatch = Dispatch::new(processes, random.usize(1..5));
            let mut sent: Vec<Vec<u64>> = vec![Vec::new(); processes];
            let (mut settled, mut blamed) = (BTreeSet::new(), BTreeSet::new());
            push(&mut dispatch, 0..40);
            let is_poison = |id: u64| id.is_multiple_of(7);
            let mut steps = 0;
            while settled.len() + blamed.len() < 40 {
                steps += 1;
                assert!(steps < 100_000, "seed {seed} makes no progress");
                let slot = random.usize(0..processes);
                dispatch.up_if_down(slot);
                let given = send(&mut dispatch, slot);
                sent[slot].extend(given);
                if sent[slot].iter().any(|id| is_poison(*id)) {
                    let culprit = dispatch.fail(slot, Blame::Any);
                    assert!(culprit.is_none_or(|id| is_poison(id) && blamed.insert(id)));
                    sent[slot].clear();
                } else if !sent[slot].is_empty() {
                    let at = random.usize(0..sent[slot].len());
                    let id = sent[slot].swap_remove(at);
                    assert_eq!(dispatch.settle(slot, id), Some(id), "seed {seed}");
                    assert!(settled.insert(id), "seed {seed}");
                }
            }
            assert!(blamed.iter().all(|id| is_poison(*id)), "seed {seed}");
        }
    }

    impl<T> Dispatch<T> {
        fn up_if_down(&mut self, slot: usize) {
            if self.slots[slot].stage == Stage::Down {
                self.up(slot);
            }
        }
    }
}
