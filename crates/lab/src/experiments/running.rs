//! Systems of an experiment file that run, and those that cannot.

use std::path::PathBuf;

use super::Conditions;
use super::bench::Path;
use super::rounds::Subject;
use crate::checks::{Check, Weight};
use crate::punctuality::FOREIGN_SHARE_MAX;
use crate::result::Arm;
use crate::survey::LeftOut;
use crate::systems::{Installations, RunningSystem, SystemFile};
use moldau_measure::Error;
use moldau_measure::statistics::median;

/// A system that runs.
pub(super) struct Running {
    pub(super) path: Path,
    pub(super) system: RunningSystem,
    pub(super) directory: PathBuf,
}

impl Running {
    /// Starts a system in a directory of its own.
    pub(super) fn start(
        conditions: &Conditions,
        installations: &Installations,
        name: &str,
        file: &SystemFile,
    ) -> Result<Self, Error> {
        let directory = conditions.directory(name)?;
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

impl Subject for Running {
    fn path(&self) -> &Path {
        &self.path
    }

    fn check(&mut self) -> Result<(), Error> {
        self.system.check_alive()
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
    if let Some(twin) = twin(names) {
        return Err(Error::Plan(format!("the system {twin} is there twice")));
    }
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for (name, system) in names.iter().zip(systems) {
        let through = (!system.links.is_empty()).then_some(THROUGH_THE_LABORATORY);
        match through.or_else(|| system.missing(installations)) {
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

/// Why a system with links is left out.
const THROUGH_THE_LABORATORY: &str =
    "its connections go through the laboratory, so that it can only be checked";

/// The first of them that is there a second time.
pub(super) fn twin<T: PartialEq>(all: &[T]) -> Option<&T> {
    let mut later = all.iter().enumerate();
    later.find_map(|(at, one)| all.get(..at)?.contains(one).then_some(one))
}

/// As [`split`], without clusters of other users: the laboratory measures and kills only its own
/// processes.
///
/// # Errors
/// [`Error::Plan`] where nothing is left.
pub(super) fn split_own<'a>(
    names: &'a [String],
    systems: &'a [SystemFile],
    installations: &Installations,
) -> Result<(Vec<Named<'a>>, Vec<LeftOut>), Error> {
    let (there, mut left_out) = split(names, systems, installations)?;
    let (own, others): (Vec<Named<'a>>, Vec<_>) =
        there.into_iter().partition(|(_, system)| !system.processes.is_empty());
    left_out.extend(others.into_iter().map(|(name, _)| LeftOut {
        system: name.into(),
        reason: "it has no process that the laboratory started".into(),
    }));
    if own.is_empty() {
        return Err(Error::Plan("no system has a process that the laboratory starts".into()));
    }
    Ok((own, left_out))
}

/// The arms of systems.
pub(super) fn arms(systems: &[Named<'_>]) -> Vec<Arm> {
    systems.iter().map(|(name, system)| Arm::of(name, system.description.trim())).collect()
}

/// The warning about a system that was left out.
pub(super) fn absence(LeftOut { system, reason }: &LeftOut) -> Check {
    Check {
        name: format!("system {system}"),
        passed: false,
        weight: Weight::Note,
        found: format!("left out: {reason}"),
        demanded: "there".into(),
    }
}

/// Other processes on the machine slow a closed loop without any visible lag. Takes the share of
/// the machine that they used in each run, where it is known.
pub(super) fn machine_is_quiet(shares: &[f64]) -> Check {
    let found = median(shares);
    Check {
        name: "share of the machine that others took, the hypervisor too, median run".into(),
        passed: found < FOREIGN_SHARE_MAX,
        weight: Weight::Validity,
        found: match shares.is_empty() {
            true => "not known of a cluster that runs already".into(),
            false => format!("{:.0} %", found * 100.0),
        },
        demanded: format!("< {:.0} %", FOREIGN_SHARE_MAX * 100.0),
    }
}
