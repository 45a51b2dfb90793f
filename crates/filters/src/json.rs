//! A strict in-place JSON scanner (RFC 8259). It builds no tree, copies nothing, and never
//! reformats a number or key.
//!
//! [`scan`] checks a whole text and passes the position of each value to a [`Visit`]. A caller that
//! rewrites the text copies everything else as it is.

use std::borrow::Cow;
use std::ops::Range;

/// Receives the values of a text.
pub(crate) trait Visit<'t> {
    /// What the visitor knows of a place in the text by its path.
    type Place: Copy;

    /// The place of a member of an object at `parent`.
    fn member(&mut self, parent: Self::Place, key: &Text<'t>) -> Self::Place;

    /// The place of an element of an array at `parent`.
    fn element(&mut self, parent: Self::Place, index: usize) -> Self::Place;

    /// A value ends, after all that lies within it.
    fn value(&mut self, place: Self::Place, kind: Kind, span: Range<usize>);

    /// An object begins.
    fn begin_object(&mut self) {}

    /// The innermost object ends; an error ends the scan.
    fn end_object(&mut self) -> Result<(), &'static str> {
        Ok(())
    }
}

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// A string between its quotes, as it stands in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'t> {
    raw: &'t str,
    has_escapes: bool,
}

/// Why bytes are no JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub(crate) struct Malformed {
    pub(crate) at: usize,
    pub(crate) reason: &'static str,
}

impl Malformed {
    /// Whether the text may be well-formed, and is only too large.
    pub(crate) fn is_too_large(&self) -> bool {
        self.reason == TOO_MANY_VALUES
    }
}

/// Reads a whole text, which starts at `root`.
pub(crate) fn scan<'t, V: Visit<'t>>(
    text: &'t [u8],
    root: V::Place,
    visit: &mut V,
) -> Result<(), Malformed> {
    let text = std::str::from_utf8(text)
        .map_err(|error| Malformed { at: error.valid_up_to(), reason: "the text is not UTF-8" })?;
    let mut scanner = Scanner { text, at: 0, values_left: VALUES_MAX, visit };
    scanner.space();
    scanner.value(root, DEPTH_MAX)?;
    scanner.space();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.malformed("something follows the value")),
    }
}

/// A visitor that only wants the text to be well-formed, and keys to be unique if that is asked.
pub(crate) struct Check<'t> {
    unique_keys: bool,
    /// The keys of all objects around the place at hand.
    keys: Vec<Cow<'t, str>>,
    /// Where in `keys` those of each object begin.
    objects: Vec<usize>,
}

impl<'t> Check<'t> {
    pub(crate) fn new(unique_keys: bool) -> Self {
        Self { unique_keys, keys: Vec::new(), objects: Vec::new() }
    }
}

impl<'t> Visit<'t> for Check<'t> {
    type Place = ();

    fn member(&mut self, (): (), key: &Text<'t>) {
        if self.unique_keys {
            self.keys.push(key.unescaped());
        }
    }

    fn element(&mut self, (): (), _: usize) {}

    fn value(&mut self, (): (), _: Kind, _: Range<usize>) {}

    fn begin_object(&mut self) {
        if self.unique_keys {
            self.objects.push(self.keys.len());
        }
    }

    fn end_object(&mut self) -> Result<(), &'static str> {
        let Some(start) = self.objects.pop() else { return Ok(()) };
        let keys = self.keys.get_mut(start..).unwrap_or_default();
        keys.sort_unstable();
        let is_unique = keys.windows(2).all(|pair| pair.first() != pair.last());
        self.keys.truncate(start);
        if is_unique { Ok(()) } else { Err("an object has a key twice") }
    }
}

impl<'t> Text<'t> {
    /// What stands between the quotes of a string value.
    pub(crate) fn of_value(quoted: &'t str) -> Self {
        let raw = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let raw = raw.unwrap_or(quoted);
        Self { raw, has_escapes: raw.contains('\\') }
    }

