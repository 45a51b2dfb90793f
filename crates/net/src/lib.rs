//! Network threads, listeners, frames and pipelined connections, with their limits.
//!
//! | module | what it holds |
//! |---|---|
//! | `threads` | [`NetworkThreads`]: single-threaded runtimes, placement of connections, drain |
//! | `listener` | [`Listener`]: bind, accept loop, connection limit |
//! | `buffer` | [`FrameBuffer`]: bytes from a socket cut into length-prefixed frames |
//! | `service` | [`Service`], [`Reply`], [`Response`]: what answers the frames of a connection |
//! | `connection` | [`serve_connection`]: reads, dispatches and answers one connection |
//! | `admin` | [`serve_admin`]: the pages of an admin port |
//! | `shutdown` | [`Shutdown`]: the drain signal |
//! | `metrics` | [`Metrics`]: counters |
//!
//! Invariants:
//!
//! - A connection is served by one thread from accept to close; nothing of it crosses threads.
//! - Requests are handed to the service in arrival order and answered in that order, however
//!   long a single answer takes.
//! - No allocation follows from a length field alone: a buffer grows as bytes arrive, up to the
//!   frame limit.
//! - Requests in flight, bytes waiting to be written, connections and hand-overs are bounded.
//! - Nothing a peer sends can panic; a broken frame closes its own connection and is counted.

mod admin;
mod buffer;
mod connection;
mod error;
mod listener;
mod metrics;
mod notice;
mod principal;
mod service;
mod shutdown;
mod threads;

pub use admin::serve_admin;
pub use buffer::{FRAME_BYTES_MAX_DEFAULT, FrameBuffer, FrameError, LENGTH_PREFIX_BYTES};
pub use connection::{Closed, ConnectionLimits, serve_connection};
pub use error::Error;
pub use listener::{Listener, ListenerLimits};
pub use metrics::Metrics;
pub use principal::{InvalidPrincipal, Principal};
pub use service::{Reply, Response, Service};
pub use shutdown::{Phase, Shutdown};
pub use threads::{NetworkHandle, NetworkThreads};
