//! Rust source, split into code and comments line by line.
//!
//! String and character literals are blanked out of the code, so that a rule may look for words
//! and braces in `code` and for prose in `comment` without parsing.

/// One line of a source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// The code; the contents of literals are spaces.
    pub(super) code: String,
    /// The text of comments, with their slashes.
    pub(super) comment: String,
    /// Whether the line belongs to code that is compiled for tests only.
    pub(super) test: bool,
}

/// A function with the lines that it covers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Function {
    pub(super) name: String,
    /// Zero-based line of the word `fn`.
    pub(super) first: usize,
    /// Zero-based line of the closing brace.
    pub(super) last: usize,
}

impl Function {
    /// How many lines it covers, its signature included.
    pub(super) fn lines(&self) -> usize {
        self.last - self.first + 1
    }
}

/// What the scanner is inside of.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Code,
    LineComment,
    /// With its depth, since block comments nest.
    BlockComment(u32),
    Text,
    /// With the number of hashes that end it.
    RawText(usize),
}

/// Splits `source` into lines.
pub(super) fn lines(source: &str) -> Vec<Line> {
    let characters: Vec<char> = source.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = State::Code;
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let rest = &characters[at..];
        if character == '\n' {
            if state == State::LineComment {
                state = State::Code;
            }
            lines.push(Line::default());
            at += 1;
            continue;
        }
        let previous = at.checked_sub(1).and_then(|before| characters.get(before).copied());
        let (after, taken) = step(state, rest, previous);
        let line = lines.last_mut().expect("there is always a line");
        // Nothing but a character literal takes several characters of code at once.
        let blank = state == State::Code && after == State::Code && taken > 1;
        for &character in &rest[..taken] {
            put(line, state, after, if blank { ' ' } else { character });
        }
        state = after;
        at += taken;
    }
    mark_tests(&mut lines);
    lines
}

/// The next state and how many characters lead to it; never more than the rest of the line.
fn step(state: State, rest: &[char], previous: Option<char>) -> (State, usize) {
    let starts = |text: &str| text.chars().eq(rest.iter().copied().take(text.chars().count()));
    match state {
        State::Code if starts("//") => (State::LineComment, 2),
        State::Code if starts("/*") => (State::BlockComment(1), 2),
        State::Code if starts("\"") => (State::Text, 1),
        State::Code => match raw_text_start(rest, previous) {
            Some((hashes, taken)) => (State::RawText(hashes), taken),
            None => (State::Code, character_literal(rest)),
        },
        State::LineComment => (state, 1),
        State::BlockComment(depth) if starts("/*") => (State::BlockComment(depth + 1), 2),
        State::BlockComment(1) if starts("*/") => (State::Code, 2),
        State::BlockComment(depth) if starts("*/") => (State::BlockComment(depth - 1), 2),
        State::BlockComment(_) => (state, 1),
        State::Text if starts("\\") && rest.get(1).is_some_and(|&next| next != '\n') => (state, 2),
        State::Text if starts("\"") => (State::Code, 1),
        State::Text => (state, 1),
        State::RawText(hashes) if starts(&format!("\"{}", "#".repeat(hashes))) => {
            (State::Code, 1 + hashes)
        }
        State::RawText(_) => (state, 1),
    }
}

/// The hashes and the length of `r"`, `r#"`, `br"` and so on at the start of `rest`.
fn raw_text_start(rest: &[char], previous: Option<char>) -> Option<(usize, usize)> {
    if previous.is_some_and(|before| before.is_alphanumeric() || before == '_') {
        return None;
    }
    let prefix = usize::from(matches!(rest.first(), Some('b' | 'c')));
    if rest.get(prefix) != Some(&'r') {
        return None;
    }
    let hashes = rest[prefix + 1..].iter().take_while(|&&character| character == '#').count();
    let taken = prefix + 1 + hashes + 1;
    (rest.get(taken - 1) == Some(&'"')).then_some((hashes, taken))
}

