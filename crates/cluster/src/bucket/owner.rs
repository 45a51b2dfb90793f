//! Which cluster the objects of a prefix belong to.
//!
//! A collector deletes what its own database does not know, so two databases with one prefix would
//! delete the objects of one another. One object names the owner, the cluster and the database.
//! The id of the owner is that of the cluster until a restored database takes the prefix over from
//! its older copy. Whoever deletes objects looks at the owner before.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutOptions, PutPayload};
use uuid::Uuid;

use crate::retry::insist;
use crate::sequencer::{Answer, ObjectKey};
use crate::{Error, StoreRefusal};

use super::meaning::{GET, LIST, is_behind_end, meaning};
use super::{Bucket, creation};

/// Whose the objects of a prefix are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// Who may delete them.
    pub(crate) owner: Uuid,
    /// The cluster, of which there may be older copies of the database.
    pub(crate) cluster: Uuid,
    /// The database, if that is known.
    pub(crate) database: Option<String>,
}

impl Bucket {
    /// The bucket's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the objects.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.folder
    }

    /// Makes this database the owner of the prefix, if it is not yet. A prefix with objects and
    /// without an owner is for the database that knows them.
    ///
    /// # Errors
    /// [`Error::StoreOwned`], [`Error::StoreTakenOver`], [`Error::DatabaseCopied`] and
    /// [`Error::StoreInUse`]: the prefix is not that of this database; [`Error::StoreEmpty`];
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub(crate) async fn claim(&self, own: &Ownership, knows_objects: bool) -> Answer<()> {
        insist(self.end(), || self.claim_once(own, knows_objects)).await?;
        // A process has one database.
        let claimed = self.claimed.get_or_init(|| own.clone());
        self.compare(own, claimed)
    }

    async fn claim_once(&self, own: &Ownership, knows_objects: bool) -> Answer<()> {
        let found = match self.ownership().await? {
            Some(found) => found,
            None => {
                self.expect_free(own, knows_objects).await?;
                match self.put_ownership(own, creation()).await {
                    Err(Error::ObjectExists(_)) => {}
                    put => return put,
                }
                let away = || Error::StoreAway("its owner has changed".into());
                self.ownership().await?.ok_or_else(away)?
            }
        };
        self.compare(&found, own)?;
        match (&found.database, &own.database) {
            (Some(found), Some(own)) if found != own => Err(Error::DatabaseCopied),
            // Of a version that named no database.
            (None, Some(_)) => self.put_ownership(own, PutOptions::default()).await,
            _ => Ok(()),
        }
    }

    /// Whether the prefix is that of this database; false if it may take it over.
    ///
    /// # Errors
    /// [`Error::StoreOwned`] and [`Error::StoreInUse`]: the prefix is that of another cluster;
    /// [`Error::StoreEmpty`]; [`Error::StoreRefused`], [`Error::StoreAway`].
    pub(crate) async fn is_of(&self, own: &Ownership, knows_objects: bool) -> Answer<bool> {
        insist(self.end(), || async {
            match self.ownership().await? {
                Some(found) if found.cluster != own.cluster => {
                    Err(self.owned_by(found.cluster, own.cluster))
                }
                // Without a known database, a copy looks the same.
                Some(found) => Ok(found.database.is_some() && found == *own),
                None => self.expect_free(own, knows_objects).await.map(|()| false),
            }
        })
        .await
    }

    /// Makes a database the owner of the prefix, whichever copy of it was before.
    ///
    /// # Errors
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub(crate) async fn take_over(&self, own: &Ownership) -> Answer<()> {
        insist(self.end(), || self.put_ownership(own, PutOptions::default())).await
    }

    /// Whether a prefix without an owner fits to what the database knows.
    async fn expect_free(&self, own: &Ownership, knows_objects: bool) -> Answer<()> {
        let (bucket, prefix) = (self.name.clone(), self.folder.clone());
        match (self.has_objects().await?, knows_objects) {
            (false, true) => Err(Error::StoreEmpty { bucket, prefix }),
            (true, false) => match self.ownership().await? {
                // Another broker of this cluster may have begun meanwhile.
                Some(found) => self.compare(&found, own),
                None => Err(Error::StoreInUse { bucket, prefix, own: own.cluster }),
            },
            _ => Ok(()),
        }
    }

    /// # Errors
    /// [`Error::StoreOwned`]: another has taken the prefix over; [`Error::StoreRefused`],
    /// [`Error::StoreAway`].
    pub(super) async fn look_at_owner(&self) -> Answer<()> {
        let Some(own) = self.claimed.get() else { return Ok(()) };
        match self.ownership().await? {
            Some(found) => self.compare(&found, own),
            None => {
                let text = format!("the object {} is gone", self.owner_path());
                Err(Error::StoreRefused(StoreRefusal::Other(text)))
            }
        }
    }

    async fn put_ownership(&self, own: &Ownership, options: PutOptions) -> Answer<()> {
        let Ownership { owner, cluster, database } = own;
        let database = database.as_deref().unwrap_or_default();
        let text = PutPayload::from(format!("{owner}\n{cluster}\n{database}\n"));
        let put = self.store.put_opts(&self.owner_path(), text, options).await;
        put.map(drop).map_err(|error| super::put_meaning(NO_KEY, &error))
    }

    /// What the object says that names the owner, if there is one.
    async fn ownership(&self) -> Answer<Option<Ownership>> {
        let got = self.store.get_range(&self.owner_path(), 0..OWNER_BYTES_MAX).await;
        let bytes = match got {
            Err(error) if is_behind_end(&error) => Bytes::new(),
            got => match got.map_err(|error| meaning(GET, NO_KEY, &error)) {
                Err(Error::ObjectMissing(_)) => return Ok(None),
                got => got?,
            },
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let mut lines = text.lines();
        let mut id = || Uuid::try_parse(lines.next()?.trim()).ok();
        let Some(owner) = id() else {
            let text = format!("the object {} holds no id of a cluster", self.owner_path());
            return Err(Error::StoreRefused(StoreRefusal::Other(text)));
        };
        // Of a version before, there is but one id.
        let cluster = id().unwrap_or(owner);
        let database = lines.next().filter(|line| !line.is_empty()).map(str::to_owned);
        Ok(Some(Ownership { owner, cluster, database }))
    }

    fn compare(&self, found: &Ownership, own: &Ownership) -> Answer<()> {
        match found.owner == own.owner {
            true => Ok(()),
            false if found.cluster == own.cluster => Err(Error::StoreTakenOver {
                bucket: self.name.clone(),
                prefix: self.folder.clone(),
            }),
            false => Err(self.owned_by(found.cluster, own.cluster)),
        }
    }

    fn owned_by(&self, owner: Uuid, own: Uuid) -> Error {
        let (bucket, prefix) = (self.name.clone(), self.folder.clone());
        Error::StoreOwned { bucket, prefix, owner, own }
    }

    /// Whether a broker has put an object. What else is in the prefix does not count, as no
    /// collector deletes it.
    async fn has_objects(&self) -> Answer<bool> {
        let objects = self.store.list(Some(&self.prefix));
        let own = objects
            .try_filter(|object| std::future::ready(self.own_key(&object.location).is_some()));
        let first = std::pin::pin!(own).next().await.transpose();
        first.map(|first| first.is_some()).map_err(|error| meaning(LIST, NO_KEY, &error))
    }

    /// No key has this form.
    pub(super) fn owner_path(&self) -> Path {
        self.prefix.clone().join(OWNER)
    }
}

const OWNER: &str = "moldau-cluster";
/// More than it takes.
const OWNER_BYTES_MAX: u64 = 256;
const NO_KEY: ObjectKey = ObjectKey(Uuid::nil());
