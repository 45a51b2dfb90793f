//! Addresses that the virtual clusters of a proxy listen on, and where they get in each other's way.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::problem::{At, Problem};
use super::sources::Sources;

/// Fewest ports that a virtual cluster should have for its brokers before those of another begin.
const ROOM_MIN: u16 = 16;

/// What one virtual cluster listens on.
#[derive(Debug)]
pub(super) struct Ports<'a> {
    /// The name of the virtual cluster.
    pub(super) cluster: &'a str,
    /// Where clients connect first.
    pub(super) bootstrap: &'a At<SocketAddr>,
    /// Brokers get the ports from here on; 0 lets the system choose. `None` if they need none.
    pub(super) broker_port_start: Option<u16>,
}

impl Ports<'_> {
    /// Whether both listen on the same addresses of the machine, whatever the ports.
    fn meets(&self, other: SocketAddr) -> bool {
        let own = self.bootstrap.value.ip();
        own == other.ip() || own.is_unspecified() || other.ip().is_unspecified()
    }

    /// Whether `address` is where clients connect first.
    fn is_bootstrap(&self, address: SocketAddr) -> bool {
        let port = self.bootstrap.value.port();
        port > 0 && port == address.port() && self.meets(address)
    }
}

/// Refuses names and addresses that stand twice, and warns of ports that may meet.
///
/// # Errors
/// Names the second of those that collide.
pub(super) fn check(
    admin: Option<&At<SocketAddr>>,
    clusters: &[Ports<'_>],
    sources: &mut Sources,
) -> Result<(), Problem> {
    for (index, own) in clusters.iter().enumerate() {
        let taken = |at: &At<SocketAddr>, key: &str| {
            let (address, cluster) = (at.value, own.cluster);
            let text = format!("{key}: {address} is in use by virtual cluster {cluster}");
            Err(Problem::at(at, text))
        };
        if let Some(admin) = admin
            && own.is_bootstrap(admin.value)
        {
            return taken(admin, "admin");
        }
        for other in clusters.iter().skip(index + 1) {
            // Hosts tell virtual clusters apart that have one port for all their brokers.
            let shared = own.broker_port_start.is_none() && other.broker_port_start.is_none();
            if own.is_bootstrap(other.bootstrap.value) && !shared {
                return taken(other.bootstrap, "bootstrap");
            }
        }
    }
    for own in clusters {
        let Some(start) = own.broker_port_start.filter(|start| *start > 0) else { continue };
        room(own, start, clusters, sources)?;
    }
    Ok(())
}

/// Looks at what begins among the ports from `start` on.
fn room(
    own: &Ports<'_>,
    start: u16,
    clusters: &[Ports<'_>],
    sources: &mut Sources,
) -> Result<(), Problem> {
    let mut others = BTreeMap::new();
    for other in clusters.iter().filter(|other| own.meets(other.bootstrap.value)) {
        others.insert(other.bootstrap.value.port(), other);
        let of_brokers = other.broker_port_start.filter(|_| !std::ptr::eq(own, other));
        others.extend(of_brokers.map(|port| (port, other)));
    }
    let Some((port, other)) = others.range(start..).next() else { return Ok(()) };
    let (cluster, theirs, room) = (own.cluster, other.cluster, port - start);
    if room == 0 {
        let text = format!("broker_port_start: {start} of {cluster} is in use by {theirs}");
        return Err(Problem::at(other.bootstrap, text));
    }
    if room < ROOM_MIN {
        let text = format!("virtual cluster {theirs} leaves ports for {room} brokers of {cluster}");
        sources.warn(Problem::at(other.bootstrap, text));
    }
    Ok(())
}
