//! Certificate authorities that live as long as a test.

use moldau_net::tls::{Identity, TrustAnchors};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    date_time_ymd,
};

pub(crate) struct Authority {
    pub(crate) pem: String,
    pub(crate) der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Issued {
    pub(crate) pem: String,
    pub(crate) der: Vec<u8>,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let (pem, der) = (certificate.pem(), certificate.der().to_vec());
        Self { pem, der, issuer: Issuer::new(params, key) }
    }

    /// A certificate for `localhost` or for `hosts`, whose subject is `CN=name,O=Moldau`.
    pub(crate) fn issue(&self, name: &str, hosts: &[&str]) -> Issued {
        self.issue_until(name, hosts, 2100)
    }

    pub(crate) fn issue_until(&self, name: &str, hosts: &[&str], year: i32) -> Issued {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Moldau");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued { pem: certificate.pem(), der: certificate.der().to_vec(), key }
    }

    pub(crate) fn trust(&self) -> TrustAnchors {
        TrustAnchors::from_pem(self.pem.as_bytes()).unwrap()
    }
}

impl Issued {
    pub(crate) fn identity(&self) -> Identity {
        let key = self.key.serialize_pem();
        Identity::from_pem(self.pem.as_bytes(), key.as_bytes()).unwrap()
    }
}
