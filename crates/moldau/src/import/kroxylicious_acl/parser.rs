//! The grammar of Kroxylicious's rules, in the two orders that imports have had.

use std::collections::HashMap;
use std::fmt;

/// Line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(usize, usize);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) place: Place,
    pub(super) allows: bool,
    /// `User`, or the class of another kind of principal.
    pub(super) principal_type: String,
    pub(super) principals: Names,
    /// `None` for all.
    pub(super) operations: Option<Vec<String>>,
    /// The class of the resource.
    pub(super) resource: String,
    pub(super) names: Names,
}

/// A predicate over names.
#[derive(Debug)]
pub(super) enum Names {
    Any,
    In(Vec<String>),
    /// Those that begin so.
    Like(String),
    /// Those that a regular expression takes.
    Matching,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// As it stands between its quotes.
    Text(String),
    Regex,
    Symbol(char),
    End,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Regex => f.write_str("a regular expression"),
            Self::Symbol(symbol) => write!(f, "`{symbol}`"),
            Self::End => f.write_str("the end"),
        }
    }
}

/// Reads all rules.
///
/// # Errors
/// What is wrong, and where.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>, String> {
    let mut parser = Parser { lexer: Lexer::new(text), next: (Place(1, 1), Token::End) };
    parser.advance()?;
    parser.file()
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    next: (Place, Token),
}

impl Parser<'_> {
    fn file(&mut self) -> Result<Vec<Rule>, String> {
        let mut classes = HashMap::from([("User".to_owned(), "User".to_owned())]);
        let mut rules = Vec::new();
        loop {
            let place = self.next.0;
            let Token::Word(word) = &self.next.1 else { return self.wrong("a rule") };
            match word.as_str() {
                "version" => {
                    self.advance()?;
                    self.word()?;
                }
                "import" | "from" => self.imports(&mut classes)?,
                "allow" | "deny" => rules.push(self.rule(place, &classes)?),
                "otherwise" => {
                    self.advance()?;
                    self.keyword("deny")?;
                    self.symbol(';')?;
                    return match self.next.1 {
                        Token::End => Ok(rules),
                        _ => self.wrong("the end"),
                    };
                }
                _ => return self.wrong("a rule"),
            }
            self.symbol(';')?;
        }
    }

    /// `import CLASS [as NAME] from PACKAGE`, or `from PACKAGE import CLASS [as NAME], ...`.
    fn imports(&mut self, classes: &mut HashMap<String, String>) -> Result<(), String> {
        let class_first = self.word()? == "import";
        if !class_first {
            self.package()?;
            self.keyword("import")?;
        }
        loop {
            let class = self.word()?;
            let name = if self.takes_word("as")? { self.word()? } else { class.clone() };
            classes.insert(name, class);
            if !self.takes(&Token::Symbol(','))? {
                break;
            }
        }
        if class_first {
            self.keyword("from")?;
            self.package()?;
        }
        Ok(())
    }

    fn package(&mut self) -> Result<(), String> {
        self.word()?;
        while self.takes(&Token::Symbol('.'))? {
            self.word()?;
        }
        Ok(())
    }

    fn rule(&mut self, place: Place, classes: &HashMap<String, String>) -> Result<Rule, String> {
        let allows = self.word()? == "allow";
        let principal_type = self.class(classes)?;
        let principals = self.names()?;
        self.keyword("to")?;
        let operations = self.operations()?;
        let resource = self.class(classes)?;
        let names = self.names()?;
        Ok(Rule { place, allows, principal_type, principals, operations, resource, names })
    }

    fn class(&mut self, classes: &HashMap<String, String>) -> Result<String, String> {
        let place = self.next.0;
        let name = self.word()?;
        let class = classes.get(&name).cloned();
        class.ok_or_else(|| format!("{place}: {name} is not imported"))
    }

    fn operations(&mut self) -> Result<Option<Vec<String>>, String> {
        if self.takes(&Token::Symbol('*'))? {
            return Ok(None);
        }
        if !self.takes(&Token::Symbol('{'))? {
            return Ok(Some(vec![self.word()?]));
        }
        let mut operations = vec![self.word()?];
        while self.takes(&Token::Symbol(','))? {
            operations.push(self.word()?);
        }
        self.symbol('}')?;
        Ok(Some(operations))
    }

    /// `with name`, and a predicate.
    fn names(&mut self) -> Result<Names, String> {
        self.keyword("with")?;
        self.keyword("name")?;
        if self.takes(&Token::Symbol('*'))? {
            return Ok(Names::Any);
        }
        if self.takes(&Token::Symbol('='))? {
            return Ok(Names::In(vec![unquoted(&self.text()?)]));
        }
        if self.takes_word("in")? {
            self.symbol('{')?;
            let mut names = vec![unquoted(&self.text()?)];
            while self.takes(&Token::Symbol(','))? {
                names.push(unquoted(&self.text()?));
            }
            self.symbol('}')?;
            return Ok(Names::In(names));
        }
        if self.takes_word("like")? {
            let place = self.next.0;
            let text = self.text()?;
            return like(&text).ok_or_else(|| format!("{place}: `*` stands only at the end"));
        }
        self.keyword("matching")?;
        match self.next.1 {
            Token::Regex | Token::Text(_) => self.advance().map(|_| Names::Matching),
            _ => self.wrong("a regular expression"),
        }
    }

    /// The next token, past which this goes.
    fn advance(&mut self) -> Result<Token, String> {
        let next = self.lexer.token()?;
        Ok(std::mem::replace(&mut self.next, next).1)
    }

    fn takes(&mut self, token: &Token) -> Result<bool, String> {
        let is_next = self.next.1 == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn takes_word(&mut self, word: &str) -> Result<bool, String> {
        self.takes(&Token::Word(word.to_owned()))
    }

    fn keyword(&mut self, word: &str) -> Result<(), String> {
        if self.takes_word(word)? { Ok(()) } else { self.wrong(&format!("`{word}`")) }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), String> {
        if self.takes(&Token::Symbol(symbol))? {
            Ok(())
        } else {
            self.wrong(&format!("`{symbol}`"))
        }
    }

    fn word(&mut self) -> Result<String, String> {
        match &self.next.1 {
            Token::Word(word) => {
                let word = word.clone();
                self.advance()?;
                Ok(word)
            }
            _ => self.wrong("a word"),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        match &self.next.1 {
            Token::Text(text) => {
                let text = text.clone();
                self.advance()?;
                Ok(text)
            }
            _ => self.wrong("a text"),
        }
    }

    fn wrong<T>(&self, wanted: &str) -> Result<T, String> {
        let (place, token) = &self.next;
        Err(format!("{place}: expected {wanted}, not {token}"))
    }
}

/// A text without the backslashes before what they escape.
fn unquoted(text: &str) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        plain.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    plain
}

