//! The value of a record made by the laboratory: a header of 32 bytes, then filler.
//!
//! | bytes | field | unit |
//! |---|---|---|
//! | 0..4 | CRC32C of everything after it, big-endian like all fields | |
//! | 4..8 | magic `MLDU` | |
//! | 8..12 | run id | |
//! | 12..14 | producer id | |
//! | 14..16 | partition that the record was meant for | |
//! | 16..24 | sequence within (producer, partition), from 0 | |
//! | 24..32 | intended time | ns since the start of the run |

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Size of the payload header; smaller records are refused.
pub const HEADER_BYTES: usize = 32;

const MAGIC: [u8; 4] = *b"MLDU";

/// Distinct filler bytes. Longer than the window of lz4 (64 KiB) and snappy (64 KiB), so that a
/// batch does not compress merely because the filler repeats.
const FILLER_BYTES: usize = 1 << 20;

/// Who sent a record, where to, and when it was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Differs between runs, so that a record of another run is never counted.
    pub run: u32,
    /// The producer thread.
    pub producer: u16,
    /// The partition that the record was sent to.
    pub partition: u16,
    /// Position among the records of this producer for this partition.
    pub sequence: u64,
    /// Intended time, in nanoseconds since the start of the run.
    pub intended_ns: u64,
}

/// Why a value is not an intact record of the laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Shorter than the header.
    Short,
    /// The checksum does not match.
    Checksum,
    /// An intact value of somebody else.
    Foreign,
}

impl Header {
    /// Reads and verifies a value.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(value: &[u8]) -> Result<Self, Damage> {
        let (head, _) = value.split_first_chunk::<HEADER_BYTES>().ok_or(Damage::Short)?;
        let (crc, covered) = value.split_first_chunk::<4>().ok_or(Damage::Short)?;
        if checksum(covered) != u32::from_be_bytes(*crc) {
            return Err(Damage::Checksum);
        }
        let [_, _, _, _, m0, m1, m2, m3, r0, r1, r2, r3, p0, p1, t0, t1, rest @ ..] = *head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Damage::Foreign);
        }
        let [s0, s1, s2, s3, s4, s5, s6, s7, i0, i1, i2, i3, i4, i5, i6, i7] = rest;
        Ok(Self {
            run: u32::from_be_bytes([r0, r1, r2, r3]),
            producer: u16::from_be_bytes([p0, p1]),
            partition: u16::from_be_bytes([t0, t1]),
            sequence: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            intended_ns: u64::from_be_bytes([i0, i1, i2, i3, i4, i5, i6, i7]),
        })
    }
}

/// What follows the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// Random bytes: no codec makes them smaller.
    Random,
    /// Words of a small vocabulary with natural frequencies: codecs reach 2 to 5 times.
    Text,
}

/// Writes values of one size.
#[derive(Debug)]
pub struct PayloadWriter {
    filler: Vec<u8>,
    record_bytes: usize,
}

impl PayloadWriter {
    /// A writer of values of `record_bytes`, header included.
    ///
    /// # Errors
    /// [`Error::RecordTooSmall`] when the header does not fit.
    pub fn new(filler: Filler, seed: u64, record_bytes: usize) -> Result<Self, Error> {
        if record_bytes < HEADER_BYTES {
            return Err(Error::RecordTooSmall { bytes: record_bytes, bytes_min: HEADER_BYTES });
        }
        let mut random = fastrand::Rng::with_seed(seed);
        let filler = match filler {
            Filler::Random => random_bytes(&mut random, FILLER_BYTES + record_bytes),
            Filler::Text => words(&mut random, FILLER_BYTES + record_bytes),
        };
        Ok(Self { filler, record_bytes })
    }

    /// Size of every value.
    #[must_use]
    pub fn record_bytes(&self) -> usize {
        self.record_bytes
    }

