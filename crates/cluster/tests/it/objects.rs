//! Objects, and the tasks that write and read them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::object::{self, ObjectBuilder};
use moldau_cluster::{
    Error, Extent, LogId, Memory, ObjectKey, Outcome, Reader, ReaderOptions, Sequencer, Store,
    Topic, Writer, WriterOptions,
};
use uuid::Uuid;

use crate::batches::{batch, records};
use crate::faults::{Faults, FaultyStore, pass};

#[test]
fn an_object_holds_the_batches_of_each_log_together() {
    let mut builder = ObjectBuilder::default();
    let sent = [batch(log(1), 0, 0, 2), batch(log(0), 1, 0, 1), batch(log(1), 0, 2, 1)];
    for batch in &sent {
        builder.push(batch.log, batch.bytes.clone());
    }
    let (object, positions) = builder.finish();
    for (batch, position) in sent.iter().zip(&positions) {
        let at = usize::try_from(*position).unwrap();
        assert!(object[at..].starts_with(&batch.bytes));
    }
    let runs = object::runs(&object).unwrap();
    assert_eq!(runs.iter().map(|run| run.log).collect::<Vec<_>>(), [log(0), log(1)]);
    assert_eq!((runs[0].position, runs[1].position), (positions[1], positions[0]));
    let header = "4d444f4200000001fdcf1c0500000002\
        0000000000000000000000000000000000000000000000000000005000000047\
        0000000000000000000000000000000000000001000000000000009700000098";
    let hex: String = object[..80].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, header);
    for at in 0..object.len() {
        let mut damaged = object.to_vec();
        damaged[at] ^= 1;
        assert!(at >= 80 || object::runs(&damaged).is_err(), "byte {at}");
        assert!(object::runs(&object[..at]).is_err(), "{at} bytes");
    }
}

#[test]
fn a_changed_byte_of_a_batch_is_found() {
    let sent = batch(log(0), 0, 0, 3);
    let extent = Extent {
        base_offset: 10,
        last_offset: 12,
        object: ObjectKey::fresh(),
        position: 0,
        size: i32::try_from(sent.bytes.len()).unwrap(),
        leader_epoch: 4,
        sorted: false,
        max_timestamp: 0,
    };
    let read = object::batches(&sent.bytes, &extent).unwrap();
    assert_eq!(records(std::slice::from_ref(&read))[2], (12, "0 2".to_owned()));
    let sorted = Extent { sorted: true, ..extent };
    assert_eq!(object::batches(&read, &sorted).unwrap(), read);
    // Offset and leader epoch are not of the batch.
    for at in (8..12).chain(16..sent.bytes.len()) {
        let mut damaged = sent.bytes.to_vec();
        damaged[at] ^= 1;
        assert!(object::batches(&damaged, &extent).is_err(), "byte {at}");
    }
    for other in [Extent { last_offset: 13, ..extent }, Extent { base_offset: 9, ..extent }] {
        assert!(object::batches(&sent.bytes, &other).is_err());
    }
    // No checksum covers the offset, from which the last one wraps around here.
    let mut wrapped = read.to_vec();
    wrapped[..8].copy_from_slice(&(i64::MAX - 1).to_be_bytes());
    assert!(object::batches(&wrapped, &sorted).is_err());
}

