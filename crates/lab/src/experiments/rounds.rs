//! Rounds of a case: everything that is compared is put through it once a round, forwards and
//! backwards in turn, so that what drifts meanwhile touches all alike.

use super::bench::{Bench, Path};
use crate::error::Error;
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

/// Runs a case as often as there are rounds, and on while the latencies of an arm are missing from
/// some of them, since the generator was late: up to as many rounds again, so that a restless
/// moment costs time and a restless machine shows. Nothing that was measured is dropped for that.
pub(super) fn run<S: Subject>(
    bench: &mut Bench<'_>,
    subjects: &mut [S],
    case: &Case,
    rounds: u32,
) -> Result<(), Error> {
    for round in 0..rounds.saturating_mul(2) {
        if round >= rounds {
            if !bench.lacks_latencies(&case.name, rounds) {
                break;
            }
            bench.expect_steps(subjects.len());
        }
        let mut order: Vec<&mut S> = subjects.iter_mut().collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for subject in order {
            bench.run_case(subject.path(), case, round)?;
            subject.check()?;
        }
    }
    Ok(())
}
