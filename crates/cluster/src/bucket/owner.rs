//! Which cluster the objects of a prefix belong to.
//!
//! A collector deletes what its own database does not know, so two databases with one prefix would
//! delete the objects of one another. One object holds the id of the owner, which is that of the
//! cluster. A database that was restored gets another, with which it takes the prefix over from its
//! older copy; the id of the cluster stands in a second line then. Whoever deletes objects looks at
//! the owner before.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ownership {
    /// The database that may delete them.
    pub(crate) owner: Uuid,
    /// The cluster, of which there may be older copies of the database.
    pub(crate) cluster: Uuid,
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

    /// Makes this cluster the owner of the prefix, if it is not yet. A prefix with objects and
    /// without an owner is that of a cluster of before: only one that knows objects of it may
    /// take it.
    ///
    /// # Errors
    /// [`Error::StoreOwned`] and [`Error::StoreInUse`]: the prefix is not that of this cluster;
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub(crate) async fn claim(&self, own: Ownership, knows_objects: bool) -> Answer<()> {
        insist(self.end(), || self.claim_once(own, knows_objects)).await?;
        // A process has one database.
        let claimed = self.claimed.get_or_init(|| own);
        self.compare(own, *claimed)
    }

    async fn claim_once(&self, own: Ownership, knows_objects: bool) -> Answer<()> {
        if let Some(found) = self.ownership().await? {
            return self.compare(found, own);
        }
        if !knows_objects && self.has_objects().await? {
            // Another broker of this cluster may have begun meanwhile.
            return match self.ownership().await? {
                Some(found) => self.compare(found, own),
                None => Err(Error::StoreInUse {
                    bucket: self.name.clone(),
                    prefix: self.folder.clone(),
                    own: own.cluster,
                }),
            };
        }
        match self.put_ownership(own, creation()).await {
            Err(Error::ObjectExists(_)) => match self.ownership().await? {
                Some(found) => self.compare(found, own),
                None => Err(Error::StoreAway("its owner has changed".into())),
            },
            put => put,
        }
    }

    /// # Errors
    /// [`Error::StoreOwned`]: the prefix is that of another cluster; [`Error::StoreRefused`],
    /// [`Error::StoreAway`].
    pub(crate) async fn expect_cluster(&self, own: Uuid) -> Answer<()> {
        match insist(self.end(), || self.ownership()).await? {
            Some(found) if found.cluster != own => Err(self.owned_by(found.cluster, own)),
            _ => Ok(()),
        }
    }

    /// Makes a database the owner of the prefix, whichever copy of it was before.
    ///
    /// # Errors
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub(crate) async fn take_over(&self, own: Ownership) -> Answer<()> {
        insist(self.end(), || self.put_ownership(own, PutOptions::default())).await
    }

    /// # Errors
    /// [`Error::StoreOwned`]: another has taken the prefix over; [`Error::StoreRefused`],
    /// [`Error::StoreAway`].
    pub(super) async fn expect_owned(&self) -> Answer<()> {
        let Some(own) = self.claimed.get() else { return Ok(()) };
        match self.ownership().await? {
            Some(found) => self.compare(found, *own),
            None => {
                let text = format!("the object {} is gone", self.owner_path());
                Err(Error::StoreRefused(StoreRefusal::Other(text)))
            }
        }
    }

    async fn put_ownership(&self, own: Ownership, options: PutOptions) -> Answer<()> {
        let Ownership { owner, cluster } = own;
        let text = match owner == cluster {
            true => format!("{owner}\n"),
            false => format!("{owner}\n{cluster}\n"),
        };
        let put = self.store.put_opts(&self.owner_path(), PutPayload::from(text), options).await;
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
        let mut ids = text.lines().map(|line| Uuid::try_parse(line.trim()));
        match (ids.next(), ids.next()) {
            (Some(Ok(owner)), None) => Ok(Some(Ownership { owner, cluster: owner })),
            (Some(Ok(owner)), Some(Ok(cluster))) => Ok(Some(Ownership { owner, cluster })),
            _ => {
                let text = format!("the object {} holds no id of a cluster", self.owner_path());
                Err(Error::StoreRefused(StoreRefusal::Other(text)))
            }
        }
    }

    fn compare(&self, found: Ownership, own: Ownership) -> Answer<()> {
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
/// More than two ids take.
const OWNER_BYTES_MAX: u64 = 128;
const NO_KEY: ObjectKey = ObjectKey(Uuid::nil());
