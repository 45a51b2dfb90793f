//! The L7 Kafka proxy: virtual clusters, sessions and address rewriting.
//!
//! A virtual cluster is a bootstrap listener and one listener for each broker of the real cluster.
//! The brokers are learned from the cluster's own answers; each gets a port, and the answers are
//! rewritten so that clients come back to these ports.
//!
//! | module | what it holds |
//! |---|---|
//! | `config`, `error` | [`Config`], [`VirtualCluster`], [`Error`] |
//! | `proxy`, `running` | [`Proxy`]: start, reload, readiness and drain |
//! | `cluster` | a virtual cluster: settings, filters in force, brokers that are known |
//! | `gateway`, `front` | ports and hosts of brokers; from a socket to a session |
//! | `dial`, `discovery` | connections to the cluster; its brokers, asked for |
//! | `sasl` | clients' SASL, seen or answered; the proxy's own, renewed |
//! | `session` | one client's connection and its connection upstream |
//! | `flow`, `pool` | one direction of a session, and its buffer |
//! | `filter`, `context` | [`Filter`]: what it claims, is given and says; [`SessionContext`] |
//! | `frame` | [`RequestFrame`], [`ResponseFrame`] |
//! | `chain`, `upstream` | the filters of a cluster at work; requests of their own |
//! | `topic_names` | [`TopicNames`]: which topic an id means, for filters |
//! | `requests` | headers of requests: which answers will come; requests for filters |
//! | `in_flight`, `expected` | requests that wait for their answers |
//! | `responses` | answers: passed on, held or walked |
//! | `rewrite`, `shape` | what is changed in an answer, and where it stands |
//! | `walk` | fetch answers that are streamed |
//! | `metrics`, `traffic` | counters |
//! | `latency`, `traces` | where time goes, in sum and by requests |
//!
//! Invariants:
//!
//! - Bytes pass as they came but for addresses of brokers, offered versions and what a filter
//!   claims; no other record byte is read, changed or copied on its way from socket to socket.
//! - A session stays on one thread, with one connection upstream, and holds a receive buffer only
//!   while bytes are in it. What a session holds is bounded, and no length field allocates.
//! - A broker's listener accepts before its address is advertised to a client.
//! - What either peer sends can end its own session at most, and that is counted.
//! - A client's request reaches the cluster only once the gateway's TLS and SASL let it.
//! - A reload keeps every connection of a virtual cluster that stays, and a wrong one changes
//!   nothing. An answer goes through the filters that its request went through.
//! - An API or a version that is not known here is never offered, and passes unread if used. A
//!   version of an API that a filter claims never passes unread.

mod chain;
mod cluster;
mod config;
mod context;
mod dial;
mod discovery;
mod error;
mod expected;
mod filter;
mod flow;
mod frame;
mod front;
mod gateway;
mod in_flight;
mod latency;
mod metrics;
mod pool;
mod proxy;
mod requests;
mod responses;
mod rewrite;
mod running;
mod sasl;
mod session;
mod shape;
mod topic_names;
mod traces;
mod traffic;
#[cfg(test)]
mod unserved;
mod upstream;
mod walk;

pub use config::{
    Admin, Config, Gateway, Limits, MEMORY_BYTES_MIN, Sasl, Security, UpstreamSettings,
    VirtualCluster,
};
pub use context::SessionContext;
pub use error::Error;
pub use filter::{Direction, Filter, FilterFuture, FilterMetric, RequestOutcome, SessionFilter};
pub use frame::{RequestFrame, ResponseFrame};
pub use moldau_net::Principal;
pub use proxy::Proxy;
pub use running::Reloaded;
pub use topic_names::TopicNames;
pub use traces::Traces;
pub use upstream::{FilterError, Upstream};
