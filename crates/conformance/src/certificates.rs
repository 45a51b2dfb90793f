//! Certificates of two authorities, in files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, date_time_ymd,
};

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

        let names = ["localhost", "127.0.0.1", SNI_WILDCARD].map(str::to_owned);
        let key = KeyPair::generate()?;
        let mut server = CertificateParams::new(names)?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.distinguished_name.push(DnType::CommonName, "broker");
        fs::write(made.server(), server.signed_by(&key, &ours)?.pem())?;
        fs::write(made.server_key(), key.serialize_pem())?;

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

/// Key and certificate in one file, as all three libraries read them.
fn write_client(file: &str, params: CertificateParams, authority: &Authority) -> Result<()> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, authority)?;
    Ok(fs::write(file, format!("{}{}", key.serialize_pem(), certificate.pem()))?)
}
