//! Seeded content that codecs treat as they treat the real thing.

use std::io::Write as _;

use super::Filler;

/// Words of the vocabulary.
const VOCABULARY: usize = 2_000;

/// First second of the made-up times, in seconds since 1970.
const EPOCH_SECONDS: u64 = 1_767_225_600;

/// The first `count` bytes of the content that the seed decides.
pub(super) fn bytes(filler: Filler, seed: u64, count: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    if filler == Filler::Random {
        let mut bytes = vec![0; count];
        random.fill(&mut bytes);
        return bytes;
    }
    let mut source = Source::new(random);
    let mut bytes = Vec::with_capacity(count + 1_024);
    while bytes.len() < count {
        match filler {
            Filler::Text | Filler::Json | Filler::Random | Filler::File => source.text(&mut bytes),
            Filler::Logs => source.log_line(&mut bytes),
            Filler::Avro => source.avro(&mut bytes),
        }
    }
    bytes.truncate(count);
    bytes
}

struct Source {
    random: fastrand::Rng,
    vocabulary: Vec<String>,
    /// Documents and lines so far.
    number: u64,
}

/// The fields of an Avro-like record.
struct Order {
    id: u64,
    customer: String,
    at_ms: u64,
    cents: u32,
    is_paid: bool,
    items: Vec<(String, u8)>,
}

impl Source {
    fn new(mut random: fastrand::Rng) -> Self {
        const SYLLABLES: [&str; 16] = [
            "al", "be", "cor", "den", "el", "fra", "go", "hin", "ist", "ka", "lum", "mo", "ne",
            "pra", "ro", "vlt",
        ];
        let vocabulary = (0..VOCABULARY)
            .map(|_| (0..random.u8(2..5)).filter_map(|_| random.choice(SYLLABLES)).collect())
            .collect();
        Self { random, vocabulary, number: 0 }
    }

    /// A word, drawn with the frequencies of Zipf's law.
    fn word(&mut self) -> &str {
        let rank = f64::from(2_000_u32).powf(self.random.f64()) - 1.0;
        self.vocabulary.get(rank_index(rank)).map_or("", String::as_str)
    }

    fn text(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.word().as_bytes());
        out.push(b' ');
    }

    fn order(&mut self) -> Order {
        self.number += 1;
        let items = 1 + self.random.usize(..4);
        Order {
            id: 1_000_000 + self.number,
            customer: format!("{}-{}", self.word().to_owned(), self.random.u16(..)),
            at_ms: EPOCH_SECONDS * 1_000 + 37 * self.number + self.random.u64(..37),
            cents: self.random.u32(100..1_000_000),
            is_paid: self.random.bool(),
            items: (0..items).map(|_| (self.word().to_owned(), self.random.u8(1..9))).collect(),
        }
    }

    fn log_line(&mut self, out: &mut Vec<u8>) {
        const LEVELS: [&str; 8] =
            ["INFO ", "INFO ", "INFO ", "INFO ", "INFO ", "DEBUG", "WARN ", "ERROR"];
        self.number += 1;
        let at_ms = 37 * self.number;
        let (minutes, seconds, millis) = (at_ms / 60_000, at_ms / 1_000 % 60, at_ms % 1_000);
        let (level, thread) =
            (self.random.choice(LEVELS).unwrap_or("INFO "), self.random.u8(1..17));
        let module = self.random.usize(..20);
        let module = self.vocabulary.get(module).cloned().unwrap_or_default();
        let (first, second) = (self.word().to_owned(), self.word().to_owned());
        let (id, took) = (self.random.u32(..), self.random.u16(1..900));
        append(
            out,
            format_args!(
                "2026-01-01T{:02}:{:02}:{seconds:02}.{millis:03}Z {level} [worker-{thread}] \
             shop.{module} - {first} {second} request={id:08x} took={took}ms\n",
                minutes / 60 % 24,
                minutes % 60,
            ),
        );
    }

    /// Longs as zigzag varints, strings with their length, arrays in one block.
    fn avro(&mut self, out: &mut Vec<u8>) {
        let Order { id, customer, at_ms, cents, is_paid, items } = self.order();
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        let string = |out: &mut Vec<u8>, text: &str| {
            moldau_records::varint::write_i64(out, signed(text.len() as u64));
            out.extend_from_slice(text.as_bytes());
        };
        moldau_records::varint::write_i64(out, signed(id));
        string(out, &customer);
        moldau_records::varint::write_i64(out, signed(at_ms));
        out.extend_from_slice(&(f64::from(cents) / 100.0).to_le_bytes());
        out.push(is_paid.into());
        moldau_records::varint::write_i64(out, signed(items.len() as u64));
        for (sku, count) in &items {
            string(out, sku);
            moldau_records::varint::write_i64(out, i64::from(*count));
        }
        out.push(0);
    }
}

fn append(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("writing to memory does not fail");
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
    use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

    const ALL: [Filler; 4] = [Filler::Random, Filler::Avro, Filler::Text, Filler::Logs];

    /// How many times smaller lz4 makes 100 records of 1 KB.
    fn ratio(filler: Filler) -> f64 {
        let content = bytes(filler, 1, 100 * 1_024);
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for value in content.chunks(1_024) {
            builder.append(1, None, Some(value), []).unwrap();
        }
        let packed = builder.finish(Compression::Lz4, &mut Compressor::default()).unwrap();
        f64::from(100 * 1_024) / f64::from(u32::try_from(packed.len()).unwrap())
    }

    #[test]
    fn each_content_compresses_as_it_promises() {
        let ratios = ALL.map(ratio);
        assert!(ratios[0] < 1.01 && ratios[1] > 1.05, "{ratios:?}");
        assert!((1.5..6.0).contains(&ratios[2]), "{ratios:?}");
        assert!(ratios[3] > ratios[1], "{ratios:?}");
    }

    #[test]
    fn lines_of_a_log_are_lines() {
        let logs = String::from_utf8(bytes(Filler::Logs, 3, 10_000)).unwrap();
        assert!(logs.lines().take(20).all(|line| line.starts_with("2026-01-01T00:00:")));
    }

    #[test]
    fn the_seed_decides_the_content() {
        for filler in ALL {
            assert_eq!(bytes(filler, 5, 3_000), bytes(filler, 5, 3_000));
            assert_ne!(bytes(filler, 5, 3_000), bytes(filler, 6, 3_000));
        }
    }
}
