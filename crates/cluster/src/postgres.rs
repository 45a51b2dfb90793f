//! The sequencer in PostgreSQL. Each request is one statement, so a lost connection leaves nothing
//! half done.

mod address;
mod arrays;
mod database;
mod frames;
mod keeper;
mod link;
mod naming;
mod place;
mod requests;
mod schema;
mod session;
mod status;
mod telling;
mod tls;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::Error;
use crate::sequencer::{
    AbortedTransaction, Answer, Commit, ExpiredProducers, Extent, Find, Found, LogId, LogProducer,
    ObjectKey, OpenTransaction, Outcome, ProducerPlace, Refusal, Retention, Sequencer, Swap, Topic,
};
use crate::wakes::Wakes;

use self::address::Address;
use self::arrays::{BatchArrays, ExtentArrays, LogArrays};
use self::link::Pool;

pub use self::database::Database;
pub use self::naming::{Named, NamedPages};
pub use self::status::{BrokerStatus, Status, Table};
pub use self::telling::Telling;

/// Where the database is.
#[derive(Clone)]
pub struct Settings {
    /// A connection string or URL with libpq's parameters, as far as they are supported.
    pub connection: String,
    /// What the sessions are called in the database, if the connection string says nothing else.
    pub application_name: String,
    /// Most connections at a time.
    pub connections_max: usize,
    /// A request without an answer for this long is in doubt.
    pub timeout: Duration,
}

impl Settings {
    /// Whether the connection string can be used. Reads the files that it names.
    ///
    /// # Errors
    /// [`Error::Settings`], without the text of a value.
    pub fn check(&self) -> Answer<()> {
        Address::parse(&self.connection, &self.application_name).map(drop)
    }
}

/// A sequencer in PostgreSQL.
#[derive(Clone)]
pub struct Postgres {
    pool: Arc<Pool>,
    database: Arc<Database>,
    /// Guards the generation of keys, and when it was asked for.
    generation: Arc<Mutex<Option<(u32, Instant)>>>,
}

impl Postgres {
    /// Creates or migrates the schema, and returns the number of steps that this took. Brokers of
    /// the version before go on meanwhile.
    ///
    /// # Errors
    /// [`Error::Settings`], [`Error::SequencerAway`], [`Error::DatabaseTooOld`],
    /// [`Error::DatabaseRefused`], [`Error::SchemaVersion`] of a newer program.
    pub async fn migrate(settings: &Settings) -> Answer<usize> {
        schema::migrate(&Pool::new(settings)?).await
    }

    /// Connects to a database that has the schema.
    ///
    /// # Errors
    /// [`Error::Settings`], [`Error::SequencerAway`], [`Error::SchemaVersion`].
    pub async fn connect(settings: &Settings) -> Answer<Self> {
        let pool = Pool::new(settings)?;
        schema::check(&pool).await?;
        let database = Arc::new(Database::new(settings.connections_max));
        Ok(Self { pool: Arc::new(pool), database, generation: Arc::default() })
    }

    /// What the requests to the database show.
    #[must_use]
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Tells other brokers what this one announces, and wakes its reads for what they tell, over
    /// one more connection. While that is lost, reads poll.
    #[must_use]
    pub fn tell(&self, wakes: Arc<Wakes>) -> Telling {
        telling::start(self.pool.clone(), wakes)
    }

    async fn query(&self, text: &'static str, values: &[&(dyn ToSql + Sync)]) -> Answer<Vec<Row>> {
        // Boxed, as opening a connection makes the future large.
        self.database.query(Box::pin(self.pool.query(text, values))).await
    }

    async fn one<T>(&self, text: &'static str, values: &[&(dyn ToSql + Sync)]) -> Answer<T>
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        let rows = self.query(text, values).await?;
        let row = rows.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        value(row, 0)
    }
}

