//! A configuration as it is printed: keys in the order in which they were put.

use std::fmt;

/// A value of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Yaml {
    /// A text, quoted where YAML would take it for something else.
    Text(String),
    Number(u64),
    Flag(bool),
    List(Vec<Yaml>),
    Map(Map),
}

/// Keys with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Map(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: &'static str,
    value: Yaml,
    /// What stands above the key.
    comment: Option<String>,
}

impl Map {
    /// Puts a key behind the others.
    pub(super) fn put(&mut self, key: &'static str, value: impl Into<Yaml>) {
        self.0.push(Entry { key, value: value.into(), comment: None });
    }

    /// Puts a key behind the others, with a comment of one line above it.
    pub(super) fn put_described(&mut self, key: &'static str, value: Yaml, comment: String) {
        self.0.push(Entry { key, value, comment: Some(comment.replace(['\n', '\r'], " ")) });
    }

    /// Puts a key if there is something to put.
    pub(super) fn put_some(&mut self, key: &'static str, value: Option<impl Into<Yaml>>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Puts the keys of another mapping behind the others.
    pub(super) fn append(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, indent: usize, first: &str) -> fmt::Result {
        for (index, Entry { key, value, comment }) in self.0.iter().enumerate() {
            if let Some(comment) = comment {
                writeln!(f, "{:indent$}# {comment}", "")?;
            }
            match (index, first.is_empty()) {
                (0, false) => f.write_str(first)?,
                _ => write!(f, "{:indent$}", "")?,
            }
            write!(f, "{key}:")?;
            value.write(f, indent + INDENT)?;
        }
        Ok(())
    }
}

impl fmt::Display for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0, "")
    }
}

impl Yaml {
    /// Writes what follows a key's colon, up to the end of its last line.
    fn write(&self, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
        match self {
            Self::Text(text) if is_plain(text) => writeln!(f, " {text}"),
            // A JSON string is a string of YAML.
            Self::Text(text) => writeln!(f, " {}", serde_json::Value::from(text.as_str())),
            Self::Number(number) => writeln!(f, " {number}"),
            Self::Flag(flag) => writeln!(f, " {flag}"),
            Self::List(items) if items.is_empty() => writeln!(f, " []"),
            Self::Map(map) if map.is_empty() => writeln!(f, " {{}}"),
            Self::List(items) => {
                writeln!(f)?;
                for item in items {
                    match item {
                        Self::Map(map) if !map.is_empty() => {
                            map.write(f, indent + INDENT, &format!("{:indent$}- ", ""))?;
                        }
                        other => {
                            write!(f, "{:indent$}-", "")?;
                            other.write(f, indent + INDENT)?;
                        }
                    }
                }
                Ok(())
            }
            Self::Map(map) => {
                writeln!(f)?;
                map.write(f, indent, "")
            }
        }
    }
}

impl From<&str> for Yaml {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Yaml {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Yaml {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Yaml {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<Map> for Yaml {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

impl<T: Into<Yaml>> From<Vec<T>> for Yaml {
    fn from(items: Vec<T>) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// Whether YAML takes the bare text for this very text.
fn is_plain(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./:$()@".contains(c);
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '$')
        && text.chars().all(inside)
        && !text.ends_with(':')
        && !words.contains(&text.to_ascii_lowercase().as_str())
        || text.parse::<std::net::SocketAddr>().is_ok() && !text.starts_with('[')
}

/// Columns by which a level stands further to the right.
const INDENT: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read_as_the_same() {
        let mut inner = Map::default();
        inner.put("name", "a: b # c");
        inner.put("numbers", vec![1_u64, 2]);
        inner.put("empty", Vec::<String>::new());
        let mut nested = Map::default();
        nested.put("word", "yes");
        nested.put("address", "127.0.0.1:9092");
        nested.put("digits", "0123");
        inner.put("nested", nested);
        let mut map = Map::default();
        map.put("flag", true);
        map.put("list", vec![inner.clone(), inner]);
        map.put_some("absent", None::<String>);
        map.put("nothing", Map::default());
        let printed = map.to_string();
        let read: serde_json::Value = serde_saphyr::from_str(&printed).unwrap();
        let item = serde_json::json!({
            "name": "a: b # c", "numbers": [1, 2], "empty": [],
            "nested": {"word": "yes", "address": "127.0.0.1:9092", "digits": "0123"},
        });
        let wanted = serde_json::json!({"flag": true, "list": [item, item], "nothing": {}});
        assert_eq!(read, wanted, "{printed}");
    }
}
