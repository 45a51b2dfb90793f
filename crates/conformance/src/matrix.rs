//! Every program and scenario against one target, and the table of what came out.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::check::Check;
use crate::client::{Library, Scenario};
use crate::peers::Peers;
use crate::target::{Kind, Target};
use crate::tools::{Family, Tools};

/// One run of a program: a line of the results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cell {
    /// A client program with a scenario.
    Client(Library, Scenario),
    /// A family of Kafka's tools.
    Tools(Family),
}

impl Cell {
    /// The program: a row of the table.
    pub fn program(self) -> &'static str {
        match self {
            Self::Client(library, _) => library.name(),
            Self::Tools(_) => "kafka-tools",
        }
    }

    /// What it does: a column of the table.
    pub fn scenario(self) -> &'static str {
        match self {
            Self::Client(_, scenario) => scenario.name(),
            Self::Tools(family) => family.name(),
        }
    }

    /// Whether other programs cannot do their work meanwhile: librdkafka refuses a Metadata answer
    /// in which a topic has more than 100,000 partitions, and it asks for all topics.
    fn is_alone(self) -> bool {
        matches!(self, Self::Client(_, Scenario::LargeTopic))
    }

    /// Whether it can be run against a target: the programs of all libraries connect by host names
    /// and TLS; those of one scenario in Java do not. What MirrorMaker asks of a server, other
    /// clients ask of the proxy too.
    pub fn is_for(self, kind: Kind) -> bool {
        let has_tls = |scenario: Scenario| {
            !matches!(
                scenario,
                Scenario::Streams
                    | Scenario::StreamsExactlyOnce
                    | Scenario::StreamsGroup
                    | Scenario::Connect
                    | Scenario::LargeTopic
            )
        };
        if let Self::Client(_, Scenario::Mirror) = self {
            return matches!(kind, Kind::Kafka | Kind::Broker | Kind::Cluster);
        }
        kind != Kind::Sni || matches!(self, Self::Client(_, scenario) if has_tls(scenario))
    }

    fn run(self, peers: &Peers, target: &Target, directory: &Path) -> Result<Vec<Check>> {
        let kind = target.kind();
        // The process id keeps runs apart that meet the same server.
        let names = [self.program(), self.scenario(), kind.name()].join("-");
        let topic = format!("{names}-{}", std::process::id());
        match self {
            Self::Client(library, scenario) => {
                library.run(peers, scenario, target, &topic, directory)
            }
            Self::Tools(family) => {
                Tools::new(peers, kind, target.bootstrap(), &topic, directory).run(family)
            }
        }
    }
}

/// What a cell came to.
#[derive(Debug)]
pub struct Outcome {
    /// The target it ran against.
    pub kind: Kind,
    /// The cell.
    pub cell: Cell,
    /// Why it failed, a line or more; empty where everything held.
    pub faults: Vec<String>,
    /// How many checks were made.
    pub checks: usize,
    /// How long it took.
    pub took: Duration,
}

impl Outcome {
    /// Whether everything held.
    pub fn passed(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Runs `cells` against `target`, `jobs` at a time after those that must be alone, calling `report`
/// after each.
pub fn run(
    peers: &Peers,
    target: &Target,
    cells: &[Cell],
    jobs: usize,
    directory: &Path,
    report: impl Fn(&Outcome) + Sync,
) -> Vec<Outcome> {
    let outcomes = Mutex::new(Vec::new());
    let cells = cells.iter().filter(|cell| cell.is_for(target.kind()));
    let run = |cell: Cell| {
        let started = Instant::now();
        let result = cell.run(peers, target, directory);
        let outcome = outcome(target.kind(), cell, result, started.elapsed());
        report(&outcome);
        lock(&outcomes).push(outcome);
    };
    cells.clone().copied().filter(|cell| cell.is_alone()).for_each(run);
    let together = cells.copied().filter(|cell| !cell.is_alone());
    let queue = Mutex::new(together.collect::<VecDeque<Cell>>());
    // A closure, so that the lock is let go of before the cell runs.
    let next = || lock(&queue).pop_front();
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(cell) = next() {
                    run(cell);
                }
            });
        }
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn outcome(kind: Kind, cell: Cell, result: Result<Vec<Check>>, took: Duration) -> Outcome {
    let (checks, faults) = match result {
        Ok(checks) => {
            let failed = checks.iter().filter(|check| !check.ok);
            let faults = failed.map(|check| format!("{}: {}", check.name, check.detail)).collect();
            (checks.len(), faults)
        }
        Err(error) => (0, vec![format!("{error:#}")]),
    };
    Outcome { kind, cell, faults, checks, took }
}

/// The outcomes as one table per target: programs down, scenarios across, seconds inside.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for kind in distinct(outcomes.iter().map(|outcome| outcome.kind)) {
        for clients in [true, false] {
            let chosen: Vec<&Outcome> = outcomes
                .iter()
                .filter(|o| o.kind == kind && matches!(o.cell, Cell::Client(..)) == clients)
                .collect();
            write_table(&mut text, kind, &chosen);
        }
    }
    text
}

fn write_table(text: &mut String, kind: Kind, outcomes: &[&Outcome]) {
    if outcomes.is_empty() {
        return;
    }
    let columns = distinct(outcomes.iter().map(|outcome| outcome.cell.scenario()));
    let mut line = format!("{:13}", kind.name());
    for column in &columns {
        line.push_str(&format!("{column:>13}"));
    }
    text.push_str(&line);
    text.push('\n');
    for program in distinct(outcomes.iter().map(|outcome| outcome.cell.program())) {
        let mut line = format!("{program:13}");
        for column in &columns {
            let found = outcomes
                .iter()
                .find(|o| o.cell.program() == program && o.cell.scenario() == *column);
            let shown = match found {
                Some(outcome) if outcome.passed() => format!("{:.1} s", outcome.took.as_secs_f64()),
                Some(_) => "failed".to_owned(),
                None => "-".to_owned(),
            };
            line.push_str(&format!("{shown:>13}"));
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
}

/// The distinct values in sorted order.
fn distinct<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.collect::<std::collections::BTreeSet<T>>().into_iter().collect()
}

/// The faults of every cell that failed, each under the cell's name.
pub fn faults(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for outcome in outcomes.iter().filter(|outcome| !outcome.passed()) {
        let (program, scenario) = (outcome.cell.program(), outcome.cell.scenario());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {program} {scenario}:", outcome.kind.name());
        for fault in &outcome.faults {
            let _ = writeln!(text, "  {}", fault.replace('\n', "\n    "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(checks: Result<Vec<Check>>) -> Outcome {
        let cell = Cell::Client(Library::Java, Scenario::Group);
        outcome(Kind::Broker, cell, checks, Duration::from_secs(1))
    }

    #[test]
    fn a_failed_check_fails_its_cell_and_is_told() {
        let failed =
            sample(Ok(vec![Check::new("holds", true, ""), Check::new("breaks", false, "found 2")]));
        assert!(!failed.passed());
        assert_eq!(faults(&[failed]), "broker java group:\n  breaks: found 2\n");
    }

    #[test]
    fn a_program_that_cannot_run_fails_its_cell() {
        assert!(!sample(Err(anyhow::anyhow!("no such file"))).passed());
    }

    #[test]
    fn the_table_shows_passes_with_their_time() {
        let outcomes = [sample(Ok(vec![Check::new("holds", true, "")]))];
        let table = table(&outcomes);
        assert!(table.contains("group") && table.contains("java") && table.contains("1.0 s"));
    }
}
