//! An object store in files: as much of S3's protocol as brokers speak, for one bucket. It looks at
//! the access key and not at signatures, as it serves the loopback interface alone. Its files are
//! of no use to the next one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::ops::{Bound, Range};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, LAST_MODIFIED,
    RANGE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, spawn_blocking};

/// A running store; it ends when dropped.
pub(in crate::commands) struct Store {
    pub(super) address: SocketAddr,
    access_key: String,
    accepting: JoinHandle<()>,
}

struct Shared {
    access_key: String,
    directory: PathBuf,
    /// Number of the next file.
    next: AtomicU64,
    /// Guards the objects by name.
    objects: Mutex<BTreeMap<String, Object>>,
}

#[derive(Clone)]
struct Object {
    written: OffsetDateTime,
    size: usize,
    tag: String,
    file: PathBuf,
}

type Answer = Response<Full<Bytes>>;

impl Store {
    pub(super) async fn start(directory: PathBuf) -> io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_on(any, format!("{:032X}", fastrand::u128(..)), directory).await
    }

    /// One at an address that serves whoever names this key, with its files in a new directory.
    pub(in crate::commands) async fn start_on(
        address: SocketAddr,
        access_key: String,
        directory: PathBuf,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(access_key.clone(), directory)?);
        let accepting = tokio::spawn(accept(listener, shared));
        Ok(Self { address, access_key, accepting })
    }

    /// The file of keys, in the form of AWS.
    pub(super) fn keys(&self) -> String {
        let (access_key, secret) = (&self.access_key, fastrand::u128(..));
        format!(
            "[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret:032x}\n"
        )
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let _place = place;
            let answer = service_fn(move |request| answer(Arc::clone(&shared), request));
            // A client that goes away is its own matter.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await);
        });
    }
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    let (head, body) = request.into_parts();
    let signer = head.headers.get(AUTHORIZATION).and_then(|signer| signer.to_str().ok());
    let key = signer.and_then(|text| text.split_once("Credential=")?.1.split('/').next());
    if key != Some(shared.access_key.as_str()) {
        return Ok(refusal(StatusCode::FORBIDDEN, "InvalidAccessKeyId"));
    }
    let Some(name) = name_of(head.uri.path()) else {
        return Ok(refusal(StatusCode::NOT_FOUND, "NoSuchBucket"));
    };
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        return Ok(refusal(StatusCode::BAD_REQUEST, "IncompleteBody"));
    };
    let name = name.to_owned();
    let answer = spawn_blocking(move || {
        let (body, query) = (body.to_bytes(), head.uri.query().unwrap_or_default());
        match (head.method, name.as_str()) {
            (Method::PUT, name) if !name.is_empty() => shared.put(name, &head.headers, &body),
            (Method::GET, "") => shared.list(query),
            (Method::GET, name) => shared.get(name, &head.headers),
            (Method::POST, "") => shared.delete(&String::from_utf8_lossy(&body)),
            _ => refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
        }
    });
    // It ends early only with the process.
    Ok(answer.await.unwrap_or_else(|_| refusal(StatusCode::SERVICE_UNAVAILABLE, "Shutdown")))
}

impl Shared {
    fn new(access_key: String, directory: PathBuf) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
        };
        fs::create_dir(&directory).map_err(named)?;
        let (next, objects) = (AtomicU64::default(), Mutex::default());
        Ok(Self { access_key, directory, next, objects })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Object>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, name: &str, headers: &HeaderMap, bytes: &[u8]) -> Answer {
        let file = self.directory.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        if let Err(error) = fs::write(&file, bytes) {
            remove(&file);
            return failure(&file, &error);
        }
        let tag = format!("\"{:08x}\"", moldau_records::crc32c(bytes));
        let (written, size) = (OffsetDateTime::now_utc(), bytes.len());
        let object = Object { written, size, tag, file };
        let answer = with_tag(&object).body(Full::default());
        let mut objects = self.lock();
        if headers.contains_key(IF_NONE_MATCH) && objects.contains_key(name) {
            drop(objects);
            remove(&object.file);
            return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        let replaced = objects.insert(name.to_owned(), object);
        drop(objects);
        if let Some(replaced) = replaced {
            remove(&replaced.file);
        }
        answer.expect("the headers are valid")
    }

    fn get(&self, name: &str, headers: &HeaderMap) -> Answer {
        let found = self.lock().get(name).cloned();
        let Some(object) = found else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
        let whole = object.size;
        let wanted = match range {
            Some(range) => range_of(range, whole),
            None => Some(0..whole),
        };
        let Some(wanted) = wanted else {
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
        };
        let bytes = match object.read(wanted.clone()) {
            Ok(bytes) => bytes,
            // It was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return refusal(StatusCode::NOT_FOUND, "NoSuchKey");
            }
            Err(error) => return failure(&object.file, &error),
        };
        let written = object.written.format(&Rfc2822).unwrap_or_default();
        let mut answer = with_tag(&object).header(LAST_MODIFIED, written.replace("+0000", "GMT"));
        if range.is_some() {
            let shown = format!("bytes {}-{}/{whole}", wanted.start, wanted.end - 1);
            answer = answer.status(StatusCode::PARTIAL_CONTENT).header(CONTENT_RANGE, shown);
        }
        answer.body(Full::new(bytes)).expect("the headers are valid")
    }

    fn list(&self, query: &str) -> Answer {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
            value.map(|value| value.replace("%2F", "/")).unwrap_or_default()
        };
        let (prefix, after) =
            (value("prefix"), value("start-after").max(value("continuation-token")));
        let objects = self.lock();
        let behind = objects.range::<str, _>((Bound::Excluded(after.as_str()), Bound::Unbounded));
        let mut wanted = behind.filter(|(name, _)| name.starts_with(&prefix)).peekable();
        let (mut contents, mut last) = (String::new(), "");
        for (name, object) in wanted.by_ref().take(PAGE) {
            let (written, size) = (object.written.format(&Rfc3339), object.size);
            let written = written.unwrap_or_default();
            // Writing to a String succeeds.
            let _ = write!(
                contents,
                "<Contents><Key>{name}</Key><LastModified>{written}</LastModified>\
                 <Size>{size}</Size></Contents>"
            );
            last = name;
        }
        let is_truncated = wanted.peek().is_some();
        let next = match is_truncated {
            true => format!("<NextContinuationToken>{last}</NextContinuationToken>"),
            false => String::new(),
        };
        document(&format!(
            "<ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{next}{contents}\
             </ListBucketResult>"
        ))
    }

    fn delete(&self, request: &str) -> Answer {
        let mut deleted = String::new();
        let names = request.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        for name in names {
            let gone = self.lock().remove(name);
            if let Some(object) = gone {
                remove(&object.file);
            }
            // As above.
            let _ = write!(deleted, "<Deleted><Key>{name}</Key></Deleted>");
        }
        document(&format!("<DeleteResult>{deleted}</DeleteResult>"))
    }
}

