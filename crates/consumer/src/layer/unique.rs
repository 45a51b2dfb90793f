//! Leaves out records that were handled already.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::select::call_with;
use super::{Layer, headers, next_number};
use crate::context::Context;
use crate::failure::{BoxError, Cause, Failure};
use crate::handler::{Handler, Work};
use crate::message::MessageRef;
use crate::scheduler::PostponedBy;

/// Leaves out records whose id was handled already, in whatever partition. An id counts as handled
/// once its record is done: not before, so that no record is lost; after a crash in between it is
/// handled again. While a record is handled, others with its id wait.
///
/// Clones share the ids.
pub struct Unique<S = Window> {
    id: Arc<Id>,
    store: Arc<S>,
    running: Arc<Mutex<HashSet<Box<[u8]>>>>,
    number: u32,
}

type Id = dyn Fn(MessageRef<'_>) -> Option<Vec<u8>> + Send + Sync;

/// Remembers ids that were handled. A store outside of the process, such as a table, also knows
/// what other members of the group have done.
pub trait DoneIds: Send + Sync + 'static {
    /// Whether the id was handled.
    fn contains(&self, id: &[u8]) -> impl Future<Output = Result<bool, BoxError>> + Send;

    /// Remembers an id that was handled.
    fn insert(&self, id: &[u8]) -> impl Future<Output = Result<(), BoxError>> + Send;
}

/// The latest ids that this process has handled.
#[derive(Debug)]
pub struct Window {
    ids_max: usize,
    /// Guards the ids.
    ids: Mutex<Ids>,
}

#[derive(Debug, Default)]
struct Ids {
    known: HashSet<Arc<[u8]>>,
    /// The same, the oldest first.
    order: VecDeque<Arc<[u8]>>,
}

impl Window {
    /// Remembers the latest `ids_max` ids.
    #[must_use]
    pub fn new(ids_max: usize) -> Self {
        Self { ids_max: ids_max.max(1), ids: Mutex::default() }
    }
}

impl DoneIds for Window {
    async fn contains(&self, id: &[u8]) -> Result<bool, BoxError> {
        Ok(lock(&self.ids).known.contains(id))
    }

    async fn insert(&self, id: &[u8]) -> Result<(), BoxError> {
        let mut ids = lock(&self.ids);
        let Ids { known, order } = &mut *ids;
        let id: Arc<[u8]> = id.into();
        if known.insert(Arc::clone(&id)) {
            order.push_back(id);
        }
        if order.len() > self.ids_max
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
        Ok(())
    }
}

impl Unique {
    /// The id of a record is its key. Records without a key are all handled.
    #[must_use]
    pub fn by_key(window: Window) -> Self {
        Self::by(|message| Some(message.key()?.to_vec()), window)
    }

    /// The id of a record is the value of this header. Records without it are all handled.
    #[must_use]
    pub fn by_header(header: impl Into<String>, window: Window) -> Self {
        let header = header.into();
        Self::by(move |message| Some(message.header(&header)?.to_vec()), window)
    }
}

impl<S: DoneIds> Unique<S> {
    /// The id of a record is what `id` says; those without one are all handled.
    pub fn by(
        id: impl Fn(MessageRef<'_>) -> Option<Vec<u8>> + Send + Sync + 'static,
        store: S,
    ) -> Self {
        let (id, store, running) = (Arc::new(id), Arc::new(store), Arc::default());
        Self { id, store, running, number: next_number() }
    }

    /// Sorts out which records are to be handled; `None` if others with the same ids are handled.
    async fn choose<'a>(
        &'a self,
        work: &impl Work,
        is_expected: impl Fn(MessageRef<'_>) -> bool + Send,
    ) -> Result<Option<Chosen<'a>>, BoxError> {
        let mut chosen = Chosen { ids: Vec::new(), left_out: Vec::new(), running: &self.running };
        for message in work.messages() {
            let Some(id) = (self.id)(message) else { continue };
            let is_twin = chosen.ids.iter().any(|it| **it == *id);
            if is_twin {
                chosen.left_out.push(message.offset());
                continue;
            }
            let id: Box<[u8]> = id.into();
            if !lock(&self.running).insert(id.clone()) {
                return Ok(None);
            }
            chosen.ids.push(id);
            if !is_expected(message)
                && let Some(id) = chosen.ids.last()
                && self.store.contains(id).await?
            {
                tracing::debug!(record = ?message, "left out: its id was handled");
                chosen.left_out.push(message.offset());
            }
        }
        Ok(Some(chosen))
    }
}

/// Ids of records that are to be handled, until it is dropped.
struct Chosen<'a> {
    ids: Vec<Box<[u8]>>,
    left_out: Vec<i64>,
    running: &'a Mutex<HashSet<Box<[u8]>>>,
}

impl Drop for Chosen<'_> {
    fn drop(&mut self) {
        let mut running = lock(self.running);
        for id in &self.ids {
            running.remove(id);
        }
    }
}

impl<S> Clone for Unique<S> {
    fn clone(&self) -> Self {
        let (id, store) = (Arc::clone(&self.id), Arc::clone(&self.store));
        Self { id, store, running: Arc::clone(&self.running), number: self.number }
    }
}

impl<S> fmt::Debug for Unique<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unique").finish_non_exhaustive()
    }
}

impl<W: Work, S: DoneIds> Layer<W> for Unique<S> {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        // An inner layer counted it as done when it sent it to a retry topic, from which it comes.
        let comes_back = |message: MessageRef<'_>| {
            headers::is_retry(message) && inner.topics().iter().any(|it| it == message.topic())
        };
        let failed = |error: BoxError| Failure::from(Cause::Failed(error));
        let Some(chosen) = self.choose(&work, comes_back).await.map_err(failed)? else {
            let at = context.now() + RUNNING_PAUSE;
            return Err(Failure::postponed(at, PostponedBy::Layer(self.number)));
        };
        let left = match chosen.left_out.is_empty() {
            true => Some(work),
            false => work.retain(|message| !chosen.left_out.contains(&message.offset())),
        };
        call_with(inner, left, context).await?;
        for id in &chosen.ids {
            self.store.insert(id).await.map_err(failed)?;
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a record waits while another with its id is handled, at a time.
const RUNNING_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_window_forgets_the_oldest_id() {
        let window = Window::new(2);
        for id in [b"a", b"b", b"a", b"c"] {
            window.insert(id).await.expect("it is in memory");
        }
        let mut known = Vec::new();
        for id in [b"a", b"b", b"c"] {
            known.push(window.contains(id).await.expect("it is in memory"));
        }
        assert_eq!(known, [false, true, true]);
    }
}
