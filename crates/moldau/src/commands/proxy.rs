//! `moldau proxy`: runs until SIGTERM or SIGINT, drains, and exits 0; exits 1 if a thread fails.
//! Takes its configuration anew on SIGHUP, when the admin port is asked to, and once one of the
//! files that it read has changed.

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::Context;
use moldau_net::ReloadWanted;
use moldau_proxy::{Config, Proxy, Reloaded};
use moldau_threads::Supervisor;

use crate::commands::FAILED;
use crate::commands::reload::{self, Reload};
use crate::commands::signals::Signals;
use crate::config::{self, Sources};

/// How long lines of audits may take to be written at the end: a disk that hangs must not keep the
/// process.
const WRITERS_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(path: &Path) -> anyhow::Result<ExitCode> {
    let mut sources = Sources::default();
    let config = config::proxy::load(path, &mut sources)?;
    super::tell_warnings(Running::PROCESS, Some(path), &sources);
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
    let running = Running { proxy, path, working };
    let failed = running.supervisor().failed();
    let failure = signals.wait_or(async {
        tokio::select! {
            cause = failed => cause,
            never = reload::when_asked(&running, sources, hangups) => match never {},
        }
    });
    if let Some(cause) = failure {
        eprintln!("moldau proxy: the proxy stops: {cause}");
        running.proxy.stop();
        // A thread that hangs must not keep the process.
        std::process::exit(FAILED);
    }
    let Running { proxy, working, .. } = running;
    drop(working);
    let cut_off = proxy.drain();
    // Nothing is ever sent: the channel is closed once each writer has written all.
    if writers_end.recv_timeout(WRITERS_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
        eprintln!("moldau proxy: audit lines may be missing");
    }
    eprintln!("moldau proxy: drained, {cut_off} connections cut off");
    Ok(ExitCode::SUCCESS)
}

/// A proxy and what else lasts as long.
struct Running<'a> {
    proxy: Proxy,
    path: &'a Path,
    /// Held by each writer of an audit until it has written all.
    working: Sender<()>,
}

impl Reload for Running<'_> {
    type Config = Config;

    const PROCESS: &'static str = "moldau proxy";

    fn supervisor(&self) -> Supervisor {
        self.proxy.supervisor()
    }

    fn path(&self) -> Option<&Path> {
        Some(self.path)
    }

    fn load(&self, sources: &mut Sources) -> anyhow::Result<Config> {
        config::proxy::load(self.path, sources)
    }

    /// On a thread of its own, since that blocks, which a runtime's thread must not.
    fn reload(&self, config: Config) -> anyhow::Result<String> {
        let proxy = &self.proxy;
        let reloaded = std::thread::scope(|scope| scope.spawn(|| proxy.reload(config)).join());
        let reloaded = reloaded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(in_words(&reloaded))
    }

    fn count_refused(&self) {
        self.proxy.count_refused_reload();
    }

    async fn wanted(&self) -> ReloadWanted {
        self.proxy.reload_wanted().await
    }

    fn begin(&self, sources: &mut Sources) {
        for writer in std::mem::take(&mut sources.writers) {
            if let Err(error) = writer.start(self.working.clone(), &self.supervisor()) {
                eprintln!("moldau proxy: the audit cannot start: {error}");
            }
        }
    }
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
