//! The assignors, and the consumer protocol's own messages, which a version number precedes.

mod sticky;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::consumer_protocol_assignment::TopicPartition as AssignedTopic;
use moldau_protocol::messages::consumer_protocol_subscription::TopicPartition as OwnedTopic;
use moldau_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use moldau_protocol::{ApiKey, Message, Reader, Writer};

use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Version with all that eager assignors and assignments need, understood by every member.
const EAGER_VERSION: i16 = 0;

/// Who of the members gets what.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Assignor {
    /// Runs of consecutive partitions; members give everything up before.
    Range,
    /// As even as possible with few moves; members keep what does not move (KIP-429).
    CooperativeSticky,
}

/// A member and what it wants to read.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    /// Members are ordered by this.
    pub(super) order: String,
    pub(super) id: String,
    pub(super) topics: Vec<String>,
    /// What it holds, as of this generation.
    pub(super) held: Vec<TopicPartition>,
    pub(super) generation: i32,
}

impl Assignor {
    /// The assignor of this name, which `range` is by default.
    pub(super) fn named(name: Option<&str>) -> Result<Self> {
        match name {
            None | Some("range") => Ok(Self::Range),
            Some("cooperative-sticky") => Ok(Self::CooperativeSticky),
            Some(other) => Err(Error::UnknownAssignor { name: other.into() }),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::CooperativeSticky => "cooperative-sticky",
        }
    }

    /// What a member tells the leader.
    pub(super) fn subscription<'a>(
        self,
        topics: Vec<String>,
        held: impl Iterator<Item = &'a TopicPartition>,
        generation_id: i32,
        rack_id: Option<String>,
    ) -> Result<Bytes> {
        let subscription = ConsumerProtocolSubscription { topics, ..Default::default() };
        match self {
            Self::Range => encode(&subscription, EAGER_VERSION),
            Self::CooperativeSticky => {
                let owned = |(topic, partitions)| OwnedTopic { topic, partitions };
                let owned_partitions = by_topic(held).into_iter().map(owned).collect();
                let subscription = ConsumerProtocolSubscription {
                    owned_partitions,
                    generation_id,
                    rack_id,
                    ..subscription
                };
                encode(&subscription, ConsumerProtocolSubscription::VERSIONS.max)
            }
        }
    }

    /// What each member gets; `partitions` holds the number of partitions by topic.
    pub(super) fn assign(
        self,
        members: &mut [Subscriber],
        partitions: &HashMap<String, usize>,
    ) -> BTreeMap<String, Vec<TopicPartition>> {
        members.sort_by(|a, b| a.order.cmp(&b.order));
        match self {
            Self::Range => range(members, partitions),
            Self::CooperativeSticky => sticky::assign(members, partitions),
        }
    }
}

impl Subscriber {
    pub(super) fn new(order: &str, id: &str, subscription: ConsumerProtocolSubscription) -> Self {
        let owned = subscription.owned_partitions.into_iter();
        Self {
            order: order.to_owned(),
            id: id.to_owned(),
            topics: subscription.topics,
            held: flatten(owned.map(|owned| (owned.topic, owned.partitions))),
            generation: subscription.generation_id,
        }
    }
}

/// Gives each member a run of consecutive partitions of each topic, the first members one more
/// where they do not divide evenly.
fn range(
    members: &[Subscriber],
    partitions: &HashMap<String, usize>,
) -> BTreeMap<String, Vec<TopicPartition>> {
    let mut assignment: BTreeMap<String, Vec<TopicPartition>> =
        members.iter().map(|member| (member.id.clone(), Vec::new())).collect();
    for (topic, count) in partitions {
        let readers: Vec<&Subscriber> =
            members.iter().filter(|member| member.topics.contains(topic)).collect();
        let topic: Arc<str> = topic.as_str().into();
        let Some(each) = count.checked_div(readers.len()) else { continue };
        let with_one_more = count % readers.len();
        let mut next = 0..i32::try_from(*count).unwrap_or(i32::MAX);
        for (place, reader) in readers.into_iter().enumerate() {
            let share = each + usize::from(place < with_one_more);
            let run = next.by_ref().take(share);
            let run = run.map(|partition| TopicPartition { topic: topic.clone(), partition });
            assignment.entry(reader.id.clone()).or_default().extend(run);
        }
    }
    for partitions in assignment.values_mut() {
        partitions.sort();
    }
    assignment
}

