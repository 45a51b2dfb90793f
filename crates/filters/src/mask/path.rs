//! Paths to fields of JSON values: `$.customer.iban`, `items[*].price`, `['a.b'].*`.

use crate::error::Error;
use crate::json::Text;

/// Paths of a rule, followed together.
#[derive(Clone, Debug)]
pub(super) struct Paths(Vec<Vec<Step>>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    AnyMember,
    Element(usize),
    AnyElement,
}

/// Position of the paths in a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    depth: usize,
    /// The paths that lead here so far, a bit for each.
    active: u64,
    /// Something around this place is what a path leads to.
    pub(super) is_within: bool,
}

impl Paths {
    pub(super) fn parse(paths: &[String]) -> Result<Self, Error> {
        if paths.is_empty() || paths.len() > PATHS_MAX {
            let reason = format!("a rule has from 1 to {PATHS_MAX} fields");
            return Err(Error::setting(super::NAME, reason));
        }
        let parse = |path: &String| {
            steps(path)
                .map_err(|reason| Error::setting(super::NAME, format!("field `{path}`: {reason}")))
        };
        paths.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// The whole value.
    pub(super) fn root(&self) -> Place {
        let unused = u64::BITS.saturating_sub(u32::try_from(self.0.len()).unwrap_or(u64::BITS));
        let active = u64::MAX.checked_shr(unused).unwrap_or_default();
        Place { depth: 0, active, is_within: false }
    }

    pub(super) fn member(&self, parent: Place, key: &Text<'_>) -> Place {
        if parent.active == 0 {
            return self.down(parent, |_| false);
        }
        let key = key.unescaped();
        self.down(parent, |step| match step {
            Step::Member(name) => **name == *key,
            Step::AnyMember => true,
            Step::Element(_) | Step::AnyElement => false,
        })
    }

    pub(super) fn element(&self, parent: Place, index: usize) -> Place {
        self.down(parent, |step| match step {
            Step::Element(of) => *of == index,
            Step::AnyElement => true,
            Step::Member(_) | Step::AnyMember => false,
        })
    }

    /// Whether a path ends here.
    pub(super) fn end_at(&self, place: Place) -> bool {
        self.active(place).any(|(_, path)| path.len() == place.depth)
    }

    fn down(&self, parent: Place, leads: impl Fn(&Step) -> bool) -> Place {
        let mut active = 0;
        for (at, path) in self.active(parent) {
            if path.get(parent.depth).is_some_and(&leads) {
                active |= 1 << at;
            }
        }
        let is_within = parent.is_within || self.end_at(parent);
        Place { depth: parent.depth + 1, active, is_within }
    }

    fn active(&self, place: Place) -> impl Iterator<Item = (usize, &Vec<Step>)> {
        let is_active = move |(at, _): &(usize, _)| place.active & 1 << *at != 0;
        self.0.iter().enumerate().filter(is_active)
    }
}

fn steps(path: &str) -> Result<Vec<Step>, &'static str> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(bracket) = rest.strip_prefix('[') {
            let (step, after) = in_brackets(bracket)?;
            steps.push(step);
            rest = after;
            continue;
        }
        rest = match rest.strip_prefix('.') {
            Some(after) => after,
            None if steps.is_empty() && !path.starts_with('$') => rest,
            None => return Err("a dot or a bracket is missing"),
        };
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        steps.push(match name {
            "" => return Err("a name is missing"),
            "*" => Step::AnyMember,
            name if name.contains([']', '*', '\'']) => return Err("such a name needs `['…']`"),
            name => Step::Member(name.to_owned()),
        });
        rest = after;
    }
    if steps.is_empty() { Err("it leads to the whole value") } else { Ok(steps) }
}

/// Reads a step behind its bracket, and gives what follows it.
fn in_brackets(bracket: &str) -> Result<(Step, &str), &'static str> {
    if let Some(name) = bracket.strip_prefix('\'') {
        let (name, after) = name.split_once("']").ok_or("`']` is missing")?;
        return Ok((Step::Member(name.to_owned()), after));
    }
    let (index, after) = bracket.split_once(']').ok_or("`]` is missing")?;
    match index {
        "*" => Ok((Step::AnyElement, after)),
        index if index.bytes().all(|digit| digit.is_ascii_digit()) => {
            let index = index.parse().map_err(|_| "an index is too large or missing")?;
            Ok((Step::Element(index), after))
        }
        _ => Err("an index is a number or `*`"),
    }
}

/// Paths of a rule: as many as there are bits for.
const PATHS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_step_by_step() {
        use Step::{AnyElement, AnyMember, Element, Member};
        let member = |name: &str| Member(name.to_owned());
        for (path, expected) in [
            ("$.customer.iban", vec![member("customer"), member("iban")]),
            ("items[*].price", vec![member("items"), AnyElement, member("price")]),
            ("['a.b'].*", vec![member("a.b"), AnyMember]),
            ("$[3]['x']", vec![Element(3), member("x")]),
            ("a", vec![member("a")]),
        ] {
            assert_eq!(steps(path), Ok(expected), "{path}");
        }
        for wrong in ["", "$", "$a", "a..b", "a.", "[", "[x]", "[1", "['a]", "[]", "a]", "a[1]b"] {
            assert!(steps(wrong).is_err(), "{wrong}");
        }
        assert!(Paths::parse(&[]).is_err());
        assert!(Paths::parse(&vec!["a".to_owned(); PATHS_MAX + 1]).is_err());
    }

    #[test]
    fn every_path_of_a_full_rule_is_followed() {
        let paths: Vec<String> = (0..PATHS_MAX).map(|at| format!("f{at}")).collect();
        let paths = Paths::parse(&paths).unwrap();
        for at in 0..PATHS_MAX {
            let quoted = format!("\"f{at}\"");
            assert!(paths.end_at(paths.member(paths.root(), &Text::of_value(&quoted))));
        }
        assert!(!paths.end_at(paths.member(paths.root(), &Text::of_value("\"f64\""))));
    }
}
