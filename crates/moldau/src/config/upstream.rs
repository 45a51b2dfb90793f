//! The key `upstream` of a virtual cluster: a list of servers, or a mapping with that and more.

use std::fmt;

use moldau_proxy::UpstreamSettings;
use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::problem::{At, Problem};
use super::{Sources, sasl, tls};

/// Servers of the real cluster, and what secures the way to them.
#[derive(Debug)]
pub(super) struct Upstream(Keys);

/// The longer form.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    /// Bootstrap servers, each `host:port`.
    servers: Vec<At<String>>,
    /// TLS towards the cluster. Default: none.
    tls: Option<At<tls::Client>>,
    /// What the proxy proves itself with. Default: nothing.
    sasl: Option<At<sasl::Client>>,
    /// Whether servers get the client's address by the PROXY protocol, version 2. Default
    /// `false`.
    #[serde(default)]
    proxy_protocol: bool,
}

impl Upstream {
    /// The bootstrap servers, as the file has them.
    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.0.servers.iter().map(|server| server.value.as_str())
    }
}

impl<'de> Deserialize<'de> for Upstream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm)
    }
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = Upstream;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of servers, or a mapping with servers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Upstream, A::Error> {
        let servers = Deserialize::deserialize(SeqAccessDeserializer::new(list))?;
        Ok(Upstream(Keys { servers, tls: None, sasl: None, proxy_protocol: false }))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Upstream, A::Error> {
        Keys::deserialize(MapAccessDeserializer::new(map)).map(Upstream)
    }
}

/// Makes what the proxy needs.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn settings(
    upstream: At<Upstream>,
    sources: &mut Sources,
) -> Result<UpstreamSettings, Problem> {
    if upstream.value.0.servers.is_empty() {
        return Err(Problem::at(&upstream, "upstream: at least one server is needed"));
    }
    let Keys { servers, tls, sasl, proxy_protocol } = upstream.value.0;
    for server in &servers {
        super::host_port("upstream", server)?;
    }
    Ok(UpstreamSettings {
        servers: servers.into_iter().map(|server| server.value).collect(),
        tls: tls.as_ref().map(|tls| tls::client(tls, sources)).transpose()?,
        sasl: sasl.as_ref().map(|sasl| sasl::client(sasl, sources)).transpose()?,
        proxy_protocol,
    })
}
