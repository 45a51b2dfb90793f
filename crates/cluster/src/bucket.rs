//! A bucket of S3 or of a store that is compatible.
//!
//! A PUT is sent once: the writer asks again, as it knows the deadline of its appends. Whatever
//! changes nothing, or the same thing twice, is asked again here.

mod credentials;
mod meaning;
mod owner;

use std::future::ready;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::path::Path;
use object_store::{
    Certificate, ClientConfigKey, ClientOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions,
    PutPayload, RetryConfig,
};
use tokio::time::Instant;
use uuid::Uuid;

use crate::retry::insist;
use crate::sequencer::{Answer, ObjectKey};
use crate::store::Store;
use crate::{Error, StoreRefusal};

pub use self::credentials::Credentials;
pub(crate) use self::owner::Ownership;

use self::meaning::{DELETE, GET, LIST, PUT, is_behind_end, meaning};

/// How requests name the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// As the first part of the path, which every compatible store understands.
    Path,
    /// As the first part of the host, as AWS prefers.
    VirtualHost,
}

/// Where the objects are.
#[derive(Debug, Clone)]
pub struct BucketSettings {
    /// Address, `https://s3.example.org`; none for that of AWS in the region.
    pub endpoint: Option<String>,
    /// Region. Stores without regions take `us-east-1`.
    pub region: String,
    /// Bucket.
    pub bucket: String,
    /// How requests name it.
    pub addressing: Addressing,
    /// Folder in the bucket, for the objects of this cluster alone; may be empty.
    pub prefix: String,
    /// Authorities of the store's certificate, in PEM; none for those of the system.
    pub trust: Option<Vec<u8>>,
    /// Who asks.
    pub credentials: Credentials,
    /// A request without an answer for this long is in doubt.
    pub timeout: Duration,
    /// Reads, lists and deletions without an answer are asked again for this long.
    pub deadline: Duration,
}

/// A bucket of an S3-compatible store.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    name: String,
    /// As the settings have it, which the database notes.
    folder: String,
    prefix: Path,
    deadline: Duration,
    /// Whose objects it deletes, once it was claimed.
    claimed: OnceLock<Ownership>,
}

/// An object as a list shows it.
#[derive(Debug, Clone)]
pub struct Listed {
    path: Path,
    /// Its key; none if no broker named it.
    pub key: Option<ObjectKey>,
    /// Its size.
    pub bytes: u64,
    /// When it was written, as the store has it.
    pub modified: SystemTime,
}

impl Listed {
    /// Its name in the bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.as_ref()
    }
}

impl BucketSettings {
    /// Whether a bucket can be opened with them.
    ///
    /// # Errors
    /// [`Error::Settings`], without the text of a setting.
    pub fn check(&self) -> Answer<()> {
        check(self)
    }

    /// Bucket and address, for messages.
    #[must_use]
    pub fn place(&self) -> String {
        match &self.endpoint {
            Some(endpoint) => format!("bucket {} at {endpoint}", self.bucket),
            None => format!("bucket {} in {}", self.bucket, self.region),
        }
    }
}

impl Bucket {
    /// The bucket; nothing is sent yet.
    ///
    /// # Errors
    /// [`Error::Settings`].
    pub fn open(settings: &BucketSettings) -> Answer<Self> {
        check(settings)?;
        let is_plain = settings.endpoint.as_ref().is_some_and(|at| at.starts_with(PLAIN));
        let mut client = ClientOptions::new()
            .with_timeout(settings.timeout)
            .with_connect_timeout(settings.timeout.min(CONNECT_TIMEOUT_MAX))
            .with_allow_http(is_plain);
        if let Some(trust) = &settings.trust {
            client = client.with_config(ClientConfigKey::NoSystemCertificates, "true");
            for certificate in certificates(trust)? {
                client = client.with_root_certificate(certificate);
            }
        }
        // `insist` asks again, which knows the deadline of whoever waits.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = AmazonS3Builder::new()
            .with_region(&settings.region)
            .with_bucket_name(&settings.bucket)
            .with_virtual_hosted_style_request(settings.addressing == Addressing::VirtualHost)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_client_options(client)
            .with_retry(retry);
        if let Some(endpoint) = endpoint(settings) {
            builder = builder.with_endpoint(endpoint);
        }
        let builder = settings.credentials.give(builder);
        let store = builder.build().map_err(|error| Error::Settings(error.to_string()))?;
        let (store, prefix) = (Arc::new(store), Path::from(settings.prefix.as_str()));
        let name = settings.bucket.clone();
        let folder = settings.prefix.trim_matches('/').to_owned();
        let (deadline, claimed) = (settings.deadline, OnceLock::new());
        Ok(Self { store, name, folder, prefix, deadline, claimed })
    }

