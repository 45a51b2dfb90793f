//! Retention by time and by size, applied to every log now and then, and checkpoints.

use std::panic::resume_unwind;
use std::sync::Arc;

use moldau_protocol::Uuid;
use moldau_storage::Error;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior};

use crate::clock::wall_clock_ms;
use crate::state::State;

/// Kafka's `producer.id.expiration.ms`.
pub(crate) const PRODUCER_EXPIRATION_MS: i64 = 86_400_000;

/// Logs looked at before other work of the thread gets its turn.
const LOGS_PER_TURN: usize = 1_000;

/// Applies retention and writes checkpoints for as long as the returned future is polled.
pub(crate) async fn run(state: &Arc<State>) {
    let interval = state.config.log_retention_check_interval;
    // It goes on while the other branches are taken, which under load is more often than it ticks.
    let mut looks = tokio::time::interval_at(Instant::now() + interval, interval);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let Some(journal) = state.storage.journal() else { return };
    loop {
        tokio::select! {
            _ = looks.tick() => apply(state, wall_clock_ms()).await,
            // Whoever deletes wants the space, so it is given back at once.
            () = state.deleted.notified() => {}
            () = journal.checkpoint_due().moved() => {}
        }
        checkpoint(state).await;
    }
}

/// Writes a checkpoint if one is due. Off the network thread, since it looks at every log and waits
/// for the disk.
pub(crate) async fn checkpoint(state: &Arc<State>) {
    let (state, journal) = (Arc::clone(state), state.storage.journal().cloned());
    let Some(journal) = journal else { return };
    let written = tokio::task::spawn_blocking(move || {
        let mut files = 0;
        // Each keeps the journal from the one before on, so that space may take two to come back.
        for _ in 0..2 {
            if journal.is_checkpoint_due() {
                files += state.checkpoint()?;
            }
        }
        Ok(files)
    });
    match join_blocking(written).await {
        Ok(0) => {}
        Ok(files) => tracing::info!(files, "freed journal files"),
        Err::<_, Error>(error) => tracing::warn!(%error, "failed to write a checkpoint"),
    }
}

/// What a blocking task returns. Its panic is that of the timer that waits for it, which the
/// network threads must not go on without.
pub(crate) async fn join_blocking<T>(task: JoinHandle<T>) -> T {
    task.await.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(error) => panic!("a blocking task is never cancelled: {error}"),
    })
}

/// Applies retention to every log, and deletes those whose topic is gone.
pub(crate) async fn apply(state: &State, now_ms: i64) {
    if let Err(refusal) = state.delete_orphaned_logs() {
        tracing::warn!(problem = refusal.message, "failed to delete logs without a topic");
    }
    for (looked_at, log) in state.storage.logs().into_iter().enumerate() {
        if looked_at % LOGS_PER_TURN == LOGS_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let Some(topic) = state.catalog.by_id(Uuid::from_bytes(log.id().topic.0)) else { continue };
        let config = &topic.config;
        let (age, bytes) = match config.deletes {
            true => (config.retention_ms, config.retention_bytes),
            false => (None, None),
        };
        let applied = log.apply_retention(now_ms, age, bytes);
        log.expire_producers(now_ms, PRODUCER_EXPIRATION_MS);
        match applied {
            // The topic was deleted a moment ago, and its data with it.
            Ok(_) | Err(Error::Deleted) => {}
            Err(error) => {
                tracing::warn!(topic = %topic.name, %error, "retention failed");
                return;
            }
        }
    }
}
