//! How clients tell the brokers of a virtual cluster apart: by a port for each, or by a host name
//! for each.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use moldau_net::proxy_protocol::Mode;
use moldau_net::{Error, Listener, Phase, Shutdown};
use moldau_threads::{Mutex, MutexGuard};

use crate::config::Gateway;

/// What stands for the id of a broker in its host name.
const NODE_ID: &str = "$(nodeId)";

/// Which server a session leads to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Destination {
    /// Any bootstrap server.
    Bootstrap,
    /// The broker with this node id.
    Broker(i32),
}

/// The gateway of a virtual cluster at work.
#[derive(Debug)]
pub(crate) enum Entrance {
    Ports { ports: Arc<Ports>, advertised_host: Option<String> },
    Sni { hosts: Hosts, advertised_port: u16 },
}

impl Entrance {
    /// For a gateway whose listener, where clients connect first, is bound to `bound`. Ports stay
    /// as they are if they are those of `before`.
    pub(crate) fn new(
        gateway: &Gateway,
        bound: SocketAddr,
        proxy_protocol: Mode,
        before: Option<&Self>,
    ) -> Result<Self, &'static str> {
        match gateway {
            Gateway::Ports { advertised_host, broker_port_start, .. } => {
                let ports = match before {
                    Some(Self::Ports { ports, .. })
                        if (ports.address, ports.start) == (bound.ip(), *broker_port_start) =>
                    {
                        Arc::clone(ports)
                    }
                    _ => Arc::new(Ports::new(bound.ip(), *broker_port_start, proxy_protocol)),
                };
                Ok(Self::Ports { ports, advertised_host: advertised_host.clone() })
            }
            Gateway::Sni { bootstrap_host, broker_host, advertised_port, .. } => {
                let hosts = Hosts::parse(bootstrap_host, broker_host)?;
                Ok(Self::Sni { hosts, advertised_port: advertised_port.unwrap_or(bound.port()) })
            }
        }
    }

    /// Stops accepting at the ports of brokers, unless `successor` goes on with them.
    pub(crate) fn close(&self, successor: Option<&Self>) {
        let Self::Ports { ports, .. } = self else { return };
        if !matches!(successor, Some(Self::Ports { ports: kept, .. }) if Arc::ptr_eq(ports, kept)) {
            ports.closed.advance(Phase::Stopped);
        }
    }
}

/// A port for each broker.
#[derive(Debug)]
pub(crate) struct Ports {
    address: IpAddr,
    start: u16,
    proxy_protocol: Mode,
    closed: Shutdown,
    /// Guards which broker has which port; held while a listener is bound, never across a wait.
    doors: Mutex<Doors>,
}

#[derive(Debug)]
struct Doors {
    by_id: BTreeMap<i32, Door>,
    next_port: u16,
}

#[derive(Debug)]
struct Door {
    /// Addresses advertised to clients while the gateway is the same.
    port: u16,
    listening: bool,
}

impl Ports {
    fn new(address: IpAddr, start: u16, proxy_protocol: Mode) -> Self {
        let doors = Mutex::new(Doors { by_id: BTreeMap::new(), next_port: start });
        Self { address, start, proxy_protocol, closed: Shutdown::new(), doors }
    }

    /// The port of a broker. If the port has no listener yet, it comes with a bound one. The caller
    /// accepts on it until the gateway is closed.
    ///
    /// # Errors
    /// The port cannot be had.
    pub(crate) fn open(&self, node_id: i32) -> Result<Option<(u16, Option<Listener>)>, Error> {
        let mut doors = self.lock();
        let port = match doors.by_id.get(&node_id) {
            Some(door) if door.listening => return Ok(Some((door.port, None))),
            Some(door) => door.port,
            None => match doors.add(node_id) {
                Some(port) => port,
                None => return Ok(None),
            },
        };
        let listener = Listener::bind(SocketAddr::new(self.address, port))?;
        let listener = listener.with_proxy_protocol(self.proxy_protocol);
        let port = listener.local_addr().port();
        if let Some(door) = doors.by_id.get_mut(&node_id) {
            (door.port, door.listening) = (port, true);
        }
        Ok(Some((port, Some(listener))))
    }

    /// Completes when the listeners of these ports must close.
    pub(crate) async fn closed(&self) {
        self.closed.reached(Phase::Stopped).await;
    }

    fn lock(&self) -> MutexGuard<'_, Doors> {
        self.doors.lock()
    }
}

impl Doors {
    /// Assigns a port to a broker. It has no listener yet.
    fn add(&mut self, node_id: i32) -> Option<u16> {
        let port = self.next_port;
        if port > 0 {
            self.next_port = port.checked_add(1)?;
        }
        self.by_id.insert(node_id, Door { port, listening: false });
        Some(port)
    }
}

/// A host name for each broker and one to connect to first, in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Hosts {
    bootstrap: String,
    /// What stands before and after the id of a broker.
    prefix: String,
    suffix: String,
}

