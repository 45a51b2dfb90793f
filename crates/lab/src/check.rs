//! What the history of clients under faults proves about a cluster.

mod example;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use moldau_checker::{Action, Error, History, Operation, Outcome, Report};

pub use example::{Example, Shown};

/// What such an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckRecord {
    /// The history's origin.
    pub source: Source,
    /// The operations of the history.
    pub totals: Totals,
    /// The faults, in the order of time; none of a file.
    pub struck: Vec<Struck>,
    /// The anomalies.
    pub report: Report,
    /// The first anomaly of each kind, with its operations.
    pub examples: Vec<Example>,
}

/// Where a history is from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Clients of the laboratory on a system of this name.
    System(String),
    /// A file of this name.
    File(String),
}

/// What a history holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Clients.
    pub clients: u64,
    /// Records sent.
    pub sent: u64,
    /// Records whose send took effect for certain.
    pub acked: u64,
    /// Records received by all clients together.
    pub polled: u64,
    /// Acknowledged commits of the group's offset in a partition.
    #[serde(default)]
    pub commits: u64,
    /// Assignments of a partition to a member of the group.
    #[serde(default)]
    pub assignments: u64,
    /// Committed transactions.
    pub committed: u64,
    /// Aborted transactions.
    pub aborted: u64,
    /// Operations with an unknown outcome.
    pub unknown: u64,
}

/// One fault that struck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Struck {
    /// The fault.
    pub fault: Fault,
    /// When it began, on the clock of the history, µs.
    pub from_us: u64,
    /// When it was over: the process ran again, connections were possible again.
    pub to_us: u64,
}

impl Struck {
    /// Whether it began while another one lasted, and is not the one that lasted.
    #[must_use]
    pub fn is_during(&self, other: &Self) -> bool {
        (other.from_us < self.from_us) && (self.from_us < other.to_us)
    }
}

/// What strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A broker is killed (SIGKILL) and started again.
    Kill,
    /// A broker stands still for up to [`STOP_MAX_MS`](Self::STOP_MAX_MS) (SIGSTOP).
    Stop,
    /// All connections of clients end, and new ones are possible at once. In a cluster, those with
    /// one broker; half of the times it is cut off from clients for up to
    /// [`STOP_MAX_MS`](Self::STOP_MAX_MS).
    Cut,
    /// A client ends in the middle of its work. Another takes its place.
    Client,
    /// The broker is killed, its disk loses what was not synced, and it is started again.
    Power,
    /// The broker's disk refuses half of all requests for up to
    /// [`STOP_MAX_MS`](Self::STOP_MAX_MS). Then power is lost.
    Disk,
    /// The broker's disk is slow for up to [`STOP_MAX_MS`](Self::STOP_MAX_MS).
    Slow,
    /// The broker's wall clock jumps by up to [`JUMP_MAX`](Self::JUMP_MAX), forward or back, and
    /// back again after up to [`STOP_MAX_MS`](Self::STOP_MAX_MS). Every second time the broker is
    /// killed and started again meanwhile.
    Clock,
    /// The database ends at once (SIGQUIT), is started again and recovers.
    Database,
    /// The database ends at once and its standby takes its place, after up to
    /// [`STOP_MAX_MS`](Self::STOP_MAX_MS) in which the standby got nothing. Once in a run.
    Failover,
    /// A broker is cut off from the database for up to [`STOP_MAX_MS`](Self::STOP_MAX_MS).
    DatabaseCut,
    /// A broker is cut off from the store for as long.
    StoreCut,
    /// For as long, all brokers get status 503 from the store, or late answers, or none to requests
    /// that the store carries out.
    Store,
}

impl Fault {
    /// All, in the order of tables.
    pub const ALL: [Self; 13] = [
        Self::Kill,
        Self::Stop,
        Self::Cut,
        Self::Client,
        Self::Power,
        Self::Disk,
        Self::Slow,
        Self::Clock,
        Self::Database,
        Self::Failover,
        Self::DatabaseCut,
        Self::StoreCut,
        Self::Store,
    ];

    /// All that strike a broker with a disk of its own, if `is_on_services` is false, or else one
    /// without.
    #[must_use]
    pub fn usual(is_on_services: bool) -> Vec<Self> {
        let is_usual = |fault: &Self| match is_on_services {
            true => !fault.is_of_disk(),
            false => !fault.is_of_services(),
        };
        Self::ALL.into_iter().filter(is_usual).collect()
    }

    /// Longest jump of the broker's clock.
    pub const JUMP_MAX: Duration = Duration::from_secs(3_600);

    /// Longest time for which the broker stands still, or its disk fails or is slow: longer than
    /// clients wait for an answer, so that they send requests again while the broker has yet to
    /// handle the first.
    pub const STOP_MAX_MS: u64 = 5_000;

