//! Causes of refusals, and how operators see them: a counter for each cause, and a rate-limited
//! line in the log.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::FrameError;
use crate::error::TlsError;
use crate::log_limit::LogLimit;
use crate::watch::Silence;

/// Why a client was not admitted, or its connection closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refusal {
    /// An accept failed, for example for want of file descriptors.
    AcceptError,
    /// `connections_max` was reached.
    ConnectionLimit,
    /// Its address had `connections_per_address_max`.
    AddressLimit,
    /// Its PROXY protocol header was missing or malformed.
    ProxyProtocol,
    /// Its TLS handshake was not done in time.
    TlsTimeout,
    /// It asked for a host that no certificate is for.
    TlsServerName,
    /// It showed no certificate, a wrong one, or one without a principal.
    TlsCertificate,
    /// Its TLS handshake failed for other reasons: bytes that are not TLS, nothing in common.
    TlsHandshake,
    /// Its SASL authentication was refused.
    Authentication,
    /// It was not authenticated in time.
    AuthenticationTimeout,
    /// It asked the admin port for what only who knows the token may.
    AdminToken,
    /// Nothing happened for the idle timeout.
    Idle,
    /// It took too little of waiting answers for too long.
    SlowReader,
    /// It sent too little of a request for too long.
    SlowWriter,
    /// The length of a frame was negative.
    FrameNegative,
    /// The length of a frame was zero.
    FrameEmpty,
    /// The length of a frame was above `frame_bytes_max`.
    FrameOversized,
    /// A frame could not be answered, or not at that moment.
    FrameRefused,
    /// A frame was longer than the memory budget ever has room for.
    MemoryBudget,
    /// A defect of this program ended its connection.
    Defect,
}

impl Refusal {
    /// All causes.
    pub const ALL: [Self; 20] = [
        Self::AcceptError,
        Self::ConnectionLimit,
        Self::AddressLimit,
        Self::ProxyProtocol,
        Self::TlsTimeout,
        Self::TlsServerName,
        Self::TlsCertificate,
        Self::TlsHandshake,
        Self::Authentication,
        Self::AuthenticationTimeout,
        Self::AdminToken,
        Self::Idle,
        Self::SlowReader,
        Self::SlowWriter,
        Self::FrameNegative,
        Self::FrameEmpty,
        Self::FrameOversized,
        Self::FrameRefused,
        Self::MemoryBudget,
        Self::Defect,
    ];

    /// As logs and metrics have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AcceptError => "accept_error",
            Self::ConnectionLimit => "connection_limit",
            Self::AddressLimit => "address_limit",
            Self::ProxyProtocol => "proxy_protocol",
            Self::TlsTimeout => "tls_timeout",
            Self::TlsServerName => "tls_server_name",
            Self::TlsCertificate => "tls_certificate",
            Self::TlsHandshake => "tls_handshake",
            Self::Authentication => "authentication",
            Self::AuthenticationTimeout => "authentication_timeout",
            Self::AdminToken => "admin_token",
            Self::Idle => "idle",
            Self::SlowReader => "slow_reader",
            Self::SlowWriter => "slow_writer",
            Self::FrameNegative => "frame_negative",
            Self::FrameEmpty => "frame_empty",
            Self::FrameOversized => "frame_oversized",
            Self::FrameRefused => "frame_refused",
            Self::MemoryBudget => "memory_budget",
            Self::Defect => "defect",
        }
    }
}

impl From<&TlsError> for Refusal {
    fn from(error: &TlsError) -> Self {
        match error {
            TlsError::TimedOut => Self::TlsTimeout,
            TlsError::UnknownServerName { .. } => Self::TlsServerName,
            TlsError::Certificate(_) | TlsError::NoMappingRule { .. } => Self::TlsCertificate,
            _ => Self::TlsHandshake,
        }
    }
}

impl From<Silence> for Refusal {
    fn from(silence: Silence) -> Self {
        match silence {
            Silence::Idle => Self::Idle,
            Silence::SlowReader => Self::SlowReader,
            Silence::SlowWriter => Self::SlowWriter,
        }
    }
}

impl From<&FrameError> for Refusal {
    fn from(error: &FrameError) -> Self {
        match error {
            FrameError::Negative { .. } => Self::FrameNegative,
            FrameError::Empty => Self::FrameEmpty,
            FrameError::Oversized { .. } => Self::FrameOversized,
        }
    }
}

/// How often each refusal happened.
#[derive(Debug, Default)]
pub(crate) struct Refusals([Counted; Refusal::ALL.len()]);

#[derive(Debug, Default)]
struct Counted {
    count: AtomicU64,
    log: LogLimit,
}

impl Refusals {
    pub(crate) fn count(&self, cause: Refusal) -> u64 {
        self.of(cause).count.load(Ordering::Relaxed)
    }

    /// Counts a refusal, and logs it unless its cause was logged just now. A client that merely
    /// does nothing is no news.
    pub(crate) fn refuse(
        &self,
        cause: Refusal,
        peer: Option<SocketAddr>,
        at: &dyn fmt::Display,
        why: &dyn fmt::Display,
    ) {
        let Counted { count, log } = self.of(cause);
        count.fetch_add(1, Ordering::Relaxed);
        let peer = peer.map(tracing::field::display);
        if cause == Refusal::Idle {
            return tracing::debug!(%at, peer, %why, "disconnected an idle client");
        }
        log.log(|unlogged| {
            let cause = cause.name();
            tracing::warn!(cause, %at, peer, %why, unlogged, "client refused");
        });
    }

    fn of(&self, cause: Refusal) -> &Counted {
        let index = Refusal::ALL.iter().position(|it| *it == cause);
        &self.0[index.expect("all causes stand there")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_metrics_names_every_cause() {
        let page = include_str!("../../../docs/metrics.md");
        let (_, table) = page.split_once("## Causes of refusals").unwrap();
        let told: Vec<&str> =
            table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
        assert_eq!(told, Refusal::ALL.map(Refusal::name));
    }

    #[test]
    fn each_cause_is_counted_under_a_name_of_its_own() {
        let refusals = Refusals::default();
        for (index, cause) in Refusal::ALL.into_iter().enumerate() {
            for _ in 0..=index {
                refusals.refuse(cause, None, &"test", &"to count it");
            }
        }
        for (count, cause) in (1..).zip(Refusal::ALL) {
            assert_eq!(refusals.count(cause), count, "{cause:?}");
            let same = Refusal::ALL.into_iter().filter(|it| it.name() == cause.name());
            assert_eq!(same.count(), 1, "{cause:?}");
        }
    }
}
