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

use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::report;
use crate::result::RunResult;
use crate::sittings::Sittings;
use moldau_measure::Error;

pub use self::control::{delete_left_topics, refuse_topics};

/// Under what conditions an experiment is carried out, whatever it asks.
#[derive(Clone)]
pub struct Conditions {
    /// Version of the binary, for the report.
    pub version: String,
    /// Where the systems keep data and logs; must exist. The caller removes it.
    pub work_directory: PathBuf,
    /// Seed of everything random.
    pub seed: u64,
    /// Whether this is the short form.
    pub quick: bool,
}

impl Conditions {
    /// Makes the directory of a system, whose name may be the path of a file.
    fn directory(&self, name: &str) -> Result<PathBuf, Error> {
        let directory = self.work_directory.join(name.replace('/', "-"));
        std::fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        Ok(directory)
    }

    /// Those of the short form, of which nothing is carried out.
    #[cfg(test)]
    pub(crate) fn of_tests() -> Self {
        Self { version: "0".into(), work_directory: "work".into(), seed: 1, quick: true }
    }
}

impl fmt::Debug for Conditions {
    /// Tells what is the same in all sittings of an experiment, of which each has a directory of
    /// its own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("Conditions");
        told.field("version", &self.version).field("seed", &self.seed).field("quick", &self.quick);
        told.finish_non_exhaustive()
    }
}

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

/// Writes the reports of a result, and then `result.json`: where it is, the rest is.
///
/// # Errors
/// [`Error::Machine`] when a file cannot be written.
pub fn save(result: &RunResult, directory: &Path) -> Result<(), Error> {
    save_reports(result, directory)?;
    write_whole(&directory.join("result.json"), &result.to_json()?)
}

/// Writes `report.html` and `report.md` into `directory`, which is made, the profiles of the
/// result, and for other tools `latency.hlog` and `series.csv` where it has such.
///
/// # Errors
/// [`Error::Machine`] when a file cannot be written.
pub fn save_reports(result: &RunResult, directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory)
        .map_err(Error::machine(format!("making {}", directory.display())))?;
    let files = [
        ("report.html", Some(report::html(result)?)),
        ("report.md", Some(report::markdown(result))),
        ("latency.hlog", report::histogram_log(result)),
        ("series.csv", report::series_csv(result)),
    ];
    for (name, content) in files {
        let path = directory.join(name);
        if let Some(content) = content {
            write_whole(&path, &content)?;
        }
    }
    result.profiles.as_ref().map_or(Ok(()), |profiles| profiles.write(directory))
}

/// Writes a file so that under its name there is all of it, or what was there before.
fn write_whole(path: &Path, content: &str) -> Result<(), Error> {
    let unfinished = path.with_added_extension("unfinished");
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(Error::machine(format!("writing {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_whole_leaves_what_was_there() {
        let out = tempfile::tempdir().unwrap();
        let path = out.path().join("result.json");
        write_whole(&path, "first").unwrap();
        // Nothing can be written where the unfinished file would be.
        std::fs::create_dir(out.path().join("result.json.unfinished")).unwrap();
        assert!(matches!(write_whole(&path, "second"), Err(Error::Machine { .. })));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "first");
    }
}
