//! Tenants of one Apache Kafka who have the same topics, groups and transactional ids.
//!
//! Each library's program works for two tenants at once. In the one way of telling tenants apart
//! each has a virtual cluster, in the other they share one and differ by whom they log in as. What
//! the cluster has at the end, under its own names, is what each of them is known to have left.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::json;

use crate::check::Check;
use crate::client::Library;
use crate::connection::{Connection, LIBRARIES, Login, Session};
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};

/// The tenants of a program.
const TENANTS: [&str; 2] = ["red", "blue"];

/// The virtual cluster whose clients are told apart by their principals.
const SHARED: &str = "shared";

const MECHANISM: &str = "SCRAM-SHA-256";

const PASSWORD: &str = "secret";

/// A program gives up its own waits after 40 s each.
const SESSION_TIMEOUT: Duration = Duration::from_secs(180);

const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

/// How tenants are told apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum By {
    VirtualCluster,
    Principal,
}

/// Where the virtual clusters are: one for each tenant of each library, then the shared one.
struct Ports {
    first: u16,
}

/// Runs every program, the libraries side by side, and looks at the cluster itself at the end.
pub fn run(
    binary: &Path,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<(String, Result<Vec<Check>>)>> {
    let kafka = Kafka::start(peers, directory)?;
    let ports = Ports { first: free_ports(Ports::COUNT)? };
    let config = config(&ports, kafka.bootstrap(), directory)?;
    let [port, admin] = [ports.shared(), ports.admin()];
    let proxy = Moldau::configured("proxy", binary, &config, directory, port, admin)?;

    let (ports, mut outcomes) = (&ports, Vec::new());
    for by in [By::VirtualCluster, By::Principal] {
        let checks = thread::scope(|scope| {
            let run = |library| move || session(library, by, ports, peers, directory);
            let programs = LIBRARIES.map(|library| (library, scope.spawn(run(library))));
            programs.map(|(library, program)| {
                let checks = program.join().unwrap_or_else(|_| Err(anyhow!("it panicked")));
                (format!("{}, {}", library.name(), by.words()), checks)
            })
        });
        outcomes.extend(checks);
    }
    let names = names_on_cluster(&kafka, peers, directory).map(|found| {
        let wanted = names_left();
        let (extra, missing): (Vec<_>, Vec<_>) =
            (found.difference(&wanted).collect(), wanted.difference(&found).collect());
        let detail = format!("too many: {extra:?}, too few: {missing:?}");
        vec![Check::new("each name begins with its tenant's", found == wanted, &detail)]
    });
    outcomes.push(("the cluster itself".to_owned(), names));
    proxy.stop()?;
    Ok(outcomes)
}

/// Runs a library's program for its tenants.
fn session(
    library: Library,
    by: By,
    ports: &Ports,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<Check>> {
    let mut input = String::new();
    for tenant in TENANTS {
        let name = full_name(library, tenant);
        let connection = match by {
            By::VirtualCluster => Connection::plain(&loopback(ports.of(&name)?).to_string()),
            By::Principal => Connection {
                login: Some(Login::new(MECHANISM, &name, PASSWORD)),
                ..Connection::plain(&loopback(ports.shared()).to_string())
            },
        };
        input += &format!("{tenant}\t{}\n", connection.columns());
    }
    let name = format!("{}-{by:?}", library.name());
    let program = Session::Tenants.program(library, peers)?;
    let finished = Process::run(program, &name, directory, &input, SESSION_TIMEOUT)?;
    let mut checks =
        Check::parse_lines(&finished.stdout).with_context(|| finished.explanation())?;
    checks.push(Check::new("it ends well", finished.success(), &finished.explanation()));
    Ok(checks)
}

fn config(ports: &Ports, upstream: &str, directory: &Path) -> Result<serde_json::Value> {
    let users = directory.join("users");
    let names: Vec<String> = all_tenants().map(|(_, _, name)| name).collect();
    let lines: String = names.iter().map(|name| format!("{name}:{PASSWORD}\n")).collect();
    fs::write(&users, lines)?;
    let mut clusters = Vec::new();
    for name in &names {
        clusters.push(json!({
            "name": name,
            "bootstrap": loopback(ports.of(name)?),
            "broker_port_start": 0,
            "upstream": [upstream],
            "filters": [{"multi_tenant": {}}],
        }));
    }
    clusters.push(json!({
        "name": SHARED,
        "bootstrap": loopback(ports.shared()),
        "broker_port_start": 0,
        "sasl": {"terminate": {"mechanisms": [MECHANISM], "users_file": users}},
        "upstream": [upstream],
        "filters": [{"multi_tenant": {"prefix": "$(virtualClusterName)-$(principal)-"}}],
    }));
    Ok(json!({"admin": loopback(ports.admin()), "virtual_clusters": clusters}))
}

/// What the cluster has of topics, groups and transactional ids.
fn names_on_cluster(kafka: &Kafka, peers: &Peers, directory: &Path) -> Result<BTreeSet<String>> {
    let mut list = peers.java_tool("TenantsSession")?;
    list.arg(kafka.bootstrap());
    let listed = Process::run(list, "cluster", directory, "", LISTING_TIMEOUT)?;
    ensure!(listed.success(), "the cluster is not listed: {}", listed.explanation());
    Ok(listed.stdout.lines().map(str::to_owned).collect())
}

/// What the programs leave behind. The Java program deletes topic and group of its first tenant.
fn names_left() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for by in [By::VirtualCluster, By::Principal] {
        for (library, tenant, name) in all_tenants() {
            let prefix = match by {
                By::VirtualCluster => format!("{name}-"),
                // The hyphen in the name of a principal is escaped.
                By::Principal => format!("{SHARED}-{}-", name.replace('-', "_2d")),
            };
            names.insert(format!("topic {prefix}orders-{tenant}"));
            names.insert(format!("group {prefix}consumer-workers"));
            names.insert(format!("transactional-id {prefix}payments"));
            if library != Library::Java || tenant != TENANTS[0] {
                names.insert(format!("topic {prefix}orders"));
                names.insert(format!("group {prefix}classic-workers"));
            }
        }
    }
    names
}

fn all_tenants() -> impl Iterator<Item = (Library, &'static str, String)> {
    let of_library = |library| TENANTS.map(|tenant| (library, tenant, full_name(library, tenant)));
    LIBRARIES.into_iter().flat_map(of_library)
}

/// What the proxy knows a tenant by.
fn full_name(library: Library, tenant: &str) -> String {
    format!("{}-{tenant}", library.name())
}

impl By {
    fn words(self) -> &'static str {
        match self {
            Self::VirtualCluster => "tenants by virtual cluster",
            Self::Principal => "tenants by principal",
        }
    }
}

impl Ports {
    /// One for each tenant, the shared one, and the admin port.
    const COUNT: u16 = 8;

    fn admin(&self) -> u16 {
        self.first
    }

    fn shared(&self) -> u16 {
        self.first + 1
    }

    fn of(&self, tenant: &str) -> Result<u16> {
        let place = all_tenants().position(|(_, _, name)| name == tenant);
        let place = u16::try_from(place.context("a known tenant")?)?;
        Ok(self.first + 2 + place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tenant_has_the_beginning_of_another_or_its_port() {
        let names: Vec<String> = all_tenants().map(|(_, _, name)| name).collect();
        let ports = Ports { first: 1000 };
        let mut taken = BTreeSet::from([ports.admin(), ports.shared()]);
        for name in &names {
            assert!(taken.insert(ports.of(name).unwrap()));
            assert_eq!(names.iter().filter(|other| other.starts_with(name.as_str())).count(), 1);
        }
        assert_eq!(taken.len(), usize::from(Ports::COUNT));
    }

    #[test]
    fn every_tenant_leaves_a_transactional_id() {
        let ids = names_left().into_iter().filter(|name| name.starts_with("transactional-id "));
        assert_eq!(ids.count(), 2 * LIBRARIES.len() * TENANTS.len());
    }
}
