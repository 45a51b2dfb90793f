//! `moldau proxy`: runs until SIGTERM or SIGINT, drains, and exits 0. Takes its configuration anew
//! on SIGHUP, and once one of the files that it read has changed.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use moldau_proxy::{Config, Proxy, Reloaded};
use tokio::signal::unix::Signal;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::commands::signals::Signals;
use crate::commands::watch::Watch;
use crate::config::{self, Sources};

/// How often the files are looked at: a change counts after two looks at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long lines of audits may take to be written at the end: a disk that hangs must not keep the
/// process.
const WRITERS_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let mut sources = Sources::default();
    let config = config::proxy::load(path, &mut sources)?;
    super::tell_warnings("moldau proxy", path, &sources);
    let signals = Signals::watch()?;
    let hangups = signals.hangups()?;
    let proxy = Proxy::start(config).with_context(|| "the proxy did not start")?;
    for (name, address) in proxy.bootstrap_addresses() {
        eprintln!("moldau proxy: clients of {name} connect to {address}");
    }
    if let Some(admin) = proxy.admin_address() {
        eprintln!("moldau proxy: http://{admin}/metrics, /livez, /readyz");
    }
    let (working, writers_end) = channel();
    signals.wait_or(reload_when_asked(&proxy, path, sources, hangups, working));
    let cut_off = proxy.drain();
    // Nothing is ever sent: the channel is closed once each writer has written all.
    if writers_end.recv_timeout(WRITERS_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        eprintln!("moldau proxy: lines of an audit may be missing");
    }
    eprintln!("moldau proxy: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}

/// Never returns.
async fn reload_when_asked(
    proxy: &Proxy,
    path: &Path,
    mut sources: Sources,
    mut hangups: Signal,
    working: Sender<()>,
) {
    let mut background = JoinSet::new();
    let mut looks = interval(LOOK_INTERVAL);
    // After a pause of the process one look is enough.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for work in std::mem::take(&mut sources.background) {
            background.spawn(work);
        }
        for writer in std::mem::take(&mut sources.writers) {
            if let Err(error) = writer.start(working.clone()) {
                eprintln!("moldau proxy: the audit does not begin: {error}");
            }
        }
        let mut watch = Watch::new(std::mem::take(&mut sources.files));
        loop {
            tokio::select! {
                _ = hangups.recv() => break,
                _ = looks.tick() => if watch.has_changed() { break },
            }
        }
        let mut anew = Sources::default();
        let loaded = config::proxy::load(path, &mut anew);
        if loaded.is_err() {
            proxy.count_refused_reload();
        }
        let reloaded = loaded.and_then(|config| Ok(reload(proxy, config)?));
        match reloaded {
            Ok(reloaded) => {
                super::tell_warnings("moldau proxy", path, &anew);
                eprintln!("moldau proxy: the configuration is taken anew{}", in_words(&reloaded));
                background = JoinSet::new();
                sources = anew;
            }
            Err(error) => {
                let error = crate::one_line(&error);
                eprintln!("moldau proxy: the configuration stays as it was: {error}");
                // What is in force and what was mistaken count both, until all is well.
                sources.files = watch.known();
                sources.files.extend(anew.files);
            }
        }
    }
}

/// Reloads on a thread of its own, since that blocks, which a runtime's thread must not.
fn reload(proxy: &Proxy, config: Config) -> Result<Reloaded, moldau_proxy::Error> {
    let reloaded = std::thread::scope(|scope| scope.spawn(|| proxy.reload(config)).join());
    reloaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a reload changed, as the end of a sentence.
fn in_words(reloaded: &Reloaded) -> String {
    let Reloaded { added, removed, moved, refiltered } = reloaded;
    let mut words = String::new();
    for (what, names) in
        [("added", added), ("removed", removed), ("moved", moved), ("other filters", refiltered)]
    {
        if !names.is_empty() {
            words = format!("{words}; {what}: {}", names.join(", "));
        }
    }
    words
}
