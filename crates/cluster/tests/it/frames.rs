//! The log of frames: who may append to it, what followers read, and which brokers are alive.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    BrokerRow, Error, Frame, Frames, Memory, Ownership, Postgres, Registration, Wakes,
};
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout};

use crate::postgres_server;

#[tokio::test]
async fn random_requests_for_frames_get_the_same_answers_from_both() {
    let server = postgres_server::shared();
    for seed in 0..LIVES {
        let postgres = Postgres::connect(&server.database().await).await.unwrap();
        let mut random = fastrand::Rng::with_seed(seed);
        let mut ours = World::of(Memory::default());
        let mut theirs = World::of(postgres);
        for step in 0..REQUESTS {
            let request = Request::random(&mut random);
            let (ours, theirs) = (ours.answer(&request).await, theirs.answer(&request).await);
            assert_eq!(ours, theirs, "seed {seed}, request {step}: {request:?}");
        }
    }
}

#[tokio::test]
async fn an_owner_that_is_busy_stays_and_one_that_hangs_gives_way_and_appends_nothing_more() {
    let server = postgres_server::shared();
    let settings = server.database().await;
    let (hangs, goes_on) =
        (Postgres::connect(&settings).await.unwrap(), Postgres::connect(&settings).await.unwrap());
    // Nobody runs the tasks of this runtime behind the append, as in a broker that is busy.
    let stopped = std::thread::spawn({
        let hangs = hangs.clone();
        move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let owned = runtime.block_on(async {
                let owned = hangs.claim(1, "a:1").await.unwrap().unwrap();
                hangs.append(owned.epoch, 0, vec![bytes(1)]).await.unwrap();
                owned
            });
            (runtime, owned)
        }
    });
    let (runtime, owned) = stopped.join().unwrap();
    assert!(goes_on.claim(2, "b:1").await.unwrap().is_none());
    let started = Instant::now();
    let next = claim(&goes_on, 2).await;
    let took = started.elapsed().as_secs();
    assert!((6..30).contains(&took), "{took} s");
    assert_eq!((next.epoch, next.next_sequence), (owned.epoch + 1, 1));
    goes_on.append(next.epoch, 1, vec![bytes(2)]).await.unwrap();
    // A pool of its own, as the connections of the other are in the runtime that is stopped.
    let late = Postgres::connect(&settings).await.unwrap();
    let answer = late.append(owned.epoch, 1, vec![bytes(3)]).await;
    assert_eq!(answer, Err(Error::Fenced { by: next.epoch }));
    let told = std::thread::spawn(move || {
        runtime.block_on(async { timeout(LONG, owned.lost()).await }).expect("it is told");
    });
    told.join().unwrap();
    assert_eq!(goes_on.read(0, 100).await.unwrap(), [frame(0, 1), frame(1, 2)]);
}

#[tokio::test]
async fn a_broker_whose_connection_ends_is_told_and_can_begin_again() {
    let server = postgres_server::Server::start();
    let postgres = Postgres::connect(&server.database().await).await.unwrap();
    let (owned, registered) =
        (claim(&postgres, 1).await, postgres.register(broker(1)).await.unwrap());
    assert_eq!(postgres.register(broker(1)).await.err(), Some(Error::BrokerIdTaken(1)));
    postgres.append(owned.epoch, 0, vec![bytes(1)]).await.unwrap();
    let cluster_id = postgres.cluster_id().await.unwrap();
    server.crash();
    timeout(LONG, owned.lost()).await.expect("the owner is told");
    timeout(LONG, registered.lost()).await.expect("the broker is told");
    let again = claim(&postgres, 1).await;
    assert_eq!((again.epoch, again.next_sequence), (owned.epoch + 1, 1));
    assert_eq!(postgres.brokers().await.unwrap(), []);
    let _registered = postgres.register(broker(1)).await.unwrap();
    assert_eq!(postgres.brokers().await.unwrap(), [broker(1)]);
    assert_eq!(postgres.cluster_id().await.unwrap(), cluster_id);
}

#[tokio::test]
async fn followers_are_woken_by_frames_of_other_brokers() {
    let server = postgres_server::shared();
    let postgres = Postgres::connect(&server.database().await).await.unwrap();
    let (ours, theirs) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let mut follower = theirs.frames();
    let _telling = [postgres.tell(ours.clone()), postgres.tell(theirs.clone())];
    // Whoever begins to listen looks once.
    timeout(LONG, follower.changed()).await.expect("it begins").unwrap();
    let owned = claim(&postgres, 1).await;
    postgres.append(owned.epoch, 0, vec![bytes(1)]).await.unwrap();
    ours.announce_frames();
    timeout(LONG, follower.changed()).await.expect("it is woken").unwrap();
}

#[tokio::test]
async fn the_sessions_of_a_broker_in_memory_end_together() {
    let memory = Memory::default();
    let (owned, registered) = (claim(&memory, 1).await, memory.register(broker(1)).await.unwrap());
    let other = memory.register(broker(2)).await.unwrap();
    memory.end_sessions(1);
    owned.lost().await;
    registered.lost().await;
    assert_eq!(memory.owner().await.unwrap(), None);
    assert_eq!(memory.brokers().await.unwrap(), [broker(2)]);
    let successor = claim(&memory, 2).await;
    drop((owned, registered));
    assert_eq!(memory.owner().await.unwrap().unwrap().epoch, successor.epoch);
    drop(other);
    assert_eq!(memory.brokers().await.unwrap(), []);
}

