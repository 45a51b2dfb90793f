//! Requests to the owner of the log of frames, in PostgreSQL.

use bytes::Bytes;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::Answer;
use crate::frames::Asked;
use crate::requests::{Fate, Requests};

use super::{Postgres, value};

impl Requests for Postgres {
    fn ask(&self, requests: Vec<(Uuid, Bytes)>) -> Asked<'_, ()> {
        Box::pin(async move {
            let (ids, requests) = columns(&requests);
            self.query(ASK, &[&ids, &requests]).await.map(drop)
        })
    }

    fn take(&self, epoch: i64) -> Asked<'_, Vec<(Uuid, Bytes)>> {
        Box::pin(async move {
            let rows = self.query(TAKE, &[&epoch]).await?;
            let taken = |row: &Row| Ok((value(row, 0)?, Bytes::from(value::<Vec<u8>>(row, 1)?)));
            rows.iter().map(taken).collect()
        })
    }

    fn answer(&self, answers: Vec<(Uuid, Bytes)>) -> Asked<'_, ()> {
        Box::pin(async move {
            let (ids, answers) = columns(&answers);
            self.query(ANSWER, &[&ids, &answers]).await.map(drop)
        })
    }

    fn look(&self, ids: Vec<Uuid>) -> Asked<'_, Vec<(Uuid, Fate)>> {
        Box::pin(async move { self.query(LOOK, &[&ids]).await?.iter().map(fate).collect() })
    }

    fn forget(&self, ids: Vec<Uuid>) -> Asked<'_, ()> {
        Box::pin(async move {
            let text = "delete from moldau.requests where id = any($1)";
            self.query(text, &[&ids]).await.map(drop)
        })
    }
}

fn columns(rows: &[(Uuid, Bytes)]) -> (Vec<Uuid>, Vec<&[u8]>) {
    rows.iter().map(|(id, bytes)| (*id, bytes.as_ref())).unzip()
}

fn fate(row: &Row) -> Answer<(Uuid, Fate)> {
    let answer: Option<Vec<u8>> = value(row, 1)?;
    let fate = match answer {
        Some(answer) => {
            Fate::Answered { answer: Bytes::from(answer), next_sequence: value(row, 2)? }
        }
        None => Fate::Unknown,
    };
    Ok((value(row, 0)?, fate))
}

const ASK: &str = "
    insert into moldau.requests (id, request)
    select u.id, u.request from unnest($1::uuid[], $2::bytea[]) with ordinality
        as u (id, request, i) order by u.i
    on conflict (id) do nothing";

/// Nobody waits for what was asked a minute ago. The row of one that was taken then may be answered
/// still, so it is removed later.
const TAKE: &str = "
    with old as (
        delete from moldau.requests where asked_at < clock_timestamp() - interval '2 minutes'),
    taken as (
        update moldau.requests r set epoch = $1
        where r.place in (
            select w.place from moldau.requests w, moldau.frame_log l
            where l.epoch = $1 and (w.epoch is null or (w.epoch = $1 and w.answer is null))
                and w.asked_at > clock_timestamp() - interval '1 minute'
            order by w.place limit 100)
        returning r.place, r.id, r.request)
    select t.id, t.request from taken t order by t.place";

const ANSWER: &str = "
    update moldau.requests r set answer = u.answer, next_sequence = l.next_sequence
    from unnest($1::uuid[], $2::bytea[]) as u (id, answer), moldau.frame_log l
    where r.id = u.id";

const LOOK: &str = "
    select r.id, r.answer, r.next_sequence from moldau.requests r, moldau.frame_log l
    where r.id = any($1) and (r.answer is not null or r.epoch <> l.epoch)
    order by r.place";
