//! An object store in memory: as much of S3's protocol as brokers speak, for one bucket. It looks
//! at the access key and not at signatures, as it serves the loopback interface alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::ops::{Bound, Range};
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
use tokio::task::JoinHandle;

/// A running store; it ends when dropped.
pub(in crate::commands) struct Store {
    pub(super) address: SocketAddr,
    access_key: String,
    accepting: JoinHandle<()>,
}

struct Shared {
    access_key: String,
    /// Guards the objects by name.
    objects: Mutex<Objects>,
}

#[derive(Default)]
struct Objects {
    by_name: BTreeMap<String, Object>,
    bytes: usize,
}

struct Object {
    written: OffsetDateTime,
    bytes: Bytes,
}

type Answer = Response<Full<Bytes>>;

impl Store {
    pub(super) async fn start() -> std::io::Result<Self> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::start_on(any, format!("{:032X}", fastrand::u128(..))).await
    }

    /// One at an address that serves whoever names this key.
    pub(in crate::commands) async fn start_on(
        address: SocketAddr,
        access_key: String,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Shared { access_key: access_key.clone(), objects: Mutex::default() };
        let accepting = tokio::spawn(accept(listener, Arc::new(shared)));
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
    let (body, query) = (body.to_bytes(), head.uri.query().unwrap_or_default());
    let mut objects = shared.lock();
    Ok(match (head.method, name) {
        (Method::PUT, name) if !name.is_empty() => objects.put(name, &head.headers, body),
        (Method::GET, "") => objects.list(query),
        (Method::GET, name) => objects.get(name, &head.headers),
        (Method::POST, "") => objects.delete(&String::from_utf8_lossy(&body)),
        _ => refusal(StatusCode::NOT_IMPLEMENTED, "NotImplemented"),
    })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Objects {
    fn put(&mut self, name: &str, headers: &HeaderMap, bytes: Bytes) -> Answer {
        if headers.contains_key(IF_NONE_MATCH) && self.by_name.contains_key(name) {
            return refusal(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        if self.bytes.saturating_add(bytes.len()) > BYTES_MAX {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "SlowDown");
        }
        self.bytes += bytes.len();
        let object = Object { written: OffsetDateTime::now_utc(), bytes };
        let answer = with_tag(&object).body(Full::default());
        if let Some(replaced) = self.by_name.insert(name.to_owned(), object) {
            self.bytes -= replaced.bytes.len();
        }
        answer.expect("the headers are valid")
    }

    fn get(&self, name: &str, headers: &HeaderMap) -> Answer {
        let Some(object) = self.by_name.get(name) else {
            return refusal(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let (whole, answer) = (object.bytes.len(), with_tag(object));
        let written = object.written.format(&Rfc2822).unwrap_or_default();
        let answer = answer.header(LAST_MODIFIED, written.replace("+0000", "GMT"));
        let Some(range) = headers.get(RANGE).and_then(|range| range.to_str().ok()) else {
            return answer.body(Full::new(object.bytes.clone())).expect("the headers are valid");
        };
        let Some(Range { start, end }) = range_of(range, whole) else {
            return refusal(StatusCode::RANGE_NOT_SATISFIABLE, "InvalidRange");
        };
        answer
            .status(StatusCode::PARTIAL_CONTENT)
            .header(CONTENT_RANGE, format!("bytes {start}-{}/{whole}", end - 1))
            .body(Full::new(object.bytes.slice(start..end)))
            .expect("the headers are valid")
    }

    fn list(&self, query: &str) -> Answer {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
            value.map(|value| value.replace("%2F", "/")).unwrap_or_default()
        };
        let (prefix, after) =
            (value("prefix"), value("start-after").max(value("continuation-token")));
        let behind =
            self.by_name.range::<str, _>((Bound::Excluded(after.as_str()), Bound::Unbounded));
        let mut wanted = behind.filter(|(name, _)| name.starts_with(&prefix)).peekable();
        let (mut contents, mut last) = (String::new(), "");
        for (name, object) in wanted.by_ref().take(PAGE) {
            let (written, size) = (object.written.format(&Rfc3339), object.bytes.len());
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

    fn delete(&mut self, request: &str) -> Answer {
        let mut deleted = String::new();
        let names = request.split("<Key>").skip(1).filter_map(|rest| rest.split("</Key>").next());
        for name in names {
            if let Some(object) = self.by_name.remove(name) {
                self.bytes -= object.bytes.len();
            }
            // As above.
            let _ = write!(deleted, "<Deleted><Key>{name}</Key></Deleted>");
        }
        document(&format!("<DeleteResult>{deleted}</DeleteResult>"))
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
    let tag = format!("\"{:08x}\"", moldau_records::crc32c(&object.bytes));
    Response::builder().header(ETAG, tag)
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

pub(super) const BUCKET: &str = "records";
/// More than three brokers open.
const CONNECTIONS_MAX: usize = 256;
/// An object has at most 256 MiB and a header.
const BODY_BYTES_MAX: usize = 300 << 20;
/// A demonstration writes some MiB.
const BYTES_MAX: usize = 1 << 30;
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
        let mut objects = Objects::default();
        let once = HeaderMap::from_iter([(IF_NONE_MATCH, "*".parse().unwrap())]);
        for number in 0..=PAGE {
            let put = objects.put(&format!("a/{number:04}"), &once, Bytes::from_static(b"12"));
            assert_eq!(put.status(), StatusCode::OK);
        }
        let again = objects.put("a/0000", &once, Bytes::new());
        assert_eq!(again.status(), StatusCode::PRECONDITION_FAILED);
        assert_eq!(objects.bytes, 2 * (PAGE + 1));
        let listed = |query: &str| format!("{:?}", objects.list(query).into_body());
        let first = listed("list-type=2&prefix=a%2F");
        assert!(first.contains("<NextContinuationToken>a/0999<"), "{first}");
        let rest = listed("list-type=2&prefix=a%2F&continuation-token=a%2F0999");
        assert!(rest.contains("<Key>a/1000<") && rest.contains("<IsTruncated>false<"), "{rest}");
        assert!(!listed("list-type=2&prefix=b").contains("<Key>"));
        objects.delete("<Delete><Object><Key>a/0000</Key></Object></Delete>");
        assert_eq!(objects.get("a/0000", &once).status(), StatusCode::NOT_FOUND);
        assert_eq!(objects.bytes, 2 * PAGE);
    }
}
