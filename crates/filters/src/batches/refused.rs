//! Produced partitions that a filter refuses: left out of the request, and added to the answer
//! about the others, where the request had them.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};

use moldau_protocol::frame::LENGTH_SIZE;
use moldau_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, PartitionProduceResponse, TopicProduceResponse,
};
use moldau_protocol::messages::{ProduceRequest, ProduceResponse};
use moldau_protocol::{Message, Uuid};
use moldau_proxy::{
    FilterError, RequestFrame, RequestOutcome, ResponseFrame, SessionContext, TopicNames,
};

use super::places::{self, Place, Topic};
use super::{Fault, Message as Records, Names, Policy, Source, rewrite};

/// For each produce request in flight what was refused of it, in the order of the requests, which
/// is that of the answers.
#[derive(Debug, Default)]
pub(crate) struct RefusedInFlight(RefCell<VecDeque<(i32, Vec<Refused>)>>);

/// Partitions of a topic that were refused, each by its place in the topic, and the topic by its
/// place in the request. Its name may be long, and stands here once.
#[derive(Debug)]
struct Refused {
    name: String,
    topic_id: Uuid,
    at: usize,
    partitions: Vec<(usize, PartitionProduceResponse)>,
}

impl RefusedInFlight {
    /// Takes the records of a produce request through a policy. What that refuses is left out, and
    /// added to the answer when that comes. `known` has the names of topics by id. What is sent on
    /// takes as many bytes at most as the session allows for a frame.
    pub(crate) async fn produce(
        &self,
        request: RequestFrame,
        session: &SessionContext,
        known: &TopicNames,
        policy: &mut dyn Policy,
    ) -> Result<RequestOutcome, FilterError> {
        let places = places::of_produce(&request)?;
        let message = Records {
            source: Source::Produce,
            header: &|| request.header_bytes(),
            body: request.body(),
            flexible: request.api_version() >= ProduceRequest::FLEXIBLE_FROM,
            places: &places,
            size: request.bytes().len(),
            bytes_max: session.frame_bytes_max().saturating_add(LENGTH_SIZE),
            memory: session.memory(),
            names: Some(Names { known, missing: None }),
        };
        let rewritten = rewrite(message, policy).await;
        let faults = rewritten.faults.into_iter();
        let faults = faults.filter_map(|(at, fault)| Some((places.get(at)?, fault)));
        let refused = Refused::of(faults, request.api_version());
        let request = match rewritten.bytes {
            Some(bytes) => request.with_bytes(bytes)?,
            None => request,
        };
        self.leave_out(request, refused)
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
            // Kafka too closes the connection here: a producer with acks=0 gets no error.
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
    /// Gathers what is wrong with partitions, in the order of the request, by their topics.
    fn of<'p>(faults: impl Iterator<Item = (&'p Place<'p>, Fault)>, version: i16) -> Vec<Self> {
        let mut topics: Vec<Self> = Vec::new();
        for (place, fault) in faults {
            let (topic_at, partition_at) = place.ordinals;
            let refused = (partition_at, refused_partition(place.partition, fault, version));
            match topics.last_mut().filter(|topic| topic.at == topic_at) {
                Some(topic) => topic.partitions.push(refused),
                None => {
                    let (name, topic_id) = match place.topic {
                        Topic::Name(name) => (name.to_owned(), Uuid::default()),
                        Topic::Id(id) => (String::new(), id),
                    };
                    topics.push(Self { name, topic_id, at: topic_at, partitions: vec![refused] });
                }
            }
        }
        topics
    }
}

