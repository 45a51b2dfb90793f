//! Taking a configuration anew while a service goes on: on SIGHUP, and once one of the files that
//! it was read from has changed.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use tokio::signal::unix::Signal;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::watch::Watch;
use crate::config::Sources;

/// How often the files are looked at: a change counts after two looks at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What takes another configuration while it runs.
pub(super) trait Reload {
    /// What is made of the files.
    type Config;

    /// What begins each line that it says.
    const PROCESS: &'static str;

    /// The file with the configuration, if there is one.
    fn path(&self) -> Option<&Path>;

    /// Reads the configuration anew.
    ///
    /// # Errors
    /// What is wrong and where.
    fn load(&self, sources: &mut Sources) -> anyhow::Result<Self::Config>;

    /// Puts it in force, and tells what has changed, as the end of a sentence.
    ///
    /// # Errors
    /// Why it cannot be in force; nothing was changed.
    fn reload(&self, config: Self::Config) -> anyhow::Result<String>;

    /// Counts a reload that failed as its files were read.
    fn count_refused(&self);

    /// A configuration is in force from now on that was made of these.
    fn begin(&self, _sources: &mut Sources) {}
}

/// Never returns. `sources` are those of the configuration that is in force.
pub(super) async fn when_asked<R: Reload>(
    service: &R,
    mut sources: Sources,
    mut hangups: Signal,
) -> Infallible {
    let mut background = JoinSet::new();
    let mut looks = interval(LOOK_INTERVAL);
    // After a pause of the process one look is enough.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for work in std::mem::take(&mut sources.background) {
            background.spawn(work);
        }
        service.begin(&mut sources);
        let mut watch = Watch::new(std::mem::take(&mut sources.files));
        loop {
            tokio::select! {
                _ = hangups.recv() => break,
                _ = looks.tick() => if watch.has_changed() { break },
            }
        }
        let mut anew = Sources::default();
        let loaded = service.load(&mut anew);
        if loaded.is_err() {
            service.count_refused();
        }
        match loaded.and_then(|config| service.reload(config)) {
            Ok(changes) => {
                super::tell_warnings(R::PROCESS, service.path(), &anew);
                eprintln!("{}: the configuration is taken anew{changes}", R::PROCESS);
                background = JoinSet::new();
                sources = anew;
            }
            Err(error) => {
                let error = crate::one_line(&error);
                eprintln!("{}: the configuration stays as it was: {error}", R::PROCESS);
                // What is in force and what was mistaken count both, until all is well.
                sources.files = watch.known();
                sources.files.extend(anew.files);
            }
        }
    }
}
