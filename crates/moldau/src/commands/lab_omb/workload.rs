//! A workload file of the OpenMessaging Benchmark: all its 18 keys, and one of Redpanda's fork.

use std::collections::BTreeMap;

use moldau_lab::experiments::asked::Payload;
use moldau_lab::experiments::survey::Settings;
use moldau_load::shape::{Keys, SHAPED_BYTES_MAX, SizeShare, Sizes};
use moldau_load::workload::{
    PARTITIONS_MAX, PRODUCERS_MAX, RECORD_BYTES_MAX, TAILS_MAX, TOPICS_MAX,
};
use serde::Deserialize;

use crate::config::{self, At, Problem};

/// Longest run, minutes: a day.
const MINUTES_MAX: u64 = 24 * 60;

/// Time before the measured window where the file tells none, minutes.
const WARMUP_MINUTES: u64 = 1;

/// What tells every record apart takes so many bytes of its value.
const RECORD_BYTES_MIN: u64 = 32;

/// Keys that the benchmark draws for a run.
const KEYS: u32 = 10_000;

const MS_PER_MINUTE: u64 = 60_000;

/// A workload as this laboratory runs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Workload {
    pub(super) name: Option<String>,
    pub(super) settings: Settings,
    /// Whether values should be partly random, which only matters to codecs.
    pub(super) is_half_random: bool,
    pub(super) remarks: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    name: Option<String>,
    topics: At<u64>,
    partitions_per_topic: At<u64>,
    key_distributor: Option<KeyDistributor>,
    message_size: Option<At<u64>>,
    /// Weights of ranges of sizes such as `0-256` or `1KB-4KB`, in place of one size.
    message_size_distribution: Option<At<BTreeMap<String, i64>>>,
    use_randomized_payloads: Option<bool>,
    random_bytes_ratio: Option<At<f64>>,
    randomized_payload_pool_size: Option<u64>,
    payload_file: Option<String>,
    subscriptions_per_topic: At<u64>,
    producers_per_topic: At<u64>,
    consumer_per_subscription: At<u64>,
    /// Of all topics and producers together; 0 looks for the maximum.
    #[serde(default)]
    producer_rate: u64,
    #[serde(rename = "consumerBacklogSizeGB")]
    consumer_backlog_size_gb: Option<At<u64>>,
    backlog_drain_ratio: Option<f64>,
    test_duration_minutes: At<u64>,
    warmup_duration_minutes: Option<At<u64>>,
    /// Time between two samples, in the fork.
    sample_rate_millis: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum KeyDistributor {
    NoKey,
    KeyRoundRobin,
    RandomNano,
}

impl KeyDistributor {
    fn keys(self) -> Option<Keys> {
        match self {
            Self::NoKey => None,
            Self::KeyRoundRobin => Some(Keys::RoundRobin { count: KEYS }),
            // The clock's nanoseconds are as good as random. One key follows from them.
            Self::RandomNano => Some(Keys::Uniform { count: KEYS }),
        }
    }
}

/// Reads a workload.
///
/// # Errors
/// The problem of the parser, or everything that has no equal here.
pub(super) fn parse(text: &str) -> Result<Workload, Vec<Problem>> {
    let file: File = config::parse(text).map_err(|problem| vec![problem])?;
    let mut problems = Vec::new();
    let settings = settings(&file, &mut problems);
    problems.extend(refusals(&file));
    if !problems.is_empty() {
        return Err(problems);
    }
    let ratio = file.random_bytes_ratio.as_ref().map_or(0.0, |ratio| ratio.value);
    let is_random = file.use_randomized_payloads == Some(true);
    Ok(Workload {
        settings,
        is_half_random: is_random && ratio < 1.0,
        remarks: remarks(&file),
        name: file.name,
    })
}

fn settings(file: &File, problems: &mut Vec<Problem>) -> Settings {
    let mut within = |value: &At<u64>, key: &str, range: std::ops::RangeInclusive<u64>| {
        if !range.contains(&value.value) {
            let (low, high) = range.into_inner();
            let text = format!("{key}: {} is not from {low} to {high}", value.value);
            problems.push(Problem::at(value, text));
        }
        value.value
    };
    let topics = within(&file.topics, "topics", 1..=TOPICS_MAX.into());
    let of_each = topics.clamp(1, TOPICS_MAX.into());
    let each = |of_all: u16| 1..=u64::from(of_all) / of_each;
    let partitions = within(&file.partitions_per_topic, "partitionsPerTopic", each(PARTITIONS_MAX));
    let producers = within(&file.producers_per_topic, "producersPerTopic", each(PRODUCERS_MAX));
    let record_bytes = match (&file.message_size, &file.message_size_distribution) {
        (Some(size), None) => {
            Some(within(size, "messageSize", RECORD_BYTES_MIN..=RECORD_BYTES_MAX as u64))
        }
        _ => None,
    };
    let subscriptions = within(
        &file.subscriptions_per_topic,
        "subscriptionsPerTopic",
        0..=u64::from(TAILS_MAX) + 1,
    );
    let minutes = within(&file.test_duration_minutes, "testDurationMinutes", 1..=MINUTES_MAX);
    let warmup = file.warmup_duration_minutes.as_ref().map_or(WARMUP_MINUTES, |minutes| {
        within(minutes, "warmupDurationMinutes", 0..=MINUTES_MAX)
    });
    let has_consumers = file.consumer_per_subscription.value > 0;
    let narrow = |value: u64| u16::try_from(value).unwrap_or(u16::MAX);
    let is_random = file.use_randomized_payloads == Some(true);
    Settings {
        records_per_second: Some(file.producer_rate).filter(|rate| *rate > 0),
        record_bytes: record_bytes.and_then(|bytes| usize::try_from(bytes).ok()),
        record_sizes: file.message_size_distribution.as_ref().and_then(|it| sizes(&it.value).ok()),
        payload: Some(if is_random { Payload::Random } else { Payload::Text }),
        keys: file.key_distributor.and_then(KeyDistributor::keys),
        topics: Some(narrow(topics)),
        partitions: Some(narrow(partitions)),
        producers: Some(narrow(producers)),
        consumers: Some(if has_consumers { narrow(subscriptions) } else { 0 }),
        warmup_ms: Some(warmup.saturating_mul(MS_PER_MINUTE)),
        window_ms: Some(minutes.saturating_mul(MS_PER_MINUTE)),
        ..Settings::default()
    }
}

