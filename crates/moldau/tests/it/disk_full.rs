//! The broker on a disk that is full: records are refused with an error that clients try again
//! after, all else is served, and the records come in again once there is space.
//!
//! The disk is a small tmpfs in a mount namespace of its own, which nobody else sees. The tests
//! reach its files by `/proc/<pid>/root`.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use moldau_client::{
    Admin, Cluster, Delivery, Fetcher, FetcherOptions, OffsetSpec, Producer, ProducerOptions,
    Purpose, Start, TopicPartition,
};
use moldau_protocol::ErrorCode;
use moldau_records::Decompressor;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::ledger::Repeats;
use crate::traffic::{Numbered, block_on, connect, create, produce_once, soon};
use crate::world::{Process, broker_command, free_port};

/// Size of the disk.
const DISK_MIB: u32 = 48;

/// A broker's settings for so small a disk. The reserve is two journal files.
const CONFIG: &str = "journal_file_mib: 4\ndisk_reserve_mib: 8\ntail_cache_mib: 8\n";

/// What fills the disk beside the journal, to be taken away.
const FILLER_BYTES: usize = 20 << 20;

/// Value of a probe: a batch of it needs no more than a block of the journal.
const PROBE_BYTES: usize = 1000;

/// Value of a record that is only there to take space.
const BALLAST_BYTES: usize = 256 << 10;

/// Offsets committed one after the other on the full disk.
const COMMITS: i64 = 50;

/// A small disk that exists for as long as this does.
struct Disk {
    /// A process that does nothing but keep the mount namespace.
    keeper: Child,
    dir: TempDir,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = format!("mount -t tmpfs -o size={DISK_MIB}m none \"$0\" && echo && exec cat");
        let mut command = Command::new("unshare");
        command.arg("--mount");
        if !is_root() {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", &script]).arg(dir.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut keeper = command.spawn().expect("unshare can be run");
        let mut mounted = String::new();
        BufReader::new(keeper.stdout.as_mut().unwrap()).read_line(&mut mounted).unwrap();
        assert_eq!(mounted, "\n", "the disk is mounted");
        Self { keeper, dir }
    }

    /// Starts a broker on the disk.
    fn broker(&self, listen: SocketAddr) -> Process {
        let config = self.path("broker.yaml");
        std::fs::write(config, CONFIG).unwrap();
        let broker = broker_command(listen, &self.dir.path().join("data"));
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.keeper.id().to_string()).arg("--mount");
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.arg("--").arg(broker.get_program()).args(broker.get_args());
        command.arg("--config").arg(self.dir.path().join("broker.yaml"));
        Process::start(command)
    }

    /// Where this process finds a file of the disk.
    fn path(&self, name: &str) -> PathBuf {
        let root = PathBuf::from(format!("/proc/{}/root", self.keeper.id()));
        root.join(self.dir.path().strip_prefix("/").unwrap()).join(name)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.keeper.kill());
        drop(self.keeper.wait());
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

fn any_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// As [`produce_once`], on a broker that answers.
async fn produce(cluster: &Cluster, topic: &str, value_bytes: usize) -> (ErrorCode, i64) {
    let connection = cluster.connection(0, Purpose::Data).await.unwrap();
    produce_once(&connection, topic, value_bytes).await.unwrap()
}

/// Produces until that is refused as it should be on a full disk. Returns how many records the
/// topic holds then.
async fn produce_until_full(cluster: &Cluster, topic: &str, value_bytes: usize) -> i64 {
    let mut produced = 0;
    loop {
        match produce(cluster, topic, value_bytes).await {
            (ErrorCode::None, offset) => assert_eq!(offset, produced),
            (code, _) => {
                assert_eq!(code, ErrorCode::KafkaStorageError);
                assert!(code.is_retriable());
                return produced;
            }
        }
        produced += 1;
    }
}

/// Waits until a record is taken again.
async fn wait_until_accepted(cluster: &Cluster, topic: &str) -> i64 {
    let mut ticks = tokio::time::interval(Duration::from_millis(50));
    loop {
        ticks.tick().await;
        match produce(cluster, topic, PROBE_BYTES).await {
            (ErrorCode::None, offset) => return offset,
            (code, _) => assert_eq!(code, ErrorCode::KafkaStorageError),
        }
    }
}

