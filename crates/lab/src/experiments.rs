//! The questions that the laboratory answers, each as a plan and a function that runs it.
//!
//! Every experiment starts its systems, runs its cases in interleaved pairs on a topic of its own
//! each, audits every record, and ends in one [`RunResult`](crate::result::RunResult) with its
//! verdict.

pub mod administration;
pub mod asked;
mod bench;
pub mod ceiling;
pub mod check;
pub mod compression;
mod connecting;
mod control;
pub mod cores;
pub mod explain;
pub mod faults;
pub mod file;
pub mod fronts;
mod hogs;
pub mod imports;
pub mod latency;
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
use std::path::PathBuf;

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

    /// Conditions of the short form, for plans that are not carried out.
    #[cfg(test)]
    pub(crate) fn of_tests() -> Self {
        Self { version: "0".into(), work_directory: "work".into(), seed: 1, quick: true }
    }
}

impl fmt::Debug for Conditions {
    /// Prints what is equal in all sittings of an experiment. Each sitting has its own directory,
    /// which is left out.
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
