//! What an operator wants to know of a cluster.

use tokio_postgres::Row;

use crate::frames::{BrokerRow, Frames, Owner};
use crate::{Answer, Error};

use super::{Postgres, value};

/// Figures of a cluster. None of them takes a scan of the rows of all batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Id of the cluster.
    pub cluster_id: uuid::Uuid,
    /// Version of the schema.
    pub schema_version: i32,
    /// Version of PostgreSQL.
    pub server_version: String,
    /// Whether the server keeps what it has answered through a crash of its machine.
    pub is_durable: bool,
    /// Owner of the log of frames.
    pub owner: Option<Owner>,
    /// Since when, by the clock of the database (UTC).
    pub owner_since: Option<String>,
    /// Brokers that are alive.
    pub brokers: Vec<BrokerStatus>,
    /// Frames behind the snapshot.
    pub frames: i64,
    /// Topics.
    pub topics: i64,
    /// Their partitions.
    pub partitions: i64,
    /// Offsets between the start offsets and the high watermarks.
    pub offsets: i64,
    /// Bytes of batches that consumers can read.
    pub bytes: i64,
    /// Objects that rows name.
    pub objects: i64,
    /// Deleted topics whose rows are not removed yet.
    pub topics_deleted: i64,
    /// Logs with rows below their start offset.
    pub logs_unswept: i64,
    /// Transactions without a marker.
    pub transactions_open: i64,
    /// Objects that are dead, but not deleted yet.
    pub objects_dead: i64,
    /// Rows and bytes of each table, by name.
    pub tables: Vec<Table>,
}

/// A broker that is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerStatus {
    /// What clients are told of it.
    pub row: BrokerRow,
    /// Begin of its session, by the clock of the database (UTC).
    pub since: Option<String>,
}

/// A table of the sequencer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Rows, as the database estimates them.
    pub rows: i64,
    /// Bytes of the table and its indexes.
    pub bytes: i64,
}

impl Postgres {
    /// Figures of the cluster.
    ///
    /// # Errors
    /// [`Error::SequencerAway`].
    pub async fn status(&self) -> Answer<Status> {
        let rows = self.query(STATUS, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        let totals = self.query(TOTALS, &[]).await?;
        let total =
            totals.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        let tables = self.query(TABLES, &[]).await?;
        let sessions = self.query(SESSIONS, &[]).await?;
        let sessions = sessions.iter().map(session).collect::<Answer<Vec<_>>>()?;
        let since = |id: Option<i64>| {
            let found = sessions.iter().find(|session| session.broker == id);
            found.and_then(|session| session.since.clone())
        };
        let brokers = self.brokers().await?.into_iter();
        let of = |row: BrokerRow| BrokerStatus { since: since(Some(row.id.into())), row };
        let owner = self.owner().await?;
        Ok(Status {
            cluster_id: value(row, 0)?,
            schema_version: value(row, 1)?,
            server_version: value(row, 8)?,
            is_durable: value(row, 9)?,
            owner_since: owner.as_ref().and_then(|_| since(None)),
            owner,
            brokers: brokers.map(of).collect(),
            frames: value(row, 2)?,
            topics: value(row, 3)?,
            partitions: value(total, 0)?,
            offsets: value(total, 1)?,
            bytes: value(total, 2)?,
            objects: value(total, 3)?,
            topics_deleted: value(row, 4)?,
            logs_unswept: value(row, 5)?,
            transactions_open: value(row, 6)?,
            objects_dead: value(row, 7)?,
            tables: tables.iter().map(table).collect::<Answer<_>>()?,
        })
    }
}

/// A session that holds a broker id, or the log of frames.
struct SessionRow {
    broker: Option<i64>,
    since: Option<String>,
}

fn session(row: &Row) -> Answer<SessionRow> {
    Ok(SessionRow { broker: value(row, 0)?, since: value(row, 1)? })
}

fn table(row: &Row) -> Answer<Table> {
    Ok(Table { name: value(row, 0)?, rows: value(row, 1)?, bytes: value(row, 2)? })
}

/// What is counted is small, or has an index of its own.
const STATUS: &str = "
    select l.cluster_id, (select max(v.version) from moldau.schema_versions v),
        l.next_sequence - l.first_sequence,
        (select count(*) from moldau.topics t where t.name is not null),
        (select count(*) from moldau.topics t where t.name is null),
        (select count(*) from moldau.sweeps),
        (select count(*) from moldau.open_transactions),
        (select count(*) from moldau.objects o where o.live = 0 and not o.deleted),
        current_setting('server_version'),
        current_setting('fsync') = 'on' and current_setting('synchronous_commit') <> 'off'
    from moldau.frame_log l";

/// The first row of a log that consumers can read knows the bytes before it.
const TOTALS: &str = "
    select (select coalesce(sum(t.partitions), 0)::bigint from moldau.topics t
            where t.name is not null),
        coalesce(sum(l.next_offset - l.start_offset), 0)::bigint,
        coalesce(sum(l.end_bytes - f.before), 0)::bigint,
        (select count(*) from moldau.objects o where o.live > 0)
    from moldau.logs l
    join moldau.topics t on t.id = l.topic and t.name is not null
    cross join lateral (
        select b.end_bytes - b.size as before from moldau.batches b
        where b.topic = l.topic and b.partition = l.partition and b.last_offset >= l.start_offset
        order by b.last_offset limit 1) f";

/// The locks of the view `session_locks`, with the session. Whoever may not see the sessions of
/// other users gets no time.
const SESSIONS: &str = "
    select case when l.classid = 1836018789 then l.objid::bigint end,
        to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')
    from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
        and l.database = (select d.oid from pg_database d where d.datname = current_database())
        and (l.classid = 1836018789 or l.classid = 1836018788 and l.objid = 0)";

const TABLES: &str = "
    select s.relname::text, s.n_live_tup, pg_total_relation_size(s.relid)
    from pg_stat_user_tables s where s.schemaname = 'moldau' order by s.relname";
