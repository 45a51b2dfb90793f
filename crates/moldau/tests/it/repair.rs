//! A broker on a data directory that is damaged, and `moldau broker repair`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use moldau_client::{
    Admin, Cluster, Fetcher, FetcherOptions, OffsetSpec, Purpose, Start, TopicPartition, TopicSpec,
};
use moldau_protocol::messages::ProduceRequest;
use moldau_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use moldau_protocol::{ErrorCode, VersionRange};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, Decompressor};
use tempfile::TempDir;

use crate::traffic::{block_on, connect, soon};
use crate::world::{Process, run};

/// Directories that are written until one is as the tests want it.
const ATTEMPTS_MAX: usize = 20;

/// Small files, so that there are several of each kind.
const CONFIG: &str =
    "journal_file_mib: 1\ntail_cache_mib: 1\nlog.retention.check.interval.ms: 50\n";
const TOPIC: &str = "orders";
const PARTITIONS: i32 = 2;
const RECORDS: i64 = 250;
/// Those written before sorting and checkpoints are waited for.
const SETTLED: i64 = 230;
const VALUE_BYTES: usize = 20_000;
/// Versions of Produce that name topics.
const PRODUCE_VERSIONS: VersionRange = VersionRange::new(3, 12);

/// The start of a value that no other record has.
fn tag(partition: i32, offset: i64) -> Vec<u8> {
    format!("[record {offset} of partition {partition}]").into_bytes()
}

fn value(partition: i32, offset: i64) -> Vec<u8> {
    let mut value = tag(partition, offset);
    value.resize(VALUE_BYTES, b'.');
    value
}

async fn produce(cluster: &Cluster, partition: i32, offset: i64) {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    // Retention lets nothing go that is young.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    let timestamp = i64::try_from(now).unwrap();
    builder.append(timestamp, None, Some(&value(partition, offset)), []).unwrap();
    let batch = builder.finish(Compression::None, &mut Compressor::default()).unwrap();
    let records = Some(Bytes::copy_from_slice(batch));
    let data = PartitionProduceData { index: partition, records, ..Default::default() };
    let topic_data = vec![TopicProduceData {
        name: TOPIC.into(),
        partition_data: vec![data],
        ..Default::default()
    }];
    let request = ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data, ..Default::default() };
    let connection = cluster.connection(0, Purpose::Data).await.unwrap();
    let answer = soon("an answer", connection.send_in(&request, PRODUCE_VERSIONS)).await.unwrap();
    let answer = &answer.responses[0].partition_responses[0];
    assert_eq!(ErrorCode::try_from(answer.error_code), Ok(ErrorCode::None));
    assert_eq!(answer.base_offset, offset);
}

async fn produce_all(cluster: &Cluster, offsets: std::ops::Range<i64>) {
    for offset in offsets {
        for partition in 0..PARTITIONS {
            produce(cluster, partition, offset).await;
        }
    }
}

async fn end_of(cluster: &Cluster, partition: i32) -> i64 {
    let partition = TopicPartition::of(TOPIC, partition);
    let listed = cluster.list_offsets(&[(partition.clone(), OffsetSpec::Latest)]).await;
    listed[&partition].as_ref().unwrap().offset
}

/// A directory with a broker's configuration and its data.
struct Place(TempDir);

impl Place {
    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    fn broker(&self) -> Process {
        let config = self.0.path().join("broker.yaml");
        fs::write(&config, CONFIG).unwrap();
        Process::broker(&self.data(), &["--config", config.to_str().unwrap()])
    }

