//! What limits a run: which resource binds, the figures that speak for it, and the experiment that
//! would show it to be wrong.
//!
//! Whatever binds makes queues before it, so that many resources look busy at once. Findings
//! therefore come in an order in which each would explain those behind it, and none is believed
//! for its evidence alone: each names a change of the load or the system, and by how much the
//! figure must move if it is right. Who runs the change asks [`Trial::of`] what came of it.

mod latency;
mod rate;

use serde::{Deserialize, Serialize};

use crate::punctuality::is_saturated;
use moldau_load::run::RunRecord;
use moldau_load::workload::Pace;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::evidence::{Evidence, ProcessEvidence, ThreadEvidence};
use moldau_measure::statistics::{Interval, float, log_ratios, paired_effect};

/// What is to be explained of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Why it is not faster: records per second.
    Rate,
    /// What its latency is made of: the median from the intended time to delivery, or to the
    /// acknowledgement where nobody consumes.
    Latency,
}

/// What may limit a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing: it takes all that it is offered.
    Offered,
    /// A process is stopped by signals.
    Stopped,
    /// A control group limits the processor time of a process.
    Throttled,
    /// A quota of the system holds its clients.
    Quota,
    /// Other processes have the processors.
    OtherProcesses,
    /// The processes of the run have all processors.
    Processors,
    /// A producer's thread, which compresses.
    Compression,
    /// A thread of the generator.
    Generator,
    /// A JVM's collection of garbage.
    GarbageCollection,
    /// A thread of the system.
    Thread,
    /// The records that the load keeps on their way.
    Outstanding,
    /// The requests that a producer may have on their way, by their size and the round trip.
    Window,
    /// A partition, which takes one thing after the other.
    Partition,
    /// What stands between client and broker carries no more bytes.
    Bandwidth,
    /// The time that what stands between client and broker takes.
    Way,
    /// Flushes to the disk.
    Flush,
    /// Followers that have to have a record before it is acknowledged.
    Replication,
    /// The wait of a batch for more records.
    Linger,
    /// The wait of a fetch for more bytes.
    FetchWait,
}

impl Cause {
    /// What it is called.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Offered => "the offered rate",
            Self::Stopped => "stops of a process",
            Self::Throttled => "the limit of a control group",
            Self::Quota => "a quota",
            Self::OtherProcesses => "other processes",
            Self::Processors => "all processors",
            Self::Compression => "the producer's compression",
            Self::Generator => "the generator",
            Self::GarbageCollection => "garbage collection",
            Self::Thread => "one thread",
            Self::Outstanding => "the records on their way",
            Self::Window => "the window of requests in flight",
            Self::Partition => "the number of partitions",
            Self::Bandwidth => "the bytes that the way carries",
            Self::Way => "the time that the way takes",
            Self::Flush => "flushes to the disk",
            Self::Replication => "replication",
            Self::Linger => "the linger of batches",
            Self::FetchWait => "the wait of fetches",
        }
    }
}

/// A change that moves the figure if a finding is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Twice the records per second are offered.
    DoubleRate,
    /// Twice the records are on their way.
    DoubleOutstanding,
    /// Twice the requests may be on their way.
    DoubleInFlight,
    /// The topic has twice the partitions.
    DoublePartitions,
    /// There are twice the producers.
    DoubleProducers,
    /// Batches are not compressed.
    NoCompression,
    /// The leader answers alone.
    LeaderAcks,
    /// Batches do not wait.
    NoLinger,
    /// Fetches do not wait.
    FetchAtOnce,
    /// The system does not wait for flushes.
    NoFlush,
    /// A JVM has more memory.
    MoreMemory,
    /// Clients go past what stands before the brokers.
    PastTheFront,
    /// The control group has twice the processor time.
    DoubleQuota,
    /// So many more processes want a processor.
    BusyProcesses(u16),
    /// Stopped processes are made to go on every millisecond.
    Continue,
}

impl Change {
    /// What the arm with the change is called.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::DoubleRate => "twice the rate".into(),
            Self::DoubleOutstanding => "twice the records on their way".into(),
            Self::DoubleInFlight => "twice the requests in flight".into(),
            Self::DoublePartitions => "twice the partitions".into(),
            Self::DoubleProducers => "twice the producers".into(),
            Self::NoCompression => "no compression".into(),
            Self::LeaderAcks => "the leader's answer alone".into(),
            Self::NoLinger => "no linger".into(),
            Self::FetchAtOnce => "fetches that do not wait".into(),
            Self::NoFlush => "answers before the flush".into(),
            Self::MoreMemory => "more memory".into(),
            Self::PastTheFront => "clients past the front".into(),
            Self::DoubleQuota => "twice the processor time".into(),
            Self::BusyProcesses(count) => format!("{count} more busy processes"),
            Self::Continue => "signals to go on".into(),
        }
    }
}

