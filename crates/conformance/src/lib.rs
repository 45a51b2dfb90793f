//! Real Kafka clients in five languages, Kafka's own tools and Kroxylicious, against our servers.
//!
//! Development only. `cargo xtask peers` installs what this crate runs. The binary
//! `moldau-conformance` runs clients and tools, `moldau-security` clients that have to prove who
//! they are, `moldau-authorization` requests with and without rights, `moldau-odd-produces` records
//! that break the format or the rules of their topic, `moldau-differential` the same requests of
//! every API to Apache Kafka and to our broker, `moldau-outages` a Kafka behind the proxy whose
//! brokers are killed, `moldau-history` Java clients under faults whose history is judged,
//! `moldau-tenants` tenants of one Kafka, `moldau-reloads` clients during reloads, `moldau-crowd`
//! clients among many others and hostile ones, `moldau-telemetry` clients that push their metrics,
//! `moldau-tools` commands of Kafka's tools, `moldau-interop` Kroxylicious, `moldau-reports` a
//! browser; `cargo xtask test` calls all of them. `moldau-memory` runs servers with little memory,
//! by hand.
//!
//! - [`peers`]: where the installed clients and Apache Kafka are;
//! - [`process`]: a child process that never outlives its owner;
//! - [`certificates`]: certificates of two authorities, in files;
//! - [`kafka`]: Apache Kafka, of one node or more;
//! - [`vault`]: a HashiCorp Vault;
//! - [`moldau`]: the broker and the proxy;
//! - [`cluster`]: three brokers on PostgreSQL and an S3 server;
//! - [`kroxylicious`]: a Kroxylicious with record encryption;
//! - [`virtual_cluster`]: what Kroxylicious and our proxy are told of such a cluster;
//! - [`target`]: what is under test: Apache Kafka, the broker, a cluster, or the proxy before one,
//!   by ports or by host names;
//! - [`check`]: one result, as the client programs print it;
//! - [`client`]: the five client programs of `clients/` and how each is started;
//! - [`connection`]: what the programs are told that read how to connect;
//! - [`command_line`]: the same commands of Kafka's tools to Kafka, our broker and the proxy;
//! - [`tools`]: tools in the matrix, where their output alone is not enough;
//! - [`authorization`]: what clients without rights are told, by Apache Kafka and by our broker;
//! - `differential`: every API that both serve, field by field, and docs/compatibility.md;
//! - [`odd_produces`]: odd batches to Apache Kafka and to our broker, and what they make of them;
//! - [`history`]: Java clients under faults, and what `moldau lab check` makes of their history;
//! - [`interop`]: record encryption by Kroxylicious and by our proxy, each reading the other's;
//! - [`outages`]: brokers killed one after the other behind the proxy, under load;
//! - [`reports`]: the laboratory's reports, opened in a browser;
//! - [`security`]: clients with credentials, right and wrong;
//! - [`tenants`]: tenants of one Apache Kafka who have the same names;
//! - [`telemetry`]: metrics of real clients, in `/metrics` and at a collector;
//! - [`steady`]: a client that writes at a rate and reads it;
//! - [`crowd`]: a steady client among many idle ones and hostile ones;
//! - [`memory`]: a steady client among connections that take all the memory that they can get;
//! - [`reloads`]: steady clients while filters and certificates change;
//! - [`matrix`]: every program and scenario against every target, and the table of results.
//!
//! Invariants: a cell of the matrix uses topics and groups that no other cell uses, so cells
//! may run side by side in any order; a program that makes no check has failed; every process
//! listens on loopback only and is stopped when its guard is dropped.

pub mod authorization;
pub mod certificates;
pub mod check;
pub mod client;
pub mod cluster;
pub mod command_line;
pub mod connection;
pub mod crowd;
#[cfg(feature = "differential")]
pub mod differential;
pub mod history;
mod http;
pub mod interop;
pub mod kafka;
pub mod kroxylicious;
pub mod matrix;
pub mod memory;
pub mod moldau;
pub mod odd_produces;
pub mod outages;
pub mod peers;
pub mod process;
pub mod reloads;
pub mod reports;
pub mod security;
pub mod steady;
pub mod target;
pub mod telemetry;
pub mod tenants;
pub mod tools;
pub mod vault;
pub mod virtual_cluster;
