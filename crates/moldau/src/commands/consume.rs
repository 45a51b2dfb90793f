//! `moldau consume`: prints the records of a topic, one line each; with `--json` each line is a
//! JSON document with offset, timestamp, key, value and headers.

use std::collections::HashMap;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use moldau_client::{
    Admin, Cluster, Error, Fetched, Fetcher, FetcherOptions, GroupConsumer, GroupOptions,
    OffsetSpec, Reset, Start, TopicPartition,
};
use moldau_records::{Decompressor, RecordView};
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::ConsumeOptions;
use crate::commands::session;

/// Most bytes that one batch may unpack to.
const BATCH_BYTES_MAX: usize = 256 << 20;

pub(crate) fn run(options: &ConsumeOptions) -> anyhow::Result<ExitCode> {
    session::run(&options.cluster, false, async |cluster| match &options.group {
        Some(group) => consume_in_group(&cluster, group, options).await,
        None => consume(&cluster, options).await,
    })
}

async fn consume(cluster: &Cluster, options: &ConsumeOptions) -> anyhow::Result<()> {
    let mut metadata = cluster.replacements();
    let mut topic = cluster.topic(&options.topic).await?;
    let mut printer = Printer::new(options);
    let start = if options.from_beginning { Start::Earliest } else { Start::Latest };
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    for partition in &topic.partitions {
        fetcher.assign(&options.topic, partition.index, start).await?;
    }
    let mut ends = match options.exit_at_end {
        true => Some(end_offsets(cluster, options).await?),
        false => None,
    };
    while !printer.is_done() && ends.as_ref().is_none_or(|ends| !ends.is_empty()) {
        let fetched = tokio::select! {
            fetched = fetcher.next() => fetched?,
            Ok(()) = metadata.changed(), if ends.is_none() => {
                let known = Arc::clone(&metadata.borrow_and_update());
                let Some(now) = known.topics.get(topic.topic.name.as_ref()) else { continue };
                // Whatever partitions hold that were added since is new.
                for partition in now.partitions.iter().skip(topic.partitions.len()) {
                    fetcher.assign(&options.topic, partition.index, Start::Earliest).await?;
                }
                topic = Arc::clone(now);
                continue;
            }
        };
        printer.print(&fetched)?;
        if let Some(ends) = &mut ends {
            let partition = fetched.topic_partition();
            if ends.get(&partition).is_some_and(|end| fetched.next_position >= *end) {
                ends.remove(&partition);
            }
        }
    }
    Ok(())
}

/// The end of every partition that holds something to print.
async fn end_offsets(
    cluster: &Cluster,
    options: &ConsumeOptions,
) -> anyhow::Result<HashMap<TopicPartition, i64>> {
    let topic = cluster.topic(&options.topic).await?;
    let admin = Admin::new(cluster);
    let partitions = topic.partitions.iter().map(|it| TopicPartition::of(&options.topic, it.index));
    let partitions: Vec<_> = partitions.collect();
    let ask = async |spec| {
        let wanted: Vec<_> = partitions.iter().map(|it| (it.clone(), spec)).collect();
        let answers = admin.list_offsets(&wanted).await.into_iter();
        answers
            .map(|(partition, listed)| Ok((partition, listed?.offset)))
            .collect::<Result<HashMap<_, _>, Error>>()
    };
    let ends = ask(OffsetSpec::Latest).await?;
    let starts = match options.from_beginning {
        true => ask(OffsetSpec::Earliest).await?,
        false => ends.clone(),
    };
    Ok(ends.into_iter().filter(|(partition, end)| starts.get(partition) != Some(end)).collect())
}

async fn consume_in_group(
    cluster: &Cluster,
    group: &str,
    options: &ConsumeOptions,
) -> anyhow::Result<()> {
    let reset = if options.from_beginning { Reset::Earliest } else { Reset::Latest };
    let fetcher = FetcherOptions { reset, ..FetcherOptions::default() };
    let settings = GroupOptions { fetcher, ..GroupOptions::default() };
    let topics = [options.topic.clone()];
    let mut consumer = GroupConsumer::join(cluster, group, &topics, settings).await?;
    let mut printer = Printer::new(options);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    while !printer.is_done() {
        let fetched = tokio::select! {
            fetched = consumer.next() => fetched?,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        let next = printer.print(&fetched)?;
        consumer.consumed_to(fetched.topic_partition(), next);
        match consumer.commit().await {
            Err(error) if error.is_left_behind() => {
                tracing::warn!(%error, "records may come again");
            }
            committed => committed?,
        }
    }
    consumer.leave().await?;
    Ok(())
}

/// Writes records until there were enough.
struct Printer {
    left: u64,
    json: bool,
    decompressor: Decompressor,
}

#[derive(Serialize)]
struct Line<'a> {
    partition: i32,
    offset: i64,
    timestamp: i64,
    key: Option<Text<'a>>,
    value: Option<Text<'a>>,
    headers: Vec<(Text<'a>, Option<Text<'a>>)>,
}

/// Bytes as text where they are text, else as a list of numbers.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        std::str::from_utf8(bytes).map_or(Self::Bytes(bytes), Self::Text)
    }
}

impl Printer {
    fn new(options: &ConsumeOptions) -> Self {
        Self {
            left: options.count.unwrap_or(u64::MAX),
            json: options.cluster.json,
            decompressor: Decompressor::default(),
        }
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Prints what was fetched, and returns the offset after the last record that was printed.
    fn print(&mut self, fetched: &Fetched) -> anyhow::Result<i64> {
        let mut stdout = std::io::stdout().lock();
        let mut next = fetched.position;
        for batch in fetched.batches() {
            let batch = batch?;
            batch.check_crc()?;
            if batch.is_control() {
                next = batch.next_offset();
                continue;
            }
            for record in batch.records(&mut self.decompressor, BATCH_BYTES_MAX)? {
                let record = record?;
                if record.offset() < fetched.position {
                    continue;
                }
                if self.left == 0 {
                    return Ok(next);
                }
                self.left -= 1;
                next = record.offset() + 1;
                match self.json {
                    true => write_json(&mut stdout, fetched.partition, &record)?,
                    false => {
                        stdout.write_all(record.value().unwrap_or_default())?;
                        stdout.write_all(b"\n")?;
                    }
                }
            }
        }
        // What follows the last record, such as a compacted tail, needs no printing.
        Ok(if self.left == 0 { next } else { fetched.next_position })
    }
}

fn write_json(out: &mut impl Write, partition: i32, record: &RecordView<'_>) -> anyhow::Result<()> {
    let headers = record.headers()?;
    let line = Line {
        partition,
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key().map(Text::of),
        value: record.value().map(Text::of),
        headers: headers.map(|it| (Text::of(it.key), it.value.map(Text::of))).collect(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")?;
    Ok(())
}
