//! A share session with one broker (KIP-932): what is asked of it, what the member holds of it, and
//! what the member says of that. No I/O.
//!
//! A session has one request in flight. Its first one opens it and carries no acknowledgements; the
//! last one gives back what is still held. A session that is lost takes what was held with it: the
//! broker gives those records to others.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::Uuid;

/// A partition, as share requests name it.
pub(super) type Place = (Uuid, i32);

/// What a member says of a record that it holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Acknowledgement {
    /// It is processed.
    Accept,
    /// It is given back, and delivered again to any member.
    Release,
    /// It cannot be processed, and is not delivered again.
    Reject,
    /// It is still being processed: its lock begins anew (KIP-1222).
    Renew,
}

/// Consecutive offsets of which the same is said.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Run {
    pub(super) first: i64,
    pub(super) last: i64,
    /// Kafka's number.
    pub(super) kind: i8,
}

/// What a request says.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Contents {
    pub(super) epoch: i32,
    pub(super) added: BTreeSet<Place>,
    pub(super) forgotten: BTreeSet<Place>,
    pub(super) said: BTreeMap<Place, Vec<Run>>,
    pub(super) renews: bool,
}

#[derive(Debug, Default)]
pub(super) struct Session {
    /// Of the next request.
    epoch: i32,
    /// Partitions that the broker reads for the session.
    known: BTreeSet<Place>,
    /// Offsets that the caller has and has not said anything final of.
    held: BTreeMap<Place, BTreeSet<i64>>,
    /// What was said and not sent yet.
    pending: BTreeMap<Place, BTreeMap<i64, i8>>,
    in_flight: Option<InFlight>,
}

#[derive(Debug)]
struct InFlight {
    known: BTreeSet<Place>,
    /// Partitions of whose records it says something.
    said: Vec<Place>,
}

impl Acknowledgement {
    fn wire(self) -> i8 {
        match self {
            Self::Accept => 1,
            Self::Release => 2,
            Self::Reject => 3,
            Self::Renew => RENEW,
        }
    }
}

