//! What a stop of the target must look like in the response times: the honesty test.
//!
//! At a constant rate over a window, an operation intended `x` after the start of a stall of
//! length `S` is begun when the stall ends and answered after the target's own time `s`, so its
//! response time is `S - x + s`. The operations of the stall are a share `S / W` of the window, and
//! their response times are spread evenly between `s` and `S + s`. A generator that waits for its
//! target (or counts from the moment it sent) has one slow operation in its books instead.

use std::time::Duration;

/// The quantile of the response time in a run of length `window` at a constant rate, in which the
/// target stood still for `stall` and takes `service` for each operation.
///
/// # Panics
/// When `stall` is longer than `window` or `quantile` is not between 0 and 1.
#[must_use]
pub fn expected_quantile(
    quantile: f64,
    window: Duration,
    stall: Duration,
    service: Duration,
) -> Duration {
    assert!(stall <= window && (0.0..=1.0).contains(&quantile), "a stall within its window");
    let slower = window.mul_f64(1.0 - quantile);
    stall.saturating_sub(slower) + service
}

#[cfg(test)]
mod tests {
    use super::*;
    use moldau_load::schedule::{Arrivals, LagQueue, Slice};
    use moldau_measure::histograms::Durations;

    /// A server that answers one operation every `service_ns`, in order, and stands still for a
    /// while; returns the response times counted from the intended times.
    fn simulate(rate: u64, window: Duration, stall_at: Duration, stall: Duration) -> Durations {
        const SERVICE_NS: u64 = 5_000;
        let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap();
        let slice = Slice::new(Arrivals::Constant, rate, 0, 1, nanos(window));
        let mut queue = LagQueue::new(slice, 1_000_000);
        let mut response = Durations::default();
        let mut free_at = 0_u64;
        while let Some(due) = queue.next_due_ns() {
            queue.take_up(due, |_| ());
            while let Some(intended) = queue.pop() {
                let mut start = free_at.max(intended);
                let stalled = nanos(stall_at)..nanos(stall_at + stall);
                if stalled.contains(&start) || stalled.contains(&(start + SERVICE_NS - 1)) {
                    start = stalled.end;
                }
                free_at = start + SERVICE_NS;
                response.record(intended, free_at, 1);
            }
        }
        response
    }

    #[test]
    fn every_percentile_of_a_stalled_run_is_the_analytic_one() {
        let service = Duration::from_nanos(5_000);
        for (rate, window_s, stall_ms) in
            [(10_000, 60, 1_000), (1_000, 10, 1_000), (20_000, 8, 500)]
        {
            let window = Duration::from_secs(window_s);
            let stall = Duration::from_millis(stall_ms);
            let response = simulate(rate, window, Duration::from_millis(2_345), stall);
            for quantile in [0.5, 0.9, 0.95, 0.99, 0.999, 0.9999] {
                let expected = expected_quantile(quantile, window, stall, service).as_secs_f64();
                let found = Duration::from_nanos(response.quantile_ns(quantile)).as_secs_f64();
                let drain = stall.as_secs_f64() * 5.1e-6 * f64::from(u32::try_from(rate).unwrap());
                assert!(
                    (found - expected).abs() <= 0.02 * expected + drain,
                    "p{quantile} at {rate}/s: {found} s, expected {expected} s"
                );
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_stall_and_of_the_time_that_each_operation_takes() {
        for (quantile, window_s, stall_s, service_ms, expected_ms) in [
            // What waited still takes its own time.
            (0.9, 10, 2, 3, 1_003),
            // Outside of the stall only that remains.
            (0.5, 10, 1, 2, 2),
            // A stall of one second dominates the last permille.
            (0.999, 8, 1, 0, 992),
        ] {
            let [window, stall] = [window_s, stall_s].map(Duration::from_secs);
            let service = Duration::from_millis(service_ms);
            let found = expected_quantile(quantile, window, stall, service);
            assert_eq!(found.as_millis(), expected_ms, "p{quantile}");
        }
    }
}
