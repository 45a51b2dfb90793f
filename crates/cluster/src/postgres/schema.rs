//! Versions of the schema.

use tokio_postgres::Client;

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
    include_str!("0009_owner.sql"),
];

/// Applies what is missing, each step in a transaction, and counts the steps. Two programs do not
/// migrate at a time. A role that may only use a schema does so if nothing is missing.
pub(super) async fn migrate(pool: &Pool) -> Answer<usize> {
    let mut client = pool.connect().await?.client;
    let found = version(&client).await.map_err(|error| pool.at(error))?;
    if found > needed() {
        return Err(Error::SchemaVersion { found, needed: needed() });
    }
    if found == needed() {
        return Ok(0);
    }
    apply(&mut client).await.map_err(|error| pool.at(grants_to_migrate(error, found)))
}

async fn apply(client: &mut Client) -> Answer<usize> {
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
    let found = version(&client).await.map_err(|error| pool.at(error))?;
    if found < needed() {
        return Err(Error::SchemaVersion { found, needed: needed() });
    }
    Ok(())
}

/// The version of the schema, 0 for none.
async fn version(client: &Client) -> Answer<i32> {
    let told = |error: tokio_postgres::Error| grants_to_use(link::meaning(&error));
    let row = client.query_one("select to_regclass('moldau.schema_versions') is null", &[]).await;
    let is_absent: bool = row.map_err(told)?.get(0);
    if is_absent {
        return Ok(0);
    }
    Ok(client.query_one(VERSION, &[]).await.map_err(told)?.get(0))
}

fn grants_to_use(error: Error) -> Error {
    match error {
        Error::DatabaseRefused(text) => Error::DatabaseRefused(format!(
            "{text}; a broker needs: grant usage on schema moldau, grant select, insert, update, \
             delete on all tables in schema moldau"
        )),
        error => error,
    }
}

fn grants_to_migrate(error: Error, found: i32) -> Error {
    let Error::DatabaseRefused(text) = error else { return error };
    let grant = match found {
        0 => "to create the schema moldau, this role needs: grant create on database".to_owned(),
        _ => format!(
            "to bring the schema from version {found} to {}, this role must own the schema moldau",
            needed()
        ),
    };
    let other = "or another role runs `moldau cluster init`";
    Error::DatabaseRefused(format!("{text}; {grant}; {other}"))
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
