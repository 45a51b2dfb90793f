//! How the clients of a system file secure their connections.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;

use moldau_client::Security;
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, Identity, TrustAnchors};
use serde::{Deserialize, Serialize};

use moldau_measure::Error;

/// How clients connect, as the file says; its texts may hold variables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecurityFile {
    /// TLS, if they use it.
    pub tls: Option<TlsFile>,
    /// SASL credentials, if any.
    pub sasl: Option<SaslFile>,
}

/// TLS of clients; files are PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// Authorities of the servers' certificates.
    pub trust_file: String,
    /// The clients' own certificate, with its key.
    pub certificate_file: Option<String>,
    /// The key.
    pub key_file: Option<String>,
}

/// SASL of clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaslFile {
    /// `PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.
    pub mechanism: String,
    /// The user.
    pub user: String,
    /// A file with the password, without the end of its last line.
    pub password_file: String,
}

impl SecurityFile {
    /// Refuses what no client can be given.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check(&self) -> Result<(), Error> {
        if let Some(TlsFile { certificate_file, key_file, .. }) = &self.tls
            && certificate_file.is_some() != key_file.is_some()
        {
            let text = "security.tls: certificate_file and key_file go together";
            return Err(Error::Plan(text.into()));
        }
        self.sasl.as_ref().map_or(Ok(()), |sasl| sasl.mechanism().map(|_| ()))
    }

    /// Every text that may hold variables.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let tls = self.tls.iter().flat_map(|tls| {
            [Some(&tls.trust_file), tls.certificate_file.as_ref(), tls.key_file.as_ref()]
        });
        let sasl = self.sasl.iter().flat_map(|sasl| [Some(&sasl.user), Some(&sasl.password_file)]);
        tls.chain(sasl).flatten().map(String::as_str)
    }

    /// What the files hold, texts put through `expand`.
    pub fn read(
        &self,
        expand: &dyn Fn(&str) -> Result<String, Error>,
    ) -> Result<Credentials, Error> {
        let text = |path: &String| read(&expand(path)?);
        let tls = self.tls.as_ref().map(|tls| {
            let pair = tls.certificate_file.as_ref().zip(tls.key_file.as_ref());
            let identity = pair.map(|(certificate, key)| Ok((text(certificate)?, text(key)?)));
            Ok(TlsCredentials { trust: text(&tls.trust_file)?, identity: identity.transpose()? })
        });
        let sasl = self.sasl.as_ref().map(|sasl| {
            let password = text(&sasl.password_file)?;
            Ok(SaslPassword {
                mechanism: sasl.mechanism.clone(),
                user: expand(&sasl.user)?,
                password: password.trim_end_matches(['\r', '\n']).to_string(),
            })
        });
        Ok(Credentials { tls: tls.transpose()?, sasl: sasl.transpose()? })
    }
}

impl SaslFile {
    fn mechanism(&self) -> Result<Mechanism, Error> {
        mechanism(&self.mechanism)
    }
}

fn mechanism(name: &str) -> Result<Mechanism, Error> {
    let refused = || Error::Plan(format!("security.sasl: no mechanism {name:?}"));
    let mechanism = name.parse::<Mechanism>().map_err(|_| refused())?;
    // A token comes from a service that the laboratory has none of.
    if mechanism == Mechanism::OAuthBearer { Err(refused()) } else { Ok(mechanism) }
}

/// What clients secure their connections with, whole: a worker's machine has none of the files.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    tls: Option<TlsCredentials>,
    sasl: Option<SaslPassword>,
}

/// All as PEM.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsCredentials {
    trust: String,
    /// Certificate and key.
    identity: Option<(String, String)>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaslPassword {
    mechanism: String,
    user: String,
    password: String,
}

impl Credentials {
    /// As clients take it.
    ///
    /// # Errors
    /// [`Error::Machine`] for what cannot be used, [`Error::Plan`] for an unknown mechanism.
    pub fn security(&self) -> Result<Security, Error> {
        let tls = self.tls.as_ref().map(TlsCredentials::made).transpose()?;
        let sasl = self.sasl.as_ref().map(SaslPassword::made).transpose()?;
        Ok(Security { tls: tls.map(Arc::new), sasl: sasl.map(Arc::new) })
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(..)")
    }
}

impl TlsCredentials {
    fn made(&self) -> Result<ClientTls, Error> {
        let trust = TrustAnchors::from_pem(self.trust.as_bytes()).map_err(unusable)?;
        let identity = self.identity.as_ref();
        let identity = identity.map(|(certificate, key)| {
            Identity::from_pem(certificate.as_bytes(), key.as_bytes()).map_err(unusable)
        });
        let (provider, verify_host_name) = (CryptoProvider::default(), true);
        let identity = identity.transpose()?;
        ClientTls::new(ClientTlsSettings { trust, identity, provider, verify_host_name })
            .map_err(unusable)
    }
}

impl SaslPassword {
    fn made(&self) -> Result<SaslClient, Error> {
        let (user, password) = (self.user.clone(), self.password.clone().into());
        SaslClient::new(match mechanism(&self.mechanism)? {
            Mechanism::Plain => SaslCredentials::Plain { user, password },
            mechanism => SaslCredentials::Scram { mechanism, user, password },
        })
        .map_err(unusable)
    }
}

fn read(path: &str) -> Result<String, Error> {
    fs::read_to_string(path).map_err(Error::machine(format!("reading {path}")))
}

fn unusable(error: impl fmt::Display) -> Error {
    let source = io::Error::other(error.to_string());
    Error::Machine { action: "securing clients".into(), source }
}
