//! Systems of an experiment file that run, and those that cannot.

use std::path::{Path as Directory, PathBuf};

use super::bench::Path;
use crate::checks::{Check, Weight};
use crate::error::Error;
use crate::punctuality::FOREIGN_SHARE_MAX;
use crate::statistics::median;
use crate::survey::LeftOut;
use crate::systems::{Installations, RunningSystem, SystemFile};

/// A system that runs.
pub(super) struct Running {
    pub(super) path: Path,
    pub(super) system: RunningSystem,
    directory: PathBuf,
}

impl Running {
    /// Starts a system in a directory of its own below `work_directory`.
    pub(super) fn start(
        work_directory: &Directory,
        installations: &Installations,
        name: &str,
        file: &SystemFile,
    ) -> Result<Self, Error> {
        // A name may be a path, which would be that of another directory.
        let directory = work_directory.join(name.replace('/', "-"));
        std::fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let system = file.start(installations, &directory)?;
        let path = Path::to_system(name, &system)?;
        path.control.wait_for_brokers(file.brokers)?;
        Ok(Self { path, system, directory })
    }

    /// Ends the system and removes its data, so that it may be started once more.
    pub(super) fn stop(self) -> Result<(), Error> {
        self.system.stop()?;
        std::fs::remove_dir_all(&self.directory)
            .map_err(Error::machine(format!("removing {}", self.directory.display())))
    }
}

/// A system with its name.
pub(super) type Named<'a> = (&'a str, &'a SystemFile);

/// The systems that can be started, and why the others cannot.
///
/// # Errors
/// [`Error::Plan`] where none can.
pub(super) fn split<'a>(
    names: &'a [String],
    systems: &'a [SystemFile],
    installations: &Installations,
) -> Result<(Vec<Named<'a>>, Vec<LeftOut>), Error> {
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for (name, system) in names.iter().zip(systems) {
        match system.missing(installations) {
            None => there.push((name.as_str(), system)),
            Some(reason) => {
                left_out.push(LeftOut { system: name.clone(), reason: reason.into() });
            }
        }
    }
    match left_out.first() {
        Some(first) if there.is_empty() => {
            Err(Error::Plan(format!("{}: {}", first.system, first.reason)))
        }
        _ => Ok((there, left_out)),
    }
}

/// What the reader is told of a system that was not there.
pub(super) fn absence(LeftOut { system, reason }: &LeftOut) -> Check {
    Check {
        name: format!("system {system}"),
        passed: false,
        weight: Weight::Note,
        found: format!("left out: {reason}"),
        demanded: "there".into(),
    }
}

/// Whoever waits for answers is slowed by all else that runs on the machine, and no lag shows it.
/// Takes the share of the machine that went elsewhere in each run of which that is known.
pub(super) fn machine_is_quiet(shares: &[f64]) -> Check {
    let found = median(shares);
    Check {
        name: "share of the machine that other processes took, median run".into(),
        passed: found < FOREIGN_SHARE_MAX,
        weight: Weight::Validity,
        found: match shares.is_empty() {
            true => "not known of a cluster that runs already".into(),
            false => format!("{:.0} %", found * 100.0),
        },
        demanded: format!("< {:.0} %", FOREIGN_SHARE_MAX * 100.0),
    }
}
