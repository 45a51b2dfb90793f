//! The flags of grepplabs' kafka-proxy.

use std::collections::BTreeMap;

use super::Translation;
use super::foreign::Notes;
use super::kroxylicious::{host_and_port, listen_address};
use super::yaml::{Map, Yaml};

/// Translates a command line; the words `kafka-proxy` and `server` may stand before the flags.
pub(crate) fn kafka_proxy(arguments: &[String]) -> Translation {
    let mut notes = Notes::default();
    let mut flags = Flags::parse(arguments, &mut notes);
    let mut map = Map::default();
    let admin = flags.text("http-listen-address").unwrap_or_else(|| "0.0.0.0:9080".to_owned());
    match host_and_port(&admin).and_then(|(host, port)| listen_address(host, port.into())) {
        Some(address) => map.put("admin", address),
        None => notes.add("--http-listen-address", "is not a listening address"),
    }
    let mut cluster = Map::default();
    cluster.put("name", "main");
    let mappings = flags.mappings(&mut notes);
    if let Some(gateway) = gateway(&mappings, &mut flags, &mut notes) {
        cluster.put("gateway", gateway);
    }
    cluster.put_some("tls", downstream(&mut flags));
    cluster.put("upstream", upstream(&mappings, &mut flags, &mut notes));
    map.put("virtual_clusters", vec![cluster]);
    flags.finish(&mut notes);
    Translation { map, notes: notes.0 }
}

/// A server of the cluster, where kafka-proxy listens for it, and its address for clients.
struct Mapping {
    upstream: String,
    listen: String,
    advertised: Option<String>,
}

/// The first server's address is where clients come first; the brokers get the ports behind it, in
/// the order in which they are discovered.
fn gateway(mappings: &[Mapping], flags: &mut Flags, notes: &mut Notes) -> Option<Map> {
    let dynamic_host = flags.text("dynamic-advertised-listener");
    let start = flags.text("dynamic-sequential-min-port").and_then(|port| port.parse().ok());
    let start: Option<u64> = start.filter(|port| *port > 0);
    let Some(first) = mappings.first() else {
        notes.add("--bootstrap-server-mapping", "is missing");
        return None;
    };
    let Some((listen, port)) = host_and_port(&first.listen)
        .and_then(|(host, port)| Some((listen_address(host, port.into())?, port)))
    else {
        notes.add("--bootstrap-server-mapping", format_args!("{} is not an address", first.listen));
        return None;
    };
    let brokers_from = start.unwrap_or(u64::from(port).saturating_add(1));
    for (index, further) in mappings.iter().enumerate().skip(1) {
        // Such an address answers once that many brokers are known, and leads to one of them.
        let follows = host_and_port(&further.listen).is_some_and(|(_, own)| {
            start.is_none() && u64::from(own) == u64::from(port).saturating_add(index as u64)
        });
        if !follows {
            let what = format!("{}: brokers have the ports from {brokers_from} on", further.listen);
            notes.add("--bootstrap-server-mapping", what);
        }
    }
    let own_host = first.advertised.as_deref().and_then(host_and_port).map(|(host, _)| host);
    let first_host = host_and_port(&first.listen).map_or("", |(host, _)| host);
    let host = dynamic_host.as_deref().or(own_host).unwrap_or(first_host);
    note_advertised(mappings, host, brokers_from, notes);
    if flags.flag("dynamic-listeners-disable") {
        let what = "every broker of the cluster gets a port, those without a mapping too";
        notes.add("--dynamic-listeners-disable", what);
    }
    let mut ports = Map::default();
    ports.put("bootstrap", listen);
    ports.put_some("advertised_host", dynamic_host.as_deref().or(own_host));
    ports.put_some("broker_port_start", start);
    let mut gateway = Map::default();
    gateway.put("ports", ports);
    Some(gateway)
}

/// Names the servers whose advertised address will differ.
fn note_advertised(mappings: &[Mapping], host: &str, ports_from: u64, notes: &mut Notes) {
    for Mapping { upstream, listen, advertised } in mappings {
        let advertised = advertised.as_ref().unwrap_or(listen);
        let is_kept = host_and_port(advertised)
            .is_some_and(|(own, port)| own == host && u64::from(port) >= ports_from);
        if !is_kept {
            let what = format_args!(
                "{upstream}: kafka-proxy advertises {advertised}; here brokers are \
                 advertised as {host} with ports from {ports_from} on"
            );
            notes.add("--bootstrap-server-mapping", what);
        }
    }
}

