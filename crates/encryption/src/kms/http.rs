//! One request to a service over HTTP/1.1, with TLS or without.
//!
//! Each request has a connection of its own, which the caller's task drives: services are asked a
//! few times an hour, from several runtimes, so that a kept connection would be stale more often
//! than used. TLS sessions are resumed. Bodies are overwritten when they are dropped; what the
//! libraries for HTTP and TLS buffer meanwhile is out of reach.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::{Error, KmsError};

/// Where a service is.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    tls: bool,
    /// Host and port as they stand in the `Host` header.
    pub(super) authority: String,
    host: String,
    port: u16,
    /// Without a slash at its end; often empty.
    pub(super) path: String,
}

impl Endpoint {
    /// Reads the URL that `setting` gives.
    pub(super) fn parse(setting: &'static str, url: &str) -> Result<Self, Error> {
        let fault = |reason: &str| Error::Setting { setting, reason: format!("{url:?} {reason}") };
        let uri: Uri = url.parse().map_err(|_| fault("is not a URL"))?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(fault("does not begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| fault("names no host"))?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            return Err(fault("has a query or a user, which have no meaning here"));
        }
        Ok(Self {
            tls,
            authority: authority.as_str().to_owned(),
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// What is asked.
pub(super) struct Ask {
    pub(super) method: Method,
    /// Path and query.
    pub(super) path: String,
    /// Beside `Host` and `Accept`; their values are treated as secrets.
    pub(super) headers: Vec<(&'static str, Zeroizing<String>)>,
    pub(super) body: Zeroizing<Vec<u8>>,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Zeroizing<Vec<u8>>,
}

/// Sends requests.
pub(super) struct HttpClient {
    tls: TlsConnector,
}

impl HttpClient {
    /// A client that trusts the certificates in `ca_file`, or else those of the system.
    ///
    /// # Errors
    /// [`Error::Setting`] if the file cannot be read or holds none.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, Error> {
        let mut roots = RootCertStore::empty();
        match ca_file {
            Some(file) => add_roots(&mut roots, file).map_err(|reason| Error::Setting {
                setting: "ca_file",
                reason: format!("{}: {reason}", file.display()),
            })?,
            None => {
                let found = rustls_native_certs::load_native_certs();
                // A system may hold some that are malformed; the others serve.
                roots.add_parsable_certificates(found.certs);
            }
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the ciphers of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)) })
    }

    /// Sends one request and reads the answer, whatever its status.
    ///
    /// # Errors
    /// [`KmsError::Unavailable`] if there is none in time.
    pub(super) async fn send(&self, to: &Endpoint, ask: Ask) -> Result<Answer, KmsError> {
        let failed = |reason: String| KmsError::Unavailable(format!("{}: {reason}", to.authority));
        let request = request(to, ask).map_err(failed)?;
        let exchange = async {
            let stream = TcpStream::connect((to.host.as_str(), to.port)).await?;
            stream.set_nodelay(true)?;
            if to.tls {
                let name = ServerName::try_from(to.host.clone())?;
                exchange(self.tls.connect(name, stream).await?, request).await
            } else {
                exchange(stream, request).await
            }
        };
        match timeout(TIME_MAX, exchange).await {
            Ok(answer) => answer.map_err(|error| failed(error.to_string())),
            Err(_) => Err(failed(format!("no answer within {} s", TIME_MAX.as_secs()))),
        }
    }
}

/// Encodes a text as one segment of a path, or as one value of a form: all but the unreserved
/// characters of RFC 3986.
pub(super) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn add_roots(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())? {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() { Err("it holds no certificate".to_owned()) } else { Ok(()) }
}

fn request(to: &Endpoint, ask: Ask) -> Result<Request<Full<Bytes>>, String> {
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(HOST, &to.authority)
        .body(Full::new(Bytes::from_owner(ask.body)))
        .map_err(|error| error.to_string())?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    for (name, value) in ask.headers {
        let mut secret =
            HeaderValue::from_str(&value).map_err(|_| format!("{name} cannot be sent"))?;
        secret.set_sensitive(true);
        request.headers_mut().insert(HeaderName::from_static(name), secret);
    }
    Ok(request)
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Answer, AnyError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answer = async move {
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await?;
        Ok(Answer { status, body: Zeroizing::new(body.to_bytes().to_vec()) })
    };
    // The connection moves the bytes of the answer, and ends once the sender is dropped. An error
    // of its own, such as a peer that says no goodbye, means nothing once the answer is whole.
    let (answer, _) = tokio::join!(answer, connection);
    answer
}

/// The longest that one request may take, its connection included.
const TIME_MAX: Duration = Duration::from_secs(5);
/// The longest answer: some hundred times what services send.
const BODY_BYTES_MAX: usize = 256 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_and_senseless_ones_refused() {
        let endpoint = Endpoint::parse("url", "https://vault.example:8200/v1/transit/").unwrap();
        assert_eq!(endpoint.authority, "vault.example:8200");
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("vault.example", 8200));
        assert_eq!((endpoint.tls, endpoint.path.as_str()), (true, "/v1/transit"));
        let endpoint = Endpoint::parse("url", "http://[::1]").unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("::1", 80));
        for url in ["", "vault", "ftp://vault/", "http://u:p@vault/", "http://vault/?a=b", "/v1"] {
            assert!(Endpoint::parse("url", url).is_err(), "{url}");
        }
    }

    #[test]
    fn a_path_segment_cannot_leave_its_place() {
        assert_eq!(percent_encode("KEK_a-b.c~"), "KEK_a-b.c~");
        assert_eq!(percent_encode("a/../b c?d#e%ü"), "a%2F..%2Fb%20c%3Fd%23e%25%C3%BC");
    }

    #[test]
    fn a_ca_file_that_is_none_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("ca.pem");
        assert!(HttpClient::new(Some(&file)).is_err());
        std::fs::write(&file, "no certificate").unwrap();
        let error = HttpClient::new(Some(&file)).err().unwrap().to_string();
        assert!(error.starts_with("ca_file: ") && error.contains("no certificate"), "{error}");
    }
}
