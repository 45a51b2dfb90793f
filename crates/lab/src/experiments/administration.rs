//! Partitions made and moved: how long a cluster takes until every broker knows, and what idle
//! partitions cost it.
//!
//! A round does everything on every system once, forwards and backwards in turn. Partitions hold
//! records when they are moved. All records are read back from the new place.

use std::thread;
use std::time::{Duration, Instant};

use moldau_client::{Admin, Cluster, ClusterOptions, ConnectionOptions, Partition, TopicSpec};
use serde::Deserialize;

use super::bench::{Bench, Named, Path};
use super::rounds;
use super::running::Running;
use crate::administration::{
    AdministrationClaim, AdministrationRecord, Creation, Duty, Reassignment,
};
use moldau_load::generator::{self, Layout, Setup, nanos, runtime, target};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::CpuMeter;

/// Pause between two questions whether something has happened, and so what times may be off.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long a cluster may take for anything that is asked of it.
const LIMIT: Duration = Duration::from_secs(120);

/// Time after a topic was made until the cluster counts as at rest, and how long it is watched.
const SETTLE: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(2);

/// Most partitions of a topic. All replicas of a partition are on one machine.
const PARTITIONS_MAX: u16 = 10_000;

/// Replicas of the partitions that are moved: as many as two acknowledgements take.
const REPLICAS_MOVED: i16 = 2;

/// What is written to partitions before they are moved: 10 MB of values in all.
const RECORDS_PER_SECOND: u64 = 5_000;
const RECORD_BYTES: usize = 1_024;
const WARMUP_MS: u64 = 1_500;
const WINDOW_MS: u64 = 500;

/// What is made and moved, as the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdministrationFile {
    /// The survey's systems that do it.
    pub systems: Vec<String>,
    /// Partitions of the topics that are made; the short form has the first alone.
    pub created: Vec<u16>,
    /// Partitions that are moved.
    pub moved: u16,
    /// What was published.
    #[serde(default)]
    pub claims: Vec<AdministrationClaim>,
}

impl AdministrationFile {
    /// Refuses what cannot be measured.
    pub(super) fn check(&self, systems: &[&str], pairs: &[&str]) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Plan(format!("administration: {text}")));
        if self.systems.is_empty() {
            return refuse("systems: one at least".into());
        }
        if let Some(unknown) = self.systems.iter().find(|it| !systems.contains(&it.as_str())) {
            return refuse(format!("{unknown:?} is not one of the systems"));
        }
        if self.created.is_empty() || !self.created.is_sorted_by(|one, next| one < next) {
            return refuse("created: numbers of partitions, rising".into());
        }
        let counts = self.created.iter().chain([&self.moved]);
        if counts.into_iter().any(|count| !(1..=PARTITIONS_MAX).contains(count)) {
            return refuse(format!("created, moved: 1 to {PARTITIONS_MAX} partitions"));
        }
        for AdministrationClaim { says, pair, figure, partitions, .. } in &self.claims {
            if pair.as_ref().is_some_and(|name| !pairs.contains(&name.as_str())) {
                return refuse(format!("claim {says:?}: {pair:?} is not one of the pairs"));
            }
            if !self.measures(&self.created, *figure, *partitions) {
                return refuse(format!("claim {says:?}: {partitions} partitions are not measured"));
            }
        }
        Ok(())
    }

    /// The partitions of the topics that are made.
    fn created(&self, quick: bool) -> &[u16] {
        self.created.get(..1).filter(|_| quick).unwrap_or(&self.created)
    }

    fn measures(&self, created: &[u16], duty: Duty, partitions: u16) -> bool {
        match duty {
            Duty::Creation | Duty::IdleProcessors => created.contains(&partitions),
            Duty::Reassignment => self.moved == partitions,
        }
    }

    /// Steps of it on one system.
    pub(super) fn steps(&self, rounds: u32, quick: bool) -> u32 {
        let each = self.created(quick).len() + 1;
        1 + rounds * u32::try_from(each).unwrap_or(u32::MAX)
    }
}

