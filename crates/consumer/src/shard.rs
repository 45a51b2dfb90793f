//! The shards of an app. Each owns some of its partitions, with their fetcher, scheduler and
//! handlers. A single shard runs in the task of `App::run`; several run on threads of their own.

use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use futures_util::stream::{FuturesUnordered, StreamExt};
use moldau_client::{Cluster, ClusterOptions};
use tokio::sync::oneshot;

use crate::background::{Lifecycle, Stage, Tasks};
use crate::member::BLOCKED_GRACE;
use crate::runtime::{Parts, Runtime};
use crate::{Error, Result};

type Running = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// The shards of an app that run. Dropping them ends them.
pub(crate) struct Shards {
    running: FuturesUnordered<Running>,
}

/// How shards reach the cluster. Each has connections of its own.
pub(crate) struct Access {
    pub(crate) bootstrap: Vec<String>,
    pub(crate) options: ClusterOptions,
}

impl Shards {
    /// Starts a shard of each of `parts`. A single one uses `cluster`.
    pub(crate) fn start(
        cluster: &Cluster,
        access: Access,
        parts: Vec<Parts>,
        lifecycle: &Lifecycle,
    ) -> Result<Self> {
        let (access, has_threads) = (Arc::new(access), parts.len() > 1);
        let start = |parts: Parts| -> Result<Running> {
            let lifecycle = lifecycle.clone();
            if has_threads {
                return spawn(Arc::clone(&access), parts, lifecycle);
            }
            Ok(Box::pin(Runtime::new(cluster.clone(), parts).run(lifecycle)))
        };
        let running = parts.into_iter().map(start).collect::<Result<_>>()?;
        Ok(Self { running })
    }

    /// Runs them until one fails, which ends all.
    pub(crate) async fn failed(&mut self) -> Error {
        while let Some(ended) = self.running.next().await {
            if let Err(error) = ended {
                self.running.clear();
                return error;
            }
        }
        std::future::pending().await
    }

    /// Waits until all have seen that the member ended, but not for those that are blocked.
    pub(crate) async fn end(mut self) {
        let all = async { while self.running.next().await.is_some() {} };
        if tokio::time::timeout(BLOCKED_GRACE, all).await.is_err() {
            tracing::error!(
                shards = self.running.len(),
                "a handler blocks its thread; left behind"
            );
        }
    }
}

/// Lets the shards run until the member has left its group, or one of them fails. Both drain once
/// `shutdown` completes or a background task fails.
pub(crate) async fn until_left(
    left: oneshot::Receiver<Result<()>>,
    shards: &mut Shards,
    background: &mut Tasks,
    shutdown: impl Future<Output = ()>,
) -> Result<()> {
    let shutdown = async {
        tokio::select! {
            () = shutdown => {}
            () = background.failed() => {}
        }
        background.reach(Stage::Draining);
        std::future::pending().await
    };
    tokio::select! {
        left = left => left.unwrap_or(Err(Error::MemberGone)),
        error = shards.failed() => Err(error),
        never = shutdown => never,
    }
}

/// Runs a shard on a thread of its own until it ends, or what is returned is dropped.
fn spawn(access: Arc<Access>, parts: Parts, lifecycle: Lifecycle) -> Result<Running> {
    let index = parts.share.index;
    let (mut told, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Thread)?;
    let run = async move {
        let run = async {
            let connect = Cluster::connect(&access.bootstrap, access.options.clone());
            Runtime::new(Box::pin(connect).await?, parts).run(lifecycle).await
        };
        let result = tokio::select! {
            biased;
            () = told.closed() => return,
            result = run => result,
        };
        // An app that is gone does not ask.
        drop(told.send(result));
    };
    let thread = thread::Builder::new().name(format!("moldau-shard-{index}"));
    thread.spawn(move || runtime.block_on(run)).map_err(Error::Thread)?;
    Ok(Box::pin(async move { ended.await.unwrap_or(Err(Error::ShardGone(index))) }))
}
