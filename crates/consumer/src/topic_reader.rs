//! Reads one partition from its start and follows it: the state of tasks that keep it in a
//! compacted topic.

use std::sync::Arc;
use std::time::Duration;

use moldau_client::{
    Cluster, Error, Fetcher, FetcherOptions, OffsetSpec, Reset, Result, Start, TopicPartition,
};
use moldau_records::Decompressor;

use crate::chunk::{Chunk, Read, Spare};
use crate::clock::Clock;

/// Reads a partition.
pub(crate) struct TopicReader {
    partition: TopicPartition,
    clock: Clock,
    fetcher: Fetcher,
    decompressor: Decompressor,
    spare: Spare,
    /// Offset of the next record.
    position: i64,
    /// Where the partition ended when the reader began.
    end: i64,
}

impl TopicReader {
    /// A reader at the start of `partition`.
    pub(crate) async fn open(
        cluster: &Cluster,
        clock: &Clock,
        partition: &TopicPartition,
    ) -> Result<Self> {
        let mut bounds = [0; 2];
        for (bound, spec) in bounds.iter_mut().zip([OffsetSpec::Earliest, OffsetSpec::Latest]) {
            let mut answers = cluster.list_offsets(&[(partition.clone(), spec)]).await;
            *bound = answers.remove(partition).ok_or(Error::Closed)??.offset;
        }
        let [position, end] = bounds;
        let options = FetcherOptions { reset: Reset::Earliest, ..FetcherOptions::default() };
        let fetcher = Fetcher::start(cluster, options);
        let TopicPartition { topic, partition: number } = partition;
        fetcher.assign(topic, *number, Start::Offset(position)).await?;
        Ok(Self {
            partition: partition.clone(),
            clock: clock.clone(),
            fetcher,
            decompressor: Decompressor::default(),
            spare: Spare::default(),
            position,
            end,
        })
    }

    /// Whether it has read all that was there when it began.
    pub(crate) fn is_caught_up(&self) -> bool {
        self.position >= self.end
    }

    /// The next records. What may pass is tried again; cancelling the future loses nothing.
    ///
    /// # Errors
    /// The topic is gone, or the reader may not read it.
    pub(crate) async fn next(&mut self) -> Result<Arc<Chunk>> {
        loop {
            let fetched = self.fetcher.next().await;
            let read = fetched.map(|it| Chunk::read(it, &mut self.decompressor, &self.spare));
            let error = match read {
                Ok(Read { chunk, next, damage: None, .. }) => {
                    self.position = next;
                    return Ok(chunk);
                }
                Ok(Read { damage: Some(error), .. }) | Err(error) => error,
            };
            let TopicPartition { topic, partition } = self.partition.clone();
            tracing::error!(%topic, partition, %error, "cannot be read; tried again");
            self.clock.sleep_until(self.clock.now() + PAUSE).await;
            self.fetcher.assign(&topic, partition, Start::Offset(self.position)).await?;
        }
    }
}

/// Pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);
