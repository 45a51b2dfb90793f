//! Taking a configuration anew while a service goes on: on SIGHUP, when the service itself is asked
//! to, and once one of the files that it was read from has changed.

use std::convert::Infallible;
use std::future::pending;
use std::path::Path;
use std::time::Duration;

use moldau_net::ReloadWanted;
use moldau_threads::Supervisor;
use tokio::signal::unix::Signal;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use super::watch::Watch;
use crate::config::Sources;

/// How often the files are looked at: a change counts after two looks at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// What fails with a task that fetches keys or watches files beside the connections.
const BACKGROUND: &str = "work in the background";

/// What takes another configuration while it runs.
pub(super) trait Reload {
    /// What is made of the files.
    type Config;

    /// Prefix of each line that it prints.
    const PROCESS: &'static str;

    /// Keeps the failure of the work in the background, without which the service must not go on.
    fn supervisor(&self) -> Supervisor;

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

    /// Waits for a reload request, which gets the outcome as its answer.
    async fn wanted(&self) -> ReloadWanted {
        pending().await
    }

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
    // The files of the configuration that is in force, as they were read.
    let mut in_force = sources.files.clone();
    let mut looks = interval(LOOK_INTERVAL);
    // After a pause of the process one look is enough.
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        for work in std::mem::take(&mut sources.background) {
            let supervisor = service.supervisor();
            background.spawn(async move { supervisor.watch(BACKGROUND, work).await });
        }
        service.begin(&mut sources);
        let mut watch = Watch::new(std::mem::take(&mut sources.files));
        let asked = loop {
            tokio::select! {
                _ = hangups.recv() => break None,
                asked = service.wanted() => break Some(asked),
                _ = looks.tick() => if watch.has_changed() { break None },
            }
        };
        let mut anew = sources.next();
        let loaded = service.load(&mut anew);
        if loaded.is_err() {
            service.count_refused();
        }
        let outcome = match loaded.and_then(|config| service.reload(config)) {
            Ok(changes) => {
                super::tell_warnings(R::PROCESS, service.path(), &anew);
                let files = in_words(&anew.changed_since(&in_force));
                background = JoinSet::new();
                in_force.clone_from(&anew.files);
                sources = anew.in_force();
                Ok(format!("the configuration was reloaded; {files}{changes}"))
            }
            Err(error) => {
                // What is in force and what was mistaken count both, until all is well.
                sources.files = watch.known();
                sources.files.extend(anew.files);
                Err(format!(
                    "reload refused, the old configuration stays in force: {}",
                    super::one_line(&error)
                ))
            }
        };
        let (Ok(said) | Err(said)) = &outcome;
        eprintln!("{}: {said}", R::PROCESS);
        if let Some(asked) = asked {
            let warnings = warnings(service.path(), &sources);
            let with_warnings = |said: String| format!("{said}\n{warnings}");
            asked.answer(outcome.map(with_warnings).map_err(|said| said + "\n"));
        }
    }
}

/// The files that have changed, as a part of a sentence.
fn in_words(changed: &[String]) -> String {
    match changed {
        [] => "no file has changed".to_owned(),
        changed => format!("changed: {}", changed.join(", ")),
    }
}

/// The warnings about a configuration, a line for each.
fn warnings(path: Option<&Path>, sources: &Sources) -> String {
    let path = path.unwrap_or(Path::new("")).display();
    sources.warnings.iter().map(|warning| format!("warning: {path}{warning}\n")).collect()
}
