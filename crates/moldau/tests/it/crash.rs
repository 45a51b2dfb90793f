//! The broker is killed at random moments, again and again, while everything that it does is under
//! way: records come in to a thousand partitions, the journal is sorted, merged and given back,
//! logs are compacted and lose their oldest records, topics come and go.
//!
//! `MOLDAU_CRASH_SEED` repeats the choices of a run, though not the moments at which its kills met
//! the broker; `MOLDAU_CRASH_KILLS` sets their number.

mod account;
mod audit;
mod changes;
mod lives;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use moldau_client::{
    Admin, ConfigResource, ConfigSource, ProducerOptions, TopicPartition, TopicSpec,
};
use tempfile::tempdir;
use tokio::sync::watch;

use crate::ledger::Repeats;
use crate::traffic::{Numbered, Reader, block_on, connect, soon};
use crate::world::{Process, free_port};

use lives::{Tally, live, moment};

/// Topics whose records are cleaned away as soon as a younger one has their key.
const COMPACTED: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0"),
    ("delete.retention.ms", "200"),
];

/// Data directories, one after the other.
const ROUNDS: u32 = 4;

/// Kills on each data directory.
const KILLS_PER_ROUND: u32 = 25;

/// Kills in a smaller test.
const KILLS_FEW: u32 = 10;

/// Longest time that the broker of a plain producer is left alone.
const LIFETIME_MAX: Duration = Duration::from_millis(150);

/// Bytes under way of a plain producer.
const BUFFER_BYTES: usize = 1 << 20;

/// How clients reach the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Proxy,
}

