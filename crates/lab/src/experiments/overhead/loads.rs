//! The loads of a result, by their role in the answer.

use super::plan::CATCH_UP;
use crate::result::RunResult;
use moldau_load::run::RunRecord;
use moldau_load::workload::Pace;
use moldau_measure::numbers::plain;

/// Kafka's default size of batches, with which most producers run.
const USUAL_BATCH_BYTES: usize = 16 << 10;

/// The loads of a result.
pub(super) struct Loads {
    /// All cases in which paths are compared, in their order.
    pub(super) cases: Vec<String>,
    /// Those at a fixed rate.
    pub(super) offers: Vec<Offer>,
    unpaced: Vec<String>,
}

/// A case at a fixed rate.
pub(super) struct Offer {
    pub(super) case: String,
    megabytes_per_second: f64,
    is_usual: bool,
}

impl Offer {
    pub(super) fn megabytes_per_second(&self) -> f64 {
        self.megabytes_per_second
    }

    pub(super) fn rate_in_words(&self) -> String {
        let rate = plain(self.megabytes_per_second);
        let rate = if rate.contains('.') {
            rate.trim_end_matches('0').trim_end_matches('.')
        } else {
            &rate
        };
        format!("{rate} MB/s")
    }
}

impl Loads {
    pub(super) fn of(result: &RunResult) -> Self {
        // During a planted fault one path runs alone.
        let arms_of = |case: &str| {
            result
                .arms
                .iter()
                .filter(|arm| result.runs_of(case, &arm.name).next().is_some())
                .count()
        };
        let is_compared = |case: &&str| arms_of(case) == result.arms.len();
        let cases = result.cases().into_iter().filter(is_compared).map(str::to_owned);
        let (mut offers, mut unpaced, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for case in cases {
            let Some(run) = result.runs.iter().find(|run| run.case == case) else { continue };
            match offer(run) {
                Some(offer) => offers.push(offer),
                None => unpaced.push(case.clone()),
            }
            all.push(case);
        }
        Self { cases: all, offers, unpaced }
    }

    /// Cases without a rate.
    pub(super) fn unpaced(&self) -> Vec<&str> {
        self.unpaced.iter().map(String::as_str).collect()
    }

    /// The lowest rate in usual batches, for the reported latency.
    pub(super) fn lowest(&self) -> Option<&Offer> {
        self.usual().min_by(|one, other| by_rate(one, other))
    }

    /// The highest rate in usual batches, for the reported load per core.
    pub(super) fn highest(&self) -> Option<&Offer> {
        self.usual().max_by(|one, other| by_rate(one, other))
    }

    /// The case whose throughput stands in the small table: producing in the largest batches.
    pub(super) fn full_speed(&self) -> Option<&str> {
        let is_producing = |case: &&String| !case.starts_with(CATCH_UP);
        self.unpaced.iter().rfind(is_producing).map(String::as_str)
    }

    /// The fixed rates whose curves stand beside the answer.
    pub(super) fn shown_offers(&self) -> impl Iterator<Item = &Offer> {
        self.usual()
    }

    /// Whether the CPU time of a case stands beside the answer.
    pub(super) fn is_shown(&self, case: &str) -> bool {
        let is_last_reading = self.unpaced.last().is_some_and(|it| it == case);
        self.usual().any(|it| it.case == case) || self.full_speed() == Some(case) || is_last_reading
    }

    /// Fixed rates in usual batches; any where there are none.
    fn usual(&self) -> impl Iterator<Item = &Offer> {
        let has_usual = self.offers.iter().any(|offer| offer.is_usual);
        self.offers.iter().filter(move |offer| offer.is_usual || !has_usual)
    }
}

fn by_rate(one: &Offer, other: &Offer) -> std::cmp::Ordering {
    one.megabytes_per_second.total_cmp(&other.megabytes_per_second)
}

fn offer(run: &RunRecord) -> Option<Offer> {
    let Pace::Scheduled { per_second, .. } = run.workload.pace else { return None };
    Some(Offer {
        case: run.case.clone(),
        megabytes_per_second: run.megabytes(per_second),
        is_usual: run.workload.batch_bytes == USUAL_BATCH_BYTES,
    })
}
