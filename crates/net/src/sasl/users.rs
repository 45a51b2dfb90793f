use std::collections::HashMap;
use std::fmt;

use aws_lc_rs::{constant_time, digest};
use zeroize::Zeroizing;

use super::mechanism::Mechanism;
use super::scram::ScramCredential;
use super::server::Credentials;

/// A fixed set of users with their passwords or SCRAM credentials.
#[derive(Default)]
pub struct Users {
    passwords: HashMap<String, Zeroizing<String>>,
    scram: HashMap<(Mechanism, String), ScramCredential>,
}

impl Users {
    /// Adds a user for PLAIN.
    pub fn insert_password(&mut self, user: &str, password: Zeroizing<String>) {
        self.passwords.insert(user.to_owned(), password);
    }

    /// Adds a user for a mechanism of SCRAM.
    pub fn insert_scram(&mut self, mechanism: Mechanism, user: &str, credential: ScramCredential) {
        self.scram.insert((mechanism, user.to_owned()), credential);
    }
}

impl Credentials for Users {
    fn plain(&self, user: &str, password: &str) -> bool {
        let known = self.passwords.get(user);
        // Someone unknown costs a comparison too.
        let expected = known.map_or("", |password| password.as_str());
        secrets_equal(expected.as_bytes(), password.as_bytes()) && known.is_some()
    }

    fn scram(&self, mechanism: Mechanism, user: &str) -> Option<ScramCredential> {
        self.scram.get(&(mechanism, user.to_owned())).cloned()
    }
}

/// Shows no secrets.
impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users")
            .field("passwords", &self.passwords.len())
            .field("scram", &self.scram.len())
            .finish()
    }
}

/// Whether two secrets are equal, in a time that tells neither where they differ nor how long the
/// expected one is.
#[must_use]
pub fn secrets_equal(expected: &[u8], given: &[u8]) -> bool {
    let expected = digest::digest(&digest::SHA256, expected);
    let given = digest::digest(&digest::SHA256, given);
    constant_time::verify_slices_are_equal(expected.as_ref(), given.as_ref()).is_ok()
}
