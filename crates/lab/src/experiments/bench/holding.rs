//! Record counts that a target reports.

use std::thread;
use std::time::{Duration, Instant};

use super::Path;
use moldau_load::generator::{Measured, Setup};
use moldau_measure::Error;

/// How long the ends of transactions may take to reach all partitions, and how often to look.
const ENDS_PATIENCE: Duration = Duration::from_secs(10);
const ENDS_INTERVAL: Duration = Duration::from_millis(20);

/// How many records the target says that it was given. The ends of transactions, which have
/// offsets too, may be written behind the commits' answers.
pub(in crate::experiments) fn held(
    path: &Path,
    setup: &Setup,
    measured: &Measured,
) -> Result<u64, Error> {
    let acked = measured.acked_records;
    let until = Instant::now() + ENDS_PATIENCE;
    loop {
        let partitions = setup.workload.partitions;
        let offsets = path.control.records_held_by_all(&setup.topics(), partitions)?;
        let Some(made) = &measured.transactions else { return Ok(offsets) };
        let held = without_ends(offsets, acked, made.markers, made.without_records);
        if held == acked || Instant::now() > until {
            return Ok(held);
        }
        thread::sleep(ENDS_INTERVAL);
    }
}

/// The offsets without those of ends of transactions. A target writes an end to all partitions
/// without records or to none: whichever comes closer to what it acknowledged.
fn without_ends(offsets: u64, acked: u64, markers: u64, without_records: u64) -> u64 {
    let to_all = offsets.saturating_sub(markers + without_records);
    let to_written = offsets.saturating_sub(markers);
    if to_all.abs_diff(acked) < to_written.abs_diff(acked) { to_all } else { to_written }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_in_partitions_without_records_are_counted_where_the_target_writes_them() {
        let held = |offsets| without_ends(offsets, 1_200, 36, 3);
        assert_eq!((held(1_239), held(1_236)), (1_200, 1_200));
        // What lacks or is too many still shows.
        assert_eq!((held(1_240), held(1_235)), (1_201, 1_199));
        assert_eq!(held(1_238), 1_199);
    }
}
