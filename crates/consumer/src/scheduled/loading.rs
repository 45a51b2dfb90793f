//! Reads messages again that are not held in memory.

use std::collections::BTreeMap;

use moldau_client::{Cluster, Fetcher, FetcherOptions, Reset, Result, Start, TopicPartition};
use moldau_records::Decompressor;

use super::pending::Place;
use crate::chunk::{Chunk, Read, Spare};
use crate::message::Message;

/// What was loaded, and what is no longer in the topic.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) found: Vec<(Place, Message)>,
    pub(super) missing: Vec<Place>,
}

/// Reads the records at these offsets.
pub(super) async fn load(
    cluster: &Cluster,
    partition: &TopicPartition,
    wanted: BTreeMap<i64, Place>,
) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let (mut wanted, mut decompressor) = (wanted.into_iter().peekable(), Decompressor::default());
    let options = FetcherOptions { reset: Reset::Earliest, ..FetcherOptions::default() };
    let mut fetcher = Fetcher::start(cluster, options);
    let TopicPartition { topic, partition: number } = partition;
    let (mut position, spare) = (i64::MIN, Spare::default());
    while let Some((offset, _)) = wanted.peek() {
        if position < offset.saturating_sub(SKIPPED_MAX) {
            position = *offset;
            fetcher.assign(topic, *number, Start::Offset(position)).await?;
        }
        let read = Chunk::read(fetcher.next().await?, &mut decompressor, &spare);
        take(&read, &mut wanted, &mut loaded);
        position = read.next;
        if let Some(error) = read.damage {
            return Err(error);
        }
    }
    Ok(loaded)
}

/// Takes what is wanted of what was read.
fn take(
    read: &Read,
    wanted: &mut std::iter::Peekable<impl Iterator<Item = (i64, Place)>>,
    loaded: &mut Loaded,
) {
    for message in Message::all_of(&read.chunk) {
        while let Some((_, place)) = wanted.next_if(|(offset, _)| *offset < message.offset()) {
            loaded.missing.push(place);
        }
        if let Some((_, place)) = wanted.next_if(|(offset, _)| *offset == message.offset()) {
            loaded.found.push((place, message.detached()));
        }
    }
    while let Some((_, place)) = wanted.next_if(|(offset, _)| *offset < read.next) {
        loaded.missing.push(place);
    }
}

/// Records that are read and not wanted, rather than asking the broker once more.
const SKIPPED_MAX: i64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestBroker;

    #[tokio::test]
    async fn what_is_wanted_is_found_and_what_is_gone_is_missing() {
        let broker = TestBroker::start();
        broker.create_topic("schedule", 1).await;
        let far = SKIPPED_MAX + 10;
        let records: Vec<_> = (0..=far).map(|_| (None, "value")).collect();
        broker.produce_all("schedule", &records).await;
        let partition = TopicPartition::of("schedule", 0);
        let wanted = [2, 5, far].map(|offset| (offset, (7, offset)));
        let cluster = broker.cluster().await;
        let loaded = load(cluster, &partition, wanted.into()).await.expect("it can be read");
        let found: Vec<_> = loaded.found.iter().map(|(place, it)| (*place, it.offset())).collect();
        assert_eq!(found, wanted.map(|(offset, place)| (place, offset)));
        assert_eq!(loaded.missing, []);
    }

    #[tokio::test]
    async fn what_retention_took_is_missing() {
        let broker = TestBroker::start();
        broker.create_topic("schedule", 1).await;
        broker.produce_all("schedule", &[(None, "value"); 4]).await;
        let cluster = broker.cluster().await;
        let partition = TopicPartition::of("schedule", 0);
        let admin = moldau_client::Admin::new(cluster);
        let deleted = admin.delete_records(&[(partition.clone(), 2)]).await;
        assert!(deleted.iter().all(|(_, deleted)| deleted.is_ok()), "{deleted:?}");
        let wanted = [1, 3].map(|offset| (offset, (7, offset)));
        let loaded = load(cluster, &partition, wanted.into()).await.expect("it can be read");
        assert_eq!(loaded.missing, [(7, 1)]);
        assert_eq!(loaded.found.iter().map(|(place, _)| *place).collect::<Vec<_>>(), [(7, 3)]);
    }
}
