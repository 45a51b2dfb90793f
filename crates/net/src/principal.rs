//! The principal of a peer, in Kafka's terms.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

/// A Kafka principal: a kind and a name, shown as `User:alice`. Clones share it.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Principal(Arc<Parts>);

#[derive(Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Parts {
    kind: Box<str>,
    name: Box<str>,
}

/// A text is not of the form `kind:name`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{text:?} is not a principal of the form User:name")]
pub struct InvalidPrincipal {
    text: String,
}

impl Principal {
    /// A principal of any kind.
    #[must_use]
    pub fn new(kind: &str, name: &str) -> Self {
        Self(Arc::new(Parts { kind: kind.into(), name: name.into() }))
    }

    /// `User:name`.
    #[must_use]
    pub fn user(name: &str) -> Self {
        Self::new(USER, name)
    }

    /// `User:ANONYMOUS`: a peer that did not say who it is.
    #[must_use]
    pub fn anonymous() -> Self {
        static ANONYMOUS: LazyLock<Principal> = LazyLock::new(|| Principal::user("ANONYMOUS"));
        ANONYMOUS.clone()
    }

    /// `User`, or what a mapping of the operator's chose.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.0.kind
    }

    /// The name without its kind.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), self.name())
    }
}

impl FromStr for Principal {
    type Err = InvalidPrincipal;

    fn from_str(text: &str) -> Result<Self, InvalidPrincipal> {
        match text.split_once(':') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(Self::new(kind, name)),
            _ => Err(InvalidPrincipal { text: text.to_owned() }),
        }
    }
}

const USER: &str = "User";

/// A name that a peer chose, as it may stand in an error or a log line: control characters are
/// escaped, and it is cut where it gets longer than any name in earnest.
pub(crate) fn shown(name: &str) -> String {
    let (mut out, mut characters) = (String::new(), name.chars());
    for character in characters.by_ref().take(SHOWN_CHARACTERS_MAX) {
        match character.is_control() {
            true => out.extend(character.escape_default()),
            false => out.push(character),
        }
    }
    if characters.next().is_some() {
        out.push_str("...");
    }
    out
}

/// Longest name that is shown whole.
const SHOWN_CHARACTERS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_is_read_back() {
        for text in ["User:alice", "Group:a:b", "User:CN=alice,O=x"] {
            let principal: Principal = text.parse().unwrap();
            assert_eq!(principal.to_string(), text);
        }
        assert_eq!("User:a:b".parse::<Principal>().unwrap().name(), "a:b");
        assert_eq!(Principal::anonymous().to_string(), "User:ANONYMOUS");
    }

    #[test]
    fn incomplete_text_is_refused() {
        for text in ["", "alice", ":alice", "User:"] {
            assert!(text.parse::<Principal>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn name_of_a_peer_is_shown_on_one_line_and_cut() {
        assert_eq!(shown("Jiří \\, \n\x1b[1mX"), "Jiří \\, \\n\\u{1b}[1mX");
        assert_eq!(shown(&"é".repeat(256)), "é".repeat(256));
        assert_eq!(shown(&"é".repeat(100_000)), "é".repeat(256) + "...");
    }
}
