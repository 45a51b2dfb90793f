//! Routes: a handler, its layers, and how the records of a topic are scheduled for it.

mod course;

use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::ReusableBoxFuture;

#[cfg(feature = "schemars")]
use crate::asyncapi::PayloadSchema;
use crate::chunk::Chunk;
use crate::context::{Context, Services, StateType};
use crate::failure::{Cause, Failure, Postponed, caught};
use crate::figures::RouteFigures;
use crate::handler::{FunctionHandler, Handler, HandlerFn, Work, job};
use crate::layer::{Layer, Layered, UNSETTLED, attempts_before};
use crate::message::{Batch, Message, MessageRef};
use crate::outgoing::Buffer;
use crate::periodic::{Periodic, Tick};
use crate::refusals::Source;
use crate::scheduler::{Attempt, Order, Plan, Pool, PostponedBy, Rest, Slice, Slicing};
use crate::single::{self, Single};
use crate::status::RouteName;
use crate::topics::TopicDeclaration;
use crate::transaction::Lane;
use course::Surroundings;

/// How the records of a topic are handled.
pub struct Route<W, H> {
    handler: H,
    plan: Plan,
    periodic: Vec<Periodic>,
    declaration: Option<TopicDeclaration>,
    dead_letter_topics: Vec<String>,
    #[cfg(feature = "schemars")]
    payload: Option<PayloadSchema>,
    work: PhantomData<fn(W)>,
}

/// A route whose function handles one record at a time.
pub fn record<F, Args>(function: F) -> Route<Message, FunctionHandler<F, Args>>
where
    F: HandlerFn<Message, Args>,
    Args: 'static,
{
    Route::new(FunctionHandler::new(function))
}

/// A route whose function handles several records at a time: all are done when it returns `Ok`,
/// none if it fails.
pub fn batch<F, Args>(function: F) -> Route<Batch, FunctionHandler<F, Args>>
where
    F: HandlerFn<Batch, Args>,
    Args: 'static,
{
    Route::new(FunctionHandler::new(function))
}

impl<W: Work, H: Handler<W>> Route<W, H> {
    /// A route to a handler, in order of each partition.
    pub fn new(handler: H) -> Self {
        let plan = Plan {
            order: Order::Partition,
            slice_records_max: SLICE_RECORDS_MAX,
            slicing: Slicing::Whole,
            queue_records_max: QUEUE_RECORDS_MAX,
            queue_bytes_max: QUEUE_BYTES_MAX,
            pool: None,
        };
        Self {
            handler,
            plan,
            periodic: Vec::new(),
            declaration: None,
            dead_letter_topics: Vec::new(),
            #[cfg(feature = "schemars")]
            payload: None,
            work: PhantomData,
        }
    }

    /// Puts a layer around all that stands before it.
    pub fn layer<L: Layer<W>>(self, layer: L) -> Route<W, Layered<L, H>> {
        let mut dead_letter_topics = self.dead_letter_topics;
        dead_letter_topics.extend(layer.dead_letter_topic().map(str::to_owned));
        Route {
            handler: Layered::new(layer, self.handler),
            plan: self.plan,
            periodic: self.periodic,
            declaration: self.declaration,
            dead_letter_topics,
            #[cfg(feature = "schemars")]
            payload: self.payload,
            work: self.work,
        }
    }

    /// Which records are handled in order; unless said otherwise, all of a partition.
    #[must_use]
    pub fn order(mut self, order: Order) -> Self {
        self.plan.order = order;
        self
    }

    /// Most records of a batch, or of a key that one task handles in a row; 500 unless said
    /// otherwise, Kafka's `max.poll.records`.
    #[must_use]
    pub fn records_max(mut self, records: usize) -> Self {
        self.plan.slice_records_max = records.max(1);
        self
    }

    /// Most records of a partition that wait for their handler or are handled, and their bytes;
    /// the fetching of the partition pauses above. 10,000 and 4 MiB unless said otherwise.
    #[must_use]
    pub fn queue_max(mut self, records: usize, bytes: usize) -> Self {
        self.plan.queue_records_max = records.max(1);
        self.plan.queue_bytes_max = bytes.max(1);
        self
    }

