//! What limits a run: which resource binds, the figures that speak for it, and the experiment that
//! would show it to be wrong.
//!
//! Whatever binds makes queues before it, so that many resources look busy at once. Findings
//! therefore come in an order in which each would explain those behind it, and none is believed
//! for its evidence alone: each names a change of the load or the system, and by how much the
//! figure must move if it is right. Who runs the change asks [`Trial::of`] what came of it.

use serde::{Deserialize, Serialize};

use crate::punctuality::{is_saturated, is_scheduled};
use moldau_load::run::RunRecord;
use moldau_load::workload::{BYTES_PER_MB, Pace};
use moldau_measure::cpu::TICK_NS;
use moldau_measure::numbers::digits;
use moldau_measure::statistics::{Interval, float, log_ratios, paired_effect};

/// What is to be explained of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Why it is not faster: records per second.
    Rate,
    /// The parts of its latency: the median from the intended time to delivery, or to the
    /// acknowledgement without consumers.
    Latency,
}

/// What may limit a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing: it takes all that it is offered.
    Offered,
    /// The processes of the run have all processors.
    Processors,
    /// A thread of the system or of the generator.
    Thread,
    /// The requests or records that may be on their way, by the time that each takes.
    Window,
    /// Flushes to the disk.
    Flush,
    /// The wait of a batch for more records.
    Linger,
    /// One that earlier versions looked for.
    #[serde(untagged)]
    Other(String),
}

impl Cause {
    /// What it is called.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Offered => "the offered rate".into(),
            Self::Processors => "all processors".into(),
            Self::Thread => "one thread".into(),
            Self::Window => "the window of requests in flight".into(),
            Self::Flush => "flushes to the disk".into(),
            Self::Linger => "the linger of batches".into(),
            Self::Other(name) => name.replace('_', " "),
        }
    }
}

/// A change that moves the figure if a finding is right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Twice the records per second are offered.
    DoubleRate,
    /// Twice the records are on their way.
    DoubleOutstanding,
    /// Twice the requests may be on their way.
    DoubleInFlight,
    /// There are twice the producers.
    DoubleProducers,
    /// Batches do not wait.
    NoLinger,
    /// The system does not wait for flushes.
    NoFlush,
    /// So many more processes want a processor.
    BusyProcesses(u16),
    /// One that earlier versions made.
    #[serde(untagged)]
    Other(String),
}

impl Change {
    /// What the arm with the change is called.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::DoubleRate => "twice the rate".into(),
            Self::DoubleOutstanding => "twice the records on their way".into(),
            Self::DoubleInFlight => "twice the requests in flight".into(),
            Self::DoubleProducers => "twice the producers".into(),
            Self::NoLinger => "no linger".into(),
            Self::NoFlush => "answers before the flush".into(),
            Self::BusyProcesses(count) => format!("{count} more busy processes"),
            Self::Other(name) => name.replace('_', " "),
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
    /// The figure varies too much to decide; the factor by which it moved.
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

/// Share of the time from which on a thread counts as busy throughout: what is left is what the
/// kernel takes for it.
const BUSY_SHARE_MIN: f64 = 0.8;

/// Share of the machine that processes take which have all of it.
const MACHINE_SHARE_MIN: f64 = 0.92;

/// Share of what may be on its way that is, from which on it binds.
const WINDOW_SHARE_MIN: f64 = 0.75;

/// Share of the latency below which nothing is worth an experiment.
const SHARE_MIN: f64 = 0.15;

/// What taking a limit away may promise at most: the next limit is not far.
const GAIN_MAX: f64 = 2.0;

/// What is left of a latency at least, as a share, when a part of it is taken away.
const REST_MIN: f64 = 0.02;

/// Assumed share of the flush in a round trip, where the broker does not report flush times.
const FLUSH_OF_ROUND_TRIP: f64 = 0.5;

/// Busy processes that are added at most: more of them stop the machine and show no more.
const BUSY_PROCESSES_MAX: u16 = 64;

/// The findings of a run, the likeliest first; none if its figure is unknown. `flush_ms` is the
/// mean time of a flush, if the broker reports it.
#[must_use]
pub fn of(run: &RunRecord, about: About, flush_ms: Option<f64>) -> Vec<Finding> {
    let Some(facts) = Facts::of(run, about) else { return Vec::new() };
    match about {
        About::Rate if is_scheduled(run) && !is_saturated(run) => vec![facts.offered()],
        // A client without a processor fills its window, and so does one that waits for a busy
        // thread.
        About::Rate => {
            let found = [facts.processors(), facts.thread(), facts.window()];
            found.into_iter().flatten().collect()
        }
        About::Latency => facts.waits(flush_ms),
    }
}

/// The default question about a run: its rate if it runs at full speed or cannot keep up, its
/// latency if it keeps up with a rate.
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
    figure: f64,
    /// Requests on their way, on average.
    in_flight: f64,
    /// Mean time of one, ms.
    round_trip_ms: f64,
    /// Mean size of one in bytes of record values.
    request_bytes: f64,
    /// Processors of the machine, and those that the processes of the run had, on average.
    processors: f64,
    own_processors: f64,
}

