use crate::frame::ResponseFrame;

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
