//! Addresses that a process listens on, and which of them meet.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use moldau_proxy::Gateway;

use super::problem::{At, Problem};
use super::sources::Sources;

/// Fewest ports that a virtual cluster should have for its brokers before those of another begin.
const ROOM_MIN: u16 = 16;

/// What one virtual cluster listens on.
struct Ports<'a> {
    cluster: &'a str,
    gateway: &'a At<Gateway>,
    /// Where clients connect first.
    address: SocketAddr,
    /// Brokers get the ports from here on; 0 lets the system choose. `None` if they need none.
    of_brokers: Option<u16>,
}

impl<'a> Ports<'a> {
    fn new(cluster: &'a str, gateway: &'a At<Gateway>) -> Self {
        let (address, of_brokers) = match &gateway.value {
            Gateway::Ports { bootstrap, broker_port_start, .. } => {
                (*bootstrap, Some(*broker_port_start))
            }
            Gateway::Sni { listen, .. } => (*listen, None),
        };
        Self { cluster, gateway, address, of_brokers }
    }

    /// True if both listen on the same addresses of the machine, with any ports.
    fn meets(&self, other: SocketAddr) -> bool {
        meet(self.address, other)
    }

    /// Whether `address` is where clients connect first.
    fn has(&self, address: SocketAddr) -> bool {
        collide(self.address, address)
    }
}

/// Whether only one of two listeners can have its address. A port that the system chooses is free.
pub(super) fn collide(own: SocketAddr, other: SocketAddr) -> bool {
    own.port() > 0 && own.port() == other.port() && meet(own, other)
}

fn meet(own: SocketAddr, other: SocketAddr) -> bool {
    own.ip() == other.ip() || own.ip().is_unspecified() || other.ip().is_unspecified()
}

/// Refuses addresses that stand twice, and warns of ports that may meet.
///
/// # Errors
/// Names the second of those that collide.
pub(super) fn check<'a>(
    admin: &At<SocketAddr>,
    clusters: impl Iterator<Item = (&'a str, &'a At<Gateway>)>,
    sources: &mut Sources,
) -> Result<(), Problem> {
    let clusters: Vec<_> = clusters.map(|(name, gateway)| Ports::new(name, gateway)).collect();
    for (index, own) in clusters.iter().enumerate() {
        let taken =
            |key, address| format!("{key}: {address} is in use by virtual cluster {}", own.cluster);
        if own.has(admin.value) {
            return Err(Problem::at(admin, taken("admin", admin.value)));
        }
        for other in clusters.iter().skip(index + 1) {
            // Hosts tell virtual clusters apart that have one port for all their brokers.
            let shared = own.of_brokers.is_none() && other.of_brokers.is_none();
            if own.has(other.address) && !shared {
                return Err(Problem::at(other.gateway, taken("bootstrap", other.address)));
            }
        }
    }
    for own in &clusters {
        if let Some(start) = own.of_brokers.filter(|start| *start > 0) {
            room(own, start, &clusters, sources)?;
        }
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
    for other in clusters.iter().filter(|other| own.meets(other.address)) {
        others.insert(other.address.port(), other);
        let of_brokers = other.of_brokers.filter(|_| !std::ptr::eq(own, other));
        others.extend(of_brokers.map(|port| (port, other)));
    }
    let Some((port, other)) = others.range(start..).next() else { return Ok(()) };
    let (cluster, theirs, room) = (own.cluster, other.cluster, port - start);
    if room == 0 {
        let text = format!("broker_port_start: {start} of {cluster} is in use by {theirs}");
        return Err(Problem::at(other.gateway, text));
    }
    if room < ROOM_MIN {
        let text = format!(
            "virtual cluster {theirs} leaves ports for only {room} brokers of \
             {cluster}"
        );
        sources.warn(Problem::at(other.gateway, text));
    }
    Ok(())
}
