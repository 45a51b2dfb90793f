//! Requests that are refused in part. The refused part is taken out and the rest goes on. Errors
//! for the refused part join the answer to the rest, as if they came from the cluster.

mod groups;
mod named;
mod records;
mod topics;
mod whole;

use std::collections::HashMap;

use moldau_protocol::messages::*;
use moldau_protocol::{ApiKey, ErrorCode, Request, Uuid};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

/// What a request names and may be refused by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Topic(&'a str),
    TopicId(Uuid),
    Group(&'a str),
    TransactionalId(&'a str),
    Cluster,
    /// Something that has a configuration, by Kafka's number of its type.
    Resource(i8, &'a str),
}

/// Decides about one thing: the error by which it is refused, if it is.
pub(crate) type Decide<'d> = dyn Fn(Named<'_>) -> Option<ErrorCode> + 'd;

/// Completes the answer to a request.
pub(crate) type Complete = Box<dyn FnOnce(ResponseFrame) -> Result<ResponseFrame, FilterError>>;

/// What is left of a request.
pub(crate) enum Split {
    /// All of it.
    Whole(RequestFrame),
    /// A part, whose answer must be completed.
    Part(RequestFrame, Complete),
    /// Nothing: it is answered.
    Nothing(ResponseFrame),
}

/// Calls a function for the type of a request that has parts.
macro_rules! call_for_parts {
    ($api:expr, $call:ident $with:tt, $otherwise:expr) => {
        match $api {
            ApiKey::Produce => $call::<ProduceRequest> $with,
            ApiKey::Fetch => $call::<FetchRequest> $with,
            ApiKey::ListOffsets => $call::<ListOffsetsRequest> $with,
            ApiKey::Metadata => $call::<MetadataRequest> $with,
            ApiKey::OffsetCommit => $call::<OffsetCommitRequest> $with,
            ApiKey::OffsetFetch => $call::<OffsetFetchRequest> $with,
            ApiKey::FindCoordinator => $call::<FindCoordinatorRequest> $with,
            ApiKey::DescribeGroups => $call::<DescribeGroupsRequest> $with,
            ApiKey::CreateTopics => $call::<CreateTopicsRequest> $with,
            ApiKey::DeleteTopics => $call::<DeleteTopicsRequest> $with,
            ApiKey::DeleteRecords => $call::<DeleteRecordsRequest> $with,
            ApiKey::OffsetForLeaderEpoch => $call::<OffsetForLeaderEpochRequest> $with,
            ApiKey::AddPartitionsToTxn => $call::<AddPartitionsToTxnRequest> $with,
            ApiKey::TxnOffsetCommit => $call::<TxnOffsetCommitRequest> $with,
            ApiKey::DescribeConfigs => $call::<DescribeConfigsRequest> $with,
            ApiKey::AlterConfigs => $call::<AlterConfigsRequest> $with,
            ApiKey::CreatePartitions => $call::<CreatePartitionsRequest> $with,
            ApiKey::DeleteGroups => $call::<DeleteGroupsRequest> $with,
            ApiKey::IncrementalAlterConfigs => $call::<IncrementalAlterConfigsRequest> $with,
            ApiKey::OffsetDelete => $call::<OffsetDeleteRequest> $with,
            ApiKey::DescribeProducers => $call::<DescribeProducersRequest> $with,
            ApiKey::DescribeTransactions => $call::<DescribeTransactionsRequest> $with,
            ApiKey::ConsumerGroupDescribe => $call::<ConsumerGroupDescribeRequest> $with,
            ApiKey::DescribeTopicPartitions => $call::<DescribeTopicPartitionsRequest> $with,
            ApiKey::ShareGroupDescribe => $call::<ShareGroupDescribeRequest> $with,
            ApiKey::ShareFetch => $call::<ShareFetchRequest> $with,
            ApiKey::ShareAcknowledge => $call::<ShareAcknowledgeRequest> $with,
            ApiKey::StreamsGroupDescribe => $call::<StreamsGroupDescribeRequest> $with,
            ApiKey::DescribeShareGroupOffsets => $call::<DescribeShareGroupOffsetsRequest> $with,
            ApiKey::AlterShareGroupOffsets => $call::<AlterShareGroupOffsetsRequest> $with,
            ApiKey::DeleteShareGroupOffsets => $call::<DeleteShareGroupOffsetsRequest> $with,
            _ => $otherwise,
        }
    };
}

/// Takes out of a request what is refused. Requests that have no parts stay whole.
pub(crate) fn split(request: RequestFrame, decide: &Decide<'_>) -> Result<Split, FilterError> {
    call_for_parts!(request.api_key(), split_as(request, decide), Ok(Split::Whole(request)))
}

/// The answer to a request that is refused as a whole by one error. It sets the error of the
/// request if the answer has one, otherwise the error of each part.
pub(crate) fn refuse(
    request: &RequestFrame,
    code: ErrorCode,
) -> Result<ResponseFrame, FilterError> {
    if let Some(answer) = whole::refuse(request, code)? {
        return Ok(answer);
    }
    let api = request.api_key();
    call_for_parts!(api, refuse_as(request, code), Err(format!("{api} has no refusal").into()))
}

/// A request with parts that can be refused.
trait Partial: Request {
    /// Takes out what is refused and gives an answer about it alone, if there is anything.
    fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<Self::Response>;

    /// Whether the request still asks for something.
    fn has_left(&self, version: i16) -> bool;

    /// Adds the answer about what was refused to that about the rest.
    fn join(answer: &mut Self::Response, refused: Self::Response);
}

fn split_as<Q: Partial>(request: RequestFrame, decide: &Decide<'_>) -> Result<Split, FilterError>
where
    Q::Response: 'static,
{
    let version = request.api_version();
    let mut message: Q = request.decode()?;
    let Some(refused) = message.take_refused(version, decide) else {
        return Ok(Split::Whole(request));
    };
    if !message.has_left(version) {
        return Ok(Split::Nothing(request.respond(&refused)?));
    }
    let complete = |answer: ResponseFrame| {
        let mut message: Q::Response = answer.decode()?;
        Q::join(&mut message, refused);
        Ok(answer.with_message(&message)?)
    };
    Ok(Split::Part(request.with_message(&message)?, Box::new(complete)))
}

fn refuse_as<Q: Partial>(
    request: &RequestFrame,
    code: ErrorCode,
) -> Result<ResponseFrame, FilterError> {
    let mut message: Q = request.decode()?;
    let refused = message.take_refused(request.api_version(), &|_| Some(code));
    // A request that asks for nothing is answered by nothing.
    Ok(request.respond(&refused.unwrap_or_default())?)
}

/// Takes the items that are refused out of a list, and tells of each what `tell` makes of it.
fn take<T, R>(
    items: &mut Vec<T>,
    decide: impl Fn(&T) -> Option<ErrorCode>,
    tell: impl Fn(T, i16) -> R,
) -> Vec<R> {
    let mut refused = Vec::new();
    for item in std::mem::take(items) {
        match decide(&item) {
            None => items.push(item),
            Some(code) => refused.push(tell(item, code.into())),
        }
    }
    refused
}

/// Merges the errors of groups that were refused in part into the answer about the others. A client
/// chooses their number, so they are looked up in a map, not in a list.
fn join_groups<G>(told: &mut Vec<G>, refused: Vec<G>, id: fn(&G) -> &String, join: fn(&mut G, G)) {
    let mut places: HashMap<String, usize> = HashMap::with_capacity(told.len());
    for (at, group) in told.iter().enumerate() {
        places.entry(id(group).clone()).or_insert(at);
    }
    for group in refused {
        match places.get(id(&group)).and_then(|at| told.get_mut(*at)) {
            Some(told) => join(told, group),
            None => told.push(group),
        }
    }
}

/// How a topic that a request calls by its name or its id is judged, which must be admitted by both
/// where it has both: clusters differ in which of them counts.
fn by_name_or_id(decide: &Decide<'_>, name: Option<&String>, id: Uuid) -> Option<ErrorCode> {
    let by_name = name.and_then(|name| decide(Named::Topic(name)));
    let has_id = name.is_none() || id != Uuid::ZERO;
    by_name.or_else(|| has_id.then(|| decide(Named::TopicId(id))).flatten())
}

/// How a topic is called in versions where the name was replaced by the id.
fn topic(name: &str, id: Uuid, is_by_id: bool) -> Named<'_> {
    if is_by_id { Named::TopicId(id) } else { Named::Topic(name) }
}

#[cfg(test)]
mod tests;
