//! The way through a slice, record by record.
//!
//! A loop goes from one record to the next within one poll, so a handler that does not wait costs
//! no change of state between futures. The call of the current record is kept where it was made;
//! it is polled again if it waits.

use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{self, Poll};

use super::{AttemptsBefore, rest_after, settle};
use crate::chunk::Chunk;
use crate::context::{Context, Services};
use crate::failure::{Cause, Failure, panic_message};
use crate::figures::{Measuring, RouteFigures};
use crate::message::{Message, MessageRef};
use crate::outgoing::Buffer;
use crate::refusals::Source;
use crate::scheduler::{Records as _, Rest, Slice};
use crate::transaction::Lane;

/// What the handling of a slice needs beside its handler.
pub(super) struct Surroundings<'s> {
    pub(super) slice: &'s Slice<Chunk>,
    pub(super) services: &'s Services,
    pub(super) figures: &'s RouteFigures,
    pub(super) attempts_before: Option<AttemptsBefore>,
    pub(super) context: Context<'s>,
    /// What handlers return waits here until the record is done, in an exactly-once app.
    pub(super) returned: Option<(&'s Lane, &'s Buffer)>,
}

/// How far the handling of a slice is.
pub(super) struct Course<'s, R> {
    surroundings: Surroundings<'s>,
    /// Those that are not started.
    records: R,
    done: usize,
    /// Which of them is measured; it may be none.
    sample: usize,
    /// The record whose call is under way.
    current: Option<MessageRef<'s>>,
    measuring: Option<Measuring>,
}

/// A buffer for what comes of the records of a slice, one after the other.
pub(super) fn buffer(slice: &Slice<Chunk>) -> Option<Buffer> {
    let (chunk, index) = slice.records().next()?;
    let (topic, partition) = (Arc::clone(&chunk.topic), chunk.partition);
    let offset = chunk.offset(index);
    Some(Buffer::new(Source { topic, partition, offset }, offset))
}

/// The handling of all records in order, from the first on.
pub(super) fn course<'s>(
    surroundings: Surroundings<'s>,
) -> Course<'s, impl Iterator<Item = MessageRef<'s>>> {
    let records = surroundings.slice.records();
    let records = records.map(|(chunk, index)| MessageRef::new(chunk, index));
    let sample = surroundings.figures.sample(surroundings.slice.len());
    Course {
        records,
        done: 0,
        sample: usize::try_from(sample).unwrap_or(usize::MAX),
        current: None,
        measuring: None,
        surroundings,
    }
}

impl<'s, R: Iterator<Item = MessageRef<'s>>> Course<'s, R> {
    /// Goes on until a call waits, or no further record is to be handled. `call` is the place of
    /// the call under way, which `start` makes. A panic of it fails its record.
    pub(super) fn poll<F: Future<Output = Result<(), Failure>>>(
        &mut self,
        task: &mut task::Context<'_>,
        call: Pin<&mut Option<F>>,
        start: impl Fn(Message, Context<'s>) -> F,
    ) -> Poll<Rest> {
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.go_on(task, call, start)));
        match (polled, self.current) {
            (Ok(polled), _) => polled,
            (Err(panic), Some(record)) => {
                self.end_measuring();
                let failure = Cause::Panicked(panic_message(&*panic)).into();
                Poll::Ready(self.failed(record, &failure))
            }
            (Err(panic), None) => panic::resume_unwind(panic),
        }
    }

    fn go_on<F: Future<Output = Result<(), Failure>>>(
        &mut self,
        task: &mut task::Context<'_>,
        mut call: Pin<&mut Option<F>>,
        start: impl Fn(Message, Context<'s>) -> F,
    ) -> Poll<Rest> {
        loop {
            if let Some(running) = call.as_mut().as_pin_mut() {
                let polled = match &mut self.measuring {
                    None => running.poll(task),
                    Some(measuring) => measuring.poll(|| running.poll(task)),
                };
                let Poll::Ready(called) = polled else { return Poll::Pending };
                self.end_measuring();
                let record = self.current.take().expect("a call is made for a record");
                if let Err(failure) = called {
                    return Poll::Ready(self.failed(record, &failure));
                }
                self.settle(record);
                call.set(None);
            }
            if self.surroundings.slice.is_stopped() {
                return Poll::Ready(Rest::Untried);
            }
            let Some(record) = self.records.next() else { return Poll::Ready(Rest::Untried) };
            if let Some((_, returned)) = self.surroundings.returned {
                returned.go_on_at(record.offset());
            }
            let (message, context) = (record.to_message(), self.context_of(record));
            self.current = Some(record);
            self.measuring = self.surroundings.figures.begin(self.done == self.sample);
            call.set(Some(start(message, context)));
        }
    }

    fn context_of(&self, record: MessageRef<'_>) -> Context<'s> {
        let Surroundings { context, attempts_before, .. } = self.surroundings;
        attempts_before.map_or(context, |attempts_before| context.after(attempts_before(record)))
    }

    fn settle(&mut self, record: MessageRef<'_>) {
        let Surroundings { slice, services, returned, .. } = self.surroundings;
        let offset = record.offset();
        services.board.unblock(record.topic(), record.partition(), offset..=offset);
        self.done += 1;
        settle(slice, self.done, returned);
    }

    fn failed(&self, record: MessageRef<'_>, failure: &Failure) -> Rest {
        rest_after(failure, 1, Some(record), record.offset(), self.context_of(record))
    }

    fn end_measuring(&mut self) {
        if let Some(measuring) = self.measuring.take() {
            self.surroundings.figures.end(measuring, 1);
        }
    }
}
