//! The binary as a whole: processes that are started, killed, starved and fed with rubbish.
//!
//! Tests start in the order of their names. The longest are in the first modules, so that nothing
//! waits for them alone at the end.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

#[cfg(feature = "real-clients")]
mod apache_kafka;
mod bad_input;
mod check;
mod client_tools;
mod cluster;
mod cluster_operation;
mod cluster_outages;
mod config_check;
mod crash;
mod disk_full;
mod drivers;
mod encryption;
mod exactly_once;
mod experiments;
mod faults;
mod filters;
mod hostile_frames;
mod importing;
mod key_file;
mod lab_results;
mod ledger;
mod listeners;
mod memberships;
mod metrics;
mod partitions;
mod profiling;
mod questions;
mod reading_back;
mod reloading;
mod repair;
mod run;
mod shaped_loads;
mod share_groups;
mod sittings;
mod termination;
mod traffic;
#[cfg(feature = "real-vault")]
mod vault;
mod workers;
mod world;
