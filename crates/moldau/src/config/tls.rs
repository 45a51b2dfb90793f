//! The keys `tls` of listeners and of connections to a cluster.
//!
//! ```yaml
//! tls:
//!   certificate_file: server.pem
//!   key_file: server.key
//!   trust_file: authority.pem
//!   client_authentication: required
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, Identity, PrincipalMapping,
    ServerTls, ServerTlsSettings, TrustAnchors,
};
use serde::Deserialize;

use super::problem::{At, Problem};
use super::sources::Sources;

/// TLS towards clients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// The certificate and those between it and its authority, in PEM.
    certificate_file: Option<At<PathBuf>>,
    /// Its private key, in PEM, not encrypted.
    key_file: Option<At<PathBuf>>,
    /// Certificates and key in PKCS #12, in place of both.
    key_store_file: Option<At<PathBuf>>,
    /// File with the password of the key store.
    key_store_password_file: Option<At<PathBuf>>,
    /// Certificates of the authorities of clients, in PEM.
    trust_file: Option<At<PathBuf>>,
    /// The same in PKCS #12.
    trust_store_file: Option<At<PathBuf>>,
    /// File with the password of the trust store.
    trust_store_password_file: Option<At<PathBuf>>,
    /// Whether clients must have a certificate. Default `none`.
    client_authentication: Option<At<Clients>>,
    /// Kafka's `ssl.principal.mapping.rules`. Default `DEFAULT`.
    principal_mapping_rules: Option<At<String>>,
    /// What encrypts. Default `aws_lc`.
    #[serde(default)]
    crypto_provider: Provider,
}

/// TLS towards a cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// Certificates of the authorities of servers, in PEM. Default: the system's.
    trust_file: Option<At<PathBuf>>,
    /// The same in PKCS #12.
    trust_store_file: Option<At<PathBuf>>,
    /// File with the password of the trust store.
    trust_store_password_file: Option<At<PathBuf>>,
    /// The own certificate, in PEM. Default: none.
    certificate_file: Option<At<PathBuf>>,
    /// Its private key, in PEM, not encrypted.
    key_file: Option<At<PathBuf>>,
    /// Certificates and key in PKCS #12, in place of both.
    key_store_file: Option<At<PathBuf>>,
    /// File with the password of the key store.
    key_store_password_file: Option<At<PathBuf>>,
    /// Whether the server's certificate must name the host. Default `true`.
    #[serde(default = "yes")]
    verify_host_name: bool,
    /// What encrypts. Default `aws_lc`.
    #[serde(default)]
    crypto_provider: Provider,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Clients {
    None,
    Requested,
    Required,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Provider {
    #[default]
    AwsLc,
    Ring,
}

fn yes() -> bool {
    true
}

/// What makes one identity.
struct IdentityFiles<'a> {
    certificate: Option<&'a At<PathBuf>>,
    key: Option<&'a At<PathBuf>>,
    store: Option<&'a At<PathBuf>>,
    store_password: Option<&'a At<PathBuf>>,
}

/// What makes trust anchors.
struct TrustFiles<'a> {
    pem: Option<&'a At<PathBuf>>,
    store: Option<&'a At<PathBuf>>,
    store_password: Option<&'a At<PathBuf>>,
}

/// Makes what a listener needs.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn server(tls: &At<Server>, sources: &mut Sources) -> Result<Arc<ServerTls>, Problem> {
    let keys = &tls.value;
    let files = IdentityFiles {
        certificate: keys.certificate_file.as_ref(),
        key: keys.key_file.as_ref(),
        store: keys.key_store_file.as_ref(),
        store_password: keys.key_store_password_file.as_ref(),
    };
    let identity = files.read(sources)?;
    let needs = "tls: needs certificate_file and key_file, or key_store_file";
    let identity = identity.ok_or_else(|| Problem::at(tls, needs))?;
    let trust = TrustFiles {
        pem: keys.trust_file.as_ref(),
        store: keys.trust_store_file.as_ref(),
        store_password: keys.trust_store_password_file.as_ref(),
    };
    let client_trust = trust.read(sources)?;
    let client_authentication = match keys.client_authentication.as_ref().map(|it| it.value) {
        None | Some(Clients::None) => ClientAuthentication::None,
        Some(Clients::Requested) => ClientAuthentication::Requested,
        Some(Clients::Required) => ClientAuthentication::Required,
    };
    if let Some(wanted) = &keys.client_authentication
        && wanted.value != Clients::None
        && client_trust.is_none()
    {
        let text = "client_authentication: needs trust_file or trust_store_file";
        return Err(Problem::at(wanted, text));
    }
    let principal_mapping = match &keys.principal_mapping_rules {
        None => PrincipalMapping::default(),
        Some(rules) => PrincipalMapping::parse(&rules.value).map_err(|error| {
            Problem::at(rules, format_args!("principal_mapping_rules: {error}"))
        })?,
    };
    let settings = ServerTlsSettings {
        identities: vec![(None, identity)],
        client_authentication,
        client_trust,
        provider: keys.crypto_provider.into(),
        principal_mapping,
    };
    let made = ServerTls::new(settings).map_err(|error| files.problem(tls, error))?;
    Ok(Arc::new(made))
}

