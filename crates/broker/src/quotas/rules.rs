//! All quotas, and which of them is in force for whom.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use crate::quota_entity::{EntityName, QuotaChange, QuotaEntity, QuotaKey};

/// Quotas by entity.
#[derive(Default)]
pub(crate) struct QuotaRules {
    by_entity: BTreeMap<QuotaEntity, BTreeMap<QuotaKey, f64>>,
    /// Quotas of each key.
    counts: HashMap<i8, usize>,
}

/// Those who share a limit, with which they are measured together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sharers {
    pub(crate) key: i8,
    /// `None` where the quota is of the client id alone.
    pub(crate) user: Option<Box<str>>,
    /// `None` where the quota is of the user alone.
    pub(crate) client_id: Option<Box<str>>,
}

impl QuotaRules {
    /// Makes changes; a quota that is not there needs no removal.
    pub(crate) fn apply(&mut self, changes: Vec<QuotaChange>) {
        for QuotaChange { entity, key, value } in changes {
            let count = self.counts.entry(key.code()).or_default();
            match value {
                Some(value) => {
                    let before = self.by_entity.entry(entity).or_default().insert(key, value);
                    *count += usize::from(before.is_none());
                }
                None => {
                    let Some(quotas) = self.by_entity.get_mut(&entity) else { continue };
                    *count -= usize::from(quotas.remove(&key).is_some());
                    if quotas.is_empty() {
                        self.by_entity.remove(&entity);
                    }
                }
            }
        }
    }

    /// Quotas of all entities.
    pub(crate) fn len(&self) -> usize {
        self.counts.values().sum()
    }

    /// Whether any entity has a quota of this key.
    pub(crate) fn has(&self, key: QuotaKey) -> bool {
        self.counts.get(&key.code()).is_some_and(|count| *count > 0)
    }

    /// The entities in order, with their quotas.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&QuotaEntity, &BTreeMap<QuotaKey, f64>)> {
        self.by_entity.iter()
    }

    /// The quota of an entity itself.
    pub(crate) fn get(&self, entity: &QuotaEntity, key: QuotaKey) -> Option<f64> {
        self.by_entity.get(entity)?.get(&key).copied()
    }

    /// The limit of a user's client, and who shares it. Kafka's order: the most specific user
    /// first, with its client ids before those of all; then client ids of any user.
    pub(crate) fn find(
        &self,
        key: QuotaKey,
        user: &str,
        client_id: &str,
    ) -> Option<(f64, Sharers)> {
        let (user_name, client_name) =
            (EntityName::Named(user.to_owned()), EntityName::Named(client_id.to_owned()));
        let users = [user_name, EntityName::Default];
        let clients = [client_name, EntityName::Default];
        let shared = |of_user: bool, of_client: bool| Sharers {
            key: key.code(),
            user: of_user.then(|| user.into()),
            client_id: of_client.then(|| client_id.into()),
        };
        for user in &users {
            for client in &clients {
                let entity = QuotaEntity::UserClient(user.clone(), client.clone());
                if let Some(limit) = self.get(&entity, key) {
                    return Some((limit, shared(true, true)));
                }
            }
            if let Some(limit) = self.get(&QuotaEntity::User(user.clone()), key) {
                return Some((limit, shared(true, false)));
            }
        }
        let found = clients.into_iter().find_map(|it| self.get(&QuotaEntity::Client(it), key));
        found.map(|limit| (limit, shared(false, true)))
    }

    /// The limit of an address.
    pub(crate) fn find_address(&self, address: IpAddr) -> Option<(f64, Sharers)> {
        let key = QuotaKey::ConnectionCreationRate;
        let own = self.get(&QuotaEntity::address(address), key);
        let limit = own.or_else(|| self.get(&QuotaEntity::Address(EntityName::Default), key))?;
        let name = address.to_canonical().to_string();
        Some((limit, Sharers { key: key.code(), user: Some(name.into()), client_id: None }))
    }

    /// Changes that make all of it, one for each quota.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = QuotaChange> {
        self.by_entity.iter().flat_map(|(entity, quotas)| {
            quotas.iter().map(|(key, value)| QuotaChange {
                entity: entity.clone(),
                key: *key,
                value: Some(*value),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> EntityName {
        EntityName::Named(name.to_owned())
    }

    /// Every level of Kafka's order, the most specific first.
    #[test]
    fn the_most_specific_quota_is_in_force() {
        let key = QuotaKey::ProducerByteRate;
        let (user, client) = (|| named("alice"), || named("app"));
        let levels = [
            (QuotaEntity::UserClient(user(), client()), (true, true)),
            (QuotaEntity::UserClient(user(), EntityName::Default), (true, true)),
            (QuotaEntity::User(user()), (true, false)),
            (QuotaEntity::UserClient(EntityName::Default, client()), (true, true)),
            (QuotaEntity::UserClient(EntityName::Default, EntityName::Default), (true, true)),
            (QuotaEntity::User(EntityName::Default), (true, false)),
            (QuotaEntity::Client(client()), (false, true)),
            (QuotaEntity::Client(EntityName::Default), (false, true)),
        ];
        let mut rules = QuotaRules::default();
        for (index, (entity, (of_user, of_client))) in levels.iter().enumerate().rev() {
            let value = Some(index as f64 + 1.0);
            rules.apply(vec![QuotaChange { entity: entity.clone(), key, value }]);
            let (limit, sharers) = rules.find(key, "alice", "app").unwrap();
            assert_eq!(limit, index as f64 + 1.0);
            assert_eq!(
                (sharers.user.is_some(), sharers.client_id.is_some()),
                (*of_user, *of_client)
            );
        }
        assert_eq!(rules.find(key, "bob", "other").unwrap().0, 5.0);
        assert_eq!(rules.find(QuotaKey::ConsumerByteRate, "alice", "app"), None);
        assert_eq!(rules.len(), levels.len());
        for (entity, _) in levels {
            rules.apply(vec![QuotaChange { entity, key, value: None }]);
        }
        assert!(rules.len() == 0 && !rules.has(key) && rules.iter().next().is_none());
    }

    #[test]
    fn an_address_has_its_own_quota_or_that_of_all() {
        let key = QuotaKey::ConnectionCreationRate;
        let mut rules = QuotaRules::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(rules.find_address(address), None);
        let all = QuotaEntity::Address(EntityName::Default);
        rules.apply(vec![QuotaChange { entity: all, key, value: Some(7.0) }]);
        assert_eq!(rules.find_address(address).unwrap().0, 7.0);
        let own = QuotaEntity::address("::ffff:10.0.0.1".parse().unwrap());
        rules.apply(vec![QuotaChange { entity: own, key, value: Some(3.0) }]);
        assert_eq!(rules.find_address(address).unwrap().0, 3.0);
    }
}
