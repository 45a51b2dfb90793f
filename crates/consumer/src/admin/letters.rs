//! Dead letters: read from their topic, filtered, and replayed to where they came from.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use moldau_client::{
    Cluster, Error, Fetcher, FetcherOptions, OffsetSpec, Record, Reset, Start, TopicPartition,
};
use moldau_records::{Decompressor, HeaderView, RecordView};
use serde::Serialize;
use tokio::time::Instant;

use crate::layer::header;
use crate::outbox::{Outbox, To};

/// A dead letter as people read it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Letter {
    pub(super) partition: i32,
    pub(super) offset: i64,
    /// When it was sent there, ms since 1970.
    timestamp: i64,
    key: Shown,
    value: Shown,
    /// Other headers than those of dead letters.
    headers: Vec<(String, Shown)>,
    origin_topic: String,
    origin_partition: String,
    origin_offset: String,
    attempts: String,
    kind: String,
    cause: String,
}

/// Bytes as people read them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// `null`, `json`, `text`, or `binary`, which is shown in hexadecimal.
    form: &'static str,
    text: String,
    /// Bytes in all.
    bytes: usize,
    is_cut: bool,
}

/// Letters, the newest first.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Letters {
    letters: Vec<Letter>,
    /// How many were searched.
    searched: usize,
    /// Where older ones end, by partition; empty if there are none.
    older: Before,
}

/// Offsets after the letters that are wanted, by partition.
pub(super) type Before = BTreeMap<i32, i64>;

/// A stretch of a partition.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    partition: i32,
    from: i64,
    to: i64,
}

/// Reads letters before some offsets, or the newest, that hold `filter` in any part of them.
///
/// # Errors
/// The topic does not exist, or the cluster does not answer.
pub(super) async fn newest(
    cluster: &Cluster,
    topic: &str,
    filter: &str,
    before: Option<Before>,
) -> Result<Letters, Error> {
    let partitions = cluster.topic(topic).await?.partitions.len();
    let partitions: Vec<i32> = (0..).take(partitions).collect();
    let earliest = offsets(cluster, topic, &partitions, OffsetSpec::Earliest).await?;
    let mut ends = match before {
        Some(before) => before,
        None => offsets(cluster, topic, &partitions, OffsetSpec::Latest).await?,
    };
    let filter = filter.to_lowercase();
    let window = if filter.is_empty() { LETTERS_WANTED } else { WINDOW_RECORDS };
    let stretch_max = i64::try_from(window.div_ceil(partitions.len().max(1))).unwrap_or(1);
    let (mut letters, mut searched) = (Vec::new(), 0);
    let deadline = Instant::now() + READ_TIMEOUT;
    while letters.len() < LETTERS_WANTED && searched < SEARCHED_MAX && Instant::now() < deadline {
        let stretches = partitions.iter().filter_map(|partition| {
            let (first, to) = (*earliest.get(partition)?, *ends.get(partition)?);
            let from = first.max(to.saturating_sub(stretch_max));
            (from < to).then_some(Stretch { partition: *partition, from, to })
        });
        let stretches: Vec<Stretch> = stretches.collect();
        if stretches.is_empty() {
            break;
        }
        let mut found = Vec::new();
        read(cluster, topic, &stretches, deadline, |partition, record| {
            searched += 1;
            let letter = Letter::of(partition, record);
            if filter.is_empty() || letter.holds(record, &filter) {
                found.push(letter);
            }
        })
        .await?;
        found.sort_by_key(|it| std::cmp::Reverse((it.timestamp, it.partition, it.offset)));
        letters.extend(found);
        ends.extend(stretches.iter().map(|stretch| (stretch.partition, stretch.from)));
    }
    ends.retain(|partition, end| earliest.get(partition).is_some_and(|first| first < end));
    Ok(Letters { letters, searched, older: ends })
}

