//! One measured run, as the result document holds it.

use serde::{Deserialize, Serialize};

use crate::clocks::ClockRecord;
use crate::ledger::{Audit, SentLedger};
use crate::workload::{BYTES_PER_MB, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::{HostUsage, ProcessUsage, generator_among};
use moldau_measure::histograms::{HistogramRecord, Latencies, Summary};
use moldau_measure::statistics::float;

/// One measured run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// Runs of one case are comparable with each other.
    pub case: String,
    /// Name of the arm.
    pub arm: String,
    /// Which pair (or round of repetitions) it belongs to, from 0.
    pub pair: u32,
    /// What was offered.
    pub workload: Workload,
    /// Start of the measured window, ms since the start of the experiment.
    pub window_start_ms: u64,
    /// Length of the measured window, ns.
    pub window_ns: u64,
    /// Operations of the schedule inside the window; 0 for an unpaced run.
    pub offered: u64,
    /// Operations of the whole run that were never offered because the target was too far behind.
    pub shed: u64,
    /// Records acknowledged inside the window.
    pub produced_records: u64,
    /// Record batches acknowledged inside the window.
    pub produced_batches: u64,
    /// Operations of the window that were acknowledged in the end.
    pub answered: u64,
    /// Records delivered inside the window.
    pub consumed_records: u64,
    /// Bytes of its record batches as they are stored, all of the run; 0 where they were not read.
    #[serde(default)]
    pub stored_bytes: u64,
    /// Latency histograms of the operations of the window; absent from unpaced runs, whose
    /// operations have no intended time. A closed loop has those of sending alone.
    pub latency: Option<LatencyRecord>,
    /// Length of a slot of the series, ms.
    pub slot_ms: u64,
    /// The course of the window, slot by slot.
    pub series: Vec<Slot>,
    /// The longest time of the window in which nothing was acknowledged, ns, in whole 64ths of a
    /// slot; 0 if nothing was produced or it was not measured.
    #[serde(default)]
    pub longest_silence_ns: u64,
    /// What each process used inside the window.
    pub processes: Vec<ProcessUsage>,
    /// What the machine did inside the window.
    pub host: HostUsage,
    /// Records that the target says that it was given, asked after the run.
    pub held_records: u64,
    /// Every record of the run.
    pub audit: Audit,
    /// What the producers' requests did inside the window; of nothing where it was not asked.
    #[serde(default)]
    pub requests: Requests,
    /// What transactions took; absent where producers make none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transactions: Option<TransactionsRecord>,
    /// What became of sizes and keys; absent where records are all alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skew: Option<Skew>,
    /// The workers that offered it; empty if the laboratory itself did. With workers, the generator
    /// among the processes is their sum, and its busiest thread is that of the busiest worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerRecord>,
}

/// A worker's share of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerRecord {
    /// Where it listens.
    pub name: String,
    /// The number of its machine among those of the run; 0 is that of the laboratory itself.
    pub machine: u16,
    /// Records acknowledged inside the window.
    pub produced_records: u64,
    /// Records delivered inside the window.
    pub consumed_records: u64,
    /// How late its generator took operations up.
    pub lag: Summary,
    /// Intended time to acknowledgement of its operations.
    pub response: Summary,
    /// What its process used inside the window.
    pub usage: ProcessUsage,
    /// What its machine did inside the window.
    pub host: HostUsage,
    /// How well its clock was known.
    pub clock: ClockRecord,
}

impl WorkerRecord {
    /// What a worker did in a run, if it took part.
    #[must_use]
    pub fn find<'a>(run: &'a RunRecord, name: &str) -> Option<&'a Self> {
        run.workers.iter().find(|worker| worker.name == name)
    }
}

/// How records with sizes and keys of their own came to lie, in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skew {
    /// Records acknowledged.
    pub records: u64,
    /// Bytes of their values.
    pub value_bytes: u64,
    /// Those of the partition that has most.
    pub largest_partition_records: u64,
    /// Partitions of all topics.
    pub partitions: u16,
}

impl Skew {
    /// What became of what was `sent`, with values of so many bytes in all; `None` of nothing.
    #[must_use]
    pub fn of(sent: &[SentLedger], value_bytes: u64) -> Option<Self> {
        let mut by_partition: Vec<u64> = Vec::new();
        for ledger in sent {
            for (at, count) in ledger.acked_by_partition().enumerate() {
                match by_partition.get_mut(at) {
                    Some(sum) => *sum += count,
                    None => by_partition.push(count),
                }
            }
        }
        let records = by_partition.iter().sum();
        (records > 0).then(|| Self {
            records,
            value_bytes,
            largest_partition_records: by_partition.iter().copied().max().unwrap_or(0),
            partitions: u16::try_from(by_partition.len()).unwrap_or(u16::MAX),
        })
    }

    /// Share of the partition that has most, 0 to 1.
    #[must_use]
    pub fn largest_share(&self) -> f64 {
        float(self.largest_partition_records) / float(self.records.max(1))
    }
}

impl RunRecord {
    /// A run of a case on an arm, without figures.
    #[must_use]
    pub fn bare(case: &str, arm: &str, workload: Workload) -> Self {
        Self {
            case: case.into(),
            arm: arm.into(),
            pair: 0,
            workload,
            window_start_ms: 0,
            window_ns: 0,
            offered: 0,
            shed: 0,
            produced_records: 0,
            produced_batches: 0,
            answered: 0,
            consumed_records: 0,
            stored_bytes: 0,
            latency: None,
            slot_ms: 0,
            series: Vec::new(),
            longest_silence_ns: 0,
            processes: Vec::new(),
            host: HostUsage::default(),
            held_records: 0,
            audit: Audit::default(),
            requests: Requests::default(),
            transactions: None,
            skew: None,
            workers: Vec::new(),
        }
    }

