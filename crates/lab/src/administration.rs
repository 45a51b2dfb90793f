//! Time that a cluster takes to make the partitions of a topic and to move them to other brokers,
//! and the cost of idle partitions.
//!
//! Figures of two systems are compared within a round, so that what drifts from round to round
//! cancels.

use serde::{Deserialize, Serialize};

use crate::survey::{Band, Estimate, Finding, SystemPair};
use moldau_measure::statistics::float;

/// Everything that was measured of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdministrationRecord {
    /// Partitions of the topics that were made, rising.
    pub created: Vec<u16>,
    /// Partitions that were moved.
    pub moved: u16,
    /// Topics that were made, each with the replicas that the system gives a topic.
    pub creations: Vec<Creation>,
    /// Partitions that were moved, with what had been written to them.
    pub reassignments: Vec<Reassignment>,
    /// What was claimed.
    pub claims: Vec<AdministrationClaim>,
}

/// A topic that was made by one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Creation {
    /// Name of the system.
    pub arm: String,
    /// Its round, from 0.
    pub round: u32,
    /// Brokers of the cluster.
    pub brokers: u16,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Until the request was answered, ns.
    pub answered_ns: u64,
    /// Until each broker knew a leader of every partition, from the same start, ns.
    pub led_ns: u64,
    /// Processor time of the cluster at rest, with the topic and without a client, ns.
    pub idle_cpu_ns: u64,
    /// How long that was watched, ns.
    pub idle_ns: u64,
}

/// Every replica of a topic moved to the next broker, by one request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reassignment {
    /// Name of the system.
    pub arm: String,
    /// Its round, from 0.
    pub round: u32,
    /// Brokers of the cluster.
    pub brokers: u16,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Records in them. All were read back afterwards.
    pub records: u64,
    /// Until the request was answered, ns.
    pub answered_ns: u64,
    /// Until no partition was being moved any more and all were where they should be, ns.
    pub moved_ns: u64,
}

/// A published statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdministrationClaim {
    /// The statement with its figure.
    pub says: String,
    /// Where in the source it stands.
    pub at: String,
    /// The figure that it is about.
    pub figure: Duty,
    /// Partitions of the figure.
    pub partitions: u16,
    /// The published figure; absent where the source gives a direction and no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Where the statement holds.
    pub holds: Band,
    /// The pair of systems whose ratio it is about, by its name; without one, each system's figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
}

/// An operation of a cluster on partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    /// Seconds from the request until each broker knows a leader of every partition.
    Creation,
    /// Seconds until every replica is at the next broker.
    Reassignment,
    /// Processors that the cluster takes at rest.
    IdleProcessors,
}

impl Duty {
    /// What it is, with so many partitions.
    #[must_use]
    pub fn words(self, partitions: u16) -> String {
        match self {
            Self::Creation => format!("making {partitions} partitions"),
            Self::Reassignment => format!("moving {partitions} partitions"),
            Self::IdleProcessors => format!("at rest with {partitions} partitions"),
        }
    }

    /// Unit of the figure.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Creation | Self::Reassignment => "s",
            Self::IdleProcessors => "processors",
        }
    }
}

impl AdministrationRecord {
    /// The figures that it has, in the order of tables, each with its partitions.
    #[must_use]
    pub fn duties(&self) -> Vec<(Duty, u16)> {
        let of = |duty: Duty| self.created.iter().map(move |partitions| (duty, *partitions));
        let moved = (Duty::Reassignment, self.moved);
        of(Duty::Creation).chain([moved]).chain(of(Duty::IdleProcessors)).collect()
    }

    /// The systems that it was measured on, in the order of their first figures.
    #[must_use]
    pub fn arms(&self) -> Vec<&str> {
        let mut arms: Vec<&str> = Vec::new();
        for creation in &self.creations {
            if !arms.contains(&creation.arm.as_str()) {
                arms.push(&creation.arm);
            }
        }
        arms
    }

    /// A figure of a system over its rounds, as a geometric mean: times are never below 0.
    #[must_use]
    pub fn estimate(&self, arm: &str, duty: Duty, partitions: u16, seed: u64) -> Option<Estimate> {
        let by_round = self.by_round(arm, duty, partitions).into_iter();
        let values: Vec<f64> = by_round.map(|(_, value)| value.ln()).collect();
        Estimate::of(&values, seed, f64::exp)
    }

    /// A figure of one system by that of the other.
    #[must_use]
    pub fn ratio(
        &self,
        pair: &SystemPair,
        duty: Duty,
        partitions: u16,
        seed: u64,
    ) -> Option<Estimate> {
        let on = |system: &str| self.by_round(system, duty, partitions);
        Estimate::of_ratios(&on(&pair.of), &on(&pair.over), seed)
    }

