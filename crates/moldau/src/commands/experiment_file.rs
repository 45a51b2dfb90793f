//! Experiment files: reading, checking and listing them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use moldau_lab::experiments::file::ExperimentFile;

use crate::config::{self, Sources};

/// Where `moldau lab list` looks for experiment files, below the current directory.
const DIRECTORY: &str = "experiments";

/// Reads an experiment file and refuses what cannot be run.
///
/// # Errors
/// Names the file, and the line where it can.
pub(super) fn read(path: &Path) -> anyhow::Result<ExperimentFile> {
    let file: ExperimentFile = config::read(path)?;
    check(&file).with_context(|| path.display().to_string())?;
    Ok(file)
}

/// Every level is a configuration that the broker takes.
fn check(file: &ExperimentFile) -> anyhow::Result<()> {
    file.check()?;
    for level in &file.factor.levels {
        let line = format!("{}: {}", file.factor.key, level.value);
        let parsed = config::parse::<config::broker::File>(&line);
        let made = parsed.and_then(|file| config::broker::config(file, &mut Sources::default()));
        if let Err(problem) = made {
            bail!("factor, level {}: {problem:#}", level.name);
        }
    }
    Ok(())
}

/// The experiment files below the current directory with their questions, by name. A file that is
/// none says so in place of its question.
pub(super) fn list() -> Vec<(PathBuf, String)> {
    // Without the directory there are no experiment files to list.
    let Ok(entries) = std::fs::read_dir(DIRECTORY) else { return Vec::new() };
    let mut found: Vec<(PathBuf, String)> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            let question = match read(&path) {
                Ok(file) => file.question.trim().to_owned(),
                Err(error) => format!("{error:#}"),
            };
            (path, question)
        })
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILES: &str = include_str!("../../../../experiments/produce-profiles.yaml");

    fn parsed(text: &str) -> Result<ExperimentFile, String> {
        config::parse(text).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_experiment_on_produce_profiles_can_be_run() {
        let file = parsed(PROFILES).unwrap();
        check(&file).unwrap();
        assert_eq!(file.objective.level, "natural");
        assert_eq!(file.factor.levels[0].value, 0);
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        let broken = PROFILES.replacen("hypothesis:", "hypotesis:", 1);
        let line = PROFILES.lines().position(|line| line.starts_with("hypothesis:")).unwrap() + 1;
        let problem = parsed(&broken).unwrap_err();
        assert!(problem.starts_with(&format!(":{line}:")), "{problem}");
        assert!(problem.contains("did you mean \"hypothesis\"?"), "{problem}");
    }

    #[test]
    fn a_level_that_the_broker_refuses_is_named() {
        let file = parsed(&PROFILES.replacen("commit_delay_ms", "commit_delay", 1)).unwrap();
        let problem = check(&file).unwrap_err().to_string();
        assert!(problem.contains("level natural: unknown key \"commit_delay\""), "{problem}");
    }

    #[test]
    fn every_key_is_documented() {
        let page = include_str!("../../../../docs/experiments.md");
        let keys = PROFILES.lines().filter(|line| !line.trim_start().starts_with('#'));
        let keys = keys.filter_map(|line| {
            let (key, _) = line.trim_start_matches([' ', '-']).split_once(':')?;
            key.chars().all(|c| c.is_ascii_lowercase() || c == '_').then_some(key)
        });
        for key in keys {
            assert!(page.contains(&format!("`{key}`")), "{key}");
        }
    }
}
