//! Whoever changes topics and groups under kills: topics come and go, records are deleted, offsets
//! are committed. Each change is tried until it is acknowledged, and holds from then on.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use moldau_client::{Admin, Cluster, Error, TopicPartition, TopicSpec};
use moldau_protocol::{ErrorCode, Uuid};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::account::{Account, Plan, Problems, Writer};
use super::audit::Reader;
use crate::traffic::{connect, soon};

/// Topics that come and go: few names, so that each stands for many topics in turn.
const NAMES: [&str; 4] = ["passing-a", "passing-b", "passing-c", "passing-d"];

/// Most partitions of such a topic.
const PARTITIONS_MAX: i32 = 30;

/// Most runs of records that are written to such a topic.
const RUNS_MAX: u32 = 120;

/// Stamps left out between two of these topics.
const STAMPS: u32 = 100;

/// Time between changes of one kind.
const TICK: Duration = Duration::from_millis(20);

/// The group that commits.
const GROUP: &str = "readers";

/// Changes that were acknowledged.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Guards them.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Topics that exist; not those that are being created or deleted.
    existing: HashMap<Uuid, String>,
    /// Topics that must never be seen again.
    deleted: HashSet<Uuid>,
    committed: i64,
    records_deleted: u64,
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic under the lock")
    }

    /// How many topics and how many times records were deleted.
    pub(super) fn counts(&self) -> (u64, u64) {
        let state = self.lock();
        (state.deleted.len() as u64, state.records_deleted)
    }

    /// Notes a topic that was created.
    pub(super) async fn note_created(&self, cluster: &Cluster, name: &str) -> Uuid {
        let id = soon("a topic", cluster.topic(name)).await.unwrap().topic.id;
        self.lock().existing.insert(id, name.to_owned());
        id
    }

    /// What holds as soon as a broker is back: the topics that were created are there, those that
    /// were deleted are not, and nothing that was committed is forgotten.
    pub(super) async fn check(&self, cluster: &Cluster, problems: &Problems) {
        let (existing, deleted, committed) = {
            let state = self.lock();
            (state.existing.clone(), state.deleted.clone(), state.committed)
        };
        let topics = soon("topics", cluster.all_topics()).await.unwrap().topics;
        let found: HashSet<_> = topics.values().map(|topic| topic.topic.id).collect();
        for id in found.intersection(&deleted) {
            problems.add(format!("topic {id} is back, deleted as it was"));
        }
        for (id, name) in existing.iter().filter(|(id, _)| !found.contains(id)) {
            // It may have been deleted in the meantime.
            if self.lock().existing.contains_key(id) {
                problems.add(format!("topic {name} with id {id} is lost"));
            }
        }
        let offsets = soon("offsets", cluster.committed_offsets(GROUP)).await.unwrap();
        let found = offsets.values().min().copied();
        if found < Some(committed) {
            problems.add(format!("{committed} was committed, {found:?} is"));
        }
    }
}

