//! The key `gateway` of a virtual cluster.

use std::net::SocketAddr;

use moldau_proxy::Gateway;
use serde::Deserialize;

use super::problem::{At, Problem};

/// What stands for the id of a broker in the name of its host.
const NODE_ID: &str = "$(nodeId)";

/// How clients tell the brokers of a virtual cluster apart.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatewayKeys {
    Ports(Ports),
    Sni(Sni),
}

/// Each broker has a port.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ports {
    /// Where clients connect first.
    bootstrap: At<SocketAddr>,
    /// Host for clients. Default: the address that each connected to.
    advertised_host: Option<At<String>>,
    /// Brokers get ports from here on as they are discovered. Default: the port after `bootstrap`.
    broker_port_start: Option<At<u16>>,
}

/// Each broker has a host, which clients name as they begin TLS.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sni {
    /// Where clients connect to all these hosts.
    listen: At<SocketAddr>,
    /// Host by which clients connect first.
    bootstrap_host: String,
    /// Host of a broker, with `$(nodeId)` in the place of its id.
    broker_host: At<String>,
    /// Port for clients. Default: that of `listen`.
    advertised_port: Option<u16>,
}

/// Makes a gateway.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn gateway(keys: &At<GatewayKeys>, has_tls: bool) -> Result<Gateway, Problem> {
    let Sni { listen, bootstrap_host, broker_host, advertised_port } = match &keys.value {
        GatewayKeys::Ports(Ports { bootstrap, advertised_host, broker_port_start }) => {
            return ports(bootstrap, advertised_host.as_ref(), broker_port_start.as_ref());
        }
        GatewayKeys::Sni(sni) => sni,
    };
    if !has_tls {
        return Err(Problem::at(keys, "sni: needs tls, which carries the host name"));
    }
    if broker_host.value.matches(NODE_ID).count() != 1 {
        let text = format!("broker_host: {:?} needs {NODE_ID} once", broker_host.value);
        return Err(Problem::at(broker_host, text));
    }
    Ok(Gateway::Sni {
        listen: listen.value,
        bootstrap_host: bootstrap_host.clone(),
        broker_host: broker_host.value.clone(),
        advertised_port: *advertised_port,
    })
}

/// Makes a gateway of ports.
///
/// # Errors
/// No port is left for brokers.
pub(super) fn ports(
    bootstrap: &At<SocketAddr>,
    advertised_host: Option<&At<String>>,
    broker_port_start: Option<&At<u16>>,
) -> Result<Gateway, Problem> {
    // A port that the system chooses has no known successor, so the others are its choice too.
    let next_port = match bootstrap.value.port() {
        0 => Some(0),
        port => port.checked_add(1),
    };
    let start = broker_port_start.map(|start| start.value).or(next_port);
    let is_missing = || Problem::at(bootstrap, "broker_port_start: is needed");
    Ok(Gateway::Ports {
        bootstrap: bootstrap.value,
        advertised_host: advertised_host.map(|host| host.value.clone()),
        broker_port_start: start.ok_or_else(is_missing)?,
    })
}
