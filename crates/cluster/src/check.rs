//! Whether the store holds what the sequencer names, and what it holds beside that.
//!
//! Rows and objects are read side by side in order of their keys, so memory stays small. Brokers
//! go on meanwhile: what looks wrong is asked again before it is told.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::Error;
use crate::bucket::{Bucket, Listed};
use crate::postgres::{Named, NamedPages, Postgres};
use crate::sequencer::{Answer, ObjectKey};
use crate::store::Store;

/// What was looked at, and how much of it is wrong.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Checked {
    /// Objects that the database names.
    pub named: u64,
    /// Bytes of batches in them.
    pub named_bytes: u64,
    /// Those that the store does not have.
    pub missing: u64,
    /// Those that end before a range that the database names.
    pub short: u64,
    /// Objects of the prefix.
    pub listed: u64,
    /// Their bytes.
    pub listed_bytes: u64,
    /// Those that nothing names.
    pub unnamed: u64,
    /// Their bytes.
    pub unnamed_bytes: u64,
}

/// Something that is not as it is elsewhere.
#[derive(Debug, Clone)]
pub enum Finding {
    /// Records are lost: the store does not have an object that the database names.
    Missing(Named),
    /// Records are lost: an object has fewer bytes than the database names.
    Short(Named),
    /// Rows name the object no longer; the collector deletes it.
    Dead(Listed),
    /// No commit has named the object. It is under way, or the collector deletes it.
    Uncommitted(Listed),
    /// The name is none that a broker gives.
    Foreign(Listed),
}

/// Compares the rows of the database with the objects of the store, and tells each difference.
///
/// # Errors
/// [`Error::SequencerAway`], [`Error::StoreAway`], [`Error::StoreRefused`].
pub async fn check(
    postgres: &Postgres,
    bucket: &Bucket,
    tell: impl FnMut(Finding),
) -> Answer<Checked> {
    let mut rows = Rows { pages: postgres.named(), page: VecDeque::new(), is_over: false };
    let mut objects = Objects { bucket, page: VecDeque::new(), last: None, is_over: false };
    let checked = Checked::default();
    let mut check = Check { postgres, bucket, tell, checked, suspects: vec![], strays: vec![] };
    loop {
        match (rows.first().await?, objects.first().await?) {
            (None, None) => break,
            (Some(_), None) => check.suspect(rows.take()).await?,
            (None, Some(_)) => check.stray(objects.take()).await?,
            (Some(named), Some(listed)) => {
                match listed.key.map_or(Ordering::Greater, |key| named.key.cmp(&key)) {
                    Ordering::Less => check.suspect(rows.take()).await?,
                    Ordering::Greater => check.stray(objects.take()).await?,
                    Ordering::Equal => check.both(rows.take(), objects.take()),
                }
            }
        }
    }
    check.settle_suspects().await?;
    check.settle_strays().await?;
    Ok(check.checked)
}

struct Check<'a, T> {
    postgres: &'a Postgres,
    bucket: &'a Bucket,
    tell: T,
    checked: Checked,
    /// Named objects that the list did not show.
    suspects: Vec<Named>,
    /// Listed objects that no row named.
    strays: Vec<Listed>,
}

impl<T: FnMut(Finding)> Check<'_, T> {
    fn both(&mut self, named: Option<Named>, listed: Option<Listed>) {
        let (Some(named), Some(listed)) = (named, listed) else { return };
        self.count_named(&named);
        self.count_listed(&listed);
        if i64::try_from(listed.bytes).is_ok_and(|bytes| bytes < named.end) {
            self.short(named);
        }
    }

    async fn suspect(&mut self, named: Option<Named>) -> Answer<()> {
        let Some(named) = named else { return Ok(()) };
        self.count_named(&named);
        self.suspects.push(named);
        if self.suspects.len() < AT_A_TIME { Ok(()) } else { self.settle_suspects().await }
    }

    async fn stray(&mut self, listed: Option<Listed>) -> Answer<()> {
        let Some(listed) = listed else { return Ok(()) };
        self.count_listed(&listed);
        self.strays.push(listed);
        if self.strays.len() < AT_A_TIME { Ok(()) } else { self.settle_strays().await }
    }

    /// A list may be stale, and rows may have gone since the snapshot: the last byte tells, and
    /// then the row of the object, which outlives it.
    async fn settle_suspects(&mut self) -> Answer<()> {
        let mut absent = Vec::new();
        for named in std::mem::take(&mut self.suspects) {
            let end = u64::try_from(named.end).unwrap_or(0);
            match self.bucket.get(named.key, end.saturating_sub(1)..end).await {
                Ok(bytes) if bytes.is_empty() => self.short(named),
                Ok(_) => {}
                Err(Error::ObjectMissing(_)) => absent.push(named),
                Err(error) => return Err(error),
            }
        }
        let keys: Vec<ObjectKey> = absent.iter().map(|named| named.key).collect();
        let known = self.postgres.known(&keys).await?;
        for named in absent.into_iter().filter(|named| known.contains(&(named.key, true))) {
            self.checked.missing += 1;
            (self.tell)(Finding::Missing(named));
        }
        Ok(())
    }

    /// Some were committed since the snapshot.
    async fn settle_strays(&mut self) -> Answer<()> {
        let strays = std::mem::take(&mut self.strays);
        let keys: Vec<ObjectKey> = strays.iter().filter_map(|listed| listed.key).collect();
        let known: std::collections::HashMap<ObjectKey, bool> =
            self.postgres.known(&keys).await?.into_iter().collect();
        for listed in strays {
            let bytes = listed.bytes;
            let finding = match listed.key.map(|key| known.get(&key)) {
                None => Finding::Foreign(listed),
                Some(None) => Finding::Uncommitted(listed),
                Some(Some(false)) => Finding::Dead(listed),
                Some(Some(true)) => continue,
            };
            self.checked.unnamed += 1;
            self.checked.unnamed_bytes += bytes;
            (self.tell)(finding);
        }
        Ok(())
    }

    fn short(&mut self, named: Named) {
        self.checked.short += 1;
        (self.tell)(Finding::Short(named));
    }

    fn count_named(&mut self, named: &Named) {
        self.checked.named += 1;
        self.checked.named_bytes += u64::try_from(named.bytes).unwrap_or(0);
    }

    fn count_listed(&mut self, listed: &Listed) {
        self.checked.listed += 1;
        self.checked.listed_bytes += listed.bytes;
    }
}

/// What the database names.
struct Rows {
    pages: NamedPages,
    page: VecDeque<Named>,
    is_over: bool,
}

impl Rows {
    async fn first(&mut self) -> Answer<Option<&Named>> {
        if self.page.is_empty() && !self.is_over {
            self.page = self.pages.next().await?.into();
            self.is_over = self.page.is_empty();
        }
        Ok(self.page.front())
    }

    fn take(&mut self) -> Option<Named> {
        self.page.pop_front()
    }
}

/// What the store has.
struct Objects<'a> {
    bucket: &'a Bucket,
    page: VecDeque<Listed>,
    last: Option<Listed>,
    is_over: bool,
}

impl Objects<'_> {
    async fn first(&mut self) -> Answer<Option<&Listed>> {
        if self.page.is_empty() && !self.is_over {
            self.page = self.bucket.page(self.last.as_ref()).await?.into();
            self.is_over = self.page.is_empty();
            self.last = self.page.back().cloned();
        }
        Ok(self.page.front())
    }

    fn take(&mut self) -> Option<Listed> {
        self.page.pop_front()
    }
}

/// Doubts that are settled by one question to the database.
const AT_A_TIME: usize = 500;
