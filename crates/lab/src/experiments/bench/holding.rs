//! What a target says that it holds.

use std::thread;
use std::time::{Duration, Instant};

use super::Path;
use moldau_load::generator::{Measured, Setup};
use moldau_measure::Error;

/// How long the ends of transactions may take to reach all partitions, and how often to look.
const ENDS_PATIENCE: Duration = Duration::from_secs(10);
const ENDS_INTERVAL: Duration = Duration::from_millis(20);

/// How many records the target says that it was given. The ends of transactions, which have
/// offsets too, are written behind the commits' answers.
pub(in crate::experiments) fn held(
    path: &Path,
    setup: &Setup,
    measured: &Measured,
) -> Result<u64, Error> {
    let ends = measured.transactions.as_ref().map_or(0, |made| made.markers);
    let until = Instant::now() + ENDS_PATIENCE;
    loop {
        let partitions = setup.workload.partitions;
        let offsets = path.control.records_held_by_all(&setup.topics(), partitions)?;
        let is_whole = offsets >= measured.acked_records + ends;
        if ends == 0 || is_whole || Instant::now() > until {
            return Ok(offsets.saturating_sub(ends));
        }
        thread::sleep(ENDS_INTERVAL);
    }
}
