//! Locks and threads: what a panic means, and what stops a service.
//!
//! | module | what it holds |
//! |---|---|
//! | `lock` | [`Mutex`], [`RwLock`], [`Condvar`]: the one policy of locks |
//! | `panic` | [`catch`], [`catch_in`]: a panic as a value |
//! | `supervisor` | [`Supervisor`]: threads and tasks without which a service must not go on |
//! | `faults` | [`fault_point`]: where a test lets a running thread fail |
//!
//! Invariants:
//!
//! - A panic under a lock is never confined to what caused it: the state may be half changed. The
//!   one who catches it learns so from [`Panic::has_left_half_changed`] and stops the service.
//! - A panic without a lock ends what caused it: a connection, a load of a chunk. In a thread or
//!   task that a service needs it stops the service.
//! - A lock that a panicking thread held can be taken again, so that what waits gets its answer
//!   while the service stops. State that must not be used then is taken with
//!   [`Mutex::lock_whole`].
//! - Nothing waits for a disk under a lock, but under those that are there for it
//!   ([`Mutex::held_across_io`]).

mod faults;
mod lock;
mod panic;
mod supervisor;

pub use faults::{arm_faults, fault_point};
pub use lock::{
    Condvar, HalfChanged, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, may_block,
};
pub use panic::{Panic, catch, catch_in};
pub use supervisor::{Failed, Supervisor};
