use crate::error::Error;

/// Which topics a rule is for. A pattern is a name, or the beginning of names before a `*`.
#[derive(Clone, Debug)]
pub(crate) struct TopicPatterns(Vec<Pattern>);

#[derive(Clone, Debug)]
enum Pattern {
    Literal(Box<str>),
    Prefix(Box<str>),
}

impl TopicPatterns {
    /// Reads the patterns of a rule; there must be one at least.
    pub(crate) fn parse(filter: &'static str, patterns: &[String]) -> Result<Self, Error> {
        if patterns.is_empty() {
            return Err(Error::setting(filter, "a rule names no topic; `*` stands for all"));
        }
        let parse = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) if !prefix.contains('*') => Ok(Pattern::Prefix(prefix.into())),
            None if !pattern.is_empty() && !pattern.contains('*') => {
                Ok(Pattern::Literal(pattern.as_str().into()))
            }
            _ => {
                let reason = format!("topic `{pattern}`: a `*` may stand at the end only");
                Err(Error::setting(filter, reason))
            }
        };
        patterns.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn matches(&self, topic: &str) -> bool {
        self.0.iter().any(|pattern| match pattern {
            Pattern::Literal(name) => **name == *topic,
            Pattern::Prefix(prefix) => topic.starts_with(&**prefix),
        })
    }

    /// Whether the name of a topic need not be known.
    pub(crate) fn match_all(&self) -> bool {
        let is_all = |it: &Pattern| matches!(it, Pattern::Prefix(prefix) if prefix.is_empty());
        self.0.iter().any(is_all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(of: &[&str]) -> Result<TopicPatterns, Error> {
        let of: Vec<String> = of.iter().map(|&pattern| pattern.to_owned()).collect();
        TopicPatterns::parse("test", &of)
    }

    #[test]
    fn a_pattern_is_a_name_or_a_beginning() {
        let two = patterns(&["orders", "eu-*"]).unwrap();
        assert!(two.matches("orders") && two.matches("eu-") && two.matches("eu-north"));
        assert!(!two.matches("orders-2") && !two.matches("e") && !two.matches(""));
        assert!(!two.match_all());
        let all = patterns(&["*"]).unwrap();
        assert!(all.match_all() && all.matches("") && all.matches("anything"));
    }

    #[test]
    fn other_patterns_are_refused() {
        for wrong in [&["a*b"][..], &["*a"], &["a**"], &[""], &[]] {
            assert!(patterns(wrong).is_err(), "{wrong:?}");
        }
    }
}
