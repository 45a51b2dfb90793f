//! Outputs as the tools print them, and the errors for broken ones.

use super::*;

/// What the tool of Kafka 4.3.1 printed for 20,000 records of 100 bytes.
const PERF_TEST: &str = "\
14985 records sent, 2995.8 records/sec (0.29 MB/sec), 11.6 ms avg latency, 667.0 ms max latency.
20000 records sent, 2985.965960 records/sec (0.28 MB/sec), 9.88 ms avg latency, 667.00 ms max \
latency, 6 ms 50th, 49 ms 95th, 87 ms 99th, 109 ms 99.9th.
";

const RDKAFKA: &str = "\
% Sending 500000 messages of size 100 bytes
% 310000 messages produced (31000000 bytes), 300000 delivered (offset 0, 0 failed) in 1000ms: \
300000 msgs/s and 30.00 MB/s, 0 produce failures, 10000 in queue, no compression
% 500000 messages produced (50000000 bytes), 499990 delivered (offset 0, 10 failed) in 2000ms: \
249995 msgs/s and 25.00 MB/s, 0 produce failures, 0 in queue, no compression
";

const RDKAFKA_TABLE: &str = "\
|    elapsed |       msgs |      bytes |        rtt |         dr |     dr_m/s |    dr_MB/s \
|     dr_err |     tx_err |       outq \n\
|       1000 |     310000 |   31000000 |          0 |     300000 |     300000 |      30.00 \
|          0 |          0 |      10000 \n\
|       2000 |     500000 |   50000000 |          0 |     500000 |     250000 |      25.00 \
|          0 |          0 |          0 \n";

const CHRONIK: &str = r#"{
  "mode": "Produce",
  "duration": { "secs": 25, "nanos": 137000000 },
  "total_messages": 2061, "failed_messages": 0, "total_bytes": 2110464,
  "latency_p50_us": 9687, "latency_p90_us": 10279, "latency_p95_us": 10503,
  "latency_p99_us": 11119, "latency_p999_us": 12103, "latency_max_us": 14703,
  "message_size": 1024, "concurrency": 1, "compression": "None"
}"#;

const CHRONIK_CSV: &str = "\
timestamp,mode,duration_secs,total_messages,failed_messages,total_bytes,throughput_msg_per_sec,\
throughput_mb_per_sec,success_rate_pct,latency_p50_us,latency_p90_us,latency_p95_us,\
latency_p99_us,latency_p999_us,latency_max_us,latency_p50_ms,latency_p90_ms,latency_p95_ms,\
latency_p99_ms,latency_p999_ms,latency_max_ms,message_size,concurrency,compression
2026-01-01T00:00:00+00:00,RoundTrip,20.5,41000,3,41984000,2000,1.95,99.99,100,200,300,400,500,600,\
0.1,0.2,0.3,0.4,0.5,0.6,1024,64,Snappy
";

/// The figures of an output, rounded to thousandths.
fn figures(output: &Output) -> Vec<(Metric, f64)> {
    let rounded = |figure: &Figure| (figure.metric, (figure.value * 1e3).round() / 1e3);
    output.figures.iter().map(rounded).collect()
}

fn warns(output: &Output, of: &str) -> bool {
    output.warnings.iter().any(|warning| warning.contains(of))
}

fn refused(file: &str, text: &str) -> String {
    read(file, text).unwrap_err().to_string()
}

#[test]
fn the_last_line_of_the_perf_test_counts_and_latency_is_from_sending() {
    let output = read("run.txt", PERF_TEST).unwrap();
    assert_eq!(
        figures(&output),
        [
            (Metric::ProduceRecords, 2985.966),
            (Metric::ProduceThroughput, 0.28),
            (Metric::ServiceP50, 6.0),
            (Metric::ServiceP99, 87.0),
            (Metric::ServiceP999, 109.0),
        ]
    );
    assert_eq!((output.tool, output.file.as_str()), (Tool::KafkaProducerPerfTest, "run.txt"));
    assert!(warns(&output, "coordinated omission") && warns(&output, "whole milliseconds"));
    assert!(!warns(&output, "every n-th record"));
    let many = PERF_TEST.replacen("20000 records", "2000000 records", 1);
    assert!(warns(&read("run.txt", &many).unwrap(), "every n-th record"));
}

