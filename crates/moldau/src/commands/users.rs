//! `moldau users`: lines of a `users_file`.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use moldau_net::sasl::{Mechanism, ScramCredential};
use zeroize::Zeroizing;

use crate::arguments::{ScramChoice, ScramOptions, UsersAction};
use crate::config::users;

/// A password is not longer than this.
const PASSWORD_BYTES_MAX: u64 = 4096;

pub(crate) fn run(action: &UsersAction) -> anyhow::Result<ExitCode> {
    let UsersAction::Scram(ScramOptions { user, mechanism, iterations, password_file }) = action;
    ensure!(
        !user.is_empty() && !user.contains([':', '\n', '#']),
        "--user: {user:?} is not allowed in a users_file"
    );
    let password = password(password_file.as_ref())?;
    let mechanism = match mechanism {
        ScramChoice::Sha256 => Mechanism::ScramSha256,
        ScramChoice::Sha512 => Mechanism::ScramSha512,
    };
    let salt = ScramCredential::random_salt();
    let credential = ScramCredential::derive(mechanism, &password, &salt, *iterations);
    println!("{}", users::line(user, mechanism, &credential));
    Ok(ExitCode::SUCCESS)
}

/// The first line of a file, or of stdin.
fn password(file: Option<&PathBuf>) -> anyhow::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::new());
    match file {
        Some(path) => {
            let file = std::fs::File::open(path);
            let file = file.with_context(|| path.display().to_string())?;
            file.take(PASSWORD_BYTES_MAX).read_to_string(&mut text)?
        }
        None => std::io::stdin().lock().take(PASSWORD_BYTES_MAX).read_to_string(&mut text)?,
    };
    let line = text.lines().next().unwrap_or_default();
    ensure!(!line.is_empty(), "no password in the first line of stdin or --password-file");
    Ok(Zeroizing::new(line.to_owned()))
}
