//! `moldau config check`: says whether a file would be accepted, and as what.

use std::path::Path;
use std::process::ExitCode;

use crate::config::{self, broker, proxy};

/// The key that every proxy configuration has and no broker configuration.
const PROXY_KEY: &str = "virtual_clusters";

pub(crate) fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let text = std::fs::read_to_string(path)?;
    let is_proxy = text.lines().any(|line| line.starts_with(PROXY_KEY));
    let kind = if is_proxy {
        proxy::config(config::read(path)?)?;
        "proxy"
    } else {
        broker::config(config::read(path)?)?;
        "broker"
    };
    println!("{}: a valid {kind} configuration", path.display());
    Ok(ExitCode::SUCCESS)
}
