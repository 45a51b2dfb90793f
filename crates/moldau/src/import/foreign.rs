//! Reads another product's configuration. No key is lost silently: each is either imported or
//! reported to the operator.

use std::fmt;

use serde_json::Value;

/// Settings that could not be translated, each with its position in the other configuration.
#[derive(Debug, Default)]
pub(crate) struct Notes(pub(crate) Vec<String>);

impl Notes {
    /// Tells of something that has no translation.
    pub(super) fn add(&mut self, path: impl fmt::Display, what: impl fmt::Display) {
        self.0.push(format!("{path}: {what}"));
    }
}

/// A value and its path, such as `virtualClusters[0].name`.
#[derive(Debug)]
pub(super) struct Foreign {
    pub(super) path: String,
    pub(super) value: Value,
}

/// A mapping whose keys are taken one after the other.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) path: String,
    keys: serde_json::Map<String, Value>,
}

impl Foreign {
    /// The whole document.
    pub(super) fn document(value: Value) -> Self {
        Self { path: String::new(), value }
    }

    /// The value as a mapping. Anything else is noted, and counts as empty.
    pub(super) fn section(self, notes: &mut Notes) -> Section {
        let keys = match self.value {
            Value::Object(keys) => keys,
            Value::Null => serde_json::Map::new(),
            _ => {
                notes.add(&self.path, "is not a mapping");
                serde_json::Map::new()
            }
        };
        Section { path: self.path, keys }
    }

    /// The items of a list. Anything else is noted, and counts as empty.
    pub(super) fn list(self, notes: &mut Notes) -> Vec<Self> {
        match self.value {
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, value)| Self { path: format!("{}[{index}]", self.path), value })
                .collect(),
            Value::Null => Vec::new(),
            _ => {
                notes.add(&self.path, "is not a list");
                Vec::new()
            }
        }
    }

    /// The value as a text; numbers and truth values count as what they are written as.
    pub(super) fn text(self, notes: &mut Notes) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Null => None,
            _ => {
                notes.add(&self.path, "is not a text");
                None
            }
        }
    }

    /// The value as a whole number.
    pub(super) fn number(self, notes: &mut Notes) -> Option<u64> {
        let path = self.path.clone();
        let text = self.text(notes)?;
        let number = text.parse().ok();
        if number.is_none() {
            notes.add(path, format_args!("{text:?} is not a whole number"));
        }
        number
    }
}

impl Section {
    /// Takes a key by the first of its names that is there; `null` counts as absent.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<Foreign> {
        let (name, value) =
            names.iter().find_map(|name| Some((*name, self.keys.remove(*name)?)))?;
        (!value.is_null()).then(|| Foreign { path: self.path_of(name), value })
    }

    /// Takes a key as a mapping, empty if the key is absent.
    pub(super) fn take_section(&mut self, names: &[&str], notes: &mut Notes) -> Option<Self> {
        Some(self.take(names)?.section(notes))
    }

    /// Takes a key as a text.
    pub(super) fn take_text(&mut self, names: &[&str], notes: &mut Notes) -> Option<String> {
        self.take(names)?.text(notes)
    }

    /// Takes a key as a whole number.
    pub(super) fn take_number(&mut self, names: &[&str], notes: &mut Notes) -> Option<u64> {
        self.take(names)?.number(notes)
    }

    /// Takes a key as `true` or `false`.
    pub(super) fn take_flag(&mut self, names: &[&str], notes: &mut Notes) -> Option<bool> {
        Some(self.take_text(names, notes)? == "true")
    }

    /// The path of one of its keys.
    pub(super) fn path_of(&self, key: &str) -> String {
        match self.path.as_str() {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }

    /// Notes every remaining key.
    pub(super) fn finish(self, notes: &mut Notes) {
        for (key, value) in &self.keys {
            if !value.is_null() {
                notes.add(self.path_of(key), "has no counterpart");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unused_key_is_reported_with_its_path() {
        let mut notes = Notes::default();
        let value = serde_json::json!({"a": {"b": 1, "c": "x"}, "d": [true], "e": null});
        let mut document = Foreign::document(value).section(&mut notes);
        let mut inner = document.take_section(&["z", "a"], &mut notes).unwrap();
        assert_eq!(inner.take_number(&["c"], &mut notes), None);
        inner.finish(&mut notes);
        document.finish(&mut notes);
        let told = ["a.c: \"x\" is not a whole number", "a.b: has no counterpart"];
        assert_eq!(notes.0, [told[0], told[1], "d: has no counterpart"]);
    }
}
