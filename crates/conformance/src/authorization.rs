//! What a client with and without rights is told: the same requests to Apache Kafka and to our
//! broker, and the same commands of Kafka's own tools.
//!
//! `authorization/cases.tsv` lists the requests, one or more for each API that the broker serves,
//! and the rights with which each is asked. Codes, names and authorised operations of the answers
//! must be those of Apache Kafka but for `DIFFERENCES`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::Check;
use crate::command_line::{self, Lines, USERS};
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback};

const CASES: &str = include_str!("authorization/cases.tsv");

/// Some hundred requests; Kafka's broker learns of each ACL a moment later.
const SESSION_TIMEOUT: Duration = Duration::from_secs(240);

/// Steps that end otherwise in our broker: the step, how it ends there, and why.
const DIFFERENCES: &[(&str, &str, &str)] = &[];

/// The name of each step and what was told.
type Steps = BTreeMap<String, String>;

/// Asks both, and returns what is to be held of our broker.
pub fn run(peers: &Peers, binary: &Path, directory: &Path) -> Result<Vec<Check>> {
    let place = |name: &str| {
        let place = directory.join(name);
        fs::create_dir(&place).map(|()| place)
    };
    let directory = &place("kafka")?;
    let kafka = Kafka::start_authorizing(peers, directory, &USERS)?;
    let (bootstrap, users) = (kafka.bootstrap(), kafka.users());
    let of_kafka = Session { peers, bootstrap, users, directory };
    let (wanted, wanted_tools) = (of_kafka.steps()?, of_kafka.tools()?);
    drop(kafka);

    let directory = &place("broker")?;
    let (broker, users) = start_broker(binary, directory)?;
    let of_broker = Session { peers, bootstrap: broker.bootstrap(), users: &users, directory };
    let (found, found_tools) = (of_broker.steps()?, of_broker.tools()?);
    broker.stop()?;
    let mut checks = compare(&wanted, &found);
    checks.extend(command_line::compare_of_users(&wanted_tools, &found_tools)?);
    Ok(checks)
}

/// One server, and where the output of what is run against it goes.
struct Session<'a> {
    peers: &'a Peers,
    bootstrap: &'a str,
    users: &'a str,
    directory: &'a Path,
}

impl Session<'_> {
    fn steps(&self) -> Result<Steps> {
        let mut command = self.peers.java_tool("AuthorizationSession")?;
        command.arg(self.bootstrap);
        let name = "authorization-session";
        let session = Process::run(command, name, self.directory, CASES, SESSION_TIMEOUT)?;
        ensure!(session.success(), "the session ends badly: {}", session.explanation());
        let lines = session.stdout.lines().filter_map(|line| line.split_once('\t'));
        Ok(lines.map(|(step, told)| (step.to_owned(), told.to_owned())).collect())
    }

    /// Kafka's tools, given by the administrator and by users: they come from the address that may
    /// do everything without a name.
    fn tools(&self) -> Result<Vec<Lines>> {
        command_line::of_users(self.peers, (self.bootstrap, self.users), self.directory)
    }
}

/// A broker with a listener for users, and the address of that.
fn start_broker(binary: &Path, directory: &Path) -> Result<(Moldau, String)> {
    let port = free_ports(3)?;
    let users = loopback(port + 2).to_string();
    let passwords = directory.join("passwords");
    fs::write(&passwords, USERS.map(|user| format!("{user}:{user}\n")).concat())?;
    let sasl = json!({"mechanisms": ["PLAIN"], "users_file": passwords});
    let config = json!({
        "log.dirs": directory.join("data"),
        "admin": loopback(port + 1).to_string(),
        "listeners": [
            {"name": "PLAINTEXT", "address": loopback(port).to_string()},
            {"name": "USERS", "address": users, "sasl": sasl},
        ],
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": true,
    });
    let broker = Moldau::configured("broker", binary, &config, directory, port, port + 1)?;
    Ok((broker, users))
}

/// One check for each step of either.
fn compare(of_kafka: &Steps, found: &Steps) -> Vec<Check> {
    let mut wanted = of_kafka.clone();
    let ours = DIFFERENCES.iter().map(|(step, ours, _)| ((*step).to_owned(), (*ours).to_owned()));
    wanted.extend(ours);
    let steps = wanted.keys().chain(found.keys().filter(|step| !wanted.contains_key(*step)));
    let checks = steps.map(|step| {
        let (wanted, found) = (wanted.get(step), found.get(step));
        let detail = format!("the broker says {found:?}\nKafka says      {wanted:?}");
        Check::new(step, wanted == found, &detail)
    });
    checks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(all: &[(&str, &str)]) -> Steps {
        all.iter().map(|(step, told)| ((*step).to_owned(), (*told).to_owned())).collect()
    }

    #[test]
    fn another_code_and_a_missing_step_fail() {
        let kafka = steps(&[("a", "[errorCode=29]"), ("b", "[errorCode=0]")]);
        let count = |found: &Steps| compare(&kafka, found).iter().filter(|it| !it.ok).count();
        assert_eq!(count(&kafka), 0);
        assert_eq!(count(&steps(&[("a", "[errorCode=3]"), ("b", "[errorCode=0]")])), 1);
        assert_eq!(count(&steps(&[("a", "[errorCode=29]"), ("c", "")])), 2);
    }

    #[test]
    fn every_case_has_its_columns() {
        let cases = CASES.lines().filter(|line| !line.starts_with('#'));
        for case in cases {
            let columns: Vec<_> = case.split('\t').collect();
            assert!((4..=5).contains(&columns.len()), "{case}");
            assert!(columns[2].parse::<i16>().is_ok(), "{case}");
            assert!(serde_json::from_str::<serde_json::Value>(columns[3]).is_ok(), "{case}");
        }
    }
}
