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
    /// Owner of the log of frames.
    pub owner: Option<Owner>,
    /// Brokers that are alive.
    pub brokers: Vec<BrokerRow>,
    /// Frames behind the snapshot.
    pub frames: i64,
    /// Topics.
    pub topics: i64,
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
        let tables = self.query(TABLES, &[]).await?;
        Ok(Status {
            cluster_id: value(row, 0)?,
            schema_version: value(row, 1)?,
            owner: self.owner().await?,
            brokers: self.brokers().await?,
            frames: value(row, 2)?,
            topics: value(row, 3)?,
            topics_deleted: value(row, 4)?,
            logs_unswept: value(row, 5)?,
            transactions_open: value(row, 6)?,
            objects_dead: value(row, 7)?,
            tables: tables.iter().map(table).collect::<Answer<_>>()?,
        })
    }
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
        (select count(*) from moldau.objects o where o.live = 0 and not o.deleted)
    from moldau.frame_log l";

const TABLES: &str = "
    select s.relname::text, s.n_live_tup, pg_total_relation_size(s.relid)
    from pg_stat_user_tables s where s.schemaname = 'moldau' order by s.relname";
