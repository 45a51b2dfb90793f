//! AWS Key Management Service, with Kroxylicious's layout.
//!
//! | its wrapped data key | |
//! |---|---|
//! | format | u8: 0 |
//! | id of the key | uvarint length, then UTF-8 |
//! | AWS's ciphertext blob | to the end |
//!
//! An alias is what AWS calls `alias/<alias>`; the key's id is what it leads to. The credentials
//! need `kms:DescribeKey`, `kms:GenerateDataKey` and `kms:Decrypt`.

mod credentials;
mod sigv4;

use std::path::PathBuf;
use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::Method;
use moldau_records::varint;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

pub use self::credentials::AwsAuth;

use self::credentials::CredentialSource;
use self::sigv4::Scope;
use super::http::{Answer, Ask, Endpoint, HttpClient};
use super::{KekId, Kms, KmsFuture, WrappedDataKey};
use crate::{DataKey, Edek, Error, KmsError};

/// Where AWS KMS is, and who asks.
#[derive(Debug, Clone)]
pub struct AwsSettings {
    /// The region, such as `eu-central-1`.
    pub region: String,
    /// URL of the service, if not the region's own.
    pub url: Option<String>,
    /// Where credentials come from.
    pub auth: AwsAuth,
    /// Certificates of authorities to trust, in PEM, instead of the system's.
    pub ca_file: Option<PathBuf>,
}

/// AWS Key Management Service.
pub struct AwsKms {
    http: HttpClient,
    endpoint: Endpoint,
    region: String,
    credentials: CredentialSource,
}

impl AwsKms {
    /// A service that is asked nothing yet.
    ///
    /// # Errors
    /// [`Error::Setting`] for a URL that is none, and for certificates that cannot be read.
    pub fn new(settings: &AwsSettings) -> Result<Self, Error> {
        let region = settings.region.clone();
        if region.is_empty() || !region.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            let reason = format!("{region:?} cannot be the name of one");
            return Err(Error::Setting { setting: "region", reason });
        }
        let default = || format!("https://kms.{region}.amazonaws.com");
        let endpoint = Endpoint::parse("url", &settings.url.clone().unwrap_or_else(default))?;
        let http = HttpClient::new(settings.ca_file.as_deref())?;
        let credentials = CredentialSource::new(&settings.auth, &region)?;
        Ok(Self { http, endpoint, region, credentials })
    }

    async fn resolve(&self, alias: &str) -> Result<KekId, KmsError> {
        let question = serde_json::json!({ "KeyId": format!("alias/{alias}") });
        let described: Described = self.ask("DescribeKey", &question, alias).await?;
        Ok(KekId(described.key_metadata.key_id.into()))
    }

    async fn generate(&self, id: &KekId) -> Result<WrappedDataKey, KmsError> {
        let question = serde_json::json!({ "KeyId": &*id.0, "KeySpec": "AES_256" });
        let made: DataKeyMade = self.ask("GenerateDataKey", &question, &id.0).await?;
        let key = data_key(made.plaintext)?;
        let blob = BASE64.decode(&made.ciphertext_blob).map_err(|_| unexpected())?;
        let mut edek = vec![EDEK_FORMAT];
        let id_length = u32::try_from(id.0.len()).map_err(|_| unexpected())?;
        varint::write_u32(&mut edek, id_length);
        edek.extend_from_slice(id.0.as_bytes());
        edek.extend(blob);
        Ok(WrappedDataKey { key, edek: Edek(edek.into()) })
    }

    async fn decrypt(&self, edek: &Edek) -> Result<DataKey, KmsError> {
        let (id, blob) = parts(&edek.0)?;
        let question = serde_json::json!({ "KeyId": id, "CiphertextBlob": BASE64.encode(blob) });
        let decrypted: Decrypted = self.ask("Decrypt", &question, id).await?;
        data_key(decrypted.plaintext)
    }

    /// Asks one question about the key `name`. Credentials that are refused are replaced once.
    async fn ask<T: DeserializeOwned>(
        &self,
        operation: &str,
        question: &serde_json::Value,
        name: &str,
    ) -> Result<T, KmsError> {
        let body = Zeroizing::new(question.to_string().into_bytes());
        let credentials = self.credentials.get(&self.http).await?;
        let mut answer = self.send(&credentials, operation, body.clone()).await?;
        if answer.status != 200 && CREDENTIAL_CODES.contains(&Refusal::read(&answer).code()) {
            self.credentials.reject(&credentials);
            let credentials = self.credentials.get(&self.http).await?;
            answer = self.send(&credentials, operation, body).await?;
        }
        if answer.status != 200 {
            return Err(Refusal::read(&answer).error(answer.status, name));
        }
        serde_json::from_slice(&answer.body).map_err(|_| unexpected())
    }

    async fn send(
        &self,
        credentials: &credentials::Credentials,
        operation: &str,
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Answer, KmsError> {
        let target = format!("TrentService.{operation}");
        let own = [("content-type", CONTENT_TYPE), ("x-amz-target", target.as_str())];
        let scope = Scope { region: &self.region, service: "kms" };
        let host = &self.endpoint.authority;
        let mut headers = sigv4::sign(credentials, &scope, host, &own, &body, SystemTime::now());
        headers.extend(own.map(|(name, value)| (name, Zeroizing::new(value.to_owned()))));
        let ask = Ask { method: Method::POST, path: "/".to_owned(), headers, body };
        self.http.send(&self.endpoint, ask).await
    }
}

