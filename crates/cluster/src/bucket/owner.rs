//! Which cluster the objects of a prefix belong to.
//!
//! A collector deletes what its own database does not know, so two databases with one prefix would
//! delete the objects of one another. One object holds the id of the cluster. A restored database
//! keeps that id, and goes on with the same prefix.

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use uuid::Uuid;

use crate::retry::insist;
use crate::sequencer::{Answer, ObjectKey};
use crate::{Error, StoreRefusal};

use super::meaning::{GET, LIST, is_behind_end, meaning};
use super::{Bucket, creation};

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
    pub(crate) async fn claim(&self, cluster: Uuid, knows_objects: bool) -> Answer<()> {
        insist(self.end(), || self.claim_once(cluster, knows_objects)).await
    }

    async fn claim_once(&self, cluster: Uuid, knows_objects: bool) -> Answer<()> {
        if let Some(owner) = self.owner().await? {
            return self.compare(owner, cluster);
        }
        if !knows_objects && self.has_objects().await? {
            // Another broker of this cluster may have begun meanwhile.
            return match self.owner().await? {
                Some(owner) => self.compare(owner, cluster),
                None => Err(Error::StoreInUse {
                    bucket: self.name.clone(),
                    prefix: self.folder.clone(),
                    own: cluster,
                }),
            };
        }
        let text = PutPayload::from(Bytes::from(format!("{cluster}\n")));
        let put = self.store.put_opts(&self.owner_path(), text, creation()).await;
        match put.map_err(|error| super::put_meaning(NO_KEY, &error)) {
            Ok(_) => Ok(()),
            Err(Error::ObjectExists(_)) => match self.owner().await? {
                Some(owner) => self.compare(owner, cluster),
                None => Err(Error::StoreAway("its owner has changed".into())),
            },
            Err(error) => Err(error),
        }
    }

    /// The id in the object that names the owner, if there is one.
    async fn owner(&self) -> Answer<Option<Uuid>> {
        let got = self.store.get_range(&self.owner_path(), 0..OWNER_BYTES_MAX).await;
        let bytes = match got {
            Err(error) if is_behind_end(&error) => Bytes::new(),
            got => match got.map_err(|error| meaning(GET, NO_KEY, &error)) {
                Err(Error::ObjectMissing(_)) => return Ok(None),
                got => got?,
            },
        };
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        Uuid::try_parse(text.trim()).map(Some).map_err(|_| {
            let path = self.owner_path();
            let text = format!("the object {path} holds no id of a cluster");
            Error::StoreRefused(StoreRefusal::Other(text))
        })
    }

    fn compare(&self, owner: Uuid, own: Uuid) -> Answer<()> {
        if owner == own {
            return Ok(());
        }
        let (bucket, prefix) = (self.name.clone(), self.folder.clone());
        Err(Error::StoreOwned { bucket, prefix, owner, own })
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
/// More than an id takes.
const OWNER_BYTES_MAX: u64 = 64;
const NO_KEY: ObjectKey = ObjectKey(Uuid::nil());
