//! How many anomalies of each kind there are, with examples.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::anomaly::{Anomaly, Kind};

/// Anomalies of one kind that a report keeps: a fault may show in every record.
pub const EXAMPLES_PER_KIND_MAX: usize = 8;

/// What a history proves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report {
    found: BTreeMap<Kind, Found>,
}

/// The anomalies of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Found {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub examples: Vec<Anomaly>,
}

impl Report {
    /// Each kind that was found, the worst first.
    pub fn found(&self) -> impl Iterator<Item = (Kind, &Found)> {
        self.found.iter().map(|(kind, found)| (*kind, found))
    }

    /// Anomalies of a kind.
    pub fn count(&self, kind: Kind) -> u64 {
        self.found.get(&kind).map_or(0, |found| found.count)
    }

    /// Anomalies that Kafka's protocol does not permit.
    pub fn violations(&self) -> u64 {
        self.found()
            .filter(|(kind, _)| kind.permitted().is_none())
            .map(|(_, found)| found.count)
            .sum()
    }

    /// Adds one; `evidence` is only made for an example.
    pub(crate) fn add(&mut self, kind: Kind, evidence: impl FnOnce() -> Anomaly) {
        let found = self.found.entry(kind).or_default();
        found.count += 1;
        if found.examples.len() < EXAMPLES_PER_KIND_MAX {
            found.examples.push(evidence());
        }
    }
}
