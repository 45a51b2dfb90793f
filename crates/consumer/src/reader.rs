//! Reads topics without a group: once up to their end, or on and on.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use moldau_client::{
    Cluster, ClusterOptions, Error as ClientError, Fetched, Fetcher, FetcherOptions, OffsetSpec,
    Start, TopicPartition,
};
use moldau_records::Decompressor;

use crate::Result;
use crate::chunk::{Chunk, Spare};
use crate::message::Message;
use crate::scheduler::Records as _;

/// Where in a partition a [`Reader`] begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Position {
    /// The oldest record.
    Earliest,
    /// The end: records that are appended from now on.
    Latest,
    /// This offset, or the oldest record if that is gone.
    Offset(i64),
    /// The first record whose timestamp is at or after this, in ms since 1970; the end if there is
    /// none.
    Timestamp(i64),
    /// So many offsets before the end, or the oldest record. Offsets without a record count too.
    Last(i64),
}

/// Describes what is read, without a group and without commits.
///
/// ```no_run
/// # async fn read() -> moldau_consumer::Result<()> {
/// use moldau_consumer::{Position, Reader};
///
/// let reader = Reader::new(["localhost:9092"]).topic("orders", Position::Last(100)).until_end();
/// let mut records = reader.open().await?;
/// while let Some(record) = records.next().await {
///     println!("{:?}", record?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reader {
    bootstrap: Vec<String>,
    cluster: ClusterOptions,
    fetcher: FetcherOptions,
    wanted: Vec<(Arc<str>, Option<i32>, Position)>,
    until: Until,
}

/// When a partition has been read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Until {
    Never,
    End,
}

impl Reader {
    /// A reader of the cluster with these addresses (`host:port`), of nothing yet.
    pub fn new<A: Into<String>>(bootstrap: impl IntoIterator<Item = A>) -> Self {
        Self {
            bootstrap: bootstrap.into_iter().map(Into::into).collect(),
            cluster: ClusterOptions::default(),
            fetcher: FetcherOptions::default(),
            wanted: Vec::new(),
            until: Until::Never,
        }
    }

    /// Reads all partitions of a topic.
    #[must_use]
    pub fn topic(mut self, topic: &str, position: Position) -> Self {
        self.wanted.push((topic.into(), None, position));
        self
    }

    /// Reads one partition of a topic.
    #[must_use]
    pub fn partition(mut self, topic: &str, partition: i32, position: Position) -> Self {
        self.wanted.push((topic.into(), Some(partition), position));
        self
    }

    /// Ends each partition where its end is when the reader is opened. Otherwise reading goes on
    /// with what is appended.
    #[must_use]
    pub fn until_end(mut self) -> Self {
        self.until = Until::End;
        self
    }

    /// How the cluster is reached: TLS, SASL, timeouts.
    #[must_use]
    pub fn cluster(mut self, options: ClusterOptions) -> Self {
        self.cluster = options;
        self
    }

    /// How records are fetched, and whether only those of committed transactions.
    #[must_use]
    pub fn fetcher(mut self, options: FetcherOptions) -> Self {
        self.fetcher = options;
        self
    }

    /// Begins to read. Must be called in a tokio runtime, which then runs its tasks.
    ///
    /// # Errors
    /// [`Error::Client`](crate::Error::Client): a topic or partition does not exist, or the cluster
    /// does not answer.
    pub async fn open(self) -> Result<Records> {
        let cluster = Cluster::connect(&self.bootstrap, self.cluster).await?;
        let mut positions = Vec::new();
        for (topic, partition, position) in self.wanted {
            let partitions = match partition {
                Some(partition) => vec![partition],
                None => {
                    let known = cluster.topic(&topic).await?;
                    known.partitions.iter().map(|it| it.index).collect()
                }
            };
            for partition in partitions {
                let topic = Arc::clone(&topic);
                positions.push((TopicPartition { topic, partition }, position));
            }
        }
        let starts = starts(&cluster, &positions).await?;
        let fetcher = Fetcher::start(&cluster, self.fetcher);
        let mut open = HashMap::new();
        for (name, Begin { start, end }) in starts {
            let end = match self.until {
                Until::Never => i64::MAX,
                Until::End => end,
            };
            if start < end {
                fetcher.assign(&name.topic, name.partition, Start::Offset(start)).await?;
                open.insert(name, end);
            }
        }
        let (decompressor, chunks) = (Decompressor::default(), Spare::default());
        Ok(Records { fetcher, open, decompressor, chunks, read: VecDeque::new() })
    }
}

