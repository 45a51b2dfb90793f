//! Ten consumers at the tail against one, at a given rate.

use super::durable::megabytes_per_second;
use super::{Plan, System, in_order};
use crate::experiments::bench::Bench;
use crate::experiments::rounds;
use moldau_load::workload::Workload;
use moldau_measure::Error;

pub(super) const ONE: &str = "one consumer";
pub(super) const TEN: &str = "ten consumers";

/// Consumers beside the one that checks every record.
const FURTHER: u16 = 9;

/// Pairs of one and ten consumers.
pub(super) fn run(plan: &Plan, bench: &mut Bench<'_>, system: &mut System) -> Result<(), Error> {
    let workload = &plan.fan_out;
    let case = &format!("Consumers at the tail, {:.0} MB/s", megabytes_per_second(workload));
    let one = (system.path(ONE)?, workload.clone());
    let ten = (system.path(TEN)?, Workload { tails: FURTHER, ..workload.clone() });
    rounds::each(bench, case, plan.fan_out_pairs, 2, |bench, pair| {
        for (path, workload) in in_order([&one, &ten], pair) {
            bench.produce(path, case, pair, workload)?;
            system.broker.check_alive()?;
        }
        Ok(())
    })
}
