//! The links of a system file.

use std::net::SocketAddr;

use serde::Deserialize;

use super::{BROKER_ROLE, SystemFile};
use crate::systems::Link;
use moldau_measure::Error;

/// Most links of a system: three of each broker, and some to spare.
const LINKS_MAX: usize = 12;

/// A connection of a broker that can be disturbed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFile {
    /// The broker's name.
    pub broker: String,
    /// What is at the other end.
    pub with: LinkEnd,
    /// Where connections are made instead.
    pub listen: String,
    /// Where they lead.
    pub to: String,
}

/// What a broker has connections with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkEnd {
    /// Clients, which connect to it.
    Clients,
    /// The database.
    Database,
    /// The store.
    Store,
}

impl SystemFile {
    /// Refuses links that cannot be.
    pub(super) fn check_links(&self) -> Result<(), Error> {
        if self.links.len() > LINKS_MAX {
            return Err(Error::Plan(format!("links: at most {LINKS_MAX} of them")));
        }
        let is_broker =
            |name: &str| self.processes.iter().any(|it| it.role == BROKER_ROLE && it.name == name);
        match self.links.iter().find(|link| !is_broker(&link.broker)) {
            Some(LinkFile { broker, .. }) => {
                Err(Error::Plan(format!("links: {broker:?} is no process of the role broker")))
            }
            None => Ok(()),
        }
    }

    /// Starts all of them; gives each with the place of its broker among the brokers.
    pub(super) fn start_links(
        &self,
        expand: &dyn Fn(&str) -> Result<String, Error>,
    ) -> Result<Vec<(usize, LinkEnd, Link)>, Error> {
        let brokers = || self.processes.iter().filter(|process| process.role == BROKER_ROLE);
        let mut started = Vec::new();
        for LinkFile { broker, with, listen, to } in &self.links {
            let place = brokers().position(|it| it.name == *broker).unwrap_or_default();
            let [listen, to] = [expand(listen)?, expand(to)?];
            let link = Link::start(address("listen", &listen)?, address("to", &to)?)?;
            started.push((place, *with, link));
        }
        Ok(started)
    }
}

/// The address that a key of the file names.
pub(super) fn address(key: &str, text: &str) -> Result<SocketAddr, Error> {
    let refused = |_| Error::Plan(format!("{key}: {text:?} is not an address, IP:PORT"));
    text.parse().map_err(refused)
}
