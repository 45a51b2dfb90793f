//! Offers Kafka loads on schedule, reads them back, and accounts for every record.
//!
//! # Layout
//! - [`workload`], [`schedule`], [`payload`], [`shape`]: what is offered, when, what a record
//!   holds, and how records differ.
//! - [`generator`]: the threads that offer a load through the `client` crate and read it back.
//! - [`security`]: TLS and SASL of its clients.
//! - [`workers`], [`clocks`]: processes on other machines that offer a load together, and the
//!   offsets of their clocks.
//! - [`ledger`]: every record sent, acknowledged and delivered, and each fault found.
//! - [`run`]: the record of one measured run.
//! - [`null_sink`]: a target with known limits.
//! - [`relay`], [`bare_disk`]: the least that a proxy and a disk
//!   cost.
//!
//! # Invariants
//! - An operation's intended time never moves; response times count from it.
//! - Every acknowledged record of every run is read back and compared.
//! - Nothing here prints or reads arguments and the environment.

pub mod bare_disk;
pub mod clocks;
pub mod generator;
pub mod ledger;
pub mod null_sink;
pub mod payload;
pub mod relay;
pub mod run;
pub mod schedule;
pub mod security;
pub mod shape;
pub mod workers;
pub mod workload;
