//! Commands of Kafka's tools against Apache Kafka, against our broker, and against our broker
//! through the proxy: all must print the same.
//!
//! `script.txt` holds the commands. Those of `authorized.txt` are given by users with rights and
//! without: `moldau-authorization` runs them, without the proxy. One JVM each runs them in order,
//! the three side by side. The broker's output is compared with Kafka's, and that of the proxy with
//! the broker's.
//! What differs from run to run is masked, see `normal`; every other line of the output and the
//! exit code must be the same, but for the differences listed in `differences`. From the results
//! comes `docs/tools.md`.

mod differences;
mod document;
mod normal;
mod script;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use self::differences::{Difference, OF_BROKER, OF_PROXY, OF_USERS};
use self::normal::Place;
use self::script::{ALL_TOOLS, AUTHORIZED, Command};
use crate::check::Check;
use crate::kafka::Kafka;
use crate::peers::Peers;
use crate::process::Process;
use crate::target::{Kind, Target};

/// Some hundred commands of less than a second, on a busy machine.
const SESSION_TIMEOUT: Duration = Duration::from_secs(400);

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");

/// What the commands showed.
#[derive(Debug)]
pub struct Outcome {
    /// One for each command, each listed difference, and the page.
    pub checks: Vec<Check>,
    /// What each command printed against Apache Kafka, masked.
    pub transcript: String,
}

/// What a command printed, in lines to compare; the first is its exit code.
pub(crate) type Lines = Vec<String>;

/// What the driver tells of a command.
#[derive(Deserialize)]
struct Told {
    exit: i32,
    out: String,
    err: String,
}

/// Runs the script against all three, and checks or writes the page.
pub fn run(peers: &Peers, binary: &Path, directory: &Path, write: bool) -> Result<Outcome> {
    let commands = script::commands(ALL_TOOLS)?;
    let ours = |kind: Kind| {
        let directory = directory.join(kind.name());
        fs::create_dir(&directory)?;
        let target = Target::start(kind, binary, peers, &directory)?;
        let addresses = (target.bootstrap(), "");
        let lines = session(peers, (ALL_TOOLS, &commands), addresses, &directory)?;
        target.stop()?;
        Ok::<_, anyhow::Error>(lines)
    };
    let of_kafka = || {
        let directory = directory.join(Kind::Kafka.name());
        fs::create_dir(&directory)?;
        let kafka = Kafka::start_as_ours(peers, &directory)?;
        session(peers, (ALL_TOOLS, &commands), (kafka.bootstrap(), ""), &directory)
    };
    let (wanted, found, proxied) = thread::scope(|scope| {
        let kafka = scope.spawn(of_kafka);
        let proxy = scope.spawn(|| ours(Kind::Proxy));
        let found = ours(Kind::Broker)?;
        let wanted = kafka.join().ok().context("the thread of Apache Kafka panicked")??;
        let proxied = proxy.join().ok().context("the thread of the proxy panicked")??;
        Ok::<_, anyhow::Error>((wanted, found, proxied))
    })?;
    let sides = Sides { wanted: "Kafka", found: "our broker" };
    let (mut checks, reasons) = compare(&commands, &sides, &wanted, &found, OF_BROKER);
    let sides = Sides { wanted: "our broker", found: "the proxy" };
    let (proxy_checks, proxy_reasons) = compare(&commands, &sides, &found, &proxied, OF_PROXY);
    checks.extend(proxy_checks);
    let page = document::page(&commands, &reasons, &proxy_reasons);
    if write {
        fs::write(DOCUMENT, &page)?;
    }
    let current = fs::read_to_string(DOCUMENT).unwrap_or_default();
    let told = "write it with `cargo run -p moldau-conformance --bin moldau-tools -- --write`";
    checks.push(Check::new("docs/tools.md is what the commands show", current == page, told));
    let mut transcript = String::new();
    for (command, lines) in commands.iter().zip(&wanted) {
        writeln!(transcript, "> {}\n{}", command.line, lines.join("\n"))?;
    }
    Ok(Outcome { checks, transcript })
}

/// Who gives the commands of users, and logs in with the own name as a password.
pub(crate) const USERS: [&str; 2] = ["alice", "bob"];

/// What the commands of users print against a server, with the addresses for everyone and for
/// users.
pub(crate) fn of_users(
    peers: &Peers,
    addresses: (&str, &str),
    directory: &Path,
) -> Result<Vec<Lines>> {
    let commands = script::commands(AUTHORIZED)?;
    session(peers, (AUTHORIZED, &commands), addresses, directory)
}

/// One check for each command of users and each listed difference.
pub(crate) fn compare_of_users(wanted: &[Lines], found: &[Lines]) -> Result<Vec<Check>> {
    let commands = script::commands(AUTHORIZED)?;
    let sides = Sides { wanted: "Kafka", found: "our broker" };
    Ok(compare(&commands, &sides, wanted, found, OF_USERS).0)
}

