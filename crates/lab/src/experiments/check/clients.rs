//! Clients that send, poll, commit and abort until they are told to end, or die.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use moldau_client::{Cluster, Fetcher, PartitionHandle, Producer, Record, Start};
use moldau_records::Decompressor;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::member::Member;
use super::recorder::{Open, Replies};
use super::world::{POLL_WAIT, Polling, World};
use crate::wall_clock::timestamp_ms;

/// Records that a client goes back when it begins to read, and when it seeks, at most.
const BACK_MAX: i64 = 200;

/// Share of transactions that are aborted, and of polls before which the client seeks.
const ABORTED_SHARE: f64 = 0.2;
const SEEK_SHARE: f64 = 0.03;

/// Share of a member's turns that end with a commit.
const COMMIT_SHARE: f64 = 0.2;

/// Records of an operation.
const SENDS_MAX: usize = 4;

/// How long a client lives that is to end in the middle of its work, ms.
const LIFE_MS: std::ops::Range<u64> = 3_000..20_000;

/// Pause of a client that takes the place of one that failed.
const RESTART_PAUSE: Duration = Duration::from_millis(50);

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Sends without transactions, by an idempotent producer.
    Sender,
    /// Sends in transactions.
    Transactions,
    /// Sends and polls in transactions.
    Exchange,
    /// Polls, and seeks now and then.
    Poller,
    /// Polls as a member of the group, and commits offsets.
    Member,
}

impl Role {
    /// Two members, between which partitions move.
    const ALL: [Self; 6] = [
        Self::Sender,
        Self::Transactions,
        Self::Exchange,
        Self::Poller,
        Self::Member,
        Self::Member,
    ];

    /// What the clients of a place do.
    pub(super) fn of(place: usize) -> Self {
        Self::ALL.get(place % Self::ALL.len()).copied().unwrap_or(Self::Sender)
    }
}

/// Clients of one place, one after the other, until the end; gives when clients were ended.
pub(super) async fn occupy(world: Arc<World>, place: usize, mut random: fastrand::Rng) -> Vec<u64> {
    let mut ended = Vec::new();
    while !world.is_over() {
        let number = world.recorder.client();
        let client = Client { world: &world, place, number, random: random.fork() };
        let life = match world.clients_end {
            true => Duration::from_millis(random.u64(LIFE_MS)),
            false => Duration::MAX,
        };
        match timeout(life, client.work(Role::of(place))).await {
            Ok(Ok(())) => {}
            // The next client may have more luck.
            Ok(Err(error)) => {
                tracing::debug!(number, %error, "a client gives up");
                sleep(RESTART_PAUSE).await;
            }
            Err(_) => ended.push(world.recorder.now_us()),
        }
    }
    ended
}

/// Waits for the clients of all places, or ends them where they are if the system is gone; gives
/// when clients were ended by their time.
pub(super) async fn join(mut places: JoinSet<Vec<u64>>, is_gone: &Notify) -> Vec<u64> {
    let mut ended = Vec::new();
    loop {
        tokio::select! {
            next = places.join_next() => match next {
                Some(Ok(of_place)) => ended.extend(of_place),
                Some(Err(error)) => resume_unwind(error.into_panic()),
                None => return ended,
            },
            () = is_gone.notified() => {
                places.shutdown().await;
                return ended;
            }
        }
    }
}

struct Client<'a> {
    world: &'a World,
    place: usize,
    number: u32,
    random: fastrand::Rng,
}

