//! Where the objects of the cluster are, and whether this database may delete them.

use uuid::Uuid;

use crate::bucket::{Bucket, Ownership};
use crate::{Answer, Error};

use super::{Postgres, value};

impl Postgres {
    /// Makes the prefix of the bucket the place of this cluster's objects, if nothing else is.
    ///
    /// # Errors
    /// [`Error::OtherStore`]: the objects are elsewhere; [`Error::StoreEmpty`]: so they seem to be;
    /// [`Error::DatabaseCopied`]: this database is a copy of the one that owns them;
    /// [`Error::StoreTakenOver`], [`Error::StoreOwned`] and [`Error::StoreInUse`]: the prefix is
    /// that of another copy or cluster; [`Error::StoreRefused`], [`Error::StoreAway`],
    /// [`Error::SequencerAway`].
    pub async fn claim_store(&self, bucket: &Bucket) -> Answer<()> {
        // The database notes the place last, as it would not forget a wrong one.
        let is_noted = self.expect_store(bucket).await?;
        let (ownership, knows_objects) = self.ownership().await?;
        bucket.claim(&ownership, knows_objects).await?;
        if !is_noted {
            let text =
                "insert into moldau.store (bucket, prefix) values ($1, $2) on conflict do nothing";
            self.query(text, &[&bucket.name(), &bucket.prefix()]).await?;
            self.expect_store(bucket).await?;
        }
        Ok(())
    }

    /// Makes this database the owner of the objects, in the place of the one that it was restored
    /// from: that one deletes none from then on, and its brokers end. False if it is the owner
    /// already.
    ///
    /// # Errors
    /// As [`Self::claim_store`], but for those about copies.
    pub async fn take_over_store(&self, bucket: &Bucket) -> Answer<bool> {
        self.expect_store(bucket).await?;
        let (current, knows_objects) = self.ownership().await?;
        if bucket.is_of(&current, knows_objects).await? {
            return Ok(false);
        }
        let own = Ownership { owner: Uuid::new_v4(), ..current };
        let text = "insert into moldau.store (bucket, prefix, owner) values ($1, $2, $3)
            on conflict (is_only) do update set owner = $3";
        self.query(text, &[&bucket.name(), &bucket.prefix(), &own.owner]).await?;
        // If this fails, the database owns nothing yet, and the next attempt takes over.
        bucket.take_over(&own).await?;
        Ok(true)
    }

    /// What this database is to the objects, and whether it knows any.
    async fn ownership(&self) -> Answer<(Ownership, bool)> {
        let rows = self.query(OWNERSHIP, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        let (owner, cluster) = (value(row, 0)?, value(row, 1)?);
        let database = match self.one(IDENTITY, &[]).await {
            Ok(identity) => Some(identity),
            // This role may not see it.
            Err(Error::Refused(_) | Error::DatabaseRefused(_)) => None,
            Err(error) => return Err(error),
        };
        Ok((Ownership { owner, cluster, database }, value(row, 2)?))
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
    select coalesce(s.owner, l.cluster_id), l.cluster_id,
        exists (select from moldau.objects o where o.live > 0)
    from moldau.frame_log l left join moldau.store s on true";
/// What a standby has in common with its primary, and a copy that was restored from statements has
/// not.
const IDENTITY: &str = "
    select c.system_identifier || '/' || d.oid from pg_control_system() c
    join pg_database d on d.datname = current_database()";
