//! `moldau broker import`: prints the broker's file for Kafka's `server.properties`. Exits 1 if a
//! line is not supported.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::arguments::BrokerImportOptions;
use crate::{config, import};

pub(crate) fn run(options: &BrokerImportOptions) -> anyhow::Result<ExitCode> {
    let path = &options.file;
    let translation = import::server_properties(&config::text(path)?)
        .map_err(|problem| anyhow!("{}{problem}", path.display()))?;
    print!("{translation}");
    for line in &translation.unsupported {
        eprintln!("moldau: not supported: {}", line.replace(['\n', '\r'], " "));
    }
    let is_whole = translation.unsupported.is_empty();
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
