//! An app as a member of a share group.

use std::sync::Arc;

use moldau_client::{AcknowledgeMode, Cluster, ShareConsumer, ShareOptions};
use tokio::sync::{mpsc, oneshot};

use super::App;
use crate::background::{Stage, Tasks};
use crate::routes::Reads;
use crate::scheduler::{Order, Slicing};
use crate::share::{self, Parts, Worker};
use crate::{Error, Result, Workers};

/// How an app takes part in its group.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Membership {
    /// As a member of a consumer group, or with partitions of its own.
    #[default]
    Consumer,
    /// As a member of a share group.
    Share,
}

impl App {
    /// Reads the topics of its routes as a member of a share group (KIP-932) instead of a consumer
    /// group. Records come one by one and in any order; any number of apps shares each partition.
    ///
    /// A record whose handler succeeds is accepted. One that a [`Retry`](crate::Retry) lets wait is
    /// released when its pause is over, and any member gets it then; the attempt is the number of
    /// the delivery. One that is given up, or that no attempt can help, is rejected, unless
    /// [`DeadLetters`](crate::DeadLetters) takes it. The group's `share.delivery.count.limit` ends
    /// the attempts in any case, before a layer could take the record: layers should make fewer.
    ///
    /// [`run`](Self::run) refuses what a share group cannot do: transactions, segments, patterns,
    /// partitions of one's own, batches, an order of keys, retry topics, several shards, workers
    /// that follow the load, recurring tasks and scheduled messages.
    #[must_use]
    pub fn share(mut self, group: impl Into<String>) -> Self {
        self.membership = Membership::Share;
        self.group(group)
    }

    /// The topics of a share app.
    fn shared_topics(&self) -> Result<Vec<String>> {
        let refused = |is_there: bool, what| match is_there {
            true => Err(Error::NotShared(what)),
            false => Ok(()),
        };
        refused(self.transactional_id.is_some(), "transactions")?;
        refused(self.segment.is_some(), "segments")?;
        refused(!self.tended.is_empty(), "recurring tasks or scheduled messages")?;
        refused(self.options.shards > 1, "shards")?;
        refused(*self.workers.borrow() == Workers::Auto, "workers that follow the load")?;
        for (_, route) in self.routes.labelled() {
            refused(route.plan.slicing != Slicing::Paced, "batches")?;
            refused(matches!(route.plan.order, Order::Key(_)), "order of keys")?;
        }
        refused(self.has_retry_topics, "retry topics")?;
        match self.routes.reads(&self.tended)? {
            Reads::Partitions(_) => Err(Error::NotShared("partitions of one's own")),
            Reads::Subscription { pattern: Some(_), .. } => Err(Error::NotShared("patterns")),
            Reads::Subscription { topics, pattern: None } => Ok(topics),
        }
    }
}

/// Runs an app as a member of its share group.
pub(crate) async fn run(mut app: App, shutdown: impl Future<Output = ()>) -> Result<()> {
    app.check()?;
    let topics = app.shared_topics()?;
    let group = app.group.clone().ok_or(Error::NoGroup)?;
    app.start_admin(&group)?;
    let questions = app.take_questions(1).pop().unwrap_or_else(|| mpsc::channel(1).1);
    let cluster = Cluster::connect(&app.bootstrap, app.options.cluster.clone()).await?;
    let services = Arc::new(app.services(&cluster));
    let fetcher = &app.options.fetcher;
    let bytes_max = i32::try_from(app.options.queue_bytes_max).unwrap_or(i32::MAX);
    let options = ShareOptions {
        acknowledge: AcknowledgeMode::Explicit,
        rack: app.options.membership.rack.clone(),
        max_wait: fetcher.max_wait,
        min_bytes: fetcher.min_bytes,
        max_bytes: fetcher.max_bytes.min(bytes_max),
        max_records: share::records_max(*app.workers.borrow()),
        topics,
        ..ShareOptions::default()
    };
    let consumer = ShareConsumer::join(&cluster, &group, options).await?;
    services.board.set_member(consumer.membership().watch());
    let worker = Worker::new(Parts {
        consumer,
        routes: app.routes,
        services: Arc::clone(&services),
        workers: app.workers.subscribe(),
        questions,
        assignment: app.assignment.clone(),
    });
    let mut background = Tasks::start(app.background, &services);
    let (left, ended) = oneshot::channel();
    let lifecycle = background.lifecycle();
    let running = async {
        // Whoever waits is in this function.
        drop(left.send(worker.run(lifecycle).await));
        std::future::pending::<()>().await
    };
    let watched = async {
        tokio::select! {
            () = shutdown => {}
            () = background.failed() => {}
        }
        background.reach(Stage::Draining);
        std::future::pending::<()>().await
    };
    let ended = tokio::select! {
        ended = ended => ended.unwrap_or(Err(Error::MemberGone)),
        () = running => Err(Error::MemberGone),
        () = watched => Err(Error::MemberGone),
    };
    let deadline = services.clock.now().saturating_add(services.drain_timeout);
    let background_ended = background.end(&services, deadline).await;
    ended.and(background_ended)
}
