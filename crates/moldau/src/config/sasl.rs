//! The keys `sasl` of listeners, and of connections to a cluster. A listener of the broker has the
//! keys of `terminate` without that key.
//!
//! ```yaml
//! sasl:
//!   terminate:
//!     mechanisms: [SCRAM-SHA-512]
//!     users_file: users
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moldau_broker::SaslListener;
use moldau_net::sasl::{
    Credentials, KeySource, Mechanism, SaslClient, SaslCredentials, SaslServer, SaslServerSettings,
    StaticToken, TokenSettings, TokenVerifier, Users,
};
use serde::Deserialize;

use super::problem::{At, Problem, none_of};
use super::sources::Sources;
use super::tls;
use super::users::{self, Scram};

/// Whose SASL it is; without this key, the cluster's.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Downstream {
    /// The proxy authenticates clients, and nothing of them reaches the cluster before.
    pub(super) terminate: At<Server>,
}

/// How clients prove who they are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Server {
    /// What is offered: `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`.
    mechanisms: Vec<At<String>>,
    /// Who is known: to the proxy for all but OAUTHBEARER, to the broker for PLAIN.
    users_file: Option<At<PathBuf>>,
    /// Whose tokens are believed.
    oauthbearer: Option<At<Tokens>>,
    /// Kafka's `connections.max.reauth.ms`: milliseconds after which clients authenticate again.
    /// Default: never.
    max_reauthentication_ms: Option<u64>,
}

/// Which tokens are believed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tokens {
    /// Address of the issuer's keys, fetched in the background.
    jwks_url: Option<At<String>>,
    /// File with the issuer's keys.
    jwks_file: Option<At<PathBuf>>,
    /// Authorities to trust for an `https` address, in PEM. Default: the system's.
    trust_file: Option<At<PathBuf>>,
    /// What `iss` must be. Default: anything.
    issuer: Option<String>,
    /// What must be in `aud`. Default: anything.
    audience: Option<String>,
    /// Which claim names the principal. Default `sub`.
    principal_claim: Option<String>,
    /// What must be in `scope`. Default: anything.
    scope: Option<String>,
    /// Seconds by which clocks may differ. Default 30.
    clock_skew_s: Option<u64>,
    /// Seconds after which the keys are fetched again. Default 3600.
    jwks_refresh_s: Option<u64>,
}

/// What the proxy proves itself with towards the cluster.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    /// `PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512` or `OAUTHBEARER`.
    mechanism: At<String>,
    /// The user's name, for all but OAUTHBEARER.
    user: Option<At<String>>,
    /// File with the password.
    password_file: Option<At<PathBuf>>,
    /// File with the token, for OAUTHBEARER.
    token_file: Option<At<PathBuf>>,
}

/// Makes what the proxy needs.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn server(sasl: &At<Server>, sources: &mut Sources) -> Result<Arc<SaslServer>, Problem> {
    let mechanisms = mechanisms(sasl)?;
    let wants_users = mechanisms.iter().any(|it| *it != Mechanism::OAuthBearer);
    let users = match &sasl.value.users_file {
        Some(path) => users::read(path, Scram::File(&mechanisms), sources)?,
        None if wants_users => return Err(missing(sasl, "users_file")),
        None => Users::default(),
    };
    let settings = settings(sasl, mechanisms, Arc::new(users), sources)?;
    let made = SaslServer::new(settings);
    made.map(Arc::new).map_err(|error| Problem::at(sasl, error))
}

/// Makes what a listener of the broker needs, which has the credentials of SCRAM in its metadata.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn listener(sasl: &At<Server>, sources: &mut Sources) -> Result<SaslListener, Problem> {
    let mechanisms = mechanisms(sasl)?;
    let has_plain = mechanisms.contains(&Mechanism::Plain);
    let users = match &sasl.value.users_file {
        Some(path) if has_plain => users::read(path, Scram::Metadata, sources)?,
        Some(path) => {
            let text = "users_file: serves PLAIN, which is not one of the mechanisms";
            return Err(Problem::at(path, text));
        }
        None if has_plain => return Err(missing(sasl, "users_file")),
        None => Users::default(),
    };
    let users = Arc::new(users);
    let settings = settings(sasl, mechanisms, Arc::clone(&users) as _, sources)?;
    let listener = SaslListener {
        mechanisms: settings.mechanisms.clone(),
        users,
        tokens: settings.tokens.clone(),
        max_reauthentication: settings.max_reauthentication,
    };
    // The broker makes its own as it starts; what is wrong has a place in the file only here.
    SaslServer::new(settings).map_err(|error| Problem::at(sasl, error))?;
    Ok(listener)
}