#[test]
fn a_perf_test_is_read_whatever_the_locale_and_without_its_warm_up() {
    // As it prints where fractions stand behind a comma.
    let german = "20000 records sent, 2985,965960 records/sec (0,28 MB/sec), 9,88 ms avg latency, \
                  667,00 ms max latency, 6 ms 50th, 49 ms 95th, 87 ms 99th, 109 ms 99.9th.\n";
    let usual = figures(&read("run.txt", PERF_TEST).unwrap());
    assert_eq!(figures(&read("run.txt", german).unwrap()), usual);
    let grouped = german.replacen("2985,965960", "2,985.96", 1);
    assert!(refused("run.txt", &grouped).contains("\"records/sec\" is missing or is no number"));
    let steady = format!("{PERF_TEST}15000 steady{}", german.strip_prefix("20000").unwrap());
    let steady = steady.replacen("steady records", "steady state records", 1);
    assert_eq!(figures(&read("run.txt", &steady).unwrap()), usual);
}

#[test]
fn incomplete_or_malformed_perf_test_output_is_refused_with_its_line() {
    let (first, _) = PERF_TEST.split_once('\n').unwrap();
    assert!(refused("run.txt", first).starts_with("run.txt: has no line with percentiles"));
    let broken = PERF_TEST.replacen("87 ms 99th", "NaN ms 99th", 1);
    assert_eq!(
        refused("run.txt", &broken),
        "run.txt:2: the number before \"ms 99th\" is missing or is no number"
    );
}

#[test]
fn rdkafka_sentences_count_delivered_records_in_mebibytes() {
    let output = read("p.txt", RDKAFKA).unwrap();
    // 499,990 records of 100 bytes in 2 s, in MiB.
    let expected = [(Metric::ProduceRecords, 249_995.0), (Metric::ProduceThroughput, 23.841)];
    assert_eq!(figures(&output), expected);
    assert_eq!(output.record_bytes, Some(100));
    assert!(warns(&output, "10^6") && warns(&output, "10 messages failed"));
    let consumed = "% 500 messages (50000 bytes) consumed in 250ms: 2000 msgs/s (0.20 MB/s), \
                    latency curr/avg/lo/hi 1.00/2.00/0.50/9.00ms\n";
    let output = read("c.txt", consumed).unwrap();
    assert_eq!(
        figures(&output),
        [(Metric::ConsumeRecords, 2000.0), (Metric::ConsumeThroughput, 0.191)]
    );
    assert!(warns(&output, "without percentiles"));
}

#[test]
fn the_table_of_rdkafka_gives_the_same_figures_as_its_sentences() {
    let output = read("t.txt", RDKAFKA_TABLE).unwrap();
    assert_eq!(figures(&output)[0], (Metric::ProduceRecords, 250_000.0));
    let broken = RDKAFKA_TABLE.replacen("|       2000 |", "|       long |", 1);
    assert_eq!(refused("t.txt", &broken), "t.txt:3: column \"elapsed\" is missing or is no number");
    let header = RDKAFKA_TABLE.lines().next().unwrap();
    assert_eq!(refused("t.txt", header), "t.txt: has a table of rdkafka_performance without rows");
    let still = RDKAFKA_TABLE.replacen("|       2000 |", "|          0 |", 1);
    assert_eq!(refused("t.txt", &still), "t.txt:3: the time of the run is 0 ms");
}

#[test]
fn chronik_json_keeps_its_late_clock_with_a_warning() {
    let output = read("result.json", CHRONIK).unwrap();
    assert_eq!(
        figures(&output),
        [
            (Metric::ProduceRecords, 81.991),
            (Metric::ProduceThroughput, 0.08),
            (Metric::ServiceP50, 9.687),
            (Metric::ServiceP99, 11.119),
            (Metric::ServiceP999, 12.103),
        ]
    );
    assert!(warns(&output, "25 % too low at most") && warns(&output, "a closed loop of 1 records"));
    assert!(refused("r.json", &CHRONIK.replacen("2061", "-1", 1)).starts_with("r.json:4: "));
    let missing = CHRONIK.replacen("\"latency_p99_us\"", "\"latency_p9_us\"", 1);
    assert!(refused("r.json", &missing).contains("`latency_p99_us`"));
    let still =
        CHRONIK.replacen("\"secs\": 25, \"nanos\": 137000000", "\"secs\": 0, \"nanos\": 0", 1);
    assert_eq!(refused("r.json", &still), "r.json: duration: is 0");
}

