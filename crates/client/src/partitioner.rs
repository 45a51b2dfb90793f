//! Which partition a key belongs to, the same as in Kafka's own clients.

/// The partition of `key` among `partition_count`, by Kafka's murmur2; 0 if there are none.
#[must_use]
pub fn partition_for_key(key: &[u8], partition_count: usize) -> i32 {
    let positive = murmur2(key) & 0x7fff_ffff;
    let count = u32::try_from(partition_count).unwrap_or(u32::MAX);
    let partition = positive.checked_rem(count).unwrap_or(0);
    i32::try_from(partition).unwrap_or(0)
}

/// MurmurHash2 of 32 bits with the seed and the tail handling of Kafka's Java client.
fn murmur2(data: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const MULTIPLIER: u32 = 0x5bd1_e995;
    const SHIFT: u32 = 24;

    // The length enters as a 32-bit number, as in Java.
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ length;
    let (words, tail) = data.as_chunks();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word = (word ^ (word >> SHIFT)).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ word;
    }
    if !tail.is_empty() {
        for (place, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * place);
        }
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_kafka() {
        for (key, hash) in [
            ("21", -973_932_308_i32),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn no_partitions_give_partition_zero() {
        assert_eq!(partition_for_key(b"key", 0), 0);
        assert_eq!(partition_for_key(b"key", 1), 0);
    }
}
