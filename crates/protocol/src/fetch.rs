//! Fetch without copies: an encoder of responses that leaves records where they are, and a
//! borrowed view for clients. Fetch requests carry no records: see
//! [`FetchRequest`](crate::messages::FetchRequest).
//!
//! A response, versions 4-18:
//!
//! ```text
//! throttle_time_ms int32 | error_code int16, session_id int32 (from 7)
//! topics: array of
//!     name string (to 12) or topic_id uuid (from 13)
//!     partitions: array of
//!         index int32 | error_code int16 | high_watermark int64 | last_stable_offset int64
//!         log_start_offset int64 (from 5)
//!         aborted_transactions: nullable array of
//!             producer_id int64 | first_offset int64 | tagged fields (from 12)
//!         preferred_read_replica int32 (from 11)
//!         records nullable bytes
//!         tagged fields (from 12): 0 diverging_epoch, 1 current_leader, 2 snapshot_id
//!     tagged fields (from 12)
//! tagged fields (from 12): 0 node_endpoints (from 16)
//! ```

mod encoder;
mod view;

#[cfg(test)]
mod tests;

pub use encoder::{FetchResponseEncoder, FetchedPartition, FetchedTopic};
pub use view::{FetchResponseView, PartitionView, TopicView};

/// The first version with sessions (KIP-227).
pub(crate) const SESSION_SINCE: i16 = 7;
/// The first version that names a replica to read from (KIP-392).
pub(crate) const PREFERRED_READ_REPLICA_SINCE: i16 = 11;
/// The first version with the start of the log.
pub(crate) const LOG_START_OFFSET_SINCE: i16 = 5;
/// The first version that names topics by id (KIP-516).
pub(crate) const TOPIC_ID_SINCE: i16 = 13;
/// The first version with the addresses of other leaders (KIP-951).
pub(crate) const NODE_ENDPOINTS_SINCE: i16 = 16;