impl Client<'_> {
    async fn work(mut self, role: Role) -> moldau_client::Result<()> {
        let cluster = self.world.connect().await?;
        match role {
            Role::Sender => self.send_alone(&cluster).await,
            Role::Transactions => self.transact(&cluster, None).await,
            Role::Exchange => {
                let polling = self.begin_polling(&cluster).await?;
                self.transact(&cluster, Some(polling)).await
            }
            Role::Poller => {
                let mut polling = self.begin_polling(&cluster).await?;
                let replies = Replies::new(&self.world.recorder);
                while !self.world.is_over() {
                    let mut open = Open::alone(&replies, self.number);
                    self.poll(&mut polling, &mut open).await?;
                }
                Ok(())
            }
            Role::Member => {
                let (world, random) = (self.world, &mut self.random);
                let mut member = Member::join(world, &cluster, self.number).await?;
                while !world.is_over() {
                    member.turn(random.f64() < COMMIT_SHARE).await?;
                }
                member.leave().await
            }
        }
    }

    async fn send_alone(&mut self, cluster: &Cluster) -> moldau_client::Result<()> {
        let (producer, replies) = self.world.producer(cluster, None).await?;
        let handles = self.world.handles(&producer).await?;
        while !self.world.is_over() {
            self.pause().await;
            let mut open = Open::alone(&replies, self.number);
            for _ in 0..self.random.usize(1..=SENDS_MAX) {
                let partition = self.random.usize(..handles.len());
                send(&producer, &handles, partition, &mut open)?;
            }
            producer.flush().await;
        }
        Ok(())
    }

    async fn transact(
        &mut self,
        cluster: &Cluster,
        mut polling: Option<Polling>,
    ) -> moldau_client::Result<()> {
        let id = self.world.transactional_id(self.place);
        let (producer, replies) = self.world.producer(cluster, Some(id)).await?;
        let handles = self.world.handles(&producer).await?;
        while !self.world.is_over() {
            self.pause().await;
            let mut partitions: Vec<usize> = (0..handles.len()).collect();
            self.random.shuffle(&mut partitions);
            partitions.truncate(self.random.usize(1..=3));
            let chosen: Vec<PartitionHandle> =
                partitions.iter().filter_map(|at| handles.get(*at)).copied().collect();
            producer.begin_transaction(&chosen).await?;
            let mut open = Open::transaction(&replies, self.number);
            for _ in 0..self.random.usize(2..=SENDS_MAX) {
                let at = self.random.usize(..partitions.len());
                let partition = partitions.get(at).copied().unwrap_or_default();
                send(&producer, &handles, partition, &mut open)?;
                if self.random.bool() {
                    producer.flush().await;
                }
                if let Some(polling) = polling.as_mut().filter(|_| self.random.bool()) {
                    self.poll(polling, &mut open).await?;
                }
            }
            self.end(&producer, open).await?;
        }
        Ok(())
    }

    /// Commits a transaction or aborts it.
    async fn end(&mut self, producer: &Producer, mut open: Open) -> moldau_client::Result<()> {
        producer.flush().await;
        if open.has_failed() || self.random.f64() < ABORTED_SHARE {
            return producer.abort_transaction().await;
        }
        open.ask();
        producer.commit_transaction().await?;
        open.committed();
        Ok(())
    }

    async fn begin_polling(&mut self, cluster: &Cluster) -> moldau_client::Result<Polling> {
        let fetcher = World::fetcher(cluster);
        for partition in 0..self.world.ends.len() {
            self.assign(&fetcher, partition).await?;
        }
        Ok(Polling { fetcher, decompressor: Decompressor::default() })
    }

    /// Moves to a place not far from the end of a partition.
    async fn assign(&mut self, fetcher: &Fetcher, partition: usize) -> moldau_client::Result<()> {
        let end = self.world.ends.get(partition).map_or(0, |end| end.load(Ordering::Relaxed));
        let start = Start::Offset((end - self.random.i64(0..BACK_MAX)).max(0));
        let number = i32::try_from(partition).unwrap_or(i32::MAX);
        fetcher.assign(&self.world.topic, number, start).await
    }

    /// Seeks now and then, and polls once.
    async fn poll(&mut self, polling: &mut Polling, open: &mut Open) -> moldau_client::Result<()> {
        if self.random.f64() < SEEK_SHARE {
            let partition = self.random.usize(..self.world.ends.len());
            let from_us = self.world.recorder.now_us();
            self.assign(&polling.fetcher, partition).await?;
            open.position(from_us, u32::try_from(partition).unwrap_or(u32::MAX));
        }
        let from_us = self.world.recorder.now_us();
        let Ok(fetched) = timeout(POLL_WAIT, polling.fetcher.next()).await else { return Ok(()) };
        let (partition, records) = polling.records(&fetched?)?;
        if let (Some(last), Some(end)) =
            (records.last(), self.world.ends.get(usize::try_from(partition).unwrap_or(usize::MAX)))
        {
            end.fetch_max(last.offset, Ordering::Relaxed);
            open.poll(from_us, partition, records);
        }
        Ok(())
    }

    /// Rests, so that the rate of all clients is bounded.
    async fn pause(&mut self) {
        let share = self.random.f64() * 2.0;
        sleep(self.world.pause.mul_f64(share)).await;
    }
}

/// Sends one record to a partition.
fn send(
    producer: &Producer,
    handles: &[PartitionHandle],
    partition: usize,
    open: &mut Open,
) -> moldau_client::Result<()> {
    let Some(handle) = handles.get(partition) else { return Ok(()) };
    let value = open.send(u32::try_from(partition).unwrap_or(u32::MAX));
    let bytes = value.to_be_bytes();
    // Retention deletes what is old.
    let timestamp = timestamp_ms();
    let record = Record { token: value, timestamp, key: None, value: Some(&bytes), headers: &[] };
    let sent = producer.send(*handle, &record);
    if sent.is_err() {
        open.unsend();
    }
    sent
}
