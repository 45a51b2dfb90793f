//! The client's side: trusted authorities and own certificate.

use std::fmt;
use std::sync::Arc;

use moldau_threads::RwLock;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ResolvesClientCert, WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor,
};
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, TlsStream};

use super::identity::{CryptoProvider, Identity, TrustAnchors};
use crate::error::TlsError;
use crate::stream::Stream;

/// Configuration of connections to servers with TLS.
#[derive(Debug)]
pub struct ClientTlsSettings {
    /// Who signed the certificates of servers.
    pub trust: TrustAnchors,
    /// Certificate for servers that ask for one.
    pub identity: Option<Identity>,
    /// Which library does the cryptography.
    pub provider: CryptoProvider,
    /// Whether a server's certificate has to be for the host that we connect to. Without it, any
    /// certificate of a trusted authority is believed (Kafka's empty
    /// `ssl.endpoint.identification.algorithm`).
    pub verify_host_name: bool,
}

/// The client's side of TLS, shared by all connections with the same settings.
pub struct ClientTls {
    /// Guards the settings of the next handshake; held only to clone them.
    current: RwLock<Arc<ClientConfig>>,
}

impl ClientTls {
    /// # Errors
    /// [`TlsError::Material`] or [`TlsError::Settings`].
    pub fn new(settings: ClientTlsSettings) -> Result<Self, TlsError> {
        Ok(Self { current: RwLock::new(Arc::new(config(settings)?)) })
    }

    /// Settings that encrypt, and believe any certificate: whoever is between us and the server
    /// can read and change everything (PostgreSQL's `sslmode=require`).
    ///
    /// # Errors
    /// [`TlsError::Material`] or [`TlsError::Settings`].
    pub fn unverified(
        identity: Option<Identity>,
        provider: CryptoProvider,
    ) -> Result<Self, TlsError> {
        let provider = provider.get();
        let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
        let config = config_with(verifier, identity, provider)?;
        Ok(Self { current: RwLock::new(Arc::new(config)) })
    }

    /// Goes by `settings` from the next handshake on; connections that stand are not touched.
    ///
    /// # Errors
    /// As [`new`](Self::new); then everything stays as it was.
    pub fn replace(&self, settings: ClientTlsSettings) -> Result<(), TlsError> {
        let next = Arc::new(config(settings)?);
        *self.current.write() = next;
        Ok(())
    }

    /// Secures a connection to `host`, a name or an IP address. The caller bounds the time.
    ///
    /// # Errors
    /// The server or its certificate is not as it should be, or it refused us. A server that
    /// speaks TLS 1.3 refuses a client's certificate only after this, with the first read.
    pub async fn connect(&self, stream: TcpStream, host: &str) -> Result<Stream, TlsError> {
        Ok(TlsStream::from(self.secure(stream, host).await?).into())
    }

    /// Secures any connection, as [`connect`](Self::connect).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        host: &str,
    ) -> Result<tokio_rustls::client::TlsStream<S>, TlsError> {
        let name = ServerName::try_from(host.trim_end_matches('.').to_owned())
            .map_err(|_| TlsError::Settings(format!("{host:?} is not a host name")))?;
        let config = Arc::clone(&self.current.read());
        Ok(TlsConnector::from(config).connect(name, stream).await?)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls").finish_non_exhaustive()
    }
}

fn config(settings: ClientTlsSettings) -> Result<ClientConfig, TlsError> {
    let unusable = |error: &dyn fmt::Display| TlsError::Settings(error.to_string());
    let provider = settings.provider.get();
    let roots = settings.trust.roots;
    let verifier: Arc<dyn ServerCertVerifier> = if settings.verify_host_name {
        WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
            .build()
            .map_err(|error| unusable(&error))?
    } else {
        Arc::new(AnyHost { roots, provider: Arc::clone(&provider) })
    };
    config_with(verifier, settings.identity, provider)
}

fn config_with(
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<Identity>,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<ClientConfig, TlsError> {
    let key = identity.map(|identity| identity.certified_key(&provider)).transpose()?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Settings(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    Ok(match key {
        Some(key) => builder.with_client_cert_resolver(Arc::new(Always(key))),
        None => builder.with_no_client_auth(),
    })
}

/// Shows one certificate to every server that asks.
#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesClientCert for Always {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

/// Accepts certificates of trusted authorities for any host.
#[derive(Debug)]
struct AnyHost {
    roots: Arc<RootCertStore>,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for AnyHost {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let own = ParsedCertificate::try_from(own)?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(
            &own,
            &self.roots,
            intermediates,
            now,
            algorithms,
        )?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Accepts every certificate, also those that cannot be read: nothing is known of the server.
#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _own: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
