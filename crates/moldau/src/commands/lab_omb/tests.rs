//! Files in the shapes of the benchmark's own are read, and keys without a counterpart are reported
//! by line.

use clap::Parser;
use moldau_lab::experiments::asked::Payload;
use moldau_load::shape::{Keys, SizeShare, Sizes};
use moldau_load::workload::{Acks, Codec};

use super::*;
use crate::arguments::{Arguments, Command, LabQuestion};

const WORKLOAD: &str = "\
name: 1 producer / 1 consumers on 1 topic

topics: 1
partitionsPerTopic: 16
keyDistributor: \"NO_KEY\"
messageSize: 1024
payloadFile: \"payload/payload-1Kb.data\"
subscriptionsPerTopic: 1
consumerPerSubscription: 1
producersPerTopic: 1
producerRate: 50000
consumerBacklogSizeGB: 0
testDurationMinutes: 15
";

const DRIVER: &str = "\
name: Kafka
driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver

# Kafka client-specific configuration
replicationFactor: 3
reset: true

topicConfig: |
  min.insync.replicas=2

commonConfig: |
  bootstrap.servers=localhost:9092,other:9092
  default.api.timeout.ms=600000

producerConfig: |
  acks=all
  # as large as it goes
  linger.ms = 10
  batch.size: 1048576
  compression.type=lz4
  max.in.flight.requests.per.connection=1

consumerConfig: |
  auto.offset.reset=earliest
  enable.auto.commit=false
  fetch.min.bytes=100000
";

/// Topics, partitions, bytes, subscriptions, consumers, producers, rate, backlog in GB, minutes:
/// what the benchmark's own files combine.
const SHAPES: [[u64; 9]; 24] = [
    [1, 1, 100, 1, 1, 1, 50_000, 0, 15],
    [1, 1, 1024, 1, 1, 1, 50_000, 0, 5],
    [1, 16, 1024, 1, 1, 1, 50_000, 0, 15],
    [1, 16, 100, 1, 1, 1, 50_000, 0, 15],
    [1, 10, 1024, 1, 1, 1, 10_000, 0, 5],
    [1, 100, 1024, 1, 4, 4, 200_000, 0, 15],
    [1, 100, 1024, 1, 4, 4, 200_000, 512, 5],
    [1, 10_000, 1024, 1, 4, 4, 2_000_000, 0, 15],
    [1, 3, 100, 1, 1, 3, 50_000, 0, 15],
    [1, 6, 20, 1, 1, 1, 50_000, 0, 15],
    [1, 1000, 1024, 1, 100, 100, 250_000, 0, 5],
    [1, 5000, 1024, 1, 100, 100, 250_000, 0, 5],
    [1, 2000, 512, 1, 1, 1, 50_000, 0, 15],
    [10, 16, 1024, 1, 1, 1, 50_000, 0, 15],
    [10, 3, 100, 1, 1, 1, 1_000_000, 64, 15],
    [10, 3, 4096, 1, 1, 1, 1_000_000, 0, 15],
    [10, 3, 1024, 2, 1, 1, 200_000, 0, 15],
    [10, 3, 100, 1, 2, 1, 1_000, 0, 15],
    [13, 24, 128, 1, 1, 1, 0, 0, 15],
    [20, 10, 50, 1, 1, 1, 3_000_000, 0, 15],
    [100, 1, 1024, 1, 1, 1, 50_000, 0, 15],
    [1_000, 1, 1024, 1, 4, 4, 100_000, 0, 5],
    [1_000_000, 1, 1024, 1, 4, 4, 2_000_000, 0, 5],
    [1, 1, 1024, 1, 1, 1, 0, 0, 5],
];

const KEYS: [&str; 9] = [
    "topics",
    "partitionsPerTopic",
    "messageSize",
    "subscriptionsPerTopic",
    "consumerPerSubscription",
    "producersPerTopic",
    "producerRate",
    "consumerBacklogSizeGB",
    "testDurationMinutes",
];