fn mechanisms(sasl: &At<Server>) -> Result<Vec<Mechanism>, Problem> {
    sasl.value.mechanisms.iter().map(mechanism).collect()
}

fn settings(
    sasl: &At<Server>,
    mechanisms: Vec<Mechanism>,
    credentials: Arc<dyn Credentials>,
    sources: &mut Sources,
) -> Result<SaslServerSettings, Problem> {
    let keys = &sasl.value;
    let tokens = keys.oauthbearer.as_ref().map(|tokens| verifier(tokens, sources)).transpose()?;
    if tokens.is_none() && mechanisms.contains(&Mechanism::OAuthBearer) {
        return Err(missing(sasl, "oauthbearer"));
    }
    let max_reauthentication = keys.max_reauthentication_ms.map(Duration::from_millis);
    Ok(SaslServerSettings { mechanisms, credentials, tokens, max_reauthentication })
}

fn missing(sasl: &At<Server>, key: &str) -> Problem {
    Problem::at(sasl, format_args!("the key {key:?} is missing"))
}

/// Makes what connections to a cluster need.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn client(sasl: &At<Client>, sources: &mut Sources) -> Result<Arc<SaslClient>, Problem> {
    let keys = &sasl.value;
    let needs = |key: &str| {
        let text = format!("the key {key:?} is missing, which {} needs", keys.mechanism.value);
        Problem::at(&keys.mechanism, text)
    };
    let credentials = match mechanism(&keys.mechanism)? {
        Mechanism::OAuthBearer => {
            let token = keys.token_file.as_ref().ok_or_else(|| needs("token_file"))?;
            let token = StaticToken::new(sources.secret(token)?);
            SaslCredentials::OAuthBearer { tokens: Arc::new(token), extensions: Vec::new() }
        }
        mechanism => {
            let user = keys.user.as_ref().ok_or_else(|| needs("user"))?.value.clone();
            let password = keys.password_file.as_ref().ok_or_else(|| needs("password_file"))?;
            let password = sources.secret(password)?;
            match mechanism {
                Mechanism::Plain => SaslCredentials::Plain { user, password },
                _ => SaslCredentials::Scram { mechanism, user, password },
            }
        }
    };
    SaslClient::new(credentials).map(Arc::new).map_err(|error| Problem::at(sasl, error))
}

fn mechanism(name: &At<String>) -> Result<Mechanism, Problem> {
    let known = Mechanism::ALL.map(Mechanism::name);
    name.value.parse().map_err(|_| Problem::at(name, none_of(&name.value, &known)))
}

fn verifier(tokens: &At<Tokens>, sources: &mut Sources) -> Result<Arc<TokenVerifier>, Problem> {
    let keys = &tokens.value;
    let source = match (&keys.jwks_url, &keys.jwks_file) {
        (Some(url), None) => {
            let refresh = Duration::from_secs(keys.jwks_refresh_s.unwrap_or(3600));
            let tls = tls::of_url(url, keys.trust_file.as_ref(), sources)?;
            KeySource::Url { url: url.value.clone(), tls, refresh_interval: refresh }
        }
        (None, Some(file)) => KeySource::Bytes(sources.bytes(file)?.to_vec()),
        (None, None) => {
            return Err(Problem::at(tokens, "the key \"jwks_url\" is missing, or jwks_file"));
        }
        (Some(_), Some(file)) => {
            return Err(Problem::at(file, "jwks_file: cannot be combined with jwks_url"));
        }
    };
    let mut settings = TokenSettings::new(source);
    settings.issuer.clone_from(&keys.issuer);
    settings.audiences.extend(keys.audience.clone());
    settings.scopes.extend(keys.scope.clone());
    if let Some(claim) = &keys.principal_claim {
        settings.principal_claim.clone_from(claim);
    }
    if let Some(skew) = keys.clock_skew_s {
        settings.clock_skew = Duration::from_secs(skew);
    }
    let place = |error| match (&keys.jwks_url, &keys.jwks_file) {
        (Some(url), _) => Problem::at(url, format_args!("jwks_url: {error}")),
        (_, Some(file)) => Problem::at(file, format_args!("{}: {error}", file.value.display())),
        _ => Problem::at(tokens, error),
    };
    let verifier = TokenVerifier::new(settings).map(Arc::new).map_err(place)?;
    if keys.jwks_url.is_some() {
        sources.background.push(Box::pin(verifier.keep_fresh()));
    }
    Ok(verifier)
}
