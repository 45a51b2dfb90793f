//! A load that several processes offer together: which share each has, and what they agree on.

use std::ops::Range;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::Setup;
use crate::ledger::SentLedger;
use moldau_measure::Error;

/// Time between the last thread's readiness and the start of the schedule, so that every thread
/// has learnt of the start before it comes.
const LEAD: Duration = Duration::from_millis(20);

/// Which share of a load a process offers and reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Its place among all, from 0.
    pub index: u16,
    /// How many there are.
    pub of: u16,
}

impl Share {
    /// All of it.
    pub const WHOLE: Self = Self { index: 0, of: 1 };

    /// Whether there is such a share.
    pub fn is_possible(self) -> bool {
        self.index < self.of
    }

    /// Its producers among `all`: those of a share follow one another, so that each share has
    /// producers of every topic.
    pub fn producers(self, all: u16) -> Range<u16> {
        let end = |share: u16| {
            let end = u32::from(all) * u32::from(share) / u32::from(self.of.max(1));
            u16::try_from(end).unwrap_or(all)
        };
        end(self.index)..end(self.index + 1)
    }

    /// Whether its consumer reads a lane. Lanes are dealt in turn.
    pub fn reads(self, lane: u16) -> bool {
        lane % self.of.max(1) == self.index
    }

    /// Its further consumers among `all`. Each reads everything.
    pub fn tails(self, all: u16) -> u16 {
        let dealt = (0..all).filter(|tail| tail % self.of.max(1) == self.index);
        u16::try_from(dealt.count()).unwrap_or(all)
    }
}

/// Agreement between processes that share a load.
pub trait Accord {
    /// Called once every thread here is ready. Returns the start of the run.
    fn start(&mut self) -> Result<Instant, Error>;

    /// Takes the offsets after the last records acknowledged here, by lane. Returns those of all
    /// processes, by lane.
    fn settled(&mut self, ends: Vec<u64>) -> Result<Vec<u64>, Error>;
}

/// A process that offers the whole load by itself.
pub(super) struct Alone;

impl Accord for Alone {
    fn start(&mut self) -> Result<Instant, Error> {
        Ok(Instant::now() + LEAD)
    }

    fn settled(&mut self, ends: Vec<u64>) -> Result<Vec<u64>, Error> {
        Ok(ends)
    }
}

/// How a process takes part in a run.
pub struct Part<'a> {
    /// What it offers.
    pub share: Share,
    /// What it agrees with others.
    pub accord: &'a mut dyn Accord,
    /// Closed when the run is given up.
    pub stop: watch::Receiver<()>,
}

/// What was acknowledged in a run that produces no more, once that is known.
pub(super) type Settled = OnceLock<Acknowledged>;

/// What readers need to know about acknowledged records. Unacknowledged ones may stand among them,
/// so a count of records does not show that a reader has all.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// The offsets after the last of the records, by lane.
    pub(super) ends: Vec<u64>,
    /// Records of the window; unknown where others offer a share of them.
    pub(super) in_window: Option<u64>,
}

/// Whether the offsets that come `next` have reached the `ends` of the lanes that a share reads.
pub(super) fn has_reached(next: impl Iterator<Item = u64>, ends: &[u64], share: Share) -> bool {
    let mut lanes = (0..).zip(next.zip(ends)).filter(|(lane, _)| share.reads(*lane));
    lanes.all(|(_, (next, end))| next >= *end)
}

/// The offsets after the last records that producers have had acknowledged, by lane.
pub(super) fn ends_by_lane<'a>(
    setup: &Setup,
    ledgers: impl Iterator<Item = &'a SentLedger>,
) -> Vec<u64> {
    let mut by_lane = vec![0; setup.workload.lanes().into()];
    for ledger in ledgers {
        raise(&mut by_lane, ledger.ends_by_partition());
    }
    by_lane
}

/// Takes the later of two ends of each lane.
pub fn raise(ends: &mut [u64], others: impl Iterator<Item = u64>) {
    ends.iter_mut().zip(others).for_each(|(end, other)| *end = other.max(*end));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_every_producer_lane_and_tail_once() {
        for (of, all) in [(1, 1), (2, 3), (3, 10), (7, 1_024), (16, 16)] {
            let shares: Vec<Share> = (0..of).map(|index| Share { index, of }).collect();
            let producers: Vec<u16> = shares.iter().flat_map(|it| it.producers(all)).collect();
            assert_eq!(producers, (0..all).collect::<Vec<u16>>());
            assert!(shares.iter().all(|share| !share.producers(all).is_empty()));
            let readers = |lane| shares.iter().filter(|it| it.reads(lane)).count();
            assert!((0..all).all(|lane| readers(lane) == 1));
            assert_eq!(shares.iter().map(|it| it.tails(all)).sum::<u16>(), all);
        }
        assert_eq!(Share::WHOLE.producers(u16::MAX), 0..u16::MAX);
    }

    #[test]
    fn a_share_waits_for_the_ends_of_its_own_lanes() {
        let middle = Share { index: 1, of: 3 };
        let reached = |next: [u64; 4]| has_reached(next.into_iter(), &[1, 10, 100, 1_000], middle);
        assert!(reached([0, 10, 0, 0]) && reached([0, 11, 0, 0]) && !reached([1, 9, 100, 1_000]));
        let whole = |next: [u64; 2]| has_reached(next.into_iter(), &[1, 10], Share::WHOLE);
        assert!(whole([1, 10]) && !whole([11, 0]));
    }
}
