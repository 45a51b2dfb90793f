//! The end of a run: open transactions end, a last client reads everything, and so does the group.

use std::time::Duration;

use moldau_client::{Cluster, OffsetSpec, Start, TopicPartition};
use moldau_measure::Error;
use moldau_records::Decompressor;
use tokio::time::timeout;

use super::member::Member;
use super::recorder::{Open, Replies};
use super::world::{Polling, World, deadline};
use moldau_load::generator::target;

/// How long the end of open transactions may take: longer than they last by themselves.
const TRANSACTIONS_TIMEOUT: Duration = Duration::from_secs(60);

/// How long the last client waits for records that should be there.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// How long the last member may take: longer than members that are gone keep their partitions.
const GROUP_TIMEOUT: Duration = Duration::from_secs(60);

/// Ends what clients of these places left open: each place has its own transactional id, whose next
/// producer aborts the transaction of the one before.
pub(super) async fn end_transactions(world: &World, places: &[usize]) -> Result<(), Error> {
    let end = deadline(TRANSACTIONS_TIMEOUT);
    for place in places {
        loop {
            let ended = async {
                let cluster = world.connect().await?;
                let id = world.transactional_id(*place);
                let (producer, _) = world.producer(&cluster, Some(id)).await?;
                producer.close().await;
                Ok(())
            };
            match ended.await {
                Ok(()) => break,
                Err(error) if tokio::time::Instant::now() > end => {
                    return Err(target("ending open transactions")(error));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
    Ok(())
}

/// Polls every partition from its start to its end; gives the partitions whose end was not reached.
pub(super) async fn read_all(world: &World) -> Result<Vec<i32>, Error> {
    let failed = target("reading everything back");
    let cluster = world.connect().await.map_err(&failed)?;
    let mut left = ends(world, &cluster).await?;
    let fetcher = World::fetcher(&cluster);
    let start_us = world.recorder.now_us();
    for (partition, _) in &left {
        fetcher.assign(&world.topic, *partition, Start::Earliest).await.map_err(&failed)?;
    }
    let number = world.recorder.client();
    let replies = Replies::new(&world.recorder);
    let ended = |partition: i32| {
        let partition = u32::try_from(partition).unwrap_or(u32::MAX);
        Open::alone(&replies, number).end(start_us, partition);
    };
    // Nothing is fetched of an empty partition.
    left.extract_if(.., |(_, end)| *end <= 0).for_each(|(partition, _)| ended(partition));
    let mut polling = Polling { fetcher, decompressor: Decompressor::default() };
    while !left.is_empty() {
        let from_us = world.recorder.now_us();
        let Ok(fetched) = timeout(SILENCE_MAX, polling.fetcher.next()).await else { break };
        let fetched = fetched.map_err(&failed)?;
        let (partition, records) = polling.records(&fetched).map_err(&failed)?;
        if !records.is_empty() {
            Open::alone(&replies, number).poll(from_us, partition, records);
        }
        let is_read =
            |(of, end): &mut (i32, i64)| *of == fetched.partition && fetched.next_position >= *end;
        left.extract_if(.., is_read).for_each(|(partition, _)| ended(partition));
    }
    Ok(left.into_iter().map(|(partition, _)| partition).collect())
}

/// Polls and commits as the last member of the group, until everything is committed, and reads the
/// committed offsets back; gives the partitions in which not everything is.
pub(super) async fn end_group(world: &World) -> Result<Vec<i32>, Error> {
    let failed = target("reading everything in the group");
    let cluster = world.connect().await.map_err(&failed)?;
    let mut left = ends(world, &cluster).await?;
    let number = world.recorder.client();
    let mut member = Member::join(world, &cluster, number).await.map_err(&failed)?;
    let end = deadline(GROUP_TIMEOUT);
    while !left.is_empty() && tokio::time::Instant::now() < end {
        member.turn(true).await.map_err(&failed)?;
        left.retain(|it| !member.has_committed(*it));
    }
    member.read_back().await.map_err(&failed)?;
    member.leave().await.map_err(&failed)?;
    Ok(left.into_iter().map(|(partition, _)| partition).collect())
}

/// The end offset of each partition.
async fn ends(world: &World, cluster: &Cluster) -> Result<Vec<(i32, i64)>, Error> {
    let failed = target("asking for the ends of partitions");
    let partitions = (0..).take(world.ends.len());
    let wanted: Vec<(TopicPartition, OffsetSpec)> = partitions
        .map(|index| (TopicPartition::of(&world.topic, index), OffsetSpec::Latest))
        .collect();
    let answers = cluster.list_offsets(&wanted).await.into_iter();
    answers.map(|(of, answer)| Ok((of.partition, answer.map_err(&failed)?.offset))).collect()
}
