//! What does a number of partitions cost, and where does a system end?
//!
//! Parts: throughput and latency over the number of partitions of one topic at the same batch
//! size; making partitions at once, in increments and as topics; a kill and a start with data;
//! moving partitions between brokers. Every point starts its system over an empty directory. A
//! system that fails is a result: the point says how it failed and at which limit, larger points
//! of the same system are left out, and the others go on.
//!
//! | module | what it holds |
//! |---|---|
//! | `subject` | a system under test: started, looked at, killed, diagnosed |
//! | `operator` | topics made, grown, probed and moved through the client |
//! | `wall` | which limit a failure ran into |
//! | `curve`, `creation`, `restart`, `reassignment` | the parts |

mod creation;
mod curve;
mod operator;
mod page;
mod reassignment;

mod restart;
mod subject;
mod wall;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bench::Bench;
use super::side_by_side::System;
use super::{Conditions, Progress};
use crate::checks;
use crate::partitions::{ArmLimits, Creation, Failure, How, Omitted, Part, PartitionsRecord};
use crate::result::{Experiment, RunResult};
use moldau_load::generator::Layout;
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;
use moldau_measure::resources::Limits;
use operator::Trouble;
use subject::Subject;

pub use page::page;

/// Partitions of a topic that runs write to at most, evenly spread over it.
pub const WRITTEN_MAX: u16 = 10_000;

/// Largest number of partitions of a plan: what signed 32 bits of the protocol leave room for is
/// far more, and a million is what the answers of clients are sized for.
pub const PARTITIONS_MAX: u32 = 1_000_000;

/// Partitions that a topic is grown by when its system refuses to make all at once.
const INCREMENT_AFTER_REFUSAL: u32 = 5_000;

/// Everything that an experiment needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The systems; the first is the baseline.
    pub systems: Vec<System>,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// How long one administrative call may take, and the wait for what it began.
    pub call_limit: Duration,
    /// How long the reading back of one point may take, beside ten seconds a gigabyte.
    pub read_limit: Duration,
    /// Throughput and latency over the number of partitions.
    pub curve: Option<CurvePlan>,
    /// Making partitions.
    pub creation: Option<CreationPlan>,
    /// Killing and starting again.
    pub restart: Option<RestartPlan>,
    /// Moving partitions.
    pub reassignment: Option<ReassignmentPlan>,
}

/// Plan of the curve.
#[derive(Clone, Debug)]
pub struct CurvePlan {
    /// Numbers of partitions, rising.
    pub partitions: Vec<u32>,
    /// Records per second of the fixed rate.
    pub per_second: u64,
    /// Size of a record, bytes.
    pub record_bytes: usize,
    /// Bytes of record values in a batch.
    pub batch_bytes: usize,
    /// Bytes of record values that each partition gets before the throughput is measured.
    pub filling_bytes: u64,
    /// Warming up at full speed, ms.
    pub warmup_ms: u64,
    /// Window at full speed, ms.
    pub full_speed_ms: u64,
    /// Window at the fixed rate, ms.
    pub fixed_rate_ms: u64,
    /// How long an idle broker is watched, ms.
    pub idle_ms: u64,
    /// Whether a topic that is refused at once is grown instead.
    pub grows_when_refused: bool,
}

/// Plan of the making of partitions.
#[derive(Clone, Debug)]
pub struct CreationPlan {
    /// Partitions of topics that are made at once, rising.
    pub at_once: Vec<u32>,
    /// Partitions that one topic grows by.
    pub increment: u32,
    /// Partitions that it grows to.
    pub grown_to: u32,
    /// Topics of one partition.
    pub topics: u32,
    /// Those of one request.
    pub topics_per_request: u32,
    /// Time of the growing, and of the topics, per system.
    pub limit: Duration,
}

