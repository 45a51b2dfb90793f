//! `moldau broker`: runs until SIGTERM or SIGINT, drains, and exits 0; exits 1 if the journal or a
//! thread fails. Takes its certificates and users anew on SIGHUP, and once one of the files that it
//! read has changed.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use moldau_broker::{Broker, Config, Error};
use moldau_threads::Supervisor;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::arguments::BrokerOptions;
use crate::commands::FAILED;
use crate::commands::reload::{self, Reload};
use crate::commands::signals::Signals;
use crate::config::{self, Sources};
use crate::logging::ProcessLoggers;

pub(crate) fn run(options: &BrokerOptions, loggers: ProcessLoggers) -> anyhow::Result<ExitCode> {
    let mut sources = Sources::default();
    let mut config = config::broker::load(options, &mut sources)?;
    config.loggers = Some(Arc::new(loggers));
    super::tell_warnings(Running::PROCESS, options.config.as_deref(), &sources);
    raise_descriptor_limit();
    let signals = Signals::watch()?;
    let hangups = signals.hangups()?;
    let (broker, place) = start(options, &config)?;
    let addresses: Vec<_> = broker.addresses().iter().map(ToString::to_string).collect();
    let addresses = addresses.join(", ");
    eprintln!("moldau broker: Kafka clients connect to {addresses}, {place}");
    if let Some(admin) = broker.admin_address() {
        eprintln!("moldau broker: http://{admin}/metrics, /livez, /readyz");
    }
    let stopped = broker.stopped();
    let running = Running { broker, options, config };
    let failure = signals.wait_or(async {
        tokio::select! {
            cause = stopped => cause,
            never = reload::when_asked(&running, sources, hangups) => match never {},
        }
    });
    if let Some(cause) = failure {
        eprintln!("moldau broker: the broker stops: {cause}");
        running.broker.stop();
        // A disk or a thread that hangs must not keep the process.
        std::process::exit(FAILED);
    }
    let cut_off = running.broker.drain();
    eprintln!("moldau broker: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}

/// Starts the broker, and says where its data is.
fn start(options: &BrokerOptions, config: &Config) -> anyhow::Result<(Broker, String)> {
    let Some(path) = &options.cluster else {
        let data_dir = config.data_dir.display().to_string();
        let broker = Broker::start(config.clone());
        let broker = broker.map_err(|error| did_not_start(error, &data_dir))?;
        return Ok((broker, format!("data in {data_dir}")));
    };
    config::broker::check_clustered(config)?;
    let settings = config::cluster::load(path, options.broker_id, &mut Sources::default())?;
    let broker = Broker::start_in_cluster(config.clone(), &settings);
    let broker = broker.map_err(|error| did_not_start(error, ""))?;
    let (id, bucket) = (settings.broker_id, &settings.bucket.bucket);
    Ok((broker, format!("broker {id} of the cluster in the bucket {bucket}")))
}

/// A broker, and what it was started with.
struct Running<'a> {
    broker: Broker,
    options: &'a BrokerOptions,
    config: Config,
}

impl Reload for Running<'_> {
    type Config = Config;

    const PROCESS: &'static str = "moldau broker";

    fn supervisor(&self) -> Supervisor {
        self.broker.supervisor()
    }

    fn path(&self) -> Option<&Path> {
        self.options.config.as_deref()
    }

    fn load(&self, sources: &mut Sources) -> anyhow::Result<Config> {
        config::broker::load(self.options, sources)
    }

    fn reload(&self, config: Config) -> anyhow::Result<String> {
        self.broker.reload(&config.listeners)?;
        let waiting = config::broker::waiting(&self.config, &config);
        Ok(match waiting.is_empty() {
            true => String::new(),
            false => format!("; a restart is needed for {}", waiting.join(", ")),
        })
    }

    fn count_refused(&self) {
        self.broker.count_refused_reload();
    }
}

/// Every connection takes a descriptor, and the limit that a shell gives is low for the sake of old
/// programs alone.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if limit == raised {
        return;
    }
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => {
            let (from, to) = (limit.current, limit.maximum);
            tracing::info!(from, to, "raised the limit of open files");
        }
        Err(error) => tracing::warn!(%error, "failed to raise the limit of open files"),
    }
}

fn did_not_start(error: Error, data_dir: &str) -> anyhow::Error {
    if error.is_damage() {
        anyhow::anyhow!(
            "the broker did not start: {error}; `moldau broker repair --data-dir {data_dir}` \
             lists the losses and salvages the rest"
        )
    } else {
        anyhow::Error::new(error).context("the broker did not start")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A broker whose clients took 1024 descriptors once stopped, though the system allowed more.
    #[test]
    fn the_broker_may_open_as_much_as_the_system_allows() {
        let limit = getrlimit(Resource::Nofile);
        let current = limit.maximum.map(|maximum| maximum - 1);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).unwrap();
        raise_descriptor_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, limit.maximum);
    }
}
