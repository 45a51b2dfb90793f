//! Threads that panic in a running broker or proxy: what waits is answered, the process ends with
//! exit code 1 and a line that names the thread, and what was acknowledged is there afterwards.

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use moldau_client::{Admin, Fetcher, FetcherOptions, ProducerOptions, Purpose, Start};
use moldau_client::{TopicPartition, TopicSpec};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::CreateTopicsRequest;
use moldau_protocol::messages::create_topics_request::CreatableTopic;
use moldau_records::Decompressor;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::ledger::Repeats;
use crate::traffic::{
    Numbered, TICK, block_on, connect, create, produce_once, produce_within, soon,
};
use crate::world::{Process, broker_command, free_port, moldau};

/// Settings with which all threads soon have something to do.
const CONFIG: &str = "journal_file_mib: 1\ntail_cache_mib: 1\nlog.cleaner.backoff.ms: 100\n";

/// Records that fill a few journal files.
const VALUE_BYTES: usize = 100 << 10;

/// A broker on the data directory in `dir`, with faults as `moldau_threads` reads them.
fn broker(dir: &Path, listen: SocketAddr, faults: &str) -> Process {
    let config = dir.join("broker.yaml");
    std::fs::write(&config, CONFIG).unwrap();
    let mut command = broker_command(listen, &dir.join("data"));
    command.arg("--config").arg(config).env("MOLDAU_FAULTS", faults);
    Process::start(command)
}

fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_port()))
}

/// Waits for the end that a fault brings about.
async fn failed(process: Process, culprit: &str) {
    let ending = tokio::task::spawn_blocking(move || process.wait_with_stderr());
    let (status, said) = soon("the end of the process", ending).await.unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    let is_told = said.lines().any(|line| line.starts_with("moldau ") && line.contains(culprit));
    assert!(is_told, "{said}");
}

/// A broker lived on without its thread: nothing was acknowledged, or nothing sorted, or no client
/// accepted, and its pages called it well.
#[test]
fn panic_of_a_thread_stops_the_broker_without_loss() {
    for (fault, culprit) in [
        ("journal=panic@30", "moldau-journal"),
        ("files=panic@2", "moldau-files"),
        ("upkeep=panic@2", "moldau-upkeep"),
        ("scrub=panic@1", "moldau-scrub"),
        ("checkpoint=panic@1", "a checkpoint"),
        ("compaction=panic@1", "a compaction"),
        ("network=panic@20", "moldau-net"),
    ] {
        println!("{fault}");
        let (dir, listen) = (TempDir::new().unwrap(), loopback());
        let process = broker(dir.path(), listen, "");
        block_on(async {
            let cluster = connect(listen).await;
            let mut compacted = TopicSpec::new("compacted", 1);
            compacted.configs.push(("cleanup.policy".into(), "compact".into()));
            let created = Admin::new(&cluster).create_topics(&[compacted], false).await.unwrap();
            created.into_iter().for_each(|created| created.unwrap());
            let numbered = Numbered::start(&cluster, "numbered", ProducerOptions::default()).await;
            assert!(process.terminate().success());

            let process = broker(dir.path(), listen, fault);
            let (stop, stopped) = watch::channel(false);
            let sending = tokio::spawn(send(numbered, stopped));
            let knocking = tokio::spawn(knock(listen));
            let filling = tokio::spawn(send_large(listen));
            failed(process, culprit).await;
            knocking.abort();
            filling.abort();

            let process = broker(dir.path(), listen, "");
            stop.send(true).unwrap();
            let numbered = soon("the last record", sending).await.unwrap();
            let (count, problems) = numbered.verify(Repeats::Never).await;
            assert_eq!(problems, Vec::<String>::new());
            println!("{count} records acknowledged");
            assert!(process.terminate().success());
        });
    }
}

/// Sends numbered records in no hurry until told to stop.
async fn send(mut numbered: Numbered, stopped: watch::Receiver<bool>) -> Numbered {
    let mut ticks = tokio::time::interval(TICK);
    while !*stopped.borrow() {
        ticks.tick().await;
        numbered.send_one().await;
    }
    numbered
}

/// Connects and leaves, as those do who look whether a broker is there.
async fn knock(listen: SocketAddr) {
    let mut ticks = tokio::time::interval(TICK);
    loop {
        ticks.tick().await;
        drop(tokio::net::TcpStream::connect(listen).await);
    }
}

/// Fills journal files until the broker ends.
async fn send_large(listen: SocketAddr) {
    let cluster = connect(listen).await;
    let connection = cluster.connection(0, Purpose::Data).await.unwrap();
    let mut ticks = tokio::time::interval(TICK);
    while produce_once(&connection, "compacted", VALUE_BYTES).await.is_ok() {
        ticks.tick().await;
    }
}

#[test]
fn requests_waiting_for_a_panicking_journal_get_an_error() {
    let (dir, listen) = (TempDir::new().unwrap(), loopback());
    let process = broker(dir.path(), listen, "journal=panic@10");
    block_on(async {
        let cluster = connect(listen).await;
        create(&cluster, "waiting").await;
        let connection = cluster.connection(0, Purpose::Data).await.unwrap();
        let refused = loop {
            let (code, _) = produce_once(&connection, "waiting", 100).await.unwrap();
            if code != ErrorCode::None {
                break code;
            }
        };
        assert_eq!(refused, ErrorCode::KafkaStorageError);
        failed(process, "moldau-journal").await;
    });
}

