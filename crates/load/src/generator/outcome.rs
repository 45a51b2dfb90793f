//! What a share of a run gave, as it travels to who holds the others, and how all become one.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::slots::{self, SlotSamples};
use super::{Measured, Setup, Share, nanos};
use crate::ledger::{DeliveryLedger, SentLedger};
use crate::run::{LatencyRecord, Requests, WorkerRecord};
use moldau_measure::Error;
use moldau_measure::cpu::{HostUsage, ProcessUsage};
use moldau_measure::histograms::{Durations, HistogramRecord, Latencies};

/// What one of those who shared a load measured.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareRecord {
    counts: Counts,
    latency: LatencyRecord,
    slots: Vec<SlotRecord>,
    sent: Vec<SentLedger>,
    delivered: Option<DeliveryLedger>,
    processes: Vec<ProcessUsage>,
    /// What its machine did inside the window.
    pub host: HostUsage,
}

/// The numbers of [`Measured`] that add up, each as it is called there.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    offered: u64,
    shed: u64,
    answered: u64,
    produced_records: u64,
    produced_batches: u64,
    acked_batches: u64,
    acked_bytes: u64,
    requests: u64,
    in_window: Requests,
    consumed_records: u64,
    consumed_batches: u64,
    stored_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SlotRecord {
    produced_records: u64,
    acknowledged_in: u64,
    consumed_records: u64,
    response: Option<HistogramRecord>,
    end_to_end: Option<HistogramRecord>,
}

/// What is known of a run before its shares are put together.
pub struct Parts<'a> {
    /// What was shared.
    pub setup: &'a Setup,
    /// Start of the measured window.
    pub window_start: Instant,
    /// Use of the processes that were measured beside those who shared.
    pub processes: Vec<ProcessUsage>,
    /// Use of the machine that these ran on.
    pub host: HostUsage,
    /// What each of those who shared did.
    pub workers: Vec<WorkerRecord>,
}

impl Measured {
    /// The form in which it travels.
    pub fn into_share(self) -> Result<ShareRecord, Error> {
        Ok(ShareRecord {
            counts: Counts {
                offered: self.offered,
                shed: self.shed,
                answered: self.answered,
                produced_records: self.produced_records,
                produced_batches: self.produced_batches,
                acked_batches: self.acked_batches,
                acked_bytes: self.acked_bytes,
                requests: self.requests,
                in_window: self.requests_in_window,
                consumed_records: self.consumed_records,
                consumed_batches: self.consumed_batches,
                stored_bytes: self.stored_bytes,
            },
            latency: LatencyRecord::of(&self.latencies)?,
            slots: self.slots.iter().map(SlotRecord::of).collect::<Result<_, _>>()?,
            sent: self.sent,
            delivered: self.delivered,
            processes: self.processes,
            host: self.host,
        })
    }

    fn take_share(&mut self, counts: Counts) {
        self.offered += counts.offered;
        self.shed += counts.shed;
        self.answered += counts.answered;
        self.produced_records += counts.produced_records;
        self.produced_batches += counts.produced_batches;
        self.acked_batches += counts.acked_batches;
        self.acked_bytes += counts.acked_bytes;
        self.requests += counts.requests;
        self.requests_in_window = self.requests_in_window.plus(counts.in_window);
        self.consumed_records += counts.consumed_records;
        self.consumed_batches += counts.consumed_batches;
        self.stored_bytes += counts.stored_bytes;
    }
}

impl ShareRecord {
    /// How late the generator was there.
    pub fn lag(&self) -> &HistogramRecord {
        &self.latency.lag
    }

    /// How long its operations took.
    pub fn response(&self) -> &HistogramRecord {
        &self.latency.response
    }

    /// What the generator used there.
    pub fn generator(&self) -> ProcessUsage {
        self.processes.first().cloned().unwrap_or_default()
    }

    /// Records acknowledged and delivered there inside the window.
    pub fn records(&self) -> [u64; 2] {
        [self.counts.produced_records, self.counts.consumed_records]
    }

    fn latencies(&self) -> Result<Latencies, Error> {
        let LatencyRecord { lag, service, response, end_to_end } = &self.latency;
        Ok(Latencies {
            lag: lag.durations()?,
            service: service.durations()?,
            response: response.durations()?,
            end_to_end: end_to_end.durations()?,
        })
    }

    /// Whether its ledgers are those of the producers and lanes of a share.
    fn is_of(&self, share: Share, setup: &Setup) -> bool {
        let workload = &setup.workload;
        let mine = share.producers(workload.all_producers());
        let producers = mine.map(|number| setup.first_producer.saturating_add(number));
        let lanes = usize::from(workload.lanes());
        self.delivered.is_some() == workload.consume
            && self.sent.iter().map(SentLedger::producer).eq(producers)
            && self.sent.iter().all(|ledger| ledger.acked_by_partition().len() == lanes)
    }
}

impl SlotRecord {
    fn of(samples: &SlotSamples) -> Result<Self, Error> {
        let record = |samples: &Option<Box<Durations>>| {
            samples.as_ref().map(|samples| samples.to_record()).transpose()
        };
        Ok(Self {
            produced_records: samples.produced_records,
            acknowledged_in: samples.acknowledged_in,
            consumed_records: samples.consumed_records,
            response: record(&samples.response)?,
            end_to_end: record(&samples.end_to_end)?,
        })
    }

    fn samples(self) -> Result<SlotSamples, Error> {
        let durations = |record: Option<HistogramRecord>| {
            record.map(|record| record.durations().map(Box::new)).transpose()
        };
        Ok(SlotSamples {
            produced_records: self.produced_records,
            acknowledged_in: self.acknowledged_in,
            consumed_records: self.consumed_records,
            response: durations(self.response)?,
            end_to_end: durations(self.end_to_end)?,
        })
    }
}

impl Parts<'_> {
    /// All shares in their order as one run.
    ///
    /// # Errors
    /// [`Error::Document`] where a share is not what it should be.
    pub fn joined(self, shares: Vec<ShareRecord>) -> Result<Measured, Error> {
        let Self { setup, window_start, processes, host, workers } = self;
        let workload = &setup.workload;
        let of = u16::try_from(shares.len()).unwrap_or(u16::MAX);
        let strange = || Error::Document("a worker's records are not those of its share".into());
        let mut measured = Measured::empty(window_start, processes, host);
        measured.window_ns = nanos(workload.window());
        measured.workers = workers;
        if workload.consume {
            let (producers, lanes) = (workload.all_producers(), workload.lanes());
            measured.delivered = Some(DeliveryLedger::new(setup.run, producers, lanes));
        }
        for (index, shared) in (0..).zip(shares) {
            let share = Share { index, of };
            if !shared.is_of(share, setup) {
                return Err(strange());
            }
            measured.take_share(shared.counts);
            measured.latencies.merge(&shared.latencies()?);
            let samples = shared.slots.into_iter().map(SlotRecord::samples);
            slots::merge(&mut measured.slots, samples.collect::<Result<_, _>>()?);
            measured.sent.extend(shared.sent);
            if let (Some(all), Some(theirs)) = (&mut measured.delivered, shared.delivered)
                && !all.take(theirs, |lane| share.reads(lane))
            {
                return Err(strange());
            }
        }
        measured.acked_records = measured.sent.iter().map(SentLedger::acked_count).sum();
        measured.series = measured.slots.iter().map(SlotSamples::summary).collect();
        Ok(measured)
    }
}
