//! What is counted of connections: those open, what they carried, and why some were refused.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::FrameError;
use crate::error::TlsError;

/// Counters of all connections of one set of network threads.
///
/// Every counter is monotonic except [`Metrics::connections_open`]. Bytes are wire bytes,
/// length prefixes included. A connection adds to them once per burst, not once per request.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Connections being served.
    pub connections_open: AtomicU64,
    /// Connections accepted and served.
    pub connections_total: AtomicU64,
    /// Connections closed at accept because `connections_max` was reached.
    pub connections_refused: AtomicU64,
    /// Connections closed because nothing happened on them for the idle timeout.
    pub connections_idle_closed: AtomicU64,
    /// Connections closed at accept because their address had `connections_per_address_max`.
    pub connections_refused_by_address: AtomicU64,
    /// Connections closed because the peer took too little of waiting answers for too long.
    pub connections_slow_reader_closed: AtomicU64,
    /// Connections closed because their PROXY protocol header was missing or malformed.
    pub proxy_protocol_refused: AtomicU64,
    /// TLS handshakes that were not done in time.
    pub tls_refused_timed_out: AtomicU64,
    /// TLS handshakes for a host that no certificate is for.
    pub tls_refused_server_name: AtomicU64,
    /// TLS handshakes whose client showed no certificate, a wrong one, or one without a principal.
    pub tls_refused_certificate: AtomicU64,
    /// TLS handshakes that failed for other reasons: bytes that are not TLS, nothing in common.
    pub tls_refused_handshake: AtomicU64,
    /// SASL authentications that were refused.
    pub authentications_refused: AtomicU64,
    /// Connections closed because they were not authenticated in time.
    pub authentications_timed_out: AtomicU64,
    /// Failed accepts, for example for want of file descriptors.
    pub accept_errors: AtomicU64,
    /// Requests handed to a service.
    pub requests: AtomicU64,
    /// Bytes read.
    pub bytes_in: AtomicU64,
    /// Bytes written.
    pub bytes_out: AtomicU64,
    /// Frames refused because their length was negative.
    pub frames_refused_negative: AtomicU64,
    /// Frames refused because their length was zero.
    pub frames_refused_empty: AtomicU64,
    /// Frames refused because their length was above `frame_bytes_max`.
    pub frames_refused_oversized: AtomicU64,
    /// Frames that the service answered by closing the connection.
    pub frames_refused_by_service: AtomicU64,
}

impl Metrics {
    /// Counts a frame that was refused for `error`.
    pub fn refuse(&self, error: &FrameError) {
        let counter = match error {
            FrameError::Negative { .. } => &self.frames_refused_negative,
            FrameError::Empty => &self.frames_refused_empty,
            FrameError::Oversized { .. } => &self.frames_refused_oversized,
        };
        add(counter, 1);
    }

    /// Counts a TLS handshake that failed with `error`.
    pub fn refuse_tls(&self, error: &TlsError) {
        let counter = match error {
            TlsError::TimedOut => &self.tls_refused_timed_out,
            TlsError::UnknownServerName { .. } => &self.tls_refused_server_name,
            TlsError::Certificate(_) | TlsError::NoMappingRule { .. } => {
                &self.tls_refused_certificate
            }
            _ => &self.tls_refused_handshake,
        };
        add(counter, 1);
    }

    /// Counts a SASL authentication that was refused.
    pub fn refuse_authentication(&self) {
        add(&self.authentications_refused, 1);
    }

    /// Why connections were refused or closed, each cause with its count.
    #[must_use]
    pub fn refusals(&self) -> [(&'static str, u64); 16] {
        [
            ("accept_error", &self.accept_errors),
            ("connection_limit", &self.connections_refused),
            ("address_limit", &self.connections_refused_by_address),
            ("proxy_protocol", &self.proxy_protocol_refused),
            ("tls_timeout", &self.tls_refused_timed_out),
            ("tls_server_name", &self.tls_refused_server_name),
            ("tls_certificate", &self.tls_refused_certificate),
            ("tls_handshake", &self.tls_refused_handshake),
            ("authentication", &self.authentications_refused),
            ("authentication_timeout", &self.authentications_timed_out),
            ("idle", &self.connections_idle_closed),
            ("slow_reader", &self.connections_slow_reader_closed),
            ("frame_negative", &self.frames_refused_negative),
            ("frame_empty", &self.frames_refused_empty),
            ("frame_oversized", &self.frames_refused_oversized),
            ("frame_refused", &self.frames_refused_by_service),
        ]
        .map(|(cause, counter)| (cause, counter.load(Ordering::Relaxed)))
    }
}

/// Adds to a counter that orders nothing else.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
