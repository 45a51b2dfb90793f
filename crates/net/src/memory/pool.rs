//! The permits of one use and one size, as a state machine.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::task::Waker;

use tokio::time::Instant;

use super::{Member, MemoryUse};

/// Accounts that are not prompt together have at most this part of a pool: the rest stays for
/// those that are, however many others hold their permits for long.
const NOT_PROMPT: (usize, usize) = (3, 4);

/// Once spare bytes are gone, accounts that are not prompt get no more than this, or the least that
/// they want: many of them may hold it for long.
const GIVEN_TO_OTHERS: usize = 256 * 1024;

/// What is left of a pool is given away by halves, so that it takes many to empty it.
const GIVEN_AT_ONCE: usize = 2;

/// Spare bytes are given up to this part of a pool.
const SPARE_PART: usize = 4;

/// Bytes that are handed out to members in order of arrival.
#[derive(Debug)]
pub(super) struct Pool {
    of: MemoryUse,
    pub(super) limit: usize,
    pub(super) used: usize,
    /// Bytes of members that were not prompt when they got them.
    used_by_others: usize,
    /// The last member that got anything was prompt.
    last_is_prompt: bool,
    tickets: u64,
    /// Who waits, by ticket: those that are prompt, and the others.
    prompt: BTreeMap<u64, Waiting>,
    others: BTreeMap<u64, Waiting>,
    /// What was granted to waiting members and not yet taken.
    granted: HashMap<u64, Grant>,
    holders: Vec<Option<Arc<Member>>>,
    /// Unused places among the holders.
    vacant: Vec<usize>,
    /// When the holders were last woken since others wait.
    pub(super) pressed: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    member: Arc<Member>,
    bytes: RangeInclusive<usize>,
    waker: Waker,
}

/// Bytes of a pool that belong to a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub(super) bytes: usize,
    /// Counts under what others than prompt members hold.
    is_others: bool,
    /// Place among the holders.
    place: usize,
}

/// Those to wake once the pool is unlocked.
pub(super) type Wakers = Vec<Waker>;

impl Pool {
    pub(super) fn new(of: MemoryUse, limit: usize) -> Self {
        Self {
            of,
            limit,
            used: 0,
            used_by_others: 0,
            last_is_prompt: false,
            tickets: 0,
            prompt: BTreeMap::new(),
            others: BTreeMap::new(),
            granted: HashMap::new(),
            holders: Vec::new(),
            vacant: Vec::new(),
            pressed: None,
        }
    }

    /// What members that are not prompt may have together.
    pub(super) fn limit_of_others(&self) -> usize {
        let (part, whole) = NOT_PROMPT;
        self.limit / whole * part
    }

    /// Members that wait.
    pub(super) fn waiting(&self) -> usize {
        self.prompt.len() + self.others.len()
    }

    /// Grants at once or not at all; members that wait are not overtaken.
    pub(super) fn take(
        &mut self,
        member: &Arc<Member>,
        bytes: &RangeInclusive<usize>,
    ) -> Option<Grant> {
        let is_prompt = member.is_prompt(self.of, *bytes.end());
        // Those that wait for others to release theirs do not hold up a prompt member.
        let is_behind = !self.prompt.is_empty() || self.others_fit() || !is_prompt;
        if self.waiting() > 0 && is_behind {
            return None;
        }
        let amount = self.amount(is_prompt, bytes)?;
        Some(self.grant(member, is_prompt, amount))
    }

    /// Grants at once what is given as long as most of the pool is free, or not at all.
    pub(super) fn take_spare(&mut self, member: &Arc<Member>, bytes: usize) -> Option<Grant> {
        let is_spare = self.used.saturating_add(bytes) <= self.limit / SPARE_PART;
        (is_spare && self.waiting() == 0).then(|| self.grant(member, false, bytes))
    }

    /// Grants what is in use already, beyond the limit if need be.
    pub(super) fn charge(&mut self, member: &Arc<Member>, bytes: usize) -> Grant {
        self.grant(member, true, bytes)
    }

    pub(super) fn wait(
        &mut self,
        member: &Arc<Member>,
        bytes: RangeInclusive<usize>,
        waker: Waker,
    ) -> u64 {
        self.tickets += 1;
        let is_prompt = member.is_prompt(self.of, *bytes.end());
        let waiting = Waiting { member: Arc::clone(member), bytes, waker };
        let queue = if is_prompt { &mut self.prompt } else { &mut self.others };
        queue.insert(self.tickets, waiting);
        self.tickets
    }

