//! Why a record was not handled.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use crate::scheduler::PostponedBy;

/// Any error of a handler.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// Why a record or batch was not handled. Layers decide by it; what none of them settles is tried
/// again, with growing pauses.
#[derive(Debug)]
pub struct Failure {
    /// Boxed, for futures that return it are as large as it, and hardly any of them does.
    details: Box<Details>,
}

#[derive(Debug)]
struct Details {
    cause: Cause,
    /// Offsets of the records that it is about; `None` for all that the handler was given.
    concerned: Option<Vec<i64>>,
    /// How long to wait before the next attempt, if the handler says so.
    pause: Option<Duration>,
    /// Whether a layer has made all attempts that it is to make.
    is_given_up: bool,
}

/// What happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The handler returned an error.
    Failed(BoxError),
    /// The handler says that further attempts will not help.
    Permanent(BoxError),
    /// The record does not have the form that the handler takes.
    Undecodable(BoxError),
    /// The handler took longer than this.
    TimedOut(Duration),
    /// The handler panicked with this message.
    Panicked(String),
    /// It is to be handled later: not a failure.
    Postponed(Postponed),
}

/// When a record is to be handled again; made by layers.
#[derive(Clone, Copy, Debug)]
pub struct Postponed {
    pub(crate) at: Duration,
    pub(crate) by: PostponedBy,
}

impl Failure {
    /// A failure that further attempts will not help with. As the error of a handler it is kept.
    pub fn permanent(error: impl Into<BoxError>) -> Self {
        Cause::Permanent(error.into()).into()
    }

    /// The next attempt, if there is one, comes after `pause` instead of the usual one.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.details.pause = Some(pause);
        self
    }

    /// How long the handler asks to wait before the next attempt.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.details.pause
    }

    /// The failure that a handler's error says.
    pub(crate) fn of(error: BoxError) -> Self {
        match error.downcast::<Self>() {
            Ok(failure) => *failure,
            Err(error) => Cause::Failed(error).into(),
        }
    }

    pub(crate) fn postponed(at: Duration, by: PostponedBy) -> Self {
        Cause::Postponed(Postponed { at, by }).into()
    }

    /// The same, about no other records than those at `offsets`: of a batch, only these become dead
    /// letters.
    #[must_use]
    pub fn only_concerning(mut self, offsets: Vec<i64>) -> Self {
        self.details.concerned = Some(offsets);
        self
    }

    /// The same, about no other records than those at `offsets`, unless it says so already.
    pub(crate) fn concerning(mut self, offsets: impl Iterator<Item = i64>) -> Self {
        self.details.concerned.get_or_insert_with(|| offsets.collect());
        self
    }

    /// The same, about the records at `offsets`, which are some of those that it was about.
    pub(crate) fn only(mut self, offsets: Vec<i64>) -> Self {
        self.details.concerned = Some(offsets);
        self
    }

    /// The same, about the records at `offsets` too.
    #[cfg(feature = "encryption")]
    pub(crate) fn and_concerning(mut self, offsets: &[i64]) -> Self {
        if let Some(concerned) = &mut self.details.concerned {
            concerned.extend_from_slice(offsets);
        }
        self
    }

    /// Whether it is about the record at `offset`, of those that the handler was given.
    #[must_use]
    pub fn concerns(&self, offset: i64) -> bool {
        self.details.concerned.as_ref().is_none_or(|offsets| offsets.contains(&offset))
    }

    /// The same after the last attempt that a layer makes.
    pub(crate) fn given_up(mut self) -> Self {
        self.details.is_given_up = true;
        self
    }

    /// Whether a layer has made all attempts that it is to make.
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.details.is_given_up
    }

    /// What happened.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.details.cause
    }

    /// Whether it is a postponement, which layers pass on.
    #[must_use]
    pub fn is_postponed(&self) -> bool {
        matches!(self.details.cause, Cause::Postponed(_))
    }

    /// Whether a further attempt may help.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        matches!(self.details.cause, Cause::Failed(_) | Cause::TimedOut(_) | Cause::Panicked(_))
    }

    /// The words of a topic that refuses for good what was sent to it, if that is the cause.
    pub(crate) fn refusal(&self) -> Option<String> {
        let (Cause::Failed(error) | Cause::Permanent(error)) = &self.details.cause else {
            return None;
        };
        let refused = error.downcast_ref::<moldau_client::Error>();
        refused.filter(|error| error.is_refused()).map(ToString::to_string)
    }

    /// A word for it, for metrics and headers.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.details.cause {
            Cause::Failed(_) => "failed",
            Cause::Permanent(_) => "permanent",
            Cause::Undecodable(_) => "undecodable",
            Cause::TimedOut(_) => "timed_out",
            Cause::Panicked(_) => "panicked",
            Cause::Postponed(_) => "postponed",
        }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        let (concerned, pause, is_given_up) = (None, None, false);
        Self { details: Box::new(Details { cause, concerned, pause, is_given_up }) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.details.cause {
            Cause::Failed(error) | Cause::Permanent(error) => error.fmt(f),
            Cause::Undecodable(error) => write!(f, "cannot be decoded: {error}"),
            Cause::TimedOut(after) => write!(f, "took longer than {after:?}"),
            Cause::Panicked(message) => write!(f, "the handler panicked: {message}"),
            Cause::Postponed(_) => write!(f, "is to be handled later"),
        }
    }
}

impl StdError for Failure {}

/// What comes of `call`, whose panic is a failure. It borrows the call, so that types of layers
/// within each other do not become deeper than rustc permits.
pub(crate) fn caught<'a>(
    mut call: Pin<&'a mut (impl Future<Output = Result<(), Failure>> + Send)>,
) -> impl Future<Output = Result<(), Failure>> + Send + 'a {
    poll_fn(move |context| {
        let polled = panic::catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| {
            Poll::Ready(Err(Cause::Panicked(panic_message(&*panic)).into()))
        })
    })
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