/// Makes and moves partitions in every round, but for those that would end after `limit`, and gives
/// how many these are.
pub(super) fn run(
    file: &AdministrationFile,
    quick: bool,
    rounds: u32,
    limit: Duration,
    bench: &mut Bench<'_>,
    running: &mut [Running],
) -> Result<(AdministrationRecord, u32), Error> {
    let created = file.created(quick);
    let is_measured =
        |claim: &&AdministrationClaim| file.measures(created, claim.figure, claim.partitions);
    let mut record = AdministrationRecord {
        created: created.to_vec(),
        moved: file.moved,
        claims: file.claims.iter().filter(is_measured).cloned().collect(),
        ..AdministrationRecord::default()
    };
    for Running { path, .. } in running.iter() {
        bench.step(&format!("Warm up: {}", path.arm));
        // What a JVM does for the first time takes it longer than ever after.
        if let Some(partitions) = created.first() {
            let topic = bench.topic();
            make_topic(path, &TopicSpec::new(&topic, (*partitions).into()))?;
            delete(path, &topic)?;
        }
    }
    let steps = running.len() * (created.len() + 1);
    let left_out = rounds::in_time(bench, limit, rounds, steps, |bench, round| {
        let mut order: Vec<&mut Running> = running.iter_mut().collect();
        if !round.is_multiple_of(2) {
            order.reverse();
        }
        for Running { path, system, .. } in order {
            for partitions in created {
                record.creations.push(create(path, *partitions, round, bench)?);
            }
            record.reassignments.push(reassign(path, file.moved, round, bench)?);
            system.check_alive()?;
        }
        Ok(())
    })?;
    Ok((record, left_out))
}

/// Makes a topic with the replicas that the system gives one, watches the cluster at rest, and
/// removes the topic.
fn create(
    path: &Path,
    partitions: u16,
    round: u32,
    bench: &mut Bench<'_>,
) -> Result<Creation, Error> {
    let what = Duty::Creation.words(partitions);
    bench.step(&format!("{what}: {}, {}", path.arm, round + 1));
    let topic = bench.topic();
    let made = make_topic(path, &TopicSpec::new(&topic, partitions.into()))?;
    thread::sleep(SETTLE);
    let meter = CpuMeter::start(&path.processes)?;
    let begun = Instant::now();
    thread::sleep(IDLE);
    let idle_ns = nanos(begun.elapsed());
    let (usages, _) = meter.stop()?;
    delete(path, &topic)?;
    Ok(Creation {
        arm: path.arm.clone(),
        round,
        brokers: made.brokers,
        partitions,
        answered_ns: made.answered_ns,
        led_ns: made.led_ns,
        idle_cpu_ns: usages.iter().map(|usage| usage.cpu_ns).sum(),
        idle_ns,
    })
}

/// Writes to a topic, moves all its replicas, and reads back what was written.
fn reassign(
    path: &Path,
    partitions: u16,
    round: u32,
    bench: &mut Bench<'_>,
) -> Result<Reassignment, Error> {
    let case = Duty::Reassignment.words(partitions);
    bench.step(&format!("{case}: {}, {}", path.arm, round + 1));
    let layout = Layout::Scattered;
    let setup = Setup { layout, ..bench.setup(path, round, &workload(partitions)) };
    let topic = setup.topic.clone();
    let replication_factor = REPLICAS_MOVED;
    let spec = TopicSpec { replication_factor, ..TopicSpec::new(&topic, partitions.into()) };
    let made = make_topic(path, &spec)?;
    let produced = generator::produce(&setup)?;
    let records = produced.acked_records;
    let moved = runtime()?.block_on(move_replicas(path, &topic, partitions))?;
    bench.read_back(Named { case: &case, path, pair: round }, setup, produced)?;
    delete(path, &topic)?;
    Ok(Reassignment {
        arm: path.arm.clone(),
        round,
        brokers: made.brokers,
        partitions,
        records,
        answered_ns: moved.answered_ns,
        moved_ns: moved.moved_ns,
    })
}

fn workload(partitions: u16) -> Workload {
    Workload {
        pace: Pace::Scheduled { per_second: RECORDS_PER_SECOND, arrivals: Arrivals::Constant },
        record_bytes: RECORD_BYTES,
        filler: Filler::Text,
        partitions,
        producers: 1,
        batch_bytes: 16 * 1024,
        linger_us: 5_000,
        consume: false,
        tails: 0,
        warmup_ms: WARMUP_MS,
        window_ms: WINDOW_MS,
        tuning: Tuning::default(),
    }
}

/// Which brokers a client asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Any,
    /// The one at its address alone.
    One,
}