    /// The outcome of a claim on each system, or between the two of its pair.
    #[must_use]
    pub fn findings(
        &self,
        claim: &AdministrationClaim,
        pairs: &[SystemPair],
        seed: u64,
    ) -> Vec<Finding> {
        let AdministrationClaim { figure, partitions, .. } = *claim;
        let arms = self.arms();
        let measured: Vec<(&str, Option<Estimate>)> = match &claim.pair {
            Some(name) => {
                let known = pairs.iter().filter(|pair| pair.name == *name && pair.is_among(&arms));
                known.map(|it| (&*it.name, self.ratio(it, figure, partitions, seed))).collect()
            }
            None => {
                let figure = |arm| self.estimate(arm, figure, partitions, seed);
                arms.into_iter().map(|arm| (arm, figure(arm))).collect()
            }
        };
        let find = |(system, measured): (&str, Option<Estimate>)| Finding {
            system: system.into(),
            outcome: claim.holds.outcome(measured),
            measured,
            isolated: Vec::new(),
        };
        measured.into_iter().map(find).collect()
    }

    fn by_round(&self, arm: &str, duty: Duty, partitions: u16) -> Vec<(u32, f64)> {
        let created =
            self.creations.iter().filter(|it| it.arm == arm && it.partitions == partitions);
        let moved =
            self.reassignments.iter().filter(|it| it.arm == arm && it.partitions == partitions);
        match duty {
            Duty::Creation => created.map(|it| (it.round, seconds(it.led_ns))).collect(),
            Duty::Reassignment => moved.map(|it| (it.round, seconds(it.moved_ns))).collect(),
            Duty::IdleProcessors => {
                let share = |it: &Creation| float(it.idle_cpu_ns) / float(it.idle_ns.max(1));
                created.map(|it| (it.round, share(it))).collect()
            }
        }
    }
}

fn seconds(ns: u64) -> f64 {
    float(ns) / 1e9
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::survey::Outcome;

    /// Two systems over four rounds on a machine that becomes slower. The first makes partitions in
    /// half the time.
    pub(crate) fn record() -> AdministrationRecord {
        let mut record = AdministrationRecord {
            created: vec![100],
            moved: 50,
            ..AdministrationRecord::default()
        };
        for round in 0..4_u32 {
            let slowness = 1_000_000_000 * u64::from(round + 1);
            for (arm, times) in [("kraft", 1), ("zookeeper", 2)] {
                record.creations.push(Creation {
                    arm: arm.into(),
                    round,
                    brokers: 3,
                    partitions: 100,
                    answered_ns: slowness / 2,
                    led_ns: slowness * times,
                    idle_cpu_ns: 100_000_000 + u64::from(round),
                    idle_ns: 2_000_000_000,
                });
                record.reassignments.push(Reassignment {
                    arm: arm.into(),
                    round,
                    brokers: 3,
                    partitions: 50,
                    records: 10_000,
                    answered_ns: slowness,
                    moved_ns: slowness * 3 * times,
                });
            }
        }
        record
    }

    pub(crate) fn pair() -> SystemPair {
        let (of, over) = ("kraft".into(), "zookeeper".into());
        SystemPair { name: "KRaft by ZooKeeper".into(), of, over }
    }

    pub(crate) fn claim() -> AdministrationClaim {
        AdministrationClaim {
            says: "KRaft makes partitions sooner".into(),
            at: "part 2".into(),
            figure: Duty::Creation,
            partitions: 100,
            published: None,
            holds: Band { at_least: None, at_most: Some(0.9) },
            pair: Some(pair().name),
        }
    }

    #[test]
    fn systems_are_compared_within_rounds_so_that_drift_cancels() {
        let record = record();
        let found = record.ratio(&pair(), Duty::Creation, 100, 1).unwrap();
        let interval = found.interval.unwrap();
        assert!((found.mean - 0.5).abs() < 1e-9 && interval.high < 0.51, "{found:?}");
        let alone = record.estimate("zookeeper", Duty::Reassignment, 50, 1).unwrap();
        // 6, 12, 18 and 24 s.
        assert!((alone.mean - 31_104_f64.powf(0.25)).abs() < 1e-9);
        assert!(alone.interval.unwrap().low > 0.0);
        let idle = record.estimate("kraft", Duty::IdleProcessors, 100, 1).unwrap();
        assert!((idle.mean - 0.05).abs() < 1e-6);
        assert_eq!(record.estimate("kraft", Duty::Creation, 50, 1), None);
    }

    #[test]
    fn a_claim_is_about_a_pair_or_about_each_system() {
        let record = record();
        let [of_pair] = record.findings(&claim(), &[pair()], 1).try_into().unwrap();
        assert_eq!((of_pair.system, of_pair.outcome), (pair().name, Outcome::Reproduced));
        assert!(record.findings(&claim(), &[], 1).is_empty());
        let holds = Band { at_least: Some(1.0), at_most: None };
        let half = AdministrationClaim {
            figure: Duty::IdleProcessors,
            published: Some(3.0),
            holds,
            pair: None,
            ..claim()
        };
        let outcomes: Vec<Outcome> =
            record.findings(&half, &[], 1).into_iter().map(|it| it.outcome).collect();
        assert_eq!(outcomes, [Outcome::NotReproduced; 2]);
    }
}