    /// What happened, as words of tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "broker killed",
            Self::Stop => "broker stopped",
            Self::Cut => "connections cut",
            Self::Client => "client ended",
            Self::Power => "power lost",
            Self::Disk => "disk failed, then power lost",
            Self::Slow => "disk slow",
            Self::Clock => "clock jumped",
            Self::Database => "database restarted",
            Self::Failover => "database failed over",
            Self::DatabaseCut => "broker cut off from the database",
            Self::StoreCut => "broker cut off from the store",
            Self::Store => "store failed",
        }
    }

    /// Whether it may begin while `outer` lasts: what one of them disturbs or ends, the other one
    /// does not restore or need.
    #[must_use]
    pub fn may_begin_during(self, outer: Self) -> bool {
        let of_same = |parts: &[Self]| parts.contains(&self) && parts.contains(&outer);
        // A standby that gets nothing must not miss what a database restarts with.
        let is_of_database = of_same(&[Self::Database, Self::Failover]);
        let is_of_store = of_same(&[Self::StoreCut, Self::Store]);
        let is_of_disk = self.is_of_disk() && outer.is_of_disk();
        // A process that is gone, as a broker is whose disk fails, cannot be stopped.
        let is_gone = self == Self::Stop && matches!(outer, Self::Kill | Self::Disk);
        self != outer && !(is_of_database || is_of_store || is_of_disk || is_gone)
    }

    /// Whether it needs a disk that can be told to fail.
    #[must_use]
    pub fn is_of_disk(self) -> bool {
        matches!(self, Self::Power | Self::Disk | Self::Slow)
    }

    /// Whether it needs a database and a store on which brokers stand.
    #[must_use]
    pub fn is_of_services(self) -> bool {
        matches!(
            self,
            Self::Database | Self::Failover | Self::DatabaseCut | Self::StoreCut | Self::Store
        )
    }
}

impl CheckRecord {
    /// Checks a history.
    ///
    /// # Errors
    /// Those of [`moldau_checker::check`].
    pub fn of(history: &History, source: Source, struck: Vec<Struck>) -> Result<Self, Error> {
        let report = moldau_checker::check(history)?;
        let first = report.found().filter_map(|(_, found)| found.examples.first());
        let examples = first.map(|anomaly| Example::of(history, anomaly)).collect();
        Ok(Self { source, totals: Totals::of(history), struck, report, examples })
    }

    /// Each fault that began while another one lasted, with that one.
    pub fn overlaps(&self) -> impl Iterator<Item = (&Struck, &Struck)> {
        // Clients end all the time, whatever lasts.
        let outer = |inner: &Struck| self.struck.iter().find(|outer| inner.is_during(outer));
        let struck = self.struck.iter().filter(|struck| struck.fault != Fault::Client);
        struck.filter_map(move |inner| Some((outer(inner)?, inner)))
    }

    /// How often a fault struck.
    #[must_use]
    pub fn strikes(&self, fault: Fault) -> u64 {
        self.struck.iter().map(|struck| u64::from(struck.fault == fault)).sum()
    }
}

impl Totals {
    fn of(history: &History) -> Self {
        let mut totals = Self::default();
        let mut clients = std::collections::HashSet::new();
        for operation in &history.operations {
            clients.insert(operation.client);
            totals.add(operation);
        }
        totals.clients = u64::try_from(clients.len()).unwrap_or(u64::MAX);
        totals
    }

    fn add(&mut self, operation: &Operation) {
        let is_transaction = is_transaction(operation);
        match operation.outcome {
            Outcome::Committed => self.committed += u64::from(is_transaction),
            Outcome::Aborted => self.aborted += u64::from(is_transaction),
            Outcome::Unknown => self.unknown += 1,
        }
        for step in &operation.steps {
            match &step.action {
                Action::Send { .. } => {
                    self.sent += 1;
                    self.acked += u64::from(operation.outcome == Outcome::Committed);
                }
                Action::Poll { records, .. } => {
                    self.polled += u64::try_from(records.len()).unwrap_or(u64::MAX);
                }
                Action::Commit { .. } => {
                    self.commits += u64::from(operation.outcome == Outcome::Committed);
                }
                Action::Resume { .. } => self.assignments += 1,
                Action::Position { .. } | Action::End { .. } => {}
            }
        }
    }
}

/// Whether an operation is a transaction: its client asked to commit it, or never did so and sent
/// something that has no effect.
#[must_use]
pub fn is_transaction(operation: &Operation) -> bool {
    operation.commit_us.is_some() || operation.outcome == Outcome::Aborted
}

#[cfg(test)]
mod tests;
