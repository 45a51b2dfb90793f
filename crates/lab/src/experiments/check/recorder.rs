//! The operations of all clients, recorded as they end, whatever ends them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use moldau_checker::{Action, History, Operation, Outcome, Seen, Step};
use moldau_client::Delivery;

/// Most records that are sent and polled before the clients end. Each takes some 100 bytes here and
/// a few times that while the history is checked.
pub(super) const RECORDS_MAX: u64 = 5_000_000;

/// What clients share: the clock, the values that are free, and what has ended.
pub(super) struct Recorder {
    start: Instant,
    next_value: AtomicU64,
    next_client: AtomicU32,
    records: AtomicU64,
    /// Guards the operations that have ended.
    ended: Mutex<Vec<Operation>>,
}

impl Recorder {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            next_value: AtomicU64::new(1),
            next_client: AtomicU32::new(0),
            records: AtomicU64::new(0),
            ended: Mutex::default(),
        })
    }

    /// The time on the clock of the history.
    pub(super) fn now_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// The number of the next client.
    pub(super) fn client(&self) -> u32 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the history is as long as it may become.
    pub(super) fn is_full(&self) -> bool {
        self.records.load(Ordering::Relaxed) >= RECORDS_MAX
    }

    /// All operations that have ended.
    pub(super) fn history(&self) -> History {
        History { operations: std::mem::take(&mut *self.ended()) }
    }

    fn value(&self) -> u64 {
        self.next_value.fetch_add(1, Ordering::Relaxed)
    }

    fn ended(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, operation: Operation) {
        let records = operation.steps.iter().map(|step| match &step.action {
            Action::Poll { records, .. } => u64::try_from(records.len()).unwrap_or(u64::MAX),
            _ => 1,
        });
        self.records.fetch_add(records.sum(), Ordering::Relaxed);
        self.ended().push(operation);
    }
}

/// What the cluster said of records, by their values.
#[derive(Clone)]
pub(super) struct Replies {
    recorder: Arc<Recorder>,
    /// Guards the replies to sends of an operation that has not ended.
    by_value: Arc<Mutex<HashMap<u64, Reply>>>,
}

/// What the cluster said of a record, and when.
#[derive(Clone, Copy)]
struct Reply {
    at_us: u64,
    is_acked: bool,
    offset: Option<i64>,
}

impl Replies {
    pub(super) fn new(recorder: &Arc<Recorder>) -> Self {
        Self { recorder: Arc::clone(recorder), by_value: Arc::default() }
    }