    /// Mean size of a record's value: as it was, or as the load says where all are alike.
    #[must_use]
    pub fn record_bytes(&self) -> f64 {
        match self.skew {
            Some(skew) => float(skew.value_bytes) / float(skew.records.max(1)),
            None => float(self.workload.record_bytes as u64),
        }
    }

    /// Mean bytes that a record takes with its share of a batch, as it is stored, or as it comes
    /// through a proxy that changes it; `None` where nothing was read.
    #[must_use]
    pub fn stored_record_bytes(&self) -> Option<f64> {
        let is_known = self.stored_bytes > 0 && self.audit.delivered > 0;
        is_known.then(|| float(self.stored_bytes) / float(self.audit.delivered))
    }

    /// MB of `records` records.
    #[must_use]
    pub fn megabytes(&self, records: u64) -> f64 {
        float(records) * self.record_bytes() / BYTES_PER_MB
    }

    /// Share of a processor that the busiest thread of the generator took.
    #[must_use]
    pub fn generator_thread_share(&self) -> f64 {
        let busiest_ns = generator_among(&self.processes).map_or(0, |it| it.busiest_thread_ns);
        float(busiest_ns) / float(self.window_ns.max(1))
    }

    /// By how much times between two workers may be off, ns: both clocks may be, each its own way.
    #[must_use]
    pub fn clock_bound_ns(&self) -> u64 {
        let mut bounds: Vec<u64> = self.workers.iter().map(|it| it.clock.bound_ns).collect();
        bounds.sort_unstable_by(|one, other| other.cmp(one));
        match bounds.as_slice() {
            [first, second, ..] => first.saturating_add(*second),
            // A lone worker has one clock at both ends of every time.
            [] | [_] => 0,
        }
    }

    /// Whether the clocks of the workers are close enough for latencies between them.
    #[must_use]
    pub fn clocks_are_close(&self) -> bool {
        let latency = self.latency.as_ref().filter(|it| it.end_to_end.summary.count > 0);
        latency.is_none_or(|it| {
            self.clock_bound_ns() <= it.end_to_end.summary.p50_ns / CLOCK_SHARE_INVERSE
        })
    }
}

/// The bound of clocks may be a tenth of the median of the latencies between them.
pub const CLOCK_SHARE_INVERSE: u64 = 10;

/// Transactions that were committed inside the window, of all producers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionsRecord {
    /// From the hand-over of the last record until the commit is acknowledged.
    pub commit: HistogramRecord,
    /// From there until the next transaction takes records.
    pub begin: HistogramRecord,
}

/// Produce requests of all producers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requests {
    /// Those whose answer came.
    pub returned: u64,
    /// Time that they were on their way, ns, each counted by itself: by the window, how many were
    /// on their way on average.
    pub in_flight_ns: u64,
    /// Time for which answers said that clients were held (`throttle_time_ms`), ns.
    pub throttled_ns: u64,
    /// How many may be on their way at once.
    pub in_flight_max: u64,
}

impl Requests {
    /// With those of another producer.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            returned: self.returned + other.returned,
            in_flight_ns: self.in_flight_ns + other.in_flight_ns,
            throttled_ns: self.throttled_ns + other.throttled_ns,
            in_flight_max: self.in_flight_max + other.in_flight_max,
        }
    }
}

/// The four histograms of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyRecord {
    /// Intended time to the moment the generator took the operation up.
    pub lag: HistogramRecord,
    /// Hand-over to the target until its acknowledgement.
    pub service: HistogramRecord,
    /// Intended time to acknowledgement.
    pub response: HistogramRecord,
    /// Intended time to delivery.
    pub end_to_end: HistogramRecord,
}

impl LatencyRecord {
    /// The document form of the histograms.
    ///
    /// # Errors
    /// None in practice, see [`moldau_measure::histograms::Durations::to_record`].
    pub fn of(latencies: &Latencies) -> Result<Self, Error> {
        Ok(Self {
            lag: latencies.lag.to_record()?,
            service: latencies.service.to_record()?,
            response: latencies.response.to_record()?,
            end_to_end: latencies.end_to_end.to_record()?,
        })
    }
}

/// A slot of the course of a run; durations are 0 where the slot has no sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Records acknowledged.
    pub produced_records: u64,
    /// Records delivered.
    pub consumed_records: u64,
    /// The longest time up to a moment of the slot in which nothing was acknowledged, ns, in whole
    /// 64ths of a slot; it may have begun in an earlier one.
    #[serde(default, skip_serializing_if = "moldau_measure::numbers::is_zero")]
    pub silence_ns: u64,
    /// Median response time of the operations intended in the slot, ns.
    pub response_p50_ns: u64,
    /// 99th percentile of it, ns.
    pub response_p99_ns: u64,
    /// Longest of it, ns.
    pub response_max_ns: u64,
    /// 99th percentile of the end-to-end time of the records intended in the slot, ns.
    pub end_to_end_p99_ns: u64,
}

/// Connections that were opened through an arm one after the other, each with a handshake of its
/// own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionsRecord {
    /// The arm.
    pub arm: String,
    /// Records of one round stand next to each other in time.
    pub round: u32,
    /// How many were opened.
    pub connections: u32,
    /// Processor time that what stands before the target took meanwhile, ns.
    pub cpu_ns: u64,
}
