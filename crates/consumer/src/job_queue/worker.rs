//! Runs the jobs of a queue in PostgreSQL.
//!
//! A worker claims a job by moving its `run_at` on by the visibility timeout and counting the
//! attempt. If the worker ends, others claim the job after that time. The number of the attempt
//! guards the outcome: that of an attempt which is no longer the latest changes nothing.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio_postgres::Row;

use super::postgres::decode_headers;
use super::{Job, JobId, PostgresJobs};
use crate::failure::{BoxError, Failure, panic_message};

/// How jobs are run. The defaults suit most.
#[derive(Clone, Copy, Debug)]
pub struct JobWorkerOptions {
    /// Jobs that run at a time.
    pub concurrency: u16,
    /// Longest time for one attempt. A handler that takes longer is cancelled, and a job whose
    /// worker ended is run by another after this time.
    pub visibility_timeout: Duration,
    /// Attempts after which a job is dead.
    pub attempts_max: u16,
    /// Pause before the second attempt; each further one is twice as long, up to an hour.
    pub retry_pause: Duration,
    /// Time between looks for jobs while there are none.
    pub poll_interval: Duration,
}

impl Default for JobWorkerOptions {
    fn default() -> Self {
        Self {
            concurrency: 10,
            visibility_timeout: Duration::from_secs(300),
            attempts_max: 10,
            retry_pause: Duration::from_secs(5),
            poll_interval: Duration::from_millis(500),
        }
    }
}

/// A job that a worker runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClaimedJob {
    /// The job.
    pub job: Job,
    /// Number of this attempt, from 1 on.
    pub attempt: u32,
    row: i64,
}

