//! Record encryption by a real Kroxylicious and by our proxy, before the same cluster.
//!
//! One of them writes and the other reads: every shape of records in every codec, with either
//! service of keys. `clients/java/InteropSession.java` writes, looks at what lies on the cluster
//! and reads; here stand the cells, the processes and the table of results.
//!
//! ```text
//!              +--> our proxy ----+            chains, for records that are sealed twice:
//!   session ---+                  +--> cluster     our proxy --> Kroxylicious --> cluster
//!              +--> Kroxylicious -+                Kroxylicious --> our proxy --> cluster
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::check::Check;
use crate::kafka::Kafka;
use crate::kroxylicious::Kroxylicious;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports};
use crate::vault::Vault;
use crate::virtual_cluster::{Kms, MemoryKek, VirtualCluster};

/// The session gives up a cell after some 20 s; this ends one where all is lost.
const SESSION_TIMEOUT: Duration = Duration::from_secs(240);

/// A codec's place is the partition that its cells write to.
const CODECS: [&str; 5] = ["none", "gzip", "snappy", "lz4", "zstd"];

/// What is written; `clients/README.md` says what each contains.
const SHAPES: [&str; 7] =
    ["plain", "idempotent", "transactional", "tombstone", "empty", "headers", DOUBLE_WRAPPED];

const DOUBLE_WRAPPED: &str = "double-wrapped";

/// A record that was sealed by neither, from the description of the format alone.
const PUBLISHED: &str = "published";

/// The check that the session makes of a cluster's nodes.
const LEADERS: &str = "every node leads what was written";

/// The cluster that both proxies stand before.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Upstream {
    /// Our broker.
    Broker,
    /// Apache Kafka with one node.
    Kafka,
    /// Apache Kafka with three nodes, each of which has every record.
    KafkaCluster,
}

/// What has the key encryption keys.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Service {
    /// The same keys in the memory of both proxies.
    Memory,
    /// HashiCorp Vault.
    Vault,
}

/// Which proxy seals; for records that are sealed twice, which of them does it first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Writer {
    Moldau,
    Kroxylicious,
}

/// One line of the session's input, and where its result stands in the table.
#[derive(Debug)]
struct Cell {
    row: String,
    column: &'static str,
    name: String,
    topic: String,
    /// What the session is told after the name and the topic.
    arguments: String,
}

/// What a cell came to.
#[derive(Debug)]
pub struct Outcome {
    row: String,
    column: &'static str,
    name: String,
    /// Why it failed; none where it passed.
    fault: Option<String>,
}

impl Outcome {
    /// Whether everything held.
    pub fn passed(&self) -> bool {
        self.fault.is_none()
    }
}

impl Upstream {
    /// The word for it on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Kafka => "kafka",
            Self::KafkaCluster => "kafka-cluster",
        }
    }

    fn replicas(self) -> u16 {
        match self {
            Self::Broker | Self::Kafka => 1,
            Self::KafkaCluster => 3,
        }
    }
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Vault => "vault",
        }
    }
}

impl Writer {
    const BOTH: [Self; 2] = [Self::Moldau, Self::Kroxylicious];

    const fn name(self) -> &'static str {
        match self {
            Self::Moldau => "moldau",
            Self::Kroxylicious => "kroxylicious",
        }
    }
}

/// Where the proxies of one service are.
#[derive(Debug)]
struct Doors {
    service: Service,
    moldau: VirtualCluster,
    kroxylicious: VirtualCluster,
    moldau_before_kroxylicious: VirtualCluster,
    kroxylicious_before_moldau: VirtualCluster,
}

impl Doors {
    /// How many neighbouring ports they take.
    const PORTS: u16 = 4 * VirtualCluster::PORTS;

