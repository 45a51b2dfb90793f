//! Records that come, and partitions that cannot be read: those are tried again, and all others go
//! on meanwhile.

use std::time::Duration;

use moldau_client::{
    CommittedOffset, Error as ClientError, Fetched, Reset, Start, TopicPartition, TopicRef,
};

use super::Runtime;
use crate::Result;
use crate::chunk::Chunk;
use crate::scheduler::PartitionId;

impl Runtime {
    /// Where a partition is read that the group has committed nothing of.
    pub(super) fn first_start(&self) -> Start {
        match self.reset {
            Reset::Latest => Start::Latest,
            Reset::Earliest | Reset::Fail => Start::Earliest,
        }
    }

    /// Lets the fetcher read a partition. One that is not known is waited for beside the handlers.
    pub(super) async fn read_from(&mut self, id: PartitionId, start: Start) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        reading.starts(start);
        let TopicPartition { topic, partition } = reading.name.clone();
        let known = self.cluster.metadata().topics.get(&topic).cloned();
        let Some(known) = known.filter(|known| known.has_partition(partition)) else {
            let error = ClientError::UnknownTopicOrPartition { name: topic };
            self.look_up(&error);
            return self.read_later(id, start, &error);
        };
        reading.topic.get_or_insert_with(|| known.topic.clone());
        reading.unreadable = None;
        if let Err(error) = self.fetcher.assign(&topic, partition, start).await {
            self.read_later(id, start, &error);
        }
    }

    /// A partition cannot be read: it is tried again after a pause.
    fn read_later(&mut self, id: PartitionId, start: Start, error: &ClientError) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        let TopicPartition { topic, partition } = &reading.name;
        let why = error.to_string();
        // It may be so for days.
        if reading.logged.as_ref() != Some(&why) {
            tracing::error!(%topic, partition, %error, "cannot be read; tried again");
            reading.logged = Some(why.clone());
        }
        reading.unreadable = Some(why);
        reading.restart_at = Some(start);
        self.restarts.push((self.services.clock.now() + UNREADABLE_PAUSE, id));
    }

    /// Asks for metadata of the partitions that cannot be read.
    fn look_up(&mut self, error: &ClientError) {
        if self.lookup.as_ref().is_some_and(|lookup| !lookup.is_finished()) {
            return;
        }
        let (cluster, error) = (self.cluster.clone(), error.clone());
        let ClientError::UnknownTopicOrPartition { name } = error else { return };
        self.lookup = Some(tokio::spawn(async move {
            let seen = cluster.metadata().generation;
            let asked = async {
                cluster.load_topics([&*name]).await?;
                // A topic that is known may have other partitions by now.
                cluster.refresh_from(seen).await
            };
            if let Err(error) = asked.await {
                tracing::warn!(topic = %name, %error, "metadata could not be read");
            }
        }));
    }

    /// # Errors
    /// A broker does not authenticate the app.
    pub(super) async fn take_fetched(
        &mut self,
        fetched: moldau_client::Result<Fetched>,
    ) -> Result<()> {
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(error) => return self.take_fetch_error(error),
        };
        let Some(id) = self.by_name.get(&fetched.topic_partition()).copied() else { return Ok(()) };
        let Some(reading) = self.readings.get_mut(&id) else { return Ok(()) };
        if reading.topic.as_ref().is_some_and(|topic| is_another(topic, &fetched.topic)) {
            self.created_again(id).await;
            return Ok(());
        }
        reading.logged = None;
        reading.end = Some(fetched.high_watermark);
        reading.begun_at.get_or_insert(fetched.position);
        let mut read = Chunk::read(fetched, &mut self.decompressor, &self.chunks);
        if let Some(segment) = self.segment {
            read.retain(|offset, key| segment.holds(offset, key));
        }
        let (next, damage) = (Start::Offset(read.next), read.damage.take());
        self.held_bytes += read.bytes;
        reading.read_on = next;
        reading.take(read);
        if let Some(error) = damage {
            // What lies behind it must not be read first: it would be passed over.
            self.fetcher.unassign(&reading.name);
            self.read_later(id, next, &error);
        }
        self.fill(id);
        if self.held_bytes > self.held_bytes_max
            && let Some(reading) = self.readings.get_mut(&id)
        {
            self.held_bytes -= reading.held_bytes();
            reading.give_back(&self.fetcher);
        }
        Ok(())
    }

    /// The topic was deleted and created again by the same name: nothing of it is done yet, and
    /// offsets of the other mean nothing.
    async fn created_again(&mut self, id: PartitionId) {
        let Some(name) = self.readings.get(&id).map(|reading| reading.name.clone()) else { return };
        let TopicPartition { topic, partition } = &name;
        tracing::warn!(%topic, partition, "the topic was created again; read from its start");
        drop(self.forget(id));
        self.assign(name, Some(CommittedOffset::at(0))).await;
    }

    /// Moves records of a partition into its queue.
    pub(super) fn fill(&mut self, id: PartitionId) {
        let Some(reading) = self.readings.get_mut(&id) else { return };
        let before = reading.held_bytes();
        let start = reading.fill(id, &mut self.scheduler, &self.fetcher);
        self.held_bytes -= before - reading.held_bytes();
        if let Some(start) = start {
            reading.restart_at = Some(start);
            self.restarts.push((self.services.clock.now(), id));
        }
    }

    /// The fetcher has stopped reading a partition, or reaches a broker no more.
    fn take_fetch_error(&mut self, error: ClientError) -> Result<()> {
        if error.is_unauthenticated() {
            return Err(error.into());
        }
        let is_open = |id: &PartitionId| !self.drains.iter().any(|drain| drain.covers(*id));
        let stopped = self.readings.iter().filter(|(id, reading)| {
            reading.is_to_be_fetched() && is_open(id) && !self.fetcher.is_assigned(&reading.name)
        });
        let stopped: Vec<_> = stopped.map(|(id, reading)| (*id, reading.read_on)).collect();
        for (id, start) in stopped {
            self.read_later(id, start, &error);
        }
        Ok(())
    }

    /// Starts to fetch partitions again.
    pub(super) async fn restart(&mut self) {
        let now = self.services.clock.now();
        let due: Vec<_> = self.restarts.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, id) in due {
            let start = self.readings.get_mut(&id).and_then(|reading| reading.restart_at.take());
            if let Some(start) = start {
                self.read_from(id, start).await;
            }
        }
    }
}

/// Whether two topics of the same name are not the same (KIP-516). Older brokers do not tell.
fn is_another(topic: &TopicRef, other: &TopicRef) -> bool {
    topic.id != other.id && !topic.id.is_zero() && !other.id.is_zero()
}

/// Pause before what could not be read is read again.
const UNREADABLE_PAUSE: Duration = Duration::from_secs(1);