impl Sequencer for Postgres {
    async fn commit(&self, commit: &Commit) -> Answer<Vec<Outcome>> {
        let a = BatchArrays::of(&commit.batches);
        let rows = self
            .query(
                "select * from moldau.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                    $13, $14)",
                &[
                    &commit.key.0,
                    &a.logs.topics,
                    &a.logs.partitions,
                    &a.leader_epochs,
                    &a.positions,
                    &a.sizes,
                    &a.counts,
                    &a.timestamps,
                    &a.producers,
                    &a.producer_epochs,
                    &a.first_sequences,
                    &a.last_sequences,
                    &a.parts,
                    &a.decisions,
                ],
            )
            .await
            .map_err(|error| error.of_object(commit.key))?;
        if rows.len() != commit.batches.len() {
            return Err(Error::Refused("the key was used for other batches".into()));
        }
        rows.iter().map(outcome).collect()
    }

    async fn find(&self, wanted: &[Find]) -> Answer<Vec<Option<Found>>> {
        let logs = LogArrays::of(wanted.iter().map(|find| find.log));
        let offsets: Vec<i64> = wanted.iter().map(|find| find.offset).collect();
        let most: Vec<i64> = wanted.iter().map(|find| find.extents_max).collect();
        let rows = self.query(FIND, &[&logs.topics, &logs.partitions, &offsets, &most]).await?;
        let mut found: Vec<Option<Found>> = wanted.iter().map(|_| None).collect();
        for row in &rows {
            let i: i64 = value(row, 0)?;
            let slot = usize::try_from(i - 1).ok().and_then(|i| found.get_mut(i));
            let slot = slot.ok_or_else(|| Error::Refused("a row that was not asked".into()))?;
            if slot.is_none() {
                *slot = Some(Found {
                    start_offset: value(row, 1)?,
                    high_watermark: value(row, 2)?,
                    last_stable_offset: value(row, 13)?,
                    has_aborted: value(row, 14)?,
                    leader: value(row, 3)?,
                    leader_epoch: value(row, 4)?,
                    extents: Vec::new(),
                });
            }
            let object: Option<Uuid> = value(row, 7)?;
            if let (Some(found), Some(_)) = (slot, object) {
                found.extents.push(extent(row, 5)?);
            }
        }
        Ok(found)
    }

    async fn find_time(&self, log: LogId, timestamp: i64) -> Answer<Option<Extent>> {
        let rows = self.query(FIND_TIME, &[&log.topic, &log.partition, &timestamp]).await?;
        rows.first().map(|row| extent(row, 0)).transpose()
    }

    async fn find_latest(&self, log: LogId) -> Answer<Option<Extent>> {
        let rows = self.query(FIND_LATEST, &[&log.topic, &log.partition]).await?;
        rows.first().map(|row| extent(row, 0)).transpose()
    }

    async fn aborted(&self, log: LogId, from: i64, to: i64) -> Answer<Vec<AbortedTransaction>> {
        let rows = self.query(ABORTED, &[&log.topic, &log.partition, &from, &to]).await?;
        let start: i64 = value(rows.first().ok_or(Error::UnknownLog)?, 0)?;
        if from < start {
            return Err(Error::OffsetOutOfRange(from));
        }
        let mut aborted = Vec::new();
        for row in &rows {
            let producer_id: Option<i64> = value(row, 1)?;
            if let Some(producer_id) = producer_id {
                let (first_offset, last_offset) = (value(row, 2)?, value(row, 3)?);
                aborted.push(AbortedTransaction { producer_id, first_offset, last_offset });
            }
        }
        Ok(aborted)
    }

    async fn producers(&self, log: LogId) -> Answer<Vec<LogProducer>> {
        let rows = self.query(PRODUCERS, &[&log.topic, &log.partition]).await?;
        if rows.is_empty() {
            return Err(Error::UnknownLog);
        }
        rows.iter().filter_map(|row| producer(row).transpose()).collect()
    }