impl Session {
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_none()
    }

    /// Whether something was said that has no answer yet.
    pub(super) fn is_unanswered(&self) -> bool {
        let in_flight = self.in_flight.as_ref();
        !self.pending.is_empty() || in_flight.is_some_and(|it| !it.said.is_empty())
    }

    /// Whether a renewal was said, which no fetch can carry.
    pub(super) fn has_renewals(&self) -> bool {
        self.pending.values().flatten().any(|(_, kind)| *kind == RENEW)
    }

    /// Whether the broker may have a session.
    pub(super) fn is_open(&self) -> bool {
        self.epoch != 0 || self.in_flight.is_some()
    }

    /// The caller has got these offsets.
    pub(super) fn deliver(&mut self, place: Place, first: i64, last: i64) {
        self.held.entry(place).or_default().extend(first..=last);
    }

    /// These offsets were acquired and have no record that could be given to the caller.
    pub(super) fn pass_over(&mut self, place: Place, offsets: impl IntoIterator<Item = i64>) {
        let mut offsets = offsets.into_iter().peekable();
        if offsets.peek().is_some() {
            self.pending.entry(place).or_default().extend(offsets.map(|offset| (offset, GAP)));
        }
    }

    /// Whether the caller holds the offset.
    pub(super) fn holds(&self, place: Place, offset: i64) -> bool {
        self.held.get(&place).is_some_and(|held| held.contains(&offset))
    }

    /// Says something of a record; whether the caller held it.
    pub(super) fn acknowledge(&mut self, place: Place, offset: i64, said: Acknowledgement) -> bool {
        let Some(held) = self.held.get_mut(&place).filter(|held| held.contains(&offset)) else {
            return false;
        };
        if said != Acknowledgement::Renew {
            held.remove(&offset);
            if held.is_empty() {
                self.held.remove(&place);
            }
        }
        self.pending.entry(place).or_default().insert(offset, said.wire());
        true
    }

    /// Accepts all that is held.
    pub(super) fn accept_all(&mut self) {
        for (place, held) in std::mem::take(&mut self.held) {
            let accepted = held.into_iter().map(|offset| (offset, Acknowledgement::Accept.wire()));
            self.pending.entry(place).or_default().extend(accepted);
        }
    }

    /// A request that fetches from `wanted`, if none is in flight. Renewals are not pending.
    pub(super) fn fetch(&mut self, wanted: &BTreeSet<Place>) -> Option<Contents> {
        let is_done = self.known.is_empty() && self.pending.is_empty();
        if !self.is_idle() || (wanted.is_empty() && is_done) {
            return None;
        }
        let said = self.say();
        let added = wanted.difference(&self.known).copied().collect();
        // A partition of which something is said becomes one of the session's.
        let touched = self.known.iter().chain(said.keys());
        let forgotten = touched.filter(|place| !wanted.contains(place)).copied().collect();
        Some(self.ask(said, added, forgotten, wanted.clone()))
    }

    /// A request that only acknowledges, if none is in flight and there is something to say.
    pub(super) fn report(&mut self) -> Option<Contents> {
        if !self.is_idle() || self.pending.is_empty() {
            return None;
        }
        let said = self.say();
        let known = self.known.clone();
        Some(self.ask(said, BTreeSet::new(), BTreeSet::new(), known))
    }

    /// The last request, if a session is open and none is in flight.
    pub(super) fn close(&mut self) -> Option<Contents> {
        if !self.is_idle() || self.epoch == 0 {
            return None;
        }
        // Renewing what is given back makes no sense.
        for said in self.pending.values_mut() {
            said.retain(|_, kind| *kind != RENEW);
        }
        self.pending.retain(|_, said| !said.is_empty());
        self.held.clear();
        let said = self.say();
        self.epoch = FINAL_EPOCH;
        Some(self.ask(said, BTreeSet::new(), BTreeSet::new(), BTreeSet::new()))
    }

    /// The request in flight was taken; the partitions of whose records it said something.
    pub(super) fn answered(&mut self) -> Vec<Place> {
        let Some(InFlight { known, said }) = self.in_flight.take() else { return Vec::new() };
        self.known = known;
        self.epoch = match self.epoch {
            FINAL_EPOCH => 0,
            i32::MAX => 1,
            epoch => epoch + 1,
        };
        said
    }

    /// The broker has ended the session, or the request in flight was not taken; the partitions of
    /// whose records something was said in vain.
    pub(super) fn lost(&mut self) -> Vec<Place> {
        let said = self.in_flight.take().map(|in_flight| in_flight.said).unwrap_or_default();
        let pending = std::mem::take(&mut self.pending).into_keys();
        let refused: BTreeSet<Place> = said.into_iter().chain(pending).collect();
        *self = Self::default();
        refused.into_iter().collect()
    }

    fn say(&mut self) -> BTreeMap<Place, Vec<Run>> {
        let pending = std::mem::take(&mut self.pending).into_iter();
        pending.map(|(place, said)| (place, runs(said))).collect()
    }

    fn ask(
        &mut self,
        said: BTreeMap<Place, Vec<Run>>,
        added: BTreeSet<Place>,
        forgotten: BTreeSet<Place>,
        known: BTreeSet<Place>,
    ) -> Contents {
        self.in_flight = Some(InFlight { known, said: said.keys().copied().collect() });
        let renews = said.values().flatten().any(|run| run.kind == RENEW);
        Contents { epoch: self.epoch, added, forgotten, said, renews }
    }
}

fn runs(said: BTreeMap<i64, i8>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (offset, kind) in said {
        match runs.last_mut() {
            Some(run) if run.kind == kind && run.last + 1 == offset => run.last = offset,
            _ => runs.push(Run { first: offset, last: offset, kind }),
        }
    }
    runs
}

/// The epoch of the request that ends a session.
const FINAL_EPOCH: i32 = -1;

/// Kafka's number for an offset without a record.
const GAP: i8 = 0;

/// Kafka's number for a renewal.
const RENEW: i8 = 4;

#[cfg(test)]
mod tests;
