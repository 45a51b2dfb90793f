//! Versions of the schema.

use crate::{Answer, Error};

use super::link::{self, Pool};

/// Statements that lead from each version to the next. What was released is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("0001_logs.sql"),
    include_str!("0002_frames.sql"),
    include_str!("0003_transactions.sql"),
    include_str!("0004_topics.sql"),
    include_str!("0005_keys.sql"),
    include_str!("0006_fences.sql"),
    include_str!("0007_requests.sql"),
    include_str!("0008_expiration.sql"),
];

/// Applies what is missing, each step in a transaction, and counts the steps. Two programs do not
/// migrate at a time.
pub(super) async fn migrate(pool: &Pool) -> Answer<usize> {
    let mut client = pool.connect().await?.client;
    let told = |error: tokio_postgres::Error| link::meaning(&error);
    for steps in 0.. {
        let transaction = client.transaction().await.map_err(told)?;
        transaction.batch_execute(PREPARE).await.map_err(told)?;
        let found = transaction.query_one(VERSION, &[]).await.map_err(told)?.get(0);
        if found > needed() {
            return Err(Error::SchemaVersion { found, needed: needed() });
        }
        let next = usize::try_from(found).ok().and_then(|done| MIGRATIONS.get(done));
        let Some(statements) = next else {
            return transaction.commit().await.map(|()| steps).map_err(told);
        };
        transaction.batch_execute(statements).await.map_err(told)?;
        let text = "insert into moldau.schema_versions values ($1)";
        transaction.execute(text, &[&(found + 1)]).await.map_err(told)?;
        transaction.commit().await.map_err(told)?;
    }
    unreachable!("the steps end")
}

/// Whether this program can work with the schema. A newer one fits: migrations keep what the
/// version before uses.
pub(super) async fn check(pool: &Pool) -> Answer<()> {
    let client = pool.connect().await?.client;
    let row = client.query_one("select to_regclass('moldau.schema_versions') is null", &[]);
    let is_absent: bool = row.await.map_err(|error| link::meaning(&error))?.get(0);
    let found = if is_absent {
        0
    } else {
        client.query_one(VERSION, &[]).await.map_err(|error| link::meaning(&error))?.get(0)
    };
    if found < needed() {
        return Err(Error::SchemaVersion { found, needed: needed() });
    }
    Ok(())
}

fn needed() -> i32 {
    i32::try_from(MIGRATIONS.len()).expect("a list in this file")
}

/// The number of the lock is our own. A step that changes a table waits for the transactions that
/// use it, and all later ones wait for the step: it gives up before anybody notices.
const PREPARE: &str = "
    set local lock_timeout = 2000;
    select pg_advisory_xact_lock(7237089354391);
    create schema if not exists moldau;
    create table if not exists moldau.schema_versions (version integer primary key)";
const VERSION: &str = "select coalesce(max(version), 0) from moldau.schema_versions";
