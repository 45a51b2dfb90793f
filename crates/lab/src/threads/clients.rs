//! Client libraries side by side: what each read of the same backlog with the same handler.

use serde::{Deserialize, Serialize};

use crate::survey::Estimate;
use moldau_measure::statistics::float;

/// What clients read besides the grid of topics and threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientsRecord {
    /// Names of the clients; the others are compared with the first.
    pub names: Vec<String>,
    /// What was read.
    pub cases: Vec<ClientCase>,
    /// Every reading.
    pub readings: Vec<CaseReading>,
}

/// A backlog and how it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientCase {
    /// Its name.
    pub name: String,
    /// Topics.
    pub topics: u32,
    /// Partitions of each topic.
    pub partitions: u16,
    /// Records of each topic.
    pub records: u32,
    /// Keys, used in turn.
    pub keys: u32,
    /// Threads of the client.
    pub threads: u16,
    /// What the handler does with each record: `nothing`, `compute:US`, `wait:US`.
    pub handling: String,
}

/// A case, read once by one client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseReading {
    /// Name of the case.
    pub case: String,
    /// Name of the system.
    pub system: String,
    /// Name of the client.
    pub client: String,
    /// Its round, from 0.
    pub round: u32,
    /// Records whose handler has returned, after the first quarter.
    pub records: u64,
    /// Time by the clock, ns.
    pub wall_ns: u64,
    /// Processor time of the client, ns.
    pub cpu_ns: u64,
}

impl CaseReading {
    /// Records per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        float(self.records) * 1e9 / float(self.wall_ns.max(1))
    }

    /// Processor time for each record, ns.
    #[must_use]
    pub fn cpu_per_record(&self) -> f64 {
        float(self.cpu_ns) / float(self.records.max(1))
    }
}

impl ClientsRecord {
    /// Whether no clients were compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// A figure of a client over the rounds.
    #[must_use]
    pub fn figure(
        &self,
        [system, case, client]: [&str; 3],
        seed: u64,
        figure: impl Fn(&CaseReading) -> f64,
    ) -> Option<Estimate> {
        let all = self.of([system, case, client]);
        Estimate::typical(&all.map(figure).collect::<Vec<_>>(), seed)
    }

    /// Records per second of a client by those of the first client in the same round.
    #[must_use]
    pub fn ratio(&self, [system, case, client]: [&str; 3], seed: u64) -> Option<Estimate> {
        let first = self.names.first()?;
        let ratios = self.of([system, case, client]).filter_map(|one| {
            let mut firsts = self.of([system, case, first]);
            Some(one.rate() / firsts.find(|it| it.round == one.round)?.rate())
        });
        Estimate::typical(&ratios.collect::<Vec<_>>(), seed)
    }

    fn of<'a>(
        &'a self,
        [system, case, client]: [&'a str; 3],
    ) -> impl Iterator<Item = &'a CaseReading> {
        let is_of =
            move |it: &&CaseReading| it.system == system && it.case == case && it.client == client;
        self.readings.iter().filter(is_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_compared_within_rounds() {
        let reading = |client: &str, round, records| CaseReading {
            case: "nothing".into(),
            system: "ours".into(),
            client: client.into(),
            round,
            records,
            wall_ns: 1_000_000_000,
            cpu_ns: 500_000_000,
        };
        let record = ClientsRecord {
            names: vec!["raw".into(), "batch".into()],
            cases: Vec::new(),
            readings: vec![
                reading("raw", 0, 1_000),
                reading("batch", 0, 900),
                reading("raw", 1, 2_000),
                reading("batch", 1, 1_800),
            ],
        };
        let ratio = record.ratio(["ours", "nothing", "batch"], 1).unwrap();
        assert!((ratio.mean - 0.9).abs() < 1e-9, "{ratio:?}");
        assert!(record.ratio(["theirs", "nothing", "batch"], 1).is_none());
        let cpu = record.figure(["ours", "nothing", "raw"], 1, CaseReading::cpu_per_record);
        assert!(cpu.unwrap().mean > 0.0);
    }
}
