//! Connections, and what their errors mean.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_postgres::error::DbError;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use crate::{Answer, Error, ObjectKey};

use super::Settings;
use super::address::{Address, Traffic};
use super::keeper::Keeper;

/// Connections that are kept between requests.
pub(super) struct Pool {
    address: Address,
    pub(super) keeper: Keeper,
    pub(super) timeout: Duration,
    /// One permit per connection.
    room: Semaphore,
    /// Guards the list of connections without a request.
    idle: Mutex<Vec<Connection>>,
}

/// A connection with the statements that it has prepared.
pub(super) struct Connection {
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Pool {
    pub(super) fn new(settings: &Settings) -> Answer<Self> {
        let address = Address::parse(&settings.connection, &settings.application_name)?;
        let room = Semaphore::new(settings.connections_max.clamp(1, Semaphore::MAX_PERMITS));
        let keeper = Keeper::start()?;
        Ok(Self { address, keeper, timeout: settings.timeout, room, idle: Mutex::default() })
    }

    /// A connection whose traffic the caller drives.
    pub(super) async fn open(&self) -> Answer<(Client, Traffic)> {
        open(&self.address, self.timeout).await
    }

    /// As [`Self::open`], on the thread of sessions; a network that is cut ends the connection
    /// within seconds.
    pub(super) async fn open_session(&self) -> Answer<(Client, Traffic)> {
        let second = Duration::from_secs(1);
        let address = self.address.clone().with(|config| {
            config
                .keepalives(true)
                .keepalives_idle(second)
                .keepalives_interval(second)
                .keepalives_retries(2)
                .tcp_user_timeout(Duration::from_millis(1_500));
        });
        let within = self.timeout;
        let opened = self.keeper.spawn(async move { open(&address, within).await }).await;
        // The thread lasts as long as the pool.
        opened.unwrap_or_else(|_lost| Err(self.at(late())))
    }

    /// An error with the hosts of the database.
    pub(super) fn at(&self, error: Error) -> Error {
        error.at(self.address.place())
    }

    /// A connection of the caller's own.
    pub(super) async fn connect(&self) -> Answer<Connection> {
        let (client, traffic) = self.open().await?;
        // Ends with the client, or with an error that the next request finds as well.
        tokio::spawn(async move { drop(traffic.await) });
        Ok(Connection { client, statements: HashMap::new() })
    }

    /// Runs one prepared statement. A connection without an answer in time is closed, and the
    /// server ends its statement about then: one that waits for a lock sees no closed connection.
    pub(super) async fn query(
        &self,
        text: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Answer<Vec<Row>> {
        let room = timeout(self.timeout, self.room.acquire()).await.map_err(|_| late())?;
        let _room = room.map_err(|_| late())?;
        let ask = async {
            let mut connection = match self.kept() {
                Some(connection) => connection,
                None => {
                    let connection = self.connect().await?;
                    self.limit(&connection.client).await?;
                    connection
                }
            };
            let rows = connection.query(text, values).await;
            if !connection.client.is_closed() {
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            }
            rows.map_err(|error| self.at(meaning(&error)))
        };
        timeout(self.timeout, ask).await.unwrap_or_else(|_| Err(self.at(late())))
    }

    /// Lets the server end each statement of a session that takes as long as a request may.
    async fn limit(&self, client: &Client) -> Answer<()> {
        let milliseconds = i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX).max(1);
        let set = client.batch_execute(&format!("set statement_timeout = {milliseconds}")).await;
        set.map_err(|error| self.at(meaning(&error)))
    }

    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| !connection.client.is_closed())
    }
}

impl Connection {
    async fn query(
        &mut self,
        text: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if !self.statements.contains_key(text) {
            let statement = self.client.prepare(text).await?;
            self.statements.insert(text, statement);
        }
        self.client.query(&self.statements[text], values).await
    }
}