fn refused_partition(index: i32, fault: Fault, version: i16) -> PartitionProduceResponse {
    let mut answer = PartitionProduceResponse {
        index,
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
    answer
}

/// Removes refused partitions, and topics that are empty afterwards.
fn remove(request: &mut ProduceRequest, refused: &[Refused]) {
    let (mut refused, mut topic_at) = (refused.iter().peekable(), 0);
    request.topic_data.retain_mut(|topic| {
        let here = refused.next_if(|refused| refused.at == topic_at);
        topic_at += 1;
        let Some(here) = here else { return true };
        let mut gone = here.partitions.iter().map(|(at, _)| *at).peekable();
        let mut partition_at = 0;
        topic.partition_data.retain(|_| {
            let is_refused = gone.next_if_eq(&partition_at).is_some();
            partition_at += 1;
            !is_refused
        });
        !topic.partition_data.is_empty()
    });
}

/// Adds what was refused to the answer about the others. A client chooses how many topics that
/// concerns, so none is looked for in a list.
fn merge(answer: &mut ProduceResponse, refused: Vec<Refused>) {
    let told = answer.responses.iter().enumerate();
    let mut places: HashMap<(String, Uuid), usize> = HashMap::with_capacity(told.len());
    for (at, topic) in told {
        places.entry((topic.name.clone(), topic.topic_id)).or_insert(at);
    }
    let answered = answer.responses.len();
    let mut added: Vec<(usize, TopicProduceResponse)> = Vec::new();
    for Refused { name, topic_id, at, partitions } in refused {
        let next = answered + added.len();
        let place = *places.entry((name.clone(), topic_id)).or_insert(next);
        if let Some(topic) = answer.responses.get_mut(place) {
            let others = std::mem::take(&mut topic.partition_responses);
            topic.partition_responses = interleaved(others, partitions);
        } else if let Some((_, topic)) = added.get_mut(place - answered) {
            // A request may name a topic twice, and Kafka answers once.
            topic.partition_responses.extend(partitions.into_iter().map(|(_, it)| it));
        } else {
            let partition_responses = interleaved(Vec::new(), partitions);
            let topic = TopicProduceResponse {
                name,
                topic_id,
                partition_responses,
                ..TopicProduceResponse::default()
            };
            added.push((at, topic));
        }
    }
    answer.responses = interleaved(std::mem::take(&mut answer.responses), added);
}

/// A list with further items, each at its place in what comes of it, in ascending order.
fn interleaved<T>(items: Vec<T>, added: Vec<(usize, T)>) -> Vec<T> {
    let mut all = Vec::with_capacity(items.len() + added.len());
    let mut items = items.into_iter();
    for (at, item) in added {
        all.extend(items.by_ref().take(at.saturating_sub(all.len())));
        all.push(item);
    }
    all.extend(items);
    all
}

/// The first version with messages beside error codes (KIP-467).
const MESSAGES_SINCE: i16 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(index: i32) -> PartitionProduceResponse {
        PartitionProduceResponse { index, ..PartitionProduceResponse::default() }
    }

    fn refused(name: &str, at: usize, partitions: &[usize]) -> Refused {
        let of = |at: &usize| (*at, partition(i32::try_from(*at).unwrap()));
        let partitions = partitions.iter().map(of).collect();
        Refused { name: name.to_owned(), topic_id: Uuid::ZERO, at, partitions }
    }

    fn told(name: &str, partitions: &[i32]) -> TopicProduceResponse {
        TopicProduceResponse {
            name: name.to_owned(),
            partition_responses: partitions.iter().copied().map(partition).collect(),
            ..TopicProduceResponse::default()
        }
    }

    #[test]
    fn what_was_refused_stands_where_the_request_had_it() {
        let responses = vec![told("b", &[1, 3]), told("d", &[0])];
        let mut answer = ProduceResponse { responses, ..ProduceResponse::default() };
        let all = [("a", 0, &[0, 1][..]), ("b", 1, &[0, 2, 4]), ("c", 2, &[0]), ("e", 9, &[0])];
        merge(&mut answer, all.map(|(name, at, of)| refused(name, at, of)).into());
        let expected = [
            told("a", &[0, 1]),
            told("b", &[0, 1, 2, 3, 4]),
            told("c", &[0]),
            told("d", &[0]),
            told("e", &[0]),
        ];
        assert_eq!(answer.responses, expected);
    }

    /// Each topic was looked for among all others: 1.5 MB of a client stopped a thread for minutes.
    #[test]
    fn as_many_topics_as_a_request_may_name_are_answered() {
        let mut answer = ProduceResponse::default();
        let names = (0..100_000).map(|at| (at, format!("topic-{at:06}")));
        merge(&mut answer, names.map(|(at, name)| refused(&name, at, &[0])).collect());
        assert_eq!(answer.responses.len(), 100_000);
        assert_eq!(answer.responses.last(), Some(&told("topic-099999", &[0])));
    }
}
