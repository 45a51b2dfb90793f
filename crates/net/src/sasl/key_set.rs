//! Fetches an issuer's key set over HTTP/1.1.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST};
use hyper::http::uri::Scheme;
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::stream::Stream;
use crate::tls::ClientTls;

/// An address that gives a key set.
pub(super) struct KeySetUrl {
    uri: Uri,
    host: String,
    port: u16,
    tls: Option<Arc<ClientTls>>,
}

impl KeySetUrl {
    pub(super) fn parse(url: &str, tls: Option<Arc<ClientTls>>) -> Result<Self, String> {
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

    /// The set's bytes, within [`TIMEOUT`].
    pub(super) async fn fetch(&self) -> Result<Bytes, String> {
        let fetching = tokio::time::timeout(TIMEOUT, self.get());
        fetching.await.map_err(|_| "no answer in time".to_owned())?
    }

    async fn get(&self) -> Result<Bytes, String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let socket = TcpStream::connect((self.host.as_str(), self.port)).await;
        let socket = socket.map_err(|error| text(&error))?;
        let stream = match &self.tls {
            Some(tls) => tls.connect(socket, &self.host).await.map_err(|error| text(&error))?,
            None => Stream::from(socket),
        };
        let handshake = http1::handshake::<_, Empty<Bytes>>(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
        let path = self.uri.path_and_query().map_or("/", |path| path.as_str());
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let request = Request::get(path)
            .header(HOST, authority)
            .header(ACCEPT, "application/json")
            .body(Empty::new())
            .map_err(|error| text(&error))?;
        let answer = async {
            let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
            if answer.status() != StatusCode::OK {
                return Err(format!("the answer is {}", answer.status()));
            }
            let body = Limited::new(answer.into_body(), KEY_SET_BYTES_MAX).collect().await;
            Ok(body.map_err(|error| error.to_string())?.to_bytes())
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

/// Whether the same set is meant, however its server is believed.
impl PartialEq for KeySetUrl {
    fn eq(&self, other: &Self) -> bool {
        self.uri == other.uri
    }
}

impl fmt::Display for KeySetUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the query, which may hold a secret.
        write!(f, "{}:{}{}", self.host, self.port, self.uri.path())
    }
}

/// Longest wait for a key set.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A key takes a kilobyte or two, with its certificates.
const KEY_SET_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

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
        let fetched = KeySetUrl::parse(&url, None).unwrap().fetch().await;
        assert_eq!(fetched, Err("no answer in time".to_owned()));
        assert!(begun.elapsed() >= TIMEOUT);
        silent.await.unwrap();
    }
}
