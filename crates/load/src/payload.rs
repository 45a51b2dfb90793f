//! The value of a record made by the laboratory: a header of 32 bytes and filler.
//!
//! | bytes | field | unit |
//! |---|---|---|
//! | 0..4 | low half of the XXH3-64 of everything after it, big-endian like all fields | |
//! | 4..8 | magic `MLDU` | |
//! | 8..12 | run id | |
//! | 12..14 | producer id | |
//! | 14..16 | partition that the record was meant for | |
//! | 16..24 | sequence within (producer, partition), from 0 | |
//! | 24..32 | intended time | ns since the start of the run |
//!
//! The value is these bytes and then filler, or for filters that look into values a JSON document
//! with the header in hexadecimal:
//!
//! ```text
//! {"record":"<64 digits>","account":"<8 digits>","text":"<filler>"}
//! ```
//!
//! There the checksum is of everything after its own digits as a consumer is to see it. Behind a
//! filter that hides the account, that is with eight asterisks in its place: a value that was not
//! masked is damaged.

mod corpus;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use crate::shape::{Body, Corpus, Shape};
use moldau_measure::Error;

/// Size of the payload header; smaller records are refused.
pub const HEADER_BYTES: usize = 32;

/// Bytes of the checksum, and its digits.
const CHECKSUM_BYTES: usize = 4;
const CHECKSUM_DIGITS: usize = 2 * CHECKSUM_BYTES;

const MAGIC: u32 = u32::from_be_bytes(*b"MLDU");

/// What stands in a document before the header, the account, the filler, and at the end. The first
/// is longer than checksum and magic of the other form, so that neither is taken for the other.
const JSON: [&[u8]; 4] = [br#"{"record":""#, br#"","account":""#, br#"","text":""#, br#""}"#];

/// Digits of the header, and of the account.
const HEADER_DIGITS: usize = 2 * HEADER_BYTES;
const ACCOUNT_DIGITS: usize = 8;

/// What the account is masked with.
const MASKED: [u8; ACCOUNT_DIGITS] = [b'*'; ACCOUNT_DIGITS];

/// Bytes of a document without filler.
const JSON_BYTES: usize =
    JSON[0].len() + HEADER_DIGITS + JSON[1].len() + ACCOUNT_DIGITS + JSON[2].len() + JSON[3].len();

/// Distinct filler bytes. Longer than the window of lz4 (64 KiB) and snappy (64 KiB), so that a
/// batch does not compress merely because the filler repeats.
const FILLER_BYTES: usize = 1 << 20;

/// The sender of a record, its partition, and its intended time.
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
    /// An intact value without the magic: the laboratory did not write it.
    Foreign,
}

impl Header {
    /// Reads and verifies a value.
    ///
    /// # Errors
    /// What is wrong with it.
    #[inline]
    pub fn read(value: &[u8]) -> Result<Self, Damage> {
        if let Some(rest) = value.strip_prefix(JSON[0]) {
            let (digits, _) = rest.split_first_chunk::<HEADER_DIGITS>().ok_or(Damage::Short)?;
            let covered = rest.get(CHECKSUM_DIGITS..).ok_or(Damage::Short)?;
            return Self::verified(&from_hexadecimal(digits).ok_or(Damage::Checksum)?, covered);
        }
        let (head, _) = value.split_first_chunk::<HEADER_BYTES>().ok_or(Damage::Short)?;
        Self::verified(head, value.get(CHECKSUM_BYTES..).ok_or(Damage::Short)?)
    }

