//! A worker of a share group that is killed again and again (`kill -9`).

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Child, Command, Stdio};

use moldau_client::{OffsetSpec, TopicPartition};
use moldau_consumer::header;
use moldau_consumer::testing::TestBroker;
use moldau_protocol::messages::{
    DescribeShareGroupOffsetsRequest, describe_share_group_offsets_request as request,
};

use crate::crashes::{RECORDS_PER_KILL, RECORDS_UNTIL_KILL_MAX, kills};
use crate::share::{broker, configure};
use crate::world::{DEADLINE, GROUP, Seen};

const PARTITIONS: i32 = 3;

/// Every so many records is poison.
const POISON_EVERY: usize = 20;

/// Records of a batch, which a member gets as a whole.
const BATCH_RECORDS: usize = 10;

/// What a worker may have handled and not acknowledged: what 16 handlers have, what waits for them,
/// and what one fetch brings of each partition.
const UNACKNOWLEDGED_MAX: usize = 16 + 16 + 16 + 3 * BATCH_RECORDS;

struct World {
    broker: TestBroker,
    values: Vec<String>,
}

impl World {
    async fn start(kills: usize) -> Self {
        let broker = broker(1, &[]).await;
        // A record may be with several workers that are killed before one gets to it.
        configure(&broker, "share.delivery.count.limit", "10").await;
        // Until then, partitions stay with a worker that was killed.
        configure(&broker, "share.session.timeout.ms", "2000").await;
        broker.create_topic("in", PARTITIONS).await;
        broker.create_topic("out", 1).await;
        broker.create_topic("dead", 1).await;
        let value = |number: usize| match number % POISON_EVERY {
            0 => format!("poison {number}"),
            _ => number.to_string(),
        };
        let values: Vec<String> = (0..kills * RECORDS_PER_KILL).map(value).collect();
        for some in values.chunks(BATCH_RECORDS) {
            // Of one key, so in one batch.
            let key = some.first().map(String::as_str);
            let records: Vec<_> = some.iter().map(|value| (key, value.as_str())).collect();
            broker.produce_all("in", &records).await;
        }
        Self { broker, values }
    }

    fn worker(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crash-worker"));
        let started = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut worker = started.expect("the worker starts");
        let input = worker.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "{} {GROUP} share none", self.broker.address()).expect("it reads");
        worker
    }

    async fn appended(&self) -> i64 {
        let wanted = [(TopicPartition::of("out", 0), OffsetSpec::Latest)];
        let ends = self.broker.cluster().await.list_offsets(&wanted).await;
        ends.into_values().map(|end| end.expect("the broker answers").offset).sum()
    }

    /// Kills a worker once it has written some more, at any moment of what follows.
    async fn kill_one(&self) {
        let until = self.appended().await + fastrand::i64(1..=RECORDS_UNTIL_KILL_MAX);
        let mut worker = self.worker();
        let write = async {
            while self.appended().await < until {
                let exited = worker.try_wait().expect("it is a child");
                assert!(exited.is_none(), "the worker ended: {exited:?}");
            }
        };
        tokio::time::timeout(DEADLINE, write).await.expect("the worker goes on after a crash");
        worker.kill().expect("it runs");
        worker.wait().expect("it is a child");
    }

    /// Records before the first one that is not done, of all partitions.
    async fn done(&self) -> i64 {
        let group = request::DescribeShareGroupOffsetsRequestGroup {
            group_id: GROUP.to_owned(),
            topics: None,
            ..Default::default()
        };
        let request =
            DescribeShareGroupOffsetsRequest { groups: vec![group], ..Default::default() };
        let described = self.broker.cluster().await.send_any(&request).await.unwrap();
        let topics = described.groups.into_iter().flat_map(|group| group.topics);
        let partitions = topics.flat_map(|topic| topic.partitions);
        partitions.map(|partition| partition.start_offset.max(0)).sum()
    }

    /// Lets a last worker handle what is left.
    async fn finish(&self) {
        let mut worker = self.worker();
        let total = i64::try_from(self.values.len()).expect("some records");
        let finish = async {
            while self.done().await < total {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, finish).await.expect("the last worker handles the rest");
        drop(worker.stdin.take());
        assert!(worker.wait().expect("it is a child").success());
    }

    /// How often each value is in a topic.
    async fn counts(&self, topic: &str) -> BTreeMap<String, usize> {
        let count = self.broker.lag("nobody", topic).await;
        let mut counts = BTreeMap::new();
        for message in self.broker.read(topic, usize::try_from(count).unwrap()).await {
            if topic == "dead" {
                // Deliveries to a worker that was killed are attempts too.
                let attempts = message.header(header::ATTEMPTS).map(<[u8]>::to_vec);
                let attempts = String::from_utf8(attempts.unwrap()).unwrap();
                assert!(attempts.parse::<u32>().unwrap() >= 3, "{message:?}");
            }
            *counts.entry(Seen::of(&message).value).or_default() += 1;
        }
        counts
    }
}

#[tokio::test]
async fn a_share_group_survives_kills() {
    let kills = kills();
    let world = World::start(kills).await;
    for _kill in 0..kills {
        world.kill_one().await;
    }
    world.finish().await;
    let (handled, dead) = (world.counts("out").await, world.counts("dead").await);
    let (poison, good): (BTreeSet<_>, BTreeSet<_>) =
        world.values.iter().cloned().partition(|value| value.starts_with("poison"));
    assert_eq!(handled.keys().cloned().collect::<BTreeSet<_>>(), good);
    assert_eq!(dead.keys().cloned().collect::<BTreeSet<_>>(), poison);
    let repeats: usize = handled.values().chain(dead.values()).map(|count| count - 1).sum();
    assert!(repeats <= kills * UNACKNOWLEDGED_MAX, "{repeats}");
    println!("{kills} kills, {repeats} of {} repeated", world.values.len());
}