/// A resource that would explain what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The resource.
    pub cause: Cause,
    /// How much of it is used, or how much of the latency it makes, 0 to 1.
    pub share: f64,
    /// The figures that speak for it, a sentence without its end.
    pub says: String,
    /// What would show it to be wrong.
    pub change: Change,
    /// By what the change multiplies the figure if it is right.
    pub expected: f64,
}

/// A finding and what came of the change that it named.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// The finding.
    pub finding: Finding,
    /// The figure without and with the change, of runs next to each other.
    pub pairs: Vec<(f64, f64)>,
    /// What follows.
    pub outcome: Outcome,
}

/// What follows from a change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The figure moved as it had to, by this factor.
    Confirmed(f64),
    /// It did not; the factor by which it moved.
    Rejected(f64),
    /// The figure varies too much to tell; the factor by which it moved.
    Undecided(f64),
    /// The change cannot be made here, for this reason.
    Untested(String),
}

impl Outcome {
    /// The factor by which the figure moved, if it was looked at.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        match self {
            Self::Confirmed(by) | Self::Rejected(by) | Self::Undecided(by) => Some(*by),
            Self::Untested(_) => None,
        }
    }

    /// What it is called.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Confirmed(_) => "confirmed".into(),
            Self::Rejected(_) => "rejected".into(),
            Self::Undecided(_) => "not decided".into(),
            Self::Untested(reason) => format!("not tested: {reason}"),
        }
    }
}

/// An explanation: findings in the order in which they were tried, until one was confirmed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// What is explained.
    pub about: About,
    /// Records per second, or the median latency in ms.
    pub figure: f64,
    /// What was tried.
    pub trials: Vec<Trial>,
}

impl Finding {
    /// How far a figure that was multiplied by `factor` went towards what was expected, as a
    /// logarithm: 0 where it did not move, 1 where it did all that.
    #[must_use]
    pub fn way(&self, factor: f64) -> f64 {
        factor.ln() / self.expected.ln()
    }
}

impl Explanation {
    /// What was confirmed.
    #[must_use]
    pub fn confirmed(&self) -> Option<&Trial> {
        self.trials.iter().find(|trial| matches!(trial.outcome, Outcome::Confirmed(_)))
    }
}

impl Trial {
    /// What follows from pairs of figures without and with the change, by their geometric mean and
    /// its interval on the way to what was expected, as a logarithm.
    ///
    /// A resource that does not bind moves nothing, so that half the way lies as far from that as
    /// from what was expected: it confirms where the interval leaves out 0, and less rejects where
    /// it leaves out the whole way. The direction is known, so that 95 % err to one side in one of
    /// forty, and in one of twenty at most where twice as many pairs are asked a second time.
    #[must_use]
    pub fn of(finding: Finding, pairs: Vec<(f64, f64)>) -> Self {
        let mut trial = Self { finding, pairs, outcome: Outcome::Untested("no pairs".into()) };
        let logs = log_ratios(&trial.pairs);
        if !logs.is_empty() {
            trial.outcome =
                trial.judged((logs.iter().sum::<f64>() / float(logs.len() as u64)).exp());
        }
        trial
    }

    fn judged(&self, factor: f64) -> Outcome {
        let Some(interval) = self.interval_95() else { return Outcome::Undecided(factor) };
        let ways = [interval.low, interval.high].map(|edge| self.finding.way(edge));
        let is_half = self.finding.way(factor) >= WAY_MIN;
        match is_half {
            true if ways.iter().all(|way| *way > 0.0) => Outcome::Confirmed(factor),
            false if ways.iter().all(|way| *way < 1.0) => Outcome::Rejected(factor),
            _ => Outcome::Undecided(factor),
        }
    }

    /// The factor by which the figure moved, at 95 %; `None` of fewer pairs than
    /// [`moldau_measure::statistics::PAIRS_MIN`].
    #[must_use]
    pub fn interval_95(&self) -> Option<Interval> {
        let effect = paired_effect(&log_ratios(&self.pairs), INTERVAL_SEED)?;
        let Interval { low, high } = effect.interval_95;
        Some(Interval { low: low.exp(), high: high.exp() })
    }
}

/// Share of the expected change that confirms a finding.
const WAY_MIN: f64 = 0.5;

/// Seed of the resampling behind intervals.
const INTERVAL_SEED: u64 = 1;

/// Share of the time from which on a thread counts as busy throughout, waits for a processor
/// included: what is left is what the kernel takes for it.
const BUSY_SHARE_MIN: f64 = 0.8;

/// Share of the machine that processes take which have all of it.
const MACHINE_SHARE_MIN: f64 = 0.92;

/// Share of what may be on its way that is, from which on it binds.
const WINDOW_SHARE_MIN: f64 = 0.75;