/// What is wrong, by lines and keys.
fn refused<T>(parsed: Result<T, Vec<Problem>>) -> Vec<String> {
    let problems = parsed.err().unwrap_or_default();
    problems.iter().map(ToString::to_string).collect()
}

fn options(arguments: &[&str]) -> OmbOptions {
    let all = ["moldau", "lab", "omb"].iter().chain(arguments);
    match Arguments::try_parse_from(all).unwrap().command {
        Command::Lab(LabQuestion::Omb(options)) => options,
        other => panic!("{other:?}"),
    }
}

/// Translates files with these texts.
fn translated(
    workloads: &[&str],
    drivers: &[&str],
    arguments: &[&str],
) -> anyhow::Result<Translation> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: String, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut all: Vec<String> = Vec::new();
    for (index, text) in workloads.iter().enumerate() {
        all.push(write(format!("workload-{index}.yaml"), text));
    }
    for (index, text) in drivers.iter().enumerate() {
        all.extend(["-d".into(), write(format!("driver-{index}.yaml"), text)]);
    }
    let all: Vec<&str> = all.iter().map(String::as_str).chain(arguments.iter().copied()).collect();
    read(&options(&all))
}

#[test]
fn a_workload_becomes_a_load_whose_rate_is_the_total() {
    let workload = workload::parse(WORKLOAD).unwrap();
    let expected = Settings {
        records_per_second: Some(50_000),
        record_bytes: Some(1024),
        payload: Some(Payload::Text),
        topics: Some(1),
        partitions: Some(16),
        producers: Some(1),
        consumers: Some(1),
        warmup_ms: Some(60_000),
        window_ms: Some(900_000),
        ..Settings::default()
    };
    assert_eq!(workload.settings, expected);
    assert_eq!(workload.name.as_deref(), Some("1 producer / 1 consumers on 1 topic"));
    assert!(workload.remarks[0].starts_with("payloadFile was not sent"));
}

#[test]
fn the_rate_of_a_workload_that_says_none_is_searched_for_where_it_is_alone() {
    let free = WORKLOAD.replacen("50000", "0", 1);
    let alone = translated(&[&free], &[DRIVER], &["--system", "moldau"]).unwrap();
    let searched = alone.searched().unwrap();
    assert_eq!((searched.partitions, searched.batch_bytes, searched.consume), (16, 1 << 20, true));
    assert_eq!(searched.tuning.in_flight_max, 1);
    assert!(described(&alone).contains(": the highest rate that is sustained, 1024 bytes"));
    let two = translated(&[&free, WORKLOAD], &[], &[]).unwrap();
    assert!(two.searched().is_none() && described(&two).contains(": full speed, "));
    let at_a_rate = translated(&[WORKLOAD], &[], &[]).unwrap();
    assert!(at_a_rate.searched().is_none());
    let unread = free.replacen("consumerPerSubscription: 1", "consumerPerSubscription: 0", 1);
    assert!(translated(&[&unread], &[], &[]).unwrap().searched().is_none());
}

#[test]
fn every_shape_of_the_benchmarks_own_files_is_read_or_refused_by_key() {
    let mut run = 0;
    for shape in SHAPES {
        let mut text = String::from("name: shape\n");
        for (key, value) in KEYS.iter().zip(shape) {
            text += &format!("{key}: {value}\n");
        }
        text += "useRandomizedPayloads: true\nrandomBytesRatio: 0.5\n\
                 randomizedPayloadPoolSize: 1000\nbacklogDrainRatio: 1.0\n\
                 warmupDurationMinutes: 2\n";
        let [topics, partitions, bytes, subscriptions, _, producers, _, backlog, _] = shape;
        let mut expected = Vec::new();
        if topics > 256 {
            expected.push(":2:9: topics: ");
        }
        // The limit for each topic depends on the number of topics.
        let of_each = topics.min(256);
        if partitions > 65_535 / of_each {
            expected.push(":3:21: partitionsPerTopic: ");
        }
        if producers > 1_024 / of_each {
            expected.push(":7:20: producersPerTopic: ");
        }
        if bytes < 32 {
            expected.push(":4:14: messageSize: ");
        }
        // In the order of the report.
        expected.sort_by_key(|place| place.ends_with("messageSize: "));
        if backlog > 0 {
            expected.push(":9:24: consumerBacklogSizeGB: ");
        }
        match workload::parse(&text) {
            Ok(workload) => {
                assert_eq!(expected, Vec::<&str>::new(), "{text}");
                let consumers = workload.settings.consumers.map(u64::from);
                assert_eq!(consumers, Some(subscriptions));
                run += 1;
            }
            Err(problems) => {
                let found: Vec<String> = problems.iter().map(ToString::to_string).collect();
                assert_eq!(found.len(), expected.len(), "{found:?}");
                for (found, expected) in found.iter().zip(expected) {
                    assert!(found.starts_with(expected), "{found}");
                }
            }
        }
    }
    assert_eq!(run, SHAPES.iter().filter(|it| it[0] <= 256 && it[2] >= 32 && it[7] == 0).count());
}