    /// Doors to the cluster at `upstream`, on ports from `port` on.
    fn new(service: Service, kms: &Kms, upstream: &str, port: u16) -> Self {
        let door = |number: u16, name: &str, upstream: &str| VirtualCluster {
            name: format!("{}-{name}", service.name()),
            port: port + number * VirtualCluster::PORTS,
            upstream: upstream.to_owned(),
            kms: kms.clone(),
        };
        let moldau = door(0, "moldau", upstream);
        let kroxylicious = door(1, "kroxylicious", upstream);
        Self {
            service,
            moldau_before_kroxylicious: door(2, "before", &kroxylicious.bootstrap()),
            kroxylicious_before_moldau: door(3, "before", &moldau.bootstrap()),
            moldau,
            kroxylicious,
        }
    }

    fn of_moldau(&self) -> [VirtualCluster; 2] {
        [self.moldau.clone(), self.moldau_before_kroxylicious.clone()]
    }

    fn of_kroxylicious(&self) -> [VirtualCluster; 2] {
        [self.kroxylicious.clone(), self.kroxylicious_before_moldau.clone()]
    }

    /// The cells that write and read through these doors.
    fn cells(&self, address: &str) -> Vec<Cell> {
        let mut cells = Vec::new();
        for (writer, shape) in topics() {
            let (write, read) = self.route(writer, shape);
            for (partition, codec) in CODECS.iter().enumerate() {
                let (service, from) = (self.service.name(), writer.name());
                cells.push(Cell {
                    row: format!("{service}, {from} writes"),
                    column: shape,
                    name: format!("{service} {from} {shape} {codec}"),
                    topic: topic(self.service, writer, shape),
                    arguments: format!("{partition}\t{codec}\t{shape}\t{write}\t{read}"),
                });
            }
        }
        if self.service == Service::Memory {
            let read = [&self.moldau, &self.kroxylicious].map(VirtualCluster::bootstrap).join(",");
            cells.push(Cell {
                row: "sealed by hand, both read".to_owned(),
                column: PUBLISHED,
                name: PUBLISHED.to_owned(),
                topic: PUBLISHED.to_owned(),
                arguments: format!("0\tnone\t{PUBLISHED}\t{address}\t{read}"),
            });
        }
        cells
    }

    /// The address that a cell writes to, and those that it reads from.
    fn route(&self, writer: Writer, shape: &str) -> (String, String) {
        let (moldau, kroxylicious) = if shape == DOUBLE_WRAPPED {
            (&self.moldau_before_kroxylicious, &self.kroxylicious_before_moldau)
        } else {
            (&self.moldau, &self.kroxylicious)
        };
        let (write, read) = match writer {
            Writer::Moldau => (moldau.bootstrap(), kroxylicious.bootstrap()),
            Writer::Kroxylicious => (kroxylicious.bootstrap(), moldau.bootstrap()),
        };
        // What both have sealed is read through the same chain and through the other.
        let read = if shape == DOUBLE_WRAPPED { format!("{write},{read}") } else { read };
        (write, read)
    }
}

fn topics() -> impl Iterator<Item = (Writer, &'static str)> {
    Writer::BOTH.into_iter().flat_map(|writer| SHAPES.map(|shape| (writer, shape)))
}

fn topic(service: Service, writer: Writer, shape: &str) -> String {
    format!("{}-{}-{shape}", service.name(), writer.name())
}

/// The keys that lie in the memory of both proxies, and that of the published record.
pub fn memory_kms() -> Kms {
    let mut keks = vec![MemoryKek {
        uuid: "00112233-4455-6677-8899-aabbccddeeff".to_owned(),
        alias: format!("KEK_{PUBLISHED}"),
        secret: std::array::from_fn(|i| u8::try_from(i).expect("there are 32")),
    }];
    keks.extend((1..).zip(topics()).map(|(number, (writer, shape))| MemoryKek {
        uuid: format!("00000000-0000-4000-8000-0000000000{number:02x}"),
        alias: format!("KEK_{}", topic(Service::Memory, writer, shape)),
        secret: [number; 32],
    }));
    Kms::Memory(keks)
}

