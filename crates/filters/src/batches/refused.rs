//! Produced partitions that a filter refuses: left out of the request, and added to the answer
//! about the others, where the request had them.

use std::cell::RefCell;
use std::collections::VecDeque;

use moldau_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use moldau_protocol::messages::{ProduceRequest, ProduceResponse};
use moldau_protocol::{Message, Uuid};
use moldau_proxy::{FilterError, RequestFrame, RequestOutcome, ResponseFrame, TopicNames};

use super::names::MissingNames;
use super::places::{self, Place, Topic};
use super::{Fault, Message as Records, Policy, Source, rewrite};

/// For each produce request in flight the partitions that were refused, in the order of the
/// requests, which is that of the answers.
#[derive(Debug, Default)]
pub(crate) struct RefusedInFlight(RefCell<VecDeque<(i32, Vec<Refused>)>>);

/// A partition that was refused.
#[derive(Debug)]
struct Refused {
    name: String,
    topic_id: Uuid,
    /// Which topic and partition of the request it was.
    ordinals: (usize, usize),
    answer: PartitionProduceResponse,
}

impl RefusedInFlight {
    /// Takes the records of a produce request through a policy. What that refuses is left out, and
    /// told of when the answer comes; `refused` is called for each such partition.
    pub(crate) async fn produce(
        &self,
        request: RequestFrame,
        names: &TopicNames,
        policy: &mut dyn Policy,
        refused: impl Fn(&Fault),
    ) -> Result<RequestOutcome, FilterError> {
        let places = places::of_produce(&request)?;
        let message = Records {
            source: Source::Produce,
            header: &|| request.header_bytes(),
            body: request.body(),
            flexible: request.api_version() >= ProduceRequest::FLEXIBLE_FROM,
            places: &places,
        };
        // Only requests have their topics' names asked for before.
        let rewritten = rewrite(message, names, &MissingNames::default(), policy).await;
        rewritten.faults.iter().for_each(|(_, fault)| refused(fault));
        let version = request.api_version();
        let faults = rewritten.faults.into_iter();
        let faults = faults.filter_map(|(at, fault)| {
            places.get(at).map(|place| Refused::of(place, fault, version))
        });
        let faults: Vec<Refused> = faults.collect();
        let request = match rewritten.bytes {
            Some(bytes) => request.with_bytes(bytes)?,
            None => request,
        };
        self.leave_out(request, faults)
    }

    /// Adds to an answer what was refused of its request.
    pub(crate) fn answer(&self, response: ResponseFrame) -> Result<ResponseFrame, FilterError> {
        let mut in_flight = self.0.borrow_mut();
        let is_known = in_flight.front().is_some_and(|(id, _)| *id == response.correlation_id());
        let refused = if is_known { in_flight.pop_front() } else { None };
        let refused = refused.map(|(_, refused)| refused).unwrap_or_default();
        if refused.is_empty() {
            return Ok(response);
        }
        let mut answer: ProduceResponse = response.decode()?;
        merge(&mut answer, refused);
        Ok(response.with_message(&answer)?)
    }

    fn leave_out(
        &self,
        request: RequestFrame,
        refused: Vec<Refused>,
    ) -> Result<RequestOutcome, FilterError> {
        if refused.is_empty() {
            self.note(&request, refused);
            return Ok(RequestOutcome::Forward(request));
        }
        let mut left: ProduceRequest = request.decode()?;
        remove(&mut left, &refused);
        if left.topic_data.is_empty() {
            let mut answer = ProduceResponse::default();
            merge(&mut answer, refused);
            return Ok(RequestOutcome::Respond(request.respond(&answer)?));
        }
        let request = request.with_message(&left)?;
        if !request.expects_response() {
            // Kafka too closes the connection of a producer that cannot be told of an error.
            return Ok(RequestOutcome::Close(Some(request)));
        }
        self.note(&request, refused);
        Ok(RequestOutcome::Forward(request))
    }

    fn note(&self, request: &RequestFrame, refused: Vec<Refused>) {
        if request.expects_response() {
            self.0.borrow_mut().push_back((request.correlation_id(), refused));
        }
    }
}

impl Refused {
    fn of(place: &Place<'_>, fault: Fault, version: i16) -> Self {
        let (name, topic_id) = match place.topic {
            Topic::Name(name) => (name.to_owned(), Uuid::default()),
            Topic::Id(id) => (String::new(), id),
        };
        let mut answer = PartitionProduceResponse {
            index: place.partition,
            error_code: fault.code.into(),
            base_offset: -1,
            ..PartitionProduceResponse::default()
        };
        if version >= MESSAGES_SINCE {
            answer.error_message = Some(fault.message.into_owned());
            let of_record = |(batch_index, message): (i32, _)| BatchIndexAndErrorMessage {
                batch_index,
                batch_index_error_message: Some(String::from(message)),
                ..BatchIndexAndErrorMessage::default()
            };
            answer.record_errors = fault.records.into_iter().map(of_record).collect();
        }
        Self { name, topic_id, ordinals: place.ordinals, answer }
    }
}

/// Removes what was refused, which is in the order of the request, and topics of which nothing is
/// left.
fn remove(request: &mut ProduceRequest, refused: &[Refused]) {
    let mut refused = refused.iter().map(|refused| refused.ordinals).peekable();
    let mut topic_at = 0;
    request.topic_data.retain_mut(|topic| {
        let (mut partition_at, before) = (0, topic.partition_data.len());
        topic.partition_data.retain(|_| {
            let is_refused = refused.next_if_eq(&(topic_at, partition_at)).is_some();
            partition_at += 1;
            !is_refused
        });
        topic_at += 1;
        before == 0 || !topic.partition_data.is_empty()
    });
}

/// Adds what was refused, which is in the order of the request, to the answer about the others.
fn merge(answer: &mut ProduceResponse, refused: Vec<Refused>) {
    for Refused { name, topic_id, ordinals: (topic_at, partition_at), answer: partition } in refused
    {
        let same =
            |topic: &TopicProduceResponse| (&topic.name, topic.topic_id) == (&name, topic_id);
        let at = answer.responses.iter().position(same).unwrap_or_else(|| {
            let at = topic_at.min(answer.responses.len());
            let topic = TopicProduceResponse { name, topic_id, ..Default::default() };
            answer.responses.insert(at, topic);
            at
        });
        if let Some(topic) = answer.responses.get_mut(at) {
            let at = partition_at.min(topic.partition_responses.len());
            topic.partition_responses.insert(at, partition);
        }
    }
}

/// The first version with messages beside error codes (KIP-467).
const MESSAGES_SINCE: i16 = 8;
