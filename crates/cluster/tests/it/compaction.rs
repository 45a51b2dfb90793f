//! Compaction: what stays of a log, and what hinders it.

use std::sync::Arc;
use std::time::Duration;

use moldau_cluster::compactor::{CompactOptions, Compacted, Dirty, compact};
use moldau_cluster::sorter::{SortOptions, sort};
use moldau_cluster::{
    AppendBatch, Extent, Find, LogId, Memory, ObjectKey, Part, ProducerBatch, Reader,
    ReaderOptions, Records, Sequencer, Topic, Writer, WriterOptions, garbage,
};
use moldau_records::{
    Attributes, BatchBuilder, BatchOptions, Compression, Compressor, Marker, Producer, iter_batches,
};
use uuid::Uuid;

use crate::batches::marker;
use crate::faults::{Faults, FaultyStore};

const NOW_MS: i64 = 1_700_000_000_000;
const LOG: LogId = LogId { topic: Uuid::nil(), partition: 0 };

const OPTIONS: CompactOptions = CompactOptions {
    min_lag_ms: 0,
    max_lag_ms: i64::MAX,
    delete_retention_ms: 1_000,
    min_dirty_ratio: 0.0,
    map_bytes: 1 << 16,
    object_bytes: 1 << 20,
    extent_bytes: 1 << 20,
    timeout: Duration::from_secs(10),
    seed: 7,
};

/// Offset, key and value of a record.
type Shown = (i64, String, Option<String>);

struct World {
    memory: Arc<Memory>,
    store: Arc<FaultyStore>,
    writer: Writer,
}

impl World {
    async fn start() -> Self {
        let faults = Faults::new(0);
        faults.end();
        let (memory, store) = (Arc::new(Memory::default()), Arc::new(FaultyStore::new(faults)));
        let topic = Topic { id: Uuid::nil(), name: "topic".into(), partitions: 1 };
        memory.create_topic(&topic).await.unwrap();
        let writer =
            Writer::start(memory.clone(), store.clone(), Arc::default(), WriterOptions::default());
        Self { memory, store, writer: writer.unwrap() }
    }

    /// A batch in an object of its own.
    async fn append(&self, records: &[(&str, Option<&str>)]) {
        self.send(batch(None, records)).await;
    }

    async fn send(&self, batch: AppendBatch) {
        self.writer.append(vec![batch]).unwrap().outcomes().await.unwrap();
    }

    /// Sorts all that is there.
    async fn sort(&self) {
        let options = SortOptions { objects_min: 1, ..SortOptions::default() };
        sort(&*self.memory, &*self.store, options).await.unwrap();
    }

    async fn compact(&self, offset: i64, options: CompactOptions, now_ms: i64) -> Compacted {
        let dirty = Dirty { log: LOG, offset };
        compact(&*self.memory, &*self.store, dirty, &options, now_ms).await.unwrap()
    }

    /// As [`Self::compact`] of a log that is due: records read and retained, and what is dirty.
    async fn cleaned(&self, offset: i64, now_ms: i64) -> (u64, u64, i64) {
        match self.compact(offset, OPTIONS, now_ms).await {
            Compacted::Cleaned { records_read, records_retained, dirty_offset } => {
                (records_read, records_retained, dirty_offset)
            }
            other => panic!("{other:?}"),
        }
    }

    async fn read(&self, offset: i64) -> Records {
        let options = ReaderOptions::default();
        let reader = Reader::new(self.memory.clone(), self.store.clone(), options);
        reader.read_committed(LOG, offset, usize::MAX).await.unwrap()
    }

    async fn records(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        for bytes in self.read(0).await.batches {
            for batch in iter_batches(&bytes).map(Result::unwrap).filter(|it| !it.is_control()) {
                for record in batch.records_of_payload(batch.payload()).unwrap() {
                    let record = record.unwrap();
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    let key = text(record.key().unwrap());
                    shown.push((record.offset(), key, record.value().map(text)));
                }
            }
        }
        shown
    }

    async fn extents(&self) -> Vec<Extent> {
        let find = Find { log: LOG, offset: 0, extents_max: 999 };
        self.memory.find(&[find]).await.unwrap().remove(0).unwrap().extents
    }

    fn objects(&self) -> Vec<ObjectKey> {
        self.store.objects.lock().unwrap().keys().copied().collect()
    }
}

