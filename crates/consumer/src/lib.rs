//! Framework for Kafka workers: routes, handlers, layers, one offset ledger.
//!
//! | module | what it holds |
//! |---|---|
//! | `ledger` | [`Ledger`]: which records of a partition are done, and what may be committed |
//! | `scheduler` | which records of which partition run next |
//! | `chunk` | the records of a fetch, in one shared buffer |
//! | `message` | [`Message`] and [`Batch`]: views of fetched records |
//! | `handler` | [`Handler`], and functions as handlers |
//! | `layer` | [`Layer`]: retries, dead letters, filters and others around handlers |
//! | `route` | [`Route`]: a handler, its layers, and how its records are scheduled |
//! | `context` | what surrounds the handling of a record |
//! | `app` | [`App`]: which topics are read, as which group, by which routes |
//! | `background` | tasks that run beside the runtime |
//! | `caretaker` | background tasks that take care of partitions |
//! | `claims` | partitions of which background tasks take care |
//! | `periodic` | [`Tick`]: functions that are called every so often |
//! | `recurring` | `Recurring`: functions that a group calls at the times of a cron expression |
//! | `scheduled` | [`ScheduledMessage`]: records that wait in a topic until their time comes |
//! | `topic_reader` | reads the state of tasks and messages |
//! | `topics` | [`Topics`]: what topics should be, what would have to change, and changing it |
//! | `runtime` | the task of a shard, which connects member, fetcher, scheduler and handlers |
//! | `workers` | [`Workers`]: how many records are handled at a time |
//! | `shard` | the shards of an app, and their threads |
//! | `share` | apps that read topics as members of a share group |
//! | `routes` | which route handles which topic |
//! | `source` | what a route is for: a topic, a pattern, partitions |
//! | `segment` | shares of the keys of a partition |
//! | `member` | the group member, on a thread of its own |
//! | `figures` | what an app counts while it runs |
//! | `status` | [`Status`]: the figures of an app at a moment |
//! | `admin` | [`Admin`]: metrics, health and a page on a port |
//! | `asyncapi` | the AsyncAPI document of an app |
//! | `holder` | a member, or partitions without a group |
//! | `outgoing` | [`Outgoing`]: records that handlers return |
//! | `outbox` | how records are sent |
//! | `refusals` | outputs that a transaction could not send |
//! | `transaction` | returned records and offsets, committed together |
//! | `reader` | [`Reader`]: reads topics without a group |
//! | `job_queue` | [`Enqueue`]: records as jobs of a queue, such as a table of PostgreSQL |
//! | `schema_registry` | values whose schema a Schema Registry holds |
//! | `testing` | a broker in the process of a test |
//! | `clock` | [`Clock`]: the time that retries and delays go by |
//!
//! Invariants:
//!
//! - A committed offset never passes a record that is not done, and the ledger alone says what is
//!   done.
//! - A record that fails, or waits, blocks only the records that must follow it.
//! - Queues are bounded in records and bytes; a partition whose queue is full is not fetched.
//! - `ledger` and `scheduler` have no threads, sockets or clocks.

mod admin;
mod app;
mod asyncapi;
mod background;
mod caretaker;
mod chunk;
mod claims;
mod clock;
mod context;
mod error;
mod failure;
mod figures;
mod handler;
mod holder;
mod job_queue;
mod layer;
mod ledger;
mod member;
mod message;
mod outbox;
mod outgoing;
mod periodic;
mod reader;
#[cfg(feature = "cron")]
mod recurring;
mod refusals;
mod route;
mod routes;
mod runtime;
mod scheduled;
mod scheduler;
#[cfg(feature = "schema-registry")]
pub mod schema_registry;
mod segment;
mod shard;
mod share;
mod single;
mod source;
mod status;
#[cfg(feature = "testing")]
pub mod testing;
mod topic_reader;
mod topics;
mod transaction;
mod workers;

pub use admin::Admin;
pub use app::{App, AppOptions, Control};
pub use clock::Clock;
pub use context::{Context, StateType};
pub use error::Error;
pub use failure::{BoxError, Cause, Failure, Postponed};
pub use figures::Trouble;
#[cfg(feature = "json")]
pub use handler::Json;
pub use handler::{Attempt, Extract, FunctionHandler, Handler, HandlerFn, State, Work};
#[cfg(feature = "postgres")]
pub use job_queue::{ClaimedJob, JobCounts, JobWorkerOptions, PostgresJobs};
pub use job_queue::{Enqueue, Job, JobId, JobQueue};
#[cfg(feature = "encryption")]
pub use layer::Decrypt;
pub use layer::{
    Backoff, DeadLetters, Delay, DoneIds, Expire, Filter, Layer, Layered, Measured, Metrics, Pipe,
    Replay, Retry, RetryTopics, Throttle, Timeout, Trace, Unique, Window, header, pipe_header,
    retry_header,
};
pub use ledger::{Commit, Delivery, Ledger, METADATA_BYTES_MAX};
pub use message::{Batch, Message, MessageRef};
pub use outgoing::{Outgoing, Outputs};
pub use periodic::Tick;
pub use reader::{Position, Reader, Records};
#[cfg(feature = "cron")]
pub use recurring::{
    Missed, Outcome, Recurring, RecurringTasks, Run, RunCause, StartedRun, TaskRun, TaskStatus,
};
pub use route::{AnyRoute, Route, batch, record};
pub use scheduled::{MessageSchedule, ScheduledMessage, schedule_header};
pub use scheduler::Order;
pub use status::{PartitionStatus, Pause, RouteStatus, ShareStatus, Status};
pub use topics::{TopicChange, TopicDeclaration, TopicPlan, Topics};
pub use workers::Workers;

/// The guide, whose examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/consumer.md")]
struct Guide;

/// Services of keys for [`Decrypt`].
#[cfg(feature = "encryption")]
pub use moldau_encryption as encryption;

/// Result of calls of this crate.
pub type Result<T> = std::result::Result<T, Error>;
