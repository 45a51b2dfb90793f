//! Tests of the handlers, through [`crate::dispatch`] and a real journal in a temporary directory.
//!
//! [`world::World`] is a broker without sockets: a request is encoded as a client would, answered
//! by the table, and its answer decoded in the same version to its last byte.

mod acls;
mod atomicity;
mod authentication;
mod authorization;
mod broker_configs;
mod cluster_compaction;
mod cluster_health;
mod cluster_logs;
mod cluster_shares;
mod cluster_streams;
mod cluster_transactions;
mod clusters;
mod compaction;
mod configs;
mod consumer_groups;
mod controller;
mod dead_letters;
mod fetch;
mod fetch_cold;
mod fetch_limits;
mod forwarding;
mod groups;
mod hostile;
mod keyed;
mod large_topics;
mod listeners;
mod log_dirs;
mod lookups;
mod memory;
mod packing;
mod produce;
mod quotas;
mod requests;
mod restart;
mod share_deliveries;
mod share_groups;
mod space;
mod streams_groups;
mod telemetry;
mod topics;
mod transactions;
mod versions;
mod waist;
mod world;
