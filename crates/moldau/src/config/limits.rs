//! Limits of a listener's connections, which broker and proxy have in common.

use std::time::Duration;

use moldau_net::ListenerLimits;
use serde::Deserialize;

use super::problem::{At, Problem};

/// Limits of a listener of the broker. Default: those of the broker.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Open connections of the process.
    #[serde(rename = "max.connections")]
    max_connections: Option<At<usize>>,
    /// Open connections of one address.
    #[serde(rename = "max.connections.per.ip")]
    max_connections_per_ip: Option<At<usize>>,
    /// Milliseconds for TLS and SASL together. Default 10000.
    handshake_timeout_ms: Option<At<u64>>,
}

impl Keys {
    /// The limits of a listener, whose keys replace those of the broker.
    ///
    /// # Errors
    /// Names the key that is at fault.
    pub(super) fn listener(&self, broker: &ListenerLimits) -> Result<ListenerLimits, Problem> {
        let connections = ("max.connections", self.max_connections.as_ref());
        let per_ip = ("max.connections.per.ip", self.max_connections_per_ip.as_ref());
        listener(broker, connections, per_ip, self.handshake_timeout_ms.as_ref())
    }
}

/// Limits with the values of keys, which are given with their names, in place of the defaults.
///
/// # Errors
/// Names the key whose value is 0.
pub(super) fn listener(
    defaults: &ListenerLimits,
    connections: (&str, Option<&At<usize>>),
    per_ip: (&str, Option<&At<usize>>),
    handshake_timeout_ms: Option<&At<u64>>,
) -> Result<ListenerLimits, Problem> {
    let mut limits = defaults.clone();
    if let (key, Some(value)) = connections {
        super::at_least_one(value, key)?;
        limits.connections_max = value.value;
    }
    if let (key, Some(value)) = per_ip {
        super::at_least_one(value, key)?;
        limits.connections_per_address_max = value.value;
    }
    if let Some(value) = handshake_timeout_ms {
        super::at_least_one(value, "handshake_timeout_ms")?;
        limits.handshake_timeout = Duration::from_millis(value.value);
    }
    Ok(limits)
}
