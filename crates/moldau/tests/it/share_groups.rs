//! Members of a share group at a broker: what each says of records decides who gets them next.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use moldau_client::{
    AcknowledgeMode, Acknowledgement, Admin, Cluster, ConfigResource, Delivery, Error, Producer,
    ProducerOptions, Record, ShareConsumer, ShareFetched, ShareOptions, TopicPartition, TopicSpec,
};
use moldau_protocol::ErrorCode;
use moldau_records::Decompressor;

use crate::traffic::{block_on, connect, now_ms, soon};
use crate::world::Process;

struct World {
    cluster: Cluster,
    broker: Process,
    dir: tempfile::TempDir,
    partitions: i32,
}

impl World {
    /// A broker with a topic, of which the group reads what was there before it. Members share a
    /// partition if there are not more partitions than members.
    async fn new(partitions: i32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let broker = broker(SocketAddr::from(([127, 0, 0, 1], 0)), dir.path());
        let cluster = connect(broker.address).await;
        let admin = Admin::new(&cluster);
        let spec = TopicSpec::new("jobs", partitions);
        let created = admin.create_topics(&[spec], false).await.unwrap();
        created.into_iter().for_each(|created| created.unwrap());
        let earliest = ("share.auto.offset.reset".to_owned(), Some("earliest".to_owned()));
        let group = ConfigResource::Group("crew".to_owned());
        admin.alter_configs(&group, &[earliest]).await.unwrap();
        Self { cluster, broker, dir, partitions }
    }

    /// Sends records `from..to`, in turn to each partition.
    async fn send(&self, from: usize, to: usize) {
        let sink = |delivery: &Delivery<'_>| assert!(delivery.error.is_none(), "{delivery:?}");
        let options = ProducerOptions::default();
        let producer = soon("a producer", Producer::start(&self.cluster, options, sink)).await;
        let producer = producer.unwrap();
        for number in from..to {
            let partition = i32::try_from(number).unwrap() % self.partitions;
            let partition = producer.partition("jobs", partition).await.unwrap();
            let value = number.to_string();
            let value = Some(value.as_bytes());
            let record = Record { token: 0, timestamp: now_ms(), key: None, value, headers: &[] };
            producer.send(partition, &record).unwrap();
        }
        soon("delivery", producer.close()).await;
    }

    async fn join(&self, acknowledge: AcknowledgeMode) -> ShareConsumer {
        let topics = vec!["jobs".to_owned()];
        let options = ShareOptions { topics, acknowledge, ..ShareOptions::default() };
        let joining = ShareConsumer::join(&self.cluster, "crew", options);
        soon("joining", joining).await.unwrap()
    }
}

fn broker(address: SocketAddr, dir: &std::path::Path) -> Process {
    let file = dir.join("broker.yaml");
    let settings = "group.share.min.heartbeat.interval.ms: 20\n\
                    group.share.heartbeat.interval.ms: 50\n\
                    group.share.assignment.interval.ms: 0\n\
                    group.share.min.session.timeout.ms: 500\n\
                    group.share.session.timeout.ms: 1000\n\
                    group.share.min.record.lock.duration.ms: 1000\n\
                    group.share.record.lock.duration.ms: 3000\n";
    std::fs::write(&file, settings).unwrap();
    Process::broker_on(address, &dir.join("data"), &["--config", file.to_str().unwrap()])
}

/// A record that a member holds.
#[derive(Clone, Debug)]
struct Held {
    partition: TopicPartition,
    offset: i64,
    number: usize,
    deliveries: i16,
}

fn records(fetched: &ShareFetched) -> Vec<Held> {
    let mut held = Vec::new();
    let take = |record: &moldau_records::RecordView<'_>, deliveries| {
        let value = std::str::from_utf8(record.value().unwrap()).unwrap();
        let number = value.parse().unwrap();
        let partition = fetched.topic_partition();
        held.push(Held { partition, offset: record.offset(), number, deliveries });
    };
    fetched.for_each_record(&mut Decompressor::default(), take).unwrap();
    assert_eq!(held.len(), fetched.records_count());
    held
}

async fn next(member: &mut ShareConsumer) -> Vec<Held> {
    records(&soon("records", member.next()).await.unwrap())
}

/// Reads this many records.
async fn read(member: &mut ShareConsumer, count: usize) -> Vec<Held> {
    let mut held = Vec::new();
    while held.len() < count {
        held.extend(next(member).await);
    }
    assert_eq!(held.len(), count);
    held
}

async fn commit(member: &mut ShareConsumer) {
    let refused = soon("a commit", member.commit()).await.unwrap();
    assert!(refused.is_empty(), "{refused:?}");
}

fn say(member: &mut ShareConsumer, held: &Held, said: Acknowledgement) {
    member.acknowledge(&held.partition, held.offset, said).unwrap();
}

