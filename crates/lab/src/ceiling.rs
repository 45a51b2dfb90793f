//! The highest rate that a system sustains: the conditions for a rate, and the results of searches.
//!
//! | module | what it holds |
//! |---|---|
//! | `search` | which rate is tried next, and what the trials say of the ceiling |
//! | `trial` | whether a run sustained its rate, and why not |

pub mod search;
mod trial;

use serde::{Deserialize, Serialize};

use moldau_load::run::RunRecord;
use search::{Found, Outcome, TRIALS};

pub use trial::{Growth, Miss, Trial};

/// Further demands on a rate. It must also be reached, without a growing backlog and without loss.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// Longest 99th percentile of response times, counted from the intended time, ms.
    pub p99_ms: f64,
}

/// What a search for ceilings found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CeilingRecord {
    /// What was demanded.
    pub demand: Demand,
    /// One per system and number of producers.
    pub searches: Vec<SearchRecord>,
}

/// The search for the ceiling of one system under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRecord {
    /// Name of the arm.
    pub arm: String,
    /// Producers, each over a connection of its own.
    pub producers: u16,
    /// Bytes of a record's value.
    pub record_bytes: u64,
    /// Records per second at full speed, which was the first trial.
    pub full_speed: f64,
    /// The others, in their order.
    pub trials: Vec<Trial>,
    /// What they say, in records per second.
    pub found: Found,
}

/// Trials at a rate that may say nothing of it: with more of them, a search does not either.
const SILENT_MAX: usize = (TRIALS - 1) / 3;

impl SearchRecord {
    /// Trials at a rate with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.trials.iter().filter(|trial| trial.outcome == outcome).count()
    }

    /// Whether enough of its trials say something.
    #[must_use]
    pub fn is_telling(&self) -> bool {
        self.count(Outcome::Disturbed) <= SILENT_MAX
    }
}

/// A number of producers, in words.
pub(crate) fn producers_in_words(count: u16) -> String {
    format!("{count} producer{}", if count == 1 { "" } else { "s" })
}

impl CeilingRecord {
    /// Of `runs`, those of the highest rates that were sustained, one for each search that
    /// sustained any. Each search has its trials' runs in their order, behind that at full speed.
    #[must_use]
    pub fn highest(&self, runs: &[RunRecord]) -> Vec<RunRecord> {
        let of_search = |search: &SearchRecord| {
            let sustained = (1_u32..).zip(&search.trials);
            let sustained = sustained.filter(|(_, trial)| trial.outcome == Outcome::Sustained);
            let (pair, _) = sustained.max_by(|one, other| one.1.rate.total_cmp(&other.1.rate))?;
            let is_it = |run: &&RunRecord| {
                let is_of = run.arm == search.arm && run.workload.producers == search.producers;
                is_of && run.pair == pair
            };
            runs.iter().find(is_it).cloned()
        };
        self.searches.iter().filter_map(of_search).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_run_of_the_highest_rate_that_was_sustained_is_found() {
        let search = sample::search("moldau", 1);
        let like = sample::result().runs.swap_remove(0);
        let number = |count: usize| u32::try_from(count).unwrap();
        let runs = (0..=number(search.trials.len())).map(|pair| {
            let mut run = RunRecord { arm: "moldau".into(), pair, ..like.clone() };
            run.workload.producers = 1;
            run
        });
        let runs: Vec<RunRecord> = runs.collect();
        let demand = Demand { p99_ms: 50.0 };
        let mut record = CeilingRecord { demand, searches: vec![search] };
        let [found] = record.highest(&runs).try_into().unwrap();
        let trials = &record.searches[0].trials;
        let of_found = &trials[usize::try_from(found.pair).unwrap() - 1];
        assert_eq!(of_found.outcome, Outcome::Sustained);
        let is_higher = |it: &&Trial| it.rate > of_found.rate;
        assert!(trials.iter().filter(is_higher).all(|it| it.outcome == Outcome::Missed));
        record.searches[0].trials.iter_mut().for_each(|trial| trial.outcome = Outcome::Missed);
        assert_eq!(record.highest(&runs), []);
    }

    #[test]
    fn a_search_is_valid_while_at_most_a_third_of_its_trials_are_disturbed() {
        let with_disturbed = |count: usize| {
            let mut search = sample::search("moldau", 1);
            assert_eq!(search.trials.len(), 11);
            let disturbed = search.trials.iter_mut().take(count);
            disturbed.for_each(|trial| trial.outcome = Outcome::Disturbed);
            search
        };
        assert!(with_disturbed(3).is_telling());
        // 4 of 11 are 36 %.
        assert!(!with_disturbed(4).is_telling());
    }
}
