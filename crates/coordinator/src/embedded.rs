//! What members of the classic protocol type `consumer` send and get within JoinGroup and
//! SyncGroup: `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`. Strings have an i16
//! length and lists an i32 count. A count of -1 stands for none.
//!
//! | message | since | field |
//! |---|---|---|
//! | both | 0 | version i16 |
//! | subscription | 0 | [topic], user data bytes |
//! | | 1 | owned [topic, [partition i32]] |
//! | | 2 | generation i32 |
//! | | 3 | rack |
//! | assignment | 0 | [topic, [partition i32]], user data bytes |

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::error::Error;
use crate::wire::{Put, Take};

/// Partitions by the name of their topic.
pub(crate) type NamedPartitions = BTreeMap<String, BTreeSet<i32>>;

/// The latest version of both messages. Later ones begin like it.
const VERSION_MAX: i16 = 3;

/// A subscription.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) version: i16,
    pub(crate) topics: BTreeSet<String>,
    /// What the member holds; nothing in version 0.
    pub(crate) owned: NamedPartitions,
    pub(crate) rack_id: Option<String>,
}

impl Subscription {
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut take = Take(bytes);
        let (version, topics) = head(&mut take)?;
        user_data(&mut take)?;
        let owned = if version >= 1 { partitions(&mut take)? } else { NamedPartitions::new() };
        if version >= 2 {
            take.i32("generation")?;
        }
        let rack_id = if version >= 3 { optional_string(&mut take)? } else { None };
        Ok(Self { version, topics, owned, rack_id })
    }
}

/// Topics of a subscription, whatever follows them.
pub(crate) fn topics(metadata: &[u8]) -> Result<BTreeSet<String>, Error> {
    head(&mut Take(metadata)).map(|(_, topics)| topics)
}

/// The partitions of an assignment; `None` if it has user data, which only its assignor knows.
pub(crate) fn decode_assignment(bytes: &[u8]) -> Result<Option<NamedPartitions>, Error> {
    if bytes.is_empty() {
        // The member never had one.
        return Ok(Some(NamedPartitions::new()));
    }
    let mut take = Take(bytes);
    version(&mut take)?;
    let assigned = partitions(&mut take)?;
    let has_user_data = user_data(&mut take)?;
    Ok((!has_user_data).then_some(assigned))
}

/// An assignment in the version of its member's subscription.
pub(crate) fn encode_assignment(version: i16, assigned: &NamedPartitions) -> Bytes {
    let mut bytes = Vec::new();
    let mut put = Put(&mut bytes);
    put.i16(version.clamp(0, VERSION_MAX));
    put.i32(i32::try_from(assigned.len()).unwrap_or(i32::MAX));
    for (topic, partitions) in assigned {
        put.i16(i16::try_from(topic.len()).unwrap_or(i16::MAX));
        topic.bytes().for_each(|byte| put.u8(byte));
        put.i32(i32::try_from(partitions.len()).unwrap_or(i32::MAX));
        partitions.iter().for_each(|index| put.i32(*index));
    }
    put.i32(-1);
    bytes.into()
}

/// Version and topics of a subscription. Nothing is allocated beyond what the bytes hold.
fn head(take: &mut Take<'_>) -> Result<(i16, BTreeSet<String>), Error> {
    let version = version(take)?;
    let mut topics = BTreeSet::new();
    for _ in 0..take.i32("subscription topics")? {
        topics.insert(string(take)?);
    }
    Ok((version, topics))
}

fn version(take: &mut Take<'_>) -> Result<i16, Error> {
    let version = take.i16("version")?;
    let is_valid = version >= 0;
    is_valid.then_some(version.min(VERSION_MAX)).ok_or(Error::Invalid { field: "version" })
}

fn partitions(take: &mut Take<'_>) -> Result<NamedPartitions, Error> {
    let mut topics = NamedPartitions::new();
    for _ in 0..take.i32("topics")? {
        let partitions = topics.entry(string(take)?).or_default();
        for _ in 0..take.i32("partitions")? {
            partitions.insert(take.i32("partition")?);
        }
    }
    Ok(topics)
}

/// Whether there is any.
fn user_data(take: &mut Take<'_>) -> Result<bool, Error> {
    let length = usize::try_from(take.i32("user data")?).unwrap_or(0);
    take.slice(length, "user data")?;
    Ok(length > 0)
}

fn string(take: &mut Take<'_>) -> Result<String, Error> {
    optional_string(take)?.ok_or(Error::Invalid { field: "string" })
}

fn optional_string(take: &mut Take<'_>) -> Result<Option<String>, Error> {
    let Ok(length) = usize::try_from(take.i16("string")?) else { return Ok(None) };
    let text = std::str::from_utf8(take.slice(length, "string")?);
    text.map(|text| Some(text.to_owned())).map_err(|_| Error::Invalid { field: "string" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ConsumerProtocol.serializeSubscription` of kafka-clients 4.3.1, version 3: topics `a` and
    /// `bc`, user data 1 2, the owned partition a-3, generation 7, rack `r1`.
    #[rustfmt::skip]
    const SUBSCRIPTION: [u8; 42] = [
        0, 3, 0, 0, 0, 2, 0, 1, 97, 0, 2, 98, 99, 0, 0, 0, 2, 1, 2, 0, 0, 0, 1, 0, 1, 97,
        0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 7, 0, 2, 114, 49,
    ];

    fn named(topic: &str, partitions: &[i32]) -> NamedPartitions {
        NamedPartitions::from([(topic.to_owned(), partitions.iter().copied().collect())])
    }

    #[test]
    fn a_java_subscription_is_read_to_its_end() {
        let expected = Subscription {
            version: 3,
            topics: ["a", "bc"].map(str::to_owned).into(),
            owned: named("a", &[3]),
            rack_id: Some("r1".to_owned()),
        };
        assert_eq!(Subscription::decode(&SUBSCRIPTION), Ok(expected));
        for length in 0..SUBSCRIPTION.len() {
            assert!(Subscription::decode(&SUBSCRIPTION[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_subscription_cut_after_its_topics_has_them() {
        let expected = Ok(["a", "bc"].map(str::to_owned).into());
        assert_eq!(topics(&SUBSCRIPTION[..13]), expected);
        for length in 0..13 {
            assert!(topics(&SUBSCRIPTION[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn a_count_beyond_the_bytes_is_refused() {
        assert!(topics(&[0, 0, 0x7f, 255, 255, 255, 0, 1, b'a']).is_err());
    }

    #[test]
    fn a_negative_count_has_no_topics() {
        assert_eq!(topics(&[0, 0, 255, 255, 255, 255]), Ok(BTreeSet::new()));
    }

    #[test]
    fn an_assignment_comes_back_as_it_went() {
        let assigned = named("topic", &[0, 2]);
        let bytes = encode_assignment(1, &assigned);
        assert_eq!(decode_assignment(&bytes), Ok(Some(assigned)));
        let mut with_user_data = bytes.to_vec();
        with_user_data.truncate(bytes.len() - 4);
        with_user_data.extend([0, 0, 0, 1, 9]);
        assert_eq!(decode_assignment(&with_user_data), Ok(None));
        assert_eq!(decode_assignment(&[]), Ok(Some(NamedPartitions::new())));
    }
}
