//! Network threads, listeners, frames and pipelined connections, with their limits and security.
//!
//! | module | what it holds |
//! |---|---|
//! | `threads` | [`NetworkThreads`]: single-threaded runtimes, placement of connections, drain |
//! | `listener` | [`Listener`]: bind, accept loop, connection limit |
//! | `buffer` | [`FrameBuffer`]: bytes from a socket cut into length-prefixed frames |
//! | `service` | [`Service`], [`Reply`], [`Response`]: what answers the frames of a connection |
//! | `connection` | [`serve_connection`]: reads, dispatches and answers one connection |
//! | `admin` | [`serve_admin`]: the pages of an admin port, a profile and a reload among them |
//! | `http` | [`HttpUrl`], [`HttpTarget`]: single requests to an HTTP server |
//! | `principal` | [`Principal`]: who a peer is |
//! | `stream` | [`Stream`]: a socket, plain or with TLS over it |
//! | [`tls`] | identities, trust, handshakes, names in certificates |
//! | [`sasl`] | PLAIN, SCRAM and OAUTHBEARER, for servers and clients |
//! | [`proxy_protocol`] | the real peer behind a load balancer |
//! | `shutdown` | [`Shutdown`]: the drain signal |
//! | `memory` | [`MemoryBudget`]: the bytes that peers can make the process hold |
//! | `metrics` | [`Metrics`]: counters |
//! | `refusal` | [`Refusal`]: why clients are refused |
//! | `watch` | [`PeerWatch`]: when a peer is silent or slow for too long |
//! | `log_limit` | [`LogLimit`]: a brake on the log |
//!
//! Invariants:
//!
//! - A connection is served by one thread from accept to close; nothing of it crosses threads.
//! - Requests are handed to the service in arrival order and answered in that order, however
//!   long a single answer takes.
//! - No allocation follows from a length field alone: a buffer grows as bytes arrive, up to the
//!   frame limit.
//! - Requests in flight, bytes waiting to be written, connections and hand-overs are bounded.
//! - Handshakes run on their connection's own thread, never where connections are accepted.
//! - No secret appears in an error, in a log line or in a `Debug` form.
//! - Nothing a peer sends can panic; a broken frame closes its own connection and is counted.

mod admin;
mod buffer;
mod connection;
mod error;
mod http;
mod listener;
mod log_limit;
mod memory;
mod metrics;
mod notice;
mod principal;
pub mod proxy_protocol;
mod refusal;
pub mod sasl;
mod service;
mod shutdown;
mod stream;
mod threads;
pub mod tls;
mod watch;

pub use admin::{AdminPages, BearerToken, ReloadPage, ReloadWanted, serve_admin};
pub use buffer::{FRAME_BYTES_MAX_DEFAULT, FrameBuffer, FrameError, LENGTH_PREFIX_BYTES};
pub use connection::{Closed, ConnectionLimits, KEPT_REQUEST_BYTES_MAX, serve_connection};
pub use error::{Error, ProxyProtocolError, SaslError, TlsError};
pub use http::{HttpTarget, HttpUrl};
pub use listener::{Listener, ListenerLimits};
pub use log_limit::LogLimit;
pub use memory::{
    Acquire, MemoryAccount, MemoryBudget, MemoryExceeded, MemoryReading, MemoryUse, PATIENCE,
    Permit,
};
pub use metrics::Metrics;
pub use principal::{InvalidPrincipal, Principal};
pub use refusal::Refusal;
pub use service::{Reply, Response, Service};
pub use shutdown::{Phase, Shutdown};
pub use stream::Stream;
pub use threads::{NetworkHandle, NetworkThreads};
pub use watch::{Awaited, PeerWatch, Pressed, Silence};
