//! Rounds of a case: everything that is compared is put through it once a round, forwards and
//! backwards in turn, so that what drifts meanwhile touches all alike.

use super::bench::{Bench, Path};
use crate::error::Error;
use crate::run::RunRecord;
use crate::workload::Workload;

/// What is put through cases.
pub(super) trait Subject {
    /// The way to it.
    fn path(&self) -> &Path;

    /// Finds out whether it still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] when it does not.
    fn check(&mut self) -> Result<(), Error>;
}

/// What everything is put through, on a topic of its own each time, every record audited.
pub(super) struct Case {
    /// Name of the producing.
    pub(super) name: String,
    pub(super) workload: Workload,
    /// Name under which the reading from start to end is measured as well; without one, what was
    /// not consumed meanwhile is read for the audit alone.
    pub(super) reading: Option<String>,
}

impl Case {
    pub(super) fn names(&self) -> Vec<&str> {
        let reading = self.reading.as_deref();
        std::iter::once(self.name.as_str()).chain(reading).collect()
    }
}

/// Runs a case as often as there are rounds. A round in which a run `is_late` is done again, as
/// often as the bench allows.
pub(super) fn run<S: Subject>(
    bench: &mut Bench<'_>,
    subjects: &mut [S],
    case: &Case,
    rounds: u32,
    is_late: fn(&RunRecord) -> bool,
) -> Result<(), Error> {
    for round in 0..rounds {
        loop {
            let mut order: Vec<&mut S> = subjects.iter_mut().collect();
            if !round.is_multiple_of(2) {
                order.reverse();
            }
            for subject in order {
                bench.run_case(subject.path(), case, round)?;
                subject.check()?;
            }
            if !bench.must_repeat_if(&case.names(), round, is_late) {
                break;
            }
        }
    }
    Ok(())
}
