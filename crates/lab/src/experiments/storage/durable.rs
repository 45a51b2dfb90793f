//! Produce at a fixed rate against bare loops that write and flush as much, as often: one with
//! nothing between its clock and the disk, one behind a loopback connection.

use std::net::SocketAddr;
use std::time::Instant;

use super::{BROKER, Plan, System};
use crate::checks::{Check, Weight};
use crate::experiments::bench::{Bench, Path};
use crate::experiments::rounds;
use crate::systems::http_get;
use moldau_load::bare_disk::{self, BLOCK, Outcome, Work, write_workload};
use moldau_load::generator::slot_ms;
use moldau_load::run::RunRecord;
use moldau_load::workload::Workload;
use moldau_measure::Error;
use moldau_measure::statistics::{float, median};

/// The bare loop.
pub(super) const LOOP: &str = "bare loop";

/// The same behind a connection.
pub(super) const SERVED: &str = "served loop";

/// Largest ratio of the loop's response time to its write and flush alone, as medians: above it
/// the disk is still at work when the next write falls due, for the broker as for the loop.
const QUEUE_RATIO_MAX: f64 = 1.5;

pub(super) fn run(plan: &Plan, bench: &mut Bench<'_>, system: &mut System) -> Result<(), Error> {
    let case = format!("Produce at {:.0} MB/s, flushed", megabytes_per_second(&plan.durable));
    let path = system.path(BROKER)?;
    let before = Flushes::read(system.admin)?;
    bench.probe(&path, &plan.durable)?;
    let mut flushes = Flushes::read(system.admin)?.since(before);
    let mut queues = Vec::new();
    rounds::each(bench, &case, plan.durable_pairs, 3, |bench, pair| {
        // In odd pairs the loops go first, with what the broker did in the pair before.
        if pair.is_multiple_of(2) {
            flushes = run_broker(plan, bench, system, &path, (&case, pair))?;
            run_loop(plan, bench, (&case, SERVED, pair), flushes)?;
            queues.push(run_loop(plan, bench, (&case, LOOP, pair), flushes)?);
        } else {
            queues.push(run_loop(plan, bench, (&case, LOOP, pair), flushes)?);
            run_loop(plan, bench, (&case, SERVED, pair), flushes)?;
            flushes = run_broker(plan, bench, system, &path, (&case, pair))?;
        }
        Ok(())
    })?;
    bench.note(has_room(&queues));
    Ok(())
}

pub(super) fn megabytes_per_second(workload: &Workload) -> f64 {
    match workload.pace {
        moldau_load::workload::Pace::Scheduled { per_second, .. } => workload.megabytes(per_second),
        _ => 0.0,
    }
}

fn run_broker(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &mut System,
    path: &Path,
    (case, pair): (&str, u32),
) -> Result<Flushes, Error> {
    let before = Flushes::read(system.admin)?;
    let (setup, _) = bench.produce_and_audit(path, case, pair, &plan.durable)?;
    let flushes = Flushes::read(system.admin)?.since(before);
    path.control.delete_topic(&setup.topic)?;
    system.broker.check_alive()?;
    Ok(flushes)
}

/// Runs one of the loops. Gives the ratio of the loop's response time to its write and flush
/// alone, as medians.
fn run_loop(
    plan: &Plan,
    bench: &mut Bench<'_>,
    (case, arm, pair): (&str, &str, u32),
    flushes: Flushes,
) -> Result<f64, Error> {
    bench.step(&format!("{case}: {arm}, {}", pair + 1));
    let (bytes, per_second) = flushes.each(&plan.durable);
    let workload = write_workload(&plan.durable, bytes, per_second);
    bench.rest(workload.window())?;
    let started = Instant::now();
    let work = if arm == SERVED { Work::Serve } else { Work::Write };
    let outcome = bare_disk::measure(&plan.moldau, &plan.bare(work(workload.clone())))?;
    let queue = outcome.latency.as_ref().map_or(f64::INFINITY, |latency| {
        float(latency.response.summary.p50_ns) / float(latency.service.summary.p50_ns.max(1))
    });
    let at_ms = bench.at_ms(started);
    bench.add(record(outcome, workload, (case, arm, pair), at_ms));
    Ok(queue)
}

