//! Processes of `moldau broker --cluster` on PostgreSQL and an S3 server.

#[path = "../../../cluster/tests/it/postgres_server.rs"]
#[expect(dead_code, reason = "the tests of the crate `cluster` use all of it")]
mod postgres_server;
#[path = "../../../cluster/tests/it/s3_server/mod.rs"]
#[expect(dead_code, reason = "the tests of the crate `cluster` use all of it")]
pub(crate) mod s3_server;

/// What the S3 server uses to answer late.
mod faults {
    pub(super) async fn pass(time: std::time::Duration) {
        tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
    }
}

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{
    Admin, Cluster, CommittedOffset, Delivery, Fetcher, FetcherOptions, GroupProtocol, Isolation,
    Membership, MembershipEvent, MembershipOptions, Producer, ProducerOptions, Record, Start,
    TopicPartition, TopicSpec,
};
use moldau_cluster::Settings;
use moldau_records::{Decompressor, RecordView};
use tokio::sync::watch;

use self::postgres_server::Server;
use self::s3_server::S3Server;
use crate::ledger::Repeats;
use crate::traffic::{Numbered, PATIENCE, block_on, connect, now_ms, soon};
use crate::world::{Process, moldau};

/// The services of a cluster, and the files of its brokers.
pub(crate) struct Services {
    pub(crate) database: Arc<Server>,
    pub(crate) store: S3Server,
    connection: String,
    dir: PathBuf,
}

impl Services {
    /// A store, and a database without the schema.
    pub(crate) async fn start(dir: &Path) -> Self {
        Self::start_on(dir, postgres_server::shared()).await
    }

    /// The same with a server of its own, which can be halted.
    pub(crate) async fn start_alone(dir: &Path) -> Self {
        Self::start_on(dir, Arc::new(Server::start())).await
    }

    async fn start_on(dir: &Path, database: Arc<Server>) -> Self {
        let store = S3Server::start().await;
        let (access_key, secret_key) = (s3_server::ACCESS_KEY, s3_server::SECRET_KEY);
        let text = format!(
            "[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret_key}\n"
        );
        std::fs::write(dir.join("keys"), text).unwrap();
        let connection = format!("{} password={PASSWORD}", database.empty_database().connection);
        Self { database, store, connection, dir: dir.to_owned() }
    }

    /// The file of a broker.
    pub(crate) fn file(&self, id: i32) -> PathBuf {
        self.file_with(id, &self.connection, s3_server::BUCKET)
    }

    /// The same with other services.
    pub(crate) fn file_with(&self, id: i32, connection: &str, bucket: &str) -> PathBuf {
        let file = self.dir.join(format!("cluster-{id}.yaml"));
        let settings = self.store.settings();
        let text = format!(
            "broker.id: {id}\nbroker.rack: rack-{id}\nlinger_ms: 10\n\
             postgres:\n  url: {connection}\n\
             bucket:\n  name: {bucket}\n  endpoint: {}\n  prefix: {}\n  credentials_file: {}\n",
            settings.endpoint.as_deref().unwrap(),
            settings.prefix,
            self.dir.join("keys").display(),
        );
        std::fs::write(&file, text).unwrap();
        file
    }

    pub(crate) fn connection(&self) -> &str {
        &self.connection
    }

    /// How to connect to one more database without the schema.
    pub(crate) fn other_connection(&self) -> String {
        self.database.empty_database().connection
    }

    /// How to connect to a copy of the database, as a backup is restored.
    pub(crate) fn restored_connection(&self) -> String {
        let settings = Settings {
            connection: self.connection.clone(),
            application_name: String::new(),
            connections_max: 1,
            timeout: Duration::ZERO,
        };
        format!("{} password={PASSWORD}", self.database.restored(&settings).connection)
    }

    pub(crate) async fn broker(&self, id: i32) -> Process {
        self.broker_with(id, &[]).await
    }

