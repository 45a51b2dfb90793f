//! Kroxylicious's configuration, in the syntaxes of 0.5 to 0.24.
//!
//! | since | key | before |
//! |---|---|---|
//! | 0.9 | `filterDefinitions` and `defaultFilters` | `filters` with type and config |
//! | 0.11 | `management` | `adminHttp` |
//! | 0.11 | `virtualClusters` as a list | a mapping by name |
//! | 0.11 | `gateways` (for a while `listeners`) | `clusterNetworkAddressConfigProvider` |
//! | 0.22 | `clusterDefinitions` and `target` | `targetCluster` |

use std::collections::BTreeMap;

use serde_json::Value;

use super::Translation;
use super::foreign::{Foreign, Notes, Section};
use super::kroxylicious_filters::{Policies, policies};
use super::kroxylicious_tls::{downstream, upstream};
use super::yaml::{Map, Yaml};

/// Translates a configuration.
pub(crate) fn kroxylicious(document: Value) -> Translation {
    let mut notes = Notes::default();
    let mut document = Foreign::document(document).section(&mut notes);
    let mut map = Map::default();
    map.put_some("admin", admin(&mut document, &mut notes));
    network(&mut document, &mut map, &mut notes);
    let mut shared = Shared::take(&mut document, &mut notes);
    let mut clusters = Vec::new();
    for cluster in virtual_clusters(&mut document, &mut notes) {
        clusters.extend(virtual_cluster(cluster, &mut shared, &mut notes));
    }
    if clusters.is_empty() {
        notes.add("virtualClusters", "names none");
    }
    map.put("virtual_clusters", clusters);
    document.finish(&mut notes);
    Translation { map, notes: notes.0 }
}

/// What virtual clusters refer to.
struct Shared {
    filters: BTreeMap<String, Foreign>,
    default_filters: Vec<Foreign>,
    targets: BTreeMap<String, Foreign>,
    proxy_protocol: Option<String>,
}

impl Shared {
    fn take(document: &mut Section, notes: &mut Notes) -> Self {
        let mut by_name = |key: &str| -> BTreeMap<String, Foreign> {
            let list = document.take(&[key]).map(|list| list.list(notes)).unwrap_or_default();
            let named = list.into_iter().map(|item| {
                let name = item.value.get("name").and_then(Value::as_str).unwrap_or_default();
                (name.to_owned(), item)
            });
            named.collect()
        };
        let (filters, targets) = (by_name("filterDefinitions"), by_name("clusterDefinitions"));
        // Before there were definitions, filters stood in their list.
        let default_filters = document.take(&["defaultFilters", "filters"]);
        let default_filters = default_filters.map(|list| list.list(notes)).unwrap_or_default();
        let proxy_protocol = document.take_section(&["proxyProtocol"], notes).and_then(|mut it| {
            let mode = it.take_text(&["mode"], notes);
            it.finish(notes);
            mode
        });
        Self { filters, default_filters, targets, proxy_protocol }
    }
}

fn admin(document: &mut Section, notes: &mut Notes) -> Option<String> {
    let mut admin = document.take_section(&["management", "adminHttp"], notes)?;
    let path = admin.path.clone();
    let host = admin.take_text(&["bindAddress", "host"], notes);
    let host = host.unwrap_or_else(|| "0.0.0.0".to_owned());
    let port = admin.take_number(&["port"], notes).unwrap_or(9190);
    // Ours serves the pages anyway.
    if let Some(mut endpoints) = admin.take_section(&["endpoints"], notes) {
        endpoints.take(&["prometheus"]);
        endpoints.finish(notes);
    }
    admin.finish(notes);
    let address = listen_address(&host, port);
    if address.is_none() {
        notes.add(path, format_args!("{host}:{port} is not a listening address"));
    }
    address
}

