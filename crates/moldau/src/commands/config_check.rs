//! `moldau config check`: says whether a file would be accepted, and as what.

use std::path::Path;
use std::process::ExitCode;

use crate::config::{self, Sources, broker, client, cluster, proxy, worker};

/// The key that every proxy configuration has and no broker configuration.
const PROXY_KEY: &str = "virtual_clusters";

pub(crate) fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let text = config::text(path)?;
    let is_proxy = text.lines().any(|line| line.starts_with(PROXY_KEY));
    let (mut sources, mut note) = (Sources::default(), "");
    let kind = if is_proxy {
        config::load(path, &mut sources, proxy::config)?;
        "proxy"
    } else if worker::is_likely(&text) {
        config::load(path, &mut sources, worker::settings)?;
        "worker"
    } else if cluster::is_likely(&text) {
        cluster::load_shared(path, "moldau", &mut sources)?;
        if !cluster::names_broker(path)? {
            note = "; it has no broker.id, so each broker needs --broker-id";
        }
        "cluster"
    } else if client::is_likely(&text) {
        config::load(path, &mut sources, client::security)?;
        "client"
    } else {
        config::load(path, &mut sources, broker::config)?;
        "broker"
    };
    super::tell_warnings("moldau", Some(path), &sources);
    println!("{}: a valid {kind} configuration{note}", path.display());
    Ok(ExitCode::SUCCESS)
}