impl Kms for AwsKms {
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
        Box::pin(self.credentials.maintain(&self.http))
    }
}

/// What AWS says of an error.
#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(rename = "__type", default)]
    kind: String,
    #[serde(default, alias = "Message")]
    message: String,
}

impl Refusal {
    fn read(answer: &Answer) -> Self {
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// The name of the error, without the service's name space.
    fn code(&self) -> &str {
        self.kind.rsplit('#').next().unwrap_or_default()
    }

    fn error(&self, status: u16, name: &str) -> KmsError {
        let text = format!("status {status}, {}: {}", self.code(), self.message);
        let text = text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect();
        match self.code() {
            "NotFoundException" | "DisabledException" => KmsError::UnknownKey(name.to_owned()),
            "KMSInvalidStateException" if self.message.contains("pending deletion") => {
                KmsError::UnknownKey(name.to_owned())
            }
            "InvalidCiphertextException" | "IncorrectKeyException" => {
                KmsError::DamagedEdek("AWS KMS does not decrypt it")
            }
            // A state that passes, such as that of a key that is being created or imported.
            "KMSInvalidStateException" | "KeyUnavailableException" => KmsError::Unavailable(text),
            "DependencyTimeoutException" | "KMSInternalException" | "LimitExceededException" => {
                KmsError::Unavailable(text)
            }
            "ThrottlingException" | "RequestLimitExceeded" => KmsError::Unavailable(text),
            _ if status == 429 || status >= 500 => KmsError::Unavailable(text),
            _ => KmsError::Refused(text),
        }
    }
}

/// The id of the key and the ciphertext blob of a wrapped data key.
fn parts(edek: &[u8]) -> Result<(&str, &[u8]), KmsError> {
    let malformed = KmsError::DamagedEdek("not a key id and AWS's ciphertext");
    let Some((&EDEK_FORMAT, mut rest)) = edek.split_first() else { return Err(malformed) };
    let length = varint::read_u32(&mut rest).ok().and_then(|length| usize::try_from(length).ok());
    let (id, blob) =
        length.and_then(|length| rest.split_at_checked(length)).ok_or_else(|| malformed.clone())?;
    let id = str::from_utf8(id).ok().filter(|id| (1..=KEY_ID_BYTES_MAX).contains(&id.len()));
    let blob = Some(blob).filter(|blob| (1..=BLOB_BYTES_MAX).contains(&blob.len()));
    id.zip(blob).ok_or(malformed)
}

/// Reads a data key in base64 and leaves no copy of it.
fn data_key(text: String) -> Result<DataKey, KmsError> {
    DataKey::from_base64(&Zeroizing::new(text)).ok_or_else(unexpected)
}

fn unexpected() -> KmsError {
    KmsError::Unavailable("the answer of AWS KMS is not as documented".to_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    key_metadata: KeyMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyMetadata {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct DataKeyMade {
    plaintext: String,
    ciphertext_blob: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Decrypted {
    plaintext: String,
}

const EDEK_FORMAT: u8 = 0;
const CONTENT_TYPE: &str = "application/x-amz-json-1.1";
/// Errors that say that the credentials, not the request, are no good.
const CREDENTIAL_CODES: [&str; 4] = [
    "ExpiredTokenException",
    "UnrecognizedClientException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
];
/// AWS's own limit for a key id, an ARN or an alias.
const KEY_ID_BYTES_MAX: usize = 2048;
/// AWS's own limit for a ciphertext.
const BLOB_BYTES_MAX: usize = 6144;
/// Characters of AWS's words in an error.
const TEXT_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests;