impl Hosts {
    pub(crate) fn parse(bootstrap: &str, broker: &str) -> Result<Self, &'static str> {
        let (bootstrap, broker) = (normal(bootstrap), normal(broker));
        let node_id = NODE_ID.to_ascii_lowercase();
        let Some((prefix, suffix)) = broker.split_once(&node_id) else {
            return Err("the host of brokers has no $(nodeId)");
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if bootstrap.is_empty()
            || !(bootstrap.chars().chain(broker.replacen(&node_id, "", 1).chars())).all(is_name)
        {
            return Err("a host has invalid characters");
        }
        // Otherwise one name could mean several brokers.
        let is_digit = |c: char| c.is_ascii_digit();
        if prefix.ends_with(is_digit) || suffix.starts_with(is_digit) {
            return Err("a digit is next to $(nodeId)");
        }
        let hosts = Self { prefix: prefix.to_owned(), suffix: suffix.to_owned(), bootstrap };
        if hosts.node_id(&hosts.bootstrap).is_some() {
            return Err("the bootstrap host matches the host of a broker");
        }
        Ok(hosts)
    }

    /// Where a client leads that asked for `host`, in lower case.
    pub(crate) fn destination(&self, host: &str) -> Option<Destination> {
        if host == self.bootstrap {
            return Some(Destination::Bootstrap);
        }
        self.node_id(host).map(Destination::Broker)
    }

    fn node_id(&self, host: &str) -> Option<i32> {
        let digits = host.strip_prefix(&*self.prefix)?.strip_suffix(&*self.suffix)?;
        let is_plain = digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        is_plain.then(|| digits.parse().ok()).flatten()
    }

    /// The host of a broker.
    pub(crate) fn broker(&self, node_id: i32) -> String {
        format!("{}{node_id}{}", self.prefix, self.suffix)
    }

    /// Whether some host name belongs to both.
    pub(crate) fn overlap(&self, other: &Self) -> bool {
        self.bootstrap == other.bootstrap
            || self.node_id(&other.bootstrap).is_some()
            || other.node_id(&self.bootstrap).is_some()
            || (&self.prefix, &self.suffix) == (&other.prefix, &other.suffix)
            || self.crosses(other)
            || other.crosses(self)
    }

    /// Whether a name has an id of ours before an id of the other, as `b-1-2.x` has with
    /// `b-$(nodeId)-2.x` and `b-1-$(nodeId).x`.
    fn crosses(&self, other: &Self) -> bool {
        let between = |digits_and: &str, and_digits: &str| {
            let is_digit = |c: char| c.is_ascii_digit();
            let (after, before) =
                (digits_and.trim_start_matches(is_digit), and_digits.trim_end_matches(is_digit));
            after == before && after.len() < digits_and.len() && before.len() < and_digits.len()
        };
        let ours = other.prefix.strip_prefix(&*self.prefix);
        let theirs = self.suffix.strip_suffix(&*other.suffix);
        ours.zip(theirs).is_some_and(|(ours, theirs)| between(ours, theirs))
    }
}

/// A host name as it is compared.
pub(crate) fn normal(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(bootstrap: &str, broker: &str) -> Hosts {
        Hosts::parse(bootstrap, broker).unwrap()
    }

    #[test]
    fn hosts_lead_to_brokers_and_back() {
        let hosts = hosts("Kafka.Example.", "b-$(nodeId).kafka.example");
        assert_eq!(hosts.destination("kafka.example"), Some(Destination::Bootstrap));
        for node_id in [0, 7, 1024, i32::MAX] {
            let host = hosts.broker(node_id);
            assert_eq!(hosts.destination(&host), Some(Destination::Broker(node_id)), "{host}");
        }
        for host in ["b-.kafka.example", "b-01.kafka.example", "b-+1.kafka.example", "x.example"] {
            assert_eq!(hosts.destination(host), None, "{host}");
        }
        assert_eq!(hosts.destination("b-99999999999.kafka.example"), None);
    }

    #[test]
    fn hosts_that_mean_several_brokers_are_refused() {
        for (bootstrap, broker) in [
            ("a.x", "b.x"),
            ("a.x", "b1$(nodeId).x"),
            ("a.x", "b$(nodeId)1.x"),
            ("b1.x", "b$(nodeId).x"),
            ("", "b$(nodeId).x"),
            ("a:1", "b$(nodeId).x"),
            ("a.x", "b$(nodeId)$(nodeId).x"),
        ] {
            assert!(Hosts::parse(bootstrap, broker).is_err(), "{bootstrap} {broker}");
        }
    }

    #[test]
    fn clusters_whose_hosts_overlap_are_found() {
        let ours = hosts("a.x", "b-$(nodeId)-2.x");
        for theirs in [
            hosts("a.x", "c-$(nodeId).x"),
            hosts("b-1-2.x", "c-$(nodeId).x"),
            hosts("c.x", "b-$(nodeId)-2.x"),
            hosts("c.x", "b-1-$(nodeId).x"),
        ] {
            assert!(ours.overlap(&theirs) && theirs.overlap(&ours), "{theirs:?}");
        }
        for theirs in [hosts("c.x", "b-$(nodeId).x"), hosts("c.x", "b-1-$(nodeId).y")] {
            assert!(!ours.overlap(&theirs) && !theirs.overlap(&ours), "{theirs:?}");
        }
    }
}
