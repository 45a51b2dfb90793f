//! `docs/tools.md`, from the script and the table of differences.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::script::Command;

const HEAD: &str = "# Kafka's command-line tools

The tools of Apache Kafka 4.4.0 for one broker, with their usual arguments. A test runs the same
commands against Apache Kafka and against Moldau and compares exit codes and every line printed.
Addresses, directories, generated ids, times, and the figures of the performance tools are masked.
Some tools print rows in no fixed order; these are sorted first.

`cargo run -p moldau-conformance --bin moldau-tools -- --write` writes this page.
`cargo xtask test` fails if an output differs in a way that is not listed here, or if a listed
difference no longer exists.

| tool | commands | same | differences |
|---|---|---|---|
";

#[derive(Default)]
struct Row {
    commands: usize,
    same: usize,
    reasons: Vec<&'static str>,
}

/// The page.
pub(super) fn page(commands: &[Command], reasons: &[Vec<&'static str>]) -> String {
    let mut rows = BTreeMap::<&str, Row>::new();
    for (command, reasons) in commands.iter().zip(reasons) {
        let row = rows.entry(command.tool()).or_default();
        row.commands += 1;
        row.same += usize::from(reasons.is_empty());
        for reason in reasons {
            if !row.reasons.contains(reason) {
                row.reasons.push(reason);
            }
        }
    }
    let mut page = HEAD.to_owned();
    for (tool, Row { commands, same, reasons }) in &rows {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| {tool} | {commands} | {same} | {} |", reasons.join("<br>"));
    }
    page
}
