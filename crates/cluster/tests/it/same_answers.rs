//! PostgreSQL and the sequencer in memory give the same answers to any requests.

use std::time::Duration;

use moldau_cluster::{
    BatchEntry, Commit, Find, LogId, Marker, Memory, ObjectKey, OpenTransaction, Part, Postgres,
    ProducerBatch, ProducerPlace, Retention, Sequencer, Swap, Topic,
};
use uuid::Uuid;

use crate::postgres_server;

#[tokio::test]
async fn random_requests_get_the_same_answers_from_both() {
    let server = postgres_server::shared();
    for seed in 0..LIVES {
        let postgres = Postgres::connect(&server.database().await).await.unwrap();
        let mut life = Life {
            random: fastrand::Rng::with_seed(seed),
            topics: vec![],
            commits: vec![],
            swaps: vec![],
        };
        let memory = Memory::default();
        for step in 0..REQUESTS {
            let request = if step < TOPICS { life.topic() } else { life.request(&memory).await };
            let (ours, theirs) =
                (answer(&memory, &request).await, answer(&postgres, &request).await);
            assert_eq!(ours, theirs, "seed {seed}, request {step}: {request:?}");
        }
    }
}

#[derive(Debug)]
enum Request {
    Commit(Commit),
    Find(Vec<Find>),
    FindTime(LogId, i64),
    FindLatest(LogId),
    Aborted(LogId, i64, i64),
    Fence(i64, i16),
    RemoveFences(Vec<i64>),
    ExpireProducers(Option<ProducerPlace>, Duration, i32),
    OpenTransactions(Option<OpenTransaction>, i64),
    Producers(LogId),
    Sizes(Vec<LogId>),
    Trim(LogId, i64),
    Retain(LogId, Retention),
    Sweep,
    Unsorted(i64),
    Swap(Swap),
    Condemn(Vec<ObjectKey>),
    Forget(Vec<ObjectKey>),
    BeginGeneration,
    RemoveKeys,
    CreateTopic(Topic),
    GrowTopic(Uuid, i32),
    DeleteTopic(Uuid),
    MoveLogs(Vec<LogId>, i32),
}

/// The answer, and all that can be seen after a change.
async fn answer(sequencer: &impl Sequencer, request: &Request) -> String {
    match request {
        Request::Commit(commit) => format!("{:?}", sequencer.commit(commit).await),
        Request::Find(wanted) => format!("{:?}", sequencer.find(wanted).await),
        Request::FindTime(log, time) => format!("{:?}", sequencer.find_time(*log, *time).await),
        Request::FindLatest(log) => format!("{:?}", sequencer.find_latest(*log).await),
        Request::Aborted(log, from, to) => {
            format!("{:?}", sequencer.aborted(*log, *from, *to).await)
        }
        Request::Sizes(logs) => format!("{:?}", sequencer.sizes(logs).await),
        Request::Producers(log) => format!("{:?}", sequencer.producers(*log).await),
        Request::Fence(producer_id, epoch) => {
            format!("{:?}", sequencer.fence(*producer_id, *epoch).await)
        }
        Request::RemoveFences(producers) => {
            let before = sequencer.fences(None, 1).await;
            sequencer.remove_fences(producers).await.unwrap();
            format!("{before:?} {:?}", sequencer.fences(Some(-1), 9).await)
        }
        Request::ExpireProducers(after, age, most) => {
            format!("{:?}", sequencer.expire_producers(*after, *age, *most).await)
        }
        Request::OpenTransactions(after, most) => {
            format!("{:?}", sequencer.open_transactions(*after, *most).await)
        }
        Request::Trim(log, before) => format!("{:?}", sequencer.trim(*log, *before).await),
        Request::Retain(log, keep) => format!("{:?}", sequencer.retain(*log, *keep).await),
        Request::Sweep => {
            while sequencer.sweep(3).await.unwrap() {}
            format!("{:?} {:?}", sequencer.dead(1_000).await, sequencer.topics().await)
        }
        Request::Unsorted(most) => format!("{:?}", sequencer.unsorted(*most).await),
        Request::Swap(swap) => format!("{:?}", sequencer.swap(swap).await),
        Request::Condemn(keys) => format!("{:?}", sequencer.condemn(keys).await),
        Request::Forget(keys) => format!("{:?}", sequencer.forget(keys).await),
        Request::BeginGeneration => {
            sequencer.begin_generation(Duration::ZERO).await.unwrap();
            format!("{:?}", sequencer.dead(1_000).await)
        }
        Request::RemoveKeys => format!("{:?}", sequencer.remove_keys(1_000).await),
        Request::CreateTopic(topic) => format!("{:?}", sequencer.create_topic(topic).await),
        Request::GrowTopic(id, to) => format!("{:?}", sequencer.grow_topic(*id, *to).await),
        Request::DeleteTopic(id) => format!("{:?}", sequencer.delete_topic(*id).await),
        Request::MoveLogs(logs, to) => format!("{:?}", sequencer.move_logs(logs, *to).await),
    }
}

