//! WriteTxnMarkers 1-2, for `kafka-transactions abort` (KIP-664).
//!
//! The coordinator of this broker writes its markers itself. A marker from outside ends what a log
//! holds of a transaction that the coordinator does not know; what it knows is refused, since
//! the transaction would be torn: its owner or its timeout ends it.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::write_txn_markers_request::WritableTxnMarker;
use moldau_protocol::messages::write_txn_markers_response::{
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
};
use moldau_protocol::messages::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
use moldau_records::{Marker, MarkerBatch};

use crate::api::transactions::once_written;
use crate::authorizer::Operation;
use crate::call::{Call, Outcome};
use crate::logs::Lsn;
use crate::partition::{self, Partition};

pub(crate) fn handle(
    call: &Call<'_>,
    request: WriteTxnMarkersRequest,
) -> Outcome<WriteTxnMarkersResponse> {
    let is_allowed = call.rights.allow_on_cluster(Operation::ClusterAction)
        || call.rights.allow_on_cluster(Operation::Alter);
    let mut last = None;
    // As in Kafka, a marker without partitions is not in the response.
    let has_partitions = |marker: &&WritableTxnMarker| {
        marker.topics.iter().any(|topic| !topic.partition_indexes.is_empty())
    };
    let markers = request.markers.iter().filter(has_partitions).map(|marker| {
        let topics = marker.topics.iter().map(|topic| {
            let partitions = topic.partition_indexes.iter().map(|index| {
                let written = match is_allowed {
                    true => write(call, marker, &topic.name, *index),
                    false => Err(ErrorCode::ClusterAuthorizationFailed),
                };
                last = last.max(written.unwrap_or_default());
                WritableTxnMarkerPartitionResult {
                    partition_index: *index,
                    error_code: written.err().unwrap_or(ErrorCode::None).into(),
                    ..WritableTxnMarkerPartitionResult::default()
                }
            });
            WritableTxnMarkerTopicResult {
                name: topic.name.clone(),
                partitions: partitions.collect(),
                ..WritableTxnMarkerTopicResult::default()
            }
        });
        WritableTxnMarkerResult {
            producer_id: marker.producer_id,
            topics: topics.collect(),
            ..WritableTxnMarkerResult::default()
        }
    });
    let markers = markers.collect();
    let mut response = WriteTxnMarkersResponse { markers, ..WriteTxnMarkersResponse::default() };
    once_written(call, last, move |durable| {
        if let Err(code) = durable {
            let topics = response.markers.iter_mut().flat_map(|marker| &mut marker.topics);
            let partitions = topics.flat_map(|topic| &mut topic.partitions);
            partitions.for_each(|partition| partition.error_code = code.into());
        }
        response
    })
}

/// Ends the producer's transaction in one partition, if one is open there.
fn write(
    call: &Call<'_>,
    asked: &WritableTxnMarker,
    topic: &str,
    index: i32,
) -> Result<Option<Lsn>, ErrorCode> {
    let Partition::Written(log) = partition::by_name(call.state, topic, index, -1)? else {
        return Ok(None);
    };
    // A cluster's transactions are known to the coordinator alone.
    let Some(log) = log.of_journal() else { return Ok(None) };
    let open = log.open_transactions();
    let Some((_, epoch)) = open.into_iter().find(|(id, _)| *id == asked.producer_id) else {
        return Ok(None);
    };
    if asked.producer_epoch < epoch {
        return Err(ErrorCode::InvalidProducerEpoch);
    }
    call.state.transactions.view(|transactions| {
        let mut ongoing = transactions.list().filter(|(_, known)| known.is_open());
        if ongoing.any(|(_, known)| known.producer.id == asked.producer_id) {
            return Err(ErrorCode::InvalidTxnState);
        }
        let marker = if asked.transaction_result { Marker::Commit } else { Marker::Abort };
        let (id, epoch) = (asked.producer_id, asked.producer_epoch);
        let batch = MarkerBatch::new(id, epoch, marker, call.now_ms);
        call.state.append_marker(log, batch).map(Some).map_err(|refusal| refusal.code)
    })
}
