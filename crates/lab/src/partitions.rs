//! What the partition experiment found, as the result document holds it.
//!
//! Figures of produce runs (throughput, latencies, processor time) are those of the document's
//! `runs`, under the cases that [`full_speed_case`] and [`fixed_rate_case`] name.

use serde::{Deserialize, Serialize};

use moldau_load::ledger::Audit;
use moldau_measure::resources::{Limits, Resources};

/// Name of the case of producing at full speed to a topic of `partitions`.
#[must_use]
pub fn full_speed_case(partitions: u32) -> String {
    format!("Full speed, {partitions} partitions")
}

/// Name of the case of producing at a fixed rate to a topic of `partitions`.
#[must_use]
pub fn fixed_rate_case(partitions: u32) -> String {
    format!("Fixed rate, {partitions} partitions")
}

/// Everything of the experiment that is not a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartitionsRecord {
    /// What the processes of each arm may use at most; empty for clusters of others.
    pub limits: Vec<ArmLimits>,
    /// Throughput, latency and cost over the number of partitions.
    pub curve: Vec<CurvePoint>,
    /// One topic of so many partitions, made by one request.
    pub at_once: Vec<Created>,
    /// One topic that grows.
    pub grown: Vec<Growth>,
    /// Topics of one partition each, several per request.
    pub topics: Vec<Growth>,
    /// Killed with data and started again.
    pub restarts: Vec<Restart>,
    /// Partitions moved between brokers.
    pub reassignments: Vec<Reassignment>,
    /// What was not done, and why.
    pub omitted: Vec<Omitted>,
}

/// The limits of one arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArmLimits {
    /// Name of the arm.
    pub arm: String,
    /// Its limits.
    pub limits: Limits,
}

/// One system with one topic of so many partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// Name of the arm.
    pub arm: String,
    /// Partitions of the topic.
    pub partitions: u32,
    /// Those of them that were written to, evenly spread.
    pub written: u16,
    /// How long the making of the topic took.
    pub creation: Option<Creation>,
    /// The broker with the topic, before anything was written.
    pub fresh: Option<Resources>,
    /// The broker at the end of the load.
    pub loaded: Option<Resources>,
    /// The broker once it had come to rest.
    pub idle: Option<Resources>,
    /// Processor time that it took then.
    pub idle_cpu: Option<IdleCpu>,
    /// From the intended time of the first batch of a partition to its acknowledgement, the slowest
    /// partition, ns; absent in documents that do not have it.
    #[serde(default)]
    pub first_write_ns: Option<u64>,
    /// What was written before the throughput was measured, until every partition had its share;
    /// absent in documents that do not have it.
    #[serde(default)]
    pub filling: Option<Filling>,
    /// What the generator sent at full speed.
    pub full_speed: Option<Batching>,
    /// What the generator sent at the fixed rate.
    pub fixed_rate: Option<Batching>,
    /// Whether the generator itself was late at the fixed rate, so that its latencies are none.
    pub is_late: bool,
    /// Whether operations of the fixed rate stayed without an answer or were never offered.
    pub is_unsustained: bool,
    /// Size of the data directory after the load.
    pub disk_bytes: Option<u64>,
    /// What ended it, if it did not come to its end.
    pub failure: Option<Failure>,
}

/// How long a topic took to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Creation {
    /// Until the request (or the last of them) was answered, ns.
    pub answered_ns: u64,
    /// Until evenly spread partitions answered ListOffsets, from the same start, ns.
    pub usable_ns: u64,
    /// Requests that it took; 1 unless the system refused all partitions at once.
    pub requests: u32,
}

/// The first bytes of all partitions, as fast as the system acknowledged them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filling {
    /// Bytes of record values that were acknowledged.
    pub bytes: u64,
    /// How long that took, ns.
    pub took_ns: u64,
}

/// Processor time of an idle broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdleCpu {
    /// Processor time, ns.
    pub cpu_ns: u64,
    /// Length of the window, ns.
    pub window_ns: u64,
    /// From the end of the load to the window, ns; 0 in documents that do not have it.
    #[serde(default)]
    pub after_ns: u64,
}

/// What a run sent in all, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// Records acknowledged.
    pub records: u64,
    /// Batches acknowledged.
    pub batches: u64,
    /// Produce requests made.
    pub requests: u64,
    /// Bytes of record values.
    pub bytes: u64,
}