    /// Reads a header whose checksum is that of the bytes `covered`.
    #[inline]
    fn verified(head: &[u8; HEADER_BYTES], covered: &[u8]) -> Result<Self, Damage> {
        let [c0, c1, c2, c3, m0, m1, m2, m3, r0, r1, r2, r3, p0, p1, t0, t1, rest @ ..] = *head;
        if checksum(covered) != u32::from_be_bytes([c0, c1, c2, c3]) {
            return Err(Damage::Checksum);
        }
        if u32::from_be_bytes([m0, m1, m2, m3]) != MAGIC {
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

    /// The bytes of the header, its checksum 0. Built from words, since building it byte by byte
    /// took a quarter of a producer's time for 100 B.
    #[inline]
    fn bytes(self) -> [u8; HEADER_BYTES] {
        let place = u128::from(self.producer) << 16 | u128::from(self.partition);
        let first = u128::from(MAGIC) << 64 | u128::from(self.run) << 32 | place;
        let second = u128::from(self.sequence) << 64 | u128::from(self.intended_ns);
        let mut bytes = [0; HEADER_BYTES];
        let words = bytes.as_chunks_mut::<16>().0.iter_mut();
        words.zip([first, second]).for_each(|(to, word)| *to = word.to_be_bytes());
        bytes
    }
}

/// What a value is made of beside its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filler {
    /// Random bytes: no codec makes them smaller.
    Random,
    /// Words of a small vocabulary with natural frequencies: codecs reach 2 to 5 times.
    #[default]
    Text,
    /// The same in a JSON document.
    Json,
    /// Lines of a server's log.
    Logs,
    /// Orders in Avro's binary form, without names: codecs find little.
    Avro,
    /// What a file of the user holds, [`Shape::corpus`].
    File,
}

impl Filler {
    /// Size of a value without any filler.
    #[must_use]
    pub fn record_bytes_min(self) -> usize {
        match self {
            Self::Random | Self::Text | Self::Logs | Self::Avro | Self::File => HEADER_BYTES,
            Self::Json => JSON_BYTES,
        }
    }
}

/// How the account of a document reaches consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Account {
    /// As it was sent.
    #[default]
    Clear,
    /// With asterisks in its place.
    Masked,
}

/// Writes values.
#[derive(Debug)]
pub struct PayloadWriter {
    /// Room for the filler of the largest value at any place of its first `places` bytes.
    filler: Vec<u8>,
    /// Places at which filler may begin.
    places: usize,
    /// Bytes of filler in a value of the usual size.
    filler_bytes: usize,
    form: Form,
    /// The lines of a file, each a value's filler.
    lines: Option<Arc<Corpus>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Binary,
    Json(Account),
}

impl PayloadWriter {
    /// A writer of values of `record_bytes`, header included. The account matters to
    /// [`Filler::Json`] alone.
    ///
    /// # Errors
    /// [`Error::RecordTooSmall`] when the header does not fit.
    pub fn new(
        filler: Filler,
        account: Account,
        seed: u64,
        record_bytes: usize,
    ) -> Result<Self, Error> {
        Self::shaped(filler, account, seed, record_bytes, &Shape::default())
    }

    /// As [`PayloadWriter::new`], for records that a shape may describe further: `record_bytes` is
    /// then the mean of their sizes.
    ///
    /// # Errors
    /// As [`PayloadWriter::new`].
    pub fn shaped(
        filler: Filler,
        account: Account,
        seed: u64,
        record_bytes: usize,
        shape: &Shape,
    ) -> Result<Self, Error> {
        let bytes_min = filler.record_bytes_min();
        let too_small = || Error::RecordTooSmall { bytes: record_bytes, bytes_min };
        let filler_bytes = record_bytes.checked_sub(bytes_min).ok_or_else(too_small)?;
        let form = if filler == Filler::Json { Form::Json(account) } else { Form::Binary };
        let bytes_max = shape.record_bytes_max(bytes_min).unwrap_or(0).max(record_bytes);
        let (mut lines, mut places) = (None, FILLER_BYTES);
        let filler = match &shape.corpus {
            Some(corpus) if corpus.lines => {
                lines = Some(Arc::clone(&corpus.content));
                Vec::new()
            }
            Some(corpus) => {
                let (bytes, count) = corpus.content.repeated(bytes_max);
                places = count.max(1);
                bytes
            }
            None => corpus::bytes(filler, seed, FILLER_BYTES + bytes_max),
        };
        Ok(Self { filler, places, filler_bytes, form, lines })
    }

    /// Replaces the content of `value` by the record that `header` describes.
    pub fn write(&self, header: Header, value: &mut Vec<u8>) {
        self.write_around(self.filler_for(header.sequence, self.filler_bytes), header, value);
    }

    /// As [`PayloadWriter::write`], with a body of its own.
    pub fn write_body(&self, header: Header, body: Body, value: &mut Vec<u8>) {
        let filler = match (body, &self.lines) {
            (Body::Line(index), Some(lines)) => lines.line(index),
            (Body::Line(_), None) => &[],
            (Body::Sized(bytes), _) => {
                self.filler_for(header.sequence, bytes.saturating_sub(self.form.bytes()))
            }
        };
        self.write_around(filler, header, value);
    }

