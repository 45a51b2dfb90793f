//! Which objects the rows of batches name.

use tokio::sync::mpsc;
use tokio_postgres::{IsolationLevel, Row};

use crate::Error;
use crate::sequencer::{Answer, ObjectKey};

use super::link::{Pool, meaning};
use super::{Postgres, ids, value};

/// What rows of batches say of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The object.
    pub key: ObjectKey,
    /// Bytes of batches in it.
    pub bytes: i64,
    /// The least size that it can have.
    pub end: i64,
}

/// Objects that rows name, in order of their keys, as one snapshot of the database has them.
#[derive(Debug)]
pub struct NamedPages(mpsc::Receiver<Answer<Vec<Named>>>);

impl NamedPages {
    /// The next objects; none of them at the end.
    ///
    /// # Errors
    /// [`Error::SequencerAway`].
    pub async fn next(&mut self) -> Answer<Vec<Named>> {
        let page = self.0.recv().await;
        page.unwrap_or_else(|| Err(Error::SequencerAway("the list has no end".into())))
    }
}

impl Postgres {
    /// Objects that rows name. The database reads all rows of batches for that, and keeps what is
    /// sorted on its disk; no more than two pages are here at a time.
    #[must_use]
    pub fn named(&self) -> NamedPages {
        let (pages, taken) = mpsc::channel(1);
        let pool = self.pool.clone();
        tokio::spawn(async move {
            if let Err(error) = send_pages(&pool, &pages).await {
                // Nobody may listen any more.
                drop(pages.send(Err(error)).await);
            }
        });
        NamedPages(taken)
    }

    /// Those keys that the database knows, and whether rows name them.
    ///
    /// # Errors
    /// [`Error::SequencerAway`].
    pub async fn known(&self, keys: &[ObjectKey]) -> Answer<Vec<(ObjectKey, bool)>> {
        let text = "select key, live > 0 from moldau.objects where key = any ($1)";
        let rows = self.query(text, &[&ids(keys)]).await?;
        rows.iter().map(|row| Ok((ObjectKey(value(row, 0)?), value(row, 1)?))).collect()
    }
}

/// Pages, and an empty one at the end. A sort of all rows has no time limit.
async fn send_pages(pool: &Pool, pages: &mpsc::Sender<Answer<Vec<Named>>>) -> Answer<()> {
    let (mut client, traffic) = pool.open_session().await?;
    let told = |error: tokio_postgres::Error| meaning(&error);
    let send = async {
        let transaction = client.build_transaction().read_only(true);
        let transaction = transaction.isolation_level(IsolationLevel::RepeatableRead);
        let transaction = transaction.start().await.map_err(told)?;
        let portal = transaction.bind(NAMED, &[]).await.map_err(told)?;
        loop {
            let rows = transaction.query_portal(&portal, PAGE).await.map_err(told)?;
            let page: Vec<Named> = rows.iter().map(named).collect::<Answer<_>>()?;
            let is_end = page.is_empty();
            if pages.send(Ok(page)).await.is_err() || is_end {
                return Ok(());
            }
        }
    };
    tokio::select! {
        sent = send => sent,
        _ = traffic => Err(Error::SequencerAway("the connection ended".into())),
    }
}

fn named(row: &Row) -> Answer<Named> {
    Ok(Named { key: ObjectKey(value(row, 0)?), bytes: value(row, 1)?, end: value(row, 2)? })
}

/// Rows below a start offset count: until they are swept they keep their object.
const NAMED: &str = "
    select b.object, sum(b.size)::bigint, max(b.position + b.size)::bigint
    from moldau.batches b group by b.object order by b.object";
const PAGE: i32 = 1_000;
