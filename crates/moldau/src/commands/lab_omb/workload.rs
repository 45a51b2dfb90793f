//! A workload file of the OpenMessaging Benchmark: all its 17 keys.

use moldau_lab::experiments::asked::Payload;
use moldau_lab::experiments::survey::Settings;
use moldau_load::shape::Keys;
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
    message_size: At<u64>,
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
            // The clock's nanoseconds, of which one key follows, are as good as random.
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
    let record_bytes =
        within(&file.message_size, "messageSize", RECORD_BYTES_MIN..=RECORD_BYTES_MAX as u64);
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
        record_bytes: usize::try_from(record_bytes).ok(),
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

/// What has no equal here.
fn refusals(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(backlog) = &file.consumer_backlog_size_gb
        && backlog.value > 0
    {
        problems.push(Problem::at(
            backlog,
            "consumerBacklogSizeGB: backlogs that are drained while producers go on are not \
             measured; `moldau lab overhead` and `moldau lab ceiling` measure catching up",
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
            "payloadFile was not sent: values are text that no two records share, where the \
             benchmark sends one file over and over, which codecs shorten far more."
                .to_owned(),
        );
    }
    if file.use_randomized_payloads == Some(true) {
        let pool = file.randomized_payload_pool_size.unwrap_or(0);
        remarks.push(format!(
            "Values were random throughout and no two the same; the benchmark has {pool} of them."
        ));
    }
    if file.key_distributor.and_then(KeyDistributor::keys).is_some() {
        remarks.push(
            "Keys were text of eight digits, the same in every run; those of the benchmark are \
             seven random bytes in base64, drawn for each run."
                .into(),
        );
    }
    if file.consumer_per_subscription.value > 1 && file.subscriptions_per_topic.value > 0 {
        remarks.push(
            "Each subscription was read by one consumer, which gets what the consumers of a \
             subscription of the benchmark share."
                .into(),
        );
    }
    if file.producer_rate == 0 {
        remarks.push(
            "producerRate 0: of a workload that is alone and has consumers, the rate is searched \
             for as by `moldau lab ceiling`, in 12 trials; others are measured as fast as the \
             system acknowledges, without latencies. The benchmark looks for it in steps of 3 s."
                .into(),
        );
    }
    if file.backlog_drain_ratio.is_some() {
        remarks.push("backlogDrainRatio has no effect without a backlog.".into());
    }
    remarks
}
