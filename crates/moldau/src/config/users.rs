//! A `users_file`: one line for each user, or for each of their credentials.
//!
//! ```text
//! # A password serves PLAIN, and each mechanism of SCRAM that is offered.
//! alice:her password
//! # What `moldau users scram` prints serves one mechanism and gives no password away.
//! bob:SCRAM-SHA-256=[salt=...,stored_key=...,server_key=...,iterations=4096]
//! ```

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use moldau_net::sasl::{Mechanism, ScramCredential, Users};
use zeroize::Zeroizing;

use super::problem::{At, Problem};
use super::sources::Sources;

/// Fewest iterations of SCRAM, by RFC 7677 and Kafka.
pub(crate) const ITERATIONS_MIN: u32 = 4096;

/// Where SCRAM credentials are stored.
#[derive(Clone, Copy)]
pub(super) enum Scram<'a> {
    /// In the file, where passwords serve these mechanisms.
    File(&'a [Mechanism]),
    /// In the broker's metadata, so that the file is of use to PLAIN alone.
    Metadata,
}

/// Reads a file.
///
/// # Errors
/// Names the line of the file, at the key that names the file.
pub(super) fn read(
    path: &At<PathBuf>,
    scram: Scram<'_>,
    sources: &mut Sources,
) -> Result<Users, Problem> {
    let mechanisms = match scram {
        Scram::File(mechanisms) => mechanisms,
        Scram::Metadata => &[],
    };
    let text = sources.text(path)?;
    let (mut users, mut seen) = (Users::default(), HashSet::new());
    let lines = text.lines().enumerate();
    for (index, line) in lines.filter(|(_, it)| !it.trim().is_empty() && !it.starts_with('#')) {
        // The message leaves out the line, which may hold a password.
        let wrong = |what: &str| {
            let file = path.value.display();
            Problem::at(path, format_args!("{file}, line {}: {what}", index + 1))
        };
        let (user, credential) = credential(line).map_err(wrong)?;
        match credential {
            Credential::Scram(..) if matches!(scram, Scram::Metadata) => {
                return Err(wrong(
                    "is a SCRAM credential; create it with kafka-configs, since the broker stores \
                     them itself",
                ));
            }
            Credential::Scram(mechanism, credential) => {
                if !seen.insert((user, Some(mechanism))) {
                    return Err(wrong("duplicates a user and mechanism"));
                }
                users.insert_scram(mechanism, user, credential);
            }
            Credential::Password(password) => {
                if !seen.insert((user, None)) {
                    return Err(wrong("duplicates a user"));
                }
                for mechanism in mechanisms.iter().copied().filter(|it| is_scram(*it)) {
                    let salt = ScramCredential::random_salt();
                    let derived =
                        ScramCredential::derive(mechanism, password, &salt, ITERATIONS_MIN);
                    users.insert_scram(mechanism, user, derived);
                }
                users.insert_password(user, Zeroizing::new(password.to_owned()));
            }
        }
    }
    match seen.is_empty() {
        true => Err(Problem::at(
            path,
            format_args!("{}: the name of the user is empty", path.value.display()),
        )),
        false => Ok(users),
    }
}

/// The line of a user's credential.
pub(crate) fn line(user: &str, mechanism: Mechanism, credential: &ScramCredential) -> String {
    let ScramCredential { salt, stored_key, server_key, iterations } = credential;
    let [salt, stored_key, server_key] =
        [salt, stored_key, server_key].map(|bytes| BASE64.encode(bytes));
    format!(
        "{user}:{mechanism}=[salt={salt},stored_key={stored_key},server_key={server_key},\
         iterations={iterations}]"
    )
}

enum Credential<'a> {
    Password(&'a str),
    Scram(Mechanism, ScramCredential),
}

