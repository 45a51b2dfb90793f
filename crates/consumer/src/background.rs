//! Work that runs beside the runtime of an app, on tasks of its own: timers, ports.
//!
//! Each task is given the app's [`Services`] and its [`Lifecycle`]. A task that fails or panics
//! shuts the app down: handlers finish, offsets are committed, and `App::run` returns the error.
//! A task that returns `Ok` has done its work; the app goes on.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::context::Services;
use crate::failure::{BoxError, panic_message};
use crate::{Error, Result};

/// How far an app is. Later stages are greater.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Stage {
    /// It takes records.
    Running,
    /// Handlers finish what they have; no new work may begin.
    Draining,
    /// Offsets are committed and the member has left. Background tasks must return.
    Ended,
}

/// The stages of an app as they come. Clones see the same.
#[derive(Clone, Debug)]
pub(crate) struct Lifecycle(watch::Receiver<Stage>);

impl Lifecycle {
    /// How far the app is.
    pub(crate) fn stage(&self) -> Stage {
        *self.0.borrow()
    }

    /// Waits until the app has reached `stage`, or is dropped.
    pub(crate) async fn reached(&mut self, stage: Stage) {
        // The sender is gone once the app is.
        drop(self.0.wait_for(|it| *it >= stage).await);
    }
}

type Running = Pin<Box<dyn Future<Output = std::result::Result<(), BoxError>> + Send>>;

/// A task that is to run beside the runtime.
pub(crate) struct Background {
    name: &'static str,
    start: Box<dyn FnOnce(Arc<Services>, Lifecycle) -> Running + Send>,
}

impl Background {
    /// The task whose future `start` makes. The name stands in errors.
    pub(crate) fn new<F, Fut>(name: &'static str, start: F) -> Self
    where
        F: FnOnce(Arc<Services>, Lifecycle) -> Fut + Send + 'static,
        Fut: Future<Output = std::result::Result<(), BoxError>> + Send + 'static,
    {
        let start = move |services, lifecycle| -> Running { Box::pin(start(services, lifecycle)) };
        Self { name, start: Box::new(start) }
    }
}

/// The background tasks of an app that runs. Dropping them cancels them.
pub(crate) struct Tasks {
    running: JoinSet<(&'static str, std::result::Result<(), BoxError>)>,
    stage: watch::Sender<Stage>,
    /// The first that was reported.
    failure: Option<Error>,
}

impl Tasks {
    /// Starts all of them.
    pub(crate) fn start(all: Vec<Background>, services: &Arc<Services>) -> Self {
        let stage = watch::Sender::new(Stage::Running);
        let mut running = JoinSet::new();
        for Background { name, start } in all {
            let (services, lifecycle) = (Arc::clone(services), Lifecycle(stage.subscribe()));
            running.spawn(async move {
                let task = AssertUnwindSafe(async { start(services, lifecycle).await });
                let ended = task.catch_unwind().await;
                let panicked = |message| Err(format!("panicked: {message}").into());
                (name, ended.unwrap_or_else(|panic| panicked(panic_message(&*panic))))
            });
        }
        Self { running, stage, failure: None }
    }

    /// Waits until one has failed.
    pub(crate) async fn failed(&mut self) {
        while self.failure.is_none() {
            self.join_next().await;
        }
    }

    /// The stages of the app.
    pub(crate) fn lifecycle(&self) -> Lifecycle {
        Lifecycle(self.stage.subscribe())
    }

    /// Tells them how far the app is.
    pub(crate) fn reach(&self, stage: Stage) {
        self.stage.send_replace(stage);
    }

    /// Tells them that the app has ended, and waits for them until `deadline` by the app's clock.
    ///
    /// # Errors
    /// [`Error::Background`]: one of them failed.
    pub(crate) async fn end(mut self, services: &Services, deadline: Duration) -> Result<()> {
        self.reach(Stage::Ended);
        let all = async {
            while !self.running.is_empty() {
                self.join_next().await;
            }
        };
        tokio::select! {
            biased;
            () = all => {}
            () = services.clock.sleep_until(deadline) => {
                tracing::warn!(left = self.running.len(), "background tasks are cancelled");
                self.running.shutdown().await;
            }
        }
        self.failure.map_or(Ok(()), Err)
    }

    /// Takes the end of one of them; waits for ever if none is left.
    async fn join_next(&mut self) {
        let Some(ended) = self.running.join_next().await else {
            return std::future::pending().await;
        };
        // Panics are caught within, so it was cancelled with the app.
        let Ok((name, ended)) = ended else { return };
        if let Err(source) = ended {
            tracing::error!(name, error = %source, "a background task failed");
            self.failure.get_or_insert(Error::Background { name, source });
        }
    }
}

#[cfg(test)]
mod tests;
