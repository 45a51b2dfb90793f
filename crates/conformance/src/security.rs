//! Clients that prove who they are, and clients that cannot, against the broker and the proxy.
//!
//! The Java client, librdkafka and franz-go connect by TLS, mutual TLS and each SASL mechanism,
//! with what is right and with what is wrong. A client that is served writes and reads back; one
//! that is refused must be told so in its library's own words for it.

mod issuer;
mod renewal;
mod served;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::certificates::Certificates;
use crate::check::Check;
use crate::client::Library;
use crate::connection::{Connection, Login, Session};
use crate::peers::Peers;
use crate::process::Process;
pub use issuer::Issuer;
pub use renewal::renew;
pub use served::{Gateway, Served};

/// All cases of a program come one after the other.
const SESSION_TIMEOUT: Duration = Duration::from_secs(150);

/// The user whose credentials are right.
pub const USER: &str = "alice";

/// Alice's password.
pub const PASSWORD: &str = "alice's secret 100%";

/// Whoever is not known.
const STRANGER: &str = "mallory";

/// What must become of a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Expected {
    /// It writes and reads.
    Served,
    /// It is told that it is not who it says: `SASL_AUTHENTICATION_FAILED`.
    Unauthenticated,
    /// The TLS handshake fails on either side.
    Untrusted,
}

/// How one client connects.
#[derive(Clone, Debug)]
pub struct Case {
    /// A statement that holds if it becomes of it what must.
    pub name: &'static str,
    expected: Expected,
    listener: Listener,
    /// The file of the authority that the client trusts.
    authority: Option<String>,
    /// The file of its own certificate and key.
    identity: Option<String>,
    login: Option<Login>,
}

/// The listeners of a server, by what they ask of clients.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Listener {
    /// A server certificate, nothing of the client.
    Tls,
    /// Certificates on both sides.
    MutualTls,
    /// SASL within TLS.
    SaslTls,
    /// SASL without TLS.
    Sasl,
    /// The same, where a session ends after a short time.
    ShortSasl,
}

/// Every case.
pub fn cases(certificates: &Certificates, issuer: &Issuer) -> Vec<Case> {
    let mut cases = by_certificate(certificates).to_vec();
    let authority = certificates.authority();
    cases.extend(by_password(&authority));
    cases.extend(by_token(&authority, issuer));
    cases
}

fn by_certificate(certificates: &Certificates) -> [Case; 6] {
    let case = |name, expected, listener, authority: String, identity| Case {
        name,
        expected,
        listener,
        authority: Some(authority),
        identity,
        login: None,
    };
    let (ours, foreign) = (certificates.authority(), certificates.foreign_authority());
    let untrusted = Expected::Untrusted;
    let mutual = |name, expected, identity| {
        case(name, expected, Listener::MutualTls, ours.clone(), identity)
    };
    let [own, another, old] =
        [certificates.client(), certificates.foreign_client(), certificates.expired_client()];
    [
        case("TLS is served", Expected::Served, Listener::Tls, ours.clone(), None),
        case(
            "a server of a foreign authority is not trusted",
            untrusted,
            Listener::Tls,
            foreign,
            None,
        ),
        mutual("mutual TLS is served", Expected::Served, Some(own)),
        mutual("a client without a certificate is not trusted", untrusted, None),
        mutual("a client of a foreign authority is not trusted", untrusted, Some(another)),
        mutual("a client whose certificate has expired is not trusted", untrusted, Some(old)),
    ]
}

fn by_password(authority: &str) -> [Case; 8] {
    let [served, refused] = [Expected::Served, Expected::Unauthenticated];
    let [plain, scram_256, scram_512] = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"];
    let case = |name, expected, mechanism, user, secret| {
        login(name, expected, Some(authority), Login::new(mechanism, user, secret))
    };
    let in_clear = |name, expected, mechanism, secret| {
        login(name, expected, None, Login::new(mechanism, USER, secret))
    };
    [
        case("PLAIN is served", served, plain, USER, PASSWORD),
        case("SCRAM-SHA-256 is served", served, scram_256, USER, PASSWORD),
        case("SCRAM-SHA-512 is served", served, scram_512, USER, PASSWORD),
        case("PLAIN with a wrong password is refused", refused, plain, USER, "wrong"),
        case("SCRAM-SHA-256 with a wrong password is refused", refused, scram_256, USER, "wrong"),
        case("SCRAM-SHA-512 of an unknown user is refused", refused, scram_512, STRANGER, "wrong"),
        in_clear("SCRAM-SHA-256 without TLS is served", served, scram_256, PASSWORD),
        in_clear("a wrong password without TLS is refused", refused, scram_512, "wrong"),
    ]
}

fn by_token(authority: &str, issuer: &Issuer) -> [Case; 5] {
    let refused = Expected::Unauthenticated;
    [
        ("OAUTHBEARER is served", Expected::Served, issuer.token()),
        ("an expired token is refused", refused, issuer.expired_token()),
        ("a token by another key is refused", refused, issuer.forged_token()),
        ("a token for another audience is refused", refused, issuer.misdirected_token()),
        ("a malformed token is refused", refused, "not.a.token".to_owned()),
    ]
    .map(|(name, expected, secret)| {
        login(name, expected, Some(authority), Login::new("OAUTHBEARER", USER, &secret))
    })
}

/// A client with a login, by TLS if it trusts an authority.
fn login(name: &'static str, expected: Expected, authority: Option<&str>, login: Login) -> Case {
    let listener = if authority.is_some() { Listener::SaslTls } else { Listener::Sasl };
    let authority = authority.map(str::to_owned);
    Case { name, expected, listener, authority, identity: None, login: Some(login) }
}

/// Runs all cases by the program of one library.
pub fn run(
    library: Library,
    cases: &[Case],
    served: &Served,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<Check>> {
    let name = format!("secured-{}-{}", served.name(), library.name());
    let lines = cases.iter().enumerate().map(|(number, case)| {
        let topic = format!("{name}-{number}");
        case.line(&topic, &served.address(case.listener))
    });
    let input: String = lines.collect();
    let program = Session::Secured.program(library, peers)?;
    let finished = Process::run(program, &name, directory, &input, SESSION_TIMEOUT)?;
    let checks = Check::parse_lines(&finished.stdout).with_context(|| finished.explanation())?;
    anyhow::ensure!(
        checks.len() == cases.len(),
        "{} of {} cases were run: {}",
        checks.len(),
        cases.len(),
        finished.explanation()
    );
    Ok(checks)
}

impl Case {
    /// What a program reads of it.
    fn line(&self, topic: &str, bootstrap: &str) -> String {
        let expected = match self.expected {
            Expected::Served => "served",
            Expected::Unauthenticated => "unauthenticated",
            Expected::Untrusted => "untrusted",
        };
        let connection = Connection {
            bootstrap: bootstrap.to_owned(),
            authority: self.authority.clone(),
            identity: self.identity.clone(),
            login: self.login.clone(),
        };
        [self.name, topic, expected, &connection.columns()].join("\t") + "\n"
    }
}
