//! Sends what clients pushed to a collector, by OTLP over HTTP with protobuf.
//!
//! Payloads wait in a bounded queue. What finds no room there, or no collector, is dropped and
//! counted.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_net::{HttpUrl, LogLimit};
use moldau_threads::Mutex;
use tokio::sync::Notify;

/// Bytes of payloads that wait.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// Bytes of one request to the collector. Collectors take 20 MiB by default.
pub(super) const REQUEST_BYTES_MAX: usize = 4 << 20;

/// The type of protobuf in OTLP.
const CONTENT_TYPE: &str = "application/x-protobuf";

/// The way to a collector.
pub(crate) struct Forwarder {
    collector: Option<Arc<HttpUrl>>,
    /// Guards what waits.
    waiting: Mutex<Waiting>,
    arrived: Notify,
    failures: LogLimit,
    /// Pushes that the collector took.
    pub(crate) sent: AtomicU64,
    /// Pushes that it did not get.
    pub(crate) dropped: AtomicU64,
}

#[derive(Default)]
struct Waiting {
    payloads: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Forwarder {
    /// To a collector; `None` keeps everything here.
    pub(crate) fn new(collector: Option<Arc<HttpUrl>>) -> Self {
        Self {
            collector,
            waiting: Mutex::default(),
            arrived: Notify::new(),
            failures: LogLimit::default(),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        }
    }

    /// Whether there is a collector.
    pub(crate) fn is_on(&self) -> bool {
        self.collector.is_some()
    }

    /// Hands a payload on; `None` is one that is too long.
    pub(crate) fn put(&self, payload: Option<Vec<u8>>) {
        let mut waiting = self.waiting.lock();
        let room = WAITING_BYTES_MAX.saturating_sub(waiting.bytes);
        let Some(payload) = payload.filter(|payload| payload.len() <= room) else {
            drop(waiting);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        };
        waiting.bytes += payload.len();
        waiting.payloads.push_back(payload);
        drop(waiting);
        self.arrived.notify_one();
    }

    /// Sends what arrives, for as long as the returned future is polled.
    pub(crate) async fn run(&self) {
        let Some(collector) = &self.collector else { return std::future::pending().await };
        loop {
            let (body, count) = self.take();
            if count == 0 {
                self.arrived.notified().await;
                continue;
            }
            match collector.post(CONTENT_TYPE, body).await {
                Ok(()) => self.sent.fetch_add(count, Ordering::Relaxed),
                Err(error) => {
                    self.failures.log(|unlogged| {
                        tracing::warn!(%collector, error, unlogged, "failed to send metrics");
                    });
                    self.dropped.fetch_add(count, Ordering::Relaxed)
                }
            };
        }
    }

    /// Payloads for one request, which together are one message, and how many they are.
    fn take(&self) -> (Vec<u8>, u64) {
        let mut waiting = self.waiting.lock();
        let (mut body, mut count) = (Vec::new(), 0);
        while let Some(next) = waiting.payloads.front()
            && (count == 0 || body.len() + next.len() <= REQUEST_BYTES_MAX)
            && let Some(payload) = waiting.payloads.pop_front()
        {
            waiting.bytes -= payload.len();
            body.extend_from_slice(&payload);
            count += 1;
        }
        (body, count)
    }
}