    /// What the string says.
    pub(crate) fn unescaped(&self) -> Cow<'t, str> {
        if !self.has_escapes {
            return Cow::Borrowed(self.raw);
        }
        let mut said = String::with_capacity(self.raw.len());
        let mut units = Vec::new();
        let mut rest = self.raw;
        while let Some((before, after)) = rest.split_once('\\') {
            said.push_str(before);
            let mut after = after.chars();
            match after.next() {
                Some('u') => {
                    // A character beyond 16 bits is two escapes, one right behind the other.
                    units.clear();
                    let mut tail = after.as_str();
                    loop {
                        let (digits, left) = tail.split_at_checked(4).unwrap_or((tail, ""));
                        units.push(u16::from_str_radix(digits, 16).unwrap_or_default());
                        tail = left;
                        match left.strip_prefix("\\u") {
                            Some(next) => tail = next,
                            None => break,
                        }
                    }
                    said.extend(
                        char::decode_utf16(units.iter().copied())
                            .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
                    );
                    rest = tail;
                    continue;
                }
                Some('b') => said.push('\u{8}'),
                Some('f') => said.push('\u{c}'),
                Some('n') => said.push('\n'),
                Some('r') => said.push('\r'),
                Some('t') => said.push('\t'),
                Some(other) => said.push(other),
                None => {}
            }
            rest = after.as_str();
        }
        said.push_str(rest);
        Cow::Owned(said)
    }
}

/// A text that is being read.
struct Scanner<'t, 'v, V> {
    text: &'t str,
    at: usize,
    values_left: usize,
    visit: &'v mut V,
}

