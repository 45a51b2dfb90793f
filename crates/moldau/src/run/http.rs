//! Handlers that are HTTP services: each request is a POST with the document.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use moldau_net::Stream;
use moldau_net::tls::ClientTls;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::document::{Document, Form};
use super::frames::FRAME_BYTES_MAX;
use super::reply::{Outcome, Refusal, Retrying, shown};
use super::requests::Answer;

/// How a service is reached.
pub(crate) struct HttpSettings {
    pub(crate) to: HttpTo,
    /// Connections, and so requests, at a time.
    pub(crate) connections_max: usize,
    /// How long a request may take, with its connection.
    pub(crate) timeout: Duration,
    pub(crate) form: Form,
}

/// An address that requests are posted to.
pub(crate) struct HttpTo {
    host: String,
    port: u16,
    /// Path and query.
    path: String,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
    tls: Option<Arc<ClientTls>>,
}

/// A service. It keeps connections for further requests.
pub(crate) struct HttpService {
    settings: HttpSettings,
    next_id: AtomicU64,
    slots: Semaphore,
    /// Guards the connections without a request.
    idle: Mutex<Vec<Connection>>,
}

type Connection = SendRequest<Full<Bytes>>;

impl HttpTo {
    /// Reads `http://host[:port][/path]`, or `https://...`, which needs `tls`. `authorization` is
    /// the value of that header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(
        url: &str,
        authorization: Option<&str>,
        tls: Option<Arc<ClientTls>>,
    ) -> Result<Self, String> {
        if url.contains('@') {
            // A password in it would stand in logs.
            return Err("a user and password belong into authorization_file".to_owned());
        }
        let uri: Uri = url.parse().map_err(|error| format!("{url:?}: {error}"))?;
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        if !is_secure && uri.scheme() != Some(&Scheme::HTTP) {
            return Err(format!("{url:?} is neither an http nor an https address"));
        }
        let authority = uri.authority().ok_or_else(|| format!("{url:?} names no host"))?;
        if authority.host().is_empty() {
            return Err(format!("{url:?} names no host"));
        }
        let header = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        let authorization = authorization.map(|text| {
            let mut value = header(text)?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if is_secure { 443 } else { 80 }),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            authority: header(authority.as_str())?,
            authorization: authorization.transpose()?,
            tls: tls.filter(|_| is_secure),
        })
    }

    async fn connect(&self) -> Result<Connection, String> {
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await;
        let socket = socket.map_err(|error| error.to_string())?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        let stream = match &self.tls {
            Some(tls) => {
                tls.connect(socket, &self.host).await.map_err(|error| error.to_string())?
            }
            None => Stream::from(socket),
        };
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a handler ended");
            }
        });
        Ok(sender)
    }

    fn request(&self, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = hyper::Method::POST;
        *request.uri_mut() = self.path.parse().expect("it was part of an address");
        let headers = request.headers_mut();
        headers.insert(HOST, self.authority.clone());
        headers.insert(USER_AGENT, HeaderValue::from_static("moldau"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        request
    }
}

/// Without the query, which may hold a secret.
impl fmt::Display for HttpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let brackets = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{}{}{}:{}{path}", brackets.0, self.host, brackets.1, self.port)
    }
}

impl HttpService {
    pub(crate) fn new(settings: HttpSettings) -> Self {
        let slots = Semaphore::new(settings.connections_max);
        Self { settings, next_id: AtomicU64::new(1), slots, idle: Mutex::default() }
    }

    /// Number of a request, never used twice.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Posts a document and waits for the answer.
    pub(super) async fn exchange(&self, document: Document) -> Answer {
        let _slot = self.slots.acquire().await.expect("the semaphore is never closed");
        match timeout(self.settings.timeout, self.post(document.json)).await {
            Ok(Ok(outcome)) => Answer::Replied(outcome),
            Ok(Err(problem)) => {
                let error = format!("{}: {problem}", self.settings.to);
                Answer::Replied(Outcome::Refused(Refusal { error, ..Refusal::default() }))
            }
            Err(_) => Answer::TimedOut,
        }
    }

    async fn post(&self, body: Bytes) -> Result<Outcome, String> {
        let to = &self.settings.to;
        // The other side may have closed what was idle: then another connection is tried.
        while let Some(mut kept) = self.take_idle() {
            if kept.ready().await.is_err() {
                continue;
            }
            if let Ok(response) = kept.send_request(to.request(body.clone())).await {
                return self.outcome(response, kept).await;
            }
        }
        let mut connection = to.connect().await?;
        let response = connection.send_request(to.request(body)).await;
        self.outcome(response.map_err(|error| error.to_string())?, connection).await
    }

    async fn outcome(
        &self,
        response: Response<hyper::body::Incoming>,
        connection: Connection,
    ) -> Result<Outcome, String> {
        let (head, body) = response.into_parts();
        let body = Limited::new(body, FRAME_BYTES_MAX).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if !connection.is_closed() {
            self.lock().push(connection);
        }
        outcome(head.status, &head.headers, &body, self.settings.form)
    }

