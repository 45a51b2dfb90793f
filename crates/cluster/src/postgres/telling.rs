//! Wakes between brokers, by LISTEN and NOTIFY.
//!
//! The notification is a statement of its own behind the commit. Within the commit it would make
//! PostgreSQL flush one commit after the other, as notifications have one order in a database.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_postgres::{AsyncMessage, Client};
use uuid::Uuid;

use crate::Answer;
use crate::sequencer::LogId;
use crate::wakes::{Untold, Wake, Wakes};

use super::address::Traffic;
use super::link::{Pool, meaning};

/// Tells and hears wakes until it is dropped.
#[derive(Debug)]
pub struct Telling(JoinHandle<()>);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(super) fn start(pool: Arc<Pool>, wakes: Arc<Wakes>) -> Telling {
    Telling(tokio::spawn(async move {
        loop {
            // Reads poll meanwhile, so there is nobody to tell of the error.
            drop(serve(&pool, &wakes).await);
            sleep(PAUSE).await;
        }
    }))
}

/// Serves one connection to its end.
async fn serve(pool: &Pool, wakes: &Wakes) -> Answer<()> {
    let (client, traffic) = pool.open().await?;
    let own = AtomicI32::new(0);
    // The connection moves only while it is listened to, so both run at a time.
    tokio::select! {
        end = hear(traffic, &own, wakes) => end,
        end = tell(&client, &own, wakes) => end,
    }
}

async fn hear(mut traffic: Traffic, own: &AtomicI32, wakes: &Wakes) -> Answer<()> {
    while let Some(message) = poll_fn(|context| traffic.poll_message(context)).await {
        match message.map_err(|error| meaning(&error))? {
            // Its own reads are awake already.
            AsyncMessage::Notification(told)
                if told.process_id() == own.load(Ordering::Relaxed) => {}
            AsyncMessage::Notification(told) => wakes.wake(&wake(told.payload())),
            _ => {}
        }
    }
    Ok(())
}

async fn tell(client: &Client, own: &AtomicI32, wakes: &Wakes) -> Answer<()> {
    let told = |error: tokio_postgres::Error| meaning(&error);
    let process = client.query_one("select pg_backend_pid()", &[]).await.map_err(told)?;
    own.store(process.try_get(0).map_err(told)?, Ordering::Relaxed);
    client.batch_execute(LISTEN).await.map_err(told)?;
    // Whatever was told before this is lost.
    wakes.wake(&Wake::All);
    let notify = client.prepare(NOTIFY).await.map_err(told)?;
    loop {
        for payload in payloads(&wakes.untold().await) {
            client.query(&notify, &[&payload]).await.map_err(told)?;
        }
    }
}

fn payloads(untold: &Untold) -> Vec<String> {
    let frames = untold.frames.then(|| FRAMES.to_owned());
    let requests = untold.requests.then(|| REQUESTS.to_owned());
    frames.into_iter().chain(requests).chain(payloads_of(&untold.logs)).collect()
}

/// Texts of notifications: topic and partition of each log, as many as fit.
fn payloads_of(logs: &BTreeSet<LogId>) -> Vec<String> {
    if logs.len() > LOGS_MAX {
        return vec![ALL.to_owned()];
    }
    let logs: Vec<String> =
        logs.iter().map(|log| format!("{}:{}", log.topic.as_simple(), log.partition)).collect();
    logs.chunks(LOGS_OF_PAYLOAD_MAX).map(|logs| logs.join(",")).collect()
}

fn wake(payload: &str) -> Wake {
    match payload {
        FRAMES => return Wake::Frames,
        REQUESTS => return Wake::Requests,
        _ => {}
    }
    let log = |text: &str| {
        let (topic, partition) = text.split_once(':')?;
        Some(LogId { topic: Uuid::try_parse(topic).ok()?, partition: partition.parse().ok()? })
    };
    // What is not understood is of a later version, or a fault: a lookup too many does no harm.
    payload.split(',').map(log).collect::<Option<_>>().map_or(Wake::All, Wake::Logs)
}

/// No notification is flushed: it does not survive a crash anyway.
const LISTEN: &str = "set synchronous_commit = off; listen moldau_appends";
const NOTIFY: &str = "select pg_notify('moldau_appends', $1)";
/// Brokers that do not know it wake all, as they do for [`ALL`].
const FRAMES: &str = "frames";
const REQUESTS: &str = "requests";
const ALL: &str = "*";
/// A payload has up to 7999 bytes, and a log up to 44.
const LOGS_OF_PAYLOAD_MAX: usize = 180;
/// A lookup of all waiting reads is cheaper than more notifications.
const LOGS_MAX: usize = 8 * LOGS_OF_PAYLOAD_MAX;
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_fits_and_wakes_the_logs_that_it_names() {
        let log = |partition| LogId { topic: Uuid::from_u128(u128::MAX), partition };
        let logs: BTreeSet<LogId> = (0..200).map(|i| log(i32::MAX - i)).collect();
        let payloads = payloads_of(&logs);
        assert_eq!(payloads.len(), 2);
        let mut woken = BTreeSet::new();
        for payload in &payloads {
            assert!(payload.len() < 8_000);
            match wake(payload) {
                Wake::Logs(logs) => woken.extend(logs),
                Wake::Frames | Wake::Requests | Wake::All => panic!("{payload}"),
            }
        }
        assert_eq!(woken, logs);
    }

    #[test]
    fn frames_and_requests_are_told_beside_the_logs() {
        let logs = [LogId { topic: Uuid::nil(), partition: 0 }].into();
        let told = payloads(&Untold { logs, frames: true, requests: true });
        let woken: Vec<Wake> = told.iter().map(|payload| wake(payload)).collect();
        let [Wake::Frames, Wake::Requests, Wake::Logs(logs)] = &woken[..] else {
            panic!("{woken:?}");
        };
        assert_eq!(logs.len(), 1);
    }

    #[test]
    fn many_logs_and_strange_texts_wake_all() {
        let log = |partition| LogId { topic: Uuid::nil(), partition };
        let many = payloads_of(&(0..100_000).map(log).collect());
        for payload in many.iter().map(String::as_str).chain(["", "a:1", ":", "é"]) {
            assert_eq!(wake(payload), Wake::All, "{payload}");
        }
    }
}
