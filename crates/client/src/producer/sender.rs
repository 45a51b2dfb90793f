//! The task that carries out plans: connections, metadata, producer ids, requests.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::plan::{Appended, Outbound, Plan};
use super::{Acks, Shared, ids, request};
use crate::connection::{Connection, Outgoing};
use crate::{Error, Result};

/// Something that was waited for apart from the sending.
enum Event {
    Connected(i32, Result<Connection>),
    Refreshed,
    ProducerId(Result<(i64, i16)>),
    /// A pause is over.
    Retry,
}

struct Sender {
    shared: Arc<Shared>,
    connections: HashMap<i32, Connection>,
    /// Brokers that are being connected to, or whose turn for that comes after a pause.
    connecting: HashSet<i32>,
    refreshing: bool,
    asking_producer_id: bool,
    events: JoinSet<Event>,
}

/// Sends what the accumulator plans until the task is aborted.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut sender = Sender {
        shared,
        connections: HashMap::new(),
        connecting: HashSet::new(),
        refreshing: false,
        asking_producer_id: false,
        events: JoinSet::new(),
    };
    loop {
        sender.drop_closed_connections();
        let metadata = sender.shared.cluster.metadata();
        let plan = sender.shared.lock().plan(Instant::now(), &metadata);
        let wake_at = plan.wake_at;
        sender.carry_out(plan).await;
        sender.wait(wake_at).await;
    }
}

impl Sender {
    fn drop_closed_connections(&mut self) {
        let shared = &self.shared;
        self.connections.retain(|node, connection| {
            let open = !connection.is_closed();
            if !open {
                shared.lock().set_connected(*node, false);
            }
            open
        });
    }

    async fn carry_out(&mut self, plan: Plan) {
        if !plan.reports.is_empty() {
            self.shared.deliver(plan.reports);
        }
        for (node, batches) in plan.requests {
            self.send(node, batches).await;
        }
        for node in plan.unconnected {
            self.connect(node);
        }
        if plan.needs_metadata && !self.refreshing {
            self.refresh();
        }
        if plan.needs_producer_id && !self.asking_producer_id {
            self.ask_producer_id();
        }
    }

    async fn send(&mut self, node: i32, batches: Vec<Outbound>) {
        let parts = batches.iter().map(|batch| (batch.partition, batch.serial)).collect();
        let returning = Returning { shared: Arc::clone(&self.shared), node, parts };
        self.shared.requests().sent(node, Instant::now());
        let submitted = async {
            let connection = self.connections.get(&node).ok_or(Error::Closed)?;
            let options = &self.shared.options;
            let adding = self.shared.lock().adding();
            let produce = request::encode(connection, options, adding, &batches)?;
            Ok((connection, produce, connection.permit().await?))
        };
        let (connection, produce, permit) = match submitted.await {
            Ok(submitted) => submitted,
            Err(error) => return returning.fail(&error),
        };
        let (version, address) = (produce.version, connection.address().clone());
        let answered = self.shared.options.acks != Acks::None;
        let on_reply = move |reply: Result<bytes::Bytes>| match reply {
            Ok(_) if !answered => returning.succeed_unanswered(),
            Ok(frame) => match request::decode(&frame, version, &address) {
                Ok(answer) => returning.answer(&batches, &answer),
                Err(error) => returning.fail(&error),
            },
            Err(error) => returning.fail(&error),
        };
        connection.submit(Outgoing {
            api: moldau_protocol::ApiKey::Produce,
            correlation_id: produce.correlation_id,
            segments: produce.segments,
            answered,
            deadline: tokio::time::Instant::now() + self.shared.options.request_timeout,
            on_reply: Box::new(on_reply),
            permit,
        });
    }

    fn connect(&mut self, node: i32) {
        if self.connecting.insert(node) {
            let cluster = self.shared.cluster.clone();
            self.events.spawn(async move {
                Event::Connected(node, cluster.dedicated_connection(node).await)
            });
        }
    }

    fn refresh(&mut self) {
        self.refreshing = true;
        let cluster = self.shared.cluster.clone();
        self.events.spawn(async move {
            if let Err(error) = cluster.refresh().await {
                tracing::warn!(%error, "metadata could not be refreshed");
            }
            // Leaders that are being elected do not appear faster by asking faster.
            tokio::time::sleep(cluster.options().retry_backoff).await;
            Event::Refreshed
        });
    }

    fn ask_producer_id(&mut self) {
        self.asking_producer_id = true;
        let cluster = self.shared.cluster.clone();
        let known = self.shared.lock().producer_id();
        let options = self.shared.options.clone();
        self.events.spawn(async move {
            Event::ProducerId(ids::producer_id(&cluster, &options, known).await)
        });
    }

    async fn wait(&mut self, wake_at: Option<Instant>) {
        let alarm = async {
            match wake_at {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.shared.work.notified() => {}
            () = alarm => {}
            Some(event) = self.events.join_next() => {
                if let Ok(event) = event {
                    self.take_event(event);
                }
            }
        }
    }

    fn take_event(&mut self, event: Event) {
        match event {
            Event::Connected(node, Ok(connection)) => {
                self.connecting.remove(&node);
                self.connections.insert(node, connection);
                self.shared.lock().set_connected(node, true);
            }
            Event::Connected(node, Err(error)) => {
                tracing::debug!(node, %error, "broker is not reachable");
                self.connecting.remove(&node);
                // The refresh ends with a pause, after which the broker is tried again.
                if !self.refreshing {
                    self.refresh();
                }
                self.connecting.insert(node);
            }
            Event::Refreshed => {
                self.refreshing = false;
                self.connecting.clear();
            }
            Event::ProducerId(Ok((id, epoch))) => {
                self.asking_producer_id = false;
                let reports = self.shared.lock().set_producer_id(id, epoch);
                self.shared.deliver(reports);
            }
            Event::ProducerId(Err(error)) => {
                tracing::warn!(%error, "no producer id");
                let pause = self.shared.cluster.options().retry_backoff_max;
                self.events.spawn(async move {
                    tokio::time::sleep(pause).await;
                    Event::Retry
                });
            }
            Event::Retry => self.asking_producer_id = false,
        }
    }
}

/// Brings the outcome of a request's batches back.
struct Returning {
    shared: Arc<Shared>,
    node: i32,
    /// Partition and serial of each batch.
    parts: Vec<(usize, u64)>,
}

impl Returning {
    fn fail(self, error: &Error) {
        let outcomes = self.parts.iter().map(|_| Err(error.clone())).collect();
        self.settle(outcomes, Duration::ZERO);
    }

    fn succeed_unanswered(self) {
        let appended = Appended { base_offset: None, log_append_time_ms: None };
        let outcomes = self.parts.iter().map(|_| Ok(appended)).collect();
        self.settle(outcomes, Duration::ZERO);
    }

    fn answer(self, batches: &[Outbound], answer: &request::Answer) {
        let outcomes = answer.outcomes(batches);
        self.settle(outcomes, answer.throttled);
    }

    fn settle(self, outcomes: Vec<Result<Appended>>, throttled: Duration) {
        let now = Instant::now();
        self.shared.requests().returned(throttled, now);
        let mut reports = Vec::with_capacity(outcomes.len());
        let mut accumulator = self.shared.lock();
        accumulator.request_returned(self.node);
        for ((partition, serial), outcome) in self.parts.into_iter().zip(outcomes) {
            accumulator.returned(partition, serial, outcome, now, &mut reports);
        }
        drop(accumulator);
        self.shared.work.notify_one();
        self.shared.deliver(reports);
    }
}
