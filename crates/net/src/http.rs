//! Single requests to an HTTP/1.1 server, plain or over TLS, each on a connection of its own.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::stream::Stream;
use crate::tls::ClientTls;

/// An address of an HTTP server.
pub struct HttpUrl {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientTls>>,
}

impl HttpUrl {
    /// Reads `http://host[:port]/path`, or `https://...`, which needs `tls`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(url: &str, tls: Option<Arc<ClientTls>>) -> Result<Self, String> {
        // What stands before an `@` may be a name and a password, and a password may hold any
        // character, so that nothing else about such an address can be relied on, or shown.
        if url.contains('@') {
            return Err("an address has an @: a user and password are not supported; write any \
                        other @ as %40"
                .to_owned());
        }
        // Errors show it without the query, which may hold a secret.
        let shown = url.split(['?', '#']).next().unwrap_or_default();
        let uri: Uri = url.parse().map_err(|error| format!("{shown:?}: {error}"))?;
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        if !secure && uri.scheme() != Some(&Scheme::HTTP) {
            return Err(format!("{shown:?} is neither an http nor an https address"));
        }
        if secure && tls.is_none() {
            return Err(format!("{shown:?} needs TLS settings"));
        }
        let host = uri.host().ok_or_else(|| format!("{shown:?} names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { uri, host, port, tls: tls.filter(|_| secure) })
    }

    /// What the address gives, within ten seconds.
    ///
    /// # Errors
    /// Why it gives nothing.
    pub async fn get(&self) -> Result<Bytes, String> {
        let request = Request::get(self.path()).body(Bytes::new());
        self.send(request.map_err(|error| error.to_string())?).await
    }

    /// Gives the address a body of this type, within ten seconds.
    ///
    /// # Errors
    /// Why it was not taken.
    pub async fn post(
        &self,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> Result<(), String> {
        let request = Request::post(self.path())
            .header(CONTENT_TYPE, HeaderValue::from_static(content_type))
            .body(body.into());
        self.send(request.map_err(|error| error.to_string())?).await.map(drop)
    }

    fn path(&self) -> &str {
        self.uri.path_and_query().map_or("/", |path| path.as_str())
    }

    async fn send(&self, mut request: Request<Bytes>) -> Result<Bytes, String> {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let authority = HeaderValue::from_str(authority).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, authority);
        let accepted = request.headers().get(CONTENT_TYPE).cloned();
        let accepted = accepted.unwrap_or(HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, accepted);
        let to = HttpTarget { host: &self.host, port: self.port, tls: self.tls.as_deref() };
        let answer = tokio::time::timeout(TIMEOUT, to.exchange(request, ANSWER_BYTES_MAX));
        let answer = answer.await.map_err(|_| "no response in time".to_owned())??;
        if !answer.status().is_success() {
            return Err(format!("the answer is {}", answer.status()));
        }
        Ok(answer.into_body())
    }
}

/// Where an HTTP server is.
pub struct HttpTarget<'a> {
    /// A name or an IP address.
    pub host: &'a str,
    /// The port.
    pub port: u16,
    /// TLS settings of the connection, if it uses TLS.
    pub tls: Option<&'a ClientTls>,
}

impl HttpTarget<'_> {
    /// Sends one request, whose headers are complete, and reads the answer, with any status. The
    /// caller bounds the time.
    ///
    /// # Errors
    /// Why there is no answer of at most `body_bytes_max` bytes.
    pub async fn exchange(
        &self,
        request: Request<Bytes>,
        body_bytes_max: usize,
    ) -> Result<Response<Bytes>, String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let socket = TcpStream::connect((self.host, self.port)).await;
        let socket = socket.map_err(|error| text(&error))?;
        socket.set_nodelay(true).map_err(|error| text(&error))?;
        let stream = match self.tls {
            Some(tls) => tls.connect(socket, self.host).await.map_err(|error| text(&error))?,
            None => Stream::from(socket),
        };
        let handshake = http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
        let answer = async {
            let answer = sender.send_request(request.map(Full::new)).await;
            let (head, body) = answer.map_err(|error| text(&error))?.into_parts();
            let body = Limited::new(body, body_bytes_max).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            Ok(Response::from_parts(head, body))
        };
        tokio::pin!(answer, connection);
        tokio::select! {
            answer = &mut answer => answer,
            // A connection that is done may leave an answer to be read.
            done = &mut connection => match done {
                Ok(()) => answer.await,
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// Whether the same address is meant, however its server is believed.
impl PartialEq for HttpUrl {
    fn eq(&self, other: &Self) -> bool {
        self.uri == other.uri
    }
}

/// Without the query, which may hold a secret.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}{}", self.host, self.port, self.uri.path())
    }
}

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpUrl({self})")
    }
}

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Key sets are the largest answers; a key takes a kilobyte or two, with its certificates.
const ANSWER_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// The secret would stand in logs, and be sent as the name of the host.
    #[test]
    fn url_with_a_password_is_refused_and_not_shown() {
        for url in [
            "http://user:secret@host/keys",
            "http://secret@host",
            "https://user:secret@host:8443/keys?query#fragment",
            "ftp://user:secret@host",
            "user:secret@host",
            "http://user:se cret@ host/",
            "http://user:sec/ret@[::1]/",
            "http://user:sec?ret@host",
        ] {
            let refused = HttpUrl::parse(url, None).map(|url| url.to_string()).unwrap_err();
            assert!(refused.starts_with("an address has an @"), "{refused}");
            assert!(!refused.contains("sec") && !refused.contains("host"), "{refused}");
        }
        assert!(HttpUrl::parse("http://host/keys?of=user%40host", None).is_ok());
    }

    /// The clock goes on by itself whenever nothing happens.
    #[tokio::test(start_paused = true)]
    async fn answer_that_does_not_come_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let silent = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_to_end(&mut Vec::new()).await.unwrap()
        });
        let begun = tokio::time::Instant::now();
        let fetched = HttpUrl::parse(&url, None).unwrap().get().await;
        assert_eq!(fetched, Err("no response in time".to_owned()));
        assert!(begun.elapsed() >= TIMEOUT);
        silent.await.unwrap();
    }
}
