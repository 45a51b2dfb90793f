//! `moldau consume`: prints the records of a topic, one line each; with `--json` each line is a
//! JSON document with offset, timestamp, key, value and headers.

mod printer;

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;

use moldau_client::{
    Admin, Cluster, Error, Fetcher, FetcherOptions, GroupConsumer, GroupOptions, GroupProtocol,
    MembershipOptions, OffsetSpec, Reset, Start, TopicPartition,
};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::{ConsumeOptions, Protocol};
use crate::commands::consume::printer::Printer;
use crate::commands::session;

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
                // All records of partitions that were added since are new.
                for partition in now.partitions.iter().skip(topic.partitions.len()) {
                    fetcher.assign(&options.topic, partition.index, Start::Earliest).await?;
                }
                topic = Arc::clone(now);
                continue;
            }
        };
        printer.print_fetched(&fetched)?;
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
    // A group may read a topic that does not exist; a user at a terminal mistyped it.
    cluster.topic(&options.topic).await?;
    let topics = vec![options.topic.clone()];
    let protocol = match options.group_protocol {
        Protocol::Classic => GroupProtocol::Classic,
        Protocol::Consumer => GroupProtocol::Consumer,
    };
    let membership = MembershipOptions { protocol, topics, ..MembershipOptions::default() };
    let settings = GroupOptions { membership, fetcher };
    let mut consumer = GroupConsumer::join(cluster, group, settings).await?;
    let mut printer = Printer::new(options);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    while !printer.is_done() {
        let fetched = tokio::select! {
            fetched = consumer.next() => fetched?,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        let next = printer.print_fetched(&fetched)?;
        consumer.consumed_to(fetched.topic_partition(), next);
        match consumer.commit().await {
            Err(error) if error.is_left_behind() => {
                tracing::warn!(%error, "records may be read again");
            }
            committed => committed?,
        }
    }
    consumer.leave().await?;
    Ok(())
}
