//! Errors in a configuration file, printed as `:line:column: message`.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_saphyr::{Error, Location, Spanned};

use super::kafka;

/// A value with the place where the file has it. Two are equal whose values are, wherever they
/// stand.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    location: Location,
}

impl<T> At<T> {
    /// Another value with the same place.
    pub(crate) fn with<U>(&self, value: U) -> At<U> {
        At { value, location: self.location }
    }

    /// The line, from 1, unless the value has no place in a file.
    pub(crate) fn line(&self) -> Option<u64> {
        place_of(self.location).map(|(line, _)| line)
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Self { value, location: referenced })
    }
}

/// What is wrong, and where.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// Line and column, both from 1.
    place: Option<(u64, u64)>,
    text: String,
}

impl Problem {
    /// A problem with a value.
    pub(crate) fn at<T>(value: &At<T>, text: impl fmt::Display) -> Self {
        // Some libraries draw their errors over several lines.
        let text = text.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
        Self { place: place_of(value.location), text }
    }

    /// A problem in a line, counted from 1, within a text that is one value to YAML.
    pub(crate) fn in_line(line: usize, text: impl Into<String>) -> Self {
        let place = u64::try_from(line).ok().map(|line| (line, 1));
        Self { place, text: text.into() }
    }

    /// A problem that the parser of YAML found in `text`.
    pub(crate) fn of_parser(error: &Error, text: &str) -> Self {
        let error = error.without_snippet();
        let place = error.location().and_then(place_of);
        let token = place.and_then(|place| Token::at(text, place));
        Self { place, text: in_words(error, token) }
    }
}

/// With `#` only the text, for what has no file.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            _ if f.alternate() => f.write_str(&self.text),
            Some((line, column)) => write!(f, ":{line}:{column}: {}", self.text),
            None => write!(f, ": {}", self.text),
        }
    }
}

/// A value that has no place of its own in a file, such as an argument.
pub(crate) fn nowhere<T>(value: T) -> At<T> {
    At { value, location: Location::UNKNOWN }
}

fn place_of(location: Location) -> Option<(u64, u64)> {
    (location.line() > 0).then(|| (location.line(), location.column()))
}

/// The known word that differs least from `word`, if it is at all alike.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let distances = known.iter().map(|key| (edit_distance(word, key), *key));
    let (distance, key) = distances.min_by_key(|(it, _)| *it)?;
    (distance <= word.len().max(key.len()) / 2).then_some(key)
}

/// That `word` is none of the known ones, with the nearest of them.
pub(crate) fn none_of(word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(key) => format!("{word:?} is not one of {}; did you mean {key:?}?", known.join(", ")),
        None => format!("{word:?} is not one of {}", known.join(", ")),
    }
}

/// What stands at a place of a file, and the key in whose line it stands.
#[derive(Clone, Copy)]
struct Token<'a> {
    key: Option<&'a str>,
    value: &'a str,
}

impl<'a> Token<'a> {
    fn at(text: &'a str, (line, column): (u64, u64)) -> Option<Self> {
        let line = text.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        let column = usize::try_from(column).ok()?.checked_sub(1)?;
        let (start, _) = line.char_indices().nth(column)?;
        let (before, value) = line.split_at(start);
        let end = value.find([',', '}', ']', '#']).unwrap_or(value.len());
        let key = before.trim_end().strip_suffix(':').and_then(|before| {
            let key = before.rsplit([' ', '{', ',', '[']).next()?;
            (!key.is_empty()).then_some(key.trim_matches(['"', '\'']))
        });
        Some(Self { key, value: value[..end].trim() })
    }
}