    async fn expire_producers(
        &self,
        after: Option<ProducerPlace>,
        age: Duration,
        producers_max: i32,
    ) -> Answer<ExpiredProducers> {
        let after = after.unwrap_or(ProducerPlace {
            log: LogId { topic: Uuid::nil(), partition: i32::MIN },
            producer_id: i64::MIN,
        });
        let ProducerPlace { log: LogId { topic, partition }, producer_id } = after;
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let text = "select * from moldau.expire_producers($1, $2, $3, $4, $5)";
        let arguments: [&(dyn ToSql + Sync); 5] =
            [&topic, &partition, &producer_id, &age, &producers_max];
        let rows = self.query(text, &arguments).await?;
        let Some(row) = rows.first() else {
            return Ok(ExpiredProducers { last: None, forgotten: 0 });
        };
        let log = LogId { topic: value(row, 0)?, partition: value(row, 1)? };
        let last = ProducerPlace { log, producer_id: value(row, 2)? };
        Ok(ExpiredProducers { last: Some(last), forgotten: value(row, 3)? })
    }

    async fn fence(&self, producer_id: i64, epoch: i16) -> Answer<Vec<LogId>> {
        let text = "select * from moldau.fence($1, $2)";
        let rows = self.query(text, &[&producer_id, &epoch]).await?;
        let log = |row: &Row| Ok(LogId { topic: value(row, 0)?, partition: value(row, 1)? });
        rows.iter().map(log).collect()
    }

    async fn fences(&self, after: Option<i64>, producers_max: i64) -> Answer<Vec<i64>> {
        let text = "select producer_id from moldau.fences where producer_id > $1
            order by producer_id limit $2";
        let after = after.unwrap_or(i64::MIN);
        let rows = self.query(text, &[&after, &producers_max]).await?;
        rows.iter().map(|row| value(row, 0)).collect()
    }