/// Producers waited for as long as the disk took, and so did everything behind their requests.
#[test]
fn hanging_disk_gives_retriable_errors_and_loses_no_record() {
    let seconds = std::env::var("MOLDAU_STALL_SECONDS").map_or(8, |it| it.parse().unwrap());
    let (dir, listen) = (TempDir::new().unwrap(), loopback());
    let millis = seconds * 1000;
    let faults = format!("journal=stall:{millis}@60,files=stall:{millis}@2");
    let process = broker(dir.path(), listen, &faults);
    block_on(async {
        let cluster = connect(listen).await;
        create(&cluster, "stalled").await;
        let request_timeout = Duration::from_secs(2);
        let options = ProducerOptions { request_timeout, ..ProducerOptions::default() };
        let numbered = Numbered::start(&cluster, "numbered", options).await;
        let (stop, stopped) = watch::channel(false);
        let sending = tokio::spawn(send(numbered, stopped));
        let connection = cluster.connection(0, Purpose::Data).await.unwrap();
        let produce = || async {
            produce_within(&connection, "stalled", 100, Duration::from_secs(1)).await.unwrap().0
        };
        let refused = loop {
            match produce().await {
                ErrorCode::None => {}
                code => break code,
            }
        };
        assert_eq!(refused, ErrorCode::RequestTimedOut);
        let not_ready = loop {
            let page = process.page("/readyz");
            if page != "ready\n" {
                break page;
            }
            assert_ne!(produce().await, ErrorCode::None, "the disk is back, but was never gone");
        };
        assert!(not_ready.contains("the journal has waited for the disk"), "{not_ready}");
        let topic = CreatableTopic {
            name: "late".into(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request =
            CreateTopicsRequest { topics: vec![topic], timeout_ms: 1000, ..Default::default() };
        let created = soon("an answer", connection.send(&request)).await.unwrap();
        assert_eq!(created.topics[0].error_code, i16::from(ErrorCode::RequestTimedOut));
        assert_eq!(process.page("/livez"), "ok\n");
        while produce().await != ErrorCode::None {}
        let created = soon("an answer", connection.send(&request)).await.unwrap();
        assert_eq!(created.topics[0].error_code, i16::from(ErrorCode::TopicAlreadyExists));
        assert_eq!(process.page("/readyz"), "ready\n");
        stop.send(true).unwrap();
        let numbered = soon("the last record", sending).await.unwrap();
        let (count, problems) = numbered.verify(Repeats::Never).await;
        assert_eq!(problems, Vec::<String>::new());
        println!("{count} records acknowledged");
    });
    assert!(process.terminate().success());
}

/// A consumer waited for ever for a chunk that nobody loaded any more.
#[test]
fn panic_of_a_read_does_not_affect_a_consumer() {
    let (dir, listen) = (TempDir::new().unwrap(), loopback());
    let process = broker(dir.path(), listen, "reader=panic@1,reader=panic@3");
    block_on(async {
        let cluster = connect(listen).await;
        create(&cluster, "cold").await;
        let connection = cluster.connection(0, Purpose::Data).await.unwrap();
        for at in 0..60 {
            let produced = produce_once(&connection, "cold", VALUE_BYTES).await.unwrap();
            assert_eq!(produced, (ErrorCode::None, at));
        }
        let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
        fetcher.assign("cold", 0, Start::Earliest).await.unwrap();
        let (mut next, mut decompressor) = (0, Decompressor::default());
        while next < 60 {
            let fetched = soon("a fetch", fetcher.next()).await.unwrap();
            assert_eq!(fetched.topic_partition(), TopicPartition::of("cold", 0));
            let walked = fetched.for_each_record(&mut decompressor, 1 << 20, |record| {
                assert_eq!(record.offset(), next);
                next += 1;
            });
            walked.unwrap();
        }
    });
    assert_eq!(process.metric("moldau_storage_defects_total"), 2.0);
    assert_eq!(process.page("/livez"), "ok\n");
    assert!(process.terminate_failing_with_stderr().0.success());
}

/// A proxy in front of an address, with an audit, on two threads.
fn proxy(dir: &Path, upstream: SocketAddr, faults: &str) -> Process {
    let config = dir.join("proxy.yaml");
    let text = format!(
        "admin: 127.0.0.1:0\nnetwork_threads: 2\nvirtual_clusters:\n  - name: main\n    \
         bootstrap: 127.0.0.1:0\n    upstream: [\"{upstream}\"]\n    broker_port_start: {}\n    \
         filters:\n      - audit: {{file: audit.jsonl, apis: [Metadata]}}\n",
        free_port()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(moldau());
    command.arg("proxy").arg("--config").arg(config);
    command.current_dir(dir).env("MOLDAU_FAULTS", faults);
    Process::start(command)
}

#[test]
fn panic_of_a_thread_stops_the_proxy() {
    for (fault, culprit) in [("network=panic@15", "moldau-proxy"), ("audit=panic@1", "audit")] {
        let (dir, listen) = (TempDir::new().unwrap(), loopback());
        let _broker = broker(dir.path(), listen, "");
        let proxy = proxy(dir.path(), listen, fault);
        let address = proxy.address;
        block_on(async {
            let asking = tokio::spawn(async move {
                let cluster = connect(address).await;
                drop(cluster.all_topics().await);
            });
            let knocking = tokio::spawn(knock(address));
            failed(proxy, culprit).await;
            knocking.abort();
            asking.abort();
        });
        assert!(TcpStream::connect(address).is_err());
    }
}
