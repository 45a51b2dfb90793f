//! Certificates of two authorities, in files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The files of an authority that the servers trust, and of one that they do not.
#[derive(Debug)]
pub struct Certificates {
    directory: PathBuf,
}

type Authority = CertifiedIssuer<'static, KeyPair>;

impl Certificates {
    /// Makes all of them in `directory`.
    pub fn make(directory: &Path) -> Result<Self> {
        let made = Self { directory: directory.to_owned() };
        let (ours, foreign) = (authority("Moldau test")?, authority("Elbe test")?);
        fs::write(made.authority(), ours.pem())?;
        fs::write(made.foreign_authority(), foreign.pem())?;

        write_server(Path::new(&made.server()), Path::new(&made.server_key()), &ours)?;

        write_client(&made.client(), client()?, &ours)?;
        write_client(&made.foreign_client(), client()?, &foreign)?;
        let mut expired = client()?;
        expired.not_before = date_time_ymd(2020, 1, 1);
        expired.not_after = date_time_ymd(2021, 1, 1);
        write_client(&made.expired_client(), expired, &ours)?;
        Ok(made)
    }

    /// The certificate of the authority that servers and clients trust.
    pub fn authority(&self) -> String {
        self.path("authority.pem")
    }

    /// The certificate of another authority.
    pub fn foreign_authority(&self) -> String {
        self.path("foreign-authority.pem")
    }

    /// The certificate of the servers, for loopback and the hosts below `gateway.test`.
    pub fn server(&self) -> String {
        self.path("server.pem")
    }

    /// Its key.
    pub fn server_key(&self) -> String {
        self.path("server.key")
    }

    /// Certificate and key of a client, `CN=alice,O=Moldau`.
    pub fn client(&self) -> String {
        self.path("client.pem")
    }

    /// The same name, by the other authority.
    pub fn foreign_client(&self) -> String {
        self.path("foreign-client.pem")
    }

    /// The same name, years ago.
    pub fn expired_client(&self) -> String {
        self.path("expired-client.pem")
    }

    fn path(&self, file: &str) -> String {
        self.directory.join(file).display().to_string()
    }
}

/// An authority that gives a server one certificate after the other.
pub struct ServerIssuer(Authority);

impl ServerIssuer {
    /// Makes the authority and writes its certificate to `file`.
    pub fn make(file: &Path) -> Result<Self> {
        let authority = authority("Moldau test")?;
        fs::write(file, authority.pem())?;
        Ok(Self(authority))
    }

    /// Writes a certificate for loopback and its key to files. Returns what a client sees of it.
    pub fn issue(&self, certificate: &Path, key: &Path) -> Result<CertificateDer<'static>> {
        write_server(certificate, key, &self.0)
    }
}

/// Settings of a TLS client that trusts an authority. It resumes no session, so that each handshake
/// shows the server's certificate and costs what the first does.
pub(crate) fn without_resumption(authority: &Path) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority)?)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// The common name of clients.
const CLIENT_NAME: &str = "alice";

/// The hosts of a gateway that tells clusters apart by them.
const SNI_WILDCARD: &str = "*.gateway.test";

fn authority(name: &str) -> Result<Authority> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?)
}

fn client() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Moldau");
    params.distinguished_name.push(DnType::CommonName, CLIENT_NAME);
    Ok(params)
}

fn write_server(
    file: &Path,
    key_file: &Path,
    authority: &Authority,
) -> Result<CertificateDer<'static>> {
    let names = ["localhost", "127.0.0.1", SNI_WILDCARD].map(str::to_owned);
    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(names)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.distinguished_name.push(DnType::CommonName, "broker");
    let certificate = server.signed_by(&key, authority)?;
    fs::write(file, certificate.pem())?;
    fs::write(key_file, key.serialize_pem())?;
    Ok(certificate.der().clone())
}

/// Key and certificate in one file, as all three libraries read them.
fn write_client(file: &str, params: CertificateParams, authority: &Authority) -> Result<()> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(fs::write(file, format!("{}{}", key.serialize_pem(), certificate.pem()))?)
}
