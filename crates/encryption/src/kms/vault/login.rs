//! Tokens of Vault: where they come from and how they are kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{Server, refusal, unexpected};
use crate::KmsError;
use crate::kms::http::{Answer, percent_encode};
use crate::kms::lease::{Fetched, Lease};
use crate::kms::secret_file::SecretFile;
use crate::kms::stamp::Stamp;

/// Where Vault's token comes from. Files are read when they are needed, and again when they
/// changed.
#[derive(Debug, Clone)]
pub enum VaultAuth {
    /// A token in a file, which is renewed if Vault lets it be.
    TokenFile {
        /// The file.
        file: PathBuf,
    },
    /// The AppRole method.
    AppRole {
        /// Where the method is mounted: `approle` by default in Vault.
        mount: String,
        /// The role id.
        role_id: String,
        /// The file with the secret id.
        secret_id_file: PathBuf,
    },
    /// The Kubernetes method.
    Kubernetes {
        /// Where the method is mounted: `kubernetes` by default in Vault.
        mount: String,
        /// The role.
        role: String,
        /// The file with the service account's token, in a pod
        /// `/var/run/secrets/kubernetes.io/serviceaccount/token`.
        token_file: PathBuf,
    },
}

/// A token of Vault.
pub(super) struct Token {
    pub(super) text: Zeroizing<String>,
    renewable: bool,
    /// How long it was good for when it was made.
    lifetime: Option<Duration>,
    /// What the file was, of a token from a file.
    stamp: Option<Stamp>,
}

/// Gets tokens, and keeps one.
pub(super) struct Login {
    auth: VaultAuth,
    lease: Lease<Token>,
}

impl Login {
    pub(super) fn new(auth: VaultAuth) -> Self {
        Self { auth, lease: Lease::new() }
    }

    /// A token that should be good.
    pub(super) async fn token(&self, server: &Server) -> Result<Arc<Token>, KmsError> {
        if let (VaultAuth::TokenFile { file }, Some(token)) = (&self.auth, self.lease.good()) {
            let file = SecretFile(file.clone());
            if token.stamp.as_ref().is_some_and(|stamp| !file.is_still(stamp)) {
                self.lease.reject(&token);
            }
        }
        self.lease.get(|held| self.fetch(server, held)).await
    }

    /// Forgets a token that Vault refused.
    pub(super) fn reject(&self, token: &Arc<Token>) {
        self.lease.reject(token);
    }

    /// Renews the token that is held where it is due.
    pub(super) async fn maintain(&self, server: &Server) -> Result<(), KmsError> {
        if self.lease.good().is_none() {
            return Ok(());
        }
        self.token(server).await.map(drop)
    }

    async fn fetch(
        &self,
        server: &Server,
        held: Option<Arc<Token>>,
    ) -> Result<Fetched<Token>, KmsError> {
        if let Some(held) = held.filter(|held| held.renewable) {
            match renew(server, &held).await {
                // Near the end of its longest life a token is renewed for ever shorter times.
                Ok(renewed) if !is_short(&renewed, &held) => return Ok(renewed),
                Ok(renewed) => return Ok(self.log_in(server).await.unwrap_or(renewed)),
                Err(KmsError::Unavailable(reason)) => return Err(KmsError::Unavailable(reason)),
                Err(_) => {}
            }
        }
        self.log_in(server).await
    }

    async fn log_in(&self, server: &Server) -> Result<Fetched<Token>, KmsError> {
        let (mount, body) = match &self.auth {
            VaultAuth::TokenFile { file } => return read_token(server, file).await,
            VaultAuth::AppRole { mount, role_id, secret_id_file } => {
                let (secret_id, _) = SecretFile(secret_id_file.clone()).read()?;
                let body = [("role_id", role_id.as_str()), ("secret_id", secret_id.as_str())];
                (mount, json_object(&body))
            }
            VaultAuth::Kubernetes { mount, role, token_file } => {
                let (jwt, _) = SecretFile(token_file.clone()).read()?;
                (mount, json_object(&[("role", role.as_str()), ("jwt", jwt.as_str())]))
            }
        };
        // A mount may have several segments.
        let mount: Vec<String> = mount.split('/').map(percent_encode).collect();
        let path = format!("/v1/auth/{}/login", mount.join("/"));
        let answer = server.ask(Method::POST, &path, body, None).await?;
        granted(&answer)
    }
}

