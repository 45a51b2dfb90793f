//! Records as jobs of a queue outside of Kafka, whose workers are not bound to partitions.
//!
//! [`Enqueue`] is a handler that inserts records into a [`JobQueue`]; they are done, and their
//! offsets committed, once the queue has them. A record that is read again is inserted once, since
//! its coordinates identify the job.

#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "postgres")]
mod worker;

use std::fmt;
use std::sync::Arc;

use crate::context::Context;
use crate::failure::{BoxError, Cause, Failure};
use crate::handler::{Handler, Work};
use crate::layer::Origin;
use crate::message::MessageRef;

#[cfg(feature = "postgres")]
pub use postgres::{JobCounts, PostgresJobs};
#[cfg(feature = "postgres")]
pub use worker::{ClaimedJob, JobWorkerOptions};

/// A queue of jobs.
pub trait JobQueue: Send + Sync + 'static {
    /// Inserts jobs, all or none, and returns when they are durable. A job whose [`JobId`] the
    /// queue of that name has, or had, is left out. Returns how many were inserted.
    fn insert(&self, jobs: Vec<Job>) -> impl Future<Output = Result<u64, BoxError>> + Send;
}

impl<Q: JobQueue> JobQueue for Arc<Q> {
    fn insert(&self, jobs: Vec<Job>) -> impl Future<Output = Result<u64, BoxError>> + Send {
        self.as_ref().insert(jobs)
    }
}

/// A record as a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Job {
    /// Name of the queue.
    pub queue: Arc<str>,
    /// What identifies it within the queue.
    pub id: JobId,
    /// Key of the record.
    pub key: Option<Vec<u8>>,
    /// Value of the record.
    pub value: Option<Vec<u8>>,
    /// Headers of the record in their order.
    pub headers: Headers,
}

/// Keys and values.
type Headers = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// The coordinates of a record, also when it comes from a retry topic. The timestamp tells records
/// of a topic from those of one with the same name that was deleted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct JobId {
    /// Topic that the record was read from first.
    pub topic: String,
    /// Its partition there.
    pub partition: i32,
    /// Its offset there.
    pub offset: i64,
    /// Its timestamp there, in ms since 1970; -1 for none.
    pub timestamp: i64,
}

impl Job {
    fn of(message: MessageRef<'_>, queue: &Arc<str>) -> Self {
        let origin = Origin::of(message);
        let header = |header: moldau_records::HeaderView<'_>| {
            (header.key.to_vec(), header.value.map(<[u8]>::to_vec))
        };
        Self {
            queue: Arc::clone(queue),
            id: JobId {
                topic: origin.topic,
                partition: origin.partition,
                offset: origin.offset,
                timestamp: origin.timestamp,
            },
            key: message.key().map(<[u8]>::to_vec),
            value: message.value().map(<[u8]>::to_vec),
            headers: message.headers().map(header).collect(),
        }
    }
}

/// Handles records by inserting them as jobs, a batch with one call of the queue. A queue that does
/// not take them fails the records, which are tried again.
///
/// ```
/// use moldau_consumer::{App, BoxError, Batch, Enqueue, Job, JobQueue, Route};
///
/// struct Mails;
///
/// impl JobQueue for Mails {
///     async fn insert(&self, jobs: Vec<Job>) -> Result<u64, BoxError> {
///         Ok(jobs.len().try_into()?)
///     }
/// }
///
/// let route = Route::<Batch, _>::new(Enqueue::new(Mails, "mails"));
/// let app = App::new(["localhost:9092"]).group("mails").topic("signups", route);
/// ```
pub struct Enqueue<Q> {
    jobs: Q,
    queue: Arc<str>,
}

impl<Q: JobQueue> Enqueue<Q> {
    /// Inserts into the queue of this name.
    pub fn new(jobs: Q, queue: &str) -> Self {
        Self { jobs, queue: queue.into() }
    }
}

impl<Q> fmt::Debug for Enqueue<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Enqueue").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl<W: Work, Q: JobQueue> Handler<W> for Enqueue<Q> {
    async fn call(&self, work: W, _: Context<'_>) -> Result<(), Failure> {
        let jobs = work.messages().map(|message| Job::of(message, &self.queue)).collect();
        let inserted = self.jobs.insert(jobs).await;
        inserted.map(drop).map_err(|error| Cause::Failed(error).into())
    }
}
