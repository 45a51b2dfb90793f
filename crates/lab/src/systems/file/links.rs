//! The links of a system file.

use std::net::SocketAddr;

use serde::Deserialize;

use super::{BROKER_ROLE, SystemFile};
use crate::systems::Link;
use moldau_measure::Error;

/// Most links of a system: three of each broker, and some to spare.
const LINKS_MAX: usize = 12;

/// A connection of a process that can be disturbed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFile {
    /// The process whose connection it is: a broker or a standby of the database.
    pub of: String,
    /// What is at the other end.
    pub with: LinkEnd,
    /// Where connections are made instead.
    pub listen: String,
    /// Where they lead.
    pub to: String,
    /// Where they lead once the standby has taken the place of the database.
    #[serde(default)]
    pub then_to: Option<String>,
}

/// What a process has connections with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkEnd {
    /// Clients, which connect to it.
    Clients,
    /// The database.
    Database,
    /// The store.
    Store,
    /// The database whose standby it is.
    Primary,
}

/// A link of a system that runs.
#[derive(Debug)]
pub(super) struct RunningLink {
    /// The place of its broker among the brokers.
    pub(super) broker: Option<usize>,
    pub(super) with: LinkEnd,
    pub(super) link: Link,
    pub(super) then_to: Option<SocketAddr>,
}

impl SystemFile {
    /// Refuses links that cannot be.
    pub(super) fn check_links(&self) -> Result<(), Error> {
        if self.links.len() > LINKS_MAX {
            return Err(Error::Plan(format!("links: at most {LINKS_MAX} of them")));
        }
        let is_there = |name: &str| self.processes.iter().any(|it| it.name == name);
        match self.links.iter().find(|link| !is_there(&link.of)) {
            Some(LinkFile { of, .. }) => Err(Error::Plan(format!("links: {of:?} is no process"))),
            None => Ok(()),
        }
    }

    /// Starts all of them.
    pub(super) fn start_links(
        &self,
        expand: &dyn Fn(&str) -> Result<String, Error>,
    ) -> Result<Vec<RunningLink>, Error> {
        let brokers = || self.processes.iter().filter(|process| process.role == BROKER_ROLE);
        let mut started = Vec::new();
        let address = |key: &str, text: &str| address(key, &expand(text)?);
        for LinkFile { of, with, listen, to, then_to } in &self.links {
            let broker = brokers().position(|it| it.name == *of);
            let then_to = then_to.as_ref().map(|text| address("then_to", text)).transpose()?;
            let link = Link::start(address("listen", listen)?, address("to", to)?)?;
            started.push(RunningLink { broker, with: *with, link, then_to });
        }
        Ok(started)
    }
}

/// The address that a key of the file names.
pub(super) fn address(key: &str, text: &str) -> Result<SocketAddr, Error> {
    let refused = |_| Error::Plan(format!("{key}: {text:?} is not an address, IP:PORT"));
    text.parse().map_err(refused)
}
