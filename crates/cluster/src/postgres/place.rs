//! Where the objects of the cluster are, and whether this database may delete them.

use uuid::Uuid;

use crate::bucket::{Bucket, Ownership};
use crate::frames::Frames as _;
use crate::{Answer, Error};

use super::{Postgres, value};

impl Postgres {
    /// Makes the prefix of the bucket the place of this cluster's objects, if nothing else is.
    ///
    /// # Errors
    /// [`Error::OtherStore`]: the objects are elsewhere; [`Error::DatabaseCopied`]: this database
    /// is a copy of the one that owns them; [`Error::StoreOwned`] and [`Error::StoreInUse`]: the
    /// prefix is that of another cluster or copy; [`Error::StoreRefused`], [`Error::StoreAway`],
    /// [`Error::SequencerAway`].
    pub async fn claim_store(&self, bucket: &Bucket) -> Answer<()> {
        // The database notes the place last, as it would not forget a wrong one.
        let is_noted = self.expect_store(bucket).await?;
        let identity = self.identity().await?;
        let rows = self.query(OWNERSHIP, &[]).await?;
        let row = rows.first().ok_or_else(|| Error::Refused("an answer without a row".into()))?;
        let noted: Option<String> = value(row, 3)?;
        if noted.is_some() && identity.is_some() && noted != identity {
            return Err(Error::DatabaseCopied);
        }
        let ownership = Ownership { owner: value(row, 0)?, cluster: value(row, 1)? };
        bucket.claim(ownership, value(row, 2)?).await?;
        if !is_noted || noted.is_none() {
            let text = "insert into moldau.store as s (bucket, prefix, database)
                values ($1, $2, $3)
                on conflict (is_only) do update set database = coalesce(s.database, $3)";
            self.query(text, &[&bucket.name(), &bucket.prefix(), &identity]).await?;
            self.expect_store(bucket).await?;
        }
        Ok(())
    }

    /// Makes this database the owner of the objects, in the place of the one that it was restored
    /// from: that one deletes none from then on, and its brokers do not start again.
    ///
    /// # Errors
    /// [`Error::OtherStore`]: the objects are elsewhere; [`Error::StoreOwned`]: they are those of
    /// another cluster; [`Error::StoreRefused`], [`Error::StoreAway`], [`Error::SequencerAway`].
    pub async fn take_over_store(&self, bucket: &Bucket) -> Answer<()> {
        self.expect_store(bucket).await?;
        let cluster = self.cluster_id().await?;
        let ownership = Ownership { owner: Uuid::new_v4(), cluster };
        bucket.expect_cluster(cluster).await?;
        let identity = self.identity().await?;
        let text = "insert into moldau.store (bucket, prefix, owner, database)
            values ($1, $2, $3, $4)
            on conflict (is_only) do update set owner = $3, database = $4";
        let place = (bucket.name(), bucket.prefix());
        self.query(text, &[&place.0, &place.1, &ownership.owner, &identity]).await?;
        // If this fails, the database owns nothing yet, and the next attempt takes over.
        bucket.take_over(ownership).await
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

    /// What a standby has in common with its primary, and a restored copy has not; `None` for a
    /// server that does not show it.
    async fn identity(&self) -> Answer<Option<String>> {
        match self.one(IDENTITY, &[]).await {
            Ok(identity) => Ok(Some(identity)),
            Err(Error::Refused(_) | Error::DatabaseRefused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Rows of objects that are dead prove nothing, as a collector makes them of what it finds.
const OWNERSHIP: &str = "
    select coalesce(s.owner, l.cluster_id), l.cluster_id,
        exists (select from moldau.objects o where o.live > 0), s.database
    from moldau.frame_log l left join moldau.store s on true";
const IDENTITY: &str = "
    select c.system_identifier || '/' || d.oid from pg_control_system() c
    join pg_database d on d.datname = current_database()";
