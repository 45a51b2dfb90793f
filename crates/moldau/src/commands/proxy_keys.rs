//! `moldau proxy keys`: makes, changes and shows a file of key encryption keys.

use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use moldau_encryption::{KeyFile, KeyFileEntry};

use crate::arguments::KeysAction;

pub(crate) fn run(action: &KeysAction) -> anyhow::Result<ExitCode> {
    let now = SystemTime::now();
    match action {
        KeysAction::Init { file } => {
            KeyFile::init(file)?;
            println!("{}: a key file without keys", file.display());
        }
        KeysAction::Add { file, alias } => {
            KeyFile::add(file, alias, now)?;
            println!("{alias}: version 1");
        }
        KeysAction::Rotate { file, alias } => {
            let version = KeyFile::rotate(file, alias, now)?;
            println!("{alias}: version {version}");
        }
        KeysAction::List { file } => {
            let keys = KeyFile::list(file)?;
            let width = keys.iter().map(|key| key.name.len()).max().unwrap_or(0).max(5);
            println!("{:width$}  {:>6}  {:>8}  age", "alias", "active", "versions");
            for key in &keys {
                println!("{}", line(key, width, now));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// One key without its secrets.
fn line(key: &KeyFileEntry, width: usize, now: SystemTime) -> String {
    // A clock that was set back makes the key look as if it came from the future.
    let age = now.duration_since(key.active_since).unwrap_or_default();
    let KeyFileEntry { name, active_version, versions, .. } = key;
    format!("{name:width$}  {active_version:>6}  {versions:>8}  {}", age_in_words(age))
}

fn age_in_words(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..3600 => format!("{} min", seconds / 60),
        3600..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_shown_in_columns_with_the_age_of_its_active_version() {
        let now = SystemTime::now();
        let key = KeyFileEntry {
            name: "orders".into(),
            active_version: 3,
            versions: 2,
            active_since: now - Duration::from_secs(3 * 86_400),
        };
        assert_eq!(line(&key, 8, now), "orders         3         2  3 d");
        assert_eq!(age_in_words(Duration::from_secs(59)), "0 min");
        assert_eq!(age_in_words(Duration::from_secs(3600)), "1 h");
    }
}
