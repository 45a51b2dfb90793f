//! An anomaly with the operations that show it, without the steps that have nothing to do with it.

use serde::{Deserialize, Serialize};

use moldau_checker::{Action, Anomaly, Edge, History, Operation, Relation, Step};

/// Most operations of an example: a cycle may be long.
const OPERATIONS_MAX: usize = 8;

/// Most records of an operation that show the anomaly: a poll may have returned thousands.
const EVIDENCE_MAX: usize = 6;

/// Other records of an operation that are kept beside those.
const OTHERS_MAX: usize = 3;

/// One anomaly and its operations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// Its operations, as far as they show it.
    pub operations: Vec<Shown>,
}

/// One operation of an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shown {
    /// Its place in the history.
    pub place: usize,
    /// When its first step began, µs. Steps may be left out.
    pub from_us: u64,
    /// When its last step ended, or its client asked to commit it, µs.
    pub to_us: u64,
    /// Records sent and polled by it that are left out.
    pub left_out: u64,
    /// The operation with the steps and records that are kept.
    pub operation: Operation,
}

impl Example {
    /// The operations of an anomaly of this history.
    pub(super) fn of(history: &History, anomaly: &Anomaly) -> Self {
        let mut places = anomaly.operations.clone();
        places.sort_unstable();
        places.dedup();
        places.truncate(OPERATIONS_MAX);
        let shown = places
            .into_iter()
            .filter_map(|place| Some(Shown::of(place, history.operations.get(place)?, anomaly)));
        Self { anomaly: anomaly.clone(), operations: shown.collect() }
    }

    /// Whether a sent or polled record of an operation shows the anomaly.
    pub(crate) fn is_evidence(
        &self,
        place: usize,
        partition: u32,
        offset: Option<i64>,
        value: Option<u64>,
    ) -> bool {
        let operation = self.operations.iter().find(|shown| shown.place == place);
        operation.is_some_and(|shown| {
            Evidence::of(&self.anomaly, place, &shown.operation).has(partition, offset, value)
        })
    }
}

impl Shown {
    fn of(place: usize, operation: &Operation, anomaly: &Anomaly) -> Self {
        let evidence = Evidence::of(anomaly, place, operation);
        let mut room = Room { evidence: EVIDENCE_MAX, others: OTHERS_MAX, left_out: 0 };
        let steps = operation.steps.iter().filter_map(|step| room.kept(step, &evidence)).collect();
        let ends = operation.steps.iter().map(|step| step.to_us);
        Self {
            place,
            from_us: operation.steps.iter().map(|step| step.from_us).min().unwrap_or_default(),
            to_us: ends.chain(operation.commit_us).max().unwrap_or_default(),
            left_out: room.left_out,
            operation: Operation { steps, ..operation.clone() },
        }
    }
}

/// Which records of an operation show an anomaly.
struct Evidence<'a> {
    anomaly: &'a Anomaly,
    /// Partitions and offsets of its relations to others.
    related: Vec<(u32, i64)>,
}

impl<'a> Evidence<'a> {
    fn of(anomaly: &'a Anomaly, place: usize, operation: &Operation) -> Self {
        let of_edge = |edge: &Edge| match edge {
            edge if edge.to == place => Some((edge.partition, edge.offset)),
            edge if edge.from != place => None,
            edge if edge.relation == Relation::Polled => Some((edge.partition, edge.offset)),
            edge => last_before(operation, edge.partition, edge.offset),
        };
        Self { anomaly, related: anomaly.edges.iter().filter_map(of_edge).collect() }
    }

    fn has(&self, partition: u32, offset: Option<i64>, value: Option<u64>) -> bool {
        let Anomaly { value: of, partition: place, offsets, .. } = self.anomaly;
        let is_at = |offset: i64| {
            *place == Some(partition) && offsets.contains(&offset)
                || self.related.contains(&(partition, offset))
        };
        value.is_some() && *of == value || offset.is_some_and(is_at)
    }
}

/// The last record that an operation sent to a partition before this offset.
fn last_before(operation: &Operation, of: u32, before: i64) -> Option<(u32, i64)> {
    let offsets = operation.steps.iter().filter_map(|step| match step.action {
        Action::Send { partition, offset, .. } if partition == of => offset,
        _ => None,
    });
    Some((of, offsets.filter(|offset| *offset < before).max()?))
}

/// How many more records of an operation are kept.
struct Room {
    evidence: usize,
    others: usize,
    left_out: u64,
}

impl Room {
    /// The step with the records that are kept; nothing if it has none.
    fn kept(&mut self, step: &Step, evidence: &Evidence<'_>) -> Option<Step> {
        match &step.action {
            Action::Send { partition, value, offset } => {
                self.takes(evidence.has(*partition, *offset, Some(*value))).then(|| step.clone())
            }
            Action::Poll { partition, records } => {
                let mut kept = records.clone();
                kept.retain(|seen| {
                    self.takes(evidence.has(*partition, Some(seen.offset), Some(seen.value)))
                });
                let is_empty = kept.is_empty();
                let action = Action::Poll { partition: *partition, records: kept };
                (!is_empty).then_some(Step { from_us: step.from_us, to_us: step.to_us, action })
            }
            Action::Commit { partition, offset } => {
                self.takes(evidence.has(*partition, Some(*offset), None)).then(|| step.clone())
            }
            Action::Resume { .. } => Some(step.clone()),
            Action::Position { .. } | Action::End { .. } => None,
        }
    }

    fn takes(&mut self, is_evidence: bool) -> bool {
        let room = if is_evidence { &mut self.evidence } else { &mut self.others };
        let is_kept = *room > 0;
        if is_kept {
            *room -= 1;
        } else {
            self.left_out += 1;
        }
        is_kept
    }
}
