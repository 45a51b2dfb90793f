//! Real Kafka clients in five languages, and Kafka's own tools, against a running server.
//!
//! Development only. `cargo xtask peers` installs what this crate runs; the binary
//! `moldau-conformance` runs it and `cargo xtask test` calls that binary.
//!
//! - [`peers`]: where the installed clients and Apache Kafka are;
//! - [`process`]: a child process that never outlives its owner;
//! - [`kafka`]: a single-node Apache Kafka;
//! - [`moldau`]: the broker and the proxy;
//! - [`kroxylicious`]: a Kroxylicious with record encryption;
//! - [`virtual_cluster`]: what Kroxylicious and our proxy are told of such a cluster;
//! - [`target`]: what is under test: Apache Kafka, the broker, or the proxy before either;
//! - [`check`]: one result, as the client programs print it;
//! - [`client`]: the five client programs of `clients/` and how each is started;
//! - [`tools`]: Kafka's command-line tools, with what their output must show;
//! - [`matrix`]: every program and scenario against every target, and the table of results.
//!
//! Invariants: a cell of the matrix uses topics and groups that no other cell uses, so cells
//! may run side by side in any order; a program that makes no check has failed; every process
//! listens on loopback only and is stopped when its guard is dropped.

pub mod check;
pub mod client;
pub mod kafka;
pub mod kroxylicious;
pub mod matrix;
pub mod moldau;
pub mod peers;
pub mod process;
pub mod target;
pub mod tools;
pub mod virtual_cluster;
