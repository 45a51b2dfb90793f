//! Record encryption with all parts real: client, proxy with a key file, and broker with its disk.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use moldau_client::{
    Admin, Cluster, Delivery, Error, Fetcher, FetcherOptions, Producer, ProducerOptions, Record,
    Start, TopicSpec,
};
use moldau_encryption::{KeyFile, MARKER_KEY};
use moldau_protocol::ErrorCode;
use moldau_records::{Compression, Decompressor, HeaderView};

use crate::ledger::Repeats;
use crate::traffic::{Numbered, Reader, block_on, connect, now_ms, soon};
use crate::world::{Process, moldau};

/// Records to each topic.
const RECORDS: u64 = 500;

/// Bytes of a value: random letters, so that none of their windows occurs by chance.
const VALUE_BYTES: usize = 200;

/// What is looked for on the disk.
const WINDOW_BYTES: usize = 8;

/// A batch unpacks to no more.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Values by topic, in the order of their offsets.
type Values = BTreeMap<String, Vec<Vec<u8>>>;

/// A proxy that encrypts these topics, with `more` of the filter's configuration.
fn encrypting_proxy(dir: &Path, upstream: SocketAddr, topics: &[String], more: &str) -> Process {
    let keys = dir.join("keys");
    KeyFile::init(&keys).unwrap();
    for topic in topics {
        KeyFile::add(&keys, &format!("KEK_{topic}"), SystemTime::now()).unwrap();
    }
    let kms = format!("kms: {{key_file: {{path: \"{}\"}}}}", keys.display());
    proxy_with_filter(dir, upstream, &[more, &kms])
}

/// A proxy that encrypts each topic under a key of its own, with these further lines of the
/// filter's configuration, and logs all there is.
pub(crate) fn proxy_with_filter(dir: &Path, upstream: SocketAddr, lines: &[&str]) -> Process {
    let lines: String = lines.iter().map(|line| format!("          {line}\n")).collect();
    let text = format!(
        "admin: 127.0.0.1:0\n\
         virtual_clusters:\n\
         \x20 - name: main\n\
         \x20   bootstrap: 127.0.0.1:0\n\
         \x20   upstream: [\"{upstream}\"]\n\
         \x20   filters:\n\
         \x20     - record_encryption:\n\
         \x20         template: KEK_$(topicName)\n\
         {lines}"
    );
    let config = dir.join("encrypting.yaml");
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(moldau());
    command.args(["--log-level", "debug", "proxy", "--config"]).arg(config);
    Process::start(command)
}

/// A broker with small journal files, so that its disk is quickly read.
fn broker(dir: &Path) -> Process {
    let config = dir.join("broker.yaml");
    let data = dir.join("data");
    let text = format!(
        "log.dirs: {}\nlisteners: PLAINTEXT://127.0.0.1:0\nadmin: 127.0.0.1:0\njournal_file_mib: 2\n",
        data.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(moldau());
    command.arg("broker").arg("--config").arg(config);
    Process::start(command)
}

async fn create(cluster: &Cluster, topics: &[String]) {
    let specs: Vec<_> = topics.iter().map(|topic| TopicSpec::new(topic, 1)).collect();
    let created = Admin::new(cluster).create_topics(&specs, false).await.unwrap();
    created.into_iter().for_each(|created| created.unwrap());
}

/// Sends random values and returns them, and the errors by topic.
async fn produce(
    cluster: &Cluster,
    options: ProducerOptions,
    topics: &[String],
) -> (Values, BTreeMap<String, String>) {
    let errors: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
    let noted = Arc::clone(&errors);
    let sink = move |delivery: &Delivery<'_>| {
        if let Some(error) = delivery.error {
            noted.lock().unwrap().insert(delivery.topic.to_string(), error_code(error));
        }
    };
    let producer = Producer::start(cluster, options, sink).await.unwrap();
    let mut values = Values::new();
    for topic in topics {
        let partition = producer.partition(topic, 0).await.unwrap();
        let sent = values.entry(topic.clone()).or_default();
        for number in 0..RECORDS {
            let value: Vec<u8> = std::iter::repeat_with(|| fastrand::alphanumeric() as u8)
                .take(VALUE_BYTES)
                .collect();
            let record = Record {
                token: number,
                timestamp: now_ms(),
                key: Some(b"key"),
                value: Some(&value),
                headers: &[HeaderView { key: b"trace", value: None }],
            };
            producer.send(partition, &record).unwrap();
            sent.push(value);
        }
    }
    soon("a flush", producer.flush()).await;
    let errors = errors.lock().unwrap().clone();
    (values, errors)
}

fn error_code(error: &Error) -> String {
    match error {
        Error::Broker { code, .. } => format!("{code:?}"),
        other => other.to_string(),
    }
}