    /// The same with more arguments.
    pub(crate) async fn broker_with(&self, id: i32, more: &[&str]) -> Process {
        let mut command = Command::new(moldau());
        command.args(["broker", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
        command.arg("--cluster").arg(self.file(id)).args(more);
        // The requests of a process that starts are served by this thread.
        tokio::task::spawn_blocking(move || Process::start(command)).await.unwrap()
    }
}

/// The brokers of a cluster.
struct World {
    _services: Services,
    brokers: Vec<Process>,
}

impl World {
    async fn start(dir: &Path) -> Self {
        let services = Services::start(dir).await;
        let mut brokers = Vec::new();
        for id in 1..=3 {
            brokers.push(services.broker(id).await);
        }
        Self { _services: services, brokers }
    }

    /// The broker that is the controller, and coordinates groups.
    fn take_controller(&mut self, cluster: &Cluster) -> Process {
        let id = cluster.metadata().controller.unwrap();
        self.brokers.remove(usize::try_from(id - 1).unwrap())
    }
}

fn member() -> MembershipOptions {
    MembershipOptions {
        protocol: GroupProtocol::Consumer,
        topics: vec!["numbers".to_owned()],
        ..MembershipOptions::default()
    }
}

/// Follows a member until it holds so many partitions.
async fn until_holding(member: &mut Membership, count: usize) {
    let all = async {
        while member.held().len() != count {
            if let MembershipEvent::Revoked(partitions) = member.next().await.unwrap() {
                member.revoked(&partitions);
            }
        }
    };
    soon("partitions of the group", all).await;
}

/// Partitions that each transaction writes to.
const TRANSACTED: i32 = 3;

/// Makes transactions until there are enough. Each writes its number to all partitions, and every
/// third is aborted. Returns the numbers of the others.
async fn transact(
    cluster: &Cluster,
    ended: &watch::Sender<usize>,
    are_enough: &Cell<bool>,
) -> Vec<String> {
    let spec = TopicSpec::new("transacted", TRANSACTED);
    let created = Admin::new(cluster).create_topics(&[spec], false).await.unwrap();
    created.into_iter().for_each(|created| created.unwrap());
    let options = ProducerOptions {
        transactional_id: Some("t".to_owned()),
        delivery_timeout: PATIENCE,
        ..ProducerOptions::default()
    };
    let producer = Producer::start(cluster, options, |_: &Delivery<'_>| {}).await.unwrap();
    let mut partitions = Vec::new();
    for index in 0..TRANSACTED {
        partitions.push(producer.partition("transacted", index).await.unwrap());
    }
    let mut committed = Vec::new();
    for number in 0.. {
        ended.send_replace(number);
        let is_last = are_enough.get();
        soon("a transaction", producer.begin_transaction(&partitions)).await.unwrap();
        let value = format!("{number}");
        for partition in &partitions {
            let (timestamp, value) = (now_ms(), Some(value.as_bytes()));
            let record = Record { token: 0, timestamp, key: None, value, headers: &[] };
            producer.send(*partition, &record).unwrap();
        }
        if number % 3 == 1 && !is_last {
            soon("an abort", producer.abort_transaction()).await.unwrap();
            continue;
        }
        soon("a commit", producer.commit_transaction()).await.unwrap();
        committed.push(value);
        if is_last {
            break;
        }
    }
    committed
}

/// What a reader of committed records finds in a partition, up to this value.
async fn read_committed(cluster: &Cluster, partition: i32, last: &str) -> Vec<String> {
    let isolation = Isolation::ReadCommitted;
    let options = FetcherOptions { isolation, ..FetcherOptions::default() };
    let mut fetcher = Fetcher::start(cluster, options);
    soon("assigning", fetcher.assign("transacted", partition, Start::Earliest)).await.unwrap();
    let mut values: Vec<String> = Vec::new();
    while values.last().is_none_or(|value| value != last) {
        let fetched = soon("committed records", fetcher.next()).await.unwrap();
        let take = |record: &RecordView<'_>| {
            values.push(String::from_utf8_lossy(record.value().unwrap()).into_owned());
        };
        fetched.for_each_record(&mut Decompressor::default(), 1 << 20, take).unwrap();
    }
    values
}

#[test]
fn nothing_is_lost_or_torn_and_the_group_goes_on_where_the_controller_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let mut world = World::start(dir.path()).await;
        let cluster = connect(world.brokers[2].address).await;
        assert_eq!(cluster.metadata().brokers.len(), 3);
        let (count, mut ended) = watch::channel(0);
        let are_enough = Cell::new(false);
        let work = async {
            work_on(&mut world, &cluster, &mut ended).await;
            are_enough.set(true);
        };
        let (committed, ()) = tokio::join!(transact(&cluster, &count, &are_enough), work);
        for partition in 0..TRANSACTED {
            let read = read_committed(&cluster, partition, committed.last().unwrap()).await;
            assert_eq!(read, committed);
        }
    });
}

/// Of the user of the database, whom that lets in without it.
pub(crate) const PASSWORD: &str = "PASSWORD-OF-TEST";

/// A producer and a group, while transactions are made and the controller is killed.
async fn work_on(world: &mut World, cluster: &Cluster, transactions: &mut watch::Receiver<usize>) {
    let mut numbered = Numbered::start(cluster, "numbers", ProducerOptions::default()).await;
    let mut member = Membership::join(cluster, "workers", member()).await.unwrap();
    until_holding(&mut member, 3).await;
    let partition = TopicPartition::of("numbers", 1);
    let committed = [(partition.clone(), CommittedOffset::at(7))];
    for (_, answer) in soon("a commit", member.commit(&committed)).await.unwrap() {
        answer.unwrap();
    }
    let mut acknowledged = numbered.acknowledged();
    for number in 0..600 {
        numbered.send_one().await;
        if number == 200 {
            soon("an answer", acknowledged.wait_for(|count| *count > 0)).await.unwrap();
            soon("transactions", transactions.wait_for(|count| *count > 3)).await.unwrap();
            let controller = world.take_controller(cluster);
            tokio::task::spawn_blocking(move || controller.kill()).await.unwrap();
        }
    }
    let (count, problems) = numbered.verify(Repeats::Never).await;
    assert_eq!((count, problems), (600, Vec::new()));
    let partitions = std::slice::from_ref(&partition);
    let known = soon("offsets", member.committed(partitions)).await.unwrap();
    assert_eq!(known, [(partition.clone(), Some(CommittedOffset::at(7)))]);
    soon("leaving", member.leave()).await.unwrap();
    // Another broker decides by now.
    let told = async { while cluster.refresh().await.unwrap().brokers.len() != 2 {} };
    soon("the end of a broker", told).await;
    let spec = TopicSpec::new("later", 2);
    let created = Admin::new(cluster).create_topics(&[spec], false).await.unwrap();
    created.into_iter().for_each(|created| created.unwrap());
}
