//! `moldau broker`: runs until SIGTERM or SIGINT, drains, and exits 0; exits 1 if the journal
//! fails.

use std::process::ExitCode;

use anyhow::Context;
use moldau_broker::Broker;

use crate::arguments::BrokerOptions;
use crate::commands::signals::Signals;
use crate::config;

pub(crate) fn run(options: &BrokerOptions) -> anyhow::Result<ExitCode> {
    let config = config::broker::load(options)?;
    let signals = Signals::watch()?;
    let data_dir = config.data_dir.display().to_string();
    let broker = Broker::start(config).with_context(|| "the broker did not start")?;
    eprintln!("moldau broker: Kafka clients connect to {}, data in {data_dir}", broker.address());
    if let Some(admin) = broker.admin_address() {
        eprintln!("moldau broker: http://{admin}/metrics, /livez, /readyz");
    }
    let stopped = broker.stopped();
    let failure = signals.wait_or(stopped);
    if let Some(cause) = failure {
        // Nothing may be acknowledged any more, so there is nothing to drain.
        eprintln!("moldau broker: the journal failed and the broker stops: {cause}");
        return Ok(ExitCode::FAILURE);
    }
    let cut_off = broker.drain();
    eprintln!("moldau broker: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}
