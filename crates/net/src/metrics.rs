use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::FrameError;

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
}

/// Adds to a counter that orders nothing else.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}
