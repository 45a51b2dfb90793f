//! Handlers, and how functions become handlers.
//!
//! The arguments of a function say what it takes of a record: each type that implements
//! [`Extract`] may stand there, up to four of them. So a handler is an ordinary `async fn`:
//!
//! ```
//! use std::sync::Arc;
//! use moldau_consumer::{Message, State, record};
//!
//! struct Database;
//!
//! async fn handle(order: Message, State(database): State<Database>) -> Result<(), String> {
//!     let _database: Arc<Database> = database;
//!     println!("{:?} {:?}", order.key(), order.value());
//!     Ok(())
//! }
//!
//! let route = record(handle);
//! ```

use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::sync::Arc;

use crate::context::{Context, Services, StateType};
use crate::failure::{BoxError, Failure, caught};
use crate::message::{Batch, Message, MessageRef};
use crate::outgoing::Outputs;
use crate::scheduler;

/// What a handler takes: a record or a batch of them.
pub trait Work: Clone + Send + Sync + 'static {
    /// Its records in order.
    fn messages(&self) -> impl Iterator<Item = MessageRef<'_>> + Send;

    /// Leaves out records; `None` if none is left. What was left out counts as handled.
    fn retain(self, keep: impl FnMut(&Message) -> bool) -> Option<Self>;

    /// Replaces each record, by one of the same offset.
    #[must_use]
    fn map(self, replace: impl FnMut(MessageRef<'_>) -> Message) -> Self;
}

impl Work for Message {
    fn messages(&self) -> impl Iterator<Item = MessageRef<'_>> + Send {
        std::iter::once(self.view())
    }

    fn retain(self, mut keep: impl FnMut(&Message) -> bool) -> Option<Self> {
        keep(&self).then_some(self)
    }

    fn map(self, mut replace: impl FnMut(MessageRef<'_>) -> Message) -> Self {
        replace(self.view())
    }
}

impl Work for Batch {
    fn messages(&self) -> impl Iterator<Item = MessageRef<'_>> + Send {
        self.iter()
    }

    fn retain(self, keep: impl FnMut(&Message) -> bool) -> Option<Self> {
        let kept = self.retaining(keep);
        (!kept.is_empty()).then_some(kept)
    }

    fn map(self, replace: impl FnMut(MessageRef<'_>) -> Message) -> Self {
        self.mapped(replace)
    }
}

/// Handles records or batches. Layers wrap one handler into another.
pub trait Handler<W: Work>: Send + Sync + 'static {
    /// Handles `work`. `Ok` says that all of it is done, for good.
    fn call(
        &self,
        work: W,
        context: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Topics that the app reads by the same route, beside its own.
    fn topics(&self) -> Vec<String> {
        Vec::new()
    }

    /// State that its arguments take; an app without it does not start.
    fn states(&self) -> Vec<StateType> {
        Vec::new()
    }
}

/// An argument of a handler, taken from a record or batch.
pub trait Extract<W>: Sized {
    /// Reads what [`extract`](Self::extract) needs besides the record; called before it.
    ///
    /// # Errors
    /// What it needs cannot be read.
    fn prepare(work: &W, context: Context<'_>) -> impl Future<Output = Result<(), Failure>> + Send {
        let _nothing = (work, context);
        std::future::ready(Ok(()))
    }

    /// Takes it.
    ///
    /// # Errors
    /// The record does not hold it; [`Undecodable`](crate::Cause::Undecodable) for a payload of
    /// another form.
    fn extract(work: &W, context: Context<'_>) -> Result<Self, Failure>;

    /// Takes it, as the last argument that does.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    fn extract_last(work: W, context: Context<'_>) -> Result<Self, Failure> {
        Self::extract(&work, context)
    }

    /// State of the app that it takes; an app without it does not start.
    fn state() -> Option<StateType> {
        None
    }
}

impl Extract<Self> for Message {
    fn extract(work: &Self, _: Context<'_>) -> Result<Self, Failure> {
        Ok(work.clone())
    }

    fn extract_last(work: Self, _: Context<'_>) -> Result<Self, Failure> {
        Ok(work)
    }
}

impl Extract<Self> for Batch {
    fn extract(work: &Self, _: Context<'_>) -> Result<Self, Failure> {
        Ok(work.clone())
    }

    fn extract_last(work: Self, _: Context<'_>) -> Result<Self, Failure> {
        Ok(work)
    }
}

/// State that the app was given with [`App::state`](crate::App::state). An app without it ends at
/// its start with [`Error::NoState`](crate::Error::NoState).
#[derive(Clone, Debug)]
pub struct State<S>(pub Arc<S>);

impl<W, S: Send + Sync + 'static> Extract<W> for State<S> {
    fn extract(_: &W, context: Context<'_>) -> Result<Self, Failure> {
        let missing = || format!("the app has no state {}", std::any::type_name::<S>());
        context.state().map(Self).ok_or_else(|| Failure::permanent(missing()))
    }

    fn state() -> Option<StateType> {
        Some(StateType::of::<S>())
    }
}