/// Reads a token from a file and asks how long it is good.
async fn read_token(server: &Server, file: &Path) -> Result<Fetched<Token>, KmsError> {
    #[derive(Deserialize)]
    struct Looked {
        data: Life,
    }
    #[derive(Deserialize)]
    struct Life {
        ttl: u64,
        /// Absent of a root token.
        #[serde(default)]
        renewable: bool,
    }
    let (text, stamp) = SecretFile(file.to_owned()).read()?;
    let mut token = Token { text, renewable: false, lifetime: None, stamp: Some(stamp) };
    let asking = Arc::new(Token { text: token.text.clone(), ..token });
    let path = "/v1/auth/token/lookup-self";
    let answer = server.ask(Method::GET, path, Zeroizing::default(), Some(&asking)).await?;
    // A token without the default policy may not look itself up, and serves all the same.
    if answer.status == 200 {
        let looked: Looked = serde_json::from_slice(&answer.body).map_err(|_| unexpected())?;
        token.renewable = looked.data.renewable;
        token.lifetime = lifetime(looked.data.ttl);
    } else if let error @ KmsError::Unavailable(_) = refusal(&answer, "") {
        return Err(error);
    }
    let lifetime = token.lifetime;
    Ok(Fetched { value: token, lifetime })
}

/// Renews a token. The lifetime at its making stays the measure of the next renewal.
async fn renew(server: &Server, held: &Arc<Token>) -> Result<Fetched<Token>, KmsError> {
    let path = "/v1/auth/token/renew-self";
    let answer = server.ask(Method::POST, path, Zeroizing::default(), Some(held)).await?;
    let mut renewed = granted(&answer)?;
    renewed.value.lifetime = held.lifetime;
    renewed.value.stamp = held.stamp;
    Ok(renewed)
}

/// Whether a token was renewed for less than half of what it was once good for.
fn is_short(renewed: &Fetched<Token>, held: &Token) -> bool {
    matches!((renewed.lifetime, held.lifetime), (Some(now), Some(first)) if now < first / 2)
}

/// The token in the answer to a login or a renewal.
fn granted(answer: &Answer) -> Result<Fetched<Token>, KmsError> {
    #[derive(Deserialize)]
    struct Granted {
        auth: Grant,
    }
    #[derive(Deserialize)]
    struct Grant {
        client_token: String,
        lease_duration: u64,
        renewable: bool,
    }
    if answer.status != 200 {
        return Err(match refusal(answer, "") {
            error @ KmsError::Unavailable(_) => error,
            KmsError::Refused(said) => KmsError::Refused(format!("login: {said}")),
            _ => KmsError::Refused(format!("login: status {}", answer.status)),
        });
    }
    let granted: Granted = serde_json::from_slice(&answer.body).map_err(|_| unexpected())?;
    let lifetime = lifetime(granted.auth.lease_duration);
    let text = Zeroizing::new(granted.auth.client_token);
    let renewable = granted.auth.renewable;
    Ok(Fetched { value: Token { text, renewable, lifetime, stamp: None }, lifetime })
}

/// A lifetime in seconds; 0 means unlimited.
fn lifetime(seconds: u64) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.min(LIFETIME_SECONDS_MAX)))
}

/// An object of texts, written once into room that no secret outgrows.
fn json_object(fields: &[(&str, &str)]) -> Zeroizing<Vec<u8>> {
    let object: BTreeMap<&str, &str> = fields.iter().copied().collect();
    let length: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 8).sum();
    let mut body = Zeroizing::new(Vec::with_capacity(2 * length));
    serde_json::to_writer(&mut *body, &object).expect("texts can be written to memory");
    body
}

/// A century: what is longer makes no difference, and could not be added to a time.
const LIFETIME_SECONDS_MAX: u64 = 100 * 366 * 86_400;
