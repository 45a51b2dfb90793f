//! Jobs in a table of PostgreSQL.
//!
//! A job is `ready`, `done` or `dead`. Its row stays when it is done, so that a record that is read
//! again is not inserted again; [`PostgresJobs::forget_done`] deletes old ones. Headers are stored
//! as in a record: their count, then for each the lengths and bytes of key and value (KIP-98).

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use moldau_records::varint::{read_i32, write_i32};
use tokio::sync::Mutex;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, NoTls, Row, Socket};

use super::{Headers, Job, JobQueue};
use crate::failure::BoxError;

/// Jobs in the table `moldau_jobs` of a database. Clones share one connection, which is made anew
/// when it is lost.
#[derive(Clone)]
pub struct PostgresJobs {
    connect: Arc<Connect>,
    /// Guards the connection while it is made.
    client: Arc<Mutex<Option<Arc<Client>>>>,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Client, BoxError>> + Send>>;
type Connect = dyn Fn() -> Connecting + Send + Sync;

/// Number of jobs of a queue by their state.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct JobCounts {
    /// To be run, now or later, or running.
    pub ready: u64,
    /// Done.
    pub done: u64,
    /// Given up after the last attempt.
    pub dead: u64,
}

impl PostgresJobs {
    /// A database by its connection string, without TLS; see [`Config`] for its form. Nothing is
    /// connected yet.
    ///
    /// # Errors
    /// The string is malformed.
    pub fn new(database: &str) -> Result<Self, tokio_postgres::Error> {
        Ok(Self::with_tls(database.parse()?, NoTls))
    }

    /// A database with TLS by a crate such as `tokio-postgres-rustls`.
    pub fn with_tls<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::Stream: Send,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let connect = move || -> Connecting {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                let (client, connection) = config.connect(tls).await?;
                // It ends with the client, or ends the client, whose calls then say why.
                tokio::spawn(async move { drop(connection.await) });
                Ok(client)
            })
        };
        Self { connect: Arc::new(connect), client: Arc::default() }
    }

    /// Creates the table and its index if they do not exist.
    ///
    /// # Errors
    /// The database cannot be reached or refuses.
    pub async fn create_table(&self) -> Result<(), BoxError> {
        self.with(async |client| client.batch_execute(TABLE).await).await
    }

    /// The jobs of a queue by their state.
    ///
    /// # Errors
    /// The database cannot be reached or refuses.
    pub async fn counts(&self, queue: &str) -> Result<JobCounts, BoxError> {
        let rows = self.query(COUNTS, &[&queue]).await?;
        let row = rows.first().ok_or("no counts")?;
        let count =
            |index| -> Result<u64, BoxError> { Ok(row.try_get::<_, i64>(index)?.try_into()?) };
        Ok(JobCounts { ready: count(0)?, done: count(1)?, dead: count(2)? })
    }

    /// Makes the dead jobs of a queue ready again, with all their attempts. Returns their number.
    ///
    /// # Errors
    /// The database cannot be reached or refuses.
    pub async fn revive_dead(&self, queue: &str) -> Result<u64, BoxError> {
        self.execute(REVIVE, &[&queue]).await
    }

    /// Deletes jobs of a queue that were done longer ago than `age`, and returns their number. A
    /// record that is read again after that is a job again, so `age` must be longer than consumers
    /// ever go back.
    ///
    /// # Errors
    /// The database cannot be reached or refuses.
    pub async fn forget_done(&self, queue: &str, age: Duration) -> Result<u64, BoxError> {
        self.execute(FORGET, &[&queue, &age.as_secs_f64()]).await
    }

    pub(super) async fn execute(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, BoxError> {
        self.with(async |client| client.execute(statement, values).await).await
    }

    pub(super) async fn query(
        &self,
        statement: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, BoxError> {
        self.with(async |client| client.query(statement, values).await).await
    }

    /// Calls the database within a time. A connection without an answer is given up.
    async fn with<T>(
        &self,
        call: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, BoxError> {
        let called = tokio::time::timeout(TIME_MAX, async {
            let client = self.client().await?;
            call(&client).await.map_err(described)
        });
        if let Ok(called) = called.await {
            return called;
        }
        *self.client.lock().await = None;
        Err(format!("the database did not answer within {} s", TIME_MAX.as_secs()).into())
    }

    async fn client(&self) -> Result<Arc<Client>, BoxError> {
        let mut kept = self.client.lock().await;
        if let Some(client) = kept.as_ref().filter(|client| !client.is_closed()) {
            return Ok(Arc::clone(client));
        }
        let client = Arc::new((self.connect)().await?);
        *kept = Some(Arc::clone(&client));
        Ok(client)
    }
}

/// The error with what the database says.
fn described(error: tokio_postgres::Error) -> BoxError {
    match error.as_db_error() {
        Some(said) => format!("the database refuses: {}", said.message()).into(),
        None => error.into(),
    }
}

impl fmt::Debug for PostgresJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresJobs").finish_non_exhaustive()
    }
}

