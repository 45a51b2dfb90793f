//! The beginnings of a tenant's names, and the template that makes them.

use moldau_proxy::Principal;

use crate::error::Error;

use super::NAME;

/// Placeholder for the name of the virtual cluster.
const VIRTUAL_CLUSTER: &str = "$(virtualClusterName)";

/// Placeholder for the name of the principal.
const PRINCIPAL: &str = "$(principal)";

/// What the parts of a template make of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    VirtualCluster,
    Principal,
}

/// A piece of what a template makes for a virtual cluster.
enum Atom {
    Byte(u8),
    /// Any number of the bytes that the name of a principal has once it is escaped.
    Escaped,
}

impl Template {
    /// Reads a template. Behind the principal must stand a `-` or a `.`, which no name of a
    /// principal has once it is [escaped](escape): so no tenant's prefix begins another's.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let at = rest.find("$(").unwrap_or(rest.len());
            let (literal, variable) = rest.split_at(at);
            if !literal.is_empty() {
                parts.push(Part::Literal(literal.to_owned()));
            }
            let variables = [(VIRTUAL_CLUSTER, Part::VirtualCluster), (PRINCIPAL, Part::Principal)];
            let known = variables.into_iter().find(|(name, _)| variable.starts_with(name));
            match known {
                Some((name, part)) => {
                    parts.push(part);
                    rest = variable.get(name.len()..).unwrap_or_default();
                }
                None if variable.is_empty() => rest = variable,
                None => return Err(wrong(text, "it has an unknown variable")),
            }
        }
        let template = Self(parts);
        template.check(text)?;
        Ok(template)
    }

    fn check(&self, text: &str) -> Result<(), Error> {
        if !self.0.iter().any(|part| !matches!(part, Part::Literal(_))) {
            return Err(wrong(text, "without a variable all tenants would be one"));
        }
        for (index, part) in self.0.iter().enumerate() {
            let is_fine = match part {
                Part::Literal(literal) => literal.bytes().all(is_name_byte),
                Part::VirtualCluster => true,
                Part::Principal => {
                    let behind = self.0.get(index + 1);
                    matches!(behind, Some(Part::Literal(it)) if it.starts_with(['-', '.']))
                }
            };
            if !is_fine {
                let rule = "names have letters, digits, `-`, `_` and `.`, and behind the \
                            principal stands `-` or `.`";
                return Err(wrong(text, rule));
            }
        }
        Ok(())
    }

    /// Whether the prefix depends on the virtual cluster.
    pub(super) fn names_cluster(&self) -> bool {
        self.0.contains(&Part::VirtualCluster)
    }

    /// Whether any prefix that the template makes for a virtual cluster begins one that another
    /// template makes for another, or the other way round.
    pub(super) fn meets(&self, cluster: &str, other: &Self, others_cluster: &str) -> bool {
        let (own, others) = (self.atoms(cluster), other.atoms(others_cluster));
        // Whether they meet from each place of the other on: from the ends, where one is read.
        let mut below = vec![true; others.len() + 1];
        for own in own.iter().rev() {
            let mut right = true;
            let places = others.iter().zip(below.windows(2)).rev().map(|(other, pair)| {
                let &[down, both] = pair else { return true };
                right = match (own, other) {
                    (Atom::Byte(a), Atom::Byte(b)) => a == b && both,
                    (Atom::Escaped, Atom::Byte(b)) => down || (is_escaped_byte(*b) && right),
                    (Atom::Byte(a), Atom::Escaped) => right || (is_escaped_byte(*a) && down),
                    (Atom::Escaped, Atom::Escaped) => right || down,
                };
                right
            });
            let mut row: Vec<bool> = places.collect();
            row.reverse();
            row.push(true);
            below = row;
        }
        below.first() == Some(&true)
    }

    fn atoms(&self, cluster: &str) -> Vec<Atom> {
        // Kafka has no two topics that differ in this alone.
        let byte = |byte| Atom::Byte(if byte == b'.' { b'_' } else { byte });
        let mut atoms = Vec::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => atoms.extend(literal.bytes().map(byte)),
                Part::VirtualCluster => atoms.extend(cluster.bytes().map(byte)),
                Part::Principal => atoms.push(Atom::Escaped),
            }
        }
        atoms
    }

    /// The prefix of a tenant; `None` if the client is not known, or if the name of the virtual
    /// cluster could not begin the name of a topic.
    pub(super) fn prefix(&self, virtual_cluster: &str, principal: &Principal) -> Option<String> {
        let mut prefix = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(literal) => prefix.push_str(literal),
                Part::VirtualCluster if !virtual_cluster.bytes().all(is_name_byte) => return None,
                Part::VirtualCluster => prefix.push_str(virtual_cluster),
                Part::Principal if *principal == Principal::anonymous() => return None,
                Part::Principal => escape(&principal.to_string(), &mut prefix),
            }
        }
        Some(prefix)
    }
}

