use std::collections::VecDeque;

/// Requests of one session that may wait for their answers. librdkafka sets no limit of its own;
/// beyond this one, requests wait in the client's socket.
const IN_FLIGHT_MAX: usize = 4096;

/// What is remembered of a request until its answer comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Expected {
    pub(crate) correlation_id: i32,
    pub(crate) api_key: i16,
    pub(crate) api_version: i16,
}

/// Requests in the order in which their answers must come.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    expected: VecDeque<Expected>,
}

impl InFlight {
    pub(crate) fn is_empty(&self) -> bool {
        self.expected.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.expected.len() >= IN_FLIGHT_MAX
    }

    pub(crate) fn push(&mut self, expected: Expected) {
        self.expected.push_back(expected);
    }

    /// The request that the next answer must belong to.
    pub(crate) fn next(&self) -> Option<Expected> {
        self.expected.front().copied()
    }

    pub(crate) fn pop(&mut self) {
        self.expected.pop_front();
    }
}
