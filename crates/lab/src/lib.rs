//! The laboratory: it asks what a Kafka system costs and answers with an interval and an audit.
//!
//! # Layout
//! - [`workload`], [`schedule`], [`payload`], [`shape`]: what is offered, when, what a record
//!   holds, and how records differ.
//! - [`generator`]: the threads that offer it through the `client` crate and read it back.
//! - [`workers`], [`clocks`]: processes on other machines that offer a load together, and how far
//!   their clocks are off.
//! - [`ledger`]: every record sent, acknowledged and delivered, and what went wrong with it.
//! - [`histograms`], [`cpu`], [`resources`], [`evidence`], [`environment`]: latencies, processor
//!   time, what a process holds and waits for, which `gathering` watches, the machine.
//! - [`systems`], [`bare_disk`], [`relay`]: the processes under test, what the disk gives without
//!   them, and the least that a proxy costs.
//! - [`null_sink`], `faulty_relay`, [`self_test`]: targets whose faults and limits are known, and
//!   what the laboratory finds about itself with them.
//! - [`experiments`]: the questions, as plans and functions that run them.
//! - [`metric`], [`statistics`], [`stall`]: figures, paired differences with intervals, and what a
//!   stop of the target must look like.
//! - [`checks`], [`objective`]: what the laboratory demands of itself and of a target, and the
//!   verdict; `punctuality`: what a run is worth whose generator was late.
//! - [`explain`]: which resource limits a run, by its evidence and by what would show it wrong;
//!   `control_group`: the kernel's limit of processor time.
//! - [`sizing`]: what a proxy's processor time is made of, and how many cores a load takes.
//! - [`littles_law`]: how many partitions a rate takes; [`administration`]: what it takes a cluster
//!   to make and move them.
//! - [`threads`]: consumers of several topics on several threads.
//! - [`survey`], [`totals`], [`asks`]: the same loads on several systems, what published claims
//!   come to there, totals as others compute them, and what operators ask of them.
//! - [`soak`]: what systems hold in the course of hours.
//! - [`faults`]: what struck systems under load, and what became of their records and clients.
//! - [`imported`], [`omb`]: outputs of other tools, and results as the OpenMessaging Benchmark has.
//! - [`sittings`]: what an experiment that was interrupted has finished.
//! - [`profile`]: where processes spend their time, as files beside a result.
//! - [`run`], [`partitions`], [`result`], [`report`]: one JSON document, and everything that is
//!   made from it alone; `numbers`: how figures are written.
//! - [`figures`], [`compared`], [`history`]: two results side by side, and many over time.
//!
//! # Invariants
//! - An operation's intended time never moves; response times count from it.
//! - The generator never shares a process with what it measures.
//! - No sample is dropped: what is not positive is counted, what is too long is recorded as the
//!   longest.
//! - Every acknowledged record of every run is read back and compared.
//! - A result whose run fails a check carries the verdict that says so, and its sentence does too.
//! - Nothing here prints or reads arguments and the environment.

pub mod administration;
pub mod asks;
pub mod bare_disk;
pub mod ceiling;
pub mod checks;
pub mod clocks;
pub mod compared;
mod control_group;
pub mod cpu;
mod disk_cost;
pub mod environment;
mod error;
pub mod evidence;
pub mod experiments;
pub mod explain;
pub mod faults;
mod faulty_relay;
pub mod figures;
mod gathering;
pub mod generator;
pub mod histograms;
pub mod history;
pub mod imported;
pub mod ledger;
pub mod littles_law;
pub mod metric;
pub mod null_sink;
mod numbers;
pub mod objective;
pub mod omb;
pub mod partitions;
pub mod payload;
pub mod profile;
mod punctuality;
pub mod relay;
pub mod report;
pub mod resources;
pub mod result;
mod round_trips;
pub mod run;
pub mod schedule;
pub mod self_test;
pub mod shape;
pub mod sittings;
pub mod sizing;
pub mod soak;
pub mod stall;
pub mod statistics;
pub mod survey;
pub mod systems;
pub mod threads;
pub mod totals;
pub mod workers;
pub mod workload;

pub use error::Error;
