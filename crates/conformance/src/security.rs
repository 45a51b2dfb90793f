//! Clients that prove who they are, and clients that cannot, against the broker and the proxy.
//!
//! The Java client, librdkafka and franz-go connect by TLS, mutual TLS and each SASL mechanism,
//! with what is right and with what is wrong. A client that is served writes and reads back; one
//! that is refused must be told so in its library's own words for it.

mod issuer;
mod served;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::certificates::Certificates;
use crate::check::Check;
use crate::client::{Library, script};
use crate::peers::Peers;
use crate::process::Process;
pub use issuer::Issuer;
pub use served::{Gateway, Served};

/// The clients that the matrix asks for.
pub const LIBRARIES: [Library; 3] = [Library::Java, Library::Librdkafka, Library::Franz];

/// All cases of a program come one after the other.
const SESSION_TIMEOUT: Duration = Duration::from_secs(150);

/// The user whose credentials are right.
pub const USER: &str = "alice";

/// Alice's password.
pub const PASSWORD: &str = "alice's secret 100%";

/// Whoever is not known.
const STRANGER: &str = "mallory";

/// What a column of a program's input says where there is nothing.
const NONE: &str = "-";

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
}

#[derive(Clone, Debug)]
struct Login {
    mechanism: &'static str,
    user: &'static str,
    secret: String,
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
    let case = |name, expected, mechanism, user, secret: &str| {
        login(name, expected, Some(authority), Login { mechanism, user, secret: secret.to_owned() })
    };
    let in_clear = |name, expected, mechanism, secret: &str| {
        login(name, expected, None, Login { mechanism, user: USER, secret: secret.to_owned() })
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
        let by_token = Login { mechanism: "OAUTHBEARER", user: USER, secret };
        login(name, expected, Some(authority), by_token)
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
    let finished =
        Process::run(program(library, peers)?, &name, directory, &input, SESSION_TIMEOUT)?;
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

fn program(library: Library, peers: &Peers) -> Result<Command> {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    match library {
        Library::Java => peers.java_tool("SecuredSession"),
        Library::Librdkafka => {
            Ok(script(&peers.python(), &clients.join("python-confluent/secured.py")))
        }
        Library::Franz => {
            let mut franz = Command::new(peers.franz());
            franz.arg("secured");
            Ok(franz)
        }
        Library::KafkaPython | Library::Kafkajs => {
            anyhow::bail!("{} has no such program", library.name())
        }
    }
}

impl Case {
    /// What a program reads of it.
    fn line(&self, topic: &str, bootstrap: &str) -> String {
        let expected = match self.expected {
            Expected::Served => "served",
            Expected::Unauthenticated => "unauthenticated",
            Expected::Untrusted => "untrusted",
        };
        let authority = self.authority.as_deref().unwrap_or(NONE);
        let identity = self.identity.as_deref().unwrap_or(NONE);
        let (mechanism, user, secret) = match &self.login {
            Some(login) => (login.mechanism, login.user, login.secret.as_str()),
            None => (NONE, NONE, NONE),
        };
        let fields =
            [self.name, topic, expected, bootstrap, authority, identity, mechanism, user, secret];
        format!("{}\n", fields.join("\t"))
    }
}