    /// Most records or batches of this route, with its retry topics, that are handled at a time, so
    /// that a slow route leaves workers to others; at least one for each shard. No limit but that
    /// of the app unless said otherwise.
    #[must_use]
    pub fn concurrency(mut self, calls: usize) -> Self {
        self.plan.pool = Some(Pool { id: 0, workers: calls });
        self
    }

    /// Says in the AsyncAPI document of the app that the values are JSON of this type.
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn payload<T: schemars::JsonSchema>(mut self) -> Self {
        self.payload = Some(schemars::SchemaGenerator::subschema_for::<T>);
        self
    }

    /// What the topic should be; [`App::topics`](crate::App::topics) makes it so.
    #[must_use]
    pub fn declare(mut self, declaration: TopicDeclaration) -> Self {
        self.declaration = Some(declaration);
        self
    }

    /// Calls `function` every `interval` for each partition of the topic that the app reads,
    /// whether records come or not; beside the handler. It takes a [`Tick`] and
    /// [`State`](crate::State). A call that takes longer than the interval delays the next one; it
    /// is cancelled when the partition is given back. Failures are logged.
    #[must_use]
    pub fn periodic<F, Args>(mut self, interval: Duration, function: F) -> Self
    where
        F: HandlerFn<Tick, Args>,
        Args: 'static,
    {
        self.periodic.push(Periodic { interval, job: job(function) });
        self
    }
}

/// A route of any handler.
pub struct AnyRoute {
    pub(crate) plan: Plan,
    pub(crate) periodic: Vec<Periodic>,
    pub(crate) declaration: Option<TopicDeclaration>,
    pub(crate) runner: Arc<dyn Run>,
    pub(crate) figures: Arc<RouteFigures>,
    pub(crate) dead_letter_topics: Vec<String>,
    /// State that its handler takes.
    pub(crate) states: Vec<StateType>,
    #[cfg(feature = "schemars")]
    pub(crate) payload: Option<PayloadSchema>,
    /// Topics that are read beside that of the route, because its layers send records to them.
    pub(crate) retries: Vec<(Arc<str>, Self)>,
}

/// What all topics of a route have in common.
struct Common {
    plan: Plan,
    dead_letter_topics: Vec<String>,
    states: Vec<StateType>,
    #[cfg(feature = "schemars")]
    payload: Option<PayloadSchema>,
}

/// What belongs to the route's own topics alone.
#[derive(Default)]
struct Own {
    periodic: Vec<Periodic>,
    declaration: Option<TopicDeclaration>,
}

impl AnyRoute {
    /// A route that runs what `runner` makes of how often a record was tried in other topics.
    fn new(
        common: &Common,
        own: Own,
        mut topics: Vec<String>,
        runner: impl Fn(Option<AttemptsBefore>, Arc<RouteFigures>) -> Arc<dyn Run>,
    ) -> Self {
        topics.sort_unstable();
        topics.dedup();
        let route = |own: Own, retries, attempts_before: Option<AttemptsBefore>| {
            let figures = Arc::new(RouteFigures::new());
            Self {
                plan: common.plan,
                periodic: own.periodic,
                declaration: own.declaration,
                runner: runner(attempts_before, Arc::clone(&figures)),
                figures,
                dead_letter_topics: common.dead_letter_topics.clone(),
                states: common.states.clone(),
                #[cfg(feature = "schemars")]
                payload: common.payload,
                retries,
            }
        };
        let retry = |topic: String| {
            (topic.into(), route(Own::default(), Vec::new(), Some(attempts_before)))
        };
        let retries = topics.into_iter().map(retry).collect();
        route(own, retries, None)
    }

    /// What the figures of the route of a topic are called.
    pub(crate) fn name(&self, topic: &Arc<str>) -> RouteName {
        RouteName {
            topic: Arc::clone(topic),
            dead_letter_topics: self.dead_letter_topics.clone(),
            figures: Arc::clone(&self.figures),
        }
    }
}