/// Plan of kills and starts.
#[derive(Clone, Debug)]
pub struct RestartPlan {
    /// Partitions of the topic and bytes of record values in it, rising.
    pub points: Vec<(u32, u64)>,
    /// How long a start may take.
    pub limit: Duration,
}

/// Plan of the moving of partitions.
#[derive(Clone, Copy, Debug)]
pub struct ReassignmentPlan {
    /// Partitions to move.
    pub partitions: u32,
    /// Those of one request.
    pub per_request: u32,
    /// Brokers of a cluster that the laboratory starts itself.
    pub brokers: u16,
    /// How long the moving may take.
    pub limit: Duration,
}

impl Plan {
    /// The short form takes some seven minutes for two systems, the long form up to 45.
    #[must_use]
    pub fn usual(systems: Vec<System>, conditions: Conditions) -> Self {
        let short = Self::short(systems, conditions);
        if short.conditions.quick { short } else { short.longer() }
    }

    fn short(systems: Vec<System>, conditions: Conditions) -> Self {
        Self {
            systems,
            conditions,
            call_limit: Duration::from_secs(40),
            read_limit: Duration::from_secs(20),
            curve: Some(CurvePlan {
                partitions: vec![1, 10, 1_000, 10_000, 1_000_000],
                per_second: 20 * 1024,
                record_bytes: 1024,
                batch_bytes: 16 * 1024,
                filling_bytes: 128 * 1024,
                warmup_ms: 500,
                full_speed_ms: 2_500,
                fixed_rate_ms: 3_000,
                idle_ms: 1_500,
                grows_when_refused: false,
            }),
            creation: Some(CreationPlan {
                at_once: vec![1, 1_000, 10_000, 1_000_000],
                increment: 1_000,
                grown_to: 100_000,
                topics: 1_000,
                topics_per_request: 100,
                limit: Duration::from_secs(15),
            }),
            restart: Some(RestartPlan {
                points: vec![(1_000, 256 << 20), (1_000_000, 1 << 30)],
                limit: Duration::from_secs(40),
            }),
            reassignment: Some(ReassignmentPlan {
                partitions: 500,
                per_request: 250,
                brokers: 3,
                limit: Duration::from_secs(30),
            }),
        }
    }

    fn longer(self) -> Self {
        let decades = vec![1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];
        Self {
            call_limit: Duration::from_mins(2),
            read_limit: Duration::from_mins(2),
            curve: self.curve.map(|curve| CurvePlan {
                partitions: decades.clone(),
                warmup_ms: 5_000,
                full_speed_ms: 8_000,
                fixed_rate_ms: 10_000,
                idle_ms: 5_000,
                grows_when_refused: true,
                ..curve
            }),
            creation: self.creation.map(|creation| CreationPlan {
                at_once: decades,
                topics: 10_000,
                limit: Duration::from_mins(3),
                ..creation
            }),
            restart: Some(RestartPlan {
                points: vec![(1_000, 1 << 30), (10_000, 4 << 30), (1_000_000, 10 << 30)],
                limit: Duration::from_mins(3),
            }),
            reassignment: Some(ReassignmentPlan {
                partitions: 10_000,
                per_request: 1_000,
                brokers: 3,
                limit: Duration::from_mins(5),
            }),
            ..self
        }
    }

    fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        if self.systems.is_empty() {
            return refuse("at least one system");
        }
        let curve = self.curve.iter().flat_map(|curve| &curve.partitions);
        let at_once = self.creation.iter().flat_map(|creation| &creation.at_once);
        let restart = self.restart.iter().flat_map(|restart| &restart.points);
        let mut counts = curve.chain(at_once).chain(restart.map(|(partitions, _)| partitions));
        if counts.any(|count| !(1..=PARTITIONS_MAX).contains(count)) {
            return refuse("topics have between 1 and 1,000,000 partitions");
        }
        if let Some(creation) = &self.creation
            && (creation.increment == 0 || creation.topics_per_request == 0)
        {
            return refuse("a step adds at least one partition or topic");
        }
        if self.reassignment.is_some_and(|plan| plan.per_request == 0 || plan.brokers == 0) {
            return refuse("a reassignment needs brokers, and partitions in a request");
        }
        let Some(curve) = &self.curve else { return Ok(()) };
        self.full_speed(curve, 1).check().and_then(|()| self.fixed_rate(curve, 1).check())
    }

    /// One record to each partition, evenly over a second, before anything else: what a broker does
    /// only once for a partition must not stand in the figures of those that follow.
    fn first_writes(&self, curve: &CurvePlan, written: u16) -> Workload {
        let pace = Pace::Scheduled { per_second: written.into(), arrivals: Arrivals::Constant };
        let batch_bytes = curve.record_bytes;
        let (warmup_ms, window_ms) = (0, 1_000);
        let workload = self.full_speed(curve, written);
        Workload { pace, batch_bytes, warmup_ms, window_ms, ..workload }
    }

    /// What is produced at full speed.
    fn full_speed(&self, curve: &CurvePlan, written: u16) -> Workload {
        Workload {
            pace: Pace::Unpaced,
            record_bytes: curve.record_bytes,
            filler: Filler::Text,
            partitions: written,
            producers: 1,
            batch_bytes: curve.batch_bytes,
            // The generator ends each batch itself; this only keeps the last one from waiting.
            linger_us: 1_000_000,
            consume: false,
            tails: 0,
            warmup_ms: curve.warmup_ms,
            window_ms: curve.full_speed_ms,
            tuning: Tuning::default(),
        }
    }

    /// What is produced at the fixed rate.
    fn fixed_rate(&self, curve: &CurvePlan, written: u16) -> Workload {
        let pace = Pace::Scheduled { per_second: curve.per_second, arrivals: Arrivals::Constant };
        let (warmup_ms, window_ms) = (curve.warmup_ms.min(1_000), curve.fixed_rate_ms);
        Workload { pace, warmup_ms, window_ms, ..self.full_speed(curve, written) }
    }

    /// Seconds that the whole plan is expected to take; the unit of its progress.
    fn seconds(&self) -> u32 {
        let systems = u32::try_from(self.systems.len()).unwrap_or(u32::MAX);
        let curve =
            self.curve.as_ref().map_or(0, |curve| curve.seconds() * count(&curve.partitions));
        let creation = self.creation.as_ref().map_or(0, CreationPlan::seconds);
        let restart = self.restart.as_ref().map_or(0, |restart| {
            restart.points.iter().map(|point| RestartPlan::seconds(*point)).sum()
        });
        let reassignment = self.reassignment.map_or(0, ReassignmentPlan::seconds);
        systems.saturating_mul(curve + creation + restart + reassignment)
    }
}

fn count<T>(list: &[T]) -> u32 {
    u32::try_from(list.len()).unwrap_or(u32::MAX)
}

fn whole_seconds(ms: u64) -> u32 {
    u32::try_from(ms.div_ceil(1_000)).unwrap_or(u32::MAX)
}

impl CurvePlan {
    /// Seconds of one point: the load, its reading back, and starting and making the topic.
    fn seconds(&self) -> u32 {
        /// Starting, making the topic, filling it, reading back.
        const AROUND: u32 = 9;
        let load = 1_000 + self.warmup_ms + self.full_speed_ms + self.fixed_rate_ms + self.idle_ms;
        AROUND + whole_seconds(load)
    }
}

impl CreationPlan {
    fn seconds(&self) -> u32 {
        /// A system may be done before the limit, and most are with the topics.
        const AT_ONCE: u32 = 3;
        let limit = whole_seconds(u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX));
        AT_ONCE * count(&self.at_once) + limit + limit / 3
    }
}

