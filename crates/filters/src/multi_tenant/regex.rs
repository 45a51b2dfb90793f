//! Regular expressions over names, which the cluster matches against whole names (KIP-848,
//! KIP-1152, KIP-1071, in the syntax of RE2/J).
//!
//! `orders-.*` of the tenant `a-` becomes `a-(?:orders-.*)`. Nothing that a tenant writes may end
//! the group. So only expressions pass whose brackets mean the same to every parser.

/// The expression over the tenant's names as one over the cluster's. `None` if it is not certain
/// where its groups and classes end.
pub(super) fn with_prefix(prefix: &str, pattern: &str) -> Option<String> {
    if pattern.is_empty() {
        return Some(String::new());
    }
    let mut out = opening(prefix);
    append_checked(pattern, &mut out)?;
    out.push(')');
    Some(out)
}

/// The tenant's own expression; `None` if it is not one of [`with_prefix`].
pub(super) fn without_prefix<'p>(prefix: &str, pattern: &'p str) -> Option<&'p str> {
    if pattern.is_empty() {
        return Some(pattern);
    }
    pattern.strip_prefix(&*opening(prefix))?.strip_suffix(')')
}

/// What stands before the tenant's expression. Of the characters in names only the dot means more
/// than itself.
fn opening(prefix: &str) -> String {
    let mut out = prefix.replace('.', "\\.");
    out.push_str("(?:");
    out
}

/// Appends the expression without what ties it to the start of the text, where the prefix stands.
fn append_checked(pattern: &str, out: &mut String) -> Option<()> {
    let mut depth = 0_u32;
    let mut letters = pattern.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '^' => continue,
            '\\' => {
                let escaped = letters.next()?;
                match escaped {
                    'A' => continue,
                    escaped if is_plain(escaped) => out.extend(['\\', escaped]),
                    _ => return None,
                }
                continue;
            }
            '[' => {
                out.push('[');
                append_class(&mut letters, out)?;
                continue;
            }
            '(' => {
                depth += 1;
                if letters.peek() == Some(&'?') {
                    out.push_str("(?");
                    letters.next();
                    if append_flags(&mut letters, out)? == ')' {
                        depth -= 1;
                    }
                    continue;
                }
            }
            ')' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        out.push(letter);
    }
    (depth == 0).then_some(())
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Appends the rest of a class with its closing bracket. Classes within classes are read
/// differently by different libraries.
fn append_class(letters: &mut Letters<'_>, out: &mut String) -> Option<()> {
    if letters.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut is_first = true;
    loop {
        match letters.next()? {
            ']' if is_first => return None,
            ']' => break,
            '[' => return None,
            '\\' => {
                let escaped = letters.next().filter(|it| is_plain(*it))?;
                out.extend(['\\', escaped]);
            }
            letter => out.push(letter),
        }
        is_first = false;
    }
    out.push(']');
    Some(())
}

/// True if a letter behind a backslash means the same to every parser and does not affect what
/// follows. Within a quotation (`\Q`) brackets mean nothing, and a control character (`\c`) takes
/// the next letter with it, be it a bracket.
fn is_plain(escaped: char) -> bool {
    escaped.is_ascii_punctuation()
        || escaped == ' '
        || matches!(escaped, 'd' | 'D' | 's' | 'S' | 'w' | 'W' | 'b' | 'B' | 'p' | 'P' | 'z')
        || matches!(escaped, 'a' | 'f' | 'n' | 'r' | 't' | 'v' | 'x')
}

/// Appends what stands behind `(?`, up to the end of the flags, which it gives. Names of groups and
/// the flag that makes `#` begin a comment are refused.
fn append_flags(letters: &mut Letters<'_>, out: &mut String) -> Option<char> {
    loop {
        let letter = letters.next()?;
        out.push(letter);
        match letter {
            'i' | 'm' | 's' | 'U' | '-' => {}
            ':' | ')' => return Some(letter),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::Regex;

    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Regex::new(&format!("^(?:{pattern})$")).unwrap().is_match(name)
    }

    #[test]
    fn an_expression_finds_the_same_names_behind_the_prefix() {
        let patterns = ["orders", "^orders.*$", "a|b", r"\Aa\.b", "[^x]+", "(?i)x", "(?i:x)|y", ""];
        for pattern in patterns {
            let wide = with_prefix("t.1-", pattern).unwrap();
            if pattern.is_empty() {
                assert_eq!(wide, "");
                continue;
            }
            for name in ["orders", "orders-2", "a", "b", "a.b", "axb", "x", "X", "y"] {
                let own = matches(pattern, name);
                assert_eq!(matches(&wide, &format!("t.1-{name}")), own, "{pattern} {name}");
                assert!(!matches(&wide, name) && !matches(&wide, &format!("tx1-{name}")));
            }
        }
    }

    #[test]
    fn what_could_leave_its_group_is_refused() {
        let wrong = [
            "a)|(?:.*",
            ")(",
            "[[a])|.*(?:[x]]",
            r"\Q)|.*(\E",
            "[]a)|.*]",
            "(?x: # )",
            "(",
            "[a",
            "\\",
            "(?P<n>a)",
            "(?#)",
            "[a[:alpha:]]",
            r"\c()|.*\c\(y",
            r"[\c]|b",
            r"(a)\1",
        ];
        for pattern in wrong {
            assert_eq!(with_prefix("t-", pattern), None, "{pattern}");
        }
    }

    #[test]
    fn the_own_expression_comes_back() {
        let wide = with_prefix("t.1-", "orders|b").unwrap();
        assert_eq!(without_prefix("t.1-", &wide), Some("orders|b"));
        assert_eq!(without_prefix("t.1-", ""), Some(""));
        assert_eq!(without_prefix("t.1-", "orders"), None);
        assert_eq!(without_prefix("u-", &wide), None);
    }

    /// An expression that every library reads alike.
    fn any_pattern() -> impl Strategy<Value = String> {
        let atom = prop_oneof![
            "[ab.^$]",
            r"\\[.*|()\[\]\\^$?A-]",
            r"\[\^?([ab.*|()$?]|\\[\[\]\\^-]){1,3}\]",
        ];
        atom.prop_recursive(4, 16, 3, |inner| {
            let group = prop_oneof![Just("("), Just("(?:"), Just("(?i:")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
                (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("{one}|{other}")),
                (group, inner.clone()).prop_map(|(group, inner)| format!("{group}{inner})")),
                (inner, "[*?+]").prop_map(|(inner, times)| format!("(?:{inner}){times}")),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_expression_that_is_read_alike_passes_and_finds_the_tenants_names_alone(
            pattern in any_pattern(),
            name in "[ab-]{0,4}",
        ) {
            let wide = with_prefix("t-", &pattern).expect("all libraries read it alike");
            prop_assert!(!matches(&wide, &name), "{} {}", wide, name);
            let found = matches(&wide, &format!("t-{name}"));
            prop_assert!(found || !matches(&pattern, &name), "{} {}", wide, name);
        }

        /// Whatever passes is a sound expression, or none that a cluster takes.
        #[test]
        fn no_expression_ends_the_group_of_its_prefix(
            pattern in r"[ab.*|()\[\]\\^$?:iQE-]{1,12}",
            name in "[ab-]{0,4}",
        ) {
            let wide = with_prefix("t-", &pattern);
            let compiled = wide.and_then(|wide| Regex::new(&format!("^(?:{wide})$")).ok());
            let is_found = compiled.is_some_and(|wide| wide.is_match(&name));
            prop_assert!(!is_found, "{}", pattern);
        }
    }
}