#[tokio::test(start_paused = true)]
async fn appends_of_a_quarter_second_share_an_object() {
    let world = World::start(WriterOptions::default()).await;
    let first = world.writer.append(vec![batch(log(0), 0, 0, 2), batch(log(1), 1, 0, 1)]).unwrap();
    let second = world.writer.append(vec![batch(log(0), 0, 2, 1)]).unwrap();
    assert_eq!(offsets(&first.outcomes().await), [0, 0]);
    assert_eq!(offsets(&second.outcomes().await), [2]);
    assert_eq!(world.store.objects.lock().unwrap().len(), 1);
    let reader = Reader::new(world.memory.clone(), world.store.clone(), ReaderOptions::default());
    let read = reader.read(log(0), 1, 1 << 20).await.unwrap();
    assert_eq!((read.high_watermark, read.batches.len()), (3, 1));
    let values: Vec<_> = records(&read.batches).into_iter().map(|(_, value)| value).collect();
    assert_eq!(values, ["0 0", "0 1", "0 2"]);
    assert_eq!(reader.read(log(0), 3, 1).await.unwrap().batches.len(), 0);
    assert_eq!(reader.read(log(0), 4, 1).await, Err(Error::OffsetOutOfRange(4)));
    // The other log is in the block that was read.
    world.store.objects.lock().unwrap().clear();
    assert_eq!(records(&reader.read(log(1), 0, 1).await.unwrap().batches).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_appends_until_there_are_answers() {
    let sent = batch(log(0), 0, 0, 1);
    let queue_bytes_max = 2 * sent.bytes.len();
    let world = World::start(WriterOptions { queue_bytes_max, ..WriterOptions::default() }).await;
    let pending = [0, 1].map(|_| world.writer.append(vec![sent.clone()]).unwrap());
    let full = world.writer.append(vec![sent.clone()]);
    assert_eq!(full.err(), Some(Error::QueueFull));
    for pending in pending {
        pending.outcomes().await.unwrap();
    }
    let last = world.writer.append(vec![sent]).unwrap();
    world.writer.stop().await;
    assert!(matches!(last.outcomes().await.as_deref(), Ok([Outcome::Duplicate { .. }])));
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_object_was_collected_goes_under_another_key() {
    let world = World::start(WriterOptions::default()).await;
    let (store, memory) = (world.store.clone(), world.memory.clone());
    let hasty = Hasty { store, memory, is_always: false };
    let writer = Writer::start(
        world.memory.clone(),
        Arc::new(hasty),
        Arc::default(),
        WriterOptions::default(),
    )
    .unwrap();
    let pending = writer.append(vec![batch(log(0), 0, 0, 1)]).unwrap();
    assert_eq!(offsets(&pending.outcomes().await), [0]);
    assert_eq!(world.store.objects.lock().unwrap().len(), 2);
    assert_eq!(world.memory.dead(9).await.unwrap().len(), 1);
}

/// The producer was told an error after which it does not send again.
#[tokio::test(start_paused = true)]
async fn batches_whose_objects_are_collected_until_the_deadline_can_be_sent_again() {
    let world = World::start(WriterOptions::default()).await;
    let (store, memory) = (world.store.clone(), world.memory.clone());
    let hasty = Arc::new(Hasty { store, memory, is_always: true });
    let options = WriterOptions::default();
    let writer = Writer::start(world.memory.clone(), hasty, Arc::default(), options).unwrap();
    let sent = batch(log(0), 0, 0, 1);
    let late = writer.append(vec![sent.clone()]).unwrap().outcomes().await.unwrap_err();
    assert!(late.is_retriable(), "{late}");
    let again = world.writer.append(vec![sent]).unwrap();
    assert_eq!(offsets(&again.outcomes().await), [0]);
}

/// A store whose collector is faster than the first commit, or always.
struct Hasty {
    store: Arc<FaultyStore>,
    memory: Arc<Memory>,
    is_always: bool,
}

impl Store for Hasty {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Result<(), Error> {
        self.store.put(key, bytes).await?;
        if self.is_always || self.memory.dead(1).await?.is_empty() {
            self.memory.condemn(&[key]).await?;
            pass(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Result<Bytes, Error> {
        self.store.get(key, range).await
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Result<(), Error> {
        self.store.delete(keys).await
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> Result<Vec<ObjectKey>, Error> {
        self.store.list(after, age, keys_max).await
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let store = Arc::new(FaultyStore::new(Faults::new(0)));
    let memory = Arc::new(Memory::default());
    let default = WriterOptions::default();
    for options in [
        WriterOptions { collect: Duration::from_millis(9), ..default },
        WriterOptions { collect: Duration::from_millis(1_001), ..default },
        WriterOptions { objects_in_flight: 0, ..default },
        WriterOptions { object_bytes: 1 << 30, ..default },
    ] {
        let started = Writer::start(memory.clone(), store.clone(), Arc::default(), options);
        assert!(matches!(started, Err(Error::Settings(_))), "{options:?}");
    }
}

struct World {
    memory: Arc<Memory>,
    store: Arc<FaultyStore>,
    writer: Writer,
}

impl World {
    async fn start(options: WriterOptions) -> Self {
        let faults = Faults::new(0);
        faults.end();
        let (memory, store) = (Arc::new(Memory::default()), Arc::new(FaultyStore::new(faults)));
        let topic = Topic { id: Uuid::nil(), name: "topic".into(), partitions: 2 };
        memory.create_topic(&topic).await.unwrap();
        let writer = Writer::start(memory.clone(), store.clone(), Arc::default(), options).unwrap();
        Self { memory, store, writer }
    }
}

fn offsets(outcomes: &Result<Vec<Outcome>, Error>) -> Vec<i64> {
    let offset = |outcome: &Outcome| match outcome {
        Outcome::Appended { base_offset, .. } => *base_offset,
        other => panic!("{other:?}"),
    };
    outcomes.as_ref().unwrap().iter().map(offset).collect()
}

fn log(partition: i32) -> LogId {
    LogId { topic: Uuid::nil(), partition }
}
