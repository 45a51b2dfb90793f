//! The tools for the terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use moldau_client::{
    Admin, Cluster, ClusterOptions, FetcherOptions, GroupConsumer, GroupOptions, MembershipOptions,
    Reset, TopicPartition,
};

use crate::traffic::{block_on, connect, soon};
use crate::world::{Process, free_port, moldau, run, run_unread};

/// Far beyond what any of these take.
const PATIENCE: Duration = Duration::from_mins(2);

/// Sends these lines to a topic of one partition, which is made.
fn produce(broker: &Process, topic: &str, lines: &[u8], more: &[&str]) -> Output {
    let bootstrap = broker.address.to_string();
    let created = run(["topics", "create", topic, "--bootstrap", &bootstrap]);
    assert!(created.status.success(), "{created:?}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    let child = Command::new(moldau())
        .args(["produce", topic, "--bootstrap", &bootstrap])
        .args(more)
        .stdin(std::fs::File::open(file.path()).unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let id = child.id().to_string();
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
    ended.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let killed = Command::new("kill").args(["-KILL", &id]).status();
        panic!("it never ends ({killed:?})")
    })
}

/// What it prints, as it does.
fn lines(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let mut printed = BufReader::new(output).lines().map_while(Result::ok);
        printed.try_for_each(|line| sender.send(line))
    });
    lines
}

/// Raises the number of partitions of a topic.
fn add_partitions(broker: &Process, topic: &str, count: &str) {
    let bootstrap = broker.address.to_string();
    let raised = run(["topics", "grow", topic, "--partitions", count, "--bootstrap", &bootstrap]);
    assert!(raised.status.success(), "{raised:?}");
}

#[test]
fn produce_sends_a_line_before_the_next_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    let bootstrap = broker.address.to_string();
    let created = run(["topics", "create", "typed", "--bootstrap", &bootstrap]);
    assert!(created.status.success(), "{created:?}");
    let mut producer = Command::new(moldau())
        .args(["produce", "typed", "--bootstrap", &bootstrap])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = producer.stdin.take().unwrap();
    for line in ["first", "second"] {
        writeln!(stdin, "{line}").unwrap();
        let count = if line == "first" { "1" } else { "2" };
        let consume = ["consume", "typed", "--from-beginning", "-n", count];
        let read = run([&consume[..], &["--bootstrap", &bootstrap]].concat());
        assert!(String::from_utf8(read.stdout).unwrap().contains(line));
    }
    drop(stdin);
    assert!(producer.wait().unwrap().success());
}

/// It waited for less room than a record takes, and did nothing else any more.
#[test]
fn more_lines_than_the_buffer_holds_are_all_sent() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    let line = [&[b'v'; 79][..], b"\n"].concat();
    let count = (40 << 20) / line.len();
    let output = produce(&broker, "many", &line.repeat(count), &["--json"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains(&format!("\"delivered\":{count},")), "{said}");
}