    async fn remove_fences(&self, producers: &[i64]) -> Answer<()> {
        // In the order of all others, so that two requests never wait for one another.
        let text = "delete from moldau.fences f using (
                select g.producer_id from moldau.fences g where g.producer_id = any ($1)
                order by g.producer_id for update) d
            where f.producer_id = d.producer_id";
        self.query(text, &[&producers]).await.map(drop)
    }

    async fn open_transactions(
        &self,
        after: Option<OpenTransaction>,
        transactions_max: i64,
    ) -> Answer<Vec<OpenTransaction>> {
        let after = after.unwrap_or(OpenTransaction {
            producer_id: i64::MIN,
            log: LogId { topic: Uuid::nil(), partition: 0 },
        });
        let OpenTransaction { producer_id, log: LogId { topic, partition } } = after;
        let arguments: [&(dyn ToSql + Sync); 4] =
            [&producer_id, &topic, &partition, &transactions_max];
        let rows = self.query(OPEN_TRANSACTIONS, &arguments).await?;
        let open = |row: &Row| {
            let log = LogId { topic: value(row, 1)?, partition: value(row, 2)? };
            Ok(OpenTransaction { producer_id: value(row, 0)?, log })
        };
        rows.iter().map(open).collect()
    }

    async fn sizes(&self, logs: &[LogId]) -> Answer<Vec<Option<i64>>> {
        let arrays = LogArrays::of(logs.iter().copied());
        let rows = self.query(SIZES, &[&arrays.topics, &arrays.partitions]).await?;
        if rows.len() != logs.len() {
            return Err(Error::Refused("rows that were not asked".into()));
        }
        rows.iter().map(|row| value(row, 0)).collect()
    }

    async fn trim(&self, log: LogId, before: i64) -> Answer<i64> {
        let text = "select moldau.trim($1, $2, $3)";
        self.one(text, &[&log.topic, &log.partition, &before])
            .await
            .map_err(|error| error.of_offset(before))
    }

    async fn retain(&self, log: LogId, keep: Retention) -> Answer<i64> {
        let text = "select moldau.retain($1, $2, $3, $4)";
        let Retention { before_timestamp, bytes } = keep;
        self.one(text, &[&log.topic, &log.partition, &before_timestamp, &bytes]).await
    }

    async fn sweep(&self, extents_max: i32) -> Answer<bool> {
        self.one("select moldau.sweep($1)", &[&extents_max]).await
    }

    async fn unsorted(&self, objects_max: i64) -> Answer<Vec<(LogId, Extent)>> {
        let rows = self.query(UNSORTED, &[&objects_max]).await?;
        let found = |row: &Row| {
            let log = LogId { topic: value(row, 0)?, partition: value(row, 1)? };
            Ok((log, extent(row, 2)?))
        };
        rows.iter().map(found).collect()
    }

    async fn swap(&self, swap: &Swap) -> Answer<()> {
        let (old, new) = (ExtentArrays::of(&swap.sources), ExtentArrays::of(&swap.targets));
        let text = "select moldau.swap($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        self.query(
            text,
            &[
                &swap.key.0,
                &old.logs.topics,
                &old.logs.partitions,
                &old.lasts,
                &old.objects,
                &new.logs.topics,
                &new.logs.partitions,
                &new.bases,
                &new.lasts,
                &new.positions,
                &new.sizes,
                &new.leader_epochs,
                &new.timestamps,
            ],
        )
        .await
        .map_err(|error| error.of_object(swap.key))?;
        Ok(())
    }

    async fn condemn(&self, keys: &[ObjectKey]) -> Answer<Vec<ObjectKey>> {
        keys_of(&self.query("select * from moldau.condemn($1)", &[&ids(keys)]).await?)
    }

    async fn dead(&self, keys_max: i64) -> Answer<Vec<ObjectKey>> {
        let text = "select key from moldau.objects where live = 0 and not deleted
            order by key limit $1";
        keys_of(&self.query(text, &[&keys_max]).await?)
    }

    async fn forget(&self, keys: &[ObjectKey]) -> Answer<()> {
        self.query("select moldau.forget_keys($1)", &[&ids(keys)]).await.map(drop)
    }

    async fn generation(&self) -> Answer<u32> {
        let known = *self.generation.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((generation, asked)) = known
            && asked.elapsed() < GENERATION_AGE_MAX
        {
            return Ok(generation);
        }
        let current: i64 = self.one("select current from moldau.generations", &[]).await?;
        let generation = u32::try_from(current).unwrap_or(u32::MAX);
        *self.generation.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((generation, Instant::now()));
        Ok(generation)
    }

    async fn begin_generation(&self, age: Duration) -> Answer<()> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        self.query("select moldau.begin_generation($1)", &[&age]).await.map(drop)
    }

    async fn remove_keys(&self, keys_max: i32) -> Answer<bool> {
        self.one("select moldau.remove_keys($1)", &[&keys_max]).await
    }

    async fn create_topic(&self, topic: &Topic) -> Answer<()> {
        let text = "select moldau.create_topic($1, $2, $3)";
        self.query(text, &[&topic.id, &topic.name, &topic.partitions])
            .await
            .map(drop)
            .map_err(|error| error.of_topic(&topic.name))
    }

    async fn grow_topic(&self, id: Uuid, partitions: i32) -> Answer<i32> {
        self.one("select moldau.grow_topic($1, $2)", &[&id, &partitions]).await
    }

    async fn delete_topic(&self, id: Uuid) -> Answer<()> {
        self.query("select moldau.delete_topic($1)", &[&id]).await.map(drop)
    }

    async fn topics(&self) -> Answer<Vec<Topic>> {
        let text = "select id, name, partitions from moldau.topics
            where name is not null order by id";
        let rows = self.query(text, &[]).await?;
        let topic = |row: &Row| {
            Ok(Topic { id: value(row, 0)?, name: value(row, 1)?, partitions: value(row, 2)? })
        };
        rows.iter().map(topic).collect()
    }

    async fn move_logs(&self, logs: &[LogId], leader: i32) -> Answer<i32> {
        let logs = LogArrays::of(logs.iter().copied());
        let text = "select moldau.move($1, $2, $3)";
        self.one(text, &[&logs.topics, &logs.partitions, &leader]).await
    }
}

fn value<'a, T: tokio_postgres::types::FromSql<'a>>(row: &'a Row, i: usize) -> Answer<T> {
    row.try_get(i).map_err(|error| Error::Refused(error.to_string()))
}

