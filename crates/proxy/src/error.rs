/// What keeps a proxy from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operator's address is taken or refused, or the system gives no threads.
    #[error(transparent)]
    Net(#[from] moldau_net::Error),
    /// The operator named no upstream server for a virtual cluster.
    #[error("virtual cluster {cluster}: no upstream server is named")]
    NoUpstream {
        /// The virtual cluster.
        cluster: String,
    },
}

/// A peer broke the protocol; its session ends. The text says how.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);