/// Sends a letter to the partition that it came from, as it was; without the headers of dead
/// letters. Returns that partition.
///
/// # Errors
/// Why it cannot be sent, in a sentence.
pub(super) async fn replay(
    cluster: &Cluster,
    outbox: &Outbox,
    letter: (&TopicPartition, i64),
    at: Duration,
    is_route: impl Fn(&str) -> bool,
) -> Result<TopicPartition, String> {
    let (TopicPartition { topic, partition }, offset) = letter;
    let stretch = Stretch { partition: *partition, from: offset, to: offset.saturating_add(1) };
    let mut found = None;
    let deadline = Instant::now() + READ_TIMEOUT;
    read(cluster, topic, &[stretch], deadline, |_, record| found = Some(Kept::of(record)))
        .await
        .map_err(|error| format!("It cannot be read: {error}."))?;
    let kept = found.ok_or("It is not in the topic any more.")?;
    let origin = kept.origin().ok_or("Its headers do not say where it came from.")?;
    if !is_route(&origin.topic) {
        return Err(format!("It came from {}, which the app has no route for.", origin.topic));
    }
    let known = cluster.topic(&origin.topic).await;
    let known = known.map_err(|error| format!("Its topic cannot be reached: {error}."))?;
    if !known.has_partition(origin.partition) {
        return Err(format!("{} has no partition {}.", origin.topic, origin.partition));
    }
    let headers = kept.headers.iter().filter(|(key, _)| !is_of_dead_letters(key));
    let headers: Vec<HeaderView<'_>> =
        headers.map(|(key, value)| HeaderView { key, value: value.as_deref() }).collect();
    let record = Record {
        token: 0,
        timestamp: i64::try_from(at.as_millis()).unwrap_or(i64::MAX),
        key: kept.key.as_deref(),
        value: kept.value.as_deref(),
        headers: &headers,
    };
    let sent = outbox.send_to(To::partition(&origin.topic, origin.partition), record).await;
    sent.map(|()| origin).map_err(|error| format!("It cannot be sent: {error}."))
}

async fn offsets(
    cluster: &Cluster,
    topic: &str,
    partitions: &[i32],
    spec: OffsetSpec,
) -> Result<Before, Error> {
    let wanted: Vec<_> =
        partitions.iter().map(|it| (TopicPartition::of(topic, *it), spec)).collect();
    let listed = cluster.list_offsets(&wanted).await.into_iter();
    listed.map(|(it, answer)| Ok((it.partition, answer?.offset))).collect()
}

/// Gives the records of the stretches to `take`, until the deadline.
async fn read(
    cluster: &Cluster,
    topic: &str,
    stretches: &[Stretch],
    deadline: Instant,
    mut take: impl FnMut(i32, &RecordView<'_>),
) -> Result<(), Error> {
    let options = FetcherOptions {
        buffer_bytes_max: BUFFER_BYTES,
        // Another record than the wanted one would be read elsewhere.
        reset: Reset::Fail,
        ..FetcherOptions::default()
    };
    let mut fetcher = Fetcher::start(cluster, options);
    let mut open = HashMap::new();
    for Stretch { partition, from, to } in stretches {
        fetcher.assign(topic, *partition, Start::Offset(*from)).await?;
        open.insert(*partition, *to);
    }
    let mut decompressor = Decompressor::default();
    while !open.is_empty() {
        // What was read until then is shown.
        let Ok(fetched) = tokio::time::timeout_at(deadline, fetcher.next()).await else { break };
        let fetched = fetched?;
        let Some(to) = open.get(&fetched.partition).copied() else { continue };
        fetched.for_each_record(&mut decompressor, UNPACKED_BYTES_MAX, |record| {
            if record.offset() < to {
                take(fetched.partition, record);
            }
        })?;
        if fetched.next_position >= to {
            open.remove(&fetched.partition);
            fetcher.unassign(&fetched.topic_partition());
        }
    }
    Ok(())
}

/// A record of its own memory.
struct Kept {
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Kept {
    fn of(record: &RecordView<'_>) -> Self {
        let headers = headers(record).map(|it| (it.key.to_vec(), it.value.map(<[u8]>::to_vec)));
        Self {
            key: record.key().map(<[u8]>::to_vec),
            value: record.value().map(<[u8]>::to_vec),
            headers: headers.collect(),
        }
    }

    fn origin(&self) -> Option<TopicPartition> {
        let text = |wanted: &str| {
            // A letter that died twice has the headers of its first death before.
            let found = self.headers.iter().rev().find(|(key, _)| key == wanted.as_bytes())?;
            std::str::from_utf8(found.1.as_deref()?).ok()
        };
        let partition = text(header::PARTITION)?.parse().ok()?;
        Some(TopicPartition::of(text(header::TOPIC)?, partition))
    }
}

impl Letter {
    fn of(partition: i32, record: &RecordView<'_>) -> Self {
        let mut letter = Self {
            partition,
            offset: record.offset(),
            timestamp: record.timestamp(),
            key: Shown::of(record.key()),
            value: Shown::of(record.value()),
            headers: Vec::new(),
            origin_topic: String::new(),
            origin_partition: String::new(),
            origin_offset: String::new(),
            attempts: String::new(),
            kind: String::new(),
            cause: String::new(),
        };
        for HeaderView { key, value } in headers(record) {
            let key = String::from_utf8_lossy(key);
            let place = match &*key {
                header::TOPIC => &mut letter.origin_topic,
                header::PARTITION => &mut letter.origin_partition,
                header::OFFSET => &mut letter.origin_offset,
                header::ATTEMPTS => &mut letter.attempts,
                header::KIND => &mut letter.kind,
                header::CAUSE => &mut letter.cause,
                _ if is_of_dead_letters(key.as_bytes()) => continue,
                _ => {
                    letter.headers.push((cut(&key), Shown::of(value)));
                    continue;
                }
            };
            *place = cut(&String::from_utf8_lossy(value.unwrap_or_default()));
        }
        letter
    }

    fn holds(&self, record: &RecordView<'_>, filter: &str) -> bool {
        let in_text = |text: &str| text.to_lowercase().contains(filter);
        let in_bytes = |bytes: Option<&[u8]>| {
            bytes.is_some_and(|bytes| in_text(&String::from_utf8_lossy(bytes)))
        };
        let in_headers = || headers(record).any(|it| in_bytes(Some(it.key)) || in_bytes(it.value));
        in_bytes(record.key()) || in_bytes(record.value()) || in_headers()
    }
}

impl Shown {
    fn of(bytes: Option<&[u8]>) -> Self {
        let Some(all) = bytes else {
            return Self { form: "null", text: String::new(), bytes: 0, is_cut: false };
        };
        let shown = all.get(..SHOWN_BYTES_MAX).unwrap_or(all);
        let is_cut = shown.len() < all.len();
        let is_shown = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t');
        let readable = match std::str::from_utf8(all) {
            Ok(text) if text.chars().all(is_shown) => {
                text.get(..text.floor_char_boundary(shown.len()))
            }
            _ => None,
        };
        let (form, text) = match readable {
            Some(text) if serde_json::from_slice::<serde::de::IgnoredAny>(all).is_ok() => {
                ("json", text.to_owned())
            }
            Some(text) => ("text", text.to_owned()),
            None => {
                let bytes = shown.get(..HEX_BYTES_MAX).unwrap_or(shown);
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                let is_cut = bytes.len() < all.len();
                let text = pairs.join(" ");
                return Self { form: "binary", text, bytes: all.len(), is_cut };
            }
        };
        Self { form, text, bytes: all.len(), is_cut }
    }
}

/// The headers up to the first that is damaged.
fn headers<'a>(record: &RecordView<'a>) -> impl Iterator<Item = HeaderView<'a>> {
    record.headers().into_iter().flatten()
}

