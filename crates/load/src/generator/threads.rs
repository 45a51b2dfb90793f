//! The threads of a run: starting them, and what they bring home or what kept them from it.

use std::num::NonZero;
use std::ops::Range;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::sharing::{Accord, Acknowledged, ends_by_lane};
use super::{Measured, Share, Shared, consuming, nanos, niceness, producing, skimming};
use crate::workload::Pace;
use moldau_measure::Error;
use moldau_measure::cpu::{HostUsage, ProcessUsage};

/// Most threads that produce where the machine has no more processors. More producers share them: a
/// hundred threads that wake up for one record each take the processors from one another and from
/// a target beside them.
const PRODUCING_MAX: u16 = 16;

type Handle<'scope, T> = thread::ScopedJoinHandle<'scope, Result<T, Error>>;

/// Those that produce and consume.
pub(super) struct Threads<'scope> {
    /// Each with some producers.
    producing: Vec<Handle<'scope, producing::Produced>>,
    consumers: Vec<Handle<'scope, consuming::Outcome>>,
    tails: Vec<Handle<'scope, skimming::Tailed>>,
    /// Producers, of all threads.
    producers: usize,
}

impl<'scope> Threads<'scope> {
    pub(super) fn spawn(
        scope: &'scope thread::Scope<'scope, '_>,
        shared: &'scope Shared<'_>,
        contents: &'scope producing::Contents,
        ready: mpsc::SyncSender<()>,
    ) -> Result<Self, Error> {
        let Shared { setup, share, .. } = shared;
        let workload = &setup.workload;
        let is_timed = matches!(workload.pace, Pace::Scheduled { .. });
        let goes_first = is_timed && !setup.clients.waits_in_turn;
        let mut threads =
            Self { producing: vec![], consumers: vec![], tails: vec![], producers: 0 };
        let producers = share.producers(workload.all_producers());
        threads.producers = producers.len();
        for producers in dealt(producers, producing_max()) {
            let number = |number: u16| setup.first_producer.saturating_add(number);
            let producers = number(producers.start)..number(producers.end);
            let ready = ready.clone();
            let name = format!("lab-producer-{}", producers.start);
            let run = move || producing::run(shared, producers, contents, &ready);
            threads.producing.push(spawn(scope, name, goes_first, run)?);
        }
        if workload.consume {
            let ready = ready.clone();
            let run = move || consuming::run(shared, Duration::MAX, &ready);
            threads.consumers.push(spawn(scope, "lab-consumer".into(), goes_first, run)?);
        }
        for tail in 0..share.tails(workload.tails) {
            let ready = ready.clone();
            let run = move || skimming::run(shared, &ready);
            threads.tails.push(spawn(scope, format!("lab-tail-{tail}"), goes_first, run)?);
        }
        Ok(threads)
    }

    /// Number of producers, consumers and tails that report ready.
    pub(super) fn count(&self) -> usize {
        self.producers + self.consumers.len() + self.tails.len()
    }

    /// What they bring home, once all have ended.
    pub(super) fn join(
        self,
        shared: &Shared<'_>,
        accord: &mut dyn Accord,
        usage: Result<(Instant, Vec<ProcessUsage>, HostUsage), Error>,
    ) -> Result<Measured, Error> {
        let setup = shared.setup;
        let agreed = join_all(self.producing).and_then(|produced| {
            let outcomes = || produced.iter().flat_map(|thread| &thread.outcomes);
            let ledgers = outcomes().map(|outcome| &outcome.ledger);
            let ends = accord.settled(ends_by_lane(setup, ledgers))?;
            let answered = outcomes().map(|outcome| outcome.answered).sum();
            let in_window = (shared.share == Share::WHOLE).then_some(answered);
            Ok((produced, Acknowledged { ends, in_window }))
        });
        // A consumer waits for all producers, and must not wait for one that failed.
        let (produced, settled) = match agreed {
            Ok((produced, acknowledged)) => (Ok(produced), acknowledged),
            Err(error) => (Err(error), Acknowledged::default()),
        };
        shared.settled.get_or_init(|| settled);
        let (consumed, tailed) = (join_all(self.consumers), join_all(self.tails));
        match (produced, consumed, tailed, usage) {
            (Ok(produced), Ok(consumed), Ok(tailed), Ok((window_start, processes, host))) => {
                let mut measured = Measured::empty(window_start, processes, host);
                measured.window_ns = nanos(setup.workload.window());
                measured.take_produced(produced);
                measured.take_tailed(tailed);
                measured.take_consumed(consumed);
                Ok(measured)
            }
            (produced, consumed, tailed, usage) => {
                let failures = [produced.err(), consumed.err(), tailed.err(), usage.err()];
                Err(cause(failures.into_iter().flatten()))
            }
        }
    }
}

/// Most threads that produce.
pub(super) fn producing_max() -> u16 {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    u16::try_from(processors).unwrap_or(u16::MAX).max(PRODUCING_MAX)
}

/// The numbers of producers dealt to threads, each a range.
fn dealt(producers: Range<u16>, threads_max: u16) -> impl Iterator<Item = Range<u16>> {
    let each = u16::try_from(producers.len()).unwrap_or(u16::MAX).div_ceil(threads_max).max(1);
    let end = producers.end;
    producers.step_by(each.into()).map(move |first| first..first.saturating_add(each).min(end))
}

/// What all threads of a kind bring home.
fn join_all<T>(handles: Vec<Handle<'_, T>>) -> Result<Vec<T>, Error> {
    let (mut brought, mut failures) = (Vec::new(), Vec::new());
    for ended in handles.into_iter().map(join) {
        match ended {
            Ok(outcome) => brought.push(outcome),
            Err(error) => failures.push(error),
        }
    }
    if failures.is_empty() { Ok(brought) } else { Err(cause(failures.into_iter())) }
}

/// The first of errors that follows from no other.
pub(super) fn cause(errors: impl Iterator<Item = Error>) -> Error {
    let first = errors.reduce(|first, next| match first {
        Error::GivenUp => next,
        first => first,
    });
    first.unwrap_or(Error::GivenUp)
}

/// Starts a thread, which `goes_first` where others wait for a processor, or waits as they do.
pub(super) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    name: String,
    goes_first: bool,
    run: impl FnOnce() -> Result<T, Error> + Send + 'scope,
) -> Result<thread::ScopedJoinHandle<'scope, Result<T, Error>>, Error> {
    thread::Builder::new()
        .name(name)
        .spawn_scoped(scope, move || {
            if goes_first {
                niceness::ask();
            }
            run()
        })
        .map_err(Error::machine("starting a thread"))
}

pub(super) fn join<T>(handle: thread::ScopedJoinHandle<'_, Result<T, Error>>) -> Result<T, Error> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_producer_has_a_thread_and_few_have_one_of_their_own() {
        let dealt = |all: Range<u16>| dealt(all, 16).collect::<Vec<_>>();
        assert_eq!(dealt(0..0), []);
        assert_eq!(dealt(3..5), [3..4, 4..5]);
        assert_eq!(dealt(0..16).len(), 16);
        for all in [0..17, 50..150, 0..u16::MAX] {
            let threads = dealt(all.clone());
            assert!(threads.len() <= 16, "{threads:?}");
            assert!(threads.iter().cloned().flatten().eq(all));
        }
    }
}
