//! `docs/tools.md`, from the script and the table of differences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::script::Command;

const HEAD: &str = "# Kafka's command-line tools

The tools of Apache Kafka 4.4.0 for one broker, with their usual arguments. A test runs the same
commands against Apache Kafka, against the broker, and against the broker through the proxy. It
compares exit codes and every line printed: the broker with Apache Kafka, the proxy with the broker.
Addresses, directories, generated ids, times, and the figures of the performance tools are masked.
Some tools print rows in no fixed order; these are sorted first. `moldau-authorization` compares in
the same way what users with and without rights are told, by most of these tools.

`cargo run -p moldau-conformance --bin moldau-tools -- --write` writes this page.
`cargo xtask test` fails if an output differs in a way that is not listed here, or if a listed
difference no longer exists.

| tool | commands | same | differences of the broker | differences of the proxy |
|---|---|---|---|---|
";

#[derive(Default)]
struct Row {
    commands: usize,
    same: usize,
    broker: Vec<&'static str>,
    proxy: Vec<&'static str>,
}

type Reasons = [Vec<&'static str>];

/// The page.
pub(super) fn page(commands: &[Command], broker: &Reasons, proxy: &Reasons) -> String {
    let mut rows = BTreeMap::<&str, Row>::new();
    for ((command, broker), proxy) in commands.iter().zip(broker).zip(proxy) {
        let row = rows.entry(command.tool()).or_default();
        row.commands += 1;
        row.same += usize::from(broker.is_empty() && proxy.is_empty());
        add(&mut row.broker, broker);
        add(&mut row.proxy, proxy);
    }
    let mut page = HEAD.to_owned();
    for (tool, Row { commands, same, broker, proxy }) in &rows {
        let (broker, proxy) = (broker.join("<br>"), proxy.join("<br>"));
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {tool} | {commands} | {same} | {broker} | {proxy} |");
    }
    page
}

/// Adds the reasons that are not there yet.
fn add(all: &mut Vec<&'static str>, more: &[&'static str]) {
    for reason in more {
        if !all.contains(reason) {
            all.push(reason);
        }
    }
}
