//! Programs and services as handlers of the framework.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use moldau_client::Record;
use moldau_consumer::{Batch, BoxError, Cause, Context, Failure, Handler, Message, MessageRef};
use moldau_records::HeaderView;

use super::document::{Form, Unencodable};
use super::http::HttpService;
use super::pool::Pool;
use super::reply::{Outcome, Produced, Refusal, Retrying};
use super::requests::Answer;

/// What handles the records of a route.
pub(crate) enum Worker {
    /// Processes that this one starts.
    Processes(Pool),
    /// A service.
    Http(Box<HttpService>),
}

/// A handler in another language. Clones are the same.
#[derive(Clone)]
pub(crate) struct Foreign(Arc<Inner>);

struct Inner {
    worker: Worker,
    form: Form,
    timeout: Duration,
    crashes_max: u32,
    /// Guards how often records have ended a process, of those that have.
    crashes: Mutex<HashMap<Place, u32>>,
}

/// Names a record.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Place {
    topic: String,
    partition: i32,
    offset: i64,
}

/// How a request looks that failed.
enum Trouble {
    Failed(Failure),
    /// The process ended, or was ended because it hung.
    Ended(Failure),
}

impl Foreign {
    /// A handler for a route. A record that ends its process `crashes_max` times is given up.
    pub(crate) fn new(worker: Worker, form: Form, timeout: Duration, crashes_max: u32) -> Self {
        let crashes = Mutex::default();
        Self(Arc::new(Inner { worker, form, timeout, crashes_max, crashes }))
    }

    /// Ends the processes.
    pub(crate) async fn stop(&self) {
        match &self.0.worker {
            Worker::Processes(pool) => pool.stop().await,
            Worker::Http(_) => {}
        }
    }
}

impl Handler<Message> for Foreign {
    async fn call(&self, work: Message, context: Context<'_>) -> Result<(), Failure> {
        let messages = [work];
        let called = Box::pin(self.0.exchange(&messages, Shape::Record, context)).await;
        called.map_err(Trouble::failure)
    }
}

impl Handler<Batch> for Foreign {
    async fn call(&self, work: Batch, context: Context<'_>) -> Result<(), Failure> {
        let messages: Vec<Message> = work.iter().map(MessageRef::to_message).collect();
        Box::pin(self.0.batch(messages, context)).await
    }
}

/// Whether a document holds a record or a list of them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Record,
    Batch,
}

impl Inner {
    /// Handles a batch. Records that cannot be put into a document do not keep the others from
    /// being handled, and if the process ends, the records are handled one by one.
    async fn batch(&self, mut messages: Vec<Message>, context: Context<'_>) -> Result<(), Failure> {
        let mut failures = Failures::default();
        while let Err(error) = self.form.batch(0, 0, &messages) {
            let offset = error.offset;
            messages.retain(|message| message.offset() != offset);
            failures.add([offset], undecodable(error));
        }
        if messages.is_empty() {
            return failures.result();
        }
        let is_suspect = messages.iter().any(|it| self.crashes_of(it) > 0);
        if !is_suspect {
            match self.exchange(&messages, Shape::Batch, context).await {
                Ok(()) => return failures.result(),
                Err(Trouble::Ended(_)) if messages.len() > 1 => {}
                Err(trouble) => {
                    let failure = trouble.failure();
                    let concerned = messages.iter().map(Message::offset);
                    let concerned: Vec<_> = concerned.filter(|it| failure.concerns(*it)).collect();
                    failures.add(concerned, failure);
                    return failures.result();
                }
            }
        }
        for message in &messages {
            let alone = std::slice::from_ref(message);
            if let Err(trouble) = self.exchange(alone, Shape::Batch, context).await {
                failures.add([message.offset()], trouble.failure());
            }
        }
        failures.result()
    }

    /// Has records handled by one request, and sends what they produce.
    async fn exchange(
        &self,
        messages: &[Message],
        shape: Shape,
        context: Context<'_>,
    ) -> Result<(), Trouble> {
        let failed = |error: BoxError| Trouble::Failed(Cause::Failed(error).into());
        let produced = match self.ask(messages, shape, context).await? {
            Outcome::Done(produced) => produced,
            Outcome::Refused(refusal) => {
                return Err(Trouble::Failed(refused(refusal, messages)));
            }
        };
        if produced.is_empty() {
            return Ok(());
        }
        let partition = messages.first().map_or(0, Message::partition);
        let timestamp = i64::try_from(context.now().as_millis()).unwrap_or(i64::MAX);
        let headers: Vec<Vec<HeaderView<'_>>> = produced.iter().map(Produced::views).collect();
        let records = produced.iter().zip(&headers).map(|(record, headers)| {
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            (record.topic.as_str(), Record { token: 0, timestamp, key, value, headers })
        });
        let records: Vec<_> = records.collect();
        let sent = context.send(partition, records).await;
        sent.map_err(|error| failed(format!("cannot send a produced record: {error}").into()))
    }

