//! Polls that skip records or go back.

use std::collections::HashMap;
use std::ops::Bound;

use crate::anomaly::{Anomaly, Kind};
use crate::history::Action;
use crate::index::Index;
use crate::report::Report;

/// Where a client stands in a partition: the last offset that it polled, and the operation.
type Positions = HashMap<(u32, u32), (i64, usize)>;

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    let mut positions = Positions::new();
    for (number, client, action) in steps(index) {
        match action {
            Action::Send { .. } | Action::Commit { .. } | Action::End { .. } => {}
            Action::Position { partition } | Action::Resume { partition, .. } => {
                positions.remove(&(client, *partition));
            }
            Action::Poll { partition, records } => {
                for seen in records {
                    let before = positions.insert((client, *partition), (seen.offset, number));
                    if let Some(before) = before {
                        judge(index, *partition, before, (seen.offset, number), report);
                    }
                }
            }
        }
    }
}

/// The steps of all operations in the order of time.
fn steps<'a>(index: &Index<'a>) -> Vec<(usize, u32, &'a Action)> {
    let mut steps: Vec<_> = index
        .operations
        .iter()
        .enumerate()
        .flat_map(|(number, operation)| {
            let of = move |step| (number, operation.client, step);
            operation.steps.iter().map(of)
        })
        .collect();
    steps.sort_by_key(|(_, _, step)| step.from_us);
    steps.into_iter().map(|(number, client, step)| (number, client, &step.action)).collect()
}

/// Compares two polled offsets that follow each other.
fn judge(
    index: &Index<'_>,
    partition: u32,
    (before, before_number): (i64, usize),
    (offset, number): (i64, usize),
    report: &mut Report,
) {
    let anomaly = |kind, offsets, writer: Option<usize>| Anomaly {
        kind,
        partition: Some(partition),
        offsets,
        value: None,
        operations: writer.into_iter().chain([before_number, number]).collect(),
        edges: Vec::new(),
    };
    if offset <= before {
        let kind = Kind::NonmonotonicPoll;
        report.add(kind, || anomaly(kind, vec![before, offset], None));
        return;
    }
    let Some(log) = index.logs.get(&partition) else { return };
    let between = log.range((Bound::Excluded(before), Bound::Excluded(offset)));
    let mut skipped = between.filter(|(_, version)| index.is_visible(version));
    if let Some((&first, version)) = skipped.next() {
        let kind = Kind::PollSkip;
        let writer = index.committed_writer(version);
        report.add(kind, || anomaly(kind, vec![before, first, offset], writer));
    }
}
