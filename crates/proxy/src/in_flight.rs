//! Requests of one session in the order in which their answers must come.

use std::collections::VecDeque;

use tokio::sync::oneshot;

use crate::frame::ResponseFrame;

/// Requests of one session that may wait for their answers. librdkafka sets no limit of its own;
/// beyond this one, requests wait in the client's socket.
const IN_FLIGHT_MAX: usize = 4096;

/// Bytes of answers that filters gave and that wait for those before them. Such answers are small,
/// since they say that something is wrong; beyond this, requests wait in the client's socket.
const ANSWERED_BYTES_MAX: usize = 1024 * 1024;

/// What is remembered of a request until its answer comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Expected {
    pub(crate) correlation_id: i32,
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
}

/// An answer that a filter gave.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) response: ResponseFrame,
    /// How many filters stand before the one that answered.
    pub(crate) filters: usize,
}

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

/// Requests in the order in which their answers must come.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    awaited: VecDeque<(Expected, Source)>,
    answered_bytes: usize,
}

impl InFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.awaited.len() >= IN_FLIGHT_MAX || self.answered_bytes >= ANSWERED_BYTES_MAX
    }

    /// A request that the cluster answers to the client.
    pub(crate) fn push(&mut self, expected: Expected) {
        self.awaited.push_back((expected, Source::Cluster));
    }

    /// A request that a filter has answered.
    pub(crate) fn push_answered(&mut self, expected: Expected, answered: Answered) {
        self.answered_bytes += answered.response.size();
        self.awaited.push_back((expected, Source::Filter(Box::new(answered))));
    }

    /// A filter's own request.
    pub(crate) fn push_own(&mut self, expected: Expected, answer: oneshot::Sender<Vec<u8>>) {
        self.awaited.push_back((expected, Source::Own(answer)));
    }

    /// The request that the next answer must belong to.
    pub(crate) fn next(&self) -> Option<Expected> {
        self.awaited.front().map(|(expected, _)| *expected)
    }

    /// Whether the next answer is for a filter.
    pub(crate) fn next_is_own(&self) -> bool {
        matches!(self.awaited.front(), Some((_, Source::Own(_))))
    }

    /// The next answer, if a filter gave it.
    pub(crate) fn pop_answered(&mut self) -> Option<Answered> {
        if !matches!(self.awaited.front(), Some((_, Source::Filter(_)))) {
            return None;
        }
        let Some(Source::Filter(answered)) = self.pop() else { return None };
        self.answered_bytes -= answered.response.size();
        Some(*answered)
    }

    pub(crate) fn pop(&mut self) -> Option<Source> {
        self.awaited.pop_front().map(|(_, source)| source)
    }
}