/// Does something again and again until it is acknowledged.
async fn acknowledged<T, F>(what: &str, mut attempt: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, Error>>,
{
    soon(what, async {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        loop {
            ticks.tick().await;
            match attempt().await {
                Ok(done) => return done,
                Err(error) => assert!(error.is_retriable(), "{what}: {error}"),
            }
        }
    })
    .await
}

/// Creates a topic. A repeated attempt may find that the first had created it.
pub(super) async fn create(cluster: &Cluster, plan: &Plan) {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let configs = plan.configs.iter().map(own).collect();
    let spec = TopicSpec { configs, ..TopicSpec::new(&plan.topic, plan.partitions) };
    let admin = &Admin::new(cluster);
    let spec = &spec;
    acknowledged("a creation", || async move {
        match admin.create_topics(std::slice::from_ref(spec), false).await?.remove(0) {
            Err(error) if error.code() == Some(ErrorCode::TopicAlreadyExists) => Ok(()),
            created => created,
        }
    })
    .await;
}

/// Deletes a topic. A repeated attempt may find that the first had deleted it.
async fn delete(cluster: &Cluster, name: &str) {
    let admin = &Admin::new(cluster);
    acknowledged("a deletion", || async move {
        match admin.delete_topics(&[name.to_owned()]).await?.remove(0) {
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => Ok(()),
            deleted => deleted,
        }
    })
    .await;
}

/// A topic that will go again.
struct Passing {
    id: Uuid,
    account: Arc<Account>,
    /// One that has not met another topic of this name.
    cluster: Cluster,
}

/// Creates topics, writes to them, reads them and deletes them.
pub(super) struct Passers {
    pub(super) broker: SocketAddr,
    pub(super) changes: Arc<Changes>,
    pub(super) problems: Problems,
    pub(super) progress: watch::Sender<u64>,
    pub(super) random: fastrand::Rng,
    /// The stamp of the next topic.
    pub(super) stamp: u32,
}

impl Passers {
    /// Goes on until told to stop; the topics that are left.
    pub(super) async fn pass_until(mut self, stop: watch::Receiver<bool>) -> Vec<Arc<Account>> {
        let mut existing: HashMap<&str, Passing> = HashMap::new();
        while !*stop.borrow() {
            let name = NAMES[self.random.usize(..NAMES.len())];
            match existing.remove(name) {
                None => {
                    existing.insert(name, self.create(name).await);
                }
                Some(passing) => {
                    let accounts = [Arc::clone(&passing.account)];
                    Reader::start(&passing.cluster, &accounts).await.read_all().await;
                    self.changes.lock().existing.remove(&passing.id);
                    delete(&passing.cluster, name).await;
                    self.changes.lock().deleted.insert(passing.id);
                }
            }
        }
        existing.into_values().map(|passing| passing.account).collect()
    }

    async fn create(&mut self, name: &str) -> Passing {
        let compacts = self.random.bool();
        let mut plan = Plan {
            topic: name.to_owned(),
            partitions: self.random.i32(1..=PARTITIONS_MAX),
            configs: vec![("retention.ms", "-1")],
            deletes: false,
            compacts,
            value_bytes: 20..400,
            runs_per_tick: 0,
        };
        if compacts {
            plan.configs.extend(super::COMPACTED);
        }
        let cluster = connect(self.broker).await;
        create(&cluster, &plan).await;
        let id = self.changes.note_created(&cluster, name).await;
        let account = Account::new(plan, self.stamp, &self.problems);
        self.stamp += STAMPS;
        let random = self.random.fork();
        let mut writer = Writer::start(&cluster, &account, &self.progress, random).await;
        for _ in 0..self.random.u32(0..RUNS_MAX) {
            writer.send_run().await;
        }
        writer.flush().await;
        Passing { id, account, cluster }
    }
}

/// Deletes the oldest records of a topic, a part of what was acknowledged at a time.
pub(super) async fn delete_records_until(
    cluster: Cluster,
    account: Arc<Account>,
    changes: Arc<Changes>,
    mut random: fastrand::Rng,
    stop: watch::Receiver<bool>,
) {
    let admin = &Admin::new(&cluster);
    let mut ticks = ticks();
    while !*stop.borrow() {
        ticks.tick().await;
        let index = random.i32(0..account.plan.partitions);
        let known = account.known_of(index);
        let before = random.i64(known.start..=known.acknowledged_end);
        let asked = &[(TopicPartition::of(&account.plan.topic, index), before)];
        let start = acknowledged("a deletion of records", || async move {
            admin.delete_records(asked).await.remove(0).1
        });
        let start = start.await;
        if start < before {
            account.problem(index, &format!("begins at {start} after deletion to {before}"));
        }
        account.note(index, |known| known.start = known.start.max(start));
        changes.lock().records_deleted += u64::from(start > known.start);
    }
}

/// Commits one offset after the other, of all partitions of a topic.
pub(super) async fn commit_until(
    cluster: Cluster,
    account: Arc<Account>,
    changes: Arc<Changes>,
    stop: watch::Receiver<bool>,
) {
    let mut ticks = ticks();
    for offset in 1.. {
        if *stop.borrow() {
            return;
        }
        ticks.tick().await;
        let partitions = account.topic_partitions();
        let offsets = partitions.map(|partition| (partition, offset)).collect();
        acknowledged("a commit", || cluster.commit_offsets(GROUP, &offsets)).await;
        changes.lock().committed = offset;
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}