/// Number of the attempt, from 1 on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attempt(pub u32);

impl<W> Extract<W> for Attempt {
    fn extract(_: &W, context: Context<'_>) -> Result<Self, Failure> {
        Ok(Self(context.attempt()))
    }
}

/// The value of a record, decoded from JSON just before the handler runs.
#[cfg(feature = "json")]
#[derive(Clone, Debug)]
pub struct Json<T>(pub T);

#[cfg(feature = "json")]
impl<T: serde::de::DeserializeOwned> Extract<Message> for Json<T> {
    fn extract(message: &Message, _: Context<'_>) -> Result<Self, Failure> {
        let value = message.value().unwrap_or(b"null");
        let decoded = serde_json::from_slice(value);
        decoded.map(Self).map_err(|error| crate::Cause::Undecodable(error.into()).into())
    }
}

/// A function that can be a handler; `Args` are the types of its arguments.
pub trait HandlerFn<W, Args>: Send + Sync + 'static {
    /// Calls it with what it takes of `work`.
    fn invoke(
        &self,
        work: W,
        context: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// State that its arguments take.
    fn states() -> Vec<StateType>;
}

macro_rules! handler_fn {
    ($($arg:ident)* | $last:ident) => {
        impl<W, F, Fut, R, E, $($arg,)* $last> HandlerFn<W, ($($arg,)* $last,)> for F
        where
            W: Send + Sync,
            F: Fn($($arg,)* $last) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<R, E>> + Send,
            R: Outputs,
            E: Into<BoxError>,
            $($arg: Extract<W>,)*
            $last: Extract<W>,
        {
            async fn invoke(&self, work: W, context: Context<'_>) -> Result<(), Failure> {
                $($arg::prepare(&work, context).await?;)*
                $last::prepare(&work, context).await?;
                let handled = self(
                    $($arg::extract(&work, context)?,)*
                    $last::extract_last(work, context)?,
                );
                let returned = handled.await.map_err(|error| Failure::of(error.into()))?;
                let records = returned.into_records();
                if records.is_empty() { Ok(()) } else { context.send_returned(records).await }
            }

            fn states() -> Vec<StateType> {
                [$($arg::state(),)* $last::state()].into_iter().flatten().collect()
            }
        }
    };
}

handler_fn!(| A);
handler_fn!(A | B);
handler_fn!(A B | C);
handler_fn!(A B C | D);

/// A function as a handler. A panic of it is a [`Failure`].
pub struct FunctionHandler<F, Args> {
    function: F,
    args: PhantomData<fn(Args)>,
}

impl<F, Args> FunctionHandler<F, Args> {
    pub(crate) fn new(function: F) -> Self {
        Self { function, args: PhantomData }
    }
}

impl<W, F, Args> Handler<W> for FunctionHandler<F, Args>
where
    W: Work,
    F: HandlerFn<W, Args>,
    Args: 'static,
{
    fn call(
        &self,
        work: W,
        context: Context<'_>,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        invoke_caught(&self.function, work, context)
    }

    fn states(&self) -> Vec<StateType> {
        F::states()
    }
}

async fn invoke_caught<W, Args>(
    function: &impl HandlerFn<W, Args>,
    work: W,
    context: Context<'_>,
) -> Result<(), Failure> {
    caught(pin!(function.invoke(work, context))).await
}

/// A function that is called with what it takes of a `W`, outside of any route. Panics are caught.
pub(crate) struct Job<W> {
    states: Vec<StateType>,
    call: Arc<dyn Fn(W, Arc<Services>) -> JobRun + Send + Sync>,
}

impl<W> Job<W> {
    pub(crate) fn call(&self, work: W, services: Arc<Services>) -> JobRun {
        (self.call)(work, services)
    }

    pub(crate) fn states(&self) -> &[StateType] {
        &self.states
    }
}

impl<W> Clone for Job<W> {
    fn clone(&self) -> Self {
        Self { states: self.states.clone(), call: Arc::clone(&self.call) }
    }
}

/// A call of a [`Job`].
pub(crate) type JobRun = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The function as a job.
pub(crate) fn job<W, F, Args>(function: F) -> Job<W>
where
    W: Send + 'static,
    F: HandlerFn<W, Args>,
    Args: 'static,
{
    let function = Arc::new(function);
    let call = Arc::new(move |work, services: Arc<Services>| -> JobRun {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let context = Context::new(scheduler::Attempt::default(), &services);
            invoke_caught(&*function, work, context).await
        })
    });
    Job { states: F::states(), call }
}