/// Threads, and how long a drain may take.
fn network(document: &mut Section, map: &mut Map, notes: &mut Notes) {
    let Some(mut network) = document.take_section(&["network"], notes) else { return };
    if let Some(mut proxy) = network.take_section(&["proxy"], notes) {
        map.put_some("network_threads", proxy.take_number(&["workerThreadCount"], notes));
        if let Some(timeout) = proxy.take(&["shutdownTimeout"]) {
            let path = timeout.path.clone();
            let text = timeout.text(notes).unwrap_or_default();
            match milliseconds(&text) {
                Some(ms) => map.put("drain_timeout_ms", ms),
                None => notes.add(path, format_args!("{text:?} is not a duration")),
            }
        }
        proxy.finish(notes);
    }
    network.finish(notes);
}

/// The virtual clusters with their names, from a list or from a mapping.
fn virtual_clusters(document: &mut Section, notes: &mut Notes) -> Vec<(String, Section)> {
    let Some(clusters) = document.take(&["virtualClusters"]) else { return Vec::new() };
    if let Value::Object(by_name) = clusters.value {
        let path = clusters.path;
        let named = by_name.into_iter().map(|(name, value)| {
            let path = format!("{path}.{name}");
            (name, Foreign { path, value }.section(notes))
        });
        return named.collect();
    }
    let mut found = Vec::new();
    for cluster in clusters.list(notes) {
        let mut cluster = cluster.section(notes);
        let name = cluster.take_text(&["name"], notes).unwrap_or_default();
        found.push((name, cluster));
    }
    found
}

/// One of their virtual clusters is one of ours for each gateway that it has.
fn virtual_cluster(
    (name, mut cluster): (String, Section),
    shared: &mut Shared,
    notes: &mut Notes,
) -> Vec<Map> {
    let target = target(&mut cluster, shared, notes);
    let filters = match cluster.take(&["filters"]) {
        Some(filters) => filters.list(notes),
        None => shared.default_filters.iter().map(copy).collect(),
    };
    let path = cluster.path_of("filters");
    let Policies { filters, terminate } = policies(filters, &shared.filters, &path, notes);
    // Logging of frames is a matter of the log level here.
    for key in ["logNetwork", "logFrames"] {
        if cluster.take_flag(&[key], notes) == Some(true) {
            notes.add(cluster.path_of(key), "use --log-level");
        }
    }
    let gateways = gateways(&mut cluster, &name, notes);
    if gateways.is_empty() {
        notes.add(cluster.path_of("gateways"), "has no address, so there is no listener");
    }
    let several = gateways.len() > 1;
    let mut translated = Vec::new();
    for Gateway { name: of_gateway, path, gateway, tls } in gateways {
        let mut map = Map::default();
        match several {
            true => {
                let own = format!("{name}-{of_gateway}");
                let what = "becomes a separate virtual cluster, and for multi_tenant a separate \
                            tenant";
                notes.add(path, format_args!("{what}: {own}"));
                map.put("name", own);
            }
            false => map.put("name", name.as_str()),
        }
        map.put("gateway", gateway);
        map.put_some("tls", tls);
        if let Some(terminate) = &terminate {
            let mut sasl = Map::default();
            sasl.put("terminate", terminate.clone());
            map.put("sasl", sasl);
        }
        map.put("upstream", target.clone());
        map.put_some("proxy_protocol", shared.proxy_protocol.as_deref());
        if !filters.is_empty() {
            map.put("filters", filters.clone());
        }
        translated.push(map);
    }
    cluster.finish(notes);
    translated
}

fn copy(foreign: &Foreign) -> Foreign {
    Foreign { path: foreign.path.clone(), value: foreign.value.clone() }
}

