//! `moldau broker`: runs until SIGTERM or SIGINT, drains, and exits 0; exits 1 if the journal
//! fails.

use std::process::ExitCode;

use moldau_broker::{Broker, Error};
use tokio::task::JoinSet;

use crate::arguments::BrokerOptions;
use crate::commands::signals::Signals;
use crate::config;

pub(crate) fn run(options: &BrokerOptions) -> anyhow::Result<ExitCode> {
    let mut sources = config::Sources::default();
    let config = config::broker::load(options, &mut sources)?;
    if let Some(path) = &options.config {
        super::tell_warnings("moldau broker", path, &sources);
    }
    let signals = Signals::watch()?;
    let data_dir = config.data_dir.display().to_string();
    let broker = Broker::start(config).map_err(|error| did_not_start(error, &data_dir))?;
    let addresses: Vec<_> = broker.addresses().iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    eprintln!("moldau broker: Kafka clients connect to {addresses}, data in {data_dir}");
    if let Some(admin) = broker.admin_address() {
        eprintln!("moldau broker: http://{admin}/metrics, /livez, /readyz");
    }
    let stopped = broker.stopped();
    let failure = signals.wait_or(async {
        let _background: JoinSet<()> = sources.background.into_iter().collect();
        stopped.await
    });
    if let Some(cause) = failure {
        // Nothing may be acknowledged any more, so there is nothing to drain.
        eprintln!("moldau broker: the journal failed and the broker stops: {cause}");
        return Ok(ExitCode::FAILURE);
    }
    let cut_off = broker.drain();
    eprintln!("moldau broker: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}

fn did_not_start(error: Error, data_dir: &str) -> anyhow::Error {
    if error.is_damage() {
        anyhow::anyhow!(
            "the broker did not start: {error}; `moldau broker repair --data-dir {data_dir}` shows \
             what is lost and salvages the rest"
        )
    } else {
        anyhow::Error::new(error).context("the broker did not start")
    }
}
