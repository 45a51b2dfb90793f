//! A broker with topics, and workers of `moldau run` on it.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use moldau_client::{
    Admin, Cluster, Delivery, Fetcher, FetcherOptions, Isolation, Producer, ProducerOptions,
    Record, Start, TopicSpec, partition_for_key,
};
use moldau_records::Decompressor;

use crate::traffic::{PATIENCE, connect, now_ms, soon};
use crate::world::{Process, moldau, run};

/// A broker and a directory for files.
pub(super) struct Site {
    pub(super) cluster: Cluster,
    broker: Process,
    dir: tempfile::TempDir,
}

/// A record that was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Seen {
    pub(super) key: Option<String>,
    pub(super) value: String,
    pub(super) headers: HashMap<String, String>,
}

impl Site {
    pub(super) async fn new(topics: &[(&str, i32)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let broker = Process::broker(&dir.path().join("data"), &["--durability", "os"]);
        let cluster = connect(broker.address).await;
        let specs: Vec<_> = topics.iter().map(|(name, it)| TopicSpec::new(name, *it)).collect();
        let created = Admin::new(&cluster).create_topics(&specs, false).await.unwrap();
        created.into_iter().for_each(|created| created.unwrap());
        Self { cluster, broker, dir }
    }

    pub(super) fn bootstrap(&self) -> String {
        self.broker.address.to_string()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The file of a worker of the group `workers` with these routes and other keys.
    pub(super) fn config(&self, name: &str, rest: &str) -> PathBuf {
        let head = format!("bootstrap.servers: {}\ngroup.id: workers\n", self.bootstrap());
        self.write(name, &format!("{head}{rest}"))
    }

    /// Starts a worker in the directory of the files.
    pub(super) fn worker(&self, config: &Path) -> Worker {
        Worker::start(config, self.dir.path())
    }

    pub(super) async fn produce(&self, topic: &str, records: &[(Option<&str>, &str)]) {
        let partitions = self.cluster.topic(topic).await.unwrap().partitions.len();
        let sink = |delivery: &Delivery<'_>| assert!(delivery.error.is_none(), "{delivery:?}");
        let producer = Producer::start(&self.cluster, ProducerOptions::default(), sink);
        let producer = producer.await.unwrap();
        for (key, value) in records {
            let key = key.map(str::as_bytes);
            let partition = key.map_or(0, |key| partition_for_key(key, partitions));
            let handle = producer.partition(topic, partition).await.unwrap();
            let value = Some(value.as_bytes());
            let record = Record { token: 0, timestamp: now_ms(), key, value, headers: &[] };
            producer.room_for(&record).await;
            producer.send(handle, &record).unwrap();
        }
        producer.close().await;
    }

    /// Reads a topic from its beginning until there is enough, partition by partition.
    pub(super) async fn read(&self, topic: &str, is_enough: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        self.read_with(FetcherOptions::default(), topic, is_enough).await
    }

    /// As [`read`](Self::read), records of committed transactions alone.
    pub(super) async fn read_committed(
        &self,
        topic: &str,
        is_enough: impl Fn(&[Seen]) -> bool,
    ) -> Vec<Seen> {
        let isolation = Isolation::ReadCommitted;
        self.read_with(FetcherOptions { isolation, ..Default::default() }, topic, is_enough).await
    }

    async fn read_with(
        &self,
        options: FetcherOptions,
        topic: &str,
        is_enough: impl Fn(&[Seen]) -> bool,
    ) -> Vec<Seen> {
        let partitions = self.cluster.topic(topic).await.unwrap().partitions.len();
        let mut fetcher = Fetcher::start(&self.cluster, options);
        for partition in (0..).take(partitions) {
            fetcher.assign(topic, partition, Start::Earliest).await.unwrap();
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut seen = Vec::new();
        while !is_enough(&seen) {
            let fetched = soon(topic, fetcher.next()).await.unwrap();
            let take = |record: &moldau_records::RecordView<'_>| {
                let headers = record.headers().unwrap();
                let header = |it: moldau_records::HeaderView<'_>| {
                    (text(it.key), text(it.value.unwrap_or_default()))
                };
                seen.push(Seen {
                    key: record.key().map(text),
                    value: record.value().map(text).unwrap_or_default(),
                    headers: headers.map(header).collect(),
                });
            };
            fetched.for_each_record(&mut Decompressor::default(), 1 << 20, take).unwrap();
        }
        seen
    }

    /// Reads a topic until it has `count` different values.
    pub(super) async fn values(&self, topic: &str, count: usize) -> Vec<String> {
        let distinct = |seen: &[Seen]| seen.iter().map(|it| it.value.clone()).collect();
        let has_all = |seen: &[Seen]| {
            let values: HashSet<String> = distinct(seen);
            values.len() >= count
        };
        self.read(topic, has_all).await.into_iter().map(|it| it.value).collect()
    }

    /// Offsets that the group `workers` has committed of a topic, in sum.
    /// The group `workers` as `moldau groups describe` shows it.
    pub(super) fn describe_group(&self) -> serde_json::Value {
        let at = self.bootstrap();
        let output = run(["groups", "describe", "workers", "--json", "--bootstrap", at.as_str()]);
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(super) async fn committed(&self, topic: &str) -> i64 {
        self.committed_by("workers", topic).await
    }

    /// Offsets that a group has committed of a topic, in sum.
    pub(super) async fn committed_by(&self, group: &str, topic: &str) -> i64 {
        let committed = self.cluster.committed_offsets(group).await.unwrap();
        committed.iter().filter(|(it, _)| &*it.topic == topic).map(|(_, offset)| *offset).sum()
    }
}

/// A process of `moldau run`, killed when it is dropped.
pub(super) struct Worker {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Worker {
    pub(super) fn start(config: &Path, directory: &Path) -> Self {
        let mut command = Command::new(moldau());
        command.arg("run").arg(config).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines, said: Vec::new() }
    }

    /// The next line of stderr that has this part.
    pub(super) fn wait_for_line(&mut self, part: &str) -> String {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("no line with {part:?} ({error}); said: {:#?}", self.said),
            }
        }
    }

    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and waits for the end. Returns what it said on stderr.
    pub(super) fn terminate(self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let (status, said) = self.ended();
        assert_eq!(status.code(), Some(0), "{said}");
        said
    }

    /// Waits for the end.
    pub(super) fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        self.said.extend(self.lines.iter());
        let said = self.said.join("\n");
        assert!(!said.contains("panicked"), "{said}");
        (status, said)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
