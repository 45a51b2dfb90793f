//! Compaction of the topics whose `cleanup.policy` has `compact`, now and then.

use std::sync::Arc;

use crate::clock::wall_clock_ms;
use crate::retention::join_blocking;
use crate::state::State;

/// Compacts for as long as the returned future is polled.
pub(crate) async fn run(state: &Arc<State>) {
    loop {
        tokio::time::sleep(state.config.log_cleaner_backoff).await;
        apply(state, wall_clock_ms()).await;
    }
}

/// Cleans the logs that are due. Off the network thread, since it reads and writes the disk.
pub(crate) async fn apply(state: &Arc<State>, now_ms: i64) {
    let Some(journal) = state.storage.journal() else { return };
    let topics = state.catalog.all().into_iter();
    let compacted = topics.filter_map(|topic| Some((topic.config.compaction?, topic.id)));
    let logs: Vec<_> = compacted
        .flat_map(|(compaction, id)| {
            let logs = journal.logs_of(moldau_storage::TopicId(id.into_bytes()));
            logs.into_iter().map(move |log| (log, compaction))
        })
        .collect();
    if logs.is_empty() {
        return;
    }
    let storage = journal.clone();
    let cleaning = tokio::task::spawn_blocking(move || storage.compact(&logs, now_ms));
    let cleaned = join_blocking(cleaning).await;
    if let Ok(compacted) = &cleaned {
        state.counters.compacted(compacted);
    }
    match cleaned {
        Ok(compacted) if compacted.logs == 0 => {}
        Ok(compacted) => tracing::info!(
            logs = compacted.logs,
            read = compacted.records_read,
            retained = compacted.records_retained,
            "compacted logs"
        ),
        Err(error) => tracing::warn!(%error, "compaction failed"),
    }
}