#[test]
fn a_key_that_the_benchmark_would_ignore_is_reported_with_the_nearest() {
    let typo = WORKLOAD.replacen("producerRate", "producersRate", 1);
    assert_eq!(
        refused(workload::parse(&typo)),
        [":11:1: unknown key \"producersRate\"; did you mean \"producerRate\"?"]
    );
    let typo = DRIVER.replacen("replicationFactor", "replicationfactor", 1);
    assert_eq!(
        refused(driver::parse(&typo)),
        [":5:1: unknown key \"replicationfactor\"; did you mean \"replicationFactor\"?"]
    );
    let keys = WORKLOAD.replacen("NO_KEY", "NOKEY", 1);
    assert!(refused(workload::parse(&keys))[0].contains("did you mean \"NO_KEY\"?"));
}

#[test]
fn keys_are_as_many_as_those_of_the_benchmark() {
    let keys = |name| {
        let text = WORKLOAD.replacen("NO_KEY", name, 1);
        let parsed = workload::parse(&text).unwrap();
        let is_told = parsed.remarks.iter().any(|remark| remark.starts_with("Keys were"));
        assert_eq!(is_told, parsed.settings.keys.is_some());
        parsed.settings.keys
    };
    assert_eq!(keys("NO_KEY"), None);
    assert_eq!(keys("KEY_ROUND_ROBIN"), Some(Keys::RoundRobin { count: 10_000 }));
    assert_eq!(keys("RANDOM_NANO"), Some(Keys::Uniform { count: 10_000 }));
}

#[test]
fn all_keys_without_a_counterpart_are_reported_at_once() {
    let text = WORKLOAD
        .replacen("consumerBacklogSizeGB: 0", "consumerBacklogSizeGB: 5", 1)
        .replacen("testDurationMinutes: 15", "testDurationMinutes: 0", 1);
    let found = refused(workload::parse(&text));
    let starts =
        [":13:22: testDurationMinutes: 0 is not from 1 to 1440", ":12:24: consumerBacklogSizeGB: "];
    assert_eq!(found.len(), starts.len(), "{found:?}");
    assert!(found.iter().zip(starts).all(|(it, start)| it.starts_with(start)), "{found:?}");
}

#[test]
fn a_driver_gives_settings_the_cluster_and_what_was_not_taken_over() {
    let driver = driver::parse(DRIVER).unwrap();
    assert_eq!(
        driver.settings,
        Settings {
            acks: Some(Acks::All),
            linger_us: Some(10_000),
            batch_bytes: Some(1 << 20),
            compression: Some(Codec::Lz4),
            in_flight_max: Some(1),
            fetch_min_bytes: Some(100_000),
            ..Settings::default()
        }
    );
    assert_eq!(driver.bootstrap.as_deref(), Some("localhost:9092"));
    assert_eq!(
        driver.remarks[1],
        "Ignored: min.insync.replicas=2, default.api.timeout.ms=600000, \
         auto.offset.reset=earliest, enable.auto.commit=false."
    );
}