async fn open(address: &Address, within: Duration) -> Answer<(Client, Traffic)> {
    let connected = timeout(within, address.connect()).await;
    let connected = connected.map_err(|_| late()).and_then(|it| it.map_err(|it| meaning(&it)));
    let (client, traffic) = connected.map_err(|error| error.at(address.place()))?;
    match traffic.parameter("server_version") {
        Some(version) if is_too_old(version) => Err(Error::DatabaseTooOld(version.to_owned())),
        _ => Ok((client, traffic)),
    }
}

pub(super) fn late() -> Error {
    Error::SequencerAway("the time is over".into())
}

/// Whether a server is older than [`SERVER_MIN`]. One in between may tell no number.
fn is_too_old(version: &str) -> bool {
    let major = version.split(|c: char| !c.is_ascii_digit()).next();
    major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major < SERVER_MIN)
}

/// An error of the database. Whatever is not surely without effect counts as no answer.
pub(super) fn meaning(error: &tokio_postgres::Error) -> Error {
    let Some(told) = error.as_db_error() else {
        return Error::SequencerAway(with_causes(error));
    };
    match told.code().code() {
        "MD001" => Error::ObjectDead(ObjectKey(uuid::Uuid::nil())),
        "MD002" => Error::UnknownLog,
        "MD003" => Error::OffsetOutOfRange(-1),
        "MD004" => Error::SourcesChanged,
        "MD005" => Error::TopicExists(String::new()),
        "MD008" => Error::KeyExpired(ObjectKey(uuid::Uuid::nil())),
        "MD006" => Error::Fenced { by: detail(told) },
        "MD007" => Error::OutOfSequence { next: detail(told) },
        code => match code.get(..2) {
            // Connection, serialization and deadlock, resources, operator, system.
            Some("08" | "40" | "53" | "55" | "57" | "58") => {
                Error::SequencerAway(told.message().to_owned())
            }
            // Authorization, catalog name.
            Some("28" | "3D") => Error::DatabaseRefused(told.message().to_owned()),
            _ if code == INSUFFICIENT_PRIVILEGE => {
                Error::DatabaseRefused(told.message().to_owned())
            }
            _ => Error::Refused(format!("{} ({code})", told.message())),
        },
    }
}

/// The error of a client says little without its causes. None of them shows an address.
fn with_causes(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

/// The number that a function of ours gives with its error.
fn detail(told: &DbError) -> i64 {
    told.detail().and_then(|detail| detail.parse().ok()).unwrap_or(-1)
}

impl Error {
    /// With the hosts of the database, if it does not answer or lets nobody in.
    fn at(self, place: &str) -> Self {
        match self {
            Self::SequencerAway(text) => Self::SequencerAway(format!("{text} (at {place})")),
            Self::DatabaseRefused(text) => Self::DatabaseRefused(format!("{text} (at {place})")),
            error => error,
        }
    }

    /// With the key that was asked for.
    pub(super) fn of_object(self, key: ObjectKey) -> Self {
        match self {
            Self::ObjectDead(_) => Self::ObjectDead(key),
            Self::KeyExpired(_) => Self::KeyExpired(key),
            error => error,
        }
    }

    /// With the offset that was asked for.
    pub(super) fn of_offset(self, offset: i64) -> Self {
        if matches!(self, Self::OffsetOutOfRange(_)) {
            Self::OffsetOutOfRange(offset)
        } else {
            self
        }
    }

    /// With the name that was asked for.
    pub(super) fn of_topic(self, name: &str) -> Self {
        if matches!(self, Self::TopicExists(_)) { Self::TopicExists(name.to_owned()) } else { self }
    }
}

/// `idle_session_timeout` is as old, and grants on schemas have their present meaning.
const SERVER_MIN: u32 = 15;
const INSUFFICIENT_PRIVILEGE: &str = "42501";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_before_15_is_too_old() {
        for old in ["14.9", "9.6.24", "14.2 (Debian 14.2-1)", "13beta1"] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["15.0", "17.2 (Debian 17.2-1)", "18devel", "unknown", ""] {
            assert!(!is_too_old(new), "{new}");
        }
    }
}
