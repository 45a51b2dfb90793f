//! The object store.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, RetryConfig,
};
use uuid::Uuid;

use crate::Error;
use crate::sequencer::{Answer, ObjectKey};

/// Holds objects, each written once. Any request fails with [`Error::StoreAway`] if there is no
/// answer; it may take effect at any later time.
pub trait Store: Send + Sync + 'static {
    /// Writes an object.
    ///
    /// # Errors
    /// [`Error::ObjectExists`].
    fn put(&self, key: ObjectKey, bytes: Bytes) -> impl Future<Output = Answer<()>> + Send;

    /// Reads a range, or as much of it as the object has.
    ///
    /// # Errors
    /// [`Error::ObjectMissing`].
    fn get(&self, key: ObjectKey, range: Range<u64>) -> impl Future<Output = Answer<Bytes>> + Send;

    /// Deletes objects, whether they exist or not.
    fn delete(&self, keys: &[ObjectKey]) -> impl Future<Output = Answer<()>> + Send;

    /// Some objects behind a key that are at least this old, in order. A list may be stale.
    fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> impl Future<Output = Answer<Vec<ObjectKey>>> + Send;
}

/// Where the objects are. The keys are never shown.
pub struct BucketSettings {
    /// Address, `https://s3.example.org`; none for that of AWS.
    pub endpoint: Option<String>,
    /// Region.
    pub region: String,
    /// Bucket.
    pub bucket: String,
    /// Folder in the bucket, for the objects of this cluster alone.
    pub prefix: String,
    /// Access key and secret; none for those of the machine.
    pub credentials: Option<(String, String)>,
    /// A request without an answer for this long is in doubt.
    pub timeout: Duration,
}

/// A bucket of an S3-compatible store.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Bucket {
    /// The bucket; nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub fn open(settings: &BucketSettings) -> Answer<Self> {
        let is_plain =
            settings.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
        let client = ClientOptions::new().with_timeout(settings.timeout).with_allow_http(is_plain);
        // Whoever asks decides what is asked again.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_region(&settings.region)
            .with_bucket_name(&settings.bucket)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_client_options(client)
            .with_retry(retry);
        if let Some(endpoint) = &settings.endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        if let Some((key, secret)) = &settings.credentials {
            builder = builder.with_access_key_id(key).with_secret_access_key(secret);
        }
        let store = builder.build().map_err(|error| Error::Settings(error.to_string()))?;
        Ok(Self { store: Arc::new(store), prefix: Path::from(settings.prefix.as_str()) })
    }

    fn path(&self, key: ObjectKey) -> Path {
        self.prefix.clone().join(key.to_string())
    }

    fn key(path: &Path) -> Option<ObjectKey> {
        path.filename().and_then(|name| Uuid::try_parse(name).ok()).map(ObjectKey)
    }
}

impl Store for Bucket {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        let options = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&self.path(key), PutPayload::from(bytes), options).await;
        put.map(drop).map_err(|error| meaning(key, &error))
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        let got = self.store.get_range(&self.path(key), range).await;
        got.map_err(|error| meaning(key, &error))
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        let deletions = futures_util::stream::iter(keys.to_vec()).map(async |key| {
            match self.store.delete(&self.path(key)).await.map_err(|error| meaning(key, &error)) {
                Err(Error::ObjectMissing(_)) => Ok(()),
                deleted => deleted,
            }
        });
        deletions.buffer_unordered(DELETIONS_AT_A_TIME).try_collect().await
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        let listed = match after {
            Some(after) => self.store.list_with_offset(Some(&self.prefix), &self.path(after)),
            None => self.store.list(Some(&self.prefix)),
        };
        let limit = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        let keys = listed.try_filter_map(async |object| {
            let is_old = SystemTime::from(object.last_modified) <= limit;
            Ok(Self::key(&object.location).filter(|_| is_old))
        });
        let keys: Result<Vec<ObjectKey>, _> = keys.take(keys_max).try_collect().await;
        keys.map_err(|error| Error::StoreAway(error.to_string()))
    }
}

fn meaning(key: ObjectKey, error: &object_store::Error) -> Error {
    match error {
        object_store::Error::NotFound { .. } => Error::ObjectMissing(key),
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } => {
            Error::ObjectExists(key)
        }
        object_store::Error::Unauthenticated { .. }
        | object_store::Error::PermissionDenied { .. }
        | object_store::Error::NotSupported { .. }
        | object_store::Error::UnknownConfigurationKey { .. } => Error::Settings(error.to_string()),
        _ => Error::StoreAway(error.to_string()),
    }
}

/// Stores throttle deletions before anything else.
const DELETIONS_AT_A_TIME: usize = 8;
