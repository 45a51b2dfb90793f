//! Ten consumers at the tail against one, at a given rate and at the highest that ten sustain.

use super::durable::megabytes_per_second;
use super::{PROBE_WINDOW_MS_MAX, Plan, System, in_order};
use crate::experiments::bench::Bench;
use crate::metric::Metric;
use crate::objective::{Bound, Objective};
use moldau_load::generator::Measured;
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::generator_among;
use moldau_measure::statistics::float;

pub(super) const ONE: &str = "one consumer";
pub(super) const TEN: &str = "ten consumers";

/// Consumers beside the one that checks every record.
const FURTHER: u16 = 9;

/// Smallest multiple of the produce rate that ten consumers must get.
const FAN_OUT_MIN: f64 = 5.0;

/// Rates that are tried on the way to the highest: 1.25 to the 12th is 14 times the first.
pub(super) const PROBES_MAX: u32 = 12;

/// Share of everything that the consumers of a sustained rate must have got inside the window; the
/// last few ms of records arrive after it.
const KEPT_UP_MIN: f64 = 0.97;

/// Response time, 99th percentile, of a rate that is sustained: above it records queue.
const RESPONSE_NS_MAX: u64 = 100_000_000;

/// Share of a processor that the busiest client thread may use: the client must not be the limit.
const THREAD_SHARE_MAX: f64 = 0.75;

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &mut System,
) -> Result<Vec<Objective>, Error> {
    let highest = highest_sustained(plan, bench, system)?;
    let mut objectives = Vec::new();
    for (what, workload) in [("", plan.fan_out.clone()), (", the highest", highest)] {
        let rate = megabytes_per_second(&workload);
        let case = format!("Consumers at the tail, {rate:.0} MB/s{what}");
        run_pairs(plan, bench, system, &case, &workload)?;
        objectives.push(Objective {
            name: format!("{case}: consumed of produced"),
            case,
            metric: Metric::FanOut,
            arm: TEN.into(),
            bound: Bound::FigureAtLeast(FAN_OUT_MIN),
        });
    }
    Ok(objectives)
}

fn run_pairs(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &mut System,
    case: &str,
    workload: &Workload,
) -> Result<(), Error> {
    let one = (system.path(ONE)?, workload.clone());
    let ten = (system.path(TEN)?, Workload { tails: FURTHER, ..workload.clone() });
    for pair in 0..plan.fan_out_pairs {
        loop {
            for (path, workload) in in_order([&one, &ten], pair) {
                bench.produce(path, case, pair, workload)?;
                system.broker.check_alive()?;
            }
            if !bench.must_repeat(case, pair) {
                break;
            }
        }
    }
    Ok(())
}

/// The highest of the rates that are tried at which ten consumers keep up. The first counts as
/// sustained: the checks of its runs say so if it is not.
fn highest_sustained(
    plan: &Plan,
    bench: &mut Bench<'_>,
    system: &System,
) -> Result<Workload, Error> {
    let path = system.path(TEN)?;
    let mut sustained = plan.fan_out.clone();
    for _ in 0..PROBES_MAX {
        let Pace::Scheduled { per_second, arrivals } = sustained.pace else { break };
        let pace = Pace::Scheduled { per_second: per_second * 5 / 4, arrivals };
        let faster = Workload { pace, ..sustained.clone() };
        let window_ms = faster.window_ms.min(PROBE_WINDOW_MS_MAX);
        let tried = Workload { tails: FURTHER, window_ms, ..faster.clone() };
        if !is_sustained(&bench.probe(&path, &tried)?, &tried) {
            break;
        }
        sustained = faster;
    }
    Ok(sustained)
}

fn is_sustained(measured: &Measured, workload: &Workload) -> bool {
    let expected = float(measured.produced_records) * f64::from(1 + workload.tails);
    let generator = generator_among(&measured.processes);
    let busiest_ns = generator.map_or(0, |usage| usage.busiest_thread_ns);
    measured.shed == 0
        && measured.answered * 100 >= measured.offered * 99
        && float(measured.consumed_records) >= KEPT_UP_MIN * expected
        && measured.latencies.response.quantile_ns(0.99) <= RESPONSE_NS_MAX
        && float(busiest_ns) <= THREAD_SHARE_MAX * float(measured.window_ns)
}
