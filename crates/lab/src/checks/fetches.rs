//! Whether times from end to end are the system's, and not the wait of fetches for more bytes.

use super::{Check, Weight};
use crate::punctuality::has_latencies;
use moldau_load::run::RunRecord;
use moldau_load::workload::Pace;
use moldau_measure::statistics::float;

/// Share of the median from end to end that the wait of a fetch may explain.
const WAIT_SHARE_MAX: f64 = 0.5;

/// The check of runs whose consumers wait for more than a byte; none where no run has such.
pub(super) fn check(runs: &[RunRecord], weight: Weight) -> Option<Check> {
    let waits = runs.iter().filter_map(|run| Some((run, Wait::of(run)?)));
    let (run, worst) =
        waits.max_by(|(_, one), (_, other)| one.share().total_cmp(&other.share()))?;
    Some(Check {
        name: "times from end to end are the system's, not the wait of a fetch".into(),
        passed: worst.share() < WAIT_SHARE_MAX,
        weight,
        found: format!(
            "{:.1} ms of {:.1} are waited for {} bytes, at most {} ms ({}, {})",
            worst.wait_ms,
            worst.end_to_end_ms,
            run.workload.tuning.fetch_min_bytes,
            run.workload.tuning.fetch_max_wait_ms,
            run.case,
            run.arm,
        ),
        demanded: format!("< {:.0} % of the median", WAIT_SHARE_MAX * 100.0),
    })
}

/// What a record waits on average until the fetch that brings it has enough bytes, or has waited
/// long enough, of what it takes from end to end at the median.
struct Wait {
    wait_ms: f64,
    end_to_end_ms: f64,
}

impl Wait {
    /// Of a run at a rate whose consumers wait for more than a byte. A fetch is of one topic, and
    /// what comes meanwhile has waited half of its time on average.
    fn of(run: &RunRecord) -> Option<Self> {
        let tuning = &run.workload.tuning;
        let Pace::Scheduled { per_second, .. } = run.workload.pace else { return None };
        let latency = run.latency.as_ref().filter(|_| has_latencies(run))?;
        let end_to_end = latency.end_to_end.summary;
        if tuning.fetch_min_bytes <= 1 || end_to_end.count == 0 || per_second == 0 {
            return None;
        }
        let record_bytes = run.stored_record_bytes().unwrap_or_else(|| run.record_bytes());
        let bytes_per_ms = float(per_second) * record_bytes / f64::from(tuning.topics) / 1e3;
        let filled_ms = f64::from(tuning.fetch_min_bytes) / bytes_per_ms;
        let wait_ms = filled_ms.min(f64::from(tuning.fetch_max_wait_ms)) / 2.0;
        let end_to_end_ms = float(end_to_end.p50_ns.max(1)) / 1e6;
        // What a proxy encrypts fills a fetch sooner than what comes here shows, and none waits for
        // longer than a record takes.
        Some(Self { wait_ms: wait_ms.min(end_to_end_ms), end_to_end_ms })
    }

    fn share(&self) -> f64 {
        self.wait_ms / self.end_to_end_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{all, of_published};
    use crate::sample;
    use moldau_load::ledger::self_test;

    /// A run of the sample whose median from end to end is so long, over so many topics.
    fn run(end_to_end_ms: u64, topics: u16, fetch_min_bytes: u32) -> RunRecord {
        let mut run = sample::result().runs.swap_remove(1);
        run.workload.pace = Pace::Scheduled {
            per_second: 1_000,
            arrivals: moldau_load::schedule::Arrivals::Constant,
        };
        run.workload.record_bytes = 1_000;
        run.workload.tuning.topics = topics;
        run.workload.tuning.fetch_min_bytes = fetch_min_bytes;
        let latency = run.latency.as_mut().unwrap();
        latency.end_to_end.summary.p50_ns = end_to_end_ms * 1_000_000;
        run
    }

    #[test]
    fn a_time_that_is_the_wait_of_a_fetch_is_refused() {
        // One topic fills 100,000 bytes in 100 ms, of a hundred each waits for 500 ms.
        for (end_to_end_ms, topics, passes) in
            [(60, 1, false), (110, 1, true), (256, 100, false), (510, 100, true)]
        {
            let found = check(&[run(end_to_end_ms, topics, 100_000)], Weight::Note).unwrap();
            assert_eq!(found.passed, passes, "{found:?}");
        }
        assert_eq!(check(&[run(1, 100, 1)], Weight::Note), None);
    }

    #[test]
    fn a_fetch_waits_for_bytes_as_they_are_stored_and_no_longer_than_its_records_take() {
        let found = |end_to_end_ms: u64, stored_of_each: u64| {
            let mut run = run(end_to_end_ms, 1, 100_000);
            run.audit.delivered = 10;
            run.stored_bytes = 10 * stored_of_each;
            check(&[run], Weight::Note).unwrap().found
        };
        assert!(found(60, 1_250).starts_with("40.0 ms of 60.0 "), "{}", found(60, 1_250));
        assert!(found(60, 500).starts_with("60.0 ms of 60.0 "), "{}", found(60, 500));
    }

    #[test]
    fn published_fetch_waits_are_reported_and_not_refused() {
        let mut result = sample::result();
        result.runs.truncate(2);
        result.runs[1] = run(60, 1, 100_000);
        let test = self_test(1, 20).unwrap();
        let weight = |checks: Vec<Check>| {
            let found = checks.into_iter().find(|check| check.name.contains("wait of a fetch"));
            found.map(|check| check.weight)
        };
        assert_eq!(weight(all(&result.runs, &result.audit, &test)), Some(Weight::Validity));
        let published = of_published(&result.runs, &result.audit, &test);
        assert_eq!(weight(published), Some(Weight::Note));
    }
}