impl<'t, V: Visit<'t>> Scanner<'t, '_, V> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next_is(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed { at: self.at, reason }
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self, place: V::Place, depth_left: usize) -> Result<(), Malformed> {
        let start = self.at;
        let values_left = self.values_left.checked_sub(1);
        self.values_left = values_left.ok_or_else(|| self.malformed(TOO_MANY_VALUES))?;
        let kind = match self.peek() {
            Some(b'{') => {
                self.object(place, depth_left)?;
                Kind::Object
            }
            Some(b'[') => {
                self.array(place, depth_left)?;
                Kind::Array
            }
            Some(b'"') => {
                self.string()?;
                Kind::String
            }
            Some(b'-' | b'0'..=b'9') => {
                self.number()?;
                Kind::Number
            }
            Some(b't') => self.word("true", Kind::Bool)?,
            Some(b'f') => self.word("false", Kind::Bool)?,
            Some(b'n') => self.word("null", Kind::Null)?,
            Some(_) => return Err(self.malformed("no value begins so")),
            None => return Err(self.malformed("a value is missing")),
        };
        self.visit.value(place, kind, start..self.at);
        Ok(())
    }

    fn object(&mut self, place: V::Place, depth_left: usize) -> Result<(), Malformed> {
        let depth_left = self.enter(depth_left)?;
        self.visit.begin_object();
        self.space();
        if !self.next_is(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.malformed("a key is missing"));
                }
                let key = self.string()?;
                self.space();
                if !self.next_is(b':') {
                    return Err(self.malformed("a colon is missing"));
                }
                self.space();
                let member = self.visit.member(place, &key);
                self.value(member, depth_left)?;
                self.space();
                if self.next_is(b'}') {
                    break;
                }
                self.comma("a comma or `}` is missing")?;
            }
        }
        self.visit.end_object().map_err(|reason| self.malformed(reason))
    }

    fn array(&mut self, place: V::Place, depth_left: usize) -> Result<(), Malformed> {
        let depth_left = self.enter(depth_left)?;
        self.space();
        if self.next_is(b']') {
            return Ok(());
        }
        for index in 0.. {
            let element = self.visit.element(place, index);
            self.value(element, depth_left)?;
            self.space();
            if self.next_is(b']') {
                break;
            }
            self.comma("a comma or `]` is missing")?;
        }
        Ok(())
    }

    /// Passes over the bracket.
    fn enter(&mut self, depth_left: usize) -> Result<usize, Malformed> {
        let left = depth_left.checked_sub(1).ok_or_else(|| self.malformed("it is too deep"))?;
        self.at += 1;
        Ok(left)
    }

    fn comma(&mut self, otherwise: &'static str) -> Result<(), Malformed> {
        if !self.next_is(b',') {
            return Err(self.malformed(otherwise));
        }
        self.space();
        Ok(())
    }

    fn word(&mut self, word: &'static str, kind: Kind) -> Result<Kind, Malformed> {
        let is_word = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        if !is_word {
            return Err(self.malformed("no value begins so"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn string(&mut self) -> Result<Text<'t>, Malformed> {
        self.at += 1;
        let (start, mut has_escapes) = (self.at, false);
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(self.malformed("a control character is not escaped")),
                Some(_) => self.at += 1,
                None => return Err(self.malformed("a string does not end")),
            }
        }
        let raw = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(Text { raw, has_escapes })
    }

    fn escape(&mut self) -> Result<(), Malformed> {
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|digit| digit.is_ascii_hexdigit()) {
                        return Err(self.malformed("an escape has no four digits"));
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.malformed("there is no such escape")),
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Malformed> {
        self.next_is(b'-');
        if !self.next_is(b'0') {
            self.digits()?;
        }
        if self.next_is(b'.') {
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start { Err(self.malformed("a digit is missing")) } else { Ok(()) }
    }
}

/// How deep values may lie in one another, so that a text cannot use up the stack: as deep as
/// serde_json reads.
const DEPTH_MAX: usize = 128;

/// Limit of values in one text. A value may take two bytes there, but a hundred bytes in a tree or
/// a list of positions: a text of 100 MB would take gigabytes.
const VALUES_MAX: usize = 1_000_000;

const TOO_MANY_VALUES: &str = "it holds more than a million values";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], unique_keys: bool) -> Result<(), Malformed> {
        scan(text, (), &mut Check::new(unique_keys))
    }

    #[test]
    fn it_takes_what_serde_json_takes() {
        let texts = [
            "null",
            " true ",
            "false",
            "0",
            "-0",
            "1.5e+7",
            "\"\"",
            "[]",
            "{}",
            "[1, 2,\t3]",
            "01",
            r#"{"a":{"b":[{}]},"c":"\u0041\n\\"}"#,
            "",
            " ",
            "{",
            "[",
            "[1,]",
            "{\"a\"}",
            "1.",
            "-",
            "{\"a\":1,}",
            "{a:1}",
            "'a'",
            "nul",
            "truex",
            "1 2",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "\"",
            "+1",
            ".5",
            "1e",
            "NaN",
            "[1 2]",
            "\u{feff}1",
            "{\"a\" 1}",
            "{1:1}",
            "// c\n1",
            "\"\\",
            "[}",
            "{]",
            "\"\u{7f}é\"",
        ];
        for text in texts {
            let ours = check(text.as_bytes(), false);
            let theirs = serde_json::from_str::<serde_json::Value>(text);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{text:?} {ours:?} {theirs:?}");
        }
        assert!(check(b"\"\xff\"", false).is_err());
    }

    #[test]
    fn changed_texts_are_judged_as_serde_json_judges_them() {
        let text = br#"{"a":[1,-2.5e3,"x\u00e9\n",{"b":null}],"c":true,"d":{"":[[]]}}"#;
        let mut random = fastrand::Rng::with_seed(5);
        let alphabet = b"{}[]\",:\\u0123eE+-.tfn \x00\xc3";
        for _ in 0..20_000 {
            let mut changed = text.to_vec();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..changed.len());
                match random.u8(..3) {
                    0 => changed[at] = alphabet[random.usize(..alphabet.len())],
                    1 => changed.insert(at, alphabet[random.usize(..alphabet.len())]),
                    _ => drop(changed.remove(at)),
                }
            }
            let ours = check(&changed, false).is_ok();
            // It may hold what Rust has no value for, as half of a surrogate pair.
            let theirs = str::from_utf8(&changed)
                .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok());
            assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(&changed));
        }
    }

    #[test]
    fn it_does_not_go_deeper_than_it_may() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(DEPTH_MAX).as_bytes(), true), Ok(()));
        assert!(check(nested(DEPTH_MAX + 1).as_bytes(), true).is_err());
        assert!(check("[".repeat(1_000_000).as_bytes(), true).is_err());
    }

    #[test]
    fn it_holds_no_more_values_than_it_may() {
        let array = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
        assert_eq!(check(array(VALUES_MAX).as_bytes(), true), Ok(()));
        let beyond = check(array(VALUES_MAX + 1).as_bytes(), true);
        assert!(beyond.is_err_and(|error| error.is_too_large()));
    }

    #[test]
    fn a_key_twice_is_found_however_it_is_written() {
        for (text, is_unique) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}"#, true),
            (r#"{"a":1,"a":2}"#, false),
            (r#"{"a":1,"\u0061":2}"#, false),
            (r#"[{"x":{"b":1,"c":2,"b":3}}]"#, false),
        ] {
            assert_eq!(check(text.as_bytes(), true).is_ok(), is_unique, "{text}");
            assert!(check(text.as_bytes(), false).is_ok());
        }
    }

    #[test]
    fn a_string_says_what_its_escapes_mean() {
        for text in [r#""plain""#, r#""\"\\\/\b\f\n\r\t""#, r#""\u00e9x\ud83d\ude00y\u0041""#] {
            let said = Text::of_value(text).unescaped();
            assert_eq!(said, serde_json::from_str::<String>(text).unwrap(), "{text}");
        }
        assert_eq!(Text::of_value(r#""\ud800x""#).unescaped(), "\u{fffd}x");
    }
}
