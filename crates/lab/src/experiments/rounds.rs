//! Rounds of a case: every arm runs it once a round, forwards and backwards in turn, so that drift
//! affects all alike.

use std::time::Duration;

use super::bench::{Bench, Case, Path};
use moldau_measure::Error;

/// Most rounds of an experiment file: a month of rounds is a mistake.
const ROUNDS_MAX: u32 = 1_000;

/// Fewest rounds that anything is left with: fewer give no interval.
pub(super) const ROUNDS_MIN: u32 = 3;

/// Refuses a number of rounds that no experiment file may have.
///
/// # Errors
/// [`Error::Plan`].
pub(super) fn check(rounds: u32) -> Result<(), Error> {
    if (1..=ROUNDS_MAX).contains(&rounds) {
        return Ok(());
    }
    Err(Error::Plan(format!("rounds: 1 to {ROUNDS_MAX}")))
}

/// Rounds of an experiment file. The short form has half of them.
pub(super) fn of_file(rounds: u32, quick: bool) -> u32 {
    if quick { (rounds / 2).max(rounds.min(ROUNDS_MIN)) } else { rounds }
}

/// The most that these become where latencies are missing from some.
pub(super) fn with_more(rounds: u32) -> u32 {
    rounds.saturating_add(rounds.div_ceil(2))
}

/// Runs `asked` rounds of so many `steps`, but for those beyond [`ROUNDS_MIN`] that would end after
/// `limit` by the pace of the sitting. Gives how many were left out.
///
/// # Errors
/// Those of `run`.
pub(super) fn in_time(
    bench: &mut Bench<'_>,
    limit: Duration,
    asked: u32,
    steps: usize,
    mut run: impl FnMut(&mut Bench<'_>, u32) -> Result<(), Error>,
) -> Result<u32, Error> {
    let (mut rounds, mut round) = (asked, 0);
    while round < rounds {
        if round >= ROUNDS_MIN && !bench.ends_within(limit, 0) {
            bench.expect_fewer_steps(steps);
            rounds -= 1;
            continue;
        }
        run(bench, round)?;
        round += 1;
    }
    Ok(asked - rounds)
}

/// What is put through cases.
pub(super) trait Subject {
    /// The way to it.
    fn path(&self) -> &Path;

    /// Finds out whether it still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] when it does not.
    fn check(&mut self) -> Result<(), Error>;

    /// What came of a run on it: that it ended says more than what its clients saw of that.
    ///
    /// # Errors
    /// As [`Self::check`], or those of the run.
    fn unless_ended<T>(&mut self, ran: Result<T, Error>) -> Result<T, Error> {
        self.check()?;
        ran
    }
}

/// Runs a case in rounds, see [`each`], every subject once in each.
pub(super) fn run<S: Subject>(
    bench: &mut Bench<'_>,
    subjects: &mut [S],
    case: &Case,
    rounds: u32,
) -> Result<(), Error> {
    let steps = subjects.len();
    each(bench, &case.name, rounds, steps, |bench, round| {
        let mut order: Vec<&mut S> = subjects.iter_mut().collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for subject in order {
            let ran = bench.run_case(subject.path(), case, round);
            subject.unless_ended(ran)?;
        }
        Ok(())
    })
}

/// Does a round of so many `steps` as often as there are rounds, and on while the latencies of an
/// arm are missing from some of them, since the generator was late: up to half as many rounds
/// again, so that a restless moment costs time and a restless machine shows. Nothing that was
/// measured is dropped for that.
pub(super) fn each(
    bench: &mut Bench<'_>,
    case: &str,
    rounds: u32,
    steps: usize,
    mut round: impl FnMut(&mut Bench<'_>, u32) -> Result<(), Error>,
) -> Result<(), Error> {
    for number in 0..with_more(rounds) {
        if number >= rounds {
            if !bench.lacks_latencies(case, rounds) {
                break;
            }
            bench.expect_steps(steps);
        }
        round(bench, number)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{Conditions, Silent};

    #[test]
    fn rounds_for_which_there_is_no_time_are_left_out_but_for_three() {
        let conditions = Conditions::of_tests();
        let within = |limit: Duration| {
            let mut progress = Silent;
            let mut bench = Bench::new(&conditions, 10, &mut progress);
            let mut seen = Vec::new();
            let left_out = in_time(&mut bench, limit, 5, 2, |bench, round| {
                seen.push(round);
                bench.step("one");
                bench.step("another");
                Ok(())
            });
            (left_out.unwrap(), seen)
        };
        assert_eq!(within(Duration::MAX), (0, vec![0, 1, 2, 3, 4]));
        assert_eq!(within(Duration::ZERO), (2, vec![0, 1, 2]));
    }

    #[test]
    fn a_round_that_fails_is_the_last() {
        let (conditions, mut progress) = (Conditions::of_tests(), Silent);
        let mut bench = Bench::new(&conditions, 10, &mut progress);
        let failed = in_time(&mut bench, Duration::MAX, 5, 2, |_, round| match round {
            1 => Err(Error::Plan("no".into())),
            _ => Ok(()),
        });
        assert!(matches!(failed, Err(Error::Plan(_))));
    }
}
