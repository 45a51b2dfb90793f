//! Connections, and what their errors mean.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row};

use crate::{Answer, Error, ObjectKey};

use super::Settings;

pub(super) fn pool(settings: &Settings) -> Answer<Pool> {
    let config: tokio_postgres::Config = settings
        .connection
        .parse()
        // The text may hold a password, so it is not shown.
        .map_err(|_| Error::Settings("the address of the database is malformed".into()))?;
    let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    Pool::builder(Manager::from_config(config, NoTls, manager))
        .max_size(settings.connections_max)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(settings.timeout))
        .create_timeout(Some(settings.timeout))
        .build()
        .map_err(|error| Error::Settings(error.to_string()))
}

pub(super) async fn client(pool: &Pool) -> Answer<Object> {
    pool.get().await.map_err(|error| Error::SequencerAway(error.to_string()))
}

/// Runs one prepared statement. A connection without an answer in time is closed, so that nothing
/// of it comes later than what follows.
pub(super) async fn query(
    pool: &Pool,
    limit: Duration,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Answer<Vec<Row>> {
    let client = client(pool).await?;
    let answer = timeout(limit, async {
        let statement = client.prepare_cached(text).await?;
        client.query(&statement, values).await
    });
    match answer.await {
        Ok(Ok(rows)) => Ok(rows),
        Ok(Err(error)) => Err(meaning(&error)),
        Err(_) => {
            drop(Object::take(client));
            Err(Error::SequencerAway("the time is over".into()))
        }
    }
}

/// An error of the database. Whatever is not surely without effect counts as no answer.
pub(super) fn meaning(error: &tokio_postgres::Error) -> Error {
    let Some(told) = error.as_db_error() else {
        return Error::SequencerAway(error.to_string());
    };
    match told.code().code() {
        "MD001" => Error::ObjectDead(ObjectKey(uuid::Uuid::nil())),
        "MD002" => Error::UnknownLog,
        "MD003" => Error::OffsetOutOfRange(-1),
        "MD004" => Error::SourcesChanged,
        "MD005" => Error::TopicExists(String::new()),
        code => match code.get(..2) {
            // Connection, serialization and deadlock, resources, operator, system.
            Some("08" | "40" | "53" | "55" | "57" | "58") => {
                Error::SequencerAway(told.message().to_owned())
            }
            _ => Error::Refused(format!("{} ({code})", told.message())),
        },
    }
}

impl Error {
    /// With the key that was asked for.
    pub(super) fn of_object(self, key: ObjectKey) -> Self {
        if matches!(self, Self::ObjectDead(_)) { Self::ObjectDead(key) } else { self }
    }

    /// With the offset that was asked for.
    pub(super) fn of_offset(self, offset: i64) -> Self {
        if matches!(self, Self::OffsetOutOfRange(_)) { Self::OffsetOutOfRange(offset) } else { self }
    }

    /// With the name that was asked for.
    pub(super) fn of_topic(self, name: &str) -> Self {
        if matches!(self, Self::TopicExists(_)) { Self::TopicExists(name.to_owned()) } else { self }
    }
}