#[test]
fn drivers_of_the_fork_of_redpanda_are_taken() {
    let fork = DRIVER.replacen("kafka.Kafka", "redpanda.Redpanda", 1);
    assert_eq!(driver::parse(&fork).unwrap(), driver::parse(DRIVER).unwrap());
    let swarm = DRIVER.replacen("kafka.Kafka", "redpanda.swarm.Redpanda", 1);
    assert!(refused(driver::parse(&swarm))[0].contains("driverClass: "));
}

#[test]
fn a_distribution_of_sizes_becomes_the_middles_of_its_ranges() {
    let of = |ranges: &str| {
        let distribution = format!("messageSizeDistribution: {ranges}\nsampleRateMillis: 1000");
        workload::parse(&WORKLOAD.replacen("messageSize: 1024", &distribution, 1))
    };
    let taken = of("{0-256: 3, '1KB-3 kb': 1, 100B-100B: 0}").unwrap();
    let share = |bytes, weight| SizeShare { bytes, weight };
    let table = vec![share(128, 3), share(100, 0), share(2048, 1)];
    let Some(Sizes::Table(mut found)) = taken.settings.record_sizes else { panic!("no table") };
    found.sort_by_key(|share| (share.weight == 1, share.weight == 0));
    assert_eq!(found, table);
    assert_eq!(taken.settings.record_bytes, None);
    assert!(taken.remarks.iter().any(|remark| remark.starts_with("sampleRateMillis")));
    for ranges in
        ["{}", "{0-256: 0}", "{256-0: 1}", "{256: 1}", "{0-256: -1}", "{0-8: 1}", "{1MB-9MB: 1}"]
    {
        let found = refused(of(ranges));
        assert!(found.len() == 1 && found[0].contains("messageSizeDistribution: "), "{found:?}");
    }
    let neither = refused(workload::parse(&WORKLOAD.replacen("messageSize: 1024\n", "", 1)));
    assert!(
        neither[0].contains("messageSize\" or messageSizeDistribution is missing"),
        "{neither:?}"
    );
    let text = WORKLOAD.replacen("messageSize: 1024", "messageSizeDistribution: {0-256: 1}", 1);
    let translation = translated(&[&text], &[], &["--system", "moldau"]).unwrap();
    assert!(described(&translation).contains("128 bytes on average"));
}

#[test]
fn properties_are_refused_by_their_lines() {
    let text = DRIVER
        .replacen("min.insync.replicas=2", "flush.messages=1", 1)
        .replacen("default.api.timeout.ms", "security.protocol", 1)
        .replacen("acks=all", "acks=0", 1)
        .replacen("linger.ms = 10", "linger.ns = 10", 1)
        .replacen("1048576", "2097152", 1)
        .replacen("lz4", "lz5", 1)
        .replacen("connection=1", "connection=0", 1)
        .replacen("auto.offset.reset=earliest", "isolation.level=read_committed", 1)
        .replacen("enable.auto.commit=false", "fetch.min.bytes=many", 1)
        .replacen("driver.kafka.", "driver.pulsar.", 1);
    let starts = [
        ":2:14: driverClass: ",
        ":9:1: flush.messages: ",
        ":13:1: security.protocol: not supported in a driver",
        ":16:1: acks: 0 is not supported",
        ":18:1: unknown property \"linger.ns\"; did you mean \"linger.ms\"?",
        ":19:1: batch.size: 2097152 is above 1048576",
        ":20:1: compression.type: \"lz5\" is not one of",
        ":21:1: max.in.flight.requests.per.connection: 0 is not a whole number from 1 to 65535",
        ":24:1: isolation.level: not supported",
        ":25:1: fetch.min.bytes: many is not a whole number",
    ];
    let found = refused(driver::parse(&text));
    assert_eq!(found.len(), starts.len(), "{found:?}");
    assert!(found.iter().zip(starts).all(|(it, start)| it.starts_with(start)), "{found:?}");
}