impl RestartPlan {
    fn seconds((_, bytes): (u32, u64)) -> u32 {
        /// Writing at some 150 MB/s and reading back at some 500 MB/s.
        const BYTES_PER_SECOND: u64 = 100 << 20;
        10 + u32::try_from(bytes / BYTES_PER_SECOND).unwrap_or(u32::MAX)
    }
}

impl ReassignmentPlan {
    fn seconds(self) -> u32 {
        10 + whole_seconds(u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX)) / 2
    }
}

/// How many partitions of a topic a run writes to, and their distance.
fn spread(partitions: u32) -> (u16, Layout) {
    let written = u16::try_from(partitions).unwrap_or(WRITTEN_MAX).min(WRITTEN_MAX);
    (written, Layout::Spread { stride: partitions / u32::from(written.max(1)) })
}

/// Runs the experiment.
///
/// # Errors
/// [`Error::Plan`] for an impossible plan; otherwise when a system does not even start empty, or
/// the machine fails the laboratory. A system that fails under its load is a result.
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    plan.check()?;
    let mut bench = Bench::new(&plan.conditions, plan.seconds(), progress);
    let mut record = PartitionsRecord::default();
    if let Some(curve) = &plan.curve {
        curve::run(plan, curve, &mut bench, &mut record)?;
    }
    if let Some(creation) = &plan.creation {
        creation::run(plan, creation, &mut bench, &mut record)?;
    }
    if let Some(restart) = &plan.restart {
        restart::run(plan, restart, &mut bench, &mut record)?;
    }
    if let Some(reassignment) = plan.reassignment {
        reassignment::run(plan, reassignment, &mut bench, &mut record)?;
    }
    let arms = plan.systems.iter().map(System::arm).collect();
    let mut result = bench.finish(Experiment::Partitions, arms, checks::of_limits)?;
    // One run of each case and system: there are no pairs to compare.
    result.comparisons.clear();
    result.partitions = Some(record);
    Ok(result)
}

/// Announces a step of `seconds` with what is left of the whole.
fn announce(bench: &mut Bench<'_>, what: &str, seconds: u32) {
    let (share, elapsed) = bench.pace();
    // Before a tenth is done, the plan's own seconds are the better guess.
    let left = if share > 0.1 { elapsed.mul_f64((1.0 - share) / share).as_secs() } else { 0 };
    let text = match left {
        0 => what.to_string(),
        1..=90 => format!("{what}; about {left} s left"),
        _ => format!("{what}; about {} min left", left.div_ceil(60)),
    };
    bench.weighted_step(&text, seconds);
}

/// How a system failed in a part, if it did.
type OfFailure<T> = fn(&T) -> Option<&Failure>;

