//! Planted bottlenecks: systems and loads whose limit is known by the way they are made, and what
//! else is done to them while they run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::signals::Signals;
use crate::experiments::hogs::hogs;
use crate::experiments::survey::Settings;
use crate::explain::{About, Cause};
use crate::systems::{Process, Replacement, RunningSystem, SystemFile};
use moldau_measure::Error;
use moldau_measure::control_group::ControlGroup;

/// The list, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottlenecks {
    /// Systems that are part of the list, by names of its own.
    pub systems: BTreeMap<String, SystemFile>,
    /// What is planted.
    pub plants: Vec<Planted>,
}

/// One bottleneck.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// What is done, in a few words.
    pub name: String,
    /// What limits the run then.
    pub cause: Cause,
    /// What is explained.
    pub about: About,
    /// The system.
    pub system: PlantedSystem,
    /// The load.
    #[serde(default)]
    pub load: Settings,
    /// What is done to it while it runs.
    #[serde(default)]
    pub interference: Option<Interference>,
}

/// A system of the list, and how it differs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlantedSystem {
    /// Its name.
    pub name: String,
    /// Texts that are replaced in its commands and files.
    #[serde(default)]
    pub with: Vec<Replacement>,
}

/// What is done to a system or its machine from outside.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interference {
    /// Its brokers are stopped for so many of so many milliseconds.
    Stopped {
        /// How long at a time.
        ms: u64,
        /// How long until the next.
        of_ms: u64,
    },
    /// So many busy processes for each processor.
    BusyProcesses(usize),
    /// Its brokers may use this share of one processor.
    ProcessorShare(f64),
}

impl Bottlenecks {
    /// The system of a plant.
    ///
    /// # Errors
    /// [`Error::Plan`] for a name that is none, or a text that stands nowhere.
    pub fn system(&self, plant: &Planted) -> Result<SystemFile, Error> {
        let PlantedSystem { name, with } = &plant.system;
        let unknown = || Error::Plan(format!("{}: {name:?} is none of the systems", plant.name));
        let system = self.systems.get(name).ok_or_else(unknown)?;
        if with.is_empty() {
            return Ok(system.clone());
        }
        let nowhere = || Error::Plan(format!("{}: a replaced text stands nowhere", plant.name));
        system.replaced(with).ok_or_else(nowhere)
    }
}

/// An interference at work, until it is dropped.
pub(super) enum Interfering {
    /// Signals come.
    Signals { _sending: Signals },
    /// Processes are busy.
    Busy { _hogs: Vec<Process> },
    /// A control group limits the brokers all the while.
    Limited,
}

impl Interference {
    /// What is done to the system for as long as it runs.
    pub(super) fn limit(self, system: &RunningSystem) -> Result<Vec<ControlGroup>, Error> {
        let Self::ProcessorShare(share) = self else { return Ok(Vec::new()) };
        brokers(system).into_iter().map(|pid| ControlGroup::around(pid, share)).collect()
    }

    /// What is done while a run goes on.
    pub(super) fn begin(
        self,
        system: &RunningSystem,
        directory: &std::path::Path,
    ) -> Result<Interfering, Error> {
        match self {
            Self::Stopped { ms, of_ms } => {
                let running = Duration::from_millis(of_ms.saturating_sub(ms).max(1));
                let stopped = Duration::from_millis(ms);
                let signals = Signals::stop_and_go(brokers(system), stopped, running)?;
                Ok(Interfering::Signals { _sending: signals })
            }
            Self::BusyProcesses(each) => {
                let processors =
                    std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
                Ok(Interfering::Busy { _hogs: hogs(processors * each, directory)? })
            }
            Self::ProcessorShare(_) => Ok(Interfering::Limited),
        }
    }
}

fn brokers(system: &RunningSystem) -> Vec<u32> {
    let all = system.accounted().into_iter();
    all.filter(|(role, _)| role == "broker").map(|(_, pid)| pid).collect()
}
