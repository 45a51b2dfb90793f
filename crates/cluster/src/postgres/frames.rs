//! The log of frames in PostgreSQL.

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::frames::{Asked, BrokerRow, Frame, Frames, Owner, Ownership, Registration, Session};
use crate::{Answer, Error};

use super::session::Opening;
use super::{Postgres, value};

impl Postgres {
    /// Begins a session that holds what one statement locks.
    async fn session(
        &self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Answer<(Vec<Row>, Session)> {
        let begin =
            async move { Opening::of(&self.pool).await?.lock(&self.pool, text, values).await };
        self.database.observe("begin a session", Box::pin(begin)).await
    }
}

impl Frames for Postgres {
    fn claim<'a>(&'a self, broker: i32, address: &'a str) -> Asked<'a, Option<Ownership>> {
        Box::pin(async move {
            let text = "select * from moldau.claim_frames($1, $2)";
            let (rows, session) = self.session(text, &[&broker, &address]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(Some(Ownership::of(value(row, 0)?, value(row, 1)?, session)))
        })
    }

    fn append(&self, epoch: i64, first_sequence: i64, frames: Vec<Bytes>) -> Asked<'_, ()> {
        Box::pin(async move {
            let frames: Vec<&[u8]> = frames.iter().map(AsRef::as_ref).collect();
            let text = "select moldau.append_frames($1, $2, $3)";
            self.query(text, &[&epoch, &first_sequence, &frames]).await.map(drop)
        })
    }

    fn read(&self, from: i64, bytes_max: usize) -> Asked<'_, Vec<Frame>> {
        Box::pin(async move {
            let most = i64::try_from(bytes_max.max(1)).unwrap_or(i64::MAX);
            let rows = self.query(READ, &[&from, &most]).await?;
            if let Some(row) = rows.first() {
                let by: i64 = value(row, 0)?;
                if from < by {
                    return Err(Error::FramesReplaced { by });
                }
            }
            rows.iter().filter_map(|row| frame(row).transpose()).collect()
        })
    }

    fn owner(&self) -> Asked<'_, Option<Owner>> {
        Box::pin(async move {
            let rows = self.query(OWNER, &[]).await?;
            let owner = |row: &Row| {
                Ok(Owner { broker: value(row, 0)?, epoch: value(row, 1)?, address: value(row, 2)? })
            };
            rows.first().map(owner).transpose()
        })
    }

    fn put_snapshot(&self, epoch: i64, sequence: i64, bytes: Bytes) -> Asked<'_, ()> {
        Box::pin(async move {
            let text = "select moldau.put_frame_snapshot($1, $2, $3)";
            self.query(text, &[&epoch, &sequence, &bytes.as_ref()]).await.map(drop)
        })
    }

    fn snapshot(&self) -> Asked<'_, Option<(i64, Bytes)>> {
        Box::pin(async move {
            let text = "select sequence, bytes from moldau.frame_snapshots
                order by sequence desc limit 1";
            let rows = self.query(text, &[]).await?;
            let snapshot = |row: &Row| Ok((value(row, 0)?, Bytes::from(value::<Vec<u8>>(row, 1)?)));
            rows.first().map(snapshot).transpose()
        })
    }

    fn cluster_id(&self) -> Asked<'_, Uuid> {
        Box::pin(self.one("select cluster_id from moldau.frame_log", &[]))
    }

    fn register(&self, broker: BrokerRow) -> Asked<'_, Registration> {
        Box::pin(async move {
            let BrokerRow { id, host, port, rack } = broker;
            let text = "select moldau.register($1, $2, $3, $4)";
            let values: [&(dyn ToSql + Sync); 4] = [&id, &host, &i32::from(port), &rack];
            let (rows, session) = self.session(text, &values).await?;
            let is_registered = rows.first().is_some_and(|row| matches!(row.try_get(0), Ok(true)));
            if is_registered {
                Ok(Registration::of(session))
            } else {
                Err(Error::BrokerIdTaken(id))
            }
        })
    }

    fn brokers(&self) -> Asked<'_, Vec<BrokerRow>> {
        Box::pin(async move {
            let rows = self.query(BROKERS, &[]).await?;
            rows.iter().map(broker).collect()
        })
    }
}

/// None in the row of a log that has nothing more.
fn frame(row: &Row) -> Answer<Option<Frame>> {
    let sequence: Option<i64> = value(row, 1)?;
    let Some(sequence) = sequence else { return Ok(None) };
    Ok(Some(Frame { sequence, bytes: Bytes::from(value::<Vec<u8>>(row, 2)?) }))
}

fn broker(row: &Row) -> Answer<BrokerRow> {
    let port: i32 = value(row, 2)?;
    let port = u16::try_from(port).map_err(|_| Error::Refused(format!("port {port}")))?;
    Ok(BrokerRow { id: value(row, 0)?, host: value(row, 1)?, port, rack: value(row, 3)? })
}

/// One statement, so the first sequence and the frames belong together. The sum is of the frames
/// before, so there is at least one; the limit bounds the sums.
const READ: &str = "
    select l.first_sequence, f.sequence, f.bytes
    from moldau.frame_log l
    left join (
        select w.sequence, w.bytes,
            sum(octet_length(w.bytes)) over (order by w.sequence) - octet_length(w.bytes) as before
        from (select * from moldau.frames where sequence >= $1 order by sequence limit 10000) w
    ) f on f.before < $2
    order by f.sequence";

const OWNER: &str = "
    select l.broker, l.epoch, l.address from moldau.frame_log l
    where l.epoch > 0 and exists (
        select from moldau.session_locks s where s.class = 1836018788 and s.id = 0)";

const BROKERS: &str = "
    select b.id, b.host, b.port, b.rack from moldau.brokers b
    where b.id in (select s.id from moldau.session_locks s where s.class = 1836018789)
    order by b.id";