async fn connect(path: &Path, address: &str, asked: Asked) -> Result<Cluster, Error> {
    let security = path.clients.security.clone();
    let connection =
        ConnectionOptions { security, request_timeout: LIMIT, ..ConnectionOptions::default() };
    let options = ClusterOptions {
        connection,
        retry_backoff: POLL_INTERVAL,
        retry_backoff_max: POLL_INTERVAL,
        operation_timeout: LIMIT,
        bootstrap_only: asked == Asked::One,
        ..ClusterOptions::default()
    };
    let connected = Cluster::connect(&[address], options).await;
    connected.map_err(target("connecting for administration"))
}

/// A client of each broker, which asks no other.
async fn views(path: &Path, cluster: &Cluster) -> Result<Vec<Cluster>, Error> {
    let mut views = Vec::new();
    for address in cluster.metadata().brokers.values() {
        views.push(connect(path, &address.to_string(), Asked::One).await?);
    }
    Ok(views)
}

/// How long a topic took to be made.
struct Made {
    brokers: u16,
    answered_ns: u64,
    led_ns: u64,
}

/// Makes a topic and waits until each broker knows a leader of every partition.
fn make_topic(path: &Path, spec: &TopicSpec) -> Result<Made, Error> {
    let action = format!("making {} partitions", spec.partitions);
    let names = std::slice::from_ref(&spec.name);
    let _making = path.control.making(names)?;
    runtime()?.block_on(async {
        let cluster = connect(path, &path.bootstrap, Asked::Any).await?;
        let views = views(path, &cluster).await?;
        let begun = Instant::now();
        let specs = std::slice::from_ref(spec);
        let answers = Admin::new(&cluster).create_topics(specs, false).await;
        let answers = answers.map_err(target(&action))?;
        path.control.doubt_those_there(names, &answers);
        for answer in answers {
            answer.map_err(target(&action))?;
        }
        let answered_ns = nanos(begun.elapsed());
        for view in &views {
            while !is_led(view, spec).await {
                pause(begun, &action).await?;
                view.refresh().await.map_err(target(&action))?;
            }
        }
        let brokers = u16::try_from(views.len()).unwrap_or(u16::MAX);
        Ok(Made { brokers, answered_ns, led_ns: nanos(begun.elapsed()) })
    })
}

/// Whether the broker of a view knows a leader of every partition. One that does not know the topic
/// is asked again later.
async fn is_led(view: &Cluster, spec: &TopicSpec) -> bool {
    let known = view.topic(&spec.name).await;
    known.is_ok_and(|topic| {
        let is_whole = i32::try_from(topic.partitions.len()) == Ok(spec.partitions);
        is_whole && topic.partitions.iter().all(|partition| partition.leader.is_some())
    })
}

/// How long a move took.
struct Moved {
    answered_ns: u64,
    moved_ns: u64,
}

/// Moves every replica to the next broker and waits until it is there and no other is left.
async fn move_replicas(path: &Path, topic: &str, partitions: u16) -> Result<Moved, Error> {
    let action = format!("moving {partitions} partitions");
    let failed = target(&action);
    let cluster = connect(path, &path.bootstrap, Asked::Any).await?;
    let admin = Admin::new(&cluster);
    let mut brokers: Vec<i32> = cluster.metadata().brokers.keys().copied().collect();
    brokers.sort_unstable();
    if brokers.len() <= usize::from(REPLICAS_MOVED.unsigned_abs()) {
        return Err(Error::Plan(format!("{action}: a cluster of two brokers has nowhere to")));
    }
    let wanted = moves(&cluster.topic(topic).await.map_err(&failed)?.partitions, &brokers);
    let begun = Instant::now();
    admin.reassign_partitions(topic, &wanted).await.map_err(&failed)?;
    let answered_ns = nanos(begun.elapsed());
    loop {
        let left = admin.reassignments_left(topic, partitions.into()).await.map_err(&failed)?;
        if left == 0 {
            cluster.refresh().await.map_err(&failed)?;
            let known = cluster.topic(topic).await.map_err(&failed)?;
            if are_there(&known.partitions, &wanted) {
                return Ok(Moved { answered_ns, moved_ns: nanos(begun.elapsed()) });
            }
        }
        pause(begun, &action).await?;
    }
}