fn batch(producer: Option<Producer>, records: &[(&str, Option<&str>)]) -> AppendBatch {
    let attributes = Attributes::default().with_transactional(producer.is_some());
    let options = BatchOptions { attributes, producer, ..BatchOptions::default() };
    let mut builder = BatchBuilder::new(options);
    for (key, value) in records {
        builder.append(NOW_MS, Some(key.as_bytes()), value.map(str::as_bytes), []).unwrap();
    }
    let count = i32::try_from(records.len()).unwrap();
    AppendBatch {
        log: LOG,
        leader_epoch: -1,
        offsets_count: count,
        max_timestamp: NOW_MS,
        producer: producer.map(|producer| ProducerBatch {
            id: producer.id,
            epoch: producer.epoch,
            first_sequence: producer.base_sequence,
            last_sequence: producer.base_sequence + count - 1,
        }),
        part: if producer.is_some() { Part::Inside } else { Part::Outside },
        bytes: builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap(),
    }
}

fn shown(offset: i64, key: &str, value: &str) -> Shown {
    (offset, key.to_owned(), Some(value.to_owned()))
}

#[tokio::test(start_paused = true)]
async fn of_each_key_the_last_record_stays_at_its_offset() {
    let world = World::start().await;
    world.append(&[("a", Some("1")), ("b", Some("1"))]).await;
    world.append(&[("a", Some("2"))]).await;
    world.append(&[("c", Some("1")), ("a", Some("3"))]).await;
    world.sort().await;
    assert_eq!(world.cleaned(0, NOW_MS).await, (5, 3, 5));
    let left = [shown(1, "b", "1"), shown(3, "c", "1"), shown(4, "a", "3")];
    assert_eq!(world.records().await, left);
    let extents = world.extents().await;
    assert_eq!((extents.len(), extents[0].base_offset, extents[0].last_offset), (1, 0, 4));
    // Readers of any offset go on with the next record that is left.
    for offset in 0..5 {
        let read = world.read(offset).await;
        assert_eq!((read.next_offset, read.high_watermark), (5, 5));
        assert!(!read.batches.is_empty());
    }
    garbage::collect(&*world.memory, &*world.store).await.unwrap();
    assert_eq!(world.objects(), [extents[0].object]);
    assert_eq!(world.compact(5, OPTIONS, NOW_MS).await, Compacted::Nothing);

    // A later round removes what the one before has kept.
    world.append(&[("c", Some("2")), ("d", Some("1")), ("b", Some("2"))]).await;
    world.sort().await;
    assert_eq!(world.cleaned(5, NOW_MS).await, (6, 4, 8));
    let left = [shown(4, "a", "3"), shown(5, "c", "2"), shown(6, "d", "1"), shown(7, "b", "2")];
    assert_eq!(world.records().await, left);
}

