//! What a configuration value may look like, and the one spelling in which it is kept.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Longest value that is stored, in bytes, as in Kafka; strings in answers cannot be longer.
pub(crate) const VALUE_BYTES_MAX: usize = i16::MAX as usize;

/// The form of a key's value; decides Kafka's type of it.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// `true` or `false`.
    Boolean,
    /// One of several words.
    Word(&'static [&'static str]),
    /// 32-bit integer in a range.
    Int(RangeInclusive<i32>),
    /// The level of gzip: -1 for its own default, or 1 to 9.
    GzipLevel,
    /// 64-bit integer in a range.
    Long(RangeInclusive<i64>),
    /// A number from 0 to 1.
    Ratio,
    /// Some of several words, each once.
    Words(&'static [&'static str]),
    /// `*`, or partitions with brokers: `0:1,1:1`.
    Replicas,
}

impl Form {
    /// The number that stands for the type on the wire (`ConfigType`).
    pub(super) const fn type_code(&self) -> i8 {
        match self {
            Self::Boolean => 1,
            Self::Word(_) => 2,
            Self::Int(_) | Self::GzipLevel => 3,
            Self::Long(_) => 5,
            Self::Ratio => 6,
            Self::Words(_) | Self::Replicas => 7,
        }
    }

    /// Whether words can be appended and subtracted.
    pub(super) const fn is_list(&self) -> bool {
        matches!(self, Self::Words(_) | Self::Replicas)
    }

    /// The value in the spelling in which it is kept and shown: without blanks, signs and zeros
    /// that say nothing, as Kafka shows it.
    ///
    /// # Errors
    /// Says what is accepted.
    pub(super) fn canonical(&self, value: &str) -> Result<String, String> {
        let value = value.trim();
        match self {
            Self::Boolean => {
                let lower = value.to_ascii_lowercase();
                let problem = || "Expected value to be either true or false".to_owned();
                matches!(lower.as_str(), "false" | "true").then_some(lower).ok_or_else(problem)
            }
            Self::Word(words) => one_of(words, value.to_owned()),
            Self::Int(range) => within(int(value)?, range.clone()),
            Self::GzipLevel => match int(value)? {
                level @ (-1 | 1..=9) => Ok(level.to_string()),
                _ => Err("Value must be between 1 and 9 or equal to -1".to_owned()),
            },
            Self::Long(range) => {
                let number: i64 = value.parse().map_err(|_| not_a_number("LONG"))?;
                within(number, range.clone())
            }
            Self::Ratio => match value.parse::<f64>() {
                // The sum turns a negative zero into zero.
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(format!("{:?}", ratio + 0.0)),
                Ok(ratio) if ratio < 0.0 => Err("Value must be at least 0".to_owned()),
                Ok(ratio) if ratio > 1.0 => Err("Value must be no more than 1".to_owned()),
                _ => Err(not_a_number("DOUBLE")),
            },
            Self::Words(words) => {
                let mut kept: Vec<&str> = Vec::new();
                for word in list(value) {
                    one_of(words, word.to_owned())?;
                    if !kept.contains(&word) {
                        kept.push(word);
                    }
                }
                Ok(kept.join(","))
            }
            Self::Replicas => {
                let replicas: Vec<&str> = list(value).collect();
                if value != "*" && !replicas.iter().all(|replica| is_replica(replica)) {
                    return Err(REPLICAS.to_owned());
                }
                Ok(replicas.join(","))
            }
        }
    }
}

/// The words of a list; none in an empty value.
pub(crate) fn list(value: &str) -> impl Iterator<Item = &str> {
    let value = value.trim();
    value.split(',').map(str::trim).filter(move |_| !value.is_empty())
}

/// Text of a client that goes into a message, cut where it is long.
pub(crate) fn shown(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

fn one_of(words: &[&str], value: String) -> Result<String, String> {
    if words.contains(&value.as_str()) {
        return Ok(value);
    }
    Err(format!("String must be one of: {}", words.join(", ")))
}

/// What Kafka says of text that is no number of a type.
fn not_a_number(of_type: &str) -> String {
    format!("Not a number of type {of_type}")
}

fn int(value: &str) -> Result<i32, String> {
    value.parse().map_err(|_| not_a_number("INT"))
}

fn within<T: PartialOrd + Display>(number: T, range: RangeInclusive<T>) -> Result<String, String> {
    if number < *range.start() {
        return Err(format!("Value must be at least {}", range.start()));
    }
    if number > *range.end() {
        return Err(format!("Value must be no more than {}", range.end()));
    }
    Ok(number.to_string())
}

/// What Kafka says of a list of throttled replicas that is none.
const REPLICAS: &str = "must be the literal '*' or a list of replicas in the following format: \
     [partitionId]:[brokerId],[partitionId]:[brokerId],...";

fn is_replica(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(':')
        .is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
}
