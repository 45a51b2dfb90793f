//! What a configuration value may look like, and the one spelling in which it is kept.

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
                one_of(&["false", "true"], lower)
            }
            Self::Word(words) => one_of(words, value.to_owned()),
            Self::Int(range) => integer(value, i64::from(*range.start())..=i64::from(*range.end())),
            Self::GzipLevel => match integer(value, -1..=9).as_deref() {
                Ok("0") | Err(_) => Err("must be -1 or an integer from 1 to 9".to_owned()),
                Ok(level) => Ok(level.to_owned()),
            },
            Self::Long(range) => integer(value, range.clone()),
            Self::Ratio => match value.parse::<f64>() {
                // The sum turns a negative zero into zero.
                Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(format!("{:?}", ratio + 0.0)),
                _ => Err("must be a number from 0 to 1".to_owned()),
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
                    return Err("must be * or partition:broker,partition:broker ...".to_owned());
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
    Err(format!("must be {}", words.join(" or ")))
}

fn integer(value: &str, range: RangeInclusive<i64>) -> Result<String, String> {
    match value.parse::<i64>() {
        Ok(number) if range.contains(&number) => Ok(number.to_string()),
        _ => Err(format!("must be an integer from {} to {}", range.start(), range.end())),
    }
}

fn is_replica(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once(':')
        .is_some_and(|(partition, broker)| is_number(partition) && is_number(broker))
}