#[tokio::test(start_paused = true)]
async fn only_sorted_extents_that_are_dirty_and_old_enough_are_cleaned() {
    let world = World::start().await;
    world.append(&[("a", Some("1"))]).await;
    world.append(&[("a", Some("2"))]).await;
    assert_eq!(world.compact(0, OPTIONS, NOW_MS).await, Compacted::Nothing, "nothing is sorted");
    world.sort().await;
    let young = CompactOptions { min_lag_ms: 1_000, ..OPTIONS };
    assert_eq!(world.compact(0, young, NOW_MS + 999).await, Compacted::Nothing);
    world.append(&[("a", Some("3"))]).await;
    assert_eq!(world.cleaned(0, NOW_MS).await, (2, 1, 2));
    assert_eq!(world.records().await, [shown(1, "a", "2"), shown(2, "a", "3")]);
    world.sort().await;
    let clean = CompactOptions { min_dirty_ratio: 0.9, ..OPTIONS };
    assert_eq!(world.compact(2, clean, NOW_MS).await, Compacted::Nothing);
    let aged = CompactOptions { max_lag_ms: 10, ..clean };
    assert!(matches!(world.compact(2, aged, NOW_MS + 11).await, Compacted::Cleaned { .. }));
    assert_eq!(world.records().await, [shown(2, "a", "3")]);
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_stays_for_its_time_from_the_first_cleaning_on() {
    let world = World::start().await;
    world.append(&[("a", Some("1")), ("b", Some("1"))]).await;
    world.append(&[("a", None)]).await;
    world.append(&[("b", Some("2"))]).await;
    world.sort().await;
    world.cleaned(0, NOW_MS).await;
    let left = [(2, "a".to_owned(), None), shown(3, "b", "2")];
    assert_eq!(world.records().await, left);
    for (now_ms, dirty, is_left) in [(NOW_MS + 999, 4, true), (NOW_MS + 1_000, 5, false)] {
        world.append(&[("b", Some("3"))]).await;
        world.sort().await;
        world.cleaned(dirty, now_ms).await;
        let has_tombstone = world.records().await.iter().any(|(_, key, _)| key == "a");
        assert_eq!(has_tombstone, is_left);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_aborted_goes_and_supersedes_nothing_and_open_transactions_are_left_alone() {
    let world = World::start().await;
    let producer = |id, base_sequence| Some(Producer { id, epoch: 0, base_sequence });
    world.append(&[("a", Some("1"))]).await;
    world.send(batch(producer(1, 0), &[("a", Some("aborted"))])).await;
    world.send(marker(LOG, 1, Marker::Abort, 1)).await;
    world.send(batch(producer(2, 0), &[("b", Some("1"))])).await;
    world.send(marker(LOG, 2, Marker::Commit, 2)).await;
    world.send(batch(producer(2, 1), &[("b", Some("2"))])).await;
    world.send(marker(LOG, 2, Marker::Commit, 3)).await;
    world.sort().await;
    world.send(batch(producer(3, 0), &[("a", Some("open"))])).await;
    world.append(&[("a", Some("3"))]).await;
    world.sort().await;
    assert_eq!(world.cleaned(0, NOW_MS).await.2, 7, "up to the open transaction");
    let left = [shown(0, "a", "1"), shown(5, "b", "2")];
    assert_eq!(world.records().await, left);
    let read = world.read(0).await;
    let markers = read.batches.iter().flat_map(|bytes| iter_batches(bytes).flatten());
    let markers = markers.filter(|batch| batch.is_control()).map(|batch| batch.base_offset());
    assert_eq!(markers.collect::<Vec<_>>(), [2, 6], "that of the abort, and of what is left");
    world.send(marker(LOG, 3, Marker::Commit, 4)).await;
    world.sort().await;
    assert_eq!(world.cleaned(7, NOW_MS).await.2, 10);
    assert_eq!(world.records().await, [shown(5, "b", "2"), shown(8, "a", "3")]);
}

#[tokio::test(start_paused = true)]
async fn little_memory_cleans_a_log_in_rounds_and_in_small_objects() {
    let world = World::start().await;
    let (mut expected, count) = (Vec::new(), 300);
    for i in 0..count {
        let (key, value) = (format!("{}", i % 100), i.to_string());
        world.append(&[(&key, Some(&value))]).await;
        if i >= count - 100 {
            expected.push(shown(i, &key, &value));
        }
    }
    let options = SortOptions { objects_min: 1, extent_bytes: 200, ..SortOptions::default() };
    sort(&*world.memory, &*world.store, options).await.unwrap();
    let before = world.extents().await.len();
    // Some forty keys.
    let little =
        CompactOptions { map_bytes: 1 << 10, object_bytes: 1_000, extent_bytes: 400, ..OPTIONS };
    let (mut dirty, mut rounds) = (0, 0);
    while let Compacted::Cleaned { dirty_offset, .. } = world.compact(dirty, little, NOW_MS).await {
        assert!(dirty_offset > dirty);
        (dirty, rounds) = (dirty_offset, rounds + 1);
    }
    assert!(rounds > 3 && dirty == count);
    // Within a round a map holds fewer keys than there are: all that is left is read at last.
    assert_eq!(world.records().await, expected);
    assert!(world.extents().await.len() < before);
}

#[tokio::test(start_paused = true)]
async fn extents_that_are_trimmed_meanwhile_do_not_come_back() {
    let world = World::start().await;
    for value in ["1", "2", "3"] {
        world.append(&[("a", Some(value))]).await;
    }
    world.sort().await;
    world.memory.trim(LOG, -1).await.unwrap();
    assert_eq!(world.compact(0, OPTIONS, NOW_MS).await, Compacted::Nothing);
    world.append(&[("a", Some("4"))]).await;
    world.sort().await;
    world.cleaned(0, NOW_MS).await;
    let read = world.read(3).await;
    assert_eq!((read.start_offset, read.next_offset), (3, 4));
}
