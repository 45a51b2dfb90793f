//! Sorting of objects: what it joins, what it leaves, and who wins.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::sorter::{SortOptions, Sorted, sort};
use moldau_cluster::{
    Answer, Error, Extent, Find, LogId, Memory, ObjectKey, Reader, ReaderOptions, Sequencer, Store,
    Topic, Writer, WriterOptions, garbage,
};
use uuid::Uuid;

use crate::batches::{batch, records};
use crate::faults::{Faults, FaultyStore};

#[tokio::test(start_paused = true)]
async fn sorting_joins_extents_in_a_row_and_changes_no_record() {
    let world = World::start().await;
    for i in 0..3 {
        world.append(log(0), 1, i).await;
        world.append(log(1), 2, i).await;
    }
    let before = [world.records(log(0)).await, world.records(log(1)).await];
    assert_eq!(before[0].len(), 3);
    let sorted = sort(&*world.memory, &*world.store, OPTIONS).await.unwrap();
    assert_eq!(sorted, Sorted::Swapped { sources: 6, targets: 2, damaged: 0 });
    for (partition, before) in (0..).zip(&before) {
        assert_eq!(world.records(log(partition)).await, *before);
        let extents = world.extents(log(partition)).await;
        assert_eq!(extents.len(), 1);
        assert_eq!((extents[0].base_offset, extents[0].last_offset), (0, 2));
        assert!(extents[0].sorted);
    }
    assert_eq!(garbage::collect(&*world.memory, &*world.store).await.unwrap(), 6);
    assert_eq!(world.objects(), [world.extents(log(0)).await[0].object]);
    assert_eq!(world.records(log(1)).await, before[1]);
    let again = sort(&*world.memory, &*world.store, OPTIONS).await;
    assert_eq!(again, Ok(Sorted::Nothing), "a sorted object is not sorted again");
}

#[tokio::test(start_paused = true)]
async fn extents_of_two_leader_epochs_or_of_too_many_bytes_stay_apart() {
    let world = World::start().await;
    world.append(log(0), 1, 0).await;
    world.append(log(0), 1, 1).await;
    world.memory.move_logs(&[log(0)], 7).await.unwrap();
    for i in 2..5 {
        world.append(log(0), 1, i).await;
    }
    let before = world.records(log(0)).await;
    let size = usize::try_from(world.extents(log(0)).await[0].size).unwrap();
    let options = SortOptions { extent_bytes: 2 * size, ..OPTIONS };
    sort(&*world.memory, &*world.store, options).await.unwrap();
    let extents = world.extents(log(0)).await;
    let ends: Vec<_> =
        extents.iter().map(|extent| (extent.last_offset, extent.leader_epoch)).collect();
    assert_eq!(ends, [(1, 0), (3, 1), (4, 1)]);
    assert_eq!(world.records(log(0)).await, before);
}

#[tokio::test(start_paused = true)]
async fn few_small_objects_are_left_alone() {
    let world = World::start().await;
    for i in 0..2 {
        world.append(log(0), 1, i).await;
    }
    let size = usize::try_from(world.extents(log(0)).await[0].size).unwrap();
    let options = SortOptions { objects_min: 3, ..OPTIONS };
    assert_eq!(sort(&*world.memory, &*world.store, options).await, Ok(Sorted::Nothing));
    assert_eq!(world.objects().len(), 2);
    // Few large ones are not: they fill an object.
    let options = SortOptions { object_bytes: size, ..options };
    let sorted = sort(&*world.memory, &*world.store, options).await;
    assert_eq!(sorted, Ok(Sorted::Swapped { sources: 1, targets: 1, damaged: 0 }));
}

