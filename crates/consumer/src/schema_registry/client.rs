//! The registry's REST interface.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use moldau_net::HttpTarget;
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, TrustAnchors};
use serde::Deserialize;

use super::{RegistryError, SchemaId};

/// Sends requests, each over a connection of its own: schemas are kept, so there are few.
#[derive(Clone)]
pub(super) struct Client {
    authority: String,
    host: String,
    port: u16,
    /// Without a slash at its end; often empty.
    path: String,
    tls: Option<Arc<ClientTls>>,
    authorization: Option<HeaderValue>,
}

/// A schema, and those that it refers to.
#[derive(Deserialize)]
struct Answer {
    schema: String,
    #[serde(default)]
    references: Vec<Reference>,
}

#[derive(Deserialize)]
struct Reference {
    subject: String,
    version: i32,
}

#[derive(Deserialize)]
struct Registered {
    id: u32,
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: String,
}

impl Client {
    pub(super) fn new(url: &str) -> Result<Self, RegistryError> {
        let fault = |reason: &str| RegistryError::Setting(format!("{url:?} {reason}"));
        let uri: Uri = url.parse().map_err(|_| fault("is not a URL"))?;
        let has_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(fault("does not begin with https:// or http://")),
        };
        let authority = uri.authority().ok_or_else(|| fault("names no host"))?;
        if uri.query().is_some() || authority.as_str().contains('@') {
            // Its text is not repeated: it may hold a password.
            let reason = "the URL of the schema registry has a query or a user";
            return Err(RegistryError::Setting(reason.to_owned()));
        }
        let client = Self {
            authority: authority.as_str().to_owned(),
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(if has_tls { 443 } else { 80 }),
            path: uri.path().trim_end_matches('/').to_owned(),
            tls: None,
            authorization: None,
        };
        if !has_tls {
            return Ok(client);
        }
        let trust = TrustAnchors::native();
        client.trust(trust.map_err(|error| RegistryError::Setting(error.to_string()))?)
    }

    pub(super) fn trust(mut self, trust: TrustAnchors) -> Result<Self, RegistryError> {
        let tls = ClientTls::new(ClientTlsSettings {
            trust,
            identity: None,
            provider: CryptoProvider::default(),
            verify_host_name: true,
        });
        let tls = tls.map_err(|error| RegistryError::Setting(error.to_string()))?;
        self.tls = Some(Arc::new(tls));
        Ok(self)
    }

    pub(super) fn basic_auth(self, user: &str, password: &str) -> Result<Self, RegistryError> {
        if user.contains(':') {
            let reason = "the user of the schema registry has a colon";
            return Err(RegistryError::Setting(reason.to_owned()));
        }
        self.authorization(&format!("Basic {}", BASE64.encode(format!("{user}:{password}"))))
    }

    pub(super) fn authorization(mut self, value: &str) -> Result<Self, RegistryError> {
        let reason = "the credentials of the schema registry cannot be sent";
        let value = HeaderValue::from_str(value);
        let mut value = value.map_err(|_| RegistryError::Setting(reason.to_owned()))?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    /// The text of a schema, after the texts of all that it refers to.
    #[cfg_attr(not(feature = "avro"), allow(dead_code, reason = "other formats need no schema"))]
    pub(super) async fn schema(&self, id: &SchemaId) -> Result<Vec<String>, RegistryError> {
        let path = match id {
            SchemaId::Id(id) => format!("/schemas/ids/{id}"),
            SchemaId::Guid(guid) => format!("/schemas/guids/{guid}"),
        };
        let what = format!("schema {id}");
        let first: Answer = self.ask(Method::GET, &path, Bytes::new(), &what).await?;
        // Each is moved behind those that it refers to once these are read.
        let mut texts = vec![first.schema];
        let (mut open, mut seen) = (first.references, HashSet::new());
        while let Some(Reference { subject, version }) = open.pop() {
            let subject = percent_encode(&subject);
            let path = format!("/subjects/{subject}/versions/{version}");
            if !seen.insert(path.clone()) {
                continue;
            }
            if seen.len() > REFERENCES_MAX {
                let reason = format!("it refers to more than {REFERENCES_MAX} schemas");
                return Err(RegistryError::Schema { id: id.clone(), reason });
            }
            let what = format!("version {version} of subject {subject}");
            let answer: Answer = self.ask(Method::GET, &path, Bytes::new(), &what).await?;
            texts.insert(0, answer.schema);
            open.extend(answer.references);
        }
        Ok(texts)
    }

    pub(super) async fn register(
        &self,
        subject: &str,
        kind: &str,
        schema: &str,
    ) -> Result<u32, RegistryError> {
        let path = format!("/subjects/{}/versions", percent_encode(subject));
        let body = serde_json::json!({ "schema": schema, "schemaType": kind }).to_string();
        let what = format!("subject {subject}");
        let Registered { id } = self.ask(Method::POST, &path, body.into(), &what).await?;
        Ok(id)
    }

    /// Sends one request, which is about `what`.
    async fn ask<T: for<'de> Deserialize<'de>>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        what: &str,
    ) -> Result<T, RegistryError> {
        let unavailable = |reason: String| {
            RegistryError::Unavailable(format!("{} of {}: {reason}", what, self.authority))
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.path))
            .header(HOST, &self.authority)
            .header(ACCEPT, CONTENT)
            .header(CONTENT_TYPE, CONTENT)
            .body(body)
            .map_err(|error| RegistryError::Setting(error.to_string()))?;
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        let target = HttpTarget { host: &self.host, port: self.port, tls: self.tls.as_deref() };
        let answer = tokio::time::timeout(TIME_MAX, target.exchange(request, BODY_BYTES_MAX));
        let answer = answer
            .await
            .map_err(|_| unavailable(format!("no answer within {} s", TIME_MAX.as_secs())))?
            .map_err(unavailable)?;
        let status = answer.status();
        if status.is_success() {
            let decoded = serde_json::from_slice(answer.body());
            return decoded.map_err(|error| unavailable(format!("it answers wrongly: {error}")));
        }
        let refusal: Refusal = serde_json::from_slice(answer.body()).unwrap_or_default();
        let message: String = refusal.message.chars().take(MESSAGE_CHARS_MAX).collect();
        match status.as_u16() {
            404 => Err(RegistryError::Unknown(what.to_owned())),
            408 | 429 | 500.. => Err(unavailable(format!("status {status}: {message}"))),
            status => Err(RegistryError::Refused { status, message }),
        }
    }
}

/// Encodes a text as one segment of a path: all but the unreserved characters of RFC 3986.
fn percent_encode(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// The registry's own content type.
const CONTENT: &str = "application/vnd.schemaregistry.v1+json";

/// Longest time for one request, its connection included: a handler waits meanwhile.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Longest answer: registries limit a schema to 1 MiB by default.
const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most schemas that one refers to, which also ends circles.
const REFERENCES_MAX: usize = 100;

/// Longest message of a registry that is kept.
const MESSAGE_CHARS_MAX: usize = 300;
