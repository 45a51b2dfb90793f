//! Offsets with two values, duplicates, lost and unseen records, the order of sends.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::anomaly::{Anomaly, Kind};
use crate::history::{Action, Outcome};
use crate::index::{Index, Version, Write};
use crate::report::Report;

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    for (&partition, log) in &index.logs {
        inconsistent_offsets(index, partition, log, report);
    }
    missing_records(index, report);
    duplicates(index, report);
    order_of_sends(index, report);
}

fn inconsistent_offsets(
    index: &Index<'_>,
    partition: u32,
    log: &BTreeMap<i64, Version>,
    report: &mut Report,
) {
    for (&offset, version) in log.iter().filter(|(_, version)| version.values.len() > 1) {
        report.add(Kind::InconsistentOffset, || {
            let of = |value| index.writes.get(value).map(|write| write.operation);
            let mut operations: Vec<_> = version.values.iter().filter_map(of).collect();
            operations.extend(version.readers.first());
            Anomaly {
                kind: Kind::InconsistentOffset,
                partition: Some(partition),
                offsets: vec![offset],
                value: None,
                operations,
                edges: Vec::new(),
            }
        });
    }
}

/// Acknowledged records that no client polled: lost if a client polled their offset or a later one,
/// else unseen.
fn missing_records(index: &Index<'_>, report: &mut Report) {
    let polled: HashSet<u64> = index.reads().map(|read| read.seen.value).collect();
    let is_missing = |value: u64, write: &Write| {
        index.took_effect(write.operation)
            && index.whole.contains(&write.partition)
            && !polled.contains(&value)
    };
    let writes = index.writes.iter().map(|(value, write)| (*value, *write));
    let mut missing: Vec<_> = writes.filter(|(value, write)| is_missing(*value, write)).collect();
    missing.sort_unstable_by_key(|(value, write)| (write.partition, write.offset, *value));
    for (value, write) in missing {
        let later = last_polled(index, write.partition)
            .filter(|(last, _)| write.offset.is_some_and(|offset| *last >= offset));
        let kind = if later.is_some() { Kind::LostWrite } else { Kind::Unseen };
        report.add(kind, || Anomaly {
            kind,
            partition: Some(write.partition),
            offsets: write.offset.into_iter().chain(later.map(|(last, _)| last)).collect(),
            value: Some(value),
            operations: std::iter::once(write.operation)
                .chain(later.map(|(_, reader)| reader))
                .collect(),
            edges: Vec::new(),
        });
    }
}

/// The last offset of a partition that a client polled, and the operation that did.
fn last_polled(index: &Index<'_>, partition: u32) -> Option<(i64, usize)> {
    let mut log = index.logs.get(&partition)?.iter().rev();
    log.find_map(|(offset, version)| Some((*offset, *version.readers.first()?)))
}

fn duplicates(index: &Index<'_>, report: &mut Report) {
    let mut places: HashMap<u64, (u32, i64)> = HashMap::new();
    for (&partition, log) in &index.logs {
        for (&offset, version) in log {
            for &value in &version.values {
                let Some(&first) = places.get(&value) else {
                    places.insert(value, (partition, offset));
                    continue;
                };
                report.add(Kind::Duplicate, || Anomaly {
                    kind: Kind::Duplicate,
                    partition: (first.0 == partition).then_some(partition),
                    offsets: vec![first.1, offset],
                    value: Some(value),
                    operations: index
                        .writes
                        .get(&value)
                        .map(|write| write.operation)
                        .into_iter()
                        .chain(version.readers.first().copied())
                        .collect(),
                    edges: Vec::new(),
                });
            }
        }
    }
}

/// A client that has the result of one send before it begins the next gets ascending offsets.
fn order_of_sends(index: &Index<'_>, report: &mut Report) {
    let begun = sends(index);
    let mut ended = begun.clone();
    ended.sort_by_key(|send| send.to_us);
    let mut ended = ended.into_iter().peekable();
    // The highest offset of those that have ended, of each client and partition.
    let mut highest: HashMap<(u32, u32), Sent> = HashMap::new();
    for send in begun {
        while let Some(before) = ended.next_if(|it| it.to_us <= send.from_us) {
            let known = highest.entry(before.place).or_insert(before);
            *known = if before.offset > known.offset { before } else { *known };
        }
        let Some(before) = highest.get(&send.place) else { continue };
        if send.offset < before.offset {
            report.add(Kind::NonmonotonicSend, || Anomaly {
                kind: Kind::NonmonotonicSend,
                partition: Some(send.place.1),
                offsets: vec![before.offset, send.offset],
                value: None,
                operations: vec![before.operation, send.operation],
                edges: Vec::new(),
            });
        }
    }
}

/// One send with a known offset.
#[derive(Clone, Copy)]
struct Sent {
    from_us: u64,
    to_us: u64,
    /// Client and partition.
    place: (u32, u32),
    offset: i64,
    operation: usize,
}

/// Sends that may have taken effect, in the order in which they began.
fn sends(index: &Index<'_>) -> Vec<Sent> {
    let mut sends = Vec::new();
    for (operation, it) in index.operations.iter().enumerate() {
        if it.outcome == Outcome::Aborted {
            continue;
        }
        for step in &it.steps {
            if let Action::Send { partition, offset: Some(offset), .. } = step.action {
                let (from_us, to_us) = (step.from_us, step.to_us);
                let place = (it.client, partition);
                sends.push(Sent { from_us, to_us, place, offset, operation });
            }
        }
    }
    sends.sort_by_key(|send| send.from_us);
    sends
}
