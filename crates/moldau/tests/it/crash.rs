//! The broker is killed at random moments, again and again, while producers work.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use moldau_client::{Admin, Cluster, ConfigResource, ProducerOptions, TopicPartition, TopicSpec};
use moldau_protocol::ErrorCode;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::ledger::Repeats;
use crate::traffic::{Numbered, Reader, block_on, connect, soon};
use crate::world::{Process, broker_command, free_port};

/// Data directories, one after the other.
const ROUNDS: u32 = 10;

/// Kills on each data directory.
const KILLS_PER_ROUND: u32 = 10;

/// Longest time that the broker is left alone once it has acknowledged something.
const LIFETIME_MAX: Duration = Duration::from_millis(150);

/// Longest time that a broker is left alone that is killed while it starts.
const START_MAX: Duration = Duration::from_millis(60);

/// Bytes under way: several batches for each partition, so that a kill always meets some.
const BUFFER_BYTES: usize = 1 << 20;

/// How clients reach the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Proxy,
}

#[test]
fn a_hundred_kills_lose_nothing_and_repeat_nothing_of_an_idempotent_producer() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut acknowledged, mut problems) = (0, Vec::new());
    for round in 0..ROUNDS {
        let options = ProducerOptions::default();
        let outcome = kill_again_and_again(&mut random, Way::Direct, options, Repeats::Never);
        acknowledged += outcome.0;
        problems.extend(outcome.1.into_iter().map(|problem| format!("round {round}: {problem}")));
    }
    println!("{acknowledged} records acknowledged, {} kills", ROUNDS * KILLS_PER_ROUND);
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn kills_lose_nothing_that_a_plain_producer_was_acknowledged() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let options = ProducerOptions { idempotent: false, ..ProducerOptions::default() };
    let (acknowledged, problems) =
        kill_again_and_again(&mut random, Way::Direct, options, Repeats::Allowed);
    println!("{acknowledged} records acknowledged");
    assert_eq!(problems, Vec::<String>::new());
}

#[test]
fn kills_lose_nothing_and_repeat_nothing_behind_a_proxy() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let options = ProducerOptions::default();
    let (acknowledged, problems) =
        kill_again_and_again(&mut random, Way::Proxy, options, Repeats::Never);
    println!("{acknowledged} records acknowledged");
    assert_eq!(problems, Vec::<String>::new());
}

/// Kills the broker of a fresh data directory while a producer goes on by its own retries. Returns
/// how many records were acknowledged, and what was wrong in the end.
fn kill_again_and_again(
    random: &mut fastrand::Rng,
    way: Way,
    options: ProducerOptions,
    repeats: Repeats,
) -> (u64, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
    block_on(async {
        let mut broker = start(listen, dir.path()).await;
        let proxy = (way == Way::Proxy).then(|| Process::proxy(dir.path(), listen));
        let cluster = connect(proxy.as_ref().map_or(listen, |proxy| proxy.address)).await;
        let options = ProducerOptions { buffer_bytes_max: BUFFER_BYTES, ..options };
        let numbered = Numbered::start(&cluster, "crash", options).await;
        let mut acknowledged = numbered.acknowledged();
        let (stop, stopped) = watch::channel(false);
        let reading = tokio::spawn(Reader::start(&numbered).await.read_until(stopped.clone()));
        let sending = tokio::spawn(numbered.send_until(stopped));
        for _ in 0..KILLS_PER_ROUND {
            let seen = *acknowledged.borrow();
            let progress = acknowledged.wait_for(|count| *count > seen);
            soon("an acknowledgement", progress).await.unwrap();
            moment(random, LIFETIME_MAX).await;
            broker.kill();
            if random.u8(0..4) == 0 {
                kill_while_it_starts(random, listen, dir.path()).await;
            }
            broker = start(listen, dir.path()).await;
        }
        stop.send(true).unwrap();
        reading.await.unwrap();
        sending.await.unwrap().verify(repeats).await
    })
}

/// Starts the broker while the producer's tasks go on.
async fn start(listen: SocketAddr, data_dir: &Path) -> Process {
    let data_dir = data_dir.to_owned();
    let starting = move || Process::broker_on(listen, &data_dir, &[]);
    tokio::task::spawn_blocking(starting).await.unwrap()
}

/// A kill that may meet recovery, the first appends, or anything between.
async fn kill_while_it_starts(random: &mut fastrand::Rng, listen: SocketAddr, data_dir: &Path) {
    let mut child = broker_command(listen, data_dir)
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the binary can be run");
    moment(random, START_MAX).await;
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
}

/// Lets a random time pass.
async fn moment(random: &mut fastrand::Rng, longest: Duration) {
    let at = Instant::now() + longest.mul_f64(random.f64());
    tokio::time::interval_at(at, longest).tick().await;
}

#[test]
fn acknowledged_topics_and_commits_survive_kills_at_any_moment() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let dir = tempfile::tempdir().unwrap();
    let listen = SocketAddr::from(([127, 0, 0, 1], free_port()));
    block_on(async {
        let mut broker = start(listen, dir.path()).await;
        let cluster = connect(listen).await;
        let (count, mut changes) = watch::channel(0);
        let (stop, stopped) = watch::channel(false);
        let changing = tokio::spawn(change_until(cluster.clone(), count, stopped));
        for _ in 0..KILLS_PER_ROUND {
            let seen = *changes.borrow();
            soon("a change", changes.wait_for(|count| *count > seen)).await.unwrap();
            moment(&mut random, LIFETIME_MAX).await;
            let acknowledged = *changes.borrow();
            broker.kill();
            broker = start(listen, dir.path()).await;
            let topics = cluster.all_topics().await.unwrap().topics;
            let missing = (0..acknowledged).find(|number| !topics.contains_key(&*name(*number)));
            assert_eq!(missing, None, "of {acknowledged} topics");
            let offsets = cluster.committed_offsets("readers").await.unwrap();
            let committed = offsets.get(&TopicPartition::of(&name(0), 0)).copied();
            assert!(committed >= Some(acknowledged - 1), "{committed:?} of {acknowledged}");
        }
        stop.send(true).unwrap();
        soon("the last change", changing).await.unwrap();
    });
}

/// Creates one topic after the other and commits the number of each. A repeated attempt may find
/// that the first had created the topic.
async fn change_until(cluster: Cluster, count: watch::Sender<i64>, stop: watch::Receiver<bool>) {
    let admin = Admin::new(&cluster);
    for number in 0.. {
        let spec = TopicSpec::new(&name(number), 1);
        let created = admin.create_topics(&[spec], false).await.unwrap();
        for error in created.into_iter().filter_map(Result::err) {
            assert_eq!(error.code(), Some(ErrorCode::TopicAlreadyExists), "{error}");
        }
        let offset = HashMap::from([(TopicPartition::of(&name(0), 0), number)]);
        cluster.commit_offsets("readers", &offset).await.unwrap();
        count.send_replace(number + 1);
        if *stop.borrow() {
            return;
        }
    }
}

fn name(number: i64) -> String {
    format!("topic-{number}")
}

#[test]
fn topics_configs_and_committed_offsets_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
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
            (config.value.clone().unwrap(), config.is_default)
        };
        assert_eq!(value("retention.ms"), ("86400000".to_owned(), false));
        assert_eq!(value("max.message.bytes"), ("77777".to_owned(), false));
        assert_eq!(cluster.committed_offsets("readers").await.unwrap(), offsets);
    });
}
