use std::net::SocketAddr;

/// What keeps a proxy from starting, or a configuration from being taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operator's address is taken or refused, or the system gives no threads.
    #[error(transparent)]
    Net(#[from] moldau_net::Error),
    /// The operator named no upstream server for a virtual cluster.
    #[error("virtual cluster {cluster}: no upstream server")]
    NoUpstream {
        /// The virtual cluster.
        cluster: String,
    },
    /// The operator gave two virtual clusters the same name.
    #[error("virtual cluster {cluster}: duplicate name")]
    DuplicateName {
        /// The virtual cluster.
        cluster: String,
    },
    /// The operator chose gateways that cannot be served.
    #[error("virtual cluster {cluster}: gateway: {reason}")]
    Gateway {
        /// The virtual cluster.
        cluster: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The operator gave an address to two virtual clusters that cannot share it.
    #[error("virtual cluster {cluster}: gateway: {other} also listens on {address}")]
    SharedAddress {
        /// The virtual cluster.
        cluster: String,
        /// The other one.
        other: String,
        /// The address.
        address: SocketAddr,
    },
    /// The operator gave host names to two virtual clusters of one listener that overlap.
    #[error("virtual cluster {cluster}: gateway: a host also belongs to {other}")]
    SharedHost {
        /// The virtual cluster.
        cluster: String,
        /// The other one.
        other: String,
    },
    /// The operator gave a virtual cluster more filters than answers can tell apart.
    #[error("virtual cluster {cluster}: more than {max} filters")]
    TooManyFilters {
        /// The virtual cluster.
        cluster: String,
        /// How many it may have.
        max: usize,
    },
    /// The operator changed what only a restart can change.
    #[error("{key} cannot be changed while the proxy runs")]
    NeedsRestart {
        /// The field of the configuration.
        key: &'static str,
    },
}

/// A peer broke the protocol; its session ends. The text says how.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);
