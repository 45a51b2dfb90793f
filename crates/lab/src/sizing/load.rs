//! An operator's load, and the counts per second that it means.

use serde::{Deserialize, Serialize};

use super::{Observation, Rates, Term};
use moldau_measure::Error;
use moldau_measure::statistics::float;

/// What is to pass through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Bytes of record values produced per second.
    pub produce_bytes_per_second: f64,
    /// Bytes of a record's value.
    pub record_bytes: u64,
    /// Bytes of the record values of a batch as it is sent: the producers' `batch-size-avg`, which
    /// is often far below their `batch.size`.
    pub batch_bytes: u64,
    /// Consumers, or groups of them, that each read everything.
    pub groups: u16,
    /// Partitions that are written to.
    pub partitions: u32,
    /// Batches in a produce request; `None` is as in the most similar case that was measured.
    #[serde(default)]
    pub batches_per_request: Option<f64>,
    /// Batches in an answer to a fetch, empty answers included; `None` as above.
    #[serde(default)]
    pub batches_per_fetch: Option<f64>,
}

/// How many batches travel together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Packing {
    /// Batches in a produce request.
    pub batches_per_request: f64,
    /// Batches in an answer to a fetch.
    pub batches_per_fetch: f64,
    /// The measured case that says so; `None` where the load itself says both.
    pub as_in: Option<String>,
}

impl Load {
    /// Refuses what cannot be.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        if !self.produce_bytes_per_second.is_finite() || self.produce_bytes_per_second <= 0.0 {
            return refuse("a load needs bytes per second");
        }
        if self.record_bytes == 0 || self.batch_bytes < self.record_bytes {
            return refuse("a batch holds at least one record, and a record at least one byte");
        }
        if self.partitions == 0 {
            return refuse("a load needs a partition");
        }
        let packed = [self.batches_per_request, self.batches_per_fetch];
        if packed.iter().flatten().any(|batches| !batches.is_finite() || *batches <= 0.0) {
            return refuse("a request carries more than 0 batches");
        }
        Ok(())
    }

    /// Batches produced per second.
    #[must_use]
    pub fn batches_per_second(&self) -> f64 {
        self.produce_bytes_per_second / float(self.batch_bytes)
    }

    /// How many batches travel together: as the load says, otherwise as in the measured case whose
    /// batches, their rate and whose partitions are nearest, each by its ratio.
    #[must_use]
    pub fn packing(&self, observations: &[&Observation]) -> Packing {
        let is_alike =
            |run: &&&Observation| run.produce_requests > 0 && (run.groups > 0 || self.groups == 0);
        let alike = observations.iter().filter(is_alike);
        let nearest = alike.min_by(|a, b| self.distance(a).total_cmp(&self.distance(b)));
        let case = nearest.map(|run| run.case.as_str());
        let runs: Vec<&&Observation> =
            observations.iter().filter(|run| Some(run.case.as_str()) == case).collect();
        let ratio = |batches: Term, requests: Term| {
            let sum = |term| runs.iter().map(|run| run.rates().of(term)).sum::<f64>();
            let is_there = sum(requests) > 0.0;
            if is_there { sum(batches) / sum(requests) } else { 1.0 }
        };
        let is_said = self.batches_per_request.is_some()
            && (self.batches_per_fetch.is_some() || self.groups == 0);
        let produced = ratio(Term::ProducedBatches, Term::ProduceRequests);
        let fetched = ratio(Term::ConsumedBatches, Term::FetchRequests);
        Packing {
            batches_per_request: self.batches_per_request.unwrap_or(produced),
            batches_per_fetch: self.batches_per_fetch.unwrap_or(fetched),
            as_in: case.filter(|_| !is_said).map(ToString::to_string),
        }
    }

    /// Its counts per second.
    #[must_use]
    pub fn rates(&self, packing: &Packing) -> Rates {
        let groups = f64::from(self.groups);
        let bytes = self.produce_bytes_per_second;
        let (batches, records) = (self.batches_per_second(), bytes / float(self.record_bytes));
        Rates([
            1.0,
            batches / packing.batches_per_request,
            groups * batches / packing.batches_per_fetch,
            batches,
            groups * batches,
            records,
            groups * records,
            bytes,
            groups * bytes,
        ])
    }

    /// How unlike a run is, as the sum of squared logarithms of ratios.
    fn distance(&self, run: &Observation) -> f64 {
        let rates = run.rates();
        let batches = rates.of(Term::ProducedBatches);
        let apart = |ours: f64, theirs: f64| (ours / theirs).ln().powi(2);
        apart(self.batches_per_second(), batches)
            + apart(float(self.batch_bytes), rates.of(Term::ProducedBytes) / batches)
            + apart(f64::from(self.partitions), f64::from(run.partitions))
    }
}
