//! The coordinator as its callers see it: requests in, replies and records out.

mod consumer_groups;
mod consumer_offsets;
mod consumer_simulation;
mod consumer_world;
mod joining;
mod mixed_groups;
mod mixed_member;
mod mixed_simulation;
mod offsets;
mod records;
mod rejoining;
mod restart;
mod seeds;
mod share_groups;
mod share_partition_records;
mod share_partition_simulation;
mod share_simulation;
mod share_world;
mod simulation;
mod static_members;
mod transaction_records;
mod transaction_simulation;
mod transactions;
mod world;
