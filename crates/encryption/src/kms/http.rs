//! One request to a service over HTTP/1.1, with TLS or without.
//!
//! Each request has a connection of its own, which the caller's task drives: services are asked a
//! few times an hour, from several runtimes, so that a kept connection would be stale more often
//! than used. TLS sessions are resumed. Bodies are overwritten when they are dropped; what the
//! libraries for HTTP and TLS buffer meanwhile is out of reach.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{ACCEPT, HOST, HeaderName, HeaderValue};
use hyper::{Method, Request, Uri};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, TrustAnchors};
use moldau_net::{HttpTarget, TlsError};
use tokio::time::timeout;
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
    /// Or why there is no TLS: a system may have no certificates, and need none.
    tls: Result<ClientTls, String>,
}

impl HttpClient {
    /// A client that trusts the certificates in `ca_file`, or else those of the system.
    ///
    /// # Errors
    /// [`Error::Setting`] if the file cannot be read or holds none.
    pub(super) fn new(ca_file: Option<&Path>) -> Result<Self, Error> {
        let Some(file) = ca_file else {
            let tls = TrustAnchors::native().and_then(tls).map_err(|error| error.to_string());
            return Ok(Self { tls });
        };
        let read = std::fs::read(file).map_err(|error| error.to_string());
        let trust = read.and_then(|text| {
            TrustAnchors::from_pem(&text).and_then(tls).map_err(|error| error.to_string())
        });
        let trust = trust.map_err(|reason| Error::Setting {
            setting: "ca_file",
            reason: format!("{}: {reason}", file.display()),
        })?;
        Ok(Self { tls: Ok(trust) })
    }

    /// Sends one request and reads the answer, with any status.
    ///
    /// # Errors
    /// [`KmsError::Unavailable`] if there is none in time.
    pub(super) async fn send(&self, to: &Endpoint, ask: Ask) -> Result<Answer, KmsError> {
        let failed = |reason: String| KmsError::Unavailable(format!("{}: {reason}", to.authority));
        let request = request(to, ask).map_err(failed)?;
        let tls = match &self.tls {
            _ if !to.tls => None,
            Ok(tls) => Some(tls),
            Err(reason) => return Err(failed(reason.clone())),
        };
        let target = HttpTarget { host: &to.host, port: to.port, tls };
        let answer = match timeout(TIME_MAX, target.exchange(request, BODY_BYTES_MAX)).await {
            Ok(answer) => answer.map_err(failed)?,
            Err(_) => return Err(failed(format!("no answer within {} s", TIME_MAX.as_secs()))),
        };
        let status = answer.status().as_u16();
        Ok(Answer { status, body: Zeroizing::new(answer.into_body().into()) })
    }
}

fn tls(trust: TrustAnchors) -> Result<ClientTls, TlsError> {
    ClientTls::new(ClientTlsSettings {
        trust,
        identity: None,
        provider: CryptoProvider::default(),
        verify_host_name: true,
    })
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

fn request(to: &Endpoint, ask: Ask) -> Result<Request<Bytes>, String> {
    let mut request = Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header(HOST, &to.authority)
        .body(Bytes::from_owner(ask.body))
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
        assert!(
            error.starts_with("ca_file: ") && error.contains("no certificate in it"),
            "{error}"
        );
    }
}