impl<'a> Facts<'a> {
    fn of(run: &'a RunRecord, about: About) -> Option<Self> {
        let window = float(run.window_ns.max(1));
        let returned = float(run.requests.returned.max(1));
        let in_flight_ns = float(run.requests.in_flight_ns);
        let own_ns = run.processes.iter().map(|usage| float(usage.cpu_ns)).sum::<f64>();
        Some(Self {
            run,
            figure: figure(run, about)?,
            in_flight: in_flight_ns / window,
            round_trip_ms: in_flight_ns / returned / 1e6,
            request_bytes: float(run.produced_records) * run.record_bytes() / returned,
            processors: (float(run.host.ticks()) * TICK_NS / window).round().max(1.0),
            own_processors: own_ns / window,
        })
    }

    fn offered(&self) -> Finding {
        Finding {
            cause: Cause::Offered,
            share: 1.0,
            says: format!(
                "{} records/s came and {} were offered",
                digits(self.figure),
                digits(float(self.run.offered) / (float(self.run.window_ns) / 1e9))
            ),
            change: Change::DoubleRate,
            expected: 2.0,
        }
    }

    fn processors(&self) -> Option<Finding> {
        let (all, share) = (self.processors, self.own_processors / self.processors);
        let count = (1..=BUSY_PROCESSES_MAX).rev().find(|count| f64::from(*count) <= all);
        (share >= MACHINE_SHARE_MIN).then(|| Finding {
            cause: Cause::Processors,
            share: share.min(1.0),
            says: format!("the processes of the run took {} of {all} processors", percent(share)),
            // As many as there are take half of them.
            change: Change::BusyProcesses(count.unwrap_or(1)),
            expected: 0.5,
        })
    }

    fn thread(&self) -> Option<Finding> {
        let usage = self.run.processes.iter().max_by_key(|usage| usage.busiest_thread_ns)?;
        let share = float(usage.busiest_thread_ns) / float(self.run.window_ns.max(1));
        let name = match usage.busiest_thread.as_str() {
            "" => "busiest thread".into(),
            name => format!("thread {name}"),
        };
        (share >= BUSY_SHARE_MIN).then(|| Finding {
            cause: Cause::Thread,
            share: share.min(1.0),
            says: format!(
                "the {name} of the {} was busy {} of the time",
                usage.role,
                percent(share)
            ),
            change: Change::DoubleProducers,
            // As far as there are processors for another thread.
            expected: (self.processors / self.own_processors.max(0.1)).clamp(1.1, GAIN_MAX),
        })
    }

    /// What is left when no processor is busy: answers are waited for.
    fn window(&self) -> Option<Finding> {
        if let Pace::Closed { outstanding } = self.run.workload.pace {
            let ms = float(self.run.latency.as_ref()?.service.summary.p50_ns) / 1e6;
            let allowed = f64::from(outstanding) / ms * 1e3;
            let plural = if outstanding == 1 { "" } else { "s" };
            return Some(Finding {
                cause: Cause::Window,
                share: (self.figure / allowed).min(1.0),
                says: format!(
                    "{outstanding} record{plural} on the way and {} ms for each allow {} \
                     records/s; measured {}",
                    digits(ms),
                    digits(allowed),
                    digits(self.figure)
                ),
                change: Change::DoubleOutstanding,
                expected: 2.0,
            });
        }
        let max = self.run.requests.in_flight_max;
        let share = self.in_flight / float(max.max(1));
        let allowed = float(max) * self.request_bytes / (self.round_trip_ms / 1e3);
        let measured = self.figure * self.run.record_bytes();
        (share >= WINDOW_SHARE_MIN && self.round_trip_ms > 0.0).then(|| Finding {
            cause: Cause::Window,
            share: share.min(1.0),
            says: format!(
                "{max} requests of {} KB on their way and {} ms for each round trip allow {} \
                 MB/s; measured {}",
                digits(self.request_bytes / 1024.0),
                digits(self.round_trip_ms),
                digits(allowed / BYTES_PER_MB),
                digits(measured / BYTES_PER_MB)
            ),
            change: Change::DoubleInFlight,
            expected: 2.0,
        })
    }

    /// The waits that a median latency is made of, the longest first.
    fn waits(&self, flush_ms: Option<f64>) -> Vec<Finding> {
        let Some(latency) = &self.run.latency else { return Vec::new() };
        let linger_ms = float(self.run.workload.linger_us) / 1e3;
        let service_ms = float(latency.service.summary.p50_ns) / 1e6;
        let lingered_ms = (service_ms - self.round_trip_ms).clamp(0.0, linger_ms);
        let words = format!("records wait in batches that linger for {} ms", digits(linger_ms));
        let linger = self.wait(Cause::Linger, lingered_ms, 1.0, &words, Change::NoLinger);
        let (ms, taken) = match flush_ms {
            Some(ms) => (ms.min(self.round_trip_ms), 1.0),
            None => (self.round_trip_ms, FLUSH_OF_ROUND_TRIP),
        };
        let words = "requests wait for the broker, and a flush to the disk there";
        let flush = self.wait(Cause::Flush, ms, taken, words, Change::NoFlush);
        let mut found: Vec<Finding> = [linger, flush].into_iter().flatten().collect();
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        found
    }

    /// A wait, and the share of it that a change removes.
    fn wait(
        &self,
        cause: Cause,
        ms: f64,
        taken: f64,
        words: &str,
        change: Change,
    ) -> Option<Finding> {
        let share = (ms / self.figure).min(1.0);
        let whole = digits(self.figure);
        let says = format!("{words}: {} of {whole} ms, {}", digits(ms), percent(share));
        let expected = (1.0 - share * taken).max(REST_MIN);
        (share >= SHARE_MIN).then_some(Finding { cause, share, says, change, expected })
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests;