#[test]
fn chronik_csv_of_a_round_trip_is_end_to_end() {
    let output = read("result.csv", CHRONIK_CSV).unwrap();
    assert_eq!(figures(&output)[0], (Metric::ProduceRecords, 2000.0));
    assert_eq!(figures(&output)[3], (Metric::EndToEndP99, 0.4));
    assert!(warns(&output, "which no codec shortens") && warns(&output, "3 messages failed"));
    assert_eq!(
        refused("r.csv", &CHRONIK_CSV.replacen("concurrency", "threads", 1)),
        "r.csv:1: column \"concurrency\" is missing"
    );
    assert_eq!(
        refused("r.csv", &CHRONIK_CSV.replacen("41000", "many", 1)),
        "r.csv:2: total_messages: many is no whole number"
    );
    let header = CHRONIK_CSV.lines().next().unwrap();
    assert_eq!(refused("r.csv", header), "r.csv:2: the row is missing");
    let again = format!("{CHRONIK_CSV}{}\n", CHRONIK_CSV.lines().nth(1).unwrap());
    assert!(refused("r.csv", &again).starts_with("r.csv:3: "));
}

#[test]
fn a_result_of_the_benchmark_is_read_with_its_units() {
    let text = r#"{
      "workload": "1 topic", "driver": "Kafka", "messageSize": 1024, "topics": 10,
      "publishRate": [1000.0, 1024.0, 3000.0], "consumeRate": [2048.0],
      "aggregatedPublishLatency50pct": 1.5, "aggregatedPublishLatency99pct": 20.25,
      "aggregatedEndToEndLatency50pct": 3.0, "aggregatedPublishDelayLatency50pct": 120,
      "beginTime": "2026", "oddity": 1
    }"#;
    let output = read("omb.json", text).unwrap();
    assert_eq!(
        figures(&output),
        [
            (Metric::ProduceRecords, 1674.667),
            (Metric::ProduceThroughput, 1.635),
            (Metric::ConsumeRecords, 2048.0),
            (Metric::ConsumeThroughput, 2.0),
            (Metric::ServiceP50, 1.5),
            (Metric::ServiceP99, 20.25),
            (Metric::EndToEndP50, 3.0),
        ]
    );
    for warning in [
        "microseconds",
        "samples of 0 ms and below were dropped",
        "10 topics: multiplying",
        "went from 1000 to 3000",
        "fields passed over: oddity",
    ] {
        assert!(warns(&output, warning), "{warning}");
    }
    let broken = text.replacen("[2048.0]", "[\"fast\"]", 1);
    assert!(refused("omb.json", &broken).ends_with("consumeRate: \"fast\" is no number"));
}

#[test]
fn unknown_texts_and_invalid_figures_are_refused() {
    assert!(refused("x", "").starts_with("x: is no output of kafka-producer-perf-test"));
    assert!(refused("x.json", "{\"a\": 1}").contains("is JSON neither of chronik-bench"));
    assert!(refused("x.json", "{\n\"a\": }").starts_with("x.json:2: expected value"));
    let endless = format!("{CHRONIK}{}", " ".repeat(OUTPUT_BYTES_MAX));
    assert!(refused("x.json", &endless).contains("is longer than"));
    let infinite = PERF_TEST.replacen("2985.965960 records/sec", "1.9.9 records/sec", 1);
    assert!(refused("x", &infinite).contains("\"records/sec\""));
}

proptest::proptest! {
    /// Outputs come from anywhere: whatever was done to one, it is read or refused by name.
    #[test]
    fn damaged_outputs_are_read_or_refused(
        which in 0..5_usize,
        cut in 0..2_000_usize,
        at in 0..2_000_usize,
        put in "[ -~\n]{0,12}",
    ) {
        let texts = [PERF_TEST, RDKAFKA, RDKAFKA_TABLE, CHRONIK, CHRONIK_CSV];
        let mut text = texts[which].to_owned();
        text.truncate(text.len() - cut % text.len());
        text.insert_str(at % (text.len() + 1), &put);
        match read("some.txt", &text) {
            Ok(output) => {
                let is_figure = |it: &Figure| it.value.is_finite() && it.value >= 0.0;
                assert!(!output.figures.is_empty() && output.figures.iter().all(is_figure));
                assert!(!output.warnings.is_empty());
            }
            Err(error) => assert!(error.to_string().starts_with("some.txt:"), "{error}"),
        }
    }
}
