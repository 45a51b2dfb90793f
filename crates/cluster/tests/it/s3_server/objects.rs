//! The objects of the server, and its one account. `s3s` declares its traits with `async_trait`,
//! whose signatures are written out here.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::BodyExt;
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::{
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, GetObjectInput, GetObjectOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput, PutObjectOutput,
    StreamingBlob, Timestamp,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};

use super::{ACCESS_KEY, BUCKET, SECRET_KEY};

type Reply<'a, T> = Pin<Box<dyn Future<Output = S3Result<S3Response<T>>> + Send + 'a>>;

/// The objects of one bucket by name.
#[derive(Clone, Default)]
pub(super) struct Objects(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// With the time of their PUT.
    objects: Mutex<BTreeMap<String, (SystemTime, Bytes)>>,
    /// The list as it was at the last list.
    listed: Mutex<BTreeMap<String, (SystemTime, usize)>>,
    lists_are_stale: AtomicBool,
    conditions_are_ignored: AtomicBool,
    /// Holds them beyond the end of the process, if there is one.
    directory: Option<PathBuf>,
}

impl Objects {
    /// Those of a directory, which gets a file for each.
    pub(super) fn of(directory: PathBuf) -> Self {
        let mut objects = BTreeMap::new();
        for file in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            let name = file.file_name().into_string().unwrap();
            // What a process that was killed has begun was not acknowledged.
            if !name.ends_with(BEGUN) {
                let time = file.metadata().unwrap().modified().unwrap();
                let bytes = Bytes::from(fs::read(file.path()).unwrap());
                objects.insert(name.replace(SLASH, "/"), (time, bytes));
            }
        }
        let (objects, directory) = (Mutex::new(objects), Some(directory));
        Self(Arc::new(Inner { objects, directory, ..Inner::default() }))
    }

    pub(super) fn list_stale(&self, is_stale: bool) {
        self.0.lists_are_stale.store(is_stale, Ordering::Relaxed);
    }

    pub(super) fn ignore_conditions(&self) {
        self.0.conditions_are_ignored.store(true, Ordering::Relaxed);
    }

    pub(super) fn names(&self) -> Vec<String> {
        lock(&self.0.objects).keys().cloned().collect()
    }

    pub(super) fn replace(&self, name: &str, bytes: Option<Bytes>) {
        let mut objects = lock(&self.0.objects);
        objects.remove(name);
        objects.extend(bytes.map(|bytes| (name.to_owned(), (SystemTime::now(), bytes))));
    }

    async fn put(&self, input: PutObjectInput) -> S3Result<S3Response<PutObjectOutput>> {
        is_ours(&input.bucket)?;
        let is_create = input.if_none_match.is_some_and(|condition| condition.is_any());
        let body = s3s::Body::from(input.body.ok_or_else(|| s3_error!(IncompleteBody))?);
        let body = body.collect().await.map_err(|_| s3_error!(IncompleteBody))?.to_bytes();
        let is_ignored = self.0.conditions_are_ignored.load(Ordering::Relaxed);
        let mut objects = lock(&self.0.objects);
        if is_create && !is_ignored && objects.contains_key(&input.key) {
            return Err(s3_error!(PreconditionFailed));
        }
        let e_tag = Some(tag(&body));
        if let Some(file) = self.0.file(&input.key) {
            let begun = file.with_added_extension(&BEGUN[1..]);
            fs::write(&begun, &body).and_then(|()| fs::rename(&begun, &file)).unwrap();
        }
        objects.insert(input.key, (SystemTime::now(), body));
        Ok(S3Response::new(PutObjectOutput { e_tag, ..PutObjectOutput::default() }))
    }

    fn get(&self, input: &GetObjectInput) -> S3Result<S3Response<GetObjectOutput>> {
        is_ours(&input.bucket)?;
        let objects = lock(&self.0.objects);
        let (time, bytes) = objects.get(&input.key).ok_or_else(|| s3_error!(NoSuchKey))?;
        let whole = u64::try_from(bytes.len()).unwrap();
        let range = input.range.as_ref().map(|range| range.check(whole)).transpose()?;
        let content_range =
            range.as_ref().map(|at| format!("bytes {}-{}/{whole}", at.start, at.end - 1));
        let at = |offset: u64| usize::try_from(offset).unwrap();
        let bytes =
            range.map_or(bytes.clone(), |range| bytes.slice(at(range.start)..at(range.end)));
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(i64::try_from(bytes.len()).unwrap()),
            content_range,
            e_tag: Some(tag(&bytes)),
            last_modified: Some(Timestamp::from(*time)),
            body: Some(StreamingBlob::wrap(stream::iter([Ok::<_, std::io::Error>(bytes)]))),
            ..GetObjectOutput::default()
        }))
    }

    fn delete(&self, input: DeleteObjectsInput) -> S3Result<S3Response<DeleteObjectsOutput>> {
        is_ours(&input.bucket)?;
        let mut objects = lock(&self.0.objects);
        let deleted = input.delete.objects.into_iter().map(|object| {
            if let (Some(_), Some(file)) = (objects.remove(&object.key), self.0.file(&object.key)) {
                fs::remove_file(file).unwrap();
            }
            DeletedObject { key: Some(object.key), ..DeletedObject::default() }
        });
        let deleted = Some(deleted.collect());
        Ok(S3Response::new(DeleteObjectsOutput { deleted, ..DeleteObjectsOutput::default() }))
    }

    fn list(&self, input: ListObjectsV2Input) -> S3Result<S3Response<ListObjectsV2Output>> {
        is_ours(&input.bucket)?;
        let objects = lock(&self.0.objects);
        let current = objects.iter();
        let current = current.map(|(name, (time, bytes))| (name.clone(), (*time, bytes.len())));
        let current: BTreeMap<_, _> = current.collect();
        let before = std::mem::replace(&mut *lock(&self.0.listed), current.clone());
        let is_stale = self.0.lists_are_stale.load(Ordering::Relaxed);
        let names = if is_stale { before } else { current };
        let prefix = input.prefix.clone().unwrap_or_default();
        let after = input.continuation_token.or(input.start_after).unwrap_or_default();
        let wanted = names.into_iter().filter(|(name, _)| name.starts_with(&prefix));
        let mut wanted = wanted.filter(|(name, _)| *name > after).peekable();
        let mut contents = Vec::new();
        while contents.len() < PAGE
            && let Some((name, (time, size))) = wanted.next()
        {
            contents.push(Object {
                key: Some(name),
                last_modified: Some(Timestamp::from(time)),
                size: Some(i64::try_from(size).unwrap()),
                ..Object::default()
            });
        }
        let is_truncated = wanted.peek().is_some();
        let last = contents.last().and_then(|object: &Object| object.key.clone());
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: input.prefix,
            is_truncated: Some(is_truncated),
            next_continuation_token: last.filter(|_| is_truncated),
            contents: Some(contents),
            ..ListObjectsV2Output::default()
        }))
    }
}