impl<H: Handler<Message>> From<Route<Message, H>> for AnyRoute {
    fn from(route: Route<Message, H>) -> Self {
        let (topics, states) = (route.handler.topics(), route.handler.states());
        let handler = Arc::new(route.handler);
        let common = Common {
            plan: Plan { slicing: Slicing::Paced, ..route.plan },
            dead_letter_topics: route.dead_letter_topics,
            states,
            #[cfg(feature = "schemars")]
            payload: route.payload,
        };
        let own = Own { periodic: route.periodic, declaration: route.declaration };
        Self::new(&common, own, topics, |attempts_before, figures| {
            Arc::new(ByRecord { handler: Arc::clone(&handler), attempts_before, figures })
        })
    }
}

impl<H: Handler<Batch>> From<Route<Batch, H>> for AnyRoute {
    fn from(route: Route<Batch, H>) -> Self {
        let (topics, states) = (route.handler.topics(), route.handler.states());
        let handler = Arc::new(route.handler);
        let common = Common {
            plan: route.plan,
            dead_letter_topics: route.dead_letter_topics,
            states,
            #[cfg(feature = "schemars")]
            payload: route.payload,
        };
        let own = Own { periodic: route.periodic, declaration: route.declaration };
        Self::new(&common, own, topics, |attempts_before, figures| {
            Arc::new(ByBatch { handler: Arc::clone(&handler), attempts_before, figures })
        })
    }
}

/// A slice that is being handled; says what becomes of the records that are not done. Its memory
/// is used again for the next one.
pub(crate) type Running = ReusableBoxFuture<'static, Rest>;

/// Handles slices; `lane` takes what comes of them in an exactly-once app.
pub(crate) trait Run: Send + Sync {
    /// Puts the handling of a slice into `running`.
    fn run(
        &self,
        slice: Slice<Chunk>,
        services: Arc<Services>,
        lane: Option<Lane>,
        running: &mut Running,
    );

    /// The handling of one record of a share group; `None` if the route takes batches.
    fn run_one(
        &self,
        message: Message,
        attempt: Attempt,
        services: Arc<Services>,
    ) -> Option<Single> {
        drop((message, attempt, services));
        None
    }
}

