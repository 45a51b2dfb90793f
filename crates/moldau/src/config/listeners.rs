//! The key `listeners` of the broker: Kafka's form, or a list with security.
//!
//! ```yaml
//! listeners: INTERNAL://127.0.0.1:9092,EXTERNAL://0.0.0.0:9093
//! advertised.listeners: EXTERNAL://kafka.example:9093
//! ```
//!
//! ```yaml
//! listeners:
//!   - name: INTERNAL
//!     address: 127.0.0.1:9092
//!   - name: EXTERNAL
//!     address: 0.0.0.0:9093
//!     advertised: kafka.example:9093
//!     tls: {certificate_file: server.pem, key_file: server.key}
//!     sasl: {mechanisms: [SCRAM-SHA-512]}
//! ```

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use moldau_broker::{Advertised, ListenerConfig};
use moldau_net::ListenerLimits;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::problem::{At, Problem};
use super::sources::Sources;
use super::{limits, ports, sasl, tls};

/// Where clients connect unless the operator chooses.
pub(super) const DEFAULT: &str = "PLAINTEXT://127.0.0.1:9092";

/// Names of listeners that have TLS or SASL in Kafka.
const SECURED_NAMES: [&str; 3] = ["SSL", "SASL_PLAINTEXT", "SASL_SSL"];

/// The value of the key.
#[derive(Debug)]
pub(crate) enum Listeners {
    /// `NAME://HOST:PORT`, separated by commas: listeners without TLS and SASL.
    Plain(String),
    /// Each with its own keys.
    Secured(Vec<Keys>),
}

/// One listener of a list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Names the listener in logs and in DescribeConfigs.
    name: At<String>,
    /// Where Kafka clients connect.
    address: At<SocketAddr>,
    /// `host:port` for clients. Default: the address that each client connected to.
    advertised: Option<At<String>>,
    /// TLS towards clients. Default: none.
    tls: Option<At<tls::Server>>,
    /// How clients prove their identity. Default: by their certificate, if they show one.
    sasl: Option<At<sasl::Server>>,
    /// Limits of connections. Default: those of the broker.
    #[serde(default)]
    limits: limits::Keys,
}

impl Listeners {
    /// Whether each listener has its own keys.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Self::Secured(_))
    }
}

