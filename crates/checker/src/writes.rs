//! Offsets with two values, duplicates, lost and unseen records, the order of sends.

use std::collections::{BTreeMap, HashMap};

use crate::anomaly::{Anomaly, Kind};
use crate::history::{Action, Outcome};
use crate::index::{Index, Version};
use crate::report::Report;

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    for (&partition, log) in &index.logs {
        inconsistent_offsets(index, partition, log, report);
        missing_records(index, partition, log, report);
    }
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

/// Acknowledged records that no client polled: lost if a client polled a later one, else unseen.
fn missing_records(
    index: &Index<'_>,
    partition: u32,
    log: &BTreeMap<i64, Version>,
    report: &mut Report,
) {
    let last_polled = log.iter().rfind(|(_, version)| !version.readers.is_empty());
    for (&offset, version) in log.iter().filter(|(_, version)| version.readers.is_empty()) {
        let Some(writer) = index.committed_writer(version) else { continue };
        let later = last_polled.filter(|(last, _)| **last > offset);
        let kind = if later.is_some() { Kind::LostWrite } else { Kind::Unseen };
        report.add(kind, || Anomaly {
            kind,
            partition: Some(partition),
            offsets: std::iter::once(offset).chain(later.map(|(last, _)| *last)).collect(),
            value: version.values.first().copied(),
            operations: std::iter::once(writer)
                .chain(later.and_then(|(_, version)| version.readers.first().copied()))
                .collect(),
            edges: Vec::new(),
        });
    }
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
    let mut last: HashMap<(u32, u32), (u64, i64, usize)> = HashMap::new();
    let mut sends = Vec::new();
    for (number, operation) in index.operations.iter().enumerate() {
        if operation.outcome == Outcome::Aborted {
            continue;
        }
        for step in &operation.steps {
            if let Action::Send { partition, offset: Some(offset), .. } = step.action {
                sends.push((step.from_us, step.to_us, operation.client, partition, offset, number));
            }
        }
    }
    sends.sort_unstable();
    for (from_us, to_us, client, partition, offset, number) in sends {
        let before = last.insert((client, partition), (to_us, offset, number));
        let Some((before_us, before_offset, before_number)) = before else { continue };
        if before_us <= from_us && offset < before_offset {
            report.add(Kind::NonmonotonicSend, || Anomaly {
                kind: Kind::NonmonotonicSend,
                partition: Some(partition),
                offsets: vec![before_offset, offset],
                value: None,
                operations: vec![before_number, number],
                edges: Vec::new(),
            });
        }
    }
}