fn credential(line: &str) -> Result<(&str, Credential<'_>), &'static str> {
    let (user, secret) = line.split_once(':').ok_or("is not user:password")?;
    if user.is_empty() || secret.is_empty() {
        return Err("is not user:password");
    }
    let scram = secret.split_once("=[").and_then(|(name, parts)| {
        let mechanism = name.parse().ok().filter(|it| is_scram(*it))?;
        Some((mechanism, parts))
    });
    let Some((mechanism, parts)) = scram else { return Ok((user, Credential::Password(secret))) };
    let parts = parts.strip_suffix(']').ok_or("does not end with ]")?;
    Ok((user, Credential::Scram(mechanism, scram_credential(parts)?)))
}

fn scram_credential(text: &str) -> Result<ScramCredential, &'static str> {
    let parts: HashMap<&str, &str> =
        text.split(',').filter_map(|part| part.trim().split_once('=')).collect();
    let bytes = |key: &str| {
        let text = parts.get(key).ok_or("needs salt, stored_key, server_key and iterations")?;
        BASE64.decode(text).map_err(|_| "has a part that is not base64")
    };
    let iterations = parts.get("iterations").and_then(|text| text.parse().ok());
    let iterations = iterations.filter(|count| *count >= ITERATIONS_MIN);
    Ok(ScramCredential {
        salt: bytes("salt")?,
        stored_key: bytes("stored_key")?,
        server_key: bytes("server_key")?,
        iterations: iterations.ok_or("needs iterations, 4096 at least")?,
    })
}

fn is_scram(mechanism: Mechanism) -> bool {
    matches!(mechanism, Mechanism::ScramSha256 | Mechanism::ScramSha512)
}

#[cfg(test)]
mod tests {
    use moldau_net::sasl::Credentials;

    use super::super::problem::nowhere;
    use super::*;

    fn users(text: &str) -> Result<Users, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = nowhere(file.path().to_owned());
        read(&path, Scram::File(&[Mechanism::ScramSha256]), &mut Sources::default()).map_err(
            |problem| {
                format!("{problem:#}").replace(&format!("{}", file.path().display()), "users")
            },
        )
    }

    #[test]
    fn a_line_made_for_a_user_is_read_again() {
        let credential = ScramCredential::derive(Mechanism::ScramSha512, "secret", b"salt", 5000);
        let line = line("alice", Mechanism::ScramSha512, &credential);
        let users = users(&format!("# users\n\n{line}\nbob:a:b\n")).unwrap();
        assert_eq!(users.scram(Mechanism::ScramSha512, "alice"), Some(credential));
        assert_eq!(users.scram(Mechanism::ScramSha256, "alice"), None);
        assert!(users.plain("bob", "a:b") && !users.plain("alice", "secret"));
        let derived = users.scram(Mechanism::ScramSha256, "bob").unwrap();
        let again = ScramCredential::derive(Mechanism::ScramSha256, "a:b", &derived.salt, 4096);
        assert_eq!(derived, again);
    }

    #[test]
    fn a_wrong_line_is_reported_by_its_number_and_without_its_secret() {
        for (text, said) in [
            ("", "users: the name of the user is empty"),
            ("alice\n", "users, line 1: is not user:password"),
            ("a:secret\n:secret\n", "users, line 2: is not user:password"),
            ("a:secret\na:secret\n", "users, line 2: duplicates a user"),
            ("a:SCRAM-SHA-256=[salt=AA==", "users, line 1: does not end with ]"),
            (
                "a:SCRAM-SHA-256=[salt=AA==]",
                "users, line 1: needs salt, stored_key, server_key and iterations",
            ),
            (
                "a:SCRAM-SHA-256=[salt=A,stored_key=AA==,server_key=AA==,iterations=4096]",
                "users, line 1: has a part that is not base64",
            ),
            (
                "a:SCRAM-SHA-256=[salt=AA==,stored_key=AA==,server_key=AA==,iterations=1]",
                "users, line 1: needs iterations, 4096 at least",
            ),
        ] {
            assert_eq!(users(text).unwrap_err(), said, "{text}");
        }
    }
}
