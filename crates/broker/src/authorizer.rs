//! Who may do what: the decisions of Kafka's `StandardAuthorizer`, without a lock, a clock or a
//! connection.
//!
//! An ACL that denies wins over all that allow. Super users may do everything. Where no ACL is
//! about a resource, the operator decides whether everyone may use it.

mod acl;
mod decisions;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Bound;

pub(crate) use acl::{
    AccessControlEntry, Acl, AclFilter, CLUSTER_NAME, FilterFields, Operation, PatternType,
    Permission, ResourcePattern, ResourceType, Subject,
};

pub use self::decisions::Decisions;

use self::acl::{WILDCARD, WILDCARD_PRINCIPAL};
use crate::config::AuthorizationSettings;

/// A name that stands for any other in [`Authorizer::allows_somewhere`].
const ANY_NAME: &str = "hardcode";

/// What the operator decided about authorization.
#[derive(Debug)]
pub(crate) struct Authorizer {
    super_users: HashSet<String>,
    allow_everyone_if_no_acl_found: bool,
}

/// All ACLs, found by the resources that they are about.
#[derive(Debug, Default)]
pub(crate) struct Acls {
    by_pattern: BTreeMap<(ResourceType, PatternType), BTreeMap<String, Entries>>,
    count: usize,
}

/// The entries of a pattern, found by whom they are about.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    by_principal: BTreeMap<String, BTreeSet<AccessControlEntry>>,
}

/// What the ACLs say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Allowed,
    Denied,
    /// No ACL is about the resource, whoever asks.
    NoAcl,
}

impl Authorizer {
    pub(crate) fn new(settings: &AuthorizationSettings) -> Self {
        Self {
            super_users: settings.super_users.iter().map(ToString::to_string).collect(),
            allow_everyone_if_no_acl_found: settings.allow_everyone_if_no_acl_found,
        }
    }

    /// Whether the principal may do everything.
    pub(crate) fn is_super_user(&self, principal: &str) -> bool {
        self.super_users.contains(principal)
    }

    /// Whether the subject may do this to the resource of this name.
    pub(crate) fn allows(
        &self,
        acls: &Acls,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        self.is_super_user(&subject.principal)
            || match acls.decide(subject, operation, resource_type, name) {
                Verdict::Allowed => true,
                Verdict::Denied => false,
                Verdict::NoAcl => self.allow_everyone_if_no_acl_found,
            }
    }

    /// Whether there can be a resource of the type to which the subject may do this (KIP-679).
    ///
    /// As in Kafka an ACL counts only for the operation that it names: what implies another
    /// elsewhere does not here.
    pub(crate) fn allows_somewhere(
        &self,
        acls: &Acls,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        self.allows(acls, subject, operation, resource_type, ANY_NAME)
            || acls.allow_somewhere(subject, operation, resource_type)
    }
}

impl Acls {
    /// Adds an ACL; false if it is there.
    pub(crate) fn insert(&mut self, acl: Acl) -> bool {
        let Acl { pattern, entry } = acl;
        let names = self.by_pattern.entry((pattern.resource_type, pattern.pattern_type));
        let is_added = names.or_default().entry(pattern.name).or_default().insert(entry);
        self.count += usize::from(is_added);
        is_added
    }

    /// Removes an ACL; false if it is not there.
    pub(crate) fn remove(&mut self, acl: &Acl) -> bool {
        let Acl { pattern, entry } = acl;
        let key = (pattern.resource_type, pattern.pattern_type);
        let Some(names) = self.by_pattern.get_mut(&key) else { return false };
        let Some(entries) = names.get_mut(&pattern.name) else { return false };
        if !entries.remove(entry) {
            return false;
        }
        if entries.is_empty() {
            names.remove(&pattern.name);
        }
        self.count -= 1;
        true
    }

    /// Makes the changes of a record.
    pub(crate) fn apply(&mut self, created: Vec<Acl>, deleted: &[Acl]) {
        for acl in created {
            self.insert(acl);
        }
        for acl in deleted {
            self.remove(acl);
        }
    }

    /// Whether the ACL is there.
    pub(crate) fn contains(&self, acl: &Acl) -> bool {
        let key = (acl.pattern.resource_type, acl.pattern.pattern_type);
        let entries = self.by_pattern.get(&key).and_then(|names| names.get(&acl.pattern.name));
        entries.is_some_and(|entries| entries.contain(&acl.entry))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// All ACLs, those of a pattern after each other.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ResourcePattern, &Entries)> {
        self.by_pattern.iter().flat_map(|((resource_type, pattern_type), names)| {
            let (resource_type, pattern_type) = (*resource_type, *pattern_type);
            names.iter().map(move |(name, entries)| {
                (ResourcePattern { resource_type, pattern_type, name: name.clone() }, entries)
            })
        })
    }

    /// The ACLs that a filter takes, those of a pattern together.
    pub(crate) fn matching(
        &self,
        filter: &AclFilter,
    ) -> Vec<(ResourcePattern, Vec<AccessControlEntry>)> {
        let mut taken = Vec::new();
        for ((resource_type, pattern_type), names) in &self.by_pattern {
            let (resource_type, pattern_type) = (*resource_type, *pattern_type);
            let range = match filter.exact_name() {
                Some(name) => names.range::<str, _>((Bound::Included(name), Bound::Included(name))),
                None => names.range::<str, _>(..),
            };
            for (name, entries) in range {
                if filter.takes_pattern(resource_type, pattern_type, name) {
                    let entries = entries.iter().filter(|entry| filter.takes_entry(entry));
                    let entries: Vec<_> = entries.cloned().collect();
                    if !entries.is_empty() {
                        let name = name.clone();
                        taken
                            .push((ResourcePattern { resource_type, pattern_type, name }, entries));
                    }
                }
            }
        }
        taken
    }