fn has_room(queues: &[f64]) -> Check {
    let middle = median(queues);
    Check {
        name: "the disk has room at this rate: the bare loop's response of its flush, p50".into(),
        passed: middle <= QUEUE_RATIO_MAX,
        weight: Weight::Note,
        found: format!("{middle:.2} x, median over its runs"),
        demanded: format!("<= {QUEUE_RATIO_MAX} x"),
    }
}

/// A bare loop's run. It counts nothing as produced or consumed by a client, except what it wrote
/// or read in place of one.
pub(super) fn record(
    outcome: Outcome,
    workload: Workload,
    (case, arm, pair): (&str, &str, u32),
    started_ms: u64,
) -> RunRecord {
    let is_write = outcome.latency.is_some();
    let count = outcome.answered;
    RunRecord {
        pair,
        window_start_ms: started_ms + outcome.before_window_ns / 1_000_000,
        window_ns: outcome.window_ns,
        offered: outcome.offered,
        produced_records: if is_write { count } else { 0 },
        produced_batches: if is_write { count } else { 0 },
        answered: count,
        consumed_records: if is_write { 0 } else { count },
        latency: outcome.latency,
        slot_ms: slot_ms(&workload),
        series: outcome.series,
        processes: vec![outcome.process],
        host: outcome.host,
        ..RunRecord::bare(case, arm, workload)
    }
}

/// The journal's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flushes {
    count: u64,
    bytes: u64,
}

impl Flushes {
    fn read(admin: SocketAddr) -> Result<Self, Error> {
        let page = http_get(admin, "/metrics").unwrap_or_default();
        Self::parse(&page).ok_or_else(|| Error::Target {
            action: "reading the broker's counters of its flushes".into(),
            reason: "they are not on its page of metrics".into(),
        })
    }

    fn parse(page: &str) -> Option<Self> {
        Some(Self {
            count: counter(page, "moldau_journal_flushes_total ")?,
            bytes: counter(page, "moldau_journal_bytes_total ")?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            count: self.count.saturating_sub(before.count),
            bytes: self.bytes.saturating_sub(before.bytes),
        }
    }

    /// Bytes of one flush, as whole blocks, and flushes per second while `workload` was offered.
    fn each(self, workload: &Workload) -> (usize, u64) {
        let blocks = (self.bytes / self.count.max(1)).div_ceil(BLOCK as u64).max(1);
        let bytes = usize::try_from(blocks).unwrap_or(1).saturating_mul(BLOCK);
        let offered_ms = workload.warmup_ms + workload.window_ms;
        let per_second = (self.count * 1_000 / offered_ms.max(1)).max(1);
        (bytes, per_second)
    }
}

/// A counter on the broker's page of metrics; `name` ends with the space behind it.
pub(super) fn counter(page: &str, name: &str) -> Option<u64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::Conditions;
    use crate::experiments::storage::Plan;

    #[test]
    fn the_loop_writes_what_a_flush_had_as_often_as_there_were_flushes() {
        let page = "# HELP moldau_journal_flushes Flushes of the journal.\n\
                    # TYPE moldau_journal_flushes counter\n\
                    moldau_journal_flushes_total 9000\n\
                    moldau_journal_bytes_total 184320000\n# EOF\n";
        let flushes = Flushes::parse(page).unwrap();
        assert_eq!(flushes, Flushes { count: 9_000, bytes: 184_320_000 });
        let plan = Plan::usual("moldau".into(), Conditions::of_tests());
        // 20,480 bytes each, over 0.5 s of warm-up and 4 s of window.
        assert_eq!(flushes.each(&plan.durable), (20_480, 2_000));
        let uneven = Flushes { count: 9_000, bytes: 184_329_000 };
        assert_eq!(uneven.each(&plan.durable).0, 24_576);
        assert_eq!(Flushes::default().each(&plan.durable), (BLOCK, 1));
    }

    #[test]
    fn a_full_disk_is_reported() {
        assert!(has_room(&[1.0, 1.1, 40.0]).passed);
        assert!(!has_room(&[1.0, 1.6, 40.0]).passed);
    }

    #[test]
    fn a_page_without_the_counters_is_not_read_as_zero() {
        assert_eq!(Flushes::parse("moldau_journal_flushes_total 5\n"), None);
        assert_eq!(Flushes::parse(""), None);
    }
}