fn is_of_dead_letters(key: &[u8]) -> bool {
    key.starts_with(HEADER_PREFIX)
}

fn cut(text: &str) -> String {
    text.chars().take(TEXT_CHARS_MAX).collect()
}

/// What the keys of all headers of dead letters begin with.
const HEADER_PREFIX: &[u8] = b"dead-letter-";

/// Letters of one page; a search goes on until it has found as many.
const LETTERS_WANTED: usize = 25;

/// Records that a search reads at a time.
const WINDOW_RECORDS: usize = 500;

/// Records that one request searches.
const SEARCHED_MAX: usize = 5_000;

/// How long one request may read.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of fetches.
const BUFFER_BYTES: usize = 8 << 20;

/// What Kafka's largest requests hold.
const UNPACKED_BYTES_MAX: usize = 100 << 20;

/// Longest part of a value that is shown, in bytes.
const SHOWN_BYTES_MAX: usize = 16 << 10;

/// Longest part of it in hexadecimal.
const HEX_BYTES_MAX: usize = 512;

/// Longest text of a header that is shown.
const TEXT_CHARS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_what_they_are() {
        let form = |bytes: &[u8]| Shown::of(Some(bytes)).form;
        assert_eq!(form(br#"{"a": 1}"#), "json");
        assert_eq!(form(b"a line\nand another"), "text");
        assert_eq!(form(b"\x1b[31mred"), "binary");
        assert_eq!(form(&[0xff, 0]), "binary");
        assert_eq!(Shown::of(Some(&[0xff, 0])).text, "ff 00");
        assert_eq!(Shown::of(None).form, "null");
    }

    #[test]
    fn a_long_value_is_cut_between_letters() {
        let long = "ä".repeat(SHOWN_BYTES_MAX);
        let shown = Shown::of(Some(&long.as_bytes()[1..]));
        assert_eq!((shown.form, shown.text.len()), ("binary", 3 * HEX_BYTES_MAX - 1));
        let shown = Shown::of(Some(format!("x{long}").as_bytes()));
        assert_eq!((shown.form, shown.text.len()), ("text", SHOWN_BYTES_MAX - 1));
        assert!(shown.is_cut);
        assert_eq!(shown.bytes, long.len() + 1);
    }
}
