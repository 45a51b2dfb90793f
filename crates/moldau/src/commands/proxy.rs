//! `moldau proxy`: runs until SIGTERM or SIGINT, drains, and exits 0.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use moldau_proxy::Proxy;

use crate::commands::signals::Signals;
use crate::config;

pub(crate) fn run(config: &Path) -> anyhow::Result<ExitCode> {
    let mut sources = config::Sources::default();
    let config = config::proxy::load(config, &mut sources)?;
    let signals = Signals::watch()?;
    let proxy = Proxy::start(config).with_context(|| "the proxy did not start")?;
    for (name, address) in proxy.bootstrap_addresses() {
        eprintln!("moldau proxy: clients of {name} connect to {address}");
    }
    if let Some(admin) = proxy.admin_address() {
        eprintln!("moldau proxy: http://{admin}/metrics, /livez, /readyz");
    }
    signals.wait();
    let cut_off = proxy.drain();
    eprintln!("moldau proxy: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}
