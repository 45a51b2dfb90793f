//! The object store.

use std::future::{Future, ready};
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::Error;
use crate::retry::insist;
use crate::sequencer::{Answer, ObjectKey, Sequencer};

/// Holds objects, each written once. Any request fails with
/// [`Error::StoreAway`] if there is no answer; it may take effect at any
/// later time.
pub trait Store: Send + Sync + 'static {
    /// Writes an object.
    ///
    /// # Errors
    /// [`Error::ObjectExists`].
    fn put(&self, key: ObjectKey, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send;

    /// Reads a range, or as much of it as the object has.
    ///
    /// # Errors
    /// [`Error::ObjectMissing`].
    fn get(&self, key: ObjectKey, range: Range<u64>) -> impl Future<Output = Answer<Bytes>> + Send;

    /// Deletes objects, whether they exist or not.
    fn delete(&self, keys: &[ObjectKey]) -> impl Future<Output = Answer<()>> + Send;

    /// Some objects behind a key that are at least this old, in order. A list may be stale.
    fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> impl Future<Output = Answer<Vec<ObjectKey>>> + Send;

    /// Looks whether the objects are still those of this cluster's database.
    ///
    /// # Errors
    /// [`Error::StoreOwned`], [`Error::StoreTakenOver`].
    fn expect_owned(&self) -> impl Future<Output = Answer<()>> + Send {
        ready(Ok(()))
    }
}

/// Puts an object under a fresh key, which it returns.
pub(crate) async fn upload(
    sequencer: &impl Sequencer,
    store: &impl Store,
    object: Bytes,
    deadline: Instant,
) -> Answer<ObjectKey> {
    let generation = insist(deadline, || sequencer.generation()).await?;
    let key = ObjectKey::of_generation(generation);
    match insist(deadline, || store.put(key, object.clone())).await {
        // Nobody else has the key: an earlier attempt took effect.
        Ok(()) | Err(Error::ObjectExists(_)) => Ok(key),
        Err(error) => Err(error),
    }
}