    /// Replaces the content of `value` by the record that `header` describes.
    pub fn write(&self, header: Header, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&[0; 4]);
        value.extend_from_slice(&MAGIC);
        value.extend_from_slice(&header.run.to_be_bytes());
        value.extend_from_slice(&header.producer.to_be_bytes());
        value.extend_from_slice(&header.partition.to_be_bytes());
        value.extend_from_slice(&header.sequence.to_be_bytes());
        value.extend_from_slice(&header.intended_ns.to_be_bytes());
        value.extend_from_slice(self.filler_for(header.sequence));
        let (crc, covered) = value.split_at_mut(4);
        crc.copy_from_slice(&checksum(covered).to_be_bytes());
    }

    /// Consecutive records take consecutive filler, which keeps the reads sequential.
    fn filler_for(&self, sequence: u64) -> &[u8] {
        let length = self.record_bytes - HEADER_BYTES;
        let at = sequence.wrapping_mul(length as u64) % FILLER_BYTES as u64;
        let at = usize::try_from(at).unwrap_or(0);
        self.filler.get(at..at + length).unwrap_or_default()
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    moldau_records::crc32c(bytes)
}

fn random_bytes(random: &mut fastrand::Rng, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    random.fill(&mut bytes);
    bytes
}

/// Words of two to four syllables, drawn with the frequencies of Zipf's law.
fn words(random: &mut fastrand::Rng, count: usize) -> Vec<u8> {
    const SYLLABLES: [&str; 16] = [
        "al", "be", "cor", "den", "el", "fra", "go", "hin", "ist", "ka", "lum", "mo", "ne", "pra",
        "ro", "vlt",
    ];
    const VOCABULARY: u32 = 2_000;
    let vocabulary: Vec<String> = (0..VOCABULARY)
        .map(|_| (0..random.u8(2..5)).filter_map(|_| random.choice(SYLLABLES)).collect())
        .collect();
    let mut text = Vec::with_capacity(count + 16);
    while text.len() < count {
        let rank = f64::from(VOCABULARY).powf(random.f64()) - 1.0;
        let word = vocabulary.get(rank_index(rank)).map_or("", String::as_str);
        text.extend_from_slice(word.as_bytes());
        text.push(b' ');
    }
    text.truncate(count);
    text
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rank lies between 0 and the size of the vocabulary"
)]
fn rank_index(rank: f64) -> usize {
    rank as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = Header> {
        any::<(u32, u16, u16, u64, u64)>().prop_map(
            |(run, producer, partition, sequence, intended_ns)| Header {
                run,
                producer,
                partition,
                sequence,
                intended_ns,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(header in header(), size in HEADER_BYTES..5_000) {
            let writer = PayloadWriter::new(Filler::Random, 1, size).unwrap();
            let mut value = Vec::new();
            writer.write(header, &mut value);
            prop_assert_eq!(value.len(), size);
            prop_assert_eq!(Header::read(&value), Ok(header));
        }

        #[test]
        fn any_flipped_bit_is_seen(
            header in header(),
            size in HEADER_BYTES..300,
            at in any::<u32>(),
        ) {
            let writer = PayloadWriter::new(Filler::Text, 1, size).unwrap();
            let mut value = Vec::new();
            writer.write(header, &mut value);
            let bit = at as usize % (size * 8);
            value[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(Header::read(&value), Err(Damage::Checksum));
        }

        #[test]
        fn any_bytes_are_refused_or_read(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(Header::read(&value).is_err());
        }
    }

    #[test]
    fn a_record_smaller_than_the_header_is_refused() {
        assert!(matches!(
            PayloadWriter::new(Filler::Random, 1, HEADER_BYTES - 1),
            Err(Error::RecordTooSmall { bytes: 31, bytes_min: 32 })
        ));
    }

    #[test]
    fn the_seed_decides_the_filler() {
        let value = |seed| {
            let mut value = Vec::new();
            let header = Header { run: 1, producer: 0, partition: 0, sequence: 5, intended_ns: 9 };
            PayloadWriter::new(Filler::Text, seed, 200).unwrap().write(header, &mut value);
            value
        };
        assert_eq!(value(3), value(3));
        assert_ne!(value(3), value(4));
    }
}