/// Runs all commands of a script in one JVM.
fn session(
    peers: &Peers,
    (script, commands): (&str, &[Command]),
    addresses: (&str, &str),
    directory: &Path,
) -> Result<Vec<Lines>> {
    let files = directory.join("files");
    fs::create_dir(&files)?;
    script::write_files(script, &files)?;
    let place = Place { bootstrap: addresses.0, files: &files, directory };
    let mut text = String::new();
    for command in commands {
        let words = command.words(addresses, &files);
        writeln!(text, "{}", serde_json::to_string(&words)?)?;
    }
    let list = files.join("commands.jsonl");
    fs::write(&list, text)?;
    let mut java = peers.java_session("ToolSession")?;
    java.arg(list);
    let finished = Process::run(java, "session", directory, "", SESSION_TIMEOUT)?;
    let told = finished.explanation();
    ensure!(finished.success(), "{} does not end well: {told}", directory.display());
    let told = finished.stdout.lines().map(serde_json::from_str::<Told>);
    let told = told.collect::<Result<Vec<_>, _>>().context("the driver prints JSON")?;
    ensure!(told.len() == commands.len(), "{} of {} commands", told.len(), commands.len());
    let lines = commands.iter().zip(told).map(|(command, told)| {
        let mut lines = vec![format!("exit {}", told.exit)];
        lines.extend(normal::lines(command, &place, &told.out));
        lines.extend(normal::lines(command, &place, &told.err));
        lines
    });
    Ok(lines.collect())
}

/// What is compared with what, for messages.
struct Sides {
    wanted: &'static str,
    found: &'static str,
}

/// One check for each command and one for each difference, which fails if no command shows it;
/// and the reasons of what differs, for each command.
fn compare(
    commands: &[Command],
    sides: &Sides,
    wanted: &[Lines],
    found: &[Lines],
    differences: &[Difference],
) -> (Vec<Check>, Vec<Vec<&'static str>>) {
    let (mut checks, mut reasons) = (Vec::new(), Vec::new());
    let mut used = vec![false; differences.len()];
    for ((command, wanted), found) in commands.iter().zip(wanted).zip(found) {
        let mut listed = Vec::new();
        let mut only_wanted = without(wanted, found);
        let mut only_found = without(found, wanted);
        for (difference, used) in differences.iter().zip(&mut used) {
            if difference.covers(&command.line) {
                let before = only_wanted.len() + only_found.len();
                only_wanted.retain(|line| !difference.is_wanted(line));
                only_found.retain(|line| !difference.is_found(line));
                if before > only_wanted.len() + only_found.len() {
                    *used = true;
                    listed.push(difference.reason);
                }
            }
        }
        reasons.push(listed);
        let order =
            if is_reordered(wanted, found) { "\nthe same lines in another order" } else { "" };
        let ok = only_wanted.is_empty() && only_found.is_empty() && order.is_empty();
        let detail = format!(
            "only {}:\n  {}\nonly {}:\n  {}{order}",
            sides.wanted,
            only_wanted.join("\n  "),
            sides.found,
            only_found.join("\n  ")
        );
        checks.push(Check::new(&command.line, ok, &detail));
    }
    for (difference, used) in differences.iter().zip(used) {
        let name = format!("the difference of {:?} is there", difference.command);
        checks.push(Check::new(&name, used, "no command shows it"));
    }
    (checks, reasons)
}

/// The lines of `these` beyond those of `others`, each as often as it is in excess.
fn without(these: &[String], others: &[String]) -> Lines {
    let mut others: Vec<&String> = others.iter().collect();
    let excess = these.iter().filter(|line| {
        let place = others.iter().position(|other| other == line);
        place.map(|place| others.swap_remove(place)).is_none()
    });
    excess.cloned().collect()
}

/// Whether both have the same lines, not in the same order.
fn is_reordered(wanted: &[String], found: &[String]) -> bool {
    wanted != found && without(wanted, found).is_empty() && without(found, wanted).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIDES: Sides = Sides { wanted: "one", found: "other" };

    fn lines(all: &[&str]) -> Vec<Lines> {
        vec![all.iter().map(|line| (*line).to_owned()).collect()]
    }

    fn failures(wanted: &[&str], found: &[&str], differences: &[Difference]) -> Vec<String> {
        let commands = vec![Command::parse("kafka-topics --list").unwrap()];
        let (checks, _) = compare(&commands, &SIDES, &lines(wanted), &lines(found), differences);
        checks.into_iter().filter(|check| !check.ok).map(|check| check.name).collect()
    }

    #[test]
    fn another_line_or_order_fails_unless_it_is_listed() {
        assert_eq!(failures(&["a", "b"], &["a", "b"], &[]), Vec::<String>::new());
        assert_eq!(failures(&["a", "b"], &["b", "a"], &[]), ["kafka-topics --list"]);
        assert_eq!(failures(&["a", "b"], &["a"], &[]), ["kafka-topics --list"]);
        let listed = Difference {
            command: "kafka-topics *",
            wanted: Some("b"),
            found: None,
            reason: "a reason",
        };
        assert_eq!(failures(&["a", "b"], &["a"], &[listed]), Vec::<String>::new());
    }

    #[test]
    fn a_listed_difference_that_is_not_there_fails() {
        let listed =
            Difference { command: "kafka-topics *", wanted: Some("b"), found: None, reason: "why" };
        assert_eq!(
            failures(&["a"], &["a"], &[listed]),
            ["the difference of \"kafka-topics *\" is there"]
        );
    }
}
