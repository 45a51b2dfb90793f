//! The connection string: which of libpq's parameters it may have, and what they mean.
//!
//! `tokio_postgres` knows those that need no files. The others are taken out of the text before.
//! No error shows a value, as each of them may be a password that stands in the wrong place.

use std::path::Path;
use std::sync::Arc;

use moldau_net::TlsError;
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, Identity, TrustAnchors};
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, Socket};

use crate::{Answer, Error};

use super::tls::{Secured, Tls};

/// Where the database is, and how connections to it are secured.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: Tls,
    /// Hosts and ports, for messages.
    place: Arc<str>,
}

/// What a client sends and gets.
pub(super) type Traffic = tokio_postgres::Connection<Socket, Secured<Socket>>;

impl Address {
    /// # Errors
    /// [`Error::Settings`] names the parameter that is wrong, and no value.
    pub(super) fn parse(text: &str, application_name: &str) -> Answer<Self> {
        let (rest, parameters) = split(text)?;
        let mut config: Config = rest.parse().map_err(|error| malformed(&error))?;
        if config.get_hosts().is_empty() {
            let hosts: Vec<String> =
                config.get_hostaddrs().iter().map(ToString::to_string).collect();
            for host in &hosts {
                config.host(host);
            }
        }
        if config.get_hosts().is_empty() {
            return wrong("it names no host");
        }
        if config.get_application_name().is_none() {
            config.application_name(application_name);
        }
        let mode = Mode::of(&parameters)?;
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        config.ssl_mode(if is_local { SslMode::Disable } else { mode.ssl_mode });
        let place = place(&config).into();
        Ok(Self { config, tls: Tls(Arc::new(mode.tls)), place })
    }

    /// As the default, with changes.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) async fn connect(&self) -> Result<(Client, Traffic), tokio_postgres::Error> {
        match self.config.connect(self.tls.clone()).await {
            // As libpq does. Whoever can cause this can pretend that the server has no TLS, too.
            Err(error)
                if self.config.get_ssl_mode() == SslMode::Prefer && is_of_handshake(&error) =>
            {
                let mut plain = self.config.clone();
                plain.ssl_mode(SslMode::Disable).connect(self.tls.clone()).await
            }
            connected => connected,
        }
    }
}

fn is_of_handshake(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|cause| cause.is::<TlsError>())
}

/// `sslmode` and the files beside it.
struct Mode {
    ssl_mode: SslMode,
    tls: ClientTls,
}

impl Mode {
    fn of(parameters: &Parameters) -> Answer<Self> {
        let Parameters { mode, root, certificate, key } = parameters;
        let is_system = root.as_deref() == Some(SYSTEM);
        let default = if is_system { "verify-full" } else { "prefer" };
        let mode = mode.as_deref().unwrap_or(default);
        if is_system && mode != "verify-full" {
            return wrong("sslrootcert=system needs sslmode=verify-full");
        }
        let identity = identity(certificate.as_deref(), key.as_deref())?;
        let (ssl_mode, trust) = match (mode, root.as_deref()) {
            ("disable", _) => (SslMode::Disable, None),
            ("prefer", None) => (SslMode::Prefer, None),
            ("prefer", Some(_)) => {
                return wrong("sslrootcert needs sslmode verify-full, verify-ca or require");
            }
            ("require", None) => (SslMode::Require, None),
            ("verify-ca", None) => return wrong("sslmode=verify-ca needs sslrootcert"),
            // The same in libpq.
            ("require" | "verify-ca", Some(root)) => {
                (SslMode::Require, Some((anchors(root)?, false)))
            }
            ("verify-full", Some(root)) if !is_system => {
                (SslMode::Require, Some((anchors(root)?, true)))
            }
            ("verify-full", _) => {
                let anchors = TrustAnchors::native();
                (SslMode::Require, Some((anchors.map_err(|error| of_files(&error))?, true)))
            }
            _ => {
                return wrong("sslmode must be disable, prefer, require, verify-ca or verify-full");
            }
        };
        let provider = CryptoProvider::default();
        let tls = match trust {
            None => ClientTls::unverified(identity, provider),
            Some((trust, verify_host_name)) => {
                ClientTls::new(ClientTlsSettings { trust, identity, provider, verify_host_name })
            }
        };
        tls.map(|tls| Self { ssl_mode, tls }).map_err(|error| of_files(&error))
    }
}

fn anchors(file: &str) -> Answer<TrustAnchors> {
    let anchors = TrustAnchors::from_pem(&read("sslrootcert", file)?);
    anchors.map_err(|error| of_file("sslrootcert", file, &error))
}

fn identity(certificate: Option<&str>, key: Option<&str>) -> Answer<Option<Identity>> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => {
            let identity =
                Identity::from_pem(&read("sslcert", certificate)?, &read("sslkey", key)?);
            identity.map(Some).map_err(|error| of_file("sslcert", certificate, &error))
        }
        _ => wrong("sslcert and sslkey need one another"),
    }
}