/// Share of the time, of the looks or of the latency below which nothing is worth an experiment.
const SHARE_MIN: f64 = 0.15;

/// What there is to say about a run, the likeliest first; nothing of a run whose figure is not
/// known. Without [`RunRecord::evidence`], what only that tells is not found.
#[must_use]
pub fn of(run: &RunRecord, about: About) -> Vec<Finding> {
    let accounts;
    let evidence = match &run.evidence {
        Some(evidence) => evidence,
        None => {
            accounts = Evidence::of_accounts(&run.processes, run.window_ns);
            &accounts
        }
    };
    let Some(facts) = Facts::of(run, evidence, about) else { return Vec::new() };
    match about {
        About::Rate => rate::findings(&facts),
        About::Latency => latency::findings(&facts),
    }
}

/// What a run is asked about if nobody says: the rate of what is as fast as it goes or cannot keep
/// up, and the latency of what keeps up with a rate.
#[must_use]
pub fn usual(run: &RunRecord) -> About {
    match run.workload.pace {
        Pace::Scheduled { .. } if !is_saturated(run) => About::Latency,
        _ => About::Rate,
    }
}

/// The figure that is explained.
#[must_use]
pub fn figure(run: &RunRecord, about: About) -> Option<f64> {
    let of = match about {
        About::Rate => float(run.produced_records) / (float(run.window_ns) / 1e9),
        About::Latency => {
            let latency = run.latency.as_ref()?;
            let whole = if run.workload.consume { &latency.end_to_end } else { &latency.response };
            float(whole.summary.p50_ns) / 1e6
        }
    };
    (of.is_finite() && of > 0.0).then_some(of)
}

/// What findings are made of.
struct Facts<'a> {
    run: &'a RunRecord,
    evidence: &'a Evidence,
    figure: f64,
    /// Requests on their way, on average.
    in_flight: f64,
    /// Mean time of one, ms.
    round_trip_ms: f64,
    /// Mean size of one in bytes of record values.
    request_bytes: f64,
}

impl<'a> Facts<'a> {
    fn of(run: &'a RunRecord, evidence: &'a Evidence, about: About) -> Option<Self> {
        let figure = figure(run, about)?;
        let returned = float(run.requests.returned.max(1));
        let bytes = float(run.produced_records) * run.record_bytes();
        Some(Self {
            run,
            evidence,
            figure,
            in_flight: float(run.requests.in_flight_ns) / float(run.window_ns.max(1)),
            round_trip_ms: float(run.requests.in_flight_ns) / returned / 1e6,
            request_bytes: bytes / returned,
        })
    }

    /// The processes under test.
    fn system(&self) -> impl Iterator<Item = &ProcessEvidence> {
        self.evidence.processes.iter().filter(|it| it.role != GENERATOR_ROLE)
    }

    fn generator(&self) -> impl Iterator<Item = &ThreadEvidence> {
        let processes = self.evidence.processes.iter().filter(|it| it.role == GENERATOR_ROLE);
        processes.flat_map(|process| &process.threads)
    }

    /// The process in which something is worst, and how much it is there.
    fn worst(&self, of: impl Fn(&ProcessEvidence) -> f64) -> Option<(&ProcessEvidence, f64)> {
        let all = self.system().map(|process| (process, of(process)));
        all.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    fn brokers(&self) -> usize {
        self.system().filter(|process| process.role == "broker").count()
    }

    fn has_front(&self) -> bool {
        self.system().any(|process| process.role == "proxy")
    }

    /// What stops or slows a process as a whole: these explain a rate as they do a latency.
    fn outages(&self, about: About) -> Vec<Finding> {
        // What a process does in a share of the time takes as much longer.
        let freed = |share: f64| match about {
            About::Rate => (1.0 / (1.0 - share)).min(GAIN_MAX),
            About::Latency => (1.0 - share).max(1.0 / GAIN_MAX),
        };
        let stopped = self.worst(|process| process.stopped_share).map(|(process, share)| Finding {
            cause: Cause::Stopped,
            share,
            says: format!("{} was stopped by signals {} of the time", process.role, percent(share)),
            change: Change::Continue,
            expected: freed(share),
        });
        let throttled = self.worst(|it| it.throttled_share).map(|(process, share)| Finding {
            cause: Cause::Throttled,
            share,
            says: format!(
                "{} used up the processor time of its control group in {} of all periods",
                process.role,
                percent(share)
            ),
            change: Change::DoubleQuota,
            expected: freed(share * 0.5),
        });
        [stopped, throttled].into_iter().flatten().filter(|it| it.share >= SHARE_MIN).collect()
    }
}

/// What taking a limit away may promise at most: the next limit is not far.
const GAIN_MAX: f64 = 2.0;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests;