/// A pattern that may end with a `*`; `None` if one stands elsewhere.
fn like(text: &str) -> Option<Names> {
    let mut letters = text.chars();
    let mut plain = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.push(letters.next().unwrap_or(letter)),
            '*' => return letters.next().is_none().then_some(Names::Like(plain)),
            letter => plain.push(letter),
        }
    }
    Some(Names::In(vec![plain]))
}

struct Lexer<'t> {
    rest: std::iter::Peekable<std::str::Chars<'t>>,
    place: Place,
}

impl<'t> Lexer<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text.chars().peekable(), place: Place(1, 1) }
    }

    fn letter(&mut self) -> Option<char> {
        let letter = self.rest.next()?;
        let Place(line, column) = &mut self.place;
        (*line, *column) = if letter == '\n' { (*line + 1, 1) } else { (*line, *column + 1) };
        Some(letter)
    }

    fn token(&mut self) -> Result<(Place, Token), String> {
        loop {
            let place = self.place;
            let Some(letter) = self.letter() else { return Ok((place, Token::End)) };
            let token = match letter {
                letter if letter.is_whitespace() => continue,
                '/' if self.rest.peek() == Some(&'/') => {
                    while self.letter().is_some_and(|letter| letter != '\n') {}
                    continue;
                }
                '/' if self.rest.peek() == Some(&'*') => {
                    self.comment(place)?;
                    continue;
                }
                '/' => self.delimited(place, '/').map(|_| Token::Regex)?,
                '"' => Token::Text(self.delimited(place, '"')?),
                ';' | '.' | ',' | '*' | '=' | '{' | '}' => Token::Symbol(letter),
                letter if letter.is_ascii_alphanumeric() => {
                    let mut word = letter.to_string();
                    let belongs = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
                    while self.rest.peek().is_some_and(belongs) {
                        word.extend(self.letter());
                    }
                    Token::Word(word)
                }
                other => return Err(format!("{place}: {other:?} has no meaning")),
            };
            return Ok((place, token));
        }
    }

    fn comment(&mut self, place: Place) -> Result<(), String> {
        let mut before = ' ';
        self.letter();
        while let Some(letter) = self.letter() {
            if (before, letter) == ('*', '/') {
                return Ok(());
            }
            before = letter;
        }
        Err(format!("{place}: a comment without an end"))
    }

    /// What stands up to a delimiter that no backslash escapes.
    fn delimited(&mut self, place: Place, end: char) -> Result<String, String> {
        let mut text = String::new();
        while let Some(letter) = self.letter() {
            if letter == end {
                return Ok(text);
            }
            text.push(letter);
            if letter == '\\' {
                text.extend(self.letter());
            }
        }
        Err(format!("{place}: a text without an end"))
    }
}
