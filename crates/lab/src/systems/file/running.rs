//! The processes of a system that was started from its file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use moldau_client::Security;
use moldau_load::security::Credentials;
use moldau_measure::Error;
use rustix::process::Signal;

use super::links::RunningLink;
use super::{BROKER_ROLE, DATABASE_ROLE, LinkEnd, Stop, StopSignal};
use crate::systems::temporary::TemporaryDirectory;
use crate::systems::{Link, Process, prepare};

/// A system that runs; its processes end when it is dropped.
#[derive(Debug)]
pub struct RunningSystem {
    pub(super) bootstrap: String,
    pub(super) bootstrap_only: bool,
    pub(super) security: Security,
    pub(super) credentials: Credentials,
    pub(super) processes: Vec<(Process, Stop)>,
    pub(super) links: Vec<RunningLink>,
    /// What lets the standby take the place of the database, and the directory of its process.
    pub(super) promotion: Option<(Vec<String>, PathBuf)>,
    /// Removed once all processes have ended.
    pub(super) _temporary: Option<TemporaryDirectory>,
}

impl RunningSystem {
    /// Where clients connect.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Whether they reach every broker there.
    #[must_use]
    pub fn bootstrap_only(&self) -> bool {
        self.bootstrap_only
    }

    /// How they secure their connections.
    #[must_use]
    pub fn security(&self) -> &Security {
        &self.security
    }

    /// What that is made from.
    #[must_use]
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// What is accounted: role and process id of each process.
    #[must_use]
    pub fn accounted(&self) -> Vec<(String, u32)> {
        self.processes.iter().map(|(it, _)| (it.role().to_string(), it.pid())).collect()
    }

    /// The admin ports of its processes, by process id.
    #[must_use]
    pub fn admin_ports(&self) -> Vec<(u32, SocketAddr)> {
        self.processes.iter().filter_map(|(process, _)| process.admin_port()).collect()
    }

    /// How many brokers it has.
    #[must_use]
    pub fn brokers(&self) -> usize {
        self.processes.iter().filter(|(process, _)| process.role() == BROKER_ROLE).count()
    }

    /// Its first broker.
    ///
    /// # Errors
    /// [`Error::Plan`] where it has none.
    pub fn broker_mut(&mut self) -> Result<&mut Process, Error> {
        self.broker_at_mut(0)
    }

    /// One of its brokers, in the order of the file.
    ///
    /// # Errors
    /// [`Error::Plan`] where it has not so many.
    pub fn broker_at_mut(&mut self, place: usize) -> Result<&mut Process, Error> {
        self.process_mut(BROKER_ROLE, place)
    }

    /// Its database.
    ///
    /// # Errors
    /// [`Error::Plan`] where it has none.
    pub fn database_mut(&mut self) -> Result<&mut Process, Error> {
        self.process_mut(DATABASE_ROLE, 0)
    }

    fn process_mut(&mut self, role: &str, place: usize) -> Result<&mut Process, Error> {
        let processes = self.processes.iter_mut().map(|(process, _)| process);
        let found = processes.filter(|process| process.role() == role).nth(place);
        let none = || Error::Plan(format!("the system has no process of the role {role}"));
        found.ok_or_else(none)
    }

    /// Its links with parts of a kind, those of one broker or of all.
    pub fn links(&self, with: LinkEnd, of: Option<usize>) -> impl Iterator<Item = &Link> {
        let is_wanted =
            move |it: &&RunningLink| it.with == with && (of.is_none() || it.broker == of);
        self.links.iter().filter(is_wanted).map(|it| &it.link)
    }

    /// Whether a standby can take the place of the database, which it can once.
    ///
    /// What waits for the standby while the database crashes is committed when that is back, so a
    /// standby without a connection may lack what others have read.
    #[must_use]
    pub fn can_fail_over(&self) -> bool {
        self.promotion.is_some() && self.links(LinkEnd::Primary, None).all(Link::is_used)
    }

    /// Ends the database at once; its standby takes its place.
    ///
    /// # Errors
    /// [`Error::Plan`] without a standby, and those of the command that promotes it.
    pub fn fail_over(&mut self) -> Result<(), Error> {
        let none = || Error::Plan("the system has no standby".into());
        let (command, directory) = self.promotion.take().ok_or_else(none)?;
        let is_database = |(process, _): &(Process, Stop)| process.role() == DATABASE_ROLE;
        let database = self.processes.iter().position(is_database).ok_or_else(none)?;
        let (database, stop) = self.processes.remove(database);
        database.stop_by(Signal::QUIT, Duration::from_millis(stop.within_ms))?;
        let (program, arguments) = command.split_first().ok_or_else(none)?;
        let arguments = arguments.iter().map(Into::into).collect();
        prepare("promotion".into(), program.as_ref(), arguments, &directory)?;
        for it in &self.links {
            if let Some(then_to) = it.then_to {
                it.link.lead_to(then_to);
            }
        }
        Ok(())
    }

    /// Waits until all of it is ready again.
    ///
    /// # Errors
    /// [`Error::Ended`] and [`Error::NotReady`] when a process does not become so.
    pub fn wait_until_ready(&mut self) -> Result<(), Error> {
        self.processes.iter_mut().try_for_each(|(process, _)| process.wait_until_back())
    }

    /// Finds out whether all of it still runs.
    ///
    /// # Errors
    /// [`Error::Ended`] when a process does not.
    pub fn check_alive(&mut self) -> Result<(), Error> {
        self.processes.iter_mut().try_for_each(|(process, _)| process.check_alive())
    }

    /// Ends the processes as their file says, the last first.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub fn stop(mut self) -> Result<(), Error> {
        while let Some((process, stop)) = self.processes.pop() {
            process.stop_by(stop.signal.number(), Duration::from_millis(stop.within_ms))?;
        }
        Ok(())
    }
}

impl Drop for RunningSystem {
    /// What was started last needs what was started before.
    fn drop(&mut self) {
        while let Some((process, stop)) = self.processes.pop() {
            let within = Duration::from_millis(stop.within_ms);
            if let Err(error) = process.stop_by(stop.signal.number(), within) {
                tracing::warn!(%error, "a process under test may still run");
            }
        }
    }
}

impl StopSignal {
    fn number(self) -> Signal {
        match self {
            Self::Term => Signal::TERM,
            Self::Int => Signal::INT,
            Self::Quit => Signal::QUIT,
            Self::Kill => Signal::KILL,
        }
    }
}
