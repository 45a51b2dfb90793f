//! Topics in the member metadata of protocol type `consumer` (`ConsumerProtocolSubscription`).
//!
//! All versions begin alike: version i16, topics as i32 count of strings with an i16 length. What
//! follows (user data, owned partitions, generation, rack) does not matter here.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::wire::Take;

/// Topics of one subscription; nothing is allocated beyond what `metadata` holds.
pub(crate) fn topics(metadata: &[u8]) -> Result<BTreeSet<String>, Error> {
    let mut take = Take(metadata);
    let version = take.i16("subscription version")?;
    if version < 0 {
        return Err(Error::Invalid { field: "subscription version" });
    }
    let count = take.i32("subscription topics")?;
    let mut topics = BTreeSet::new();
    for _ in 0..count {
        let length = usize::try_from(take.i16("subscription topic")?)
            .map_err(|_| Error::Invalid { field: "subscription topic" })?;
        let topic = std::str::from_utf8(take.slice(length, "subscription topic")?)
            .map_err(|_| Error::Invalid { field: "subscription topic" })?;
        topics.insert(topic.to_owned());
    }
    Ok(topics)
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

    #[test]
    fn topics_of_a_java_subscription_are_read() {
        let expected = ["a", "bc"].map(str::to_owned).into_iter().collect();
        assert_eq!(topics(&SUBSCRIPTION), Ok(expected));
    }

    #[test]
    fn a_subscription_cut_within_its_topics_is_refused() {
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
}