/// Appends an escaped name: letters and digits stay, each other byte becomes `_` and two hex
/// digits. The type `User` that nearly all principals have is left out.
fn escape(principal: &str, out: &mut String) {
    let name = principal.strip_prefix("User:").unwrap_or(principal);
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("_{byte:02x}"));
        }
    }
}

/// Whether the escaped name of a principal may have the byte.
fn is_escaped_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether the name of a topic may have the byte.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

fn wrong(template: &str, reason: &str) -> Error {
    Error::setting(NAME, format!("prefix `{template}`: {reason}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prefix(template: &str, virtual_cluster: &str, user: &str) -> Option<String> {
        let principal = Principal::user(user);
        Template::parse(template).unwrap().prefix(virtual_cluster, &principal)
    }

    #[test]
    fn a_prefix_is_made_of_cluster_and_principal() {
        assert_eq!(prefix("$(virtualClusterName)-", "eu-1", "x").unwrap(), "eu-1-");
        assert_eq!(prefix("t.$(principal).", "eu", "CN=a,O=b").unwrap(), "t.CN_3da_2cO_3db.");
        let both = prefix("$(virtualClusterName)-$(principal)-", "eu", "bob").unwrap();
        assert_eq!(both, "eu-bob-");
    }

    #[test]
    fn templates_that_mix_tenants_are_refused() {
        let principals = ["$(principal)", "$(principal)x-", "a b$(principal)-"];
        for wrong in principals.into_iter().chain(["", "shared-", "$(user)-"]) {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_is_not_known_has_no_prefix() {
        let template = Template::parse("$(principal)-").unwrap();
        assert_eq!(template.prefix("eu", &Principal::anonymous()), None);
        assert_eq!(prefix("$(virtualClusterName)-", "two words", "x"), None);
    }

    /// With the clusters `red` and `red-blue` all topics of the second were the first's too.
    #[test]
    fn prefixes_meet_if_one_may_begin_another() {
        let meets = |one: &str, cluster: &str, other: &str, others_cluster: &str| {
            let [one, other] = [one, other].map(|text| Template::parse(text).unwrap());
            let meets = one.meets(cluster, &other, others_cluster);
            assert_eq!(meets, other.meets(others_cluster, &one, cluster));
            meets
        };
        let (cluster, principal) = ("$(virtualClusterName)-", "$(principal)-");
        let both = "$(virtualClusterName)-$(principal)-";
        assert!(!meets(cluster, "red", cluster, "blue"));
        assert!(meets(cluster, "red", cluster, "red-blue") && meets(cluster, "a", cluster, "a"));
        assert!(!meets(cluster, "red", cluster, "red2"));
        assert!(meets("$(virtualClusterName)", "red", "$(virtualClusterName)", "red2"));
        assert!(meets(cluster, "t.1", cluster, "t_1"));
        assert!(meets(cluster, "red", principal, "x"), "a principal may be called red");
        assert!(!meets("t.$(virtualClusterName)-", "red", "u.$(principal)-", "x"));
        assert!(!meets(both, "eu", both, "us"));
        assert!(meets(both, "eu", both, "eu-b"), "the principal b of eu");
    }

    proptest! {
        #[test]
        fn templates_whose_prefixes_begin_one_another_meet(
            clusters in proptest::array::uniform2("[ab._-]{1,3}"),
            users in proptest::array::uniform2("[ab]{0,2}"),
            which in 0_usize..4,
        ) {
            let templates =
                ["$(virtualClusterName)-", "$(principal)-", "$(virtualClusterName)$(principal)-",
                 "a$(principal).b"];
            let one = Template::parse(templates[which]).unwrap();
            for text in templates {
                let other = Template::parse(text).unwrap();
                let [a, b] = [(&one, 0), (&other, 1)].map(|(template, at)| {
                    template.prefix(&clusters[at], &Principal::user(&users[at])).unwrap()
                });
                if a.starts_with(&b) || b.starts_with(&a) {
                    prop_assert!(one.meets(&clusters[0], &other, &clusters[1]), "{} {}", a, b);
                }
            }
        }

        #[test]
        fn no_principal_has_a_prefix_that_begins_another(one in ".{1,8}", other in ".{1,8}") {
            let [a, b] = [&one, &other].map(|user| prefix("$(principal)-", "", user).unwrap());
            prop_assert_eq!(a.starts_with(&b), one == other);
        }
    }
}