impl PostgresJobs {
    /// Runs the jobs of a queue until `shutdown` completes, then waits for those that run. Jobs
    /// start in the order in which they became ready. A failed one is tried again after a pause,
    /// one that failed with [`Failure::permanent`] is dead. While the database is away, running
    /// jobs go on, and those whose outcome cannot be stored are run again. Any number of processes
    /// may run one queue.
    pub async fn run<F, Fut>(
        &self,
        queue: &str,
        options: JobWorkerOptions,
        handler: F,
        shutdown: impl Future<Output = ()>,
    ) where
        F: Fn(ClaimedJob) -> Fut,
        Fut: Future<Output = Result<(), BoxError>>,
    {
        let mut shutdown = pin!(shutdown.fuse());
        let mut running = FuturesUnordered::new();
        loop {
            let free = usize::from(options.concurrency.max(1)).saturating_sub(running.len());
            let claimed = match free {
                0 => Vec::new(),
                free => self.claim(queue, options, free).await.unwrap_or_else(|error| {
                    tracing::warn!(queue, %error, "no jobs were read");
                    Vec::new()
                }),
            };
            let has_found = !claimed.is_empty();
            running.extend(claimed.into_iter().map(|job| self.attempt(job, options, &handler)));
            let has_room = running.len() < usize::from(options.concurrency.max(1));
            let poll = async {
                if has_found && has_room {
                    return;
                }
                match has_room {
                    true => tokio::time::sleep(options.poll_interval).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(()) = running.next() => {}
                () = poll => {}
            }
        }
        while running.next().await.is_some() {}
    }

    async fn claim(
        &self,
        queue: &str,
        options: JobWorkerOptions,
        jobs_max: usize,
    ) -> Result<Vec<ClaimedJob>, BoxError> {
        let attempts_max = i32::from(options.attempts_max.max(1));
        self.execute(ABANDONED, &[&queue, &attempts_max]).await?;
        let (jobs_max, timeout) =
            (i64::try_from(jobs_max)?, options.visibility_timeout.as_secs_f64());
        let rows = self.query(CLAIM, &[&queue, &jobs_max, &timeout]).await?;
        rows.iter().map(|row| read(row, queue)).collect()
    }

    /// Runs a job once and stores what came of it.
    async fn attempt<Fut>(
        &self,
        job: ClaimedJob,
        options: JobWorkerOptions,
        handler: &impl Fn(ClaimedJob) -> Fut,
    ) where
        Fut: Future<Output = Result<(), BoxError>>,
    {
        let (row, attempt) = (job.row, job.attempt);
        let run = AssertUnwindSafe(async { handler(job).await }).catch_unwind();
        let ended = match tokio::time::timeout(options.visibility_timeout, run).await {
            Ok(Ok(ended)) => ended,
            Ok(Err(panic)) => Err(format!("panicked: {}", panic_message(&*panic)).into()),
            Err(_) => Err(format!("took longer than {:?}", options.visibility_timeout).into()),
        };
        let number = i32::try_from(attempt).unwrap_or(i32::MAX);
        let stored = match ended {
            Ok(()) => self.execute(DONE, &[&row, &number]).await,
            Err(error) => {
                let is_permanent =
                    error.downcast_ref::<Failure>().is_some_and(|failure| !failure.is_retriable());
                let is_dead = is_permanent || attempt >= u32::from(options.attempts_max.max(1));
                let text = error.to_string().replace('\0', " ");
                tracing::warn!(row, attempt, is_dead, error = text, "a job failed");
                let pause = pause(options.retry_pause, attempt).as_secs_f64();
                self.execute(FAILED, &[&row, &number, &is_dead, &text, &pause]).await
            }
        };
        if let Err(error) = stored {
            tracing::warn!(row, attempt, %error, "the outcome of a job is not stored");
        }
    }
}

fn read(row: &Row, queue: &str) -> Result<ClaimedJob, BoxError> {
    let id = JobId {
        topic: row.try_get(2)?,
        partition: row.try_get(3)?,
        offset: row.try_get(4)?,
        timestamp: row.try_get(5)?,
    };
    let (key, value) = (row.try_get(6)?, row.try_get(7)?);
    let headers = decode_headers(row.try_get(8)?)?;
    let job = Job { queue: queue.into(), id, key, value, headers };
    Ok(ClaimedJob { job, attempt: row.try_get::<_, i32>(1)?.try_into()?, row: row.try_get(0)? })
}

/// The pause after attempt `attempt`.
fn pause(first: Duration, attempt: u32) -> Duration {
    let factor = 2_u32.saturating_pow(attempt.saturating_sub(1));
    first.saturating_mul(factor).min(PAUSE_MAX)
}

/// Longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// Jobs whose last attempt ended with its worker.
const ABANDONED: &str = "
UPDATE moldau_jobs
SET state = 'dead', ended_at = now(), failure = 'no worker finished the last attempt'
WHERE queue = $1 AND state = 'ready' AND run_at <= now() AND attempts >= $2";

const CLAIM: &str = "
WITH claimed AS (
    UPDATE moldau_jobs SET attempts = attempts + 1, run_at = now() + make_interval(secs => $3)
    WHERE id IN (
        SELECT id FROM moldau_jobs
        WHERE queue = $1 AND state = 'ready' AND run_at <= now()
        ORDER BY run_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
    )
    RETURNING id, attempts, topic, partition, \"offset\", timestamp_ms, key, value, headers
)
SELECT * FROM claimed ORDER BY id";

/// The payload of a job that is done is not kept.
const DONE: &str = "
UPDATE moldau_jobs
SET state = 'done', ended_at = now(), failure = NULL, key = NULL, value = NULL, headers = '\\x00'
WHERE id = $1 AND attempts = $2 AND state = 'ready'";

const FAILED: &str = "
UPDATE moldau_jobs
SET state = CASE WHEN $3 THEN 'dead' ELSE 'ready' END, failure = $4,
    ended_at = CASE WHEN $3 THEN now() END, run_at = now() + make_interval(secs => $5)
WHERE id = $1 AND attempts = $2 AND state = 'ready'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_an_hour() {
        let first = Duration::from_secs(5);
        assert_eq!([1, 2, 3].map(|attempt| pause(first, attempt).as_secs()), [5, 10, 20]);
        assert_eq!(pause(first, u32::MAX), PAUSE_MAX);
    }
}