/// Each replica of each partition at the broker after its own, in a ring.
fn moves(partitions: &[Partition], brokers: &[i32]) -> Vec<(i32, Vec<i32>)> {
    let next = |node: &i32| {
        let own = brokers.iter().position(|broker| broker == node)?;
        brokers.get((own + 1) % brokers.len()).copied()
    };
    let moved = |partition: &Partition| partition.replicas.iter().filter_map(next).collect();
    partitions.iter().map(|partition| (partition.index, moved(partition))).collect()
}

/// Whether the replicas of every partition are where they are wanted, in whatever order.
fn are_there(partitions: &[Partition], wanted: &[(i32, Vec<i32>)]) -> bool {
    let sorted = |nodes: &[i32]| {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        nodes
    };
    wanted.iter().all(|(index, replicas)| {
        let found = partitions.iter().find(|partition| partition.index == *index);
        found.is_some_and(|partition| sorted(&partition.replicas) == sorted(replicas))
    })
}

/// Deletes a topic and waits until no broker knows it, so that what follows is not measured beside
/// it.
fn delete(path: &Path, topic: &str) -> Result<(), Error> {
    path.control.delete_topic(topic)?;
    let action = format!("deleting topic {topic}");
    runtime()?.block_on(async {
        let cluster = connect(path, &path.bootstrap, Asked::Any).await?;
        let begun = Instant::now();
        for view in views(path, &cluster).await? {
            while view.all_topics().await.map_err(target(&action))?.topics.contains_key(topic) {
                pause(begun, &action).await?;
            }
        }
        Ok(())
    })
}

/// Waits a moment, unless the time for it all is up.
async fn pause(begun: Instant, action: &str) -> Result<(), Error> {
    if begun.elapsed() > LIMIT {
        let reason = format!("not done after {} s", LIMIT.as_secs());
        return Err(Error::Target { action: action.into(), reason });
    }
    tokio::time::sleep(POLL_INTERVAL).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Band;

    fn partition(index: i32, replicas: &[i32]) -> Partition {
        Partition { index, leader: None, replicas: replicas.to_vec(), in_sync: Vec::new() }
    }

    #[test]
    fn every_replica_moves_to_the_next_broker_and_is_there_in_whatever_order() {
        let partitions = [partition(0, &[1, 2]), partition(1, &[3, 1])];
        let wanted = moves(&partitions, &[1, 2, 3]);
        assert_eq!(wanted, [(0, vec![2, 3]), (1, vec![1, 2])]);
        assert!(!are_there(&partitions, &wanted));
        assert!(are_there(&[partition(1, &[2, 1]), partition(0, &[2, 3])], &wanted));
        assert!(!are_there(&[partition(0, &[2, 3])], &wanted), "one partition is not known");
    }

    fn file() -> AdministrationFile {
        AdministrationFile {
            systems: vec!["kraft".into()],
            created: vec![10, 100],
            moved: 50,
            claims: vec![AdministrationClaim {
                says: "s".into(),
                at: "a".into(),
                figure: Duty::Creation,
                partitions: 100,
                published: None,
                holds: Band { at_least: None, at_most: Some(1.0) },
                pair: Some("p".into()),
            }],
        }
    }

    fn refused(change: impl FnOnce(&mut AdministrationFile)) -> String {
        let mut file = file();
        change(&mut file);
        file.check(&["kraft"], &["p"]).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_made_or_moved_is_refused() {
        file().check(&["kraft"], &["p"]).unwrap();
        workload(50).check().unwrap();
        let other = refused(|file| file.systems[0] = "kafka".into());
        assert!(other.contains("not one of the systems"));
        assert!(refused(|file| file.systems.clear()).ends_with("systems: one at least"));
        assert!(refused(|file| file.created.reverse()).contains("rising"));
        assert!(refused(|file| file.moved = 0).contains("1 to 10000 partitions"));
        assert!(refused(|file| file.claims[0].pair = Some("q".into())).contains("of the pairs"));
        assert!(refused(|file| file.claims[0].partitions = 50).contains("50 partitions are not"));
        let moved = |file: &mut AdministrationFile| {
            (file.claims[0].figure, file.claims[0].partitions) = (Duty::Reassignment, 100);
        };
        assert!(refused(moved).contains("100 partitions are not measured"));
    }

    #[test]
    fn the_short_form_makes_the_fewest_partitions_alone() {
        let file = file();
        assert_eq!((file.created(true), file.created(false)), (&[10][..], &[10, 100][..]));
        assert_eq!((file.steps(3, true), file.steps(3, false)), (7, 10));
    }
}
