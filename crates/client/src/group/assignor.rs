//! The range assignor and the consumer protocol's own messages, which a version number precedes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use moldau_protocol::messages::consumer_protocol_assignment::TopicPartition as AssignedTopic;
use moldau_protocol::messages::{ConsumerProtocolAssignment, ConsumerProtocolSubscription};
use moldau_protocol::{ApiKey, Message, Reader, Writer};

use crate::offsets::TopicPartition;
use crate::{Error, Result};

/// Version that is written: all that eager assignors need, understood by every member.
const VERSION: i16 = 0;

/// A member and what it wants to read.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    /// Members are ordered by this.
    pub(super) order: String,
    pub(super) id: String,
    pub(super) topics: Vec<String>,
}

/// Gives each member a run of consecutive partitions of each topic, the first members one more
/// where they do not divide evenly. `partitions` holds the number of partitions by topic.
pub(super) fn range(
    members: &mut [Subscriber],
    partitions: &HashMap<String, usize>,
) -> BTreeMap<String, Vec<TopicPartition>> {
    members.sort_by(|a, b| a.order.cmp(&b.order));
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

pub(super) fn encode_subscription(topics: &[String]) -> Result<Bytes> {
    encode(&ConsumerProtocolSubscription { topics: topics.to_vec(), ..Default::default() })
}

pub(super) fn decode_subscription(bytes: &Bytes, address: &Arc<str>) -> Result<Vec<String>> {
    decode::<ConsumerProtocolSubscription>(bytes, address).map(|message| message.topics)
}

pub(super) fn encode_assignment(partitions: &[TopicPartition]) -> Result<Bytes> {
    let mut topics: BTreeMap<&str, Vec<i32>> = BTreeMap::new();
    for partition in partitions {
        topics.entry(&partition.topic).or_default().push(partition.partition);
    }
    let assigned_partitions = topics
        .into_iter()
        .map(|(topic, partitions)| AssignedTopic { topic: topic.to_owned(), partitions })
        .collect();
    encode(&ConsumerProtocolAssignment { assigned_partitions, ..Default::default() })
}

/// Empty bytes assign nothing.
pub(super) fn decode_assignment(bytes: &Bytes, address: &Arc<str>) -> Result<Vec<TopicPartition>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let message = decode::<ConsumerProtocolAssignment>(bytes, address)?;
    let topics = message.assigned_partitions.into_iter();
    Ok(topics
        .flat_map(|assigned| {
            let topic: Arc<str> = assigned.topic.into();
            let of = move |partition| TopicPartition { topic: topic.clone(), partition };
            assigned.partitions.into_iter().map(of)
        })
        .collect())
}

fn encode<M: Message>(message: &M) -> Result<Bytes> {
    let mut out = BytesMut::new();
    let mut writer = Writer::new(&mut out);
    writer.i16(VERSION);
    message
        .encode(&mut writer, VERSION)
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
        Subscriber { order: id.to_owned(), id: id.to_owned(), topics }
    }

    fn numbers(assignment: &BTreeMap<String, Vec<TopicPartition>>, id: &str) -> Vec<String> {
        let partitions = assignment[id].iter();
        partitions.map(|p| format!("{}{}", p.topic, p.partition)).collect()
    }

    #[test]
    fn first_members_get_one_more_where_it_does_not_divide() {
        let mut members = [member("c", &["t"]), member("a", &["t", "u"]), member("b", &["t"])];
        let partitions = HashMap::from([("t".to_owned(), 7), ("u".to_owned(), 2)]);
        let assignment = range(&mut members, &partitions);
        assert_eq!(numbers(&assignment, "a"), ["t0", "t1", "t2", "u0", "u1"]);
        assert_eq!(numbers(&assignment, "b"), ["t3", "t4"]);
        assert_eq!(numbers(&assignment, "c"), ["t5", "t6"]);
    }

    #[test]
    fn member_without_partitions_is_still_named() {
        let mut members = [member("a", &["t"]), member("b", &["t"])];
        let assignment = range(&mut members, &HashMap::from([("t".to_owned(), 1)]));
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
