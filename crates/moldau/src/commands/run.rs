//! `moldau run`: hands records of topics to handlers in any language until SIGTERM or SIGINT, then
//! drains them and says what was done.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use moldau_client::{Cluster, ClusterOptions, Error};
use moldau_consumer::{
    AnyRoute, App, Batch, DeadLetters, Delay, Expire, Filter, Handler, Message, Order, Retry,
    RetryTopics, Route, Throttle, Work,
};
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::arguments::WorkOptions;
use crate::config::worker::{
    GroupType, HandlerKind, HandlerSettings, Layers, RouteSettings, Settings, Source,
};
use crate::config::{self, Sources};
use crate::run::{Foreign, Guard, HttpService, Pool, Tally, Worker};

pub(crate) fn run(options: &WorkOptions) -> anyhow::Result<ExitCode> {
    let mut sources = Sources::default();
    let path = &options.file;
    let settings = config::load(path, &mut sources, config::worker::settings)?;
    super::tell_warnings(PROCESS, Some(path), &sources);
    if options.check {
        println!("{}: a valid worker configuration", path.display());
        settings.routes.iter().for_each(|route| println!("{}", in_words(route)));
        return Ok(ExitCode::SUCCESS);
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(work(settings))?;
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// A route whose handler runs.
struct Running {
    name: String,
    handler: Foreign,
    tally: Tally,
}

async fn work(settings: Settings) -> anyhow::Result<()> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let stopped = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    tokio::pin!(stopped);
    let started = tokio::select! {
        started = Box::pin(start(settings)) => started?,
        () = &mut stopped => return Ok(()),
    };
    let (app, running) = started;
    eprintln!("{PROCESS}: runs until SIGTERM or SIGINT");
    let ended = Box::pin(app.run(async {
        stopped.await;
        eprintln!("{PROCESS}: stops; handlers finish their records");
    }))
    .await;
    let mut stops = JoinSet::new();
    for handler in running.iter().map(|it| it.handler.clone()) {
        stops.spawn(async move { handler.stop().await });
    }
    stops.join_all().await;
    for Running { name, tally, .. } in running {
        let (handled, retried, failed) = (tally.handled(), tally.postponed(), tally.failed());
        eprintln!("{PROCESS}: {name}: {handled} handled, {retried} retries, {failed} given up");
    }
    ended.context("the app ended")
}

/// Checks the topics, starts the handlers, and puts the app together.
async fn start(settings: Settings) -> anyhow::Result<(App, Vec<Running>)> {
    let Settings { bootstrap, group, group_type, options, transactional_id, segment, routes } =
        settings;
    check_topics(&bootstrap, &options.cluster, &routes).await?;
    let at = bootstrap.join(",");
    let kind = match group_type {
        GroupType::Consumer => "group",
        GroupType::Share => "share group",
    };
    eprintln!("{PROCESS}: {kind} {group} at {at}, routes: {}", routes.len());
    let app = App::new(bootstrap).options(options);
    let mut app = match group_type {
        GroupType::Consumer => app.group(group),
        GroupType::Share => app.share(group),
    };
    if let Some(id) = transactional_id {
        app = app.exactly_once(id);
    }
    if let Some((index, count)) = segment {
        app = app.segment(index, count);
    }
    let guard = Arc::new(Guard::start().context("cannot start the guard of the handlers")?);
    let mut running = Vec::new();
    for route in routes {
        eprintln!("{PROCESS}: {}", in_words(&route));
        let name = route.name();
        let handler =
            start_handler(route.handler, &guard).await.map_err(|problem| anyhow!(problem))?;
        let tally = Tally::new(group_type == GroupType::Share, route.layers.dead_letters.is_some());
        let throttle = route.layers.throttle_per_second.map(Throttle::per_second);
        let any = || -> AnyRoute {
            let parts = (handler.clone(), tally.clone(), throttle.clone());
            match route.layers.batch_records_max {
                None => layered::<Message>(parts, &route.layers).into(),
                Some(records) => layered::<Batch>(parts, &route.layers).records_max(records).into(),
            }
        };
        app = match &route.source {
            Source::Topics(topics) => {
                topics.iter().fold(app, |app, topic| app.topic(&topic.value, any()))
            }
            Source::Pattern(pattern) => app.pattern(&pattern.value, any()),
            Source::Partitions(topic, partitions) => {
                app.partitions(&topic.value, partitions.value.iter().copied(), any())
            }
        };
        running.push(Running { name, handler, tally });
    }
    Ok((app, running))
}

async fn start_handler(settings: HandlerSettings, guard: &Arc<Guard>) -> Result<Foreign, String> {
    let HandlerSettings { kind, form, timeout, crashes_max } = settings;
    let worker = match kind {
        HandlerKind::Processes(pool) => {
            Worker::Processes(Pool::start(pool, Arc::clone(guard)).await?)
        }
        HandlerKind::Http(http) => Worker::Http(Box::new(HttpService::new(http))),
    };
    Ok(Foreign::new(worker, form, timeout, crashes_max))
}

/// The handler within the layers of its route. What is left out is so before it can wait; what
/// fails for good becomes a dead letter.
fn layered<W: Work>(
    (handler, tally, throttle): (Foreign, Tally, Option<Throttle>),
    layers: &Layers,
) -> Route<W, impl Handler<W> + use<W>>
where
    Foreign: Handler<W>,
{
    let retry = layers
        .retry
        .map(|(attempts, first, max)| Retry::exponential(attempts, first).pause_max(max));
    let filter = layers.filter.clone().map(|kept| {
        Filter::new(move |message: &Message| {
            let value = message.header(&kept.name);
            value.is_some_and(|value| kept.values.iter().any(|it| it.as_bytes() == value))
        })
    });
    Route::new(handler)
        .layer(retry)
        .layer(layers.retry_topics.clone())
        .layer(tally)
        .layer(layers.dead_letters.clone().map(DeadLetters::to))
        .layer(throttle)
        .layer(layers.delay.map(Delay::by))
        .layer(layers.expire.map(Expire::after))
        .layer(filter)
        .order(layers.order)
}

/// Refuses to start if dead letters or retries have no topic: such records would be tried again
/// for ever.
async fn check_topics(
    bootstrap: &[String],
    options: &ClusterOptions,
    routes: &[RouteSettings],
) -> anyhow::Result<()> {
    let options = ClusterOptions { operation_timeout: PATIENCE, ..options.clone() };
    let no_cluster = || format!("no Kafka cluster at {}", bootstrap.join(", "));
    let cluster = Cluster::connect(bootstrap, options).await.with_context(no_cluster)?;
    for route in routes {
        for topic in route.source.topics() {
            if let Err(error) = cluster.topic(&topic.value).await {
                check_unknown(&error)?;
                eprintln!("{PROCESS}: warning: the topic {} does not exist yet", topic.value);
            }
        }
        let dead_letters = route.layers.dead_letters.iter().map(|topic| (topic, "dead letters"));
        let retry_topics = route.layers.retry_topics.iter().flat_map(RetryTopics::names);
        let retry_topics = retry_topics.map(|topic| (topic, "retries"));
        for (topic, purpose) in dead_letters.chain(retry_topics) {
            if let Err(error) = cluster.topic(topic).await {
                check_unknown(&error)?;
                bail!("the topic {topic} for {purpose} of {} does not exist", route.name());
            }
        }
    }
    Ok(())
}

/// Passes on errors but that a topic does not exist.
fn check_unknown(error: &Error) -> anyhow::Result<()> {
    match error {
        Error::UnknownTopicOrPartition { .. } => Ok(()),
        error => Err(error.clone().into()),
    }
}

/// What a route does, in a line.
fn in_words(route: &RouteSettings) -> String {
    let RouteSettings { layers, handler, .. } = route;
    let order = match layers.order {
        Order::Partition => "in order of partitions",
        Order::Key(_) => "in order of keys",
        Order::None => "in any order",
    };
    let batches = match layers.batch_records_max {
        Some(records) => format!(", batches of up to {records}"),
        None => String::new(),
    };
    let attempts = match layers.retry {
        Some((attempts, ..)) => format!(", up to {attempts} attempts"),
        None => String::new(),
    };
    let dead = match &layers.dead_letters {
        Some(topic) => format!(", dead letters to {topic}"),
        None => String::new(),
    };
    let to = match &handler.kind {
        HandlerKind::Processes(pool) => {
            let plural = if pool.processes == 1 { "" } else { "es" };
            format!("{} process{plural}: {}", pool.processes, pool.command.join(" "))
        }
        HandlerKind::Http(http) => http.to.to_string(),
    };
    format!("{} {order}{batches}{attempts}{dead} -> {to}", route.name())
}

/// Name of this process in messages.
const PROCESS: &str = "moldau run";

/// How long the start tries to reach the cluster: a person is waiting.
const PATIENCE: Duration = Duration::from_secs(10);
