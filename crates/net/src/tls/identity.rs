//! Certificates and keys, as they come out of PEM text or PKCS #12 stores.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::digest::{SHA256, SHA384, SHA512, digest};
use p12_keystore::Pkcs12Archive;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::error::TlsError;

/// Which library does the cryptography of TLS. Nothing is installed for the whole process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CryptoProvider {
    /// AWS-LC: the faster one, with post-quantum key exchange.
    #[default]
    AwsLc,
    /// *ring*.
    Ring,
}

impl CryptoProvider {
    pub(super) fn get(self) -> Arc<rustls::crypto::CryptoProvider> {
        Arc::new(match self {
            Self::AwsLc => rustls::crypto::aws_lc_rs::default_provider(),
            Self::Ring => rustls::crypto::ring::default_provider(),
        })
    }
}

/// A certificate, those between it and its authority, and its private key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// From PEM text: the certificates, the peer's own first, and a key in PKCS #8, PKCS #1 or
    /// SEC 1 form that is not encrypted.
    ///
    /// # Errors
    /// [`TlsError::Material`].
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain = certificates_from_pem(CERTIFICATE, certificates)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| {
            let encrypted = b"BEGIN ENCRYPTED PRIVATE KEY";
            if key.windows(encrypted.len()).any(|window| window == encrypted) {
                material(PRIVATE_KEY, "it is encrypted; a PKCS #12 store may hold encrypted keys")
            } else {
                material(PRIVATE_KEY, error)
            }
        })?;
        Ok(Self { chain, key })
    }

    /// From a PKCS #12 store with one private key, as `keytool` and `openssl pkcs12` write it.
    ///
    /// # Errors
    /// [`TlsError::Material`].
    pub fn from_pkcs12(store: &[u8], password: &str) -> Result<Self, TlsError> {
        let archive =
            Pkcs12Archive::from_pkcs12(store, password).map_err(|e| material(KEY_STORE, e))?;
        let [bag] = archive.keys.as_slice() else {
            let count = archive.keys.len();
            return Err(material(KEY_STORE, format!("it holds {count} private keys, not one")));
        };
        let id = bag.local_key_id.as_ref().map(AsRef::as_ref);
        let own = archive.certs.iter().find(|c| id.is_some() && c.local_key_id.as_deref() == id);
        let alone = archive.certs.first().filter(|_| id.is_none());
        let own = own.or(alone).map(|bag| &bag.cert);
        let mut next = own.ok_or_else(|| material(KEY_STORE, "no certificate is for its key"))?;
        let mut chain = Vec::new();
        // Each certificate once, so that stores whose issuers form a ring end.
        while chain.len() < archive.certs.len() {
            chain.push(CertificateDer::from(next.as_der().to_vec()));
            let mut others = archive.certs.iter().map(|bag| &bag.cert);
            match others.find(|other| other.subject() == next.issuer() && *other != next) {
                Some(issuer) => next = issuer,
                None => break,
            }
        }
        let key = PrivatePkcs8KeyDer::from(bag.key.as_der().to_vec());
        Ok(Self { chain, key: key.into() })
    }

    /// The times before and after which clients do not believe the certificate; `None` if it is
    /// malformed.
    #[must_use]
    pub fn validity(&self) -> Option<(SystemTime, SystemTime)> {
        let (_, certificate) = X509Certificate::from_der(self.chain.first()?).ok()?;
        let validity = certificate.validity();
        let [not_before, not_after] = [validity.not_before, validity.not_after].map(|time| {
            let seconds = Duration::from_secs(time.timestamp().unsigned_abs());
            if time.timestamp() < 0 { UNIX_EPOCH - seconds } else { UNIX_EPOCH + seconds }
        });
        Some((not_before, not_after))
    }

    /// With its key loaded; refused if the key is not the certificate's.
    pub(super) fn certified_key(
        &self,
        provider: &rustls::crypto::CryptoProvider,
    ) -> Result<Arc<CertifiedKey>, TlsError> {
        let key = CertifiedKey::from_der(self.chain.clone(), self.key.clone_key(), provider);
        key.map(Arc::new).map_err(|error| material(CERTIFICATE, error))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

/// The authorities whose certificates are believed.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    pub(super) roots: Arc<RootCertStore>,
}

