//! The same requests to Apache Kafka and to our broker: every API that the broker advertises, in
//! every version that both have.
//!
//! Scripts ask good and bad requests, as an administrator and as a client without rights. Answers
//! are compared field by field but for what must differ (`normal`). What else differs is a row of
//! `differences`, and a row that no longer differs fails as well. From the table and from what both
//! servers advertise comes `docs/compatibility.md`.
//!
//! - `tree`: messages as trees, by their layouts;
//! - `wire`: a connection;
//! - `session`: one server, what it is asked and what it answers;
//! - `normal`: addresses, ids, times;
//! - `compare`: two conversations and the table;
//! - `differences`: the table;
//! - `scripts`: the requests, by families of APIs;
//! - `document`: the page about compatibility.

mod compare;
mod differences;
mod document;
mod normal;
mod scripts;
mod session;
mod tree;
mod wire;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use moldau_protocol::ApiKey;
use serde_json::json;

use self::scripts::malformed::CASES;
use self::session::{Advertised, Answers, Session};
use crate::check::Check;
use crate::cluster::Cluster;
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{free_ports, loopback};

/// What Kafka is told beside the usual. Without a secret between nodes, its own requests are those
/// of an anonymous user, whom the scripts let do everything from where they come.
const KAFKA: &str = "auto.create.topics.enable=false
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true";

/// The page as it is checked in.
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compatibility.md");

/// What came of a run.
#[derive(Debug)]
pub struct Outcome {
    /// One for each request, each row of the table, each API that is not served, and the page.
    pub checks: Vec<Check>,
    /// How many requests were compared.
    pub requests: usize,
    /// APIs that are served and that no request was made of.
    pub without_case: Vec<&'static str>,
}

/// Asks both, and compares; writes the page anew if `write` says so.
pub fn run(peers: &Peers, binary: &Path, directory: &Path, write: bool) -> Result<Outcome> {
    let kafka = Kafka::start_with(peers, directory, KAFKA)?;
    let broker = start_broker(binary, directory)?;
    let of_kafka = session::advertised(kafka.bootstrap())?;
    let of_broker = session::advertised(broker.bootstrap())?;
    let both = both(&of_kafka, &of_broker);
    let differences = differences::all();
    let Conversations { kafka: wanted, ours: found } =
        conversations(kafka, broker.bootstrap(), &both)?;

    let mut checks = compare::compare(&wanted, &found, &differences);
    checks.extend(unserved(&of_kafka, &of_broker, broker.bootstrap())?);
    broker.stop()?;
    let asked = scripted(&wanted);
    let page = document::page(&of_kafka, &of_broker, &asked, &differences);
    checks.push(page_check(&page, write)?);
    let without_case = both.keys().filter_map(|key| ApiKey::from_key(*key));
    let without_case = without_case.filter(|api| !asked.contains(api));
    let without_case = without_case.map(ApiKey::name).collect();
    Ok(Outcome { checks, requests: wanted.len(), without_case })
}

/// The same with three brokers of a cluster, of which the controller is asked.
pub fn run_cluster(peers: &Peers, binary: &Path, directory: &Path) -> Result<Outcome> {
    let kafka = Kafka::start_with(peers, directory, KAFKA)?;
    let cluster = Cluster::start_with(binary, directory, &keys())?;
    let any = cluster.bootstrap();
    let controller = session::controller(any.split(',').next().context("a broker")?)?;
    let of_kafka = session::advertised(kafka.bootstrap())?;
    let both = both(&of_kafka, &session::advertised(&controller)?);
    let Conversations { kafka: wanted, ours: found } = conversations(kafka, &controller, &both)?;
    cluster.stop()?;
    let checks = compare::compare(&wanted, &found, &differences::of_clusters(&both));
    Ok(Outcome { checks, requests: wanted.len(), without_case: Vec::new() })
}

/// What both servers answered.
struct Conversations {
    kafka: Answers,
    ours: Answers,
}

/// Asks one after the other; Kafka is stopped in between.
fn conversations(kafka: Kafka, ours: &str, versions: &Advertised) -> Result<Conversations> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
    let now = i64::try_from(now)?;
    let wanted = answers(kafka.bootstrap(), versions, now).context("Apache Kafka")?;
    drop(kafka);
    let found = answers(ours, versions, now).context("the broker")?;
    Ok(Conversations { kafka: wanted, ours: found })
}

/// The APIs that scripts asked for, malformed requests aside.
fn scripted(asked: &Answers) -> BTreeSet<ApiKey> {
    let scripted = asked.keys().filter(|it| !CASES.contains(&it.case.as_str()));
    scripted.map(|request| request.api).collect()
}

fn start_broker(binary: &Path, directory: &Path) -> Result<Moldau> {
    let port = free_ports(2)?;
    let mut config = keys();
    config["log.dirs"] = json!(directory.join("broker-data"));
    config["listeners"] = json!(format!("PLAINTEXT://{}", loopback(port)));
    config["admin"] = json!(loopback(port + 1).to_string());
    Moldau::configured("broker", binary, &config, directory, port, port + 1)
}

/// Keys of each broker of ours.
fn keys() -> serde_json::Value {
    json!({
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": true,
        "auto.create.topics.enable": false,
        "group.initial.rebalance.delay.ms": 0,
        "log.cleaner.backoff.ms": 200,
    })
}

fn answers(address: &str, versions: &Advertised, now_ms: i64) -> Result<Answers> {
    let mut session = Session::start(address, versions.clone(), now_ms)?;
    scripts::run(&mut session)?;
    Ok(session.into_answers())
}

/// The versions that both have of each API.
fn both(one: &Advertised, other: &Advertised) -> Advertised {
    let common = one
        .iter()
        .filter_map(|(key, versions)| Some((*key, versions.intersection(*other.get(key)?)?)));
    common.collect()
}

/// A request that the broker does not advertise ends the connection, as the page says.
fn unserved(kafka: &Advertised, ours: &Advertised, address: &str) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    for (key, versions) in kafka.iter().filter(|(key, _)| !ours.contains_key(key)) {
        let Some(api) = ApiKey::from_key(*key) else { continue };
        let answer = wire::Client::new("127.0.0.1", address)?.call(api, versions.max, &[])?;
        let name = format!("{api} is not served and closes the connection");
        checks.push(Check::new(&name, answer.is_none(), "it is answered"));
        let name = format!("the page says what is missing without {api}");
        checks.push(Check::new(&name, document::explains(api), "no row of UNSERVED"));
    }
    for (key, versions) in ours {
        let name = format!("{versions} of API {key} are versions of Kafka");
        let ok = kafka.get(key).is_some_and(|it| it.intersection(*versions) == Some(*versions));
        checks.push(Check::new(&name, ok, &format!("Kafka has {:?}", kafka.get(key))));
    }
    Ok(checks)
}

fn page_check(page: &str, write: bool) -> Result<Check> {
    let path = PathBuf::from(DOCUMENT);
    if write {
        fs::write(&path, page).with_context(|| path.display().to_string())?;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differing = page.lines().find(|line| !found.lines().any(|it| it == *line));
    let detail = format!("run moldau-differential --write; without {differing:?}");
    Ok(Check::new("docs/compatibility.md is what both servers say", found == page, &detail))
}
