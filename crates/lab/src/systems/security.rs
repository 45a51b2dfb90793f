//! How the clients of a system file secure their connections.

use std::fmt;
use std::fs;
use std::io;
use std::sync::Arc;

use moldau_client::Security;
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, Identity, TrustAnchors};
use serde::Deserialize;

use crate::error::Error;

/// How clients connect, as the file says; its texts may hold variables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecurityFile {
    /// TLS, if they use it.
    pub tls: Option<TlsFile>,
    /// Who they say they are, if they do.
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
    pub(super) fn check(&self) -> Result<(), Error> {
        if let Some(TlsFile { certificate_file, key_file, .. }) = &self.tls
            && certificate_file.is_some() != key_file.is_some()
        {
            let text = "security.tls: certificate_file and key_file go together";
            return Err(Error::Plan(text.into()));
        }
        self.sasl.as_ref().map_or(Ok(()), |sasl| sasl.mechanism().map(|_| ()))
    }

    /// Every text that may hold variables.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let tls = self.tls.iter().flat_map(|tls| {
            [Some(&tls.trust_file), tls.certificate_file.as_ref(), tls.key_file.as_ref()]
        });
        let sasl = self.sasl.iter().flat_map(|sasl| [Some(&sasl.user), Some(&sasl.password_file)]);
        tls.chain(sasl).flatten().map(String::as_str)
    }

    /// What clients secure their connections with, texts put through `expand`.
    pub(super) fn made(
        &self,
        expand: &dyn Fn(&str) -> Result<String, Error>,
    ) -> Result<Security, Error> {
        let tls = self.tls.as_ref().map(|tls| tls.made(expand)).transpose()?;
        let sasl = self.sasl.as_ref().map(|sasl| sasl.made(expand)).transpose()?;
        Ok(Security { tls: tls.map(Arc::new), sasl: sasl.map(Arc::new) })
    }
}

impl TlsFile {
    fn made(&self, expand: &dyn Fn(&str) -> Result<String, Error>) -> Result<ClientTls, Error> {
        let trust = TrustAnchors::from_pem(&read(&expand(&self.trust_file)?)?).map_err(unusable)?;
        let identity = match (&self.certificate_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                let (certificate, key) = (read(&expand(certificate)?)?, read(&expand(key)?)?);
                Some(Identity::from_pem(&certificate, &key).map_err(unusable)?)
            }
            _ => None,
        };
        let (provider, verify_host_name) = (CryptoProvider::default(), true);
        ClientTls::new(ClientTlsSettings { trust, identity, provider, verify_host_name })
            .map_err(unusable)
    }
}

impl SaslFile {
    fn mechanism(&self) -> Result<Mechanism, Error> {
        let refused = || Error::Plan(format!("security.sasl: no mechanism {:?}", self.mechanism));
        let mechanism = self.mechanism.parse::<Mechanism>().map_err(|_| refused())?;
        // A token comes from a service that the laboratory has none of.
        if mechanism == Mechanism::OAuthBearer { Err(refused()) } else { Ok(mechanism) }
    }

    fn made(&self, expand: &dyn Fn(&str) -> Result<String, Error>) -> Result<SaslClient, Error> {
        let user = expand(&self.user)?;
        let bytes = read(&expand(&self.password_file)?)?;
        let text = String::from_utf8(bytes).map_err(unusable)?;
        let password = text.trim_end_matches(['\r', '\n']).to_string().into();
        SaslClient::new(match self.mechanism()? {
            Mechanism::Plain => SaslCredentials::Plain { user, password },
            mechanism => SaslCredentials::Scram { mechanism, user, password },
        })
        .map_err(unusable)
    }
}

fn read(path: &str) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::machine(format!("reading {path}")))
}

fn unusable(error: impl fmt::Display) -> Error {
    let source = io::Error::other(error.to_string());
    Error::Machine { action: "securing clients".into(), source }
}