fn in_words(error: &Error, token: Option<Token<'_>>) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => unknown_key(field, expected),
        Error::SerdeUnknownVariant { variant, expected, .. } => none_of(variant, expected),
        Error::SerdeMissingField { field, .. } => format!("the key {field:?} is missing"),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            format!("duplicate key {key:?}")
        }
        Error::InvalidScalar { ty, .. } => not_of_type(ty, token),
        Error::SerdeInvalidType { expected, .. } => not_of_type(expected, token),
        Error::Unexpected { expected, .. } => not_of_type(expected, token),
        _ => {
            let text = error.to_string();
            // The place stands before the text already.
            let text = text.rsplit_once(" at line ").map_or(&*text, |(text, _)| text);
            if text == "invalid socket address syntax" {
                return not_of_type("an address, IP:PORT", token);
            }
            match token.and_then(|token| token.key) {
                Some(key) => format!("{key}: {text}"),
                None => text.to_owned(),
            }
        }
    }
}

/// That a key is unknown, with the name that it has here, or with the nearest known key.
fn unknown_key(key: &str, known: &[&str]) -> String {
    let renamed = |(former, name, _): &&(&str, &str, &str)| *former == key && known.contains(name);
    if let Some((_, name, note)) = kafka::RENAMED.iter().find(renamed) {
        return format!("the key {key:?} is called {name:?}{note}");
    }
    let is_broker = known.contains(&"num.partitions");
    match kafka::effect(key).filter(|_| is_broker) {
        Some(kafka::Effect::None(reason)) => {
            return format!("the key {key:?} has no effect here: {reason}");
        }
        Some(kafka::Effect::Unsupported(reason)) => {
            return format!("the key {key:?} is not supported: {reason}");
        }
        None => {}
    }
    match nearest(key, known) {
        Some(nearest) => format!("unknown key {key:?}; did you mean {nearest:?}?"),
        None => format!("unknown key {key:?}; known keys: {}", known.join(", ")),
    }
}

/// That a value is not of the type that its key wants, with the unit of the key.
fn not_of_type(wanted: &str, token: Option<Token<'_>>) -> String {
    let key = token.and_then(|token| token.key).unwrap_or_default();
    let ends = |suffix: &str| key.strip_suffix(suffix).is_some_and(|it| it.ends_with(['.', '_']));
    let unit = UNITS.iter().find(|(suffix, _)| ends(suffix)).map(|(_, unit)| *unit);
    let wanted = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i32" | "i64" => "a whole number",
        "f64" => "a number",
        "bool" | "boolean" | "a boolean" => "true or false",
        "sequence start" => "a list",
        "mapping start" => "a mapping of keys",
        "string scalar" => "a single value",
        other => other,
    };
    let value = match token.map_or("this", |token| token.value) {
        list if list.starts_with('[') => "a list",
        mapping if mapping.starts_with('{') => "a mapping",
        value => value,
    };
    match (key, unit) {
        ("", _) => format!("{value} is not {wanted}"),
        (key, None) => format!("{key}: {value} is not {wanted}"),
        (key, Some(unit)) => format!("{key}: {value} is not {wanted}; its unit is {unit}"),
    }
}

/// Levenshtein's distance in bytes, by rows.
fn edit_distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, own) in left.bytes().enumerate() {
        let mut diagonal = index;
        let mut previous = index + 1;
        if let Some(first) = row.first_mut() {
            *first = previous;
        }
        for (cell, other) in row.iter_mut().skip(1).zip(right.bytes()) {
            let substituted = diagonal + usize::from(own != other);
            diagonal = *cell;
            *cell = substituted.min(previous + 1).min(diagonal + 1);
            previous = *cell;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Last words of keys, with what their numbers count.
const UNITS: [(&str, &str); 8] = [
    ("ms", "milliseconds"),
    ("s", "seconds"),
    ("minutes", "minutes"),
    ("hours", "hours"),
    ("mib", "MiB"),
    ("mib_per_second", "MiB a second"),
    ("bytes", "bytes"),
    ("bytes_per_second", "bytes a second"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        assert_eq!(edit_distance("listen", "listen"), 0);
        assert_eq!(edit_distance("lisen", "listen"), 1);
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
    }

    #[test]
    fn a_word_like_nothing_known_gets_no_suggestion() {
        assert_eq!(nearest("0", &["listen", "admin"]), None);
        assert_eq!(nearest("adminn", &["listen", "admin"]), Some("admin"));
    }
}
