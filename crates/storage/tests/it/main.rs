//! Storage through its public interface, on real files and on a simulated disk.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "the numbers of a test are small, and what is unexpected ends it"
)]

mod damage;
mod golden;
mod logs;
mod on_disk;
mod panics;
mod repair;
mod segments;
mod sim_disk;
mod simulation;
mod together;
mod transactions;
mod trouble;
mod world;