/// A topic made at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Created {
    /// Name of the arm.
    pub arm: String,
    /// Partitions of the topic.
    pub partitions: u32,
    /// How long it took; absent where it failed.
    pub creation: Option<Creation>,
    /// The broker afterwards.
    pub after: Option<Resources>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// Something that is made step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// Name of the arm.
    pub arm: String,
    /// Partitions or topics that a step adds.
    pub step: u32,
    /// What was intended in all.
    pub intended: u32,
    /// The steps in their order.
    pub steps: Vec<GrowthStep>,
    /// The broker after the last step that succeeded.
    pub after: Option<Resources>,
    /// Whether the time was up before all steps were made.
    pub time_was_up: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// One step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrowthStep {
    /// Partitions or topics after the step.
    pub total: u32,
    /// Until the request was answered, ns.
    pub answered_ns: u64,
    /// Until what was added is usable, ns.
    pub usable_ns: u64,
}

/// A kill and a start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    /// Name of the arm.
    pub arm: String,
    /// Partitions of the topic.
    pub partitions: u32,
    /// Those of them that were written to.
    pub written: u16,
    /// Bytes of acknowledged record values.
    pub bytes: u64,
    /// From the start of the process until its port is open, ns.
    pub port_ns: Option<u64>,
    /// Until a record for another topic, of one partition, is acknowledged, ns.
    pub produced_ns: Option<u64>,
    /// How long a client that knows nothing takes, after the reading of the data, until a record
    /// for the large topic is acknowledged, ns.
    pub produced_large_ns: Option<u64>,
    /// The broker before it was killed.
    pub before: Option<Resources>,
    /// The broker after the first record.
    pub after: Option<Resources>,
    /// Every record that was acknowledged before the kill.
    pub audit: Option<Audit>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// A move of all partitions of a topic to the next broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reassignment {
    /// Name of the arm.
    pub arm: String,
    /// Brokers of the cluster.
    pub brokers: u32,
    /// Partitions that were moved.
    pub partitions: u32,
    /// Requests that it took.
    pub requests: u32,
    /// Until the last request was answered, ns.
    pub answered_ns: Option<u64>,
    /// Until no partition was being moved any more, ns.
    pub moved_ns: Option<u64>,
    /// Partitions that were still being moved when the time was up.
    pub left: u64,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// Something that was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Omitted {
    /// Name of the arm.
    pub arm: String,
    /// The part.
    pub part: Part,
    /// Why, in words.
    pub reason: String,
}

/// The parts of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Throughput and latency over the number of partitions.
    Curve,
    /// Making partitions.
    Creation,
    /// Killing and starting again.
    Restart,
    /// Moving partitions.
    Reassignment,
}

/// How a system failed. A failed point is a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// What was asked of it.
    pub during: String,
    /// The kind of its failure.
    pub how: How,
    /// Its own words, or those of the client.
    pub words: String,
    /// The limit that it ran into, where that is known.
    pub wall: Option<Wall>,
}

/// Kinds of failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It answered with an error code, by Kafka's name.
    Refused {
        /// The name.
        code: String,
    },
    /// It did not finish in time.
    TimedOut,
    /// Its process ended.
    Ended {
        /// Exit status in words.
        status: String,
    },
    /// It runs and cannot be talked to, or answers something else.
    Broken,
}

/// A limit that ended a system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wall {
    /// Which limit.
    pub limit: LimitKind,
    /// What was used of it when last looked at.
    pub used: Option<u64>,
    /// The limit itself.
    pub of: Option<u64>,
    /// What says so.
    pub evidence: String,
}

/// Limits that systems run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Open files of a process.
    Descriptors,
    /// Memory maps of a process, `vm.max_map_count`.
    Maps,
    /// The heap of a JVM.
    Heap,
    /// Threads.
    Threads,
    /// Records of one operation of a KRaft controller.
    ControllerBatch,
    /// Space on the disk.
    Disk,
}

impl LimitKind {
    /// What it is called in sentences.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Descriptors => "open file descriptors",
            Self::Maps => "memory maps (vm.max_map_count)",
            Self::Heap => "the JVM's heap",
            Self::Threads => "threads",
            Self::ControllerBatch => "the controller's limit of records in one operation",
            Self::Disk => "space on the disk",
        }
    }
}
