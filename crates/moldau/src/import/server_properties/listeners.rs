//! Listeners, and what secures them. A listener that Kafka secures never becomes one without that
//! security: what cannot be translated leaves it out, or leaves a file to be named.

use std::net::SocketAddr;

use super::super::yaml::{Map, Yaml};
use super::{Account, Fate};
use crate::config::listeners::{Endpoint, listen_address, split};

/// The key of the broker's file to which all of this belongs.
const KEY: &str = "listeners";
const ADVERTISED: &str = "advertised.listeners";

/// Placeholder for a secret in the other file; the operator replaces it.
const SECRET_FILE: &str = "FILE_WITH_THE_SECRET";
const USERS_FILE: &str = "FILE_WITH_USERS";

/// A listener of Kafka for clients.
#[derive(Debug)]
struct Listener {
    name: String,
    address: SocketAddr,
    advertised: Option<String>,
    protocol: Protocol,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Protocol {
    tls: bool,
    sasl: bool,
}

pub(super) fn translate(account: &mut Account, keys: &mut Vec<(&'static str, Yaml)>) {
    let found = found(account);
    let has_limits = |listener: &Listener| {
        let limits = ["max.connections", "max.connections.per.ip"].map(|key| listener.own(key));
        limits.iter().any(|key| account.value(key).is_some())
    };
    let is_plain = |it: &Listener| !it.protocol.tls && !it.protocol.sasl && !has_limits(it);
    if found.iter().all(is_plain) {
        if found.is_empty() {
            return;
        }
        let url = |it: &Listener| format!("{}://{}", it.name, it.address);
        let urls: Vec<_> = found.iter().map(url).collect();
        keys.push((KEY, urls.join(",").into()));
        let advertised = found
            .iter()
            .filter_map(|it| Some(format!("{}://{}", it.name, it.advertised.as_ref()?)));
        let advertised: Vec<_> = advertised.collect();
        if !advertised.is_empty() {
            account.take(ADVERTISED, ADVERTISED);
            keys.push((ADVERTISED, advertised.join(",").into()));
        }
    } else {
        let list: Vec<Map> = found.iter().filter_map(|it| it.translate(account)).collect();
        account.take(ADVERTISED, KEY);
        keys.push((KEY, list.into()));
    }
    rest(account, &found);
}

/// The listeners for clients, which the controllers' are not.
fn found(account: &mut Account) -> Vec<Listener> {
    let list = account.take(KEY, KEY).unwrap_or_else(|| "PLAINTEXT://:9092".to_owned());
    let text = |key: &str| account.value(key).unwrap_or_default().to_owned();
    let of_controllers = text("controller.listener.names");
    let (protocols, advertised) = (text("listener.security.protocol.map"), text(ADVERTISED));
    let mut found = Vec::new();
    for url in split(&list) {
        let translated = Endpoint::parse(url).and_then(|Endpoint { name, host, port }| {
            if split(&of_controllers).any(|controller| controller == name) {
                return Ok(None);
            }
            let protocol = Protocol::of_listener(name, &protocols)?;
            let address = SocketAddr::new(listen_address(host)?, port);
            let advertised = split(&advertised).filter_map(|url| {
                let endpoint = Endpoint::parse(url).ok().filter(|it| it.name == name)?;
                let host = endpoint.host;
                let brackets = if host.contains(':') { ("[", "]") } else { ("", "") };
                let host = format!("{}{host}{}", brackets.0, brackets.1);
                (!endpoint.host.is_empty()).then(|| format!("{host}:{}", endpoint.port))
            });
            let advertised = advertised.last();
            Ok(Some(Listener { name: name.to_owned(), address, advertised, protocol }))
        });
        match translated {
            Ok(listener) => found.extend(listener),
            Err(problem) => account.replace(KEY, Fate::Unsupported(problem)),
        }
    }
    found
}

impl Protocol {
    fn of_listener(name: &str, map: &str) -> Result<Self, String> {
        let mapped = split(map).find_map(|entry| {
            let (listener, protocol) = entry.split_once(':')?;
            (listener.trim() == name).then_some(protocol.trim())
        });
        match mapped.unwrap_or(name) {
            "PLAINTEXT" => Ok(Self { tls: false, sasl: false }),
            "SSL" => Ok(Self { tls: true, sasl: false }),
            "SASL_PLAINTEXT" => Ok(Self { tls: false, sasl: true }),
            "SASL_SSL" => Ok(Self { tls: true, sasl: true }),
            other => Err(format!("listener {name}: {other} is not a security protocol")),
        }
    }
}

impl Listener {
    /// The name of a key that is set for this listener alone.
    fn own(&self, key: &str) -> String {
        format!("listener.name.{}.{key}", self.name.to_lowercase())
    }

    /// The name under which a key counts for this listener.
    fn key(&self, account: &Account, key: &str) -> String {
        let own = self.own(key);
        if account.value(&own).is_some() { own } else { key.to_owned() }
    }

    fn take(&self, account: &mut Account, key: &str) -> Option<String> {
        let key = self.key(account, key);
        account.take(&key, KEY)
    }

    /// The value of a key; `fate` says what is not right about its line.
    fn tell(&self, account: &mut Account, key: &str, fate: Fate) -> Option<String> {
        let key = self.key(account, key);
        let value = account.value(&key)?.to_owned();
        account.decide(&key, fate);
        Some(value)
    }

    /// The entry of a list, or none if its security has no translation.
    fn translate(&self, account: &mut Account) -> Option<Map> {
        let mut map = Map::default();
        map.put("name", self.name.as_str());
        map.put("address", self.address.to_string());
        map.put_some("advertised", self.advertised.as_deref());
        if self.protocol.tls {
            map.put("tls", self.tls(account));
        }
        if self.protocol.sasl {
            map.put("sasl", self.sasl(account)?);
        }
        let mut limits = Map::default();
        for key in ["max.connections", "max.connections.per.ip"] {
            let value = account.take(&self.own(key), KEY);
            limits.put_some(key, value.as_deref().map(super::scalar));
        }
        if !limits.is_empty() {
            map.put("limits", limits);
        }
        Some(map)
    }

    fn tls(&self, account: &mut Account) -> Map {
        let mut map = Map::default();
        self.store(account, "keystore", &mut map);
        let client_authentication = self.take(account, "ssl.client.auth");
        if let Some(wanted @ ("required" | "requested")) = client_authentication.as_deref() {
            self.store(account, "truststore", &mut map);
            map.put("client_authentication", wanted);
        }
        map.put_some("principal_mapping_rules", self.take(account, "ssl.principal.mapping.rules"));
        map
    }

    /// A store, which is PEM, PKCS #12, or of Java's own format.
    fn store(&self, account: &mut Account, store: &str, map: &mut Map) {
        let keys = match store {
            "keystore" => KEY_STORE,
            _ => TRUST_STORE,
        };
        let file = self.take(account, &format!("ssl.{store}.location"));
        let kind_key = format!("ssl.{store}.type");
        let kind = self.take(account, &kind_key).unwrap_or_else(|| "JKS".to_owned());
        let secret = Fate::Unsupported(format!("the secret belongs in a file, {SECRET_FILE}"));
        let Some(file) = file else {
            for part in ["certificate.chain", "key", "certificates", "password"] {
                self.tell(account, &format!("ssl.{store}.{part}"), secret.clone());
            }
            map.put(keys.pem, SECRET_FILE);
            map.put_some(keys.pem_key, (!keys.pem_key.is_empty()).then_some(SECRET_FILE));
            return;
        };
        // Java reads PKCS #12 by the name of its own format as well.
        let is_pkcs12 = ["p12", "pfx"].iter().any(|end| file.to_lowercase().ends_with(end));
        if kind.eq_ignore_ascii_case("PEM") {
            map.put(keys.pem, file.as_str());
            map.put_some(keys.pem_key, (!keys.pem_key.is_empty()).then_some(file.as_str()));
            return;
        }
        if !kind.eq_ignore_ascii_case("PKCS12") && !is_pkcs12 {
            let remedy = "convert it with keytool -importkeystore -deststoretype PKCS12";
            let fate =
                Fate::Unsupported(format!("stores of type {kind} are not supported; {remedy}"));
            let key = self.key(account, &format!("ssl.{store}.location"));
            account.replace(&key, fate);
        }
        map.put(keys.store, file.as_str());
        let password = self.tell(account, &format!("ssl.{store}.password"), secret);
        map.put_some(keys.password, password.map(|_| SECRET_FILE));
    }

    fn sasl(&self, account: &mut Account) -> Option<Map> {
        let enabled = self.take(account, "sasl.enabled.mechanisms");
        let enabled = enabled.unwrap_or_else(|| "GSSAPI".to_owned());
        let known = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"];
        let (offered, refused): (Vec<&str>, Vec<&str>) =
            split(&enabled).partition(|mechanism| known.contains(mechanism));
        if !refused.is_empty() || offered.is_empty() {
            let mut text = format!("listener {}: {} is not offered", self.name, refused.join(", "));
            if offered.is_empty() {
                text += "; the listener is left out";
            }
            let key = self.key(account, "sasl.enabled.mechanisms");
            let key = if account.value(&key).is_some() { key } else { KEY.to_owned() };
            account.replace(&key, Fate::Unsupported(text));
        }
        for mechanism in &offered {
            self.jaas(account, mechanism);
        }
        if offered.is_empty() {
            return None;
        }
        let mut map = Map::default();
        map.put("mechanisms", offered.clone());
        map.put_some("users_file", offered.contains(&"PLAIN").then_some(USERS_FILE));
        if offered.contains(&"OAUTHBEARER") {
            map.put("oauthbearer", self.tokens(account));
        }
        let ms = self.take(account, "connections.max.reauth.ms");
        let ms = ms.and_then(|ms| ms.parse::<u64>().ok()).filter(|ms| *ms > 0);
        map.put_some("max_reauthentication_ms", ms);
        Some(map)
    }

    /// Tells of the users in the other file, whose secrets are never printed.
    fn jaas(&self, account: &mut Account, mechanism: &str) {
        let fate = match mechanism {
            "PLAIN" => Fate::Unsupported(format!(
                "PLAIN users belong in a file with lines user:password, {USERS_FILE}"
            )),
            "OAUTHBEARER" => Fate::Meaningless("use the keys of `oauthbearer`".to_owned()),
            _ => Fate::Meaningless(
                "SCRAM users are in the broker's metadata; create them with kafka-configs"
                    .to_owned(),
            ),
        };
        account.decide(&self.own(&format!("{}.sasl.jaas.config", mechanism.to_lowercase())), fate);
    }

    fn tokens(&self, account: &mut Account) -> Map {
        let mut map = Map::default();
        let url = self.take(account, "sasl.oauthbearer.jwks.endpoint.url");
        let file = url.as_deref().and_then(|url| url.strip_prefix("file:"));
        match file {
            Some(path) => map.put("jwks_file", format!("/{}", path.trim_start_matches('/'))),
            None => map.put_some("jwks_url", url.clone()),
        }
        map.put_some("issuer", self.take(account, "sasl.oauthbearer.expected.issuer"));
        map.put_some("audience", self.take(account, "sasl.oauthbearer.expected.audience"));
        map.put_some("principal_claim", self.take(account, "sasl.oauthbearer.sub.claim.name"));
        let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
        let skew = self.take(account, "sasl.oauthbearer.clock.skew.seconds");
        map.put_some("clock_skew_s", number(skew));
        let refresh = self.take(account, "sasl.oauthbearer.jwks.endpoint.refresh.ms");
        map.put_some("jwks_refresh_s", number(refresh).map(|ms| ms.div_ceil(1000)));
        map
    }
}

/// Keys of `tls` for a store, and for PEM files in its place.
struct StoreKeys {
    store: &'static str,
    password: &'static str,
    pem: &'static str,
    /// Empty for a store without a private key.
    pem_key: &'static str,
}

const KEY_STORE: StoreKeys = StoreKeys {
    store: "key_store_file",
    password: "key_store_password_file",
    pem: "certificate_file",
    pem_key: "key_file",
};

const TRUST_STORE: StoreKeys = StoreKeys {
    store: "trust_store_file",
    password: "trust_store_password_file",
    pem: "trust_file",
    pem_key: "",
};

/// Decides on the keys of security that no listener took.
fn rest(account: &mut Account, found: &[Listener]) {
    let has = |of: fn(&Protocol) -> bool| found.iter().any(|it| of(&it.protocol));
    let (tls, sasl) = (has(|it| it.tls), has(|it| it.sasl));
    let keys: Vec<String> = account.properties.iter().map(|it| it.key.clone()).collect();
    for key in keys {
        let local = key.strip_prefix("listener.name.").and_then(|rest| rest.split_once('.'));
        let name = local.map_or(key.as_str(), |(_, name)| name);
        let meaningless = |reason: &str| Fate::Meaningless(reason.to_owned());
        let fate = match name {
            "controller.listener.names" => meaningless("no listener is for controllers"),
            "listener.security.protocol.map" => Fate::Taken(KEY),
            ADVERTISED => meaningless("it is the listener's own address, or the controller's"),
            _ if local.is_some_and(|(listener, _)| {
                !found.iter().any(|it| it.name.eq_ignore_ascii_case(listener))
            }) =>
            {
                meaningless("no listener for clients has this name")
            }
            _ if name.starts_with("ssl.") && !tls => meaningless("no listener has TLS"),
            _ if name.contains("sasl.") && !sasl => meaningless("no listener has SASL"),
            "connections.max.reauth.ms" if !sasl => meaningless("no listener has SASL"),
            _ if name.starts_with("ssl.truststore.") => meaningless("clients show no certificate"),
            "ssl.key.password" => meaningless("the password of the store opens its key"),
            "ssl.endpoint.identification.algorithm" => meaningless("there is no other broker"),
            "ssl.enabled.protocols" | "ssl.protocol" => meaningless("TLS 1.2 and 1.3 are offered"),
            "sasl.mechanism.inter.broker.protocol" | "sasl.mechanism.controller.protocol" => {
                meaningless("there is no other broker")
            }
            _ if name.starts_with("ssl.") || name.contains("sasl.") || local.is_some() => {
                Fate::Unsupported("has no counterpart".to_owned())
            }
            _ => continue,
        };
        account.decide(&key, fate);
    }
}
