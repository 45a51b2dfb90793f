//! What the median latency is made of: waits that follow one another, the longest first.

use super::{About, Cause, Change, Facts, Finding, SHARE_MIN, percent};
use moldau_load::workload::Acks;
use moldau_measure::numbers::digits;
use moldau_measure::statistics::float;

/// What is left of a latency at least, as a share, when a part of it is taken away.
const REST_MIN: f64 = 0.02;

/// Share of what is left of a round trip that goes with its likeliest cause: nothing tells how it
/// divides between that and what any request takes.
const OF_REST: f64 = 0.5;

/// A part of a latency.
struct Part {
    cause: Cause,
    ms: f64,
    /// The share of it that the change takes away.
    taken: f64,
    words: String,
    change: Change,
}

pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let mut findings = facts.outages(About::Latency);
    let found = parts(facts).into_iter().map(|part| {
        let share = (part.ms / facts.figure).min(1.0);
        Finding {
            cause: part.cause,
            share,
            says: format!(
                "{}: {} of {} ms, {}",
                part.words,
                digits(part.ms),
                digits(facts.figure),
                percent(share)
            ),
            change: part.change,
            expected: (1.0 - share * part.taken).max(REST_MIN),
        }
    });
    let mut found: Vec<Finding> = found.filter(|finding| finding.share >= SHARE_MIN).collect();
    found.sort_by(|one, other| other.share.total_cmp(&one.share));
    findings.append(&mut found);
    findings
}

/// The parts in the order in which a record meets them, those last that explain what the others
/// leave.
fn parts(facts: &Facts<'_>) -> Vec<Part> {
    let run = facts.run;
    let Some(latency) = &run.latency else { return Vec::new() };
    let ms = |ns: u64| float(ns) / 1e6;
    let (service, response) = (&latency.service.summary, &latency.response.summary);
    let linger_ms = float(run.workload.linger_us) / 1e3;
    let mut parts = vec![Part {
        cause: Cause::Linger,
        ms: (ms(service.p50_ns) - facts.round_trip_ms).clamp(0.0, linger_ms),
        taken: 1.0,
        words: format!("records wait in batches that linger for {} ms", digits(linger_ms)),
        change: Change::NoLinger,
    }];
    if run.workload.consume {
        parts.push(Part {
            cause: Cause::FetchWait,
            ms: ms(latency.end_to_end.summary.p50_ns.saturating_sub(response.p50_ns)),
            taken: 1.0,
            words: "records that are acknowledged wait to be fetched".into(),
            change: Change::FetchAtOnce,
        });
    }
    let flush_ms = flush_ms(facts).min(facts.round_trip_ms);
    parts.push(Part {
        cause: Cause::Flush,
        ms: flush_ms,
        taken: 1.0,
        words: "requests wait for a flush to the disk".into(),
        change: Change::NoFlush,
    });
    let rest_ms = facts.round_trip_ms - flush_ms;
    if facts.brokers() > 1 && run.workload.tuning.acks == Acks::All {
        parts.push(Part {
            cause: Cause::Replication,
            ms: rest_ms,
            taken: OF_REST,
            words: format!("requests wait for followers, of {} brokers", facts.brokers()),
            change: Change::LeaderAcks,
        });
    }
    if facts.has_front() {
        parts.push(Part {
            cause: Cause::Way,
            ms: rest_ms,
            taken: OF_REST,
            words: "requests are on their way through what stands before the brokers".into(),
            change: Change::PastTheFront,
        });
    }
    parts
}

/// Time that a request waits for a flush: the broker's own account, or else the share of the time
/// in which the broker waited for the disk, of that in which there were requests.
fn flush_ms(facts: &Facts<'_>) -> f64 {
    let brokers = || facts.system().filter(|process| process.role == "broker");
    let told = brokers().filter_map(|process| process.flushes).filter(|it| it.count > 0);
    match told.map(|it| float(it.ns) / float(it.count) / 1e6).reduce(f64::max) {
        Some(ms) => ms,
        None if brokers().any(|process| process.flushes.is_some()) => 0.0,
        None => {
            let share = brokers().map(|it| it.disk_wait_share).fold(0.0, f64::max);
            let has_requests = facts.in_flight.min(1.0).max(share);
            if share > 0.0 { share / has_requests * facts.round_trip_ms } else { 0.0 }
        }
    }
}
