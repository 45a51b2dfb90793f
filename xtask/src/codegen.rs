//! Generates the folders named `generated` in `crates/protocol/src` from the message definitions in
//! Kafka's client jar.
//!
//! `definition` reads the JSON, `resolve` decides which structs and fields exist in which versions,
//! `emit` writes the Rust of one message and `index` the files that cover all messages.

mod definition;
mod emit;
mod index;
mod names;
mod resolve;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{maven, workspace};
use definition::Definition;

/// What `cargo xtask codegen` accepts.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Writes nothing and fails if the checked-in files are stale.
    #[arg(long)]
    check: bool,
}

/// Fails if the checked-in files are not what would be generated.
pub(crate) fn check() -> Result<()> {
    run(&Arguments { check: true })
}

/// Generates every file, or compares what is checked in with what would be generated.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace::root();
    let scratch = root.join("target/codegen");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    let definitions = read_definitions(&scratch.join("jar"))?;
    let messages = definitions
        .iter()
        .filter_map(|definition| {
            resolve::message(definition).with_context(|| definition.name.clone()).transpose()
        })
        .collect::<Result<Vec<_>>>()?;

    let mut files: BTreeMap<_, _> = messages
        .iter()
        .map(|message| (format!("{}.rs", message.module), emit::message(message)))
        .collect();
    files.insert("mod.rs".to_owned(), index::modules(&messages));
    let table = BTreeMap::from([("mod.rs".to_owned(), index::api_keys(&messages)?)]);
    for (folder, files) in [("generated", files), ("api_key/generated", table)] {
        let fresh = scratch.join(folder);
        write_formatted(root, &fresh, &files)?;
        let checked_in = root.join("crates/protocol/src").join(folder);
        if arguments.check {
            compare(&fresh, &checked_in)?;
        } else {
            replace(&fresh, &checked_in)?;
        }
    }
    Ok(())
}

/// The definitions of the messages, in the order of their names.
fn read_definitions(scratch: &Path) -> Result<Vec<Definition>> {
    let jar = maven::jar("org.apache.kafka", "kafka-clients", maven::KAFKA_VERSION)?;
    fs::create_dir_all(scratch)?;
    let status = Command::new("jar")
        .arg("xf")
        .arg(&jar)
        .arg("common/message")
        .current_dir(scratch)
        .status()
        .context("cannot start jar; install a JDK to read Kafka's message definitions")?;
    ensure!(status.success(), "jar could not unpack {}: {status}", jar.display());
    let mut paths = fs::read_dir(scratch.join("common/message"))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    paths
        .iter()
        .map(|path| {
            definition::parse(&fs::read_to_string(path)?)
                .with_context(|| format!("cannot read {}", path.display()))
        })
        .collect()
}

fn write_formatted(root: &Path, directory: &Path, files: &BTreeMap<String, String>) -> Result<()> {
    fs::create_dir_all(directory)?;
    for (name, text) in files {
        fs::write(directory.join(name), text)?;
    }
    let status = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(root.join("rustfmt.toml"))
        .arg(directory.join("mod.rs"))
        .status()
        .context("cannot start rustfmt")?;
    ensure!(status.success(), "rustfmt refuses the generated files: {status}");
    Ok(())
}

fn contents(directory: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    if directory.exists() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            let name = path.file_name().context("a file without a name")?;
            files.insert(name.to_string_lossy().into_owned(), fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

fn compare(fresh: &Path, checked_in: &Path) -> Result<()> {
    let (fresh, checked_in) = (contents(fresh)?, contents(checked_in)?);
    let mut stale: Vec<_> = fresh
        .iter()
        .filter(|(name, text)| checked_in.get(*name) != Some(text))
        .map(|(name, _)| name.as_str())
        .collect();
    stale.extend(checked_in.keys().filter(|name| !fresh.contains_key(*name)).map(String::as_str));
    if stale.is_empty() {
        return Ok(());
    }
    bail!("stale generated files, run `cargo xtask codegen`: {}", stale.join(", "))
}

fn replace(fresh: &Path, checked_in: &Path) -> Result<()> {
    let fresh = contents(fresh)?;
    let existing = contents(checked_in)?;
    fs::create_dir_all(checked_in)?;
    for name in existing.keys().filter(|name| !fresh.contains_key(*name)) {
        fs::remove_file(checked_in.join(name))?;
    }
    // Unchanged files keep their modification time, so that cargo need not rebuild for nothing.
    for (name, text) in fresh.iter().filter(|(name, text)| existing.get(*name) != Some(text)) {
        fs::write(checked_in.join(name), text)?;
    }
    Ok(())
}