pub(super) fn decode_subscription(
    bytes: &Bytes,
    address: &Arc<str>,
) -> Result<ConsumerProtocolSubscription> {
    decode(bytes, address)
}

pub(super) fn encode_assignment(partitions: &[TopicPartition]) -> Result<Bytes> {
    let assigned = |(topic, partitions)| AssignedTopic { topic, partitions };
    let assigned_partitions = by_topic(partitions.iter()).into_iter().map(assigned).collect();
    let message = ConsumerProtocolAssignment { assigned_partitions, ..Default::default() };
    encode(&message, EAGER_VERSION)
}

/// Empty bytes assign nothing.
pub(super) fn decode_assignment(bytes: &Bytes, address: &Arc<str>) -> Result<Vec<TopicPartition>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let message = decode::<ConsumerProtocolAssignment>(bytes, address)?;
    let topics = message.assigned_partitions.into_iter();
    Ok(flatten(topics.map(|assigned| (assigned.topic, assigned.partitions))))
}

fn by_topic<'a>(
    partitions: impl Iterator<Item = &'a TopicPartition>,
) -> BTreeMap<String, Vec<i32>> {
    let mut topics: BTreeMap<String, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics.entry(partition.topic.to_string()).or_default().push(partition.partition);
    }
    topics
}

fn flatten(topics: impl Iterator<Item = (String, Vec<i32>)>) -> Vec<TopicPartition> {
    let of_topic = |(topic, partitions): (String, Vec<i32>)| {
        let topic: Arc<str> = topic.into();
        let of = move |partition| TopicPartition { topic: topic.clone(), partition };
        partitions.into_iter().map(of)
    };
    topics.flat_map(of_topic).collect()
}

fn encode<M: Message>(message: &M, version: i16) -> Result<Bytes> {
    let mut out = BytesMut::new();
    let mut writer = Writer::new(&mut out);
    writer.i16(version);
    message
        .encode(&mut writer, version)
        .map_err(|source| Error::Encode { api: ApiKey::JoinGroup, source: Arc::new(source) })?;
    Ok(out.freeze())
}

/// A higher version than is known is read as the highest known, as Kafka's own consumer does;
/// later versions only append fields.
fn decode<M: Message>(bytes: &Bytes, address: &Arc<str>) -> Result<M> {
    let mut reader = Reader::shared(bytes);
    let message =
        reader.i16().and_then(|version| M::decode(&mut reader, version.min(M::VERSIONS.max)));
    message.map_err(|error| Error::malformed(address, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &str, topics: &[&str]) -> Subscriber {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let subscription = ConsumerProtocolSubscription { topics, ..Default::default() };
        Subscriber::new(id, id, subscription)
    }

    fn numbers(assignment: &BTreeMap<String, Vec<TopicPartition>>, id: &str) -> Vec<String> {
        let partitions = assignment[id].iter();
        partitions.map(|p| format!("{}{}", p.topic, p.partition)).collect()
    }

    #[test]
    fn first_members_get_one_more_where_it_does_not_divide() {
        let mut members = [member("c", &["t"]), member("a", &["t", "u"]), member("b", &["t"])];
        let partitions = HashMap::from([("t".to_owned(), 7), ("u".to_owned(), 2)]);
        let assignment = Assignor::Range.assign(&mut members, &partitions);
        assert_eq!(numbers(&assignment, "a"), ["t0", "t1", "t2", "u0", "u1"]);
        assert_eq!(numbers(&assignment, "b"), ["t3", "t4"]);
        assert_eq!(numbers(&assignment, "c"), ["t5", "t6"]);
    }

    #[test]
    fn member_without_partitions_is_still_named() {
        let mut members = [member("a", &["t"]), member("b", &["t"])];
        let assignment =
            Assignor::Range.assign(&mut members, &HashMap::from([("t".to_owned(), 1)]));
        assert_eq!(numbers(&assignment, "b"), Vec::<String>::new());
    }

    #[test]
    fn assignment_survives_the_wire() {
        let address: Arc<str> = "broker".into();
        let partitions = [TopicPartition::of("a", 1), TopicPartition::of("b", 0)];
        let bytes = encode_assignment(&partitions).unwrap();
        assert_eq!(decode_assignment(&bytes, &address).unwrap(), partitions);
        assert!(decode_assignment(&Bytes::new(), &address).unwrap().is_empty());
        assert!(decode_assignment(&Bytes::from_static(&[0, 0, 9]), &address).is_err());
    }
}
