//! Produce without copies: a borrowed view of requests, and an encoder that leaves records where
//! they are.

mod encoder;
mod view;

#[cfg(test)]
mod tests;

pub use encoder::{PartitionBatches, ProduceRequestEncoder, TopicBatches};
pub(crate) use view::TOPIC_ID_SINCE;
pub use view::{PartitionRecords, ProduceRequestView, TopicRecords};
