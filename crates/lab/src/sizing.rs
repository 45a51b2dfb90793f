//! What a proxy's processor time is made of: a model of several terms, and what it says of a load.
//!
//! Processor time per second is a sum of [`Term`]s, each a coefficient that is not negative times a
//! count per second that was measured: produce and fetch requests by the broker's own counters,
//! batches, records and bytes by the clients'. One coefficient per MB, as is usually published,
//! is the special case in which a load has the batches, records and requests of the one that was
//! measured.
//!
//! | module | what it holds |
//! |---|---|
//! | `fit` | coefficients with intervals, errors on held-out cases |
//! | `load` | an operator's load as counts per second |
//! | `answer` | cores, shares, the largest lever, what lies beyond the measurement |

mod answer;
mod fit;
mod load;

use moldau_measure::statistics::float;
use serde::{Deserialize, Serialize};

pub use answer::{Action, Answer, Beyond, Lever, Part, UTILISATION_MAX};
pub use fit::{Estimate, Fit, HeldOut, errors};
pub use load::{Load, Packing};

/// Everything of the experiment that is not a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizingRecord {
    /// The load that was asked for.
    pub load: Load,
    /// The case whose processor time per MB stands for a model of one coefficient.
    pub reference: String,
    /// What each run of each arm counted and cost.
    pub observations: Vec<Observation>,
}

/// What one run counted and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// Runs of one case are replicates.
    pub case: String,
    /// Name of the arm.
    pub arm: String,
    /// Which round it belongs to, from 0.
    pub round: u32,
    /// Partitions of the topic.
    pub partitions: u16,
    /// Consumers. Each read everything.
    pub groups: u16,
    /// Length of the measured window, ns.
    pub window_ns: u64,
    /// Processor time of the proxy inside it, ns.
    pub cpu_ns: u64,
    /// Time between the two readings of the broker's request counters, ns.
    pub counted_ns: u64,
    /// Produce requests between them.
    pub produce_requests: u64,
    /// Fetch requests between them.
    pub fetch_requests: u64,
    /// Record batches acknowledged inside the window.
    pub produced_batches: u64,
    /// Record batches delivered inside the window.
    pub consumed_batches: u64,
    /// Records acknowledged inside the window.
    pub produced_records: u64,
    /// Records delivered inside the window.
    pub consumed_records: u64,
    /// Bytes of the values of records acknowledged inside the window.
    pub produced_bytes: u64,
    /// Bytes of the values of records delivered inside the window.
    pub consumed_bytes: u64,
}

/// What a proxy is paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is named by what `label` says")]
pub enum Term {
    Idle,
    ProduceRequests,
    FetchRequests,
    ProducedBatches,
    ConsumedBatches,
    ProducedRecords,
    ConsumedRecords,
    ProducedBytes,
    ConsumedBytes,
}

/// Number of terms.
pub const TERMS: usize = 9;

/// What a term counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Nothing: it is there without a load.
    Idle,
    /// Requests.
    Request,
    /// Record batches of one partition each.
    Batch,
    /// Records.
    Record,
    /// Bytes of record values.
    Byte,
}

impl Term {
    /// All of them, in the order of tables and of [`Rates`].
    pub const ALL: [Self; TERMS] = [
        Self::Idle,
        Self::ProduceRequests,
        Self::FetchRequests,
        Self::ProducedBatches,
        Self::ConsumedBatches,
        Self::ProducedRecords,
        Self::ConsumedRecords,
        Self::ProducedBytes,
        Self::ConsumedBytes,
    ];

    /// Name in tables.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::ProduceRequests => "produce requests",
            Self::FetchRequests => "fetch requests",
            Self::ProducedBatches => "batches produced",
            Self::ConsumedBatches => "batches consumed",
            Self::ProducedRecords => "records produced",
            Self::ConsumedRecords => "records consumed",
            Self::ProducedBytes => "bytes produced",
            Self::ConsumedBytes => "bytes consumed",
        }
    }

    /// What it counts.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Idle => Kind::Idle,
            Self::ProduceRequests | Self::FetchRequests => Kind::Request,
            Self::ProducedBatches | Self::ConsumedBatches => Kind::Batch,
            Self::ProducedRecords | Self::ConsumedRecords => Kind::Record,
            Self::ProducedBytes | Self::ConsumedBytes => Kind::Byte,
        }
    }

    /// Its place in [`Rates`] and coefficients.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Idle, Self::Request, Self::Batch, Self::Record, Self::Byte];

    /// What work of this kind is called in sentences.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Request => "per-request",
            Self::Batch => "per-batch",
            Self::Record => "per-record",
            Self::Byte => "per-byte",
        }
    }
}

/// Counts per second by [`Term`]; the idle term counts 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates(pub [f64; TERMS]);

impl Rates {
    /// The count of a term per second.
    #[must_use]
    pub fn of(&self, term: Term) -> f64 {
        self.0[term.index()]
    }

    /// Cores that `coefficients`, in ns per count, take for it.
    #[must_use]
    pub fn cores(&self, coefficients: &[f64; TERMS]) -> f64 {
        self.0.iter().zip(coefficients).map(|(rate, each)| rate * each).sum::<f64>() / 1e9
    }

    /// Bytes of record values produced and consumed per second.
    #[must_use]
    pub fn bytes(&self) -> f64 {
        self.of(Term::ProducedBytes) + self.of(Term::ConsumedBytes)
    }
}

impl Observation {
    /// Its counts per second.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let window = float(self.window_ns.max(1)) / 1e9;
        let counted = float(self.counted_ns.max(1)) / 1e9;
        Rates([
            1.0,
            float(self.produce_requests) / counted,
            float(self.fetch_requests) / counted,
            float(self.produced_batches) / window,
            float(self.consumed_batches) / window,
            float(self.produced_records) / window,
            float(self.consumed_records) / window,
            float(self.produced_bytes) / window,
            float(self.consumed_bytes) / window,
        ])
    }

    /// Processors that the proxy kept busy.
    #[must_use]
    pub fn cores(&self) -> f64 {
        float(self.cpu_ns) / float(self.window_ns.max(1))
    }

    /// Whether anything passed through the proxy.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.produced_records + self.consumed_records > 0
    }
}

/// What an arm's runs say.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the arm.
    pub arm: String,
    /// Its model.
    pub fit: Fit,
    /// Its answer for the load that was asked for.
    pub answer: Answer,
}

impl SizingRecord {
    /// What each arm's runs say; an arm with too few cases for a model says nothing. `seed` is that
    /// of the resamples.
    #[must_use]
    pub fn findings(&self, seed: u64) -> Vec<Finding> {
        let mut arms: Vec<&str> = Vec::new();
        for observation in &self.observations {
            if !arms.contains(&observation.arm.as_str()) {
                arms.push(&observation.arm);
            }
        }
        let finding = |arm: &str| {
            let observations = self.of_arm(arm);
            let fit = Fit::of(&observations, &self.reference, seed)?;
            let answer = Answer::of(&fit, &observations, &self.load);
            Some(Finding { arm: arm.to_string(), fit, answer })
        };
        arms.into_iter().filter_map(finding).collect()
    }

    /// The observations of an arm.
    #[must_use]
    pub fn of_arm(&self, arm: &str) -> Vec<&Observation> {
        self.observations.iter().filter(|observation| observation.arm == arm).collect()
    }
}

#[cfg(test)]
pub mod sample;
#[cfg(test)]
mod tests;
