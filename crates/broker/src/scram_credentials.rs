//! SCRAM credentials as the journal keeps them (RFC 5802, RFC 7677): never a password.
//!
//! A client sends its password already salted and hashed; of that are kept the two keys by which
//! either side of a log-in proves that it knows it.

use std::collections::BTreeMap;
use std::fmt;

use moldau_net::sasl::{self, Mechanism};

/// How passwords are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ScramMechanism {
    Sha256,
    Sha512,
}

impl ScramMechanism {
    pub(crate) const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    /// Kafka's number, of requests and of the journal.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::Sha256 => 1,
            Self::Sha512 => 2,
        }
    }

    /// The same among all mechanisms of SASL.
    pub(crate) const fn sasl(self) -> Mechanism {
        match self {
            Self::Sha256 => Mechanism::ScramSha256,
            Self::Sha512 => Mechanism::ScramSha512,
        }
    }

    /// The one of a mechanism of SASL, if it is one of SCRAM.
    pub(crate) fn of_sasl(mechanism: Mechanism) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.sasl() == mechanism)
    }

    /// The mechanism of a number.
    pub(crate) fn of(code: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }
}

/// What the broker knows of a password. Shown without it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ScramCredential(pub(crate) sasl::ScramCredential);

impl fmt::Debug for ScramCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ScramCredential");
        shown.field("iterations", &self.0.iterations).finish_non_exhaustive()
    }
}

/// Changes of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScramChanges {
    pub(crate) upserted: Vec<(String, ScramMechanism, ScramCredential)>,
    pub(crate) deleted: Vec<(String, ScramMechanism)>,
}

impl ScramChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.upserted.is_empty() && self.deleted.is_empty()
    }
}

/// All credentials, by user.
#[derive(Default)]
pub(crate) struct ScramCredentials {
    by_user: BTreeMap<String, BTreeMap<ScramMechanism, ScramCredential>>,
    count: usize,
}

impl ScramCredentials {
    /// The credential of a user.
    pub(crate) fn find(&self, user: &str, mechanism: ScramMechanism) -> Option<&ScramCredential> {
        self.by_user.get(user)?.get(&mechanism)
    }

    /// The users, in order.
    pub(crate) fn users(&self) -> impl Iterator<Item = &str> {
        self.by_user.keys().map(String::as_str)
    }

    /// Credentials of all users.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Makes changes; a credential that is not there needs no deletion.
    pub(crate) fn apply(&mut self, changes: ScramChanges) {
        for (user, mechanism) in changes.deleted {
            let Some(credentials) = self.by_user.get_mut(&user) else { continue };
            self.count -= usize::from(credentials.remove(&mechanism).is_some());
            if credentials.is_empty() {
                self.by_user.remove(&user);
            }
        }
        for (user, mechanism, credential) in changes.upserted {
            let before = self.by_user.entry(user).or_default().insert(mechanism, credential);
            self.count += usize::from(before.is_none());
        }
    }

    /// Changes that make all of it, one for each credential.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = ScramChanges> {
        self.by_user.iter().flat_map(|(user, credentials)| {
            credentials.iter().map(|(mechanism, credential)| ScramChanges {
                upserted: vec![(user.clone(), *mechanism, credential.clone())],
                deleted: Vec::new(),
            })
        })
    }
}
