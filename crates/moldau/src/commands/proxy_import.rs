//! `moldau proxy import`: prints our configuration for that of another proxy. Exits 1 if something
//! has no translation.

use std::process::ExitCode;

use crate::arguments::ImportOptions;
use crate::{config, import};

pub(crate) fn run(options: &ImportOptions) -> anyhow::Result<ExitCode> {
    let translation = match &options.file {
        Some(path) => import::kroxylicious(config::read(path)?),
        None => import::kafka_proxy(&options.flags),
    };
    print!("{translation}");
    for note in &translation.notes {
        eprintln!("moldau: not translated: {}", note.replace(['\n', '\r'], " "));
    }
    let is_whole = translation.notes.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
