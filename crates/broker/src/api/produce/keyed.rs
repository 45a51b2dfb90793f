//! The records of a compacted topic: each has a key, and offsets count up by one.

use std::cell::RefCell;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::produce_response::BatchIndexAndErrorMessage;
use moldau_records::{Decompressor, Error, ValidBatch};

use super::Refused;
use crate::error::{Refusal, records_refusal};

/// Most bytes that a batch may unpack to: far above what producers put into one, and little enough
/// for each network thread to hold at a time.
const UNPACKED_BYTES_MAX: usize = 64 << 20;

/// Records that are named in a refusal. Producers put down the others to their company, and a small
/// batch can unpack to millions.
const NAMED_RECORDS_MAX: usize = 1_000;

thread_local! {
    /// Codec states are large, so a thread makes them once.
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::default();
}

/// Walks the records of a batch.
///
/// # Errors
/// `INVALID_RECORD` with the records that have no key, as Kafka; `MESSAGE_TOO_LARGE` for a batch
/// that unpacks to too much, which makes producers split it; what [`records_refusal`] says of
/// records that cannot be read.
pub(super) fn check(batch: &ValidBatch<'_>) -> Result<(), Refused> {
    let refuse = |error: Error| match error {
        Error::PayloadTooLarge { .. } => {
            let message = format!(
                "a batch of a compacted topic unpacks to {UNPACKED_BYTES_MAX} \
                bytes at most"
            );
            Refusal::new(ErrorCode::MessageTooLarge, message).into()
        }
        error => Refused::from(records_refusal(&error)),
    };
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        let mut keyless = Vec::new();
        let records = batch.view().records(decompressor, UNPACKED_BYTES_MAX).map_err(refuse)?;
        for (index, record) in (0..).zip(records) {
            let record = record.map_err(refuse)?;
            if record.offset_delta() != index {
                let message = format!("record {index} of the batch has another offset");
                return Err(Refusal::new(ErrorCode::InvalidRecord, message).into());
            }
            if record.key().is_none() && keyless.len() < NAMED_RECORDS_MAX {
                keyless.push(index);
            }
        }
        if keyless.is_empty() {
            return Ok(());
        }
        let message = "a record of a compacted topic needs a key";
        let named = keyless.iter().map(|index| BatchIndexAndErrorMessage {
            batch_index: *index,
            batch_index_error_message: Some(message.to_owned()),
            ..BatchIndexAndErrorMessage::default()
        });
        Err(Refused {
            refusal: Refusal::new(ErrorCode::InvalidRecord, message),
            records: named.collect(),
        })
    })
}
