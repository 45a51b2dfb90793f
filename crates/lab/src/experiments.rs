//! The questions that the laboratory answers, each as a plan and a function that runs it.
//!
//! Every experiment starts its systems, runs its cases in interleaved pairs on a topic of its own
//! each, audits every record, and ends in one [`RunResult`] with its verdict.

pub mod administration;
pub mod asked;
mod bench;
pub mod ceiling;
mod connecting;
mod control;
pub mod cores;
pub mod explain;
pub mod faults;
pub mod file;
pub mod fronts;
mod hogs;
pub mod imports;
pub mod littles_law;
pub mod overhead;
pub mod partitions;
mod rounds;
mod running;
pub mod self_test;
pub mod side_by_side;
pub mod soak;
pub mod storage;
pub mod survey;
pub mod threads;

use std::path::Path;

use crate::error::Error;
use crate::report;
use crate::result::RunResult;
use crate::sittings::Sittings;

/// Hears how far an experiment is.
pub trait Progress {
    /// Step `done` of `total` begins; `what` says what it does.
    fn step(&mut self, done: u32, total: u32, what: &str);

    /// The files of an experiment that may be interrupted and go on, where it has such.
    fn sittings(&mut self) -> Option<&mut Sittings> {
        None
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&mut self, _done: u32, _total: u32, _what: &str) {}
}

/// Writes `result.json`, `report.html` and `report.md` into `directory`, which is made, its
/// profiles, and for other tools `latency.hlog` and `series.csv` where the result has such.
///
/// # Errors
/// [`Error::Machine`] when a file cannot be written.
pub fn save(result: &RunResult, directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory)
        .map_err(Error::machine(format!("making {}", directory.display())))?;
    let files = [
        ("result.json", Some(result.to_json()?)),
        ("report.html", Some(report::html(result)?)),
        ("report.md", Some(report::markdown(result))),
        ("latency.hlog", report::histogram_log(result)),
        ("series.csv", report::series_csv(result)),
    ];
    for (name, content) in files {
        let path = directory.join(name);
        if let Some(content) = content {
            std::fs::write(&path, content)
                .map_err(Error::machine(format!("writing {}", path.display())))?;
        }
    }
    result.profiles.as_ref().map_or(Ok(()), |profiles| profiles.write(directory))
}