#[test]
fn lines_before_an_unsendable_line_are_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    let output = produce(&broker, "keyed", b"a:1\nb:2\nc3\nd:4\n", &["--key-separator", ":"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("2 records delivered to keyed"), "{said}");
    assert!(said.contains("line 3 has no \":\" between key and value"), "{said}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn logs_outside_a_terminal_have_no_colours() {
    let dir = tempfile::tempdir().unwrap();
    let mut broker = Process::broker(dir.path(), &["--log-level", "debug"]);
    run(["topics", "list", "--bootstrap", &broker.address.to_string()]);
    let line = broker.wait_for_line("connection closed");
    assert!(!line.contains('\u{1b}'), "{line:?}");
}

#[test]
fn exit_at_end_cannot_be_combined_with_group() {
    let output = run(["consume", "t", "--group", "g", "--exit-at-end"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot be used with"), "{said}");
}

/// Killed, it would keep its partitions from the next until its session is over.
#[test]
fn stopped_member_commits_printed_records_and_leaves_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    let sent = produce(&broker, "orders", b"first\nsecond\n", &[]);
    assert!(sent.status.success(), "{sent:?}");
    let partition = TopicPartition::of("orders", 0);
    for (name, protocol) in [("TERM", "classic"), ("INT", "classic"), ("TERM", "consumer")] {
        let group = format!("{name}-{protocol}");
        let mut member = Command::new(moldau())
            .args(["consume", "orders", "--from-beginning", "--group", &group, "--bootstrap"])
            .arg(broker.address.to_string())
            .args(["--group-protocol", protocol])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let printed = lines(member.stdout.take().unwrap());
        let printed = [(); 2].map(|()| printed.recv_timeout(PATIENCE).unwrap());
        assert_eq!(printed, ["first", "second"]);
        let asked = [&format!("-{name}"), &member.id().to_string()];
        assert!(Command::new("kill").args(asked).status().unwrap().success());
        assert_eq!(member.wait().unwrap().code(), Some(0), "{name}");
        block_on(async {
            let cluster = connect(broker.address).await;
            let admin = Admin::new(&cluster);
            if protocol == "classic" {
                let known = soon("the group", admin.describe_group(&group)).await.unwrap();
                assert_eq!((known.group_state.as_str(), known.members.len()), ("Empty", 0));
            }
            let known = soon("offsets", cluster.committed_offsets(&group)).await.unwrap();
            assert_eq!(known.get(&partition), Some(&2));
        });
    }
}

/// It ended with the connection, and its partitions were idle until its session was over.
#[test]
fn member_commits_after_its_coordinator_returns() {
    let dir = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let broker = Process::broker_on(address, dir.path(), &[]);
    let sent = produce(&broker, "orders", b"first\nsecond\n", &[]);
    assert!(sent.status.success(), "{sent:?}");
    block_on(async {
        let cluster = connect(address).await;
        let fetcher = FetcherOptions { reset: Reset::Earliest, ..FetcherOptions::default() };
        let topics = vec!["orders".to_owned()];
        let membership = MembershipOptions { topics, ..MembershipOptions::default() };
        let options = GroupOptions { membership, fetcher };
        let joined = GroupConsumer::join(&cluster, "workers", options);
        let mut consumer = soon("joining", joined).await.unwrap();
        let fetched = soon("a fetch", consumer.next()).await.unwrap();
        broker.kill();
        let _broker = Process::broker_on(address, dir.path(), &[]);
        let committed = soon("a commit", consumer.commit()).await;
        let partition = TopicPartition::of("orders", 0);
        let known = soon("offsets", cluster.committed_offsets("workers")).await.unwrap();
        match committed {
            Ok(()) => assert_eq!(known.get(&partition), Some(&fetched.next_position)),
            // The group begins anew, and so does the member.
            Err(error) => assert!(error.is_left_behind(), "{error}"),
        }
    });
}

/// They kept to those that the topic had when they began.
#[test]
fn running_tools_use_added_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let broker = Process::broker_on(address, dir.path(), &[]);
    let bootstrap = address.to_string();
    assert!(produce(&broker, "orders", b"", &[]).status.success());
    let running = |arguments: &[&str]| {
        let mut command = Command::new(moldau());
        command.args(arguments).args(["orders", "--bootstrap", &bootstrap]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let mut consumer = running(&["consume", "--from-beginning", "--json", "-n", "4"]);
    let read = lines(consumer.stdout.take().unwrap());
    let read = || read.recv_timeout(PATIENCE).unwrap();
    let mut producer = running(&["produce", "--log-level", "debug"]);
    let said = lines(producer.stderr.take().unwrap());
    let mut stdin = producer.stdin.take().unwrap();
    writeln!(stdin, "one").unwrap();
    assert!(read().contains("\"partition\":0"));
    add_partitions(&broker, "orders", "2");
    // Who meets no broker asks anew what the cluster has.
    broker.kill();
    writeln!(stdin, "two").unwrap();
    while !said.recv_timeout(PATIENCE).unwrap().contains("not reachable") {}
    let _broker = Process::broker_on(address, dir.path(), &[]);
    assert!(read().contains("\"two\""));
    writeln!(stdin, "three\nfour").unwrap();
    let mut found = [read(), read()];
    found.sort();
    assert!(found[0].contains("\"partition\":0"), "{found:?}");
    assert!(found[1].contains("\"partition\":1"), "{found:?}");
    drop(stdin);
    assert!(producer.wait().unwrap().success());
    assert!(consumer.wait().unwrap().success());
}

#[test]
fn group_consumes_added_partitions() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    assert!(produce(&broker, "orders", b"first\n", &[]).status.success());
    let bootstrap = [broker.address.to_string()];
    block_on(async {
        let metadata_max_age = Duration::from_millis(10);
        let options = ClusterOptions { metadata_max_age, ..ClusterOptions::default() };
        let cluster = Cluster::connect(&bootstrap, options).await.unwrap();
        let fetcher = FetcherOptions { reset: Reset::Earliest, ..FetcherOptions::default() };
        let topics = vec!["orders".to_owned()];
        let membership = MembershipOptions { topics, ..MembershipOptions::default() };
        let options = GroupOptions { membership, fetcher };
        let joined = GroupConsumer::join(&cluster, "workers", options);
        let mut consumer = soon("joining", joined).await.unwrap();
        assert_eq!(soon("a fetch", consumer.next()).await.unwrap().partition, 0);
        assert_eq!(consumer.membership().held().len(), 1);
        add_partitions(&broker, "orders", "3");
        let lines = b"second\nthird\nfourth\n";
        let mut producer = Command::new(moldau())
            .args(["produce", "orders", "--bootstrap", &bootstrap[0]])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        producer.stdin.take().unwrap().write_all(lines).unwrap();
        assert!(producer.wait().unwrap().success());
        let mut left = vec![0, 1, 2];
        while !left.is_empty() {
            let fetched = soon("a fetch", consumer.next()).await.unwrap();
            left.retain(|partition| *partition != fetched.partition);
        }
        assert_eq!(consumer.membership().held().len(), 3);
    });
}

/// A default that the broker's file gives to topics looked like Kafka's own.
#[test]
fn describe_shows_the_source_of_each_value() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broker.yaml");
    std::fs::write(&file, "log.retention.hours: 2\n").unwrap();
    let data = dir.path().join("data");
    let broker = Process::broker(&data, &["--config", file.to_str().unwrap()]);
    let bootstrap = broker.address.to_string();
    let at = ["--bootstrap", &bootstrap];
    let own = ["topics", "create", "orders", "--config", "retention.bytes=5"];
    assert!(run([own.as_slice(), &at].concat()).status.success());
    let described = run([["topics", "describe", "orders", "--json"].as_slice(), &at].concat());
    let described: serde_json::Value = serde_json::from_slice(&described.stdout).unwrap();
    let configs = described["configs"].as_array().unwrap();
    for (name, value, source) in [
        ("retention.ms", "7200000", "broker"),
        ("retention.bytes", "5", "topic"),
        ("max.message.bytes", "1048588", "default"),
    ] {
        let config = configs.iter().find(|config| config["name"] == name).unwrap();
        assert_eq!((&config["value"], &config["source"]), (&value.into(), &source.into()));
    }
}

/// Each of these panicked, or said that the pipe is broken.
#[test]
fn commands_whose_reader_is_gone_end_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    assert!(produce(&broker, "read", b"first\nsecond\n", &[]).status.success());
    let bootstrap = broker.address.to_string();
    let file = dir.path().join("server.properties");
    std::fs::write(&file, "log.dirs=/data\n").unwrap();
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 9] = [
        &["topics", "--bootstrap", &bootstrap],
        &["topics", "--bootstrap", &bootstrap, "--json"],
        &["topics", "describe", "read", "--bootstrap", &bootstrap],
        &["groups", "--bootstrap", &bootstrap, "--json"],
        &["consume", "read", "--from-beginning", "--bootstrap", &bootstrap],
        &["consume", "read", "--from-beginning", "--json", "--bootstrap", &bootstrap],
        &["broker", "import", file],
        &["proxy", "import", "--kafka-proxy", "--", "--bootstrap-server-mapping=a:1,127.0.0.1:2"],
        &["lab", "list"],
    ];
    for command in commands {
        // What a shell says of a process that SIGPIPE has ended.
        assert_eq!(run_unread(command), (Some(141), String::new()), "{command:?}");
    }
}