fn outcome(row: &Row) -> Answer<Outcome> {
    let code: i16 = value(row, 0)?;
    let (base_offset, start_offset) = (value(row, 1)?, value(row, 2)?);
    Ok(match code {
        0 => Outcome::Appended { base_offset, start_offset },
        46 => Outcome::Duplicate { base_offset, start_offset },
        3 => Outcome::Refused(Refusal::UnknownTopicOrPartition),
        45 => Outcome::Refused(Refusal::OutOfOrderSequenceNumber),
        48 => Outcome::Refused(Refusal::InvalidTxnState),
        47 => Outcome::Refused(Refusal::InvalidProducerEpoch),
        74 => Outcome::Refused(Refusal::FencedLeaderEpoch),
        76 => Outcome::Refused(Refusal::UnknownLeaderEpoch),
        other => return Err(Error::Refused(format!("an unknown code {other}"))),
    })
}

fn extent(row: &Row, from: usize) -> Answer<Extent> {
    Ok(Extent {
        base_offset: value(row, from)?,
        last_offset: value(row, from + 1)?,
        object: ObjectKey(value(row, from + 2)?),
        position: value(row, from + 3)?,
        size: value(row, from + 4)?,
        leader_epoch: value(row, from + 5)?,
        sorted: value(row, from + 6)?,
        max_timestamp: value(row, from + 7)?,
    })
}

/// None in the row of a log without producers.
fn producer(row: &Row) -> Answer<Option<LogProducer>> {
    let id: Option<i64> = value(row, 0)?;
    let Some(id) = id else { return Ok(None) };
    let last_sequence: i64 = value(row, 2)?;
    Ok(Some(LogProducer {
        id,
        epoch: value(row, 1)?,
        last_sequence: i32::try_from(last_sequence)
            .map_err(|_| Error::Refused(format!("sequence {last_sequence}")))?,
        last_timestamp: value(row, 3)?,
        transaction_start: value(row, 4)?,
    }))
}

fn ids(keys: &[ObjectKey]) -> Vec<Uuid> {
    keys.iter().map(|key| key.0).collect()
}

fn keys_of(rows: &[Row]) -> Answer<Vec<ObjectKey>> {
    rows.iter().map(|row| value(row, 0).map(ObjectKey)).collect()
}

/// A fraction of the time that a generation lasts.
const GENERATION_AGE_MAX: Duration = Duration::from_secs(60);
/// One statement, so one snapshot: the high watermark and the extents belong together.
const FIND: &str = "
    select w.i, coalesce(l.start_offset, 0), coalesce(l.next_offset, 0), l.leader,
        coalesce(l.leader_epoch, 0), b.base_offset, b.last_offset, b.object, b.position, b.size,
        b.leader_epoch, b.sorted, b.max_timestamp,
        greatest(coalesce(l.start_offset, 0),
            coalesce(moldau.first_open(w.topic, w.partition), l.next_offset, 0)),
        exists (select from moldau.aborted_transactions a
            where a.topic = w.topic and a.partition = w.partition
                and a.last_offset >= greatest(w.wanted, l.start_offset))
    from unnest($1::uuid[], $2::integer[], $3::bigint[], $4::bigint[]) with ordinality
        as w (topic, partition, wanted, most, i)
    join moldau.topics t on t.id = w.topic and t.name is not null
        and w.partition >= 0 and w.partition < t.partitions
    left join moldau.logs l on l.topic = w.topic and l.partition = w.partition
    left join lateral (
        select c.* from moldau.batches c
        where c.topic = w.topic and c.partition = w.partition and c.last_offset >= w.wanted
            and w.wanted >= l.start_offset and w.wanted < l.next_offset
        order by c.last_offset limit w.most) b on true
    order by w.i, b.last_offset";