    /// Tries all requests that a broker makes, with an object of a fresh key. If this ends early,
    /// that object is an orphan like any other.
    ///
    /// # Errors
    /// [`Error::StoreRefused`] says what the operator must change; [`Error::StoreAway`].
    pub async fn verify(&self) -> Answer<()> {
        let key = ObjectKey::fresh();
        let deadline = Instant::now() + self.deadline;
        let put = async |text: &'static str| match insist(deadline, || {
            self.put(key, Bytes::from_static(text.as_bytes()))
        })
        .await
        {
            Err(Error::ObjectExists(_)) => Ok(true),
            answer => answer.map(|()| false),
        };
        // Its own earlier attempt may have made the object.
        put(PROBE).await?;
        if !put(OTHER_PROBE).await? || self.get(key, 0..PROBE_BYTES_MAX).await? != PROBE {
            return Err(Error::StoreRefused(StoreRefusal::NoConditionalCreate));
        }
        self.list(None, Duration::ZERO, 1).await?;
        self.delete(&[key]).await
    }

    /// Asks once, so that it is known at once why a store does not answer.
    ///
    /// # Errors
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub async fn reach(&self) -> Answer<()> {
        self.list_once(None, Duration::ZERO, 1).await.map(drop)
    }

    /// Objects of the prefix behind another, in the order of the store, as many as one request
    /// gives, without the one that names the owner.
    ///
    /// # Errors
    /// [`Error::StoreRefused`], [`Error::StoreAway`].
    pub async fn page(&self, after: Option<&Listed>) -> Answer<Vec<Listed>> {
        insist(self.end(), || async {
            let listed = match after {
                Some(after) => self.store.list_with_offset(Some(&self.prefix), &after.path),
                None => self.store.list(Some(&self.prefix)),
            };
            let owner = self.owner_path();
            let objects = listed.try_filter(|object| ready(object.location != owner));
            let objects = objects.map_ok(|object| Listed {
                key: self.own_key(&object.location),
                path: object.location,
                bytes: object.size,
                modified: SystemTime::from(object.last_modified),
            });
            let page: Result<Vec<Listed>, _> = objects.take(PAGE).try_collect().await;
            page.map_err(|error| meaning(LIST, ObjectKey(Uuid::nil()), &error))
        })
        .await
    }

    /// The name of an object in the bucket.
    #[must_use]
    pub fn name_of(&self, key: ObjectKey) -> String {
        self.path(key).into()
    }

    fn path(&self, key: ObjectKey) -> Path {
        self.prefix.clone().join(key.to_string())
    }

    fn key(path: &Path) -> Option<ObjectKey> {
        path.filename().and_then(|name| Uuid::try_parse(name).ok()).map(ObjectKey)
    }

    /// The key of an object that a broker of this prefix has named.
    fn own_key(&self, path: &Path) -> Option<ObjectKey> {
        Self::key(path).filter(|key| self.path(*key) == *path)
    }

    fn end(&self) -> Instant {
        Instant::now() + self.deadline
    }

    async fn get_once(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        match self.store.get_range(&self.path(key), range).await {
            Err(error) if is_behind_end(&error) => Ok(Bytes::new()),
            got => got.map_err(|error| meaning(GET, key, &error)),
        }
    }

    async fn delete_once(&self, keys: &[ObjectKey]) -> Answer<()> {
        let paths: Vec<_> = keys.iter().map(|key| Ok(self.path(*key))).collect();
        let mut deletions = self.store.delete_stream(futures_util::stream::iter(paths).boxed());
        while let Some(deleted) = deletions.next().await {
            match deleted.map_err(|error| meaning(DELETE, ObjectKey(Uuid::nil()), &error)) {
                Ok(_) | Err(Error::ObjectMissing(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn list_once(
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
        keys.map_err(|error| meaning(LIST, ObjectKey(Uuid::nil()), &error))
    }
}

impl Store for Bucket {
    async fn expect_owned(&self) -> Answer<()> {
        self.look_at_owner().await
    }

    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        let bytes = PutPayload::from(bytes);
        let put = self.store.put_opts(&self.path(key), bytes, creation()).await;
        put.map(drop).map_err(|error| put_meaning(key, &error))
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        insist(self.end(), || self.get_once(key, range.clone())).await
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        insist(self.end(), || async {
            self.look_at_owner().await?;
            self.delete_once(keys).await
        })
        .await
    }

    async fn list(
        &self,
        after: Option<ObjectKey>,
        age: Duration,
        keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        insist(self.end(), || self.list_once(after, age, keys_max)).await
    }
}

fn creation() -> PutOptions {
    PutOptions::from(PutMode::Create)
}

fn put_meaning(key: ObjectKey, error: &object_store::Error) -> Error {
    match meaning(PUT, key, error) {
        // The condition is all that a store may lack of a PUT.
        Error::StoreRefused(StoreRefusal::Other(code)) if code == NOT_IMPLEMENTED => {
            Error::StoreRefused(StoreRefusal::NoConditionalCreate)
        }
        meaning => meaning,
    }
}

fn check(settings: &BucketSettings) -> Answer<()> {
    let wrong = |text: &str| Err(Error::Settings(text.into()));
    if let Some(endpoint) = &settings.endpoint {
        // What is wrong is not shown, as it may be a password.
        let host = endpoint.strip_prefix(PLAIN).or_else(|| endpoint.strip_prefix(ENCRYPTED));
        let Some(host) = host.map(|host| host.trim_end_matches('/')) else {
            return wrong("the endpoint of the store begins with http:// or https://");
        };
        if host.is_empty() || host.contains(['/', '@', '?', '#', ' ']) {
            return wrong("the endpoint of the store is a host and perhaps a port");
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if settings.bucket.is_empty() || !settings.bucket.chars().all(is_name) {
        return wrong("the name of a bucket has letters, digits, dots, hyphens and underscores");
    }
    if settings.region.is_empty() || !settings.region.chars().all(is_name) {
        return wrong("the store needs a region, or us-east-1 if it has none");
    }
    settings.trust.as_deref().map_or(Ok(Vec::new()), certificates)?;
    if settings.timeout.is_zero() || settings.deadline < settings.timeout {
        return wrong("the deadline of the store is at least its timeout");
    }
    Ok(())
}

fn certificates(pem: &[u8]) -> Answer<Vec<Certificate>> {
    let wrong = || Error::Settings("trust_file holds no certificates in PEM".into());
    let certificates = Certificate::from_pem_bundle(pem).map_err(|_| wrong())?;
    if certificates.is_empty() { Err(wrong()) } else { Ok(certificates) }
}

/// The host names the bucket only if it is asked to, and AWS derives its own address.
fn endpoint(settings: &BucketSettings) -> Option<String> {
    let endpoint = settings.endpoint.as_ref()?.trim_end_matches('/');
    let (scheme, host) = endpoint.split_once("//")?;
    Some(match settings.addressing {
        Addressing::Path => endpoint.to_owned(),
        Addressing::VirtualHost => format!("{scheme}//{}.{host}", settings.bucket),
    })
}

const PLAIN: &str = "http://";
const ENCRYPTED: &str = "https://";
/// A store that is there accepts connections at once.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(5);
const NOT_IMPLEMENTED: &str = "NotImplemented";
const PROBE: &str = "moldau";
const OTHER_PROBE: &str = "moldau overwrites";
/// What S3 gives at a time.
const PAGE: usize = 1_000;
/// Enough for both.
const PROBE_BYTES_MAX: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> BucketSettings {
        BucketSettings {
            endpoint: Some("https://s3.example.org:9000/".into()),
            region: "us-east-1".into(),
            bucket: "records".into(),
            addressing: Addressing::Path,
            prefix: String::new(),
            trust: None,
            credentials: Credentials::keys("KEY-OF-TEST", "SECRET-OF-TEST", Some("TOKEN-OF-TEST")),
            timeout: Duration::from_secs(5),
            deadline: Duration::from_secs(30),
        }
    }

    #[test]
    fn a_virtual_host_is_the_bucket_before_the_endpoint() {
        let path = settings();
        assert_eq!(endpoint(&path).as_deref(), Some("https://s3.example.org:9000"));
        let host = BucketSettings { addressing: Addressing::VirtualHost, ..path };
        assert_eq!(endpoint(&host).as_deref(), Some("https://records.s3.example.org:9000"));
        assert_eq!(endpoint(&BucketSettings { endpoint: None, ..host }), None);
    }

    #[test]
    fn settings_that_cannot_work_are_refused_without_their_text() {
        let good = settings();
        assert!(Bucket::open(&good).is_ok());
        let endpoint = |text: &str| BucketSettings { endpoint: Some(text.into()), ..good.clone() };
        for wrong in [
            endpoint("s3.example.org"),
            endpoint("https://"),
            endpoint("https://user:hunter2@s3.example.org"),
            endpoint("https://s3.example.org/hunter2"),
            BucketSettings { bucket: "a/hunter2".into(), ..good.clone() },
            BucketSettings { bucket: String::new(), ..good.clone() },
            BucketSettings { region: String::new(), ..good.clone() },
            BucketSettings { timeout: Duration::ZERO, ..good.clone() },
            BucketSettings { deadline: Duration::from_secs(4), ..good.clone() },
        ] {
            let error = Bucket::open(&wrong).err();
            assert!(matches!(error, Some(Error::Settings(_))), "{wrong:?}");
            assert!(!format!("{error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn no_form_of_text_shows_keys() {
        let settings = settings();
        let bucket = Bucket::open(&settings).unwrap();
        for text in [format!("{settings:?}"), format!("{settings:#?}"), format!("{bucket:?}")] {
            assert!(!text.contains("SECRET-OF-TEST"), "{text}");
            assert!(!text.contains("TOKEN-OF-TEST"), "{text}");
        }
    }
}