/// The upstream cluster: servers alone, or with what secures the way to them.
fn target(cluster: &mut Section, shared: &Shared, notes: &mut Notes) -> Yaml {
    let mut target = match cluster.take_section(&["target"], notes) {
        Some(mut target) => {
            let path = target.path_of("cluster");
            let name = target.take_text(&["cluster"], notes);
            target.finish(notes);
            let found = name.as_ref().and_then(|name| shared.targets.get(name));
            if found.is_none() {
                notes.add(path, "names an undefined cluster");
            }
            found.map(|target| copy(target).section(notes))
        }
        None => cluster.take_section(&["targetCluster"], notes),
    };
    let Some(target) = &mut target else {
        notes.add(cluster.path_of("targetCluster"), "is missing");
        return Yaml::List(Vec::new());
    };
    target.take(&["name"]);
    let servers = target.take_text(&["bootstrapServers", "bootstrap_servers"], notes);
    let servers: Vec<String> = servers
        .iter()
        .flat_map(|servers| servers.split(','))
        .map(|server| server.trim().to_owned())
        .filter(|server| !server.is_empty())
        .collect();
    if let Some(mut selection) = target.take_section(&["bootstrapServerSelection"], notes) {
        let path = selection.path_of("strategy");
        if let Some(strategy) = selection.take_text(&["strategy"], notes) {
            let meaning = "servers are tried in their order";
            notes.add(path, format_args!("{strategy} has no counterpart: {meaning}"));
        }
        selection.finish(notes);
    }
    let tls = target.take(&["tls"]).map(|tls| upstream(tls, notes));
    let rest = std::mem::replace(target, Foreign::document(Value::Null).section(notes));
    rest.finish(notes);
    match tls {
        None => servers.into(),
        Some(tls) => {
            let mut map = Map::default();
            map.put("servers", servers);
            map.put("tls", tls);
            map.into()
        }
    }
}

/// Where clients connect.
struct Gateway {
    name: String,
    path: String,
    gateway: Map,
    tls: Option<Map>,
}

fn gateways(cluster: &mut Section, cluster_name: &str, notes: &mut Notes) -> Vec<Gateway> {
    if let Some(provider) = cluster.take_section(&["clusterNetworkAddressConfigProvider"], notes) {
        let tls = cluster.take(&["tls"]).map(|tls| downstream(tls, notes));
        return from_provider(provider, cluster_name, tls, notes).into_iter().collect();
    }
    let list = cluster.take(&["gateways", "listeners"]);
    let list = list.map(|list| list.list(notes)).unwrap_or_default();
    let mut found = Vec::new();
    for item in list {
        let mut item = item.section(notes);
        let name = item.take_text(&["name"], notes).unwrap_or_else(|| "default".to_owned());
        let tls = item.take(&["tls"]).map(|tls| downstream(tls, notes));
        let path = item.path.clone();
        let ports = item.take_section(&["portIdentifiesNode"], notes);
        let gateway = match ports.map(|section| ports_gateway(section, notes)) {
            Some(gateway) => gateway,
            None => match item.take_section(&["sniHostIdentifiesNode"], notes) {
                Some(section) => sni_gateway(section, cluster_name, notes),
                None => {
                    notes.add(&path, "has no known way to distinguish brokers");
                    None
                }
            },
        };
        item.finish(notes);
        found.extend(gateway.map(|gateway| Gateway { name, path, gateway, tls }));
    }
    found
}

/// The way to tell brokers apart of versions before gateways.
fn from_provider(
    mut provider: Section,
    cluster_name: &str,
    tls: Option<Map>,
    notes: &mut Notes,
) -> Option<Gateway> {
    let path = provider.path.clone();
    let kind = provider.take_text(&["type"], notes).unwrap_or_default();
    let config = provider.take_section(&["config"], notes);
    provider.finish(notes);
    let Some(config) = config else {
        notes.add(&path, "has no config");
        return None;
    };
    let kind = kind.rsplit('.').next().unwrap_or_default();
    let gateway = match kind.trim_end_matches("ClusterNetworkAddressConfigProvider") {
        "PortPerBroker" | "RangeAwarePortPerNode" => ports_gateway(config, notes),
        "SniRouting" => sni_gateway(config, cluster_name, notes),
        _ => {
            notes.add(&path, format_args!("{kind:?} has no counterpart"));
            None
        }
    };
    gateway.map(|gateway| Gateway { name: "default".to_owned(), path, gateway, tls })
}