    fn take_idle(&self) -> Option<Connection> {
        self.lock().pop()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a response says of its request.
fn outcome(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    form: Form,
) -> Result<Outcome, String> {
    if headers.get(CONTENT_TYPE).is_some_and(is_reply) {
        let parsed = Outcome::parse_body(body, form, status.is_success());
        return parsed.map_err(|problem| format!("wrote {}, a reply {problem}", shown(body)));
    }
    if status.is_success() {
        return Ok(Outcome::Done(Vec::new()));
    }
    let mut error = format!("answered {status}");
    if !body.is_empty() {
        error = format!("{error}: {}", shown(body));
    }
    let retry = if !is_retriable(status) {
        Retrying::Never
    } else {
        match retry_after(headers, SystemTime::now()) {
            Some(pause) => Retrying::After(pause),
            None => Retrying::Usual,
        }
    };
    Ok(Outcome::Refused(Refusal { error, retry, ..Refusal::default() }))
}

/// Whether a content type is that of a reply. Frameworks add a parameter such as `charset=utf-8`.
fn is_reply(content_type: &HeaderValue) -> bool {
    let media_type = content_type.as_bytes().split(|byte| *byte == b';').next();
    media_type.is_some_and(|it| it.trim_ascii().eq_ignore_ascii_case(REPLY_TYPE))
}

/// Whether a status says nothing about the record itself: the service is busy, is being deployed,
/// or refuses this client.
fn is_retriable(status: StatusCode) -> bool {
    match status {
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::PROXY_AUTHENTICATION_REQUIRED
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::CONFLICT
        | StatusCode::MISDIRECTED_REQUEST
        | StatusCode::LOCKED
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => true,
        status => !status.is_client_error(),
    }
}

/// The pause that the header `Retry-After` asks for: seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(SystemTime::from(at).duration_since(now).unwrap_or_default())
}

/// Content type of a body that is a reply as processes write it.
const REPLY_TYPE: &[u8] = b"application/vnd.moldau+json";

#[cfg(test)]
mod tests {
    use super::super::document::Encoding;
    use super::*;

    const TEXT: Form =
        Form::Values { key: Encoding::Text, value: Encoding::Text, headers: Encoding::Text };

    fn refusal(status: u16, headers: &HeaderMap, body: &[u8]) -> Refusal {
        let status = StatusCode::from_u16(status).unwrap();
        match outcome(status, headers, body, TEXT).unwrap() {
            Outcome::Refused(refusal) => refusal,
            Outcome::Done(_) => panic!("{status} is done"),
        }
    }

    #[test]
    fn a_status_says_what_becomes_of_the_record() {
        let none = HeaderMap::new();
        for status in [200, 202, 204] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(outcome(status, &none, b"{}", TEXT), Ok(Outcome::Done(Vec::new())));
        }
        for status in [302, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504] {
            assert_eq!(refusal(status, &none, b"").retry, Retrying::Usual, "{status}");
        }
        for status in [400, 405, 410, 413, 415, 422] {
            assert_eq!(refusal(status, &none, b"").retry, Retrying::Never, "{status}");
        }
        let error = refusal(422, &none, b"no such item").error;
        assert_eq!(error, "answered 422 Unprocessable Entity: \"no such item\"");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let asked = |text: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770))
        };
        assert_eq!(asked("120"), Some(Duration::from_secs(120)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(7)));
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:07 GMT"), Some(Duration::ZERO));
        assert_eq!(asked("soon"), None);
    }

    #[test]
    fn a_body_of_the_reply_type_is_a_reply() {
        let value = HeaderValue::from_bytes(REPLY_TYPE).unwrap();
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, value)]);
        let produce = br#"{"produce":[{"topic":"t","value":"v"}]}"#;
        let Ok(Outcome::Done(produced)) = outcome(StatusCode::OK, &headers, produce, TEXT) else {
            panic!("it is done")
        };
        assert_eq!(produced[0].topic, "t");
        let failed = refusal(200, &headers, br#"{"error":"e","failed":[1],"retry":false}"#);
        assert_eq!((failed.failed, failed.retry), (vec![1], Retrying::Never));
        let wrong = outcome(StatusCode::OK, &headers, b"ok", TEXT).unwrap_err();
        assert!(wrong.ends_with("a reply that is not valid: expected value at line 1 column 1"));
        assert!(wrong.starts_with("wrote \"ok\", a reply "), "{wrong}");
    }

    /// Flask, Express and others add a charset; the error in the body was taken for success.
    #[test]
    fn a_reply_type_with_parameters_is_one() {
        for name in ["application/vnd.moldau+json; charset=utf-8", "Application/vnd.Moldau+JSON"] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(name))]);
            assert_eq!(refusal(200, &headers, br#"{"error":"e"}"#).error, "e", "{name}");
        }
    }

    #[test]
    fn wrong_addresses_are_refused() {
        for url in ["", "host/path", "ftp://host/", "http://:80/", "http://user:secret@host/"] {
            let refused = HttpTo::parse(url, None, None).map(|to| to.to_string()).unwrap_err();
            assert!(!refused.contains("secret"), "{refused}");
        }
        let to = HttpTo::parse("http://[::1]:81/a?token=secret", None, None).unwrap();
        assert_eq!(to.to_string(), "http://[::1]:81/a");
    }
}