/// The choices of a test, by a seed that is printed.
fn choices() -> fastrand::Rng {
    let seed = match std::env::var("MOLDAU_CRASH_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    println!("MOLDAU_CRASH_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Kills of a data directory, unless told otherwise.
fn kills(usual: u32) -> u32 {
    std::env::var("MOLDAU_CRASH_KILLS").map_or(usual, |kills| kills.parse().unwrap())
}

#[test]
fn kills_under_full_activity_lose_repeat_and_resurrect_nothing() {
    let mut random = choices();
    let mut tally = Tally::default();
    for _ in 0..ROUNDS {
        tally.add(block_on(live(
            &mut random,
            &tempdir().unwrap(),
            Way::Direct,
            kills(KILLS_PER_ROUND),
        )));
    }
    println!("{tally:#?}");
    assert_eq!(tally.problems, Vec::<String>::new());
    assert_eq!(tally.missing(), Vec::<&str>::new());
}

#[test]
fn kills_behind_a_proxy_lose_repeat_and_resurrect_nothing() {
    let ground = tempdir().unwrap();
    let tally = block_on(live(&mut choices(), &ground, Way::Proxy, kills(KILLS_FEW)));
    println!("{tally:#?}");
    assert_eq!(tally.problems, Vec::<String>::new());
}

#[cfg(feature = "lossy-disk")]
#[test]
fn kills_lose_no_acknowledged_record_on_a_lossy_disk() {
    let mut random = choices();
    let all = kills(KILLS_FEW);
    let (mut tally, mut losses) = (Tally::default(), moldau_disk::Losses::default());
    while tally.kills < all {
        let place = tempdir().unwrap();
        let disk = moldau_disk::LossyDisk::mount(place.path(), random.u64(..));
        let disk = disk.expect("/dev/fuse is there, and root or fusermount3 may mount");
        let round = KILLS_PER_ROUND.min(all - tally.kills);
        tally.add(block_on(live(&mut random, &disk, Way::Direct, round)));
        losses.add(disk.losses());
        println!("{} kills of {all}: {losses:?}", tally.kills);
        assert_eq!(tally.problems, Vec::<String>::new());
    }
    println!("{tally:#?}");
    // A few kills need not meet everything.
    if all >= ROUNDS * KILLS_PER_ROUND {
        assert_eq!(tally.missing(), Vec::<&str>::new());
        assert!(losses.writes > 0 && losses.torn > 0 && losses.names > 0, "{losses:?}");
    }
}

#[test]
fn kills_lose_no_acknowledged_record_of_a_plain_producer() {
    let mut random = choices();
    let dir = tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let (acknowledged, problems) = block_on(async {
        let mut broker = start(listen, dir.path()).await;
        let cluster = connect(listen).await;
        let options = ProducerOptions {
            idempotent: false,
            buffer_bytes_max: BUFFER_BYTES,
            ..ProducerOptions::default()
        };
        let numbered = Numbered::start(&cluster, "crash", options).await;
        let mut acknowledged = numbered.acknowledged();
        let (stop, stopped) = watch::channel(false);
        let reading = tokio::spawn(Reader::start(&numbered).await.read_until(stopped.clone()));
        let sending = tokio::spawn(numbered.send_until(stopped));
        for _ in 0..KILLS_FEW {
            let seen = *acknowledged.borrow();
            let progress = acknowledged.wait_for(|count| *count > seen);
            soon("an acknowledgement", progress).await.unwrap();
            moment(&mut random, LIFETIME_MAX).await;
            broker.kill();
            broker = start(listen, dir.path()).await;
        }
        stop.send(true).unwrap();
        reading.await.unwrap();
        sending.await.unwrap().verify(Repeats::Allowed).await
    });
    println!("{acknowledged} records acknowledged");
    assert_eq!(problems, Vec::<String>::new());
}

/// Starts the broker while the producer's tasks go on.
async fn start(listen: SocketAddr, data_dir: &Path) -> Process {
    let data_dir = data_dir.to_owned();
    let starting = move || Process::broker_on(listen, &data_dir, &[]);
    tokio::task::spawn_blocking(starting).await.unwrap()
}

#[test]
fn topics_configs_and_committed_offsets_survive_a_kill() {
    let dir = tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
    block_on(async {
        let broker = start(listen, dir.path()).await;
        let cluster = connect(listen).await;
        let admin = Admin::new(&cluster);
        let kept = TopicSpec {
            configs: vec![("retention.ms".to_owned(), "86400000".to_owned())],
            ..TopicSpec::new("kept", 2)
        };
        let created = admin.create_topics(&[kept, TopicSpec::new("gone", 1)], false).await;
        created.unwrap().into_iter().for_each(|created| created.unwrap());
        admin.create_partitions("kept", 5).await.unwrap();
        let resource = ConfigResource::Topic("kept".to_owned());
        let change = [("max.message.bytes".to_owned(), Some("77777".to_owned()))];
        admin.alter_configs(&resource, &change).await.unwrap();
        let deleted = admin.delete_topics(&["gone".to_owned()]).await.unwrap();
        deleted.into_iter().for_each(|deleted| deleted.unwrap());
        let mut offsets = HashMap::new();
        for round in 0..20 {
            offsets.insert(TopicPartition::of("kept", round % 3), i64::from(round) * 100);
            cluster.commit_offsets("readers", &offsets).await.unwrap();
        }
        let topic_id = cluster.topic("kept").await.unwrap().topic.id;
        broker.kill();

        let _broker = start(listen, dir.path()).await;
        let cluster = connect(listen).await;
        let admin = Admin::new(&cluster);
        let topics = cluster.all_topics().await.unwrap().topics;
        let names: Vec<_> = topics.keys().map(|name| name.to_string()).collect();
        assert_eq!(names, ["kept"]);
        let topic = &topics["kept"];
        assert_eq!((topic.partitions.len(), topic.topic.id), (5, topic_id));
        let configs = admin.describe_configs(&resource).await.unwrap();
        let value = |name: &str| {
            let config = configs.iter().find(|config| config.name == name).unwrap();
            (config.value.clone().unwrap(), config.source)
        };
        assert_eq!(value("retention.ms"), ("86400000".to_owned(), ConfigSource::Own));
        assert_eq!(value("max.message.bytes"), ("77777".to_owned(), ConfigSource::Own));
        assert_eq!(cluster.committed_offsets("readers").await.unwrap(), offsets);
    });
}