/// Reads the values of a topic, and how many records have a marker.
async fn read(cluster: &Cluster, topic: &str) -> (Vec<Vec<u8>>, usize) {
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    fetcher.assign(topic, 0, Start::Earliest).await.unwrap();
    let (mut values, mut marked) = (Vec::new(), 0);
    let mut decompressor = Decompressor::default();
    while (values.len() as u64) < RECORDS {
        let fetched = soon("a fetch", fetcher.next()).await.unwrap();
        fetched
            .for_each_record(&mut decompressor, BATCH_BYTES_MAX, |record| {
                values.push(record.value().unwrap().to_vec());
                let mut headers = record.headers().unwrap();
                marked += usize::from(headers.any(|it| it.key == MARKER_KEY.as_bytes()));
            })
            .unwrap();
    }
    (values, marked)
}

/// Panics if a window of any value stands in a file under `dir`.
fn assert_not_found(values: &Values, dir: &Path) {
    let windows: HashSet<&[u8]> =
        values.values().flatten().flat_map(|value| value.windows(WINDOW_BYTES)).collect();
    let mut bytes_read = 0;
    let mut directories = vec![dir.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            bytes_read += bytes.len();
            // Values consist of letters and digits; nothing else needs to be looked up.
            for part in bytes.split(|byte| !byte.is_ascii_alphanumeric()) {
                let found = part.windows(WINDOW_BYTES).find(|window| windows.contains(window));
                assert!(found.is_none(), "{found:?} is in {}", path.display());
            }
        }
    }
    assert!(bytes_read as u64 > 5 * RECORDS * VALUE_BYTES as u64, "{bytes_read} bytes on the disk");
}

#[test]
fn broker_disk_contains_no_clear_text() {
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(dir.path());
    let topic = |compression: Compression| format!("sealed-{}", compression.name());
    let topics: Vec<String> = Compression::ALL.iter().map(|it| topic(*it)).collect();
    let proxy = encrypting_proxy(dir.path(), broker.address, &topics, "");
    let values = block_on(async {
        let (through_proxy, direct) = (connect(proxy.address).await, connect(broker.address).await);
        create(&through_proxy, &topics).await;
        let mut values = Values::new();
        for compression in Compression::ALL {
            let idempotent = compression != Compression::Gzip;
            let options = ProducerOptions { compression, idempotent, ..Default::default() };
            let (sent, errors) = produce(&through_proxy, options, &[topic(compression)]).await;
            assert_eq!(errors, BTreeMap::new());
            values.extend(sent);
        }
        for (topic, sent) in &values {
            let (read_back, marked) = read(&through_proxy, topic).await;
            assert!(read_back == *sent && marked == 0, "{topic}");
            let (stored, marked) = read(&direct, topic).await;
            assert!(stored != *sent && marked as u64 == RECORDS, "{topic}");
        }
        values
    });
    let records = 5 * RECORDS;
    let metric = |name| proxy.metric(&format!("moldau_proxy_{name}{{virtual_cluster=\"main\"}}"));
    assert_eq!(metric("records_sealed_total"), records as f64);
    assert_eq!(metric("records_opened_total"), records as f64);
    assert!(broker.terminate().success());
    assert_not_found(&values, &dir.path().join("data"));
    let (_, said) = proxy.terminate_with_stderr();
    assert!(said.contains("session ended"), "the log shows all there is: {said}");
    let mut windows = values.values().flatten().map(|value| &value[..WINDOW_BYTES]);
    assert!(windows.all(|window| !said.contains(std::str::from_utf8(window).unwrap())));
    let keys = std::fs::read_to_string(dir.path().join("keys")).unwrap();
    let secrets: Vec<_> = keys.lines().filter_map(|line| line.split_once(" secret ")).collect();
    assert_eq!(secrets.len(), topics.len());
    assert!(secrets.iter().all(|(_, secret)| !said.contains(secret)));
}