/// How often a record was tried in other topics.
type AttemptsBefore = fn(MessageRef<'_>) -> u32;

struct ByRecord<H> {
    handler: Arc<H>,
    attempts_before: Option<AttemptsBefore>,
    figures: Arc<RouteFigures>,
}

impl<H: Handler<Message>> Run for ByRecord<H> {
    fn run(
        &self,
        slice: Slice<Chunk>,
        services: Arc<Services>,
        lane: Option<Lane>,
        running: &mut Running,
    ) {
        let (handler, figures) = (Arc::clone(&self.handler), Arc::clone(&self.figures));
        let attempts_before = self.attempts_before;
        running.set(async move {
            let context = Context::new(slice.attempt(), &services);
            let run = async {
                let source = slice.records().next().map_or(0, |(chunk, _)| chunk.partition);
                let buffer = lane.as_ref().and_then(|_| course::buffer(&slice));
                let mut course = course::course(Surroundings {
                    slice: &slice,
                    services: &services,
                    figures: &figures,
                    attempts_before,
                    context: context.returning(source, buffer.as_ref()),
                    returned: lane.as_ref().zip(buffer.as_ref()),
                });
                let mut call = pin!(None);
                let start = |message, context| handler.call(message, context);
                poll_fn(|task| course.poll(task, call.as_mut(), start)).await
            };
            supervised(run, context).await
        });
    }

    fn run_one(
        &self,
        message: Message,
        attempt: Attempt,
        services: Arc<Services>,
    ) -> Option<Single> {
        let (handler, figures) = (Arc::clone(&self.handler), Arc::clone(&self.figures));
        Some(Box::pin(async move {
            single::handle(&*handler, &figures, message, attempt, &services).await
        }))
    }
}

struct ByBatch<H> {
    handler: Arc<H>,
    attempts_before: Option<AttemptsBefore>,
    figures: Arc<RouteFigures>,
}

impl<H: Handler<Batch>> Run for ByBatch<H> {
    fn run(
        &self,
        slice: Slice<Chunk>,
        services: Arc<Services>,
        lane: Option<Lane>,
        running: &mut Running,
    ) {
        let (handler, figures) = (Arc::clone(&self.handler), Arc::clone(&self.figures));
        let attempts_before = self.attempts_before;
        running.set(async move {
            let context = Context::new(slice.attempt(), &services);
            let run = async {
                let batch = Batch::of(slice.clone());
                let attempts = attempts_before.zip(batch.iter().next());
                let context = context.after(attempts.map_or(0, |(before, first)| before(first)));
                let records = slice.len();
                let ends = batch.iter().next().zip(batch.iter().last());
                let returned = lane.as_ref().zip(ends).map(|(_, (first, last))| {
                    let (topic, partition) = (first.topic().into(), first.partition());
                    let source = Source { topic, partition, offset: first.offset() };
                    Buffer::new(source, last.offset())
                });
                let source = batch.iter().next().map_or(0, MessageRef::partition);
                let context = context.returning(source, returned.as_ref());
                let call = pin!(async { handler.call(batch.clone(), context).await });
                let call = pin!(caught(call));
                match figures.measure(figures.sample(1) == 0, records, call).await {
                    Ok(()) => {
                        if let Some((first, last)) = ends {
                            let offsets = first.offset()..=last.offset();
                            let (topic, partition) = (first.topic(), first.partition());
                            services.board.unblock(topic, partition, offsets);
                        }
                        settle(&slice, records, lane.as_ref().zip(returned.as_ref()));
                        Rest::Untried
                    }
                    Err(failure) => {
                        let (first, last) = (ends.map(|it| it.0), ends.map(|it| it.1.offset()));
                        rest_after(&failure, records, first, last.unwrap_or_default(), context)
                    }
                }
            };
            supervised(run, context).await
        });
    }
}

/// Records that the first `done` records of a slice are handled, together with what was returned.
fn settle(slice: &Slice<Chunk>, done: usize, returned: Option<(&Lane, &Buffer)>) {
    match returned {
        None => slice.set_done(done),
        Some((lane, returned)) => lane.settle(returned, || slice.set_done(done)),
    }
}

/// A panic outside of handlers and layers does not end the shard: the next record is tried again.
async fn supervised(run: impl Future<Output = Rest>, context: Context<'_>) -> Rest {
    AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!("the handling of a record panicked");
        let at = UNSETTLED.next_at(context);
        Rest::Postponed { records: 1, at, by: PostponedBy::Failure }
    })
}

/// What becomes of records that no layer settled: they are tried again, for ever, so that none is
/// lost.
fn rest_after(
    failure: &Failure,
    records: usize,
    first: Option<MessageRef<'_>>,
    last: i64,
    context: Context<'_>,
) -> Rest {
    if let Cause::Postponed(Postponed { at, by }) = failure.cause() {
        return Rest::Postponed { records, at: *at, by: *by };
    }
    if let Some(first) = first {
        context.count_failure(first, failure);
        let refusal = failure.refusal();
        if refusal.is_some() {
            context.forget_refusals(first, last);
        }
        context.set_blocked(first, refusal);
    }
    let attempt = context.attempt();
    let record = first.map(tracing::field::debug);
    tracing::warn!(record, records, attempt, %failure, "failed; tried again");
    Rest::Postponed {
        records,
        at: UNSETTLED.next_after(failure, context),
        by: PostponedBy::Failure,
    }
}

/// Kafka's `max.poll.records`.
const SLICE_RECORDS_MAX: usize = 500;

/// Enough for 20,000 records per second whose handler waits for 50 ms, ten times over.
const QUEUE_RECORDS_MAX: usize = 10_000;

/// Some fetches of a partition, which are of 1 MiB.
const QUEUE_BYTES_MAX: usize = 4 * 1024 * 1024;
