//! `moldau run`: apps of the consumer framework whose handlers are programs in any language.
//!
//! | module | what it holds |
//! |---|---|
//! | `document` | the document of a request, and how payloads stand in it |
//! | `reply` | what handlers answer |
//! | `frames` | lines and length-prefixed frames of a stream |
//! | `dispatch` | which request goes to which process: no I/O |
//! | `requests` | the requests of a route, and who waits for them |
//! | `pool` | the processes of a route |
//! | `process` | one process: start, hello, requests, end |
//! | `child` | the operating system's side of a process |
//! | `guard` | ends the processes of a `moldau run` that was killed |
//! | `http` | handlers that are HTTP services |
//! | `handler` | such a handler as one of the framework |
//! | `tally` | counts for the summary |
//!
//! Invariants:
//!
//! - A record is done only after its handler has said so, and after the records that it produces
//!   are stored.
//! - The end of a process is blamed on a record only if the process had no other one.
//! - At most `in_flight_max` requests are with a process, so memory is bounded.

mod child;
mod dispatch;
mod document;
mod frames;
pub(crate) mod guard;
mod handler;
mod http;
mod pool;
mod process;
mod reply;
mod requests;
mod tally;

pub(crate) use document::{Encoding, Form};
pub(crate) use frames::Protocol;
pub(crate) use guard::Guard;
pub(crate) use handler::{Foreign, Worker};
pub(crate) use http::{HttpService, HttpSettings, HttpTo};
pub(crate) use pool::Pool;
pub(crate) use requests::PoolSettings;
pub(crate) use tally::Tally;
