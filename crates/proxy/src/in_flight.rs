//! Requests of one session in the order in which their answers must come.

use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::oneshot;

use crate::chain::SessionChain;
use crate::expected::{Answered, Expected};
use crate::latency::{Micros, Part, Timing};

/// Requests of one session that may wait for their answers. librdkafka sets no limit of its own;
/// beyond this one, requests wait in the client's socket.
const IN_FLIGHT_MAX: usize = 1024;

/// Room for so many requests is kept, which is several times what clients send ahead by default;
/// after a burst of more it is given back.
const KEPT_MAX: usize = 64;

/// Bytes of answers that filters gave and that wait for those before them. Such answers are small,
/// since they say that something is wrong; beyond this, requests wait in the client's socket.
const ANSWERED_BYTES_MAX: usize = 64 * 1024;

/// Whose request it was, and where its answer comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The client's; the cluster answers.
    Cluster,
    /// The client's; a filter has answered.
    Filter(Box<Answered>),
    /// A filter's own; the cluster answers to the filter.
    Own(oneshot::Sender<Vec<u8>>),
}

#[derive(Debug)]
struct Awaited {
    expected: Expected,
    timing: Timing,
    source: Source,
}

/// Requests in the order in which their answers must come.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    awaited: VecDeque<Awaited>,
    answered_bytes: usize,
    /// Requests that were taken out of `awaited`.
    popped: u64,
    /// Filters that took the place of others, each with the number of requests before them.
    successors: VecDeque<(u64, Rc<SessionChain>)>,
    /// The time of this turn of the session.
    now: Micros,
    /// Of the request that is under way from the client.
    under_way: Timing,
}

impl InFlight {
    /// Begins a turn of the session.
    pub(crate) fn set_now(&mut self, now: Micros) {
        self.now = now;
    }

    pub(crate) fn now(&self) -> Micros {
        self.now
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.awaited.len() >= IN_FLIGHT_MAX || self.answered_bytes >= ANSWERED_BYTES_MAX
    }

    /// The first bytes of a request have come.
    pub(crate) fn begin(&mut self) {
        self.under_way = Timing::begun(self.now);
    }

    /// The request is whole and filters go to work on it.
    pub(crate) fn begin_filters(&mut self) {
        self.under_way.spend(Part::Wait, self.now);
    }

    /// The filters have decided.
    pub(crate) fn end_filters(&mut self) {
        self.under_way.spend(Part::Filter, self.now);
    }

    /// The last byte of a request has passed whose answer is the last that is expected.
    pub(crate) fn sent(&mut self) {
        if let Some(last) = self.awaited.back_mut() {
            last.timing.spend(Part::Wait, self.now);
        }
    }

    /// A request that the cluster answers to the client.
    pub(crate) fn push(&mut self, expected: Expected) {
        self.push_from(expected, Source::Cluster);
    }

    /// A request that a filter has answered.
    pub(crate) fn push_answered(&mut self, expected: Expected, answered: Answered) {
        self.answered_bytes += answered.response.size();
        self.push_from(expected, Source::Filter(Box::new(answered)));
    }

    /// A filter's own request.
    pub(crate) fn push_own(&mut self, expected: Expected, answer: oneshot::Sender<Vec<u8>>) {
        self.push_from(expected, Source::Own(answer));
    }

    fn push_from(&mut self, expected: Expected, source: Source) {
        let timing = self.under_way;
        self.awaited.push_back(Awaited { expected, timing, source });
    }

    /// Answers to the requests behind this place go through other filters.
    pub(crate) fn push_successor(&mut self, filters: Rc<SessionChain>) {
        self.successors.push_back((self.popped + self.awaited.len() as u64, filters));
    }

    /// The filters through which the next answer goes, if they are others than those before.
    pub(crate) fn pop_successor(&mut self) -> Option<Rc<SessionChain>> {
        let (place, _) = self.successors.front()?;
        if *place > self.popped {
            return None;
        }
        self.successors.pop_front().map(|(_, filters)| filters)
    }

    /// The request that the next answer must belong to.
    pub(crate) fn next(&self) -> Option<Expected> {
        self.awaited.front().map(|awaited| awaited.expected)
    }

    /// Whether the next answer is for a filter.
    pub(crate) fn next_is_own(&self) -> bool {
        matches!(self.awaited.front(), Some(Awaited { source: Source::Own(_), .. }))
    }

    /// The next answer, if a filter gave it.
    pub(crate) fn pop_answered(&mut self) -> Option<(Answered, Timing)> {
        if !matches!(self.awaited.front(), Some(Awaited { source: Source::Filter(_), .. })) {
            return None;
        }
        let Some((Source::Filter(answered), timing)) = self.pop() else { return None };
        self.answered_bytes -= answered.response.size();
        Some((*answered, timing))
    }

    /// Gives back what a burst of requests took, once they are answered.
    pub(crate) fn settle(&mut self) {
        self.awaited.shrink_to(KEPT_MAX);
        self.successors.shrink_to_fit();
    }

    /// Takes the request whose answer has come.
    pub(crate) fn pop(&mut self) -> Option<(Source, Timing)> {
        let Awaited { source, mut timing, .. } = self.awaited.pop_front()?;
        self.popped += 1;
        let part = if matches!(source, Source::Filter(_)) { Part::Wait } else { Part::Upstream };
        timing.spend(part, self.now);
        Some((source, timing))
    }
}
