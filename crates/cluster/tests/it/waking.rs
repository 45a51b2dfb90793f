//! Reads that wait for records, and what wakes them.

use std::sync::Arc;
use std::time::Duration;

use moldau_cluster::{
    LogId, Memory, Postgres, Reader, ReaderOptions, Records, Sequencer, Store, Topic, Wakes,
    Writer, WriterOptions,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::batches::{batch, records};
use crate::faults::{Faults, FaultyStore, pass};
use crate::postgres_server;

#[tokio::test(start_paused = true)]
async fn an_append_wakes_the_reads_of_its_broker() {
    let (memory, wakes) = (Arc::new(Memory::default()), Arc::new(Wakes::default()));
    create_topic(&*memory).await;
    let store = store();
    let read = wait(memory.clone(), store.clone(), wakes.clone(), HOUR);
    pass(Duration::from_secs(1)).await;
    let started = Instant::now();
    append(memory, store, wakes, 0).await;
    assert_eq!(records(&read.await.unwrap().batches), [(0, "1 0".to_owned())]);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_lost_wake_costs_a_poll_interval() {
    let memory = Arc::new(Memory::default());
    create_topic(&*memory).await;
    let store = store();
    let poll = Duration::from_secs(10);
    let read = wait(memory.clone(), store.clone(), Arc::default(), poll);
    pass(Duration::from_secs(1)).await;
    let started = Instant::now();
    append(memory, store, Arc::default(), 0).await;
    assert_eq!(read.await.unwrap().high_watermark, 1);
    assert!(started.elapsed() <= poll, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_read_without_records_ends_at_its_deadline() {
    let memory = Arc::new(Memory::default());
    create_topic(&*memory).await;
    let started = Instant::now();
    let read = wait(memory, store(), Arc::default(), 3 * HOUR).await.unwrap();
    assert_eq!((read.high_watermark, read.batches.len()), (0, 0));
    let late = started.elapsed().saturating_sub(2 * HOUR);
    assert!(started.elapsed() >= 2 * HOUR && late < Duration::from_secs(1), "{late:?}");
}

#[tokio::test]
async fn an_append_wakes_the_reads_of_other_brokers() {
    let server = postgres_server::shared();
    let settings = server.database().await;
    let broker = async || Arc::new(Postgres::connect(&settings).await.unwrap());
    let (writes, reads) = (broker().await, broker().await);
    create_topic(&*writes).await;
    let (ours, theirs) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let _telling = [writes.tell(ours.clone()), reads.tell(theirs.clone())];
    let store = store();
    for sequence in 0..3 {
        let read = tokio::spawn(next(
            reads.clone(),
            store.clone(),
            theirs.clone(),
            HOUR,
            i64::from(sequence),
        ));
        append(writes.clone(), store.clone(), ours.clone(), sequence).await;
        let read = timeout(Duration::from_secs(60), read).await.expect("it is woken").unwrap();
        assert_eq!(records(&read.batches).len(), 1);
    }
}

#[tokio::test]
async fn brokers_tell_one_another_again_after_a_crash_of_the_database() {
    let server = postgres_server::Server::start();
    let settings = server.database().await;
    let postgres = Arc::new(Postgres::connect(&settings).await.unwrap());
    create_topic(&*postgres).await;
    let (ours, theirs) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let _telling = [postgres.tell(ours.clone()), postgres.tell(theirs.clone())];
    let store = store();
    append(postgres.clone(), store.clone(), ours.clone(), 0).await;
    server.crash();
    // Its first lookups may use connections of before.
    let read = tokio::spawn(next(postgres.clone(), store.clone(), theirs, HOUR, 1));
    append(postgres, store, ours, 1).await;
    let read = timeout(Duration::from_secs(60), read).await.expect("it is woken").unwrap();
    assert_eq!(records(&read.batches), [(1, "1 1".to_owned())]);
}

/// Waits up to two hours for the first records.
fn wait<Q: Sequencer>(
    sequencer: Arc<Q>,
    store: Arc<FaultyStore>,
    wakes: Arc<Wakes>,
    poll: Duration,
) -> JoinHandle<Records> {
    tokio::spawn(next(sequencer, store, wakes, poll, 0))
}

async fn next<Q: Sequencer, S: Store>(
    sequencer: Arc<Q>,
    store: Arc<S>,
    wakes: Arc<Wakes>,
    poll: Duration,
    offset: i64,
) -> Records {
    let options = ReaderOptions { poll, ..ReaderOptions::default() };
    let reader = Reader::new(sequencer, store, options);
    let deadline = Instant::now() + 2 * HOUR;
    loop {
        match reader.read_next(LOG, offset, 1, &wakes, deadline).await {
            Err(error) if error.is_retriable() => {}
            read => return read.unwrap(),
        }
    }
}

async fn append<Q: Sequencer>(
    sequencer: Arc<Q>,
    store: Arc<FaultyStore>,
    wakes: Arc<Wakes>,
    sequence: i32,
) {
    let options = WriterOptions { collect: Duration::from_millis(10), ..WriterOptions::default() };
    let writer = Writer::start(sequencer, store, wakes, options).unwrap();
    let pending = writer.append(vec![batch(LOG, 1, sequence, 1)]).unwrap();
    pending.outcomes().await.unwrap();
}

async fn create_topic(sequencer: &impl Sequencer) {
    let topic = Topic { id: LOG.topic, name: "topic".into(), partitions: 1 };
    sequencer.create_topic(&topic).await.unwrap();
}

fn store() -> Arc<FaultyStore> {
    let faults = Faults::new(0);
    faults.end();
    Arc::new(FaultyStore::new(faults))
}

const LOG: LogId = LogId { topic: Uuid::nil(), partition: 0 };
const HOUR: Duration = Duration::from_secs(3_600);
