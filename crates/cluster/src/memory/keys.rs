//! Keys of objects: dead ones, and when they can be forgotten.

use std::collections::BTreeSet;

use crate::sequencer::ObjectKey;
use crate::{Answer, Error};

use super::state::{Object, State};

impl State {
    /// As [`crate::Sequencer::condemn`].
    pub fn condemn(&mut self, keys: &[ObjectKey]) -> Vec<ObjectKey> {
        let keys: BTreeSet<ObjectKey> = keys.iter().copied().collect();
        let mut dead = Vec::new();
        for key in keys {
            let condemned = Object { sequence: 0, live: 0, deleted: false, answers: None };
            let object = self.objects.entry(key).or_insert(condemned);
            if object.live == 0 {
                dead.push(key);
            }
        }
        dead
    }

    /// As [`crate::Sequencer::dead`].
    #[must_use]
    pub fn dead(&self, keys_max: usize) -> Vec<ObjectKey> {
        let dead = self.objects.iter().filter(|(_, object)| object.live == 0 && !object.deleted);
        dead.map(|(key, _)| *key).take(keys_max).collect()
    }

    /// As [`crate::Sequencer::forget`].
    pub fn forget(&mut self, keys: &[ObjectKey]) {
        for key in keys {
            if let Some(object) = self.objects.get_mut(key).filter(|object| object.live == 0) {
                object.deleted = true;
            }
        }
    }

    /// As [`crate::Sequencer::generation`].
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.expired_below.saturating_add(1)
    }

    /// As [`crate::Sequencer::begin_generation`].
    pub fn begin_generation(&mut self) {
        self.expired_below = self.expired_below.saturating_add(1);
    }

    /// As [`crate::Sequencer::remove_keys`].
    pub fn remove_keys(&mut self, keys_max: usize) -> bool {
        let is_spent = |key: &ObjectKey, object: &Object| {
            object.live == 0 && object.deleted && key.generation() < self.expired_below
        };
        let spent = self.objects.iter().filter(|(key, object)| is_spent(key, object));
        let spent: Vec<ObjectKey> = spent.map(|(key, _)| *key).take(keys_max).collect();
        for key in &spent {
            self.objects.remove(key);
        }
        !spent.is_empty()
    }

    /// Whether a key may be committed for the first time.
    pub(super) fn admit(&self, key: ObjectKey) -> Answer<()> {
        if key.generation() < self.expired_below { Err(Error::KeyExpired(key)) } else { Ok(()) }
    }
}
