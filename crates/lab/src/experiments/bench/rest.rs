//! Waits until the machine is idle. After its run a system may still delete the files of its topics
//! or compile code, which would take processors from the next run. Its dirty pages would be written
//! in the window of the next run, and delay the flushes there.

use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::Duration;

use moldau_measure::Error;
use moldau_measure::cpu::{CpuMeter, HostUsage};

/// Share of the machine that is busy at most while it rests: systems without a load take some.
const BUSY_SHARE_MAX: f64 = 0.1;

/// How long to look for that, and how often before the load comes anyway.
const LOOK: Duration = Duration::from_millis(100);
const LOOKS_MAX: u128 = 30;

impl super::Bench<'_> {
    /// Waits as ahead of each run that is measured: for what is measured by other means in such a
    /// window.
    ///
    /// # Errors
    /// Those of [`wait`].
    pub(in crate::experiments) fn rest(&self, window: Duration) -> Result<(), Error> {
        wait(&self.conditions.work_directory, looks(window))
    }
}

/// How often to look ahead of a window: the wait is no longer than what it protects.
fn looks(window: Duration) -> u128 {
    (window.as_millis() / LOOK.as_millis()).clamp(1, LOOKS_MAX)
}

/// Waits until the machine rests, or for as long as all looks take, and until all is written to the
/// file system of `directory`.
///
/// # Errors
/// [`Error::Machine`] where its counters cannot be read, or the file system fails.
fn wait(directory: &Path, looks: u128) -> Result<(), Error> {
    let rests = wait_by(looks, || {
        let meter = CpuMeter::start(&[])?;
        thread::sleep(LOOK);
        Ok(meter.stop()?.1)
    })?;
    if !rests {
        tracing::debug!("the machine does not rest; the load is offered anyway");
    }
    write_out(directory)
}

/// Waits until all that was left in the page cache for the file system of `directory` is written.
fn write_out(directory: &Path) -> Result<(), Error> {
    let written = File::open(directory).and_then(|opened| Ok(rustix::fs::syncfs(opened)?));
    written.map_err(Error::machine(format!("writing what waits for {}", directory.display())))
}

/// Looks until the machine rests; whether it does in the end.
fn wait_by(looks: u128, mut look: impl FnMut() -> Result<HostUsage, Error>) -> Result<bool, Error> {
    for _ in 0..looks {
        if look()?.busy_share() < BUSY_SHARE_MAX {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(percent: u64) -> HostUsage {
        HostUsage { busy_ticks: percent, idle_ticks: 100 - percent, ..HostUsage::default() }
    }

    /// Looks at a machine that was busy like this: whether it rests, and after how many looks.
    fn waited(percents: impl Iterator<Item = u64>) -> (bool, u128) {
        let (mut percents, mut looks) = (percents, 0);
        let rests = wait_by(LOOKS_MAX, || {
            looks += 1;
            Ok(busy(percents.next().unwrap()))
        });
        (rests.unwrap(), looks)
    }

    #[test]
    fn a_load_waits_for_rest_but_not_for_ever() {
        assert_eq!(waited([3].into_iter()), (true, 1));
        assert_eq!(waited([90, 40, 10, 9, 50].into_iter()), (true, 4));
        assert_eq!(waited(std::iter::repeat(10)), (false, LOOKS_MAX));
    }

    #[test]
    fn a_wait_is_no_longer_than_the_window() {
        assert_eq!(
            [0, 250, 2_000, 3_600_000].map(Duration::from_millis).map(looks),
            [1, 2, 20, LOOKS_MAX]
        );
    }

    #[test]
    fn unreadable_counters_are_reported() {
        let failed = wait_by(1, || Err(Error::Plan("no counters".into())));
        assert!(failed.is_err());
    }

    #[test]
    fn a_missing_directory_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        write_out(directory.path()).unwrap();
        let gone = directory.path().join("gone");
        let error = write_out(&gone).unwrap_err().to_string();
        assert!(error.contains(gone.to_str().unwrap()), "{error}");
    }
}