struct Life {
    random: fastrand::Rng,
    topics: Vec<Uuid>,
    commits: Vec<Commit>,
    swaps: Vec<Swap>,
}

impl Life {
    async fn request(&mut self, memory: &Memory) -> Request {
        match self.random.u32(..100) {
            0..45 => Request::Commit(self.commit()),
            45..50 => Request::Unsorted(self.random.i64(0..40)),
            50..60 => Request::Find((0..3).map(|_| self.find()).collect()),
            60 => Request::FindTime(self.log(), self.random.i64(0..60)),
            61 => Request::Sizes(vec![self.log(), self.log()]),
            62 => Request::FindLatest(self.log()),
            63 => Request::Producers(self.log()),
            64 => Request::Aborted(self.log(), self.random.i64(-1..40), self.random.i64(0..60)),
            65..69 => Request::Trim(self.log(), self.random.i64(-1..40)),
            69 => {
                let after = ProducerPlace { log: self.log(), producer_id: self.random.i64(0..2) };
                let after = self.random.bool().then_some(after);
                let age = Duration::from_hours(self.random.u64(..2));
                Request::ExpireProducers(after, age, self.random.i32(0..4))
            }
            70..74 => {
                let before_timestamp = self.random.bool().then(|| self.random.i64(0..60));
                let bytes = self.random.bool().then(|| self.random.i64(0..2_000));
                Request::Retain(self.log(), Retention { before_timestamp, bytes })
            }
            74..80 => Request::Sweep,
            80..87 => Request::Swap(self.swap(memory).await),
            87..90 => Request::Condemn(vec![self.key(), self.key(), self.fresh_key()]),
            90 => Request::Forget(vec![self.key(), self.key()]),
            91 => Request::BeginGeneration,
            92 => Request::RemoveKeys,
            93..95 => self.topic(),
            95 => Request::GrowTopic(self.log().topic, self.random.i32(1..5)),
            96 => Request::DeleteTopic(self.log().topic),
            97 if self.random.u32(..4) == 0 => {
                Request::RemoveFences(vec![self.random.i64(0..2), self.random.i64(0..2)])
            }
            97 => Request::Fence(self.random.i64(0..2), self.random.i16(0..3)),
            98 => {
                let after = OpenTransaction { producer_id: 0, log: self.log() };
                let after = self.random.bool().then_some(after);
                Request::OpenTransactions(after, self.random.i64(0..4))
            }
            _ => Request::MoveLogs(vec![self.log(), self.log()], self.random.i32(0..3)),
        }
    }