impl JobQueue for PostgresJobs {
    async fn insert(&self, jobs: Vec<Job>) -> Result<u64, BoxError> {
        let queues: Vec<&str> = jobs.iter().map(|job| &*job.queue).collect();
        let topics: Vec<&str> = jobs.iter().map(|job| job.id.topic.as_str()).collect();
        let partitions: Vec<i32> = jobs.iter().map(|job| job.id.partition).collect();
        let offsets: Vec<i64> = jobs.iter().map(|job| job.id.offset).collect();
        let timestamps: Vec<i64> = jobs.iter().map(|job| job.id.timestamp).collect();
        let keys: Vec<Option<&[u8]>> = jobs.iter().map(|job| job.key.as_deref()).collect();
        let values: Vec<Option<&[u8]>> = jobs.iter().map(|job| job.value.as_deref()).collect();
        let headers: Result<Vec<Vec<u8>>, _> =
            jobs.iter().map(|job| encode_headers(&job.headers)).collect();
        let headers = headers?;
        let columns: [&(dyn ToSql + Sync); 8] =
            [&queues, &topics, &partitions, &offsets, &timestamps, &keys, &values, &headers];
        self.execute(INSERT, &columns).await
    }
}

fn encode_headers(headers: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<Vec<u8>, BoxError> {
    let mut out = Vec::new();
    write_i32(&mut out, headers.len().try_into()?);
    for (key, value) in headers {
        write_i32(&mut out, key.len().try_into()?);
        out.extend_from_slice(key);
        write_i32(&mut out, value.as_ref().map_or(Ok(-1), |value| value.len().try_into())?);
        out.extend_from_slice(value.as_deref().unwrap_or_default());
    }
    Ok(out)
}

pub(super) fn decode_headers(mut bytes: &[u8]) -> Result<Headers, BoxError> {
    let count = read_i32(&mut bytes)?;
    let mut headers = Vec::new();
    for _header in 0..count {
        let header = moldau_records::read_header(&mut bytes)?;
        headers.push((header.key.to_vec(), header.value.map(<[u8]>::to_vec)));
    }
    Ok(headers)
}

/// Longest time for one call of the database, its connection included.
const TIME_MAX: Duration = Duration::from_secs(10);

/// `run_at` is when a job may be claimed: for a running one, the end of its visibility timeout.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS moldau_jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    topic text NOT NULL,
    partition integer NOT NULL,
    \"offset\" bigint NOT NULL,
    timestamp_ms bigint NOT NULL,
    key bytea,
    value bytea,
    headers bytea NOT NULL,
    state text NOT NULL DEFAULT 'ready' CHECK (state IN ('ready', 'done', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    run_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    failure text,
    UNIQUE (queue, topic, partition, \"offset\", timestamp_ms)
);
CREATE INDEX IF NOT EXISTS moldau_jobs_ready ON moldau_jobs (queue, run_at, id)
    WHERE state = 'ready'";

const INSERT: &str = "
INSERT INTO moldau_jobs
    (queue, topic, partition, \"offset\", timestamp_ms, key, value, headers)
SELECT * FROM UNNEST($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[],
    $6::bytea[], $7::bytea[], $8::bytea[])
ON CONFLICT DO NOTHING";

const COUNTS: &str = "
SELECT count(*) FILTER (WHERE state = 'ready'), count(*) FILTER (WHERE state = 'done'),
    count(*) FILTER (WHERE state = 'dead')
FROM moldau_jobs WHERE queue = $1";

const REVIVE: &str = "
UPDATE moldau_jobs SET state = 'ready', attempts = 0, run_at = now(), ended_at = NULL
WHERE queue = $1 AND state = 'dead'";

const FORGET: &str = "
DELETE FROM moldau_jobs
WHERE queue = $1 AND state = 'done' AND ended_at < now() - make_interval(secs => $2)";
