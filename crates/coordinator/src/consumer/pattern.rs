//! Regular expressions of subscriptions, in the syntax of RE2, which Kafka takes from re2j. A name
//! matches as a whole.
//!
//! The crate `regex` follows the same syntax but for a few forms, which are rewritten: `\Q..\E`
//! quotes, and inside of brackets `[`, `&`, `~` and `-` stand for themselves.

use regex::{Regex, RegexBuilder};

/// Memory of one compiled expression of a subscription.
pub(super) const BYTES_MAX: usize = 1 << 20;

/// Compiles an expression, which then takes at most `bytes_max` of memory. A name is matched in
/// time linear to its length, whatever the expression is.
///
/// # Errors
/// Says why the expression is not valid.
pub fn compile(pattern: &str, bytes_max: usize) -> Result<Regex, String> {
    // On its own first: `a)(b` must not become valid by what stands around it.
    let translated = translate(pattern);
    let build = |text: &str| RegexBuilder::new(text).size_limit(bytes_max).build();
    build(&translated).and_then(|_alone| build(&format!(r"\A(?:{translated})\z"))).map_err(
        |error| match error {
            regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
            other => last_line(&other.to_string()),
        },
    )
}

/// The crate draws where the error is, over several lines, and then says what it is.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

fn translate(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut in_class = false;
    loop {
        if let Some(quoted) = rest.strip_prefix(r"\Q") {
            let (text, after) = quoted.split_once(r"\E").unwrap_or((quoted, ""));
            out.push_str(&regex::escape(text));
            rest = after;
            continue;
        }
        let mut letters = rest.chars();
        let Some(first) = letters.next() else { return out };
        if first == '\\' {
            out.push(first);
            out.extend(letters.next());
            rest = letters.as_str();
            continue;
        }
        if in_class {
            rest = in_brackets(rest, first, &mut out, &mut in_class);
            continue;
        }
        out.push(first);
        rest = letters.as_str();
        if first == '[' {
            in_class = true;
            if let Some(after) = rest.strip_prefix('^') {
                out.push('^');
                rest = after;
            }
            // A bracket that closes stands for itself in the first place.
            if let Some(after) = rest.strip_prefix(']') {
                out.push_str(r"\]");
                rest = after;
            }
        }
    }
}

/// One element inside of brackets; returns what follows it.
fn in_brackets<'a>(rest: &'a str, first: char, out: &mut String, in_class: &mut bool) -> &'a str {
    if let Some((name, after)) = rest.strip_prefix("[:").and_then(|rest| rest.split_once(":]")) {
        out.push_str("[:");
        out.push_str(name);
        out.push_str(":]");
        return after;
    }
    if let Some(after) = rest.strip_prefix("--") {
        out.push_str(r"-\-");
        return after;
    }
    if matches!(first, '[' | '&' | '~') {
        out.push('\\');
    }
    out.push(first);
    *in_class = first != ']';
    rest.strip_prefix(first).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        compile(pattern, BYTES_MAX).expect("a valid expression").is_match(name)
    }

    #[test]
    fn a_name_matches_as_a_whole() {
        assert!(matches("a.*|b", "ab"));
        assert!(matches("a.*|b", "b"));
        assert!(!matches("a.*|b", "bb"));
        assert!(!matches("foo", "foo-bar"));
        assert!(!matches("foo", "xfoo"));
    }

    #[test]
    fn forms_of_re2_are_understood() {
        assert!(matches(r"\Qa.b\E.*", "a.bc"));
        assert!(!matches(r"\Qa.b\E.*", "aXbc"));
        assert!(matches("[[a]+", "[a["));
        assert!(matches("[a&&b]+", "a&b"));
        assert!(matches("[[:alpha:]]+", "topic"));
        assert!(matches("[]a]+", "]a"));
        assert!(matches("[^]a]+", "bc"));
        assert!(matches("(?i)TOPIC", "topic"));
        assert!(matches(r"\pL+", "topic"));
    }

    #[test]
    fn invalid_expressions_are_refused() {
        for pattern in ["[", "(", "a)(b", "*", r"(?=a)", r"(a)\1", "a{1001}{1001}"] {
            assert!(compile(pattern, BYTES_MAX).is_err(), "{pattern}");
        }
    }
}
