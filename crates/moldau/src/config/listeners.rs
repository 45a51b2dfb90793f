//! The key `listeners` of the broker.
//!
//! ```yaml
//! listeners:
//!   - name: INTERNAL
//!     address: 127.0.0.1:9092
//!   - name: EXTERNAL
//!     address: 0.0.0.0:9093
//!     advertised: kafka.example:9093
//!     tls: {certificate_file: server.pem, key_file: server.key}
//!     sasl: {mechanisms: [SCRAM-SHA-512]}
//! ```

use std::net::SocketAddr;

use moldau_broker::{Advertised, ListenerConfig};
use serde::Deserialize;

use super::problem::{At, Problem};
use super::sources::Sources;
use super::{limits, ports, sasl, tls};

/// One listener.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Names the listener in logs and in what DescribeConfigs shows.
    name: At<String>,
    /// Where Kafka clients connect.
    address: At<SocketAddr>,
    /// `host:port` that clients are told. Default: the address that each came by.
    advertised: Option<At<String>>,
    /// TLS towards clients. Default: none.
    tls: Option<At<tls::Server>>,
    /// How clients prove who they are. Default: by their certificate, if they show one.
    sasl: Option<At<sasl::Server>>,
    /// What clients may take.
    #[serde(default)]
    limits: limits::Keys,
}

/// Makes the one listener of a broker that has no list of them.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn plain(
    listen: Option<&At<SocketAddr>>,
    advertised: Option<&At<String>>,
) -> Result<ListenerConfig, Problem> {
    let default = SocketAddr::from(([127, 0, 0, 1], 9092));
    let address = listen.map_or(default, |listen| listen.value);
    Ok(ListenerConfig::plain(address, advertised.map(parse_advertised).transpose()?))
}

/// Makes the listeners of a list, beside the admin pages at `admin`.
///
/// # Errors
/// Names the key that is at fault, and of names and addresses that collide the second.
pub(super) fn secured(
    list: &At<Vec<Keys>>,
    admin: SocketAddr,
    sources: &mut Sources,
) -> Result<Vec<ListenerConfig>, Problem> {
    if list.value.is_empty() {
        return Err(Problem::at(list, "listeners: at least one is needed"));
    }
    let mut made: Vec<ListenerConfig> = Vec::new();
    for keys in &list.value {
        check(keys, admin, &made)?;
        made.push(listener(keys, sources)?);
    }
    Ok(made)
}

fn check(keys: &Keys, admin: SocketAddr, others: &[ListenerConfig]) -> Result<(), Problem> {
    let Keys { name, address, .. } = keys;
    if name.value.is_empty() {
        return Err(Problem::at(name, "name: is empty"));
    }
    if others.iter().any(|other| other.name == name.value) {
        let text = format!("name: {:?} is the name of another listener", name.value);
        return Err(Problem::at(name, text));
    }
    let taken = |user: &str| {
        Problem::at(address, format_args!("address: {} is in use by {user}", address.value))
    };
    if ports::collide(address.value, admin) {
        return Err(taken("admin"));
    }
    match others.iter().find(|other| ports::collide(address.value, other.address)) {
        Some(other) => Err(taken(&format!("listener {}", other.name))),
        None => Ok(()),
    }
}

fn listener(keys: &Keys, sources: &mut Sources) -> Result<ListenerConfig, Problem> {
    Ok(ListenerConfig {
        name: keys.name.value.clone(),
        address: keys.address.value,
        advertised: keys.advertised.as_ref().map(parse_advertised).transpose()?,
        tls: keys.tls.as_ref().map(|tls| tls::server(tls, sources)).transpose()?,
        sasl: keys.sasl.as_ref().map(|sasl| sasl::listener(sasl, sources)).transpose()?,
        limits: keys.limits.listener()?,
    })
}

fn parse_advertised(text: &At<String>) -> Result<Advertised, Problem> {
    let (host, port) = super::host_port("advertised", text)?;
    Ok(Advertised { host, port })
}