impl Inner {
    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.directory.as_ref()?.join(name.replace('/', SLASH)))
    }
}

impl S3 for Objects {
    fn put_object<'a, 'r>(
        &'a self,
        request: S3Request<PutObjectInput>,
    ) -> Reply<'r, PutObjectOutput>
    where
        'a: 'r,
        Self: 'r,
    {
        Box::pin(self.put(request.input))
    }

    fn get_object<'a, 'r>(
        &'a self,
        request: S3Request<GetObjectInput>,
    ) -> Reply<'r, GetObjectOutput>
    where
        'a: 'r,
        Self: 'r,
    {
        Box::pin(async move { self.get(&request.input) })
    }

    fn delete_objects<'a, 'r>(
        &'a self,
        request: S3Request<DeleteObjectsInput>,
    ) -> Reply<'r, DeleteObjectsOutput>
    where
        'a: 'r,
        Self: 'r,
    {
        Box::pin(async move { self.delete(request.input) })
    }

    fn list_objects_v2<'a, 'r>(
        &'a self,
        request: S3Request<ListObjectsV2Input>,
    ) -> Reply<'r, ListObjectsV2Output>
    where
        'a: 'r,
        Self: 'r,
    {
        Box::pin(async move { self.list(request.input) })
    }
}

/// The account.
pub(super) struct Keys;

impl S3Auth for Keys {
    fn get_secret_key<'a, 'b, 'r>(
        &'a self,
        access_key: &'b str,
    ) -> Pin<Box<dyn Future<Output = S3Result<SecretKey>> + Send + 'r>>
    where
        'a: 'r,
        'b: 'r,
        Self: 'r,
    {
        let known = (access_key == ACCESS_KEY).then(|| SecretKey::from(SECRET_KEY));
        Box::pin(async move { known.ok_or_else(|| s3_error!(InvalidAccessKeyId)) })
    }
}

fn is_ours(bucket: &str) -> S3Result<()> {
    if bucket == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

fn tag(bytes: &[u8]) -> ETag {
    ETag::Strong(format!("{:08x}", moldau_records::crc32c(bytes)))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Small, so that lists have several pages.
const PAGE: usize = 5;
/// Stands for a slash in the names of files.
const SLASH: &str = "%";
/// The end of the names of files that are being written.
const BEGUN: &str = ".begun";
