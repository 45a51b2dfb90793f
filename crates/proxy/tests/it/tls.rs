//! Clients of TLS with blocking sockets, and certificates for both sides.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use moldau_net::tls::{
    ClientAuthentication, CryptoProvider, Identity, PrincipalMapping, ServerTls, ServerTlsSettings,
    TrustAnchors,
};
use moldau_protocol::Request;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::world::{decode, encode, read_frame};

const PATIENCE: Duration = Duration::from_secs(20);

/// A certificate that signs itself, and its key.
pub(crate) struct Certificate {
    certificate: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    /// For these host names. The first is its common name too.
    pub(crate) fn of(hosts: &[&str]) -> Self {
        let mut parameters = rcgen::CertificateParams::new(
            hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>(),
        )
        .unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, hosts[0]);
        let signing_key = rcgen::KeyPair::generate().unwrap();
        let cert = parameters.self_signed(&signing_key).unwrap();
        Self { certificate: rcgen::CertifiedKey { cert, signing_key } }
    }

    pub(crate) fn identity(&self) -> Identity {
        let rcgen::CertifiedKey { cert, signing_key } = &self.certificate;
        Identity::from_pem(cert.pem().as_bytes(), signing_key.serialize_pem().as_bytes()).unwrap()
    }

    pub(crate) fn trust(&self) -> TrustAnchors {
        TrustAnchors::from_pem(self.certificate.cert.pem().as_bytes()).unwrap()
    }

    fn der(&self) -> CertificateDer<'static> {
        self.certificate.cert.der().clone()
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(self.certificate.signing_key.serialize_der().into())
    }
}

/// TLS of a listener; clients that `trusted` signed may show certificates.
pub(crate) fn server_tls(own: &Certificate, trusted: Option<&Certificate>) -> ServerTls {
    ServerTls::new(settings(own, trusted)).unwrap()
}

pub(crate) fn settings(own: &Certificate, trusted: Option<&Certificate>) -> ServerTlsSettings {
    ServerTlsSettings {
        identities: vec![(None, own.identity())],
        client_authentication: match trusted {
            Some(_) => ClientAuthentication::Required,
            None => ClientAuthentication::None,
        },
        client_trust: trusted.map(Certificate::trust),
        provider: CryptoProvider::default(),
        principal_mapping: PrincipalMapping::default(),
    }
}

/// A client's connection through TLS.
pub(crate) struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsClient {
    /// Asks for `host`, trusts `server` and shows `own`.
    pub(crate) fn connect(
        address: SocketAddr,
        host: &str,
        server: &Certificate,
        own: Option<&Certificate>,
    ) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(server.der()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            Some(own) => config.with_client_auth_cert(vec![own.der()], own.key()).unwrap(),
            None => config.with_no_client_auth(),
        };
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream: StreamOwned::new(connection, socket) }
    }

    /// Sends a request and decodes what comes back.
    pub(crate) fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        self.try_call(version, request).unwrap()
    }

    pub(crate) fn try_call<Q: Request>(
        &mut self,
        version: i16,
        request: &Q,
    ) -> std::io::Result<Q::Response> {
        self.stream.write_all(&encode(version, 7, request))?;
        Ok(decode(Q::KEY, version, 7, &read_frame(&mut self.stream)?))
    }

    /// How the handshake failed.
    pub(crate) fn refusal(mut self) -> String {
        let written = self.stream.write_all(b"x").and_then(|()| self.stream.read_exact(&mut [0]));
        written.unwrap_err().to_string()
    }
}