impl Object {
    fn read(&self, Range { start, end }: Range<usize>) -> io::Result<Bytes> {
        let mut bytes = vec![0; end - start];
        File::open(&self.file)?
            .read_exact_at(&mut bytes, u64::try_from(start).unwrap_or(u64::MAX))?;
        Ok(bytes.into())
    }
}

/// Removes a file that may be read still, or not be there.
fn remove(file: &Path) {
    if let Err(error) = fs::remove_file(file) {
        tracing::debug!(file = %file.display(), %error, "a file of the store remains");
    }
}

/// The name of an object in the path of a request; empty for the bucket.
fn name_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?.strip_prefix(BUCKET)?;
    if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
}

/// The bytes that `bytes=3-9` asks for; none if it begins behind the last one.
fn range_of(text: &str, whole: usize) -> Option<Range<usize>> {
    let (start, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let start: usize = start.parse().ok()?;
    let last = last.parse().unwrap_or(usize::MAX);
    (start < whole && last >= start).then(|| start..last.saturating_add(1).min(whole))
}

fn with_tag(object: &Object) -> hyper::http::response::Builder {
    Response::builder().header(ETAG, &object.tag)
}

fn document(text: &str) -> Answer {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{text}");
    let answer = Response::builder().header(CONTENT_TYPE, "application/xml");
    answer.body(Full::new(text.into())).expect("the headers are valid")
}

fn refusal(status: StatusCode, code: &str) -> Answer {
    let mut answer = document(&format!("<Error><Code>{code}</Code></Error>"));
    *answer.status_mut() = status;
    answer
}

/// The disk is full, or fails.
fn failure(file: &Path, error: &io::Error) -> Answer {
    tracing::warn!(file = %file.display(), %error, "the store cannot keep or read an object");
    refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
}

pub(super) const BUCKET: &str = "records";
/// More than three brokers open.
const CONNECTIONS_MAX: usize = 256;
/// An object has at most 256 MiB and a header.
const BODY_BYTES_MAX: usize = 300 << 20;
const PAGE: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_the_object() {
        assert_eq!(range_of("bytes=2-4", 10), Some(2..5));
        assert_eq!(range_of("bytes=2-40", 10), Some(2..10));
        assert_eq!(range_of("bytes=2-", 10), Some(2..10));
        for none in ["bytes=10-12", "bytes=5-2", "bytes=-3", "2-4", "bytes=2"] {
            assert_eq!(range_of(none, 10), None, "{none}");
        }
    }

    #[test]
    fn an_object_is_created_once_and_listed_in_pages() {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("objects");
        let store = Shared::new("key".into(), files.clone()).unwrap();
        let files = || fs::read_dir(&files).unwrap().count();
        let once = HeaderMap::from_iter([(IF_NONE_MATCH, "*".parse().unwrap())]);
        for number in 0..=PAGE {
            let put = store.put(&format!("a/{number:04}"), &once, b"12");
            assert_eq!(put.status(), StatusCode::OK);
        }
        let again = store.put("a/0000", &once, b"");
        assert_eq!(again.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(files(), PAGE + 1);
        let listed = |query: &str| format!("{:?}", store.list(query).into_body());
        let first = listed("list-type=2&prefix=a%2F");
        assert!(first.contains("<NextContinuationToken>a/0999<"), "{first}");
        let rest = listed("list-type=2&prefix=a%2F&continuation-token=a%2F0999");
        assert!(rest.contains("<Key>a/1000<") && rest.contains("<IsTruncated>false<"), "{rest}");
        assert!(!listed("list-type=2&prefix=b").contains("<Key>"));
        let last = HeaderMap::from_iter([(RANGE, "bytes=1-".parse().unwrap())]);
        let got = store.get("a/0000", &last);
        assert_eq!(
            (got.status(), &got.headers()[CONTENT_RANGE]),
            (StatusCode::PARTIAL_CONTENT, &"bytes 1-1/2".parse().unwrap())
        );
        store.delete("<Delete><Object><Key>a/0000</Key></Object></Delete>");
        assert_eq!(store.get("a/0000", &once).status(), StatusCode::NOT_FOUND);
        assert_eq!(files(), PAGE);
    }
}