/// What `measure` finds on a system that is started for it, or what an earlier sitting found under
/// the same name. Notes the limits of the system, the first time.
fn on_a_system<T: Serialize + DeserializeOwned>(
    system: &System,
    plan: &Plan,
    bench: &mut Bench<'_>,
    record: &mut PartitionsRecord,
    name: &str,
    failure: OfFailure<T>,
    measure: impl FnOnce(&mut Bench<'_>, &mut Subject) -> Result<T, Error>,
) -> Result<T, Error> {
    let is_kept = |(_, found): &(Option<Limits>, T)| is_final(failure(found));
    let (limits, found) = bench.once_if(name, is_kept, |bench| {
        let mut subject = Subject::start(system, plan)?;
        let limits = subject.is_ours().then_some(subject.limits);
        let found = measure(bench, &mut subject)?;
        subject.remove()?;
        Ok((limits, found))
    })?;
    let arm = system.name();
    if let Some(limits) = limits
        && record.limits.iter().all(|known| known.arm != arm)
    {
        record.limits.push(ArmLimits { arm: arm.to_string(), limits });
    }
    Ok(found)
}

/// Whether a later sitting need not try again: a system that did not answer may have been ended
/// together with the laboratory.
fn is_final(failure: Option<&Failure>) -> bool {
    failure.is_none_or(|failure| matches!(failure.how, How::Refused { .. }))
}

/// Makes a topic at once, or by growing it where that is refused and the plan says so.
fn make_topic(
    subject: &mut Subject,
    topic: &str,
    partitions: u32,
    grows_when_refused: bool,
) -> Result<Creation, Trouble> {
    let refusal = match subject.operate(|operator, alive| operator.create(topic, partitions, alive))
    {
        Err(Trouble::Client(error)) if error.code().is_some() && grows_when_refused => error,
        other => return other,
    };
    tracing::debug!(%refusal, partitions, "a topic is grown instead");
    let mut total = INCREMENT_AFTER_REFUSAL.min(partitions);
    let mut made = subject.operate(|operator, alive| operator.create(topic, total, alive))?;
    while total < partitions {
        // What the broker holds before it fails names the wall afterwards.
        subject.look();
        total = (total + INCREMENT_AFTER_REFUSAL).min(partitions);
        let step = subject.operate(|operator, alive| operator.grow(topic, total, alive))?;
        made.answered_ns += step.answered_ns;
        made.usable_ns += step.usable_ns;
        made.requests += 1;
    }
    Ok(made)
}

/// Notes that a part was left out.
fn omit(record: &mut PartitionsRecord, arm: &str, part: Part, reason: &str) {
    let (arm, reason) = (arm.to_string(), reason.to_string());
    record.omitted.push(Omitted { arm, part, reason });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plans() -> [Plan; 2] {
        let systems = || {
            ["a", "b"].map(|name| System::External { name: name.into(), bootstrap: String::new() })
        };
        [true, false].map(|quick| {
            let conditions = Conditions { quick, ..Conditions::of_tests() };
            Plan::usual(systems().to_vec(), conditions)
        })
    }

    #[test]
    fn written_partitions_are_spread_over_the_whole_topic() {
        assert_eq!(spread(1), (1, Layout::Spread { stride: 1 }));
        assert_eq!(spread(9_999), (9_999, Layout::Spread { stride: 1 }));
        assert_eq!(spread(10_000), (10_000, Layout::Spread { stride: 1 }));
        assert_eq!(spread(65_536), (10_000, Layout::Spread { stride: 6 }));
        assert_eq!(spread(1_000_000), (10_000, Layout::Spread { stride: 100 }));
    }

    #[test]
    fn the_plans_are_possible_and_keep_their_promised_length() {
        let [quick, full] = plans();
        quick.check().unwrap();
        full.check().unwrap();
        assert!(quick.seconds() <= 6 * 60, "{} s", quick.seconds());
        assert!(full.seconds() <= 45 * 60, "{} s", full.seconds());
    }

    #[test]
    fn a_failure_without_an_answer_is_tried_again() {
        let failed = |how| Failure { during: String::new(), how, words: String::new(), wall: None };
        assert!(is_final(None));
        assert!(is_final(Some(&failed(How::Refused { code: "POLICY_VIOLATION".into() }))));
        assert!(!is_final(Some(&failed(How::TimedOut))));
    }

    #[test]
    fn impossible_plans_are_refused() {
        let [plan, _] = plans();
        let curve = plan.curve.clone().unwrap();
        let creation = plan.creation.clone().unwrap();
        let broken = [
            Plan { systems: Vec::new(), ..plan.clone() },
            Plan {
                curve: Some(CurvePlan { partitions: vec![0], ..curve.clone() }),
                ..plan.clone()
            },
            Plan { curve: Some(CurvePlan { record_bytes: 8, ..curve }), ..plan.clone() },
            Plan { creation: Some(CreationPlan { increment: 0, ..creation }), ..plan.clone() },
            Plan {
                restart: Some(RestartPlan {
                    points: vec![(2_000_000, 1)],
                    limit: Duration::from_secs(1),
                }),
                ..plan
            },
        ];
        for plan in broken {
            assert!(plan.check().is_err(), "{plan:?}");
        }
    }
}