/// The middles of the ranges with their weights. The benchmark makes one value for each range.
fn sizes(distribution: &BTreeMap<String, i64>) -> Result<Sizes, String> {
    let mut shares = Vec::new();
    for (range, weight) in distribution {
        let weight = u32::try_from(*weight)
            .map_err(|_| format!("{range}: {weight} is not a weight from 0 to {}", u32::MAX))?;
        let bytes = middle(range)
            .ok_or_else(|| format!("{range} is not a range of sizes such as 0-256 or 1KB-4KB"))?;
        if !(RECORD_BYTES_MIN..=SHAPED_BYTES_MAX as u64).contains(&bytes) {
            return Err(format!(
                "the middle of {range} is not from {RECORD_BYTES_MIN} to {SHAPED_BYTES_MAX}"
            ));
        }
        let bytes = usize::try_from(bytes).map_err(|error| error.to_string())?;
        shares.push(SizeShare { bytes, weight });
    }
    match shares.iter().any(|share| share.weight > 0) {
        true => Ok(Sizes::Table(shares)),
        false => Err("no range has a weight above 0".to_owned()),
    }
}

fn middle(range: &str) -> Option<u64> {
    let (low, high) = range.rsplit_once('-')?;
    let (low, high) = (size(low)?, size(high)?);
    (low <= high).then(|| u64::midpoint(low, high))
}

/// A size with or without a unit, which is binary.
fn size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_uppercase();
    let units = [("KB", 1 << 10), ("MB", 1 << 20), ("B", 1)];
    let found = units.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, unit) = found.unwrap_or((&text, 1));
    number.trim().parse::<u32>().ok().map(|number| u64::from(number) * unit)
}

/// What has no equal here.
fn refusals(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    match (&file.message_size, &file.message_size_distribution) {
        (_, Some(distribution)) => {
            if let Err(reason) = sizes(&distribution.value) {
                let text = format!("messageSizeDistribution: {reason}");
                problems.push(Problem::at(distribution, text));
            }
        }
        (None, None) => {
            let text = "the key \"messageSize\" or messageSizeDistribution is missing";
            problems.push(Problem::at(&file.topics, text));
        }
        (Some(_), None) => {}
    }
    if let Some(backlog) = &file.consumer_backlog_size_gb
        && backlog.value > 0
    {
        problems.push(Problem::at(
            backlog,
            "consumerBacklogSizeGB: draining a backlog during production is not supported; \
             `moldau lab overhead` and `moldau lab ceiling` measure catching up",
        ));
    }
    if let Some(ratio) = &file.random_bytes_ratio
        && !(0.0..=1.0).contains(&ratio.value)
    {
        problems.push(Problem::at(ratio, "randomBytesRatio: is not from 0 to 1"));
    }
    problems
}

/// What is done in another way than by the benchmark.
fn remarks(file: &File) -> Vec<String> {
    let mut remarks = Vec::new();
    if file.payload_file.is_some() && file.use_randomized_payloads != Some(true) {
        remarks.push(
            "payloadFile was not sent: each value is a different text. The benchmark repeats one \
             file, which codecs shorten far more."
                .to_owned(),
        );
    }
    if file.use_randomized_payloads == Some(true) {
        let pool = file.randomized_payload_pool_size.unwrap_or(0);
        remarks
            .push(format!("Each value was random and unique; the benchmark has a pool of {pool}."));
    }
    if file.key_distributor.and_then(KeyDistributor::keys).is_some() {
        remarks.push(
            "Keys were eight digits, the same in every run. The benchmark draws seven random \
             bytes in base64 for each run."
                .into(),
        );
    }
    if file.consumer_per_subscription.value > 1 && file.subscriptions_per_topic.value > 0 {
        remarks.push(
            "One consumer read each subscription; in the benchmark, the consumers of a \
             subscription share it."
                .into(),
        );
    }
    if file.producer_rate == 0 {
        remarks.push(
            "producerRate 0: for a single workload with consumers, the lab searches for the rate \
             like `moldau lab ceiling`, in 12 trials. Other workloads run at full speed, without \
             latencies. The benchmark searches in steps of 3 s."
                .into(),
        );
    }
    if file.message_size.is_some() && file.message_size_distribution.is_some() {
        remarks.push("messageSize has no effect with messageSizeDistribution.".into());
    }
    if file.sample_rate_millis.is_some() {
        remarks.push("sampleRateMillis has no effect: the sampling interval is fixed.".into());
    }
    if file.backlog_drain_ratio.is_some() {
        remarks.push("backlogDrainRatio has no effect without a backlog.".into());
    }
    remarks
}