/// Makes a key for each topic in a Vault.
pub fn vault_kms(vault: &Vault) -> Result<Kms> {
    for (writer, shape) in topics() {
        vault.add_key(&format!("KEK_{}", topic(Service::Vault, writer, shape)))?;
    }
    Ok(vault.kms())
}

/// Starts a cluster with both proxies before it and runs every cell; `directory` is empty.
pub fn run(
    cluster: Upstream,
    services: &[(Service, Kms)],
    binary: &Path,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<Outcome>> {
    let (broker, kafka) = match cluster {
        Upstream::Broker => (Some(Moldau::broker(binary, directory)?), None),
        Upstream::Kafka | Upstream::KafkaCluster => {
            (None, Some(Kafka::start_cluster(peers, directory, cluster.replicas())?))
        }
    };
    let bootstrap = broker.as_ref().map(Moldau::bootstrap).or(kafka.as_ref().map(Kafka::bootstrap));
    let upstream = bootstrap.context("one of them runs")?;
    let of_services = u16::try_from(services.len())? * Doors::PORTS;
    let port = free_ports(of_services + 1)?;
    let admin = port + of_services;
    let doors: Vec<_> = (port..)
        .step_by(Doors::PORTS.into())
        .zip(services)
        .map(|(port, (service, kms))| Doors::new(*service, kms, upstream, port))
        .collect();
    let theirs: Vec<_> = doors.iter().flat_map(Doors::of_kroxylicious).collect();
    let ours: Vec<_> = doors.iter().flat_map(Doors::of_moldau).collect();
    // Ours asks what is behind it before it is ready.
    let kroxylicious = Kroxylicious::start(peers, &theirs, directory)?;
    let moldau = Moldau::encrypting_proxy(binary, &ours, admin, directory)?;

    let cells: Vec<_> = doors.iter().flat_map(|doors| doors.cells(upstream)).collect();
    let outcomes = session(cells, upstream, cluster, peers, directory)?;
    if !outcomes.iter().all(Outcome::passed) {
        eprintln!("the last words of the proxy:\n{}", moldau.tail());
        eprintln!("the last words of Kroxylicious:\n{}", kroxylicious.tail());
    }
    drop(kroxylicious);
    moldau.stop()?;
    broker.map_or(Ok(()), Moldau::stop)?;
    Ok(outcomes)
}

/// Runs the session with `cells`; a cell of which it says nothing has failed.
fn session(
    cells: Vec<Cell>,
    upstream: &str,
    cluster: Upstream,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<Outcome>> {
    let mut input = String::new();
    for cell in &cells {
        // Writing to a string cannot fail.
        let _ = writeln!(input, "{}\t{}\t{}", cell.name, cell.topic, cell.arguments);
    }
    let mut command = peers.java_tool("InteropSession")?;
    command.args([upstream, &cluster.replicas().to_string()]);
    let finished = Process::run(command, "session", directory, &input, SESSION_TIMEOUT)?;
    let checks = Check::parse_lines(&finished.stdout).with_context(|| finished.explanation())?;
    if !finished.success() {
        eprintln!("the session ended badly: {}", finished.explanation());
    }
    Ok(outcomes(cells, checks))
}

/// What the checks say of each cell, and of the cluster.
fn outcomes(cells: Vec<Cell>, checks: Vec<Check>) -> Vec<Outcome> {
    let found: BTreeMap<_, _> =
        checks.into_iter().map(|check| (check.name.clone(), check)).collect();
    let outcome = |row, column, name: String| {
        let fault = match found.get(&name) {
            None => Some("it was not reached".to_owned()),
            Some(check) if !check.ok => Some(check.detail.clone()),
            Some(_) => None,
        };
        Outcome { row, column, name, fault }
    };
    cells
        .into_iter()
        .map(|cell| outcome(cell.row, cell.column, cell.name))
        .chain([outcome("the cluster".to_owned(), "leaders", LEADERS.to_owned())])
        .collect()
}

/// How many cells of each row and shape passed, and each that failed with its reason.
pub fn table(cluster: Upstream, outcomes: &[Outcome]) -> String {
    let mut text = format!("{:28}", cluster.name());
    for shape in SHAPES {
        text.push_str(&format!("{shape:>15}"));
    }
    text.push('\n');
    let rows: BTreeSet<&str> = outcomes.iter().map(|outcome| outcome.row.as_str()).collect();
    for row in rows {
        let of_row: Vec<_> = outcomes.iter().filter(|outcome| outcome.row == row).collect();
        text.push_str(&format!("{row:28}"));
        let is_of_shapes = of_row.iter().any(|outcome| SHAPES.contains(&outcome.column));
        let columns: Vec<_> = if is_of_shapes { SHAPES.to_vec() } else { vec![of_row[0].column] };
        for column in columns {
            let cells: Vec<_> = of_row.iter().filter(|cell| cell.column == column).collect();
            let passed = cells.iter().filter(|cell| cell.passed()).count();
            let shown = format!("{passed} of {}", cells.len());
            text.push_str(&format!("{shown:>15}"));
        }
        text.push('\n');
    }
    for outcome in outcomes {
        if let Some(fault) = &outcome.fault {
            text.push_str(&format!("{}: {}: {fault}\n", cluster.name(), outcome.name));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doors() -> Vec<Doors> {
        [(Service::Memory, 1000), (Service::Vault, 2000)]
            .map(|(service, port)| Doors::new(service, &memory_kms(), "127.0.0.1:9", port))
            .into()
    }

    fn cells() -> Vec<Cell> {
        doors().iter().flat_map(|doors| doors.cells("127.0.0.1:9")).collect()
    }

    #[test]
    fn every_combination_is_a_cell_of_its_own() {
        let cells = cells();
        let names: BTreeSet<_> = cells.iter().map(|cell| &cell.name).collect();
        assert_eq!(names.len(), cells.len());
        assert_eq!(cells.len(), 2 * 2 * SHAPES.len() * CODECS.len() + 1);
    }

    #[test]
    fn every_topic_has_a_key() {
        let Kms::Memory(keks) = memory_kms() else { panic!("another service") };
        let aliases: BTreeSet<_> = keks.iter().map(|kek| kek.alias.clone()).collect();
        for cell in doors()[0].cells("127.0.0.1:9") {
            assert!(aliases.contains(&format!("KEK_{}", cell.topic)), "{}", cell.topic);
        }
    }

    #[test]
    fn one_proxy_writes_and_the_other_reads() {
        let doors = &doors()[0];
        let (write, read) = doors.route(Writer::Moldau, "plain");
        assert_eq!([&write, &read], [&doors.moldau.bootstrap(), &doors.kroxylicious.bootstrap()]);
        let (write, read) = doors.route(Writer::Kroxylicious, DOUBLE_WRAPPED);
        assert_eq!(write, doors.kroxylicious_before_moldau.bootstrap());
        assert_eq!(read, format!("{write},{}", doors.moldau_before_kroxylicious.bootstrap()));
    }

    #[test]
    fn a_cell_that_fails_or_is_not_reached_is_told() {
        let cells = cells();
        let checks = cells[1..].iter().map(|cell| Check::new(&cell.name, true, ""));
        let mut checks: Vec<_> = checks.chain([Check::new(LEADERS, true, "")]).collect();
        checks[0] = Check::new(&checks[0].name, false, "found 2");
        let names = [cells[0].name.clone(), cells[1].name.clone()];

        let outcomes = outcomes(cells, checks);
        let failed = outcomes.iter().filter(|outcome| !outcome.passed());
        assert!(failed.map(|outcome| &outcome.name).eq(&names));
        let table = table(Upstream::Broker, &outcomes);
        assert!(table.contains("3 of 5"), "{table}");
        assert!(table.contains(&format!("{}: it was not reached", names[0])), "{table}");
        assert!(table.contains(&format!("{}: found 2", names[1])), "{table}");
    }
}