    /// What was granted to a ticket; `None` keeps it waiting.
    pub(super) fn taken(&mut self, ticket: u64, waker: &Waker) -> Option<Grant> {
        let grant = self.granted.remove(&ticket);
        if grant.is_none() {
            let waiting = self.prompt.get_mut(&ticket).or_else(|| self.others.get_mut(&ticket));
            waiting.expect("a ticket waits until it is granted").waker.clone_from(waker);
        }
        grant
    }

    /// Takes back a ticket.
    pub(super) fn cancel(&mut self, ticket: u64) -> Wakers {
        match self.granted.remove(&ticket) {
            Some(grant) => self.release(grant),
            None => {
                let waited = self.prompt.remove(&ticket).or_else(|| self.others.remove(&ticket));
                assert!(waited.is_some(), "a ticket waits until it is granted");
                self.distribute()
            }
        }
    }

    pub(super) fn release(&mut self, grant: Grant) -> Wakers {
        if let Some(holder) = self.holders.get_mut(grant.place) {
            *holder = None;
            self.vacant.push(grant.place);
        }
        self.give_back(grant, grant.bytes);
        self.distribute()
    }

    /// Makes a grant smaller.
    pub(super) fn shrink(&mut self, grant: &mut Grant, bytes: usize) -> Wakers {
        let Some(less) = grant.bytes.checked_sub(bytes).filter(|less| *less > 0) else {
            return Wakers::new();
        };
        grant.bytes = bytes;
        self.give_back(*grant, less);
        self.distribute()
    }

    /// The tasks of those who hold permits.
    pub(super) fn holders(&self) -> Wakers {
        self.holders.iter().flatten().filter_map(|member| member.waker()).collect()
    }

    fn give_back(&mut self, grant: Grant, bytes: usize) {
        self.used -= bytes;
        if grant.is_others {
            self.used_by_others -= bytes;
        }
    }

    /// Grants to those who wait longest, up to the first that does not fit.
    fn distribute(&mut self) -> Wakers {
        let mut wakers = Wakers::new();
        while let Some((ticket, is_prompt)) = self.first() {
            let queue = if is_prompt { &self.prompt } else { &self.others };
            let bytes = queue.get(&ticket).expect("it is the first").bytes.clone();
            let Some(amount) = self.amount(is_prompt, &bytes) else { break };
            let queue = if is_prompt { &mut self.prompt } else { &mut self.others };
            let waiting = queue.remove(&ticket).expect("it is the first");
            let grant = self.grant(&waiting.member, is_prompt, amount);
            self.granted.insert(ticket, grant);
            wakers.push(waiting.waker);
        }
        wakers
    }

    /// Who is next, and whether that member is prompt: prompt members and others take turns, so
    /// that a crowd of others delays a prompt member by one of them at most. Others that wait
    /// for their like are passed over.
    fn first(&self) -> Option<(u64, bool)> {
        let first = |queue: &BTreeMap<u64, Waiting>| queue.keys().next().copied();
        let other = first(&self.others).filter(|_| self.others_fit());
        match first(&self.prompt) {
            Some(prompt) if other.is_none() || !self.last_is_prompt => Some((prompt, true)),
            _ => other.map(|other| (other, false)),
        }
    }

    /// Whether the first of the others has room under what they may hold together.
    fn others_fit(&self) -> bool {
        let first = self.others.values().next();
        first.is_some_and(|first| *first.bytes.start() <= self.room_of_others())
    }

    fn room_of_others(&self) -> usize {
        self.limit_of_others().saturating_sub(self.used_by_others)
    }

    /// How much of `bytes` a member would get.
    fn amount(&self, is_prompt: bool, bytes: &RangeInclusive<usize>) -> Option<usize> {
        let room = self.limit.saturating_sub(self.used);
        let (least, most) = (*bytes.start(), *bytes.end());
        let (room, most) = match is_prompt {
            true => (room, most),
            false => {
                let spare = (self.limit / SPARE_PART).saturating_sub(self.used);
                (room.min(self.room_of_others()), most.min(spare.max(GIVEN_TO_OTHERS)))
            }
        };
        (least <= room).then(|| (room / GIVEN_AT_ONCE).min(most).max(least))
    }

    fn grant(&mut self, member: &Arc<Member>, is_prompt: bool, bytes: usize) -> Grant {
        self.used += bytes;
        self.last_is_prompt = is_prompt;
        if !is_prompt {
            self.used_by_others += bytes;
        }
        let holder = Some(Arc::clone(member));
        let place = match self.vacant.pop() {
            Some(place) => {
                *self.holders.get_mut(place).expect("a vacant place is one") = holder;
                place
            }
            None => {
                self.holders.push(holder);
                self.holders.len() - 1
            }
        };
        Grant { bytes, is_others: !is_prompt, place }
    }
}
