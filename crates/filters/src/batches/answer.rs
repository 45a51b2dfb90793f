//! Fetched records on their way through a filter, and partitions that it withholds.

use bytes::Bytes;
use moldau_protocol::messages::fetch_response::PartitionData;
use moldau_protocol::messages::{FetchResponse, ShareFetchResponse};
use moldau_protocol::{ApiKey, ErrorCode, Message};
use moldau_proxy::{FilterError, ResponseFrame, SessionContext};

use super::places::{self, Place};
use super::{Fault, Message as Records, Names, Policy, Source, rewrite};

/// Takes the records of a Fetch or ShareFetch answer through a policy, which gets `names` if it
/// needs those of topics. A partition that it refuses has an error in place of records.
pub(crate) async fn fetched(
    response: ResponseFrame,
    session: &SessionContext,
    names: Option<Names<'_>>,
    policy: &mut dyn Policy,
) -> Result<ResponseFrame, FilterError> {
    let is_share = response.api_key() == ApiKey::ShareFetch;
    let places = places::of_answer(&response)?;
    let message = Records {
        source: if is_share { Source::ShareFetch } else { Source::Fetch },
        header: &|| response.header_bytes(),
        body: response.body(),
        flexible: is_share || response.api_version() >= FetchResponse::FLEXIBLE_FROM,
        places: &places,
        size: response.bytes().len(),
        bytes_max: ANSWER_BYTES_MAX,
        memory: session.memory(),
        names,
    };
    let rewritten = rewrite(message, policy).await;
    let faults = rewritten.faults.iter().filter_map(|(at, fault)| {
        Some((places.get(*at).map(|place: &Place<'_>| place.ordinals)?, fault))
    });
    let faults: Vec<((usize, usize), &Fault)> = faults.collect();
    drop(places);
    let response = match rewritten.bytes {
        Some(bytes) => response.with_bytes(bytes)?,
        None => response,
    };
    match (faults.is_empty(), is_share) {
        (true, _) => Ok(response),
        (false, false) => withhold(response, &faults),
        (false, true) => withhold_shared(response, &faults),
    }
}

fn withhold(
    response: ResponseFrame,
    faults: &[((usize, usize), &Fault)],
) -> Result<ResponseFrame, FilterError> {
    let mut answer: FetchResponse = response.decode()?;
    for ((topic, partition), fault) in faults {
        let topic = answer.responses.get_mut(*topic);
        let partition = topic.and_then(|topic| topic.partitions.get_mut(*partition));
        let partition = partition.ok_or("a fetch answer lost a partition")?;
        *partition = PartitionData {
            partition_index: partition.partition_index,
            error_code: code(fault).into(),
            high_watermark: -1,
            records: Some(Bytes::new()),
            ..PartitionData::default()
        };
    }
    Ok(response.with_message(&answer)?)
}

fn withhold_shared(
    response: ResponseFrame,
    faults: &[((usize, usize), &Fault)],
) -> Result<ResponseFrame, FilterError> {
    let mut answer: ShareFetchResponse = response.decode()?;
    for ((topic, partition), fault) in faults {
        let topic = answer.responses.get_mut(*topic);
        let partition = topic.and_then(|topic| topic.partitions.get_mut(*partition));
        let partition = partition.ok_or("a share fetch answer lost a partition")?;
        partition.error_code = code(fault).into();
        partition.records = Bytes::new();
        partition.acquired_records.clear();
    }
    Ok(response.with_message(&answer)?)
}

/// Most bytes of an answer that grows: more than a consumer asks for by default, and as much as
/// librdkafka takes.
const ANSWER_BYTES_MAX: usize = 100_000_000;

/// The code that a consumer understands. The Java client knows few codes of a fetched partition,
/// and takes any other for a fault of its own.
fn code(fault: &Fault) -> ErrorCode {
    match fault.code {
        code @ (ErrorCode::UnknownTopicId
        | ErrorCode::TopicAuthorizationFailed
        | ErrorCode::KafkaStorageError) => code,
        _ => ErrorCode::CorruptMessage,
    }
}
