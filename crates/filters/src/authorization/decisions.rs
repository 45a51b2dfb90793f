//! What rules say about a subject and a thing, found without looking at the rules about others:
//! however many there are, a decision takes a look for the name and one for each length that the
//! beginning of a name has in some rule.

use std::collections::{BTreeSet, HashMap};

use super::rules::{Operation, Pattern, ResourceType, Rule, Rules};

/// The rules of a filter. What no rule allows is denied.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    /// By kind of thing, principal, and name.
    by_type: HashMap<ResourceType, Patterns<Patterns<Vec<Told>>>>,
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject<'a> {
    pub(super) virtual_cluster: &'a str,
    /// As `User:name`.
    pub(super) principal: &'a str,
}

/// Effect of a rule, apart from its principal and resource.
#[derive(Debug)]
struct Told {
    virtual_cluster: Option<String>,
    allows: bool,
    operations: Option<Vec<Operation>>,
}

impl Decisions {
    pub(super) fn new(rules: Rules) -> Self {
        let mut decisions = Self::default();
        for rule in rules.0 {
            let types = match rule.resource_type {
                Some(only) => vec![only],
                None => ResourceType::ALL.to_vec(),
            };
            for resource_type in types {
                // The cluster's own name is Kafka's; no pattern for topics means it.
                if resource_type != ResourceType::Cluster || rule.names.is_everything() {
                    decisions.add(resource_type, &rule);
                }
            }
        }
        decisions
    }

    fn add(&mut self, resource_type: ResourceType, rule: &Rule) {
        let of_type = self.by_type.entry(resource_type).or_default();
        of_type.at(&rule.principals).at(&rule.names).push(Told {
            virtual_cluster: rule.virtual_cluster.clone(),
            allows: rule.allows,
            operations: rule.operations.clone(),
        });
    }

    /// Whether the subject may do this to the resource of this name.
    pub(super) fn allow(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        // Rules about the cluster stand where all names begin.
        let name = if resource_type == ResourceType::Cluster { "" } else { name };
        let mut is_allowed = false;
        for names in self.about(subject, resource_type) {
            let told = names.holding(Place::Name(name)).flatten();
            for told in told.filter(|told| told.covers(subject, operation)) {
                if !told.allows {
                    return false;
                }
                is_allowed = true;
            }
        }
        is_allowed
    }

    /// Whether there can be a resource of the type to which the subject may do this: something is
    /// allowed that is not denied altogether (KIP-679).
    pub(super) fn allow_somewhere(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let covering = |told: &&Told| told.covers(subject, operation);
        let is_denied = |at: Place<'_>| {
            self.about(subject, resource_type)
                .any(|names| names.holding(at).flatten().filter(covering).any(|told| !told.allows))
        };
        self.about(subject, resource_type).flat_map(Patterns::iter).any(|(at, told)| {
            told.iter().filter(covering).any(|told| told.allows) && !is_denied(at)
        })
    }

    /// Whether the subject may do this to every resource of the type.
    pub(super) fn allow_everywhere(
        &self,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let mut is_allowed = false;
        for (at, told) in self.about(subject, resource_type).flat_map(Patterns::iter) {
            for told in told.iter().filter(|told| told.covers(subject, operation)) {
                if !told.allows {
                    return false;
                }
                is_allowed |= at == Place::Beginning("");
            }
        }
        is_allowed
    }

    fn about(
        &self,
        subject: Subject<'_>,
        resource_type: ResourceType,
    ) -> impl Iterator<Item = &Patterns<Vec<Told>>> {
        let of_type = self.by_type.get(&resource_type).into_iter();
        of_type.flat_map(move |principals| principals.holding(Place::Name(subject.principal)))
    }
}

impl Told {
    /// Whether the rule decides about an operation. Those that allow cover what theirs imply.
    fn covers(&self, subject: Subject<'_>, operation: Operation) -> bool {
        let cluster = self.virtual_cluster.as_deref();
        if cluster.is_some_and(|cluster| cluster != subject.virtual_cluster) {
            return false;
        }
        let Some(operations) = &self.operations else { return true };
        operations.contains(&operation)
            || (self.allows && operations.iter().any(|own| own.implies(operation)))
    }
}

