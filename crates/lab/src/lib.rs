//! The laboratory: it asks what a Kafka system costs and answers with an interval and an audit.
//!
//! # Layout
//! - [`systems`]: the processes under test.
//! - [`experiments`]: the questions, as plans and functions that run them.
//! - [`checks`], [`objective`], `punctuality`: what a run must show before its figures count.
//! - [`metric`], [`figures`], [`compared`], [`history`]: figures of a result, of two, and of many.
//! - [`sizing`]: the terms of a proxy's processor time, and the cores that a load takes.
//! - [`explain`], [`littles_law`], [`totals`], [`asks`], [`ceiling`]: what follows from runs.
//! - [`survey`], [`threads`], [`soak`], [`faults`], [`check`], [`partitions`], [`administration`]:
//!   what the experiments of these names record.
//! - [`imported`], [`omb`]: outputs of other tools, and results as the OpenMessaging Benchmark has.
//! - [`reader`]: what compared consumers do with records, and what they report.
//! - [`sittings`]: an experiment that goes on after an interruption.
//! - [`result`], [`pages`], [`page`]: one JSON document, what it answers, and the renderers.
//! - [`reference_page`]: a performance page made of several results.
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
pub mod ceiling;
pub mod check;
pub mod checks;
pub mod compared;
mod details;
pub mod environment;
pub mod experiments;
pub mod explain;
pub mod faults;
pub mod figures;
pub mod goals;
pub mod history;
pub mod imported;
pub mod littles_law;
mod logs;
pub mod metric;
pub mod objective;
pub mod omb;
pub mod page;
pub mod pages;
pub mod partitions;
mod punctuality;
pub mod reader;
pub mod reference_page;
pub mod result;
mod result_page;
mod run_charts;
mod run_figures;
mod run_tables;
#[cfg(test)]
mod sample;
pub mod self_test;
pub mod sittings;
pub mod sizing;
pub mod soak;
pub mod stall;
pub mod survey;
mod survey_page;
pub mod systems;
pub mod threads;
pub mod totals;
mod wall_clock;