fn read(parameter: &str, file: &str) -> Answer<Vec<u8>> {
    std::fs::read(Path::new(file)).map_err(|error| of_file(parameter, file, &error))
}

fn of_file(parameter: &str, file: &str, error: &dyn std::fmt::Display) -> Error {
    of_files(&format_args!("{parameter} {file}: {error}"))
}

fn of_files(error: &dyn std::fmt::Display) -> Error {
    Error::Settings(format!("the address of the database: {error}"))
}

fn wrong<T>(text: &str) -> Answer<T> {
    Err(of_files(&text))
}

/// Parameters that are ours.
#[derive(Default)]
struct Parameters {
    mode: Option<String>,
    root: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Parameters {
    /// Takes a parameter, or says under which name `tokio_postgres` takes it.
    fn take<'a>(&mut self, name: &'a str, value: &str) -> Answer<Option<&'a str>> {
        let value = value.to_owned();
        match name {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.root = Some(value),
            "sslcert" => self.certificate = Some(value),
            "sslkey" => self.key = Some(value),
            "keepalives_count" => return Ok(Some("keepalives_retries")),
            name if PASSED.contains(&name) => return Ok(Some(name)),
            name if is_name(name) => {
                return wrong(&format!("the parameter {name} is not supported"));
            }
            _ => return wrong(MALFORMED),
        }
        Ok(None)
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_lowercase() || c == '_';
    !text.is_empty() && text.len() <= NAME_LEN_MAX && text.chars().all(is_letter)
}

/// The text without our parameters, and those.
fn split(text: &str) -> Answer<(String, Parameters)> {
    let text = text.trim();
    match text.split_once("://") {
        Some((scheme, _)) if !matches!(scheme, "postgres" | "postgresql") => wrong(MALFORMED),
        Some(_) => split_url(text),
        None => split_pairs(text),
    }
}

fn split_url(text: &str) -> Answer<(String, Parameters)> {
    let mut parameters = Parameters::default();
    // A password may hold a question mark, as `tokio_postgres` looks for the host first.
    let query = text.find('@').unwrap_or(0);
    let query = text.get(query..).and_then(|rest| rest.find('?')).map(|at| query + at);
    let Some((base, query)) = query.and_then(|at| text.split_at_checked(at)) else {
        return Ok((text.to_owned(), parameters));
    };
    let mut passed: Vec<String> = Vec::new();
    for pair in query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty()) {
        let Some((name, value)) = pair.split_once('=') else { return wrong(MALFORMED) };
        let Some(decoded) = decode(value) else { return wrong(MALFORMED) };
        // JDBC's, which libpq takes as well.
        let (name, decoded) = match (name, decoded.as_str()) {
            ("ssl", "true") => ("sslmode", "require".to_owned()),
            _ => (name, decoded),
        };
        if let Some(name) = parameters.take(name, &decoded)? {
            passed.push(format!("{name}={value}"));
        }
    }
    let mark = if passed.is_empty() { "" } else { "?" };
    Ok((format!("{base}{mark}{}", passed.join("&")), parameters))
}

fn split_pairs(text: &str) -> Answer<(String, Parameters)> {
    let (mut parameters, mut passed) = (Parameters::default(), String::new());
    let (mut rest, mut last) = (text.trim_start(), "");
    while !rest.is_empty() {
        let Some((name, after)) = rest.split_once('=') else { return wrong(MALFORMED) };
        let name = name.trim_end();
        let Some((value, after)) = pair_value(after.trim_start()) else { return wrong(MALFORMED) };
        // Without quotes, a password ends at a space, and what follows is no name.
        if last == "password" && !KNOWN.contains(&name) && !PASSED.contains(&name) {
            return wrong(MALFORMED);
        }
        if let Some(name) = parameters.take(name, &value)? {
            let value = value.replace('\\', "\\\\").replace('\'', "\\'");
            passed.push_str(&format!("{name}='{value}' "));
        }
        (rest, last) = (after.trim_start(), name);
    }
    Ok((passed, parameters))
}

/// A value, which may stand in quotes, and what is behind it.
fn pair_value(text: &str) -> Option<(String, &str)> {
    let (text, is_quoted) = match text.strip_prefix('\'') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.push(letters.next()?.1),
            '\'' if is_quoted => return Some((value, text.get(at + 1..)?)),
            letter if letter.is_whitespace() && !is_quoted => {
                return Some((value, text.get(at..)?));
            }
            letter => value.push(letter),
        }
    }
    (!is_quoted).then_some((value, ""))
}

/// Percent-encoded text.
fn decode(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// What `tokio_postgres` says of a parameter holds no value of it; other texts of it may.
fn malformed(error: &tokio_postgres::Error) -> Error {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let name =
        cause.strip_prefix("invalid value for option `").and_then(|rest| rest.split_once('`'));
    match name {
        Some((name, _)) => of_files(&format_args!("the value of {name} is invalid")),
        None => of_files(&MALFORMED),
    }
}

fn place(config: &Config) -> String {
    let (hosts, ports) = (config.get_hosts(), config.get_ports());
    let port = |i: usize| ports.get(i).or(ports.first()).copied().unwrap_or(PORT);
    let hosts = hosts.iter().enumerate().map(|(i, host)| match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{}", port(i)),
        Host::Tcp(name) => format!("{name}:{}", port(i)),
        Host::Unix(path) => format!("{}:{}", path.display(), port(i)),
    });
    hosts.collect::<Vec<_>>().join(",")
}