    async fn ask(
        &self,
        messages: &[Message],
        shape: Shape,
        context: Context<'_>,
    ) -> Result<Outcome, Trouble> {
        let id = match &self.worker {
            Worker::Processes(pool) => pool.next_id(),
            Worker::Http(service) => service.next_id(),
        };
        let document = match (shape, messages) {
            (Shape::Record, [message]) => self.form.record(id, context.attempt(), message),
            _ => self.form.batch(id, context.attempt(), messages),
        };
        let document = document.map_err(|error| Trouble::Failed(undecodable(error)))?;
        let is_suspect = messages.iter().any(|it| self.crashes_of(it) > 0);
        let answer = match &self.worker {
            Worker::Processes(pool) => pool.exchange(id, document, is_suspect).await,
            Worker::Http(service) => service.exchange(document).await,
        };
        match answer {
            Answer::Replied(outcome) => {
                if is_suspect {
                    let mut crashes = self.lock();
                    crashes.retain(|place, _| !messages.iter().any(|it| place.is_of(it)));
                }
                Ok(outcome)
            }
            Answer::Died(reason) => Err(Trouble::Ended(match messages {
                [message] => self.crashed(message, &reason),
                _ => Cause::Failed(reason.into()).into(),
            })),
            Answer::TimedOut => Err(Trouble::Ended(Cause::TimedOut(self.timeout).into())),
        }
    }

    fn crashes_of(&self, message: &Message) -> u32 {
        let crashes = self.lock();
        match crashes.is_empty() {
            true => 0,
            false => crashes.get(&Place::of(message)).copied().unwrap_or(0),
        }
    }

    /// A record has ended its process.
    fn crashed(&self, message: &Message, reason: &str) -> Failure {
        let mut crashes = self.lock();
        if crashes.len() >= CRASHES_MAX {
            crashes.clear();
        }
        let count = crashes.entry(Place::of(message)).or_default();
        if *count + 1 < self.crashes_max {
            *count += 1;
            return Cause::Failed(reason.into()).into();
        }
        // Without dead letters, it is tried again, and still alone.
        *count = (*count).max(1);
        Failure::permanent(format!("{reason}, {} times", self.crashes_max))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Place, u32>> {
        self.crashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    fn of(message: &Message) -> Self {
        let (partition, offset) = (message.partition(), message.offset());
        Self { topic: message.topic().to_owned(), partition, offset }
    }

    fn is_of(&self, message: &Message) -> bool {
        (self.offset, self.partition) == (message.offset(), message.partition())
            && self.topic == message.topic()
    }
}

impl Trouble {
    fn failure(self) -> Failure {
        match self {
            Self::Failed(failure) | Self::Ended(failure) => failure,
        }
    }
}

impl Produced {
    fn views(&self) -> Vec<HeaderView<'_>> {
        let headers = self.headers.iter();
        let views = headers
            .map(|(name, value)| HeaderView { key: name.as_bytes(), value: value.as_deref() });
        views.collect()
    }
}

/// Failures of some records of a batch.
#[derive(Default)]
struct Failures {
    offsets: Vec<i64>,
    /// The one that decides whether the batch is tried again.
    decisive: Option<Failure>,
}

impl Failures {
    fn add(&mut self, offsets: impl IntoIterator<Item = i64>, failure: Failure) {
        self.offsets.extend(offsets);
        if self.decisive.as_ref().is_none_or(|it| !it.is_retriable() && failure.is_retriable()) {
            self.decisive = Some(failure);
        }
    }

    fn result(self) -> Result<(), Failure> {
        let Some(decisive) = self.decisive else { return Ok(()) };
        Err(decisive.only_concerning(self.offsets))
    }
}

fn undecodable(error: Unencodable) -> Failure {
    Cause::Undecodable(error.into()).into()
}

fn refused(refusal: Refusal, messages: &[Message]) -> Failure {
    let Refusal { error, retry, failed } = refusal;
    let error = if error.is_empty() { "the handler gives no reason".to_owned() } else { error };
    let failure = match retry {
        Retrying::Usual => Cause::Failed(error.into()).into(),
        Retrying::After(pause) => Failure::from(Cause::Failed(error.into())).retry_after(pause),
        Retrying::Never => Failure::permanent(error),
    };
    let offsets: Vec<i64> =
        failed.iter().filter_map(|place| messages.get(*place)).map(Message::offset).collect();
    if offsets.is_empty() { failure } else { failure.only_concerning(offsets) }
}

/// Records that are remembered to have ended a process; above, all are forgotten, and get all
/// their attempts again.
const CRASHES_MAX: usize = 10_000;
