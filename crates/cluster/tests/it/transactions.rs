//! Transactions in logs: what is stable, what was aborted, and markers that come twice or late.

use std::sync::Arc;
use std::time::Duration;

use moldau_cluster::{
    AbortedTransaction, AppendBatch, BatchEntry, Commit, Error, Find, LogId, Lookup, Marker,
    Memory, ObjectKey, OpenTransaction, Outcome, Part, Postgres, ProducerBatch, Reader,
    ReaderOptions, Refusal, Retention, Sequencer, Topic, Wakes, Writer, WriterOptions,
};
use moldau_records::Marker as End;
use uuid::Uuid;

use crate::batches::{batch, marker, records, transactional};
use crate::faults::{Faults, FaultyStore};
use crate::postgres_server;

#[tokio::test]
async fn what_is_stable_ends_at_the_first_open_transaction() {
    stable(Memory::default()).await;
    let server = postgres_server::shared();
    stable(Postgres::connect(&server.database().await).await.unwrap()).await;
}

async fn stable(sequencer: impl Sequencer) {
    create_topic(&sequencer).await;
    let plain = |id, first| entry(id, 0, first, Part::Outside);
    let inside = |id, first| entry(id, 0, first, Part::Inside);
    let offset = async |batch| commit(&sequencer, batch).await;
    let ends = async || {
        let found = sequencer.find(&[Find { log: LOG, offset: 0, extents_max: 0 }]).await.unwrap();
        let found = found.into_iter().flatten().next().unwrap();
        (found.last_stable_offset, found.high_watermark)
    };
    assert_eq!(offset(plain(3, 0)).await, appended(0));
    assert_eq!(ends().await, (1, 1));
    assert_eq!(offset(inside(1, 0)).await, appended(1));
    assert_eq!(offset(inside(2, 0)).await, appended(2));
    assert_eq!(offset(inside(1, 1)).await, appended(3));
    assert_eq!(offset(plain(1, 2)).await, Outcome::Refused(Refusal::InvalidTxnState));
    assert_eq!(ends().await, (1, 4));
    let keep = Retention { before_timestamp: None, bytes: Some(0) };
    assert_eq!(sequencer.retain(LOG, keep).await.unwrap(), 1, "what is not decided stays");
    assert_eq!(offset(end(1, 0, true, 5)).await, appended(4));
    assert_eq!(ends().await, (2, 5));
    assert_eq!(offset(end(2, 0, false, 6)).await, appended(5));
    assert_eq!(ends().await, (6, 6));
    let aborted = AbortedTransaction { producer_id: 2, first_offset: 2, last_offset: 5 };
    let within = async |from, to| sequencer.aborted(LOG, from, to).await;
    assert_eq!(within(1, 6).await.unwrap(), [aborted]);
    assert_eq!(within(4, 5).await.unwrap(), [aborted]);
    assert_eq!(within(1, 2).await.unwrap(), []);
    assert_eq!(within(6, 9).await.unwrap(), []);
    assert_eq!(within(0, 9).await, Err(Error::OffsetOutOfRange(0)));
    let producers = sequencer.producers(LOG).await.unwrap();
    let known: Vec<_> = producers.iter().map(|known| (known.id, known.last_sequence)).collect();
    assert_eq!(known, [(1, 1), (2, 0), (3, 0)]);
    assert_eq!(sequencer.trim(LOG, -1).await.unwrap(), 6);
    while sequencer.sweep(1).await.unwrap() {}
    assert_eq!(within(6, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_fence_names_the_logs_with_a_transaction_and_no_late_batch_opens_another() {
    fenced(Memory::default()).await;
    let server = postgres_server::shared();
    fenced(Postgres::connect(&server.database().await).await.unwrap()).await;
}

async fn fenced(sequencer: impl Sequencer) {
    create_topic(&sequencer).await;
    let inside = |id, epoch| entry(id, epoch, 0, Part::Inside);
    assert_eq!(sequencer.fence(1, 3).await.unwrap(), []);
    let late = Outcome::Refused(Refusal::InvalidProducerEpoch);
    assert_eq!(commit(&sequencer, inside(1, 2)).await, late);
    assert_eq!(commit(&sequencer, inside(2, 0)).await, appended(0));
    assert_eq!(commit(&sequencer, inside(1, 3)).await, appended(1));
    let open = |producer_id| OpenTransaction { producer_id, log: LOG };
    assert_eq!(sequencer.open_transactions(None, 9).await.unwrap(), [open(1), open(2)]);
    assert_eq!(sequencer.open_transactions(Some(open(1)), 9).await.unwrap(), [open(2)]);
    assert_eq!(sequencer.fence(1, 4).await.unwrap(), [LOG]);
    // Until its marker comes, the transaction is the one that the fence named.
    let more = entry(1, 3, 1, Part::Inside);
    assert_eq!(commit(&sequencer, more).await, appended(2));
    assert_eq!(commit(&sequencer, end(1, 4, true, 1)).await, appended(3));
    assert_eq!(sequencer.fence(1, 2).await.unwrap(), []);
    assert_eq!(commit(&sequencer, entry(1, 3, 2, Part::Inside)).await, late);
    assert_eq!(commit(&sequencer, inside(1, 4)).await, appended(4));
    sequencer.delete_topic(LOG.topic).await.unwrap();
    assert_eq!(sequencer.open_transactions(None, 9).await.unwrap(), []);
    assert_eq!(sequencer.fence(2, 1).await.unwrap(), []);
}

#[tokio::test]
async fn a_marker_that_comes_late_ends_no_later_transaction() {
    late(Memory::default()).await;
    let server = postgres_server::shared();
    late(Postgres::connect(&server.database().await).await.unwrap()).await;
}

async fn late(sequencer: impl Sequencer) {
    create_topic(&sequencer).await;
    for (batch, expected) in [
        (entry(1, 4, 0, Part::Inside), appended(0)),
        (end(1, 4, false, 7), appended(1)),
        (entry(1, 4, 1, Part::Inside), appended(2)),
        // The commit of the marker's object had no answer, so it was put in another.
        (end(1, 4, false, 7), duplicate(1)),
        (end(1, 3, true, 8), Outcome::Refused(Refusal::InvalidProducerEpoch)),
        (end(1, 5, true, 8), appended(3)),
        (entry(1, 4, 2, Part::Inside), Outcome::Refused(Refusal::InvalidProducerEpoch)),
        (entry(1, 5, 2, Part::Inside), Outcome::Refused(Refusal::OutOfOrderSequenceNumber)),
        (entry(1, 5, 0, Part::Inside), appended(4)),
        // Whoever has no decision ends what is open.
        (end(1, 5, false, -1), appended(5)),
    ] {
        assert_eq!(commit(&sequencer, batch).await, expected, "{batch:?}");
    }
    let aborted = sequencer.aborted(LOG, 0, 9).await.unwrap();
    let aborted: Vec<_> =
        aborted.iter().map(|aborted| (aborted.first_offset, aborted.last_offset)).collect();
    assert_eq!(aborted, [(0, 1), (4, 5)]);
}

#[tokio::test]
async fn a_reader_of_what_is_committed_stops_at_what_is_open_and_knows_what_was_aborted() {
    let sequencer = Arc::new(Memory::default());
    create_topic(&*sequencer).await;
    let faults = Faults::new(0);
    faults.end();
    let store = Arc::new(FaultyStore::new(faults));
    let options = WriterOptions { collect: Duration::from_millis(10), ..WriterOptions::default() };
    let writer =
        Writer::start(sequencer.clone(), store.clone(), Arc::new(Wakes::default()), options);
    let writer = writer.unwrap();
    let append = async |batches: Vec<AppendBatch>| {
        writer.append(batches).unwrap().outcomes().await.unwrap();
    };
    append(vec![batch(LOG, 9, 0, 1), transactional(LOG, 1, 0), transactional(LOG, 2, 0)]).await;
    append(vec![marker(LOG, 1, End::Abort, 1), batch(LOG, 9, 1, 1)]).await;
    let reader = Reader::new(sequencer.clone(), store, ReaderOptions::default());
    let read = async |offset| reader.read_committed(LOG, offset, 1 << 20).await.unwrap();
    let first = read(0).await;
    assert_eq!((first.last_stable_offset, first.high_watermark, first.next_offset), (2, 5, 2));
    assert_eq!(records(&first.batches), [(0, "9 0".into()), (1, "1 0".into())]);
    let aborted = AbortedTransaction { producer_id: 1, first_offset: 1, last_offset: 3 };
    assert_eq!(first.aborted, [aborted]);
    let open = read(2).await;
    assert_eq!((open.batches.len(), open.next_offset, open.aborted.len()), (0, 2, 0));
    assert_eq!(reader.read(LOG, 2, 1 << 20).await.unwrap().next_offset, 5);
    let at = async |lookup| reader.look_up(LOG, lookup).await.unwrap().map(|found| found.offset);
    assert_eq!(at(Lookup::NotBefore(1_700_000_000_000)).await, Some(0));
    assert_eq!(at(Lookup::Latest).await, Some(0));
    assert_eq!(at(Lookup::NotBefore(1_700_000_000_001)).await, None);
    sequencer.trim(LOG, 2).await.unwrap();
    assert_eq!(at(Lookup::NotBefore(0)).await, Some(2));
    assert_eq!(at(Lookup::CommittedNotBefore(0)).await, None);
    append(vec![marker(LOG, 2, End::Commit, 2)]).await;
    let rest = read(2).await;
    assert_eq!((rest.last_stable_offset, rest.next_offset), (6, 6));
    assert_eq!(rest.aborted, [aborted]);
}

/// What became of a batch, whatever the start offset is.
async fn commit(sequencer: &impl Sequencer, batch: BatchEntry) -> Outcome {
    let commit = Commit { key: ObjectKey::fresh(), batches: vec![batch] };
    match sequencer.commit(&commit).await.unwrap().remove(0) {
        Outcome::Appended { base_offset, .. } => appended(base_offset),
        Outcome::Duplicate { base_offset, .. } => duplicate(base_offset),
        refused => refused,
    }
}

async fn create_topic(sequencer: &impl Sequencer) {
    let topic = Topic { id: LOG.topic, name: "topic".into(), partitions: 1 };
    sequencer.create_topic(&topic).await.unwrap();
}

fn entry(id: i64, epoch: i16, first_sequence: i32, part: Part) -> BatchEntry {
    let producer = ProducerBatch { id, epoch, first_sequence, last_sequence: first_sequence };
    BatchEntry {
        log: LOG,
        leader_epoch: -1,
        position: 0,
        size: 100,
        offsets_count: 1,
        max_timestamp: 0,
        producer: Some(producer),
        part,
    }
}

fn end(id: i64, epoch: i16, commits: bool, decision: i64) -> BatchEntry {
    entry(id, epoch, -1, Part::Marker(Marker { commits, decision }))
}

fn appended(base_offset: i64) -> Outcome {
    Outcome::Appended { base_offset, start_offset: 0 }
}

fn duplicate(base_offset: i64) -> Outcome {
    Outcome::Duplicate { base_offset, start_offset: 0 }
}

const LOG: LogId = LogId { topic: Uuid::nil(), partition: 0 };
