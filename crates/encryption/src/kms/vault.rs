//! HashiCorp Vault's Transit engine, with Kroxylicious's layout.
//!
//! | its wrapped data key | |
//! |---|---|
//! | name of the Transit key | uvarint length, then UTF-8 |
//! | what Transit calls the ciphertext, such as `vault:v1:...` | UTF-8, to the end |
//!
//! An alias is the name of a Transit key. The token needs `read` on `keys/<name>`, and `update` on
//! `datakey/plaintext/<name>` and `decrypt/<name>`.

mod login;

use std::path::PathBuf;
use std::sync::Arc;

use hyper::Method;
use moldau_records::varint;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use self::login::VaultAuth;

use self::login::{Login, Token};
use super::http::{Answer, Ask, Endpoint, HttpClient, percent_encode};
use super::{KekId, Kms, KmsFuture, WrappedDataKey};
use crate::{DataKey, Edek, Error, KmsError};

/// Where Vault is, and how to log in.
#[derive(Debug, Clone)]
pub struct VaultSettings {
    /// URL of the Transit engine, such as `https://vault.example:8200/v1/transit`.
    pub url: String,
    /// Where the token comes from.
    pub auth: VaultAuth,
    /// Certificates of authorities to trust, in PEM, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Namespace of the engine and of the login, of Vault Enterprise.
    pub namespace: Option<String>,
}

/// Vault's Transit engine as a service.
pub struct Vault {
    server: Server,
    /// Path of the engine, such as `/v1/transit`.
    engine: String,
    login: Login,
}

/// The server, independent of the login.
struct Server {
    http: HttpClient,
    endpoint: Endpoint,
    namespace: Option<String>,
}

impl Vault {
    /// A service that is asked nothing yet.
    ///
    /// # Errors
    /// [`Error::Setting`] for a URL that is none or does not lead to an engine, and for
    /// certificates that cannot be read.
    pub fn new(settings: &VaultSettings) -> Result<Self, Error> {
        let endpoint = Endpoint::parse("url", &settings.url)?;
        if endpoint.path.strip_prefix("/v1/").is_none_or(str::is_empty) {
            let reason = format!("{:?} has no path like /v1/transit", settings.url);
            return Err(Error::Setting { setting: "url", reason });
        }
        let engine = endpoint.path.clone();
        let http = HttpClient::new(settings.ca_file.as_deref())?;
        let server = Server { http, endpoint, namespace: settings.namespace.clone() };
        Ok(Self { server, engine, login: Login::new(settings.auth.clone()) })
    }

    async fn resolve(&self, alias: &str) -> Result<KekId, KmsError> {
        let name = checked_name(alias).ok_or_else(|| KmsError::UnknownKey(alias.to_owned()))?;
        let path = format!("{}/keys/{}", self.engine, percent_encode(name));
        let answer = self.ask(Method::GET, path, Zeroizing::default()).await?;
        let read: KeyRead = data(&answer, name)?;
        Ok(KekId(read.name.into()))
    }

    async fn generate(&self, id: &KekId) -> Result<WrappedDataKey, KmsError> {
        let unknown = || KmsError::UnknownKey(id.0.to_string());
        let name = checked_name(&id.0).ok_or_else(unknown)?;
        let path = format!("{}/datakey/plaintext/{}", self.engine, percent_encode(name));
        let answer = self.ask(Method::POST, path, Zeroizing::default()).await?;
        let made: DataKeyMade = data(&answer, name)?;
        let key = data_key(made.plaintext)?;
        let mut edek = Vec::with_capacity(name.len() + made.ciphertext.len() + varint::LEN_32_MAX);
        let name_length = u32::try_from(name.len()).expect("a checked name is short");
        varint::write_u32(&mut edek, name_length);
        edek.extend_from_slice(name.as_bytes());
        edek.extend_from_slice(made.ciphertext.as_bytes());
        Ok(WrappedDataKey { key, edek: Edek(edek.into()) })
    }