    /// How many ACLs are looked at to find those that a filter takes, at most.
    pub(crate) fn compared(&self, filter: &AclFilter) -> usize {
        let entries = |name| {
            let of_name = self.by_pattern.values().filter_map(move |names| names.get(name));
            of_name.map(Entries::len).sum()
        };
        filter.exact_name().map_or(self.count, entries).max(1)
    }

    fn decide(
        &self,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> Verdict {
        let mut is_allowed = false;
        let mut is_about = false;
        for entries in self.covering(resource_type, name) {
            is_about = true;
            for entry in entries.of(subject).filter(|entry| entry.covers(operation)) {
                match entry.permission {
                    Permission::Deny => return Verdict::Denied,
                    Permission::Allow => is_allowed = true,
                }
            }
        }
        match (is_allowed, is_about) {
            (true, _) => Verdict::Allowed,
            (false, true) => Verdict::Denied,
            (false, false) => Verdict::NoAcl,
        }
    }

    /// The entries of each pattern that stands for the name.
    fn covering<'a>(
        &'a self,
        resource_type: ResourceType,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Entries> {
        let of = |pattern_type| self.by_pattern.get(&(resource_type, pattern_type));
        let literal = of(PatternType::Literal);
        let own = literal.and_then(|names| names.get(name));
        let everyones = literal.filter(|_| name != WILDCARD).and_then(|names| names.get(WILDCARD));
        let prefixed = of(PatternType::Prefixed).into_iter();
        let prefixes = prefixed.flat_map(move |names| Prefixes { names, rest: Some(name) });
        own.into_iter().chain(everyones).chain(prefixes)
    }

    fn allow_somewhere(
        &self,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let of = |pattern_type, permission| {
            let names = self.by_pattern.get(&(resource_type, pattern_type)).into_iter().flatten();
            names.filter_map(move |(name, entries)| {
                let is_named = |entry: &AccessControlEntry| {
                    entry.permission == permission
                        && (entry.operation == Operation::All || entry.operation == operation)
                };
                entries.of(subject).any(is_named).then_some(name.as_str())
            })
        };
        let denied: HashSet<&str> = of(PatternType::Literal, Permission::Deny).collect();
        if denied.contains(WILDCARD) {
            return false;
        }
        let denied_prefixes: BTreeMap<&str, ()> =
            of(PatternType::Prefixed, Permission::Deny).map(|name| (name, ())).collect();
        let is_free =
            |name: &str| Prefixes { names: &denied_prefixes, rest: Some(name) }.next().is_none();
        of(PatternType::Literal, Permission::Allow)
            .any(|name| name == WILDCARD || (!denied.contains(name) && is_free(name)))
            || of(PatternType::Prefixed, Permission::Allow).any(is_free)
    }
}

impl Entries {
    /// In their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AccessControlEntry> {
        self.by_principal.values().flatten()
    }

    /// Those that are about the subject.
    fn of(&self, subject: &Subject) -> impl Iterator<Item = &AccessControlEntry> {
        let own = Some(&*subject.principal).filter(|own| *own != WILDCARD_PRINCIPAL);
        let principals = own.into_iter().chain([WILDCARD_PRINCIPAL]);
        let entries = principals.filter_map(|principal| self.by_principal.get(principal));
        entries.flatten().filter(move |entry| entry.names(subject))
    }

    fn insert(&mut self, entry: AccessControlEntry) -> bool {
        match self.by_principal.get_mut(&entry.principal) {
            Some(entries) => entries.insert(entry),
            None => {
                let principal = entry.principal.clone();
                self.by_principal.insert(principal, BTreeSet::from([entry]));
                true
            }
        }
    }

    fn remove(&mut self, entry: &AccessControlEntry) -> bool {
        let Some(entries) = self.by_principal.get_mut(&entry.principal) else { return false };
        let is_removed = entries.remove(entry);
        if entries.is_empty() {
            self.by_principal.remove(&entry.principal);
        }
        is_removed
    }

    fn contain(&self, entry: &AccessControlEntry) -> bool {
        self.by_principal.get(&entry.principal).is_some_and(|entries| entries.contains(entry))
    }

    fn is_empty(&self) -> bool {
        self.by_principal.is_empty()
    }

    fn len(&self) -> usize {
        self.by_principal.values().map(BTreeSet::len).sum()
    }
}

/// What belongs to the names that are prefixes of a name, from the longest to the shortest.
///
/// In sorted order the longest prefix of a name is the greatest entry not after it, unless another
/// entry that shares only its beginning stands between them; then the search goes on from what
/// they share.
struct Prefixes<'a, K, V> {
    names: &'a BTreeMap<K, V>,
    /// Where prefixes are still to be looked for.
    rest: Option<&'a str>,
}

impl<'a, K, V> Iterator for Prefixes<'a, K, V>
where
    K: Ord + std::borrow::Borrow<str>,
{
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        while let Some(rest) = self.rest.take() {
            let range = (Bound::Unbounded, Bound::Included(rest));
            let (name, value) = self.names.range::<str, _>(range).next_back()?;
            let name: &str = name.borrow();
            if rest.starts_with(name) {
                self.rest = name.char_indices().next_back().and_then(|(at, _)| name.get(..at));
                return Some(value);
            }
            let pairs = rest.char_indices().zip(name.chars());
            let shared = pairs.take_while(|((_, own), other)| own == other).last();
            self.rest = shared.and_then(|((at, own), _)| rest.get(..at + own.len_utf8()));
        }
        None
    }
}