/// The length of a character literal at the start of `rest`, or 1: a lifetime is plain code.
fn character_literal(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', tail @ ..] => {
            tail.iter().skip(1).position(|&c| c == '\'').map_or(1, |length| length + 4)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

fn put(line: &mut Line, before: State, after: State, character: char) {
    let in_comment = |state| matches!(state, State::LineComment | State::BlockComment(_));
    if in_comment(before) || in_comment(after) {
        line.comment.push(character);
    } else if before == State::Code && after == State::Code {
        line.code.push(character);
    } else {
        line.code.push(' ');
    }
}

/// Marks the items that stand under `#[cfg(test)]`, to their closing brace or semicolon.
fn mark_tests(lines: &mut [Line]) {
    let mut at = 0;
    while at < lines.len() {
        if lines[at].code.trim_start().starts_with("#[cfg(test)]") {
            let last = item_end(lines, at, 0).unwrap_or(lines.len() - 1);
            for line in &mut lines[at..=last] {
                line.test = true;
            }
            at = last;
        }
        at += 1;
    }
}

/// The line on which the item that begins at `line` and `column` ends.
fn item_end(lines: &[Line], line: usize, column: usize) -> Option<usize> {
    let mut braces = 0_i32;
    let mut brackets = 0_i32;
    for (number, text) in lines.iter().enumerate().skip(line) {
        let skipped = if number == line { column } else { 0 };
        for character in text.code.chars().skip(skipped) {
            match character {
                '{' => braces += 1,
                '}' => braces -= 1,
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                _ => {}
            }
            if character == '}' && braces == 0 || character == ';' && braces + brackets == 0 {
                return Some(number);
            }
        }
    }
    None
}

/// Every function with a body, nested ones included.
pub(super) fn functions(lines: &[Line]) -> Vec<Function> {
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        let Some(column) = word_position(&line.code, "fn") else { continue };
        let name: String = line.code[column + 2..]
            .trim_start()
            .chars()
            .take_while(|&character| is_word(character))
            .collect();
        if name.is_empty() {
            continue;
        }
        // Columns count characters, positions bytes.
        let skipped = line.code[..column].chars().count();
        if let Some(last) = item_end(lines, first, skipped) {
            found.push(Function { name, first, last });
        }
    }
    found
}

/// The byte position of a whole word.
pub(super) fn word_position(text: &str, word: &str) -> Option<usize> {
    text.match_indices(word).map(|(position, _)| position).find(|&position| {
        let before = text[..position].chars().next_back();
        let after = text[position + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Whether a name may contain the character.
pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_told_from_code() {
        let source = "let a = \"x { // y\"; // say\nlet b = '{'; /* one\n{ two */ let c = '\\n';";
        let lines = lines(source);
        assert!(!lines[0].code.contains('{') && lines[0].code.contains("let a ="));
        assert_eq!(lines[0].comment, "// say");
        assert_eq!((lines[1].code.trim(), lines[1].comment.as_str()), ("let b =    ;", "/* one"));
        assert!(lines[2].code.contains("let c") && !lines[2].code.contains('{'));
    }

    #[test]
    fn raw_strings_end_at_their_hashes() {
        let lines = lines("let a = r#\"{ \" \\\"#; let b = 1; // end\nfn f<'a>(x: &'a str) {}");
        assert!(lines[0].code.contains("let b = 1;") && !lines[0].code.contains('{'));
        assert_eq!(lines[0].comment, "// end");
        assert!(lines[1].code.contains("<'a>"));
    }

    #[test]
    fn functions_span_to_their_closing_brace() {
        let source =
            "trait T { fn a(); }\nfn b(x: [u8; 2]) -> u8\nwhere\n{\n  if x {\n  }\n}\nfn c() {}";
        let found = functions(&lines(source));
        let spans: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.lines())).collect();
        assert_eq!(spans, [("a", 1), ("b", 6), ("c", 1)]);
    }

    #[test]
    fn code_under_cfg_test_is_marked() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}";
        let marks: Vec<bool> = lines(source).iter().map(|line| line.test).collect();
        assert_eq!(marks, [false, true, true, true, true, false]);
    }
}