#[test]
fn data_keys_are_replaced_under_load_without_errors() {
    const RECORDS_PER_KEY: u64 = 1000;
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(dir.path());
    let more = format!("records_per_key_max: {RECORDS_PER_KEY}");
    let proxy = encrypting_proxy(dir.path(), broker.address, &["rotated".to_owned()], &more);
    let records = block_on(async {
        let cluster = connect(proxy.address).await;
        // A batch with more than half of the records of a key could leave the other half unused.
        let options = ProducerOptions { batch_bytes: 32 << 10, ..ProducerOptions::default() };
        let mut numbered = Numbered::start(&cluster, "rotated", options).await;
        let mut reader = Reader::start(&numbered).await;
        for _ in 0..40 {
            for _ in 0..RECORDS_PER_KEY {
                numbered.send_one().await;
            }
            reader.read_some().await;
        }
        numbered.flush().await;
        reader.read_to_end().await;
        let ledger = numbered.into_ledger();
        let records = ledger.acknowledged();
        assert_eq!(records, 40 * RECORDS_PER_KEY);
        assert_eq!(ledger.into_problems(Repeats::Never), Vec::<String>::new());
        records
    });
    let metric = |name: &str, labels: &str| {
        let labels = format!("{{virtual_cluster=\"main\"{labels}}}");
        let value = proxy.metric(&format!("moldau_proxy_{name}_total{labels}"));
        value.to_string().parse::<u64>().unwrap()
    };
    let sealed = metric("records_sealed", "");
    assert_eq!((sealed, metric("records_opened", "")), (records, records));
    let calls = |operation: &str, outcome: &str| {
        let labels = format!(",operation=\"{operation}\",outcome=\"{outcome}\"");
        metric("kms_calls", &labels)
    };
    // The next key is asked for once more than half of the records of the one before are sealed,
    // and the last may have sealed nothing yet.
    let generated = calls("generate_data_key", "ok");
    let generated_max = sealed / (RECORDS_PER_KEY / 2 + 1) + 2;
    assert!((sealed / RECORDS_PER_KEY..=generated_max).contains(&generated), "{generated}");
    assert_eq!(metric("sealing_keys_replaced", ""), generated - 1);
    let opened = calls("decrypt_edek", "ok");
    assert!((generated - 1..=generated).contains(&opened), "{opened} of {generated}");
    assert_eq!(calls("resolve_alias", "ok"), 1);
    for outcome in ["unknown_key", "refused", "unavailable", "damaged_edek"] {
        for operation in ["generate_data_key", "decrypt_edek", "resolve_alias"] {
            assert_eq!(calls(operation, outcome), 0, "{operation} {outcome}");
        }
    }
}

/// A reload of an untouched configuration had every key asked for anew, of a service that may be
/// down.
#[test]
fn reload_keeps_data_keys_unless_their_source_changed() {
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(dir.path());
    let topics = ["kept".to_owned()];
    let mut proxy = encrypting_proxy(dir.path(), broker.address, &topics, "");
    let config = dir.path().join("encrypting.yaml");
    let text = std::fs::read_to_string(&config).unwrap();
    // Files are looked at now and then; a signal asks at once.
    let hangup = |proxy: &Process| {
        let id = proxy.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    };
    // As editors do, so that no half of it is taken.
    let rewrite = |text: String| {
        let beside = dir.path().join("beside.yaml");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(beside, &config).unwrap();
    };
    // Sends records, and tells how many the filter has sealed, under how many data keys.
    let produce = |proxy: &Process| {
        block_on(async {
            let options = ProducerOptions::default();
            let (_, errors) = produce(&connect(proxy.address).await, options, &topics).await;
            assert_eq!(errors, BTreeMap::new());
        });
        let generated = ",operation=\"generate_data_key\",outcome=\"ok\"";
        [("records_sealed", ""), ("kms_calls", generated)].map(|(name, labels)| {
            let labels = format!("{{virtual_cluster=\"main\"{labels}}}");
            proxy.metric(&format!("moldau_proxy_{name}_total{labels}"))
        })
    };
    let sent = RECORDS as f64;
    block_on(async { create(&connect(proxy.address).await, &topics).await });
    assert_eq!(produce(&proxy), [sent, 1.0]);

    // All places change, and the filter has another beside it.
    rewrite(format!("# The first line.\n{text}      - audit: {{}}\n"));
    hangup(&proxy);
    proxy.wait_for_line("other filters: main");
    assert_eq!(produce(&proxy), [2.0 * sent, 1.0]);

    KeyFile::add(&dir.path().join("keys"), "KEK_another", SystemTime::now()).unwrap();
    hangup(&proxy);
    proxy.wait_for_line("other filters: main");
    assert_eq!(produce(&proxy), [sent, 1.0]);

    rewrite(format!("{text}          records_per_key_max: 9999\n"));
    hangup(&proxy);
    proxy.wait_for_line("other filters: main");
    assert_eq!(produce(&proxy), [sent, 1.0]);
}

#[test]
fn topic_without_a_key_is_refused_alone() {
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(dir.path());
    let [sealed, clear] = ["sealed", "clear-a"].map(str::to_owned);
    let proxy = encrypting_proxy(dir.path(), broker.address, std::slice::from_ref(&sealed), "");
    block_on(async {
        let cluster = connect(proxy.address).await;
        let topics = [sealed.clone(), clear.clone()];
        create(&cluster, &topics).await;
        let (sent, errors) = produce(&cluster, ProducerOptions::default(), &topics).await;
        let refused = format!("{:?}", ErrorCode::InvalidRecord);
        assert_eq!(errors, BTreeMap::from([(clear, refused)]));
        let (read_back, _) = read(&cluster, &sealed).await;
        assert!(read_back == sent[&sealed]);
    });
}