impl TrustAnchors {
    /// From PEM text with one certificate or more.
    ///
    /// # Errors
    /// [`TlsError::Material`].
    pub fn from_pem(certificates: &[u8]) -> Result<Self, TlsError> {
        Self::from_der(certificates_from_pem(TRUST_ANCHORS, certificates)?)
    }

    /// From a PKCS #12 store: the certificates that `keytool` marked as trusted or, where none is
    /// marked, all of them.
    ///
    /// # Errors
    /// [`TlsError::Material`].
    pub fn from_pkcs12(store: &[u8], password: &str) -> Result<Self, TlsError> {
        let archive =
            Pkcs12Archive::from_pkcs12(store, password).map_err(|e| material(TRUST_STORE, e))?;
        let marked = archive.certs.iter().any(|bag| bag.trusted);
        let bags = archive.certs.iter().filter(|bag| bag.trusted || !marked);
        Self::from_der(bags.map(|bag| bag.cert.as_der().to_vec().into()).collect())
    }

    /// Those of the operating system.
    ///
    /// # Errors
    /// [`TlsError::Material`]: none can be read.
    pub fn native() -> Result<Self, TlsError> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Systems ship some that are malformed; those of use to anyone are not.
        let (added, _) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let first = found.errors.first();
            let reason = first.map_or_else(|| "there are none".to_owned(), ToString::to_string);
            return Err(material("the system's trust anchors", reason));
        }
        Ok(Self { roots: Arc::new(roots) })
    }

    fn from_der(certificates: Vec<CertificateDer<'static>>) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            roots.add(certificate).map_err(|error| material(TRUST_ANCHORS, error))?;
        }
        if roots.is_empty() {
            return Err(material(TRUST_ANCHORS, "there is no certificate in it"));
        }
        Ok(Self { roots: Arc::new(roots) })
    }
}

/// What binds an authentication to the server's certificate: `tls-server-end-point` of RFC 5929,
/// its hash by the function of its signature, and SHA-256 in place of MD5 and SHA-1. None for
/// signatures without one such function.
#[must_use]
pub fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let algorithm = parsed.signature_algorithm.algorithm.to_id_string();
    let function = match algorithm.as_str() {
        MD5_RSA | SHA1_RSA | SHA1_ECDSA | SHA256_RSA | SHA256_ECDSA => &SHA256,
        SHA384_RSA | SHA384_ECDSA => &SHA384,
        SHA512_RSA | SHA512_ECDSA => &SHA512,
        _ => return None,
    };
    Some(digest(function, certificate).as_ref().to_vec())
}

fn certificates_from_pem(
    what: &'static str,
    text: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let certificates = certificates.map_err(|error| material(what, error))?;
    if certificates.is_empty() {
        return Err(material(what, "there is no certificate in it"));
    }
    Ok(certificates)
}

fn material(what: &'static str, reason: impl fmt::Display) -> TlsError {
    TlsError::Material { what, reason: reason.to_string() }
}

const MD5_RSA: &str = "1.2.840.113549.1.1.4";
const SHA1_RSA: &str = "1.2.840.113549.1.1.5";
const SHA256_RSA: &str = "1.2.840.113549.1.1.11";
const SHA384_RSA: &str = "1.2.840.113549.1.1.12";
const SHA512_RSA: &str = "1.2.840.113549.1.1.13";
const SHA1_ECDSA: &str = "1.2.840.10045.4.1";
const SHA256_ECDSA: &str = "1.2.840.10045.4.3.2";
const SHA384_ECDSA: &str = "1.2.840.10045.4.3.3";
const SHA512_ECDSA: &str = "1.2.840.10045.4.3.4";
const CERTIFICATE: &str = "certificate";
const PRIVATE_KEY: &str = "private key";
const KEY_STORE: &str = "key store";
const TRUST_ANCHORS: &str = "trusted certificates";
const TRUST_STORE: &str = "trust store";