const PORT: u16 = 5432;
const SYSTEM: &str = "system";
const KNOWN: &[&str] = &["sslmode", "sslrootcert", "sslcert", "sslkey", "keepalives_count"];
/// What `tokio_postgres` takes.
const PASSED: &[&str] = &[
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
];
/// Longer than any name of libpq.
const NAME_LEN_MAX: usize = 40;
const MALFORMED: &str = "it is malformed (in a password, letters other than A-Z, a-z and 0-9 need \
    % and two digits in a URL, and quotes elsewhere)";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Address {
        Address::parse(text, "moldau").unwrap()
    }

    fn refused(text: &str) -> String {
        Address::parse(text, "moldau").err().unwrap().to_string()
    }

    #[test]
    fn parameters_are_the_same_in_a_url_and_in_pairs() {
        for text in [
            "postgresql://me:p%40ss%20w@db.example:6432/kafka?sslmode=require&connect_timeout=3",
            "postgres://me@db.example:6432/kafka?password=p%40ss%20w&ssl=true&connect_timeout=3",
            "host=db.example port = 6432 user=me password='p@ss w' dbname=kafka sslmode=require \
             connect_timeout=3",
            "connect_timeout='3' password=p@ss\\ w host=db.example port=6432 user=me \
             dbname=kafka sslmode='require'",
        ] {
            let Address { config, place, .. } = parsed(text);
            assert_eq!(config.get_hosts(), [Host::Tcp("db.example".into())]);
            assert_eq!(config.get_user(), Some("me"));
            assert_eq!(config.get_password(), Some(&b"p@ss w"[..]));
            assert_eq!(config.get_dbname(), Some("kafka"));
            assert_eq!(config.get_ssl_mode(), SslMode::Require);
            assert_eq!(config.get_application_name(), Some("moldau"));
            assert_eq!(&*place, "db.example:6432");
        }
        let named = parsed("postgresql://a,[::1]:7/k?application_name=own&keepalives_count=4");
        assert_eq!(named.config.get_application_name(), Some("own"));
        assert_eq!(named.config.get_keepalives_retries(), Some(4));
        assert_eq!(
            (named.config.get_ssl_mode(), named.place()),
            (SslMode::Prefer, "a:5432,[::1]:7")
        );
        // As in libpq, a socket of the machine is never encrypted.
        let local = parsed("host=/run/postgresql dbname=k sslmode=require");
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
        let quoted = parsed(r"host=a password='it\'s \\ it'");
        assert_eq!(quoted.config.get_password(), Some(&br"it's \ it"[..]));
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (parameters, part) in [
            ("sslmode=allow", "sslmode must be disable, prefer, require, verify-ca or verify-full"),
            ("sslmode=verify-ca", "sslmode=verify-ca needs sslrootcert"),
            ("sslrootcert=/none", "sslrootcert needs sslmode verify-full, verify-ca or require"),
            ("sslmode=require&sslrootcert=system", "system needs sslmode=verify-full"),
            ("sslmode=verify-full&sslrootcert=/none", "sslrootcert /none: No such file"),
            ("sslmode=verify-full&sslrootcert=/dev/null", "/dev/null: trusted certificates"),
            ("sslcert=/none", "sslcert and sslkey need one another"),
            ("sslcrl=a", "the parameter sslcrl is not supported"),
            ("sslmod=require", "the parameter sslmod is not supported"),
            ("port=hunter2", "the value of port is invalid"),
        ] {
            let url = format!("postgresql://me:hunter2@db/kafka?{parameters}");
            let pairs =
                format!("host=db password=hunter2 user=me {}", parameters.replace('&', " "));
            for text in [url, pairs] {
                let told = refused(&text);
                assert!(told.contains(part) && !told.contains("hunter2"), "{text}: {told}");
            }
        }
    }

    #[test]
    fn no_malformed_text_shows_a_password() {
        for text in [
            "",
            "dbname=kafka",
            "mysql://me:hunter2@db/kafka",
            "postgresql://me:hunter2@db/kafka?hunter2",
            "postgresql://me:hunter2@db/kafka?password=%2",
            "postgresql://me:hunter2@db/kafka?password=%ZZ&hunter2=a",
            "postgresql://me:a@hunter2=b@db:hunter2/kafka",
            "host=db password=my hunter2",
            "host=db password=my hunter=2",
            "host=db password='hunter2",
            "host=db password=hunter2 \\",
            "hunter2",
            "=hunter2",
            "postgresql://me:hunter2@[::1/kafka",
        ] {
            let told = refused(text);
            assert!(told.contains("the address of the database"), "{text}: {told}");
            assert!(!told.contains("hunter"), "{text}: {told}");
        }
    }
}
