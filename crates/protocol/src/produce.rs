//! Produce without copies: a borrowed view of requests, and an encoder that leaves records where
//! they are.

mod encoder;
mod view;

#[cfg(test)]
mod tests;

pub use encoder::{PartitionBatches, ProduceRequestEncoder, TopicBatches};
pub(crate) use view::TOPIC_ID_SINCE;
pub use view::{PartitionRecords, ProduceRequestView, TopicRecords};

use crate::frame;

/// The first flexible version.
const FLEXIBLE_SINCE: i16 = 9;

/// Raises the throttle time of a response without tagged fields, which ends with it.
pub fn raise_throttle_time(response: &mut [u8], version: i16, throttle_time_ms: i32) {
    let end = size_of::<i32>() + usize::from(version >= FLEXIBLE_SINCE);
    if let Some(at) = response.len().checked_sub(end) {
        frame::raise(response, at, throttle_time_ms);
    }
}
