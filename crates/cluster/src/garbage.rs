//! Collects objects without live batches.
//!
//! The sequencer knows the dead keys of objects that were committed. An object that was put and
//! never committed is found by listing the store: its key is condemned first, so that a late commit
//! of it fails. The age of listed objects only spares work; nothing depends on it.

use std::time::Duration;

use crate::sequencer::{Answer, ObjectKey, Sequencer};
use crate::store::Store;

/// Removes trimmed extents, and deletes the objects that are dead, and keys that have expired.
/// Returns the number of objects.
///
/// # Errors
/// Retriable ones; what was done stays done.
pub async fn collect(sequencer: &impl Sequencer, store: &impl Store) -> Answer<usize> {
    while sequencer.sweep(EXTENTS_AT_A_TIME).await? {}
    let mut deleted = 0;
    loop {
        let dead = sequencer.dead(OBJECTS_AT_A_TIME).await?;
        if dead.is_empty() {
            break;
        }
        store.delete(&dead).await?;
        sequencer.forget(&dead).await?;
        deleted += dead.len();
    }
    sequencer.begin_generation(GENERATION_AGE).await?;
    while sequencer.remove_keys(KEYS_AT_A_TIME).await? {}
    Ok(deleted)
}

/// What [`collect_orphans`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orphans {
    /// The last key that was looked at, or none at the end of the list.
    pub last: Option<ObjectKey>,
    /// Objects that were deleted.
    pub deleted: usize,
}

/// Deletes objects behind `after` that no commit has used, or that are back after their deletion.
///
/// # Errors
/// Retriable ones.
pub async fn collect_orphans(
    sequencer: &impl Sequencer,
    store: &impl Store,
    after: Option<ObjectKey>,
    age: Duration,
) -> Answer<Orphans> {
    let listed = store.list(after, age, ORPHANS_AT_A_TIME).await?;
    let dead = sequencer.condemn(&listed).await?;
    store.delete(&dead).await?;
    sequencer.forget(&dead).await?;
    Ok(Orphans { last: listed.last().copied(), deleted: dead.len() })
}

/// A transaction of some ms.
const EXTENTS_AT_A_TIME: i32 = 1_000;
const KEYS_AT_A_TIME: i32 = 10_000;
/// Longer than any commit is asked for. Keys stay for up to three times this.
const GENERATION_AGE: Duration = Duration::from_secs(3_600);
/// As many as an S3 request can delete.
const OBJECTS_AT_A_TIME: i64 = 1_000;
const ORPHANS_AT_A_TIME: usize = 1_000;