    fn write_around(&self, filler: &[u8], header: Header, value: &mut Vec<u8>) {
        value.clear();
        match self.form {
            Form::Binary => {
                value.extend_from_slice(&header.bytes());
                value.extend_from_slice(filler);
                let (sum, covered) = value.split_at_mut(CHECKSUM_BYTES);
                sum.copy_from_slice(&checksum(covered).to_be_bytes());
            }
            Form::Json(account) => write_json(filler, header, account, value),
        }
    }

    /// Replaces the content of `value` by filler alone, of the same size as a record.
    pub fn write_filler(&self, sequence: u64, value: &mut Vec<u8>) {
        value.clear();
        value.resize(self.form.bytes(), 0);
        value.extend_from_slice(self.filler_for(sequence, self.filler_bytes));
    }

    /// Consecutive records take consecutive filler, which keeps the reads sequential.
    fn filler_for(&self, sequence: u64, bytes: usize) -> &[u8] {
        let at = sequence.wrapping_mul(self.filler_bytes as u64);
        // Dividing by what the compiler knows takes one instruction, and every record comes here.
        let at = match self.places {
            FILLER_BYTES => at % FILLER_BYTES as u64,
            places => at % places as u64,
        };
        let at = usize::try_from(at).unwrap_or(0);
        self.filler.get(at..at + bytes).unwrap_or_default()
    }
}

impl Form {
    /// Bytes of a value without filler.
    fn bytes(self) -> usize {
        match self {
            Self::Binary => HEADER_BYTES,
            Self::Json(_) => JSON_BYTES,
        }
    }
}

/// Writes the document as a consumer is to see it, whose checksum it takes, and then the
/// account in clear.
fn write_json(filler: &[u8], header: Header, account: Account, value: &mut Vec<u8>) {
    let mut clear = [0; ACCOUNT_DIGITS];
    let [.., a, b, c, d] = header.sequence.to_be_bytes();
    to_hexadecimal(&[a, b, c, d], &mut clear);
    let seen = if account == Account::Masked { MASKED } else { clear };
    let mut digits = [0; HEADER_DIGITS];
    to_hexadecimal(&header.bytes(), &mut digits);
    value.extend_from_slice(JSON[0]);
    let sum_at = value.len();
    value.extend_from_slice(&digits);
    value.extend_from_slice(JSON[1]);
    let account_at = value.len();
    value.extend_from_slice(&seen);
    value.extend_from_slice(JSON[2]);
    value.extend_from_slice(filler);
    value.extend_from_slice(JSON[3]);
    let (head, covered) = value.split_at_mut(sum_at + CHECKSUM_DIGITS);
    let (_, sum) = head.split_at_mut(sum_at);
    to_hexadecimal(&checksum(covered).to_be_bytes(), sum);
    let (_, rest) = value.split_at_mut(account_at);
    rest.iter_mut().zip(clear).for_each(|(to, from)| *to = from);
}

/// Writes two digits for each byte, as far as there is room.
fn to_hexadecimal(bytes: &[u8], digits: &mut [u8]) {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    for (byte, to) in bytes.iter().zip(digits.as_chunks_mut::<2>().0) {
        *to = [digit(byte >> 4), digit(byte & 0xf)];
    }
}

fn from_hexadecimal(digits: &[u8; HEADER_DIGITS]) -> Option<[u8; HEADER_BYTES]> {
    let half = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; HEADER_BYTES];
    for (byte, [high, low]) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
        *byte = (half(*high)? << 4) | half(*low)?;
    }
    Some(bytes)
}