fn numbers(held: &[Held]) -> Vec<usize> {
    let mut numbers: Vec<usize> = held.iter().map(|held| held.number).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn members_share_partitions_and_each_record_is_processed_once() {
    block_on(async {
        let world = World::new(1).await;
        let mut first = world.join(AcknowledgeMode::Implicit).await;
        let mut second = world.join(AcknowledgeMode::Implicit).await;
        let mut seen: BTreeMap<usize, usize> = BTreeMap::new();
        for round in 0..10 {
            world.send(round * 30, round * 30 + 30).await;
            while seen.len() < round * 30 + 30 {
                let held = tokio::select! {
                    held = next(&mut first) => held,
                    held = next(&mut second) => held,
                };
                held.iter().for_each(|it| *seen.entry(it.number).or_default() += 1);
            }
        }
        assert!(seen.values().all(|times| *times == 1), "{seen:?}");
        commit(&mut first).await;
        commit(&mut second).await;
        soon("leaving", first.leave()).await.unwrap();
        soon("leaving", second.leave()).await.unwrap();
        // All of it is done with.
        world.send(300, 301).await;
        let mut third = world.join(AcknowledgeMode::Implicit).await;
        assert_eq!(numbers(&next(&mut third).await), [300]);
    });
}

#[test]
fn what_is_said_of_a_record_decides_whether_it_is_delivered_again() {
    block_on(async {
        let world = World::new(3).await;
        world.send(0, 9).await;
        let mut member = world.join(AcknowledgeMode::Explicit).await;
        let held = read(&mut member, 9).await;
        assert_eq!(numbers(&held), (0..9).collect::<Vec<_>>());
        assert!(held.iter().all(|held| held.deliveries == 1));
        for it in &held {
            let said = match it.number {
                0..3 => Acknowledgement::Accept,
                3..6 => Acknowledgement::Reject,
                _ => Acknowledgement::Release,
            };
            say(&mut member, it, said);
        }
        let twice = member.acknowledge(&held[0].partition, held[0].offset, Acknowledgement::Accept);
        assert!(matches!(twice, Err(Error::NotHeld { .. })));
        commit(&mut member).await;
        let again = read(&mut member, 3).await;
        assert_eq!(numbers(&again), [6, 7, 8]);
        assert!(again.iter().all(|held| held.deliveries == 2), "{again:?}");
        again.iter().for_each(|it| say(&mut member, it, Acknowledgement::Accept));
        commit(&mut member).await;
        world.send(9, 10).await;
        assert_eq!(numbers(&read(&mut member, 1).await), [9]);
    });
}

#[test]
fn member_that_leaves_gives_back_what_it_has_not_finished() {
    block_on(async {
        let world = World::new(3).await;
        world.send(0, 6).await;
        let mut first = world.join(AcknowledgeMode::Explicit).await;
        let held = read(&mut first, 6).await;
        let done = held.iter().find(|held| held.number == 4).unwrap();
        say(&mut first, done, Acknowledgement::Accept);
        let refused = soon("leaving", first.leave()).await.unwrap();
        assert!(refused.is_empty(), "{refused:?}");
        let mut second = world.join(AcknowledgeMode::Implicit).await;
        let again = read(&mut second, 5).await;
        assert_eq!(numbers(&again), [0, 1, 2, 3, 5]);
        // What a member held when it left counts as delivered, as in Kafka.
        assert!(again.iter().all(|held| held.deliveries == 2), "{again:?}");
    });
}

#[test]
fn records_of_a_member_that_is_gone_go_to_others_with_its_connection() {
    block_on(async {
        let world = World::new(3).await;
        world.send(0, 6).await;
        let mut first = world.join(AcknowledgeMode::Explicit).await;
        read(&mut first, 6).await;
        drop(first);
        let mut second = world.join(AcknowledgeMode::Implicit).await;
        assert_eq!(numbers(&read(&mut second, 6).await), [0, 1, 2, 3, 4, 5]);
    });
}

/// The lock of what is renewed begins anew; what is not renewed goes to another member.
#[test]
fn renewed_records_stay_with_their_member_beyond_the_lock() {
    block_on(async {
        let world = World::new(1).await;
        world.send(0, 2).await;
        let mut first = world.join(AcknowledgeMode::Explicit).await;
        let held = read(&mut first, 2).await;
        let mut second = world.join(AcknowledgeMode::Explicit).await;
        let kept = held.iter().find(|held| held.number == 0).unwrap();
        let renewing = async {
            loop {
                say(&mut first, kept, Acknowledgement::Renew);
                commit(&mut first).await;
                tokio::task::yield_now().await;
            }
        };
        let others = tokio::select! {
            () = renewing => Vec::new(),
            others = next(&mut second) => others,
        };
        assert_eq!(numbers(&others), [1]);
        say(&mut first, kept, Acknowledgement::Accept);
        commit(&mut first).await;
        let late = held.iter().find(|held| held.number == 1).unwrap();
        say(&mut first, late, Acknowledgement::Accept);
        let refused = soon("a commit", first.commit()).await.unwrap();
        let code = refused.first().and_then(|(_, error)| error.code());
        assert_eq!(code, Some(ErrorCode::InvalidRecordState), "{refused:?}");
    });
}

#[test]
fn renewal_without_explicit_acknowledgement_is_refused() {
    block_on(async {
        let world = World::new(3).await;
        world.send(0, 1).await;
        let mut member = world.join(AcknowledgeMode::Implicit).await;
        let held = read(&mut member, 1).await;
        let refused =
            member.acknowledge(&held[0].partition, held[0].offset, Acknowledgement::Renew);
        assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::InvalidRequest));
        // Something else may be said of a record before it counts as accepted.
        say(&mut member, &held[0], Acknowledgement::Release);
        assert_eq!(read(&mut member, 1).await[0].deliveries, 2);
    });
}

#[test]
fn members_read_on_after_a_restart_of_the_broker() {
    block_on(async {
        let world = World::new(3).await;
        let address = world.broker.address;
        world.send(0, 3).await;
        let mut member = world.join(AcknowledgeMode::Explicit).await;
        let held = read(&mut member, 3).await;
        say(&mut member, &held[0], Acknowledgement::Accept);
        commit(&mut member).await;
        world.broker.kill();
        let process = broker(address, world.dir.path());
        let world = World { broker: process, ..world };
        let again = read(&mut member, 2).await;
        let mut expected = numbers(&held[1..]);
        expected.sort_unstable();
        assert_eq!(numbers(&again), expected);
        world.send(3, 4).await;
        assert_eq!(numbers(&read(&mut member, 1).await), [3]);
    });
}
