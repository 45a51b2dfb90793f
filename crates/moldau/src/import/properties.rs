//! Files of Java properties, as `java.util.Properties` reads them.

use crate::config::Problem;

/// A property with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Property {
    pub(super) key: String,
    pub(super) value: String,
    /// The line on which it begins, from 1.
    pub(super) line: usize,
}

/// Reads the properties of a file, in the order of its lines.
///
/// # Errors
/// The line of an escape that is not one.
pub(super) fn properties(text: &str) -> Result<Vec<Property>, Problem> {
    let mut lines = text.lines().enumerate();
    let mut properties = Vec::new();
    while let Some((index, first)) = lines.next() {
        let first = first.trim_start();
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = first.to_owned();
        while is_continued(&logical) {
            logical.pop();
            match lines.next() {
                Some((_, next)) => logical.push_str(next.trim_start()),
                None => break,
            }
        }
        let line = index + 1;
        let (key, value) = split(&logical);
        let unescape = |text: &str| {
            let refused = || Problem::in_line(line, "\\u needs four hexadecimal digits");
            unescape(text).ok_or_else(refused)
        };
        properties.push(Property { key: unescape(key)?, value: unescape(value)?, line });
    }
    Ok(properties)
}

/// Whether a line ends with a backslash that no other backslash escapes.
fn is_continued(line: &str) -> bool {
    let backslashes = line.len() - line.trim_end_matches('\\').len();
    backslashes % 2 == 1
}

/// Key and value, both still with their escapes.
fn split(line: &str) -> (&str, &str) {
    let mut is_escaped = false;
    let end = line.find(|c: char| {
        let ends = !is_escaped && (matches!(c, '=' | ':') || is_blank(c));
        is_escaped = !is_escaped && c == '\\';
        ends
    });
    let (key, rest) = line.split_at(end.unwrap_or(line.len()));
    let rest = rest.trim_start_matches(is_blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, value.trim_start_matches(is_blank))
}

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

fn unescape(text: &str) -> Option<String> {
    let mut units = Vec::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        let unescaped = match c {
            '\\' => match characters.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('f') => '\x0c',
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let is_hex = digits.len() == 4 && !digits.starts_with('+');
                    units.push(u16::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?);
                    continue;
                }
                Some(other) => other,
                None => break,
            },
            c => c,
        };
        units.extend_from_slice(unescaped.encode_utf16(&mut [0; 2]));
    }
    // A character beyond 16 bits is written as two escapes.
    Some(String::from_utf16_lossy(&units))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_property_is_read() {
        let text = "# comment\n! comment\n\n  a=1\nb : 2\nc 3\nd\ne = f = g\n\
                    h=i,\\\n    j,\\\r\n  k\nl\\=m=n\\\\\no=\\u00e9\\ud83d\\ude00\\q\np=#q\n";
        let properties = properties(text).unwrap();
        let read: Vec<_> =
            properties.iter().map(|it| (it.line, it.key.as_str(), it.value.as_str())).collect();
        let wanted = [
            (4, "a", "1"),
            (5, "b", "2"),
            (6, "c", "3"),
            (7, "d", ""),
            (8, "e", "f = g"),
            (9, "h", "i,j,k"),
            (12, "l=m", "n\\"),
            (13, "o", "é\u{1f600}q"),
            (14, "p", "#q"),
        ];
        assert_eq!(read, wanted);
    }

    #[test]
    fn an_escape_without_its_digits_is_refused_with_its_line() {
        for text in ["a=1\nb=\\u12", "a=1\nb=\\u+123", "a=1\nb=\\uxyzw"] {
            let problem = properties(text).unwrap_err().to_string();
            assert!(problem.starts_with(":2:1: "), "{problem}");
        }
    }
}
