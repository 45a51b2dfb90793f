//! Logs without disks: an object store holds the batches, PostgreSQL orders them.
//!
//! A broker of such a cluster has no state of its own. It collects batches of many partitions in
//! one object, puts the object, and commits it. The commit assigns offsets, and is durable before
//! producers get their answer. Consumers read byte ranges of objects below the high watermark.
//!
//! # Layout
//! | module | subject |
//! |---|---|
//! | `sequencer` | requests that order batches, and their answers |
//! | `frames` | the log of the cluster's own state, its owner, and the brokers that are alive |
//! | `requests` | what other brokers ask the owner of that log for |
//! | `postgres` | the sequencer in PostgreSQL |
//! | `memory` | a sequencer in memory with the same rules, for simulation and models |
//! | `object` | the format of an object |
//! | `store` | requests to the object store |
//! | `bucket` | a bucket of S3 or of a store that is compatible |
//! | `retry` | requests that are asked until there is an answer |
//! | `availability` | whether the database and the store answer |
//! | `measured` | counts of the requests to a store |
//! | `durations` | histograms |
//! | `writer` | appends: collect, put, commit |
//! | `reader` | reads through a cache of ranges |
//! | `wakes` | hints to reads that wait for records |
//! | `sorter` | one sorted object in place of many |
//! | `compactor` | of each key of a log the last record alone |
//! | `garbage` | deletion of objects that are dead or were never committed |
//! | `check` | whether the store holds what the sequencer names |
//! | `rack` | which broker of a rack caches what |
//!
//! # Invariants
//! - An object gets its offsets once: its key is unique, and is never used again. A key is
//!   forgotten only once it has expired, and cannot be committed.
//! - A key is either committed or condemned, whichever comes first. Only objects of dead keys are
//!   deleted, and no extent names one.
//! - No clock and no lease decides anything, except how long a log remembers a silent producer. A
//!   broker that was paused is merely late.
//! - A marker ends the transaction that was decided, and no later one, however late it comes.
//! - Frames of an epoch are appended only while no later epoch has begun.
//! - An offset below the high watermark never changes its record; compaction may remove it.

mod availability;
mod bucket;
mod check;
pub mod compactor;
mod durations;
mod error;
mod frames;
pub mod garbage;
mod measured;
mod memory;
pub mod object;
mod postgres;
pub mod rack;
mod reader;
mod requests;
mod retry;
mod sequencer;
pub mod sorter;
mod store;
mod wakes;
mod writer;

pub use availability::{Availability, Service};
pub use bucket::{Addressing, Bucket, BucketSettings, Credentials, Listed};
pub use check::{Checked, Finding, check};
pub use durations::{Durations, DurationsRead};
pub use error::{Error, StoreRefusal};
pub use frames::{Asked, BrokerRow, Frame, Frames, Owner, Ownership, Registration};
pub use measured::{Measured, StoreMetrics};
pub use memory::{FrameState, Memory, State};
pub use postgres::{
    BrokerStatus, Database, Named, NamedPages, Postgres, Settings, Status, Table, Telling,
};
pub use reader::{Lookup, Reader, ReaderMetrics, ReaderOptions, Records, TimedRecord};
pub use requests::{Fate, Requests};
pub use sequencer::{
    AbortedTransaction, Answer, BatchEntry, Commit, ExpiredProducers, Extent, Find, Found, LogId,
    LogProducer, Marker, ObjectKey, OpenTransaction, Outcome, Part, ProducerBatch, ProducerPlace,
    Refusal, Retention, Sequencer, Swap, Topic,
};
pub use store::Store;
pub use wakes::Wakes;
pub use writer::{AppendBatch, Pending, Writer, WriterMetrics, WriterOptions};
