//! The tasks of a fetcher: one finds leaders and offsets, one per broker fetches.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::FetchResponse;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::positions::Wanted;
use super::request::{self, Part};
use super::session::Session;
use super::{Fetched, Reset, Shared, Start};
use crate::connection::Connection;
use crate::offsets::OffsetSpec;
use crate::{Error, Result};

/// The semaphore that bounds the buffer counts in 32 bits when it takes several at once.
pub(super) const ROOM_MAX: usize = {
    let permits = Semaphore::MAX_PERMITS;
    if permits < u32::MAX as usize { permits } else { u32::MAX as usize }
};

/// Finds leaders and starting offsets, and keeps a task running for each broker that leads an
/// assigned partition. Its own task owns the others, so that they end with it.
pub(super) async fn direct(shared: Arc<Shared>) {
    let mut brokers = JoinSet::new();
    let mut running = HashSet::new();
    loop {
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();

        let metadata = shared.cluster.metadata();
        let now = Instant::now();
        let (has_changed, leaders, unknown, lacks_leader, due) = {
            let mut positions = shared.lock();
            positions.wake(now);
            let has_changed = positions.follow_metadata(&metadata);
            let leaders: Vec<i32> = positions.leaders().collect();
            let unknown = positions.unknown();
            (has_changed, leaders, unknown, positions.lacks_leader(), positions.next_due())
        };
        if has_changed {
            // The task of a leader may have looked before its partition had one.
            shared.changed();
        }
        for node in leaders {
            if running.insert(node) {
                brokers.spawn(fetch_from(Arc::clone(&shared), node));
                shared.changed();
            }
        }
        if !unknown.is_empty() {
            find_offsets(&shared, unknown).await;
            shared.changed();
            continue;
        }
        if lacks_leader {
            refresh(&shared, metadata.generation).await;
            continue;
        }
        tokio::select! {
            () = changed => {}
            () = sleep_until(due) => {}
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

async fn refresh(shared: &Shared, seen: u64) {
    if let Err(error) = shared.cluster.refresh_from(seen).await {
        tracing::warn!(%error, "metadata could not be refreshed");
        tell_if_final(shared, error).await;
    }
    shared.changed();
    // Leaders that are being elected do not appear faster by asking faster.
    tokio::time::sleep(shared.cluster.options().retry_backoff).await;
}

async fn find_offsets(shared: &Shared, unknown: Vec<(u64, crate::TopicPartition, Start)>) {
    let wanted: Vec<_> = unknown
        .iter()
        .map(|(_, partition, start)| {
            let spec = match start {
                Start::Latest => OffsetSpec::Latest,
                Start::Timestamp(timestamp) => OffsetSpec::Timestamp(*timestamp),
                Start::Earliest | Start::Offset(_) => OffsetSpec::Earliest,
            };
            (partition.clone(), spec)
        })
        .collect();
    // One that has no leader keeps none of the others waiting: it is asked about again later.
    let generation = shared.cluster.metadata().generation;
    let answers = shared.cluster.list_offsets_once(&wanted).await.into_iter();
    let mut answers: HashMap<_, _> = answers.map(|(partition, _, it)| (partition, it)).collect();
    let pause = Instant::now() + shared.cluster.options().retry_backoff_max;
    let mut are_all_found = true;
    for (key, partition, _) in unknown {
        match answers.remove(&partition) {
            Some(Ok(listed)) if listed.offset < 0 => {
                shared.lock().start_at_end(key);
                are_all_found = false;
            }
            Some(Ok(listed)) => shared.lock().resolve(key, listed.offset),
            Some(Err(error)) if !error.is_retriable() => give_up(shared, key, error).await,
            Some(Err(_)) | None => {
                shared.lock().postpone(key, pause);
                are_all_found = false;
            }
        }
    }
    if !are_all_found {
        refresh(shared, generation).await;
    }
}

/// Tells the caller why a partition is not read any further.
async fn give_up(shared: &Shared, key: u64, error: Error) {
    shared.lock().give_up(key);
    if shared.fetched.send(Err(error)).await.is_err() {
        tracing::debug!("a fetcher went away");
    }
}

/// Tells the caller of what trying again does not help. It is tried again nevertheless, for a
/// caller that waits for an operator.
async fn tell_if_final(shared: &Shared, error: Error) {
    if error.is_unauthenticated() && shared.fetched.send(Err(error)).await.is_err() {
        tracing::debug!("a fetcher went away");
    }
}

/// Fetches from one broker for as long as the fetcher lives.
async fn fetch_from(shared: Arc<Shared>, node: i32) {
    let mut session = Session::default();
    let mut connection = None;
    loop {
        let changed = shared.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();

        let now = Instant::now();
        let (changes, due) = {
            let mut positions = shared.lock();
            positions.wake(now);
            (positions.changes(node), positions.next_due())
        };
        session.change(changes);
        if session.is_empty() {
            tokio::select! {
                () = changed => {}
                () = sleep_until(due) => {}
            }
            continue;
        }
        if let Err(error) = fetch_once(&shared, node, &mut connection, &mut session).await {
            tracing::debug!(node, %error, "fetch failed");
            session.failed();
            connection = None;
            tell_if_final(&shared, error).await;
            let seen = shared.cluster.metadata().generation;
            refresh(&shared, seen).await;
        }
    }
}

async fn fetch_once(
    shared: &Shared,
    node: i32,
    connection: &mut Option<Connection>,
    session: &mut Session,
) -> Result<()> {
    let connection = match connection {
        Some(open) => open,
        None => connection.insert(shared.cluster.dedicated_connection(node).await?),
    };
    let step = session.request();
    let request = request::build(&shared.options, &step);
    let timeout = shared.cluster.options().connection.request_timeout + shared.options.max_wait;
    let answer: FetchResponse = connection.send_within(&request, timeout).await?;
    match ErrorCode::try_from(answer.error_code) {
        Ok(ErrorCode::None) => session.answered(answer.session_id),
        Ok(ErrorCode::FetchSessionIdNotFound | ErrorCode::InvalidFetchSessionEpoch) => {
            session.lost();
            return Ok(());
        }
        _ => Error::check(answer.error_code, "fetch", None)?,
    }
    let mut stale_leader = false;
    for part in request::parts(answer) {
        let Some(wanted) = session.find(&part.topic, part.topic_id, part.partition) else {
            continue;
        };
        stale_leader |= take_part(shared, wanted, part).await;
    }
    if stale_leader {
        let seen = shared.cluster.metadata().generation;
        refresh(shared, seen).await;
    }
    Ok(())
}

/// Takes one partition of an answer; true if the leader has changed.
async fn take_part(shared: &Shared, wanted: &Wanted, part: Part) -> bool {
    let what = || format!("fetch of {}-{}", wanted.topic.name, wanted.partition);
    let retry_at = Instant::now() + shared.cluster.options().retry_backoff;
    match ErrorCode::try_from(part.error_code).unwrap_or(ErrorCode::UnknownServerError) {
        ErrorCode::None => {}
        ErrorCode::OffsetOutOfRange => {
            match shared.options.reset {
                Reset::Earliest => shared.lock().reset(wanted, Start::Earliest),
                Reset::Latest => shared.lock().reset(wanted, Start::Latest),
                Reset::Fail => {
                    let error = Error::broker(ErrorCode::OffsetOutOfRange, &what(), None);
                    give_up(shared, wanted.key, error).await;
                }
            }
            shared.changed();
            return false;
        }
        code if code.is_retriable() => {
            shared.lock().postpone(wanted.key, retry_at);
            return true;
        }
        code => {
            give_up(shared, wanted.key, Error::broker(code, &what(), None)).await;
            return false;
        }
    }
    let (bytes, next) = match request::whole_batches(&part.records) {
        Ok(whole) => whole,
        Err(source) => {
            let (topic, offset) = (wanted.topic.name.clone(), wanted.position);
            let partition = wanted.partition;
            let error = Error::UnreadableBatch { topic, partition, offset, source };
            give_up(shared, wanted.key, error).await;
            return false;
        }
    };
    let Some(next_position) = next else { return false };
    // Compaction can leave batches that end before the position; there is nothing to take then.
    if next_position <= wanted.position || !shared.lock().advance(wanted, next_position) {
        return false;
    }
    let room = room(shared, bytes.len()).await;
    let fetched = Fetched {
        topic: wanted.topic.clone(),
        partition: wanted.partition,
        position: wanted.position,
        next_position,
        high_watermark: part.high_watermark,
        log_start_offset: part.log_start_offset,
        bytes,
        aborted: part.aborted,
        generation: wanted.generation,
        room,
    };
    if shared.fetched.send(Ok(fetched)).await.is_err() {
        tracing::debug!("a fetcher went away");
    }
    false
}

/// Waits until the caller has dropped enough. One answer larger than the buffer takes all of it.
async fn room(shared: &Shared, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let bytes = bytes.min(shared.options.buffer_bytes_max).min(ROOM_MAX);
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    // The semaphore is never closed.
    Arc::clone(&shared.room).acquire_many_owned(bytes).await.ok()
}