    /// Takes the outcome of a batch, whose tokens are the values.
    pub(super) fn take(&self, delivery: &Delivery<'_>) {
        let at_us = self.recorder.now_us();
        let is_acked = delivery.error.is_none();
        let mut by_value = self.lock();
        for (place, value) in (0..).zip(delivery.tokens) {
            let offset = delivery.base_offset.filter(|_| is_acked).map(|base| base + place);
            by_value.insert(*value, Reply { at_us, is_acked, offset });
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Reply>> {
        self.by_value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An operation that has not ended. It is recorded when it is dropped: by a client that has ended
/// it, or with a client that ends in the middle of it.
pub(super) struct Open {
    replies: Replies,
    client: u32,
    stage: Stage,
    steps: Vec<Step>,
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is no transaction: each send has an outcome of its own.
    Alone,
    /// Commits of offsets in one request, without an answer.
    Requested,
    /// The same, acknowledged.
    Acknowledged,
    /// A transaction that its client has not asked to commit, so that it has no effect.
    Begun,
    /// One that its client has asked to commit, at this time.
    Asked(u64),
    /// One that the cluster said to be committed.
    Committed(u64),
}

impl Open {
    /// Sends and polls outside of transactions.
    pub(super) fn alone(replies: &Replies, client: u32) -> Self {
        Self::begin(replies, client, Stage::Alone)
    }

    pub(super) fn transaction(replies: &Replies, client: u32) -> Self {
        Self::begin(replies, client, Stage::Begun)
    }

    /// A request that commits offsets of the group, each with its partition.
    pub(super) fn commit(replies: &Replies, client: u32, offsets: &[(u32, i64)]) -> Self {
        let mut open = Self::begin(replies, client, Stage::Requested);
        let from_us = replies.recorder.now_us();
        for (partition, offset) in offsets {
            open.push(from_us, Action::Commit { partition: *partition, offset: *offset });
        }
        open
    }

    fn begin(replies: &Replies, client: u32, stage: Stage) -> Self {
        Self { replies: replies.clone(), client, stage, steps: Vec::new() }
    }

    /// The value of a record that is sent now. Without a reply the send lasts until the operation
    /// ends.
    pub(super) fn send(&mut self, partition: u32) -> u64 {
        let value = self.replies.recorder.value();
        let from_us = self.replies.recorder.now_us();
        let action = Action::Send { partition, value, offset: None };
        self.steps.push(Step { from_us, to_us: from_us, action });
        value
    }

    /// Takes back the last send, which the client refused: nothing was sent.
    pub(super) fn unsend(&mut self) {
        self.steps.pop();
    }

    pub(super) fn poll(&mut self, from_us: u64, partition: u32, records: Vec<Seen>) {
        self.push(from_us, Action::Poll { partition, records });
    }

    pub(super) fn position(&mut self, from_us: u64, partition: u32) {
        self.push(from_us, Action::Position { partition });
    }

    /// The client, a member, goes on in a partition from the committed offset.
    pub(super) fn resume(&mut self, from_us: u64, partition: u32, offset: Option<i64>) {
        self.push(from_us, Action::Resume { partition, offset });
    }

    /// The client has polled all of a partition.
    pub(super) fn end(&mut self, from_us: u64, partition: u32) {
        self.push(from_us, Action::End { partition });
    }

    /// Whether a send has failed, or has no reply.
    pub(super) fn has_failed(&self) -> bool {
        let replies = self.replies.lock();
        self.steps.iter().any(|step| match step.action {
            Action::Send { value, .. } => !replies.get(&value).is_some_and(|reply| reply.is_acked),
            _ => false,
        })
    }

    /// The client is about to ask for the commit.
    pub(super) fn ask(&mut self) {
        self.stage = Stage::Asked(self.replies.recorder.now_us());
    }

    /// The cluster has committed the transaction, or the offsets.
    pub(super) fn committed(&mut self) {
        match self.stage {
            Stage::Asked(at_us) => self.stage = Stage::Committed(at_us),
            Stage::Requested => {
                self.stage = Stage::Acknowledged;
                let now_us = self.replies.recorder.now_us();
                self.steps.iter_mut().for_each(|step| step.to_us = now_us);
            }
            Stage::Alone | Stage::Acknowledged | Stage::Begun | Stage::Committed(_) => {}
        }
    }

    fn push(&mut self, from_us: u64, action: Action) {
        self.steps.push(Step { from_us, to_us: self.replies.recorder.now_us(), action });
    }

    /// Its steps with the replies to its sends, each with whether it took effect for certain.
    fn ended(&mut self) -> Vec<(Step, bool)> {
        let now_us = self.replies.recorder.now_us();
        let mut replies = self.replies.lock();
        let mut ended = |mut step: Step| {
            let Action::Send { value, offset, .. } = &mut step.action else { return (step, true) };
            let reply = replies.remove(value);
            *offset = reply.and_then(|reply| reply.offset);
            step.to_us = reply.map_or(now_us, |reply| reply.at_us);
            (step, reply.is_some_and(|reply| reply.is_acked))
        };
        std::mem::take(&mut self.steps).into_iter().map(&mut ended).collect()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let (client, ended) = (self.client, self.ended());
        let recorder = &self.replies.recorder;
        let (outcome, commit_us) = match self.stage {
            Stage::Alone => {
                for (step, is_certain) in ended {
                    let outcome = if is_certain { Outcome::Committed } else { Outcome::Unknown };
                    let steps = vec![step];
                    recorder.add(Operation { client, commit_us: None, outcome, steps });
                }
                return;
            }
            Stage::Requested => (Outcome::Unknown, None),
            Stage::Acknowledged => (Outcome::Committed, None),
            Stage::Begun => (Outcome::Aborted, None),
            Stage::Asked(at_us) => (Outcome::Unknown, Some(at_us)),
            Stage::Committed(at_us) => (Outcome::Committed, Some(at_us)),
        };
        let steps = ended.into_iter().map(|(step, _)| step).collect();
        recorder.add(Operation { client, commit_us, outcome, steps });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc as Shared;

    use super::*;

    fn deliver(replies: &Replies, values: &[u64], base_offset: Option<i64>) {
        let error = moldau_client::Error::Closed;
        let topic: Shared<str> = "t".into();
        replies.take(&Delivery {
            topic: &topic,
            partition: 0,
            tokens: values,
            base_offset,
            log_append_time_ms: None,
            error: base_offset.is_none().then_some(&error),
        });
    }

    #[test]
    fn each_send_outside_of_transactions_has_its_own_outcome() {
        let recorder = Recorder::new();
        let replies = Replies::new(&recorder);
        let mut open = Open::alone(&replies, 3);
        let values = [open.send(0), open.send(1), open.send(1)];
        deliver(&replies, &values[..1], Some(7));
        deliver(&replies, &values[1..2], None);
        assert!(open.has_failed());
        drop(open);
        let history = recorder.history();
        let outcomes: Vec<Outcome> = history.operations.iter().map(|it| it.outcome).collect();
        assert_eq!(outcomes, [Outcome::Committed, Outcome::Unknown, Outcome::Unknown]);
        let Action::Send { offset, .. } = history.operations[0].steps[0].action else { panic!() };
        assert_eq!(offset, Some(7));
    }

    /// A transaction that nobody asked to commit cannot take effect, however its client ended.
    #[test]
    fn a_transaction_is_unknown_only_from_its_commit_request_to_the_answer() {
        let recorder = Recorder::new();
        let replies = Replies::new(&recorder);
        let mut outcomes = Vec::new();
        for stage in 0..3 {
            let mut open = Open::transaction(&replies, 0);
            let value = open.send(0);
            deliver(&replies, &[value], Some(stage));
            if stage > 0 {
                open.ask();
            }
            if stage > 1 {
                open.committed();
            }
            drop(open);
            let operation = recorder.history().operations.remove(0);
            outcomes.push((operation.outcome, operation.commit_us.is_some()));
        }
        let expected =
            [(Outcome::Aborted, false), (Outcome::Unknown, true), (Outcome::Committed, true)];
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn a_commit_of_offsets_without_an_answer_is_unknown() {
        let recorder = Recorder::new();
        let replies = Replies::new(&recorder);
        drop(Open::commit(&replies, 0, &[(0, 7), (1, 8)]));
        let mut open = Open::commit(&replies, 0, &[(0, 9)]);
        open.committed();
        drop(open);
        let history = recorder.history();
        let outcomes = history.operations.iter().map(|it| (it.outcome, it.steps.len()));
        let expected = [(Outcome::Unknown, 2), (Outcome::Committed, 1)];
        assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_refused_send_is_not_in_the_history() {
        let recorder = Recorder::new();
        let mut open = Open::alone(&Replies::new(&recorder), 0);
        open.send(0);
        open.unsend();
        drop(open);
        assert!(recorder.history().operations.is_empty() && !recorder.is_full());
    }
}
