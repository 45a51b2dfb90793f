//! The files that configurations of fronts name: certificates, users, rules, a key. They belong to
//! one run, and protect nothing but random bytes.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_client::Security;
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, Identity, TrustAnchors};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use super::fronts::LabKey;
use moldau_measure::Error;

/// How clients secure their connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientSecurity {
    /// Not at all.
    Plain,
    /// TLS.
    Tls,
    /// TLS with a certificate of their own.
    MutualTls,
    /// SCRAM-SHA-256 in clear.
    Scram,
}

/// What was written, and what clients need of it.
///
/// | file | content |
/// |---|---|
/// | `authority.pem` | the authority of both certificates |
/// | `server.pem`, `server.key` | for 127.0.0.1, ECDSA on P-256 |
/// | `server-store.pem` | both in one file, as Apache Kafka reads PEM |
/// | `client.pem`, `client.key` | the same of a client |
/// | `users`, `password` | the user of SCRAM, `lab`, and its password |
/// | `rules` | who may read and write the topics of runs, after many rules for others |
/// | `kek` | [`LabKey`] |
#[derive(Clone)]
pub struct FrontFiles {
    directory: PathBuf,
    authority: String,
    client: Pair,
}

/// A certificate and its key in PEM.
#[derive(Clone)]
struct Pair {
    certificate: String,
    key: String,
}

impl FrontFiles {
    /// Writes all of them into `directory`, which is made.
    ///
    /// # Errors
    /// [`Error::Machine`] when a file cannot be written.
    pub fn make(directory: &Path, seed: u64) -> Result<Self, Error> {
        fs::create_dir_all(directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let (authority, server, client) = certificates()
            .map_err(io::Error::other)
            .map_err(Error::machine("making certificates"))?;
        let tenants = (0..OTHER_TENANTS)
            .map(|tenant| format!("allow User:tenant-{tenant} Read,Write topic tenant-{tenant}-*"));
        let rules: Vec<String> = tenants.chain(RULES.map(String::from)).collect();
        for (name, content) in [
            ("authority.pem", authority.as_str()),
            ("server.pem", server.certificate.as_str()),
            ("server.key", server.key.as_str()),
            ("server-store.pem", (server.key.clone() + &server.certificate).as_str()),
            ("client.pem", client.certificate.as_str()),
            ("client.key", client.key.as_str()),
            ("users", format!("{USER}:{PASSWORD}\n").as_str()),
            ("password", PASSWORD),
            ("rules", rules.join("\n").as_str()),
            ("kek", LabKey::of(seed).text().as_str()),
        ] {
            let path = directory.join(name);
            fs::write(&path, content)
                .map_err(Error::machine(format!("writing {}", path.display())))?;
        }
        Ok(Self { directory: directory.into(), authority, client })
    }

    /// Where they lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What clients secure their connections with. Each call gives something of its own, with
    /// which no TLS session of an earlier connection is resumed.
    ///
    /// # Errors
    /// None in practice: the certificates are our own.
    pub fn security(&self, clients: ClientSecurity) -> Result<Security, Error> {
        let unusable = |error: &dyn fmt::Display| Error::Machine {
            action: "securing clients".into(),
            source: io::Error::other(error.to_string()),
        };
        let tls = |identity: Option<Identity>| {
            let made = TrustAnchors::from_pem(self.authority.as_bytes()).and_then(|trust| {
                let provider = CryptoProvider::default();
                let verify_host_name = true;
                ClientTls::new(ClientTlsSettings { trust, identity, provider, verify_host_name })
            });
            let tls = made.map_err(|error| unusable(&error))?;
            Ok(Security { tls: Some(Arc::new(tls)), sasl: None })
        };
        match clients {
            ClientSecurity::Plain => Ok(Security::default()),
            ClientSecurity::Tls => tls(None),
            ClientSecurity::MutualTls => {
                let Pair { certificate, key } = &self.client;
                let own = Identity::from_pem(certificate.as_bytes(), key.as_bytes());
                tls(Some(own.map_err(|error| unusable(&error))?))
            }
            ClientSecurity::Scram => {
                let credentials = SaslCredentials::Scram {
                    mechanism: Mechanism::ScramSha256,
                    user: USER.into(),
                    password: PASSWORD.to_string().into(),
                };
                let sasl = SaslClient::new(credentials).map_err(|error| unusable(&error))?;
                Ok(Security { tls: None, sasl: Some(Arc::new(sasl)) })
            }
        }
    }
}

/// Shows no key.
impl fmt::Debug for FrontFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontFiles").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The certificate of an authority, and what it gave a server and a client.
fn certificates() -> Result<(String, Pair, Pair), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, "Moldau laboratory");
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let pair = |names: Vec<String>, usage| -> Result<Pair, rcgen::Error> {
        let mut params = CertificateParams::new(names)?;
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &authority)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem() })
    };
    let server = pair(vec!["127.0.0.1".into()], ExtendedKeyUsagePurpose::ServerAuth)?;
    let client = pair(Vec::new(), ExtendedKeyUsagePurpose::ClientAuth)?;
    Ok((authority.pem(), server, client))
}

/// The user of SCRAM.
const USER: &str = "lab";
const PASSWORD: &str = "the password of the laboratory";

/// Tenants that have a rule each and take no part in any run: a gateway has more than one.
const OTHER_TENANTS: u32 = 100;

/// Clients of runs have no name, and their producers are idempotent.
const RULES: [&str; 2] =
    ["allow User:ANONYMOUS Read,Write topic lab-*", "allow User:ANONYMOUS IdempotentWrite cluster"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_client_has_what_it_needs() {
        let directory = tempfile::tempdir().unwrap();
        let files = FrontFiles::make(&directory.path().join("files"), 1).unwrap();
        let found = |clients| {
            let security = files.security(clients).unwrap();
            (security.tls.is_some(), security.sasl.map(|sasl| sasl.mechanism()))
        };
        assert_eq!(found(ClientSecurity::Plain), (false, None));
        assert_eq!(found(ClientSecurity::Tls), (true, None));
        assert_eq!(found(ClientSecurity::MutualTls), (true, None));
        assert_eq!(found(ClientSecurity::Scram), (false, Some(Mechanism::ScramSha256)));
        let kek = fs::read_to_string(files.directory().join("kek")).unwrap();
        assert_eq!(kek, LabKey::of(1).text());
    }
}