    /// What a broker says that does not start.
    fn refusal(&self) -> String {
        let data = self.data();
        let arguments = ["broker", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        let output = run(arguments.into_iter().chain(["--data-dir", data.to_str().unwrap()]));
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn repair(&self, more: &[&str]) -> Output {
        let data = self.data();
        let arguments = ["broker", "repair", "--data-dir", data.to_str().unwrap()];
        run(arguments.into_iter().chain(more.iter().copied()))
    }

    /// A record that a start must read, and others after it: partition 1, with its place.
    fn behind_checkpoint(&self) -> Option<(i64, PathBuf, usize)> {
        let number =
            |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        // A kill between two renames leaves the one before the newest.
        let position = number(&fs::read(self.data().join("checkpoint")).ok()?, 32);
        (SETTLED..RECORDS - 2).find_map(|offset| {
            let (file, at) = self.find("journal", 1, offset)?;
            let base = number(&fs::read(&file).unwrap(), 40);
            (base + at as u64 > position).then_some((offset, file, at))
        })
    }

    fn copy(&self) -> Place {
        let copy = Place(tempfile::tempdir().unwrap());
        for dir in ["", "journal", "segments"] {
            fs::create_dir_all(copy.data().join(dir)).unwrap();
            for file in files(&self.data().join(dir)) {
                fs::copy(&file, copy.data().join(dir).join(file.file_name().unwrap())).unwrap();
            }
        }
        copy
    }

    /// The file of a subdirectory that holds a record, and where.
    fn find(&self, dir: &str, partition: i32, offset: i64) -> Option<(PathBuf, usize)> {
        let tag = tag(partition, offset);
        files(&self.data().join(dir)).into_iter().find_map(|file| {
            let bytes = fs::read(&file).unwrap();
            let is_live = file.extension().is_some_and(|it| it != "spare");
            let at = bytes.windows(tag.len()).position(|window| window == tag)?;
            is_live.then_some((file, at))
        })
    }
}

impl Place {
    /// Whether the broker reads this segment: a kill during a merge leaves the merged segment, or
    /// its inputs, as files that the next start removes.
    fn reads(&self, segment: &Path) -> bool {
        let bytes = fs::read(segment).unwrap();
        let tag = b"[record ";
        let at = bytes.windows(tag.len()).position(|window| window == tag).unwrap();
        flip(segment, at);
        let is_damage = self.repair(&[]).status.code() == Some(1);
        flip(segment, at);
        is_damage
    }

    /// The files of one kind; others may wait to be used again.
    fn files_of(&self, dir: &str, suffix: &str) -> Vec<PathBuf> {
        let mut found = files(&self.data().join(dir));
        found.retain(|path| path.extension().is_some_and(|it| it == suffix));
        found
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
    let mut files: Vec<_> = files.map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 4;
    fs::write(file, bytes).unwrap();
}

/// A directory whose broker was killed: several segments and journal files, records behind the last
/// checkpoint, committed offsets. The kill may come during a merge, when all segments were just
/// merged into one, or when a checkpoint was just written, which is not what is wanted here.
fn written() -> Place {
    let is_several = |place: &Place| {
        let segments = place.files_of("segments", "segment");
        segments.len() > 1
            && segments.iter().all(|segment| place.reads(segment))
            && place.files_of("journal", "journal").len() > 1
            && place.behind_checkpoint().is_some()
    };
    let mut places = std::iter::repeat_with(killed_while_writing).take(ATTEMPTS_MAX);
    places.find(is_several).expect("background work leaves several files more often than not")
}

fn killed_while_writing() -> Place {
    let place = Place(tempfile::tempdir().unwrap());
    let broker = place.broker();
    block_on(async {
        let cluster = connect(broker.address).await;
        let admin = Admin::new(&cluster);
        let topics = [TopicSpec::new(TOPIC, PARTITIONS), TopicSpec::new("other", 1)];
        let created = admin.create_topics(&topics, false).await.unwrap();
        created.into_iter().for_each(|created| created.unwrap());
        produce_all(&cluster, 0..SETTLED).await;
        let offsets = HashMap::from([(TopicPartition::of(TOPIC, 0), 77)]);
        cluster.commit_offsets("readers", &offsets).await.unwrap();
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let is_settled = |metric: &dyn Fn(&str) -> f64| {
            metric("moldau_segments_written_total") >= 4.0
                && metric("moldau_journal_files_retired_total") >= 2.0
        };
        let settled = async {
            while !is_settled(&|name| broker.metric(name)) {
                ticks.tick().await;
            }
        };
        soon("sorting and checkpoints", settled).await;
        // What comes now lies in the journal, behind a checkpoint.
        produce_all(&cluster, SETTLED..RECORDS).await;
    });
    broker.kill();
    place
}

/// What `repair --json` says is lost, by partition of the topic.
fn lost(output: &Output) -> BTreeMap<i32, BTreeSet<i64>> {
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut lost: BTreeMap<i32, BTreeSet<i64>> = BTreeMap::new();
    for entry in document["lost"].as_array().unwrap() {
        assert_eq!(entry["topic"], TOPIC);
        let number = |key: &str| entry[key].as_i64().unwrap();
        let offsets = number("first_offset")..=number("last_offset");
        lost.entry(i32::try_from(number("partition")).unwrap()).or_default().extend(offsets);
    }
    lost
}

/// Repairs and returns what was lost: reported first, kept aside, and not found again.
fn repaired(place: &Place, more: &[&str]) -> BTreeMap<i32, BTreeSet<i64>> {
    let told = place.repair(&[&["--json"], more].concat());
    assert_eq!(told.status.code(), Some(1), "{told:?}");
    let text = place.repair(more);
    assert_eq!(text.status.code(), Some(1), "{text:?}");
    let applied = place.repair(&[&["--json", "--apply"], more].concat());
    assert_eq!(applied.status.code(), Some(0), "{applied:?}");
    assert_eq!(lost(&applied), lost(&told));
    let again = place.repair(&[]);
    assert_eq!(again.status.code(), Some(0), "{again:?}");
    assert!(String::from_utf8(again.stdout).unwrap().starts_with("no damage; "));
    lost(&told)
}

/// A broker that goes on: every record but the lost ones, groups and topics.
fn assert_broker_recovers(place: &Place, lost: &BTreeMap<i32, BTreeSet<i64>>) {
    let broker = place.broker();
    block_on(async {
        let cluster = connect(broker.address).await;
        for partition in 0..PARTITIONS {
            let lost = lost.get(&partition).cloned().unwrap_or_default();
            let end = end_of(&cluster, partition).await;
            assert!(end >= RECORDS, "{end}");
            produce(&cluster, partition, end).await;
            let kept = (0..RECORDS).filter(|offset| !lost.contains(offset)).chain([end]);
            let expected: Vec<i64> = kept.collect();
            assert_eq!(read(&cluster, partition, end).await, expected);
        }
    });
    assert_eq!(broker.terminate().code(), Some(0));
}

/// The offsets of a partition up to `last`, each with its own value.
async fn read(cluster: &Cluster, partition: i32, last: i64) -> Vec<i64> {
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    fetcher.assign(TOPIC, partition, Start::Earliest).await.unwrap();
    let (mut found, mut decompressor) = (Vec::new(), Decompressor::default());
    while found.last() != Some(&last) {
        let fetched = soon("a fetch", fetcher.next()).await.unwrap();
        let walked = fetched.for_each_record(&mut decompressor, 1 << 20, |record| {
            assert_eq!(record.value(), Some(&value(partition, record.offset())[..]));
            found.push(record.offset());
        });
        walked.unwrap();
    }
    found
}

async fn committed(address: SocketAddr) -> HashMap<TopicPartition, i64> {
    connect(address).await.committed_offsets("readers").await.unwrap()
}

fn assert_groups_and_topics(place: &Place) {
    let broker = place.broker();
    block_on(async {
        let found = committed(broker.address).await;
        assert_eq!(found, HashMap::from([(TopicPartition::of(TOPIC, 0), 77)]));
        let topics = connect(broker.address).await.all_topics().await.unwrap().topics;
        assert!(topics.contains_key(TOPIC) && topics.contains_key("other"), "{topics:?}");
    });
    broker.kill();
}

#[test]
fn repair_loses_only_the_damaged_record_of_the_journal() {
    let place = written();
    let (offset, file, at) = place.behind_checkpoint().unwrap();
    flip(&file, at);
    let refusal = place.refusal();
    assert!(refusal.contains(file.to_str().unwrap()), "{refusal}");
    assert!(refusal.contains("is damaged at byte"), "{refusal}");
    assert!(refusal.contains("`moldau broker repair --data-dir "), "{refusal}");
    let text = String::from_utf8(place.repair(&[]).stdout).unwrap();
    assert!(text.contains(file.to_str().unwrap()), "{text}");
    assert!(text.contains(&format!("orders-1: offsets {offset} to {offset}")), "{text}");
    let lost = repaired(&place, &[]);
    assert_eq!(lost, BTreeMap::from([(1, BTreeSet::from([offset]))]));
    assert_groups_and_topics(&place);
    assert_broker_recovers(&place, &lost);
    let kept = fs::read_dir(place.data()).unwrap().map(|entry| entry.unwrap().path());
    let aside = kept.into_iter().find(|path| path.to_string_lossy().contains("damaged-")).unwrap();
    assert!(aside.join(file.file_name().unwrap()).exists());
}

#[test]
fn fetch_of_a_damaged_segment_block_fails_and_names_repair() {
    let place = written();
    let (file, at) = place.find("segments", 0, 3).unwrap();
    flip(&file, at);
    let mut broker = place.broker();
    block_on(async {
        let cluster = connect(broker.address).await;
        let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
        fetcher.assign(TOPIC, 0, Start::Earliest).await.unwrap();
        let fetching = tokio::time::timeout(Duration::from_secs(1), fetcher.next());
        assert!(!matches!(fetching.await, Ok(Ok(_))), "damaged records were served");
    });
    broker.wait_for_line("`moldau broker repair`");
    broker.kill();
    let lost = repaired(&place, &[]);
    assert!(lost[&0].contains(&3) && lost[&0].len() < 100, "{lost:?}");
    assert_groups_and_topics(&place);
    assert_broker_recovers(&place, &lost);
}

#[test]
fn repair_keeps_all_records_unaffected_by_lost_or_swapped_files() {
    let place = written();
    let segments = place.files_of("segments", "segment");
    let live = place.files_of("journal", "journal");
    let (one, other) = (segments.first().unwrap(), segments.last().unwrap());
    let swap = |copy: &Place, dir: &str, one: &Path, other: &Path| {
        let [one, other] =
            [one, other].map(|path| copy.data().join(dir).join(path.file_name().unwrap()));
        let between = copy.data().join("between");
        fs::rename(&one, &between).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::rename(&between, &other).unwrap();
    };
    for case in ["segment lost", "segments swapped", "journal swapped", "journal cut", "identity"] {
        let copy = place.copy();
        let of = |path: &Path, dir: &str| copy.data().join(dir).join(path.file_name().unwrap());
        match case {
            "segment lost" => fs::remove_file(of(one, "segments")).unwrap(),
            "segments swapped" => swap(&copy, "segments", one, other),
            "journal swapped" => swap(&copy, "journal", &live[0], &live[1]),
            "journal cut" => {
                let file =
                    fs::OpenOptions::new().write(true).open(of(&live[0], "journal")).unwrap();
                file.set_len(300_000).unwrap();
            }
            _ => flip(&copy.data().join("moldau.meta"), 20),
        }
        let refusal = copy.refusal();
        assert!(refusal.contains("moldau broker repair"), "{case}: {refusal}");
        let lost = repaired(&copy, &[]);
        let is_harmless = ["segments swapped", "journal swapped", "identity"].contains(&case);
        assert!(!is_harmless || lost.is_empty(), "{case}: {lost:?}");
        assert_groups_and_topics(&copy);
        assert_broker_recovers(&copy, &lost);
    }
}

#[test]
fn one_damaged_checkpoint_loses_nothing_and_two_lose_no_record() {
    let place = written();
    flip(&place.data().join("checkpoint"), 30);
    // A broker that starts soon writes a whole one.
    assert!(repaired(&place.copy(), &[]).is_empty());
    let broker = place.broker();
    block_on(async { assert_eq!(end_of(&connect(broker.address).await, 0).await, RECORDS) });
    broker.kill();

    for name in ["checkpoint", "checkpoint.previous"] {
        let mut bytes = fs::read(place.data().join(name)).unwrap();
        bytes.fill(0);
        fs::write(place.data().join(name), bytes).unwrap();
    }
    assert!(place.refusal().contains("moldau broker repair"));
    let told = place.repair(&["--json"]);
    let document: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let topics = document["recovered_topics"].as_array().unwrap();
    assert_eq!((topics.len(), topics[0]["partitions"].as_i64()), (1, Some(2)), "{document}");
    let id = topics[0]["topic_id"].as_str().unwrap();
    assert_eq!(topics[0]["name"], format!("recovered-{id}"));
    let unfit = place.repair(&["--topic", &format!("{id}=no/name")]);
    assert!(String::from_utf8(unfit.stderr).unwrap().contains("Topic name is invalid"));
    let lost = repaired(&place, &["--topic", &format!("{id}={TOPIC}")]);
    assert!(lost.is_empty(), "{lost:?}");
    assert_broker_recovers(&place, &lost);
}

#[test]
fn repair_refuses_operator_mistakes_without_changes() {
    let empty = Place(tempfile::tempdir().unwrap());
    fs::create_dir(empty.data()).unwrap();
    for more in [&[][..], &["--apply"]] {
        let refused = empty.repair(more);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains("is not a data directory"), "{text}");
        assert_eq!(files(&empty.data()), Vec::<PathBuf>::new());
    }
    let broker = empty.broker();
    let text = String::from_utf8(empty.repair(&["--apply"]).stderr).unwrap();
    assert!(text.contains("is in use by another process"), "{text}");
    assert_eq!(broker.terminate().code(), Some(0));
    assert_eq!(empty.repair(&["--apply"]).status.code(), Some(0));
    let text = String::from_utf8(empty.repair(&["--topic", "x"]).stderr).unwrap();
    assert!(text.contains("is not ID=NAME"), "{text}");
}