/// What belongs to names and to beginnings of names.
#[derive(Debug)]
struct Patterns<T> {
    names: HashMap<String, T>,
    beginnings: HashMap<String, T>,
    /// Bytes that any of the beginnings has.
    beginning_lengths: BTreeSet<usize>,
}

/// Where something belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<'p> {
    Name(&'p str),
    Beginning(&'p str),
}

impl<T> Default for Patterns<T> {
    fn default() -> Self {
        let (names, beginnings) = (HashMap::new(), HashMap::new());
        Self { names, beginnings, beginning_lengths: BTreeSet::new() }
    }
}

impl<T: Default> Patterns<T> {
    fn at(&mut self, pattern: &Pattern) -> &mut T {
        match pattern {
            Pattern::Literal(name) => self.names.entry(name.clone()).or_default(),
            Pattern::Prefixed(beginning) => {
                self.beginning_lengths.insert(beginning.len());
                self.beginnings.entry(beginning.clone()).or_default()
            }
        }
    }
}

impl<T> Patterns<T> {
    /// What belongs to every name that `place` stands for.
    fn holding(&self, place: Place<'_>) -> impl Iterator<Item = &T> {
        let (own, text) = match place {
            Place::Name(name) => (self.names.get(name), name),
            Place::Beginning(beginning) => (None, beginning),
        };
        let lengths = self.beginning_lengths.range(..=text.len());
        let beginnings = lengths.filter_map(move |length| text.get(..*length));
        own.into_iter().chain(beginnings.filter_map(|text| self.beginnings.get(text)))
    }

    fn iter(&self) -> impl Iterator<Item = (Place<'_>, &T)> {
        let names = self.names.iter().map(|(name, it)| (Place::Name(name), it));
        names.chain(self.beginnings.iter().map(|(text, it)| (Place::Beginning(text), it)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALICE: Subject<'_> = Subject { virtual_cluster: "eu", principal: "User:alice" };

    fn rules(text: &str) -> Decisions {
        Decisions::new(Rules::parse(text).unwrap())
    }

    fn may(text: &str, operation: Operation, name: &str) -> bool {
        rules(text).allow(ALICE, operation, ResourceType::Topic, name)
    }

    #[test]
    fn nothing_is_allowed_that_no_rule_allows() {
        assert!(!may("", Operation::Read, "orders"));
        let orders = "allow User:alice Read topic orders # a comment";
        assert!(may(orders, Operation::Read, "orders"));
        assert!(
            !may(orders, Operation::Write, "orders") && !may(orders, Operation::Read, "orders2")
        );
        assert!(!may("allow User:bob Read topic orders", Operation::Read, "orders"));
        assert!(!may("allow User:alice Read group orders", Operation::Read, "orders"));
    }

    #[test]
    fn patterns_are_names_or_beginnings() {
        let text = "allow User:al* Read topic eu-*\nallow * Read any all";
        assert!(may(text, Operation::Read, "eu-1") && may(text, Operation::Read, "all"));
        assert!(!may(text, Operation::Read, "us-1"));
        assert!(may("allow User:* All any *", Operation::Alter, "x"));
    }

    #[test]
    fn operations_imply_others_where_they_are_allowed() {
        for operation in ["Read", "Write", "Delete", "Alter"] {
            let text = format!("allow User:alice {operation} topic t");
            assert!(may(&text, Operation::Describe, "t"));
            assert!(!may(&text, Operation::DescribeConfigs, "t"));
            let denied = format!("allow * All any *\ndeny User:alice {operation} topic t");
            assert!(may(&denied, Operation::Describe, "t"), "{operation}");
        }
        let text = "allow User:alice AlterConfigs topic t";
        assert!(may(text, Operation::DescribeConfigs, "t") && !may(text, Operation::Describe, "t"));
    }

    #[test]
    fn denying_wins_in_any_order() {
        for text in
            ["deny * Read topic x*\nallow * All any *", "allow * All any *\ndeny * All any x*"]
        {
            assert!(!may(text, Operation::Read, "xy") && may(text, Operation::Read, "y"));
        }
    }

    /// `allow User:alice All any kafka-*` gave away the cluster, which Kafka calls kafka-cluster.
    #[test]
    fn beginnings_of_names_stand_for_no_cluster() {
        let alters = |text: &str| {
            rules(text).allow(ALICE, Operation::Alter, ResourceType::Cluster, "kafka-cluster")
        };
        assert!(!alters("allow User:alice All any k*") && !alters("allow * All any kafka-cluster"));
        assert!(alters("allow User:alice All any *") && alters("allow User:alice All cluster"));
    }

    #[test]
    fn rules_may_be_for_one_virtual_cluster() {
        assert!(may("in eu allow * Read topic t", Operation::Read, "t"));
        assert!(!may("in us allow * Read topic t", Operation::Read, "t"));
    }

    #[test]
    fn something_is_allowed_unless_all_of_it_is_denied() {
        let somewhere =
            |text: &str| rules(text).allow_somewhere(ALICE, Operation::Write, ResourceType::Topic);
        assert!(somewhere("allow * Write topic a*") && !somewhere("allow * Read topic a*"));
        assert!(somewhere("allow * Write topic a*\ndeny * Write topic ab*"));
        assert!(!somewhere("allow * Write topic ab*\ndeny * All any a*"));
        let everywhere = |text: &str| {
            rules(text).allow_everywhere(ALICE, Operation::Describe, ResourceType::Topic)
        };
        assert!(everywhere("allow * Read topic *") && !everywhere("allow * Read topic a*"));
        assert!(!everywhere("allow * Read topic *\ndeny * Describe topic x"));
    }

    /// What the words of a rule say, of one rule after the other.
    fn is_told(
        rules: &Rules,
        subject: Subject<'_>,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        let about = rules.0.iter().filter(|rule| {
            let clusters = rule.virtual_cluster.as_deref();
            let is_named = match resource_type {
                ResourceType::Cluster => rule.names.is_everything(),
                _ => rule.names.matches(name),
            };
            let implied = |own: &Operation| rule.allows && own.implies(operation);
            let covers = |own: &Vec<Operation>| own.contains(&operation) || own.iter().any(implied);
            is_named
                && clusters.is_none_or(|name| name == subject.virtual_cluster)
                && rule.principals.matches(subject.principal)
                && rule.resource_type.is_none_or(|of| of == resource_type)
                && rule.operations.as_ref().is_none_or(covers)
        });
        let (allowing, denying): (Vec<_>, Vec<_>) = about.partition(|rule| rule.allows);
        !allowing.is_empty() && denying.is_empty()
    }

    proptest! {
        #[test]
        fn rules_are_found_as_if_all_were_read(
            lines in prop::collection::vec(
                "(in (eu|us) )?(allow|deny) (\\*|User:(al|alice|bob)\\*?) \
                 (All|Read|Write|Alter,Read) (any|topic|group) (\\*|[aé]{1,3}\\*?)",
                0..12,
            ),
            name in "[aé]{0,4}",
            principal in "User:(al|alice|alan|bob)",
        ) {
            let rules = Rules::parse(&lines.join("\n")).unwrap();
            let decisions = Decisions::new(rules.clone());
            let subject = Subject { virtual_cluster: "eu", principal: &principal };
            for resource_type in ResourceType::ALL {
                for operation in [Operation::Read, Operation::Describe, Operation::Alter] {
                    let told = is_told(&rules, subject, operation, resource_type, &name);
                    let found = decisions.allow(subject, operation, resource_type, &name);
                    prop_assert_eq!(found, told, "{:?} {:?}", operation, resource_type);
                }
            }
        }
    }
}