fn downstream(flags: &mut Flags) -> Option<Map> {
    let enabled = flags.flag("proxy-listener-tls-enable");
    let mut tls = Map::default();
    tls.put_some("certificate_file", flags.text("proxy-listener-cert-file"));
    tls.put_some("key_file", flags.text("proxy-listener-key-file"));
    if let Some(trust) = flags.text("proxy-listener-ca-chain-cert-file") {
        tls.put("trust_file", trust);
        tls.put("client_authentication", "required");
    }
    enabled.then_some(tls)
}

fn upstream(mappings: &[Mapping], flags: &mut Flags, notes: &mut Notes) -> Yaml {
    let servers: Vec<&str> = mappings.iter().map(|mapping| mapping.upstream.as_str()).collect();
    let mut tls = Map::default();
    tls.put_some("trust_file", flags.text("tls-ca-chain-cert-file"));
    tls.put_some("certificate_file", flags.text("tls-client-cert-file"));
    tls.put_some("key_file", flags.text("tls-client-key-file"));
    let tls = flags.flag("tls-enable").then_some(tls);
    let sasl = flags.flag("sasl-enable").then(|| {
        let mut sasl = Map::default();
        let method = flags.text("sasl-method").unwrap_or_else(|| "PLAIN".to_owned());
        sasl.put("mechanism", method);
        sasl.put_some("user", flags.text("sasl-username"));
        if flags.text("sasl-password").is_some() {
            notes.add("--sasl-password", "the secret belongs in a file of its own");
            sasl.put("password_file", "FILE_WITH_THE_SECRET");
        }
        sasl
    });
    if tls.is_none() && sasl.is_none() {
        return servers.into();
    }
    let mut map = Map::default();
    map.put("servers", servers);
    map.put_some("tls", tls);
    map.put_some("sasl", sasl);
    map.into()
}

/// Flags that were given, each taken once.
struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    fn parse(arguments: &[String], notes: &mut Notes) -> Self {
        let mut flags = BTreeMap::<String, Vec<String>>::new();
        let mut arguments = arguments.iter().peekable();
        while arguments.next_if(|word| !word.starts_with('-')).is_some() {}
        while let Some(argument) = arguments.next() {
            let Some(flag) = argument.strip_prefix("--").filter(|flag| !flag.is_empty()) else {
                notes.add(argument, "is not a flag");
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None if SWITCHES.contains(&flag) => (flag, "true".to_owned()),
                None => match arguments.next() {
                    Some(value) => (flag, value.clone()),
                    None => {
                        notes.add(argument, "has no value");
                        continue;
                    }
                },
            };
            flags.entry(name.to_owned()).or_default().push(value);
        }
        Self(flags)
    }

    /// The value that counts, which is the last.
    fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)?.pop()
    }

    fn flag(&mut self, name: &str) -> bool {
        self.text(name).as_deref() == Some("true")
    }

    fn mappings(&mut self, notes: &mut Notes) -> Vec<Mapping> {
        let mut mappings = Vec::new();
        for text in self.0.remove("bootstrap-server-mapping").unwrap_or_default() {
            let mut parts = text.split(',').map(|part| part.trim().to_owned());
            let (Some(upstream), Some(listen)) = (parts.next(), parts.next()) else {
                notes.add("--bootstrap-server-mapping", format_args!("{text} has no second part"));
                continue;
            };
            mappings.push(Mapping { upstream, listen, advertised: parts.next() });
        }
        mappings
    }

    /// Notes every remaining flag, without its value, which may be secret.
    fn finish(self, notes: &mut Notes) {
        for name in self.0.keys() {
            let what = match NEEDLESS.contains(&name.as_str()) {
                true => continue,
                false => "has no counterpart",
            };
            notes.add(format_args!("--{name}"), what);
        }
    }
}

/// Flags that stand alone.
const SWITCHES: [&str; 15] = [
    "auth-gateway-client-enable",
    "auth-gateway-server-enable",
    "auth-local-enable",
    "authz-enable",
    "debug-enable",
    "dynamic-listeners-disable",
    "http-disable",
    "producer-acks-0-disabled",
    "proxy-listener-tls-client-cert-validate-subject",
    "proxy-listener-tls-enable",
    "sasl-enable",
    "sasl-plugin-enable",
    "tls-enable",
    "tls-insecure-skip-verify",
    "tls-same-client-cert-enable",
];

/// Flags that tune what needs no tuning here, so that leaving them out loses nothing.
const NEEDLESS: [&str; 8] = [
    "kafka-connection-read-buffer-size",
    "kafka-connection-write-buffer-size",
    "kafka-max-open-requests",
    "producer-acks-0-disabled",
    "proxy-listener-read-buffer-size",
    "proxy-listener-write-buffer-size",
    "proxy-request-buffer-size",
    "proxy-response-buffer-size",
];
