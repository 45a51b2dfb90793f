//! Arbitrary rules over arbitrary names, in certificates that are well formed and in bytes that are
//! none.

#![no_main]

use std::sync::OnceLock;

use moldau_net::tls::PrincipalMapping;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let parts: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0xff).collect();
    let [rules, name, unit] = parts[..] else { return };
    let [rules, name, unit] = [rules, name, unit].map(String::from_utf8_lossy);
    let mapping = PrincipalMapping::parse(&rules);
    // The whole name is always someone, and the same one each time.
    let certificate = certificate(&name, &unit);
    let whole = PrincipalMapping::default().principal(&certificate).expect("the whole name");
    assert_eq!(PrincipalMapping::default().principal(&certificate).ok(), Some(whole));
    if let Ok(mapping) = mapping {
        // No rule may match; then the client is refused.
        drop(mapping.principal(&certificate));
        drop(mapping.principal(data));
        let mut damaged = certificate;
        let at = data.len() % damaged.len();
        damaged[at] = damaged[at].wrapping_add(data[0]);
        drop(mapping.principal(&damaged));
    }
});

/// A certificate with this common name and organizational unit, in DER.
fn certificate(name: &str, unit: &str) -> Vec<u8> {
    static KEY: OnceLock<KeyPair> = OnceLock::new();
    let key = KEY.get_or_init(|| KeyPair::generate().expect("a key can be made"));
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationalUnitName, unit);
    let made = params.self_signed(key).expect("a certificate can be made");
    made.der().to_vec()
}