/// Everything but records of data is served: metadata, offsets, reads, groups, topics and
/// producer ids.
async fn assert_the_rest_is_served(cluster: &Cluster, topic: &str, records: i64, new_topic: &str) {
    let topics = cluster.all_topics().await.unwrap().topics;
    assert!(topics.contains_key(topic));
    let partition = TopicPartition::of(topic, 0);
    let wanted = [(partition.clone(), OffsetSpec::Latest)];
    let listed = cluster.list_offsets(&wanted).await;
    assert_eq!(listed[&partition].as_ref().unwrap().offset, records);
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    fetcher.assign(topic, 0, Start::Earliest).await.unwrap();
    let (mut next, mut decompressor) = (0, Decompressor::default());
    while next < records {
        let fetched = soon("a fetch", fetcher.next()).await.unwrap();
        let walked = fetched.for_each_record(&mut decompressor, 1 << 20, |record| {
            assert_eq!(record.offset(), next);
            assert!(record.value().unwrap().iter().all(|byte| *byte == 7));
            next += 1;
        });
        walked.unwrap();
    }
    let mut offsets = HashMap::new();
    for offset in 0..COMMITS {
        offsets.insert(partition.clone(), offset);
        cluster.commit_offsets("readers", &offsets).await.unwrap();
    }
    assert_eq!(cluster.committed_offsets("readers").await.unwrap(), offsets);
    create(cluster, new_topic).await;
    let nothing_sent = |delivery: &Delivery<'_>| panic!("{delivery:?}");
    Producer::start(cluster, ProducerOptions::default(), nothing_sent).await.unwrap();
}

#[test]
fn full_disk_refuses_only_records_and_loses_nothing() {
    let disk = Disk::new();
    let mut broker = disk.broker(any_address());
    let filler = disk.path("filler");
    std::fs::write(&filler, vec![0; FILLER_BYTES]).unwrap();
    block_on(async {
        let cluster = connect(broker.address).await;
        create(&cluster, "probe").await;
        let options = ProducerOptions { buffer_bytes_max: 1 << 20, ..ProducerOptions::default() };
        let numbered = Numbered::start(&cluster, "filling", options).await;
        let mut acknowledged = numbered.acknowledged();
        let (stop, stopped) = watch::channel(false);
        let sending = tokio::spawn(numbered.send_until(stopped));
        let probes = produce_until_full(&cluster, "probe", PROBE_BYTES).await;
        let seen = *acknowledged.borrow_and_update();
        println!("{seen} records and {probes} probes until the disk was full");
        assert!(seen > 0);

        assert_the_rest_is_served(&cluster, "probe", probes, "meanwhile").await;
        assert!(broker.is_running());
        assert!(broker.metric("moldau_appends_disk_full_total") > 0.0);
        let refused = produce(&cluster, "probe", PROBE_BYTES).await;
        assert_eq!(refused.0, ErrorCode::KafkaStorageError);

        std::fs::remove_file(&filler).unwrap();
        let resumed = acknowledged.wait_for(|count| *count > seen);
        soon("an acknowledgement", resumed).await.unwrap();
        stop.send(true).unwrap();
        let numbered = soon("the last record", sending).await.unwrap();
        let (count, problems) = numbered.verify(Repeats::Never).await;
        println!("{count} records acknowledged");
        assert_eq!(problems, Vec::<String>::new());
    });
}

#[test]
fn broker_starts_on_a_full_disk_and_accepts_records_after_a_topic_deletion() {
    let disk = Disk::new();
    let listen = any_address();
    block_on(async {
        let broker = disk.broker(listen);
        let cluster = connect(listen).await;
        create(&cluster, "ballast").await;
        let ballast = produce_until_full(&cluster, "ballast", BALLAST_BYTES).await;
        assert!(ballast > 0);
        broker.kill();
        // Somebody else takes the reserve too.
        drop(std::fs::write(disk.path("filler"), vec![0; FILLER_BYTES]).unwrap_err());

        let _broker = disk.broker(listen);
        let cluster = connect(listen).await;
        let wanted = [(TopicPartition::of("ballast", 0), OffsetSpec::Latest)];
        let listed = cluster.list_offsets(&wanted).await;
        assert_eq!(listed[&wanted[0].0].as_ref().unwrap().offset, ballast);
        std::fs::remove_file(disk.path("filler")).unwrap();
        assert_the_rest_is_served(&cluster, "ballast", ballast, "after").await;
        let deleted = Admin::new(&cluster).delete_topics(&["ballast".to_owned()]).await.unwrap();
        deleted.into_iter().for_each(|deleted| deleted.unwrap());
        assert_eq!(soon("space", wait_until_accepted(&cluster, "after")).await, 0);
    });
}
