//! Aborted, premature and unwritten reads.

use crate::anomaly::{Anomaly, Kind};
use crate::history::Outcome;
use crate::index::{Index, Read};
use crate::report::Report;

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    for read in index.reads() {
        if let Some((kind, writer)) = fault(index, &read) {
            report.add(kind, || Anomaly {
                kind,
                partition: Some(read.partition),
                offsets: vec![read.seen.offset],
                value: Some(read.seen.value),
                operations: writer.into_iter().chain([read.operation]).collect(),
                edges: Vec::new(),
            });
        }
    }
}

/// What is wrong with a read, and the operation that wrote the value.
fn fault(index: &Index<'_>, read: &Read<'_>) -> Option<(Kind, Option<usize>)> {
    let Some(write) = index.writes.get(&read.seen.value) else {
        return Some((Kind::UnwrittenRead, None));
    };
    if write.partition != read.partition {
        return Some((Kind::UnwrittenRead, Some(write.operation)));
    }
    let writer = index.operations.get(write.operation)?;
    if writer.outcome == Outcome::Aborted {
        return Some((Kind::AbortedRead, Some(write.operation)));
    }
    let visible_from_us = writer.commit_us.unwrap_or(write.from_us);
    let is_early = read.step.to_us < visible_from_us;
    is_early.then_some((Kind::PrecommittedRead, Some(write.operation)))
}
