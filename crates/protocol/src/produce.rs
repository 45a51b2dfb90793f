//! Produce without copies: a borrowed view of requests.

mod view;

pub use view::{PartitionRecords, ProduceRequestView, TopicRecords};
