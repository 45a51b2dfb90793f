//! Known keys and pending calls: a pure state machine over time.
//!
//! A slot holds a loaded value, a call that loads it, or the failure of the last call; often two of
//! these. While a value may be used, no task waits: a call that replaces it runs in the background.
//! Its failure changes nothing unless it says that the key is gone.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::KmsError;

/// How long what is loaded is kept, and how much of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Age from which a value is replaced while it is used on.
    pub(super) refresh: Duration,
    /// Age from which a value is not used.
    pub(super) expiry: Duration,
    /// Time without use after which a value is not used.
    pub(super) idle_max: Duration,
    /// How long a key that the service does not know is not asked for again.
    pub(super) unknown: Duration,
    /// Most slots.
    pub(super) slots_max: usize,
}

/// How a call ended; `None` while it is under way.
pub(super) type Landed = Option<Result<(), KmsError>>;

/// Values by key.
pub(super) struct Cache<K: ?Sized, V> {
    slots: HashMap<Arc<K>, Slot<V>>,
    limits: Limits,
}

struct Slot<V> {
    held: Option<Held<V>>,
    /// The call that is under way, and since when.
    flight: Option<(watch::Receiver<Landed>, Instant)>,
    /// Why the last call failed, and up to when none follows it.
    failure: Option<(KmsError, Instant)>,
    used: Instant,
}

struct Held<V> {
    value: V,
    loaded: Instant,
}

/// What became of an attempt to use a value.
pub(super) enum Use<T> {
    /// It serves.
    Fresh(T),
    /// It serves still, but it is time for the next.
    Ageing(T),
    /// It does not serve.
    Spent,
}

/// Result of a look-up.
pub(super) enum Look<T> {
    /// The value serves.
    Ready(T),
    /// The value serves, and the caller starts the call that replaces it.
    ReadyLoad(T, watch::Sender<Landed>),
    /// The caller starts the call, and waits for it.
    Load(watch::Sender<Landed>),
    /// Another caller started the call, at that time.
    Wait(watch::Receiver<Landed>, Instant),
    /// A call failed so short a time ago that none follows it yet.
    Failed(KmsError),
}

/// What the end of a call changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// There is a value where none was.
    Loaded,
    /// A value took the place of another.
    Replaced,
    /// There is no value.
    Missing,
    /// The call failed, and the value that it should have replaced serves on.
    ServesOn,
}

impl<K, V> Cache<K, V>
where
    K: ?Sized + Eq + Hash,
    Arc<K>: Borrow<K> + for<'a> From<&'a K>,
{
    pub(super) fn new(limits: Limits) -> Self {
        Self { slots: HashMap::new(), limits }
    }

    /// Looks a key up and uses its value. A call that the answer speaks of must end in
    /// [`Cache::land`].
    pub(super) fn look<T>(
        &mut self,
        now: Instant,
        key: &K,
        take: impl FnOnce(&mut V) -> Use<T>,
    ) -> Look<T> {
        let Some(slot) = self.slots.get_mut(key) else {
            if let Err(error) = self.make_room(now) {
                return Look::Failed(error);
            }
            let (sender, flight) = watch::channel(None);
            let slot = Slot { held: None, flight: Some((flight, now)), failure: None, used: now };
            self.slots.insert(key.into(), slot);
            return Look::Load(sender);
        };
        slot.expire(now, &self.limits);
        slot.used = now;
        if slot.failure.as_ref().is_some_and(|(_, until)| *until <= now) {
            slot.failure = None;
        }
        let may_load = slot.flight.is_none() && slot.failure.is_none();
        if let Some(held) = &mut slot.held {
            let is_old = now.duration_since(held.loaded) >= self.limits.refresh;
            match take(&mut held.value) {
                Use::Fresh(taken) if !is_old || !may_load => return Look::Ready(taken),
                Use::Ageing(taken) if !may_load => return Look::Ready(taken),
                Use::Fresh(taken) | Use::Ageing(taken) => {
                    return Look::ReadyLoad(taken, slot.take_off(now));
                }
                Use::Spent => {}
            }
        }
        match (&slot.flight, &slot.failure) {
            (Some((flight, departed)), _) => Look::Wait(flight.clone(), *departed),
            (None, Some((error, _))) => Look::Failed(error.clone()),
            (None, None) => Look::Load(slot.take_off(now)),
        }
    }

    /// Takes the result of a call.
    pub(super) fn land(&mut self, now: Instant, key: &K, result: Result<V, KmsError>) -> Change {
        let slot = self.slots.get_mut(key).expect("a slot with a call under way is kept");
        slot.flight = None;
        slot.expire(now, &self.limits);
        match result {
            Ok(value) => {
                slot.failure = None;
                match slot.held.replace(Held { value, loaded: now }) {
                    None => Change::Loaded,
                    Some(_) => Change::Replaced,
                }
            }
            Err(error) => {
                let pause = match &error {
                    KmsError::UnknownKey(_) | KmsError::DamagedEdek(_) => {
                        // The key is gone: what it protected is no longer to be used, and what
                        // would be written under it could never be read.
                        slot.held = None;
                        self.limits.unknown
                    }
                    KmsError::Refused(_) => REFUSED_PAUSE,
                    KmsError::Unavailable(_) => UNAVAILABLE_PAUSE,
                };
                slot.failure = Some((error, now + pause));
                if slot.held.is_some() { Change::ServesOn } else { Change::Missing }
            }
        }
    }

    /// Forgets what is not to be used.
    pub(super) fn sweep(&mut self, now: Instant) {
        let limits = self.limits;
        self.slots.retain(|_, slot| {
            slot.expire(now, &limits);
            let is_remembered = slot.failure.as_ref().is_some_and(|(_, until)| now < *until);
            slot.held.is_some() || slot.flight.is_some() || is_remembered
        });
    }

    /// Gives up a slot if there are too many: first one without a value, so that unknown keys do
    /// not evict keys in use, then the least recently used one.
    fn make_room(&mut self, now: Instant) -> Result<(), KmsError> {
        if self.slots.len() < self.limits.slots_max {
            return Ok(());
        }
        let idle = self.slots.iter().filter(|(_, slot)| slot.flight.is_none());
        let key = idle.min_by_key(|(_, slot)| (slot.held.is_some(), slot.used));
        let Some(key) = key.map(|(key, _)| Arc::clone(key)) else {
            return Err(KmsError::Unavailable("too many keys are asked for at once".to_owned()));
        };
        self.slots.remove(&*key);
        self.sweep(now);
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

impl<V> Slot<V> {
    fn take_off(&mut self, now: Instant) -> watch::Sender<Landed> {
        let (sender, flight) = watch::channel(None);
        self.flight = Some((flight, now));
        sender
    }

    fn expire(&mut self, now: Instant, limits: &Limits) {
        let is_over = self.held.as_ref().is_some_and(|held| {
            now.duration_since(held.loaded) >= limits.expiry
                || now.duration_since(self.used) >= limits.idle_max
        });
        if is_over {
            self.held = None;
        }
    }
}

/// How long a refusal is not repeated: the operator, who must act, waits no longer for the effect.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// How long a key is not asked for after a call without an answer. The circuit breaker adds its own
/// pause if the service answers no calls.
const UNAVAILABLE_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
