//! The key `admin` of the proxy: an address, or a mapping with that and more.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use moldau_net::BearerToken;
use moldau_proxy::Admin;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};

use super::Sources;
use super::problem::{At, Problem, nowhere};

/// Where the admin pages are, and who may do more than look.
#[derive(Debug)]
pub(super) struct AdminPort(Keys);

/// The longer form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    /// Where the pages are. Default `127.0.0.1:9645`.
    #[serde(default = "default_listen")]
    listen: At<SocketAddr>,
    /// File with the token of those who may have the configuration taken anew by `POST /reload`.
    /// Default: no such page.
    reload_token_file: Option<At<PathBuf>>,
}

fn default_listen() -> At<SocketAddr> {
    nowhere(SocketAddr::from(([127, 0, 0, 1], 9645)))
}

/// Defaults.
pub(super) fn default() -> At<AdminPort> {
    nowhere(AdminPort(Keys { listen: default_listen(), reload_token_file: None }))
}

impl<'de> Deserialize<'de> for AdminPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm)
    }
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = AdminPort;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address, IP:PORT, or a mapping with listen")
    }

    fn visit_str<E: Error>(self, address: &str) -> Result<AdminPort, E> {
        let listen = nowhere(address.parse().map_err(E::custom)?);
        Ok(AdminPort(Keys { listen, reload_token_file: None }))
    }

    /// A port alone, reported like any other text that is not an address.
    fn visit_u64<E: Error>(self, port: u64) -> Result<AdminPort, E> {
        self.visit_str(&port.to_string())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AdminPort, A::Error> {
        Keys::deserialize(MapAccessDeserializer::new(map)).map(AdminPort)
    }
}

/// The address with the place where the file has it.
pub(super) fn listen(admin: &At<AdminPort>) -> At<SocketAddr> {
    let listen = &admin.value.0.listen;
    match listen.line() {
        None => admin.with(listen.value),
        Some(_) => listen.clone(),
    }
}

/// Makes what the proxy needs.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn settings(admin: At<AdminPort>, sources: &mut Sources) -> Result<Admin, Problem> {
    let Keys { listen, reload_token_file } = admin.value.0;
    let listen = listen.value;
    let Some(file) = reload_token_file else { return Ok(Admin { listen, reload_token: None }) };
    let token = BearerToken::new(sources.secret(&file)?).ok_or_else(|| {
        let path = file.value.display();
        let text = format_args!("{path}: the token must be ASCII");
        Problem::at(&file, text)
    })?;
    if !listen.ip().is_loopback() {
        let text =
            format_args!("reload_token_file: {listen} has no TLS, so others can read the token");
        sources.warn(Problem::at(&file, text));
    }
    Ok(Admin { listen, reload_token: Some(token) })
}