/// Makes what connections to a cluster need.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn client(tls: &At<Client>, sources: &mut Sources) -> Result<Arc<ClientTls>, Problem> {
    let keys = &tls.value;
    let files = IdentityFiles {
        certificate: keys.certificate_file.as_ref(),
        key: keys.key_file.as_ref(),
        store: keys.key_store_file.as_ref(),
        store_password: keys.key_store_password_file.as_ref(),
    };
    let trust = TrustFiles {
        pem: keys.trust_file.as_ref(),
        store: keys.trust_store_file.as_ref(),
        store_password: keys.trust_store_password_file.as_ref(),
    };
    let trust = match trust.read(sources)? {
        Some(trust) => trust,
        None => TrustAnchors::native()
            .map_err(|error| Problem::at(tls, format_args!("tls: trust_file: {error}")))?,
    };
    let settings = ClientTlsSettings {
        trust,
        identity: files.read(sources)?,
        provider: keys.crypto_provider.into(),
        verify_host_name: keys.verify_host_name,
    };
    let made = ClientTls::new(settings).map_err(|error| files.problem(tls, error))?;
    Ok(Arc::new(made))
}

impl IdentityFiles<'_> {
    fn read(&self, sources: &mut Sources) -> Result<Option<Identity>, Problem> {
        let place = self.store.or(self.certificate);
        let identity = match (self.certificate, self.key, self.store) {
            (None, None, None) => {
                let stray = self.store_password;
                return stray.map_or(Ok(None), |stray| {
                    Err(Problem::at(stray, "key_store_password_file: needs key_store_file"))
                });
            }
            (Some(certificate), Some(key), None) => {
                let (chain, key_bytes) = (sources.bytes(certificate)?, sources.bytes(key)?);
                Identity::from_pem(&chain, &key_bytes)
            }
            (Some(certificate), None, None) => {
                return Err(Problem::at(certificate, "certificate_file: needs key_file"));
            }
            (None, Some(key), None) => {
                return Err(Problem::at(key, "key_file: needs certificate_file"));
            }
            (None, None, Some(store)) => {
                let needed = "key_store_file: needs key_store_password_file";
                let password = self.store_password.ok_or_else(|| Problem::at(store, needed))?;
                let (bytes, password) = (sources.bytes(store)?, sources.secret(password)?);
                Identity::from_pkcs12(&bytes, &password)
            }
            (_, _, Some(store)) => {
                let text = "key_store_file: cannot be combined with certificate_file or key_file";
                return Err(Problem::at(store, text));
            }
        };
        let place = place.expect("an identity has a certificate or a store");
        let file = place.value.display();
        let identity =
            identity.map_err(|error| Problem::at(place, format_args!("{file}: {error}")))?;
        if let Some(reason) = out_of_time(&identity) {
            sources.warn(Problem::at(place, format_args!("{file}: {reason}")));
        }
        Ok(Some(identity))
    }

    /// A problem that shows when the parts are put together.
    fn problem<T>(&self, tls: &At<T>, error: impl std::fmt::Display) -> Problem {
        let name = |file: &At<PathBuf>| file.value.display().to_string();
        match (self.key, self.certificate, self.store) {
            (Some(key), Some(certificate), _) => {
                let files = format!("{} does not fit {}", name(key), name(certificate));
                Problem::at(key, format_args!("{files}: {error}"))
            }
            (_, _, Some(store)) => Problem::at(store, format_args!("{}: {error}", name(store))),
            _ => Problem::at(tls, format_args!("tls: {error}")),
        }
    }
}

/// TLS settings for an `https` address: trusted authorities, by default those of the system.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn of_url(
    url: &At<String>,
    trust_file: Option<&At<PathBuf>>,
    sources: &mut Sources,
) -> Result<Option<Arc<ClientTls>>, Problem> {
    if !url.value.starts_with("https:") {
        return Ok(None);
    }
    let trust = match trust_file {
        Some(file) => TrustAnchors::from_pem(&sources.bytes(file)?).map_err(|error| {
            Problem::at(file, format_args!("{}: {error}", file.value.display()))
        })?,
        None => TrustAnchors::native().map_err(|error| Problem::at(url, error))?,
    };
    let settings = ClientTlsSettings {
        trust,
        identity: None,
        provider: CryptoProvider::default(),
        verify_host_name: true,
    };
    let tls = ClientTls::new(settings).map_err(|error| Problem::at(url, error))?;
    Ok(Some(Arc::new(tls)))
}

/// Why clients do not believe a certificate at this time.
fn out_of_time(identity: &Identity) -> Option<&'static str> {
    let (not_before, not_after) = identity.validity()?;
    let now = SystemTime::now();
    match (now < not_before, now > not_after) {
        (true, _) => Some("the certificate is not valid yet"),
        (_, true) => Some("the certificate has expired"),
        _ => None,
    }
}

impl TrustFiles<'_> {
    fn read(&self, sources: &mut Sources) -> Result<Option<TrustAnchors>, Problem> {
        let (file, anchors) = match (self.pem, self.store) {
            (None, None) => return Ok(None),
            (Some(pem), None) => (pem, TrustAnchors::from_pem(&sources.bytes(pem)?)),
            (None, Some(store)) => {
                let needed = "trust_store_file: without trust_store_password_file";
                let password = self.store_password.ok_or_else(|| Problem::at(store, needed))?;
                let (bytes, password) = (sources.bytes(store)?, sources.secret(password)?);
                (store, TrustAnchors::from_pkcs12(&bytes, &password))
            }
            (Some(_), Some(store)) => {
                return Err(Problem::at(
                    store,
                    "trust_store_file: cannot be combined with trust_file",
                ));
            }
        };
        let problem = |error| Problem::at(file, format_args!("{}: {error}", file.value.display()));
        anchors.map(Some).map_err(problem)
    }
}

impl From<Provider> for CryptoProvider {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::AwsLc => Self::AwsLc,
            Provider::Ring => Self::Ring,
        }
    }
}