#[tokio::test(start_paused = true)]
async fn of_two_that_sort_the_same_objects_one_leaves_only_garbage() {
    let world = World::start().await;
    for i in 0..2 {
        world.append(log(0), 1, i).await;
    }
    let before = world.records(log(0)).await;
    let (memory, store) = (world.memory.clone(), world.store.clone());
    let outrun = Outrun { memory, store, is_trim: false };
    assert_eq!(sort(&*world.memory, &outrun, OPTIONS).await, Ok(Sorted::Outrun));
    assert_eq!(world.records(log(0)).await, before);
    assert_eq!(garbage::collect(&*world.memory, &*world.store).await.unwrap(), 3);
    assert_eq!(world.objects().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn extents_that_are_trimmed_meanwhile_do_not_come_back() {
    let world = World::start().await;
    for i in 0..2 {
        world.append(log(0), 1, i).await;
    }
    let (memory, store) = (world.memory.clone(), world.store.clone());
    let outrun = Outrun { memory, store, is_trim: true };
    assert_eq!(sort(&*world.memory, &outrun, OPTIONS).await, Ok(Sorted::Outrun));
    garbage::collect(&*world.memory, &*world.store).await.unwrap();
    assert_eq!(world.objects().len(), 1);
    let found = world.extents(log(0)).await;
    assert_eq!((found.len(), found[0].base_offset), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_damaged_object_stays_as_it_is_and_hinders_no_other() {
    let world = World::start().await;
    world.append(log(0), 1, 0).await;
    let key = world.objects()[0];
    let mut bytes = world.store.objects.lock().unwrap()[&key].to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    world.store.objects.lock().unwrap().insert(key, bytes.into());
    let sorted = sort(&*world.memory, &*world.store, OPTIONS).await;
    assert!(matches!(sorted, Err(Error::Damaged { key: found, .. }) if found == key));
    for i in 1..3 {
        world.append(log(0), 1, i).await;
    }
    let sorted = sort(&*world.memory, &*world.store, OPTIONS).await;
    assert_eq!(sorted, Ok(Sorted::Swapped { sources: 2, targets: 1, damaged: 1 }));
    let extents = world.extents(log(0)).await;
    assert_eq!((extents[0].object, extents[0].sorted, extents[1].sorted), (key, false, true));
}

/// A store on which something else happens before a PUT.
struct Outrun {
    memory: Arc<Memory>,
    store: Arc<FaultyStore>,
    is_trim: bool,
}

impl Store for Outrun {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        if self.is_trim {
            self.memory.trim(log(0), 1).await?;
        } else {
            sort(&*self.memory, &*self.store, OPTIONS).await?;
        }
        self.store.put(key, bytes).await
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        self.store.get(key, range).await
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        self.store.delete(keys).await
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        self.store.list(after, age, keys_max).await
    }
}

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
        let topic = Topic { id: Uuid::nil(), name: "topic".into(), partitions: 2 };
        memory.create_topic(&topic).await.unwrap();
        let writer =
            Writer::start(memory.clone(), store.clone(), Arc::default(), WriterOptions::default())
                .unwrap();
        Self { memory, store, writer }
    }

    /// One record in an object of its own.
    async fn append(&self, log: LogId, producer: i64, sequence: i32) {
        let pending = self.writer.append(vec![batch(log, producer, sequence, 1)]).unwrap();
        pending.outcomes().await.unwrap();
    }

    async fn records(&self, log: LogId) -> Vec<(i64, String)> {
        let options = ReaderOptions::default();
        let reader = Reader::new(self.memory.clone(), self.store.clone(), options);
        records(&reader.read(log, 0, usize::MAX).await.unwrap().batches)
    }

    async fn extents(&self, log: LogId) -> Vec<Extent> {
        let mut find = Find { log, offset: 0, extents_max: 99 };
        let found = self.memory.find(&[find]).await.unwrap().remove(0).unwrap();
        find.offset = found.start_offset;
        self.memory.find(&[find]).await.unwrap().remove(0).unwrap().extents
    }

    fn objects(&self) -> Vec<ObjectKey> {
        self.store.objects.lock().unwrap().keys().copied().collect()
    }
}

fn log(partition: i32) -> LogId {
    LogId { topic: Uuid::nil(), partition }
}

const OPTIONS: SortOptions = SortOptions {
    objects_min: 1,
    objects_max: 9,
    object_bytes: 1 << 20,
    extent_bytes: 1 << 20,
    timeout: Duration::from_secs(10),
};