/// The records of a [`Reader`]: those of a partition in order, partitions as they come. A
/// [`Stream`] that ends when all partitions have been read.
pub struct Records {
    fetcher: Fetcher,
    /// Partitions that are read, and the offset at which each ends.
    open: HashMap<TopicPartition, i64>,
    decompressor: Decompressor,
    chunks: Spare,
    read: VecDeque<Message>,
}

impl Records {
    /// The next record; `None` after the last. Cancelling the future loses nothing.
    ///
    /// # Errors
    /// [`Error::Client`](crate::Error::Client): a partition cannot be read any further. The others
    /// go on.
    pub async fn next(&mut self) -> Option<Result<Message>> {
        std::future::poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Message>>> {
        loop {
            if let Some(message) = self.read.pop_front() {
                return Poll::Ready(Some(Ok(message)));
            }
            if self.open.is_empty() {
                return Poll::Ready(None);
            }
            let taken = match ready!(self.fetcher.poll_next(context)) {
                Ok(fetched) => self.take(fetched),
                Err(error) => {
                    self.give_up(&error);
                    Err(error)
                }
            };
            if let Err(error) = taken {
                return Poll::Ready(Some(Err(error.into())));
            }
        }
    }

    fn take(&mut self, fetched: Fetched) -> moldau_client::Result<()> {
        let name = fetched.topic_partition();
        let Some(end) = self.open.get(&name).copied() else { return Ok(()) };
        let read = Chunk::read(fetched, &mut self.decompressor, &self.chunks);
        let message = |index| Message::new(Arc::clone(&read.chunk), index);
        let messages = (0..read.chunk.len()).map(message);
        self.read.extend(messages.take_while(|message| message.offset() < end));
        if read.next >= end || read.damage.is_some() {
            self.fetcher.unassign(&name);
            self.open.remove(&name);
        }
        read.damage.map_or(Ok(()), Err)
    }

    /// The fetcher has stopped reading a partition, or all.
    fn give_up(&mut self, error: &ClientError) {
        match error {
            ClientError::UnreadableBatch { topic, partition, .. } => {
                let name = TopicPartition { topic: Arc::clone(topic), partition: *partition };
                self.open.remove(&name);
            }
            _ => self.open.clear(),
        }
    }
}

impl Stream for Records {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }
}

/// Where a partition is read from, and where its end is.
struct Begin {
    start: i64,
    end: i64,
}

async fn starts(
    cluster: &Cluster,
    positions: &[(TopicPartition, Position)],
) -> Result<Vec<(TopicPartition, Begin)>> {
    let ask = async |spec: OffsetSpec| {
        let wanted: Vec<_> = positions.iter().map(|(name, _)| (name.clone(), spec)).collect();
        cluster.list_offsets(&wanted).await
    };
    let earliest = ask(OffsetSpec::Earliest).await;
    let latest = ask(OffsetSpec::Latest).await;
    let by_time = positions.iter().filter_map(|(name, position)| match position {
        Position::Timestamp(at) => Some((name.clone(), OffsetSpec::Timestamp(*at))),
        _ => None,
    });
    let by_time = cluster.list_offsets(&by_time.collect::<Vec<_>>()).await;
    let mut starts = Vec::new();
    for (name, position) in positions {
        let known = |offsets: &HashMap<_, moldau_client::Result<moldau_client::ListedOffset>>| {
            let listed = offsets.get(name).cloned().unwrap_or(Err(ClientError::Closed));
            listed.map(|listed| listed.offset)
        };
        let (first, end) = (known(&earliest)?, known(&latest)?);
        let start = match position {
            Position::Earliest => first,
            Position::Latest => end,
            Position::Offset(offset) => (*offset).max(first),
            Position::Last(count) => end.saturating_sub(*count).max(first),
            Position::Timestamp(_) => match known(&by_time)? {
                found if found >= 0 => found,
                _ => end,
            },
        };
        starts.push((name.clone(), Begin { start, end }));
    }
    Ok(starts)
}
