//! Where the objects of the cluster are.

use uuid::Uuid;

use crate::bucket::Bucket;
use crate::{Answer, Error};

use super::{Postgres, value};

impl Postgres {
    /// Makes the prefix of the bucket the place of this cluster's objects, if nothing else is.
    ///
    /// # Errors
    /// [`Error::OtherStore`]: the objects are elsewhere; [`Error::StoreOwned`] and
    /// [`Error::StoreInUse`]: the prefix is that of another cluster; [`Error::StoreRefused`],
    /// [`Error::StoreAway`], [`Error::SequencerAway`].
    pub async fn claim_store(&self, bucket: &Bucket) -> Answer<()> {
        // The database notes the place last, as it would not forget a wrong one.
        let is_noted = self.expect_store(bucket).await?;
        let rows = self.query(OWNERSHIP, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        let (cluster, has_objects): (Uuid, bool) = (value(row, 0)?, value(row, 1)?);
        bucket.claim(cluster, has_objects).await?;
        if !is_noted {
            let text =
                "insert into moldau.store (bucket, prefix) values ($1, $2) on conflict do nothing";
            self.query(text, &[&bucket.name(), &bucket.prefix()]).await?;
            self.expect_store(bucket).await?;
        }
        Ok(())
    }

    /// Whether the database knows that the objects are in this bucket; it may know of no place
    /// yet.
    ///
    /// # Errors
    /// [`Error::OtherStore`]: they are elsewhere; [`Error::SequencerAway`].
    pub async fn expect_store(&self, wanted: &Bucket) -> Answer<bool> {
        let rows = self.query("select bucket, prefix from moldau.store", &[]).await?;
        let Some(row) = rows.first() else { return Ok(false) };
        let (bucket, prefix): (String, String) = (value(row, 0)?, value(row, 1)?);
        match bucket == wanted.name() && prefix == wanted.prefix() {
            true => Ok(true),
            false => Err(Error::OtherStore { bucket, prefix }),
        }
    }
}

/// Rows of objects that are dead prove nothing, as a collector makes them of what it finds.
const OWNERSHIP: &str = "
    select l.cluster_id, exists (select from moldau.objects o where o.live > 0)
    from moldau.frame_log l";