#[test]
fn a_property_of_another_block_is_not_proposed_in_place_of_itself() {
    let text = DRIVER.replacen("default.api.timeout.ms=600000", "acks=all", 1);
    let found = refused(driver::parse(&text));
    assert!(found[0].starts_with(":13:1: unknown property \"acks\""), "{found:?}");
    assert!(!found[0].contains("did you mean \"acks\"?"), "{found:?}");
}

#[test]
fn clients_are_those_of_the_driver_and_fetches_take_consumers() {
    let load = |workload: &str| {
        let found = translated(&[workload], &[DRIVER], &["--system", "moldau"]).unwrap();
        found.survey.scenarios[0].load.clone()
    };
    let consumed = load(WORKLOAD);
    assert_eq!((consumed.in_flight_max, consumed.fetch_min_bytes), (Some(1), Some(100_000)));
    let alone = load(&WORKLOAD.replacen("subscriptionsPerTopic: 1", "subscriptionsPerTopic: 0", 1));
    assert_eq!((alone.consumers, alone.fetch_min_bytes), (Some(0), None));
}

#[test]
fn the_cluster_of_the_driver_is_measured_unless_systems_are_named() {
    let found = translated(&[WORKLOAD], &[DRIVER], &[]).unwrap();
    assert_eq!(found.survey.systems, ["external"]);
    assert_eq!(found.external.as_deref(), Some("localhost:9092"));
    let named = translated(&[WORKLOAD], &[DRIVER], &["--system", "moldau,kafka"]).unwrap();
    assert_eq!(named.survey.systems, ["moldau", "kafka"]);
    assert_eq!((named.external, named.systems.len()), (None, 2));
    let alone = translated(&[WORKLOAD], &[], &["--quick"]).unwrap();
    assert_eq!(alone.survey.systems, ["moldau"]);
    assert_eq!(alone.survey.scenarios[0].load.window_ms, Some(15_000));
    assert!(described(&alone).contains("50000 records/s of all topics together, 1024 bytes"));
}

#[test]
fn workloads_and_drivers_are_multiplied_under_names_of_their_own() {
    let other = DRIVER.replacen("name: Kafka", "name: Kafka-gzip", 1).replacen("lz4", "gzip", 1);
    let same = WORKLOAD.replacen("50000", "100", 1);
    let found = translated(&[WORKLOAD, &same], &[DRIVER, &other], &[]).unwrap();
    let names: Vec<&str> = found.survey.scenarios.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "workload-0, Kafka",
            "workload-0, Kafka-gzip",
            "workload-1, Kafka",
            "workload-1, Kafka-gzip"
        ]
    );
    let codecs = found.survey.scenarios.iter().map(|it| it.load.compression);
    assert_eq!(codecs.take(2).collect::<Vec<_>>(), [Some(Codec::Lz4), Some(Codec::Gzip)]);
    let elsewhere = other.replacen("localhost:9092", "elsewhere:9092", 1);
    let problem = translated(&[WORKLOAD], &[DRIVER, &elsewhere], &[]).err().unwrap().to_string();
    assert!(problem.contains("one run measures one cluster"), "{problem}");
}

#[test]
fn half_random_values_are_not_compressed() {
    let random = WORKLOAD.replacen(
        "payloadFile: \"payload/payload-1Kb.data\"",
        "useRandomizedPayloads: true\nrandomBytesRatio: 0.5",
        1,
    );
    let problem = translated(&[&random], &[DRIVER], &[]).err().unwrap().to_string();
    assert!(problem.contains("randomBytesRatio below 1"), "{problem}");
    let plain = DRIVER.replacen("  compression.type=lz4\n", "", 1);
    let found = translated(&[&random], &[&plain], &[]).unwrap();
    assert_eq!(found.survey.scenarios[0].load.payload, Some(Payload::Random));
}

#[test]
fn all_broken_files_are_reported_with_their_names() {
    let broken = WORKLOAD.replacen("topics: 1", "topics: many", 1);
    let text = translated(&[&broken, &broken], &["name: x"], &[]).err().unwrap().to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].contains("workload-0.yaml:3:9: topics: many is not a whole number"), "{text}");
    assert!(lines[2].ends_with("the key \"driverClass\" is missing"), "{text}");
}