    fn topic(&mut self) -> Request {
        if !self.topics.is_empty() && self.random.u32(..4) == 0 {
            let (id, name) = (self.log().topic, format!("topic {}", self.random.u32(..TOPICS)));
            return Request::CreateTopic(Topic { id, name, partitions: 1 });
        }
        let (id, name) = (self.id(), format!("topic {}", self.random.u32(..TOPICS)));
        self.topics.push(id);
        Request::CreateTopic(Topic { id, name, partitions: self.random.i32(1..4) })
    }

    fn commit(&mut self) -> Commit {
        if !self.commits.is_empty() && self.random.u32(..6) == 0 {
            return self.commits[self.random.usize(..self.commits.len())].clone();
        }
        let mut position = 0;
        let count = self.random.usize(1..8);
        let mut log = self.log();
        let batches = (0..count).map(|_| {
            if self.random.bool() {
                log = self.log();
            }
            let entry = self.batch(log, position);
            position += i64::from(entry.size) + self.random.i64(0..2);
            entry
        });
        let batches = batches.collect();
        let commit = Commit { key: self.fresh_key(), batches };
        self.commits.push(commit.clone());
        commit
    }

    fn batch(&mut self, log: LogId, position: i64) -> BatchEntry {
        let offsets_count = self.random.i32(1..4);
        let first_sequence = self.random.i32(0..6);
        BatchEntry {
            log,
            leader_epoch: if self.random.u32(..8) == 0 { self.random.i32(0..3) } else { -1 },
            position,
            size: self.random.i32(61..200),
            offsets_count,
            max_timestamp: self.random.i64(-1..60),
            producer: self.random.bool().then(|| ProducerBatch {
                id: self.random.i64(0..2),
                epoch: i16::from(self.random.u32(..10) == 0),
                first_sequence,
                last_sequence: first_sequence + offsets_count - 1,
            }),
            part: self.part(),
        }
    }

    fn part(&mut self) -> Part {
        match self.random.u32(..10) {
            0..3 => Part::Outside,
            3..6 => Part::Inside,
            _ => {
                let (commits, decision) = (self.random.bool(), self.random.i64(-1..60));
                Part::Marker(Marker { commits, decision })
            }
        }
    }

    /// Joins what stands in one log, as far as it is still there later.
    async fn swap(&mut self, memory: &Memory) -> Swap {
        if !self.swaps.is_empty() && self.random.u32(..4) == 0 {
            return self.swaps[self.random.usize(..self.swaps.len())].clone();
        }
        let find = self.find();
        let found = memory.find(&[find]).await.unwrap().remove(0);
        let extents = found.map(|found| found.extents).unwrap_or_default();
        let target = extents.first().zip(extents.last()).map(|(first, last)| {
            (find.log, moldau_cluster::Extent { base_offset: first.base_offset, ..*last })
        });
        let sources = extents.iter().map(|extent| (find.log, *extent)).collect();
        let key = if self.random.u32(..9) == 0 { self.key() } else { self.fresh_key() };
        let swap = Swap { key, sources, targets: target.into_iter().collect() };
        self.swaps.push(swap.clone());
        swap
    }

    fn find(&mut self) -> Find {
        let (log, offset) = (self.log(), self.random.i64(-1..40));
        Find { log, offset, extents_max: self.random.i64(1..6) }
    }

    fn log(&mut self) -> LogId {
        let topic = self.topics[self.random.usize(..self.topics.len())];
        LogId { topic, partition: self.random.i32(-1..4) }
    }

    fn key(&mut self) -> ObjectKey {
        let used = self.commits.get(self.random.usize(..self.commits.len().max(1)));
        used.map_or(ObjectKey(Uuid::from_u128(1)), |commit| commit.key)
    }

    /// Of a generation that may have expired.
    fn fresh_key(&mut self) -> ObjectKey {
        let generation = self.random.u128(0..8);
        ObjectKey(Uuid::from_u128((self.random.u128(..) << 32) | generation))
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_u128(self.random.u128(..))
    }
}

const TOPICS: u32 = 3;
const LIVES: u64 = 8;
const REQUESTS: u32 = 300;