/// One port for each broker. Ours follow the order in which brokers are discovered, so neither
/// their number nor their ids are needed.
fn ports_gateway(mut section: Section, notes: &mut Notes) -> Option<Map> {
    let path = section.path.clone();
    let bootstrap = section.take_text(&["bootstrapAddress"], notes);
    let pattern = section.take_text(
        &["advertisedBrokerAddressPattern", "brokerAddressPattern", "nodeAddressPattern"],
        notes,
    );
    let start = section.take_number(&["brokerStartPort", "nodeStartPort"], notes);
    for key in ["nodeIdRanges", "numberOfBrokerPorts", "lowestTargetBrokerId"] {
        section.take(&[key]);
    }
    section.finish(notes);
    let Some((host, port)) = bootstrap.as_deref().and_then(host_and_port) else {
        notes.add(path, "bootstrapAddress is missing or not host:port");
        return None;
    };
    let advertised = match pattern {
        Some(pattern) if pattern.contains("$(") => {
            notes.add(path, format_args!("{pattern}: all brokers get one host, {host}"));
            host.to_owned()
        }
        Some(pattern) => pattern,
        None => host.to_owned(),
    };
    let mut ports = Map::default();
    ports.put("bootstrap", format!("0.0.0.0:{port}"));
    ports.put("advertised_host", advertised);
    ports.put_some("broker_port_start", start);
    let mut gateway = Map::default();
    gateway.put("ports", ports);
    Some(gateway)
}

/// One port for all, where the host that a client asks for tells the broker.
fn sni_gateway(mut section: Section, cluster_name: &str, notes: &mut Notes) -> Option<Map> {
    let path = section.path.clone();
    let bootstrap = section.take_text(&["bootstrapAddress"], notes);
    let pattern =
        section.take_text(&["advertisedBrokerAddressPattern", "brokerAddressPattern"], notes);
    section.finish(notes);
    let Some((host, port)) = bootstrap.as_deref().and_then(host_and_port) else {
        notes.add(path, "bootstrapAddress is missing or not host:port");
        return None;
    };
    let Some(pattern) = pattern else {
        notes.add(path, "advertisedBrokerAddressPattern is missing");
        return None;
    };
    let pattern = pattern.replace("$(virtualClusterName)", cluster_name);
    let (pattern, advertised_port) = match host_and_port(&pattern) {
        Some((host, port)) => (host.to_owned(), Some(u64::from(port))),
        None => (pattern, None),
    };
    let mut sni = Map::default();
    sni.put("listen", format!("0.0.0.0:{port}"));
    sni.put("bootstrap_host", host);
    sni.put("broker_host", pattern);
    sni.put_some("advertised_port", advertised_port);
    let mut gateway = Map::default();
    gateway.put("sni", sni);
    Some(gateway)
}

/// An address to listen on, of a host that may be a name for this very machine.
pub(super) fn listen_address(host: &str, port: u64) -> Option<String> {
    let host = if host == "localhost" { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
    let address: std::net::IpAddr = host.parse().ok()?;
    Some(std::net::SocketAddr::new(address, u16::try_from(port).ok()?).to_string())
}

/// Host and port of a text `host:port`.
pub(super) fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty()).then_some(())?;
    Some((host, port.parse().ok()?))
}

/// Durations as `15s`, `500ms`, `2m` or `PT15S`.
fn milliseconds(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let text = text.strip_prefix("pt").unwrap_or(&text);
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    let scale = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_are_written_there() {
        for (text, ms) in [("15s", 15_000), ("500ms", 500), ("PT2S", 2_000), ("1m", 60_000)] {
            assert_eq!(milliseconds(text), Some(ms), "{text}");
        }
        for text in ["", "15", "s", "1d", "99999999999999999999s"] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