#[derive(Debug)]
enum Request {
    Claim(usize),
    Release(usize),
    /// The epoch and the next sequence of the log, moved by these.
    Append(i64, i64, Vec<Bytes>),
    Read(i64, usize),
    PutSnapshot(i64, i64, Bytes),
    Register(usize),
    Leave(usize),
}

impl Request {
    fn random(random: &mut fastrand::Rng) -> Self {
        let broker = random.usize(..BROKERS);
        let is_wrong = random.u32(..4) == 0;
        let epoch = if is_wrong { random.i64(-1..2) } else { 0 };
        match random.u32(..100) {
            0..10 => Self::Claim(broker),
            10..15 => Self::Release(broker),
            15..60 => {
                let frames = (0..random.usize(..4)).map(|_| bytes(random.u8(..2))).collect();
                let moved = if random.u32(..3) == 0 { random.i64(-4..2) } else { 0 };
                Self::Append(epoch, moved, frames)
            }
            60..80 => Self::Read(random.i64(-1..60), random.usize(..12)),
            80..88 => Self::PutSnapshot(epoch, random.i64(-8..2), bytes(random.u8(..))),
            88..95 => Self::Register(broker),
            _ => Self::Leave(broker),
        }
    }
}

struct World<F> {
    frames: F,
    next: i64,
    epoch: i64,
    owner: Option<(usize, Ownership)>,
    registered: [Option<Registration>; BROKERS],
}

impl<F: Frames> World<F> {
    fn of(frames: F) -> Self {
        Self { frames, next: 0, epoch: 0, owner: None, registered: [const { None }; BROKERS] }
    }

    /// The answer, and all that can be seen.
    async fn answer(&mut self, request: &Request) -> String {
        let answer = self.ask(request).await;
        let owner = self.frames.owner().await;
        let brokers = self.frames.brokers().await;
        format!("{answer} {owner:?} {brokers:?} {:?}", self.frames.snapshot().await)
    }

    async fn ask(&mut self, request: &Request) -> String {
        match request {
            Request::Claim(broker) => {
                let claimed = self.frames.claim(id(*broker), &format!("host:{broker}")).await;
                let Some(owned) = claimed.unwrap() else { return "none".into() };
                (self.epoch, self.next) = (owned.epoch, owned.next_sequence);
                self.owner = Some((*broker, owned));
                format!("{} {}", self.epoch, self.next)
            }
            Request::Release(broker) => {
                if self.owner.take_if(|(owner, _)| owner == broker).is_some() {
                    timeout(LONG, async { while self.frames.owner().await.unwrap().is_some() {} })
                        .await
                        .expect("it is released");
                }
                String::new()
            }
            Request::Append(epoch, moved, frames) => {
                let (epoch, first) = (self.epoch + epoch, self.next + moved);
                let answer = self.frames.append(epoch, first, frames.clone()).await;
                if answer.is_ok() {
                    self.next = self.next.max(first + i64::try_from(frames.len()).unwrap());
                }
                format!("{answer:?}")
            }
            Request::Read(from, bytes_max) => {
                format!("{:?}", self.frames.read(*from, *bytes_max).await)
            }
            Request::PutSnapshot(epoch, moved, bytes) => {
                let (epoch, sequence) = (self.epoch + epoch, self.next + moved);
                format!("{:?}", self.frames.put_snapshot(epoch, sequence, bytes.clone()).await)
            }
            Request::Register(broker) => {
                let answer = self.frames.register(self::broker(id(*broker))).await;
                let error = answer.as_ref().err().cloned();
                if let Ok(registration) = answer {
                    self.registered[*broker] = Some(registration);
                }
                format!("{error:?}")
            }
            Request::Leave(broker) => {
                if self.registered[*broker].take().is_some() {
                    let gone = async {
                        let is_there = |row: &BrokerRow| row.id == id(*broker);
                        while self.frames.brokers().await.unwrap().iter().any(is_there) {}
                    };
                    timeout(LONG, gone).await.expect("it leaves");
                }
                String::new()
            }
        }
    }
}

/// Claims until nobody else owns the log.
pub(crate) async fn claim(frames: &(impl Frames + ?Sized), broker: i32) -> Ownership {
    let owned = async {
        loop {
            match frames.claim(broker, "host:1").await {
                Ok(Some(owned)) => return owned,
                Ok(None) => {}
                Err(error) => assert!(error.is_retriable(), "{error}"),
            }
        }
    };
    timeout(LONG, owned).await.expect("the session of the owner ends")
}

fn broker(id: i32) -> BrokerRow {
    BrokerRow { id, host: "host".into(), port: 9092, rack: (id > 1).then(|| "rack".into()) }
}

fn id(broker: usize) -> i32 {
    i32::try_from(broker).unwrap()
}

fn frame(sequence: i64, byte: u8) -> Frame {
    Frame { sequence, bytes: bytes(byte) }
}

fn bytes(byte: u8) -> Bytes {
    vec![byte; 5].into()
}

const BROKERS: usize = 3;
const LIVES: u64 = 3;
const REQUESTS: u32 = 150;
pub(crate) const LONG: Duration = Duration::from_secs(60);
