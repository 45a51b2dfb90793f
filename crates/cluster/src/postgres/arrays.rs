//! Arguments of statements: one array per column.

use uuid::Uuid;

use crate::sequencer::{BatchEntry, Extent, LogId, Marker, Part};

#[derive(Default)]
pub(super) struct LogArrays {
    pub(super) topics: Vec<Uuid>,
    pub(super) partitions: Vec<i32>,
}

impl LogArrays {
    pub(super) fn of(logs: impl Iterator<Item = LogId>) -> Self {
        let (topics, partitions) = logs.map(|log| (log.topic, log.partition)).unzip();
        Self { topics, partitions }
    }
}

pub(super) struct BatchArrays {
    pub(super) logs: LogArrays,
    pub(super) leader_epochs: Vec<i32>,
    pub(super) positions: Vec<i64>,
    pub(super) sizes: Vec<i32>,
    pub(super) counts: Vec<i32>,
    pub(super) timestamps: Vec<i64>,
    /// -1 for none, as in a batch.
    pub(super) producers: Vec<i64>,
    pub(super) producer_epochs: Vec<i16>,
    pub(super) first_sequences: Vec<i32>,
    pub(super) last_sequences: Vec<i32>,
    pub(super) parts: Vec<i16>,
    pub(super) decisions: Vec<i64>,
}

impl BatchArrays {
    pub(super) fn of(batches: &[BatchEntry]) -> Self {
        let producers = || batches.iter().map(|batch| batch.producer);
        Self {
            logs: LogArrays::of(batches.iter().map(|batch| batch.log)),
            leader_epochs: batches.iter().map(|batch| batch.leader_epoch).collect(),
            positions: batches.iter().map(|batch| batch.position).collect(),
            sizes: batches.iter().map(|batch| batch.size).collect(),
            counts: batches.iter().map(|batch| batch.offsets_count).collect(),
            timestamps: batches.iter().map(|batch| batch.max_timestamp).collect(),
            producers: producers().map(|sent| sent.map_or(-1, |sent| sent.id)).collect(),
            producer_epochs: producers().map(|sent| sent.map_or(-1, |sent| sent.epoch)).collect(),
            first_sequences: producers()
                .map(|sent| sent.map_or(-1, |sent| sent.first_sequence))
                .collect(),
            last_sequences: producers()
                .map(|sent| sent.map_or(-1, |sent| sent.last_sequence))
                .collect(),
            parts: batches.iter().map(|batch| part(batch.part).0).collect(),
            decisions: batches.iter().map(|batch| part(batch.part).1).collect(),
        }
    }
}

/// The number of the part, and the decision.
fn part(part: Part) -> (i16, i64) {
    match part {
        Part::Outside => (0, -1),
        Part::Inside => (1, -1),
        Part::Marker(Marker { commits: false, decision }) => (2, decision),
        Part::Marker(Marker { commits: true, decision }) => (3, decision),
    }
}

pub(super) struct ExtentArrays {
    pub(super) logs: LogArrays,
    pub(super) bases: Vec<i64>,
    pub(super) lasts: Vec<i64>,
    pub(super) objects: Vec<Uuid>,
    pub(super) positions: Vec<i64>,
    pub(super) sizes: Vec<i32>,
    pub(super) leader_epochs: Vec<i32>,
    pub(super) timestamps: Vec<i64>,
}

impl ExtentArrays {
    pub(super) fn of(extents: &[(LogId, Extent)]) -> Self {
        let each = || extents.iter().map(|(_, extent)| extent);
        Self {
            logs: LogArrays::of(extents.iter().map(|(log, _)| *log)),
            bases: each().map(|extent| extent.base_offset).collect(),
            lasts: each().map(|extent| extent.last_offset).collect(),
            objects: each().map(|extent| extent.object.0).collect(),
            positions: each().map(|extent| extent.position).collect(),
            sizes: each().map(|extent| extent.size).collect(),
            leader_epochs: each().map(|extent| extent.leader_epoch).collect(),
            timestamps: each().map(|extent| extent.max_timestamp).collect(),
        }
    }
}