    async fn decrypt(&self, edek: &Edek) -> Result<DataKey, KmsError> {
        let (name, ciphertext) = parts(&edek.0)?;
        let path = format!("{}/decrypt/{}", self.engine, percent_encode(name));
        let body = serde_json::json!({ "ciphertext": ciphertext }).to_string().into_bytes();
        let answer = self.ask(Method::POST, path, Zeroizing::new(body)).await?;
        match data::<Decrypted>(&answer, name) {
            Ok(decrypted) => data_key(decrypted.plaintext),
            // Transit knows the key and says 400: it is the ciphertext that it does not accept.
            Err(KmsError::Refused(_)) if answer.status == 400 => {
                Err(KmsError::DamagedEdek("Vault does not decrypt it"))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks with the token that is held. A token that is refused is replaced once: it may have
    /// been revoked, or the server may have lost it.
    async fn ask(
        &self,
        method: Method,
        path: String,
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Answer, KmsError> {
        let token = self.login.token(&self.server).await?;
        let answer = self.server.ask(method.clone(), &path, body.clone(), Some(&token)).await?;
        if answer.status != FORBIDDEN {
            return Ok(answer);
        }
        self.login.reject(&token);
        let token = self.login.token(&self.server).await?;
        self.server.ask(method, &path, body, Some(&token)).await
    }
}

impl Kms for Vault {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        Box::pin(self.resolve(alias))
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        Box::pin(self.generate(kek))
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(self.decrypt(edek))
    }

    fn maintain(&self) -> KmsFuture<'_, ()> {
        Box::pin(async { self.login.maintain(&self.server).await })
    }
}

impl Server {
    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Zeroizing<Vec<u8>>,
        token: Option<&Arc<Token>>,
    ) -> Result<Answer, KmsError> {
        let mut headers = Vec::new();
        if let Some(token) = token {
            headers.push(("x-vault-token", token.text.clone()));
        }
        if let Some(namespace) = &self.namespace {
            headers.push(("x-vault-namespace", Zeroizing::new(namespace.clone())));
        }
        let path = path.to_owned();
        self.http.send(&self.endpoint, Ask { method, path, headers, body }).await
    }
}

/// What stands in `data` of an answer to a question about the key `name`; otherwise the error that
/// its status and text say.
fn data<T: DeserializeOwned>(answer: &Answer, name: &str) -> Result<T, KmsError> {
    #[derive(Deserialize)]
    struct Reply<T> {
        data: T,
    }
    if answer.status == 200 {
        let reply: Result<Reply<T>, _> = serde_json::from_slice(&answer.body);
        return reply.map(|reply| reply.data).map_err(|_| unexpected());
    }
    Err(refusal(answer, name))
}

/// The error of an answer that is not as asked.
fn refusal(answer: &Answer, name: &str) -> KmsError {
    let complaints = complaints(&answer.body);
    let is_vault = complaints.is_some();
    let said = complaints.unwrap_or_else(|| "not in Vault's words".to_owned());
    let said_of = |words: &str| said.contains(words);
    match answer.status {
        // Neither an engine that is not mounted nor a server that is not Vault may pass for a key
        // that is not there.
        404 if is_vault && !said_of("no handler for route") => {
            KmsError::UnknownKey(name.to_owned())
        }
        // Transit says 400 where a key is missing from an engine that is there. A version below
        // the key's `min_decryption_version` was revoked.
        400 if said_of("key not found") || said_of("disallowed by policy") => {
            KmsError::UnknownKey(name.to_owned())
        }
        412 | 429 | 500.. => KmsError::Unavailable(format!("status {}: {said}", answer.status)),
        status => KmsError::Refused(format!("status {status}: {said}")),
    }
}

/// What Vault says of an error, cut to a length that a log line may have; `None` if it was not
/// Vault that spoke.
fn complaints(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Complaints {
        errors: Vec<String>,
    }
    let parsed: Complaints = serde_json::from_slice(body).ok()?;
    let said = parsed.errors.join("; ");
    Some(said.chars().map(|c| if c.is_control() { ' ' } else { c }).take(COMPLAINT_MAX).collect())
}

fn unexpected() -> KmsError {
    KmsError::Unavailable("Vault's answer is not as documented".to_owned())
}

/// Reads a data key in base64 and leaves no copy of it.
fn data_key(text: String) -> Result<DataKey, KmsError> {
    DataKey::from_base64(&Zeroizing::new(text)).ok_or_else(unexpected)
}

/// The name and the ciphertext of a wrapped data key.
fn parts(mut edek: &[u8]) -> Result<(&str, &str), KmsError> {
    let malformed = KmsError::DamagedEdek("not a name and Vault's ciphertext");
    let length = varint::read_u32(&mut edek).ok().and_then(|length| usize::try_from(length).ok());
    let (name, ciphertext) =
        length.and_then(|length| edek.split_at_checked(length)).ok_or_else(|| malformed.clone())?;
    let name = str::from_utf8(name).ok().and_then(checked_name);
    let ciphertext = str::from_utf8(ciphertext).ok().filter(|text| {
        text.starts_with("vault:v") && text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    name.zip(ciphertext).ok_or(malformed)
}

/// A name that can be one segment of a path.
fn checked_name(name: &str) -> Option<&str> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    (fits && name != "." && name != ".." && !name.contains(char::is_control)).then_some(name)
}

#[derive(Deserialize)]
struct KeyRead {
    name: String,
}

#[derive(Deserialize)]
struct DataKeyMade {
    plaintext: String,
    ciphertext: String,
}

#[derive(Deserialize)]
struct Decrypted {
    plaintext: String,
}

const FORBIDDEN: u16 = 403;
/// The longest name of a key: Kafka's topics have 249 bytes at most, templates add to that.
const NAME_BYTES_MAX: usize = 512;
/// Characters of Vault's words in an error.
const COMPLAINT_MAX: usize = 300;

#[cfg(test)]
mod tests;