const UNSORTED: &str = "
    select b.topic, b.partition, b.base_offset, b.last_offset, b.object, b.position, b.size,
        b.leader_epoch, b.sorted, b.max_timestamp
    from (select o.key, o.sequence from moldau.objects o
        where o.live > 0 and cardinality(o.codes) > 0 order by o.sequence limit $1) u
    join moldau.batches b on b.object = u.key and not b.sorted
    join moldau.logs l on l.topic = b.topic and l.partition = b.partition
    join moldau.topics t on t.id = b.topic and t.name is not null
    where b.last_offset >= l.start_offset
    order by u.sequence, b.topic, b.partition, b.last_offset";

/// The peak is the greatest timestamp up to an extent, so the first with it holds the answer,
/// unless that was trimmed.
const FIND_TIME: &str = "
    select b.base_offset, b.last_offset, b.object, b.position, b.size, b.leader_epoch, b.sorted,
        b.max_timestamp
    from moldau.batches b
    join moldau.logs l on l.topic = b.topic and l.partition = b.partition
    join moldau.topics t on t.id = b.topic and t.name is not null
    where b.topic = $1 and b.partition = $2 and b.peak_timestamp >= $3 and b.max_timestamp >= $3
        and b.last_offset >= l.start_offset
    order by b.peak_timestamp, b.last_offset limit 1";

/// Rows of batches have no index by their own timestamps, as this is asked rarely.
const FIND_LATEST: &str = "
    select b.base_offset, b.last_offset, b.object, b.position, b.size, b.leader_epoch, b.sorted,
        b.max_timestamp
    from moldau.batches b
    join moldau.logs l on l.topic = b.topic and l.partition = b.partition
    join moldau.topics t on t.id = b.topic and t.name is not null
    where b.topic = $1 and b.partition = $2 and b.base_offset >= l.start_offset
    order by b.max_timestamp desc, b.last_offset limit 1";

/// Transactions that end behind the range may have begun in it, up to one that ended when nothing
/// from before the end of the range was open.
const ABORTED: &str = "
    select coalesce(l.start_offset, 0), a.producer_id, a.first_offset, a.last_offset
    from moldau.topics t
    left join moldau.logs l on l.topic = t.id and l.partition = $2
    left join lateral (
        select c.* from moldau.aborted_transactions c
        where c.topic = $1 and c.partition = $2 and c.last_offset >= $3 and c.first_offset < $4
            and c.last_offset <= coalesce((
                select z.last_offset from moldau.aborted_transactions z
                where z.topic = $1 and z.partition = $2 and z.last_offset >= $4
                    and z.first_open >= $4
                order by z.last_offset limit 1), 9223372036854775807)
    ) a on true
    where t.id = $1 and t.name is not null and $2 >= 0 and $2 < t.partitions
    order by a.first_offset";

const PRODUCERS: &str = "
    select p.producer_id, p.epoch, coalesce(p.marks[cardinality(p.marks) - 1], -1),
        p.last_timestamp, o.first_offset
    from moldau.topics t
    left join moldau.producers p on p.topic = t.id and p.partition = $2
    left join moldau.open_transactions o
        on o.topic = t.id and o.partition = $2 and o.producer_id = p.producer_id
    where t.id = $1 and t.name is not null and $2 >= 0 and $2 < t.partitions
    order by p.producer_id";

const OPEN_TRANSACTIONS: &str = "
    select o.producer_id, o.topic, o.partition
    from moldau.open_transactions o
    join moldau.topics t on t.id = o.topic and t.name is not null
    where (o.producer_id, o.topic, o.partition) > ($1, $2, $3)
    order by o.producer_id, o.topic, o.partition limit $4";

/// Rows of batches know the bytes of the log up to them.
const SIZES: &str = "
    select case when t.id is null then null else coalesce(l.end_bytes - (
        select b.end_bytes - b.size from moldau.batches b
        where b.topic = l.topic and b.partition = l.partition and b.last_offset >= l.start_offset
        order by b.last_offset limit 1), 0) end
    from unnest($1::uuid[], $2::integer[]) with ordinality as w (topic, partition, i)
    left join moldau.topics t on t.id = w.topic and t.name is not null
        and w.partition >= 0 and w.partition < t.partitions
    left join moldau.logs l on l.topic = w.topic and l.partition = w.partition
    order by w.i";
