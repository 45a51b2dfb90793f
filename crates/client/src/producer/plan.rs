//! The tasks of the sending task, as the accumulator plans them, and the outcome of batches.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::{Delivery, DeliverySink};
use crate::Result;
use crate::metadata::TopicRef;

/// One batch of a request.
#[derive(Debug)]
pub(super) struct Outbound {
    pub(super) partition: usize,
    pub(super) serial: u64,
    pub(super) topic: TopicRef,
    pub(super) index: i32,
    pub(super) bytes: Bytes,
}

/// Work for the sending task.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// One request each: the broker and the batches, at most one per partition.
    pub(super) requests: Vec<(i32, Vec<Outbound>)>,
    /// Brokers that have batches waiting and no connection.
    pub(super) unconnected: Vec<i32>,
    /// Batches that were given up.
    pub(super) reports: Vec<Report>,
    /// When there is something to do again without a wake; `None` if never.
    pub(super) wake_at: Option<Instant>,
    pub(super) needs_metadata: bool,
    /// All in flight have returned and a fresh producer id or epoch is wanted.
    pub(super) needs_producer_id: bool,
}

/// The outcome of one batch, to be given to the sink outside the lock.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) topic: Arc<str>,
    pub(super) partition: i32,
    pub(super) tokens: Vec<u64>,
    pub(super) outcome: Result<Appended>,
}

/// The outcome of a refused batch.
pub(super) enum Verdict {
    /// The broker has it already.
    Delivered,
    Retry {
        renew_producer: bool,
    },
    GiveUp {
        renew_producer: bool,
    },
}

/// Where a batch went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appended {
    pub(super) base_offset: Option<i64>,
    pub(super) log_append_time_ms: Option<i64>,
}

impl Report {
    pub(super) fn deliver(&self, sink: &dyn DeliverySink) {
        let appended = self.outcome.as_ref().ok();
        sink.delivered(&Delivery {
            topic: &self.topic,
            partition: self.partition,
            tokens: &self.tokens,
            base_offset: appended.and_then(|appended| appended.base_offset),
            log_append_time_ms: appended.and_then(|appended| appended.log_append_time_ms),
            error: self.outcome.as_ref().err(),
        });
    }
}

/// The outcome of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transaction {
    /// They belong to no transaction.
    Without,
    /// They are refused until a transaction is open.
    Between,
    /// They belong to the one that is open.
    Open,
    /// They are refused, since a batch of the open one failed.
    Failed,
}

/// How partitions and groups become part of a transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Adding {
    /// The coordinator is told before anything is sent to them (KIP-98).
    Beforehand,
    /// By the first batch or offset that reaches them (KIP-890).
    Implicit,
}

/// What the coordinator may know of a transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Extent {
    /// Nothing is part of it, so there is nothing to end.
    Empty,
    /// Partitions or groups may be part of it.
    Begun,
}

impl Transaction {
    pub(super) fn after_failure(self) -> Self {
        if self == Self::Open { Self::Failed } else { self }
    }
}
