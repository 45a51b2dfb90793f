//! Requests of which a part is refused: that part is taken out, the rest goes on, and what is to
//! be said of the refused part joins the answer to the rest, as if the cluster had said it.

mod groups;
mod records;
mod topics;

use moldau_protocol::messages::{
    AlterConfigsRequest, DeleteTopicsRequest, DescribeConfigsRequest, FetchRequest,
    IncrementalAlterConfigsRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest,
    ProduceRequest, ShareAcknowledgeRequest, ShareFetchRequest,
};
use moldau_protocol::{ApiKey, ErrorCode, Request, Uuid};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

/// What a request names and may be refused by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    Topic(&'a str),
    TopicId(Uuid),
    Group(&'a str),
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

/// Takes out of a request what is refused. Requests that have no parts stay whole.
pub(crate) fn split(request: RequestFrame, decide: &Decide<'_>) -> Result<Split, FilterError> {
    match request.api_key() {
        ApiKey::Produce => split_as::<ProduceRequest>(request, decide),
        ApiKey::Fetch => split_as::<FetchRequest>(request, decide),
        ApiKey::ShareFetch => split_as::<ShareFetchRequest>(request, decide),
        ApiKey::ShareAcknowledge => split_as::<ShareAcknowledgeRequest>(request, decide),
        ApiKey::Metadata => split_as::<MetadataRequest>(request, decide),
        ApiKey::DeleteTopics => split_as::<DeleteTopicsRequest>(request, decide),
        ApiKey::OffsetCommit => split_as::<OffsetCommitRequest>(request, decide),
        ApiKey::OffsetFetch => split_as::<OffsetFetchRequest>(request, decide),
        ApiKey::DescribeConfigs => split_as::<DescribeConfigsRequest>(request, decide),
        ApiKey::AlterConfigs => split_as::<AlterConfigsRequest>(request, decide),
        ApiKey::IncrementalAlterConfigs => {
            split_as::<IncrementalAlterConfigsRequest>(request, decide)
        }
        _ => Ok(Split::Whole(request)),
    }
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

/// How a topic is called in versions where the name was replaced by the id.
fn topic(name: &str, id: Uuid, is_by_id: bool) -> Named<'_> {
    if is_by_id { Named::TopicId(id) } else { Named::Topic(name) }
}

#[cfg(test)]
mod tests;