impl<'de> Deserialize<'de> for Listeners {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Listeners;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("NAME://HOST:PORT or a list of listeners")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Listeners, E> {
                Ok(Listeners::Plain(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Listeners, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(Listeners::Secured)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Makes listeners of Kafka's form, beside the admin pages at `admin`.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn plain(
    urls: &At<&str>,
    advertised: Option<&At<String>>,
    admin: SocketAddr,
    limits: &ListenerLimits,
) -> Result<Vec<ListenerConfig>, Problem> {
    let refused = |text: String| Problem::at(urls, format_args!("listeners: {text}"));
    let mut made: Vec<ListenerConfig> = Vec::new();
    for url in split(urls.value) {
        let Endpoint { name, host, port } = Endpoint::parse(url).map_err(refused)?;
        if SECURED_NAMES.contains(&name) {
            let form = "{name: ..., address: ..., tls: ..., sasl: ...}";
            let text = format!("{name} has TLS or SASL; use a list of listeners: {form}");
            return Err(refused(text));
        }
        let ip = listen_address(host).map_err(refused)?;
        let address = SocketAddr::new(ip, port);
        check(name, address, admin, &made).map_err(refused)?;
        let name = name.to_owned();
        let limits = limits.clone();
        made.push(ListenerConfig { name, limits, ..ListenerConfig::plain(address, None) });
    }
    if made.is_empty() {
        return Err(refused("at least one is needed".to_owned()));
    }
    if let Some(advertised) = advertised {
        advertise(advertised, &mut made)?;
    }
    Ok(made)
}

fn advertise(urls: &At<String>, listeners: &mut [ListenerConfig]) -> Result<(), Problem> {
    let refused = |text: String| Problem::at(urls, format_args!("advertised.listeners: {text}"));
    for url in split(&urls.value) {
        let Endpoint { name, host, port } = Endpoint::parse(url).map_err(refused)?;
        if host.is_empty() || port == 0 {
            return Err(refused(format!("{url:?} is not NAME://HOST:PORT")));
        }
        let listener = listeners.iter_mut().find(|listener| listener.name == name);
        let listener = listener.ok_or_else(|| refused(format!("unknown listener {name:?}")))?;
        listener.advertised = Some(Advertised { host: host.to_owned(), port });
    }
    Ok(())
}

/// A listener as Kafka writes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoint<'a> {
    pub(crate) name: &'a str,
    /// Without the brackets of IPv6; empty for all addresses of the machine.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
}

impl<'a> Endpoint<'a> {
    /// Parses `NAME://HOST:PORT`.
    ///
    /// # Errors
    /// Quotes the text.
    pub(crate) fn parse(url: &'a str) -> Result<Self, String> {
        let endpoint = url.split_once("://").and_then(|(name, rest)| {
            let (host, port) = rest.rsplit_once(':')?;
            let host = host.strip_prefix('[').map_or(Some(host), |it| it.strip_suffix(']'))?;
            (!name.is_empty()).then_some(Self { name, host, port: port.parse().ok()? })
        });
        endpoint.ok_or_else(|| format!("{url:?} is not NAME://HOST:PORT"))
    }
}

/// The parts of a list of Kafka's.
pub(crate) fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// The address to listen on for the host of a listener.
///
/// # Errors
/// A host name: what it stands for would be decided anew at each start.
pub(crate) fn listen_address(host: &str) -> Result<IpAddr, String> {
    match host {
        "" => Ok(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        host => host.parse().map_err(|_| {
            format!("{host:?} is not an IP address; names for clients go in advertised.listeners")
        }),
    }
}

/// Makes the listeners of a list, beside the admin pages at `admin`.
///
/// # Errors
/// Names the key that is at fault, and of names and addresses that collide the second.
pub(super) fn secured(
    list: &At<&[Keys]>,
    admin: SocketAddr,
    limits: &ListenerLimits,
    sources: &mut Sources,
) -> Result<Vec<ListenerConfig>, Problem> {
    if list.value.is_empty() {
        return Err(Problem::at(list, "listeners: at least one is needed"));
    }
    let mut made: Vec<ListenerConfig> = Vec::new();
    for keys in list.value {
        let Keys { name, address, .. } = keys;
        if name.value.is_empty() {
            return Err(Problem::at(name, "name: is empty"));
        }
        if made.iter().any(|other| other.name == name.value) {
            let text = format!("name: {:?} is the name of another listener", name.value);
            return Err(Problem::at(name, text));
        }
        check(&name.value, address.value, admin, &made)
            .map_err(|text| Problem::at(address, format_args!("address: {text}")))?;
        made.push(listener(keys, limits, sources)?);
    }
    Ok(made)
}

/// Refuses a name or an address that another listener or the admin pages have.
fn check(
    name: &str,
    address: SocketAddr,
    admin: SocketAddr,
    others: &[ListenerConfig],
) -> Result<(), String> {
    if others.iter().any(|other| other.name == name) {
        return Err(format!("{name:?} is the name of another listener"));
    }
    if ports::collide(address, admin) {
        return Err(format!("{address} is in use by admin"));
    }
    match others.iter().find(|other| ports::collide(address, other.address)) {
        Some(other) => Err(format!("{address} is in use by listener {}", other.name)),
        None => Ok(()),
    }
}

fn listener(
    keys: &Keys,
    limits: &ListenerLimits,
    sources: &mut Sources,
) -> Result<ListenerConfig, Problem> {
    let advertised = keys.advertised.as_ref().map(|text| super::host_port("advertised", text));
    let advertised = advertised.transpose()?.map(|(host, port)| Advertised { host, port });
    Ok(ListenerConfig {
        name: keys.name.value.clone(),
        address: keys.address.value,
        advertised,
        tls: keys.tls.as_ref().map(|tls| tls::server(tls, sources)).transpose()?,
        sasl: keys.sasl.as_ref().map(|sasl| sasl::listener(sasl, sources)).transpose()?,
        limits: keys.limits.listener(limits)?,
    })
}
