//! Errors of setup and of accepting peers.

use std::io;
use std::net::SocketAddr;

use moldau_protocol::ErrorCode;

use crate::principal::shown;

/// Errors while network threads and listeners are set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operator's address is taken by another socket.
    #[error("cannot listen on {address}: the address is in use by another process")]
    AddressInUse {
        /// The address that was asked for.
        address: SocketAddr,
    },
    /// The operating system refused the operator's address.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The operating system refused a thread or its event queue.
    #[error("cannot start network thread {index}: {source}")]
    Thread {
        /// Position of the thread, from 0.
        index: usize,
        /// What the operating system said.
        source: io::Error,
    },
    /// The network threads have stopped; nothing can be placed on them.
    #[error("the network threads have stopped")]
    Stopped,
}

/// Why a connection's header was refused; the peer is to blame, or the operator's choice of mode.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyProtocolError {
    /// The mode wants a header and there is none.
    #[error("the connection does not begin with a PROXY protocol header")]
    Missing,
    /// What stands there is no header.
    #[error("the PROXY protocol header is malformed: {0}")]
    Malformed(&'static str),
    /// The header was not there in time.
    #[error("no PROXY protocol header in time")]
    TimedOut,
    /// The socket failed or ended within the header.
    #[error("reading the PROXY protocol header: {0}")]
    Io(#[from] io::Error),
}

/// Errors in TLS settings, or while a connection is secured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    // The operator's files or settings are to blame.
    /// A certificate, key or key store cannot be used.
    #[error("{what}: {reason}")]
    Material {
        /// Which of them.
        what: &'static str,
        /// What is wrong with it; never a secret.
        reason: String,
    },
    /// The settings contradict each other, or the crypto provider cannot serve them.
    #[error("TLS settings: {0}")]
    Settings(String),
    /// A rule of `ssl.principal.mapping.rules` cannot be read.
    #[error("principal mapping rule {rule:?}: {reason}")]
    MappingRule {
        /// The rule, or the text from which no rule could be taken.
        rule: String,
        /// What is wrong with it.
        reason: String,
    },

    // The peer is to blame.
    /// The handshake was not done in time.
    #[error("TLS handshake not done in time")]
    TimedOut,
    /// The client asked for a host that no identity is for.
    #[error("TLS handshake: no certificate for {}", host(name.as_deref()))]
    UnknownServerName {
        /// The name in the client's SNI.
        name: Option<String>,
    },
    /// The peer's certificate is missing, expired, or of an authority that is not trusted.
    #[error("TLS handshake: {0}")]
    Certificate(rustls::Error),
    /// The peers found nothing in common, one of them refused, or the bytes are not TLS.
    #[error("TLS handshake: {0}")]
    Handshake(rustls::Error),
    /// No mapping rule matches the name in the client's certificate.
    #[error("no principal mapping rule matches \"{}\"", shown(name))]
    NoMappingRule {
        /// The distinguished name in RFC 2253 form.
        name: String,
    },
    /// The socket failed or ended within the handshake.
    #[error("TLS handshake: {0}")]
    Io(io::Error),
}

fn host(name: Option<&str>) -> String {
    name.map_or_else(|| "clients that name no host".to_owned(), |name| format!("{name:?}"))
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> Self {
        match error.downcast::<rustls::Error>() {
            Ok(
                error @ (rustls::Error::InvalidCertificate(_)
                | rustls::Error::NoCertificatesPresented),
            ) => Self::Certificate(error),
            Ok(error) => Self::Handshake(error),
            Err(error) => Self::Io(error),
        }
    }
}

/// Errors in SASL settings, or while a peer authenticates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaslError {
    // The operator's settings are to blame.
    /// The settings contradict each other or cannot be used.
    #[error("SASL settings: {0}")]
    Settings(String),

    // The other side refused.
    /// The server does not offer the mechanism.
    #[error("the server offers {offered:?}, not SASL mechanism {mechanism}")]
    MechanismNotOffered {
        /// What was asked for.
        mechanism: &'static str,
        /// What the server offers.
        offered: Vec<String>,
    },
    /// The server refused the credentials.
    #[error("authentication failed: {message}")]
    Refused {
        /// Kafka's error code.
        code: ErrorCode,
        /// The server's words.
        message: String,
    },

    // The other side does not follow the protocol, or is not who it should be.
    /// A message of the exchange is malformed.
    #[error("SASL {mechanism}: {reason}")]
    Exchange {
        /// The mechanism that was being used.
        mechanism: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// A frame of the exchange is malformed.
    #[error("SASL: the server's answer is malformed: {0}")]
    Malformed(String),
    /// No access token could be had.
    #[error("no access token: {0}")]
    Token(String),
    /// The socket failed or ended within the exchange.
    #[error("SASL: {0}")]
    Io(#[from] io::Error),
}
