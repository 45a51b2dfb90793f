//! What a client with and without rights is told: the same requests to Apache Kafka and to our
//! broker, and Kafka's own tools for ACLs and users.
//!
//! `authorization/cases.tsv` lists the requests, one or more for each API that the broker serves,
//! and the rights with which each is asked. Codes, names and authorised operations of the answers
//! must be those of Apache Kafka but for `DIFFERENCES`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::check::Check;
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Finished, Process};

const CASES: &str = include_str!("authorization/cases.tsv");

/// Some hundred requests; Kafka's broker learns of each ACL a moment later.
const SESSION_TIMEOUT: Duration = Duration::from_secs(240);

/// A tool is a JVM that starts, asks and ends.
const TOOL_TIMEOUT: Duration = Duration::from_secs(60);

const ACLS: &str = "org.apache.kafka.tools.AclCommand";
const CONFIGS: &str = "org.apache.kafka.tools.ConfigCommand";

/// Steps that end otherwise in our broker: the step, how it ends there, and why.
const DIFFERENCES: &[(&str, &str, &str)] = &[];

/// The name of each step and what was told.
type Steps = BTreeMap<String, String>;

/// Asks both, and returns what is to be held of our broker.
pub fn run(peers: &Peers, binary: &Path, directory: &Path) -> Result<Vec<Check>> {
    let kafka = Kafka::start_authorizing(peers, directory)?;
    let of_kafka = Session { peers, bootstrap: kafka.bootstrap(), directory };
    let wanted = of_kafka.steps()?;
    let mut checks = of_kafka.tools("Kafka")?;
    drop(kafka);

    let broker = Moldau::authorizing_broker(binary, directory)?;
    let of_broker = Session { peers, bootstrap: broker.bootstrap(), directory };
    let found = of_broker.steps()?;
    checks.extend(compare(&wanted, &found));
    checks.extend(of_broker.tools("the broker")?);
    broker.stop()?;
    Ok(checks)
}

/// One server, and where the output of what is run against it goes.
struct Session<'a> {
    peers: &'a Peers,
    bootstrap: &'a str,
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

    /// Kafka's tools, as the administrator: they come from the address that may do everything.
    fn tools(&self, server: &str) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        let mut shows = |what: &str, finished: &Finished, wanted: &str| {
            let ok = finished.success() && finished.stdout.contains(wanted);
            let detail = format!("{}\n{}", finished.stdout, finished.explanation());
            checks.push(Check::new(&format!("{server}: {what}"), ok, &detail));
        };
        let acl = ["--allow-principal", "User:tool", "--operation", "Read", "--topic", "tools-"];
        let prefixed = ["--resource-pattern-type", "prefixed"];
        let added = self.tool(ACLS, &[&["--add"][..], &acl, &prefixed].concat())?;
        shows("kafka-acls adds", &added, "Adding ACLs");
        let matching = ["--resource-pattern-type", "match", "--topic", "tools-of-kafka"];
        let listed = self.tool(ACLS, &[&["--list"][..], &matching].concat())?;
        let shown = "principal=User:tool, host=*, operation=READ, permissionType=ALLOW";
        shows("kafka-acls lists", &listed, shown);
        self.tool(ACLS, &[&["--remove", "--force"][..], &acl, &prefixed].concat())?;
        let listed = self.tool(ACLS, &["--list", "--principal", "User:tool"])?;
        let is_gone = listed.success() && !listed.stdout.contains("tools-");
        let entity = ["--entity-type", "users", "--entity-name", "tool"];
        let scram = "SCRAM-SHA-512=[iterations=8192,password=secret]";
        let altered =
            self.tool(CONFIGS, &[&["--alter", "--add-config", scram][..], &entity].concat())?;
        shows("kafka-configs makes a user", &altered, "Completed updating config for user tool");
        let described = self.tool(CONFIGS, &[&["--describe"][..], &entity].concat())?;
        shows("kafka-configs shows a user", &described, "SCRAM-SHA-512=iterations=8192");
        let unset = ["--alter", "--delete-config", "SCRAM-SHA-512"];
        let altered = self.tool(CONFIGS, &[&unset[..], &entity].concat())?;
        shows("kafka-configs forgets a user", &altered, "Completed updating config");
        let what = format!("{server}: kafka-acls removes");
        checks.push(Check::new(&what, is_gone, &listed.stdout));
        Ok(checks)
    }

    fn tool(&self, class: &str, arguments: &[&str]) -> Result<Finished> {
        let mut command = self.peers.java_tool(class)?;
        command.args(["--bootstrap-server", self.bootstrap]).args(arguments);
        Process::run(command, "authorization-tool", self.directory, "", TOOL_TIMEOUT)
    }
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
