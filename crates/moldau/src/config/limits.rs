//! The limits that the listeners of broker and proxy have in common.

use std::time::Duration;

use moldau_net::ListenerLimits;
use serde::Deserialize;

use super::problem::{At, Problem};

/// What clients of a listener of the broker may take.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Kafka's `max.connections`, over all listeners of the process. Default 16384.
    max_connections: Option<At<usize>>,
    /// Kafka's `max.connections.per.ip`. Default: no limit.
    max_connections_per_ip: Option<At<usize>>,
    /// Milliseconds for TLS and SASL together. Default 10000.
    handshake_timeout_ms: Option<At<u64>>,
}

impl Keys {
    /// Makes what a listener needs.
    ///
    /// # Errors
    /// Names the key that is at fault.
    pub(super) fn listener(&self) -> Result<ListenerLimits, Problem> {
        let Self { max_connections, max_connections_per_ip, handshake_timeout_ms } = self;
        let (connections, per_ip) = (max_connections.as_ref(), max_connections_per_ip.as_ref());
        listener(connections, per_ip, handshake_timeout_ms.as_ref())
    }
}

/// Makes limits of the values of the keys of the same names.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn listener(
    max_connections: Option<&At<usize>>,
    max_connections_per_ip: Option<&At<usize>>,
    handshake_timeout_ms: Option<&At<u64>>,
) -> Result<ListenerLimits, Problem> {
    let mut limits = ListenerLimits::default();
    if let Some(value) = max_connections {
        super::at_least_one(value, "max_connections")?;
        limits.connections_max = value.value;
    }
    if let Some(value) = max_connections_per_ip {
        super::at_least_one(value, "max_connections_per_ip")?;
        limits.connections_per_address_max = value.value;
    }
    if let Some(value) = handshake_timeout_ms {
        super::at_least_one(value, "handshake_timeout_ms")?;
        limits.handshake_timeout = Duration::from_millis(value.value);
    }
    Ok(limits)
}