/// Half of XXH3, which for the 96 bytes of a record of 100 takes half the time of a CRC32C, and is
/// blind to the same share of all changes.
fn checksum(bytes: &[u8]) -> u32 {
    let [.., a, b, c, d] = XxHash3_64::oneshot(bytes).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

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

    /// Filler of each kind, made once: it is the same in every writer of a seed.
    static MADE: LazyLock<[PayloadWriter; 2]> = LazyLock::new(|| {
        [Filler::Random, Filler::Text]
            .map(|filler| PayloadWriter::new(filler, Account::Clear, 1, 5_000).unwrap())
    });

    fn writer(filler: Filler, account: Account, size: usize) -> PayloadWriter {
        let [random, text] = &*MADE;
        let (made, form) = match filler {
            Filler::Random => (random, Form::Binary),
            Filler::Text | Filler::Logs | Filler::Avro | Filler::File => (text, Form::Binary),
            Filler::Json => (text, Form::Json(account)),
        };
        let filler_bytes = size - filler.record_bytes_min();
        let (filler, places) = (made.filler.clone(), FILLER_BYTES);
        PayloadWriter { filler, places, filler_bytes, form, lines: None }
    }

    fn written(writer: &PayloadWriter, header: Header) -> Vec<u8> {
        let mut value = vec![7; 3];
        writer.write(header, &mut value);
        value
    }

    /// As the filter does it.
    fn masked(value: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(value).unwrap();
        let (before, rest) = text.split_once("\"account\":\"").unwrap();
        format!("{before}\"account\":\"********{}", &rest[8..]).into_bytes()
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(header in header(), size in JSON_BYTES..5_000) {
            for filler in [Filler::Random, Filler::Json] {
                let value = written(&writer(filler, Account::Clear, size), header);
                prop_assert_eq!(value.len(), size);
                prop_assert_eq!(Header::read(&value), Ok(header));
            }
        }

        #[test]
        fn any_flipped_bit_is_seen(
            header in header(),
            size in JSON_BYTES..300,
            at in any::<u32>(),
        ) {
            for filler in [Filler::Text, Filler::Json] {
                let mut value = written(&writer(filler, Account::Clear, size), header);
                let bit = at as usize % (size * 8);
                value[bit / 8] ^= 1 << (bit % 8);
                prop_assert_eq!(Header::read(&value), Err(Damage::Checksum));
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(value in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert!(Header::read(&value).is_err());
            prop_assert!(Header::read(&[JSON[0], &value].concat()).is_err());
        }

        #[test]
        fn a_document_is_json_and_its_account_has_to_be_as_it_is_meant_to_be(
            header in header(),
            size in JSON_BYTES..300,
        ) {
            let [clear, hidden] = [Account::Clear, Account::Masked]
                .map(|account| written(&writer(Filler::Json, account, size), header));
            let document: serde_json::Value = serde_json::from_slice(&hidden).unwrap();
            let account = format!("{:08x}", header.sequence & 0xffff_ffff);
            prop_assert_eq!(&document["account"], &account);
            prop_assert_eq!(document["text"].as_str().unwrap().len(), size - JSON_BYTES);
            prop_assert_eq!(Header::read(&hidden), Err(Damage::Checksum));
            prop_assert_eq!(Header::read(&masked(&hidden)), Ok(header));
            prop_assert_eq!(Header::read(&masked(&clear)), Err(Damage::Checksum));
        }
    }

    /// The checksum is what Python's xxhash makes of the bytes behind it.
    #[test]
    fn a_value_follows_its_format() {
        let header = Header {
            run: 0x0102_0304,
            producer: 0x0506,
            partition: 0x0708,
            sequence: 0x090a_0b0c_0d0e_0f10,
            intended_ns: 0x1112_1314_1516_1718,
        };
        let value = written(&writer(Filler::Random, Account::Clear, HEADER_BYTES), header);
        let mut expected = b"\xac\x66\x87\x7eMLDU".to_vec();
        expected.extend(1..=0x18);
        assert_eq!(value, expected);
        let longer = [b"\xdf\x0d\xd7\xe7", &value[CHECKSUM_BYTES..], b"abcdefgh"].concat();
        assert_eq!(Header::read(&longer), Ok(header));
    }

    #[test]
    fn a_record_smaller_than_the_header_is_refused() {
        for (filler, bytes_min) in
            [(Filler::Random, HEADER_BYTES), (Filler::Text, HEADER_BYTES), (Filler::Json, 108)]
        {
            let made = |bytes| PayloadWriter::new(filler, Account::Clear, 1, bytes);
            assert!(made(bytes_min).is_ok());
            let refused = made(bytes_min - 1).unwrap_err();
            let said = matches!(refused, Error::RecordTooSmall { bytes_min: least, .. }
                if least == bytes_min);
            assert!(said, "{refused}");
        }
    }

    #[test]
    fn the_seed_decides_the_filler() {
        let header = Header { run: 1, producer: 0, partition: 0, sequence: 5, intended_ns: 9 };
        let value = |seed| {
            let made = PayloadWriter::new(Filler::Text, Account::Clear, seed, 200).unwrap();
            written(&made, header)
        };
        assert_eq!(value(3), value(3));
        assert_ne!(value(3), value(4));
    }
}
